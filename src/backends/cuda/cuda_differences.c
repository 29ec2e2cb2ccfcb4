/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Y = K(X, Z) W for kernels of absolute differences in float or bytes, without storing K (difference_product.cu).
 *
 *   for each block of up to 65,536 rows of X            packed into tiles
 *     for each block of up to 32,768 centers            packed into tiles, with their weights
 *       for each 64 columns of W (8 or 32 on GPUs       one kernel; the first pass also stores the columns of K that
 *       with less shared memory)                        are saved
 *         sums += sums of the groups of centers         in double, in order
 *
 * Every pass over columns recomputes the differences: beyond 128 columns a stored block of K and a matrix product are
 * faster (cuda_product.c). If arithmetic "fast" allows it, floats are rounded to halves: centered, in units of 1/128 of
 * the bandwidth. Scratch: both blocks of points with 4 bytes per float, 2 per half and 1 per byte, up to 256 MB each
 * (or 8,192 rows if those need more), and the sums of the groups.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"

/* Most rows of X and centers per block; fewest rows, a multiple of the tile of 128; most words of a packed side (256 MB
   of 4 bytes); most columns of W for this product. */
enum { ROWS = 65536, CENTERS = 32768, FEWEST_ROWS = 8192, MOST_WORDS = 1 << 26, MOST_COLUMNS = 128 };

/* MOST_BYTE_FEATURES keeps sums of byte differences below 2^23. HALVES is the scale of halves, in units per bandwidth:
   coordinates up to 511 bandwidths fit. */
enum { MOST_BYTE_FEATURES = 1 << 15, HALVES = 128 };

typedef struct job {
    mrc_backend *backend;
    const mrc_pair *pair;
    mrc_cuda_arithmetic arithmetic;
    double unit, *origin;             /* scale of halves; (d) on the device, or NULL */
    mercer_matrix z, w, sums, staged; /* device operands; sums of a block of rows; device copy of host rows of X */
    void *px, *pz;                    /* packed tiles of X, of Z */
    float *weights;
    double *parts;
} job;

static bool are_bytes(const mrc_pair *pair)
{
    return pair->x->dtype == MERCER_U8 && pair->z->dtype == MERCER_U8;
}

bool mrc_cuda_uses_differences(const mrc_pair *pair, const mercer_matrix *w, const mercer_matrix *y)
{
    return mrc_difference_product_takes(pair->kernel) && mrc_value_dtype(pair->x, pair->z, w, y) == MERCER_F32 &&
           w->cols <= MOST_COLUMNS && (!are_bytes(pair) || pair->x->cols < MOST_BYTE_FEATURES);
}

static mrc_cuda_arithmetic choose_arithmetic(const mrc_pair *pair)
{
    if (are_bytes(pair)) return MRC_CUDA_BYTES;
    return pair->half ? MRC_CUDA_HALF : MRC_CUDA_F32;
}

/* Returns the number of rows of a side per block, up to `most`. */
static int64_t block_rows(int64_t features, int64_t most)
{
    int64_t rows = MOST_WORDS / mrc_difference_words(MRC_CUDA_F32, features);
    return mrc_min(most, mrc_max(rows / FEWEST_ROWS * FEWEST_ROWS, FEWEST_ROWS));
}

/* Returns the bytes of the packed rows of a side and of the sum of each row. */
static int64_t side_bytes(mrc_cuda_arithmetic arithmetic, int64_t rows, int64_t features)
{
    return mrc_difference_rows(rows) * (mrc_difference_words(arithmetic, features) + 1) * 4;
}

/* Returns the number of columns of W per pass. */
static int64_t pass_columns(const mrc_backend *backend, int64_t columns)
{
    return mrc_min(columns, mrc_cuda_of(backend)->difference_columns);
}

/* Returns the bytes of the sums of all groups of centers, in double, for the columns of one pass. */
static int64_t parts_bytes(const mrc_backend *backend, int64_t rows, int64_t centers, int64_t columns)
{
    return mrc_difference_groups(centers) * rows * pass_columns(backend, columns) * 8;
}

int64_t mrc_cuda_differences_bytes(const mrc_backend *backend, const mrc_extent *work)
{
    int64_t all = mrc_max(work->rows, work->centers), c = mrc_min(work->wide, MOST_COLUMNS);
    int64_t rows = mrc_min(all, block_rows(work->features, ROWS)),
            centers = mrc_min(all, block_rows(work->features, CENTERS));
    int64_t sides = side_bytes(MRC_CUDA_F32, rows, work->features) + side_bytes(MRC_CUDA_F32, centers, work->features);
    return sides + (rows + 2) * work->features * 8 +
           mrc_difference_rows(centers) * mrc_difference_columns(pass_columns(backend, c)) * 4 +
           parts_bytes(backend, rows, centers, c) + rows * c * 8;
}

/* Only halves are centered, to fit their range. Differences of floats and bytes do not depend on an origin. */
static mercer_status find_origin(job *self)
{
    const mrc_pair *pair = self->pair;
    if (self->arithmetic != MRC_CUDA_HALF || self->z.cols == 0) return MERCER_OK;
    if (!pair->origin) return mrc_cuda_device_mean(self->backend, &self->z, &self->origin);
    return mrc_cuda_upload(self->backend, &self->origin, pair->origin, self->z.cols * 8);
}

/* Copies Z and W to the device and allocates scratch for one block of each side. Both blocks have at least FEWEST_ROWS
   rows, or all rows of the operand if it has fewer, whatever the number of features. */
static mercer_status allocate_differences(job *self, const mercer_matrix *w)
{
    mrc_backend *backend = self->backend;
    const mercer_matrix *x = self->pair->x;
    int64_t rows = mrc_min(x->rows, block_rows(x->cols, ROWS)),
            centers = mrc_min(self->pair->z->rows, block_rows(x->cols, CENTERS));
    self->arithmetic = choose_arithmetic(self->pair);
    self->unit = HALVES / self->pair->kernel->bandwidth;
    if (x->memory == MRC_HOST) MRC_TRY(mrc_cuda_scratch(backend, &self->staged, rows, x->cols, x->dtype));
    MRC_TRY(mrc_cuda_read(backend, self->pair->z, &self->z));
    MRC_TRY(mrc_cuda_read(backend, w, &self->w));
    MRC_TRY(find_origin(self));
    MRC_TRY(mrc_cuda_push(backend, &self->px, side_bytes(self->arithmetic, rows, x->cols)));
    MRC_TRY(mrc_cuda_push(backend, &self->pz, side_bytes(self->arithmetic, centers, x->cols)));
    int64_t columns = mrc_difference_columns(pass_columns(backend, w->cols));
    MRC_TRY(mrc_cuda_push(backend, &self->weights, mrc_difference_rows(centers) * columns * 4));
    MRC_TRY(mrc_cuda_push(backend, &self->parts, parts_bytes(backend, rows, centers, w->cols)));
    return mrc_cuda_scratch(backend, &self->sums, rows, w->cols, MERCER_F64);
}

/* Packs rows first .. first + rows - 1 into tiles. A coordinate that does not fit a half sets the flag of the backend,
   which mrc_cuda_sync reports. */
static mercer_status pack_differences(job *self, const mercer_matrix *points, int64_t first, int64_t rows, void *to)
{
    mercer_matrix from = mrc_rows(points, first, rows);
    if (points->memory == MRC_HOST) {
        mercer_matrix staged = mrc_rows(&self->staged, 0, rows);
        MRC_TRY(mrc_cuda_copy(self->backend, &staged, &from));
        from = staged;
    }
    mrc_cuda *cuda = mrc_cuda_of(self->backend);
    MRC_CUDA_TRY(self->backend, mrc_launch_pack_tiles(cuda->stream, self->arithmetic, from, self->origin, self->unit,
                                                      cuda->overflow, to));
    return MERCER_OK;
}

/* sums += K W for the packed rows and centers. k receives the kernel values to save; k may have no columns. */
static mercer_status add_centers(job *self, const mercer_matrix *w, const mercer_matrix *sums, const mercer_matrix *k)
{
    mrc_backend *backend = self->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    for (int64_t c = 0, width; c < w->cols; c += width) {
        width = pass_columns(backend, w->cols - c);
        mercer_matrix some = mrc_columns(w, c, width);
        mrc_difference_product product = {.arithmetic = self->arithmetic,
                                          .unit = self->unit,
                                          .rows = sums->rows,
                                          .cols = w->rows,
                                          .features = self->z.cols,
                                          .columns = (int)width,
                                          .a = self->px,
                                          .b = self->pz,
                                          .weights = self->weights,
                                          .parts = self->parts,
                                          .saved = k->data,
                                          .saved_columns = c == 0 ? k->cols : 0,
                                          .saved_ld = k->ld};
        MRC_CUDA_TRY(backend, mrc_launch_pack_tile_weights(stream, self->arithmetic, some, self->weights));
        MRC_CUDA_TRY(backend, mrc_launch_difference_product(stream, self->pair->kernel, &product));
        MRC_CUDA_TRY(backend, mrc_launch_add_groups(stream, self->parts, mrc_difference_groups(w->rows), sums->rows,
                                                    width, (double *)sums->data + c, sums->ld));
    }
    return MERCER_OK;
}

mercer_status mrc_cuda_multiply_differences(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                            const mercer_matrix *y, bool add, const mercer_matrix *k)
{
    job self = {.backend = backend, .pair = pair};
    mercer_matrix out;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(allocate_differences(&self, w));
    MRC_TRY(mrc_cuda_write(backend, y, add, &out));
    int64_t most = block_rows(pair->x->cols, ROWS), most_centers = block_rows(pair->x->cols, CENTERS);
    for (int64_t i = 0; i < y->rows; i += most) {
        int64_t rows = mrc_min(most, y->rows - i);
        mercer_matrix sums = mrc_rows(&self.sums, 0, rows), to = mrc_rows(&out, i, rows);
        MRC_TRY(pack_differences(&self, pair->x, i, rows, self.px));
        MRC_TRY(mrc_cuda_clear(backend, &sums));
        for (int64_t j = 0; j < self.z.rows; j += most_centers) {
            int64_t cols = mrc_min(most_centers, self.z.rows - j);
            mercer_matrix weights = mrc_rows(&self.w, j, cols);
            mercer_matrix saved = mrc_block(k, i, j, rows, mrc_max(0, mrc_min(cols, k->cols - j)));
            MRC_TRY(pack_differences(&self, &self.z, j, cols, self.pz));
            MRC_TRY(add_centers(&self, &weights, &sums, &saved));
        }
        MRC_CUDA_TRY(backend, mrc_launch_store_sums(mrc_cuda_of(backend)->stream, sums.data, to, add));
    }
    return mrc_cuda_write_back(backend, y, &out);
}

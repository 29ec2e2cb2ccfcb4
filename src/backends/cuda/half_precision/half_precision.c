/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products in half precision, if the pair allows it: functions of the distance, float or half points (rounded
 * to half once, centered, in units of the bandwidth) or bytes (exact distances), float weights.
 *
 *   Y = K(X, Z) W     for each block of up to 65,536 rows of X and up to 16 columns of W: one fused kernel (fused.h);
 *                     for more columns, or on GPUs other than Hopper: tiles (half_tiles.c)
 *
 * Scratch: Z and a block of X as halves, and (units, rows, columns) partial sums.
 */
#include "backends/cuda/half_precision/half_precision.h"

#include "backends/cuda/half_precision/fused.h"
#include "core/matrix.h"
#include "core/memory.h"

/* MOST_BYTE_FEATURES: |x|^2 + |z|^2 <= 2 255^2 16,384 < 2^31, so squared distances fit 32-bit integers. ROW_UNIT: the
   copy engine needs rows of a multiple of 16 bytes. */
enum { BLOCK = 65536, MOST_BYTE_FEATURES = 16384, ROW_UNIT = 16, FEWEST_CENTERS = 128, WIDE = 1024 };

bool mrc_cuda_uses_half(const mrc_pair *pair, const mercer_matrix *w, const mercer_matrix *y)
{
    if (!pair->half || !(mrc_fused_scale(pair->kernel) > 0)) return false;
    if (mrc_value_dtype(pair->x, pair->z, w, y) != MERCER_F32) return false;
    /* The copy engine uses 32-bit coordinates, and few centers do not gain from half precision. */
    return pair->x->cols > 0 && pair->z->rows >= FEWEST_CENTERS && pair->z->rows < INT32_MAX - BLOCK;
}

/* The gain was measured only on Hopper, with the fused kernel. */
bool mrc_cuda_gains_by_half(const mrc_backend *backend, const mercer_kernel *kernel)
{
    return mrc_cuda_of(backend)->hopper && mrc_fused_scale(kernel) > 0;
}

/* ---- Operands ------------------------------------------------------------------------------------------------ */

bool mrc_half_precision_takes_bytes(const mrc_backend *backend, const mercer_matrix *points)
{
    return mrc_cuda_of(backend)->hopper && points->dtype == MERCER_U8 && points->cols <= MOST_BYTE_FEATURES;
}

int64_t mrc_half_precision_ld(int64_t d)
{
    return mrc_round_up(d, ROW_UNIT);
}

static int64_t row_bytes(const mrc_half_precision *self)
{
    return self->ld * (self->bytes ? 1 : 2);
}

/* Uses rows that were packed before, if they have the element type of this product and begin at a row that the kernel
   can address; otherwise allocates scratch for `rows` packed rows. first: position of the first row of the operand in
   its packed copy. */
static mercer_status make_side(mrc_half_precision *self, mrc_half_side *out, const mercer_matrix *points,
                               const mrc_packed *packed, int64_t first, int64_t rows)
{
    mrc_backend *backend = self->backend;
    out->points = points;
    bool aligned = out == &self->x || first % 4 == 0; /* the fused kernel copies norms of centers 16 bytes at a time */
    if (packed && packed->bytes == self->bytes && aligned) {
        out->packed_before = true;
        out->all_rows = (char *)packed->values + first * row_bytes(self);
        out->all_norms = (char *)packed->norms + first * 4;
        return MERCER_OK;
    }
    if (points->memory == MRC_HOST) MRC_TRY(mrc_cuda_scratch(backend, &out->staged, rows, points->cols, points->dtype));
    MRC_TRY(mrc_cuda_push(backend, &out->all_rows, rows * row_bytes(self)));
    return mrc_cuda_push(backend, &out->all_norms, mrc_fused_padded(rows) * 4);
}

mercer_status mrc_half_precision_use(mrc_half_precision *self, mrc_half_side *out, int64_t first, int64_t count)
{
    mrc_backend *backend = self->backend;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mercer_matrix from = mrc_rows(out->points, first, count);
    int64_t padded = mrc_fused_padded(count);
    out->rows = out->all_rows, out->norms = out->all_norms;
    if (out->packed_before) {
        out->rows = out->all_rows + first * row_bytes(self), out->norms = out->all_norms + first * 4;
        return MERCER_OK;
    }
    if (from.memory == MRC_HOST) {
        mercer_matrix staged = mrc_rows(&out->staged, 0, count);
        MRC_TRY(mrc_cuda_copy(backend, &staged, &from));
        from = staged;
    }
    if (self->bytes)
        MRC_CUDA_TRY(backend, mrc_fused_pack_bytes(cuda->stream, from, self->ld, out->rows, out->norms, padded));
    else
        MRC_CUDA_TRY(backend, mrc_fused_pack_half(cuda->stream, self->pair->kernel, from, self->origin, self->ld,
                                                  out->rows, out->norms, padded, cuda->overflow));
    return MERCER_OK;
}

/* Sets the origin: that of the pair, otherwise the mean of Z. Rows packed before are centered already, and bytes have
   no origin. */
static mercer_status find_origin(mrc_half_precision *self, const mercer_matrix *z)
{
    if (self->bytes || (self->x.packed_before && self->z.packed_before)) return MERCER_OK;
    if (self->pair->origin) return mrc_cuda_upload(self->backend, &self->origin, self->pair->origin, z->cols * 8);
    mercer_matrix points;
    MRC_TRY(mrc_cuda_read(self->backend, z, &points));
    return mrc_cuda_device_mean(self->backend, &points, &self->origin);
}

mercer_status mrc_half_precision_make(mrc_half_precision *self, int64_t rows)
{
    const mrc_pair *pair = self->pair;
    self->ld = mrc_half_precision_ld(pair->x->cols);
    MRC_TRY(make_side(self, &self->x, pair->x, pair->packed_x, pair->first_x, rows));
    MRC_TRY(make_side(self, &self->z, pair->z, pair->packed_z, pair->first_z, pair->z->rows));
    MRC_TRY(find_origin(self, pair->z));
    return mrc_half_precision_use(self, &self->z, 0, pair->z->rows);
}

/* ---- The fused kernel ---------------------------------------------------------------------------------------- */

int64_t mrc_half_cached_width(const mrc_cached_block *cached, int64_t p)
{
    return cached->columns >= p ? mrc_fused_padded(p) : cached->columns;
}

/* Scratch of the fused kernel. */
typedef struct fused_scratch {
    void *weights, *factors, *sums; /* packed weights, their factors, partial sums */
} fused_scratch;

/* Computes y = K W, or y += if add, for the rows of X in use; saves saved_columns columns of K in saved. */
static mercer_status multiply_rows(mrc_half_precision *self, const fused_scratch *scratch, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add, void *saved, int64_t saved_columns)
{
    mrc_backend *backend = self->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    const mrc_pair *pair = self->pair;
    MRC_CUDA_TRY(backend, mrc_fused_pack_weights(stream, *w, mrc_fused_columns(w->cols),
                                                 mrc_fused_padded(pair->z->rows), scratch->weights, scratch->factors));
    mrc_fused_job fused = {.kernel = pair->kernel,
                           .bytes = self->bytes,
                           .m = y->rows,
                           .p = pair->z->rows,
                           .d = pair->x->cols,
                           .ld = self->ld,
                           .x = self->x.rows,
                           .z = self->z.rows,
                           .x_norms = self->x.norms,
                           .z_norms = self->z.norms,
                           .weights = scratch->weights,
                           .factors = scratch->factors,
                           .sums = scratch->sums,
                           .y = *y,
                           .add = add,
                           .saved = saved,
                           .saved_columns = saved_columns};
    MRC_CUDA_TRY(backend, mrc_fused_product(stream, &fused));
    return MERCER_OK;
}

/* Computes the product with the fused kernel, a block of rows of X at a time. All blocks use the same scratch, because
   the stream runs them one after the other. */
static mercer_status run_fused(mrc_half_precision *self, const mercer_matrix *w, const mercer_matrix *y, bool add,
                               const mrc_cached_block *cached)
{
    mrc_backend *backend = self->backend;
    const mrc_pair *pair = self->pair;
    int64_t p = pair->z->rows, block = mrc_min(y->rows, BLOCK);
    int columns = mrc_fused_columns(w->cols);
    fused_scratch scratch;
    MRC_TRY(mrc_half_precision_make(self, block));
    MRC_TRY(mrc_cuda_push(backend, &scratch.weights, mrc_fused_padded(p) * columns * 2));
    MRC_TRY(mrc_cuda_push(backend, &scratch.factors, MRC_FUSED_OUTPUTS * (int64_t)sizeof(float)));
    MRC_TRY(mrc_cuda_push(backend, &scratch.sums, mrc_fused_units(p) * block * columns * (int64_t)sizeof(float)));
    for (int64_t i = 0; i < y->rows; i += BLOCK) {
        int64_t rows = mrc_min(BLOCK, y->rows - i);
        mercer_matrix out = mrc_rows(y, i, rows);
        MRC_TRY(mrc_half_precision_use(self, &self->x, i, rows));
        int64_t width = cached ? mrc_half_cached_width(cached, p) : 0;
        void *place = width > 0 ? (char *)cached->memory + i * width * 2 : NULL;
        MRC_TRY(multiply_rows(self, &scratch, w, &out, add, place, width));
    }
    return MERCER_OK;
}

/* ---- Entry --------------------------------------------------------------------------------------------------- */

/* The fused kernel has up to 16 columns and needs the instructions of Hopper. */
static bool is_fused(const mrc_backend *backend, const mercer_matrix *w)
{
    return mrc_cuda_of(backend)->hopper && w->cols < MRC_CUDA_WIDE;
}

/* Uses bytes only if both sides are bytes; otherwise bytes are rounded to halves like floats. */
static mercer_status run_half_product(mrc_half_precision *self, const mercer_matrix *w, const mercer_matrix *y,
                                      bool add, const mrc_cached_block *cached)
{
    mrc_backend *backend = self->backend;
    mercer_matrix weights, out;
    MRC_CUDA_SCRATCH(backend);
    self->bytes = mrc_half_precision_takes_bytes(backend, self->pair->x) &&
                  mrc_half_precision_takes_bytes(backend, self->pair->z);
    MRC_TRY(mrc_cuda_read(backend, w, &weights));
    MRC_TRY(mrc_cuda_write(backend, y, add, &out));
    MRC_TRY(is_fused(backend, w) ? run_fused(self, &weights, &out, add, cached)
                                 : mrc_half_precision_tiles(self, &weights, &out, add, cached));
    return mrc_cuda_write_back(backend, y, &out);
}

mercer_status mrc_cuda_half_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add)
{
    mrc_half_precision self = {.backend = backend, .pair = pair};
    return run_half_product(&self, w, y, add, NULL);
}

/* On Hopper, saves whole tiles of 256 columns, as many as fit the buffer; other GPUs save nothing. The number of rows
   is rounded up to a size that cuBLAS multiplies fast, which leaves space for fewer columns. cached->columns does not
   count padding. */
mercer_status mrc_cuda_half_forward(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *f, mrc_cached_block *cached)
{
    mrc_half_precision self = {.backend = backend, .pair = pair};
    mrc_cached_block block = *cached;
    int64_t rows = mrc_max(mrc_fused_cached_rows(pair->x->rows), 1);
    cached->columns = 0;
    block.columns = mrc_min(cached->bytes / (2 * rows), mrc_fused_padded(pair->z->rows));
    block.columns = mrc_cuda_of(backend)->hopper ? block.columns / MRC_FUSED_CENTERS * MRC_FUSED_CENTERS : 0;
    MRC_TRY(run_half_product(&self, w, f, false, block.columns > 0 ? &block : NULL));
    cached->columns = mrc_min(block.columns, pair->z->rows);
    cached->opaque = true;
    return MERCER_OK;
}

/* H = K' G by a general matrix product, for up to WIDE columns of G. G is split into `count` parts (1 or 2) next to
   each other, so that K is read only once. */
static mercer_status transpose_wide(mrc_backend *backend, const mercer_matrix *g, const mercer_matrix *h,
                                    const mrc_cached_block *cached, int64_t ld, int count)
{
    static const float one = 1, zero = 0;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    int64_t padded = mrc_fused_cached_rows(g->rows), width = mrc_tile_width(g->cols, count);
    char *parts;
    void *sums, *factors;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_push(backend, &parts, padded * width * 2));
    MRC_TRY(mrc_cuda_push(backend, &sums, h->rows * width * (int64_t)sizeof(float)));
    MRC_TRY(mrc_cuda_push(backend, &factors, g->cols * (int64_t)sizeof(float)));
    MRC_CUDA_TRY(backend, mrc_tile_weights(cuda->stream, *g, count, factors, parts));
    if (padded > g->rows) /* weights after the last row must be 0 */
        MRC_CUDA_TRY(backend, cudaMemsetAsync(parts + g->rows * width * 2, 0, (size_t)((padded - g->rows) * width * 2),
                                              cuda->stream));
    cublasStatus_t status = cuda->libraries.cublasGemmEx_64(
        cuda->blas, CUBLAS_OP_N, CUBLAS_OP_T, width, h->rows, padded, &one, parts, CUDA_R_16F, width, cached->memory,
        CUDA_R_16F, ld, &zero, sums, CUDA_R_32F, width, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS)
        return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: a product of cached values returned %d",
                        (int)status);
    MRC_CUDA_TRY(backend, mrc_tile_store(cuda->stream, sums, count, factors, *h, 0));
    return MERCER_OK;
}

/* H = K' G for few columns: one narrow product on tensor cores, limited by memory bandwidth. */
static mercer_status transpose_few(mrc_backend *backend, const mercer_matrix *g, const mercer_matrix *h,
                                   const mrc_cached_block *cached, int64_t ld)
{
    static const float one = 1, zero = 0;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    void *parts, *sums, *factors;
    int64_t padded = mrc_fused_cached_rows(g->rows); /* weights after the last row are 0 */
    int columns = mrc_fused_columns(g->cols);
    MRC_TRY(mrc_cuda_push(backend, &parts, padded * columns * 2));
    MRC_TRY(mrc_cuda_push(backend, &sums, h->rows * columns * (int64_t)sizeof(float)));
    MRC_TRY(mrc_cuda_push(backend, &factors, MRC_FUSED_OUTPUTS * (int64_t)sizeof(float)));
    MRC_CUDA_TRY(backend, mrc_fused_pack_weights(cuda->stream, *g, columns, padded, parts, factors));
    cublasStatus_t status = cuda->libraries.cublasGemmEx_64(
        cuda->blas, CUBLAS_OP_T, CUBLAS_OP_T, columns, h->rows, padded, &one, parts, CUDA_R_16F, padded, cached->memory,
        CUDA_R_16F, ld, &zero, sums, CUDA_R_32F, columns, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS)
        return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: a product of cached values returned %d",
                        (int)status);
    MRC_CUDA_TRY(backend, mrc_fused_add_units(cuda->stream, sums, 1, columns, factors, *h, 0));
    return MERCER_OK;
}

/* H (columns, c) = K' G with K (m, ld), the halves that forward saved: up to 1024 columns of G at a time. */
mercer_status mrc_cuda_half_transpose(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *g,
                                      const mercer_matrix *h, const mrc_cached_block *cached)
{
    mercer_matrix weights, out;
    int64_t ld = mrc_half_cached_width(cached, pair->z->rows);
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, g, &weights));
    MRC_TRY(mrc_cuda_write(backend, h, false, &out));
    if (g->cols < MRC_CUDA_WIDE) MRC_TRY(transpose_few(backend, &weights, &out, cached, ld));
    for (int64_t k = 0; k < g->cols && g->cols >= MRC_CUDA_WIDE; k += WIDE) {
        mercer_matrix some = mrc_columns(&weights, k, mrc_min(WIDE, g->cols - k)), to = mrc_columns(&out, k, some.cols);
        MRC_TRY(transpose_wide(backend, &some, &to, cached, ld, pair->short_weights ? 1 : 2));
    }
    return mrc_cuda_write_back(backend, h, &out);
}

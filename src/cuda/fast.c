/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products by the fused tensor-core kernel (fused.h), where precision "fast" allows it: functions of the distance, float
 * or half points (rounded to half once, centred, in units of the bandwidth) or bytes (exact distances), float weights.
 *
 *   Y = K(X, Z) W     for each block of up to 65,536 rows of X, for each 16 columns of W: one fused kernel
 *
 * Scratch: Z and a block of X as halves, and (units, rows, columns) partial sums.
 */
#include "cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "cuda/fused.h"

enum { BLOCK = 65536, MOST_PASSES = 4, MOST_BYTE_FEATURES = 16384, ROW_UNIT = 16, FEWEST_CENTERS = 128 };

static bool is_bytes(const mrc_pair *pair)
{
    return pair->x->dtype == MERCER_U8 && pair->z->dtype == MERCER_U8;
}

bool mrc_cuda_is_fast(const mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w, const mercer_matrix *y)
{
    if (!backend->context->fast || !mrc_cuda_of(backend)->hopper) return false;
    if (mrc_value_dtype(pair->x, pair->z, w, y) != MERCER_F32 || !(mrc_fused_scale(pair->kernel) > 0)) return false;
    if (is_bytes(pair) && pair->x->cols > MOST_BYTE_FEATURES) return false;
    /* The copy engine counts in 32 bits; and a few centers are not worth it. */
    return pair->x->cols > 0 && pair->z->rows >= FEWEST_CENTERS && pair->z->rows < INT32_MAX - BLOCK &&
           w->cols <= MOST_PASSES * MRC_FUSED_OUTPUTS;
}

/* Rows of one side, packed. */
typedef struct side {
    mercer_matrix staged; /* for rows that lie on the host */
    void *rows, *norms;
} side;

typedef struct job {
    mrc_backend *backend;
    const mrc_pair *pair;
    bool bytes;
    int64_t ld;
    double *origin; /* (d) on the device, or NULL */
    side x, z;
    void *weights, *sums;
    float *factors;
} job;

static mercer_status make_side(job *self, side *out, const mercer_matrix *points, int64_t rows)
{
    mrc_backend *backend = self->backend;
    if (points->memory == MERCER_HOST)
        MRC_TRY(mrc_cuda_scratch(backend, &out->staged, rows, points->cols, points->dtype));
    MRC_TRY(mrc_cuda_push(backend, &out->rows, rows * self->ld * (self->bytes ? 1 : 2)));
    return mrc_cuda_push(backend, &out->norms, mrc_fused_padded(rows) * 4);
}

static mercer_status pack(job *self, side *out, const mercer_matrix *points)
{
    mrc_backend *backend = self->backend;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mercer_matrix from = *points;
    int64_t padded = mrc_fused_padded(points->rows);
    if (points->memory == MERCER_HOST) {
        from = mrc_rows(&out->staged, 0, points->rows);
        MRC_TRY(mrc_cuda_copy(backend, &from, points));
    }
    if (self->bytes)
        MRC_CUDA_TRY(backend, mrc_fused_pack_bytes(cuda->stream, from, self->ld, out->rows, out->norms, padded));
    else
        MRC_CUDA_TRY(backend, mrc_fused_pack_half(cuda->stream, self->pair->kernel, from, self->origin, self->ld,
                                                  out->rows, out->norms, padded, cuda->overflow));
    return MERCER_OK;
}

static mercer_status find_origin(job *self, const mercer_matrix *z)
{
    void *uploaded;
    if (self->bytes) return MERCER_OK;
    if (!self->pair->origin) {
        mercer_matrix points;
        MRC_TRY(mrc_cuda_read(self->backend, z, &points));
        return mrc_cuda_device_mean(self->backend, &points, &self->origin);
    }
    MRC_TRY(mrc_cuda_upload(self->backend, &uploaded, self->pair->origin, z->cols * 8));
    self->origin = uploaded;
    return MERCER_OK;
}

static mercer_status make(job *self, const mercer_matrix *w)
{
    mrc_backend *backend = self->backend;
    const mrc_pair *pair = self->pair;
    int64_t rows = mrc_min(pair->x->rows, BLOCK), padded = mrc_fused_padded(pair->z->rows);
    int columns = mrc_fused_columns(mrc_min(w->cols, MRC_FUSED_OUTPUTS));
    void *factors;
    self->bytes = is_bytes(pair);
    self->ld = mrc_round_up(pair->x->cols, ROW_UNIT);
    MRC_TRY(find_origin(self, pair->z));
    MRC_TRY(make_side(self, &self->x, pair->x, rows));
    MRC_TRY(make_side(self, &self->z, pair->z, pair->z->rows));
    MRC_TRY(mrc_cuda_push(backend, &self->weights, padded * columns * 2));
    MRC_TRY(mrc_cuda_push(backend, &factors, MRC_FUSED_OUTPUTS * (int64_t)sizeof(float)));
    self->factors = factors;
    MRC_TRY(mrc_cuda_push(backend, &self->sums, mrc_fused_units(pair->z->rows) * rows * columns * 4));
    return pack(self, &self->z, pair->z);
}

/* One group of columns for the packed rows of X. */
static mercer_status multiply_columns(job *self, const mercer_matrix *w, const mercer_matrix *y, bool add)
{
    mrc_backend *backend = self->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    const mrc_pair *pair = self->pair;
    MRC_CUDA_TRY(backend, mrc_fused_pack_weights(stream, *w, mrc_fused_columns(w->cols),
                                                 mrc_fused_padded(pair->z->rows), self->weights, self->factors));
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
                           .weights = self->weights,
                           .factors = self->factors,
                           .sums = self->sums,
                           .y = *y,
                           .add = add};
    MRC_CUDA_TRY(backend, mrc_fused_product(stream, &fused));
    return MERCER_OK;
}

static mercer_status run(job *self, const mercer_matrix *w, const mercer_matrix *y, bool add)
{
    mrc_backend *backend = self->backend;
    mercer_matrix weights, out;
    MRC_TRY(make(self, w));
    MRC_TRY(mrc_cuda_read(backend, w, &weights));
    MRC_TRY(mrc_cuda_write(backend, y, add, &out));
    for (int64_t i = 0; i < y->rows; i += BLOCK) {
        int64_t rows = mrc_min(BLOCK, y->rows - i);
        mercer_matrix x = mrc_rows(self->pair->x, i, rows), block = mrc_rows(&out, i, rows);
        MRC_TRY(pack(self, &self->x, &x));
        for (int64_t k = 0; k < w->cols; k += MRC_FUSED_OUTPUTS) {
            int64_t cols = mrc_min(MRC_FUSED_OUTPUTS, w->cols - k);
            mercer_matrix some = mrc_columns(&weights, k, cols), to = mrc_columns(&block, k, cols);
            MRC_TRY(multiply_columns(self, &some, &to, add));
        }
    }
    return mrc_cuda_write_back(backend, y, &out);
}

mercer_status mrc_cuda_fast_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add)
{
    job self = {.backend = backend, .pair = pair};
    mrc_cuda_mark mark = mrc_cuda_begin(backend);
    return mrc_cuda_end(backend, mark, run(&self, w, y, add));
}

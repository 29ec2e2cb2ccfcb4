/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products in half precision, where arithmetic "fast" allows it: functions of the distance, float or half points (rounded
 * to half once, centred, in units of the bandwidth) or bytes (exact distances), float weights.
 *
 *   Y = K(X, Z) W     for each block of up to 65,536 rows of X, for each 16 columns of W: one fused kernel (fused.h);
 *                     with more than 64 columns, or without its instructions, by tiles (fast_tiles.c)
 *
 * Scratch: Z and a block of X as halves, and (units, rows, columns) partial sums.
 */
#include "cuda/fast.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "cuda/fused.h"

enum { BLOCK = 65536, MOST_PASSES = 4, MOST_BYTE_FEATURES = 16384, ROW_UNIT = 16, FEWEST_CENTERS = 128 };

bool mrc_cuda_is_fast(const mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w, const mercer_matrix *y)
{
    if (!backend->context->fast || !(mrc_fused_scale(pair->kernel) > 0)) return false;
    if (mrc_value_dtype(pair->x, pair->z, w, y) != MERCER_F32) return false;
    /* The copy engine counts in 32 bits; and a few centers are not worth it. */
    return pair->x->cols > 0 && pair->z->rows >= FEWEST_CENTERS && pair->z->rows < INT32_MAX - BLOCK;
}

/* ---- Operands ------------------------------------------------------------------------------------------------ */

static mercer_status make_side(mrc_fast *self, mrc_fast_side *out, const mercer_matrix *points, int64_t rows)
{
    mrc_backend *backend = self->backend;
    if (points->memory == MERCER_HOST)
        MRC_TRY(mrc_cuda_scratch(backend, &out->staged, rows, points->cols, points->dtype));
    MRC_TRY(mrc_cuda_push(backend, &out->rows, rows * self->ld * (self->bytes ? 1 : 2)));
    return mrc_cuda_push(backend, &out->norms, mrc_fused_padded(rows) * 4);
}

mercer_status mrc_fast_pack(mrc_fast *self, mrc_fast_side *out, const mercer_matrix *points)
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

static mercer_status find_origin(mrc_fast *self, const mercer_matrix *z)
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

mercer_status mrc_fast_make(mrc_fast *self, int64_t rows)
{
    const mrc_pair *pair = self->pair;
    self->ld = mrc_round_up(pair->x->cols, ROW_UNIT);
    MRC_TRY(find_origin(self, pair->z));
    MRC_TRY(make_side(self, &self->x, pair->x, rows));
    MRC_TRY(make_side(self, &self->z, pair->z, pair->z->rows));
    return mrc_fast_pack(self, &self->z, pair->z);
}

/* ---- The fused kernel ---------------------------------------------------------------------------------------- */

typedef struct fused_room {
    void *weights, *factors, *sums;
} fused_room;

/* One group of columns for the packed rows of X. */
static mercer_status multiply_columns(mrc_fast *self, const fused_room *room, const mercer_matrix *w,
                                      const mercer_matrix *y, bool add)
{
    mrc_backend *backend = self->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    const mrc_pair *pair = self->pair;
    MRC_CUDA_TRY(backend, mrc_fused_pack_weights(stream, *w, mrc_fused_columns(w->cols),
                                                 mrc_fused_padded(pair->z->rows), room->weights, room->factors));
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
                           .weights = room->weights,
                           .factors = room->factors,
                           .sums = room->sums,
                           .y = *y,
                           .add = add};
    MRC_CUDA_TRY(backend, mrc_fused_product(stream, &fused));
    return MERCER_OK;
}

static mercer_status run_fused(mrc_fast *self, const mercer_matrix *w, const mercer_matrix *y, bool add)
{
    mrc_backend *backend = self->backend;
    int64_t p = self->pair->z->rows, block = mrc_min(y->rows, BLOCK);
    int columns = mrc_fused_columns(mrc_min(w->cols, MRC_FUSED_OUTPUTS));
    fused_room room;
    self->bytes = self->pair->x->dtype == MERCER_U8 && self->pair->z->dtype == MERCER_U8 &&
                  self->pair->x->cols <= MOST_BYTE_FEATURES;
    MRC_TRY(mrc_fast_make(self, block));
    MRC_TRY(mrc_cuda_push(backend, &room.weights, mrc_fused_padded(p) * columns * 2));
    MRC_TRY(mrc_cuda_push(backend, &room.factors, MRC_FUSED_OUTPUTS * (int64_t)sizeof(float)));
    MRC_TRY(mrc_cuda_push(backend, &room.sums, mrc_fused_units(p) * block * columns * (int64_t)sizeof(float)));
    for (int64_t i = 0; i < y->rows; i += BLOCK) {
        int64_t rows = mrc_min(BLOCK, y->rows - i);
        mercer_matrix x = mrc_rows(self->pair->x, i, rows), out = mrc_rows(y, i, rows);
        MRC_TRY(mrc_fast_pack(self, &self->x, &x));
        for (int64_t k = 0; k < w->cols; k += MRC_FUSED_OUTPUTS) {
            int64_t cols = mrc_min(MRC_FUSED_OUTPUTS, w->cols - k);
            mercer_matrix some = mrc_columns(w, k, cols), to = mrc_columns(&out, k, cols);
            MRC_TRY(multiply_columns(self, &room, &some, &to, add));
        }
    }
    return MERCER_OK;
}

/* ---- Entry --------------------------------------------------------------------------------------------------- */

static mercer_status run(mrc_fast *self, const mercer_matrix *w, const mercer_matrix *y, bool add)
{
    mrc_backend *backend = self->backend;
    mercer_matrix weights, out;
    bool fused = mrc_cuda_of(backend)->hopper && w->cols <= MOST_PASSES * MRC_FUSED_OUTPUTS;
    MRC_TRY(mrc_cuda_read(backend, w, &weights));
    MRC_TRY(mrc_cuda_write(backend, y, add, &out));
    MRC_TRY(fused ? run_fused(self, &weights, &out, add) : mrc_fast_tiles(self, &weights, &out, add));
    return mrc_cuda_write_back(backend, y, &out);
}

mercer_status mrc_cuda_fast_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add)
{
    mrc_fast self = {.backend = backend, .pair = pair};
    mrc_cuda_mark mark = mrc_cuda_begin(backend);
    return mrc_cuda_end(backend, mark, run(&self, w, y, add));
}

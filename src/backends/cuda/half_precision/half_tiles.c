/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products in half precision for many columns of W, and for GPUs without the instructions of the fused kernel: K for
 * 8192 rows and 16,384 centers at a time is stored as halves, then multiplied by both parts of W with cuBLAS.
 *
 *   K   On Hopper the fused kernel computes and stores K. On other GPUs cuBLAS computes X Z', and a profile kernel
 *       (tiles.cu) converts the products to K. Columns that are saved for the transposed product are computed in their
 *       final place, all in one call.
 *
 * Cost: 2 m p d + 4 m p c flops in half precision, and 4 m p bytes (12 m p on other GPUs). Scratch: 256 MB of tiles
 * (768 MB on other GPUs), Z as halves unless it is packed, W as halves.
 */
#include "backends/cuda/half_precision/half_precision.h"

#include "backends/cuda/half_precision/fused.h"
#include "core/matrix.h"
#include "core/memory.h"

enum { ROWS = 8192, CENTERS = 16384, PARTS = 2, UNREAD = 8 }; /* UNREAD: columns of the fused kernel's unused sums */

typedef struct tiles {
    mrc_half_precision *half;
    const mrc_cached_block *cached; /* NULL, or where the first columns of K are saved */
    int64_t c, width;               /* columns of W; columns of packed weights and sums */
    int64_t ld;                     /* leading dimension of dots and values */
    float *dots, *sums, *factors;
    void *values, *weights;
    void *no_weights, *no_sums; /* unused operands of the fused kernel, which always computes sums */
} tiles;

/* Returns the number of centers whose values are saved, without the padding of the last tile. */
static int64_t cached_columns(const tiles *self)
{
    return self->cached ? mrc_min(self->cached->columns, self->half->pair->z->rows) : 0;
}

/* Allocates zero weights and a buffer for sums that are not read: the fused kernel needs both even if only K is used.
   most: maximum number of centers per call. */
static mercer_status make_fused(tiles *self, int64_t rows, int64_t most)
{
    mrc_backend *backend = self->half->backend;
    int64_t bytes = mrc_fused_padded(most) * UNREAD * 2;
    MRC_TRY(mrc_cuda_push(backend, &self->no_weights, bytes));
    /* A call with fewer centers may have more units, but never more than 32. */
    MRC_TRY(mrc_cuda_push(backend, &self->no_sums, mrc_max(32, mrc_fused_units(most)) * rows * UNREAD * 4));
    MRC_CUDA_TRY(backend, cudaMemsetAsync(self->no_weights, 0, (size_t)bytes, mrc_cuda_of(backend)->stream));
    return MERCER_OK;
}

static mercer_status allocate_tiles(tiles *self, const mercer_matrix *w, int64_t rows)
{
    mrc_backend *backend = self->half->backend;
    int64_t p = self->half->pair->z->rows, cached = cached_columns(self), some = mrc_min(p - cached, CENTERS);
    self->ld = mrc_fused_padded(some);
    self->c = w->cols, self->width = mrc_tile_width(self->c, PARTS);
    if (mrc_cuda_of(backend)->hopper)
        MRC_TRY(make_fused(self, rows, mrc_max(some, cached)));
    else
        MRC_TRY(mrc_cuda_push(backend, &self->dots, rows * self->ld * 4));
    MRC_TRY(mrc_cuda_push(backend, &self->values, mrc_fused_cached_rows(rows) * self->ld * 2));
    MRC_TRY(mrc_cuda_push(backend, &self->weights, p * self->width * 2));
    MRC_TRY(mrc_cuda_push(backend, &self->sums, rows * self->width * 4));
    return mrc_cuda_push(backend, &self->factors, self->c * 4);
}

static mercer_status check_cublas(mrc_backend *backend, cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_SUCCESS) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: a product in half precision returned %d",
                    (int)status);
}

/* values (rows, ld) = 2^15 K(X_b, Z_b) with cuBLAS and the profile. */
static mercer_status evaluate_plainly(tiles *self, int64_t rows, const void *z, const void *z_norms, int64_t cols,
                                      void *values, int64_t ld)
{
    static const float one = 1, zero = 0;
    mrc_half_precision *half = self->half;
    mrc_backend *backend = half->backend;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    MRC_TRY(check_cublas(backend, cuda->libraries.cublasGemmEx_64(cuda->blas, CUBLAS_OP_T, CUBLAS_OP_N, cols, rows,
                                                                  half->ld, &one, z, CUDA_R_16F, half->ld, half->x.rows,
                                                                  CUDA_R_16F, half->ld, &zero, self->dots, CUDA_R_32F,
                                                                  ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)));
    MRC_CUDA_TRY(backend, mrc_tile_profile(cuda->stream, half->pair->kernel, rows, cols, ld, self->dots, half->x.norms,
                                           z_norms, values));
    return MERCER_OK;
}

/* values (rows, ld) = 2^15 K(X_b, Z_b) for centers first .. first + cols - 1. The fused kernel stores whole tiles, and
   its product with the zero weights is discarded. */
static mercer_status evaluate_tiles(tiles *self, int64_t rows, int64_t first, int64_t cols, void *values, int64_t ld)
{
    mrc_half_precision *half = self->half;
    mrc_cuda *cuda = mrc_cuda_of(half->backend);
    const void *z = (const char *)half->z.rows + first * half->ld * (half->bytes ? 1 : 2),
               *z_norms = (const char *)half->z.norms + first * 4;
    if (!cuda->hopper) return evaluate_plainly(self, rows, z, z_norms, cols, values, ld);
    mrc_fused_job job = {.kernel = half->pair->kernel,
                         .bytes = half->bytes,
                         .m = rows,
                         .p = cols,
                         .d = half->pair->x->cols,
                         .ld = half->ld,
                         .x = half->x.rows,
                         .z = z,
                         .x_norms = half->x.norms,
                         .z_norms = z_norms,
                         .weights = self->no_weights,
                         .sums = self->no_sums,
                         .y.cols = 1,
                         .saved = values,
                         .saved_columns = ld};
    MRC_CUDA_TRY(half->backend, mrc_fused_evaluate(cuda->stream, &job));
    return MERCER_OK;
}

/* sums (rows, width) = K(X_b, Z_b) W_b for the first block of centers, += for the other blocks. */
static mercer_status add_centers(tiles *self, int64_t rows, int64_t first, int64_t cols, void *values, int64_t ld)
{
    static const float one = 1, zero = 0;
    mrc_backend *backend = self->half->backend;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    const char *weights = (const char *)self->weights + first * self->width * 2;
    MRC_TRY(evaluate_tiles(self, rows, first, cols, values, ld));
    return check_cublas(backend, cuda->libraries.cublasGemmEx_64(
                                     cuda->blas, CUBLAS_OP_N, CUBLAS_OP_N, self->width, rows, cols, &one, weights,
                                     CUDA_R_16F, self->width, values, CUDA_R_16F, ld, first > 0 ? &one : &zero,
                                     self->sums, CUDA_R_32F, self->width, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

mercer_status mrc_half_precision_tiles(mrc_half_precision *half, const mercer_matrix *w, const mercer_matrix *y,
                                       bool add, const mrc_cached_block *cached)
{
    mrc_backend *backend = half->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    tiles self = {.half = half, .cached = cached};
    int64_t p = half->pair->z->rows, block = mrc_min(y->rows, ROWS), before = cached_columns(&self);
    int64_t width = cached ? mrc_half_cached_width(cached, p) : 0;
    MRC_TRY(mrc_half_precision_make(half, block));
    MRC_TRY(allocate_tiles(&self, w, block));
    MRC_CUDA_TRY(backend, mrc_tile_weights(stream, *w, PARTS, self.factors, self.weights));
    for (int64_t i = 0; i < y->rows; i += ROWS) {
        int64_t rows = mrc_min(ROWS, y->rows - i);
        mercer_matrix out = mrc_rows(y, i, rows);
        MRC_TRY(mrc_half_precision_use(half, &half->x, i, rows));
        if (before > 0) MRC_TRY(add_centers(&self, rows, 0, before, (char *)cached->memory + i * width * 2, width));
        for (int64_t j = before; j < p; j += CENTERS)
            MRC_TRY(add_centers(&self, rows, j, mrc_min(CENTERS, p - j), self.values, self.ld));
        MRC_CUDA_TRY(backend, mrc_tile_store(stream, self.sums, PARTS, self.factors, out, add));
    }
    return MERCER_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products in half precision by tiles of 8192 rows and 16,384 centers: a matrix product of cuBLAS, the profile, another
 * matrix product (tiles.cu). For many columns of W, and for GPUs without the instructions of the fused kernel.
 *
 * Cost: 2 m p d + 4 m p c flops in half precision, and about 14 m p bytes. Scratch: Z as halves, 768 MB of tiles.
 */
#include "backends/cuda/half_precision/half_precision.h"

#include "backends/cuda/half_precision/fused.h"
#include "core/matrix.h"
#include "core/memory.h"

enum { ROWS = 8192, CENTERS = 16384, UNIT = 8 };

typedef struct tiles {
    mrc_half_precision *half;
    float *dots, *sums, *factors;
    void *values, *weights;
    int64_t c, ld; /* ld: of dots and values */
} tiles;

static mercer_status make(tiles *self, const mercer_matrix *w, int64_t rows)
{
    mrc_backend *backend = self->half->backend;
    int64_t p = self->half->pair->z->rows;
    self->ld = mrc_round_up(mrc_min(p, CENTERS), UNIT);
    self->c = w->cols;
    MRC_TRY(mrc_cuda_push(backend, &self->dots, rows * self->ld * 4));
    MRC_TRY(mrc_cuda_push(backend, &self->values, rows * self->ld * 2));
    MRC_TRY(mrc_cuda_push(backend, &self->weights, p * 2 * self->c * 2));
    MRC_TRY(mrc_cuda_push(backend, &self->sums, rows * 2 * self->c * 4));
    return mrc_cuda_push(backend, &self->factors, self->c * 4);
}

/* sums (rows, 2 c) += K(X_b, Z_b) W_b, or = for the first block of centers. */
static mercer_status add_centers(tiles *self, int64_t rows, int64_t first, int64_t cols)
{
    static const float one = 1, zero = 0;
    mrc_half_precision *half = self->half;
    mrc_backend *backend = half->backend;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    const char *z = (const char *)half->z.rows + first * half->ld * 2;
    const char *weights = (const char *)self->weights + first * 2 * self->c * 2;
    cublasStatus_t status = cuda->libraries.cublasGemmEx_64(
        cuda->blas, CUBLAS_OP_T, CUBLAS_OP_N, cols, rows, half->ld, &one, z, CUDA_R_16F, half->ld, half->x.rows,
        CUDA_R_16F, half->ld, &zero, self->dots, CUDA_R_32F, self->ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) {
        MRC_CUDA_TRY(backend, mrc_tile_profile(cuda->stream, half->pair->kernel, rows, cols, self->ld, self->dots,
                                               half->x.norms, (const float *)half->z.norms + first, self->values));
        status = cuda->libraries.cublasGemmEx_64(cuda->blas, CUBLAS_OP_N, CUBLAS_OP_N, 2 * self->c, rows, cols, &one,
                                                 weights, CUDA_R_16F, 2 * self->c, self->values, CUDA_R_16F, self->ld,
                                                 first > 0 ? &one : &zero, self->sums, CUDA_R_32F, 2 * self->c,
                                                 CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    }
    if (status == CUBLAS_STATUS_SUCCESS) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: a product in half precision returned %d",
                    (int)status);
}

mercer_status mrc_half_precision_tiles(mrc_half_precision *half, const mercer_matrix *w, const mercer_matrix *y,
                                       bool add)
{
    mrc_backend *backend = half->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    tiles self = {.half = half};
    int64_t p = half->pair->z->rows, block = mrc_min(y->rows, ROWS);
    MRC_TRY(mrc_half_precision_make(half, block));
    MRC_TRY(make(&self, w, block));
    MRC_CUDA_TRY(backend, mrc_tile_weights(stream, *w, self.factors, self.weights));
    for (int64_t i = 0; i < y->rows; i += ROWS) {
        int64_t rows = mrc_min(ROWS, y->rows - i);
        mercer_matrix out = mrc_rows(y, i, rows);
        MRC_TRY(mrc_half_precision_use(half, &half->x, i, rows));
        for (int64_t j = 0; j < p; j += CENTERS) MRC_TRY(add_centers(&self, rows, j, mrc_min(CENTERS, p - j)));
        MRC_CUDA_TRY(backend, mrc_tile_store(stream, self.sums, self.factors, out, add));
    }
    return MERCER_OK;
}

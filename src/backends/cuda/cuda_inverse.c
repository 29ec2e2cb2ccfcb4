/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inverses of batches of symmetric positive definite matrices of one size, by matrix products.
 *
 *   A = [ A_11 .    ]   M_11 = L_11^-1               upper half, recursively; up to 64 rows: triangular.cu
 *       [ A_21 A_22 ]   L_21 = A_21 M_11'            stored in the place of M_21
 *                       A_22 <- A_22 - L_21 L_21'
 *                       M_22 = L_22^-1               lower half, recursively
 *                       M_21 = -M_22 (L_21 M_11)
 *   A^-1 = M' M          lower triangle in strips of rows, each from M's first nonzero row on; then mirrored
 *
 * Cost: n^3 (4/3 + about 1/2) flops per matrix, nearly all of them in batched large products. potrf and triangular
 * solves need fewer flops but take several times as long. Scratch: a quarter of the size of the matrices.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

enum { STRIPS = 8 };

/* A block of the first matrix of the batch, row-major; the same block of the next matrix is `step` elements further. */
typedef struct place {
    double *at;
    int64_t ld, step;
} place;

typedef struct inverse_job {
    mrc_backend *backend;
    place a, m;
    double *scratch; /* scratch: a quarter of the size of the matrices */
    int64_t n, count;
    double *least; /* (count) on the device: smallest squared pivots */
} inverse_job;

/* Returns the block that begins at this row and column of `matrix`. The step from matrix to matrix of the batch stays
   the same. */
static place inside_blocks(place matrix, int64_t row, int64_t column)
{
    matrix.at += row * matrix.ld + column;
    return matrix;
}

/* C (rows, cols) = alpha op(A) op(B) + beta C for each matrix of the batch. */
typedef struct product {
    int64_t rows, cols, depth;
    double alpha, beta;
    place a, b, c;
    bool transpose_a, transpose_b;
} product;

static mercer_status multiply_blocks(const inverse_job *job, const product *p)
{
    mrc_cuda *cuda = mrc_cuda_of(job->backend);
    cublasStatus_t status = cuda->libraries.cublasGemmStridedBatchedEx_64(
        cuda->blas, p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, p->cols,
        p->rows, p->depth, &p->alpha, p->b.at, CUDA_R_64F, p->b.ld, p->b.step, p->a.at, CUDA_R_64F, p->a.ld, p->a.step,
        &p->beta, p->c.at, CUDA_R_64F, p->c.ld, p->c.step, job->count, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return MERCER_OK;
    return mrc_fail(job->backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: a product for inverses returned %d",
                    (int)status);
}

/* Returns the number of rows of the upper half: whole blocks of MRC_TRIANGULAR_BLOCK rows, one block more than the
   lower half if the number of blocks is odd; all rows if there is only one block. */
static int64_t upper_half(int64_t rows)
{
    int64_t blocks = (rows + MRC_TRIANGULAR_BLOCK - 1) / MRC_TRIANGULAR_BLOCK;
    return blocks > 1 ? (blocks + 1) / 2 * MRC_TRIANGULAR_BLOCK : rows;
}

/* Computes M of the diagonal block of rows first .. first + rows - 1. Each call halves the rows, so the recursion is
   about ten calls deep at most. */
static mercer_status factor_blocks(const inverse_job *job, int64_t first, int64_t rows)
{
    int64_t upper = upper_half(rows), lower = rows - upper, second = first + upper;
    place a = inside_blocks(job->a, first, first), m = inside_blocks(job->m, first, first);
    if (lower == 0) {
        MRC_CUDA_TRY(job->backend, mrc_launch_factor_block(mrc_cuda_of(job->backend)->stream, a.at, a.ld, a.step, m.at,
                                                           m.ld, m.step, (int)rows, job->count, job->least));
        return MERCER_OK;
    }
    place below = inside_blocks(job->m, second, first), scratch_at = {job->scratch, upper, upper * lower};
    MRC_TRY(factor_blocks(job, first, upper));
    product solve = {lower, upper, upper, 1, 0, inside_blocks(job->a, second, first), m, below, .transpose_b = true};
    MRC_TRY(multiply_blocks(job, &solve));
    product update = {
        lower, lower, upper, -1, 1, below, below, inside_blocks(job->a, second, second), .transpose_b = true};
    MRC_TRY(multiply_blocks(job, &update));
    MRC_TRY(factor_blocks(job, second, lower));
    product right = {lower, upper, upper, 1, 0, below, m, scratch_at, .transpose_a = false};
    MRC_TRY(multiply_blocks(job, &right));
    product left = {
        lower, upper, lower, -1, 0, inside_blocks(job->m, second, second), scratch_at, below, .transpose_a = false};
    return multiply_blocks(job, &left);
}

/* Writes the lower triangle of M' M to A. A strip of rows ends at its last diagonal entry, and its sums begin at its
   first row, because M is 0 above the diagonal. Entries of a strip to the right of the diagonal are written, too, and
   then replaced by the mirror. */
static mercer_status square_blocks(const inverse_job *job)
{
    int64_t height = (job->n + STRIPS - 1) / STRIPS;
    for (int64_t first = 0; first < job->n; first += height) {
        int64_t rows = mrc_min(height, job->n - first);
        product strip = {rows,
                         first + rows,
                         job->n - first,
                         1,
                         0,
                         inside_blocks(job->m, first, first),
                         inside_blocks(job->m, first, 0),
                         inside_blocks(job->a, first, 0),
                         .transpose_a = true};
        MRC_TRY(multiply_blocks(job, &strip));
    }
    return MERCER_OK;
}

/* M is cleared first: it must be 0 above the diagonal, and the products do not write these entries. The smallest pivots
   start at infinity on the device and are read only at the end, so the whole batch runs without waiting. */
mercer_status mrc_cuda_invert(mrc_backend *backend, const mercer_matrix *a, const mercer_matrix *scratch, double *least)
{
    mercer_matrix all, m;
    int64_t n = a->cols, count = n > 0 ? a->rows / n : 0, upper = upper_half(n);
    inverse_job job = {.backend = backend, .n = n, .count = count};
    if (count == 0) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_write(backend, a, true, &all));
    MRC_TRY(mrc_cuda_write(backend, scratch, false, &m));
    for (int64_t i = 0; i < count; i++) least[i] = INFINITY;
    MRC_TRY(mrc_cuda_upload(backend, &job.least, least, count * 8));
    MRC_TRY(mrc_cuda_push(backend, &job.scratch, (count * upper * (n - upper) + 1) * 8));
    MRC_TRY(mrc_cuda_clear(backend, &m));
    job.a = (place){all.data, all.ld, n * all.ld};
    job.m = (place){m.data, m.ld, n * m.ld};
    MRC_TRY(factor_blocks(&job, 0, n));
    MRC_TRY(square_blocks(&job));
    MRC_CUDA_TRY(backend, mrc_launch_mirror(mrc_cuda_of(backend)->stream, all));
    MRC_TRY(mrc_cuda_download(backend, least, job.least, count * 8));
    return mrc_cuda_write_back(backend, a, &all);
}

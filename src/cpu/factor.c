/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cholesky factor and triangular solves in blocks of 256, each block operation one single-threaded BLAS or LAPACK
 * call; the blocks of a step run in parallel. The order of operations on each block is fixed, so the bits do not
 * depend on the number of threads.
 *
 *   A = L L':  for k:  L_kk = chol(A_kk);  L_ik = A_ik L_kk^-T  (i > k);  A_ij -= L_ik L_jk'  (k < j <= i)  n^3/3 flops
 *   L X = B:   for k:  X_k = L_kk^-1 B_k;   B_i -= L_ik X_k      (i > k)                                    n^2 c flops
 *   L'X = B:   for k descending:  X_k = L_kk^-T B_k;   B_i -= L_ki' X_k  (i < k)
 */
#include "core/matrix.h"
#include "core/parallel.h"
#include "cpu/cpu.h"

#include <cblas.h>
#include <lapacke.h>
#include <limits.h>

enum { BLOCK = 256 };

static double *at(const mercer_matrix *a, int64_t i, int64_t j)
{
    return (double *)mrc_row(a, i) + j;
}

static int block_size(int64_t n, int64_t block)
{
    return (int)mrc_min(BLOCK, n - block * BLOCK);
}

/* ---- Cholesky ------------------------------------------------------------------------------------------------ */

typedef struct factor_step {
    const mercer_matrix *a;
    int64_t k; /* the block column that is done */
} factor_step;

/* L_ik = A_ik L_kk^-T */
static void solve_panel(void *argument, int64_t index, int worker)
{
    (void)worker;
    factor_step *self = argument;
    const mercer_matrix *a = self->a;
    int64_t k = self->k, i = k + 1 + index;
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, block_size(a->rows, i), BLOCK, 1,
                at(a, k * BLOCK, k * BLOCK), (int)a->ld, at(a, i * BLOCK, k * BLOCK), (int)a->ld);
}

/* A_ij -= L_ik L_jk' for one i and all j with k < j <= i. */
static void update_row(void *argument, int64_t index, int worker)
{
    (void)worker;
    factor_step *self = argument;
    const mercer_matrix *a = self->a;
    int64_t k = self->k, blocks = (a->rows + BLOCK - 1) / BLOCK, i = blocks - 1 - index; /* longest rows first */
    const double *left = at(a, i * BLOCK, k * BLOCK);
    for (int64_t j = k + 1; j <= i; j++)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, block_size(a->rows, i), block_size(a->rows, j), BLOCK, -1,
                    left, (int)a->ld, at(a, j * BLOCK, k * BLOCK), (int)a->ld, 1, at(a, i * BLOCK, j * BLOCK),
                    (int)a->ld);
}

static mercer_status factor_diagonal(mrc_backend *backend, const mercer_matrix *a, int64_t k)
{
    /* The lower triangle by rows is the upper triangle by columns. */
    lapack_int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', block_size(a->rows, k), at(a, k * BLOCK, k * BLOCK),
                                          (lapack_int)a->ld);
    if (info < 0)
        return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "Cholesky: LAPACK dpotrf returned %d", (int)info);
    /* Not every LAPACK notices a NaN: the first pivot that is not a positive number tells, whatever info says. */
    int64_t end = info > 0 ? info - 1 : block_size(a->rows, k), row = 0;
    while (row<end && * at(a, k * BLOCK + row, k * BLOCK + row)> 0) row++;
    if (info == 0 && row == end) return MERCER_OK;
    row += k * BLOCK;
    return mrc_fail(backend->context, MERCER_ERROR_NUMERIC, "Cholesky: the matrix is not positive definite at row %lld",
                    (long long)row);
}

static mercer_status factor_blocks(mrc_backend *backend, const mercer_matrix *a)
{
    int64_t blocks = (a->rows + BLOCK - 1) / BLOCK;
    for (int64_t k = 0; k < blocks; k++) {
        MRC_TRY(factor_diagonal(backend, a, k));
        factor_step step = {a, k};
        mrc_parallel_for(backend->context->threads, blocks - 1 - k, solve_panel, &step);
        mrc_parallel_for(backend->context->threads, blocks - 1 - k, update_row, &step);
    }
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = i + 1; j < a->cols; j++) *at(a, i, j) = 0;
    return MERCER_OK;
}

mercer_status mrc_cpu_cholesky(mrc_backend *backend, const mercer_matrix *a)
{
    if (a->ld > INT_MAX || a->rows > INT_MAX)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                        "Cholesky: %lld rows are beyond the 32-bit sizes of LAPACK", (long long)a->rows);
    mrc_blas_begin();
    mercer_status status = factor_blocks(backend, a);
    mrc_blas_end();
    return status;
}

/* ---- Triangular solves --------------------------------------------------------------------------------------- */

typedef struct solve_step {
    const mercer_matrix *l, *b;
    int64_t k;
    bool transpose;
} solve_step;

/* Takes the part of the solved block k out of another block of B. */
static void update_block(void *argument, int64_t index, int worker)
{
    (void)worker;
    solve_step *self = argument;
    const mercer_matrix *l = self->l, *b = self->b;
    int64_t k = self->k, i = self->transpose ? index : k + 1 + index;
    const double *factor = self->transpose ? at(l, k * BLOCK, i * BLOCK) : at(l, i * BLOCK, k * BLOCK);
    cblas_dgemm(CblasRowMajor, self->transpose ? CblasTrans : CblasNoTrans, CblasNoTrans, block_size(l->rows, i),
                (int)b->cols, block_size(l->rows, k), -1, factor, (int)l->ld, at(b, k * BLOCK, 0), (int)b->ld, 1,
                at(b, i * BLOCK, 0), (int)b->ld);
}

mercer_status mrc_cpu_triangular_solve(mrc_backend *backend, const mercer_matrix *l, bool transpose,
                                       const mercer_matrix *b)
{
    if (l->ld > INT_MAX || l->rows > INT_MAX || b->ld > INT_MAX)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                        "triangular solve: sizes are beyond the 32-bit ones of BLAS");
    if (b->cols == 0) return MERCER_OK;
    int64_t blocks = (l->rows + BLOCK - 1) / BLOCK;
    mrc_blas_begin();
    for (int64_t step = 0; step < blocks; step++) {
        int64_t k = transpose ? blocks - 1 - step : step;
        cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, transpose ? CblasTrans : CblasNoTrans, CblasNonUnit,
                    block_size(l->rows, k), (int)b->cols, 1, at(l, k * BLOCK, k * BLOCK), (int)l->ld,
                    at(b, k * BLOCK, 0), (int)b->ld);
        solve_step self = {l, b, k, transpose};
        mrc_parallel_for(backend->context->threads, transpose ? k : blocks - 1 - k, update_block, &self);
    }
    mrc_blas_end();
    return MERCER_OK;
}

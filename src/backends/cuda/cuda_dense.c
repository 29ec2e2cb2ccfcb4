/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dense linear algebra on cuBLAS and cuSOLVER.
 *
 *   gemm              C = alpha op(A) op(B) + beta C, plain f32 (no TF32) or f64                2 m n k flops
 *   dots              A B' of packed rows: f32, f64, or signed bytes with exact 32-bit sums     2 m n k
 *   cholesky          dpotrf                                                                    n^3/3
 *   triangular_solve  dtrsm                                                                     n^2 c
 *   eigen_top         dsyevdx, the q largest eigenvalues                                        4/3 n^3 + O(n^2 q)
 *
 * cuBLAS and cuSOLVER read a row-major matrix as its transpose: C' = op(B)' op(A)', and the row-major lower triangle is
 * the column-major upper triangle.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <limits.h>
#include <math.h>

static mercer_status check_blas(mrc_backend *backend, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: %s returned %d", what, (int)status);
}

static mercer_status check_solver(mrc_backend *backend, cusolverStatus_t status, const char *what)
{
    if (status == CUSOLVER_STATUS_SUCCESS) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "cuSOLVER: %s returned %d", what, (int)status);
}

/* cuSOLVER takes sizes as int; larger sizes must not be truncated. */
static mercer_status check_int_size(mrc_backend *backend, const mercer_matrix *a)
{
    if (a->rows <= INT_MAX && a->ld <= INT_MAX) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                    "a dense matrix of %lld x %lld exceeds the 32-bit sizes of cuSOLVER", (long long)a->rows,
                    (long long)a->cols);
}

/* ---- Products ------------------------------------------------------------------------------------------------ */

/* C' = op(B)' op(A)' in column-major order, so the operands are exchanged. If the depth is 0, the product is 0, and C
   is only scaled. */
mercer_status mrc_cuda_gemm(mrc_backend *backend, const mrc_gemm *job)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mercer_matrix a, b, c;
    int64_t depth = job->transpose_a ? job->a->rows : job->a->cols;
    if (job->c->rows == 0 || job->c->cols == 0) return MERCER_OK;
    if (depth == 0 && job->beta == 0) return mrc_cuda_clear(backend, job->c);
    if (depth == 0) return mrc_cuda_axpby(backend, job->beta, job->c, 0, job->c);
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, job->a, &a));
    MRC_TRY(mrc_cuda_read(backend, job->b, &b));
    MRC_TRY(mrc_cuda_write(backend, job->c, job->beta != 0, &c));
    bool wide = c.dtype == MERCER_F64;
    cudaDataType_t type = wide ? CUDA_R_64F : CUDA_R_32F;
    float alpha32 = (float)job->alpha, beta32 = (float)job->beta;
    const void *alpha = wide ? (const void *)&job->alpha : &alpha32, *beta = wide ? (const void *)&job->beta : &beta32;
    MRC_TRY(check_blas(backend,
                       cuda->libraries.cublasGemmEx_64(
                           cuda->blas, job->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                           job->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, c.cols, c.rows, depth, alpha, b.data, type,
                           mrc_max(b.ld, 1), a.data, type, mrc_max(a.ld, 1), beta, c.data, type, c.ld,
                           wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                       "gemm"));
    return mrc_cuda_write_back(backend, job->c, &c);
}

/* dots = high low' + low high' + high high', the small terms first: three half-precision products with float sums. */
static mercer_status split_dots(mrc_backend *backend, int64_t rows, int64_t cols, int64_t width, const void *a,
                                const void *b, void *dots, int64_t ld)
{
    static const float one = 1, zero = 0;
    static const int parts[3][2] = {{0, 1}, {1, 0}, {0, 0}}; /* 0: high part, 1: low part */
    mrc_cuda *cuda = mrc_cuda_of(backend);
    for (int i = 0; i < 3; i++) {
        const char *left = (const char *)a + parts[i][0] * width * 2,
                   *right = (const char *)b + parts[i][1] * width * 2;
        MRC_TRY(check_blas(backend,
                           cuda->libraries.cublasGemmEx_64(cuda->blas, CUBLAS_OP_T, CUBLAS_OP_N, cols, rows, width,
                                                           &one, right, CUDA_R_16F, 2 * width, left, CUDA_R_16F,
                                                           2 * width, i > 0 ? &one : &zero, dots, CUDA_R_32F, ld,
                                                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                           "a product of points"));
    }
    return MERCER_OK;
}

/* A and B are row-major, so A is the transposed operand for column-major cuBLAS. The three rows of the table are
   indexed by mrc_cuda_arithmetic. */
mercer_status mrc_cuda_dots(mrc_backend *backend, mrc_cuda_arithmetic arithmetic, int64_t rows, int64_t cols,
                            int64_t width, const void *a, const void *b, void *dots, int64_t ld)
{
    static const float one32 = 1, zero32 = 0;
    static const double one64 = 1, zero64 = 0;
    static const int32_t one = 1, zero = 0;
    static const struct {
        cudaDataType_t in, out;
        cublasComputeType_t compute;
        const void *alpha, *beta;
    } how[] = {{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, &one32, &zero32},
               {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, &one64, &zero64},
               {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, &one, &zero}};
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (mrc_splits(arithmetic, width)) return split_dots(backend, rows, cols, width, a, b, dots, ld);
    return check_blas(backend,
                      cuda->libraries.cublasGemmEx_64(
                          cuda->blas, CUBLAS_OP_T, CUBLAS_OP_N, cols, rows, width, how[arithmetic].alpha, b,
                          how[arithmetic].in, width, a, how[arithmetic].in, width, how[arithmetic].beta, dots,
                          how[arithmetic].out, ld, how[arithmetic].compute, CUBLAS_GEMM_DEFAULT),
                      "a product of points");
}

/* ---- Cholesky ------------------------------------------------------------------------------------------------ */

/* Sets *bad to the first pivot that is not positive and finite; -1: none. potrf may miss a NaN. */
static mercer_status find_bad_pivot(mrc_backend *backend, const mercer_matrix *a, int info, int64_t *bad)
{
    double *pivots;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &pivots, a->rows, sizeof *pivots, "pivots"));
    mercer_matrix diagonal = *a, host = mrc_view(pivots, a->rows, 1, MERCER_F64);
    diagonal.cols = 1, diagonal.ld = a->ld + 1;
    MRC_TRY(mrc_cuda_copy(backend, &host, &diagonal));
    *bad = info > 0 ? info - 1 : -1;
    for (int64_t i = a->rows - 1; i >= 0 && info == 0; i--)
        if (!(pivots[i] > 0) || isinf(pivots[i])) *bad = i;
    return MERCER_OK;
}

/* A matrix in host memory is not copied back if a pivot is bad, because its contents are undefined then. The status of
   potrf is read from the device, which waits for the factorization. */
mercer_status mrc_cuda_cholesky(mrc_backend *backend, const mercer_matrix *a, int64_t *bad)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mercer_matrix l;
    void *work, *info;
    int size = 0, failed = 0;
    *bad = -1;
    if (a->rows == 0) return MERCER_OK;
    MRC_TRY(check_int_size(backend, a));
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_write(backend, a, true, &l));
    MRC_TRY(check_solver(backend,
                         cuda->libraries.cusolverDnDpotrf_bufferSize(cuda->solver, CUBLAS_FILL_MODE_UPPER, (int)l.rows,
                                                                     l.data, (int)l.ld, &size),
                         "potrf"));
    MRC_TRY(mrc_cuda_push(backend, &work, (int64_t)size * 8));
    MRC_TRY(mrc_cuda_push(backend, &info, sizeof(int)));
    MRC_TRY(check_solver(backend,
                         cuda->libraries.cusolverDnDpotrf(cuda->solver, CUBLAS_FILL_MODE_UPPER, (int)l.rows, l.data,
                                                          (int)l.ld, work, size, info),
                         "potrf"));
    MRC_TRY(mrc_cuda_download(backend, &failed, info, sizeof failed));
    MRC_CUDA_TRY(backend, mrc_launch_clear_upper(cuda->stream, l));
    MRC_TRY(find_bad_pivot(backend, &l, failed, bad));
    if (*bad >= 0) return MERCER_OK;
    return mrc_cuda_write_back(backend, a, &l);
}

mercer_status mrc_cuda_triangular_solve(mrc_backend *backend, const mercer_matrix *l, bool transpose,
                                        const mercer_matrix *b)
{
    static const double one = 1;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mercer_matrix factor, right;
    if (b->rows == 0 || b->cols == 0) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, l, &factor));
    MRC_TRY(mrc_cuda_write(backend, b, true, &right));
    /* L X = B is X' L' = B': for cuBLAS the unknown is to the left of an upper triangular matrix. */
    MRC_TRY(check_blas(backend,
                       cuda->libraries.cublasDtrsm_v2_64(cuda->blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER,
                                                         transpose ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                                                         right.cols, right.rows, &one, factor.data, factor.ld,
                                                         right.data, right.ld),
                       "trsm"));
    return mrc_cuda_write_back(backend, b, &right);
}

/* ---- Eigenvalues --------------------------------------------------------------------------------------------- */

/* Works on a contiguous copy of A, which syevdx overwrites with the eigenvectors as contiguous rows. A kernel
   transposes the eigenvectors, sorts them in descending order and applies the sign rule. */
mercer_status mrc_cuda_eigen_top(mrc_backend *backend, const mercer_matrix *a, int64_t pairs, double *values,
                                 const mercer_matrix *vectors)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mercer_matrix matrix, out;
    void *all, *work, *info;
    int n = (int)a->rows, q = (int)pairs, size = 0, found = 0, failed = 0;
    if (q == 0) return MERCER_OK;
    MRC_TRY(check_int_size(backend, a));
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_scratch(backend, &matrix, n, n, MERCER_F64));
    MRC_TRY(mrc_cuda_copy(backend, &matrix, a));
    MRC_TRY(mrc_cuda_push(backend, &all, (int64_t)n * 8));
    MRC_TRY(check_solver(backend,
                         cuda->libraries.cusolverDnDsyevdx_bufferSize(
                             cuda->solver, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I, CUBLAS_FILL_MODE_UPPER, n,
                             matrix.data, n, 0, 0, n - q + 1, n, &found, all, &size),
                         "syevdx"));
    MRC_TRY(mrc_cuda_push(backend, &work, (int64_t)size * 8));
    MRC_TRY(mrc_cuda_push(backend, &info, sizeof(int)));
    MRC_TRY(check_solver(backend,
                         cuda->libraries.cusolverDnDsyevdx(cuda->solver, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I,
                                                           CUBLAS_FILL_MODE_UPPER, n, matrix.data, n, 0, 0, n - q + 1,
                                                           n, &found, all, work, size, info),
                         "syevdx"));
    MRC_TRY(mrc_cuda_download(backend, &failed, info, sizeof failed));
    if (failed != 0 || found < q)
        return mrc_fail(backend->context, MERCER_ERROR_NUMERIC, "eigenvalues: cuSOLVER syevdx returned %d", failed);
    MRC_TRY(mrc_cuda_download(backend, values, all, (int64_t)q * 8));
    for (int i = 0; i < q / 2; i++) { /* cuSOLVER's ascending order to descending */
        double value = values[i];
        values[i] = values[q - 1 - i], values[q - 1 - i] = value;
    }
    MRC_TRY(mrc_cuda_write(backend, vectors, false, &out));
    MRC_CUDA_TRY(backend, mrc_launch_order_vectors(cuda->stream, out, matrix.data));
    return mrc_cuda_write_back(backend, vectors, &out);
}

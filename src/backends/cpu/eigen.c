/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eigenvectors by LAPACK's dsyevr: tridiagonal reduction, then the q largest eigenpairs by MRRR. 4/3 n^3 + O(n^2 q)
 * flops. LAPACK reads a row-major matrix as its transpose, so symmetric matrices need no conversion.
 */
#include "backends/cpu/cpu.h"
#include "core/matrix.h"

#include <lapacke.h>
#include <limits.h>

/* Check that the sizes fit the 32-bit integers of BLAS: truncated sizes would give wrong results. */
static mercer_status check_blas_size(mercer_context *context, const mercer_matrix *a)
{
    if (a->rows <= INT_MAX && a->cols <= INT_MAX && a->ld <= INT_MAX) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_UNSUPPORTED, "a dense matrix of %lld x %lld exceeds the 32-bit sizes of BLAS",
                    (long long)a->rows, (long long)a->cols);
}

typedef struct eigen_job {
    lapack_int n, q, lda;
    /* a is the caller's matrix, which LAPACK destroys. columns are the eigenvectors; support, their nonzero ranges, is
       required by dsyevr but not used. */
    double *a, *all_values, *columns, *work; /* (n, lda), (n), (q, n), (lwork) */
    lapack_int *support, *iwork;             /* (2 q), (liwork) */
    lapack_int lwork, liwork;
} eigen_job;

/* Call dsyevr for eigenpairs n - q + 1 .. n in ascending order, with its default tolerance (0). lwork = liwork = -1:
   store the sizes of the workspace in *work and *iwork instead. */
static lapack_int call_dsyevr(const eigen_job *job, lapack_int lwork, lapack_int liwork, double *work,
                              lapack_int *iwork)
{
    lapack_int found;
    return LAPACKE_dsyevr_work(LAPACK_COL_MAJOR, 'V', 'I', 'U', job->n, job->a, job->lda, 0, 0, job->n - job->q + 1,
                               job->n, 0, &found, job->all_values, job->columns, job->n, job->support, work, lwork,
                               iwork, liwork);
}

/* Compute the eigenpairs, which LAPACK returns in ascending order, and store them in descending order. */
static mercer_status find_eigenpairs(mrc_backend *backend, eigen_job *job, double *values, const mercer_matrix *vectors)
{
    lapack_int info = call_dsyevr(job, job->lwork, job->liwork, job->work, job->iwork);
    if (info != 0)
        return mrc_fail(backend->context, MERCER_ERROR_NUMERIC, "eigenvalues: LAPACK dsyevr returned %d", (int)info);
    for (int64_t j = 0; j < job->q; j++) { /* ascending to descending */
        const double *column = job->columns + (job->q - 1 - j) * (int64_t)job->n;
        values[j] = job->all_values[job->q - 1 - j];
        for (int64_t i = 0; i < job->n; i++) ((double *)mrc_row(vectors, i))[j] = column[i];
    }
    mrc_fix_signs(vectors);
    return MERCER_OK;
}

mercer_status mrc_cpu_eigen_top(mrc_backend *backend, const mercer_matrix *a, int64_t q, double *values,
                                const mercer_matrix *vectors)
{
    MRC_TRY(check_blas_size(backend->context, a));
    if (q == 0) return MERCER_OK;
    eigen_job job = {.n = (lapack_int)a->rows, .q = (lapack_int)q, .lda = (lapack_int)a->ld, .a = a->data};
    double lwork;
    call_dsyevr(&job, -1, -1, &lwork, &job.liwork); /* workspace query */
    job.lwork = (lapack_int)lwork;
    int64_t doubles = job.n + q * job.n + job.lwork, integers = 2 * q + job.liwork;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &job.all_values, doubles, sizeof(double), "eigenvectors"));
    MRC_TRY(mrc_scope_alloc(&scope, &job.support, integers, sizeof(lapack_int), "eigenvalue indices"));
    job.columns = job.all_values + job.n;
    job.work = job.columns + q * job.n;
    job.iwork = job.support + 2 * q;
    MRC_TRY(mrc_blas_begin(backend->context));
    mercer_status status = find_eigenpairs(backend, &job, values, vectors);
    mrc_blas_end();
    return status;
}

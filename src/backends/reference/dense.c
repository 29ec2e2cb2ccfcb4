/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Textbook dense linear algebra in double, the default of every backend.
 *
 *   eigen_top         cyclic Jacobi: rotations J with A <- J' A J, V <- V J until off(A) <= eps |A|, where off(A) is
 *                     the Frobenius norm of the off-diagonal part. Cost about 10 n^3 per sweep, 6 to 10 sweeps.
 *   cholesky          A = L L', row by row. Cost n^3 / 3.
 *   triangular_solve  forward or backward substitution. Cost n^2 c.
 *   gemm              three loops, inner products in double. Cost 2 m n k.
 */
#include "backends/reference/dense.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <float.h>
#include <math.h>

/* Maximum number of sweeps, far above the usual 6 to 10; a matrix that needs more is an error. */
enum { JACOBI_SWEEPS = 60 };

static double *row_f64(const mercer_matrix *a, int64_t i)
{
    return mrc_row(a, i);
}

void mrc_fix_signs(const mercer_matrix *vectors)
{
    for (int64_t j = 0; j < vectors->cols; j++) {
        double top = 0;
        for (int64_t i = 0; i < vectors->rows; i++)
            if (fabs(row_f64(vectors, i)[j]) > fabs(top)) top = row_f64(vectors, i)[j];
        if (top >= 0) continue;
        for (int64_t i = 0; i < vectors->rows; i++) row_f64(vectors, i)[j] = -row_f64(vectors, i)[j];
    }
}

/* Set A[i][j] to 0 by a rotation of rows and columns i and j, and apply the rotation to rows i and j of V' (n, n). */
static void rotate(const mercer_matrix *a, double *vt, int64_t i, int64_t j)
{
    int64_t n = a->rows;
    double *ai = row_f64(a, i), *aj = row_f64(a, j);
    if (ai[j] == 0) return;
    double theta = (aj[j] - ai[i]) / (2 * ai[j]);
    /* Two rotations set A[i][j] to 0; t is the tangent of the smaller angle, at most 45 degrees. If theta^2 overflows,
       t is 0: A[i][j] is then negligible next to the difference of the diagonal entries. */
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(1 + theta * theta));
    double c = 1 / sqrt(1 + t * t), s = t * c;
    for (int64_t k = 0; k < n; k++) { /* columns */
        double *ak = row_f64(a, k);
        double x = ak[i], y = ak[j];
        ak[i] = c * x - s * y;
        ak[j] = s * x + c * y;
    }
    for (int64_t k = 0; k < n; k++) { /* rows */
        double x = ai[k], y = aj[k];
        ai[k] = c * x - s * y;
        aj[k] = s * x + c * y;
        x = vt[i * n + k], y = vt[j * n + k];
        vt[i * n + k] = c * x - s * y;
        vt[j * n + k] = s * x + c * y;
    }
    ai[j] = aj[i] = 0;
}

static double largest_entry(const mercer_matrix *a)
{
    double top = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->rows; j++) top = fmax(top, fabs(row_f64(a, i)[j]));
    return top;
}

/* Entries are divided by the largest one, so that their squares neither overflow nor all underflow. */
static bool nearly_diagonal(const mercer_matrix *a)
{
    double off = 0, all = 0, top = largest_entry(a), unit = top > 0 ? 1 / top : 0;
    for (int64_t i = 0; i < a->rows; i++) {
        for (int64_t j = 0; j < a->rows; j++) {
            double value = row_f64(a, i)[j] * unit;
            all += value * value;
            if (i != j) off += value * value;
        }
    }
    return off <= DBL_EPSILON * DBL_EPSILON * all;
}

/* Rows of vt are the eigenvectors. The vectors found so far are stored even if the sweeps do not converge, but the call
   then fails with MERCER_ERROR_NUMERIC. */
mercer_status mrc_default_eigen_top(mrc_backend *backend, const mercer_matrix *a, int64_t q, double *values,
                                    const mercer_matrix *vectors)
{
    int64_t n = a->rows;
    double *vt;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &vt, n * n, sizeof *vt, "eigenvectors"));
    for (int64_t i = 0; i < n; i++) vt[i * n + i] = 1;
    int sweep = 0;
    for (; sweep < JACOBI_SWEEPS && !nearly_diagonal(a); sweep++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) rotate(a, vt, i, j);
    for (int64_t top = 0; top < q; top++) { /* selection: q is small */
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!isnan(row_f64(a, i)[i]) && (best < 0 || row_f64(a, i)[i] > row_f64(a, best)[best])) best = i;
        if (best < 0) break;
        values[top] = row_f64(a, best)[best];
        row_f64(a, best)[best] = NAN; /* marked as used */
        for (int64_t k = 0; k < n; k++) row_f64(vectors, k)[top] = vt[best * n + k];
    }
    mrc_fix_signs(vectors);
    if (sweep < JACOBI_SWEEPS) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_NUMERIC, "eigenvalues: no convergence in %d sweeps",
                    (int)JACOBI_SWEEPS);
}

/* Row i needs only the rows before it. `sum > 0` is false for NaN, so a NaN in A ends the factorization as well. */
mercer_status mrc_default_cholesky(mrc_backend *backend, const mercer_matrix *a, int64_t *bad)
{
    (void)backend;
    *bad = -1;
    for (int64_t i = 0; i < a->rows; i++) {
        double *ai = row_f64(a, i);
        for (int64_t j = 0; j <= i; j++) {
            const double *aj = row_f64(a, j);
            double sum = ai[j];
            for (int64_t k = 0; k < j; k++) sum -= ai[k] * aj[k];
            if (i != j)
                ai[j] = sum / aj[j];
            else if (sum > 0)
                ai[j] = sqrt(sum);
            else
                *bad = i;
            if (*bad >= 0) return MERCER_OK;
        }
        for (int64_t j = i + 1; j < a->cols; j++) ai[j] = 0;
    }
    return MERCER_OK;
}

/* Each step computes one row of X from the rows already computed: from the first row down for L, from the last row up
   for L'. L' is read from the columns of L. */
mercer_status mrc_default_triangular_solve(mrc_backend *backend, const mercer_matrix *l, bool transpose,
                                           const mercer_matrix *b)
{
    (void)backend;
    int64_t n = l->rows;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = transpose ? n - 1 - step : step;
        double *bi = row_f64(b, i);
        for (int64_t done = 0; done < step; done++) {
            int64_t k = transpose ? n - 1 - done : done;
            double factor = transpose ? row_f64(l, k)[i] : row_f64(l, i)[k];
            const double *bk = row_f64(b, k);
            for (int64_t j = 0; j < b->cols; j++) bi[j] -= factor * bk[j];
        }
        for (int64_t j = 0; j < b->cols; j++) bi[j] /= row_f64(l, i)[i];
    }
    return MERCER_OK;
}

mercer_status mrc_default_gemm(mrc_backend *backend, const mrc_gemm *job)
{
    (void)backend;
    const mercer_matrix *a = job->a, *b = job->b, *c = job->c;
    int64_t depth = job->transpose_a ? a->rows : a->cols;
    for (int64_t i = 0; i < c->rows; i++) {
        for (int64_t j = 0; j < c->cols; j++) {
            double sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum += (job->transpose_a ? mrc_load(a, k, i) : mrc_load(a, i, k)) *
                       (job->transpose_b ? mrc_load(b, j, k) : mrc_load(b, k, j));
            mrc_store(c, i, j, job->alpha * sum + (job->beta != 0 ? job->beta * mrc_load(c, i, j) : 0));
        }
    }
    return MERCER_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Top eigenpairs of K(S,S)/s, the tail, beta and the step rule.
 *
 *   K(S,S)/s E = E Lambda,  t = lambda_{q+1},  D = diag((1 - t/lambda_i) / lambda_i) / s           (s, q), (q)
 *   phi(x) = E' K(S, x)  (= s lambda_i e_i(x), the Nystrom extension)                               (q)
 *   beta   = max_x K(x,x) - sum_i D_i phi_i(x)^2       the diagonal of the preconditioned kernel
 *   m*     = beta / t
 *   eta/m  = gamma 2 / (beta + (m - 1) t + m ridge)
 *
 * K(S,S) is formed in double. LAPACK computes the eigenpairs of small samples. A block method (eigen_block.c) is used
 * for large samples; on a device it stops at rough pairs. Cost: s^2 d for K, then about 4/3 s^3, or some tens of
 * products of 2 s^2 q each.
 *
 * Caveats: products with K have rounding errors of about u lambda_1, which a step of size 1/(m t) amplifies. So pairs
 * below noise_level lambda_1 are not used (the first unused eigenvalue becomes the tail), and the tail is at least
 * tail_floor lambda_1: a tiny or negative tail would also make the critical batch huge or negative. On the sample
 * itself beta is biased low, so it must be measured on other rows.
 */
#include "solvers/iteration/eigensystem.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* LAPACK_LARGEST: largest sample for LAPACK. SMALL_Q_SHARE: q is small compared with s if s / q is above this number.
   See use_block_method. */
enum { LAPACK_LARGEST = 5000, SMALL_Q_SHARE = 8 };

/* Factor of beta, because the maximum of the diagonal over up to 2000 fresh rows is below the maximum over the
   distribution. If beta is too small, steps are too long, which the watchdog detects. If beta is too large, steps are
   only 5 % shorter. */
#define BETA_MARGIN     1.05
#define PRINTED_SHARE   0.99 /* factor of the step of MRC_STEP_PRINTED for batches above the critical batch */
#define CHECK_TOLERANCE 1e-3 /* largest valid residual of a pair, relative to lambda_1 */
#define ROUGH_TOLERANCE 0.05 /* largest valid residual of a rough pair, relative to lambda_1 */

double mrc_noise_level(mercer_dtype real)
{
    return real == MERCER_F32 ? 1e-6 : 1e-12;
}

/* Returns the smallest tail, relative to lambda_1: about a hundred times the unit roundoff. */
static double tail_floor(mercer_dtype real)
{
    return real == MERCER_F32 ? 1e-5 : 1e-9;
}

/* ---- Eigenpairs ---------------------------------------------------------------------------------------------- */

/* Return whether to use the block method. LAPACK reduces the whole matrix; the block method is faster for a small share
   of the eigenpairs of a large matrix. */
static bool use_block_method(int64_t s, int64_t q)
{
    return s > LAPACK_LARGEST || (s > 2000 && q < s / SMALL_Q_SHARE);
}

/* Return whether rough pairs are used: on devices, where exact pairs would take most of the time of set-up. */
static bool is_rough(const mrc_centers *centers)
{
    return mrc_backend_memory(centers->backend) != MRC_HOST;
}

int64_t mrc_eigensystem_largest(int64_t s, int64_t q)
{
    return use_block_method(s, q) ? mrc_eigen_block_basis(s, q + 1) : s;
}

int64_t mrc_eigensystem_scratch_bytes(int64_t s, int64_t q)
{
    int64_t pairs = q + 1, work = use_block_method(s, q) ? mrc_eigen_block_bytes(s, pairs) : 8 * (s * (pairs + 40));
    return 8 * s * s + 8 * s * pairs * 2 + work;
}

/* Compute the largest |k v_i - lambda_i v_i| / lambda_1 over the given pairs, where k (s, s) is K(S,S)/s. */
static mercer_status check_pairs(mrc_centers *centers, const mercer_matrix *k, const mercer_matrix *vectors,
                                 const double *values, double *residual)
{
    mrc_backend *backend = centers->backend;
    mercer_matrix product, scaled;
    double *squares;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &squares, vectors->cols, sizeof *squares, "eigenvector check"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &product, vectors->rows, vectors->cols, MERCER_F64, "eigenvector check"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &scaled, vectors->rows, vectors->cols, MERCER_F64, "eigenvector check"));
    MRC_TRY(mrc_counted_gemm(centers, false, false, 1, k, vectors, 0, &product));
    MRC_TRY(backend->ops->copy(backend, &scaled, vectors));
    MRC_TRY(backend->ops->scale_columns(backend, &scaled, values));
    MRC_TRY(backend->ops->axpby(backend, -1, &scaled, 1, &product));
    MRC_TRY(backend->ops->column_dots(backend, &product, &product, squares));
    *residual = 0;
    for (int64_t j = 0; j < vectors->cols; j++)
        *residual = fmax(*residual, sqrt(squares[j]) / fmax(values[0], DBL_MIN));
    return MERCER_OK;
}

/* Compute K(S,S)/s in f64. */
static mercer_status sample_matrix(mrc_centers *centers, const mercer_matrix *sample, const mercer_matrix *k)
{
    MRC_TRY(mrc_points_eval(centers, sample, sample, k));
    return centers->backend->ops->axpby(centers->backend, 1 / (double)sample->rows, k, 0, k);
}

/* Computes the first pairs of K(S,S)/s by the faster method, and their residual. Overwrites k. */
static mercer_status find_pairs(mrc_centers *centers, const mercer_matrix *sample, const mercer_matrix *k,
                                double *values, const mercer_matrix *vectors, uint64_t seed, double *residual)
{
    int64_t s = sample->rows;
    mrc_centers_notify(centers, "kernel matrix of a sample", -1);
    MRC_TRY(sample_matrix(centers, sample, k));
    mrc_centers_notify(centers, "eigensystem", -1);
    if (use_block_method(s, vectors->cols - 1)) {
        MRC_TRY(mrc_eigen_block(centers, k, values, vectors, seed, is_rough(centers), residual));
        if (is_rough(centers)) return MERCER_OK;
        return check_pairs(centers, k, vectors, values, residual);
    }
    MRC_TRY(centers->backend->ops->eigen_top(centers->backend, k, vectors->cols, values, vectors));
    centers->flops += 4.0 / 3 * (double)s * (double)s * (double)s;
    *residual = 0; /* LAPACK has overwritten K; its residuals are of the size of rounding errors, which tests verify */
    return MERCER_OK;
}

/* Stores the pairs above the noise level, and computes tail and D. */
static mercer_status fill_eigensystem(mrc_eigensystem *out, mrc_centers *centers, const mercer_matrix *vectors,
                                      const double *values)
{
    int64_t s = out->s;
    while (out->q > 0 && !(values[out->q - 1] > mrc_noise_level(centers->real) * values[0])) out->q--;
    out->tail = fmax(values[out->q], tail_floor(centers->real) * values[0]);
    MRC_TRY(mrc_matrix_create(centers->backend, &out->vectors, s, out->q, centers->real, "eigenvectors"));
    mercer_matrix first = mrc_columns(vectors, 0, out->q);
    MRC_TRY(centers->backend->ops->copy(centers->backend, &out->vectors, &first));
    for (int64_t i = 0; i < out->q; i++) {
        out->lambda[i] = values[i];
        out->d[i] = fmax(0, 1 - out->tail / values[i]) / values[i] / (double)s;
    }
    return MERCER_OK;
}

static mercer_status build_eigensystem(mrc_eigensystem *out, mrc_centers *centers, const mercer_matrix *sample,
                                       uint64_t seed)
{
    mrc_backend *backend = centers->backend;
    int64_t s = sample->rows, pairs = out->q + 1;
    mercer_matrix k, vectors;
    double *values;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_alloc(centers->context, &out->lambda, 2 * out->q, sizeof *out->lambda, "eigenvalues"));
    out->d = out->lambda + out->q;
    MRC_TRY(mrc_scope_alloc(&scope, &values, pairs, sizeof *values, "eigenvalues"));
    MRC_TRY(mrc_matrix_create(backend, &out->points, s, sample->cols, sample->dtype, "the preconditioner's sample"));
    MRC_TRY(backend->ops->copy(backend, &out->points, sample));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &k, s, s, MERCER_F64, "the sample's kernel matrix"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &vectors, s, pairs, MERCER_F64, "eigenvectors"));
    MRC_TRY(find_pairs(centers, sample, &k, values, &vectors, seed, &out->residual));
    double allowed = is_rough(centers) ? ROUGH_TOLERANCE : CHECK_TOLERANCE;
    if (out->residual > allowed)
        return mrc_fail(centers->context, MERCER_ERROR_NUMERIC,
                        "eigensystem: the residual %.1e of the top %lld pairs is above %.0e", out->residual,
                        (long long)pairs, allowed);
    return fill_eigensystem(out, centers, &vectors, values);
}

mercer_status mrc_eigensystem_create(mrc_eigensystem *out, mrc_centers *centers, const mercer_matrix *sample, int64_t q,
                                     uint64_t seed)
{
    memset(out, 0, sizeof *out);
    if (sample->rows == 0) return mrc_fail(centers->context, MERCER_ERROR_SHAPE, "eigensystem: the sample is empty");
    out->s = sample->rows;
    out->q = mrc_max(0, mrc_min(q, out->s - 1));
    mercer_status status = build_eigensystem(out, centers, sample, seed);
    if (status != MERCER_OK) mrc_eigensystem_destroy(out, centers->backend);
    return status;
}

void mrc_eigensystem_destroy(mrc_eigensystem *system, mrc_backend *backend)
{
    mrc_free(backend->context, system->lambda); /* lambda and d are one allocation */
    mrc_matrix_destroy(backend, &system->vectors);
    mrc_matrix_destroy(backend, &system->points);
    memset(system, 0, sizeof *system);
}

/* ---- beta and the step --------------------------------------------------------------------------------------- */

/* Compute taken (rows) = sum_i D_i phi_i^2 in the backend's memory. Scales phi in place. */
static mercer_status take_on_device(const mrc_eigensystem *system, mrc_backend *backend, const mercer_matrix *phi,
                                    double *taken)
{
    double *roots;
    MRC_SCOPE(scope, backend->context);
    if (system->q == 0) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc(&scope, &roots, system->q, sizeof *roots, "scaled eigenvectors"));
    for (int64_t j = 0; j < system->q; j++) roots[j] = sqrt(system->d[j]);
    MRC_TRY(backend->ops->scale_columns(backend, phi, roots));
    return backend->ops->row_sqnorms(backend, phi, taken);
}

mercer_status mrc_eigensystem_beta(const mrc_eigensystem *system, mrc_centers *centers, const mercer_matrix *fresh,
                                   mrc_step_rule rule, double *beta)
{
    mrc_backend *backend = centers->backend;
    mercer_matrix phi, diagonal, own, f;
    double *taken;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &phi, fresh->rows, system->q, centers->real, "Nystrom extension"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &diagonal, fresh->rows, 1, MERCER_F64, "kernel diagonal"));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &taken, fresh->rows, sizeof *taken, "Nystrom extension"));
    MRC_TRY(mrc_points_matmul(centers, fresh, &system->points, &system->vectors, &phi, false));
    MRC_TRY(backend->ops->kernel_diagonal(backend, centers->kernel, fresh, &diagonal));
    double top = 0, whole = 0;
    if (is_rough(centers)) MRC_TRY(take_on_device(system, backend, &phi, taken));
    MRC_TRY(mrc_scope_open(&scope, backend, &diagonal, &own));
    if (!is_rough(centers)) MRC_TRY(mrc_scope_open(&scope, backend, &phi, &f));
    for (int64_t i = 0; i < fresh->rows; i++) {
        double value = mrc_load(&own, i, 0);
        whole = fmax(whole, value);
        for (int64_t j = 0; j < system->q && !is_rough(centers); j++)
            value -= system->d[j] * mrc_load(&f, i, j) * mrc_load(&f, i, j);
        top = fmax(top, value - taken[i]);
    }
    /* Limit beta: it is never above the plain diagonal, and must not be so small that rounding errors dominate it. */
    *beta = rule == MRC_STEP_PRINTED ? fmax(whole, system->tail)
                                     : fmin(fmax(BETA_MARGIN * top, system->tail), fmax(whole, system->tail));
    return MERCER_OK;
}

int64_t mrc_critical_batch(double beta, double tail, int64_t most)
{
    double m = tail > 0 ? floor(beta / tail) : (double)most;
    return m < 1 ? 1 : m < (double)most ? (int64_t)m : most;
}

double mrc_step_over_batch(mrc_step_rule rule, double beta, double tail, int64_t m, double gamma, double ridge)
{
    bool small = rule == MRC_STEP_PRINTED && m < mrc_critical_batch(beta, tail, INT64_MAX);
    double top = (small ? 2 * beta : beta + (double)(m - 1) * tail) + (double)m * ridge;
    double share = rule == MRC_STEP_PRINTED && !small ? PRINTED_SHARE * gamma : gamma;
    return top > 0 ? share * 2 / top : 0; /* 0 only for a kernel that is 0 everywhere */
}

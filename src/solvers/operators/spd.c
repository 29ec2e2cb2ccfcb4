/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cholesky factors with a fallback.
 *
 *   L L' = A + (shift + jitter) I        A (p, p) symmetric positive semi-definite up to rounding, in the type of L
 *   jitter = rho tr(A)/p,                rho = 0, then 16 eps p, 160 eps p, ... up to 1e-4; in float up to 1
 *   or (L L')^-1 in place of L, for several matrices in one call if no matrix needs a jitter
 *
 * Cost: p^3/3 flops and p^2 (d or 1) to form A again, for each attempt; p^2 numbers, in memory of the caller.
 *
 * Why 16 eps p: Cholesky commits an error of up to about p eps times the diagonal. So a smaller eigenvalue may be
 * computed as negative, which makes the factorization fail, or as a positive pivot that consists of rounding errors.
 * Hence a factor with a squared pivot below 4 eps p also counts as failed (a squared pivot is never smaller than the
 * smallest eigenvalue). Equal centers make K(Z,Z) singular and need the jitter, which then divides a weight evenly
 * among equal centers.
 *
 * When can a solution be rounded? x = (K + mu I)^-1 b is computed in double and rounded to type real (unit roundoff u).
 * Rounding changes K x by at most u |x| |K|_2 <= u |x| trace K. If K is nearly singular, |x| is huge and the rounded x
 * is useless. Because |x| <= |b| / mu, a shift mu = 10 u trace K keeps the error below |b|/10 for any K. Relative to
 * the mean of the diagonal, this shift is 10 u times the number of rows. The shift makes the solution inexact by mu x,
 * so it is applied only if |x| is too large.
 */
#include "solvers/operators/spd.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <float.h>
#include <math.h>

static const double LARGEST_JITTER = 1e-4, ROUNDING_HARM = 0.1;
/* Factors in float are only used in preconditioners, which may be inaccurate. */
static const double LARGEST_FLOAT_JITTER = 1;

/* Return a view of the diagonal as a column. */
static mercer_matrix diagonal_of(const mercer_matrix *a)
{
    mercer_matrix diagonal = *a;
    diagonal.cols = 1, diagonal.ld = a->ld + 1;
    return diagonal;
}

/* Return true if a squared pivot is well above rounding errors. */
static bool is_sound(double squared, int64_t p, double mean)
{
    return squared > 0 && squared >= 4 * DBL_EPSILON * (double)p * mean;
}

/* Replace L by its factor, or its inverse; set *least to the smallest squared pivot, 0 if the factorization fails.
   pivots (p). */
static mercer_status factorize_in_place(mrc_centers *centers, const mrc_spd *job, const mercer_matrix *l,
                                        double *pivots, double *least)
{
    mrc_backend *backend = centers->backend;
    centers->flops += (double)l->rows * (double)l->rows * (double)l->rows / 3;
    if (job->scratch) return backend->ops->invert(backend, l, job->scratch, least);
    *least = 0;
    int64_t bad;
    MRC_TRY(backend->ops->cholesky(backend, l, &bad));
    if (bad >= 0) return MERCER_OK;
    mercer_matrix diagonal = diagonal_of(l), host = mrc_view(pivots, l->rows, 1, MERCER_F64);
    MRC_TRY(backend->ops->copy(backend, &host, &diagonal));
    *least = INFINITY;
    for (int64_t i = 0; i < l->rows; i++) *least = fmin(*least, pivots[i] * pivots[i]);
    return MERCER_OK;
}

/* Form A + (shift + relative mean) I in l; set *mean to the mean diagonal of A. ones (p, 1) of the type of l. */
static mercer_status form_shifted(mrc_centers *centers, const mrc_spd *job, const mercer_matrix *l,
                                  const mercer_matrix *ones, double relative, double *mean)
{
    mrc_backend *backend = centers->backend;
    if (job->points)
        MRC_TRY(mrc_points_eval(centers, job->points, job->points, l));
    else
        MRC_TRY(backend->ops->copy(backend, l, job->matrix));
    mercer_matrix diagonal = diagonal_of(l);
    double sum = 0;
    MRC_TRY(backend->ops->column_dots(backend, &diagonal, ones, &sum));
    *mean = l->rows ? sum / (double)l->rows : 0;
    return backend->ops->axpby(backend, job->shift + relative * *mean, ones, 1, &diagonal);
}

/* Try factorizations with increasing jitter until one succeeds. A is formed again for each attempt, because
   factorization overwrites it. */
static mercer_status try_factors(mrc_centers *centers, const mrc_spd *job, const mercer_matrix *l,
                                 const mercer_matrix *ones, double *pivots, double *relative, double *mean)
{
    bool single = l->dtype == MERCER_F32;
    double first = 16 * (single ? (double)FLT_EPSILON : DBL_EPSILON) * (double)l->rows, least;
    double largest = single ? LARGEST_FLOAT_JITTER : LARGEST_JITTER;
    *mean = 0;
    for (double rho = *relative;;) {
        if (job->points) mrc_centers_notify(centers, "kernel matrix of centers", -1);
        MRC_TRY(form_shifted(centers, job, l, ones, rho, mean));
        mrc_centers_notify(centers, "factorization", -1);
        MRC_TRY(factorize_in_place(centers, job, l, pivots, &least));
        if (is_sound(least, l->rows, *mean)) {
            if (rho > *relative)
                mrc_log(centers->context, MERCER_LOG_WARNING,
                        "%s is singular in %s precision: %.1e of its mean diagonal was added", job->what,
                        single ? "single" : "double", rho);
            *relative = rho;
            return MERCER_OK;
        }
        rho = rho > 0 ? 10 * rho : first;
        if (rho > largest || !isfinite(*mean))
            return mrc_fail(centers->context, MERCER_ERROR_NUMERIC,
                            "%s is not positive definite, not even with %.0e of its mean diagonal (%g) added",
                            job->what, largest, *mean);
    }
}

/* Allocate a column of ones, of the length and type of a matrix, and as many doubles in host memory. */
static mercer_status make_ones(mrc_scope *scope, mrc_backend *backend, const mercer_matrix *like, mercer_matrix *ones,
                               double **pivots)
{
    int64_t rows = like->rows;
    MRC_TRY(mrc_scope_matrix(scope, backend, ones, rows, 1, like->dtype, "a column of ones"));
    MRC_TRY(mrc_scope_alloc(scope, pivots, rows, sizeof **pivots, "pivots"));
    for (int64_t i = 0; i < rows; i++) (*pivots)[i] = 1;
    mercer_matrix host = mrc_view(*pivots, rows, 1, MERCER_F64);
    return backend->ops->copy(backend, ones, &host);
}

mercer_status mrc_spd_factor(mrc_centers *centers, const mrc_spd *job, const mercer_matrix *l, double *relative,
                             double *mean)
{
    mercer_matrix ones;
    double unused, *pivots;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(make_ones(&scope, centers->backend, l, &ones, &pivots));
    return try_factors(centers, job, l, &ones, pivots, relative, mean ? mean : &unused);
}

double mrc_rounding_penalty(mercer_dtype values, double k, double mass)
{
    double error = (values == MERCER_F64 ? 0 : values == MERCER_F32 ? 4 * 0x1p-24 : 0x1p-12) * k;
    return mass * error * error;
}

mercer_status mrc_spd_solve(mrc_centers *centers, const mercer_matrix *l, const mercer_matrix *b)
{
    mrc_backend *backend = centers->backend;
    centers->flops += 2 * (double)l->rows * (double)l->rows * (double)b->cols;
    MRC_TRY(backend->ops->triangular_solve(backend, l, false, b));
    return backend->ops->triangular_solve(backend, l, true, b);
}

mercer_matrix mrc_shaped(const mercer_matrix *scratch, int64_t rows, int64_t columns)
{
    mercer_matrix view = *scratch;
    view.rows = rows;
    view.cols = view.ld = columns;
    return view;
}

/* ---- Rounded solutions --------------------------------------------------------------------------------------- */

double mrc_unit_roundoff(mercer_dtype real)
{
    return real == MERCER_F32 ? 0x1p-24 : 0x1p-53;
}

mercer_status mrc_matrix_norm(mrc_backend *backend, const mercer_matrix *a, double *out)
{
    double *squares, sum = 0;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &squares, a->cols, sizeof *squares, "column norms"));
    MRC_TRY(backend->ops->column_dots(backend, a, a, squares));
    for (int64_t j = 0; j < a->cols; j++) sum += squares[j];
    *out = sqrt(sum);
    return MERCER_OK;
}

double mrc_factor_safe_shift(mercer_dtype real, int64_t b)
{
    return mrc_unit_roundoff(real) / ROUNDING_HARM * (double)b;
}

bool mrc_factor_too_rough(const mrc_factor *factor, mercer_dtype real, double x_norm, double b_norm)
{
    /* Negated, so that a solution that is not finite counts as too rough. */
    return !(mrc_unit_roundoff(real) * x_norm * factor->trace <= ROUNDING_HARM * b_norm);
}

mercer_status mrc_points_trace(mrc_centers *centers, const mercer_matrix *points, double *trace)
{
    mrc_backend *backend = centers->backend;
    mercer_matrix diagonal, host;
    MRC_SCOPE(scope, centers->context);
    *trace = 0;
    MRC_TRY(mrc_scope_matrix(&scope, backend, &diagonal, points->rows, 1, MERCER_F64, "the diagonal of a block"));
    MRC_TRY(backend->ops->kernel_diagonal(backend, centers->kernel, points, &diagonal));
    MRC_TRY(mrc_scope_open(&scope, backend, &diagonal, &host));
    for (int64_t i = 0; i < points->rows; i++) *trace += mrc_load(&host, i, 0);
    return MERCER_OK;
}

/* Set up the factorization of K(B,B). If K(B,B) = 0 (a linear kernel, points at 0), a shift has no scale; any value is
   right then, because nothing can be fitted. */
static mercer_status describe_kernel_factor(mrc_centers *centers, const mercer_matrix *points, mrc_factor *factor,
                                            mrc_spd *job)
{
    MRC_TRY(mrc_points_trace(centers, points, &factor->trace));
    *job = (mrc_spd){
        .points = points, .shift = factor->trace > 0 ? 0 : 1, .what = "projection: K(Z,Z)", .scratch = factor->scratch};
    return MERCER_OK;
}

/* Return the absolute shift that was added to the diagonal. */
static double total_shift(const mrc_spd *job, const mrc_factor *factor)
{
    return job->shift + factor->relative * factor->trace / (double)factor->l.rows;
}

mercer_status mrc_factor_kernel(mrc_centers *centers, const mercer_matrix *points, mrc_factor *factor)
{
    mrc_spd job;
    MRC_TRY(describe_kernel_factor(centers, points, factor, &job));
    MRC_TRY(mrc_spd_factor(centers, &job, &factor->l, &factor->relative, NULL));
    factor->shift = total_shift(&job, factor);
    return MERCER_OK;
}

mercer_status mrc_invert_kernels(mrc_centers *centers, int64_t count, const mercer_matrix *points, mrc_factor *factors,
                                 const mercer_matrix *scratch, bool *sound)
{
    mercer_matrix ones, all = factors[0].l;
    double *means, *least, *unused, n = (double)all.rows;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(make_ones(&scope, centers->backend, &all, &ones, &unused));
    MRC_TRY(mrc_scope_alloc(&scope, &means, 2 * count, sizeof *means, "pivots"));
    least = means + count;
    for (int64_t i = 0; i < count; i++) {
        mrc_spd job;
        MRC_TRY(describe_kernel_factor(centers, &points[i], &factors[i], &job));
        MRC_TRY(form_shifted(centers, &job, &factors[i].l, &ones, factors[i].relative, &means[i]));
        factors[i].shift = total_shift(&job, &factors[i]);
    }
    all.rows *= count;
    MRC_TRY(centers->backend->ops->invert(centers->backend, &all, scratch, least));
    centers->flops += (double)count * n * n * n / 3;
    for (int64_t i = 0; i < count; i++) sound[i] = is_sound(least[i], factors[i].l.rows, means[i]);
    return MERCER_OK;
}

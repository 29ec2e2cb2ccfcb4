/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The polynomial h_k of polynomial_preconditioner.c, which meets h(l) = (l (l + tau))^-1/2 on the spectrum of R.
 *
 * It does so in the k + 1 Chebyshev nodes of [a, b]. For tau = 0 its error |1 - l h_k(l)| on [a, b] is at most
 * 1 / T_{k+1}((b + a) / (b - a)), the least there is. [a, b] is the spectrum of R as 8 steps of Lanczos from c random
 * vectors see it: b the largest Ritz value and a tenth more, a the mean of the smallest ones. k: the first for which
 * that error is 1/3 or less, at most 8. Eigenvalues below a count as if they were about a.
 *
 * Cost: 8 products with R, p^2 c multiply-adds each.
 */
#include "solvers/normal/polynomial_preconditioner.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "solvers/operators/spd.h"
#include "solvers/projectors/projector_parts.h"

#include <math.h>

enum { SEED = 5 };

#define WORST_ERROR 0.33
#define MARGIN      1.1
#define WIDEST      1000.0 /* b / a: beyond, no polynomial of degree 8 is of use */

/* t = c random vectors, without what they have in the span of G (G'G = Theta^-1), of length 1. */
static mercer_status draw_vectors(mrc_preconditioner *self, const double *theta, double *sums)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    mrc_rng rng = {SEED, 0x706f7765u};
    int64_t c = self->t.cols;
    mercer_matrix host;
    MRC_TRY(mrc_host_open(backend, &self->t, &host));
    for (int64_t i = 0; i < host.rows; i++)
        for (int64_t j = 0; j < c; j++)
            mrc_store(&host, i, j, mrc_random_normal(rng, (uint64_t)((centers->first + i) * c + j)));
    MRC_TRY(mrc_host_close(backend, &self->t, &host, true, MERCER_OK));
    MRC_TRY(mrc_centers_inner(centers, &self->g, &self->t, &self->y));
    MRC_TRY(backend->ops->scale_rows(backend, &self->y, theta));
    MRC_TRY(mrc_centers_multiply(centers, -1, &self->g, &self->y, 1, &self->t));
    MRC_TRY(mrc_centers_column_dots(centers, &self->t, &self->t, sums));
    for (int64_t j = 0; j < c; j++) sums[j] = sums[j] > 0 ? 1 / sqrt(sums[j]) : 0;
    return backend->ops->scale_columns(backend, &self->t, sums);
}

/* x_j = (x_j - factors_j y_j) for each column. */
static mercer_status subtract_columns(mrc_preconditioner *self, const mercer_matrix *x, const double *factors,
                                      const mercer_matrix *y)
{
    mrc_backend *backend = self->centers->backend;
    for (int64_t j = 0; j < x->cols; j++) {
        mercer_matrix to = mrc_column(x, j), from = mrc_column(y, j);
        MRC_TRY(backend->ops->axpby(backend, -factors[j], &from, 1, &to));
    }
    return MERCER_OK;
}

/* One step of Lanczos for every column: t the vectors, o the ones before; alpha, beta (c) get what T has there, and
   beta of the step before stands in front of it. */
static mercer_status lanczos_step(mrc_preconditioner *self, bool first, double *alpha, double *beta, double *sums)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    int64_t c = self->t.cols;
    MRC_TRY(mrc_preconditioner_times_rest(self));
    if (!first) MRC_TRY(subtract_columns(self, &self->n, beta - c, &self->o));
    MRC_TRY(mrc_centers_column_dots(centers, &self->t, &self->n, alpha));
    MRC_TRY(subtract_columns(self, &self->n, alpha, &self->t));
    MRC_TRY(mrc_centers_column_dots(centers, &self->n, &self->n, beta));
    for (int64_t j = 0; j < c; j++) {
        beta[j] = sqrt(fmax(beta[j], 0));
        sums[j] = beta[j] > 0 ? 1 / beta[j] : 0;
    }
    MRC_TRY(backend->ops->copy(backend, &self->o, &self->t));
    MRC_TRY(backend->ops->copy(backend, &self->t, &self->n));
    return backend->ops->scale_columns(backend, &self->t, sums);
}

/* Smallest and largest eigenvalue of column j's T, which ends where its vectors did. */
static mercer_status ritz_ends(mrc_preconditioner *self, const double *alpha, const double *beta, int64_t j,
                               double *low, double *high)
{
    int64_t c = self->t.cols, size = 1;
    double t[MRC_LANCZOS * MRC_LANCZOS] = {0}, v[MRC_LANCZOS * MRC_LANCZOS], values[MRC_LANCZOS];
    while (size < MRC_LANCZOS && beta[(size - 1) * c + j] > 1e-6 * alpha[j]) size++;
    for (int64_t i = 0; i < size; i++) {
        t[i * size + i] = alpha[i * c + j];
        if (i + 1 < size) t[i * size + i + 1] = t[(i + 1) * size + i] = beta[i * c + j];
    }
    mercer_matrix a = mrc_view(t, size, size, MERCER_F64), vectors = mrc_view(v, size, size, MERCER_F64);
    MRC_TRY(self->centers->backend->ops->eigen_top(self->centers->backend, &a, size, values, &vectors));
    *low = values[size - 1], *high = values[0];
    return MERCER_OK;
}

/* The ends of the spectrum of R as random vectors see it: the mean of the smallest Ritz values, the largest of all.
   room: (2 MRC_LANCZOS + 1) c doubles. */
static mercer_status find_ends(mrc_preconditioner *self, const double *theta, double *room, double *a, double *b)
{
    int64_t c = self->t.cols;
    double *alpha = room, *beta = alpha + MRC_LANCZOS * c, *sums = beta + MRC_LANCZOS * c;
    MRC_TRY(draw_vectors(self, theta, sums));
    for (int64_t i = 0; i < MRC_LANCZOS; i++) MRC_TRY(lanczos_step(self, i == 0, alpha + i * c, beta + i * c, sums));
    *a = *b = 0;
    for (int64_t j = 0; j < c; j++) {
        double low, high;
        MRC_TRY(ritz_ends(self, alpha, beta, j, &low, &high));
        *a += low / (double)c;
        *b = fmax(*b, high);
    }
    return MERCER_OK;
}

/* The error of degree k on [a, b]: 1 / T_{k+1}. */
static double error_of(int64_t k, double a, double b)
{
    return b > a ? 1 / cosh((double)(k + 1) * acosh((b + a) / (b - a))) : 0;
}

/* Newton's form of what meets h in the Chebyshev nodes of [a, b], nodes from both ends inwards. */
static void interpolate(mrc_preconditioner *self, double a, double b, double tau)
{
    int64_t count = self->degree + 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i % 2 ? count - 1 - i / 2 : i / 2;
        double x = (a + b) / 2 + (b - a) / 2 * cos(3.14159265358979323846 * (double)(2 * at + 1) / (double)(2 * count));
        self->nodes[i] = x;
        self->coefficients[i] = 1 / sqrt(x * (x + tau));
    }
    for (int64_t j = 1; j < count; j++)
        for (int64_t i = count - 1; i >= j; i--)
            self->coefficients[i] =
                (self->coefficients[i] - self->coefficients[i - 1]) / (self->nodes[i] - self->nodes[i - j]);
}

static mercer_status trace_part(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    (void)argument;
    mercer_matrix z = mrc_centers_part(centers, &centers->z, shard);
    return mrc_points_trace(centers, &z, part->data);
}

mercer_status mrc_preconditioner_choose_polynomial(mrc_preconditioner *self, const double *theta, double *room,
                                                   double tau)
{
    mrc_centers *centers = self->centers;
    double trace, a, b;
    mercer_matrix sum = mrc_view(&trace, 1, 1, MERCER_F64);
    MRC_TRY(mrc_centers_sum(centers, &sum, trace_part, NULL));
    MRC_TRY(find_ends(self, theta, room, &a, &b));
    self->mean = trace / (double)centers->p;
    /* What is left of K below the noise of its largest eigenvalue is noise: a polynomial for so little would
       overflow. */
    double noise = self->q > 0 ? mrc_noise_level(centers->real) * theta[0] : 0;
    b = fmax(MARGIN * b, fmax(noise, 1e-12 * self->mean)); /* nothing left: any polynomial will do */
    if (!(b > 0)) b = 1;
    a = fmin(fmax(a, b / WIDEST), b / 2);
    for (self->degree = 0; self->degree < MRC_DEFLATED_DEGREE; self->degree++)
        if (error_of(self->degree, a, b) <= WORST_ERROR) break;
    interpolate(self, a, b, tau);
    mrc_log(centers->context, MERCER_LOG_DEBUG,
            "conjugate gradients: %lld directions, a polynomial of degree %lld on %.3e .. %.3e of the mean diagonal",
            (long long)self->q, (long long)self->degree, a / self->mean, b / self->mean);
    return MERCER_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The normal equations of kernel least squares and their preconditioner.
 *
 *   A = K_ZX W K_XZ + lambda K_ZZ + rho I,   b = K_ZX W Y              (p, p) never formed; (p, c)
 *   M = (w/p) K_d (K_d + (tau + t) I),   K_d = K_ZZ + delta I          w = sum of the sample weights
 *   tau = lambda p / w;   rho: mrc_rounding_penalty, 0 in double
 *
 * M is A with the samples replaced by the centers (Falkon: Rudi, Carratino and Rosasco, 2017). The two matrices in M
 * commute, so M^-1 r = (p/w) (K_d + (tau + t) I)^-1 K_d^-1 r. Each has a Cholesky factor; if lambda = t = 0 the
 * matrices are equal and share one factor. lambda K_ZZ v is formed as lambda (L (L' v) - delta v), so nothing else of
 * size p^2 is stored. Without a factor M^-1 is approximated instead; both versions are in normal_preconditioner.c.
 *
 * Factors are in float if products are and the backend has such factors: half the time and memory, and the jitter delta
 * is far above their rounding errors. K_ZZ v is then formed with K_ZZ itself, because L L' - delta I would be off by
 * eps times its norm.
 *
 * delta = max(sqrt(eps), p eps) of the mean diagonal, where eps is the machine epsilon of the products: r carries noise
 * of up to w eps in every direction, and M^-1 multiplies it by (p/w) / (l + delta)^2 along an eigenvalue l. A larger
 * delta costs steps: kin40k (p = 6,000) takes 30 steps to a loss of .00240 with delta = 8 p eps, and 20 steps to .00236
 * with delta = p eps.
 *
 * Cost with factors: p^3/3 (lambda > 0: 2/3 p^3) at the start; a product with A is one pass, n p (2 d + 4 c) flops (4 n
 * p c with a cache of K(X,Z)) and 4 p^2 c for the ridge; M^-1 is 4 p^2 c. Bytes: 8 p^2 (lambda > 0: 16 p^2), in float 4
 * p^2 (12 p^2); four matrices p x 2c, wide enough to multiply alpha in the same pass; 4 b c of a batch.
 *
 * Vectors and sums are divided among ranks like the centers; only products with the factors need complete vectors.
 *
 * Precision: vectors and sums over batches are in double; products within a batch are in the type of the centers.
 * Directions are scaled to about unit length (by powers of 2) before they are rounded to that type.
 *
 * t >= 0 corrects M for small eigenvalues, where the samples have more variance than the centers show
 * (normal_preconditioner.c). t is 0 for Laplace kernels and positive for smooth kernels. If lambda = 0 there is only
 * one factor, and (K_d + t/2 I)^2 is used instead: nearly the same for the eigenvalues that matter, for half the
 * memory.
 *
 * Steps to a tolerance of 1e-6, Laplace, p = 300, d = 3 / 20 / 100: random centers 32 / 27 / 16, k-means centers 36 /
 * 51 / 82, because k-means centers are not distributed like the data. 2 p samples in M in addition to the centers save
 * 5 to 10 steps and cost 4 p^3 flops.
 */
#include "solvers/normal/normal.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/operators/spd.h"

#include <math.h>
#include <string.h>

/* ---- Life ---------------------------------------------------------------------------------------------------- */

/* Allocate vectors and batch buffers. Buffers for products have 2 c columns, for d and alpha side by side. */
static mercer_status allocate_normal(mrc_normal *self)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = self->backend;
    mercer_dtype real = centers->real;
    int64_t c = self->c, batch = self->exact->kernel_blocks->most_rows;
    MRC_TRY(mrc_field_create(centers, &self->both, 2 * c, MERCER_F64, "vectors of conjugate gradients"));
    if (centers->comm->ranks > 1 && self->exact->preconditioner_sizes.basis == 0)
        MRC_TRY(mrc_matrix_create(backend, &self->all, 2 * self->p, c, mrc_normal_factor_type(self),
                                  "vectors of conjugate gradients"));
    MRC_TRY(mrc_field_create(centers, &self->sum, 2 * c, MERCER_F64, "sums of conjugate gradients"));
    MRC_TRY(mrc_field_create(centers, &self->v, 2 * c, real, "directions of conjugate gradients"));
    MRC_TRY(mrc_field_create(centers, &self->h, 2 * c, real, "products of conjugate gradients"));
    MRC_TRY(mrc_matrix_create(backend, &self->f, batch, c, real, "a batch's predictions"));
    MRC_TRY(mrc_matrix_create(backend, &self->y, batch, c, real, "a batch's labels"));
    MRC_TRY(mrc_matrix_create(backend, &self->g, batch, 2 * c, real, "a batch's residuals"));
    MRC_TRY(mrc_alloc(centers->context, &self->scale, 2 * c, sizeof *self->scale, "column sums"));
    self->sums = self->scale + c;
    return MERCER_OK;
}

mercer_status mrc_normal_create(mrc_normal *out, mrc_exact_solver *exact)
{
    mrc_centers *centers = exact->centers;
    *out =
        (mrc_normal){.exact = exact, .centers = centers, .backend = centers->backend, .p = centers->p, .c = exact->c};
    mercer_status status = allocate_normal(out);
    if (status != MERCER_OK) mrc_normal_destroy(out);
    return status;
}

void mrc_normal_destroy(mrc_normal *self)
{
    if (!self->backend) return;
    mercer_matrix *all[] = {&self->l, &self->ridged, &self->kernel, &self->both, &self->all, &self->sum,
                            &self->v, &self->h,      &self->f,      &self->y,    &self->g};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mrc_matrix_destroy(self->backend, all[i]);
    mrc_preconditioner_destroy(&self->preconditioner);
    mrc_free(self->centers->context, self->scale);
    memset(self, 0, sizeof *self);
}

/* ---- A pass over the data ------------------------------------------------------------------------------------ */

typedef enum pass_kind {
    PASS_FIRST, /* alpha = 0;       g = W y */
    PASS_BEGIN, /* v = alpha;       g = [W y | W (y - f)] */
    PASS_STEP,  /* v = d;           g = W f */
    PASS_BOTH   /* v = [d | alpha]; g = [W f_d | W (y - f_alpha)] */
} pass_kind;

/* Add column j of x times column j of y to fit[j], unless fit is NULL. */
static mercer_status add_fit(mrc_normal *self, const mercer_matrix *x, const mercer_matrix *y, double *fit)
{
    MRC_TRY(self->backend->ops->column_dots(self->backend, x, y, self->sums));
    for (int64_t j = 0; j < self->c && fit; j++) fit[j] += self->sums[j];
    return MERCER_OK;
}

/* Compute g of a batch from its predictions; fit[j] += sum_i w_i (y - f)^2, unless fit is NULL. */
static mercer_status residuals(mrc_normal *self, pass_kind kind, const mercer_batch *batch, const mercer_matrix *g,
                               double *fit)
{
    mrc_backend *backend = self->backend;
    mercer_matrix f = mrc_rows(&self->f, 0, g->rows), y = mrc_rows(&self->y, 0, g->rows);
    mercer_matrix left = mrc_columns(g, 0, self->c), right = mrc_columns(g, self->c, self->c);
    if (kind == PASS_STEP) return batch->weights ? backend->ops->scale_rows(backend, g, batch->weights) : MERCER_OK;
    MRC_TRY(backend->ops->copy(backend, &y, &batch->Y));
    if (kind == PASS_FIRST) {
        MRC_TRY(backend->ops->copy(backend, g, &y));
        if (batch->weights) MRC_TRY(backend->ops->scale_rows(backend, g, batch->weights));
        return add_fit(self, &y, g, fit);
    }
    if (kind == PASS_BEGIN) {
        MRC_TRY(backend->ops->copy(backend, &left, &y));
        MRC_TRY(backend->ops->copy(backend, &right, &f));
    }
    MRC_TRY(backend->ops->axpby(backend, 1, &y, -1, &right));
    MRC_TRY(backend->ops->copy(backend, &y, &right));
    if (batch->weights) MRC_TRY(backend->ops->scale_rows(backend, g, batch->weights));
    return add_fit(self, &y, &right, fit);
}

/* Compute sum += h, or sum = h for the first batch, in double; self->both is scratch. */
static mercer_status accumulate_sums(mrc_normal *self, const mercer_matrix *h, const mercer_matrix *sum, bool first)
{
    mrc_backend *backend = self->backend;
    mercer_matrix wide = mrc_shaped(&self->both, h->rows, h->cols);
    if (first) return backend->ops->copy(backend, sum, h);
    if (h->dtype == MERCER_F64) return backend->ops->axpby(backend, 1, h, 1, sum);
    MRC_TRY(backend->ops->copy(backend, &wide, h));
    return backend->ops->axpby(backend, 1, &wide, 1, sum);
}

/* Compute sum (rows, columns of g) = K_ZX g over all samples, with g according to the kind; fit is cleared first. */
static mercer_status pass(mrc_normal *self, pass_kind kind, double *fit)
{
    mrc_exact_solver *exact = self->exact;
    bool begin = kind == PASS_FIRST || kind == PASS_BEGIN;
    int64_t c = self->c, in = kind == PASS_BOTH ? 2 * c : c, rows = self->v.rows;
    int64_t out = kind == PASS_BEGIN || kind == PASS_BOTH ? 2 * c : c;
    mercer_matrix v = mrc_shaped(&self->v, rows, in), h = mrc_shaped(&self->h, rows, out),
                  sum = mrc_shaped(&self->sum, rows, out);
    bool first = true;
    for (int64_t j = 0; j < c && fit; j++) fit[j] = 0;
    if (begin) self->mass = 0;
    MRC_TRY(mrc_sample_stream_restart(exact->stream, 0));
    for (;;) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_next(exact->stream, exact->kernel_blocks->most_rows, &batch));
        int64_t m = batch.X.rows;
        if (m == 0) break;
        mercer_matrix x = batch.X;
        double since = mrc_seconds();
        MRC_TRY(self->backend->ops->stage(self->backend, &x, &batch.X));
        mercer_matrix g = mrc_shaped(&self->g, m, out), f = kind == PASS_BEGIN ? mrc_rows(&self->f, 0, m) : g;
        MRC_TRY(kind == PASS_FIRST ? mrc_kernel_blocks_load(exact->kernel_blocks, &batch)
                                   : mrc_kernel_blocks_forward(exact->kernel_blocks, &batch, &v, NULL, &f));
        MRC_TRY(residuals(self, kind, &batch, &g, fit));
        mrc_lap(&since, &exact->times.forward);
        MRC_TRY(mrc_kernel_blocks_transpose(exact->kernel_blocks, &batch, &g, &h));
        MRC_TRY(accumulate_sums(self, &h, &sum, first));
        mrc_lap(&since, &exact->times.gradient);
        first = false;
        for (int64_t i = 0; i < m && begin; i++) self->mass += batch.weights ? batch.weights[i] : 1;
    }
    if (first) return mrc_fail(self->centers->context, MERCER_ERROR_DATA, "source: a pass has no samples");
    return MERCER_OK;
}

/* ---- Penalties ----------------------------------------------------------------------------------------------- */

/* Compute y += sign (lambda K(Z,Z) + rho I) x. */
static mercer_status add_penalty(mrc_normal *self, double sign, const mercer_matrix *x, const mercer_matrix *y,
                                 const mercer_matrix *work)
{
    mrc_backend *backend = self->backend;
    double lambda = self->exact->lambda;
    if (lambda > 0) {
        MRC_TRY(mrc_normal_times_kernel(self, x, work));
        MRC_TRY(backend->ops->axpby(backend, sign * lambda, work, 1, y));
    }
    return backend->ops->axpby(backend, sign * self->rounding, x, 1, y);
}

mercer_status mrc_normal_penalty(mrc_normal *self, const mercer_matrix *alpha, double *out, const mercer_matrix *work)
{
    double lambda = self->exact->lambda;
    MRC_TRY(mrc_centers_column_dots(self->centers, alpha, alpha, out));
    for (int64_t j = 0; j < self->c; j++) out[j] *= self->rounding;
    if (lambda <= 0) return MERCER_OK;
    MRC_TRY(mrc_normal_times_kernel(self, alpha, work));
    MRC_TRY(mrc_centers_column_dots(self->centers, alpha, work, self->sums));
    for (int64_t j = 0; j < self->c; j++) out[j] = fmax(out[j] + lambda * self->sums[j], 0);
    return MERCER_OK;
}

/* ---- The equations ------------------------------------------------------------------------------------------- */

mercer_status mrc_normal_resume(mrc_normal *self, double mass)
{
    self->mass = mass;
    return mass > 0 ? mrc_normal_factor(self) : MERCER_OK;
}

mercer_status mrc_normal_begin(mrc_normal *self, const mercer_matrix *alpha, const mercer_matrix *b,
                               const mercer_matrix *r, double *fit, const mercer_matrix *work)
{
    mrc_backend *backend = self->backend;
    mercer_matrix v = mrc_shaped(&self->v, self->v.rows, self->c);
    mercer_matrix left = mrc_columns(&self->sum, 0, self->c), right = mrc_columns(&self->sum, self->c, self->c);
    bool zero = true; /* the usual case: then no predictions are needed */
    MRC_TRY(mrc_centers_column_dots(self->centers, alpha, alpha, self->sums));
    for (int64_t j = 0; j < self->c; j++) zero = zero && self->sums[j] == 0;
    MRC_TRY(backend->ops->copy(backend, &v, alpha));
    self->from_zero = zero;
    MRC_TRY(pass(self, zero ? PASS_FIRST : PASS_BEGIN, fit));
    if (zero) left = right = mrc_shaped(&self->sum, self->sum.rows, self->c);
    MRC_TRY(backend->ops->copy(backend, b, &left));
    MRC_TRY(backend->ops->copy(backend, r, &right));
    if (self->mass <= 0) return MERCER_OK; /* b = 0: nothing to solve */
    MRC_TRY(mrc_normal_factor(self));
    return add_penalty(self, -1, alpha, r, work);
}

mercer_status mrc_normal_unit_columns(mrc_normal *self, const mercer_matrix *x, const mercer_matrix *out)
{
    mrc_backend *backend = self->backend;
    MRC_TRY(mrc_centers_column_dots(self->centers, x, x, self->scale));
    for (int64_t j = 0; j < self->c; j++) {
        bool usable = self->scale[j] > 0 && isfinite(self->scale[j]);
        self->scale[j] = usable ? ldexp(1, -ilogb(sqrt(self->scale[j]))) : 1;
    }
    MRC_TRY(backend->ops->copy(backend, out, x));
    MRC_TRY(backend->ops->scale_columns(backend, out, self->scale));
    for (int64_t j = 0; j < self->c; j++) self->scale[j] = 1 / self->scale[j];
    return MERCER_OK;
}

/* Set v = d with its columns scaled to about unit length; with alpha, v = [d | alpha], alpha unscaled. */
static mercer_status load_directions(mrc_normal *self, const mercer_matrix *d, const mercer_matrix *alpha)
{
    mrc_backend *backend = self->backend;
    int64_t c = self->c, columns = alpha ? 2 * c : c;
    mercer_matrix wide = mrc_shaped(&self->both, self->both.rows, columns);
    mercer_matrix v = mrc_shaped(&self->v, self->v.rows, columns);
    mercer_matrix left = mrc_columns(&wide, 0, c), right = mrc_columns(&wide, c, c);
    MRC_TRY(mrc_normal_unit_columns(self, d, &left));
    if (alpha) MRC_TRY(backend->ops->copy(backend, &right, alpha));
    return backend->ops->copy(backend, &v, &wide);
}

mercer_status mrc_normal_apply(mrc_normal *self, const mercer_matrix *d, const mercer_matrix *q,
                               const mercer_matrix *alpha, const mercer_matrix *r, double *fit,
                               const mercer_matrix *work)
{
    mrc_backend *backend = self->backend;
    MRC_TRY(load_directions(self, d, alpha));
    MRC_TRY(pass(self, alpha ? PASS_BOTH : PASS_STEP, alpha ? fit : NULL));
    mercer_matrix sum = mrc_shaped(&self->sum, self->sum.rows, alpha ? 2 * self->c : self->c);
    mercer_matrix left = mrc_columns(&sum, 0, self->c), right = mrc_columns(&sum, self->c, self->c);
    MRC_TRY(backend->ops->copy(backend, q, &left));
    MRC_TRY(backend->ops->scale_columns(backend, q, self->scale));
    if (alpha) {
        MRC_TRY(backend->ops->copy(backend, r, &right));
        MRC_TRY(add_penalty(self, -1, alpha, r, work));
    }
    return add_penalty(self, 1, d, q, work);
}

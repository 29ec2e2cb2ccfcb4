/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preconditioned conjugate gradients on K(Z,Z) theta = h, for every column separately.
 *
 *   P^-1 r = r - U U'r + U (w_q/W) U'r       U (p, q), W: coarse space; maps the top q eigenvalues to w_q
 *   z = P^-1 r,  d = z,  rz = r.z            fields (rows, c); scalars for each column, in double
 *   repeat:  a = rz / d.(K d);  theta += d a;  r -= (K d) a;  z = P^-1 r;  d = z + d (rz_new / rz_old)
 *
 * Cost of a step: one pass over K(Z,Z), p^2 (d + c), or p^2 c if K(Z,Z) is stored (real_size p^2 bytes), and 4 p q c.
 * Memory: p q for U, 3 p c for z, d, K d.
 *
 * Each column has its own step length; columns are scaled by a product with a diagonal (c, c) matrix. A column that is
 * solved, or breaks down by rounding (d.(K d) <= 0), gets a = 0 and no longer changes.
 *
 * If a backend caches kernel values in half precision (capabilities: cached_size), K(Z,Z) is stored in that form.
 * Because K(Z,Z) is symmetric, the values that a forward product caches for transposed products can be used. This
 * halves the bytes, and a pass takes the time to read them. If there are many columns, directions are also rounded to
 * the 11 bits of a half. K d then takes one product of halves instead of two. Steps then use the rounded direction, so
 * r stays h - K theta, and directions are conjugate to about 2^-12.
 *
 * Caveats: r is the residual of the recurrence, which deviates from h - K theta by about u |K| |theta| per step (u:
 * unit roundoff), so the iteration stops at a relative residual of u. w_q/w_i is at least 32 u, because rounding could
 * otherwise make I - U U' indefinite.
 */
#include "solvers/projectors/projector.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/operators/spd.h"
#include "solvers/planner.h"

#include <math.h>
#include <string.h>

#define LEAST_DEFLATION 32 /* minimum of w_q/w_i, in units of roundoff */

typedef struct pcg {
    mrc_coarse coarse;
    mercer_matrix cached;  /* (rows, p) this rank's rows of K(Z,Z); data is NULL if not stored */
    mrc_cached_block half; /* K(Z,Z) in the backend's own form, all columns; memory is NULL if not stored */
    double *shrink;        /* (q) w_q/w_i - 1 */
} pcg;

typedef struct work {
    mercer_matrix z, d, kd;           /* fields (rows, c) */
    mercer_matrix ur;                 /* (q, c) */
    mercer_matrix diagonal;           /* (c, c) real */
    double *rz, *old, *dkd, *factors; /* (c) */
} work;

static void destroy_pcg(mrc_projector *projector)
{
    mrc_centers *centers = projector->centers;
    pcg *self = projector->state;
    mrc_coarse_destroy(&self->coarse, centers->backend);
    mrc_matrix_destroy(centers->backend, &self->cached);
    centers->backend->ops->free(centers->backend, self->half.memory);
    mrc_free(centers->context, self->shrink);
    mrc_free(centers->context, self);
}

/* Find out, by a small product, whether the backend caches kernel values in half precision. */
static mercer_status keeps_half(mrc_centers *centers, const mercer_matrix *w, const mercer_matrix *f, bool *out)
{
    enum { ROWS = 16, COLUMNS = 256 };
    mrc_backend *backend = centers->backend;
    mercer_matrix some = mrc_rows(&centers->z, 0, mrc_min(ROWS, centers->p)), to = mrc_rows(f, 0, some.rows);
    mrc_pair pair = mrc_points_pair(centers, &some, &centers->z);
    mrc_cached_block block = {.bytes = ROWS * COLUMNS * 2};
    MRC_TRY(backend->ops->alloc(backend, &block.memory, block.bytes, "kernel values"));
    mercer_status status = backend->ops->kernel_forward(backend, &pair, w, &to, &block);
    backend->ops->free(backend, block.memory);
    *out = block.opaque;
    return status;
}

/* Store K(Z,Z) in self->half, if the backend caches values in half precision. */
static mercer_status store_half(pcg *self, mrc_centers *centers)
{
    mrc_backend *backend = centers->backend;
    mercer_matrix w, f;
    bool half = backend->ops->capabilities(backend, centers->half).cached_size == 2 && centers->real == MERCER_F32;
    if (!half || centers->all_shards > 1) return MERCER_OK;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_field(&scope, centers, &w, 1, centers->real, "no weights"));
    MRC_TRY(mrc_scope_field(&scope, centers, &f, 1, centers->real, "their product"));
    MRC_TRY(keeps_half(centers, &w, &f, &half));
    if (!half) return MERCER_OK;
    mrc_cached_block block = {.bytes = mrc_round_up(centers->p, 256) * mrc_round_up(centers->p, 16) * 2};
    mrc_pair pair = mrc_points_pair(centers, &centers->z, &centers->z);
    MRC_TRY(backend->ops->alloc(backend, &block.memory, block.bytes, "K(Z,Z) in half precision"));
    self->half = block;
    mrc_count_product(centers, centers->p, centers->p, centers->z.cols);
    return backend->ops->kernel_forward(backend, &pair, &w, &f, &self->half);
}

/* Stores K(Z,Z), in half precision if the backend has that form. */
static mercer_status store_matrix(pcg *self, mrc_centers *centers)
{
    mrc_centers_notify(centers, "kernel matrix of centers", -1);
    MRC_TRY(store_half(self, centers));
    if (self->half.memory && self->half.columns == centers->p) return MERCER_OK;
    centers->backend->ops->free(centers->backend, self->half.memory);
    self->half = (mrc_cached_block){0};
    return mrc_centers_store_kernel(centers, &self->cached);
}

static mercer_status create_pcg(mrc_projector *projector)
{
    mrc_centers *centers = projector->centers;
    const mrc_projector_options *options = &projector->options;
    MRC_TRY(mrc_alloc_zero(centers->context, &projector->state, 1, sizeof(pcg), "the conjugate-gradient projector"));
    pcg *self = projector->state;
    MRC_TRY(mrc_coarse_create(&self->coarse, centers, options->nystrom, options->eigenpairs, options->seed));
    int64_t q = self->coarse.q;
    MRC_TRY(mrc_alloc(centers->context, &self->shrink, q, sizeof *self->shrink, "the preconditioner"));
    double least = LEAST_DEFLATION * mrc_unit_roundoff(centers->real);
    for (int64_t i = 0; i < q; i++)
        self->shrink[i] = fmin(1, fmax(least, self->coarse.w[q - 1] / self->coarse.w[i])) - 1;
    return options->store ? store_matrix(self, centers) : MERCER_OK;
}

/* ---- The iteration ------------------------------------------------------------------------------------------- */

static mercer_status work_fill(work *w, mrc_centers *centers, mrc_scope *scope, int64_t q, int64_t c)
{
    MRC_TRY(mrc_scope_alloc_zero(scope, &w->rz, 4 * c, sizeof *w->rz, "scalars of conjugate gradients"));
    w->old = w->rz + c;
    w->dkd = w->old + c;
    w->factors = w->dkd + c;
    MRC_TRY(mrc_scope_field(scope, centers, &w->z, c, centers->real, "conjugate gradients"));
    MRC_TRY(mrc_scope_field(scope, centers, &w->d, c, centers->real, "conjugate gradients"));
    MRC_TRY(mrc_scope_field(scope, centers, &w->kd, c, centers->real, "conjugate gradients"));
    MRC_TRY(mrc_scope_matrix(scope, centers->backend, &w->ur, q, c, centers->real, "conjugate gradients"));
    return mrc_scope_matrix(scope, centers->backend, &w->diagonal, c, c, centers->real, "conjugate gradients");
}

/* Compute Z = P^-1 R and rz[j] = r_j' z_j for each column j. */
static mercer_status precondition_pcg(pcg *self, mrc_centers *centers, work *w, const mercer_matrix *r)
{
    mrc_backend *backend = centers->backend;
    MRC_TRY(backend->ops->copy(backend, &w->z, r));
    if (self->coarse.q > 0) {
        MRC_TRY(mrc_centers_inner(centers, &self->coarse.u, r, &w->ur));
        MRC_TRY(backend->ops->scale_rows(backend, &w->ur, self->shrink));
        MRC_TRY(mrc_centers_multiply(centers, 1, &self->coarse.u, &w->ur, 1, &w->z));
    }
    return mrc_centers_column_dots(centers, r, &w->z, w->rz);
}

/* Returns a / b, or 0 if a column is solved or has broken down. */
static double ratio_of(double a, double b)
{
    double ratio = a > 0 && b > 0 ? a / b : 0;
    return isfinite(ratio) ? ratio : 0;
}

/* Compute Y += sign X diag(a / b); columns without a valid a / b do not change. Devices scale columns directly, because
   on a device a product with a diagonal matrix costs as much as with any other matrix. */
static mercer_status add_scaled(mrc_centers *centers, work *w, double sign, const mercer_matrix *x, const double *a,
                                const double *b, const mercer_matrix *y)
{
    mercer_matrix host;
    mrc_backend *backend = centers->backend;
    if (y->memory != MRC_HOST) {
        for (int64_t j = 0; j < x->cols; j++) w->factors[j] = sign * ratio_of(a[j], b[j]);
        return backend->ops->add_columns(backend, x, w->factors, y);
    }
    MRC_TRY(mrc_host_open(centers->backend, &w->diagonal, &host));
    for (int64_t j = 0; j < x->cols; j++) mrc_store(&host, j, j, ratio_of(a[j], b[j]));
    MRC_TRY(mrc_host_close(centers->backend, &w->diagonal, &host, true, MERCER_OK));
    return mrc_centers_multiply(centers, sign, x, &w->diagonal, 1, y);
}

/* Compute KD = K(Z,Z) D. Rounds D to half precision first if that saves time. */
static mercer_status multiply_pcg(pcg *self, mrc_centers *centers, const mercer_matrix *d, const mercer_matrix *kd)
{
    if (!self->half.memory) return mrc_centers_times(centers, self->cached.data ? &self->cached : NULL, d, kd);
    mrc_pair pair = mrc_points_pair(centers, &centers->z, &centers->z);
    pair.short_weights = mrc_centers_short_weights(centers, d->cols);
    if (pair.short_weights) MRC_TRY(centers->backend->ops->round_half(centers->backend, d));
    mrc_count_product(centers, centers->p, centers->p, d->cols);
    return centers->backend->ops->kernel_transpose(centers->backend, &pair, d, kd, &self->half);
}

static mercer_status pcg_step(pcg *self, mrc_centers *centers, work *w, const mercer_matrix *r,
                              const mercer_matrix *theta)
{
    MRC_TRY(multiply_pcg(self, centers, &w->d, &w->kd));
    MRC_TRY(mrc_centers_column_dots(centers, &w->d, &w->kd, w->dkd));
    MRC_TRY(add_scaled(centers, w, 1, &w->d, w->rz, w->dkd, theta));
    MRC_TRY(add_scaled(centers, w, -1, &w->kd, w->rz, w->dkd, r));
    memcpy(w->old, w->rz, (size_t)r->cols * sizeof *w->old);
    MRC_TRY(precondition_pcg(self, centers, w, r));
    MRC_TRY(add_scaled(centers, w, 1, &w->d, w->rz, w->old, &w->z)); /* the new direction */
    mercer_matrix direction = w->z;
    w->z = w->d;
    w->d = direction;
    return MERCER_OK;
}

static mercer_status run_pcg(mrc_projector *projector, work *w, const mercer_matrix *r, const mercer_matrix *theta,
                             double *passes)
{
    mrc_centers *centers = projector->centers;
    pcg *self = projector->state;
    double wanted = fmax(projector->options.tolerance, mrc_unit_roundoff(centers->real)) * projector->h_norm;
    MRC_TRY(precondition_pcg(self, centers, w, r));
    MRC_TRY(centers->backend->ops->copy(centers->backend, &w->d, &w->z));
    for (int64_t pass = 0; pass < projector->options.passes; pass++) {
        double left;
        MRC_TRY(pcg_step(self, centers, w, r, theta));
        MRC_TRY(mrc_centers_norm(centers, r, &left));
        *passes += 1;
        mrc_log(centers->context, MERCER_LOG_DEBUG, "projection (pcg): pass %lld, residual %.3e", (long long)pass + 1,
                left / projector->h_norm);
        if (!(left > wanted) || !isfinite(left)) break;
    }
    return MERCER_OK;
}

static mercer_status project_pcg(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                                 mrc_projection *report)
{
    work w;
    const pcg *self = projector->state;
    MRC_SCOPE(scope, projector->centers->context);
    MRC_TRY(work_fill(&w, projector->centers, &scope, self->coarse.q, h->cols));
    return run_pcg(projector, &w, h, theta, &report->passes);
}

static const char *pcg_suits(const mrc_planner *planner)
{
    double p = (double)planner->problem.p, stored = (double)planner->problem.real_size * p * p;
    return stored <= 0.45 * (double)planner->plan->budget ? "K(Z,Z) fits, and its factor would be slower" : NULL;
}

static void pcg_cost(const mrc_problem *problem, const mrc_projector_options *options, mrc_cost *once, mrc_cost *each)
{
    double p = (double)problem->p, d = (double)problem->d, c = (double)problem->c, e = (double)problem->real_size;
    double q = (double)mrc_max(0, mrc_min(options->eigenpairs, mrc_min(options->nystrom, problem->p) - 1));
    double stored = options->store ? p * p * e : 0, missing = options->store ? 0 : 1;
    double passes = (double)options->passes,
           strips = ceil(p / (double)mrc_collect_rows(problem->p, (int)mrc_max(1, problem->shards)));
    mrc_coarse_cost(problem, options->nystrom, options->eigenpairs, once);
    once->held.shared += stored, once->held.replicated += 8 * q;
    /* K(Z,Z) does not exist yet while the coarse space is computed. */
    mrc_bytes making = {0, once->peak.replicated - stored}, working = {3 * p * c * e, (q * c + c * c) * e + 4 * 8 * c};
    once->peak = mrc_bytes_larger(making, working);
    if (options->store) once->flops += 2 * p * p * mrc_problem_features(problem);
    each->flops = passes * 2 * p * p * (c + missing * mrc_problem_features(problem));
    mrc_cost_sums(each, problem, q * c * e, passes + 1);
    mrc_cost_sums(each, problem, 8 * c, 3 * passes + 1);
    mrc_cost_rows(each, problem, passes * p * (c * e + missing * d * (double)problem->point_size),
                  passes * strips * (1 + missing));
}

const mrc_projector_ops mrc_projector_pcg = {.name = "pcg",
                                             .description = "conjugate gradients on a stored K(Z,Z)",
                                             .uses = MRC_PROJECTOR_SAMPLES | MRC_PROJECTOR_REPEATS,
                                             .stores = MRC_STORES_MATRIX,
                                             .passes = 30,
                                             .tolerance = 0.03,
                                             .suits = pcg_suits,
                                             .create = create_pcg,
                                             .destroy = destroy_pcg,
                                             .project = project_pcg,
                                             .cost = pcg_cost};

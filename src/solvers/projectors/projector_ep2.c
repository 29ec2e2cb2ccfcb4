/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EigenPro 2 over the centers, the projection of the papers, with an exact residual.
 *
 *   E, Lambda, t, D: eigensystem of a sample Z_s of the centers          G = K(Z,Z_s) E (p, q), once: p s d
 *   theta = 0, r = h; for each batch b of m centers of a random order:    eta stands for eta/m of the step rule
 *       u = eta D G_b' r_b                          G_b' = E' K(Z_s,Z_b): rows of G, no evaluation
 *       theta_b += eta r_b;   theta_s -= E u        the gradient of the batch is -r_b
 *       r -= K(Z,Z_b) (eta r_b) - G u               p m d; exact up to rounding
 *
 * A pass evaluates every entry of K(Z,Z) once: p^2 (d + c), and 2 p q c per batch. m is the critical batch beta/t of
 * the sample's eigensystem, with beta = max_z K(z,z) - sum_i D_i G_i(z)^2 over all centers z (printed rule: max_z
 * K(z,z)). m is limited to 8,192, which bounds the memory and does not slow convergence, because smaller batches give
 * more steps per pass. Memory: p q for G, s q, m (d + c + q) for a batch.
 *
 * Stops after the pass in which r reaches the tolerance. The step rule relies on the sample. If the spectrum falls so
 * fast that a few centers outside of the sample dominate its tail, r may be larger than h after a pass. Then gamma is
 * halved permanently. Because r is known exactly, later passes repair the damage.
 */
#include "solvers/projectors/projector.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

enum { MOST_BATCH = 8192 }; /* see the top of this file */

#define BETA_MARGIN 1.05 /* margin for rounding; beta itself is not an estimate */

typedef struct ep2 {
    mrc_eigensystem system;
    int64_t *ids;    /* (s) indices of the centers in the sample */
    mercer_matrix g; /* field (rows, q) */
    mrc_step_rule rule;
    double beta, gamma;
    int64_t m;
} ep2;

typedef struct work {
    int64_t *ids;            /* (m) */
    double *factors;         /* (max(m, q)) row factors */
    mercer_matrix points;    /* (m, d) */
    mercer_matrix r, g;      /* (m, c), (m, q) rows of the batch */
    mercer_matrix u, sample; /* (q, c), (s, c) E u */
} work;

static void destroy_ep2(mrc_projector *projector)
{
    mrc_centers *centers = projector->centers;
    ep2 *self = projector->state;
    mrc_matrix_destroy(centers->backend, &self->g);
    mrc_eigensystem_destroy(&self->system, centers->backend);
    mrc_free(centers->context, self->ids);
    mrc_free(centers->context, self);
}

/* Find beta, the maximum over all centers of K(z,z) - sum_i D_i G_i(z)^2, the diagonal of the preconditioned kernel. G
   makes this cheap; with an estimate from some centers, steps could diverge at an outlier. */
static mercer_status find_beta(ep2 *self, mrc_centers *centers)
{
    mrc_backend *backend = centers->backend;
    mercer_matrix diagonal, own, g;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_field(&scope, centers, &diagonal, 1, MERCER_F64, "kernel diagonal"));
    MRC_TRY(backend->ops->kernel_diagonal(backend, centers->kernel, &centers->z, &diagonal));
    MRC_TRY(mrc_scope_open(&scope, backend, &diagonal, &own));
    MRC_TRY(mrc_scope_open(&scope, backend, &self->g, &g));
    self->beta = self->system.tail;
    for (int64_t i = 0; i < diagonal.rows; i++) {
        double value = mrc_load(&own, i, 0);
        for (int64_t j = 0; j < self->system.q && self->rule == MRC_STEP_SHARP; j++)
            value -= self->system.d[j] * mrc_load(&g, i, j) * mrc_load(&g, i, j);
        self->beta = fmax(self->beta, self->rule == MRC_STEP_SHARP ? BETA_MARGIN * value : value);
    }
    return mrc_comm_largest(centers->comm, &self->beta);
}

static mercer_status create_ep2(mrc_projector *projector)
{
    mrc_centers *centers = projector->centers;
    const mrc_projector_options *options = &projector->options;
    int64_t s = mrc_max(1, mrc_min(options->nystrom, centers->p));
    MRC_TRY(mrc_alloc_zero(centers->context, &projector->state, 1, sizeof(ep2), "the EigenPro 2 projector"));
    ep2 *self = projector->state;
    self->gamma = options->gamma, self->rule = options->rule;
    MRC_TRY(mrc_alloc(centers->context, &self->ids, s, sizeof *self->ids, "the sample of the centers"));
    MRC_TRY(mrc_sample_system(&self->system, centers, s, options->eigenpairs,
                              (mrc_rng){options->seed, MRC_RANDOM_SAMPLE}, self->ids));
    MRC_TRY(mrc_field_create(centers, &self->g, self->system.q, centers->real, "the preconditioner of the projection"));
    MRC_TRY(mrc_centers_apply(centers, &self->system.points, &self->system.vectors, &self->g, false));
    MRC_TRY(find_beta(self, centers));
    self->m = mrc_critical_batch(self->beta, self->system.tail, mrc_min(MOST_BATCH, centers->p));
    return MERCER_OK;
}

/* ---- One projection ------------------------------------------------------------------------------------------ */

static mercer_status work_fill(work *w, const ep2 *self, mrc_centers *centers, mrc_scope *scope, int64_t c)
{
    mrc_backend *backend = centers->backend;
    int64_t m = self->m, q = self->system.q;
    MRC_TRY(mrc_scope_alloc(scope, &w->ids, m, sizeof *w->ids, "the numbers of a batch"));
    MRC_TRY(mrc_scope_alloc(scope, &w->factors, mrc_max(m, q), sizeof *w->factors, "the factors of a batch"));
    MRC_TRY(mrc_scope_points(scope, centers, &w->points, m, "a batch of centers"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &w->r, m, c, centers->real, "the residual of a batch"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &w->g, m, q, centers->real, "the preconditioner of a batch"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &w->u, q, c, centers->real, "the correction of a batch"));
    return mrc_scope_matrix(scope, backend, &w->sample, self->system.s, c, centers->real, "the correction of a batch");
}

/* Compute u = eta D G_b' r_b;  theta_s -= E u;  r += G u. */
static mercer_status correct(ep2 *self, mrc_centers *centers, work *w, double eta, const mercer_matrix *r_batch,
                             const mercer_matrix *r, const mercer_matrix *theta)
{
    mrc_backend *backend = centers->backend;
    if (self->system.q == 0) return MERCER_OK;
    mercer_matrix g = mrc_rows(&w->g, 0, r_batch->rows);
    MRC_TRY(mrc_centers_collect(centers, &self->g, w->ids, g.rows, &g));
    MRC_TRY(mrc_counted_gemm(centers, true, false, 1, &g, r_batch, 0, &w->u));
    for (int64_t i = 0; i < self->system.q; i++) w->factors[i] = eta * self->system.d[i];
    MRC_TRY(backend->ops->scale_rows(backend, &w->u, w->factors));
    MRC_TRY(mrc_counted_gemm(centers, false, false, 1, &self->system.vectors, &w->u, 0, &w->sample));
    MRC_TRY(mrc_centers_scatter_add(centers, theta, self->ids, self->system.s, &w->sample, -1));
    return mrc_centers_multiply(centers, 1, &self->g, &w->u, 1, r);
}

/* Takes a step on a batch of centers. */
static mercer_status batch(ep2 *self, mrc_centers *centers, work *w, int64_t count, const mercer_matrix *r,
                           const mercer_matrix *theta)
{
    mrc_backend *backend = centers->backend;
    double eta = mrc_step_over_batch(self->rule, self->beta, self->system.tail, count, self->gamma, 0);
    mercer_matrix points = mrc_rows(&w->points, 0, count), r_batch = mrc_rows(&w->r, 0, count);
    MRC_TRY(mrc_centers_collect(centers, NULL, w->ids, count, &points));
    MRC_TRY(mrc_centers_collect(centers, r, w->ids, count, &r_batch));
    MRC_TRY(correct(self, centers, w, eta, &r_batch, r, theta));
    for (int64_t i = 0; i < count; i++) w->factors[i] = -eta;
    MRC_TRY(backend->ops->scale_rows(backend, &r_batch, w->factors)); /* -eta r_b */
    MRC_TRY(mrc_centers_scatter_add(centers, theta, w->ids, count, &r_batch, -1));
    return mrc_centers_apply(centers, &points, &r_batch, r, true);
}

static mercer_status run_ep2(mrc_projector *projector, work *w, const mercer_matrix *r, const mercer_matrix *theta,
                             double *passes)
{
    mrc_centers *centers = projector->centers;
    const mrc_projector_options *options = &projector->options;
    ep2 *self = projector->state;
    double before = projector->h_norm;
    for (int64_t pass = 0; pass < options->passes; pass++) {
        for (int64_t first = 0; first < centers->p; first += self->m) {
            int64_t count = mrc_min(self->m, centers->p - first);
            mrc_random_permutations(centers->context->threads,
                                    (mrc_rng){options->seed, MRC_RANDOM_PASS(projector->calls, pass)}, centers->p,
                                    first, count, w->ids);
            MRC_TRY(batch(self, centers, w, count, r, theta));
        }
        double left;
        MRC_TRY(mrc_centers_norm(centers, r, &left));
        *passes += 1;
        mrc_log(centers->context, MERCER_LOG_DEBUG, "projection (ep2): pass %lld, residual %.3e", (long long)pass + 1,
                left / projector->h_norm);
        if (left <= options->tolerance * projector->h_norm || !isfinite(left)) break;
        if (left > fmax(before, projector->h_norm)) self->gamma /= 2; /* the sample has underestimated the spectrum */
        before = left;
    }
    return MERCER_OK;
}

static mercer_status project_ep2(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                                 mrc_projection *report)
{
    work w;
    MRC_SCOPE(scope, projector->centers->context);
    MRC_TRY(work_fill(&w, projector->state, projector->centers, &scope, h->cols));
    return run_ep2(projector, &w, h, theta, &report->passes);
}

static void ep2_cost(const mrc_problem *problem, const mrc_projector_options *options, mrc_cost *once, mrc_cost *each)
{
    int64_t rows = mrc_max(1, mrc_min(options->nystrom, problem->p)), held, total;
    mrc_sample_system_bytes(problem, rows, options->eigenpairs, &held, &total);
    double p = (double)problem->p, d = (double)problem->d, c = (double)problem->c, e = (double)problem->real_size;
    double s = (double)rows, q = (double)mrc_max(0, mrc_min(options->eigenpairs, rows - 1)),
           passes = (double)options->passes;
    /* m is the upper limit; the critical batch of the data may be smaller */
    double m = fmin(MOST_BATCH, p), points = d * (double)problem->point_size;
    once->held = (mrc_bytes){p * q * e, (double)held + 8 * s};
    once->peak.replicated =
        fmax(fmax(m * (points + (c + q) * e + 16) + (q + s) * c * e, 8 * p), (double)(total - held) - p * q * e);
    double pair = mrc_problem_features(problem);
    once->flops = 2 * p * s * (pair + q) + 40 * s * s * q;
    once->alike = 40 * s * s * q;
    each->flops = passes * 2 * p * p * (pair + c);
    mrc_cost_sums(each, problem, 8 * c, passes);
    mrc_cost_rows(each, problem, passes * p * (points + (c + q) * e), 3 * passes * ceil(p / m));
}

const mrc_projector_ops mrc_projector_ep2 = {.name = "ep2",
                                             .description = "EigenPro 2 over the centers, as in the papers",
                                             .uses = MRC_PROJECTOR_SAMPLES | MRC_PROJECTOR_REPEATS,
                                             .passes = 1,
                                             .create = create_ep2,
                                             .destroy = destroy_ep2,
                                             .project = project_ep2,
                                             .cost = ep2_cost};

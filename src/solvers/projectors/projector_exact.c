/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact projection: one Cholesky factor of K(Z,Z), two triangular solves.
 *
 *   L L' = K(Z,Z) + mu I                       (p, p) f64, once: p^2 d for K, p^3/3 for L; 8 p^2 bytes on every process
 *   theta = round((L L')^-1 h)                 (p, c), 2 p^2 c multiply-adds
 *   r = h - L (L' theta) + mu theta            = h - K(Z,Z) theta with the stored, rounded theta, in double: 2 p^2 c
 *
 * mu = options.jitter, 0 by default. mu is raised in two cases: if the factorization fails (K(Z,Z) is singular in
 * double), and if theta is so large that rounding it to type real makes K theta inaccurate; mu then becomes 10 u p of
 * the mean diagonal, which limits the effect of rounding (spd.c). With mu > 0 the solution is refined, theta += (L
 * L')^-1 r, as long as each step halves r. This removes the bias mu theta, except in directions with eigenvalues below
 * the rounding errors.
 *
 * With several ranks, each rank solves the whole system and uses its own rows, so p is limited by the memory of one
 * process.
 */
#include "solvers/projectors/projector.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/operators/spd.h"
#include "solvers/planner.h"

#include <math.h>

/* Each refinement at least halves the residual, so ten refinements reduce it by a factor of 1000 or more. */
enum { MOST_REFINEMENTS = 10 };

typedef struct exact {
    mrc_scope held;       /* owns both matrices */
    mercer_matrix points; /* Z (p, d), needed again if the shift must be raised */
    mrc_factor factor;
} exact;

/* The whole system; each process has its own copy. */
typedef struct whole {
    mercer_matrix h, theta, trial; /* (p, c) real */
    mercer_matrix x, y, r;         /* (p, c) f64 */
} whole;

static void destroy_exact(mrc_projector *projector)
{
    exact *self = projector->state;
    mrc_scope_close(&self->held);
    mrc_free(projector->centers->context, self);
}

static mercer_status create_exact(mrc_projector *projector)
{
    mrc_centers *centers = projector->centers;
    int64_t p = centers->p;
    MRC_TRY(mrc_alloc_zero(centers->context, &projector->state, 1, sizeof(exact), "the exact projector"));
    exact *self = projector->state;
    self->held.context = centers->context;
    self->factor.relative = projector->options.jitter;
    MRC_TRY(mrc_centers_gather_all(centers, &self->held, &self->points));
    MRC_TRY(mrc_scope_matrix(&self->held, centers->backend, &self->factor.l, p, p, MERCER_F64, "the factor of K(Z,Z)"));
    return mrc_factor_kernel(centers, &self->points, &self->factor);
}

/* ---- One projection ------------------------------------------------------------------------------------------ */

/* Compute r = h - K theta for a theta of type real; set *left to |r|. */
static mercer_status measure_exact(exact *self, mrc_centers *centers, const whole *system, const mercer_matrix *theta,
                                   double *left)
{
    mrc_backend *backend = centers->backend;
    const mercer_matrix *l = &self->factor.l;
    MRC_TRY(backend->ops->copy(backend, &system->x, theta));
    MRC_TRY(backend->ops->copy(backend, &system->r, &system->h));
    MRC_TRY(mrc_counted_gemm(centers, true, false, 1, l, &system->x, 0, &system->y));
    MRC_TRY(mrc_counted_gemm(centers, false, false, -1, l, &system->y, 1, &system->r));
    MRC_TRY(backend->ops->axpby(backend, self->factor.shift, &system->x, 1, &system->r));
    return mrc_matrix_norm(backend, &system->r, left);
}

/* Compute theta = (L L')^-1 h. Raise the shift if rounding theta would make K theta inaccurate. */
static mercer_status solve_exact(mrc_projector *projector, const whole *system)
{
    mrc_centers *centers = projector->centers;
    mrc_backend *backend = centers->backend;
    exact *self = projector->state;
    double safe = mrc_factor_safe_shift(centers->real, centers->p), size;
    for (;;) {
        MRC_TRY(backend->ops->copy(backend, &system->x, &system->h));
        MRC_TRY(mrc_spd_solve(centers, &self->factor.l, &system->x));
        MRC_TRY(mrc_matrix_norm(backend, &system->x, &size));
        if (!mrc_factor_too_rough(&self->factor, centers->real, size, projector->h_norm)) break;
        if (self->factor.relative >= safe) break;
        mrc_log(centers->context, MERCER_LOG_WARNING,
                "projection: K(Z,Z) is too ill-conditioned for weights in %s; %.1e of its mean diagonal is added",
                mrc_dtype_name(centers->real), safe);
        self->factor.relative = safe;
        MRC_TRY(mrc_factor_kernel(centers, &self->points, &self->factor));
    }
    return backend->ops->copy(backend, &system->theta, &system->x);
}

/* Refine theta += (L L')^-1 r as long as each step halves r. */
static mercer_status refine_exact(mrc_projector *projector, const whole *system)
{
    mrc_centers *centers = projector->centers;
    mrc_backend *backend = centers->backend;
    exact *self = projector->state;
    double left, next;
    MRC_TRY(measure_exact(self, centers, system, &system->theta, &left));
    for (int i = 0; i < MOST_REFINEMENTS && self->factor.shift > 0 && left > 0; i++) {
        MRC_TRY(mrc_spd_solve(centers, &self->factor.l, &system->r));
        MRC_TRY(backend->ops->copy(backend, &system->x, &system->theta));
        MRC_TRY(backend->ops->axpby(backend, 1, &system->x, 1, &system->r));
        MRC_TRY(backend->ops->copy(backend, &system->trial, &system->r));
        MRC_TRY(measure_exact(self, centers, system, &system->trial, &next));
        if (!(next < left / 2))
            return measure_exact(self, centers, system, &system->theta, &left); /* restore r of the last theta */
        MRC_TRY(backend->ops->copy(backend, &system->theta, &system->trial));
        left = next;
    }
    return MERCER_OK;
}

static mercer_status project_exact(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                                   mrc_projection *report)
{
    mrc_centers *centers = projector->centers;
    mrc_backend *backend = centers->backend;
    whole system;
    mercer_matrix *const all[] = {&system.h, &system.theta, &system.trial, &system.x, &system.y, &system.r};
    MRC_SCOPE(scope, centers->context);
    for (int i = 0; i < 6; i++)
        MRC_TRY(mrc_scope_matrix(&scope, backend, all[i], centers->p, h->cols, i < 3 ? centers->real : MERCER_F64,
                                 "the system of a projection"));
    MRC_TRY(mrc_centers_range(centers, h, 0, centers->p, &system.h));
    MRC_TRY(solve_exact(projector, &system));
    MRC_TRY(refine_exact(projector, &system));
    mercer_matrix own = mrc_rows(&system.theta, centers->first, centers->z.rows);
    mercer_matrix left = mrc_rows(&system.r, centers->first, centers->z.rows);
    report->passes = 1;
    MRC_TRY(backend->ops->axpby(backend, 1, &own, 1, theta));
    return backend->ops->copy(backend, h, &left);
}

/* Return a reason to use the projector if K(Z,Z) in double, factorized in place, fits into memory and the time of its
   factor pays off; else NULL. */
static const char *exact_suits(const mrc_planner *planner)
{
    const mrc_problem *problem = &planner->problem;
    double p = (double)problem->p, work = 3 * (double)problem->n * p * mrc_problem_features(problem);
    bool fits = 8 * p * p <= 0.45 * (double)planner->plan->budget;
    bool pays = p * p * p / 3 / planner->rate_double <= (double)planner->public_plan->epochs * work / planner->rate;
    return fits && pays ? "its factor fits and is faster" : NULL;
}

static void exact_cost(const mrc_problem *problem, const mrc_projector_options *options, mrc_cost *once, mrc_cost *each)
{
    double p = (double)problem->p, c = (double)problem->c, e = (double)problem->real_size;
    mrc_cost coarse;
    mrc_coarse_cost(problem, options->nystrom, options->eigenpairs, &coarse);
    once->held.replicated = 8 * p * p;
    if (problem->ranks > 1) once->held.replicated += p * (double)(problem->d * problem->point_size);
    once->peak.replicated = fmax(p * c * (3 * e + 3 * 8), 16 * p);
    /* Factorizations of small matrices are slower than the nominal rate. Adding the cost of a coarse space compensates
       for that. */
    once->flops = coarse.flops + 2 * p * p * mrc_problem_features(problem);
    once->doubles = p * p * p / 3;
    once->alike = mrc_cost_flops(once);
    each->doubles = each->alike = 4 * p * p * c;
    mrc_cost_rows(each, problem, p * c * e, 1);
}

const mrc_projector_ops mrc_projector_exact = {.name = "exact",
                                               .description = "one Cholesky factor of K(Z,Z)",
                                               .stores = MRC_STORES_FACTOR,
                                               .passes = 1,
                                               .suits = exact_suits,
                                               .create = create_exact,
                                               .destroy = destroy_exact,
                                               .project = project_exact,
                                               .cost = exact_cost};

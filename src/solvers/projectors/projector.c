/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code shared by the projectors: their list, their creation, and the steps of every projection.
 *
 *   K(Z,Z) theta = h,   r = h - K(Z,Z) theta,   reported: |r| / |h|                    h, theta, r fields (rows, c)
 *
 * Each kind of projector updates r during its iterations and returns it in h. The norm of r is computed here, so that
 * the reported residual is exact for all kinds. Cost: O(p c), in addition to the cost of the kind.
 */
#include "solvers/projectors/projector.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

extern const mrc_projector_ops mrc_projector_exact, mrc_projector_ep2, mrc_projector_pcg, mrc_projector_bgs;

/* In order of preference: the planner uses the first projector whose `suits` returns a reason. */
static const mrc_projector_ops *const kinds[] = {
    &mrc_projector_exact,
    &mrc_projector_ep2,
    &mrc_projector_pcg,
    &mrc_projector_bgs,
};

const mrc_projector_ops *mrc_projector_row(int i)
{
    return i >= 0 && i < (int)(sizeof kinds / sizeof *kinds) ? kinds[i] : NULL;
}

const mrc_projector_ops *mrc_projector_find(const char *name)
{
    const mrc_projector_ops *row = NULL;
    for (int i = 0; name && (row = mrc_projector_row(i)); i++)
        if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

mrc_projector_options mrc_projector_options_of(const mercer_plan *plan, const mrc_projector_ops *ops)
{
    return (mrc_projector_options){.nystrom = plan->projector_nystrom,
                                   .eigenpairs = plan->projector_eigenpairs,
                                   .passes = plan->projector_passes,
                                   .tolerance = ops->tolerance,
                                   .block = plan->projector_block,
                                   .gamma = 0.95,
                                   .store = ops->stores == MRC_STORES_MATRIX};
}

void mrc_projector_cost(const mrc_projector_ops *ops, const mrc_problem *problem, const mrc_projector_options *options,
                        mrc_cost *once, mrc_cost *each)
{
    *once = *each = (mrc_cost){0};
    ops->cost(problem, options, once, each);
    mrc_cost_sums(each, problem, (double)(8 * problem->c), 2); /* |h| and the norm of the residual */
}

/* ---- Life ---------------------------------------------------------------------------------------------------- */

/* Check the ranges of the options. */
static mercer_status check_options(mercer_context *context, const mrc_projector_options *options)
{
    if (options->nystrom < 0 || options->eigenpairs < 0 || options->passes < 1 || options->block < 1)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "projector: sample %lld and eigenpairs %lld must be >= 0, passes %lld and block %lld >= 1",
                        (long long)options->nystrom, (long long)options->eigenpairs, (long long)options->passes,
                        (long long)options->block);
    if (!(options->tolerance >= 0) || !(options->gamma > 0 && options->gamma < 1) || !(options->jitter >= 0))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "projector: tolerance %g and jitter %g must be >= 0, the step factor %g between 0 and 1",
                        options->tolerance, options->jitter, options->gamma);
    return MERCER_OK;
}

mercer_status mrc_projector_create(mrc_projector **out, const mrc_projector_ops *ops, mrc_centers *centers,
                                   const mrc_projector_options *options)
{
    *out = NULL;
    MRC_TRY(check_options(centers->context, options));
    if (centers->p < 1) return mrc_fail(centers->context, MERCER_ERROR_SHAPE, "projector: there are no centers");
    MRC_TRY(mrc_alloc(centers->context, out, 1, sizeof **out, "the projector"));
    **out = (mrc_projector){.ops = ops, .centers = centers, .options = *options};
    mercer_status status = ops->create(*out);
    if (status == MERCER_OK) return MERCER_OK;
    mrc_projector_free(*out);
    *out = NULL;
    return status;
}

void mrc_projector_free(mrc_projector *projector)
{
    if (!projector) return;
    if (projector->state) projector->ops->destroy(projector);
    mrc_free(projector->centers->context, projector);
}

/* ---- One projection ------------------------------------------------------------------------------------------ */

/* Fail with theta = 0, so that the caller cannot use a diverged solution. */
static mercer_status not_finite(mrc_projector *projector, const mercer_matrix *theta, const char *what)
{
    MRC_TRY(projector->centers->backend->ops->clear(projector->centers->backend, theta));
    return mrc_fail(projector->centers->context, MERCER_ERROR_NUMERIC, "projection (%s): %s is not finite",
                    projector->ops->name, what);
}

mercer_status mrc_project(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                          mrc_projection *report)
{
    mrc_centers *centers = projector->centers;
    double left;
    *report = (mrc_projection){0};
    MRC_TRY(centers->backend->ops->clear(centers->backend, theta));
    MRC_TRY(mrc_centers_norm(centers, h, &projector->h_norm));
    if (projector->h_norm == 0) return MERCER_OK;
    if (!isfinite(projector->h_norm)) return not_finite(projector, theta, "the right-hand side");
    MRC_TRY(projector->ops->project(projector, h, theta, report));
    projector->calls++;
    MRC_TRY(mrc_centers_norm(centers, h, &left));
    if (!isfinite(left)) return not_finite(projector, theta, "the residual");
    report->residual = left / projector->h_norm;
    return MERCER_OK;
}

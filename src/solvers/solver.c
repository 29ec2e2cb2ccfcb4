/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of solvers. Most solvers are presets of the iteration, which differ in these parts:
 *
 *   name        centers  eigensystem  batch  projection
 *   richardson  Z = X    q = 0        m = n  none needed           kernel gradient descent
 *   pegasos     Z = X    q = 0        m      none needed           stochastic gradient descent
 *   ep1         Z = X    s = n        m      none needed           EigenPro 1
 *   ep2         Z = X    s < n        m      none needed           EigenPro 2
 *   nytro       any      q = 0        m = n  exact, T = 1          NYTRO
 *   ep3-exact   any      s = n        m = n  exact, T = 1          EigenPro 3, exact projection
 *   ep3         any      s < n        m      EigenPro 2, T = 1     EigenPro 3 with sharper steps, averaged
 *   paper       any      s < n        m      EigenPro 2, T = 1     EigenPro 3 as printed: beta, steps, sizes, 50 epochs
 *   ep4         any      s < n        m      delayed, T = p/m      EigenPro 4, projector chosen by size
 *   gd          any      q = 0        m = n  identity              gradient descent in R^p
 */
#include "solvers/solver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern const mrc_solver_ops mrc_krr_ops, mrc_direct_ops, mrc_cg_ops, mrc_iteration_ops;

enum {
    STEPS = MRC_USES_EPOCHS | MRC_USES_SIZES | MRC_USES_STEPS,
    PAIRS = MRC_USES_EIGENPAIRS,
    PROJECTS = STEPS | MRC_USES_PROJECTOR,
    ON_SAMPLES = STEPS | MRC_NEEDS_SAMPLES
};

static const mrc_solver table[] = {
    {"krr", "kernel ridge regression: the centers are the samples, one factorization", &mrc_krr_ops,
     MRC_FOR_AUTO | MRC_CONVERGES | MRC_NEEDS_SAMPLES, 0.5, .preset = {0}},
    {"direct", "dense normal equations in the RKHS metric, double precision", &mrc_direct_ops,
     MRC_FOR_AUTO | MRC_CONVERGES, 0.5, .preset = {0}},
    {"cg", "preconditioned conjugate gradients on the normal equations", &mrc_cg_ops,
     MRC_FOR_AUTO | MRC_CONVERGES | MRC_USES_EPOCHS | MRC_NEEDS_ROUGHNESS, .preset = {0}},
    {"ep4", "EigenPro with delayed projection", &mrc_iteration_ops, MRC_FOR_AUTO | PROJECTS | PAIRS | MRC_USES_PERIOD,
     .preset = {.gamma = 0.95, .average = MERCER_ON}},
    {"ep3", "EigenPro 3: a projection after every batch", &mrc_iteration_ops, PROJECTS | PAIRS,
     .preset = {.period = 1, .projector = "ep2", .gamma = 0.5, .average = MERCER_AUTO}},
    {"paper", "EigenPro 3 as printed in \"Toward Large Kernel Models\"", &mrc_iteration_ops, PROJECTS | PAIRS,
     .preset = {.period = 1, .projector = "ep2", .rule = MRC_STEP_PRINTED, .gamma = 0.5, .average = MERCER_OFF}},
    {"ep3-exact", "EigenPro 3 with full batches and exact projection", &mrc_iteration_ops, PROJECTS | PAIRS,
     .preset = {.whole_sample = true,
                .whole_batch = true,
                .period = 1,
                .projector = "exact",
                .gamma = 0.95,
                .average = MERCER_OFF}},
    {"ep2", "EigenPro 2: the centers are the samples", &mrc_iteration_ops, ON_SAMPLES | PAIRS,
     .preset = {.update = MRC_UPDATE_COORDINATES, .gamma = 0.95, .average = MERCER_AUTO}},
    {"ep1", "EigenPro 1: ep2 with the eigensystem of all samples", &mrc_iteration_ops, ON_SAMPLES | PAIRS,
     .preset = {.update = MRC_UPDATE_COORDINATES, .whole_sample = true, .gamma = 0.95, .average = MERCER_AUTO}},
    {"richardson", "kernel gradient descent on full batches", &mrc_iteration_ops, ON_SAMPLES,
     .preset = {.update = MRC_UPDATE_COORDINATES, .whole_batch = true, .gamma = 0.95, .average = MERCER_OFF}},
    {"pegasos", "kernel stochastic gradient descent without preconditioner", &mrc_iteration_ops, ON_SAMPLES,
     .preset = {.update = MRC_UPDATE_COORDINATES, .gamma = 0.95, .average = MERCER_AUTO}},
    {"nytro", "full-batch gradient descent in the span of the centers", &mrc_iteration_ops, PROJECTS,
     .preset = {.whole_batch = true, .period = 1, .projector = "exact", .gamma = 0.95, .average = MERCER_OFF}},
    {"gd", "gradient descent on the weights", &mrc_iteration_ops, STEPS,
     .preset = {.update = MRC_UPDATE_PLAIN, .whole_batch = true, .gamma = 0.95, .average = MERCER_OFF}},
};

const mrc_solver *mrc_solver_row(int i)
{
    return i >= 0 && i < (int)(sizeof table / sizeof *table) ? &table[i] : NULL;
}

const mrc_solver *mrc_solver_find(const char *name)
{
    const mrc_solver *row;
    for (int i = 0; name && (row = mrc_solver_row(i)); i++)
        if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

const mrc_solver *mrc_solver_fallback(void)
{
    const mrc_solver *row, *last = NULL;
    for (int i = 0; (row = mrc_solver_row(i)); i++)
        if (row->traits & MRC_FOR_AUTO) last = row;
    return last;
}

bool mrc_name_is_auto(const char *name)
{
    return !name || strcmp(name, "auto") == 0;
}

/* ---- Plans and jobs ------------------------------------------------------------------------------------------ */

void mrc_plan_say(mercer_plan *plan, const char *format, ...)
{
    size_t used = strlen(plan->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(plan->text + used, sizeof plan->text - used, format, arguments);
    va_end(arguments);
}

double mrc_plan_seconds(const mrc_planner *planner, const mrc_cost *work)
{
    return work->flops / planner->rate + work->doubles / planner->rate_double +
           work->serial / (planner->rate_double / planner->request->threads) + work->read / planner->bandwidth;
}

mercer_status mrc_job_kernel_blocks(mrc_job *job)
{
    const mercer_plan *plan = &job->plan.public_plan;
    return mrc_kernel_blocks_create(&job->kernel_blocks, &job->centers, plan->batch, job->plan.batch_block_bytes,
                                    plan->cache_data ? job->n : 0,
                                    plan->cache_data == MRC_CACHE_HALF ? MERCER_F16 : job->centers.real);
}

mercer_status mrc_job_first_weights(const mrc_job *job, const mercer_matrix *field)
{
    const mrc_backend_ops *ops = job->backend->ops;
    return job->from_zero ? ops->clear(job->backend, field) : ops->copy(job->backend, field, job->target.weights);
}

const mercer_matrix *mrc_job_candidate(const mrc_job *job)
{
    return job->have_best ? &job->best : job->plan.solver->ops->weights(job);
}

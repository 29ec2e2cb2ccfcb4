/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The values of a plan that determine the result of a training: sizes, choices, and the machine that they were made
 * for. A checkpoint stores them. A resumed training restores those that it could choose differently (machine, solver,
 * ridge, arithmetic), makes its plan, and must arrive at the same values. Ranks compare theirs in the same way.
 */
#include "training/trainer.h"

#include "core/matrix.h"
#include "core/numbers/bounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Limits for values of a checkpoint, which may be damaged: far above any machine, and exact as doubles. */
#define MOST_THREADS 1000000
#define MOST_BYTES   9e15

/* The values, in the order of the file: new ones are added at the end. A double holds 53 bits, so 64-bit numbers are
   two values. */
#define PLAN_VALUES(X)                                  \
    X(threads, request->threads)                        \
    X(budget, request->budget)                          \
    X(n, job->n)                                        \
    X(p, request->p)                                    \
    X(d, request->d)                                    \
    X(c, request->c)                                    \
    X(type, request->real)                              \
    X(shards, request->shards)                          \
    X(epochs, plan->epochs)                             \
    X(batch, plan->batch)                               \
    X(nystrom, plan->nystrom)                           \
    X(eigenpairs, plan->eigenpairs)                     \
    X(period, plan->period)                             \
    X(projector_nystrom, plan->projector_nystrom)       \
    X(projector_eigenpairs, plan->projector_eigenpairs) \
    X(projector_passes, plan->projector_passes)         \
    X(projector_block, plan->projector_block)           \
    X(carry, plan->carry)                               \
    X(average, plan->average)                           \
    X(decay, plan->decay)                               \
    X(cache_data, plan->cache_data)                     \
    X(cache_centers, plan->cache_centers)               \
    X(step_factor, plan->step_factor)                   \
    X(lambda, plan->lambda)                             \
    X(half_precision, job->plan.half_chosen)            \
    X(polish, job->options.polish)                      \
    X(patience, job->options.patience)                  \
    X(seed, (uint32_t)job->options.seed)                \
    X(seed_high, job->options.seed >> 32)               \
    X(targets, (uint32_t)targets)                       \
    X(targets_high, targets >> 32)

#define AS_INDEX(name, value) VALUE_##name,
#define AS_NAME(name, value)  #name,
#define AS_VALUE(name, value) (double)(value),

enum { PLAN_VALUES(AS_INDEX) VALUE_COUNT };
static const char *const value_names[] = {PLAN_VALUES(AS_NAME)};
_Static_assert(sizeof value_names / sizeof *value_names <= MRC_STATE_VALUES, "enough capacity for all values");

void mrc_trainer_list_plan(const mrc_trainer *self, mrc_state_plan *out)
{
    const mrc_job *job = &self->job;
    const mrc_plan_request *request = &self->request;
    const mercer_plan *plan = &job->plan.public_plan;
    /* A hash of the target transform: a checkpoint of a training with other targets must not be resumed. */
    const uint64_t targets =
        mrc_units_given(job->target.units) ? mrc_units_print(job->target.units, job->target.weights->cols) : 0;
    const double values[] = {PLAN_VALUES(AS_VALUE)};
    memset(out, 0, sizeof *out);
    memcpy(out->values, values, sizeof values);
    out->count = VALUE_COUNT;
    snprintf(out->solver, sizeof out->solver, "%s", plan->solver);
    snprintf(out->projector, sizeof out->projector, "%s", plan->projector);
}

mercer_status mrc_trainer_agree_on_plan(const mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    struct {
        mrc_state_plan plan;
        char version[16], backend[16];
        double isa;
    } all;
    if (job->comm->ranks == 1) return MERCER_OK;
    memset(&all, 0, sizeof all); /* the padding is compared, too */
    mrc_trainer_list_plan(self, &all.plan);
    snprintf(all.version, sizeof all.version, "%s", mercer_version());
    snprintf(all.backend, sizeof all.backend, "%s", job->backend->ops->name);
    all.isa = (double)job->context->isa;
    return mrc_comm_agree(job->comm, "another plan, version or instruction set", &all, sizeof all);
}

/* ---- Resuming ---------------------------------------------------------------------------------------------------- */

/* Restores the solver that `auto` chose. It is not chosen again, because training may have broken down with the
   planner's first choice and replaced it. */
static void recall_solver(mrc_trainer *self, const char *name)
{
    const mrc_solver *row = mrc_solver_find(name);
    if (!row || !mrc_name_is_auto(self->job.options.solver)) return;
    self->request.solver = row;
    /* it is the replacement of a solver that broke down */
    if (!(row->traits & MRC_CONVERGES)) self->job.options.converge = MERCER_AUTO;
}

mercer_status mrc_trainer_restore_plan(mrc_trainer *self)
{
    mrc_plan_request *request = &self->request;
    mercer_train_options *options = &self->job.options;
    mrc_state_plan saved = {.count = VALUE_COUNT};
    MRC_TRY(mrc_checkpoint_load_plan(self->checkpoint, &saved));
    double threads = saved.values[VALUE_threads], budget = saved.values[VALUE_budget],
           lambda = saved.values[VALUE_lambda];
    if (!mrc_in_range(threads, 1, MOST_THREADS) || !mrc_in_range(budget, 1, MOST_BYTES))
        return mrc_fail(self->job.context, MERCER_ERROR_FORMAT,
                        "the checkpoint is damaged: its plan has %g threads and %g bytes of memory", threads, budget);
    request->threads = (int)threads, request->budget = (int64_t)budget;
    recall_solver(self, saved.solver);
    /* a ridge of 0 means that the fit had chosen it: use its choice again */
    if (options->lambda == 0 && lambda > 0 && lambda <= MRC_RIDGE_MOST) options->lambda = lambda;
    if (saved.values[VALUE_half_precision] == 0) request->accurate = "the resumed training did not use half precision";
    return MERCER_OK;
}

mercer_status mrc_trainer_check_plan(mrc_trainer *self, const mrc_state_plan *plan)
{
    static const char *const other = "the checkpoint belongs to a training with other data or options";
    mercer_context *context = self->job.context;
    mrc_state_plan saved = {.count = VALUE_COUNT};
    MRC_TRY(mrc_checkpoint_load_plan(self->checkpoint, &saved));
    for (int i = 0; i < VALUE_COUNT; i++)
        if (!(saved.values[i] == plan->values[i]))
            return mrc_fail(context, MERCER_ERROR_MISMATCH,
                            "%s: the checkpoint has %s %.17g, but this training has %.17g", other, value_names[i],
                            saved.values[i], plan->values[i]);
    if (strcmp(saved.solver, plan->solver) != 0)
        return mrc_fail(context, MERCER_ERROR_MISMATCH, "%s: the checkpoint has solver %s, but this training has %s",
                        other, saved.solver, plan->solver);
    if (strcmp(saved.projector, plan->projector) == 0) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_MISMATCH, "%s: the checkpoint has projector %s, but this training has %s",
                    other, saved.projector, plan->projector);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the exact solvers share as solvers of a job, and the plan and run of solvers with a single pass. */
#include "solvers/normal/exact_job.h"

#include "core/clock.h"
#include "core/memory.h"

#include <math.h>

mercer_status mrc_exact_create(mrc_job *job, const mercer_matrix *first)
{
    (void)first;
    MRC_TRY(mrc_alloc_zero(job->context, &job->state, 1, sizeof(mrc_exact_job), "the solver"));
    mrc_exact_job *self = job->state;
    MRC_TRY(mrc_field_create(&job->centers, &self->alpha, job->target.weights->cols, job->centers.real, "weights"));
    MRC_TRY(mrc_job_kernel_blocks(job));
    return mrc_job_first_weights(job, &self->alpha);
}

const mercer_matrix *mrc_exact_weights(const mrc_job *job)
{
    return &((const mrc_exact_job *)job->state)->alpha;
}

void mrc_exact_destroy(mrc_job *job)
{
    mrc_exact_job *self = job->state;
    mrc_matrix_destroy(job->backend, &self->alpha);
    mrc_free(job->context, self);
}

mrc_exact_solver mrc_exact_of(mrc_job *job, mrc_kernel_blocks *kernel_blocks)
{
    return (mrc_exact_solver){.centers = &job->centers,
                              .stream = &job->stream,
                              .kernel_blocks = kernel_blocks,
                              .n = job->n,
                              .c = job->target.weights->cols,
                              .units = job->target.units,
                              .lambda = job->options.lambda,
                              .fit = (double)NAN,
                              .memory = job->plan.budget};
}

/* Callback of the sample stream: *stop becomes true if the user has stopped the training. */
static mercer_status poll(void *user, bool *stop)
{
    mrc_job *job = user;
    return job->host->poll(job, stop);
}

mercer_status mrc_exact_run(mrc_job *job, mrc_exact_solver *exact, const mercer_matrix *alpha,
                            mercer_status (*call)(mrc_exact_solver *exact, const mercer_matrix *alpha))
{
    job->stream.poll = poll, job->stream.poll_user = job;
    mercer_status status = call(exact, alpha);
    job->stream.poll = NULL;
    job->times.setup += exact->times.setup, job->times.forward += exact->times.forward;
    job->times.gradient += exact->times.gradient, job->times.solve += exact->times.solve;
    mrc_exact_report(job);
    return status;
}

void mrc_exact_report(mrc_job *job)
{
    job->report.setup_seconds = job->times.setup, job->report.forward_seconds = job->times.forward;
    job->report.gradient_seconds = job->times.gradient, job->report.projection_seconds = job->times.solve;
}

/* ---- One pass, then equations --------------------------------------------------------------------------------- */

mercer_status mrc_exact_choose_once(mrc_planner *planner)
{
    planner->public_plan->batch = mrc_min(MRC_READ_ROWS, planner->problem.n);
    planner->public_plan->epochs = 1;
    planner->public_plan->cache_centers = 1; /* for these solvers: a factor of K(Z,Z) is stored */
    return MERCER_OK;
}

void mrc_exact_complete_plan_once(mrc_planner *planner)
{
    mrc_plan_say(planner->public_plan, "reads batches of %lld\n", (long long)planner->public_plan->batch);
}

/* Report the training loss. Solving equations computes no predictions: unless the solver knows the loss of the returned
   weights, one more pass computes it. */
static mercer_status measure_fit(mrc_job *job, mrc_exact_solver *exact, const mercer_matrix *alpha)
{
    double since = mrc_seconds(), fit = exact->fit;
    if (isnan(fit)) MRC_TRY(mrc_objective(exact, alpha, &fit, NULL));
    job->report.train_loss = exact->mass > 0 ? fit / (exact->mass * (double)exact->c) : 0;
    mrc_lap(&since, &job->times.forward);
    mrc_exact_report(job);
    return MERCER_OK;
}

mercer_status mrc_exact_run_once(mrc_job *job,
                                 mercer_status (*call)(mrc_exact_solver *exact, const mercer_matrix *alpha))
{
    const mercer_matrix *alpha = mrc_exact_weights(job);
    mrc_exact_solver exact = mrc_exact_of(job, &job->kernel_blocks);
    /* Save that training has begun; a resumed run starts from the beginning. */
    MRC_TRY(job->resuming ? job->host->restore(job) : job->host->save(job, alpha, MRC_SAVE_NOW));
    mercer_status status = mrc_exact_run(job, &exact, alpha, call);
    job->report.epochs = 1;
    if (job->stream.stopped) { /* there is no partial solution: the weights are unchanged */
        job->report.stopped = MERCER_STOP_CALLBACK;
        return MERCER_OK;
    }
    MRC_TRY(status);
    MRC_TRY(measure_fit(job, &exact, alpha));
    mercer_progress progress = {.epoch = 1, .epochs = 1, .train_loss = job->report.train_loss, .train_accuracy = NAN};
    job->samples += job->n;
    return job->host->end_epoch(job, alpha, &progress, &job->report.stopped);
}

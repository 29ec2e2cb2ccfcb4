/* SPDX-License-Identifier: BSD-3-Clause */
/* The weights of an exact solver, and its run. */
#include "solvers/normal/exact_job.h"

#include "core/memory.h"

mercer_status mrc_exact_create(mrc_job *job, const mercer_matrix *first)
{
    (void)first;
    MRC_TRY(mrc_alloc_zero(job->context, &job->state, 1, sizeof(mrc_exact_job), "the solver"));
    mrc_exact_job *self = job->state;
    MRC_TRY(mrc_field_create(&job->centers, &self->alpha, job->target.weights->cols, job->centers.real, "weights"));
    MRC_TRY(mrc_job_kernel_blocks(job));
    return job->backend->ops->copy(job->backend, &self->alpha, job->target.weights);
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
                              .memory = job->plan.budget};
}

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

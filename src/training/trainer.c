/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A training run from its first sample to the report: first by the plan (trainer_plan.c); if that breaks down, by the
 * attempts that the plan lists.
 */
#include "training/trainer.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* what the trainer provides to solvers; training depends on solvers, not the other way around */
static const mrc_job_host host = {.refine = mrc_trainer_refine,
                                  .save = mrc_trainer_save,
                                  .restore = mrc_trainer_restore,
                                  .poll = mrc_trainer_poll,
                                  .end_epoch = mrc_trainer_end_epoch,
                                  .validate = mrc_trainer_validate};

/* ---- Creation and release ---------------------------------------------------------------------------------------- */

MRC_RELEASE(release_trainer, mrc_trainer, mrc_trainer_free)

mercer_status mrc_trainer_create(mrc_trainer **out, mercer_model *model, mrc_comm *comm,
                                 const mercer_train_options *options)
{
    MRC_OWNED(release_trainer) mrc_trainer *self = NULL;
    mercer_context *context = model->context;
    const char *const texts[MRC_TEXTS] = {
        options->solver ? options->solver : "auto", options->projector ? options->projector : "auto",
        options->checkpoint ? options->checkpoint : "", options->checkpoint_note ? options->checkpoint_note : ""};
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "the trainer"));
    mrc_job *job = &self->job;
    *job = (mrc_job){.host = &host, .context = context, .backend = context->backend, .comm = comm, .options = *options};
    job->target = (mrc_target){&model->kernel, &model->centers, model->total, &model->weights,
                               model->origin,  &model->units,   model->plan};
    self->model = model;
    MRC_TRY(mrc_copy_texts(context, &self->texts, texts, MRC_TEXTS)); /* the caller may free its strings before the
                                                                         fit */
    job->options.solver = self->texts[MRC_TEXT_SOLVER], job->options.projector = self->texts[MRC_TEXT_PROJECTOR];
    /* a communicator of one rank, so that solvers need not distinguish the cases */
    if (!comm) MRC_TRY(mrc_comm_create_virtual(&self->own_comm, context, 1));
    if (!comm) job->comm = self->own_comm;
    mrc_trainer_open_request(self);
    *out = self, self = NULL;
    return MERCER_OK;
}

/* The stream is closed in any case; the rest exists only after set_up. Safe to call again. */
void mrc_trainer_tear_down(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    mrc_sample_stream_close(&job->stream);
    if (!job->ready) return;
    mrc_matrix_destroy(job->backend, &job->best);
    if (job->state) job->plan.solver->ops->destroy(job);
    job->state = NULL;
    mrc_kernel_blocks_destroy(&job->kernel_blocks);
    mrc_centers_destroy(&job->centers);
    job->ready = job->have_best = false;
}

void mrc_trainer_free(mrc_trainer *self)
{
    if (!self) return;
    mrc_trainer_tear_down(self);
    mrc_tensor_file_close(self->resumed);
    mrc_comm_free(self->own_comm);
    MRC_FREE_ALL(self->job.context, self->texts, self->job.spectrum, self);
}

/* ---- Fit ----------------------------------------------------------------------------------------------------- */

/* Copies the weights to the model. Fails on all ranks, with the model unchanged, if a weight of any rank is not
   finite. */
static mercer_status publish_model(mrc_job *job)
{
    const mercer_matrix *alpha = mrc_job_candidate(job);
    bool bad = mrc_matrix_check_finite(job->backend, "weights", alpha, NULL) != MERCER_OK;
    MRC_TRY(mrc_comm_any(job->comm, bad, &bad));
    if (bad)
        return mrc_fail(job->context, MERCER_ERROR_NUMERIC,
                        "training ended with weights that are not finite, so the model is unchanged; scale features, "
                        "labels or sample weights%s",
                        alpha->dtype == MERCER_F64 ? "" : ", or use f64");
    return job->backend->ops->copy(job->backend, job->target.weights, alpha);
}

/* Resets counters and losses to the state before the first sample. */
static void reset(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    job->report = (mercer_report){.struct_size = sizeof job->report,
                                  .train_loss = NAN,
                                  .train_accuracy = NAN,
                                  .validation_loss = NAN,
                                  .validation_accuracy = NAN};
    job->samples = job->epoch = job->pass_rows = self->since_best = 0;
    job->totals = (mrc_loss){0};
    job->watchdog = (mrc_watchdog){0};
    job->times = (mrc_exact_times){0};
    job->step = job->residual = 0;
    self->rounding = 0, self->rounding_rows = 0;
}

/* Resets the trainer at the start of a training run, by fit or by the first step. */
static void begin_training(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    mrc_trainer_tear_down(self);
    reset(self);
    self->earlier_seconds = self->save_seconds = 0;
    self->given_up_bytes = 0;
    self->save_failed = job->announces = self->stop_asked = job->from_zero = false;
    self->phase[0] = 0;
    self->start = self->last_shown = mrc_seconds();
    self->bytes_before = job->context->bytes_now;
    job->context->bytes_high = job->context->bytes_now; /* restart the peak measurement for this training run */
}

mercer_dtype mrc_trainer_value_dtype(const mrc_job *job)
{
    return mrc_value_dtype(job->target.z, job->target.weights, NULL, NULL);
}

/* Creates the centers and the solver's state. first: samples for the preconditioner when single batches are streamed;
   NULL: the solver reads them from the stream. `ready` is set before the parts that may fail, so that tear_down
   releases them. */
static mercer_status set_up(mrc_trainer *self, const mercer_matrix *first)
{
    mrc_job *job = &self->job;
    const mrc_target *target = &job->target;
    MRC_TRY(mrc_centers_create(&job->centers, job->backend, job->comm, target->kernel, target->z, target->p,
                               target->origin, target->weights->dtype));
    job->ready = true;
    job->centers.notice = mrc_trainer_notice, job->centers.notice_user = self;
    mercer_status status = job->plan.half ? mrc_centers_allow_half(&job->centers) : MERCER_OK;
    if (status == MERCER_OK) status = job->plan.solver->ops->create(job, first);
    if (status != MERCER_OK) mrc_trainer_tear_down(self);
    return status;
}

/* Trains once, by the current plan. */
static mercer_status run_training(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    MRC_TRY(set_up(self, NULL));
    MRC_TRY(job->plan.solver->ops->run(job));
    return publish_model(job);
}

static mercer_status open_stream(mrc_trainer *self, const mercer_source *source)
{
    mrc_job *job = &self->job;
    MRC_TRY(mrc_sample_stream_open(&job->stream, job->context, source, job->target.z->cols, job->target.weights->cols));
    job->stream.trusted = self->trusted_source, job->stream.new_points = self->new_points;
    job->stream.kernel = job->target.kernel, job->stream.real = mrc_trainer_value_dtype(job);
    job->stream.units = job->target.units;
    return MERCER_OK;
}

/* ---- Attempts ------------------------------------------------------------------------------------------------ */

/* Returns the plan's first attempt that can help after a failure with this status; NULL if there is none. All ranks
   detect a numeric failure together. A coordinate that overflows half precision (MERCER_ERROR_DATA) is detected only by
   the rank that has it, so several ranks could not restart together. */
static const mrc_attempt *find_attempt(const mrc_trainer *self, mercer_status status)
{
    const mrc_plan *plan = &self->job.plan;
    for (int i = 0; i < plan->attempt_count; i++) {
        bool overflow = status == MERCER_ERROR_DATA && plan->attempts[i].accurate && self->job.comm->ranks == 1;
        if (status == MERCER_ERROR_NUMERIC || overflow) return &plan->attempts[i];
    }
    return NULL;
}

/* Makes the plan of an attempt. Returns false if that fails. The new plan lists its own attempts. */
static bool prepare_attempt(mrc_trainer *self, const mrc_attempt *attempt, const mrc_reason *failed)
{
    mrc_job *job = &self->job;
    const mercer_source *source = job->stream.source;
    mrc_reason reason;
    self->given_up_bytes = mrc_max(self->given_up_bytes, job->plan.public_plan.bytes);
    mrc_trainer_tear_down(self);
    if (attempt->accurate) {
        (void)job->backend->ops->sync(job->backend); /* pending work may report further overflows of half precision */
        self->half_refused = *failed, self->request.accurate = self->half_refused.text;
    }
    job->plan.attempt_count = 0;
    mercer_status status = mrc_replace_plan(&job->plan, &self->request, attempt, failed->text, &reason);
    if (status == MERCER_OK) status = mrc_trainer_agree_on_plan(self);
    if (status == MERCER_OK) status = open_stream(self, source);
    return status == MERCER_OK;
}

/* Trains again after a failure, by the plan of an attempt. Returns the new result, or the old failure if the attempt
   has no plan. */
static mrc_reason try_again(mrc_trainer *self, mrc_attempt attempt, const mrc_reason *failed)
{
    mrc_job *job = &self->job;
    if (!prepare_attempt(self, &attempt, failed)) return *failed;
    mrc_trainer_warn_of_plan(self);
    mrc_warn(job->context, "solver",
             attempt.accurate ? "%s; training restarts with %s" : "%s; training continues with %s", failed->text,
             attempt.accurate ? "accurate arithmetic" : attempt.solver->name);
    reset(self);
    /* when resuming, the model has the weights of the interrupted run, which are not a valid start */
    job->from_zero |= job->resuming;
    job->resuming = false;
    job->announces = true;
    return mrc_take_error(job->context, run_training(self));
}

/* A plan that was made for a source with the same number and type of samples is used, once. The error of an attempt is
   moved from the context to a value; it becomes the error of the call only if the last attempt fails. */
mercer_status mrc_trainer_fit(mrc_trainer *self, const mercer_source *source)
{
    mrc_job *job = &self->job;
    const mrc_attempt *next;
    begin_training(self);
    MRC_TRY(open_stream(self, source));
    if (!self->planned || self->request.n != source->rows || self->request.points != source->dtype)
        MRC_TRY(mrc_trainer_plan(self, source));
    self->planned = false;
    job->announces = true;
    mrc_reason reason = mrc_take_error(job->context, run_training(self));
    while ((next = find_attempt(self, reason.status)) != NULL) reason = try_again(self, *next, &reason);
    if (reason.status == MERCER_OK) mrc_trainer_log_precision(self);
    mrc_trainer_fill_report(self);
    mrc_trainer_tear_down(self);
    job->resuming = job->announces = false;
    return reason.status == MERCER_OK ? MERCER_OK : mrc_fail_with(job->context, &reason);
}

void mrc_trainer_fill_report(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    mercer_report *report = &self->job.report;
    *job->target.plan = job->plan.public_plan;
    job->target.plan->bytes = mrc_max(job->target.plan->bytes, self->given_up_bytes);
    report->plan = job->target.plan;
    report->samples = job->samples;
    report->peak_bytes = job->context->bytes_high - self->bytes_before;
    if (!job->ready) return;
    report->seconds = self->earlier_seconds + mrc_seconds() - self->start;
    report->flops = job->centers.flops;
}

/* ---- Streaming ----------------------------------------------------------------------------------------------- */

/* Plans and sets up at the first call of mercer_trainer_step. The number of rows is unknown, so `auto` cannot compare
   solvers and uses the fallback; the first batch serves as the preconditioner's sample. */
static mercer_status begin_streaming(mrc_trainer *self, const mercer_batch *batch)
{
    mrc_job *job = &self->job;
    begin_training(self);
    self->planned = false;
    job->stream = (mrc_sample_stream){.context = job->context, .units = job->target.units};
    MRC_TRY(mrc_trainer_begin_plan(self, batch->X.rows, batch->X.dtype));
    self->request.rows_known = false, self->request.streaming = true;
    if (mrc_name_is_auto(job->options.solver)) self->request.solver = mrc_solver_fallback();
    const mrc_solver *row = mrc_plan_named_solver(&self->request);
    if (row && (!row->ops->step || row->traits & MRC_NEEDS_SAMPLES))
        return mrc_fail(job->context, MERCER_ERROR_UNSUPPORTED,
                        "solver %s cannot train on a stream of single batches; use %s", job->options.solver,
                        mrc_solver_fallback()->name);
    MRC_TRY(mrc_trainer_make_plan(self));
    return set_up(self, &batch->X);
}

mercer_status mrc_trainer_step(mrc_trainer *self, const mercer_batch *batch)
{
    mrc_job *job = &self->job;
    if (!job->ready) MRC_TRY(begin_streaming(self, batch));
    int64_t before = job->report.projections;
    MRC_TRY(mrc_sample_stream_weigh(&job->stream, batch));
    MRC_TRY(job->plan.solver->ops->step(job, batch));
    /* between projections the new centers' weights are not yet part of the model */
    return job->report.projections > before ? publish_model(job) : MERCER_OK;
}

mercer_status mrc_trainer_finish(mrc_trainer *self)
{
    if (!self) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    if (!self->job.ready) return MERCER_OK;
    MRC_TRY(self->job.plan.solver->ops->finish(&self->job));
    return publish_model(&self->job);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trainer: epochs of steps, step decay and averaging over the later half, and a watchdog.
 *
 *   average    running mean of alpha over the projections of the later half of the steps
 *   decay      the step falls linearly from 1 to DECAY_END over the later half
 *   watchdog   a loss that is not finite, twice that of the zero model, or ten times the best so far rolls back to the
 *              last good weights, halves the step and says so; after MOST_HALVINGS training gives up with
 *              MERCER_ERROR_NUMERIC
 *
 * With labels that p centers cannot fit, the iterates of a constant step keep jumping around the optimum; the mean of
 * the later ones does not. The average is what the model gets, the last iterate is where training goes on.
 */
#include "training/trainer.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "plan/plan_ranks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_HALVINGS = 20, MEMORY_SAMPLES = 4000 };

#define DECAY_END      0.25
#define UNEVEN_WEIGHTS 100 /* heaviest over mean weight, beyond which the user is told */

/* ---- Making -------------------------------------------------------------------------------------------------- */

mercer_status mrc_trainer_create(mrc_trainer **out, mrc_backend *backend, mrc_comm *comm, const mrc_target *target,
                                 const mercer_train_options *options)
{
    void *memory;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(backend->context, &memory, 1, sizeof(mrc_trainer), "the trainer"));
    mrc_trainer *self = memory;
    self->context = backend->context;
    self->backend = backend;
    self->target = *target;
    self->options = *options;
    self->comm = comm;
    mercer_status status = comm ? MERCER_OK : mrc_comm_create_self(&self->own_comm, self->context);
    if (status != MERCER_OK) {
        mrc_free(backend->context, self);
        return status;
    }
    if (!comm) self->comm = self->own_comm;
    /* The caller's texts may be gone by the time of fit. */
    snprintf(self->solver, sizeof self->solver, "%s", options->solver ? options->solver : "auto");
    snprintf(self->projector_name, sizeof self->projector_name, "%s", options->projector ? options->projector : "auto");
    self->options.solver = self->solver;
    self->options.projector = self->projector_name;
    *out = self;
    return MERCER_OK;
}

void mrc_trainer_free(mrc_trainer *self)
{
    if (!self) return;
    mrc_trainer_tear_down(self);
    mrc_comm_free(self->own_comm);
    mrc_free(self->context, self->spectrum);
    mrc_free(self->context, self);
}

/* ---- Weights ------------------------------------------------------------------------------------------------- */

const mercer_matrix *mrc_trainer_candidate(const mrc_trainer *self)
{
    if (self->have_best) return &self->best;
    return self->iteration.averaged > 0 ? &self->iteration.average : &self->iteration.alpha;
}

mercer_status mrc_trainer_publish(mrc_trainer *self, const mercer_matrix *alpha)
{
    bool bad = mrc_matrix_check_finite(self->backend, "weights", alpha, NULL) != MERCER_OK;
    MRC_TRY(mrc_comm_any(self->comm, bad, &bad));
    if (bad)
        return mrc_fail(self->context, MERCER_ERROR_NUMERIC,
                        "training ended in weights that are not finite; the model keeps its old ones: scale features, "
                        "labels or sample weights%s",
                        alpha->dtype == MERCER_F64 ? "" : ", or compute in f64");
    return self->backend->ops->copy(self->backend, self->target.weights, alpha);
}

/* ---- Watchdog ------------------------------------------------------------------------------------------------ */

/* Takes a batch's result into the running means; true if training has gone wrong. */
static bool alarmed(mrc_watchdog *dog, const mrc_loss *result, int64_t rows)
{
    if (!isfinite(result->squared_error)) return true;
    double fade = fmax(0, 1 - (double)rows / MEMORY_SAMPLES);
    dog->seen = fade * dog->seen + (double)rows;
    double share = (double)rows / dog->seen;
    dog->loss += share * (result->squared_error / (double)rows - dog->loss);
    dog->target += share * (result->squared_target / (double)rows - dog->target);
    if (dog->best == 0 || dog->loss < dog->best) dog->best = dog->loss;
    if (dog->loss > 2 * dog->target && dog->loss > 2 * dog->best) return true;
    return dog->loss > 10 * dog->best && dog->loss > 1e-3 * dog->target;
}

static mercer_status roll_back(mrc_trainer *self)
{
    mrc_iteration *iteration = &self->iteration;
    self->report.halvings++;
    iteration->halving /= 2;
    memset(&self->watchdog, 0, sizeof self->watchdog);
    MRC_TRY(self->backend->ops->copy(self->backend, &iteration->alpha, &self->rollback_weights));
    MRC_TRY(mrc_iteration_forget(iteration));
    /* One warning; the report counts them all. */
    mrc_log(self->context, self->report.halvings == 1 ? MERCER_LOG_WARNING : MERCER_LOG_INFO,
            "training diverged at step %lld: back to the last good weights, step halved to %.3g of the rule",
            (long long)iteration->steps, iteration->halving);
    if (self->report.halvings <= MOST_HALVINGS) return MERCER_OK;
    return mrc_fail(
        self->context, MERCER_ERROR_NUMERIC,
        "training diverges even with the step halved %d times; are batches drawn like the preconditioner's sample?",
        (int)MOST_HALVINGS);
}

/* ---- Steps and epochs ---------------------------------------------------------------------------------------- */

/* Step and averaging as functions of how much of the planned work is done. */
static void follow_schedule(mrc_trainer *self, double done)
{
    const mercer_plan *plan = &self->plan.public_plan;
    double later = fmax(0, 2 * done - 1); /* 0 .. 1 over the later half */
    self->iteration.averaging = plan->average && done >= 0.5;
    self->iteration.decay = plan->decay ? 1 - (1 - DECAY_END) * fmin(later, 1) : 1;
}

/* One look, one alarm check, one step. The sums go to totals unless the batch was thrown away. */
static mercer_status take_step(mrc_trainer *self, const mercer_batch *batch, mrc_loss *totals)
{
    mrc_iteration *iteration = &self->iteration;
    mrc_loss result;
    if (self->stream.heaviest > 0) iteration->heaviest = self->stream.heaviest;
    MRC_TRY(mrc_iteration_residual(iteration, batch, &result));
    if (alarmed(&self->watchdog, &result, batch->X.rows)) return roll_back(self);
    /* The loss just seen vouches for the weights of the last projection. */
    if (iteration->pending == 0)
        MRC_TRY(self->backend->ops->copy(self->backend, &self->rollback_weights, &iteration->alpha));
    mercer_status status = mrc_iteration_step(iteration, batch);
    if (status == MERCER_ERROR_NUMERIC) return roll_back(self); /* a projection of what is not finite */
    MRC_TRY(status);
    mrc_loss_join(totals, &result);
    self->samples += batch->X.rows;
    return MERCER_OK;
}

/* The rest of the pass under way, then the projection of what is pending. *stop: 2 if the progress callback says so. */
static mercer_status run_epoch(mrc_trainer *self, int *stop)
{
    const mercer_plan *plan = &self->plan.public_plan;
    double all = (double)self->n * (double)plan->epochs;
    MRC_TRY(mrc_sample_stream_restart(&self->stream, self->epoch));
    if (self->pass_rows > 0) MRC_TRY(mrc_sample_stream_skip(&self->stream, self->pass_rows));
    for (;;) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_next(&self->stream, plan->batch, &batch));
        if (batch.X.rows == 0) break;
        if (!batch.rows && self->plan.preset->update == MRC_UPDATE_COORDINATES)
            return mrc_fail(self->context, MERCER_ERROR_UNSUPPORTED,
                            "solver %s has the samples as centers: its source must say which rows every batch holds",
                            plan->solver);
        follow_schedule(self, ((double)self->n * (double)self->epoch + (double)self->pass_rows) / all);
        MRC_TRY(take_step(self, &batch, &self->totals));
        self->pass_rows += batch.X.rows;
        bool enough;
        MRC_TRY(mrc_trainer_poll(self, &enough));
        *stop = enough ? 2 : 0;
        MRC_TRY(mrc_trainer_keep(self, NULL, mrc_trainer_candidate(self), *stop ? MRC_KEEP_NOW : MRC_KEEP_STEP));
        if (*stop) break;
    }
    mercer_status status = mrc_iteration_project(&self->iteration);
    return status == MERCER_ERROR_NUMERIC ? roll_back(self) : status;
}

/* A row that counts for many bounds the steps of all. */
static void warn_of_weights(mrc_trainer *self)
{
    const mrc_sample_stream *stream = &self->stream;
    double mean = stream->weight / (double)mrc_max(stream->weighed, 1);
    if (self->epoch != 1 || !(stream->heaviest > UNEVEN_WEIGHTS * mean)) return;
    mrc_log(
        self->context, MERCER_LOG_WARNING,
        "the heaviest sample weighs %.3g times their mean, and steps are that much shorter: solver %s may end far from "
        "the minimum; use direct or cg, or finish with polish",
        stream->heaviest / mean, self->plan.public_plan.solver);
}

/* The books of a whole pass, validation and progress. */
static mercer_status close_epoch(mrc_trainer *self, int *stop)
{
    self->report.epochs = ++self->epoch;
    self->report.train_loss = mrc_loss_mean(&self->totals, self->target.weights->cols);
    self->report.train_accuracy =
        self->options.classification == MERCER_ON ? mrc_loss_accuracy(&self->totals) : (double)NAN;
    self->totals = (mrc_loss){0};
    self->pass_rows = 0;
    warn_of_weights(self);
    mercer_progress progress = {.epoch = self->epoch,
                                .epochs = self->plan.public_plan.epochs,
                                .train_loss = self->report.train_loss,
                                .train_accuracy = self->report.train_accuracy,
                                .projection_residual = self->iteration.projection.residual,
                                .step = self->iteration.last_step,
                                .steps = self->iteration.steps,
                                .projections = self->iteration.projections};
    const mercer_matrix *now = self->iteration.averaged > 0 ? &self->iteration.average : &self->iteration.alpha;
    MRC_TRY(mrc_trainer_end_epoch(self, now, &progress, stop));
    return mrc_trainer_keep(self, NULL, mrc_trainer_candidate(self), *stop == 2 ? MRC_KEEP_NOW : MRC_KEEP_EPOCH);
}

/* Best weights, polishing, and into the model. */
static mercer_status finish_iteration(mrc_trainer *self)
{
    const mercer_matrix *result = mrc_trainer_candidate(self);
    bool polish = self->options.polish > 0 && self->report.stopped != 2;
    if (polish) {
        MRC_TRY(mrc_trainer_keep(self, NULL, result, MRC_KEEP_NOW)); /* going on from here begins with polishing */
        MRC_TRY(mrc_trainer_polish(self, result));
    }
    if (polish || self->have_best)
        MRC_TRY(mrc_trainer_validate(self, result, &self->report.validation_loss, &self->report.validation_accuracy));
    return mrc_trainer_publish(self, result);
}

static mercer_status fit_iteration(mrc_trainer *self)
{
    MRC_TRY(mrc_trainer_set_up_from_stream(self));
    MRC_TRY(self->resuming ? mrc_trainer_recall(self, NULL)
                           : mrc_trainer_keep(self, NULL, mrc_trainer_candidate(self), MRC_KEEP_NOW));
    mrc_trainer_tell(self, MRC_READY, 1);
    int stop = 0;
    while (self->epoch < self->plan.public_plan.epochs && !stop) {
        MRC_TRY(run_epoch(self, &stop));
        if (!stop) MRC_TRY(close_epoch(self, &stop));
    }
    self->report.stopped = (mercer_stop)stop;
    return finish_iteration(self);
}

void mrc_trainer_fill_report(mrc_trainer *self)
{
    mercer_report *report = &self->report;
    const mrc_iteration *iteration = &self->iteration;
    *self->target.plan = self->plan.public_plan;
    report->plan = self->target.plan;
    report->samples = self->samples;
    report->peak_bytes = self->context->bytes_high - self->bytes_before;
    if (!self->ready) return;
    report->seconds = self->earlier_seconds + mrc_seconds() - self->start;
    report->flops = self->centers.flops;
    report->steps = iteration->steps;
    report->projections = iteration->projections;
    report->setup_seconds = self->setup_seconds + self->exact_times.setup;
    report->forward_seconds = iteration->forward_seconds + self->exact_times.forward;
    report->gradient_seconds = iteration->gradient_seconds + self->exact_times.gradient;
    report->projection_seconds = iteration->projection_seconds + self->exact_times.solve;
    if (iteration->projections == 0) return;
    report->projection_residual_last = iteration->projection.residual;
    report->projection_residual_mean = iteration->residual_sum / (double)iteration->projections;
}

/* Threads and memory decide about the plan, and all ranks must follow the same one: rank 0's. */
static mercer_status share_machine(mrc_trainer *self)
{
    mrc_comm *comm = self->comm;
    self->planned_threads = self->context->threads;
    self->planned_budget = 0;
    if (comm->ranks == 1) return MERCER_OK;
    int64_t each, all = self->options.memory;
    MRC_TRY(mrc_rank_room(self->backend, comm, &each));
    if (all == 0) all = each > 0 ? each * comm->ranks : self->backend->ops->free_memory(self->backend) / 2;
    int64_t machine[] = {self->planned_threads, all};
    MRC_TRY(mrc_comm_broadcast(comm, machine, sizeof machine));
    self->planned_threads = machine[0];
    self->planned_budget = machine[1];
    return MERCER_OK;
}

/* Different machines may round differently, and different plans would wait for each other for ever. */
static mercer_status agree_on_plan(mrc_trainer *self)
{
    char plan[MRC_STATE_PLAN], text[MRC_STATE_PLAN + 128];
    if (self->comm->ranks == 1) return MERCER_OK;
    mrc_trainer_describe(self, plan, sizeof plan);
    snprintf(text, sizeof text, "%s; version %s, isa %d, backend %s", plan, mercer_version(), (int)self->context->isa,
             self->backend->ops->name);
    return mrc_comm_agree(self->comm, "another plan, version or instruction set", text, (int64_t)strlen(text));
}

mercer_dtype mrc_trainer_arithmetic(const mrc_trainer *self)
{
    return mrc_value_dtype(self->target.z, self->target.weights, NULL, NULL);
}

/* Everything that fit and the first step begin with. */
static void begin(mrc_trainer *self)
{
    mrc_trainer_tear_down(self);
    self->report = (mercer_report){.struct_size = sizeof self->report,
                                   .train_loss = NAN,
                                   .train_accuracy = NAN,
                                   .validation_loss = NAN,
                                   .validation_accuracy = NAN};
    self->samples = self->since_best = self->epoch = self->pass_rows = 0;
    self->totals = (mrc_loss){0};
    self->earlier_seconds = self->setup_seconds = self->keep_cost = 0;
    self->exact_times = (mrc_exact_times){0};
    self->keep_failed = self->setting_up = self->stop_asked = false;
    self->phase[0] = 0;
    memset(&self->watchdog, 0, sizeof self->watchdog);
    self->start = self->last_shown = mrc_seconds();
    self->bytes_before = self->context->bytes_now;
    self->context->bytes_high = self->context->bytes_now; /* the peak of this training */
}

/* Centers that can be computed with, and the machine that all ranks plan for. */
static mercer_status prepare_plan(mrc_trainer *self)
{
    mercer_status status = mrc_kernel_check_range(self->context, self->target.kernel, "centers", self->target.z,
                                                  mrc_trainer_arithmetic(self));
    MRC_TRY(mrc_comm_together(self->comm, status, "centers"));
    return share_machine(self);
}

mercer_status mrc_trainer_plan(mrc_trainer *self, const mercer_source *source)
{
    mrc_sample_stream stream;
    self->planned = false;
    mrc_trainer_tear_down(self);
    MRC_TRY(mrc_sample_stream_open(&stream, self->context, source, self->target.z->cols, self->target.weights->cols));
    self->options.solver = self->solver;
    MRC_TRY(prepare_plan(self));
    if (self->resuming) MRC_TRY(mrc_trainer_recall_plan(self));
    self->n = self->planned_rows = source->rows;
    self->planned_points = source->dtype;
    MRC_TRY(mrc_trainer_make_plan(self, source->rows, true, source->dtype));
    MRC_TRY(agree_on_plan(self));
    self->planned = true;
    return MERCER_OK;
}

/* What auto chose has broken down: ep4 projects, and takes steps, without what broke. */
static mercer_status fall_back(mrc_trainer *self)
{
    char why[MRC_ERROR_CHARS];
    snprintf(why, sizeof why, "%s", mrc_error_text(self->context));
    mercer_status status = mrc_trainer_replace_plan(self, "ep4", why);
    if (status == MERCER_OK) status = agree_on_plan(self);
    if (status != MERCER_OK) return mrc_fail(self->context, MERCER_ERROR_NUMERIC, "%s", why);
    mrc_log(self->context, MERCER_LOG_WARNING, "%s; training goes on with ep4", why);
    mrc_trainer_tear_down(self);
    self->samples = self->epoch = 0;
    self->resuming = false;
    self->setting_up = true;
    return fit_iteration(self);
}

mercer_status mrc_trainer_fit(mrc_trainer *self, const mercer_source *source)
{
    begin(self);
    MRC_TRY(
        mrc_sample_stream_open(&self->stream, self->context, source, self->target.z->cols, self->target.weights->cols));
    self->stream.trusted = self->trusted_source;
    self->stream.kernel = self->target.kernel, self->stream.real = mrc_trainer_arithmetic(self);
    self->stream.units = self->target.units;
    if (!self->planned || self->planned_rows != source->rows || self->planned_points != source->dtype)
        MRC_TRY(mrc_trainer_plan(self, source));
    self->planned = false;
    self->setting_up = true;
    mercer_status status = self->plan.preset->exact ? mrc_trainer_fit_exact(self) : fit_iteration(self);
    if (status == MERCER_ERROR_NUMERIC && self->plan.preset->exact && strcmp(self->solver, "auto") == 0)
        status = fall_back(self);
    mrc_trainer_fill_report(self);
    mrc_trainer_tear_down(self);
    self->resuming = self->setting_up = false;
    return status;
}

/* ---- Streaming ----------------------------------------------------------------------------------------------- */

static mercer_status begin_streaming(mrc_trainer *self, const mercer_batch *batch)
{
    begin(self);
    self->planned = false;
    if (strcmp(self->solver, "auto") == 0) self->options.solver = "ep4"; /* until the next fit */
    const mrc_preset *preset = mrc_preset_find(self->options.solver);
    if (preset && (preset->exact || preset->update == MRC_UPDATE_COORDINATES))
        return mrc_fail(self->context, MERCER_ERROR_UNSUPPORTED,
                        "solver %s cannot train on a stream of single batches; use ep4 or ep3", self->solver);
    self->stream = (mrc_sample_stream){.context = self->context, .units = self->target.units};
    MRC_TRY(prepare_plan(self));
    MRC_TRY(mrc_trainer_make_plan(self, batch->X.rows, false, batch->X.dtype));
    return mrc_trainer_set_up(self, &batch->X, NULL, batch->X.rows);
}

mercer_status mrc_trainer_step(mrc_trainer *self, const mercer_batch *batch)
{
    if (!self->ready) MRC_TRY(begin_streaming(self, batch));
    int64_t most = self->plan.public_plan.batch, before = self->iteration.projections;
    MRC_TRY(mrc_sample_stream_weigh(&self->stream, batch));
    self->iteration.options.ridge = self->options.lambda / (double)mrc_max(self->n, self->samples + batch->X.rows);
    /* No end is planned in a stream: averaging begins with the first projection, the step does not fall. */
    self->iteration.averaging = self->plan.public_plan.average && self->iteration.projections > 0;
    for (int64_t first = 0; first < batch->X.rows; first += most) {
        int64_t rows = mrc_min(most, batch->X.rows - first);
        mercer_batch part = {.X = mrc_rows(&batch->X, first, rows),
                             .Y = mrc_rows(&batch->Y, first, rows),
                             .weights = batch->weights ? batch->weights + first : NULL};
        mrc_loss totals = {0};
        MRC_TRY(mrc_sample_stream_enter(&self->stream, &part.Y));
        MRC_TRY(take_step(self, &part, &totals));
        self->report.train_loss = mrc_loss_mean(&totals, batch->Y.cols);
    }
    return self->iteration.projections > before ? mrc_trainer_publish(self, mrc_trainer_candidate(self)) : MERCER_OK;
}

mercer_status mrc_trainer_finish(mrc_trainer *self)
{
    if (!self->ready) return MERCER_OK;
    MRC_TRY(mrc_iteration_project(&self->iteration));
    return mrc_trainer_publish(self, mrc_trainer_candidate(self));
}

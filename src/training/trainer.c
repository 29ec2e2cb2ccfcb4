/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A training from plan to report. The plan is made once; set-up refines its sizes. If a solver that `auto` chose breaks
 * down, it is replaced by the fallback solver, which has the fewest requirements. Several ranks all follow the plan for
 * rank 0's machine.
 */
#include "training/trainer.h"

#include "centers/center_selection.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/stream/dataset_stream.h"
#include "plan/plan.h"
#include "solvers/normal/exact_solvers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUGHNESS_CENTERS = 1000, SPREAD_CENTERS = 200, MOST_EQUATIONS = 65536 };

static mercer_status refine(mrc_job *job, int64_t critical_batch, bool rows_known, mercer_dtype points);

static const mrc_job_host host = {.refine = refine,
                                  .keep = mrc_trainer_keep,
                                  .recall = mrc_trainer_recall,
                                  .poll = mrc_trainer_poll,
                                  .end_epoch = mrc_trainer_end_epoch,
                                  .validate = mrc_trainer_validate};

/* ---- Creation and release ---------------------------------------------------------------------------------------- */

mercer_status mrc_trainer_create(mrc_trainer **out, mrc_backend *backend, mrc_comm *comm, const mrc_target *target,
                                 const mercer_train_options *options)
{
    mrc_trainer *self;
    *out = NULL;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self, 1, sizeof *self, "the trainer"));
    mrc_job *job = &self->job;
    *job = (mrc_job){.host = &host, .context = backend->context, .backend = backend, .comm = comm, .target = *target};
    job->options = *options;
    if (!comm) MRC_TRY(mrc_comm_create_virtual(&self->own_comm, job->context, 1));
    if (!comm) job->comm = self->own_comm;
    /* Copy the texts: the caller's may be freed before fit. */
    snprintf(self->solver, sizeof self->solver, "%s", options->solver ? options->solver : "auto");
    snprintf(self->projector_name, sizeof self->projector_name, "%s", options->projector ? options->projector : "auto");
    job->options.solver = self->solver;
    job->options.projector = self->projector_name;
    mrc_scope_keep(&scope);
    *out = self;
    return MERCER_OK;
}

static void tear_down(mrc_trainer *self)
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
    tear_down(self);
    mrc_comm_free(self->own_comm);
    mrc_free(self->job.context, self->job.spectrum);
    mrc_free(self->job.context, self);
}

/* ---- The plan ------------------------------------------------------------------------------------------------ */

/* Returns the type that kernel values are computed in, which does not depend on the type of the samples. */
static mercer_dtype arithmetic(const mrc_job *job)
{
    return mrc_value_dtype(job->target.z, job->target.weights, NULL, NULL);
}

/* Computes the bandwidth over the median distance of some centers; 0 for kernels without a bandwidth and for
   coinciding centers. */
static mercer_status measure_spread(mrc_job *job, double *out)
{
    const mercer_kernel *kernel = job->target.kernel;
    const mercer_matrix *z = job->target.z;
    double median = 0;
    *out = 0;
    if (!mrc_kernel_is_stationary(kernel) || mrc_kernel_is_callback(kernel) || z->rows < 2) return MERCER_OK;
    mercer_matrix some = *z; /* evenly spaced rows, because the centers may be sorted */
    some.rows = mrc_min(z->rows, SPREAD_CENTERS), some.ld = z->ld * (z->rows / some.rows);
    MRC_TRY(mrc_median_distance(job->backend, mrc_kernel_norm(kernel), &some, 0, &median));
    if (median > 0) *out = kernel->bandwidth / median;
    return MERCER_OK;
}

/* Measures, once, the properties of K(Z,Z) that the planner needs. */
static mercer_status look_at_kernel(mrc_trainer *self)
{
    mrc_trainer_look_at_rounding(self);
    if (!self->have_spread) MRC_TRY(measure_spread(&self->job, &self->spread));
    self->have_spread = true;
    return MERCER_OK;
}

/* Returns whether the plan depends on the roughness and the roughness is still unknown. */
static bool lacks_roughness(const mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    const mrc_solver *row = mrc_solver_find(job->options.solver);
    bool asked = mrc_name_is_auto(job->options.solver) || (row && row->traits & MRC_NEEDS_ROUGHNESS);
    return asked && !self->have_roughness && job->target.p >= ROUGHNESS_CENTERS;
}

static mercer_status measure_roughness(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    MRC_TRY(mrc_roughness(job->backend, job->comm, job->target.kernel, job->target.z, job->target.p, job->target.origin,
                          &self->roughness));
    self->have_roughness = true;
    mrc_log(job->context, MERCER_LOG_DEBUG, "plan: roughness %.3f of the kernel matrix", self->roughness);
    return MERCER_OK;
}

static mrc_plan_request request_for(const mrc_trainer *self, int64_t n, bool rows_known, mercer_dtype points)
{
    const mrc_job *job = &self->job;
    return (mrc_plan_request){.machine = mrc_machine_of(job->context),
                              .options = &job->options,
                              .n = n,
                              .p = job->target.p,
                              .d = job->target.z->cols,
                              .c = job->target.weights->cols,
                              .real = job->target.weights->dtype,
                              .points = points,
                              .shards = mrc_comm_shards(job->comm, job->target.p),
                              .threads = (int)self->planned_threads,
                              .budget = self->planned_budget,
                              .roughness = self->roughness,
                              .spread = job->comm->rank == 0 ? self->spread : 0, /* only rank 0 reports it */
                              .unevenness = self->unevenness,
                              .rows_known = rows_known,
                              .on_samples = self->on_samples && job->target.p == n,
                              .gains_by_half = self->gains_by_half,
                              .streaming = self->streaming,
                              .coordinates = self->coordinates,
                              .farthest = self->farthest,
                              .accurate = self->accurate[0] ? self->accurate : NULL,
                              .norm = mrc_kernel_norm(job->target.kernel),
                              .bounded = mrc_kernel_is_stationary(job->target.kernel) &&
                                         !mrc_kernel_is_callback(job->target.kernel)};
}

static void warn_of_plan(const mrc_trainer *self)
{
    const mrc_plan *plan = &self->job.plan;
    for (int i = 0; i < plan->warning_count; i++)
        mrc_warn(self->job.context, plan->warnings[i].field, "%s", plan->warnings[i].text);
}

mercer_status mrc_trainer_make_plan(mrc_trainer *self, int64_t n, bool rows_known, mercer_dtype points)
{
    MRC_TRY(look_at_kernel(self));
    mrc_plan_request request = request_for(self, n, rows_known, points);
    if (lacks_roughness(self) && !mrc_plan_is_cheap(&request)) MRC_TRY(measure_roughness(self));
    request.roughness = self->roughness;
    mrc_reason reason;
    mrc_plan *plan = &self->job.plan;
    if (mrc_make_plan(plan, &request, &reason) != MERCER_OK) return mrc_fail_with(self->job.context, &reason);
    warn_of_plan(self);
    self->planned_budget = self->job.plan.budget; /* free memory changes during training, but the plan must not */
    return MERCER_OK;
}

static mercer_status refine(mrc_job *job, int64_t critical_batch, bool rows_known, mercer_dtype points)
{
    mrc_plan_request request = request_for((mrc_trainer *)job, job->n, rows_known, points);
    request.critical_batch = critical_batch;
    mrc_reason reason;
    return mrc_refine_plan(&job->plan, &request, &reason) == MERCER_OK ? MERCER_OK
                                                                       : mrc_fail_with(job->context, &reason);
}

/* Broadcasts rank 0's threads, memory and precision estimates: the plan depends on them, and all ranks must follow
   the same plan. */
static mercer_status share_machine(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    mrc_comm *comm = job->comm;
    self->planned_threads = job->context->threads;
    self->planned_budget = 0;
    if (comm->ranks == 1) return MERCER_OK;
    int64_t each, all = job->options.memory;
    MRC_TRY(mrc_rank_room(job->backend, comm, &each));
    if (all == 0) all = each > 0 ? each * comm->ranks : job->backend->ops->free_memory(job->backend) / 2;
    mrc_trainer_look_at_rounding(self); /* only rank 0's result, of its centers, is used */
    struct {
        int64_t threads, budget, gains_by_half;
        double coordinates, farthest;
    } machine = {self->planned_threads, all, self->gains_by_half, self->coordinates, self->farthest};
    MRC_TRY(mrc_comm_broadcast(comm, &machine, sizeof machine));
    self->planned_threads = machine.threads;
    self->planned_budget = machine.budget;
    self->gains_by_half = machine.gains_by_half != 0;
    self->coordinates = machine.coordinates, self->farthest = machine.farthest;
    return MERCER_OK;
}

/* Checks that all ranks have the same plan. Different machines may round differently, and ranks with different plans
   would deadlock. */
static mercer_status agree_on_plan(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    char plan[MRC_STATE_PLAN], text[MRC_STATE_PLAN + 128];
    if (job->comm->ranks == 1) return MERCER_OK;
    mrc_trainer_describe(self, plan, sizeof plan);
    snprintf(text, sizeof text, "%s; version %s, isa %d, backend %s", plan, mercer_version(), (int)job->context->isa,
             job->backend->ops->name);
    return mrc_comm_agree(job->comm, "another plan, version or instruction set", text, (int64_t)strlen(text));
}

/* Sets *same to whether center i is sample i, with a positive weight, for this rank's centers among the rows of the
   batch. */
static mercer_status compare_centers(const mrc_job *job, const mercer_batch *batch, bool *same)
{
    const mercer_matrix *z = job->target.z;
    mercer_matrix x;
    int64_t first, count;
    MRC_SCOPE(scope, job->context);
    mrc_comm_rows(job->comm, job->target.p, job->comm->rank, &first, &count);
    MRC_TRY(mrc_scope_open(&scope, job->backend, &batch->X, &x));
    *same = batch->rows != NULL;
    for (int64_t i = 0; i < x.rows && *same; i++) {
        int64_t row = batch->rows[i] - first;
        if (batch->weights && !(batch->weights[i] > 0)) *same = false;
        if (*same && row >= 0 && row < z->rows) *same = mrc_rows_equal(&x, i, z, row);
    }
    return MERCER_OK;
}

/* Sets on_samples if the centers are the samples and few enough to factor K(Z,Z): faster solvers exist for that
   case. */
static mercer_status look_at_samples(mrc_trainer *self, mrc_sample_stream *stream)
{
    mrc_job *job = &self->job;
    const mrc_solver *row = mrc_solver_find(job->options.solver);
    bool asked =
        mrc_name_is_auto(job->options.solver) || (row && row->traits & MRC_FOR_AUTO && row->traits & MRC_NEEDS_SAMPLES);
    self->on_samples = false;
    if (!asked || job->target.p != stream->source->rows || job->target.p > MOST_EQUATIONS) return MERCER_OK;
    MRC_TRY(mrc_sample_stream_restart(stream, 0));
    bool same = true, other;
    while (same) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_points(stream, MRC_READ_ROWS, &batch));
        if (batch.X.rows == 0) break;
        MRC_TRY(compare_centers(job, &batch, &same));
    }
    MRC_TRY(mrc_comm_any(job->comm, !same, &other));
    self->on_samples = !other;
    return MERCER_OK;
}

/* Checks the range of the centers, and agrees on the machine that all ranks plan for. */
static mercer_status prepare_plan(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    mercer_status status =
        mrc_kernel_check_range(job->context, job->target.kernel, "centers", job->target.z, arithmetic(job));
    MRC_TRY(mrc_comm_together(job->comm, status, "centers"));
    return share_machine(self);
}

mercer_status mrc_trainer_plan(mrc_trainer *self, const mercer_source *source)
{
    mrc_job *job = &self->job;
    mrc_sample_stream stream;
    self->planned = self->streaming = false;
    self->accurate[0] = 0; /* the samples may have changed */
    tear_down(self);
    MRC_TRY(mrc_sample_stream_open(&stream, job->context, source, job->target.z->cols, job->target.weights->cols));
    stream.trusted = self->trusted_source, stream.new_points = self->new_points;
    job->options.solver = self->solver;
    MRC_TRY(prepare_plan(self));
    if (job->resuming) MRC_TRY(mrc_trainer_recall_plan(self));
    job->n = self->planned_rows = source->rows;
    self->planned_points = source->dtype;
    self->unevenness = mrc_data_stream_unevenness(source);
    MRC_TRY(look_at_samples(self, &stream));
    MRC_TRY(mrc_trainer_make_plan(self, source->rows, true, source->dtype));
    MRC_TRY(agree_on_plan(self));
    self->planned = true;
    return MERCER_OK;
}

/* ---- Fit ----------------------------------------------------------------------------------------------------- */

/* Copies the weights to the model; fails if one of them is not finite. */
static mercer_status publish(mrc_job *job)
{
    const mercer_matrix *alpha = mrc_job_candidate(job);
    bool bad = mrc_matrix_check_finite(job->backend, "weights", alpha, NULL) != MERCER_OK;
    MRC_TRY(mrc_comm_any(job->comm, bad, &bad));
    if (bad)
        return mrc_fail(job->context, MERCER_ERROR_NUMERIC,
                        "training ended in weights that are not finite; the model keeps its old ones: scale features, "
                        "labels or sample weights%s",
                        alpha->dtype == MERCER_F64 ? "" : ", or compute in f64");
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

/* Prepares for a training, by fit or by the first step. */
static void begin(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    tear_down(self);
    reset(self);
    self->earlier_seconds = self->keep_cost = 0;
    self->given_up_bytes = 0;
    self->keep_failed = job->announces = self->stop_asked = false;
    self->phase[0] = 0;
    self->start = self->last_shown = mrc_seconds();
    self->bytes_before = job->context->bytes_now;
    job->context->bytes_high = job->context->bytes_now; /* restart the peak measurement for this training */
}

/* Creates the centers and the solver's state, from the first samples (NULL: those of the stream). */
static mercer_status set_up(mrc_trainer *self, const mercer_matrix *first, int64_t n)
{
    mrc_job *job = &self->job;
    const mrc_target *target = &job->target;
    job->n = n;
    MRC_TRY(mrc_centers_create(&job->centers, job->backend, job->comm, target->kernel, target->z, target->p,
                               target->origin, target->weights->dtype));
    job->ready = true;
    job->centers.half = job->plan.half;
    job->centers.notice = mrc_trainer_tell, job->centers.notice_user = self;
    mercer_status status = job->plan.solver->ops->create(job, first);
    if (status != MERCER_OK) tear_down(self);
    return status;
}

static mercer_status run(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    MRC_TRY(set_up(self, NULL, job->stream.source->rows));
    MRC_TRY(job->plan.solver->ops->run(job));
    return publish(job);
}

static mercer_status open_stream(mrc_trainer *self, const mercer_source *source)
{
    mrc_job *job = &self->job;
    MRC_TRY(mrc_sample_stream_open(&job->stream, job->context, source, job->target.z->cols, job->target.weights->cols));
    job->stream.trusted = self->trusted_source, job->stream.new_points = self->new_points;
    job->stream.kernel = job->target.kernel, job->stream.real = arithmetic(job);
    job->stream.units = job->target.units;
    return MERCER_OK;
}

/* Runs a training from zero weights. A model that was read from a checkpoint has the weights of the interrupted
   training, not its initial ones, which are 0 unless the model had been trained before. On failure the weights are
   restored. */
static mercer_status run_from_zero(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    const mrc_backend_ops *ops = job->backend->ops;
    const mercer_matrix *weights = job->target.weights;
    mercer_matrix before;
    MRC_SCOPE(scope, job->context);
    MRC_TRY(mrc_scope_room(&scope, job->backend, &before, weights->memory, weights->rows, weights->cols, weights->dtype,
                           "the weights of the checkpoint"));
    MRC_TRY(ops->copy(job->backend, &before, weights));
    MRC_TRY(ops->clear(job->backend, weights));
    mercer_status status = run(self);
    if (status != MERCER_OK) (void)ops->copy(job->backend, weights, &before);
    return status;
}

/* Restarts training after a failure of what the plan chose: with solver `row`, or (NULL) with accurate products. */
static mercer_status begin_again(mrc_trainer *self, const mrc_solver *row)
{
    mrc_job *job = &self->job;
    const mercer_source *source = job->stream.source;
    char why[MRC_ERROR_CHARS];
    snprintf(why, sizeof why, "%s", mrc_last_error(job->context));
    if (!row) memcpy(self->accurate, why, sizeof why);
    self->given_up_bytes = mrc_max(self->given_up_bytes, job->plan.public_plan.bytes);
    tear_down(self);
    if (!row)
        (void)job->backend->ops->sync(job->backend); /* pending work may report further values that overflow a half */
    mrc_plan_request request = request_for(self, source->rows, true, source->dtype);
    mrc_reason reason;
    mercer_status status = mrc_replace_plan(&job->plan, &request, row, why, &reason);
    if (status == MERCER_OK) status = agree_on_plan(self);
    if (status == MERCER_OK) status = open_stream(self, source);
    if (status != MERCER_OK) return mrc_fail(job->context, MERCER_ERROR_NUMERIC, "%s", why);
    warn_of_plan(self);
    mrc_warn(job->context, "solver", row ? "%s; training goes on with %s" : "%s; training begins again in %s", why,
             row ? row->name : "accurate arithmetic");
    bool resumed = job->resuming;
    reset(self);
    job->resuming = false;
    job->announces = true;
    return resumed && !row ? run_from_zero(self) : run(self);
}

/* Returns whether training may be restarted. Automatic choices are given up one after the other: half precision
   first, then the solver. */
static bool may_begin_again(const mrc_trainer *self, mercer_status status, const mrc_solver **instead)
{
    const mrc_job *job = &self->job;
    /* A coordinate that overflows a half is detected by one rank only, so such a restart needs a single rank; the
       precision check fails on all ranks. */
    bool rounding = status == MERCER_ERROR_NUMERIC || (status == MERCER_ERROR_DATA && job->comm->ranks == 1);
    *instead = NULL;
    if (rounding && job->plan.half_chosen) return true;
    *instead = mrc_solver_fallback();
    return status == MERCER_ERROR_NUMERIC && mrc_name_is_auto(self->solver) && job->plan.solver != *instead;
}

mercer_status mrc_trainer_fit(mrc_trainer *self, const mercer_source *source)
{
    mrc_job *job = &self->job;
    begin(self);
    MRC_TRY(open_stream(self, source));
    if (!self->planned || self->planned_rows != source->rows || self->planned_points != source->dtype)
        MRC_TRY(mrc_trainer_plan(self, source));
    self->planned = false;
    job->announces = true;
    mercer_status status = run(self);
    const mrc_solver *instead;
    while (may_begin_again(self, status, &instead)) status = begin_again(self, instead);
    if (status == MERCER_OK) mrc_trainer_tell_precision(self);
    mrc_trainer_fill_report(self);
    tear_down(self);
    job->resuming = job->announces = false;
    return status;
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

static mercer_status begin_streaming(mrc_trainer *self, const mercer_batch *batch)
{
    mrc_job *job = &self->job;
    begin(self);
    self->planned = false, self->streaming = true;
    if (mrc_name_is_auto(self->solver))
        job->options.solver = mrc_solver_fallback()->name; /* valid until the next fit */
    const mrc_solver *row = mrc_solver_find(job->options.solver);
    if (row && (!row->ops->step || row->traits & MRC_NEEDS_SAMPLES))
        return mrc_fail(job->context, MERCER_ERROR_UNSUPPORTED,
                        "solver %s cannot train on a stream of single batches; use %s", self->solver,
                        mrc_solver_fallback()->name);
    job->stream = (mrc_sample_stream){.context = job->context, .units = job->target.units};
    MRC_TRY(prepare_plan(self));
    self->planned_points = batch->X.dtype;
    MRC_TRY(mrc_trainer_make_plan(self, batch->X.rows, false, batch->X.dtype));
    return set_up(self, &batch->X, batch->X.rows);
}

mercer_status mrc_trainer_step(mrc_trainer *self, const mercer_batch *batch)
{
    mrc_job *job = &self->job;
    if (!job->ready) MRC_TRY(begin_streaming(self, batch));
    int64_t before = job->report.projections;
    MRC_TRY(mrc_sample_stream_weigh(&job->stream, batch));
    MRC_TRY(job->plan.solver->ops->step(job, batch));
    return job->report.projections > before ? publish(job) : MERCER_OK;
}

mercer_status mrc_trainer_finish(mrc_trainer *self)
{
    if (!self) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    if (!self->job.ready) return MERCER_OK;
    MRC_TRY(self->job.plan.solver->ops->finish(&self->job));
    return publish(&self->job);
}

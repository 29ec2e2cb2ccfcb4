/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Training by the iteration: set-up, epochs of steps, averaging and step decay over the later half, and a watchdog.
 *
 *   set-up     a sample of the data, its eigensystem, beta and the critical batch; the plan refined with these numbers;
 *              the parts that it requires
 *   average    running mean of alpha over the projections of the later half of the steps
 *   decay      the step size falls linearly to DECAY_END times its value over the later half
 *   watchdog   a loss that is not finite, twice the loss of weights 0, or ten times the best loss causes a rollback:
 *              the last good weights are restored, the step size is halved, and a line is logged; after MOST_HALVINGS
 *              rollbacks the next one fails with MERCER_ERROR_NUMERIC
 *
 * The sample is read from a separate pass (number -1), because X_s must have the distribution of the batches. beta is
 * estimated on "fresh" rows after the first s, because the sample itself would give a value that is too low.
 *
 * If p centers cannot fit the labels, iterates with a constant step size keep moving around the optimum. The mean of
 * the later iterates converges. The model gets the average; training continues from the last iterate.
 */
#include "solvers/iteration/iteration_solver.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"
#include "solvers/normal/exact_job.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* MOST_HALVINGS: if steps diverge even when they are a million times shorter than planned, the cause is not the step
   size. MEMORY_SAMPLES: number of samples over which the watchdog averages losses, so that a single hard batch of a few
   hundred rows raises no alarm. FRESH_ROWS: rows from which beta is estimated; the maximum over a sample misses rarer
   rows, hence the margin in eigensystem.c. */
enum { MOST_HALVINGS = 20, MEMORY_SAMPLES = 4000, FRESH_ROWS = 2000 };

/* Shorter steps reduce the noise of the iterates that are averaged; steps that shrink to 0 would stop progress along
   small eigenvalues. */
#define DECAY_END 0.25

typedef struct solver_state {
    mrc_eigensystem system;
    int64_t *sample_rows; /* (s) */
    mrc_projector *projector;
    mrc_iteration iteration;
    mercer_matrix rollback_weights; /* field: last good weights, for rollback */
    double setup_seconds;
    int64_t no_calls; /* always 0; listed in the state as the projector's number of calls if there is no projector */
} solver_state;

/* ---- Set-up: centers that are samples ------------------------------------------------------------------------- */

static mercer_status check_centers_are_samples(mrc_job *job, const mercer_matrix *sample, const int64_t *rows)
{
    const mercer_matrix *z = job->target.z;
    const char *name = job->plan.public_plan.solver;
    if (!rows)
        return mrc_fail(job->context, MERCER_ERROR_UNSUPPORTED,
                        "solver %s uses the samples as centers, so its source must report the row numbers of a batch",
                        name);
    if (job->target.p != job->n)
        return mrc_fail(job->context, MERCER_ERROR_SHAPE,
                        "solver %s uses the samples as centers, but the model has %lld centers and the source %lld "
                        "samples",
                        name, (long long)job->target.p, (long long)job->n);
    mercer_matrix x;
    mercer_status status = MERCER_OK;
    MRC_TRY(mrc_host_open(job->backend, sample, &x));
    for (int64_t i = 0; i < sample->rows && status == MERCER_OK; i++) {
        int64_t row = rows[i] - job->centers.first;
        if (row < 0 || row >= z->rows) continue; /* center of another rank, which checks it */
        if (!mrc_rows_equal(&x, i, z, row))
            status = mrc_fail(job->context, MERCER_ERROR_DATA,
                              "solver %s uses the samples as centers, but sample %lld differs from center %lld", name,
                              (long long)rows[i], (long long)rows[i]);
    }
    status = mrc_host_close(job->backend, sample, &x, false, status);
    return mrc_comm_together(job->comm, status, "centers");
}

/* ---- Set-up: parts ------------------------------------------------------------------------------------------- */

static mercer_status create_iteration(mrc_job *job, const mercer_matrix *sample)
{
    solver_state *self = job->state;
    const mercer_plan *plan = &job->plan.public_plan;
    mrc_iteration_options options = {.update = job->plan.solver->preset.update,
                                     .batch = plan->batch,
                                     .period = plan->period,
                                     .carry = plan->carry,
                                     .rule = job->plan.solver->preset.rule,
                                     .gamma = plan->step_factor,
                                     .ridge = plan->lambda / (double)job->n};
    if (options.update == MRC_UPDATE_PLAIN)
        MRC_TRY(mrc_plain_bounds(&job->centers, sample, options.ridge, plan->batch < job->n, &options.plain_top,
                                 &options.plain_beta));
    MRC_TRY(mrc_job_kernel_blocks(job));
    if (job->plan.projector) mrc_centers_notify(&job->centers, "projector", -1);
    if (job->plan.projector)
        MRC_TRY(
            mrc_projector_create(&self->projector, job->plan.projector, &job->centers, &job->plan.projector_options));
    if (self->projector)
        self->projector->buffers =
            /* this memory is free during projections, because they run between the products of batches */
            job->kernel_blocks.buffers;
    MRC_TRY(mrc_iteration_create(&self->iteration, &job->centers, &job->kernel_blocks, &self->system, self->projector,
                                 job->report.beta, job->target.weights->cols, &options));
    self->iteration.sample_rows = self->sample_rows;
    self->iteration.units = job->target.units;
    MRC_TRY(mrc_job_first_weights(job, &self->iteration.alpha));
    MRC_TRY(mrc_field_create(&job->centers, &self->rollback_weights, job->target.weights->cols, job->centers.real,
                             "weights of the last good step"));
    return mrc_job_first_weights(job, &self->rollback_weights);
}

static mercer_status copy_rows(mrc_job *job, const int64_t *rows, int64_t count)
{
    solver_state *self = job->state;
    if (!rows) return MERCER_OK;
    MRC_TRY(mrc_alloc(job->context, &self->sample_rows, count, sizeof *rows, "row numbers of the sample"));
    memcpy(self->sample_rows, rows, (size_t)count * sizeof *rows);
    return MERCER_OK;
}

/* Copy the spectrum for mercer_trainer_spectrum, which may be called after everything else has been freed. */
static mercer_status remember_spectrum(mrc_job *job)
{
    const mrc_eigensystem *system = &((solver_state *)job->state)->system;
    mrc_free(job->context, job->spectrum);
    job->spectrum_count = 0;
    MRC_TRY(mrc_alloc(job->context, &job->spectrum, system->q + 1, sizeof(double), "eigenvalues"));
    job->spectrum_count = system->q + 1;
    for (int64_t i = 0; i < system->q; i++) job->spectrum[i] = system->lambda[i];
    job->spectrum[system->q] = system->tail;
    return MERCER_OK;
}

static mercer_status create_parts(mrc_job *job, const mercer_matrix *sample, const int64_t *rows)
{
    solver_state *self = job->state;
    mrc_plan *plan = &job->plan;
    if (plan->solver->traits & MRC_NEEDS_SAMPLES) MRC_TRY(check_centers_are_samples(job, sample, rows));
    int64_t s = mrc_min(plan->public_plan.nystrom, sample->rows), fresh_rows = sample->rows - s;
    mercer_matrix first = mrc_rows(sample, 0, s), fresh = fresh_rows > 0 ? mrc_rows(sample, s, fresh_rows) : first;
    MRC_TRY(copy_rows(job, rows, s));
    MRC_TRY(
        mrc_eigensystem_create(&self->system, &job->centers, &first, plan->public_plan.eigenpairs, job->options.seed));
    mrc_centers_notify(&job->centers, "step size", -1);
    MRC_TRY(mrc_eigensystem_beta(&self->system, &job->centers, &fresh, plan->solver->preset.rule, &job->report.beta));
    if (job->stream.source) MRC_TRY(mrc_raise_beta(&job->centers, &job->stream, &fresh, &job->report.beta));
    job->report.tail = self->system.tail;
    MRC_TRY(job->host->refine(job, mrc_critical_batch(job->report.beta, self->system.tail, job->n), rows != NULL,
                              sample->dtype));
    plan->public_plan.eigenpairs = self->system.q; /* fewer than planned if some directions were lost in rounding */
    /* Warn here, not in the planner, which is called several times. */
    if (self->system.q > job->target.p / 10 && plan->solver->preset.update == MRC_UPDATE_PROJECT)
        mrc_warn(job->context, "eigenpairs",
                 "q = %lld eigenpairs are more than a tenth of the %lld centers, so the result is biased away from "
                 "least squares; reduce q or set polish",
                 (long long)self->system.q, (long long)job->target.p);
    MRC_TRY(remember_spectrum(job));
    return create_iteration(job, sample);
}

/* Build all parts from a sample (rows, d) of the data; rows: its row numbers, or NULL. */
static mercer_status build_iteration(mrc_job *job, const mercer_matrix *sample, const int64_t *rows)
{
    double start = mrc_seconds();
    mercer_status status = create_parts(job, sample, rows);
    ((solver_state *)job->state)->setup_seconds = mrc_seconds() - start;
    return status;
}

/* ---- Set-up: a sample from the stream ------------------------------------------------------------------------ */

typedef struct sample_buffer {
    mercer_matrix points;
    int64_t *rows;
    int64_t filled;
} sample_buffer;

static mercer_status read_sample(mrc_job *job, sample_buffer *buffer)
{
    MRC_TRY(mrc_sample_stream_restart(&job->stream, -1));
    while (buffer->filled < buffer->points.rows) {
        mercer_batch batch;
        mrc_centers_notify(&job->centers, "reading a sample", (double)buffer->filled / (double)buffer->points.rows);
        MRC_TRY(mrc_sample_stream_points(&job->stream, mrc_min(buffer->points.rows - buffer->filled, 4096), &batch));
        if (batch.X.rows == 0) break;
        mercer_matrix to = mrc_rows(&buffer->points, buffer->filled, batch.X.rows);
        MRC_TRY(job->backend->ops->copy(job->backend, &to, &batch.X));
        if (batch.rows) memcpy(buffer->rows + buffer->filled, batch.rows, (size_t)batch.X.rows * sizeof *buffer->rows);
        buffer->filled += batch.X.rows;
    }
    if (buffer->filled > 0) return MERCER_OK;
    return mrc_fail(job->context, MERCER_ERROR_DATA, "source: a pass has no samples");
}

/* Build all parts from a sample of the stream: s rows, and fresh rows. */
static mercer_status build_from_stream(mrc_job *job)
{
    const mercer_source *source = job->stream.source;
    int64_t s = job->plan.public_plan.nystrom, wanted = mrc_min(source->rows, s + mrc_min(FRESH_ROWS, s));
    sample_buffer buffer = {0};
    MRC_SCOPE(scope, job->context);
    MRC_TRY(mrc_scope_matrix(&scope, job->backend, &buffer.points, wanted, source->features, source->dtype,
                             "the sample of the data"));
    MRC_TRY(mrc_scope_alloc(&scope, &buffer.rows, wanted, sizeof *buffer.rows, "row numbers of the sample"));
    MRC_TRY(read_sample(job, &buffer));
    mercer_matrix sample = mrc_rows(&buffer.points, 0, buffer.filled);
    return build_iteration(job, &sample, job->stream.rows_known ? buffer.rows : NULL);
}

static mercer_status create_iteration_job(mrc_job *job, const mercer_matrix *first)
{
    MRC_TRY(mrc_alloc_zero(job->context, &job->state, 1, sizeof(solver_state), "the solver"));
    return first ? build_iteration(job, first, NULL) : build_from_stream(job);
}

static void destroy_iteration(mrc_job *job)
{
    solver_state *self = job->state;
    mrc_matrix_destroy(job->backend, &self->rollback_weights);
    mrc_iteration_destroy(&self->iteration);
    mrc_projector_free(self->projector);
    mrc_eigensystem_destroy(&self->system, job->backend);
    mrc_free(job->context, self->sample_rows);
    mrc_free(job->context, self);
}

/* ---- State --------------------------------------------------------------------------------------------------- */

/* Returns the average if there is one, else the last iterate. */
static const mercer_matrix *weights(const mrc_job *job)
{
    const mrc_iteration *iteration = &((const solver_state *)job->state)->iteration;
    return iteration->averaged > 0 ? &iteration->average : &iteration->alpha;
}

static void list_iteration(mrc_job *job, mrc_state *state)
{
    solver_state *self = job->state;
    mrc_iteration *iteration = &self->iteration;
    int64_t p = job->target.p;
    const double any = (double)INFINITY;
    const mrc_state_number numbers[] = {
        {"steps", .integer = &iteration->steps},
        {"pending", .integer = &iteration->pending},
        {"temporary", .integer = &iteration->temporary.count},
        {"averaged", .integer = &iteration->averaged},
        {"projections", .integer = &iteration->projections},
        {"calls", .integer = self->projector ? &self->projector->calls : &self->no_calls},
        {"halving", .real = &iteration->halving, .low = DBL_MIN, .high = 1},
        {"residual_sum", .real = &iteration->residual_sum, .high = any, .unknown = true},
        {"projection.residual", .real = &iteration->projection.residual, .high = any, .unknown = true},
        {"projection.passes", .real = &iteration->projection.passes, .high = MRC_ROWS_MOST},
        {"last_step", .real = &iteration->last_step, .high = DBL_MAX},
        {"decay", .real = &iteration->decay, .low = DBL_MIN, .high = 1},
        {"averaging", .flag = &iteration->averaging}};
    mrc_state_add_numbers(state, numbers, sizeof numbers / sizeof *numbers);
    mrc_state_add_field(state, "state.alpha", &iteration->alpha, p);
    mrc_state_add_field(state, "state.good", &self->rollback_weights, p);
    mrc_state_add_field(state, "state.sum", &iteration->sum, p);
    mrc_state_add_field(state, "state.left", &iteration->left, p);
    mrc_state_add_field(state, "state.average", &iteration->average, p);
    mrc_state_add_temporary(state, "state.points", &iteration->temporary.points, &iteration->temporary);
    mrc_state_add_temporary(state, "state.weights", &iteration->temporary.weights, &iteration->temporary);
    mrc_state_add_matrix(state, "state.sample_weights", &iteration->sample_weights);
    mrc_state_add_matrix(state, "state.values", &iteration->values);
}

/* Return whether the counts of a restored state fit the matrices, and `halving` is in (0, 1]. */
static bool check_weights(const mrc_job *job)
{
    const mrc_iteration *iteration = &((const solver_state *)job->state)->iteration;
    return iteration->temporary.count >= 0 && iteration->temporary.count <= iteration->temporary.most &&
           iteration->pending >= 0 && iteration->pending <= iteration->options.period && iteration->averaged >= 0 &&
           iteration->halving > 0 && iteration->halving <= 1;
}

/* Update the values that the trainer reports. */
static void report_iteration(mrc_job *job)
{
    const solver_state *self = job->state;
    const mrc_iteration *iteration = &self->iteration;
    mercer_report *report = &job->report;
    job->step = iteration->last_step, job->residual = iteration->projection.residual;
    report->steps = iteration->steps, report->projections = iteration->projections;
    report->setup_seconds = self->setup_seconds + job->times.setup;
    report->forward_seconds = iteration->forward_seconds + job->times.forward;
    report->gradient_seconds = iteration->gradient_seconds + job->times.gradient;
    report->projection_seconds = iteration->projection_seconds + job->times.solve;
    if (iteration->projections == 0) return;
    report->projection_residual_last = iteration->projection.residual;
    report->projection_residual_mean = iteration->residual_sum / (double)iteration->projections;
}

/* ---- Watchdog ------------------------------------------------------------------------------------------------ */

/* Add a batch's result to the running means. Return true if training diverges. */
static bool alarmed(mrc_watchdog *dog, const mrc_loss *result, int64_t rows)
{
    if (!isfinite(result->squared_error)) return true;
    double fade = fmax(0, 1 - (double)rows / MEMORY_SAMPLES);
    dog->samples = fade * dog->samples + (double)rows;
    double share = (double)rows / dog->samples;
    dog->loss += share * (result->squared_error / (double)rows - dog->loss);
    dog->target += share * (result->squared_target / (double)rows - dog->target);
    if (dog->best == 0 || dog->loss < dog->best) dog->best = dog->loss;
    if (dog->loss > 2 * dog->target && dog->loss > 2 * dog->best) return true;
    return dog->loss > 10 * dog->best && dog->loss > 1e-3 * dog->target;
}

/* Restores the last good weights and halves the step size. Fails after more than MOST_HALVINGS rollbacks. */
static mercer_status roll_back(mrc_job *job)
{
    solver_state *self = job->state;
    mrc_iteration *iteration = &self->iteration;
    job->report.halvings++;
    iteration->halving /= 2;
    memset(&job->watchdog, 0, sizeof job->watchdog);
    MRC_TRY(job->backend->ops->copy(job->backend, &iteration->alpha, &self->rollback_weights));
    MRC_TRY(mrc_iteration_forget(iteration));
    /* Warn only once; the report counts all halvings. */
    if (job->report.halvings == 1)
        mrc_warn(job->context, "solver",
                 "solver %s diverged at step %lld and continues with shorter steps, so it may end far from the "
                 "minimum; use direct or cg, or set polish",
                 job->plan.public_plan.solver, (long long)iteration->steps);
    mrc_log(job->context, MERCER_LOG_INFO,
            "training diverged at step %lld; continuing from the last good weights with %.3g of the step size",
            (long long)iteration->steps, iteration->halving);
    if (job->report.halvings <= MOST_HALVINGS) return MERCER_OK;
    return mrc_fail(
        job->context, MERCER_ERROR_NUMERIC,
        "training diverges even after halving the step size %d times; check that batches and the preconditioner's "
        "sample have the same distribution",
        (int)MOST_HALVINGS);
}

/* ---- Steps and epochs ---------------------------------------------------------------------------------------- */

/* Set step decay and averaging. done: share of the planned steps that are done. */
static void follow_schedule(mrc_job *job, double done)
{
    const mercer_plan *plan = &job->plan.public_plan;
    mrc_iteration *iteration = &((solver_state *)job->state)->iteration;
    double later = fmax(0, 2 * done - 1); /* 0 .. 1 over the later half */
    iteration->averaging = plan->average && done >= 0.5;
    iteration->decay = plan->decay ? 1 - (1 - DECAY_END) * fmin(later, 1) : 1;
}

/* Compute the residual, let the watchdog check it, and take a step. The sums are added to totals unless the batch is
   discarded by a rollback. */
static mercer_status take_step(mrc_job *job, const mercer_batch *batch, mrc_loss *totals)
{
    solver_state *self = job->state;
    mrc_iteration *iteration = &self->iteration;
    mrc_loss result;
    if (job->stream.heaviest > 0) iteration->heaviest = job->stream.heaviest;
    MRC_TRY(mrc_iteration_residual(iteration, batch, &result));
    if (alarmed(&job->watchdog, &result, batch->X.rows)) return roll_back(job);
    /* The loss is finite and small, so the weights of the last projection are good. */
    if (iteration->pending == 0)
        MRC_TRY(job->backend->ops->copy(job->backend, &self->rollback_weights, &iteration->alpha));
    mercer_status status = mrc_iteration_step(iteration, batch);
    if (status == MERCER_ERROR_NUMERIC)
        return roll_back(job); /* the right-hand side or the residual of a projection was not finite */
    MRC_TRY(status);
    mrc_loss_join(totals, &result);
    job->samples += batch->X.rows;
    report_iteration(job);
    return MERCER_OK;
}

/* Run the rest of the current pass, then project the pending steps. Set *stop to whether the progress callback
   requests a stop. */
static mercer_status run_epoch(mrc_job *job, mercer_stop *stop)
{
    const mercer_plan *plan = &job->plan.public_plan;
    double all = (double)job->n * (double)plan->epochs;
    MRC_TRY(mrc_sample_stream_restart(&job->stream, job->epoch));
    if (job->pass_rows > 0) MRC_TRY(mrc_sample_stream_skip(&job->stream, job->pass_rows));
    for (;;) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_next(&job->stream, plan->batch, &batch));
        if (batch.X.rows == 0) break;
        if (!batch.rows && job->plan.solver->traits & MRC_NEEDS_SAMPLES)
            return mrc_fail(job->context, MERCER_ERROR_UNSUPPORTED,
                            "solver %s uses the samples as centers, so its source must report the row numbers of "
                            "every batch",
                            plan->solver);
        follow_schedule(job, ((double)job->n * (double)job->epoch + (double)job->pass_rows) / all);
        MRC_TRY(take_step(job, &batch, &job->totals));
        job->pass_rows += batch.X.rows;
        bool enough;
        MRC_TRY(job->host->poll(job, &enough));
        *stop = enough ? MERCER_STOP_CALLBACK : MERCER_STOP_FINISHED;
        MRC_TRY(job->host->save(job, mrc_job_candidate(job), *stop ? MRC_SAVE_NOW : MRC_SAVE_STEP));
        if (*stop) break;
    }
    mercer_status status = mrc_iteration_project(&((solver_state *)job->state)->iteration);
    report_iteration(job);
    return status == MERCER_ERROR_NUMERIC ? roll_back(job) : status;
}

/* Warn after the first epoch if a row with a large weight makes all steps shorter. */
static void warn_of_weights(mrc_job *job)
{
    const mrc_sample_stream *stream = &job->stream;
    double mean = stream->weight / (double)mrc_max(stream->weighed, 1);
    if (job->epoch != 1 || !(stream->heaviest > MRC_UNEVEN_WEIGHTS * mean)) return;
    mrc_warn(job->context, "weights",
             "the largest sample weight is %.3g times the mean, and steps are shorter by this factor, so solver %s may "
             "end far from the minimum; use direct or cg, or set polish",
             stream->heaviest / mean, job->plan.public_plan.solver);
}

/* Report the sums of a whole pass, validate, and report progress. */
static mercer_status close_epoch(mrc_job *job, mercer_stop *stop)
{
    mercer_report *sums = &job->report;
    sums->epochs = ++job->epoch;
    sums->train_loss = mrc_loss_mean(&job->totals, job->target.weights->cols);
    sums->train_accuracy = job->options.classification == MERCER_ON ? mrc_loss_accuracy(&job->totals) : (double)NAN;
    job->totals = (mrc_loss){0};
    job->pass_rows = 0;
    warn_of_weights(job);
    mercer_progress progress = {.epoch = job->epoch,
                                .epochs = job->plan.public_plan.epochs,
                                .train_loss = sums->train_loss,
                                .train_accuracy = sums->train_accuracy,
                                .projection_residual = job->residual,
                                .step = job->step,
                                .steps = sums->steps,
                                .projections = sums->projections};
    MRC_TRY(job->host->end_epoch(job, weights(job), &progress, stop));
    return job->host->save(job, mrc_job_candidate(job), *stop == MERCER_STOP_CALLBACK ? MRC_SAVE_NOW : MRC_SAVE_EPOCH);
}

/* Take exact steps from the result of the iteration. Projector and kernel blocks are freed first, because the factor
   needs their memory. */
static mercer_status polish(mrc_job *job, const mercer_matrix *result)
{
    solver_state *self = job->state;
    /* a training run that is resumed from this checkpoint begins with polishing */
    MRC_TRY(job->host->save(job, result, MRC_SAVE_NOW));
    mrc_projector_free(self->projector);
    self->projector = self->iteration.projector = NULL;
    mrc_kernel_blocks_destroy(&job->kernel_blocks);
    mercer_status status = mrc_polish(job, result);
    report_iteration(job);
    return status;
}

static mercer_status run_iteration(mrc_job *job)
{
    MRC_TRY(job->resuming ? job->host->restore(job) : job->host->save(job, mrc_job_candidate(job), MRC_SAVE_NOW));
    report_iteration(job);
    mrc_centers_notify(&job->centers, MRC_READY, 1);
    mercer_stop stop = MERCER_STOP_FINISHED;
    while (job->epoch < job->plan.public_plan.epochs && !stop) {
        MRC_TRY(run_epoch(job, &stop));
        if (!stop) MRC_TRY(close_epoch(job, &stop));
    }
    job->report.stopped = stop;
    bool polishes = job->options.polish > 0 && stop != MERCER_STOP_CALLBACK;
    if (polishes) MRC_TRY(polish(job, mrc_job_candidate(job)));
    return polishes || job->have_best ? job->host->validate(job, mrc_job_candidate(job)) : MERCER_OK;
}

/* ---- Streaming ----------------------------------------------------------------------------------------------- */

/* Takes steps on a batch of the caller, in pieces of at most the planned batch size. */
static mercer_status iteration_step(mrc_job *job, const mercer_batch *batch)
{
    mrc_iteration *iteration = &((solver_state *)job->state)->iteration;
    int64_t most = job->plan.public_plan.batch;
    iteration->options.ridge = job->options.lambda / (double)mrc_max(job->n, job->samples + batch->X.rows);
    /* A stream has no planned end, so averaging begins with the first projection, and the step size does not decay. */
    iteration->averaging = job->plan.public_plan.average && iteration->projections > 0;
    for (int64_t first = 0; first < batch->X.rows; first += most) {
        int64_t rows = mrc_min(most, batch->X.rows - first);
        mercer_batch part = {.X = mrc_rows(&batch->X, first, rows),
                             .Y = mrc_rows(&batch->Y, first, rows),
                             .weights = batch->weights ? batch->weights + first : NULL};
        mrc_loss totals = {0};
        MRC_TRY(mrc_sample_stream_to_units(&job->stream, &part.Y));
        MRC_TRY(take_step(job, &part, &totals));
        job->report.train_loss = mrc_loss_mean(&totals, batch->Y.cols);
    }
    return MERCER_OK;
}

static mercer_status finish_iteration(mrc_job *job)
{
    mercer_status status = mrc_iteration_project(&((solver_state *)job->state)->iteration);
    report_iteration(job);
    return status;
}

const mrc_solver_ops mrc_iteration_ops = {.choose = mrc_iteration_choose,
                                          .complete_plan = mrc_iteration_complete_plan,
                                          .cost = mrc_iteration_cost,
                                          .create = create_iteration_job,
                                          .run = run_iteration,
                                          .step = iteration_step,
                                          .finish = finish_iteration,
                                          .list = list_iteration,
                                          .check = check_weights,
                                          .weights = weights,
                                          .destroy = destroy_iteration};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validation, best weights and patience at the end of an epoch or CG step; progress reports at that time, between steps
 * and during set-up; the check after each epoch whether automatic half precision is accurate enough (plan_precision.c
 * has the bounds):
 *
 *   rows    evenly spaced rows of the validation set, else training samples, whose loss is smaller, so that the check
 *           is stricter. n / 256 rows, but 64 to 1,024: their accurate products take little time compared with an epoch
 *   check   predictions with the current weights, in both arithmetics
 *
 * After a failed check, training restarts in accurate arithmetic, and its result is the same as if half precision had
 * not been tried. Little time is lost, because epochs are short on devices where half precision pays.
 */
#include "training/trainer.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* VALIDATION_ROWS: rows of the validation set that are predicted at a time, so that scratch memory does not depend on
   the size of the set; plan_ranks.c assumes the same number. The other constants determine the rows of the check of
   half precision (see above): FEWEST_ROWS give the loss an uncertainty of sqrt(2 / 64) = 18 %, MOST_ROWS of 4 %. */
enum { VALIDATION_ROWS = 2048, FEWEST_ROWS = 64, MOST_ROWS = 1024, SAMPLES_PER_ROW = 256 };

mercer_status mrc_trainer_validate(mrc_job *job, const mercer_matrix *alpha)
{
    const mercer_matrix *x = job->options.validation_X, *y = job->options.validation_Y;
    const double *weights = job->options.validation_weights;
    job->report.validation_loss = job->report.validation_accuracy = NAN;
    if (!x || x->rows == 0) return MERCER_OK;
    double start = mrc_seconds();
    mrc_loss sums = {0};
    int64_t block = mrc_min(VALIDATION_ROWS, x->rows);
    mercer_matrix f;
    MRC_SCOPE(scope, job->context);
    MRC_TRY(mrc_scope_matrix(&scope, job->backend, &f, block, y->cols, job->centers.real, "validation predictions"));
    for (int64_t first = 0; first < x->rows; first += block) {
        int64_t rows = mrc_min(block, x->rows - first);
        mercer_matrix part_x = mrc_rows(x, first, rows), part_y = mrc_rows(y, first, rows),
                      part_f = mrc_rows(&f, 0, rows);
        MRC_TRY(mrc_centers_predict(&job->centers, &part_x, alpha, &part_f, NULL));
        MRC_TRY(mrc_sample_stream_to_units(&job->stream, &part_y));
        MRC_TRY(
            mrc_loss_add(&sums, job->backend, &part_f, &part_y, weights ? weights + first : NULL, job->target.units));
    }
    job->report.validation_loss = mrc_loss_mean(&sums, y->cols);
    if (job->options.classification == MERCER_ON) job->report.validation_accuracy = mrc_loss_accuracy(&sums);
    job->report.validation_seconds += mrc_seconds() - start;
    return MERCER_OK;
}

/* ---- Half precision ---------------------------------------------------------------------------------------------- */

/* Sets x and y to views of the rows of the check and of their transformed targets. Evenly spaced validation rows are a
   view with a larger leading dimension. Training samples come from pass -1, which no epoch uses. */
static mercer_status held_back(mrc_job *job, mercer_matrix *x, mercer_matrix *y)
{
    int64_t rows = mrc_max(FEWEST_ROWS, mrc_min(MOST_ROWS, job->n / SAMPLES_PER_ROW));
    const mercer_matrix *held = job->options.validation_X;
    if (!held || held->rows == 0) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_restart(&job->stream, -1));
        MRC_TRY(mrc_sample_stream_next(&job->stream, rows, &batch));
        *x = batch.X, *y = batch.Y;
        return MERCER_OK;
    }
    *x = *held, *y = *job->options.validation_Y;
    rows = mrc_min(rows, held->rows);
    int64_t step = held->rows / rows;
    x->rows = y->rows = rows, x->ld *= step, y->ld *= step;
    return mrc_sample_stream_to_units(&job->stream, y);
}

/* Computes the loss in accurate arithmetic, and the squared difference of the predictions in both arithmetics. */
static mercer_status compare(mrc_job *job, const mercer_matrix *candidate, mrc_loss *loss, mrc_loss *difference)
{
    mercer_matrix x, y, rounded, accurate;
    mrc_centers *centers = &job->centers;
    const mrc_units *units = job->target.units;
    MRC_SCOPE(scope, job->context);
    MRC_TRY(held_back(job, &x, &y));
    MRC_TRY(mrc_scope_matrix(&scope, job->backend, &rounded, x.rows, y.cols, centers->real, "predictions"));
    MRC_TRY(mrc_scope_matrix(&scope, job->backend, &accurate, x.rows, y.cols, centers->real, "predictions"));
    MRC_TRY(mrc_centers_predict(centers, &x, candidate, &rounded, NULL));
    centers->half = false;
    mercer_status status = mrc_centers_predict(centers, &x, candidate, &accurate, NULL);
    centers->half = true;
    MRC_TRY(status);
    MRC_TRY(mrc_loss_add(loss, job->backend, &accurate, &y, NULL, units));
    return mrc_loss_add(difference, job->backend, &rounded, &accurate, NULL, units);
}

/* Checks whether half precision is accurate enough, and fails with MERCER_ERROR_NUMERIC if it is not. */
static mercer_status check_precision(mrc_trainer *self, const mercer_matrix *candidate)
{
    mrc_job *job = &self->job;
    mrc_loss loss = {0}, difference = {0};
    if (!job->plan.half_chosen) return MERCER_OK;
    MRC_TRY(compare(job, candidate, &loss, &difference));
    double limit = mrc_rounding_limit(job->n);
    double share = difference.squared_error > 0 ? difference.squared_error / loss.squared_error : 0;
    bool refused = !(share <= limit); /* also true for NaN */
    MRC_TRY(mrc_comm_any(job->comm, refused, &refused));
    self->rounding = fmax(self->rounding, share), self->rounding_rows = loss.rows;
    mrc_log(job->context, MERCER_LOG_DEBUG,
            "arithmetic fast: rounding changes the loss by %.2e on %lld rows (limit %.2e)", share, (long long)loss.rows,
            limit);
    if (!refused) return MERCER_OK;
    return mrc_fail(
        job->context, MERCER_ERROR_NUMERIC,
        "arithmetic fast: on %lld %s rounding changes the loss by %.1e, more than the limit of %.1e for %lld samples",
        (long long)loss.rows, job->options.validation_X ? "held-out rows" : "samples", share, limit, (long long)job->n);
}

void mrc_trainer_log_precision(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    mercer_plan *plan = &self->job.plan.public_plan;
    size_t before = strlen(plan->text);
    if (!job->plan.half_chosen || self->rounding_rows == 0) return;
    mrc_plan_say(plan, "arithmetic fast, confirmed: on %lld %s rounding changes the loss by %.1e (limit %.1e)\n",
                 (long long)self->rounding_rows, job->options.validation_X ? "held-out rows" : "samples",
                 self->rounding, mrc_rounding_limit(job->n));
    plan->changes += (int64_t)(strlen(plan->text) - before);
}

/* ---- Epochs ------------------------------------------------------------------------------------------------------ */

/* Saves the weights if their score is the best so far: accuracy for classification, otherwise the negative loss. Ties
   keep the earlier weights. */
static mercer_status remember_best(mrc_trainer *self, const mercer_matrix *candidate, double score)
{
    mrc_job *job = &self->job;
    if (job->have_best && !(score > self->best_score)) {
        self->since_best++;
        return MERCER_OK;
    }
    if (!job->best.data)
        MRC_TRY(mrc_field_create(&job->centers, &job->best, candidate->cols, job->centers.real, "the best weights"));
    MRC_TRY(job->backend->ops->copy(job->backend, &job->best, candidate));
    job->have_best = true;
    self->best_score = score;
    self->since_best = 0;
    return MERCER_OK;
}

/* Returns a progress report with the fields that are known at any time; losses are NaN. */
static mercer_progress progress_of(const mrc_trainer *self, double now)
{
    const mrc_job *job = &self->job;
    return (mercer_progress){.struct_size = sizeof(mercer_progress),
                             .stage = "training",
                             .epoch = job->epoch,
                             .epochs = job->plan.public_plan.epochs,
                             .samples = job->samples,
                             .seconds = self->earlier_seconds + now - self->start,
                             .train_loss = NAN,
                             .train_accuracy = NAN,
                             .validation_loss = NAN,
                             .validation_accuracy = NAN,
                             .pass_total = job->stream.source->rows,
                             .steps = job->report.steps,
                             .projections = job->report.projections};
}

mercer_status mrc_trainer_end_epoch(mrc_job *job, const mercer_matrix *candidate, mercer_progress *progress,
                                    mercer_stop *stop)
{
    mrc_trainer *self = (mrc_trainer *)job;
    *stop = MERCER_STOP_FINISHED;
    MRC_TRY(check_precision(self, candidate));
    MRC_TRY(mrc_trainer_validate(job, candidate));
    progress->validation_loss = job->report.validation_loss;
    progress->validation_accuracy = job->report.validation_accuracy;
    if (job->options.patience > 0 && job->options.validation_X) {
        bool by_accuracy = job->options.classification == MERCER_ON;
        MRC_TRY(
            remember_best(self, candidate, by_accuracy ? progress->validation_accuracy : -progress->validation_loss));
        if (self->since_best >= job->options.patience) *stop = MERCER_STOP_PATIENCE;
    }
    progress->struct_size = sizeof *progress;
    progress->stage = "training";
    progress->seconds = self->earlier_seconds + mrc_seconds() - self->start;
    progress->pass_total = job->n;
    progress->samples = job->samples;
    if (!job->options.progress) return MERCER_OK;
    bool enough = job->options.progress(job->options.progress_user, progress) != 0 || self->stop_asked;
    MRC_TRY(mrc_comm_any(job->comm, enough, &enough));
    if (enough) *stop = MERCER_STOP_CALLBACK;
    return MERCER_OK;
}

/* ---- Progress between steps ---------------------------------------------------------------------------------- */

/* Reports progress if a report is due. Returns whether the callback requests a stop. */
static bool show_progress(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    const mercer_train_options *options = &job->options;
    double now = mrc_seconds();
    if (now - self->last_shown < options->progress_seconds) return false;
    bool iterating = job->totals.rows > 0;
    mercer_progress progress = progress_of(self, now);
    progress.train_loss = iterating ? mrc_loss_mean(&job->totals, job->target.weights->cols) : job->report.train_loss;
    if (iterating && options->classification == MERCER_ON) progress.train_accuracy = mrc_loss_accuracy(&job->totals);
    progress.projection_residual = job->residual;
    progress.step = job->step;
    progress.pass_samples = job->stream.in_pass;
    self->last_shown = now;
    return options->progress(options->progress_user, &progress) != 0;
}

mercer_status mrc_trainer_poll(mrc_job *job, bool *stop)
{
    mrc_trainer *self = (mrc_trainer *)job;
    *stop = false;
    if (!job->options.progress || !(job->options.progress_seconds > 0)) return MERCER_OK;
    bool enough = show_progress(self) || self->stop_asked;
    return mrc_comm_any(job->comm, enough, stop);
}

/* Set-up cannot be interrupted, because its parts have no consistent state to stop in. A requested stop takes effect at
   the first step. */
void mrc_trainer_notice(void *user, const char *what, double share)
{
    mrc_trainer *self = user;
    mrc_job *job = &self->job;
    const mercer_train_options *options = &job->options;
    double now = mrc_seconds();
    bool ready = strcmp(what, MRC_READY) == 0, same = strcmp(what, self->phase) == 0;
    if (!job->announces || !options->progress || !(options->progress_seconds > 0)) return;
    job->announces = !ready;
    if (same && now - self->last_shown < options->progress_seconds) return;
    /* Wait for the device: its pending work belongs to the phase that ends. A failure is not checked here, because
       later calls report it. */
    if (!same) (void)job->backend->ops->sync(job->backend);
    mercer_progress progress = progress_of(self, same ? now : mrc_seconds());
    progress.pass_samples = job->pass_rows;
    progress.phase = what, progress.phase_share = share;
    snprintf(self->phase, sizeof self->phase, "%s", what);
    self->last_shown = now;
    if (options->progress(options->progress_user, &progress) != 0) self->stop_asked = true;
}

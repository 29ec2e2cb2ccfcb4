/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Automatic half precision: measurements of the centers for the plan, and the check after each epoch whether it is
 * accurate enough (plan/plan_precision.c derives the limits).
 *
 *   rows    evenly spaced rows of the validation set, else training samples, whose loss is smaller, so that the check
 *           is stricter. n / 256 rows, but 64 to 1,024: their accurate products take little time compared with an epoch
 *   check   predictions with the current weights, in both arithmetics
 *
 * After a failed check, training restarts in accurate arithmetic, and its result is the same as if half precision had
 * not been tried. Little time is lost, because epochs are short on devices where half precision pays.
 */
#include "training/trainer.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

enum { LOOKED_AT = 1000, FEWEST_ROWS = 64, MOST_ROWS = 1024, SAMPLES_PER_ROW = 256 };

/* ---- Before training --------------------------------------------------------------------------------------------- */

/* Measures up to LOOKED_AT evenly spaced centers, because rows may be sorted. */
void mrc_trainer_look_at_rounding(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    const mrc_target *target = &job->target;
    const mrc_backend_ops *ops = job->backend->ops;
    const mercer_matrix *z = target->z;
    mrc_plan_request *request = &self->request;
    double sum = 0, bandwidth = target->kernel->bandwidth;
    request->gains_by_half = ops->gains_by_half && ops->gains_by_half(job->backend, target->kernel);
    if (!request->gains_by_half || job->context->arithmetic != MRC_BY_PLAN || z->rows == 0 || z->dtype == MERCER_U8)
        return;
    int64_t rows = mrc_min(z->rows, LOOKED_AT), step = z->rows / rows;
    for (int64_t i = 0; i < rows; i++) {
        double squares = 0, fourths = 0;
        for (int64_t k = 0; k < z->cols; k++) {
            double x = (mrc_load(z, i * step, k) - target->origin[k]) / bandwidth;
            squares += x * x, fourths += x * x * x * x;
            request->farthest = fmax(request->farthest, fabs(x));
        }
        if (squares > 0) sum += fourths / squares;
    }
    request->coordinates = sum / (double)rows;
}

/* ---- After an epoch ---------------------------------------------------------------------------------------------- */

/* Sets x and y to views of the rows of the check and of their transformed targets. */
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
static mercer_status compare_predictions(mrc_job *job, const mercer_matrix *candidate, mrc_loss *loss,
                                         mrc_loss *difference)
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

mercer_status mrc_trainer_check_precision(mrc_trainer *self, const mercer_matrix *candidate)
{
    mrc_job *job = &self->job;
    mrc_loss loss = {0}, difference = {0};
    if (!job->plan.half_chosen) return MERCER_OK;
    MRC_TRY(compare_predictions(job, candidate, &loss, &difference));
    double limit = mrc_rounding_limit(job->n);
    double share = difference.squared_error > 0 ? difference.squared_error / loss.squared_error : 0;
    bool refused = !(share <= limit); /* also true for NaN */
    MRC_TRY(mrc_comm_any(job->comm, refused, &refused));
    self->rounding = fmax(self->rounding, share), self->rounding_rows = loss.rows;
    mrc_log(job->context, MERCER_LOG_DEBUG, "arithmetic fast: %.2e of the loss on %lld rows, at most %.2e", share,
            (long long)loss.rows, limit);
    if (!refused) return MERCER_OK;
    return mrc_fail(job->context, MERCER_ERROR_NUMERIC,
                    "arithmetic fast: on %lld %s rounding changes the loss by %.1e, more than the limit of %.1e for "
                    "%lld samples",
                    (long long)loss.rows, job->options.validation_X ? "held-out rows" : "samples", share, limit,
                    (long long)job->n);
}

void mrc_trainer_log_precision(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    mercer_plan *plan = &self->job.plan.public_plan;
    if (!job->plan.half_chosen || self->rounding_rows == 0) return;
    mrc_plan_say(plan, "arithmetic fast, confirmed: on %lld %s rounding changes the loss by %.1e (limit %.1e)\n",
                 (long long)self->rounding_rows, job->options.validation_X ? "held-out rows" : "samples",
                 self->rounding, mrc_rounding_limit(job->n));
    plan->changes++;
}

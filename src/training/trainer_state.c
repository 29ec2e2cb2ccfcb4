/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Saving the state of a training, and resuming from it.
 *
 * A state has everything that steps change: weights, sums since the last projection, temporary centers, averages, the
 * position in the samples, the watchdog. Set-up is repeated instead of saved: its eigensystems and factors are
 * deterministic functions of data, options and plan. They are large, and the plan is part of the state (plan_values.c),
 * so a resumed training gets the same ones.
 */
#include "training/trainer.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/numbers/bounds.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* default seconds between checkpoints within an epoch: the work that an interruption can lose */
#define KEEP_SECONDS 600.0
#define MOST_SECONDS 1e10 /* limit of a training's seconds: 300 years */

/* ---- The list ------------------------------------------------------------------------------------------------ */

/* Lists the trainer's part of the state. Names are part of the file format. Bounds protect against damaged files. */
static void list_trainer(mrc_trainer *self, mrc_state *state)
{
    mrc_job *job = &self->job;
    mercer_report *report = &job->report;
    const double any = (double)INFINITY; /* losses may overflow before the watchdog halves the steps */
    const double most = 1 + 1e-9;        /* limit of an accuracy, with rounding error */
    const mrc_state_number numbers[] = {
        {"epoch", .whole = &job->epoch},
        {"pass_rows", .whole = &job->pass_rows},
        {"samples", .whole = &job->samples},
        {"since_best", .whole = &self->since_best},
        {"totals.rows", .whole = &job->totals.rows},
        {"halvings", .whole = &report->halvings},
        {"epochs", .whole = &report->epochs},
        {"seconds", .real = &self->saved_seconds, .high = MOST_SECONDS},
        {"best_score", .real = &self->best_score, .low = -any, .high = most, .unknown = true},
        {"watchdog.loss", .real = &job->watchdog.loss, .high = any, .unknown = true},
        {"watchdog.target", .real = &job->watchdog.target, .high = any, .unknown = true},
        {"watchdog.best", .real = &job->watchdog.best, .high = any, .unknown = true},
        {"watchdog.seen", .real = &job->watchdog.seen, .high = MRC_ROWS_MOST},
        {"totals.squared_error", .real = &job->totals.squared_error, .high = any, .unknown = true},
        {"totals.squared_target", .real = &job->totals.squared_target, .high = any, .unknown = true},
        {"totals.weighted_error", .real = &job->totals.weighted_error, .high = any, .unknown = true},
        {"totals.right", .real = &job->totals.right, .high = DBL_MAX},
        {"totals.weight", .real = &job->totals.weight, .high = DBL_MAX},
        {"heaviest", .real = &job->stream.heaviest, .high = DBL_MAX},
        {"train_loss", .real = &report->train_loss, .high = any, .unknown = true},
        {"train_accuracy", .real = &report->train_accuracy, .high = most, .unknown = true},
        {"validation_loss", .real = &report->validation_loss, .high = any, .unknown = true},
        {"validation_accuracy", .real = &report->validation_accuracy, .high = most, .unknown = true},
        {"have_best", .flag = &job->have_best}};
    mrc_state_add_numbers(state, numbers, sizeof numbers / sizeof *numbers);
    mercer_matrix none = mrc_view(NULL, 0, job->target.weights->cols, job->target.weights->dtype);
    mrc_state_add_field(state, "state.best", job->have_best && job->best.data ? &job->best : &none, job->target.p);
    mrc_trainer_list_plan(self, &state->plan);
}

/* Lists the trainer's state, then the solver's. */
static void list_all(mrc_trainer *self, mrc_state *state)
{
    memset(state, 0, sizeof *state);
    list_trainer(self, state);
    if (self->job.plan.solver->ops->list) self->job.plan.solver->ops->list(&self->job, state);
}

/* Replaces the matrices of the state by host copies with contiguous rows, as they are in a file. live: receives the
   original matrices. */
static mercer_status open_all(mrc_trainer *self, mrc_state *state, mercer_matrix *live)
{
    for (int i = 0; i < state->matrix_count; i++) {
        live[i] = state->matrices[i].value;
        state->matrices[i].value.data = NULL; /* nothing to close if opening this or an earlier matrix fails */
    }
    for (int i = 0; i < state->matrix_count; i++) {
        MRC_TRY(mrc_host_open(self->job.backend, &live[i], &state->matrices[i].value));
        if (state->matrices[i].temporary)
            mrc_temporary_centers_close_up(state->matrices[i].temporary, &state->matrices[i].value);
    }
    return MERCER_OK;
}

/* Frees the host copies; first copies them back to the original matrices if `changed`. Returns the first error. */
static mercer_status close_all(mrc_trainer *self, mrc_state *state, const mercer_matrix *live, bool changed,
                               mercer_status status)
{
    for (int i = 0; i < state->matrix_count; i++) {
        if (state->matrices[i].temporary)
            mrc_temporary_centers_spread(state->matrices[i].temporary, &state->matrices[i].value);
        status = mrc_host_close(self->job.backend, &live[i], &state->matrices[i].value, changed, status);
    }
    return status;
}

static mercer_status save_state(mrc_trainer *self, mrc_state *state, const mercer_matrix *weights)
{
    mercer_matrix live[MRC_STATE_MATRICES], host = {0};
    mercer_status status = open_all(self, state, live);
    if (status == MERCER_OK) status = mrc_host_open(self->job.backend, weights, &host);
    if (status == MERCER_OK) status = mrc_checkpoint_save(self->checkpoint, state, &host);
    status = mrc_host_close(self->job.backend, weights, &host, false, status);
    return close_all(self, state, live, false, status);
}

/* ---- Saving -------------------------------------------------------------------------------------------------- */

/* Returns whether a checkpoint is due on this rank. At the end of an epoch one is due if writing takes at most a fifth
   of the time and at least a second has passed, or if writing takes at most a twentieth of the time: short fits on
   small models should not spend their time on checkpoints. Within an epoch only the time limit counts. */
static bool is_due(const mrc_trainer *self, mrc_save_moment moment)
{
    double most = self->job.options.checkpoint_seconds > 0 ? self->job.options.checkpoint_seconds : KEEP_SECONDS;
    double pause = fmin(20 * self->save_seconds, fmax(1, 5 * self->save_seconds));
    double since = mrc_seconds() - self->last_save;
    if (moment == MRC_SAVE_NOW || atomic_load(&self->save_requested)) return true;
    return self->job.comm->rank == 0 && (since >= most || (moment == MRC_SAVE_EPOCH && since >= pause));
}

/* Warns once when saving starts to fail, and logs once when it works again. Training continues in between. */
static void tell_failure(mrc_trainer *self, const mrc_reason *reason)
{
    bool failed = reason->status != MERCER_OK;
    if (failed && !self->save_failed)
        mrc_warn(self->job.context, "checkpoint",
                 "no checkpoint can be written after %" PRId64 " samples; training continues without one: %s",
                 self->job.samples, reason->text);
    if (!failed && self->save_failed)
        mrc_log(self->job.context, MERCER_LOG_WARNING, "checkpoints are written again, after %" PRId64 " samples",
                self->job.samples);
    self->save_failed = failed;
}

mercer_status mrc_trainer_save(mrc_job *job, const mercer_matrix *weights, mrc_save_moment moment)
{
    mrc_trainer *self = (mrc_trainer *)job;
    bool due;
    if (!mrc_checkpoint_saves(self->checkpoint)) return MERCER_OK;
    /* due by the clock of rank 0, or by a request to any rank */
    MRC_TRY(mrc_comm_any(self->job.comm, is_due(self, moment), &due));
    if (!due) return MERCER_OK;
    /* cleared before writing, so that a request during the write leads to another checkpoint */
    atomic_store(&self->save_requested, false);
    mrc_state state;
    double start = mrc_seconds();
    self->saved_seconds = self->earlier_seconds + start - self->start;
    list_all(self, &state);
    if (state.overflow) return mrc_fail(self->job.context, MERCER_ERROR_INTERNAL, "the state of training is too long");
    mercer_status status = save_state(self, &state, weights);
    self->last_save = mrc_seconds();
    self->save_seconds = self->last_save - start;
    if (moment == MRC_SAVE_NOW || (status != MERCER_OK && self->job.comm->broken)) return status;
    mrc_reason reason = mrc_take_error(self->job.context, status);
    tell_failure(self, &reason);
    return MERCER_OK;
}

/* ---- Resuming ---------------------------------------------------------------------------------------------------- */

/* Checks the numbers that were read. The file is not trusted: counts are used as indices and must stay within the
   matrices. */
static mercer_status check_numbers(const mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    bool good = job->epoch >= 0 && job->epoch <= job->plan.public_plan.epochs && job->pass_rows >= 0 &&
                job->pass_rows <= job->n && job->samples >= 0 && self->saved_seconds >= 0;
    if (good && (!job->plan.solver->ops->check || job->plan.solver->ops->check(job))) return MERCER_OK;
    return mrc_fail(job->context, MERCER_ERROR_FORMAT, "the checkpoint's numbers are out of range");
}

mercer_status mrc_trainer_restore(mrc_job *job)
{
    mrc_trainer *self = (mrc_trainer *)job;
    mrc_state state;
    list_all(self, &state);
    MRC_TRY(mrc_trainer_check_plan(self, &state.plan));
    MRC_TRY(mrc_checkpoint_load_numbers(self->checkpoint, &state));
    MRC_TRY(check_numbers(self));
    if (job->have_best && !job->best.data)
        MRC_TRY(mrc_field_create(&job->centers, &job->best, job->target.weights->cols, job->centers.real,
                                 "the best weights"));
    list_all(self, &state); /* list again, because sizes are known now */
    mercer_matrix live[MRC_STATE_MATRICES];
    mercer_status status = open_all(self, &state, live);
    if (status == MERCER_OK) status = mrc_checkpoint_load_matrices(self->checkpoint, &state);
    MRC_TRY(close_all(self, &state, live, true, status));
    self->earlier_seconds = self->saved_seconds;
    self->last_save = mrc_seconds();
    return MERCER_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeping the state of a training, going on with it, and progress between steps.
 *
 * A state holds what steps change: weights, sums since the last projection, temporary centers, averages, the place in
 * the samples, the watchdog. What is computed from the data at set-up (eigensystems, factors, the sample) is computed
 * again: it is a function of the data, the options and the plan, to the last bit. So the plan must be the same one, and
 * its text, with the threads and the budget it was made for, goes into the state.
 */
#include "training/trainer.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEEP_SECONDS 600.0

/* ---- The list ------------------------------------------------------------------------------------------------ */

void mrc_trainer_describe(const mrc_trainer *self, char *text, size_t size)
{
    const mercer_plan *plan = &self->plan.public_plan;
    const mercer_train_options *options = &self->options;
    snprintf(text, size,
             "threads %" PRId64 " budget %" PRId64 ": n %" PRId64 " p %" PRId64 " d %" PRId64 " c %" PRId64
             " type %d shards %d solver %s projector %s epochs %" PRId64 " m %" PRId64 " s %" PRId64 " q %" PRId64
             " T %" PRId64 " projection %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
             " carry %d average %d decay %d cache %d %d step %.17g lambda %.17g polish %" PRId64 " patience %" PRId64
             " seed %" PRIu64,
             self->planned_threads, self->planned_budget, self->n, self->target.p, self->target.z->cols,
             self->target.weights->cols, (int)self->target.weights->dtype, mrc_comm_shards(self->comm, self->target.p),
             plan->solver, plan->projector, plan->epochs, plan->batch, plan->nystrom, plan->eigenpairs, plan->period,
             plan->projector_nystrom, plan->projector_eigenpairs, plan->projector_passes, plan->projector_block,
             plan->carry, plan->average, plan->decay, plan->cache_data, plan->cache_centers, plan->step_factor,
             plan->lambda, options->polish, options->patience, options->seed);
    size_t used = strlen(text);
    if (mrc_units_given(self->target.units))
        snprintf(text + used, size - used, " targets %016" PRIx64,
                 mrc_units_print(self->target.units, self->target.weights->cols));
}

static void list_trainer(mrc_trainer *self, mrc_state *state)
{
    mercer_report *report = &self->report;
    int64_t *const whole[] = {&self->epoch,       &self->pass_rows,  &self->samples, &self->since_best,
                              &self->totals.rows, &report->halvings, &report->epochs};
    double *const real[] = {&self->kept_seconds,          &self->best_score,
                            &self->watchdog.loss,         &self->watchdog.target,
                            &self->watchdog.best,         &self->watchdog.seen,
                            &self->totals.squared_error,  &self->totals.squared_target,
                            &self->totals.weighted_error, &self->totals.right,
                            &self->totals.weight,         &self->stream.heaviest,
                            &report->train_loss,          &report->train_accuracy,
                            &report->validation_loss,     &report->validation_accuracy};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) mrc_state_add_whole(state, whole[i]);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) mrc_state_add_real(state, real[i]);
    mrc_state_add_flag(state, &self->have_best);
    mercer_matrix none = mrc_view(NULL, 0, self->target.weights->cols, self->target.weights->dtype);
    mrc_state_add_field(state, "state.best", self->have_best && self->best.data ? &self->best : &none, self->target.p);
    mrc_trainer_describe(self, state->plan, sizeof state->plan);
}

/* Points or weights of the temporary centers. */
static void list_temporary(const mrc_temporary_centers *temporary, mrc_state *state, const char *name,
                           const mercer_matrix *all)
{
    mercer_matrix used = mrc_temporary_centers_used(temporary, all);
    int64_t first, rows;
    mrc_temporary_centers_rows(temporary, &first, &rows);
    mrc_state_add_temporary(state, name, &used, temporary->count, first);
}

static void list_iteration(mrc_trainer *self, mrc_state *state)
{
    mrc_iteration *iteration = &self->iteration;
    int64_t *const whole[] = {&iteration->steps,    &iteration->pending,     &iteration->temporary.count,
                              &iteration->averaged, &iteration->projections, &self->projector_calls};
    double *const real[] = {&iteration->halving,           &iteration->residual_sum, &iteration->projection.residual,
                            &iteration->projection.passes, &iteration->last_step,    &iteration->decay};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) mrc_state_add_whole(state, whole[i]);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) mrc_state_add_real(state, real[i]);
    mrc_state_add_flag(state, &iteration->averaging);
    mrc_state_add_field(state, "state.alpha", &iteration->alpha, self->target.p);
    mrc_state_add_field(state, "state.good", &self->rollback_weights, self->target.p);
    mrc_state_add_field(state, "state.sum", &iteration->sum, self->target.p);
    mrc_state_add_field(state, "state.left", &iteration->left, self->target.p);
    mrc_state_add_field(state, "state.average", &iteration->average, self->target.p);
    list_temporary(&iteration->temporary, state, "state.points", &iteration->temporary.points);
    list_temporary(&iteration->temporary, state, "state.weights", &iteration->temporary.weights);
    mrc_state_add_matrix(state, "state.sample_weights", &iteration->sample_weights);
    mrc_state_add_matrix(state, "state.values", &iteration->values);
}

/* The trainer's list, then the solver's: `own`, or the iteration's if it is NULL. */
static void list_all(mrc_trainer *self, const mrc_state *own, mrc_state *state)
{
    memset(state, 0, sizeof *state);
    list_trainer(self, state);
    if (!own) {
        list_iteration(self, state);
        return;
    }
    for (int i = 0; i < own->matrix_count; i++) {
        const mrc_state_matrix *matrix = &own->matrices[i];
        if (matrix->total > 0)
            mrc_state_add_field(state, matrix->name, &matrix->value, matrix->total);
        else
            mrc_state_add_matrix(state, matrix->name, &matrix->value);
    }
    for (int i = 0; i < own->number_count; i++) {
        const mrc_state_number *number = &own->numbers[i];
        if (number->whole)
            mrc_state_add_whole(state, number->whole);
        else if (number->real)
            mrc_state_add_real(state, number->real);
        else
            mrc_state_add_flag(state, number->flag);
    }
}

/* Files know host memory only, and no room between rows. live: the matrices of the list where they live. */
static mercer_status open_all(mrc_trainer *self, mrc_state *state, mercer_matrix *live)
{
    for (int i = 0; i < state->matrix_count; i++) {
        live[i] = state->matrices[i].value;
        state->matrices[i].value.data = NULL; /* nothing to close, should this or an earlier one fail */
    }
    for (int i = 0; i < state->matrix_count; i++) {
        MRC_TRY(mrc_host_open(self->backend, &live[i], &state->matrices[i].value));
        if (state->matrices[i].temporary)
            mrc_temporary_centers_close_up(&self->iteration.temporary, &state->matrices[i].value);
    }
    return MERCER_OK;
}

static mercer_status close_all(mrc_trainer *self, mrc_state *state, const mercer_matrix *live, bool changed,
                               mercer_status status)
{
    for (int i = 0; i < state->matrix_count; i++) {
        if (state->matrices[i].temporary)
            mrc_temporary_centers_spread(&self->iteration.temporary, &state->matrices[i].value);
        status = mrc_host_close(self->backend, &live[i], &state->matrices[i].value, changed, status);
    }
    return status;
}

static mercer_status save(mrc_trainer *self, mrc_state *state, const mercer_matrix *weights)
{
    mercer_matrix live[MRC_STATE_MATRICES], host = {0};
    mercer_status status = open_all(self, state, live);
    if (status == MERCER_OK) status = mrc_host_open(self->backend, weights, &host);
    if (status == MERCER_OK) status = self->keeper.save(self->keeper.user, state, &host);
    status = mrc_host_close(self->backend, weights, &host, false, status);
    return close_all(self, state, live, false, status);
}

/* ---- Saving -------------------------------------------------------------------------------------------------- */

/* A checkpoint at the end of every epoch, as long as epochs last a second and writing takes less than a fifth of one.
   Shorter ones are left out so that writing takes a twentieth of the time. */
static bool is_due(const mrc_trainer *self, mrc_keep_moment moment)
{
    double most = self->options.checkpoint_seconds > 0 ? self->options.checkpoint_seconds : KEEP_SECONDS;
    double pause = fmin(20 * self->keep_cost, fmax(1, 5 * self->keep_cost));
    double since = mrc_seconds() - self->last_keep;
    if (moment == MRC_KEEP_NOW) return true;
    return self->comm->rank == 0 && (since >= most || (moment == MRC_KEEP_EPOCH && since >= pause));
}

/* Training goes on without checkpoints: whoever relies on them hears of it, but not at every attempt. */
static void tell_failure(mrc_trainer *self, bool failed)
{
    if (failed && !self->keep_failed)
        mrc_log(self->context, MERCER_LOG_WARNING,
                "no checkpoint can be written after %" PRId64 " samples, training goes on without: %s", self->samples,
                mrc_error_text(self->context));
    if (!failed && self->keep_failed)
        mrc_log(self->context, MERCER_LOG_WARNING, "checkpoints are written again, after %" PRId64 " samples",
                self->samples);
    self->keep_failed = failed;
}

mercer_status mrc_trainer_keep(mrc_trainer *self, const mrc_state *own, const mercer_matrix *weights,
                               mrc_keep_moment moment)
{
    bool due;
    if (!self->keeper.save) return MERCER_OK;
    MRC_TRY(mrc_comm_any(self->comm, is_due(self, moment), &due)); /* rank 0's clock decides */
    if (!due) return MERCER_OK;
    mrc_state state;
    double start = mrc_seconds();
    self->kept_seconds = self->earlier_seconds + start - self->start;
    if (self->projector) self->projector_calls = self->projector->calls;
    list_all(self, own, &state);
    if (state.overflow) return mrc_fail(self->context, MERCER_ERROR_INTERNAL, "the state of training is too long");
    mercer_status status = save(self, &state, weights);
    self->last_keep = mrc_seconds();
    self->keep_cost = self->last_keep - start;
    if (moment == MRC_KEEP_NOW || (status != MERCER_OK && self->comm->broken)) return status;
    tell_failure(self, status != MERCER_OK);
    return MERCER_OK;
}

/* ---- Going on ------------------------------------------------------------------------------------------------ */

/* What auto chose is not chosen again: it may have been replaced on the way. */
static void recall_solver(mrc_trainer *self, const char *text)
{
    const char *found = strstr(text, " solver ");
    char name[sizeof self->solver];
    if (!found || strcmp(self->solver, "auto") != 0 || sscanf(found, " solver %15s", name) != 1) return;
    const mrc_preset *preset = mrc_preset_find(name);
    if (preset) self->options.solver = preset->name;
}

mercer_status mrc_trainer_recall_plan(mrc_trainer *self)
{
    char text[MRC_STATE_PLAN];
    MRC_TRY(self->keeper.load_plan(self->keeper.user, text, sizeof text));
    if (sscanf(text, "threads %" SCNd64 " budget %" SCNd64 ":", &self->planned_threads, &self->planned_budget) == 2 &&
        self->planned_threads > 0 && self->planned_budget > 0) {
        recall_solver(self, text);
        return MERCER_OK;
    }
    return mrc_fail(self->context, MERCER_ERROR_FORMAT, "the checkpoint's plan cannot be read: %.80s", text);
}

static mercer_status check_plan(mrc_trainer *self, const mrc_state *state)
{
    char text[MRC_STATE_PLAN];
    MRC_TRY(self->keeper.load_plan(self->keeper.user, text, sizeof text));
    if (strcmp(text, state->plan) == 0) return MERCER_OK;
    size_t same = 0;
    while (text[same] && text[same] == state->plan[same]) same++;
    for (int word = 0; word < 2; word++) { /* back to the value, then to the word that names it */
        while (same > 0 && text[same - 1] == ' ') same--;
        while (same > 0 && text[same - 1] != ' ') same--;
    }
    return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                    "the checkpoint belongs to a training with other data or options: it has \"%.40s\", this one "
                    "\"%.40s\"",
                    text + same, state->plan + same);
}

/* What was read may come from anywhere: no count may lead outside a matrix. */
static mercer_status check_numbers(const mrc_trainer *self, bool iterating)
{
    const mrc_iteration *iteration = &self->iteration;
    bool good = self->epoch >= 0 && self->epoch <= self->plan.public_plan.epochs && self->pass_rows >= 0 &&
                self->pass_rows <= self->n && self->samples >= 0 && self->kept_seconds >= 0;
    if (iterating)
        good = good && iteration->temporary.count >= 0 && iteration->temporary.count <= iteration->temporary.most &&
               iteration->pending >= 0 && iteration->pending <= iteration->options.period && iteration->averaged >= 0 &&
               iteration->halving > 0 && iteration->halving <= 1;
    if (good) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_FORMAT, "the checkpoint's numbers are out of range");
}

mercer_status mrc_trainer_recall(mrc_trainer *self, mrc_state *own)
{
    mrc_state state;
    list_all(self, own, &state);
    MRC_TRY(check_plan(self, &state));
    MRC_TRY(self->keeper.load_numbers(self->keeper.user, &state));
    MRC_TRY(check_numbers(self, own == NULL));
    if (self->have_best && !self->best.data)
        MRC_TRY(mrc_field_create(&self->centers, &self->best, self->target.weights->cols, self->centers.real,
                                 "the best weights"));
    list_all(self, own, &state); /* sizes are known now */
    mercer_matrix live[MRC_STATE_MATRICES];
    mercer_status status = open_all(self, &state, live);
    if (status == MERCER_OK) status = self->keeper.load_matrices(self->keeper.user, &state);
    MRC_TRY(close_all(self, &state, live, true, status));
    self->earlier_seconds = self->kept_seconds;
    self->last_keep = mrc_seconds();
    if (self->projector) self->projector->calls = self->projector_calls;
    return MERCER_OK;
}

/* ---- Progress between steps ---------------------------------------------------------------------------------- */

/* Shows progress if it is time; true if the callback wants to stop. */
static bool show_progress(mrc_trainer *self)
{
    const mercer_train_options *options = &self->options;
    double now = mrc_seconds();
    if (now - self->last_shown < options->progress_seconds) return false;
    bool iterating = self->totals.rows > 0;
    mercer_progress progress = {
        .struct_size = sizeof progress,
        .epoch = self->epoch,
        .epochs = self->plan.public_plan.epochs,
        .samples = self->samples,
        .seconds = self->earlier_seconds + now - self->start,
        .train_loss = iterating ? mrc_loss_mean(&self->totals, self->target.weights->cols) : self->report.train_loss,
        .train_accuracy =
            iterating && options->classification == MERCER_ON ? mrc_loss_accuracy(&self->totals) : (double)NAN,
        .validation_loss = NAN,
        .validation_accuracy = NAN,
        .projection_residual = self->iteration.projection.residual,
        .step = self->iteration.last_step,
        .pass_samples = self->stream.in_pass,
        .pass_total = self->n,
        .steps = self->iteration.steps,
        .projections = self->iteration.projections};
    self->last_shown = now;
    return options->progress(options->progress_user, &progress) != 0;
}

mercer_status mrc_trainer_poll(mrc_trainer *self, bool *stop)
{
    *stop = false;
    if (!self->options.progress || !(self->options.progress_seconds > 0)) return MERCER_OK;
    bool enough = show_progress(self) || self->stop_asked;
    return mrc_comm_any(self->comm, enough, stop);
}

/* Set-up is not broken off: a callback that wants to stop is heeded at the first step. */
void mrc_trainer_tell(void *user, const char *what, double share)
{
    mrc_trainer *self = user;
    const mercer_train_options *options = &self->options;
    double now = mrc_seconds();
    bool ready = strcmp(what, MRC_READY) == 0, same = strcmp(what, self->phase) == 0;
    if (!self->setting_up || !options->progress || !(options->progress_seconds > 0)) return;
    self->setting_up = !ready;
    if (same && now - self->last_shown < options->progress_seconds) return;
    mercer_progress progress = {.struct_size = sizeof progress,
                                .epoch = self->epoch,
                                .epochs = self->plan.public_plan.epochs,
                                .samples = self->samples,
                                .seconds = self->earlier_seconds + now - self->start,
                                .train_loss = NAN,
                                .train_accuracy = NAN,
                                .validation_loss = NAN,
                                .validation_accuracy = NAN,
                                .pass_samples = self->pass_rows,
                                .pass_total = self->stream.source->rows,
                                .steps = self->iteration.steps,
                                .projections = self->iteration.projections,
                                .phase = what,
                                .phase_share = share};
    snprintf(self->phase, sizeof self->phase, "%s", what);
    self->last_shown = now;
    if (options->progress(options->progress_user, &progress) != 0) self->stop_asked = true;
}

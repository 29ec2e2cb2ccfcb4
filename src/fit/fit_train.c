/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stages plan and train: creation of the trainer from the decisions of the record, its plan, training with a deadline,
 * and warnings about a training run that ended far from its optimum.
 */
#include "fit/fitting.h"

#include "core/clock.h"
#include "core/memory.h"
#include "model/model.h"
#include "plan/plan.h"
#include "training/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Plan -------------------------------------------------------------------------------------------------------- */

mercer_train_options mrc_fit_train_options(const mercer_fitting *self)
{
    mercer_train_options options = self->request->train;
    options.lambda = self->record.ridge, options.converge = self->record.converge;
    return options;
}

/* The trainer's progress callback if a budget is set: calls the caller's callback and checks the deadline. Training is
   not stopped while all weights are still 0: before the first step, and with a direct solver until its end. */
static int watch_deadline(void *user, const mercer_progress *progress)
{
    mercer_fitting *self = user;
    const mercer_train_options *train = &self->request->train;
    bool has_model = progress->epoch > 0 || progress->steps > 0, finished = progress->epoch >= progress->epochs;
    if (train->progress && train->progress(train->progress_user, progress)) return 1;
    self->late = has_model && !finished && mrc_seconds() > self->deadline;
    return self->late;
}

/* Creates the trainer, with the fit's validation rows, and lets it resume if a checkpoint is given. */
static mercer_status create_trainer(mercer_fitting *self)
{
    mercer_train_options options = mrc_fit_train_options(self);
    options.memory = mrc_fit_memory_left(self, self->report.centers);
    options.classification = self->info.task == MERCER_TASK_CLASSIFICATION ? MERCER_ON : MERCER_OFF;
    if (self->watched) {
        options.validation_X = &self->validation_x;
        options.validation_Y = &self->validation_y;
        options.validation_weights = self->validation_weights;
    }
    if (self->deadline > 0) options.progress = watch_deadline, options.progress_user = self;
    if (options.checkpoint) MRC_TRY(mrc_fit_set_record(self));
    MRC_TRY(mercer_trainer_create(&self->trainer, self->model, self->options->run.comm, &options));
    /* No warning about a wide bandwidth that the search found: it was scored on held-out rows, and linear targets, for
       example, need a wide one. No warning in a fold of a cross-validation either, because the fit itself warns. */
    bool scored = self->outer || (self->searches && !mrc_fit_has_bandwidth(self->options));
    self->trainer->known = (mrc_known){.on_samples = self->centers_are_rows, .spread = scored ? 1 : self->spread};
    return self->record.resumes ? mercer_trainer_resume(self->trainer, self->record.resumes) : MERCER_OK;
}

void mrc_fit_complete_plan(mercer_fitting *self, mercer_plan *plan)
{
    if (self->report.members > 1) plan->seconds *= (double)self->report.members;
    mrc_fit_add_lines(self, plan);
}

static void record_solver(mercer_fitting *self, const mercer_plan *plan)
{
    bool given = !mrc_name_is_auto(self->request->train.solver);
    mrc_fit_decide(self, "plan", "solver",
                   given                  ? MRC_GIVEN
                   : self->record.resumes ? MRC_RESUMED
                                          : MRC_FROM_DATA,
                   "%s", plan->solver);
}

mercer_status mrc_stage_plan(mercer_fitting *self)
{
    MRC_TRY(create_trainer(self));
    MRC_TRY(mrc_alloc_zero(self->context, &self->plan, 1, sizeof *self->plan, "the plan of a fit"));
    mercer_plan *plan = self->plan;
    plan->struct_size = sizeof *plan;
    MRC_TRY(mercer_trainer_plan(self->trainer, plan, &self->source));
    mrc_fit_predict(self, plan);
    record_solver(self, plan);
    mrc_fit_complete_plan(self, plan);
    return MERCER_OK;
}

/* ---- Convergence ------------------------------------------------------------------------------------------------- */

/* Ratio of training loss to held-out error above which training is considered unconverged. A converged training loss is
   below the held-out error; the loss of the last pass is measured with the weights before that pass, which are slightly
   worse. On the six tables of python/tests/paths.py the ratio is at most 1 for solvers that converge, and 1.7 to 17 for
   richardson, nytro, gd and paper. */
#define UNCONVERGED 1.5

/* Computes the variance of the targets, averaged over outputs, in the units of losses: those of the targets or, with a
   curve such as log, of the transformed targets. */
static mercer_status find_variance(const mercer_fitting *self, double *out)
{
    const mrc_units *units = &self->units;
    int64_t c = self->info.outputs;
    double *mean, *deviation;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &mean, 2 * c, sizeof *mean, "moments of the targets"));
    deviation = mean + c;
    if (units->curve.kind != MRC_CURVE_NONE)
        memcpy(deviation, units->scale, (size_t)c * sizeof *deviation);
    else
        MRC_TRY(mrc_dataset_moments(self->data, mean, deviation));
    *out = 0;
    for (int64_t j = 0; j < c; j++) *out += deviation[j] * deviation[j] / (double)c;
    return MERCER_OK;
}

/* Warns about a training run that ended far from its optimum. Its hyperparameters were scored by exact solutions, so
   the model is worse than the search predicted. */
static mercer_status warn_if_unconverged(const mercer_fitting *self)
{
    const mercer_report *report = &self->training;
    const char *solver = report->plan->solver;
    /* With fewer centers than in the search, a larger error is expected. With more centers, a smaller error is
       expected, which is not taken into account. */
    double variance,
        held_out = fmax(self->search_report.error, mrc_search_error_with(&self->search_report, self->report.centers));
    bool exact = mercer_solver_kind_of(solver) == MERCER_SOLVER_DIRECT;
    if (exact || !self->search_report.steps || !(held_out > 0)) return MERCER_OK;
    MRC_TRY(find_variance(self, &variance));
    if (!(report->train_loss > UNCONVERGED * held_out * variance)) return MERCER_OK;
    mrc_warn(self->context, "solver",
             "solver %s ended far from the optimum: the training loss is %.2g of the variance of the targets, the "
             "held-out error of the search is %.2g; use solver auto, or more epochs or centers",
             solver, report->train_loss / variance, held_out);
    return MERCER_OK;
}

/* Size of the preconditioned gradient at the end of conjugate gradients, relative to its size at weights of 0, from
   which on a warning about rounding is issued. On 26 fits of 2,000 rows the ratio was at most 0.011 where the error was
   that of an exact solution. Where the error was larger, the ratio was at least 0.35, with each of four BLAS libraries.
   These were fits with linear and smooth kernels, whose K(Z,Z) has eigenvalues below the rounding of float. The
   preconditioner magnifies rounding errors in the directions of these eigenvalues. */
#define ROUNDED 0.1

/* Warns about conjugate gradients that did not reach the optimum because of rounding. */
static void warn_if_rounded(const mercer_fitting *self)
{
    const mercer_report *report = &self->training;
    if (strcmp(report->plan->solver, "cg") != 0 || !(report->projection_residual_last > ROUNDED)) return;
    mrc_warn(self->context, "solver",
             "solver cg ended far from the optimum: small eigenvalues of the kernel matrix are lost to rounding; use "
             "precision f64 (float64 in Python), or solver direct");
}

/* ---- The stage --------------------------------------------------------------------------------------------------- */

/* Clears the calibration of a model that is trained further, because it was measured with the old weights. Without rows
   to measure it again, temperature and curvature stay: for a given model they are a better guess than none, and those
   of a checkpoint belong to this training run. */
static mercer_status forget_calibration(mercer_fitting *self)
{
    if (self->validation || !(self->model_borrowed || self->record.resumes)) {
        MRC_TRY(mrc_model_set_calibration(self->model, 0, 0));
        MRC_TRY(mrc_model_set_class_shift(self->model, NULL));
    }
    return mrc_model_set_intervals(self->model, NULL, 0, MERCER_TASK_AUTO);
}

/* Records the number of members if the deadline or the progress callback reduced it. */
static void record_members(mercer_fitting *self, int64_t planned)
{
    long long members = (long long)self->report.members;
    if (members == planned) return;
    mrc_fit_decide(self, "train", "members", self->deadline > 0 ? MRC_FROM_BUDGET : MRC_GIVEN, "%lld", members);
    mrc_fit_explain(self, "train", "members", "ended after %lld of the %lld models", members, (long long)planned);
}

/* A stop of the callback that was caused by the deadline is reported as a budget stop: the model is a valid result, and
   the remaining stages run. A stop by the caller skips the other members and the calibration. */
mercer_status mrc_stage_train(mercer_fitting *self)
{
    int64_t planned = self->report.members;
    self->training = (mercer_report){.struct_size = sizeof self->training};
    MRC_TRY(forget_calibration(self));
    MRC_TRY(mercer_trainer_fit(self->trainer, &self->source, &self->training));
    if (self->late && self->training.stopped == MERCER_STOP_CALLBACK) self->training.stopped = MERCER_STOP_BUDGET;
    if (self->training.stopped != MERCER_STOP_CALLBACK) MRC_TRY(mrc_fit_train_members(self));
    if (self->training.stopped == MERCER_STOP_FINISHED) MRC_TRY(warn_if_unconverged(self));
    if (self->training.stopped == MERCER_STOP_FINISHED) warn_if_rounded(self);
    record_members(self, planned);
    record_solver(self, self->model->plan);
    mrc_fit_complete_plan(self, self->model->plan); /* the report points to this plan */
    return MERCER_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a fit, in their order: samples, kernel, centers, model, plan, training, calibration, note. */
#include "fit/fitting.h"

#include "core/clock.h"
#include "core/memory.h"
#include "model/model.h"
#include "plan/plan.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening --------------------------------------------------------------------------------------------------- */

static mercer_status check_data(mercer_fitting *self)
{
    const mercer_dataset_info *info = &self->info;
    const mercer_dataset *held = self->validation;
    if (info->rows == 0) return mrc_fail(self->context, MERCER_ERROR_DATA, "the dataset has no rows");
    if (!held || (held->features == info->features && held->outputs == info->outputs && held->task == info->task))
        return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_SHAPE,
                    "validation data: %lld features and %lld outputs, but the training data have %lld and %lld",
                    (long long)held->features, (long long)held->outputs, (long long)info->features,
                    (long long)info->outputs);
}

/* All ranks read the same samples. */
static mercer_status agree_on_data(const mercer_fitting *self)
{
    uint64_t prints[2] = {0, 0};
    if (!self->options.comm) return MERCER_OK;
    MRC_TRY(mercer_dataset_fingerprint(self->data, &prints[0]));
    if (self->validation) MRC_TRY(mercer_dataset_fingerprint(self->validation, &prints[1]));
    return mercer_comm_agree(self->options.comm, "other data", prints, sizeof prints);
}

static mercer_status open_samples(mercer_fitting *self, mercer_dataset *data)
{
    MRC_TRY(mrc_fit_find_memory(self));
    MRC_TRY(mrc_fit_take_samples(self, data));
    MRC_TRY(agree_on_data(self));
    MRC_TRY(check_data(self));
    return mrc_fit_find_units(self);
}

mercer_status mrc_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                               const mercer_fit_options *options, const mercer_train_options *train)
{
    MRC_OWNED(mrc_release_fitting) mercer_fitting *self = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "the fitting"));
    self->context = context;
    self->opened = mrc_seconds();
    self->given_options = self->options = *options;
    self->given_train = self->train = *train;
    self->train.seed = options->seed;
    mrc_fit_read_ridge(self);
    self->report.temperature = (double)NAN;
    MRC_TRY(open_samples(self, data));
    *out = self, self = NULL;
    return MERCER_OK;
}

/* ---- From sizes alone ------------------------------------------------------------------------------------------ */

mercer_status mrc_fit_plan_sizes(mercer_fitting *self, mercer_plan *plan)
{
    MRC_TRY(mrc_fit_decide_search(self));
    MRC_TRY(mrc_fit_choose_effort(self));
    mrc_fit_choose_size(self);
    int64_t p = self->report.centers = mrc_fit_center_count(self);
    const char *kernel = self->options.kernel ? self->options.kernel : "laplace";
    self->report.points = mrc_fit_points(&self->options, &self->info);
    snprintf(self->report.kernel, sizeof self->report.kernel, "%s", self->options.kernel_function ? "" : kernel);
    snprintf(self->report.center_method, sizeof self->report.center_method, "%s", mrc_fit_center_method(self));
    if (p > self->info.rows && !self->options.given_centers && strcmp(self->report.center_method, "augmented") != 0)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE, "centers is %lld, more than the %lld rows of the data",
                        (long long)p, (long long)self->info.rows);
    /* The ridge is chosen when the data are there. A plan from sizes takes any value: costs do not depend on it. */
    if (self->train.lambda == 0 && !self->no_ridge) self->train.lambda = 1e-6 * (double)mrc_max(1, self->info.rows);
    MRC_TRY(mrc_fit_plan(self, p, plan));
    mrc_fit_describe_search(self, plan);
    return MERCER_OK;
}

/* ---- Preparing ------------------------------------------------------------------------------------------------- */

/* Search, unless the model is there. *exists: it is that of the checkpoint, or given. */
static mercer_status find_hyperparameters(mercer_fitting *self, bool *exists)
{
    const char *checkpoint = self->options.checkpoint;
    bool searching = false;
    if (checkpoint) MRC_TRY(mrc_fit_has_search(self->context, checkpoint, &searching));
    *exists = self->options.model || (checkpoint && !searching);
    MRC_TRY(mrc_fit_decide_search(self));
    MRC_TRY(mrc_fit_choose_effort(self));
    if (searching && !self->searches)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                        "%s: belongs to other options: it has a search, this fit "
                        "has none (%s)",
                        checkpoint, self->report.search_skipped);
    if (*exists || !self->searches) return MERCER_OK;
    MRC_TRY(mrc_fit_search(self));
    self->options.checkpoint = NULL; /* there is no training in it */
    return MERCER_OK;
}

static mercer_status build_model(mercer_fitting *self)
{
    bool exists;
    MRC_TRY(find_hyperparameters(self, &exists));
    MRC_TRY(exists ? mrc_fit_load_model(self) : mrc_fit_choose_kernel(self));
    mrc_fit_choose_size(self);
    if (exists) MRC_TRY(mrc_fit_check_model(self));
    bool has_ridge = self->train.lambda > 0 || self->no_ridge || self->options.checkpoint; /* which has the plan's */
    if (!has_ridge) MRC_TRY(mrc_fit_choose_ridge(self));
    MRC_TRY(mrc_fit_open_stream(self, self->options.seed, self->options.samples, &self->source));
    if (!exists) MRC_TRY(mrc_fit_pick_centers(self, true));
    if (!exists) MRC_TRY(mrc_fit_create_model(self));
    return mrc_fit_read_validation(self);
}

/* The trainer's progress callback, if there is a budget: the caller's, and the deadline. Before the first step the
   weights are 0, and a direct solver has no others until its end: training goes on until there is a model. */
static int watch_deadline(void *user, const mercer_progress *progress)
{
    mercer_fitting *self = user;
    const mercer_train_options *train = &self->train;
    bool has_model = progress->epoch > 0 || progress->steps > 0, finished = progress->epoch >= progress->epochs;
    if (train->progress && train->progress(train->progress_user, progress)) return 1;
    self->late = has_model && !finished && mrc_seconds() > self->deadline;
    return self->late;
}

static mercer_status create_trainer(mercer_fitting *self)
{
    mercer_train_options *train = &self->train;
    train->memory = mrc_fit_memory_left(self, self->report.centers);
    train->classification = self->info.task == MERCER_TASK_CLASSIFICATION ? MERCER_ON : MERCER_OFF;
    mercer_train_options options = *train;
    if (self->watched) {
        options.validation_X = &self->validation_x;
        options.validation_Y = &self->validation_y;
        options.validation_weights = self->validation_weights;
    }
    if (self->deadline > 0) options.progress = watch_deadline, options.progress_user = self;
    MRC_TRY(mercer_trainer_create(&self->trainer, self->model, self->options.comm, &options));
    return self->options.checkpoint ? mercer_trainer_resume(self->trainer, self->options.checkpoint) : MERCER_OK;
}

mercer_status mercer_fitting_prepare(mercer_fitting *self, mercer_plan *plan)
{
    mercer_plan own = {.struct_size = sizeof own};
    if (!self) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    if (self->info.task == MERCER_TASK_UNLABELLED)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "the data have no targets to learn");
    if (self->begun)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "the fitting is prepared, or that failed: open another");
    self->begun = true;
    MRC_TRY(build_model(self));
    MRC_TRY(create_trainer(self));
    if (!plan) plan = &own;
    MRC_TRY(mercer_trainer_plan(self->trainer, plan, &self->source));
    if (self->options.checkpoint && self->train.lambda == 0) self->train.lambda = plan->lambda;
    self->planned = strlen(plan->text);
    mrc_fit_predict(self, plan);
    mrc_fit_describe_search(self, plan);
    return MERCER_OK;
}

mercer_status mercer_fitting_centers(mercer_fitting *self, mercer_matrix *centers)
{
    if (!self) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    if (!centers) return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "centers is NULL");
    if (self->begun)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "the fitting is prepared, or that failed: open another");
    self->begun = true;
    self->device_each = 0; /* nothing is trained there */
    MRC_TRY(mrc_fit_decide_search(self));
    MRC_TRY(mrc_fit_choose_effort(self));
    /* Centers need a search only if it was asked for. */
    if (self->options.tune != MERCER_ON && self->options.learn_features != MERCER_ON) self->searches = false;
    if (self->searches) MRC_TRY(mrc_fit_search(self));
    MRC_TRY(mrc_fit_choose_kernel(self));
    mrc_fit_choose_size(self);
    MRC_TRY(mrc_fit_pick_centers(self, false));
    *centers = self->centers;
    return MERCER_OK;
}

/* ---- Running --------------------------------------------------------------------------------------------------- */

static json_t *real_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A summary for the model file. It holds nothing that differs between two fits with the same result; "mercer train" is
   what does the same. */
static char *training_note(const mercer_fitting *self)
{
    const mercer_report *report = &self->training;
    const mercer_fit_options *options = &self->options;
    const char *method = options->given_centers ? "file" : mrc_fit_center_method(self);
    json_auto_t *note = json_pack("{ss ss ss sI sI sI sI sI so so ss}", "program", "mercer train", "solver",
                                  report->plan->solver, "projector", report->plan->projector, "rows",
                                  (json_int_t)self->info.rows, "epochs", (json_int_t)report->epochs, "samples",
                                  (json_int_t)report->samples, "batch", (json_int_t)report->plan->batch, "seed",
                                  (json_int_t)options->seed, "train_loss", real_number(report->train_loss),
                                  "validation_loss", real_number(report->validation_loss), "center_method", method);
    if (self->info.task == MERCER_TASK_CLASSIFICATION) {
        json_object_set_new(note, "train_accuracy", real_number(report->train_accuracy));
        json_object_set_new(note, "validation_accuracy", real_number(report->validation_accuracy));
    }
    json_object_set_new(note, "ridge", real_number(report->plan->lambda));
    json_object_set_new(note, "weight", real_number(mrc_fit_count_samples(self->data)));
    if (options->augment) json_object_set_new(note, "augment", json_string(options->augment));
    return json_dumps(note, JSON_SORT_KEYS | JSON_REAL_PRECISION(17)); /* all digits: a ridge is read back */
}

static mercer_status write_note(const mercer_fitting *self)
{
    char *note = training_note(self);
    mercer_status status = note ? mercer_model_set_note(self->model, note)
                                : mrc_fail(self->context, MERCER_ERROR_MEMORY, "out of memory for the model's note");
    free(note);
    return status;
}

/* What the recipe adds to a plan stands before what training changed of it. */
static void tell_again(const mercer_fitting *self, mercer_plan *plan)
{
    char changes[MERCER_PLAN_TEXT] = "";
    size_t at = self->planned;
    if (strlen(plan->text) < at) return;
    memcpy(changes, plan->text + at, strlen(plan->text + at) + 1);
    plan->text[at] = '\0';
    mrc_fit_describe_search(self, plan);
    mrc_plan_say(plan, "%s", changes);
}

/* Intervals and temperature of a model that is trained further belong to its old weights. Without rows to find
   another temperature, the old one is a better guess than none; that of a checkpoint belongs to this run. */
static mercer_status forget_calibration(mercer_fitting *self)
{
    if (self->validation || !(self->model_borrowed || self->options.checkpoint)) {
        MRC_TRY(mercer_model_set_temperature(self->model, 0));
        MRC_TRY(mercer_model_set_class_shift(self->model, NULL));
    }
    return mercer_model_set_intervals(self->model, NULL, 0, MERCER_TASK_AUTO);
}

/* Ratio of training loss to held-out error from which on training is called unconverged. A converged training loss is
   below the held-out error; the loss of a last pass is that of the weights before it, which are slightly worse. On the
   six tables of python/tests/paths.py the ratio is at most 1 for solvers that converge, and 1.7 to 17 for richardson,
   nytro, gd and paper. */
#define UNCONVERGED 1.5

/* Mean variance of the targets in the units of losses. */
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
        MRC_TRY(mercer_dataset_target_moments(self->data, mean, deviation));
    *out = 0;
    for (int64_t j = 0; j < c; j++) *out += deviation[j] * deviation[j] / (double)c;
    return MERCER_OK;
}

/* Warn about a training that ended far from its optimum: hyperparameters were scored by exact solutions. */
static mercer_status warn_if_unconverged(const mercer_fitting *self)
{
    const mercer_report *report = &self->training;
    const char *solver = report->plan->solver;
    /* Fewer centers than those of the search have a larger error; that of more is extrapolated, so it is not used. */
    double variance, held_out = fmax(self->found.error, mrc_search_error_with(&self->found, self->report.centers));
    bool exact = mercer_solver_kind_of(solver) == MERCER_SOLVER_DIRECT;
    if (exact || !self->report.search_steps || !(held_out > 0)) return MERCER_OK;
    MRC_TRY(find_variance(self, &variance));
    if (!(report->train_loss > UNCONVERGED * held_out * variance)) return MERCER_OK;
    mrc_warn(self->context, "solver",
             "solver %s ended far from the optimum: the training loss is %.2g of the variance of the targets, the "
             "held-out error of the search is %.2g; use solver auto, or more epochs or centers",
             solver, report->train_loss / variance, held_out);
    return MERCER_OK;
}

/* Preconditioned gradient at the end of conjugate gradients, relative to that at weights of 0, from which on rounding
   is blamed. On 26 fits of 2,000 rows it was at most 0.011 where the error was that of an exact solution, and 1.04 or
   more where it was larger: linear and smooth kernels, whose K(Z,Z) has eigenvalues below the rounding of float. Along
   these the preconditioner magnifies the rounding of products. */
#define ROUNDED 0.5

/* Warn about conjugate gradients that rounding kept from the optimum. */
static void warn_if_rounded(const mercer_fitting *self)
{
    const mercer_report *report = &self->training;
    if (strcmp(report->plan->solver, "cg") != 0 || !(report->projection_residual_last > ROUNDED)) return;
    mrc_warn(
        self->context, "solver",
        "solver cg ended far from the optimum: rounding hides small eigenvalues of the kernel matrix; use precision "
        "f64 (float64 in Python), or solver direct");
}

mercer_status mrc_fitting_run(mercer_fitting *self)
{
    if (!self->trainer) MRC_TRY(mercer_fitting_prepare(self, NULL));
    self->training = (mercer_report){.struct_size = sizeof self->training};
    MRC_TRY(forget_calibration(self));
    MRC_TRY(mercer_trainer_fit(self->trainer, &self->source, &self->training));
    if (self->late && self->training.stopped == MERCER_STOP_CALLBACK) self->training.stopped = MERCER_STOP_BUDGET;
    if (self->training.stopped != MERCER_STOP_CALLBACK) MRC_TRY(mrc_fit_train_members(self));
    if (self->training.stopped == MERCER_STOP_FINISHED) MRC_TRY(warn_if_unconverged(self));
    if (self->training.stopped == MERCER_STOP_FINISHED) warn_if_rounded(self);
    tell_again(self, self->model->plan); /* which the report points to */
    if (self->training.stopped != MERCER_STOP_CALLBACK) MRC_TRY(mrc_fit_calibrate(self));
    return write_note(self);
}

/* ---- What came of it ------------------------------------------------------------------------------------------- */

void mrc_fitting_fill(const mercer_fitting *self, mercer_fit_report *report)
{
    *report = self->report;
    report->struct_size = sizeof *report;
    report->effort = self->effort;
    report->rows = self->info.rows;
    report->validation_rows = self->validation ? self->validation->rows : 0;
    report->samples = self->source.rows > 0 ? self->source.rows : self->info.rows;
    snprintf(report->preprocess, sizeof report->preprocess, "%s",
             self->applied || self->model ? mercer_preprocess_spec(self->applied)
                                          : mrc_fit_preprocess(&self->options, &self->info));
    report->train = self->data;
    report->validation = self->validation;
    report->model = self->model;
    report->trainer = self->trainer;
}

mercer_status mercer_fitting_take_model(mercer_fitting *self, mercer_model **out)
{
    if (!self) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    if (!out) return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!self->model)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "there is no model yet: call mercer_fitting_prepare");
    mercer_trainer_free(self->trainer);
    self->trainer = NULL;
    *out = self->model;
    self->model = NULL;
    return MERCER_OK;
}

void mercer_fitting_free(mercer_fitting *self)
{
    if (!self) return;
    mercer_context *context = self->context;
    mercer_trainer_free(self->trainer);
    mercer_source_free(&self->source);
    if (!self->model_borrowed) mercer_model_free(self->model);
    mercer_preprocess_free(self->preprocess);
    mrc_units_clear(&self->units, context);
    mrc_free(context, self->class_factors);
    mrc_search_state_free(&self->search, context);
    for (int64_t m = 1; m < MERCER_MEMBERS; m++) mercer_fitting_free(self->members[m]);
    mercer_preprocess_free(self->found.preprocess);
    MRC_FREE_ALL(context, self->centers.data, self->validation_x.data, self->validation_y.data,
                 (void *)self->validation_weights);
    mercer_dataset *const parts[] = {self->aside, self->rest, self->merged, self->weighted, self->weighted_validation};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) mercer_dataset_free(parts[i]);
    mrc_free(context, self);
}

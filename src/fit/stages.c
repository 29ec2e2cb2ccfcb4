/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of stages and the driver that runs them in order. A stage reads the request and the results of earlier
 * stages, and sets its own part of struct mercer_fitting. A fit cannot continue after a stage has failed.
 *
 * To add a stage, write a function mrc_stage_<name> in its own file, declare it in fitting.h, and add a row to the
 * list.
 */
#include "fit/fitting.h"

#include "core/clock.h"
#include "core/memory.h"
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#define OVER "the fitting was already prepared, or a stage failed; open a new one"

typedef struct stage {
    const char *name;
    mercer_status (*run)(mercer_fitting *self);
} stage;

/* The stages, in the order in which they run. */
static const stage stages[] = {
    {"samples", mrc_stage_samples}, /* merge equal rows, hold out validation rows, find the transform of the targets */
    {"effort", mrc_stage_effort},   /* read the checkpoint; decide whether to search, and the effort */
    {"search", mrc_stage_search},   /* search kernel, preprocessing and ridge */
    {"kernel", mrc_stage_kernel},   /* kernel and preprocessing, unless the search chose them */
    {"size", mrc_stage_size},       /* number of centers, and the ridge unless the search chose it */
    {"centers", mrc_stage_centers}, /* choose the centers and create the model */
    {"plan", mrc_stage_plan},       /* solver, precision, memory */
    {"train", mrc_stage_train},     /* weights, also of the other members of an averaged model */
    {"calibrate", mrc_stage_calibrate} /* temperature and intervals */
};
enum { STAGES = sizeof stages / sizeof *stages };

static int find_stage(const char *name)
{
    for (int i = 0; i < STAGES; i++)
        if (strcmp(stages[i].name, name) == 0) return i;
    return STAGES;
}

/* Runs the stages that have not run yet, up to and including the named one. After a failure the results of the failed
   stage are incomplete, so later calls fail; only training can be repeated (mrc_fitting_run). */
static mercer_status run_through(mercer_fitting *self, const char *last)
{
    int end = find_stage(last) + 1;
    if (self->failed) return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, OVER);
    while (self->stage < end) {
        mercer_status status = stages[self->stage].run(self);
        self->failed = status != MERCER_OK;
        MRC_TRY(status);
        self->stage++;
    }
    return MERCER_OK;
}

mercer_status mrc_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                               const mrc_fit_request *request)
{
    MRC_OWNED(mrc_release_fitting) mercer_fitting *self = NULL;
    mrc_fit_request *own;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "the fitting"));
    self->context = context;
    self->opened = mrc_seconds();
    MRC_TRY(mrc_alloc(context, &own, 1, sizeof *own, "the options of a fit"));
    *own = *request;
    self->request = own, self->options = &own->options;
    mrc_fit_start_record(self);
    self->data = data;
    MRC_TRY(run_through(self, "samples"));
    *out = self, self = NULL;
    return MERCER_OK;
}

mercer_status mrc_fitting_prepare(mercer_fitting *self)
{
    if (self->info.task == MERCER_TASK_UNLABELED)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "the data have no targets to learn");
    if (self->stage > find_stage("samples") + 1) return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, OVER);
    return run_through(self, "plan");
}

mercer_status mrc_fitting_run(mercer_fitting *self)
{
    int train = find_stage("train");
    if (self->stage < train) MRC_TRY(mrc_fitting_prepare(self));
    if (!self->trainer)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                        "the model was already taken from the fitting; open a new one");
    self->stage = train, self->failed = false; /* a fit can be trained again, for example after a stop */
    return run_through(self, "calibrate");
}

/* Runs the stages only up to the kernel and then calls parts of size and centers: a default search is skipped, no model
   is created, and the plan is not checked. */
mercer_status mrc_fitting_centers(mercer_fitting *self)
{
    if (self->failed || self->stage > find_stage("samples") + 1)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, OVER);
    self->untrained = true;
    self->device_each = 0; /* nothing is trained on the devices */
    MRC_TRY(run_through(self, "effort"));
    if (self->searches && !mrc_fit_asks_for_search(self->options))
        self->searches = false, self->search_report.skipped = "only centers are selected";
    MRC_TRY(run_through(self, "kernel"));
    MRC_TRY(mrc_fit_choose_size(self));
    MRC_TRY(mrc_fit_choose_centers(self, false));
    mrc_fit_record_size(self);
    mrc_fit_record_centers(self);
    return MERCER_OK;
}

/* Calls the stages' functions that need no data, in the order of the stages. `opened` stays 0, so that no time has
   elapsed. */
mercer_status mrc_fit_plan_sizes(mercer_fitting *self, mercer_plan *plan)
{
    mercer_fit_report *report = &self->report;
    MRC_TRY(mrc_fit_find_memory(self));
    self->untrained = true;
    MRC_TRY(mrc_stage_effort(self));
    MRC_TRY(mrc_fit_choose_size(self));
    int64_t p = report->centers = mrc_fit_center_count(self);
    report->points = mrc_fit_points(self->options, &self->info);
    if (!self->options->kernel.function)
        snprintf(report->kernel, sizeof report->kernel, "%s",
                 self->options->kernel.spec ? self->options->kernel.spec : MRC_DEFAULT_KERNEL);
    snprintf(report->center_method, sizeof report->center_method, "%s", mrc_fit_center_method(self));
    mrc_fit_record_search(self);
    mrc_fit_record_size(self);
    mrc_fit_record_centers(self);
    MRC_TRY(mrc_fit_choose_ridge(self));
    MRC_TRY(mrc_fit_plan(self, p, plan));
    mrc_fit_complete_plan(self, plan);
    return MERCER_OK;
}

/* The trainer is released before source and model, which it uses, and members before the datasets that they borrow. */
void mrc_fitting_free(mercer_fitting *self)
{
    if (!self) return;
    mercer_context *context = self->context;
    mercer_trainer_free(self->trainer);
    mercer_source_free(&self->source);
    if (!self->model_borrowed) mrc_model_free(self->model);
    mrc_preprocess_free(self->preprocess);
    mrc_units_clear(&self->units, context);
    mrc_search_state_free(&self->search, context);
    mercer_evaluation_free(self->scores);
    for (int64_t m = 1; m < MERCER_MEMBERS; m++) mrc_fitting_free(self->members[m]);
    MRC_FREE_ALL(context, self->class_factors, self->centers.data, self->validation_x.data, self->validation_y.data,
                 (void *)self->validation_weights, self->plan, (void *)self->request);
    mercer_dataset *const parts[] = {self->aside, self->rest, self->merged, self->weighted, self->weighted_validation};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) mrc_dataset_free(parts[i]);
    mrc_free(context, self);
}

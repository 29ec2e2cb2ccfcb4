/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: fitting, in one call and in steps.
 *
 * mercer_fit calls mercer_fitting_open, _run and _take_model. Everything that needs no data is checked by
 * mrc_fit_check_request; this file checks what needs data or the caller's structs. mercer_fit checks the structs of a
 * report first, because a fit may take long.
 */
#include "fit/fitting.h"

#include "api/api_options.h"
#include "core/matrix.h"
#include "data/dataset.h"
#include "model/model.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

/* ---- Request ------------------------------------------------------------------------------------------------- */

/* Copies the caller's options, and checks everything that needs no data. `train` is read separately, because it is a
   struct of its own with its own struct_size; a NULL means all defaults. */
static mercer_status read_request(mercer_context *context, mrc_fit_request *out, const mercer_fit_options *options)
{
    MRC_TRY(mrc_read_struct(context, &out->options, MRC_STRUCT(mercer_fit_options), options, "options"));
    MRC_TRY(
        mrc_read_struct(context, &out->train, MRC_STRUCT(mercer_train_options), out->options.train, "options: train"));
    return mrc_fit_check_request(context, out);
}

mercer_status mercer_fit_check(mercer_context *context, const mercer_fit_options *options)
{
    mrc_fit_request request;
    return read_request(context, &request, options);
}

/* Checks that validation data and given centers have the columns and classes of the data. Also checks that a given
   model has the classes of the data. The model's columns are checked later, together with those of a checkpoint. */
static mercer_status check_datasets(mercer_context *context, const mercer_dataset *data,
                                    const mercer_fit_options *options)
{
    mrc_sample_form form = {.whose = "the training set",
                            .schema = data->schema,
                            .feature_names = data->feature_names,
                            .labels = data->label_names,
                            .features = data->features,
                            .outputs = data->outputs};
    if (options->validation.data)
        MRC_TRY(mrc_dataset_check_form(context, options->validation.data, "validation data", &form));
    if (options->centers.given)
        MRC_TRY(mrc_dataset_check_form(context, options->centers.given, "centers.given", &form));
    if (!options->run.model) return MERCER_OK;
    form.whose = "the model", form.feature_names = NULL;
    form.labels = options->run.model->labels, form.outputs = options->run.model->label_count;
    return mrc_dataset_check_form(context, data, "data", &form);
}

/* ---- Steps --------------------------------------------------------------------------------------------------- */

mercer_status mercer_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                                  const mercer_fit_options *options)
{
    if (out) *out = NULL;
    MRC_TRY(mrc_context_ready(context));
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!data) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "data is NULL");
    mrc_fit_request request;
    MRC_TRY(read_request(context, &request, options));
    if (request.train.patience > 0 && !request.options.validation.data && request.options.validation.fraction == 0)
        return mrc_fail_at(context, "patience", MERCER_ERROR_ARGUMENT,
                           "options: patience needs validation.data or validation.fraction");
    MRC_TRY(check_datasets(context, data, &request.options));
    return mrc_fitting_open(out, context, data, &request);
}

/* Fills the caller's report, and the reports of the parts that it points to. The pointers to these are inputs: they are
   read from the caller's struct and written back unchanged. There is no training report before training. */
static mercer_status write_report(const mercer_fitting *fitting, mercer_fit_report *report)
{
    mercer_context *context = fitting->context;
    mercer_fit_report ours, theirs;
    if (!report) return MERCER_OK;
    MRC_TRY(mrc_read_struct(context, &theirs, MRC_STRUCT(mercer_fit_report), report, "report"));
    mrc_fitting_fill(fitting, &ours);
    ours.training = theirs.training, ours.search = theirs.search, ours.choice = theirs.choice;
    if (ours.training && fitting->training.struct_size > 0)
        MRC_TRY(mrc_write_struct(context, ours.training, &fitting->training, MRC_STRUCT(mercer_report),
                                 "report: training"));
    if (ours.search)
        MRC_TRY(mrc_write_struct(context, ours.search, &fitting->search_report, MRC_STRUCT(mercer_search_report),
                                 "report: search"));
    if (ours.choice)
        MRC_TRY(mrc_write_struct(context, ours.choice, &fitting->choice, MRC_STRUCT(mercer_center_report),
                                 "report: choice"));
    return mrc_write_struct(context, report, &ours, MRC_STRUCT(mercer_fit_report), "report");
}

mercer_status mercer_fitting_prepare(mercer_fitting *fitting, mercer_plan *plan)
{
    if (!fitting) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    MRC_TRY(mrc_fitting_prepare(fitting));
    return plan ? mrc_write_struct(fitting->context, plan, fitting->plan, MRC_STRUCT(mercer_plan), "plan") : MERCER_OK;
}

mercer_status mercer_fitting_centers(mercer_fitting *fitting, mercer_matrix *centers)
{
    if (!fitting) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    if (!centers) return mrc_fail(fitting->context, MERCER_ERROR_ARGUMENT, "centers is NULL");
    MRC_TRY(mrc_fitting_centers(fitting));
    *centers = fitting->centers;
    return MERCER_OK;
}

/* The trainer refers to the model, so it is released first. `fitting->model` is cleared, so that the fitting does not
   release the model; later calls that need it fail. */
mercer_status mercer_fitting_take_model(mercer_fitting *fitting, mercer_model **out)
{
    if (!fitting) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    if (!out) return mrc_fail(fitting->context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!fitting->model)
        return mrc_fail(fitting->context, MERCER_ERROR_ARGUMENT,
                        "there is no model yet; call "
                        "mercer_fitting_prepare first");
    mercer_trainer_free(fitting->trainer);
    fitting->trainer = NULL;
    *out = fitting->model;
    fitting->model = NULL;
    return MERCER_OK;
}

mercer_status mercer_fitting_run(mercer_fitting *fitting, mercer_fit_report *report)
{
    if (!fitting) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    MRC_TRY(mrc_fitting_run(fitting));
    return write_report(fitting, report);
}

mercer_status mercer_fitting_query(const mercer_fitting *fitting, mercer_fit_report *report)
{
    if (!fitting) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    if (!report) return mrc_fail(fitting->context, MERCER_ERROR_ARGUMENT, "report is NULL");
    return write_report(fitting, report);
}

mercer_status mercer_fitting_parts(const mercer_fitting *fitting, mercer_fit_parts *out)
{
    if (!fitting) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    const mercer_fit_parts ours = {.struct_size = sizeof ours,
                                   .train = fitting->data,
                                   .validation = fitting->validation,
                                   .model = fitting->model,
                                   .trainer = fitting->trainer,
                                   .scores = fitting->scores};
    return mrc_write_struct(fitting->context, out, &ours, MRC_STRUCT(mercer_fit_parts), "out");
}

/* An index beyond the last decision is not an error, so that a caller can count up until *exists is 0. */
mercer_status mercer_fitting_decision(const mercer_fitting *fitting, int index, mercer_decision *out, int *exists)
{
    if (!fitting) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "fitting is NULL");
    if (!exists) return mrc_fail(fitting->context, MERCER_ERROR_ARGUMENT, "exists is NULL");
    *exists = index >= 0 && index < fitting->record.decision_count;
    if (!*exists) return MERCER_OK;
    const mrc_decision *one = &fitting->record.decisions[index];
    const mercer_decision ours = {.struct_size = sizeof ours,
                                  .stage = one->stage,
                                  .name = one->name,
                                  .origin = mrc_origin_name(one->origin),
                                  .value = one->value,
                                  .text = one->text};
    return mrc_write_struct(fitting->context, out, &ours, MRC_STRUCT(mercer_decision), "out");
}

/* ---- In one call ------------------------------------------------------------------------------------------------- */

/* Checks the sizes of the caller's report and of the reports that it points to. Each struct is read into a local copy
   that is then dropped. */
static mercer_status check_report(mercer_context *context, const mercer_fit_report *report)
{
    mercer_fit_report ours;
    mercer_report training;
    mercer_search_report search;
    mercer_center_report choice;
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_fit_report), report, "report"));
    MRC_TRY(mrc_read_struct(context, &training, MRC_STRUCT(mercer_report), ours.training, "report: training"));
    MRC_TRY(mrc_read_struct(context, &search, MRC_STRUCT(mercer_search_report), ours.search, "report: search"));
    return mrc_read_struct(context, &choice, MRC_STRUCT(mercer_center_report), ours.choice, "report: choice");
}

mercer_status mercer_fit(mercer_model **out, mercer_context *context, mercer_dataset *data,
                         const mercer_fit_options *options, mercer_fit_report *report)
{
    MRC_OWNED(mrc_release_fitting) mercer_fitting *fitting = NULL;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    MRC_TRY(check_report(context, report)); /* an error must come before the long computation, not after it */
    MRC_TRY(mercer_fitting_open(&fitting, context, data, options));
    MRC_TRY(mercer_fitting_run(fitting, report));
    MRC_TRY(mercer_fitting_take_model(fitting, out));
    if (report && report->search) report->search->steps = NULL; /* points into the fitting, which is released here */
    return MERCER_OK;
}

/* Plans with a fitting that has sizes but no data; the stages that need data are skipped (stages.c). The report is
   written even if the plan fails, because it then has the largest number of centers that fits. */
mercer_status mercer_fit_plan(mercer_context *context, mercer_plan *out, const mercer_dataset_info *data,
                              const mercer_fit_options *options, mercer_fit_report *report)
{
    MRC_TRY(mrc_context_ready(context));
    if (!out || !data) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", out ? "data" : "out");
    mercer_plan plan = {.struct_size = sizeof plan};
    mrc_fit_request request;
    MRC_TRY(read_request(context, &request, options));
    mercer_fitting self = {.context = context, .request = &request, .options = &request.options};
    MRC_TRY(mrc_read_struct(context, &self.info, MRC_STRUCT(mercer_dataset_info), data, "data"));
    mrc_fit_start_record(&self);
    mercer_status status = mrc_fit_plan_sizes(&self, &plan);
    MRC_TRY(write_report(&self, report));
    MRC_TRY(status);
    return mrc_write_struct(context, out, &plan, MRC_STRUCT(mercer_plan), "out");
}

/* ---- Probabilities ------------------------------------------------------------------------------------------- */

/* Labels are checked last, against the number of columns of the scores. Scores without rows or with one column are
   valid; the result is then the default. */
mercer_status mercer_calibrate(mercer_context *context, double *temperature, double *curvature,
                               const mercer_matrix *scores, const int32_t *labels, const double *weights)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!temperature || !curvature || !labels)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL",
                        !temperature ? "temperature"
                        : !curvature ? "curvature"
                                     : "labels");
    MRC_TRY(mrc_check_matrix(context, "scores", scores, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_finite(context, "scores", scores, NULL));
    MRC_TRY(mrc_check_weights(context, weights, scores->rows));
    MRC_TRY(mrc_check_classes(context, labels, scores->rows, scores->cols));
    return mrc_calibrate(context, temperature, curvature, scores, labels, weights, NULL);
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

void mercer_fitting_free(mercer_fitting *self)
{
    mrc_fitting_free(self);
}

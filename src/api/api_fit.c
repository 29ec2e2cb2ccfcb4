/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: fitting, at once and in steps. */
#include "fit/fitting.h"

#include "api/api_options.h"
#include "core/matrix.h"
#include "data/dataset.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

/* ---- Checks -------------------------------------------------------------------------------------------------- */

static mercer_status check_transform(mercer_context *context, const char *how)
{
    static const char *const known[] = {"auto", "none", "center", "standardise", "log", "rank"};
    for (size_t i = 0; how && i < sizeof known / sizeof *known; i++)
        if (strcmp(how, known[i]) == 0) return MERCER_OK;
    if (!how) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                    "target_transform '%s' is not known; there are auto, none, center, standardise, log and rank", how);
}

static mercer_status check_numbers(mercer_context *context, const mercer_fit_options *options)
{
    const mrc_bound numbers[] = {{"memory", options->memory, 0},
                                 {"samples", options->samples, 0},
                                 {"center_iterations", options->center_iterations, 0},
                                 {"center_batch", options->center_batch, -1}};
    MRC_TRY(mrc_check_bounds(context, numbers, sizeof numbers / sizeof *numbers));
    if (!(options->validation_fraction >= 0 && options->validation_fraction < 1))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "validation_fraction is %g, it must be at least 0 and below 1",
                        options->validation_fraction);
    if (options->precision && options->precision != MERCER_F32 && options->precision != MERCER_F64)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "precision may be f32, f64 or 0: chosen");
    if (options->center_type && mrc_dtype_size(options->center_type) == 0)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "center_type is %d, which is no type", (int)options->center_type);
    return MERCER_OK;
}

static mercer_status check_together(mercer_context *context, const mercer_fit_options *options,
                                    const mercer_train_options *train)
{
    if (options->validation && options->validation_fraction > 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: validation and validation_fraction are both set: one of them is enough");
    if (options->model && (options->checkpoint || options->comm))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: model is for one process, and not with checkpoint");
    if (train->validation_X || train->validation_Y || train->validation_weights)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: train: validation_X is set; a fit reads its validation set from a dataset");
    return MERCER_OK;
}

static mercer_status read_options(mercer_context *context, mercer_fit_options *ours, mercer_train_options *train,
                                  const mercer_fit_options *theirs)
{
    MRC_TRY(mrc_read_struct(context, ours, MRC_STRUCT(mercer_fit_options), theirs, "options"));
    MRC_TRY(mrc_read_struct(context, train, MRC_STRUCT(mercer_train_options), ours->train, "options: train"));
    MRC_TRY(check_numbers(context, ours));
    MRC_TRY(mrc_plan_check_options(context, train)); /* here, not after a search */
    MRC_TRY(check_together(context, ours, train));
    MRC_TRY(check_transform(context, ours->target_transform));
    if (mrc_fit_weighs_classes(ours) && strcmp(ours->class_weight, "balanced") != 0 && !strchr(ours->class_weight, '='))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "class_weight '%.60s' is not known; there are none, balanced, and NAME=WEIGHT,...",
                        ours->class_weight);
    if (ours->calibrate_to && strcmp(ours->calibrate_to, "population") != 0 &&
        strcmp(ours->calibrate_to, "weighted") != 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "calibrate_to '%.60s' is not known; there are population and weighted", ours->calibrate_to);
    MRC_TRY(mrc_fit_check_kernel(ours, context));
    MRC_TRY(mrc_fit_check_search(ours, context));
    return mrc_fit_check_centers(ours, context);
}

mercer_status mercer_fit_check(mercer_context *context, const mercer_fit_options *options)
{
    mercer_fit_options ours;
    mercer_train_options train;
    return read_options(context, &ours, &train, options);
}

/* Validation data and given centers must be read as the data are; classes of a given model must be those of the data.
   Its columns are compared later, together with those of a checkpoint. */
static mercer_status check_datasets(mercer_context *context, const mercer_dataset *data,
                                    const mercer_fit_options *options)
{
    mrc_sample_form form = {.whose = "the training set",
                            .schema = data->schema,
                            .feature_names = data->feature_names,
                            .labels = data->label_names,
                            .features = data->features,
                            .outputs = data->outputs};
    if (options->validation) MRC_TRY(mrc_dataset_check_form(context, options->validation, "validation data", &form));
    if (options->given_centers)
        MRC_TRY(mrc_dataset_check_form(context, options->given_centers, "given_centers", &form));
    if (!options->model) return MERCER_OK;
    form.whose = "the model", form.feature_names = NULL;
    form.labels = mercer_model_labels(options->model, &form.outputs);
    return mrc_dataset_check_form(context, data, "data", &form);
}

/* ---- Steps --------------------------------------------------------------------------------------------------- */

mercer_status mercer_fitting_open(mercer_fitting **out, mercer_context *context, mercer_dataset *data,
                                  const mercer_fit_options *options)
{
    if (out) *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!data) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "data is NULL");
    mercer_fit_options ours;
    mercer_train_options train;
    MRC_TRY(read_options(context, &ours, &train, options));
    if (train.patience > 0 && !ours.validation && ours.validation_fraction == 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: patience needs validation or validation_fraction");
    MRC_TRY(check_datasets(context, data, &ours));
    return mrc_fitting_open(out, context, data, &ours, &train);
}

/* The caller's report, and the one of training that it points to. */
static mercer_status write_report(const mercer_fitting *fitting, mercer_fit_report *report)
{
    mercer_fit_report ours, theirs;
    if (!report) return MERCER_OK;
    MRC_TRY(mrc_read_struct(fitting->context, &theirs, MRC_STRUCT(mercer_fit_report), report, "report"));
    mrc_fitting_fill(fitting, &ours);
    ours.training = theirs.training;
    if (ours.training && fitting->training.struct_size > 0)
        MRC_TRY(mrc_write_struct(fitting->context, ours.training, &fitting->training, MRC_STRUCT(mercer_report),
                                 "report: training"));
    return mrc_write_struct(fitting->context, report, &ours, MRC_STRUCT(mercer_fit_report), "report");
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

/* ---- At once ------------------------------------------------------------------------------------------------- */

mercer_status mercer_fit(mercer_model **out, mercer_context *context, mercer_dataset *data,
                         const mercer_fit_options *options, mercer_fit_report *report)
{
    MRC_OWNED(mrc_release_fitting) mercer_fitting *fitting = NULL;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    mercer_fit_report checked; /* before anything long begins */
    MRC_TRY(mrc_read_struct(context, &checked, MRC_STRUCT(mercer_fit_report), report, "report"));
    MRC_TRY(mercer_fitting_open(&fitting, context, data, options));
    MRC_TRY(mercer_fitting_run(fitting, report));
    MRC_TRY(mercer_fitting_take_model(fitting, out));
    if (report) {
        report->train = report->validation = NULL;
        report->model = NULL;
        report->trainer = NULL;
        report->search_steps = NULL;
    }
    return MERCER_OK;
}

mercer_status mercer_fit_plan(mercer_context *context, mercer_plan *out, const mercer_dataset_info *data,
                              const mercer_fit_options *options, mercer_fit_report *report)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out || !data) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", out ? "data" : "out");
    mercer_plan plan = {.struct_size = sizeof plan};
    mercer_fitting self = {.context = context};
    MRC_TRY(read_options(context, &self.options, &self.train, options));
    MRC_TRY(mrc_read_struct(context, &self.info, MRC_STRUCT(mercer_dataset_info), data, "data"));
    self.train.seed = self.options.seed;
    mrc_fit_read_ridge(&self);
    self.report.temperature = (double)NAN;
    MRC_TRY(mrc_fit_find_memory(&self));
    mercer_status status = mrc_fit_plan_sizes(&self, &plan);
    MRC_TRY(write_report(&self, report));
    MRC_TRY(status);
    return mrc_write_struct(context, out, &plan, MRC_STRUCT(mercer_plan), "out");
}

/* ---- Probabilities ------------------------------------------------------------------------------------------- */

mercer_status mercer_temperature(mercer_context *context, double *out, const mercer_matrix *scores,
                                 const int32_t *labels, const double *weights)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out || !labels) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", out ? "labels" : "out");
    MRC_TRY(mrc_check_matrix(context, "scores", scores, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_finite(context, "scores", scores, NULL));
    MRC_TRY(mrc_check_weights(context, weights, scores->rows));
    MRC_TRY(mrc_check_classes(context, labels, scores->rows, scores->cols));
    return mrc_temperature(context, out, scores, labels, weights, NULL);
}

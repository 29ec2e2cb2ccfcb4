/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: probabilities, intervals, evaluation of predictions, importance of columns.
 *
 * An evaluation is a set of sums to which blocks of rows are added. mercer_evaluate predicts a dataset block by block
 * and adds the blocks; other callers add predictions of their own.
 */
#include "metrics/metrics.h"

#include "api/api_options.h"
#include "backends/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"
#include "core/numbers/softmax.h"
#include "core/stage_progress.h"
#include "data/dataset.h"
#include "explain/importance.h"
#include "model/model.h"

#include <math.h>

/* ---- Probabilities and intervals ------------------------------------------------------------------------------- */

mercer_status mercer_model_probabilities(mercer_model *model, const mercer_matrix *P, const mercer_matrix *X)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    MRC_TRY(mrc_backend_check_matrix(context->backend, "P", P, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_backend_check_matrix(context->backend, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_size(context, "X", X, X->rows, mrc_model_features(model)));
    MRC_TRY(mrc_check_size(context, "P", P, X->rows, model->weights.cols));
    MRC_TRY(mrc_check_apart(context, "P", P, "X", X));
    return mrc_model_probabilities(model, P, X);
}

/* A set is ordered by probability and fills the rest of its row of `members` with -1. NaN fails the comparison with 0,
   so a threshold that is NaN is refused. */
mercer_status mercer_class_sets(mercer_context *context, int32_t *members, const mercer_matrix *P, double threshold)
{
    double *row;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    MRC_TRY(mrc_check_matrix(context, "P", P, MRC_ACCEPT_REAL));
    if (!members) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "members is NULL");
    if (!(threshold >= 0))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "threshold is %g; it must be at least 0", threshold);
    MRC_TRY(mrc_check_finite(context, "P", P, NULL));
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &row, P->cols, sizeof *row, "a row of probabilities"));
    for (int64_t i = 0; i < P->rows; i++) {
        int32_t *set = members + i * P->cols;
        mrc_load_row_f64(P, i, row);
        for (int64_t k = mrc_softmax_set(row, P->cols, threshold, set); k < P->cols; k++) set[k] = -1;
    }
    return MERCER_OK;
}

/* ---- Evaluations ----------------------------------------------------------------------------------------------- */

/* Checks the options after their defaults are set. 0 means "none" for temperature and curvature, so only other values
   are compared with their ranges. radius has one entry per output, but a single entry for classes (the threshold). */
static mercer_status check_options(mercer_context *context, const mercer_evaluation_options *options)
{
    if (options->task != MERCER_TASK_CLASSIFICATION && options->task != MERCER_TASK_REGRESSION)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: task is %d; it must be CLASSIFICATION or "
                        "REGRESSION",
                        (int)options->task);
    if (options->outputs < 1 || options->rows < 1 || options->memory < 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: outputs %lld, rows %lld, memory %lld; they must be at least 1, 1 and 0",
                        (long long)options->outputs, (long long)options->rows, (long long)options->memory);
    if (options->temperature != 0 && !mrc_in_range(options->temperature, MRC_TEMPERATURE_LEAST, MRC_TEMPERATURE_MOST))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: temperature is %g; it must be in %g .. %g",
                        options->temperature, MRC_TEMPERATURE_LEAST, MRC_TEMPERATURE_MOST);
    if (options->curvature != 0 && !mrc_in_range(options->curvature, MRC_CURVATURE_LEAST, MRC_CURVATURE_MOST))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: curvature is %g; it must be in %g .. %g (0: none)",
                        options->curvature, MRC_CURVATURE_LEAST, MRC_CURVATURE_MOST);
    for (int64_t j = 0; options->class_shift && j < options->outputs; j++)
        if (!isfinite(options->class_shift[j]))
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: class_shift[%lld] is not finite", (long long)j);
    int64_t lists = options->task == MERCER_TASK_CLASSIFICATION ? 1 : options->outputs;
    for (int64_t j = 0; options->radius && j < lists; j++)
        if (!(options->radius[j] >= 0))
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: radius[%lld] is %g; it must be at least 0",
                            (long long)j, options->radius[j]);
    return MERCER_OK;
}

mercer_status mercer_evaluation_create(mercer_evaluation **out, mercer_context *context,
                                       const mercer_evaluation_options *options)
{
    mercer_evaluation_options ours;
    if (out) *out = NULL;
    MRC_TRY(mrc_context_ready(context));
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_evaluation_options), options, "options"));
    MRC_TRY(check_options(context, &ours));
    if (ours.temperature == 0) ours.temperature = MRC_TEMPERATURE_WITHOUT_DATA;
    return mrc_evaluation_create(out, context, &ours);
}

/* Nothing is added before all arguments are checked, so a failed call leaves the sums unchanged. Y has no effect in
   classification, and labels have no effect in regression. */
mercer_status mercer_evaluation_add(mercer_evaluation *evaluation, const mercer_matrix *F, const mercer_matrix *Y,
                                    const int32_t *labels, const double *weights)
{
    if (!evaluation) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "evaluation is NULL");
    mercer_context *context = evaluation->context;
    MRC_TRY(mrc_check_matrix(context, "F", F, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "F", F, F->rows, evaluation->outputs));
    int64_t rows = evaluation->rows + F->rows;
    if (rows > evaluation->options.rows)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "F: %lld rows are more than the %lld of options.rows",
                        (long long)rows, (long long)evaluation->options.rows);
    MRC_TRY(mrc_check_finite(context, "F", F, NULL));
    MRC_TRY(mrc_check_weights(context, weights, F->rows));
    if (evaluation->classes) {
        if (!labels) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "labels is NULL");
        MRC_TRY(mrc_check_classes(context, labels, F->rows, evaluation->outputs));
        return mrc_evaluation_add(evaluation, F, NULL, labels, weights);
    }
    MRC_TRY(mrc_check_matrix(context, "Y", Y, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "Y", Y, F->rows, evaluation->outputs));
    MRC_TRY(mrc_check_finite(context, "Y", Y, NULL));
    return mrc_evaluation_add(evaluation, F, Y, NULL, weights);
}

/* ---- A model on a dataset -------------------------------------------------------------------------------------- */

/* Buffers for rows that are predicted together. */
typedef struct evaluated_block {
    int64_t most;
    mercer_matrix x, f, y;
    int32_t *labels;
} evaluated_block;

/* Allocates buffers of about 32 MiB, but at least 64 rows, so that products stay efficient with many features. A row
   takes at most 8 (d + 2 c + 1) bytes: features, predictions and targets in double. Predictions are in double if target
   units are applied, which preserves digits that float does not have (model/predict.c). */
static mercer_status open_block(const mercer_model *model, const mercer_dataset *data, mrc_scope *scope,
                                evaluated_block *out)
{
    enum { BYTES = 32 << 20, LEAST = 64, MOST = 8192 };
    int64_t d = data->features, c = data->outputs, most = BYTES / (8 * (d + 2 * c + 1));
    bool values = data->task == MERCER_TASK_REGRESSION;
    mercer_dtype real = values && mrc_units_given(&model->units) ? MERCER_F64 : model->weights.dtype;
    most = mrc_min(data->rows, mrc_max(LEAST, mrc_min(most, MOST)));
    *out = (evaluated_block){.most = most};
    MRC_TRY(mrc_scope_view(scope, &out->x, most, d, data->dtype, "samples"));
    MRC_TRY(mrc_scope_view(scope, &out->f, most, c, real, "predictions"));
    if (values) return mrc_scope_view(scope, &out->y, most, c, MERCER_F64, "targets");
    return mrc_scope_alloc(scope, &out->labels, most, sizeof *out->labels, "labels");
}

/* Predicts the rows from `first` on, up to a block, and adds them to the evaluation. */
static mercer_status add_block(mercer_evaluation *self, mercer_model *model, const mercer_dataset *data,
                               evaluated_block *block, int64_t first)
{
    int64_t m = mrc_min(block->most, data->rows - first);
    mercer_matrix x = mrc_rows(&block->x, 0, m), f = mrc_rows(&block->f, 0, m), y = mrc_rows(&block->y, 0, m);
    MRC_TRY(mrc_dataset_check(data));
    mrc_dataset_fetch(data, NULL, first, &x, block->labels ? NULL : &y, block->labels);
    MRC_TRY(mercer_model_predict(model, &f, &x));
    MRC_TRY(mercer_evaluation_add(self, &f, &y, block->labels, data->weights ? data->weights + first : NULL));
    const mercer_evaluation_options *options = &self->options;
    if (mrc_progress(options->progress, options->progress_user, "evaluation", first + m, data->rows, 0))
        return mrc_fail(model->context, MERCER_ERROR_CALLBACK, "the progress callback stopped the evaluation");
    return MERCER_OK;
}

/* Adds all rows of the dataset in their order. With ranks, every rank passes all rows. */
static mercer_status add_dataset(mercer_evaluation *self, mercer_model *model, const mercer_dataset *data)
{
    evaluated_block block;
    MRC_SCOPE(scope, model->context);
    MRC_TRY(open_block(model, data, &scope, &block));
    for (int64_t first = 0; first < data->rows; first += block.most)
        MRC_TRY(add_block(self, model, data, &block, first));
    return MERCER_OK;
}

/* Sets options->radius to the model's interval radius for the requested level. Does nothing if no level is
   requested. */
static mercer_status find_radius(const mercer_model *model, mrc_scope *scope, mercer_evaluation_options *options)
{
    double *radius;
    bool classes = options->task == MERCER_TASK_CLASSIFICATION;
    if (options->interval == 0) return MERCER_OK;
    if (model->calibration.scores && model->calibration.classes != classes)
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "the model's intervals are for another task");
    MRC_TRY(mrc_scope_alloc(scope, &radius, model->weights.cols, sizeof *radius, "intervals"));
    options->radius = radius;
    return mrc_model_interval(model, radius, options->interval);
}

/* A curvature is calibrated together with its temperature, so the model's curvature is a default only if the
   temperature of the model is used. Options are checked after task, sizes and defaults have been taken from data and
   model. */
mercer_status mercer_evaluate(mercer_evaluation **out, mercer_model *model, const mercer_dataset *data,
                              const mercer_evaluation_options *options)
{
    mercer_evaluation_options ours;
    MRC_OWNED(mrc_release_evaluation) mercer_evaluation *self = NULL;
    if (out) *out = NULL;
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    if (!out || !data) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", out ? "data" : "out");
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_evaluation_options), options, "options"));
    MRC_TRY(mrc_check_model_dataset(model, data));
    if (data->outputs != model->weights.cols)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "data: %lld outputs, but the model has %lld",
                        (long long)data->outputs, (long long)model->weights.cols);
    ours.task = data->task, ours.outputs = data->outputs, ours.rows = data->rows;
    if (ours.temperature == 0) {
        ours.temperature = mrc_model_temperature(model);
        if (ours.curvature == 0) ours.curvature = model->calibration.curvature;
    }
    if (!ours.class_shift) ours.class_shift = model->calibration.shift;
    MRC_TRY(check_options(context, &ours));
    MRC_SCOPE(scope, context);
    MRC_TRY(find_radius(model, &scope, &ours));
    MRC_TRY(mrc_evaluation_create(&self, context, &ours));
    MRC_TRY(add_dataset(self, model, data));
    *out = self, self = NULL;
    return MERCER_OK;
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* Checks the arguments of queries. Without any weight all metrics would be 0 / 0. */
static mercer_status check_rows(const mercer_evaluation *evaluation, const void *out)
{
    if (!evaluation) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "evaluation is NULL");
    if (!out) return mrc_fail(evaluation->context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (evaluation->weight > 0) return MERCER_OK;
    return mrc_fail(evaluation->context, MERCER_ERROR_DATA, "the evaluation has no rows of positive weight");
}

/* Metrics that do not apply to the task stay NaN; the functions of src/metrics set the others. */
mercer_status mercer_evaluation_query(const mercer_evaluation *evaluation, mercer_metrics *out)
{
    const double none = (double)NAN;
    MRC_TRY(check_rows(evaluation, out));
    mercer_metrics ours = {.struct_size = sizeof ours,
                           .rows = evaluation->rows,
                           .outputs = evaluation->outputs,
                           .ranked_rows = evaluation->saved,
                           .task = evaluation->options.task,
                           .weight = evaluation->weight,
                           .interval = evaluation->options.radius ? evaluation->options.interval : none};
    ours.rmse = ours.mae = ours.r2 = ours.error_median = ours.error_90 = ours.error_99 = ours.error_max = none;
    ours.accuracy = ours.log_loss = ours.brier = ours.auc = ours.f1 = ours.calibration_error = none;
    ours.temperature = ours.curvature = none;
    ours.coverage = ours.interval_size = ours.interval_score = none;
    MRC_TRY((evaluation->classes ? mrc_class_metrics : mrc_value_metrics)(evaluation, &ours));
    return mrc_write_struct(evaluation->context, out, &ours, MRC_STRUCT(mercer_metrics), "out");
}

static mercer_status check_index(const mercer_evaluation *evaluation, int64_t index)
{
    if (index >= 0 && index < evaluation->outputs) return MERCER_OK;
    return mrc_fail(evaluation->context, MERCER_ERROR_ARGUMENT, "index is %lld, but there are %lld outputs",
                    (long long)index, (long long)evaluation->outputs);
}

mercer_status mercer_evaluation_output(const mercer_evaluation *evaluation, mercer_output_metrics *out, int64_t index)
{
    const double none = (double)NAN;
    mercer_output_metrics ours = {.struct_size = sizeof ours};
    MRC_TRY(check_rows(evaluation, out));
    MRC_TRY(check_index(evaluation, index));
    ours.mse = ours.rmse = ours.mae = ours.r2 = none;
    ours.error_median = ours.error_90 = ours.error_99 = ours.error_max = none;
    ours.precision = ours.recall = ours.f1 = ours.auc = none;
    ours.coverage = ours.interval_size = ours.interval_score = none;
    MRC_TRY((evaluation->classes ? mrc_class_each : mrc_value_each)(evaluation, index, &ours));
    return mrc_write_struct(evaluation->context, out, &ours, MRC_STRUCT(mercer_output_metrics), "out");
}

const double *mercer_evaluation_confusion(const mercer_evaluation *evaluation)
{
    return evaluation ? evaluation->confusion : NULL;
}

/* x and y may be NULL only if their capacity is 0; the call then only counts the points. */
mercer_status mercer_evaluation_curve(const mercer_evaluation *evaluation, const char *name, int64_t index, double *x,
                                      double *y, int64_t capacity, int64_t *count)
{
    MRC_TRY(check_rows(evaluation, count));
    MRC_TRY(check_index(evaluation, index));
    if (!name || ((!x || !y) && capacity > 0))
        return mrc_fail(evaluation->context, MERCER_ERROR_ARGUMENT, "%s is NULL", !name ? "name" : x ? "y" : "x");
    if (capacity < 0)
        return mrc_fail(evaluation->context, MERCER_ERROR_ARGUMENT, "capacity is %lld; it must be at least 0",
                        (long long)capacity);
    return (evaluation->classes ? mrc_class_curve : mrc_value_curve)(evaluation, name, index, x, y, capacity, count);
}

/* ---- Importance of columns ----------------------------------------------------------------------------------- */

/* Checks that the dataset fits the model and has targets to compare predictions with. */
static mercer_status check_targets(const mercer_model *model, const mercer_dataset *data)
{
    MRC_TRY(mrc_check_model_dataset(model, data));
    if (data->task == MERCER_TASK_UNLABELED)
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "data: has no targets to compare with");
    if (data->outputs == model->weights.cols) return MERCER_OK;
    return mrc_fail(model->context, MERCER_ERROR_SHAPE, "data: %lld outputs, but the model has %lld",
                    (long long)data->outputs, (long long)model->weights.cols);
}

mercer_status mercer_permutation_importance(mercer_importance **out, mercer_model *model, const mercer_dataset *data,
                                            const mercer_permutation_options *options)
{
    mercer_permutation_options ours;
    if (out) *out = NULL;
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    if (!out || !data) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", out ? "data" : "out");
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_permutation_options), options, "options"));
    if (ours.repeats < 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: repeats is %lld; it must be at least 0",
                        (long long)ours.repeats);
    MRC_TRY(check_targets(model, data));
    return mrc_importance_measure(out, model, data, &ours);
}

mercer_status mercer_importance_query(const mercer_importance *importance, mercer_importance_info *out)
{
    if (!importance) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "importance is NULL");
    mercer_importance_info ours = {.struct_size = sizeof ours,
                                   .columns = importance->count,
                                   .names = importance->names,
                                   .drops = importance->drops,
                                   .errors = importance->errors,
                                   .score = importance->score,
                                   .task = importance->task,
                                   .rows = importance->rows,
                                   .repeats = importance->repeats};
    return mrc_write_struct(importance->context, out, &ours, MRC_STRUCT(mercer_importance_info), "out");
}

void mercer_importance_free(mercer_importance *importance)
{
    mrc_importance_free(importance);
}

/* F has the capacity of `values`: one row per value. The column number is checked by the callee, which knows the
   columns of the schema. */
mercer_status mercer_partial_dependence(mercer_model *model, const mercer_dataset *data, int64_t column, double *values,
                                        const mercer_matrix *F, int64_t *count)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    if (!data || !values || !count)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", !data ? "data" : values ? "count" : "values");
    MRC_TRY(mrc_check_matrix(context, "F", F, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "F", F, F->rows, model->weights.cols));
    MRC_TRY(mrc_check_model_dataset(model, data));
    return mrc_partial_dependence(model, data, column, values, F, count);
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

void mercer_evaluation_free(mercer_evaluation *self)
{
    mrc_evaluation_free(self);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage kernel: preprocessing, kernel function, units and names of a model; opening of its training stream.
 *
 * Kernel and preprocessing come from one of four sources: an existing model, the outer fit of a cross-validation, the
 * search, or the options with their defaults. Only in the last case may the bandwidth be the median distance.
 */
#include "fit/fitting.h"

#include "centers/center_selection.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "features/metric.h"
#include "kernels/table.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernel ---------------------------------------------------------------------------------------------------- */

/* Returns whether the kernel that a specification names has a parameter "bandwidth". */
static bool takes_bandwidth(const char *spec)
{
    const mrc_kernel_entry *entry = mrc_kernel_named(spec);
    return entry && mrc_spec_parameter(&entry->form, "bandwidth");
}

/* A specification without a bandwidth is parsed with "bandwidth=1" appended; the given bandwidth then replaces it. A
   kernel function of the caller is copied, with its own bandwidth. */
mercer_status mrc_fit_parse_kernel(const mercer_fit_options *options, mercer_context *context, double bandwidth,
                                   mercer_kernel *out, bool *open)
{
    char longer[MERCER_KERNEL_TEXT];
    const char *spec = options->kernel.spec ? options->kernel.spec : MRC_DEFAULT_KERNEL;
    *open = !options->kernel.function && !strstr(spec, "bandwidth=") && takes_bandwidth(spec);
    if (options->kernel.function) *out = *options->kernel.function;
    if (*open) {
        snprintf(longer, sizeof longer, "%s%cbandwidth=1", spec, strchr(spec, ':') ? ',' : ':');
        spec = longer;
    }
    if (!options->kernel.function) MRC_TRY(mrc_kernel_parse(context, out, spec));
    if (*open) out->bandwidth = bandwidth;
    return mrc_kernel_check(context, out);
}

const char *mrc_fit_preprocess(const mercer_fit_options *options, const mercer_dataset_info *info)
{
    if (options->data.preprocess && strcmp(options->data.preprocess, "auto") != 0) return options->data.preprocess;
    return mrc_preprocess_auto(info->format, info->dtype);
}

/* The decisions are those of preprocessing and folding, made here from names only: bytes stay bytes if they are only
   scaled and the factor can be folded into the bandwidth. A metric always gives real numbers. */
mercer_dtype mrc_fit_points(const mercer_fit_options *options, const mercer_dataset_info *info)
{
    const char *preprocess = mrc_fit_preprocess(options, info);
    mercer_kernel kernel;
    bool open, bytes_stay = info->dtype == MERCER_U8 && strncmp(preprocess, "scale", 5) == 0 &&
                            mrc_fit_parse_kernel(options, NULL, 1, &kernel, &open) == MERCER_OK &&
                            mrc_kernel_is_stationary(&kernel) && !mrc_kernel_is_callback(&kernel);
    bool mapped = options->kernel.metric || options->search.learn_features == MERCER_ON;
    if ((strcmp(preprocess, "none") == 0 || bytes_stay) && !mapped) return info->dtype;
    return info->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
}

/* Computes the median distance between preprocessed rows, in the norm of the kernel. Uses up to 2,000 evenly spaced
   rows, or fewer if they would take more than half of the memory. The median is rounded to four digits, which is
   accurate enough and easy to type. */
static mercer_status find_median(const mercer_fitting *self, double *out)
{
    enum { MOST = 2000 };
    mercer_dtype dtype = mrc_preprocess_dtype(self->preprocess, self->data->dtype);
    int64_t n = self->data->rows, rows[MOST], d = mrc_preprocess_width(self->preprocess, self->data->features);
    int64_t m = mrc_min(MOST, mrc_median_rows(n, d * mrc_dtype_size(dtype), self->memory / 2));
    char digits[32];
    mercer_matrix X;
    MRC_SCOPE(scope, self->context);
    for (int64_t i = 0; i < m; i++) rows[i] = (int64_t)((double)i * (double)n / (double)m);
    MRC_TRY(mrc_scope_view(&scope, &X, m, d, dtype, "rows to find a bandwidth"));
    MRC_TRY(mercer_dataset_read(self->data, &X, NULL, NULL, self->preprocess, rows, 0));
    MRC_TRY(mercer_median_distance(self->context, out, &self->kernel, &X, 0));
    snprintf(digits, sizeof digits, "%.4g", *out);
    *out = strtod(digits, NULL);
    return MERCER_OK;
}

int64_t mrc_fit_width(const mercer_fitting *self)
{
    return mrc_preprocess_width(self->applied, self->info.features);
}

/* Adds the metric M to the preprocessing as its last step: samples are mapped to x A, where M = A A'. */
static mercer_status apply_metric(mercer_context *context, mercer_preprocess *preprocess, const mercer_matrix *metric,
                                  int64_t features)
{
    mrc_metric made;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_metric_given(&made, &scope, context->backend, features, metric));
    return mrc_preprocess_set_map(preprocess, features, made.width, made.diagonal, made.map);
}

/* Adds weights to the preprocessing for a kernel with norm p != 2. In r^p = sum_k w_k |x_k - z_k|^p they scale features
   by w^(1/p), but the preprocessing expects weights whose square roots are the scales: w^(2/p). */
static mercer_status set_weights(mercer_context *context, mercer_preprocess *preprocess, double norm,
                                 const mercer_matrix *metric, int64_t features)
{
    int64_t d = metric->rows * metric->cols;
    mercer_matrix weights;
    if (metric->rows > 1 && metric->cols > 1)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "metric is %lld x %lld; a kernel without the L2 norm needs one weight per feature",
                        (long long)metric->rows, (long long)metric->cols);
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_view(&scope, &weights, 1, d, MERCER_F64, "the metric"));
    for (int64_t k = 0; k < d; k++)
        mrc_store(&weights, 0, k, pow(mrc_load(metric, metric->rows > 1 ? k : 0, metric->rows > 1 ? 0 : k), 2 / norm));
    return apply_metric(context, preprocess, &weights, features);
}

mercer_status mrc_fit_set_metric(mercer_context *context, mercer_preprocess *preprocess, const mercer_kernel *kernel,
                                 const mercer_matrix *metric, int64_t features)
{
    double norm = mrc_kernel_norm(kernel);
    if (norm > 0 && norm != 2) return set_weights(context, preprocess, norm, metric, features);
    return apply_metric(context, preprocess, metric, features);
}

/* Sets the given weights of a blend. In the option, row 0 has the weights of the ranks, and row 1 has the weights of
   the standardized values; mrc_preprocess_set_blend takes the standardized values first. */
static mercer_status set_blend(mercer_context *context, mercer_preprocess *preprocess, const mercer_matrix *weights)
{
    int64_t d = mrc_preprocess_features(preprocess);
    double *all;
    if (weights->cols != d)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "blend is %lld x %lld; it must be 2 x %lld: a column per feature",
                        (long long)weights->rows, (long long)weights->cols, (long long)d);
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &all, 2 * d, sizeof *all, "weights of features"));
    for (int64_t k = 0; k < d; k++) all[k] = mrc_load(weights, 1, k), all[d + k] = mrc_load(weights, 0, k);
    return mrc_preprocess_set_blend(preprocess, all, all + d);
}

/* Returns whether all rows have the same features. Stops at the first row that differs. */
static mercer_status is_one_point(const mercer_dataset *data, bool *out)
{
    mercer_matrix first, row;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_view(&scope, &first, 1, data->features, data->dtype, "a row"));
    MRC_TRY(mrc_scope_view(&scope, &row, 1, data->features, data->dtype, "a row"));
    mrc_dataset_fetch(data, NULL, 0, &first, NULL, NULL);
    *out = true;
    for (int64_t i = 1; i < data->rows && *out; i++) {
        mrc_dataset_fetch(data, NULL, i, &row, NULL, NULL);
        for (int64_t j = 0; j < data->features && *out; j++) *out = mrc_load(&row, 0, j) == mrc_load(&first, 0, j);
    }
    return mrc_dataset_check(data);
}

/* Sets the bandwidth to the median distance. If all rows are the same point, the bandwidth is set to 1: every bandwidth
   then gives the same model. */
static mercer_status find_bandwidth(mercer_fitting *self, double *out)
{
    bool point;
    MRC_TRY(is_one_point(self->data, &point));
    if (!point) {
        self->spread = 1;
        return find_median(self, out);
    }
    mrc_warn(self->context, "data", "all %lld rows have the same features, so predictions are the mean of the targets",
             (long long)self->given_rows);
    *out = 1;
    return MERCER_OK;
}

/* Copies kernel and preprocessing from the outer fit. This fit validates the hyperparameters of the outer fit. */
static mercer_status inherit(mercer_fitting *self)
{
    const mercer_fitting *outer = self->outer;
    if (outer->applied) MRC_TRY(mrc_preprocess_copy(&self->preprocess, self->context, outer->applied));
    self->applied = self->preprocess;
    self->kernel = outer->kernel;
    self->spread = outer->spread;
    self->report.points = mrc_preprocess_dtype(self->preprocess, self->info.dtype);
    return MERCER_OK;
}

/* ---- Existing models --------------------------------------------------------------------------------------------- */

/* Checks that the columns of the data have the names that the model was trained with. */
static mercer_status check_names(const mercer_fitting *self, const char *name)
{
    const char *const *names = (const char *const *)self->model->feature_names, *const *found =
                                                                                    self->info.feature_names;
    for (int64_t j = 0; names && found && j < self->info.features; j++)
        if (strcmp(names[j], found[j]) != 0)
            return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                            "%s: was trained on other data: its column '%s' is '%s' in these data", name, names[j],
                            found[j]);
    return MERCER_OK;
}

/* Checks that the samples were read from their table with the model's schema. */
static mercer_status check_schema(const mercer_fitting *self, const char *name)
{
    const char *own = self->model->schema, *found = self->info.schema;
    if (!own == !found && (!own || strcmp(own, found) == 0)) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                    "%s: was trained on other data: its schema differs from that of these data", name);
}

/* Sizes, names and schema are compared before the number of centers. For data of another table, the message therefore
   says that the data are different. */
mercer_status mrc_fit_check_model(mercer_fitting *self)
{
    const char *name = self->record.resumes ? self->record.resumes : "model";
    int64_t features = mrc_model_features(self->model), outputs = self->model->weights.cols;
    int64_t p = self->report.centers, wanted = mrc_fit_center_count(self);
    if (features != self->info.features)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                        "%s: was trained on other data: it has %lld features, but these data have %lld", name,
                        (long long)features, (long long)self->info.features);
    if (outputs != self->info.outputs)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                        "%s: was trained on other data: it has %lld outputs, but these data have %lld", name,
                        (long long)outputs, (long long)self->info.outputs);
    MRC_TRY(check_names(self, name));
    MRC_TRY(check_schema(self, name));
    bool merged = mrc_fit_merges(self) && p < wanted; /* merging left fewer distinct rows as centers */
    if (self->model_borrowed || self->options->centers.given || p == wanted || merged) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                    "%s: was written with other options: it has %lld centers, but centers is %lld", name, (long long)p,
                    (long long)wanted);
}

/* Records that the scale factor of the preprocessing was folded into the bandwidth (mercer_preprocess_info): samples
   such as bytes are then used unchanged. */
static void record_folded(mercer_fitting *self)
{
    mrc_fit_decide(self, "kernel", "folded", mrc_fit_origin(self, false, MRC_FROM_DATA), "yes");
}

/* Takes the caller's model, or loads the model of the checkpoint, with its kernel and preprocessing. */
static mercer_status load_model(mercer_fitting *self)
{
    mercer_context *context = self->context;
    self->model_borrowed = self->options->run.model != NULL;
    self->model = self->options->run.model;
    if (!self->model) MRC_TRY(mercer_model_load(&self->model, context, self->options->run.comm, self->record.resumes));
    self->applied = self->model->preprocess;
    self->kernel = self->model->kernel;
    const mercer_kernel *before = mrc_preprocess_kernel(self->applied);
    if (before) record_folded(self);
    if (!mrc_kernel_is_callback(&self->kernel))
        MRC_TRY(mrc_kernel_print(context, before ? before : &self->kernel, self->report.kernel,
                                 sizeof self->report.kernel, NULL));
    self->report.points = mrc_preprocess_dtype(self->applied, self->info.dtype);
    self->report.centers = self->model->total;
    snprintf(self->report.center_method, sizeof self->report.center_method, "%s",
             self->model_borrowed ? "given" : "checkpoint");
    return MERCER_OK;
}

/* ---- The stage --------------------------------------------------------------------------------------------------- */

/* Uses the given kernel and preprocessing, or the defaults, unless the search has chosen them. The order matters: the
   bandwidth is a distance of preprocessed rows, so preprocessing and metric come before it. Folding changes the
   bandwidth, so the kernel is printed for the report before folding. */
static mercer_status choose_kernel(mercer_fitting *self)
{
    if (self->outer) return inherit(self);
    if (self->preprocess) return MERCER_OK; /* set by the search */
    mercer_context *context = self->context;
    double bandwidth = self->options->kernel.bandwidth;
    bool open;
    MRC_TRY(
        mercer_preprocess_fit(&self->preprocess, context, mrc_fit_preprocess(self->options, &self->info), self->data));
    if (self->options->kernel.blend) MRC_TRY(set_blend(context, self->preprocess, self->options->kernel.blend));
    self->applied = self->preprocess;
    MRC_TRY(mrc_fit_parse_kernel(self->options, context, bandwidth > 0 ? bandwidth : 1, &self->kernel, &open));
    if (self->options->kernel.metric)
        MRC_TRY(mrc_fit_set_metric(context, self->preprocess, &self->kernel, self->options->kernel.metric,
                                   self->info.features));
    if (open && bandwidth == 0) {
        MRC_TRY(find_bandwidth(self, &bandwidth));
        mrc_fit_decide(self, "kernel", "bandwidth", MRC_FROM_DATA, "%.17g", bandwidth);
        MRC_TRY(mrc_fit_parse_kernel(self->options, context, bandwidth, &self->kernel, &open));
    }
    if (!mrc_kernel_is_callback(&self->kernel))
        MRC_TRY(mrc_kernel_print(context, &self->kernel, self->report.kernel, sizeof self->report.kernel, NULL));
    if (mrc_preprocess_fold(self->preprocess, &self->kernel)) record_folded(self);
    self->report.points = mrc_preprocess_dtype(self->preprocess, self->info.dtype);
    return MERCER_OK;
}

/* Records kernel and preprocessing with their origins. */
static void record_kernel(mercer_fitting *self)
{
    const mercer_fit_report *report = &self->report;
    bool searched = self->search_report.steps != NULL,
         kernel = self->options->kernel.spec || self->options->kernel.function,
         preprocess = self->options->data.preprocess && strcmp(self->options->data.preprocess, "auto") != 0;
    mrc_origin otherwise = searched ? MRC_FROM_SEARCH : MRC_DEFAULT;
    mrc_fit_decide(self, "kernel", "kernel", mrc_fit_origin(self, kernel, otherwise), "%s",
                   report->kernel[0] ? report->kernel : "a callback");
    if (searched)
        mrc_fit_explain(self, "kernel", "kernel",
                        "%s, ridge %.1e per unit of weight, held-out error %.4g of the variance", report->kernel,
                        self->search_report.ridge, self->search_report.error);
    mrc_fit_decide(self, "kernel", "preprocess", mrc_fit_origin(self, preprocess, otherwise), "%s",
                   mrc_preprocess_spec(self->applied));
}

mercer_status mrc_stage_kernel(mercer_fitting *self)
{
    MRC_TRY(self->model_exists ? load_model(self) : choose_kernel(self));
    record_kernel(self);
    return MERCER_OK;
}

/* ---- A new model ----------------------------------------------------------------------------------------------- */

/* The preprocessing is set before names and schema, whose number of features is checked against it. */
mercer_status mrc_fit_create_model(mercer_fitting *self)
{
    const mercer_dataset_info *info = &self->info;
    mercer_status status = mercer_model_create(&self->model, self->context, self->options->run.comm, &self->kernel,
                                               &self->centers, info->outputs, self->options->run.precision);
    mrc_free(self->context, self->centers.data); /* the model has a copy */
    self->centers = (mercer_matrix){0};
    MRC_TRY(status);
    MRC_TRY(mercer_model_set_preprocess(self->model, self->preprocess));
    if (info->labels) MRC_TRY(mrc_model_set_labels(self->model, info->labels, info->outputs));
    MRC_TRY(mrc_fit_set_units(self));
    if (info->schema) MRC_TRY(mrc_model_set_schema(self->model, info->schema));
    if (info->feature_names) MRC_TRY(mrc_model_set_feature_names(self->model, info->feature_names, info->features));
    if (info->target_names)
        MRC_TRY(mrc_model_set_target_names(self->model, info->target_names, info->labels ? 1 : info->outputs));
    return MERCER_OK;
}

/* ---- Samples for the trainer ----------------------------------------------------------------------------------- */

/* Opens a stream of the training samples, preprocessed and augmented. The caller frees *source. */
mercer_status mrc_fit_open_stream(mercer_fitting *self, uint64_t seed, int64_t samples, mercer_source *source)
{
    mercer_stream_options options = {.struct_size = sizeof options,
                                     .seed = seed,
                                     .preprocess = self->applied,
                                     .augment = self->options->data.augment,
                                     .height = self->options->data.height,
                                     .width = self->options->data.width,
                                     .channels = self->options->data.channels,
                                     .samples = samples};
    return mercer_source_from_dataset(source, self->data, &options);
}

/* Reads the preprocessed validation rows that are scored during training into memory. */
mercer_status mrc_fit_read_validation(mercer_fitting *self)
{
    mercer_context *context = self->context;
    const mercer_dataset *held = self->validation;
    if (!self->watched) return MERCER_OK;
    mercer_dtype real = mrc_fit_target_type(self), dtype = mrc_preprocess_dtype(self->applied, held->dtype);
    int64_t m = mrc_fit_validation_rows(self), d = mrc_fit_width(self), c = held->outputs, *rows;
    mercer_matrix *x = &self->validation_x, *y = &self->validation_y;
    double *weights;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &rows, m, sizeof *rows, "row numbers"));
    for (int64_t i = 0; i < m; i++) rows[i] = (int64_t)((double)i * (double)held->rows / (double)m);
    *x = mrc_view(NULL, m, d, dtype), *y = mrc_view(NULL, m, c, real);
    MRC_TRY(mrc_alloc(context, &x->data, m, d * mrc_dtype_size(dtype), "validation samples"));
    MRC_TRY(mrc_alloc(context, &y->data, m, c * mrc_dtype_size(real), "validation targets"));
    if (held->weights) {
        MRC_TRY(mrc_alloc(context, &weights, m, sizeof *weights, "validation weights"));
        self->validation_weights = weights;
        for (int64_t i = 0; i < m; i++) weights[i] = held->weights[rows[i]];
    }
    return mercer_dataset_read(held, x, y, NULL, self->applied, rows, 0);
}

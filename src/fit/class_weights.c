/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Class weights multiply the weights of the samples. `balanced` gives every class that occurs the same total weight. If
 * class k has the total weight W_k, all samples together have W, and C classes occur,
 *
 *     w_k = W / (C W_k)
 *
 * so the sum of all weights stays the same. Otherwise weights are given by name, "a=2,b=1"; classes that are not named
 * have weight 1. The longest matching class name is used, so names may contain commas and equals signs.
 *
 * A model trained with class weights estimates p_w(k | x), which is proportional to w_k p(k | x). Its probabilities are
 * those of the population, p(k | x), unless the caller asks for the weighted probabilities: the score of class k is
 * shifted by -T log w_k before the softmax, and T is found with the original row weights.
 */
#include "fit/fitting.h"

#include "core/memory.h"
#include "core/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool mrc_fit_weighs_classes(const mercer_fit_options *options)
{
    return options->data.class_weight && strcmp(options->data.class_weight, "none") != 0;
}

/* Computes the weights of `balanced`; classes that do not occur get 1. */
static mercer_status balance(const mercer_dataset *data, double *factors)
{
    double all = 0;
    int64_t occur = 0;
    memset(factors, 0, (size_t)data->outputs * sizeof *factors);
    for (int64_t i = 0; i < data->rows; i++) factors[data->labels[i]] += data->weights ? data->weights[i] : 1;
    for (int64_t k = 0; k < data->outputs; k++) all += factors[k], occur += factors[k] > 0;
    if (occur == 0) return mrc_fail(data->context, MERCER_ERROR_DATA, "class_weight: all sample weights are 0");
    for (int64_t k = 0; k < data->outputs; k++) factors[k] = factors[k] > 0 ? all / ((double)occur * factors[k]) : 1;
    return MERCER_OK;
}

/* Returns the class with the longest name at `text` that is followed by an equals sign; -1: none. */
static int64_t find_class(const mercer_dataset *data, const char *text, size_t *length)
{
    char number[MRC_CLASS_CHARS];
    int64_t found = -1;
    *length = 0;
    for (int64_t k = 0; k < data->outputs; k++) {
        const char *name = mrc_dataset_class_name(data, k, number);
        size_t size = strlen(name);
        if ((found >= 0 && size <= *length) || strncmp(text, name, size) != 0 || text[size] != '=') continue;
        found = k;
        *length = size;
    }
    return found;
}

/* Parses weights that are given by name. */
static mercer_status read_factors(const mercer_dataset *data, const char *text, double *factors)
{
    char number[MRC_CLASS_CHARS];
    for (int64_t k = 0; k < data->outputs; k++) factors[k] = 1;
    while (*text) {
        size_t length, digits;
        int64_t k = find_class(data, text, &length);
        if (k < 0)
            return mrc_fail(data->context, MERCER_ERROR_ARGUMENT,
                            "class_weight: '%.60s' does not begin with the name of a class and =; the first of %lld "
                            "classes is '%.60s'",
                            text, (long long)data->outputs, mrc_dataset_class_name(data, 0, number));
        text += length + 1;
        digits = strcspn(text, ",");
        snprintf(number, sizeof number, "%.*s", (int)(digits < sizeof number ? digits : sizeof number - 1), text);
        if (!mrc_scan_number(number, &factors[k]) || !(factors[k] >= 0))
            return mrc_fail(data->context, MERCER_ERROR_ARGUMENT,
                            "class_weight: '%s' is not a weight; use a number of at least 0", number);
        text += digits;
        if (*text == ',' && *++text == 0)
            return mrc_fail(data->context, MERCER_ERROR_ARGUMENT, "class_weight: remove the comma at the end");
    }
    return MERCER_OK;
}

/* Creates a dataset of the same rows with weights multiplied by the class weights. */
static mercer_status multiply_weights(mercer_dataset **out, const mercer_dataset *data, const double *factors)
{
    double *weights;
    MRC_TRY(mrc_dataset_range(out, data, 0, data->rows));
    MRC_TRY(mrc_dataset_make_weights(*out, &weights));
    for (int64_t i = 0; i < data->rows; i++)
        weights[i] = factors[data->labels[i]] * (data->weights ? data->weights[i] : 1);
    return MERCER_OK;
}

mercer_status mrc_fit_weigh_classes(mercer_fitting *self)
{
    const mercer_dataset *data = self->data, *held = self->validation;
    if (!mrc_fit_weighs_classes(self->options)) {
        if (self->options->validation.calibrate_to && strcmp(self->options->validation.calibrate_to, "weighted") == 0)
            mrc_warn(self->context, "validation.calibrate_to",
                     "calibrate_to weighted has no effect without class_weight");
        return MERCER_OK;
    }
    if (data->task != MERCER_TASK_CLASSIFICATION)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "class_weight has no effect with regression; remove it");
    if (!data->labels || (held && !held->labels))
        return mrc_fail(self->context, MERCER_ERROR_UNSUPPORTED,
                        "class_weight does not support synthetic samples; remove it");
    MRC_TRY(mrc_alloc(self->context, &self->class_factors, data->outputs, sizeof(double), "weights of classes"));
    double *factors = self->class_factors;
    const char *how = self->options->data.class_weight;
    MRC_TRY(strcmp(how, "balanced") == 0 ? balance(data, factors) : read_factors(data, how, factors));
    MRC_TRY(multiply_weights(&self->weighted, data, factors));
    if (held && held->outputs == data->outputs) {
        MRC_TRY(multiply_weights(&self->weighted_validation, held, factors));
        self->validation = self->weighted_validation;
    }
    self->data = self->weighted;
    return MERCER_OK;
}

bool mrc_fit_shifts_classes(const mercer_fitting *self)
{
    const char *to = self->options->validation.calibrate_to;
    return self->class_factors && !(to && strcmp(to, "weighted") == 0);
}

/* Divides the row weights by the class weights. A class of weight 0 has rows of weight 0, whose original weight is
   lost. */
mercer_status mrc_fit_population_weights(const mercer_fitting *self, const mercer_dataset *dataset, mrc_scope *scope,
                                         const double **out)
{
    double *weights;
    *out = dataset->weights;
    if (!mrc_fit_shifts_classes(self) || !dataset->weights || !dataset->labels) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc(scope, &weights, dataset->rows, sizeof *weights, "weights of rows"));
    for (int64_t i = 0; i < dataset->rows; i++) {
        double factor = self->class_factors[dataset->labels[i]];
        weights[i] = factor > 0 ? dataset->weights[i] / factor : 0;
    }
    *out = weights;
    return MERCER_OK;
}

/* temperature -1 gives log w_k, which mrc_calibrate needs before a temperature is known. */
void mrc_fit_class_shift(const mercer_fitting *self, double temperature, double *shift)
{
    for (int64_t k = 0; k < self->info.outputs; k++) {
        double factor = mrc_fit_shifts_classes(self) ? self->class_factors[k] : 1;
        /* a class of weight 0 was not learned, and log 0 would make its shift infinite */
        shift[k] = factor > 0 ? -temperature * log(factor) : 0;
    }
}

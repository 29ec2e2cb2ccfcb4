/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which fits begin with a hyperparameter search where the caller leaves that open (mercer_fit_options.tune is AUTO):
 * those to a table. What is given stays as it is, and the rest is searched for, unless what is given has no meaning
 * without the default of the rest: a bandwidth or a metric is in units of preprocessed samples.
 *
 *   a table       numbers that would be standardised, of text and arrays of floats: no bytes, half floats, sparse or
 *                 computed samples, no images; at most 1,024 features
 *   enough rows   at least 500, counted before any are held out: of fewer, held-out errors are less reliable than the
 *                 defaults
 *   enough memory samples take at most a quarter of it: a larger file is a stream that is seen a few times
 *
 * A fit without a search still chooses its ridge (fit/ridge.c).
 */
#include "plan/plan.h"

#include "core/matrix.h"

#include "mercer/samples.h"

#include <string.h>

enum { MOST_FEATURES = 1024, LEAST_ROWS = 500 };

const char *mrc_plan_fixed(const mercer_fit_options *options)
{
    if (options->kernel_function) return "kernel_function";
    if (options->kernel && strstr(options->kernel, "bandwidth=")) return "kernel";
    if (options->bandwidth != 0) return "bandwidth";
    if (options->metric) return "metric";
    return options->learn_features != 0 ? "learn_features" : NULL;
}

static const char *given_model(const mercer_fit_options *options)
{
    const char *fixed = mrc_plan_fixed(options);
    if (options->model) return "the model is given";
    if (fixed && strcmp(fixed, "metric") == 0) return "the metric is given";
    if (fixed && strcmp(fixed, "learn_features") == 0) return "the metric is learned, as was asked for";
    if (fixed) return "the bandwidth is given";
    return options->augment || options->samples > 0 ? "samples are augmented" : NULL;
}

static const char *not_a_table(const mercer_dataset_info *info, int64_t rows, int64_t memory)
{
    double bytes = (double)info->rows * (double)info->features * (double)mrc_dtype_size(info->dtype);
    if (info->task == MERCER_TASK_UNLABELLED) return "there are no targets";
    if (!info->format || strcmp(info->format, "sizes") == 0) return "sizes do not tell whether it is a table";
    if (info->height > 0 && info->width > 0) return "the samples are images";
    if (strcmp(mercer_preprocess_auto(info->format, info->dtype), "standardise") != 0)
        return "the samples are not a table of numbers";
    if (info->features > MOST_FEATURES) return "there are more than 1,024 features";
    if (rows < LEAST_ROWS) return "there are fewer than 500 rows";
    return bytes > (double)memory / 4 ? "the samples take more than a quarter of the memory" : NULL;
}

const char *mrc_plan_untuned(const mercer_fit_options *options, const mercer_dataset_info *info, int64_t rows,
                             int64_t memory)
{
    const char *why = given_model(options);
    return why ? why : not_a_table(info, rows, memory);
}

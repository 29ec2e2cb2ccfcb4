/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which fits begin with a search for the model where nobody said (mercer_fit_options.tune is AUTO): those to a table of
 * which nothing is given that the search would find.
 *
 *   a table          numbers that would be standardised, of text and arrays of floats: no bytes, half floats, sparse or
 *                    computed samples, no images; at most 1,024 features, and at least 500 rows: of fewer, errors on
 *                    rows held back tell less than the defaults do
 *   nothing given    kernel, bandwidth, metric, ridge, and how weights are found (solver, epochs, sizes, patience)
 *   there is room    samples take at most a quarter of the memory: a larger file is a stream that is seen a few times
 */
#include "plan/plan.h"

#include "core/matrix.h"

#include "mercer/samples.h"

#include <string.h>

enum { MOST_FEATURES = 1024, LEAST_ROWS = 500 };

static const char *given_model(const mercer_fit_options *options)
{
    if (options->model) return "the model is there";
    if (options->kernel || options->kernel_function) return "the kernel is given";
    if (options->bandwidth != 0) return "the bandwidth is given";
    if (options->metric) return "the metric is given";
    return options->learn_features != 0 ? "the metric is learned, as was asked for" : NULL;
}

static const char *given_training(const mercer_fit_options *options, const mercer_train_options *train)
{
    if (train->lambda > 0) return "the ridge is given";
    if (!mrc_name_is_auto(train->solver)) return "the solver is given";
    if (train->patience > 0) return "training stops early";
    if (mrc_plan_says_how(train)) return "how to train is given";
    return options->augment || options->samples > 0 ? "samples are augmented" : NULL;
}

static const char *no_table(const mercer_dataset_info *info, int64_t memory)
{
    double bytes = (double)info->rows * (double)info->features * (double)mrc_dtype_size(info->dtype);
    if (info->task == MERCER_TASK_UNLABELLED) return "there are no targets";
    if (!info->format || strcmp(info->format, "sizes") == 0) return "sizes do not tell whether it is a table";
    if (info->height > 0 && info->width > 0) return "the samples are images";
    if (strcmp(mercer_preprocess_auto(info->format, info->dtype), "standardise") != 0)
        return "the samples are no table of numbers";
    if (info->features > MOST_FEATURES) return "there are more than 1,024 features";
    if (info->rows < LEAST_ROWS) return "there are fewer than 500 rows";
    return bytes > (double)memory / 4 ? "the samples take more than a quarter of the memory" : NULL;
}

const char *mrc_plan_untuned(const mercer_fit_options *options, const mercer_train_options *train,
                             const mercer_dataset_info *info, int64_t memory)
{
    const char *why = given_model(options);
    if (!why) why = given_training(options, train);
    return why ? why : no_table(info, memory);
}

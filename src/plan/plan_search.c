/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a fit begins with a hyperparameter search. Given hyperparameters are fixed and the others are searched.
 *
 * If the caller leaves the decision open (mercer_fit_options.search.tune is AUTO), a search runs for tables:
 *
 *   a table       numbers that would be standardized, from text and arrays of floats; not bytes, half floats, sparse or
 *                 computed samples, or images; at most 1,024 features
 *   enough memory samples take at most a quarter of it; a larger file is streamed and read only a few times
 *
 * A fit without a search still chooses its ridge (fit/ridge.c).
 */
#include "plan/plan.h"

#include "core/matrix.h"

#include "mercer/samples.h"

#include <string.h>

enum { LEAST_ROWS = 50, MOST_FEATURES = 1024 }; /* the search requires as many distinct rows */

static const char *not_a_table(const mercer_dataset_info *info, int64_t memory)
{
    double bytes = (double)info->rows * (double)info->features * (double)mrc_dtype_size(info->dtype);
    if (!info->format || strcmp(info->format, "sizes") == 0) return "sizes do not tell whether it is a table";
    if (info->height > 0 && info->width > 0) return "the samples are images";
    if (strcmp(mercer_preprocess_auto(info->format, info->dtype), "standardise") != 0)
        return "the samples are not a table of numbers";
    if (info->features > MOST_FEATURES) return "there are more than 1,024 features";
    return bytes > (double)memory / 4 ? "the samples take more than a quarter of the memory" : NULL;
}

const char *mrc_plan_search_skipped(const mercer_fit_options *options, const mercer_dataset_info *info, int64_t memory)
{
    bool asked = options->search.tune == MERCER_ON || options->search.learn_features == MERCER_ON;
    if (options->search.tune == MERCER_OFF) return "tune is off";
    if (options->run.model) return "the model is given";
    if (options->kernel.function) return "kernel.function is given";
    if (info->task == MERCER_TASK_UNLABELLED) return "there are no targets";
    if (options->data.augment || options->data.samples > 0) return "samples are augmented";
    if (info->rows < LEAST_ROWS) return "there are fewer than 50 different rows or groups";
    return asked ? NULL : not_a_table(info, memory);
}

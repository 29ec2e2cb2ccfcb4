/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request of a fit: the caller's options, copied and checked once. All checks that need no data are here; after an
 * error mercer_last_error_field returns the name of the option.
 */
#include "fit/fitting.h"

#include "centers/center_selection.h"
#include "core/matrix.h"
#include "explain/gradient.h"
#include "features/metric.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

/* Fails with MERCER_ERROR_ARGUMENT unless a text is NULL or in the NULL-terminated list. */
static mercer_status check_word(mercer_context *context, const char *option, const char *text, const char *const *words,
                                const char *valid)
{
    for (int i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0) return MERCER_OK;
    if (!text) return MERCER_OK;
    return mrc_blame(context, option,
                     mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s '%.60s' is unknown; valid: %s", option, text, valid));
}

/* ---- Data and targets -------------------------------------------------------------------------------------------- */

static mercer_status check_numbers(mercer_context *context, const mercer_fit_options *options)
{
    const struct {
        const char *name;
        int64_t value, least;
    } numbers[] = {{"memory", options->memory, 0},
                   {"samples", options->samples, 0},
                   {"center_iterations", options->center_iterations, 0},
                   {"center_batch", options->center_batch, -1},
                   {"shards", options->shards, -1}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value < numbers[i].least)
            return mrc_blame(context, numbers[i].name,
                             mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is %lld; it must be at least %lld",
                                      numbers[i].name, (long long)numbers[i].value, (long long)numbers[i].least));
    if (!(options->validation_fraction >= 0 && options->validation_fraction < 1))
        return mrc_blame(context, "validation_fraction",
                         mrc_fail(context, MERCER_ERROR_ARGUMENT,
                                  "validation_fraction is %g; it must be at least 0 and below 1",
                                  options->validation_fraction));
    if (options->precision && options->precision != MERCER_F32 && options->precision != MERCER_F64)
        return mrc_blame(context, "precision",
                         mrc_fail(context, MERCER_ERROR_DTYPE, "precision must be f32, f64 or 0 (automatic)"));
    if (options->center_type && mrc_dtype_size(options->center_type) == 0)
        return mrc_blame(context, "center_type",
                         mrc_fail(context, MERCER_ERROR_DTYPE, "center_type is %d, which is not an element type",
                                  (int)options->center_type));
    return MERCER_OK;
}

static mercer_status check_together(mercer_context *context, const mrc_fit_request *request)
{
    const mercer_fit_options *options = &request->options;
    const mercer_train_options *train = &request->train;
    if (options->validation && options->validation_fraction > 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: validation and validation_fraction are both set; set only one");
    if (options->model && (options->checkpoint || options->comm))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: model cannot be combined with comm or checkpoint; "
                        "remove one of them");
    if (train->validation_X || train->validation_Y || train->validation_weights)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: train: validation_X is set; a fit reads its validation set from a dataset");
    return MERCER_OK;
}

static mercer_status check_targets(mercer_context *context, const mercer_fit_options *options)
{
    /* check-words: allow spelling -ise (the name of 0.1 and 0.2, an alias) */
    static const char old_name[] = "standardise", *const transforms[] = {"auto", "none", "center", "standardize",
                                                                         "log",  "rank", old_name, NULL},
                      *const populations[] = {"population", "weighted", NULL};
    MRC_TRY(check_word(context, "target_transform", options->target_transform, transforms,
                       "auto, none, center, standardize, log, rank"));
    if (mrc_fit_weighs_classes(options) && strcmp(options->class_weight, "balanced") != 0 &&
        !strchr(options->class_weight, '='))
        return mrc_blame(context, "class_weight",
                         mrc_fail(context, MERCER_ERROR_ARGUMENT,
                                  "class_weight '%.60s' is unknown; valid: none, balanced, NAME=WEIGHT,...",
                                  options->class_weight));
    return check_word(context, "calibrate_to", options->calibrate_to, populations, "population, weighted");
}

/* ---- Kernel and search ------------------------------------------------------------------------------------------- */

static mercer_status check_bandwidth(mercer_context *context, const mercer_fit_options *options, bool open)
{
    const char *kernel = options->kernel ? options->kernel : MRC_DEFAULT_KERNEL;
    if (!open)
        return mrc_fail(
            context, MERCER_ERROR_ARGUMENT, "bandwidth: kernel %s %s", options->kernel_function ? "given" : kernel,
            options->kernel_function || strstr(kernel, "bandwidth=") ? "already has a bandwidth; set only one"
                                                                     : "has no bandwidth; remove it");
    if (!(options->bandwidth > 0))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "bandwidth is %g; it must be above 0, or 0 (automatic)",
                        options->bandwidth);
    mercer_kernel kernel_function;
    return mrc_fit_parse_kernel(options, context, options->bandwidth, &kernel_function, &open);
}

static mercer_status check_kernel(mercer_context *context, const mercer_fit_options *options)
{
    mercer_kernel kernel;
    bool open;
    if (options->kernel && options->kernel_function)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: kernel and kernel_function are both set; set only "
                        "one");
    MRC_TRY(mrc_blame(context, "kernel", mrc_fit_parse_kernel(options, context, 1, &kernel, &open)));
    mrc_center_method method;
    bool chosen = options->centers >= 0 && !options->given_centers;
    if (chosen && mrc_center_method_find(options->center_method, &method))
        MRC_TRY(mrc_blame(context, "center_method", mrc_check_center_kernel(context, method, &kernel)));
    return options->bandwidth == 0 ? MERCER_OK
                                   : mrc_blame(context, "bandwidth", check_bandwidth(context, options, open));
}

static mercer_status check_learning(mercer_context *context, const mercer_fit_options *options)
{
    mercer_kernel kernel, slope;
    bool open;
    if (options->learn_features != MERCER_ON) return MERCER_OK;
    const char *set = options->metric               ? "metric"
                      : options->model              ? "model"
                      : options->tune == MERCER_OFF ? "tune off"
                      : options->kernel_function    ? "kernel_function"
                                                    : NULL;
    if (set)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: learn_features has no effect with %s; remove one of them", set);
    MRC_TRY(mrc_fit_parse_kernel(options, context, 1, &kernel, &open));
    return mrc_gradient_slope(context, &kernel, &slope);
}

static mercer_status check_search(mercer_context *context, const mercer_fit_options *options)
{
    if (options->effort < 0 || options->effort > MRC_MOST_EFFORT)
        return mrc_blame(context, "effort",
                         mrc_fail(context, MERCER_ERROR_ARGUMENT, "effort is %d; it must be 1 to %d, or 0 (default)",
                                  options->effort, MRC_MOST_EFFORT));
    if (!(options->budget >= 0) || !isfinite(options->budget))
        return mrc_blame(context, "budget",
                         mrc_fail(context, MERCER_ERROR_ARGUMENT,
                                  "budget is %g; it must be a number of seconds, or 0 (none)", options->budget));
    if (options->metric && options->model)
        return mrc_blame(
            context, "metric",
            mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: metric has no effect with model; remove one of them"));
    if (options->metric) MRC_TRY(mrc_blame(context, "metric", mrc_metric_check(context, options->metric, 0)));
    MRC_TRY(mrc_blame(context, "learn_features", check_learning(context, options)));
    const char *fixed = options->model ? "model" : options->kernel_function ? "kernel_function" : NULL;
    if (options->tune != MERCER_ON || !fixed) return MERCER_OK;
    return mrc_blame(
        context, "tune",
        mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: tune is on, but %s is given; remove one of them", fixed));
}

/* ---- Centers ----------------------------------------------------------------------------------------------------- */

static mercer_status check_center_method(mercer_context *context, const mercer_fit_options *options)
{
    mrc_center_method method;
    bool augmented = mrc_fit_is_augmented(options);
    if (!augmented && !mrc_center_method_find(options->center_method, &method))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "center_method '%s' is unknown; valid: random, kmeans, rpcholesky, balanced, augmented",
                        options->center_method);
    if (augmented && !options->augment)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "center_method augmented needs augment, which is NULL");
    if (augmented && options->center_type)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "center_method augmented: centers have the type of the samples; leave center_type 0");
    bool means = !augmented && method == MRC_CENTERS_KMEANS && options->centers >= 0 && !options->given_centers;
    if ((options->center_iterations || options->center_batch) && !means)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s has no effect without center_method kmeans; remove it",
                        options->center_iterations ? "center_iterations" : "center_batch");
    return MERCER_OK;
}

static mercer_status check_centers(mercer_context *context, const mercer_fit_options *options)
{
    if (options->centers < -1)
        return mrc_blame(context, "centers",
                         mrc_fail(context, MERCER_ERROR_ARGUMENT,
                                  "centers is %lld; it must be a number, 0 (automatic) or -1 (all rows)",
                                  (long long)options->centers));
    return mrc_blame(context, "center_method", check_center_method(context, options));
}

/* ---- All options ------------------------------------------------------------------------------------------------- */

mercer_status mrc_fit_check_request(mercer_context *context, mrc_fit_request *request)
{
    const mercer_fit_options *options = &request->options;
    request->train.seed = options->seed;
    MRC_TRY(check_numbers(context, options));
    mrc_reason reason;
    if (mrc_plan_check_options(&request->train, &reason) != MERCER_OK)
        return mrc_fail_with(context, &reason); /* check now instead of after a search */
    MRC_TRY(check_together(context, request));
    MRC_TRY(check_targets(context, options));
    MRC_TRY(check_kernel(context, options));
    MRC_TRY(check_search(context, options));
    return check_centers(context, options);
}

bool mrc_fit_has_no_ridge(const mrc_fit_request *request)
{
    return request->train.lambda == -1;
}

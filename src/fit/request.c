/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request of a fit: the caller's options, copied and checked once. All checks that need no data are here. After an
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

/* Fails with MERCER_ERROR_ARGUMENT unless a string is NULL or equal to a word of the NULL-terminated list. */
static mercer_status check_word(mercer_context *context, const char *option, const char *text, const char *const *words,
                                const char *valid)
{
    for (int i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0) return MERCER_OK;
    if (!text) return MERCER_OK;
    return mrc_fail_at(context, option, MERCER_ERROR_ARGUMENT, "%s '%.60s' is unknown; valid: %s", option, text, valid);
}

/* ---- Data and targets -------------------------------------------------------------------------------------------- */

/* Checks the ranges of all numbers that no other function checks, and the element types. */
static mercer_status check_numbers(mercer_context *context, const mercer_fit_options *options)
{
    const struct {
        const char *name;
        int64_t value, least;
    } numbers[] = {{"run.memory", options->run.memory, 0},
                   {"data.samples", options->data.samples, 0},
                   {"centers.iterations", options->centers.iterations, 0},
                   {"centers.batch", options->centers.batch, -1},
                   {"run.shards", options->run.shards, -1}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value < numbers[i].least)
            return mrc_fail_at(context, numbers[i].name, MERCER_ERROR_ARGUMENT,
                               "options: %s is %lld; it must be at least %lld", numbers[i].name,
                               (long long)numbers[i].value, (long long)numbers[i].least);
    if (!(options->validation.fraction >= 0 && options->validation.fraction < 1))
        return mrc_fail_at(context, "validation.fraction", MERCER_ERROR_ARGUMENT,
                           "validation.fraction is %g; it must be at least 0 and below 1",
                           options->validation.fraction);
    if (options->run.precision && options->run.precision != MERCER_F32 && options->run.precision != MERCER_F64)
        return mrc_fail_at(context, "run.precision", MERCER_ERROR_DTYPE, "precision must be f32, f64 or 0 (automatic)");
    if (options->centers.type && mrc_dtype_size(options->centers.type) == 0)
        return mrc_fail_at(context, "centers.type", MERCER_ERROR_DTYPE,
                           "centers.type is %d, which is not an element type", (int)options->centers.type);
    return MERCER_OK;
}

/* Refuses options that exclude each other. */
static mercer_status check_together(mercer_context *context, const mrc_fit_request *request)
{
    const mercer_fit_options *options = &request->options;
    const mercer_train_options *train = &request->train;
    if (options->validation.data && options->validation.fraction > 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: validation.data and validation.fraction are both set; set only one");
    if (options->run.model && (options->run.checkpoint || options->run.comm))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: model cannot be combined with comm or checkpoint; remove one of them");
    if (train->validation_X || train->validation_Y || train->validation_weights)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: train: validation_X is set, but a fit takes its validation set from a dataset; set "
                        "validation.data");
    return MERCER_OK;
}

static mercer_status check_targets(mercer_context *context, const mercer_fit_options *options)
{
    /* check-words: allow spelling -ise (the name of 0.1 and 0.2, an alias) */
    static const char old_name[] = "standardise", *const transforms[] = {"auto", "none", "center", "standardize",
                                                                         "log",  "rank", old_name, NULL},
                      *const populations[] = {"population", "weighted", NULL};
    MRC_TRY(check_word(context, "data.target_transform", options->data.target_transform, transforms,
                       "auto, none, center, standardize, log, rank"));
    if (mrc_fit_weighs_classes(options) && strcmp(options->data.class_weight, "balanced") != 0 &&
        !strchr(options->data.class_weight, '='))
        return mrc_fail_at(context, "data.class_weight", MERCER_ERROR_ARGUMENT,
                           "class_weight '%.60s' is unknown; valid: none, balanced, NAME=WEIGHT,...",
                           options->data.class_weight);
    return check_word(context, "validation.calibrate_to", options->validation.calibrate_to, populations,
                      "population, weighted");
}

/* ---- Kernel and search ------------------------------------------------------------------------------------------- */

/* Checks a bandwidth that is given outside of the kernel's text. open: the kernel's string sets no bandwidth. */
static mercer_status check_bandwidth(mercer_context *context, const mercer_fit_options *options, bool open)
{
    const char *kernel = options->kernel.spec ? options->kernel.spec : MRC_DEFAULT_KERNEL;
    if (!open)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "kernel %s %s", options->kernel.function ? "given" : kernel,
                        options->kernel.function || strstr(kernel, "bandwidth=")
                            ? "already has a bandwidth; set only one"
                            : "has no bandwidth; leave bandwidth out");
    if (!(options->kernel.bandwidth > 0))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "bandwidth is %g; it must be above 0, or 0 (automatic)",
                        options->kernel.bandwidth);
    mercer_kernel kernel_function;
    return mrc_fit_parse_kernel(options, context, options->kernel.bandwidth, &kernel_function, &open);
}

/* The kernel is parsed with bandwidth 1 to check the text; the data determine the real bandwidth. k-means accepts only
   some kernels, so its method is checked with the kernel. */
static mercer_status check_kernel(mercer_context *context, const mercer_fit_options *options)
{
    mercer_kernel kernel;
    bool open;
    if (options->kernel.spec && options->kernel.function)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: kernel.spec and kernel.function are both set; set only one");
    MRC_TRY(mrc_blame(context, "kernel.spec", mrc_fit_parse_kernel(options, context, 1, &kernel, &open)));
    mrc_center_method method;
    bool chosen = options->centers.count >= 0 && !options->centers.given;
    if (chosen && mrc_center_method_find(options->centers.method, &method))
        MRC_TRY(mrc_blame(context, "centers.method", mrc_check_center_kernel(context, method, &kernel)));
    return options->kernel.bandwidth == 0
               ? MERCER_OK
               : mrc_blame(context, "kernel.bandwidth", check_bandwidth(context, options, open));
}

/* Refuses learn_features with options that prevent a search, and with kernels that have no gradient. */
static mercer_status check_learning(mercer_context *context, const mercer_fit_options *options)
{
    mercer_kernel kernel, slope;
    bool open;
    if (options->search.learn_features != MERCER_ON) return MERCER_OK;
    const char *set = options->kernel.metric               ? "metric"
                      : options->run.model                 ? "model"
                      : options->search.tune == MERCER_OFF ? "tune off"
                      : options->kernel.function           ? "kernel.function"
                                                           : NULL;
    if (set)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: learn_features has no effect with %s; remove one of them", set);
    MRC_TRY(mrc_fit_parse_kernel(options, context, 1, &kernel, &open));
    return mrc_gradient_slope(context, &kernel, &slope);
}

/* Refuses weights of a blend with another preprocessing, or where they have no effect, and checks their values. */
static mercer_status check_blend(mercer_context *context, const mercer_fit_options *options)
{
    const mercer_matrix *blend = options->kernel.blend;
    if (!blend) return MERCER_OK;
    bool applies = options->data.preprocess && strcmp(options->data.preprocess, "blend") == 0;
    if (!applies || options->search.tune != MERCER_OFF || options->run.model)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: blend has no effect %s; remove one of them",
                        options->run.model ? "with model"
                        : applies          ? "unless tune is off"
                                           : "unless preprocess is blend");
    MRC_TRY(mrc_check_matrix(context, "blend", blend, MRC_ACCEPT_REAL));
    if (blend->rows != 2)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "blend has %lld rows; it must have 2", (long long)blend->rows);
    return mrc_check_finite(context, "blend", blend, NULL);
}

static mercer_status check_search(mercer_context *context, const mercer_fit_options *options)
{
    if (options->search.effort < 0 || options->search.effort > MRC_MOST_EFFORT)
        return mrc_fail_at(context, "search.effort", MERCER_ERROR_ARGUMENT,
                           "effort is %d; it must be 1 to %d, or 0 (default)", options->search.effort, MRC_MOST_EFFORT);
    if (!(options->search.budget >= 0) || !isfinite(options->search.budget))
        return mrc_fail_at(context, "search.budget", MERCER_ERROR_ARGUMENT,
                           "budget is %g; it must be a number of seconds, or 0 (none)", options->search.budget);
    if (options->kernel.metric && options->run.model)
        return mrc_fail_at(context, "kernel.metric", MERCER_ERROR_ARGUMENT,
                           "options: metric has no effect with model; remove one of them");
    if (options->kernel.metric)
        MRC_TRY(mrc_blame(context, "kernel.metric", mrc_metric_check(context, options->kernel.metric, 0)));
    MRC_TRY(mrc_blame(context, "kernel.blend", check_blend(context, options)));
    MRC_TRY(mrc_blame(context, "search.learn_features", check_learning(context, options)));
    const char *fixed = options->run.model ? "model" : options->kernel.function ? "kernel.function" : NULL;
    if (options->search.tune != MERCER_ON || !fixed) return MERCER_OK;
    return mrc_fail_at(context, "search.tune", MERCER_ERROR_ARGUMENT,
                       "options: tune is on, but %s is given; remove one of them", fixed);
}

/* ---- Centers ----------------------------------------------------------------------------------------------------- */

static mercer_status check_center_method(mercer_context *context, const mercer_fit_options *options)
{
    mrc_center_method method;
    bool augmented = mrc_fit_is_augmented(options);
    if (!augmented && !mrc_center_method_find(options->centers.method, &method))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "centers.method '%s' is unknown; valid: random, kmeans, rpcholesky, balanced, augmented",
                        options->centers.method);
    if (augmented && !options->data.augment)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "centers.method augmented needs data.augment, which is NULL");
    if (augmented && options->centers.type)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "centers.method augmented: centers have the type of the samples; leave centers.type 0");
    bool means = !augmented && method == MRC_CENTERS_KMEANS && options->centers.count >= 0 && !options->centers.given;
    if ((options->centers.iterations || options->centers.batch) && !means)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s has no effect without centers.method kmeans; remove it",
                        options->centers.iterations ? "centers.iterations" : "centers.batch");
    return MERCER_OK;
}

static mercer_status check_centers(mercer_context *context, const mercer_fit_options *options)
{
    if (options->centers.count < -1)
        return mrc_fail_at(context, "centers.count", MERCER_ERROR_ARGUMENT,
                           "centers.count is %lld; it must be a number, 0 (automatic) or -1 (all rows)",
                           (long long)options->centers.count);
    return mrc_blame(context, "centers.method", check_center_method(context, options));
}

/* ---- All options ------------------------------------------------------------------------------------------------- */

/* Checks that the reserved fields of all groups are 0. Later versions may use these fields, and a caller that sets one
   expects an effect. */
static mercer_status check_reserved(mercer_context *context, const mercer_fit_options *options)
{
#define GROUP(name)                                                                                   \
    {                                                                                                 \
#name, options->name.reserved, sizeof options->name.reserved / sizeof *options->name.reserved \
    }
    const struct {
        const char *group;
        const int64_t *reserved;
        size_t words;
    } groups[] = {GROUP(data), GROUP(validation), GROUP(kernel), GROUP(centers), GROUP(search), GROUP(run)};
#undef GROUP
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (size_t k = 0; k < groups[i].words; k++)
            if (groups[i].reserved[k] != 0)
                return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                                "options: %s: a field is set that version %s does not support", groups[i].group,
                                mercer_version());
    return MERCER_OK;
}

/* train.progress must be NULL before it is replaced by the callback of the fit: a callback that is never called would
   be a silent error. */
mercer_status mrc_fit_check_request(mercer_context *context, mrc_fit_request *request)
{
    const mercer_fit_options *options = &request->options;
    MRC_TRY(check_reserved(context, options));
    if (request->train.progress)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: train: progress is set, but a fit reports progress to run.progress; leave it NULL");
    request->train.seed = options->run.seed;
    request->train.progress = options->run.progress, request->train.progress_user = options->run.progress_user;
    MRC_TRY(check_numbers(context, options));
    mrc_reason reason;
    if (mrc_plan_check_options(&request->train, &reason) != MERCER_OK)
        return mrc_fail_with(context, &reason); /* the planner would also check these options, but only after the
                                                   search */
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

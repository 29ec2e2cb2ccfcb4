/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A search (src/tune) before the fit proper, and what becomes of it. The fit proper takes kernel function,
 * preprocessing and metric as they are; the bandwidth is the multiple that was found of the median distance between its
 * own samples in that metric, the ridge that of one sample times their number.
 *
 * What is given is not searched for: a kernel, a preprocessing, a ridge (lambda). Where the caller leaves open whether
 * to search, the plan decides (plan/plan_search.c).
 */
#include "fit/tuned/tuned.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KERNELS "laplace,laplace-l1,exppower-l1:gamma=0.7,gaussian"
#define KMEANS_KERNELS  "laplace,gaussian" /* those of the L2 distance, which means are for */
enum { ROUNDS = 4, MANY_ROWS = 10000, KEPT_SHARE = 16 };
#define BUDGET     30.0  /* seconds, */
#define ROW_BUDGET 0.002 /* of fewer than MANY_ROWS for each: */
#define ON_DEVICE  0.1   /* the share of both on a device */

/* ---- Candidates -------------------------------------------------------------------------------------------------- */

/* One kernel function, whose bandwidth is left open. */
static mercer_status add_kernel(mrc_tuning *self, mercer_context *context, const char *text)
{
    mercer_fit_options one = {.kernel = text};
    mercer_kernel slope;
    bool open;
    if (self->kernel_count == MRC_TUNE_KERNELS)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "tune_kernels: at most %d kernels are tried", MRC_TUNE_KERNELS);
    mercer_kernel *kernel = &self->kernels[self->kernel_count];
    MRC_TRY(mrc_fit_parse_kernel(&one, context, 1, kernel, &open));
    if (!open)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "tune: the bandwidth is searched for, '%s' %s", text,
                        strstr(text, "bandwidth=") ? "has one: leave it out" : "takes none");
    MRC_TRY(mrc_gradient_slope(context, kernel, &slope));
    snprintf(self->names[self->kernel_count], sizeof *self->names, "%s", text);
    self->name_list[self->kernel_count] = self->names[self->kernel_count];
    self->kernel_count++;
    return MERCER_OK;
}

/* The end of the first kernel of a list: a comma, unless what follows is one more parameter. */
static const char *end_of_kernel(const char *text)
{
    for (const char *at = strchr(text, ','); at; at = strchr(at + 1, ',')) {
        size_t name = strcspn(at + 1, ":=,");
        if (at[1 + name] != '=') return at;
    }
    return text + strlen(text);
}

static mercer_status list_kernels(mrc_tuning *self, mercer_context *context, const mercer_fit_options *options)
{
    const char *text = options->tune_kernels ? options->tune_kernels : options->kernel;
    bool means = options->center_method && strcmp(options->center_method, "kmeans") == 0;
    if (!text) text = means ? KMEANS_KERNELS : DEFAULT_KERNELS;
    while (*text) {
        char one[64];
        const char *end = end_of_kernel(text);
        if ((size_t)(end - text) >= sizeof one)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "tune_kernels: '%.40s...' is too long", text);
        memcpy(one, text, (size_t)(end - text));
        one[end - text] = '\0';
        MRC_TRY(add_kernel(self, context, one));
        text = *end ? end + 1 : end;
    }
    if (self->kernel_count > 0) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "tune_kernels is empty");
}

/* Numbers that would be standardised may as well be ranked. */
static void list_preparations(mrc_tuning *self, const mercer_fit_options *options, const mercer_dataset_info *info)
{
    const char *first = mrc_fit_preprocess(options, info);
    bool given = options->preprocess && strcmp(options->preprocess, "auto") != 0;
    self->preparations[self->preparation_count++] = first;
    if (!given && strcmp(first, "standardise") == 0) self->preparations[self->preparation_count++] = "rank";
}

/* ---- Whether to search ------------------------------------------------------------------------------------------ */

/* The option of the search that was given, or NULL. */
static const char *search_option(const mercer_fit_options *options)
{
    if (options->tune_budget > 0) return "tune_budget";
    if (options->tune_criterion && strcmp(options->tune_criterion, "auto") != 0) return "tune_criterion";
    if (options->tune_kernels) return "tune_kernels";
    return options->average_models > 1 ? "average_models" : NULL;
}

void mrc_fit_without_search(mercer_fit_options *options)
{
    options->tune = MERCER_OFF, options->learn_features = 0;
    options->tune_budget = 0, options->tune_criterion = options->tune_kernels = NULL, options->average_models = 0;
}

/* An option of the search asks for a search. */
static mercer_switch asked(const mercer_fit_options *options)
{
    return options->tune == MERCER_AUTO && search_option(options) ? MERCER_ON : options->tune;
}

/* Warns of everything that is neither given nor searched for because of something that was given. */
static void warn_of_defaults(const mercer_fitting *self)
{
    const mercer_fit_options *options = &self->options;
    const char *fixed = mrc_plan_fixed(options);
    mercer_context *context = self->context;
    const mercer_fit_options open = {0};
    int64_t rows = mrc_max(self->given_rows, self->info.rows);
    bool searched = mrc_plan_untuned(&open, &self->info, rows, self->memory) == NULL; /* if nothing had been given */
    if (!searched || options->model || options->checkpoint) return;
    if (options->tune == MERCER_OFF) {
        if (!fixed) /* the fits inside a fit are never searched and have a bandwidth */
            mrc_warn(context, "tune",
                     "tune is off, so only the ridge is searched: kernel, bandwidth, preprocessing and metric are the "
                     "given ones or the defaults");
    } else if (fixed && strcmp(fixed, "learn_features") == 0)
        mrc_warn(context, fixed,
                 "learn_features is given, so only metric, bandwidth and ridge are searched: kernel and preprocessing "
                 "are the given ones or the defaults");
    else if (fixed)
        mrc_warn(context, fixed,
                 "%s is given, so only the ridge is searched: the rest of kernel, bandwidth, preprocessing and metric "
                 "are the given ones or the defaults",
                 fixed);
    else if (self->report.untuned && (options->augment || options->samples > 0))
        mrc_warn(
            context, options->augment ? "augment" : "samples",
            "%s is given, so only the ridge is searched: kernel, bandwidth, preprocessing and metric are the given "
            "ones or the defaults",
            options->augment ? "augment" : "samples");
    else if (options->kernel && !self->report.untuned)
        mrc_warn(context, "kernel", "kernel %s is given, so no other kernel is tried", options->kernel);
}

/* Whether a bandwidth and a metric can be searched for with the kernel that is given. */
static bool is_searchable(const mercer_fit_options *options)
{
    mrc_tuning trial = {0};
    return !options->kernel || list_kernels(&trial, NULL, options) == MERCER_OK;
}

bool mrc_fit_tunes(mercer_fitting *self)
{
    mercer_fit_options *options = &self->options;
    options->tune = asked(options);
    if (options->tune == MERCER_AUTO) {
        self->report.untuned =
            mrc_plan_untuned(options, &self->info, mrc_max(self->given_rows, self->info.rows), self->memory);
        if (!self->report.untuned && !is_searchable(options))
            self->report.untuned = "the kernel has no bandwidth or no metric to search for";
        warn_of_defaults(self);
        options->tune = self->report.untuned ? MERCER_OFF : MERCER_ON;
    } else if (options->tune == MERCER_OFF && !self->tuning && !self->report.untuned) {
        self->report.untuned = "it is off";
        if (self->data) warn_of_defaults(self);
    }
    return options->tune == MERCER_ON;
}

double mrc_fit_tune_budget(const mercer_fitting *self)
{
    if (self->options.tune_budget > 0) return self->options.tune_budget;
    double budget = self->info.rows < MANY_ROWS ? ROW_BUDGET * (double)self->info.rows : BUDGET;
    return self->on_device ? ON_DEVICE * budget : budget;
}

mercer_status mrc_fit_check_tuning(const mercer_fit_options *options, mercer_context *context)
{
    mrc_tuning trial = {0};
    mrc_criterion criterion;
    if (!(options->tune_budget >= 0))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "tune_budget is %g, it must be at least 0 seconds",
                        options->tune_budget);
    if (!mrc_criterion_find(options->tune_criterion, NULL, &criterion))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "tune_criterion '%.40s' is not known; there are auto, holdout, kfold, loo and gcv",
                        options->tune_criterion);
    if (options->tune == MERCER_OFF && search_option(options))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s has no effect: tune is off",
                        search_option(options));
    if (asked(options) != MERCER_ON) return MERCER_OK;
    const char *set = options->model             ? "model"
                      : options->metric          ? "metric"
                      : options->kernel_function ? "kernel_function"
                      : options->bandwidth != 0  ? "bandwidth"
                                                 : NULL;
    if (set)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: %s asks for a search, but %s is given: leave one of them out",
                        options->tune == MERCER_ON ? "tune" : search_option(options), set);
    return list_kernels(&trial, context, options);
}

/* ---- The search -------------------------------------------------------------------------------------------------- */

mercer_status mrc_fit_scale_choice(const mercer_fitting *self, const mrc_tune_choice *choice, const char *preparation,
                                   mercer_kernel *kernel, double *lambda)
{
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *preprocess = NULL;
    double unit;
    *kernel = self->tuning->kernels[choice->kernel];
    MRC_TRY(mercer_preprocess_fit(&preprocess, self->context, preparation, self->data));
    if (choice->metric.data)
        MRC_TRY(mrc_fit_set_metric(self->context, preprocess, kernel, &choice->metric, self->info.features));
    MRC_TRY(mrc_fit_median_distance(self->context, kernel, self->data, preprocess, self->memory, &unit));
    kernel->bandwidth = choice->multiple * unit;
    *lambda = choice->ridge * mrc_fit_count_samples(self->data);
    return MERCER_OK;
}

/* Kernel, preprocessing and metric as they are, bandwidth and ridge by the rules of scale. */
static mercer_status take_over(mercer_fitting *self)
{
    mrc_tuning *tuning = self->tuning;
    mrc_tune_result *found = &tuning->result;
    double lambda;
    self->options.preprocess = tuning->preparations[found->preparation];
    self->options.learn_features = 0;
    if (found->metric.data) {
        self->metric = found->metric;
        found->metric = (mercer_matrix){0};
        self->options.metric = self->report.tune_metric = &self->metric;
    }
    const mrc_tune_choice choice = {.kernel = found->kernel,
                                    .multiple = found->multiple,
                                    .ridge = found->ridge,
                                    .metric = self->options.metric ? *self->options.metric : (mercer_matrix){0}};
    MRC_TRY(mrc_fit_scale_choice(self, &choice, self->options.preprocess, &self->learned_kernel, &lambda));
    self->options.kernel = NULL;
    self->options.kernel_function = &self->learned_kernel;
    self->lambda_given = self->train.lambda > 0 || self->no_ridge;
    if (!self->lambda_given) self->train.lambda = lambda;
    if (self->lambda_given && !(found->error <= 1)) /* errors are relative to the variance of the targets */
        mrc_warn(
            self->context, "lambda",
            "ridge %g is given, and the best held-out error with it, %.3g, is above that of a constant prediction; "
            "leave the ridge to the search",
            self->no_ridge ? 0 : self->train.lambda, found->error);
    return MERCER_OK;
}

mercer_status mrc_fit_tune(mercer_fitting *self)
{
    const mercer_fit_options *options = &self->options;
    mrc_tuning *tuning;
    MRC_TRY(mrc_alloc_zero(self->context, &tuning, 1, sizeof *tuning, "the search"));
    self->tuning = tuning;
    MRC_TRY(list_kernels(tuning, self->context, options));
    list_preparations(tuning, options, &self->info);
    mrc_criterion_find(options->tune_criterion, self->data, &tuning->criterion);
    double lambda = self->train.lambda, ridge = lambda > 0 ? lambda / fmax(mrc_fit_count_samples(self->data), 1) : -1;
    tuning->rate = mrc_plan_rate_double(self->context);
    if (options->comm)
        MRC_TRY(mercer_comm_broadcast(options->comm, &tuning->rate, sizeof tuning->rate)); /* all try the same */
    mrc_tune_task task = {.context = self->context,
                          .data = self->data,
                          .given_centers = options->given_centers,
                          .kernels = tuning->kernels,
                          .kernel_count = tuning->kernel_count,
                          .kernel_names = tuning->name_list,
                          .preparations = tuning->preparations,
                          .preparation_count = tuning->preparation_count,
                          .units = &self->units,
                          .rounds = options->learn_features > 0 ? options->learn_features : ROUNDS,
                          .centers = mrc_fit_center_count(self),
                          .next = options->average_models - 1,
                          .ridge = self->no_ridge ? 0 : ridge,
                          .criterion = tuning->criterion,
                          .budget = mrc_fit_tune_budget(self),
                          .rate = tuning->rate,
                          .memory = self->memory,
                          .seed = options->seed,
                          .progress = options->progress,
                          .progress_user = options->progress_user};
    tuning->journal = (mrc_journal){.context = self->context,
                                    .ridges = task.ridge >= 0 ? 1 : MRC_TUNE_RIDGES,
                                    .features = self->info.features,
                                    .most_numbers = self->memory / KEPT_SHARE / (int64_t)sizeof(double)};
    if (self->train.checkpoint || options->checkpoint) {
        task.journal = &tuning->journal, task.keep = mrc_fit_keep_search, task.keep_user = self;
        tuning->kept = mrc_seconds();
        mrc_fit_describe_search(self, &task);
    }
    if (options->checkpoint) MRC_TRY(mrc_fit_recall_search(self, &task));
    MRC_TRY(mrc_tune(&task, &tuning->result));
    mrc_fit_report_search(self);
    self->options.tune = MERCER_OFF;
    if (tuning->result.found) MRC_TRY(take_over(self));
    mrc_fit_tuned_size(self);
    return MERCER_OK;
}

void mrc_fit_tuning_free(mercer_fitting *self)
{
    if (!self->tuning) return;
    mrc_tune_free(&self->tuning->result);
    mrc_journal_free(&self->tuning->journal);
    mrc_free(self->context, self->tuning);
    self->tuning = NULL;
}

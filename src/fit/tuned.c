/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A search (src/tune) before the fit proper, and what becomes of it. The fit proper takes kernel function,
 * preprocessing and metric as they are; the bandwidth is the multiple that was found of the median distance between its
 * own samples in that metric, the ridge that of one sample times their number.
 *
 * What is given is not searched for: a kernel (kernel, kernel_function), a preprocessing, a ridge (lambda).
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BUDGET  30.0
#define DEFAULT_KERNELS "laplace,laplace-l1,exppower-l1:gamma=0.7,gaussian"
enum { ROUNDS = 4, MOST_ALL_ROWS = 20000 };

typedef struct mrc_tuning {
    mercer_kernel kernels[MRC_TUNE_KERNELS];
    char names[MRC_TUNE_KERNELS][64];
    const char *name_list[MRC_TUNE_KERNELS];
    int kernel_count;
    const char *preparations[MRC_TUNE_PREPARATIONS];
    int preparation_count;
    mrc_criterion criterion;
    mrc_tune_result result;
} mrc_tuning;

bool mrc_fit_tunes(const mercer_fit_options *options)
{
    return options->tune == MERCER_ON;
}

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
    if (!text) text = DEFAULT_KERNELS;
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
    if (!mrc_fit_tunes(options)) return MERCER_OK;
    const char *set = options->model             ? "model"
                      : options->metric          ? "metric"
                      : options->kernel_function ? "kernel_function"
                      : options->bandwidth != 0  ? "bandwidth"
                                                 : NULL;
    if (set)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: tune is on, which searches for %s: leave it out",
                        options->model ? "all that the model has" : set);
    return list_kernels(&trial, context, options);
}

/* ---- The search -------------------------------------------------------------------------------------------------- */

/* Whether every row may be a center, by the solver for that. */
static bool takes_all_rows(const mercer_fitting *self)
{
    const mercer_fit_options *options = &self->options;
    const mercer_dataset *data = self->data;
    if (options->centers != 0 || options->given_centers || options->center_method || options->comm || options->augment)
        return false;
    for (int64_t i = 0; i < data->rows && data->weights; i++)
        if (!(data->weights[i] > 0)) return false;
    return data->rows <= MOST_ALL_ROWS;
}

static bool fits(mercer_fitting *self, const char *solver, mercer_plan *plan)
{
    self->train.solver = solver;
    return mrc_fit_plan(self, mrc_fit_center_count(self), plan) == MERCER_OK;
}

/* Candidates were judged by exact solutions, which some epochs of steps are not. So the fit proper of not too many rows
   takes all of them as centers, and krr; else, where auto would take an iteration, cg; if they fit the memory. */
void mrc_fit_tuned_solver(mercer_fitting *self)
{
    mercer_plan plan;
    const char *center_method = self->options.center_method;
    if (self->train.solver || self->train.epochs) return;
    self->report.points = mrc_fit_points(&self->options, &self->info);
    if (center_method && strcmp(center_method, "random") == 0) self->options.center_method = NULL;
    if (takes_all_rows(self) && fits(self, "krr", &plan)) return;
    self->options.center_method = center_method;
    if (fits(self, NULL, &plan) && mercer_solver_kind_of(plan.solver) == MERCER_SOLVER_BATCHES &&
        fits(self, "cg", &plan))
        return;
    self->train.solver = NULL;
}

/* Bandwidth and ridge by the rules of scale, kernel, preprocessing and metric as they are. */
static mercer_status take_over(mercer_fitting *self)
{
    mrc_tuning *tuning = self->tuning;
    mrc_tune_result *found = &tuning->result;
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *preprocess = NULL;
    double unit;
    self->learned_kernel = tuning->kernels[found->kernel];
    self->options.preprocess = tuning->preparations[found->preparation];
    self->options.learn_features = 0;
    if (found->metric.data) {
        self->metric = found->metric;
        found->metric = (mercer_matrix){0};
        self->options.metric = self->report.tune_metric = &self->metric;
    }
    MRC_TRY(mercer_preprocess_fit(&preprocess, self->context, self->options.preprocess, self->data));
    if (self->options.metric)
        MRC_TRY(mrc_fit_set_metric(self->context, preprocess, &self->learned_kernel, self->options.metric,
                                   self->info.features));
    MRC_TRY(mrc_fit_median_distance(self->context, &self->learned_kernel, self->data, preprocess, self->memory, &unit));
    self->learned_kernel.bandwidth = found->multiple * unit;
    self->options.kernel = NULL;
    self->options.kernel_function = &self->learned_kernel;
    if (self->train.lambda <= 0) self->train.lambda = found->ridge * mrc_fit_count_samples(self->data);
    return MERCER_OK;
}

static void report_search(mercer_fitting *self)
{
    const mrc_tune_result *found = &self->tuning->result;
    mercer_fit_report *report = &self->report;
    report->tries = found->tries;
    report->try_count = found->count;
    report->best_try = -1;
    for (int64_t i = 0; i < found->count && report->best_try < 0; i++)
        if (found->tries[i].error == found->error) report->best_try = i;
    memcpy(report->tune_ridges, found->ridges, sizeof found->ridges);
    report->tune_ridge_count = found->ridge_count;
    report->tune_seconds = found->seconds, report->tune_whole = found->whole;
    report->tune_error = found->error, report->tune_multiple = found->multiple, report->tune_ridge = found->ridge;
    report->tune_rows = found->rows, report->tune_held = found->held;
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
    double lambda = self->train.lambda, rate = mrc_plan_rate_double(self->context);
    if (options->comm) MRC_TRY(mercer_comm_broadcast(options->comm, &rate, sizeof rate)); /* ranks try the same */
    const mrc_tune_task task = {.context = self->context,
                                .data = self->data,
                                .given_centers = options->given_centers,
                                .kernels = tuning->kernels,
                                .kernel_count = tuning->kernel_count,
                                .kernel_names = tuning->name_list,
                                .preparations = tuning->preparations,
                                .preparation_count = tuning->preparation_count,
                                .raw_targets =
                                    options->target_transform && strcmp(options->target_transform, "none") == 0,
                                .rounds = options->learn_features > 0 ? options->learn_features : ROUNDS,
                                .centers = mrc_fit_center_count(self),
                                .ridge = lambda > 0 ? lambda / fmax(mrc_fit_count_samples(self->data), 1) : -1,
                                .criterion = tuning->criterion,
                                .budget = options->tune_budget > 0 ? options->tune_budget : DEFAULT_BUDGET,
                                .rate = rate,
                                .memory = self->memory,
                                .seed = options->seed,
                                .progress = options->progress,
                                .progress_user = options->progress_user};
    MRC_TRY(mrc_tune(&task, &tuning->result));
    report_search(self);
    mrc_fit_tuned_solver(self);
    self->options.tune = MERCER_OFF;
    return tuning->result.found ? take_over(self) : MERCER_OK;
}

void mrc_fit_tuning_free(mercer_fitting *self)
{
    if (!self->tuning) return;
    mrc_tune_free(&self->tuning->result);
    mrc_free(self->context, self->tuning);
    self->tuning = NULL;
}

/* ---- The plan ---------------------------------------------------------------------------------------------------- */

void mrc_fit_tell_tuning(const mercer_fitting *self, mercer_plan *plan)
{
    if (!self->tuning) {
        if (mrc_fit_tunes(&self->options))
            mrc_plan_say(plan, "search: before it, %.0f s at most\n",
                         self->options.tune_budget > 0 ? self->options.tune_budget : DEFAULT_BUDGET);
        return;
    }
    const mrc_tune_result *found = &self->tuning->result;
    if (!found->found) {
        mrc_plan_say(plan, "search: the budget is too small for one candidate, the defaults are taken\n");
        return;
    }
    mrc_plan_say(plan, "search: %lld fits of up to %lld rows, %.1f s of counted work%s, judged by %s\n",
                 (long long)found->count, (long long)found->rows, found->seconds,
                 found->whole ? "" : " (the budget ended it)", mrc_criterion_name(self->tuning->criterion));
    mrc_plan_say(plan,
                 "search: %s, %s, metric of round %lld, bandwidth %.3g times the median distance, ridge %.1e a "
                 "sample: error %.5g\n",
                 self->tuning->names[found->kernel], self->tuning->preparations[found->preparation],
                 (long long)found->round, found->multiple, found->ridge, found->error);
}

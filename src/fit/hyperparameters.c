/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage search: decides whether hyperparameters are searched and with which effort, runs the search, and stores its
 * results for later stages: kernel, fitted preprocessing, ridge, and errors by number of centers.
 *
 * Given hyperparameters are fixed, all others are searched. If search.tune is AUTO, a search runs for tables:
 *
 *   a table       features that are standardized by default, such as those from text and arrays of floats, at most
 *                 1,024; or bytes, half floats or sparse samples with at most 63; not images or synthetic samples
 *   enough memory samples take at most a quarter of it; a larger file is streamed and read only a few times
 *
 * A fit without a search chooses only its ridge (fit/ridge.c).
 *
 * Effort and budget: the effort level sets the sizes of search and model. A budget is wall-clock time; it selects the
 * largest effort whose predicted time fits, and sets a deadline for search and training.
 */
#include "fit/fitting.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "explain/gradient.h"
#include "features/metric.h"
#include "model/model.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A given ridge leads to a warning if its held-out error is this many times that of the best other ridge. */
#define RIDGE_LOSS 1.1

/* Numbers of centers of the effort levels for fits without a search; search/search_effort.c has those for fits with a
   search. */
static const int64_t plain_centers[MRC_MOST_EFFORT] = {2500, 5000, 10000, 20000, 40000};

/* Returns whether the search supports the given kernel: it must be a function of the L1 or L2 distance with a known
   derivative. */
static bool is_searchable(const mercer_fit_options *options)
{
    mercer_kernel kernel, slope;
    bool open;
    return !options->kernel.spec || (mrc_fit_parse_kernel(options, NULL, 1, &kernel, &open) == MERCER_OK &&
                                     mrc_gradient_slope(NULL, &kernel, &slope) == MERCER_OK);
}

/* ---- Whether to search ------------------------------------------------------------------------------------------- */

/* LEAST_ROWS: as many distinct rows as mrc_search_possible requires. MOST_SHORT: bytes, half floats and sparse rows
   with more features are usually images, embeddings or texts. Such data keep their type, and there is no search by
   default. */
enum { LEAST_ROWS = 50, MOST_FEATURES = 1024, MOST_SHORT = 63 };

/* Returns the reason why there is never a search for these samples by default, because the defaults suit them; NULL:
   there is no such reason. */
static const char *made_for_defaults(const mercer_dataset_info *info)
{
    if (!info->format || strcmp(info->format, "sizes") == 0) return "only sizes are given";
    if (strcmp(info->format, "synthetic") == 0) return "the samples are synthetic";
    if (info->height > 0 && info->width > 0) return "the samples are images";
    bool pixels = info->dtype == MERCER_U8 && info->features > MOST_SHORT;
    return pixels ? "the samples are bytes, such as pixels" : NULL;
}

/* Returns the reason why there is no search for these samples by default; NULL: there is a search. */
static const char *not_a_table(const mercer_dataset_info *info, int64_t memory)
{
    double bytes = (double)info->rows * (double)info->features * (double)mrc_dtype_size(info->dtype);
    const char *why = made_for_defaults(info);
    if (why) return why;
    bool plain = strcmp(mrc_preprocess_auto(info->format, info->dtype), "standardize") == 0;
    if (!plain && info->features > MOST_SHORT) return "the samples are sparse or f16 and have more than 63 features";
    if (info->features > MOST_FEATURES) return "there are more than 1,024 features";
    return bytes > (double)memory / 4 ? "the samples take more than a quarter of the memory" : NULL;
}

bool mrc_fit_asks_for_search(const mercer_fit_options *options)
{
    return options->search.tune == MERCER_ON || options->search.learn_features == MERCER_ON;
}

const char *mrc_fit_search_skipped(const mercer_fit_options *options, const mercer_dataset_info *info, int64_t memory)
{
    if (options->search.tune == MERCER_OFF) return "tune is off";
    if (options->run.model) return "the model is given";
    if (options->kernel.function) return "kernel.function is given";
    if (info->task == MERCER_TASK_UNLABELED) return "there are no targets";
    if (options->data.augment || options->data.samples > 0) return "samples are augmented";
    if (info->rows < LEAST_ROWS) return "there are fewer than 50 distinct rows or groups";
    return mrc_fit_asks_for_search(options) ? NULL : not_a_table(info, memory);
}

bool mrc_fit_has_bandwidth(const mercer_fit_options *options)
{
    return options->kernel.bandwidth > 0 || (options->kernel.spec && strstr(options->kernel.spec, "bandwidth="));
}

/* Warns about hyperparameters that stay at their defaults because some option prevents or restricts the search. */
static void warn_about_defaults(const mercer_fitting *self)
{
    const mercer_fit_options *options = self->options;
    mercer_context *context = self->context;
    const char *fixed = options->kernel.function ? "kernel.function" : NULL;
    bool complete =
        self->request->train.lambda > 0 && (fixed || (options->kernel.spec && mrc_fit_has_bandwidth(options)));
    if (complete) return;
    const char *option = options->search.tune == MERCER_OFF ? "search.tune"
                         : fixed                            ? fixed
                         : options->data.augment            ? "data.augment"
                         : options->data.samples > 0        ? "data.samples"
                                                            : NULL;
    if (option && self->search_report.skipped)
        mrc_warn(
            context, option,
            "%s is %s, so only the ridge is searched; kernel, bandwidth, preprocessing and metric are given or default",
            option == fixed ? fixed : strchr(option, '.') + 1, options->search.tune == MERCER_OFF ? "off" : "given");
    else if (options->kernel.spec && self->search_report.skipped)
        mrc_warn(context, "kernel.spec", "kernel %s has no metric to search, so only the ridge is searched",
                 options->kernel.spec);
    else if (options->kernel.spec)
        mrc_warn(context, "kernel.spec", "kernel %s is given, so the search keeps it", options->kernel.spec);
    else if (options->search.learn_features == MERCER_ON)
        mrc_warn(context, "search.learn_features", "learn_features is on, so the search keeps kernel laplace");
    if (options->kernel.bandwidth > 0 && !self->search_report.skipped)
        mrc_warn(context, "kernel.bandwidth", "bandwidth %g is given, so the search keeps it",
                 options->kernel.bandwidth);
    if (options->kernel.metric && !self->search_report.skipped)
        mrc_warn(context, "kernel.metric", "metric is given, so weights of the features are not searched");
}

/* Warns about search options that have no effect because no search runs. */
static void warn_about_no_search(const mercer_fitting *self)
{
    bool all_centers = self->info.rows <= plain_centers[MRC_DEFAULT_EFFORT - 1];
    const struct {
        const char *name;
        bool given;
    } all[] = {{"search.tune", self->options->search.tune == MERCER_ON},
               {"search.learn_features", self->options->search.learn_features == MERCER_ON},
               {"search.effort", self->options->search.effort > MRC_DEFAULT_EFFORT && all_centers}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].given)
            mrc_warn(self->context, all[i].name, "%s has no effect, because %s; only the ridge is searched",
                     strchr(all[i].name, '.') + 1, self->search_report.skipped);
    if (self->options->search.tune == MERCER_AUTO && !made_for_defaults(&self->info) &&
        not_a_table(&self->info, self->memory) == self->search_report.skipped)
        mrc_warn(self->context, "search.tune", "only the ridge is searched, because %s; tune on searches the rest",
                 self->search_report.skipped);
}

/* Issues the warnings about a search that does not run, or that keeps given values. possible: there are enough distinct
   rows. Fits inside of another fit are silent: the outer fit has warned. */
static void warn_about_search(const mercer_fitting *self, bool possible)
{
    const mercer_fit_options open = {0};
    bool by_default = possible && mrc_fit_search_skipped(&open, &self->info, self->memory) == NULL;
    if (self->options->run.model || self->record.resumes || self->outer || self->ensemble) return;
    if (by_default) warn_about_defaults(self);
    if (!by_default && !self->searches) warn_about_no_search(self);
}

/* Decides whether to search (sets `searches` and search_report.skipped), and warns about hyperparameters that are
   neither given nor searched. */
static mercer_status decide_search(mercer_fitting *self)
{
    const char **why = &self->search_report.skipped;
    bool possible = true;
    *why = self->outer ? "the hyperparameters are known"
                       : mrc_fit_search_skipped(self->options, &self->info, self->memory);
    if (!*why && !is_searchable(self->options)) *why = "the kernel has no metric to search";
    if (!*why && self->data) MRC_TRY(mrc_search_possible(self->data, &possible));
    if (!possible) *why = "there are fewer than 50 distinct rows or groups";
    if (!possible && self->data->key_kind == MRC_KEYS_GROUPS)
        mrc_warn(self->context, "groups", "groups: there are fewer than 50 groups, so only the ridge is searched");
    self->searches = !*why;
    if (self->data) warn_about_search(self, possible);
    return MERCER_OK;
}

/* ---- Effort ------------------------------------------------------------------------------------------------------ */

int64_t mrc_fit_default_centers(const mercer_fitting *self)
{
    int effort = self->record.effort > 0 ? self->record.effort : MRC_DEFAULT_EFFORT;
    const mrc_effort sizes = mrc_effort_of(effort, self->info.rows, self->info.features);
    /* Three models with half the centers each take about as long as one model with all of them. */
    bool halved = effort == MRC_MOST_EFFORT && (self->ensemble || mrc_fit_member_count(self) > 1);
    return self->searches ? sizes.final_centers / (halved ? 2 : 1) : plain_centers[effort - 1];
}

/* Factor for passes over memory, which plans do not count: without it, training on the tables of docs/tables.md took up
   to 2.6 times as long as predicted. */
#define UNCOUNTED 2

/* Predicts the seconds of training and calibration of one model. The plan assumes a nominal rate; `rate` is
   measured. */
static double predict_training(const mercer_fitting *self, const mercer_plan *plan)
{
    const mrc_machine machine = mrc_machine_of(self->context);
    double folds = mrc_fit_is_cross_validated(self) ? 2 : 0, slower = mrc_plan_nominal_rate(&machine) / self->rate;
    return UNCOUNTED * (1 + folds) * plan->seconds * slower;
}

/* Predicts the seconds of the search of one model. */
static double predict_search(const mercer_fitting *self)
{
    const mercer_dataset_info *info = &self->info;
    return self->searches
               ? mrc_search_flops(self->record.effort, info->rows, info->features, info->outputs) / self->rate
               : 0;
}

/* Predicts the seconds of search, training and calibration with the current effort. */
static double predict_seconds(mercer_fitting *self)
{
    mercer_plan plan;
    self->report.points = mrc_fit_points(self->options, &self->info);
    bool known = mrc_fit_try_plan(self, mrc_fit_center_count(self), &plan);
    double each = predict_search(self) + (known ? predict_training(self, &plan) : 0);
    return (double)mrc_fit_member_count(self) * each;
}

/* Returns the seconds since the fit was opened; 0 for a plan from sizes. */
static double elapsed(const mercer_fitting *self)
{
    return self->opened > 0 ? mrc_seconds() - self->opened : 0;
}

/* The time that has elapsed includes the search of the first model; the other members repeat search and training. */
void mrc_fit_predict(mercer_fitting *self, const mercer_plan *plan)
{
    double training = self->rate > 0 ? predict_training(self, plan) : 0, others = (double)self->report.members - 1;
    if (self->rate > 0)
        self->report.predicted_seconds = elapsed(self) + training + others * (predict_search(self) + training);
}

/* Sets the largest effort whose predicted seconds fit the budget. If even effort 1 takes longer, effort 1 is used, with
   a warning. */
static void fit_budget(mercer_fitting *self)
{
    double seconds = 0;
    for (self->record.effort = self->options->search.effort > 0 ? self->options->search.effort : MRC_MOST_EFFORT;
         self->record.effort > 0; self->record.effort--) {
        seconds = predict_seconds(self);
        if (elapsed(self) + seconds <= self->options->search.budget) return;
    }
    self->record.effort = 1;
    mrc_warn(self->context, "search.budget", "budget is too small: %.2g s are left, but effort 1 takes about %.2g s",
             fmax(self->opened + self->options->search.budget - mrc_seconds(), 0), seconds);
}

/* Sets effort and deadline. */
static mercer_status choose_effort(mercer_fitting *self)
{
    const mercer_fit_options *options = self->options;
    bool resumed = self->record.effort > 0; /* set by the checkpoint */
    if (!resumed) self->record.effort = options->search.effort > 0 ? options->search.effort : MRC_DEFAULT_EFFORT;
    if (self->outer || self->ensemble) return MERCER_OK;
    MRC_TRY(mrc_measure_rate(self->context, &self->rate));
    self->report.predicted_seconds = elapsed(self) + predict_seconds(self);
    if (!(options->search.budget > 0)) return MERCER_OK;
    /* Ranks must stop at the same step, so they have no deadline. Cross-validation trains more models after the
       deadline, so it needs a share of the budget: it takes twice as long as the training. */
    double share = !mrc_fit_is_cross_validated(self) ? 0.9 : self->searches ? 0.5 : 0.3;
    if (!options->run.comm) self->deadline = self->opened + share * options->search.budget;
    if (!resumed) fit_budget(self);
    return options->run.comm
               ? mercer_comm_broadcast(options->run.comm, &self->record.effort, sizeof self->record.effort)
               : MERCER_OK;
}

/* ---- The search -------------------------------------------------------------------------------------------------- */

/* Fits the preprocessing that the search must use: the given preprocessing, or the default one if a metric is given or
   learned. Adds a given metric to it. *out is not changed if the search chooses the preprocessing. */
static mercer_status fit_given(mercer_fitting *self, const mercer_kernel *kernel, mercer_preprocess **out)
{
    const mercer_fit_options *options = self->options;
    bool given = options->data.preprocess && strcmp(options->data.preprocess, "auto") != 0;
    if (!given && !options->kernel.metric && options->search.learn_features != MERCER_ON) return MERCER_OK;
    MRC_TRY(mercer_preprocess_fit(out, self->context, mrc_fit_preprocess(options, &self->info), self->data));
    if (!options->kernel.metric) return MERCER_OK;
    return mrc_fit_set_metric(self->context, *out, kernel, options->kernel.metric, self->info.features);
}

/* Stores the result of the search in the fit, its record and its reports. Warns if a given ridge is much worse than the
   best ridge. */
static mercer_status take_result(mercer_fitting *self, const mrc_search_result *found)
{
    mercer_fit_report *report = &self->report;
    double total = mrc_fit_count_samples(self->data);
    bool none = mrc_fit_has_no_ridge(self->request), given = self->record.ridge > 0 || none;
    self->preprocess = found->preprocess, self->applied = self->preprocess, self->kernel = found->kernel;
    report->points = mrc_preprocess_dtype(self->preprocess, self->info.dtype);
    MRC_TRY(mrc_kernel_print(self->context, &self->kernel, report->kernel, sizeof report->kernel, NULL));
    if (given && !(found->report.error <= RIDGE_LOSS * found->better_error))
        mrc_warn(
            self->context, "lambda",
            "ridge %g is given; its held-out error is %.3g of the variance, compared with %.3g for a ridge of %.3g",
            none ? 0 : self->record.ridge, found->report.error, found->better_error, found->better_ridge * total);
    self->search_report = found->report;
    self->journal = mrc_view(self->search.journal, self->search.steps, MRC_JOURNAL_COLUMNS, MERCER_F64);
    self->search_report.steps = &self->journal;
    return MERCER_OK;
}

/* Describes the search by the options of the fit, runs it, and stores its result. */
static mercer_status search_hyperparameters(mercer_fitting *self)
{
    const mercer_fit_options *options = self->options;
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *given = NULL;
    mercer_kernel kernel;
    mrc_search_result found;
    bool open, names = options->kernel.spec || options->search.learn_features == MERCER_ON;
    double lambda = self->record.ridge, ridge = lambda > 0 ? lambda / fmax(mrc_fit_count_samples(self->data), 1) : -1;
    double start = mrc_seconds();
    MRC_TRY(mrc_fit_parse_kernel(options, self->context, 1, &kernel, &open));
    MRC_TRY(fit_given(self, &kernel, &given));
    bool means = options->centers.method && strcmp(options->centers.method, "kmeans") == 0;
    mrc_search_task task = {.context = self->context,
                            .data = self->data,
                            .kernel = names ? &kernel : NULL,
                            .bandwidth = open ? options->kernel.bandwidth : kernel.bandwidth,
                            .norm_2 = means || options->kernel.metric,
                            .preprocess = given,
                            .units = &self->units,
                            .ridge = mrc_fit_has_no_ridge(self->request) ? 0 : ridge,
                            .effort = self->record.effort,
                            .memory = self->memory,
                            .seed = options->run.seed,
                            /* half of the budget is for training; members after the first are started only if there is
                               time */
                            .deadline =
                                self->deadline > 0 && !self->ensemble ? self->opened + options->search.budget / 2 : 0,
                            .progress = options->run.progress,
                            .progress_user = options->run.progress_user,
                            .state = &self->search};
    MRC_TRY(mrc_fit_open_search_state(self, &task));
    MRC_TRY(mrc_search_run(&task, &found));
    if (task.save) task.save(task.save_user, true);
    MRC_TRY(take_result(self, &found));
    self->search_report.seconds = mrc_seconds() - start;
    return MERCER_OK;
}

/* ---- The stage --------------------------------------------------------------------------------------------------- */

/* Returns how the effort was chosen. */
static mrc_origin effort_origin(const mercer_fitting *self)
{
    if (self->record.resumes || self->search_found[0]) return MRC_RESUMED;
    if (self->options->search.budget > 0) return MRC_FROM_BUDGET;
    return self->options->search.effort > 0 ? MRC_GIVEN : MRC_DEFAULT;
}

void mrc_fit_record_search(mercer_fitting *self)
{
    const mercer_search_report *report = &self->search_report;
    bool asked = mrc_fit_asks_for_search(self->options);
    if (self->outer) return;
    if (report->skipped) {
        mrc_fit_decide(self, "search", "search", self->options->search.tune == MERCER_OFF ? MRC_GIVEN : MRC_FROM_DATA,
                       "none");
        mrc_fit_explain(self, "search", "search", "none, because %s", report->skipped);
    } else if (report->steps) {
        char took[64] = "from the checkpoint";
        long long steps = (long long)self->search.steps;
        if (!self->model_exists)
            snprintf(took, sizeof took, "%.1f s%s", report->seconds, report->cut ? " (ended at the time limit)" : "");
        mrc_fit_decide(self, "search", "search", mrc_fit_origin(self, asked, MRC_DEFAULT), "%lld steps", steps);
        mrc_fit_explain(self, "search", "search", "effort %d, %lld steps, %s", self->record.effort, steps, took);
    } else if (!self->model_exists) {
        mrc_fit_decide(self, "search", "search", asked ? MRC_GIVEN : MRC_DEFAULT, "planned");
        mrc_fit_explain(self, "search", "search", "before training, effort %d", self->record.effort);
    }
}

mercer_status mrc_stage_effort(mercer_fitting *self)
{
    const char *checkpoint = self->untrained ? NULL : self->options->run.checkpoint;
    bool searching = false;
    self->record.resumes = checkpoint;
    MRC_TRY(decide_search(self));
    if (checkpoint) MRC_TRY(mrc_fit_open_checkpoint(self, checkpoint, &searching));
    if (searching) self->record.resumes = NULL; /* the search continues, and training starts from the beginning */
    self->model_exists = !self->untrained && (self->options->run.model || self->record.resumes);
    MRC_TRY(choose_effort(self));
    if (!self->outer) mrc_fit_decide(self, "effort", "effort", effort_origin(self), "%d", self->record.effort);
    if (!searching || self->searches) return MERCER_OK;
    return mrc_fail(
        self->context, MERCER_ERROR_MISMATCH,
        "%s: was written with other options: it has the state of a search, but this fit does not search (%s)",
        checkpoint, self->search_report.skipped);
}

mercer_status mrc_stage_search(mercer_fitting *self)
{
    if (self->searches && !self->model_exists) MRC_TRY(search_hyperparameters(self));
    mrc_fit_record_search(self);
    return MERCER_OK;
}

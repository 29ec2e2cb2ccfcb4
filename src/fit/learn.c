/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Learning the metric of the kernel (recursive feature machines: Radhakrishnan, Beaglehole, Pandit and Belkin 2024),
 * with centers, on a part of the data:
 *
 *   M = I, or the metric given
 *   round t:  fit f in metric M to n0 rows with p0 centers; its error e_t on rows held back
 *             G = mean of grad f grad f' at some rows;   M <- (A G A')^(1/2), trace d   (features/metric.h);
 *             norm 1: w <- w sqrt(diag G), largest 1
 *   the M of the smallest e_t is the metric of the fit proper, to all rows with all centers
 *
 * n0 <= 500,000, p0 <= 16,384. Each round first chooses its bandwidth, a multiple of the median distance in its metric,
 * and its ridge for one sample, together, by smaller fits (learn_grid.c); one that is given stays, a bandwidth times
 * what the median distance has grown by. The fit proper takes those of the best round. It stops when two rounds in a
 * row were no better than the best. Rounds are fits like any other, which ranks share; the smaller fits and the
 * eigensystems are made by every rank. Cost: that of the fits, and a product of 4,096 rows and an eigensystem of d
 * features each. Samples with more than 4,096 features get a diagonal metric.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "features/agop.h"
#include "features/metric.h"
#include "fit/tuned/tuned.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_ROWS = 500000,
    MOST_CENTERS = 16384,
    MOST_CHECKED = 50000, /* of the rows that rounds are compared on */
    GRADIENT_ROWS = 4096,
    MOST_FULL = 4096, /* features of a full metric */
    ROUNDS = 4,       /* unless a number is given */
    PATIENCE = 2,
};
#define HELD_BACK       0.2 /* of the rows, where there is no validation set */
#define RANDOM_PART     UINT64_C(0x726f756e6473)
#define RANDOM_GRADIENT UINT64_C(0x67726164)

typedef struct learner {
    mercer_fitting *fitting;
    mercer_dataset *part, *checked; /* owned: rows of the rounds, and those they are compared on; NULL: all */
    mercer_fitting *sample;         /* owned: the same as a round has them, some held back */
    mercer_dataset *data;
    mercer_fit_options options; /* of a round */
    mercer_train_options train;
    mercer_kernel kernel;    /* of the options */
    bool given;              /* its bandwidth was given, */
    double bandwidth, unit;  /* and is this, where the median distance is that */
    double ridge;            /* for one sample; below 0: not given */
    mercer_matrix now, best; /* M (d, d), or weights (1, d), in `memory`; no data yet: as the options have it */
    mrc_choice choice, best_choice;
    double *memory; /* (2, most): of now, and of the best */
    int64_t most;
    int64_t round;
    bool stopped;
} learner;

/* ---- Before the first round -------------------------------------------------------------------------------------- */

mercer_status mrc_fit_check_learning(const mercer_fit_options *options, mercer_context *context)
{
    mercer_kernel kernel, slope;
    bool open;
    if (options->metric) MRC_TRY(mrc_metric_check(context, options->metric, 0));
    if (options->metric && options->model)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: metric is set, but the model is there");
    if (options->learn_features < -1 || options->learn_features > MERCER_ROUNDS)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "learn_features is %lld, it must be 0 to %d rounds, or -1: chosen",
                        (long long)options->learn_features, MERCER_ROUNDS);
    if (options->learn_features == 0) return MERCER_OK;
    if (options->model)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: learn_features is set, but the model is there");
    MRC_TRY(mrc_fit_parse_kernel(options, context, 1, &kernel, &open));
    return mrc_gradient_slope(context, &kernel, &slope);
}

int64_t mrc_fit_rounds(const mercer_fit_options *options)
{
    return options->learn_features < 0 ? ROUNDS : options->learn_features;
}

static int watch_round(void *user, const mercer_progress *progress)
{
    learner *self = user;
    const mercer_fit_options *options = &self->fitting->options;
    const mercer_fit_report *report = &self->fitting->report;
    (void)progress;
    double error = self->round > 0 ? report->round_errors[self->round - 1] : 0;
    if (options->progress &&
        options->progress(options->progress_user, "features", self->round, mrc_fit_rounds(options) + 1, error))
        self->stopped = true;
    return self->stopped;
}

/* Some rows, or NULL where all serve. */
static mercer_status take_some(mercer_dataset **out, const mercer_dataset *data, int64_t most, uint64_t seed)
{
    int64_t *rows;
    if (data->rows <= most) return MERCER_OK;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &rows, most, sizeof *rows, "row numbers"));
    for (int64_t i = 0; i < most; i++) rows[i] = mrc_random_permutation((mrc_rng){seed, RANDOM_PART}, data->rows, i);
    return mrc_dataset_take(out, data, rows, most);
}

static int64_t round_centers(const mercer_fitting *self, int64_t rows)
{
    return mrc_min(mrc_min(mrc_fit_center_count(self), MOST_CENTERS), rows);
}

static mercer_status take_part(learner *self)
{
    mercer_fitting *fitting = self->fitting;
    uint64_t seed = fitting->options.seed;
    MRC_TRY(take_some(&self->part, fitting->data, MOST_ROWS, seed));
    self->data = self->part ? self->part : fitting->data;
    return fitting->watched ? take_some(&self->checked, fitting->validation, MOST_CHECKED, seed) : MERCER_OK;
}

/* What a round does differently from the fit that it is for. */
static void set_options(learner *self)
{
    const mercer_fitting *fitting = self->fitting;
    mercer_fit_options *options = &self->options;
    *options = fitting->options;
    self->train = fitting->train;
    self->train.patience = 0, self->train.polish = 0, self->train.checkpoint = NULL;
    self->train.progress = watch_round, self->train.progress_user = self;
    options->train = &self->train;
    mrc_fit_without_search(options);
    options->checkpoint = NULL, options->progress = NULL;
    options->calibrate = options->intervals = MERCER_OFF, options->merge = MERCER_OFF;
    options->class_weight = options->calibrate_to = NULL; /* the samples have them */
    options->augment = NULL, options->samples = 0;
    if (options->given_centers && options->given_centers->rows > MOST_CENTERS) options->given_centers = NULL;
    options->center_type = 0;
    options->center_method = NULL, options->center_iterations = 0, options->center_batch = 0;
    options->validation = fitting->watched ? (self->checked ? self->checked : fitting->validation) : NULL;
    options->validation_fraction = fitting->watched ? 0 : HELD_BACK;
    int64_t rows = (int64_t)((double)self->data->rows * (1 - options->validation_fraction));
    options->centers = options->given_centers ? 0 : mrc_max(1, round_centers(fitting, rows));
}

double mrc_fit_count_samples(const mercer_dataset *data)
{
    double sum = 0;
    for (int64_t i = 0; i < data->rows && data->weights; i++) sum += data->weights[i];
    return data->weights ? sum : (double)data->rows;
}

/* Rows are held back once, for all rounds. */
static mercer_status open_sample(learner *self)
{
    MRC_TRY(mrc_fitting_open(&self->sample, self->fitting->context, self->data, &self->options, &self->train));
    self->data = self->sample->data;
    self->options.validation = self->sample->validation;
    self->options.validation_fraction = 0;
    return MERCER_OK;
}

/* ---- A round ----------------------------------------------------------------------------------------------------- */

/* A bandwidth that was given goes with the median distance; others are multiples of it. */
static mercer_status choose(learner *self, const mercer_preprocess *preprocess, double unit)
{
    enum { MULTIPLES = 7, AT_LEAST = 5, MEDIAN = 2 };
    static const double multiples[MULTIPLES] = {0.25, 0.5, 1, 2, 4, 8, 16};
    double bandwidths[MULTIPLES];
    int count = self->given ? 1 : MULTIPLES;
    if (self->unit == 0) self->unit = unit;
    for (int i = 0; i < count; i++) bandwidths[i] = multiples[i] * unit;
    if (self->given) bandwidths[0] = self->unit > 0 ? self->bandwidth * unit / self->unit : self->bandwidth;
    self->choice = (mrc_choice){bandwidths[self->given ? 0 : MEDIAN], fmax(self->ridge, 0), 0};
    bool open = !self->given || self->ridge < 0;
    const mercer_dataset *held = self->sample->validation;
    if (!open || !held || held->rows == 0 || !(unit > 0)) return MERCER_OK;
    return mrc_fit_choose(self->sample, &self->kernel, preprocess, bandwidths, count, self->given ? 1 : AT_LEAST,
                          self->ridge, &self->choice);
}

/* Bandwidth and ridge in the metric of a round. */
static mercer_status set_bandwidth(learner *self)
{
    mercer_context *context = self->fitting->context;
    const mercer_matrix *metric = self->options.metric;
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *preprocess = NULL;
    double unit;
    const char *spec = mrc_fit_preprocess(&self->fitting->options, &self->fitting->info);
    MRC_TRY(mercer_preprocess_fit(&preprocess, context, spec, self->data));
    if (metric) MRC_TRY(mrc_fit_set_metric(context, preprocess, &self->kernel, metric, self->data->features));
    MRC_TRY(mrc_fit_median_distance(context, &self->kernel, self->data, preprocess, self->fitting->memory, &unit));
    MRC_TRY(choose(self, preprocess, unit));
    self->kernel.bandwidth = self->choice.bandwidth;
    self->train.lambda = self->choice.ridge > 0 ? self->choice.ridge * mrc_fit_count_samples(self->data) : -1;
    self->options.kernel = NULL, self->options.bandwidth = 0;
    self->options.kernel_function = &self->kernel;
    return MERCER_OK;
}

/* Ranks stop together. */
static mercer_status agree_to_stop(learner *self)
{
    mercer_fitting *fitting = self->fitting;
    if (fitting->options.comm) MRC_TRY(mrc_comm_any(fitting->options.comm, self->stopped, &self->stopped));
    if (!self->stopped) return MERCER_OK;
    return mrc_fail(fitting->context, MERCER_ERROR_CALLBACK, "stopped while features were learned");
}

static mercer_status fit_round(learner *self, mercer_model **model, double *error)
{
    mercer_fitting *fitting = self->fitting;
    mercer_report training = {.struct_size = sizeof training};
    mercer_fit_report report = {.struct_size = sizeof report, .training = &training};
    if (self->now.data) self->options.metric = &self->now;
    MRC_TRY(set_bandwidth(self));
    watch_round(self, NULL);
    MRC_TRY(agree_to_stop(self));
    MRC_TRY(mercer_fit(model, fitting->context, self->data, &self->options, &report));
    MRC_TRY(agree_to_stop(self));
    *error = training.validation_loss;
    return MERCER_OK;
}

/* G at random rows as the model's kernel sees them; X: room for them. */
static mercer_status average_gradients(learner *self, const mercer_model *model, const mercer_matrix *X,
                                       const mercer_matrix *G)
{
    int64_t rows[GRADIENT_ROWS];
    uint64_t seed = self->fitting->options.seed;
    for (int64_t i = 0; i < X->rows; i++)
        rows[i] = mrc_random_permutation((mrc_rng){seed, RANDOM_GRADIENT}, self->data->rows, i);
    MRC_TRY(mercer_dataset_read(self->data, X, NULL, NULL, model->preprocess, rows, 0));
    MRC_TRY(mrc_check_finite(self->fitting->context, "samples", X, NULL));
    mrc_expansion sum = mrc_expansion_of(model);
    return mrc_agop(self->fitting->context->backend, &sum, X, &model->weights, seed, G);
}

static mrc_norm norm_of(const learner *self)
{
    return mrc_kernel_norm(&self->kernel) == 1 ? MRC_NORM_1 : MRC_NORM_2;
}

/* M = A A', or the weights of a diagonal one. */
static mercer_status write_metric(learner *self, const mrc_metric *metric)
{
    mrc_backend *backend = self->fitting->context->backend;
    int64_t d = metric->features;
    mrc_norm norm = norm_of(self);
    mercer_matrix m = mrc_view(self->memory, metric->diagonal ? 1 : d, d, MERCER_F64);
    for (int64_t k = 0; k < d && metric->diagonal; k++) mrc_store(&m, 0, k, mrc_metric_weight(metric, norm, k));
    self->now = m;
    if (metric->diagonal) return MERCER_OK;
    mercer_matrix a = mrc_view(metric->map, d, metric->width, MERCER_F64);
    mrc_gemm job = {.transpose_b = true, .alpha = 1, .a = &a, .b = &a, .c = &m};
    return backend->ops->gemm(backend, &job);
}

/* The metric of the next round; *zero: there is nothing to learn from. */
static mercer_status next_metric(learner *self, const mercer_model *model, bool *zero)
{
    mercer_context *context = self->fitting->context;
    const mrc_linear_map *map = model->preprocess ? model->preprocess->map : NULL;
    int64_t d = self->data->features, width = model->centers.cols, m = mrc_min(self->data->rows, GRADIENT_ROWS);
    mrc_metric now = {.features = d, .width = width};
    MRC_OWNED(mrc_metric_free) mrc_metric next = {0};
    mercer_matrix X, G;
    bool diagonal = d > MOST_FULL || norm_of(self) == MRC_NORM_1;
    if (map) now.diagonal = map->diagonal, now.map = map->values;
    mercer_dtype real = model->centers.dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_view(&scope, &X, m, width, real, "rows for gradients"));
    MRC_TRY(mrc_scope_view(&scope, &G, diagonal ? 1 : width, width, MERCER_F64, "gradients"));
    MRC_TRY(average_gradients(self, model, &X, &G));
    MRC_TRY(mrc_metric_next(&next, context->backend, norm_of(self), &now, &G, zero));
    return *zero ? MERCER_OK : write_metric(self, &next);
}

/* ---- The rounds -------------------------------------------------------------------------------------------------- */

static void keep_best(learner *self)
{
    size_t bytes = (size_t)(self->now.rows * self->now.cols) * sizeof(double);
    self->best_choice = self->choice;
    self->best = (mercer_matrix){0};
    if (!self->now.data) return;
    int64_t d = self->now.cols;
    self->best = mrc_view(self->memory + self->most, self->now.rows, d, MERCER_F64);
    memcpy(self->best.data, self->now.data, bytes);
}

static mercer_status do_round(learner *self, bool *end)
{
    mercer_fitting *fitting = self->fitting;
    int64_t round = self->round;
    mercer_fit_report *report = &fitting->report;
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    double error = 0;
    bool zero = false;
    MRC_TRY(fit_round(self, &model, &error));
    report->round_errors[round] = error;
    report->rounds = round;
    if (round == 0 || error < report->round_errors[report->best_round]) report->best_round = round;
    if (report->best_round == round) keep_best(self);
    mrc_log(fitting->context, MERCER_LOG_INFO,
            "features: round %lld: error %.6g on rows held back%s; bandwidth %.4g, ridge %.3g a sample",
            (long long)round, error, report->best_round == round ? "" : ", no better", self->choice.bandwidth,
            self->choice.ridge);
    *end = round == mrc_fit_rounds(&fitting->options) || round - report->best_round >= PATIENCE;
    if (!*end && model) MRC_TRY(next_metric(self, model, &zero));
    if (zero) mrc_warn(fitting->context, "learn_features", "features: all gradients are 0, the metric stays as it is");
    *end = *end || zero;
    return MERCER_OK;
}

/* ---- Between rounds ---------------------------------------------------------------------------------------------- */

/* What determines the rounds, but for the data: a checkpoint of others is refused. */
static mercer_status describe(const learner *self, char *text, size_t size)
{
    const mercer_fitting *fitting = self->fitting;
    const mercer_fit_options *options = &fitting->options;
    char kernel[MERCER_KERNEL_TEXT];
    mercer_kernel given = self->kernel;
    given.bandwidth = self->bandwidth;
    MRC_TRY(mrc_kernel_print(fitting->context, &given, kernel, sizeof kernel, NULL));
    snprintf(text, size,
             "n %" PRId64 " d %" PRId64 " c %" PRId64 " centers %" PRId64 " rounds %" PRId64 " kernel %s given %d"
             " preprocess %s lambda %.17g seed %" PRIu64,
             fitting->info.rows, fitting->info.features, fitting->info.outputs, self->options.centers,
             mrc_fit_rounds(options), kernel, self->given, mrc_fit_preprocess(options, &fitting->info),
             fitting->train.lambda, options->seed);
    size_t used = strlen(text);
    if (options->comm)
        snprintf(text + used, size - used, " shards %d", mercer_comm_shard_count(options->comm, self->options.centers));
    return MERCER_OK;
}

/* A checkpoint after a round; that it cannot be written is no reason to stop. One of several ranks writes it. */
static void keep_rounds(const learner *self, bool done)
{
    const mercer_fitting *fitting = self->fitting;
    const mercer_fit_report *report = &fitting->report;
    char of[1024];
    mrc_rounds rounds = {.next = self->round + 1,
                         .best_round = report->best_round,
                         .done = done,
                         .choice = self->best_choice,
                         .unit = self->unit,
                         .now = self->now,
                         .best = self->best};
    if (!fitting->train.checkpoint || (fitting->options.comm && fitting->options.comm->rank > 0)) return;
    memcpy(rounds.errors, report->round_errors, sizeof rounds.errors);
    mercer_status status = describe(self, of, sizeof of);
    if (status == MERCER_OK) status = mrc_rounds_write(fitting->context, fitting->train.checkpoint, of, &rounds);
    if (status != MERCER_OK)
        mrc_warn(fitting->context, "checkpoint", "no checkpoint can be written after round %lld: %s",
                 (long long)self->round, mercer_last_error(fitting->context));
}

/* Goes on after the rounds of a checkpoint. */
static mercer_status recall_rounds(learner *self, bool *done)
{
    mercer_fitting *fitting = self->fitting;
    int64_t d = fitting->info.features;
    char of[1024];
    mrc_rounds rounds;
    MRC_TRY(describe(self, of, sizeof of));
    MRC_TRY(mrc_rounds_read(fitting->context, fitting->options.checkpoint, of, d, self->memory,
                            self->memory + self->most, &rounds));
    self->round = rounds.next;
    self->unit = rounds.unit;
    self->now = rounds.now, self->best = rounds.best;
    self->best_choice = rounds.choice;
    fitting->report.rounds = rounds.next - 1;
    fitting->report.best_round = rounds.best_round;
    memcpy(fitting->report.round_errors, rounds.errors, sizeof rounds.errors);
    *done = rounds.done;
    return MERCER_OK;
}

/* The fit proper goes on with what was learned. */
static void take_over(learner *self)
{
    mercer_fitting *fitting = self->fitting;
    fitting->options.learn_features = 0;
    fitting->learned_kernel = self->kernel;
    fitting->learned_kernel.bandwidth = self->best_choice.bandwidth;
    fitting->options.kernel = NULL, fitting->options.bandwidth = 0;
    fitting->options.kernel_function = &fitting->learned_kernel;
    if (self->ridge < 0) fitting->train.lambda = self->best_choice.ridge * mrc_fit_count_samples(fitting->data);
    if (!self->best.data) return;
    int64_t d = self->best.cols;
    memmove(self->memory, self->best.data, (size_t)(self->best.rows * d) * sizeof(double));
    fitting->metric = mrc_view(self->memory, self->best.rows, d, MERCER_F64);
    self->memory = NULL; /* the fitting's */
    fitting->options.metric = &fitting->metric;
}

static mercer_status run_rounds(learner *self)
{
    mercer_fitting *fitting = self->fitting;
    double bandwidth = fitting->options.bandwidth;
    bool open, end = false;
    int64_t d = fitting->info.features;
    self->most = d > MOST_FULL ? d : d * d;
    MRC_TRY(take_part(self));
    MRC_TRY(
        mrc_fit_parse_kernel(&fitting->options, fitting->context, bandwidth > 0 ? bandwidth : 1, &self->kernel, &open));
    self->given = !open || bandwidth > 0;
    self->bandwidth = self->kernel.bandwidth;
    double lambda = fitting->train.lambda;
    self->ridge = lambda > 0 ? lambda / fmax(mrc_fit_count_samples(fitting->data), 1) : fitting->no_ridge ? 0 : -1;
    set_options(self);
    MRC_TRY(open_sample(self));
    MRC_TRY(mrc_alloc(fitting->context, &self->memory, 2, self->most * (int64_t)sizeof(double), "metrics"));
    if (fitting->options.checkpoint) MRC_TRY(recall_rounds(self, &end));
    for (; !end; self->round++) {
        MRC_TRY(do_round(self, &end));
        keep_rounds(self, end);
    }
    take_over(self);
    return MERCER_OK;
}

mercer_status mrc_fit_learn(mercer_fitting *fitting)
{
    learner self = {.fitting = fitting};
    mercer_status status = run_rounds(&self);
    mrc_free(fitting->context, self.memory);
    mercer_fitting_free(self.sample);
    mercer_dataset_free(self.checked);
    mercer_dataset_free(self.part);
    return status;
}

/* ---- The plan ---------------------------------------------------------------------------------------------------- */

void mrc_fit_tell_rounds(const mercer_fitting *self, mercer_plan *plan)
{
    int64_t rows = mrc_min(self->info.rows, MOST_ROWS);
    if (self->report.rounds > 0)
        mrc_plan_say(plan, "features: %lld rounds of learning, the metric is that of round %lld\n",
                     (long long)self->report.rounds, (long long)self->report.best_round);
    if (mrc_fit_rounds(&self->options) == 0) return;
    mercer_plan one = {.struct_size = sizeof one};
    mercer_shape shape = {.struct_size = sizeof shape,
                          .samples = rows,
                          .centers = round_centers(self, rows),
                          .features = self->info.features,
                          .outputs = mrc_max(1, self->info.outputs),
                          .points = self->report.points,
                          .weights = self->options.precision,
                          .shards = self->options.shards};
    mercer_train_options options = self->train;
    if (self->options.comm) shape.shards = mercer_comm_shard_count(self->options.comm, shape.centers);
    options.memory = self->memory;
    mercer_kernel kernel;
    bool open, elsewhere = self->context->backend->ops->capabilities(self->context->backend).memory != MRC_HOST;
    if (elsewhere && mrc_fit_parse_kernel(&self->options, self->context, 1, &kernel, &open) == MERCER_OK &&
        mrc_kernel_norm(&kernel) == 1)
        mrc_plan_say(plan, "features: gradients in the L1 norm are computed by the processor\n");
    if (mercer_plan_shape(self->context, &one, &shape, &options) != MERCER_OK) return;
    mrc_plan_say(plan, "features: before it up to %lld fits of %lld centers to %lld rows, %.3g flops and %.1f s each\n",
                 (long long)mrc_fit_rounds(&self->options) + 1, (long long)shape.centers, (long long)rows, one.flops,
                 one.seconds);
}

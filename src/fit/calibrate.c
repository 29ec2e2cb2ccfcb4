/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From scores to probabilities:
 *
 *     P(class j | x) = exp(g_j(x) / T) / sum_k exp(g_k(x) / T),    g_j = asinh(k f_j) / asinh(k)
 *
 * (with class weights, g_j is shifted: class_weights.c). T minimizes the weighted log loss on scores of samples that
 * the model was not trained on. The loss is convex in 1 / T, so a golden-section search over log T finds its minimum. A
 * temperature does not change which class is the most likely, and a few hundred samples determine it well.
 *
 * The curvature k is 0 (g = f) or the best of CURVATURES powers of 2, each with its own T. It must lower the log loss
 * of all n samples together by more than log(n) / 2, the penalty of the Bayesian information criterion for one
 * parameter, so that a few samples do not bend the scores by chance. Test log loss without and with curvature, for
 * default fits (bench/results/calibration.txt): .4319 and .4317 (hr), .1971 and .1836 (bank), .4384 and .4336 (credit),
 * .2907 and .2816 (adult), .1028 and .0938 (airline), .3399 and .3341 (rain), .2393 and .2270 (heart), .0909 and .0824
 * (letter). An additional intercept changed the cross-validated log loss of calibration rows by -.0001 (adult) to .0056
 * (hr). With an intercept, the likeliest class would no longer be the predicted class. Cost: about 150 passes over the
 * scores (n, c).
 *
 * Intervals (src/model/calibration.c) need scores of held-out rows: in regression |f - y| of each output, in
 * classification the total probability of all classes that rank before the true class. The model stores up to
 * MOST_SAVED quantiles of them: entry k of m is the smallest score that is not exceeded by rows with a share (k + 1) /
 * m of the total weight. Without weights, and up to MOST_SAVED rows, these are the sorted scores themselves.
 *
 * The scores come from the validation set. Without a validation set, the scores are cross-validated: three models are
 * each trained on two thirds of the samples and score the remaining third. The rows of a unit (data/equal_rows.h) stay
 * in the same third, and each third has the same shares of classes. Cross-validated scores are also evaluated, for
 * values as well as for classes, if the caller asks for it.
 */
#include "fit/fitting.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "core/numbers/softmax.h"
#include "core/numbers/weighted.h"
#include "core/stage_progress.h"
#include "data/equal_rows.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* LEAST_SCORES: fewer scores do not determine a temperature. MOST_SCORES: more would only cost time. */
enum { FOLDS = 3, LEAST_SCORES = 8, MOST_SCORES = 10000, MOST_SAVED = 1000 };
/* Curvatures 2^2 .. 2^8. Smaller curvatures hardly bend scores between 0 and 1; larger curvatures magnify noise around
   0. */
enum { FIRST_CURVATURE = 2, CURVATURES = 7 };
/* Steps in log T at which a search ends. COARSE is for comparing curvatures: it changes the log loss by about 1e-4 of
   itself. */
#define COARSE 1e-2
#define FINE   1e-4
/* Difference in log likelihood up to which the smaller curvature is chosen. The log loss hardly depends on large
   curvatures: on 765 rows of hr, curvature 256 was better than 8 by 0.7. The smaller curvature changes the
   probabilities less. */
#define ABOUT_AS_GOOD 1.0
#define RANDOM_FOLDS  UINT64_C(0x666f6c6473)

/* ---- Temperature and curvature --------------------------------------------------------------------------------- */

/* Scores of rows that the model was not trained on, all borrowed. Class k has the logit score / T - log_factors[k]. */
typedef struct scored_rows {
    const mercer_matrix *scores; /* (n, c), curved */
    const int32_t *labels;
    const double *weights;     /* (n) row weights, or NULL */
    const double *log_factors; /* (c) logarithms of the class weights, or NULL */
} scored_rows;

/* Returns g_j / T - log w_j. */
static double logit(const scored_rows *self, int64_t i, int64_t j, double temperature)
{
    return mrc_load(self->scores, i, j) / temperature - (self->log_factors ? self->log_factors[j] : 0);
}

/* Returns the weighted mean of -log P(label) over the rows. */
static double log_loss(const scored_rows *self, double temperature)
{
    double sum = 0, total = 0;
    for (int64_t i = 0; i < self->scores->rows; i++) {
        double first = logit(self, i, 0, temperature), top = first, w = self->weights ? self->weights[i] : 1;
        for (int64_t j = 1; j < self->scores->cols; j++) top = fmax(top, logit(self, i, j, temperature));
        double powers = exp(first - top); /* the largest exponent is 0, so the sum is at least 1 and cannot overflow */
        for (int64_t j = 1; j < self->scores->cols; j++) powers += exp(logit(self, i, j, temperature) - top);
        sum += w * (log(powers) - (logit(self, i, self->labels[i], temperature) - top));
        total += w;
    }
    return sum / total;
}

/* Finds the temperature with the lowest log loss, and returns that loss. step: see COARSE. */
static double find_temperature(const scored_rows *rows, double step, double *temperature)
{
    /* the inverse of the golden ratio: each step reuses one of the two inner points */
    const double ratio = 0.6180339887498949;
    double low = log(1e-2), high = log(1e1), left = high - ratio * (high - low), right = low + ratio * (high - low);
    double at_left = log_loss(rows, exp(left)), at_right = log_loss(rows, exp(right));
    while (high - low > step) {
        if (at_left <= at_right) {
            high = right, right = left, at_right = at_left;
            left = high - ratio * (high - low);
            at_left = log_loss(rows, exp(left));
        } else {
            low = left, left = right, at_left = at_right;
            right = low + ratio * (high - low);
            at_right = log_loss(rows, exp(right));
        }
    }
    *temperature = exp((low + high) / 2);
    return at_left < at_right ? at_left : at_right; /* NaN if at_right is */
}

/* Returns the number of rows of equal weight that would be as informative (Kish's formula). */
static double effective_rows(const double *weights, int64_t n)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double w = weights ? weights[i] : 1;
        sum += w, squares += w * w;
    }
    return squares > 0 ? sum * sum / squares : 0;
}

/* Finds the best temperature for a curvature, and returns its log loss. curved (n, c): scratch space. */
static double find_curved(const scored_rows *rows, const mercer_matrix *curved, double curvature, double step,
                          double *temperature)
{
    const scored_rows bent = {curved, rows->labels, rows->weights, rows->log_factors};
    for (int64_t i = 0; i < curved->rows; i++) {
        mrc_load_row_f64(rows->scores, i, mrc_row(curved, i));
        mrc_softmax_curve(mrc_row(curved, i), curved->cols, curvature);
    }
    return find_temperature(&bent, step, temperature);
}

/* Finds the smallest curvature that is about as good as the best one, and its temperature. Changes nothing unless a
   curvature improves on `straight`, the log loss without curvature, by more than log(n) / (2 n). curved (n, c): scratch
   space. */
static void find_curvature(const scored_rows *rows, const mercer_matrix *curved, double straight, double *temperature,
                           double *curvature)
{
    double n = effective_rows(rows->weights, curved->rows), losses[CURVATURES], least = straight - log(n) / (2 * n), t;
    int chosen = -1;
    for (int k = 0; k < CURVATURES; k++) {
        losses[k] = find_curved(rows, curved, ldexp(1, FIRST_CURVATURE + k), COARSE, &t);
        if (losses[k] < least) least = losses[k], chosen = k;
    }
    if (chosen < 0) return;
    for (chosen = 0; losses[chosen] > least + ABOUT_AS_GOOD / n;) chosen++;
    *curvature = ldexp(1, FIRST_CURVATURE + chosen);
    find_curved(rows, curved, *curvature, FINE, temperature);
}

mercer_status mrc_calibrate(mercer_context *context, double *temperature, double *curvature,
                            const mercer_matrix *scores, const int32_t *labels, const double *weights,
                            const double *log_factors)
{
    const scored_rows rows = {scores, labels, weights, log_factors};
    mercer_matrix curved;
    *temperature = MRC_TEMPERATURE_WITHOUT_DATA, *curvature = 0;
    if (scores->rows < LEAST_SCORES || scores->cols < 2) return MERCER_OK;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_view(&scope, &curved, scores->rows, scores->cols, MERCER_F64, "curved scores"));
    double straight = find_temperature(&rows, FINE, temperature);
    if (!isfinite(straight)) return mrc_fail(context, MERCER_ERROR_DATA, "the log loss of the scores is not finite");
    find_curvature(&rows, &curved, straight, temperature, curvature);
    return MERCER_OK;
}

/* ---- Scores ---------------------------------------------------------------------------------------------------- */

/* Sets the model's class shifts for its temperature. */
static mercer_status shift_classes(mercer_fitting *self)
{
    double *shift;
    if (!mrc_fit_shifts_classes(self)) return MERCER_OK;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &shift, self->info.outputs, sizeof *shift, "shifts of classes"));
    mrc_fit_class_shift(self, mrc_model_temperature(self->model), shift);
    return mrc_model_set_class_shift(self->model, shift);
}

/* Finds and sets the model's temperature and curvature from the scores of a dataset in memory, then its class
   shifts. */
static mercer_status calibrate_classes(mercer_fitting *self, const mercer_dataset *dataset, const mercer_matrix *scores)
{
    const double *weights;
    double *logs;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &logs, scores->cols, sizeof *logs, "weights of classes"));
    mrc_fit_class_shift(self, -1, logs);
    MRC_TRY(mrc_fit_population_weights(self, dataset, &scope, &weights));
    mercer_fit_report *report = &self->report;
    MRC_TRY(
        mrc_calibrate(self->context, &report->temperature, &report->curvature, scores, dataset->labels, weights, logs));
    if (scores->rows < LEAST_SCORES || scores->cols < 2) return MERCER_OK;
    MRC_TRY(mrc_model_set_calibration(self->model, report->temperature, report->curvature));
    return shift_classes(self);
}

/* Allocates scores for `rows` rows, in the type that predictions have: double if targets are transformed back. */
static mercer_status make_scores(const mercer_fitting *self, mrc_scope *scope, int64_t rows, mercer_matrix *out)
{
    mercer_matrix weights = self->model->weights;
    bool units = self->info.task == MERCER_TASK_REGRESSION && self->model->units.offset;
    return mrc_scope_view(scope, out, rows, weights.cols, units ? MERCER_F64 : weights.dtype, "scores");
}

/* ---- Intervals --------------------------------------------------------------------------------------------------- */

/* Sorts n scores and stores m quantiles: out[k] is the smallest score such that the scores up to it have a share (k +
   1) / m of the weight. The last score fills the entries that rounding errors of the sums of weights left empty. */
static void fill_table(mrc_weighted *list, int64_t n, double *out, int64_t m)
{
    const double rounding = 1e-9; /* tolerance for rounding errors of sums of weights */
    double total = 0, sum = 0;
    int64_t k = 0;
    mrc_weighted_sort(list, n);
    for (int64_t i = 0; i < n; i++) total += list[i].weight;
    for (int64_t i = 0; i < n; i++) {
        sum += list[i].weight;
        for (; k < m && (sum * (double)m >= total * ((double)(k + 1) - rounding) || i == n - 1); k++)
            out[k] = list[i].value;
    }
}

/* Returns the interval score of row i and output j (classification: of the row; j is 0). p: scratch space for a row. */
static double score_of(const mercer_fitting *self, const mercer_dataset *dataset, const mercer_matrix *predicted,
                       int64_t i, int64_t j, double *p)
{
    if (dataset->task != MERCER_TASK_CLASSIFICATION)
        return fabs(mrc_load(predicted, i, j) - mrc_load(&dataset->y, i, j));
    mrc_load_row_f64(predicted, i, p);
    mrc_model_curve_scores(self->model, p);
    mrc_softmax(p, p, predicted->cols, mrc_model_temperature(self->model));
    return mrc_softmax_ahead(p, predicted->cols, dataset->labels[i]);
}

/* Counts the rows with a positive weight. *effective: number of independent rows of equal weight that would be as
   informative: the rows of a group count as one, and uneven weights reduce it. */
static mercer_status count_rows(const mercer_dataset *dataset, const double *weights, int64_t *count, double *effective)
{
    int64_t n = 0, units, *unit;
    MRC_SCOPE(scope, dataset->context);
    MRC_TRY(mrc_scope_alloc(&scope, &unit, dataset->rows, sizeof *unit, "groups of rows"));
    MRC_TRY(mrc_row_units(dataset, NULL, dataset->rows, unit, &units));
    for (int64_t i = 0; i < dataset->rows; i++) n += !weights || weights[i] > 0;
    *effective = fmin(effective_rows(weights, dataset->rows), (double)units);
    *count = n;
    return MERCER_OK;
}

/* Stores the quantiles of a dataset's interval scores in the model. predicted: the model's predictions for its rows. */
static mercer_status save_scores(mercer_fitting *self, const mercer_dataset *dataset, const mercer_matrix *predicted)
{
    double effective, *row;
    const double *weights;
    int64_t n;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_fit_population_weights(self, dataset, &scope, &weights));
    MRC_TRY(count_rows(dataset, weights, &n, &effective));
    int64_t m = mrc_min(n, MOST_SAVED);
    int64_t lists = dataset->task == MERCER_TASK_CLASSIFICATION ? 1 : predicted->cols;
    mrc_weighted *list;
    mercer_matrix scores;
    if (n == 0) return MERCER_OK;
    MRC_TRY(mrc_scope_view(&scope, &scores, lists, m, MERCER_F64, "scores"));
    MRC_TRY(mrc_scope_alloc(&scope, &list, n, sizeof *list, "scores"));
    MRC_TRY(mrc_scope_alloc(&scope, &row, predicted->cols, sizeof *row, "a row"));
    for (int64_t j = 0; j < lists; j++) {
        int64_t at = 0;
        for (int64_t i = 0; i < dataset->rows; i++) {
            double w = weights ? weights[i] : 1;
            if (w > 0) list[at++] = (mrc_weighted){score_of(self, dataset, predicted, i, j, row), w};
        }
        fill_table(list, n, mrc_row(&scores, j), m);
    }
    return mrc_model_set_intervals(self->model, &scores, effective, dataset->task);
}

/* ---- On the validation set --------------------------------------------------------------------------------------- */

/* Calibrates on evenly spaced rows of the validation set. */
static mercer_status calibrate_on_validation(mercer_fitting *self, bool temperature, bool intervals)
{
    const mercer_dataset *held = self->validation;
    /* The copied rows take at most a quarter of the memory. */
    int64_t row = held->features * mrc_dtype_size(held->dtype) + (held->outputs + 1) * (int64_t)sizeof(double);
    int64_t m = mrc_min(mrc_min(held->rows, MOST_SCORES), self->memory / 4 / row + 1), *rows;
    MRC_OWNED(mrc_release_dataset) mercer_dataset *some = NULL;
    mercer_matrix scores;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(make_scores(self, &scope, m, &scores));
    MRC_TRY(mrc_scope_alloc(&scope, &rows, m, sizeof *rows, "row numbers"));
    for (int64_t i = 0; i < m; i++) rows[i] = (int64_t)((double)i * (double)held->rows / (double)m);
    MRC_TRY(mrc_dataset_take(&some, held, rows, m));
    MRC_TRY(mercer_model_predict(self->model, &scores, &some->x));
    if (temperature) MRC_TRY(calibrate_classes(self, some, &scores));
    return intervals ? save_scores(self, some, &scores) : MERCER_OK;
}

/* ---- Cross-validation ------------------------------------------------------------------------------------------ */

/* State of a cross-validation with FOLDS folds. Rows of a unit (data/equal_rows.h) are in the same fold, and each fold
   is scored by a model trained on the others. */
typedef struct folds {
    mercer_fitting *fitting;
    int64_t *order;           /* (n) row numbers, ordered by fold */
    int64_t start[FOLDS + 1]; /* first position of each fold in order */
    int number;               /* index of the current fold */
    bool calibrates;          /* the scores calibrate probabilities; otherwise they are only evaluated */
    bool stopped;             /* the caller's callback requested a stop, or the budget has ended */
} folds;

/* Returns whether the budget has ended, including the tenth by which a fit may exceed it. Always false for a
   cross-validation that calibrates, because probabilities are much worse without calibration. */
static bool is_late(const folds *self)
{
    double budget = self->fitting->options->search.budget;
    return budget > 0 && !self->calibrates && mrc_seconds() > self->fitting->opened + 1.1 * budget;
}

/* Progress callback of the fits of a fold. It reports the fold, not the progress within it, and stops the fit if the
   caller asks for it or time is up. */
static int watch_fold(void *user, const mercer_progress *progress)
{
    folds *self = user;
    const mercer_fit_run *run = &self->fitting->request->options.run;
    (void)progress;
    bool asked = mrc_progress(run->progress, run->progress_user, "calibration", self->number, FOLDS, 0) != 0;
    self->stopped = self->stopped || asked || is_late(self);
    return self->stopped;
}

/* Returns the class of a row; 0 for values. */
static int64_t class_of(const mercer_dataset *data, int64_t row)
{
    return data->labels ? data->labels[row] : 0;
}

/* Deals units to the folds in turn, class by class and in random order within a class, so that every fold has the same
   shares of classes. unit (n) and counts (2 * classes): scratch space. *possible: every class has at least FOLDS rows,
   and there are at least FOLDS units. */
static mercer_status deal_out(folds *self, int64_t *unit, int64_t *counts, bool *possible)
{
    const mercer_dataset *data = self->fitting->data;
    int64_t *first, units, n = data->rows, classes = data->labels ? data->outputs : 1, at = 0;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &first, n, sizeof *first, "row numbers"));
    MRC_TRY(mrc_row_units(data, NULL, n, unit, &units));
    for (int64_t i = n - 1; i >= 0; i--) first[unit[i]] = i;
    memset(counts, 0, (size_t)(2 * classes) * sizeof *counts);
    for (int64_t i = 0; i < n; i++) counts[class_of(data, i)]++;
    for (int64_t u = 0; u < units; u++) counts[classes + class_of(data, first[u])]++;
    *possible = units >= FOLDS;
    for (int64_t c = 0, begin = 0; c < classes; c++) {
        int64_t size = counts[classes + c];
        *possible = *possible && counts[c] >= FOLDS;
        counts[classes + c] = begin, begin += size;
    }
    for (int64_t k = 0; k < units; k++) { /* first[u] becomes the fold of unit u */
        int64_t u = mrc_random_permutation((mrc_rng){self->fitting->request->options.run.seed, RANDOM_FOLDS}, units, k);
        first[u] = counts[classes + class_of(data, first[u])]++ % FOLDS;
    }
    for (int fold = 0; fold < FOLDS; fold++, self->start[fold] = at)
        for (int64_t i = 0; i < n; i++)
            if (first[unit[i]] == fold) self->order[at++] = i;
    return MERCER_OK;
}

/* Trains a model on other rows, with the hyperparameters of `outer`: the whole fit or one of its members. The request
   is changed so that the inner fit neither searches, calibrates, holds out rows nor writes a checkpoint; `outer` gives
   it kernel and preprocessing. A ridge of 0 in the record means a fit without ridge, so the option becomes -1. */
static mercer_status train_like(folds *self, const mercer_fitting *outer, mercer_dataset *data, mercer_model **out)
{
    MRC_OWNED(mrc_release_fitting) mercer_fitting *inner = NULL;
    mrc_fit_request request = *outer->request;
    mercer_train_options *train = &request.train;
    mercer_fit_options *options = &request.options;
    const mercer_fit_options *whole = &self->fitting->request->options;
    *train = mrc_fit_train_options(outer);
    train->patience = 0, train->checkpoint = NULL, train->progress = watch_fold, train->progress_user = self;
    if (!(train->lambda > 0)) train->lambda = -1;
    /* Deadline and patience may have ended the training of `outer` before its last epoch. */
    if (train->epochs > 0) train->epochs = mrc_max(1, mrc_min(train->epochs, outer->training.epochs));
    options->validation.calibrate = options->validation.intervals = options->validation.score = MERCER_OFF;
    options->run.model = NULL, options->run.checkpoint = NULL;
    options->data.class_weight = options->validation.calibrate_to = NULL; /* already in the row weights */
    options->search.budget = 0;
    options->run.progress = whole->run.progress, options->run.progress_user = whole->run.progress_user;
    options->centers.count = outer->record.centers;
    if (!mrc_fit_is_augmented(options))
        options->centers.count = mrc_min(options->centers.count, data->rows); /* a fold has fewer rows */
    MRC_TRY(mrc_fitting_open(&inner, outer->context, data, &request));
    inner->outer = outer;
    MRC_TRY(mrc_fitting_run(inner));
    return mercer_fitting_take_model(inner, out);
}

/* Trains a model with the hyperparameters of each member, and averages these models. */
static mercer_status train_all_like(folds *self, mercer_dataset *data, mercer_model **out)
{
    MRC_TRY(train_like(self, self->fitting, data, out));
    for (int64_t m = 1; m < self->fitting->report.members; m++) {
        MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
        MRC_TRY(train_like(self, self->fitting->members[m], data, &model));
        MRC_TRY(mrc_model_append(*out, model));
        model = NULL;
    }
    return MERCER_OK;
}

/* Scores the samples of the current fold by a model trained on the other folds. rows (n): scratch space. */
static mercer_status score_fold(folds *self, const mercer_dataset *sorted, int64_t *rows, const mercer_matrix *scores)
{
    int64_t begin = self->start[self->number], end = self->start[self->number + 1], n = sorted->rows;
    MRC_OWNED(mrc_release_dataset) mercer_dataset *others = NULL;
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    memcpy(rows, self->order, (size_t)begin * sizeof *rows);
    memcpy(rows + begin, self->order + end, (size_t)(n - end) * sizeof *rows);
    mercer_matrix x = mrc_rows(&sorted->x, begin, end - begin), f = mrc_rows(scores, begin, end - begin);
    MRC_TRY(mrc_dataset_take(&others, self->fitting->data, rows, n - (end - begin)));
    MRC_TRY(train_all_like(self, others, &model));
    return end > begin ? mercer_model_predict(model, &f, &x) : MERCER_OK;
}

/* Evaluates the scores (n, c) of a dataset, with the model's temperature, curvature and class shifts. */
static mercer_status evaluate_scores(mercer_fitting *self, const mercer_dataset *dataset, const mercer_matrix *scores)
{
    mercer_evaluation_options options = {.struct_size = sizeof options,
                                         .task = dataset->task,
                                         .outputs = scores->cols,
                                         .rows = scores->rows,
                                         .class_shift = self->model->calibration.shift};
    const double *weights;
    MRC_SCOPE(scope, self->context);
    mercer_evaluation_free(self->scores);
    self->scores = NULL;
    if (dataset->task == MERCER_TASK_CLASSIFICATION) {
        options.temperature = mrc_model_temperature(self->model);
        options.curvature = self->model->calibration.curvature;
    }
    MRC_TRY(mrc_fit_population_weights(self, dataset, &scope, &weights));
    MRC_TRY(mercer_evaluation_create(&self->scores, self->context, &options));
    return mercer_evaluation_add(self->scores, scores, dataset->labels ? NULL : &dataset->y, dataset->labels, weights);
}

/* Makes cross-validated scores. If requested, calibrates probabilities and evaluates the scores. Rows are sorted by
   fold first, so that the rows of a fold are a contiguous part of the copied dataset and of the scores. Nothing is
   calibrated if a class has too few rows or the caller stopped. */
static mercer_status cross_validate(mercer_fitting *self, bool temperature)
{
    int64_t n = self->data->rows;
    MRC_OWNED(mrc_release_dataset) mercer_dataset *sorted = NULL;
    mercer_matrix scores;
    folds all = {.fitting = self, .calibrates = temperature};
    bool possible = true;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(make_scores(self, &scope, n, &scores));
    MRC_TRY(mrc_scope_alloc(&scope, &all.order, 2 * (n + self->data->outputs), sizeof *all.order, "folds"));
    MRC_TRY(deal_out(&all, all.order + n, all.order + 2 * n, &possible));
    MRC_TRY(mrc_dataset_take(&sorted, self->data, all.order, n));
    for (; possible && all.number < FOLDS && !all.stopped; all.number++)
        MRC_TRY(score_fold(&all, sorted, all.order + n, &scores));
    if (!possible || all.stopped) return MERCER_OK;
    if (temperature) MRC_TRY(calibrate_classes(self, sorted, &scores));
    return self->request->options.validation.score == MERCER_ON ? evaluate_scores(self, sorted, &scores) : MERCER_OK;
}

/* Rows with times are not cross-validated for a score, because a model would be trained on later rows than it scores.
   Synthetic rows without stored targets, and ranks, are not supported. */
bool mrc_fit_is_cross_validated(const mercer_fitting *self)
{
    const mercer_fit_options *options = &self->request->options;
    bool classes = self->info.task == MERCER_TASK_CLASSIFICATION && self->info.outputs > 1;
    bool ordered = self->data && self->data->key_kind == MRC_KEYS_TIMES;
    bool scored = options->validation.score == MERCER_ON && !ordered && self->info.rows <= MRC_CROSS_VALIDATED_ROWS;
    bool wanted = scored || (classes && options->validation.calibrate == MERCER_ON);
    bool stored = !self->data || self->data->labels || self->data->y.data;
    return wanted && stored && !self->validation && !options->run.comm;
}

/* Validation rows take precedence, because they cost no further training. A model that already has a temperature
   (given, or from a checkpoint) keeps it unless there are rows to measure it again. */
static mercer_status calibrate(mercer_fitting *self)
{
    const mercer_fit_options *options = &self->request->options;
    bool classes = self->info.task == MERCER_TASK_CLASSIFICATION && self->info.outputs > 1;
    bool temperature = classes && options->validation.calibrate != MERCER_OFF,
         intervals = options->validation.intervals != MERCER_OFF;
    if (options->validation.calibrate == MERCER_ON)
        self->report.temperature = MRC_TEMPERATURE_WITHOUT_DATA, self->report.curvature = 0;
    if (classes) MRC_TRY(shift_classes(self)); /* needed even if no temperature is found */
    if (self->validation && (temperature || intervals)) return calibrate_on_validation(self, temperature, intervals);
    if (!mrc_fit_is_cross_validated(self)) return MERCER_OK;
    /* the model was trained further, or resumed after its calibration */
    const mrc_calibration *before = &self->model->calibration;
    if (before->temperature > 0)
        self->report.temperature = before->temperature, self->report.curvature = before->curvature;
    temperature = temperature && options->validation.calibrate == MERCER_ON && !(before->temperature > 0);
    return temperature || options->validation.score == MERCER_ON ? cross_validate(self, temperature) : MERCER_OK;
}

mercer_status mrc_stage_calibrate(mercer_fitting *self)
{
    if (self->training.stopped != MERCER_STOP_CALLBACK) MRC_TRY(calibrate(self));
    const mrc_calibration *found = &self->model->calibration;
    if (found->temperature > 0) {
        mrc_fit_decide(self, "calibrate", "temperature", MRC_FROM_DATA, "%.4g", found->temperature);
        mrc_fit_decide(self, "calibrate", "curvature", MRC_FROM_DATA, "%.4g", found->curvature);
    }
    MRC_TRY(mrc_model_set_record(self->model, NULL)); /* only checkpoints have a record, not finished models */
    return mrc_fit_write_note(self);
}

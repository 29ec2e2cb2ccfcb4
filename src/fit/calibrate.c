/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From scores to probabilities:
 *
 *     P(class j | x) = exp(f_j(x) / T) / sum_k exp(f_k(x) / T)
 *
 * T minimises the weighted log loss on scores of samples that the model has not seen. The loss is a smooth function of
 * one number, convex in 1 / T; a golden-section search over log T finds it. One number cannot change which class is the
 * likeliest, and some hundred samples determine it. Cost: some 25 passes over the scores (n, c).
 *
 * Samples come from the validation set. Without one, every sample is scored by one of three models that were trained on
 * two thirds of the samples each: rows with the same features in the same third, classes spread evenly.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"

#include <math.h>
#include <string.h>

enum { FOLDS = 3, LEAST_SCORES = 8, MOST_SCORES = 10000 };
#define RANDOM_FOLDS UINT64_C(0x666f6c6473)

const double mrc_temperature_without_data = 0.25; /* a score of 1 against 0 becomes 0.98: sure, not certain */

/* ---- The temperature ------------------------------------------------------------------------------------------- */

/* The weighted mean of -log P(label) over the rows. */
static double log_loss(const mercer_matrix *scores, const int32_t *labels, const double *weights, double temperature)
{
    double sum = 0, total = 0;
    for (int64_t i = 0; i < scores->rows; i++) {
        double top = mrc_load(scores, i, 0), powers = 0, w = weights ? weights[i] : 1;
        for (int64_t j = 1; j < scores->cols; j++) top = fmax(top, mrc_load(scores, i, j));
        for (int64_t j = 0; j < scores->cols; j++) powers += exp((mrc_load(scores, i, j) - top) / temperature);
        sum += w * (log(powers) - (mrc_load(scores, i, labels[i]) - top) / temperature);
        total += w;
    }
    return sum / total;
}

mercer_status mrc_temperature(mercer_context *context, double *out, const mercer_matrix *scores, const int32_t *labels,
                              const double *weights)
{
    const double ratio = 0.6180339887498949;
    double low = log(1e-2), high = log(1e1), left = high - ratio * (high - low), right = low + ratio * (high - low);
    *out = mrc_temperature_without_data;
    if (scores->rows < LEAST_SCORES || scores->cols < 2) return MERCER_OK;
    double at_left = log_loss(scores, labels, weights, exp(left)),
           at_right = log_loss(scores, labels, weights, exp(right));
    while (high - low > 1e-4) {
        if (at_left <= at_right) {
            high = right, right = left, at_right = at_left;
            left = high - ratio * (high - low);
            at_left = log_loss(scores, labels, weights, exp(left));
        } else {
            low = left, left = right, at_left = at_right;
            right = low + ratio * (high - low);
            at_right = log_loss(scores, labels, weights, exp(right));
        }
    }
    if (!isfinite(at_left + at_right))
        return mrc_fail(context, MERCER_ERROR_DATA, "scores: their log loss is not finite");
    *out = exp((low + high) / 2);
    return MERCER_OK;
}

/* ---- Scores ---------------------------------------------------------------------------------------------------- */

/* What the model says of some rows of a dataset, into rows of `scores`, and their classes. */
static mercer_status score_rows(mercer_context *context, mercer_model *model, const mercer_dataset *data,
                                const int64_t *rows, int64_t count, const mercer_matrix *scores, int32_t *labels)
{
    void *memory;
    MRC_TRY(mrc_alloc(context, &memory, count, mrc_max(1, data->features) * mrc_dtype_size(data->dtype),
                      "samples to calibrate on"));
    mercer_matrix X = mrc_view(memory, count, data->features, data->dtype);
    mercer_status status = mercer_dataset_read(data, &X, NULL, labels, NULL, rows, 0);
    if (status == MERCER_OK) status = mercer_model_predict(model, scores, &X);
    mrc_free(context, memory);
    return status;
}

/* Room for what calibration is done on. */
typedef struct scored {
    mercer_matrix scores; /* (n, c) */
    int64_t *rows;        /* (n) numbers of the samples */
    int32_t *labels;      /* (n) */
    double *weights;      /* (n), or NULL */
} scored;

static void release_scored(mercer_context *context, scored *self)
{
    mrc_free(context, self->scores.data);
    mrc_free(context, self->rows);
    mrc_free(context, self->labels);
    mrc_free(context, self->weights);
}

static mercer_status make_scored(mercer_context *context, scored *self, int64_t n, int64_t c, mercer_dtype dtype,
                                 bool weighted)
{
    void *scores = NULL, *rows = NULL, *labels = NULL, *weights = NULL;
    mercer_status status = mrc_alloc(context, &scores, n, c * mrc_dtype_size(dtype), "scores");
    if (status == MERCER_OK) status = mrc_alloc(context, &rows, n, sizeof(int64_t), "row numbers");
    if (status == MERCER_OK) status = mrc_alloc(context, &labels, n, sizeof(int32_t), "labels");
    if (status == MERCER_OK && weighted) status = mrc_alloc(context, &weights, n, sizeof(double), "weights");
    *self = (scored){mrc_view(scores, n, c, dtype), rows, labels, weights};
    if (status != MERCER_OK) release_scored(context, self);
    return status;
}

static mercer_status calibrate_on_validation(mercer_fitting *self)
{
    const mercer_dataset *held = self->validation;
    mercer_matrix weights = mercer_model_weights(self->model);
    int64_t m = mrc_min(held->rows, MOST_SCORES);
    scored found;
    MRC_TRY(make_scored(self->context, &found, m, weights.cols, weights.dtype, held->weights != NULL));
    for (int64_t i = 0; i < m; i++) found.rows[i] = (int64_t)((double)i * (double)held->rows / (double)m);
    for (int64_t i = 0; i < m && found.weights; i++) found.weights[i] = held->weights[found.rows[i]];
    mercer_status status = score_rows(self->context, self->model, held, found.rows, m, &found.scores, found.labels);
    if (status == MERCER_OK)
        status = mrc_temperature(self->context, &self->report.temperature, &found.scores, found.labels, found.weights);
    release_scored(self->context, &found);
    return status;
}

/* ---- Cross-validation ------------------------------------------------------------------------------------------ */

typedef struct folds {
    mercer_fitting *fitting;
    int *of_row; /* (n) 0 .. FOLDS - 1 */
    int number;
    bool stopped;
} folds;

/* Every class has a sample for each fold; with the counts of the groups of equal features of each class. */
static bool count_classes(const mercer_dataset *data, const int64_t *first, int64_t groups, int64_t *starts)
{
    int64_t least = INT64_MAX;
    for (int64_t c = 0; c < data->outputs; c++) {
        int64_t count = 0;
        for (int64_t i = 0; i < data->rows; i++) count += data->labels[i] == c;
        least = mrc_min(least, count);
    }
    memset(starts, 0, (size_t)(data->outputs + 1) * sizeof *starts);
    for (int64_t g = 0; g < groups; g++) starts[data->labels[first[g]] + 1]++;
    for (int64_t c = 0; c < data->outputs; c++) starts[c + 1] += starts[c];
    return least >= FOLDS;
}

/* One class after the other, each in random order, to the folds in turn. *possible: there are enough of each. */
static mercer_status deal_out(const mercer_fitting *self, int *of_row, bool *possible)
{
    const mercer_dataset *data = self->data;
    mercer_context *context = self->context;
    int64_t *first, groups;
    void *group = NULL, *starts = NULL;
    MRC_TRY(mrc_alloc(context, &group, data->rows, 2 * sizeof(int64_t), "folds"));
    mercer_status status = mrc_alloc(context, &starts, data->outputs + 1, sizeof(int64_t), "folds");
    if (status == MERCER_OK) status = mrc_fit_distinct_rows(data, &first, &groups, group);
    if (status == MERCER_OK) {
        int64_t *place = starts, *of_group = (int64_t *)group + data->rows;
        *possible = count_classes(data, first, groups, place);
        for (int64_t k = 0; k < groups; k++) {
            int64_t g = mrc_random_permutation((mrc_rng){self->options.seed, RANDOM_FOLDS}, groups, k);
            of_group[g] = place[data->labels[first[g]]]++ % FOLDS;
        }
        for (int64_t i = 0; i < data->rows; i++) of_row[i] = (int)of_group[((int64_t *)group)[i]];
        mrc_free(context, first);
    }
    mrc_free(context, starts);
    mrc_free(context, group);
    return status;
}

static int watch_fold(void *user, const mercer_progress *progress)
{
    folds *self = user;
    const mercer_fit_options *options = &self->fitting->options;
    (void)progress;
    if (options->progress && options->progress(options->progress_user, "calibration", self->number, FOLDS, 0))
        self->stopped = true;
    return self->stopped;
}

/* The centers of a fold's model: those of the whole model, unless they are all samples; then the fold's. */
static mercer_status choose_fold_centers(const mercer_fitting *self, const mercer_dataset *part, mercer_matrix *out,
                                         void **memory)
{
    mercer_context *context = self->context;
    mercer_matrix whole = mercer_model_centers(self->model);
    bool samples = mrc_fit_samples_are_centers(self);
    int64_t *rows, count;
    *out = whole;
    if (self->options.given_centers || self->model_borrowed) return MERCER_OK;
    MRC_TRY(mrc_fit_distinct_rows(part, &rows, &count, NULL));
    if (samples) count = part->rows;
    mercer_status status = MERCER_OK;
    if (whole.rows >= count) {
        status = mrc_alloc(context, memory, count, mrc_max(1, whole.cols) * mrc_dtype_size(whole.dtype), "centers");
        *out = mrc_view(*memory, count, whole.cols, whole.dtype);
        if (status == MERCER_OK)
            status = mercer_dataset_read(part, out, NULL, NULL, self->applied, samples ? NULL : rows, 0);
    }
    mrc_free(context, rows);
    return status;
}

static mercer_status train_fold(folds *self, mercer_dataset *part, mercer_model *model)
{
    const mercer_fitting *fitting = self->fitting;
    mercer_trainer *trainer = NULL;
    mercer_source source = {0};
    mercer_stream_options stream = {
        .struct_size = sizeof stream, .seed = fitting->options.seed, .preprocess = fitting->applied};
    mercer_train_options options = fitting->train;
    options.patience = 0;
    options.checkpoint = NULL;
    options.progress = watch_fold;
    options.progress_user = self;
    options.memory = mrc_fit_memory_left(fitting, mercer_model_size(model));
    mercer_status status = mercer_source_from_dataset(&source, part, &stream);
    if (status == MERCER_OK) status = mercer_trainer_create(&trainer, model, NULL, &options);
    if (status == MERCER_OK) status = mercer_trainer_fit(trainer, &source, NULL);
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    return status;
}

/* A model of all samples but those of the fold. */
static mercer_status fit_fold(folds *self, mercer_dataset *part, mercer_model **out)
{
    mercer_fitting *fitting = self->fitting;
    mercer_matrix centers;
    void *memory = NULL;
    mercer_status status = choose_fold_centers(fitting, part, &centers, &memory);
    if (status == MERCER_OK)
        status = mercer_model_create(out, fitting->context, &fitting->kernel, &centers, part->outputs,
                                     mercer_model_weights(fitting->model).dtype);
    mrc_free(fitting->context, memory);
    if (status == MERCER_OK) status = mrc_fit_set_targets(fitting, *out, part);
    if (status == MERCER_OK) status = train_fold(self, part, *out);
    if (status == MERCER_OK) status = mercer_model_set_preprocess(*out, fitting->applied);
    return status;
}

/* The rows of the fold, or the others. */
static int64_t list_rows(const folds *self, bool in_fold, int64_t *rows)
{
    int64_t count = 0;
    for (int64_t i = 0; i < self->fitting->data->rows; i++)
        if ((self->of_row[i] == self->number) == in_fold) rows[count++] = i;
    return count;
}

/* Scores of the fold's samples, by the model of the others, into rows `at` and following; *count tells how many. */
static mercer_status score_fold(folds *self, scored *found, int64_t at, int64_t *count)
{
    mercer_fitting *fitting = self->fitting;
    mercer_dataset *part = NULL;
    mercer_model *model = NULL;
    int64_t *rows = found->rows + at;
    mercer_status status = mrc_dataset_take(&part, fitting->data, found->rows, list_rows(self, false, found->rows));
    if (status == MERCER_OK) status = fit_fold(self, part, &model);
    *count = list_rows(self, true, rows);
    mercer_matrix scores = mrc_rows(&found->scores, at, *count);
    if (status == MERCER_OK && *count > 0)
        status = score_rows(fitting->context, model, fitting->data, rows, *count, &scores, found->labels + at);
    for (int64_t i = 0; i < *count && found->weights; i++) found->weights[at + i] = fitting->data->weights[rows[i]];
    mercer_model_free(model);
    mrc_dataset_free(part);
    return status;
}

static mercer_status cross_validate(mercer_fitting *self)
{
    mercer_context *context = self->context;
    mercer_matrix weights = mercer_model_weights(self->model);
    folds all = {.fitting = self};
    bool possible = false;
    scored found;
    void *numbers;
    int64_t at = 0, count = 0;
    MRC_TRY(mrc_alloc(context, &numbers, self->data->rows, sizeof(int), "folds"));
    all.of_row = numbers;
    mercer_status status = deal_out(self, numbers, &possible);
    if (status == MERCER_OK && possible) {
        status = make_scored(context, &found, self->data->rows, weights.cols, weights.dtype, self->data->weights);
        possible = status == MERCER_OK;
    }
    for (; possible && status == MERCER_OK && all.number < FOLDS && !all.stopped; all.number++, at += count)
        status = score_fold(&all, &found, at, &count);
    if (possible && status == MERCER_OK && !all.stopped)
        status = mrc_temperature(context, &self->report.temperature, &found.scores, found.labels, found.weights);
    if (possible) release_scored(context, &found);
    mrc_free(context, numbers);
    return status;
}

mercer_status mrc_fit_calibrate(mercer_fitting *self)
{
    if (self->options.calibrate != MERCER_ON) return MERCER_OK;
    self->report.temperature = mrc_temperature_without_data;
    if (self->info.task != MERCER_TASK_CLASSIFICATION || self->info.outputs < 2) return MERCER_OK;
    if (self->validation) return calibrate_on_validation(self);
    return self->options.comm || !self->data->labels ? MERCER_OK : cross_validate(self);
}

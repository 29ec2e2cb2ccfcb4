/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The influence of the columns of a table on a model's predictions.
 *
 * A column of the table comprises all its features: the levels of a category, the flag for missing values. Without a
 * schema each feature is a column.
 *
 *   permutation          s - s_j, where s is the score (R2 or accuracy) on all rows, and s_j the score with column j
 *                        permuted: row i gets the column's features of row P(i), with P drawn from (seed, j,
 *                        repetition). The result is the mean over the repetitions, and its standard error.
 *   partial dependence   mean over rows i of f(x_i with column j set to v), for some values v
 *
 * Both process the rows in blocks. Cost of the permutation: columns x repetitions predictions of all rows; of partial
 * dependence: one prediction of up to DEPENDENCE_ROWS rows per value.
 */
#include "explain/importance.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "core/numbers/weighted.h"
#include "core/stage_progress.h"
#include "data/dataset.h"
#include "data/schema/date.h"
#include "explain/model_columns.h"
#include "metrics/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MOST_ROWS and BLOCK_BYTES limit a block of rows. DEPENDENCE_ROWS: evenly spaced rows of a partial dependence. */
enum { USUAL_REPEATS = 5, MOST_ROWS = 4096, BLOCK_BYTES = 16 << 20, DEPENDENCE_ROWS = 512 };

/* ---- Scores ---------------------------------------------------------------------------------------------------- */

/* Rows that are predicted together, and the rows that permuted values come from. x and other: (most, d) features; f and
   y: (most, c) predictions and targets. Classes use labels instead of y. */
typedef struct block {
    mercer_model *model;
    const mercer_dataset *data;
    int64_t most;
    mercer_matrix x, other, f, y;
    int32_t *labels;
    int64_t *partners; /* (most) row numbers that permuted values come from */
} block;

/* Allocates a block of about BLOCK_BYTES. */
static mercer_status open_block(block *out, mrc_scope *scope, mercer_model *model, const mercer_dataset *data)
{
    static const char what[] = "rows of a table";
    int64_t d = data->features, c = mrc_max(1, model->weights.cols);
    mercer_dtype real =
        mrc_units_given(&model->units) && data->task == MERCER_TASK_REGRESSION ? MERCER_F64 : model->weights.dtype;
    int64_t row = 2 * mrc_round_up(d * mrc_dtype_size(data->dtype), 8) + 16 * c + 16;
    int64_t most = mrc_min(data->rows, mrc_max(64, mrc_min(MOST_ROWS, BLOCK_BYTES / row)));
    *out = (block){.model = model, .data = data, .most = most};
    MRC_TRY(mrc_scope_view(scope, &out->x, most, d, data->dtype, what));
    MRC_TRY(mrc_scope_view(scope, &out->other, most, d, data->dtype, what));
    MRC_TRY(mrc_scope_view(scope, &out->f, most, c, real, what));
    MRC_TRY(mrc_scope_view(scope, &out->y, most, c, MERCER_F64, what));
    MRC_TRY(mrc_scope_alloc(scope, &out->labels, most, sizeof *out->labels, what));
    return mrc_scope_alloc(scope, &out->partners, most, sizeof *out->partners, what);
}

/* Replaces the features of a column by the same features of other rows. */
static void mix_column(const mercer_matrix *x, const mercer_matrix *other, const mrc_column *column)
{
    size_t size = (size_t)mrc_dtype_size(x->dtype), begin = (size_t)column->first * size;
    for (int64_t i = 0; i < x->rows; i++)
        memcpy((char *)mrc_row(x, i) + begin, (const char *)mrc_row(other, i) + begin, (size_t)column->width * size);
}

/* Predicts a block of rows, with `column` permuted unless it is NULL, and adds it to the sums of an evaluation. Row i
   of the dataset gets the column of row P(i); P is evaluated per row, so no permutation is stored. */
static mercer_status add_rows(block *self, mercer_evaluation *sums, int64_t first, const mrc_column *column,
                              mrc_rng rng)
{
    const mercer_dataset *data = self->data;
    int64_t m = mrc_min(self->most, data->rows - first);
    bool classes = data->labels != NULL || data->task == MERCER_TASK_CLASSIFICATION;
    mercer_matrix x = mrc_rows(&self->x, 0, m), other = mrc_rows(&self->other, 0, m), f = mrc_rows(&self->f, 0, m),
                  y = mrc_rows(&self->y, 0, m);
    mrc_dataset_fetch(data, NULL, first, &x, classes ? NULL : &y, classes ? self->labels : NULL);
    if (column) {
        for (int64_t i = 0; i < m; i++) self->partners[i] = mrc_random_permutation(rng, data->rows, first + i);
        mrc_dataset_fetch(data, self->partners, 0, &other, NULL, NULL);
        mix_column(&x, &other, column);
    }
    MRC_TRY(mercer_model_predict(self->model, &f, &x));
    return mrc_evaluation_add(sums, &f, classes ? NULL : &y, classes ? self->labels : NULL,
                              data->weights ? data->weights + first : NULL);
}

/* Computes R2 or accuracy, with `column` permuted unless it is NULL. memory = 1: the evaluation saves only one row for
   ranking, because these scores need sums only. */
static mercer_status score_permuted(block *self, const mrc_column *column, mrc_rng rng, double *out)
{
    const mercer_dataset *data = self->data;
    MRC_OWNED(mrc_release_evaluation) mercer_evaluation *sums = NULL;
    mercer_metrics found = {.struct_size = sizeof found};
    mercer_evaluation_options options = {.struct_size = sizeof options,
                                         .task = data->task,
                                         .outputs = data->outputs,
                                         .rows = data->rows,
                                         .temperature = mrc_model_temperature(self->model),
                                         .curvature = self->model->calibration.curvature,
                                         .class_shift = self->model->calibration.shift,
                                         .memory = 1};
    MRC_TRY(mrc_evaluation_create(&sums, self->model->context, &options));
    for (int64_t first = 0; first < data->rows; first += self->most) MRC_TRY(add_rows(self, sums, first, column, rng));
    MRC_TRY(mercer_evaluation_query(sums, &found));
    *out = data->task == MERCER_TASK_CLASSIFICATION ? found.accuracy : found.r2;
    return MERCER_OK;
}

/* ---- Permutation ----------------------------------------------------------------------------------------------- */

/* Computes mean and standard error of the decrease for every column, and reports progress. */
static mercer_status permute(mercer_importance *self, block *rows, const mrc_model_columns *all,
                             const mercer_permutation_options *options)
{
    for (int64_t j = 0; j < self->count; j++) {
        mrc_column column = mrc_model_column(all, rows->model, j);
        double mean = 0, squares = 0; /* Welford's algorithm */
        for (int64_t k = 0; k < self->repeats; k++) {
            double s;
            mrc_rng rng = {options->seed, (uint64_t)(j * self->repeats + k + 1)};
            MRC_TRY(score_permuted(rows, &column, rng, &s));
            double drop = self->score - s, delta = drop - mean;
            mean += delta / (double)(k + 1);
            squares += delta * (drop - mean);
            if (mrc_progress(options->progress, options->progress_user, "importance", j * self->repeats + k + 1,
                             self->count * self->repeats, 0))
                return mrc_fail(self->context, MERCER_ERROR_CALLBACK, "the progress callback stopped the permutation");
        }
        self->drops[j] = mean;
        self->errors[j] =
            self->repeats > 1 ? sqrt(squares / (double)(self->repeats - 1) / (double)self->repeats) : (double)NAN;
    }
    return MERCER_OK;
}

/* Allocates the results and measures them. */
static mercer_status measure_columns(mercer_importance *self, mercer_model *model, const mercer_dataset *data,
                                     const mercer_permutation_options *options)
{
    MRC_OWNED(mrc_model_columns_close) mrc_model_columns all = {0};
    block rows;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_model_columns_open(&all, model));
    self->count = all.count;
    MRC_TRY(mrc_model_columns_names(&all, model, &self->names));
    MRC_TRY(mrc_alloc(self->context, &self->drops, self->count, 2 * sizeof(double), "importance of columns"));
    self->errors = self->drops + self->count;
    MRC_TRY(open_block(&rows, &scope, model, data));
    MRC_TRY(score_permuted(&rows, NULL, (mrc_rng){0}, &self->score));
    return permute(self, &rows, &all, options);
}

mercer_status mrc_importance_measure(mercer_importance **out, mercer_model *model, const mercer_dataset *data,
                                     const mercer_permutation_options *options)
{
    MRC_OWNED(mrc_release_importance) mercer_importance *self = NULL;
    MRC_TRY(mrc_alloc_zero(model->context, &self, 1, sizeof(mercer_importance), "importance of columns"));
    *self = (mercer_importance){.context = model->context,
                                .task = data->task,
                                .rows = data->rows,
                                .repeats = options->repeats ? options->repeats : USUAL_REPEATS};
    MRC_TRY(measure_columns(self, model, data, options));
    *out = self, self = NULL;
    return MERCER_OK;
}

void mrc_importance_free(mercer_importance *importance)
{
    if (!importance) return;
    MRC_FREE_ALL(importance->context, importance->names, importance->drops, importance);
}

/* ---- Partial dependence ---------------------------------------------------------------------------------------- */

/* Writes up to `capacity` distinct values of a column to `out`, in ascending order, including the smallest and the
   largest; missing values are ignored. Returns the number of values. */
static int64_t column_quantiles(const mrc_column *column, const mercer_matrix *x, double *list, double *out,
                                int64_t capacity)
{
    int64_t found = 0, kept = 0, count = 0;
    bool has_flag = column->missing > 0;
    for (int64_t i = 0; i < x->rows; i++)
        if (!has_flag || mrc_load(x, i, column->first + column->width - 1) == 0)
            list[found++] = mrc_load(x, i, column->first);
    mrc_doubles_sort(list, found);
    for (int64_t i = 0; i < found; i++)
        if (kept == 0 || list[i] != list[kept - 1]) list[kept++] = list[i];
    int64_t most = mrc_min(capacity, kept);
    for (int64_t k = 0; k < most; k++) out[count++] = list[most > 1 ? k * (kept - 1) / (most - 1) : 0];
    return count;
}

/* Sets the features (width) of a category, which must be 0 before, to the features of a level. */
static void set_level(const mrc_column *column, int64_t level, double *to)
{
    int64_t count = column->statistics;
    to[level] = 1;
    for (int64_t k = 0; k < count; k++) to[column->width - count + k] = column->statistic[level * count + k];
}

/* Sets a column of all rows to a value, as if every cell of the column contained the value. Sets all features of the
   column, and sets its flag for missing values to 0. The origin of the column is already subtracted from the value. A
   date also has the features of its season. row (d): scratch space. */
static void set_column(const mrc_column *column, const mercer_matrix *x, double value, double *row)
{
    double *to = row + column->first;
    for (int64_t i = 0; i < x->rows; i++) {
        mrc_load_row_f64(x, i, row);
        for (int64_t j = 0; j < column->width; j++) to[j] = 0;
        if (column->kind == MRC_KIND_CATEGORY)
            set_level(column, (int64_t)value, to);
        else
            to[0] = value;
        if (column->kind == MRC_KIND_DATE) mrc_date_season(value + column->origin, &to[1], &to[2]);
        mrc_store_row_f64(x, i, row);
    }
}

/* Reads evenly spaced rows of the dataset. */
static void fetch_some(const block *rows, const mercer_matrix *x)
{
    for (int64_t i = 0; i < x->rows; i++) rows->partners[i] = i * rows->data->rows / x->rows;
    mrc_dataset_fetch(rows->data, rows->partners, 0, x, NULL, NULL);
}

/* Chooses the values, and computes the mean prediction for each of them. The origin of a number or date is added to the
   values at the end, because features do not include it. */
static mercer_status depend(const block *rows, const mrc_column *column, double *values, const mercer_matrix *F,
                            int64_t *count)
{
    double list[DEPENDENCE_ROWS], *row;
    int64_t m = mrc_min(rows->most, DEPENDENCE_ROWS);
    mercer_matrix x = mrc_rows(&rows->x, 0, m), f = mrc_rows(&rows->f, 0, m);
    MRC_SCOPE(scope, rows->model->context);
    MRC_TRY(mrc_scope_alloc(&scope, &row, x.cols, sizeof *row, "a row of a table"));
    fetch_some(rows, &x);
    if (column->kind == MRC_KIND_CATEGORY) {
        *count = mrc_min(F->rows, column->level_count);
        for (int64_t k = 0; k < *count; k++) values[k] = (double)k;
    } else {
        *count = column_quantiles(column, &x, list, values, F->rows);
    }
    for (int64_t k = 0; k < *count; k++) {
        set_column(column, &x, values[k], row);
        MRC_TRY(mercer_model_predict(rows->model, &f, &x));
        for (int64_t l = 0; l < F->cols; l++) {
            double sum = 0;
            for (int64_t i = 0; i < m; i++) sum += mrc_load(&f, i, l);
            mrc_store(F, k, l, sum / (double)m);
        }
    }
    for (int64_t k = 0; k < *count; k++) values[k] += column->origin;
    return MERCER_OK;
}

mercer_status mrc_partial_dependence(mercer_model *model, const mercer_dataset *data, int64_t column, double *values,
                                     const mercer_matrix *F, int64_t *count)
{
    MRC_OWNED(mrc_model_columns_close) mrc_model_columns all = {0};
    block rows;
    MRC_SCOPE(scope, model->context);
    MRC_TRY(mrc_model_columns_open(&all, model));
    if (column < 0 || column >= all.count)
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "column is %lld, but the model has %lld columns",
                        (long long)column, (long long)all.count);
    MRC_TRY(open_block(&rows, &scope, model, data));
    mrc_column one = mrc_model_column(&all, model, column);
    return depend(&rows, &one, values, F, count);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transform of the targets (core/numbers/units.h). It is determined once per fit, from the training rows, and used
 * by the search, by training and, as part of the model, by predictions.
 *
 *   none, center, standardize   y; y minus the mean; y minus the mean, divided by the standard deviation
 *   log    g(y) = log(y + shift), standardized: the shift is 0 if all targets are above 0, and 1 if the smallest is
 *          0; a target below 0 is an error
 *   rank   normal quantile of the rank, (weight of smaller targets + half the weight of equal targets) / W,
 *          standardized; up to 1,000 evenly spaced ranks are stored, including the smallest and the largest
 *
 * For log and rank, ranks and moments are computed from up to a million evenly spaced rows. Cost: a pass over the
 * targets, and a sort for rank.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/target_curve.h"
#include "core/numbers/weighted.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* A sorted million rows determine every rank to 1e-6. With MOST_KNOTS ranks the interpolation error of a rank is at
   most 1e-3, and a model file grows by 16 kB per output. */
enum { MOST_ROWS = 1000000, MOST_KNOTS = 1000 };

/* Targets of a sample of the rows. */
typedef struct target_sample {
    mercer_matrix y;   /* (m, c) */
    double *weights;   /* (m) row weights */
    mercer_matrix row; /* (1, d) scratch space: synthetic samples are computed with their features */
} target_sample;

/* Reads the target of a row into row i of self->y. */
static void read_target(const mercer_dataset *data, target_sample *self, int64_t row, int64_t i)
{
    mercer_matrix to = mrc_rows(&self->y, i, 1);
    if (data->synth)
        mrc_dataset_fetch(data, &row, 0, &self->row, &to, NULL);
    else
        mrc_dataset_target(data, row, &self->y, i);
}

/* Reads targets and weights of evenly spaced rows, at most MOST_ROWS. */
static mercer_status open_sample(const mercer_dataset *data, mrc_scope *scope, target_sample *self)
{
    int64_t m = mrc_min(data->rows, MOST_ROWS);
    MRC_TRY(mrc_scope_view(scope, &self->y, m, data->outputs, MERCER_F64, "targets"));
    MRC_TRY(mrc_scope_view(scope, &self->row, 1, data->features, data->dtype, "a sample"));
    MRC_TRY(mrc_scope_alloc(scope, &self->weights, m, sizeof *self->weights, "weights"));
    for (int64_t i = 0; i < m; i++) {
        int64_t row = (int64_t)((double)i * (double)data->rows / (double)m);
        read_target(data, self, row, i);
        self->weights[i] = data->weights ? data->weights[row] : 1;
    }
    return MERCER_OK;
}

/* ---- log ------------------------------------------------------------------------------------------------------- */

/* Updates least (c) with the smallest target of each output, over rows with a positive weight. Fails if one of these
   targets is negative. */
static mercer_status find_least(const mercer_dataset *data, double *least)
{
    target_sample self;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_view(&scope, &self.y, 1, data->outputs, MERCER_F64, "targets"));
    MRC_TRY(mrc_scope_view(&scope, &self.row, 1, data->features, data->dtype, "a sample"));
    for (int64_t i = 0; i < data->rows; i++) {
        if (data->weights && !(data->weights[i] > 0)) continue;
        read_target(data, &self, i, 0);
        for (int64_t j = 0; j < data->outputs; j++) {
            double value = mrc_load(&self.y, 0, j);
            least[j] = fmin(least[j], value);
            if (value < 0)
                return mrc_fail(data->context, MERCER_ERROR_DATA,
                                "target_transform log: target %lld of sample %lld (from 0) is %g, which has no "
                                "logarithm; use rank or standardize",
                                (long long)j, (long long)i, value);
        }
    }
    return MERCER_OK;
}

/* Chooses the shifts of log. Validation rows count, too, because their loss needs the logarithms of their targets. */
static mercer_status make_log(mercer_fitting *self, const target_sample *sample, mrc_scope *scope,
                              mercer_matrix *numbers)
{
    int64_t c = sample->y.cols;
    MRC_TRY(mrc_scope_view(scope, numbers, c, 1, MERCER_F64, "a transform of targets"));
    double *shift = numbers->data;
    for (int64_t j = 0; j < c; j++) shift[j] = (double)INFINITY;
    MRC_TRY(find_least(self->data, shift));
    if (self->validation) MRC_TRY(find_least(self->validation, shift));
    for (int64_t j = 0; j < c; j++) shift[j] = shift[j] > 0 ? 0 : 1;
    return MERCER_OK;
}

/* ---- rank ------------------------------------------------------------------------------------------------------ */

/* Sorts a list of values and merges equal ones; `weight` becomes the rank of the value, in 0 .. 1. Returns the new
   length. */
static int64_t rank_values(mrc_weighted *list, int64_t count)
{
    double all = 0, below = 0;
    int64_t distinct = 0;
    mrc_weighted_sort(list, count);
    for (int64_t i = 0; i < count; i++) all += list[i].weight;
    for (int64_t i = 0, next; i < count; i = next) {
        double own = list[i].weight;
        /* Start at i + 1, because a NaN is not equal to itself. */
        for (next = i + 1; next < count && list[next].value == list[i].value; next++) own += list[next].weight;
        list[distinct++] = (mrc_weighted){list[i].value, (below + own / 2) / all};
        below += own;
    }
    return distinct;
}

/* Writes k knots of output j: values (k), then their normal quantiles (k). Returns false if the output is constant. */
static bool fill_knots(const target_sample *sample, int64_t j, mrc_weighted *list, double *values, int64_t k)
{
    int64_t count = 0;
    for (int64_t i = 0; i < sample->y.rows; i++)
        if (sample->weights[i] > 0) list[count++] = (mrc_weighted){mrc_load(&sample->y, i, j), sample->weights[i]};
    count = count > 0 ? rank_values(list, count) : 0;
    for (int64_t i = 0; i < k && count > 1; i++) {
        int64_t kept = mrc_min(k, count), at = i < kept ? (kept - 1 > 0 ? i * (count - 1) / (kept - 1) : 0) : count - 1;
        values[i] = list[at].value;
        values[k + i] = mrc_normal_quantile(list[at].weight);
    }
    return count > 1;
}

/* Makes the knots of the rank transform: (2 c, k), for each output a row of values and a row of their normal quantiles.
   A constant output has no ranks. */
static mercer_status make_ranks(mercer_fitting *self, const target_sample *sample, mrc_scope *scope,
                                mercer_matrix *numbers)
{
    int64_t c = sample->y.cols, k = mrc_max(2, mrc_min(sample->y.rows, MOST_KNOTS));
    mrc_weighted *list;
    MRC_SCOPE(own, self->context);
    MRC_TRY(mrc_scope_view(scope, numbers, 2 * c, k, MERCER_F64, "a transform of targets"));
    MRC_TRY(mrc_scope_alloc(&own, &list, sample->y.rows, sizeof *list, "ranks of targets"));
    for (int64_t j = 0; j < c; j++)
        if (!fill_knots(sample, j, list, mrc_row(numbers, 2 * j), k))
            return mrc_fail(self->context, MERCER_ERROR_DATA,
                            "target_transform rank: target %lld (from 0) is constant; use center or standardize",
                            (long long)j);
    return MERCER_OK;
}

/* ---- All transforms ---------------------------------------------------------------------------------------------- */

/* Sets the units to a curve g, and their offset and scale to mean and deviation of g(y). */
static mercer_status set_curve(mercer_fitting *self, const target_sample *sample, mrc_curve_kind kind,
                               const mercer_matrix *numbers)
{
    int64_t c = sample->y.cols;
    mrc_curve curve = {0};
    double *mean;
    MRC_TRY(mrc_curve_set(&curve, self->context, kind, c, numbers));
    for (int64_t i = 0; i < sample->y.rows; i++)
        for (int64_t j = 0; j < c; j++)
            mrc_store(&sample->y, i, j, mrc_curve_apply(&curve, j, mrc_load(&sample->y, i, j)));
    mrc_curve_clear(&curve, self->context);
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &mean, 2 * c, sizeof *mean, "moments of the targets"));
    MRC_TRY(mercer_target_moments(self->context, mean, mean + c, &sample->y, sample->weights));
    MRC_TRY(mrc_units_set(&self->units, self->context, c, mean, mean + c));
    return mrc_units_set_curve(&self->units, self->context, kind, c, numbers);
}

/* Determines a transform with a curve (log or rank), for regression only: the scores of classes are 0 and 1. */
static mercer_status find_curve(mercer_fitting *self, const char *how)
{
    mrc_curve_kind kind = MRC_CURVE_NONE;
    target_sample sample;
    mercer_matrix numbers;
    if (self->data->task == MERCER_TASK_CLASSIFICATION)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "target_transform %s is only for regression; use center",
                        how);
    mrc_curve_find(how, &kind);
    MRC_SCOPE(scope, self->context);
    MRC_TRY(open_sample(self->data, &scope, &sample));
    MRC_TRY((kind == MRC_CURVE_LOG ? make_log : make_ranks)(self, &sample, &scope, &numbers));
    return set_curve(self, &sample, kind, &numbers);
}

/* Distance of the targets' mean from 0, in standard deviations, above which a warning about the missing intercept is
   issued. Measured on two synthetic tables of 1,500 rows, with kernels laplace and gaussian and with a search: ratio of
   the test error to that with standardized targets 0.99 to 1.27 at distance 3, 0.98 to 3.3 at 10, 1.01 to 9.5 at 20,
   1.02 to 200 at 100. */
#define FAR_FROM_ZERO 10

/* Warns if targets without a transform have a mean far from 0: the model has no intercept, so it must learn the mean
   with its kernel. */
static mercer_status warn_if_far_from_zero(const mercer_fitting *self)
{
    int64_t c = self->data->outputs;
    double *mean;
    bool far = false;
    if (self->data->task == MERCER_TASK_CLASSIFICATION) return MERCER_OK;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &mean, 2 * c, sizeof *mean, "moments of the targets"));
    MRC_TRY(mrc_dataset_moments(self->data, mean, mean + c));
    for (int64_t j = 0; j < c; j++) far = far || fabs(mean[j]) > FAR_FROM_ZERO * mean[c + j];
    if (far)
        mrc_warn(self->context, "data.target_transform",
                 "target_transform none: the mean of the targets is more than %d standard deviations from 0, and the "
                 "model has no intercept; use center or standardize",
                 FAR_FROM_ZERO);
    return MERCER_OK;
}

mercer_status mrc_fit_find_units(mercer_fitting *self)
{
    const mercer_dataset *data = self->data;
    const char *how = self->options->data.target_transform;
    double *mean;
    if (data->task == MERCER_TASK_UNLABELED) return MERCER_OK;
    if (!how || strcmp(how, "auto") == 0) how = data->task == MERCER_TASK_CLASSIFICATION ? "center" : "standardize";
    if (strcmp(how, "none") == 0) return warn_if_far_from_zero(self);
    if (strcmp(how, "log") == 0 || strcmp(how, "rank") == 0) return find_curve(self, how);
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &mean, 2 * data->outputs, sizeof *mean, "moments of the targets"));
    double *deviation = mean + data->outputs;
    MRC_TRY(mrc_dataset_moments(data, mean, deviation));
    return mrc_units_set(&self->units, self->context, data->outputs, mean,
                         strcmp(how, "center") == 0 ? NULL : deviation);
}

mercer_status mrc_fit_set_units(mercer_fitting *self)
{
    const mrc_units *units = &self->units;
    const mrc_curve *curve = &units->curve;
    if (!mrc_units_given(units)) return MERCER_OK;
    MRC_TRY(mercer_model_set_targets(self->model, units->offset, units->scale));
    if (curve->kind == MRC_CURVE_NONE) return MERCER_OK;
    int64_t rows = (curve->kind == MRC_CURVE_RANK ? 2 : 1) * self->info.outputs;
    mercer_matrix numbers = mrc_view(curve->numbers, rows, curve->count, MERCER_F64);
    return mrc_units_set_curve(&self->model->units, self->context, curve->kind, self->info.outputs, &numbers);
}

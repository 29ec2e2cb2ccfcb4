/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transforms log and rank of targets (core/numbers/target_curve.h), and mean and deviation of what they give.
 *
 *   log    the shift is 0 if all targets are above 0, and 1 if the smallest is 0; one below 0 is refused
 *   rank   of sorted targets, equal ones together, the rank of a value is (weight below it + half of its own) / W; at
 *          most 1,000 of the values are kept, spread evenly, the smallest and the largest among them
 *
 * Ranks and moments are those of at most a million rows, spread evenly. Cost: a pass over the targets, and a sort.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/target_curve.h"
#include "core/numbers/weighted.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 1000000, MOST_KNOTS = 1000 };

/* Targets of some rows. */
typedef struct target_sample {
    mercer_matrix y;        /* (m, c) owned */
    double *weights, *knot; /* (m), (2 c, k) owned, or NULL */
    mercer_matrix row;      /* (1, d) owned: room for a computed sample */
} target_sample;

static void read_target(const mercer_dataset *data, target_sample *self, int64_t row, int64_t i)
{
    mercer_matrix to = mrc_rows(&self->y, i, 1);
    if (data->synth)
        mrc_dataset_fetch(data, &row, 0, &self->row, &to, NULL);
    else
        mrc_dataset_target(data, row, &self->y, i);
}

static void close_sample(mercer_context *context, target_sample *self)
{
    mrc_free(context, self->y.data);
    mrc_free(context, self->weights);
    mrc_free(context, self->knot);
    mrc_free(context, self->row.data);
}

static mercer_status open_sample(const mercer_dataset *data, target_sample *self)
{
    mercer_context *context = data->context;
    int64_t m = mrc_min(data->rows, MOST_ROWS), c = data->outputs;
    void *weights = NULL;
    *self =
        (target_sample){.y = mrc_view(NULL, m, c, MERCER_F64), .row = mrc_view(NULL, 1, data->features, data->dtype)};
    MRC_TRY(mrc_alloc(context, &self->y.data, m * c, sizeof(double), "targets"));
    MRC_TRY(mrc_alloc(context, &weights, m, sizeof(double), "weights"));
    self->weights = weights;
    MRC_TRY(mrc_alloc(context, &self->row.data, data->features, mrc_dtype_size(data->dtype), "a sample"));
    for (int64_t i = 0; i < m; i++) {
        int64_t row = (int64_t)((double)i * (double)data->rows / (double)m);
        read_target(data, self, row, i);
        self->weights[i] = data->weights ? data->weights[row] : 1;
    }
    return MERCER_OK;
}

/* ---- log ------------------------------------------------------------------------------------------------------- */

/* The smallest target of each output, least (c), of rows that count. */
static mercer_status find_least(const mercer_dataset *data, double *least)
{
    target_sample self;
    void *room = NULL;
    int64_t c = data->outputs;
    self =
        (target_sample){.y = mrc_view(NULL, 1, c, MERCER_F64), .row = mrc_view(NULL, 1, data->features, data->dtype)};
    mercer_status status = mrc_alloc(data->context, &self.y.data, c, sizeof(double), "targets");
    if (status == MERCER_OK)
        status = mrc_alloc(data->context, &room, data->features, mrc_dtype_size(data->dtype), "a sample");
    self.row.data = room;
    for (int64_t i = 0; i < data->rows && status == MERCER_OK; i++) {
        if (data->weights && !(data->weights[i] > 0)) continue;
        read_target(data, &self, i, 0);
        for (int64_t j = 0; j < c && status == MERCER_OK; j++) {
            double value = mrc_load(&self.y, 0, j);
            least[j] = fmin(least[j], value);
            if (value < 0)
                status = mrc_fail(data->context, MERCER_ERROR_DATA,
                                  "target_transform log: target %lld of sample %lld (from 0) is %g, which has no "
                                  "logarithm; use rank or standardise",
                                  (long long)j, (long long)i, value);
        }
    }
    close_sample(data->context, &self);
    return status;
}

static mercer_status make_log(mercer_fitting *self, target_sample *sample, mercer_matrix *numbers)
{
    int64_t c = self->data->outputs;
    void *memory;
    MRC_TRY(mrc_alloc(self->context, &memory, c, sizeof(double), "a transform of targets"));
    double *shift = sample->knot = memory;
    for (int64_t j = 0; j < c; j++) shift[j] = (double)INFINITY;
    MRC_TRY(find_least(self->data, shift));
    if (self->validation) MRC_TRY(find_least(self->validation, shift));
    for (int64_t j = 0; j < c; j++) shift[j] = shift[j] > 0 ? 0 : 1;
    *numbers = mrc_view(shift, c, 1, MERCER_F64);
    return MERCER_OK;
}

/* ---- rank ------------------------------------------------------------------------------------------------------ */

/* Sorts and joins equal values; what is left of `count` has the rank, weight, in place of its weight. */
static int64_t rank_values(mrc_weighted *list, int64_t count)
{
    double all = 0, below = 0;
    int64_t distinct = 0;
    mrc_weighted_sort(list, count);
    for (int64_t i = 0; i < count; i++) all += list[i].weight;
    for (int64_t i = 0, next; i < count; i = next) {
        double own = 0;
        for (next = i; next < count && list[next].value == list[i].value; next++) own += list[next].weight;
        list[distinct++] = (mrc_weighted){list[i].value, (below + own / 2) / all};
        below += own;
    }
    return distinct;
}

/* k knots of output j: values, and behind them their normal quantiles. */
static mercer_status fill_knots(const target_sample *sample, int64_t j, mrc_weighted *list, double *values, int64_t k)
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
    return count > 1 ? MERCER_OK : MERCER_ERROR_DATA;
}

static mercer_status make_ranks(mercer_fitting *self, target_sample *sample, mercer_matrix *numbers)
{
    int64_t c = self->data->outputs, k = mrc_max(2, mrc_min(sample->y.rows, MOST_KNOTS));
    void *memory, *list;
    MRC_TRY(mrc_alloc(self->context, &memory, 2 * c * k, sizeof(double), "a transform of targets"));
    sample->knot = memory;
    MRC_TRY(mrc_alloc(self->context, &list, sample->y.rows, sizeof(mrc_weighted), "ranks of targets"));
    mercer_status status = MERCER_OK;
    for (int64_t j = 0; j < c && status == MERCER_OK; j++) {
        status = fill_knots(sample, j, list, sample->knot + 2 * j * k, k);
        if (status != MERCER_OK)
            mrc_fail(self->context, status, "target_transform rank: target %lld (from 0) is constant", (long long)j);
    }
    mrc_free(self->context, list);
    *numbers = mrc_view(sample->knot, 2 * c, k, MERCER_F64);
    return status;
}

/* ---- Both ------------------------------------------------------------------------------------------------------ */

/* Offset and scale are those of g(y). */
static mercer_status set_units(mercer_fitting *self, const target_sample *sample, mrc_curve_kind kind,
                               const mercer_matrix *numbers)
{
    int64_t c = sample->y.cols;
    mrc_curve curve = {0};
    void *memory;
    MRC_TRY(mrc_curve_set(&curve, self->context, kind, c, numbers));
    for (int64_t i = 0; i < sample->y.rows; i++)
        for (int64_t j = 0; j < c; j++)
            mrc_store(&sample->y, i, j, mrc_curve_enter(&curve, j, mrc_load(&sample->y, i, j)));
    mrc_curve_clear(&curve, self->context);
    MRC_TRY(mrc_alloc(self->context, &memory, 2 * c, sizeof(double), "moments of the targets"));
    double *mean = memory, *deviation = mean + c;
    mercer_status status = mercer_target_moments(self->context, mean, deviation, &sample->y, sample->weights);
    if (status == MERCER_OK) status = mercer_model_set_targets(self->model, mean, deviation);
    if (status == MERCER_OK) status = mercer_model_set_target_curve(self->model, mrc_curve_name(kind), numbers);
    mrc_free(self->context, memory);
    return status;
}

mercer_status mrc_fit_bend_targets(mercer_fitting *self, const char *how)
{
    mrc_curve_kind kind = MRC_CURVE_NONE;
    target_sample sample;
    mercer_matrix numbers = {0};
    if (self->data->task == MERCER_TASK_CLASSIFICATION)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "target_transform %s is for values, not for classes",
                        how);
    mrc_curve_find(how, &kind);
    mercer_status status = open_sample(self->data, &sample);
    if (status == MERCER_OK) status = (kind == MRC_CURVE_LOG ? make_log : make_ranks)(self, &sample, &numbers);
    if (status == MERCER_OK) status = set_units(self, &sample, kind, &numbers);
    close_sample(self->context, &sample);
    return status;
}

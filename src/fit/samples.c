/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage samples: merges equal rows, and holds out validation rows.
 *
 * Merging: a sample of weight 2 and two equal samples must give the same model. So samples with equal features, targets
 * and keys are merged into one with the sum of their weights. Samples of weight 0 are dropped, and the remaining
 * samples are sorted by content. The fit then depends on the weighted set of samples only, not on order or repetition.
 * Distinct samples without weights stay in their order.
 *
 * Holding out: units (data/equal_rows.h) are drawn in random order until enough rows are held out. With times, the
 * latest rows are held out instead. At least one unit of each class remains for training.
 *
 * Cost of merging: a pass over the rows and a sort of the distinct hashes. Holding out costs the same again and a copy
 * of the rows, unless they are too large to copy: see hold_out.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "core/numbers/weighted.h"
#include "data/equal_rows.h"

#include <string.h>

enum {
    /* largest table to merge: for 20,000,000 distinct rows, hash table and sort take 2 GB and about ten seconds */
    MERGED_ROWS = 20000000,
    MERGED_DEVICE_ROWS = 10000, /* the same limit for device memory, from which rows are fetched one at a time */
    /* largest number of rows that are held out if the caller has not requested a share */
    HELD_ROWS = 2000,
    /* one row out of this number is held out. A few hundred rows determine a temperature. Intervals need more rows,
       because the level of the score at rank k of n is uncertain by about 1 / sqrt(n). A group counts as only one
       row */
    HELD_SHARE = 20,
    HELD_SHARE_INTERVALS = 10,
    HELD_SHARE_GROUPS = 5
};
#define RANDOM_HELD UINT64_C(0x68656c64)

/* ---- Merging --------------------------------------------------------------------------------------------------- */

mercer_status mrc_fit_distinct_rows(mrc_scope *scope, const mercer_dataset *data, int64_t **rows, int64_t *count)
{
    int64_t *id, seen = 0;
    MRC_SCOPE(own, data->context);
    MRC_TRY(mrc_scope_alloc(scope, rows, data->rows, sizeof **rows, "row numbers"));
    MRC_TRY(mrc_scope_alloc(&own, &id, data->rows, sizeof *id, "row numbers"));
    MRC_TRY(mrc_equal_rows(data, NULL, data->rows, false, id, count));
    for (int64_t i = 0; i < data->rows; i++)
        if (id[i] == seen) (*rows)[seen++] = i;
    return MERCER_OK;
}

/* Replaces `data` by the merged samples. `data` is not changed if there are neither equal rows nor weights. */
static mercer_status take_merged(mercer_fitting *self, const int64_t *rows, const double *weights, int64_t count,
                                 bool ones)
{
    const mercer_dataset *data = self->data;
    double *own;
    if (count == 0)
        return mrc_fail(self->context, MERCER_ERROR_DATA,
                        "the weights of all %lld samples are 0; at least one must be positive", (long long)data->rows);
    if (count == data->rows && !data->weights) return MERCER_OK;
    MRC_TRY(mrc_dataset_take(&self->merged, data, rows, count));
    self->data = self->merged;
    self->merged->weights = NULL;
    if (ones) return MERCER_OK;
    MRC_TRY(mrc_dataset_make_weights(self->merged, &own));
    memcpy(own, weights, (size_t)count * sizeof *own);
    return MERCER_OK;
}

bool mrc_fit_merges(const mercer_fitting *self)
{
    const mercer_dataset *data = self->data;
    int64_t most = data->on_device.data ? MERGED_DEVICE_ROWS : MERGED_ROWS;
    int64_t bytes = data->rows * data->features * mrc_dtype_size(data->dtype);
    return self->options->data.merge != MERCER_OFF && !data->synth && data->rows <= most && bytes <= self->memory / 4;
}

/* Merges rows with equal content and drops rows of weight 0. If all merged weights are 1, no weights are stored. */
static mercer_status merge_samples(mercer_fitting *self)
{
    int64_t *rows, count, n = self->data->rows;
    double *weights;
    bool ones = true;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &rows, n, sizeof *rows, "row numbers"));
    MRC_TRY(mrc_scope_alloc(&scope, &weights, n, sizeof *weights, "weights of samples"));
    MRC_TRY(mrc_merge_rows(self->data, rows, weights, &count));
    for (int64_t i = 0; i < count; i++) ones = ones && weights[i] == 1;
    return take_merged(self, rows, weights, count, ones);
}

double mrc_fit_count_samples(const mercer_dataset *data)
{
    double sum = 0;
    if (!data->weights) return (double)data->rows;
    for (int64_t i = 0; i < data->rows; i++) sum += data->weights[i];
    return sum;
}

/* ---- Holding out ----------------------------------------------------------------------------------------------- */

/* Marks the latest rows: at least `held`, and all rows that have the same time as the earliest of these. */
static mercer_status mark_latest(const mercer_fitting *self, int64_t held, bool *marks)
{
    const mercer_dataset *data = self->data;
    int64_t n = data->rows, from = n - held;
    mrc_keyed *sorted;
    double *times;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &sorted, n, sizeof *sorted, "times of rows"));
    MRC_TRY(mrc_scope_alloc(&scope, &times, n, sizeof *times, "times of rows"));
    MRC_TRY(mrc_first_times(data, times));
    for (int64_t i = 0; i < n; i++) sorted[i] = (mrc_keyed){times[i], i};
    mrc_keyed_sort(sorted, n);
    while (from > 0 && sorted[from - 1].key == sorted[from].key) from--;
    if (from == 0)
        return mrc_fail(self->context, MERCER_ERROR_DATA,
                        "times: all rows before the held-out rows have the same time, so there are no training rows; "
                        "use more times");
    for (int64_t i = from; i < n; i++) marks[sorted[i].row] = true;
    return MERCER_OK;
}

/* Returns whether a unit can be held out, that is, its classes have other training rows. left (classes): remaining
   training rows per class; the rows of the unit are subtracted if it can be held out. */
static bool may_leave(const mercer_dataset *data, const int64_t *rows, int64_t count, int64_t *left)
{
    bool may = true;
    for (int64_t i = 0; i < count && data->labels; i++) left[data->labels[rows[i]]]--;
    for (int64_t i = 0; i < count && data->labels; i++) may = may && left[data->labels[rows[i]]] > 0;
    for (int64_t i = 0; i < count && data->labels && !may; i++) left[data->labels[rows[i]]]++;
    return may;
}

/* Sorts rows by unit: the rows of unit u are order[start[u] .. start[u + 1] - 1]. */
static void sort_by_unit(const int64_t *unit, int64_t n, int64_t units, int64_t *order, int64_t *start)
{
    memset(start, 0, (size_t)(units + 1) * sizeof *start);
    for (int64_t i = 0; i < n; i++) start[unit[i] + 1]++;
    for (int64_t u = 0; u < units; u++) start[u + 1] += start[u];
    for (int64_t i = 0; i < n; i++) order[start[unit[i]]++] = i;
    for (int64_t u = units; u > 0; u--) start[u] = start[u - 1];
    start[0] = 0;
}

/* Marks the rows of units (rows that must stay together) in random order, until `held` rows are marked; at least one
   unit is not marked. Sets *units to the number of units. */
static mercer_status mark_units(const mercer_fitting *self, int64_t held, bool *marks, int64_t *units)
{
    const mercer_dataset *data = self->data;
    int64_t n = data->rows, *unit, *order, *start, *left, marked = 0;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &unit, 3 * n + 1, sizeof *unit, "row numbers"));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &left, mrc_max(1, data->outputs), sizeof *left, "counts of classes"));
    order = unit + n, start = order + n;
    MRC_TRY(mrc_row_units(data, NULL, n, unit, units));
    sort_by_unit(unit, n, *units, order, start);
    for (int64_t i = 0; i < n && data->labels; i++) left[data->labels[i]]++;
    mrc_rng rng = {self->options->run.seed, RANDOM_HELD};
    for (int64_t k = 0; k < *units - 1 && marked < held; k++) {
        int64_t u = mrc_random_permutation(rng, *units, k), count = start[u + 1] - start[u];
        if (!may_leave(data, order + start[u], count, left)) continue;
        for (int64_t i = start[u]; i < start[u + 1]; i++) marks[order[i]] = true;
        marked += count;
    }
    return MERCER_OK;
}

/* Sets `rest` to all rows, with weight 0 for the marked rows. */
static mercer_status drop_weights(mercer_fitting *self, const bool *marks)
{
    const mercer_dataset *data = self->data;
    double *weights;
    MRC_TRY(mrc_dataset_range(&self->rest, data, 0, data->rows));
    MRC_TRY(mrc_dataset_make_weights(self->rest, &weights));
    for (int64_t i = 0; i < data->rows; i++) weights[i] = marks[i] ? 0 : data->weights ? data->weights[i] : 1;
    return MERCER_OK;
}

/* Copies the rows whose mark equals `wanted` into a new dataset. rows (n): scratch space. */
static mercer_status take_part(const mercer_dataset *data, const bool *marks, bool wanted, int64_t *rows,
                               mercer_dataset **out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < data->rows; i++)
        if (marks[i] == wanted) rows[count++] = i;
    return mrc_dataset_take(out, data, rows, count);
}

/* Marks the rows to hold out. Sets *possible to whether some rows could be marked. */
static mercer_status mark_rows(const mercer_fitting *self, int64_t held, bool *marks, bool *possible)
{
    const mercer_dataset *data = self->data;
    int64_t units = 2;
    if (data->key_kind == MRC_KEYS_TIMES)
        MRC_TRY(mark_latest(self, held, marks));
    else
        MRC_TRY(mark_units(self, held, marks, &units));
    if (units < 2 && data->key_kind == MRC_KEYS_GROUPS)
        return mrc_fail(self->context, MERCER_ERROR_DATA,
                        "groups: all %lld rows are in one group, so no group can be held out", (long long)data->rows);
    *possible = false;
    for (int64_t i = 0; i < data->rows && !*possible; i++) *possible = marks[i];
    return MERCER_OK;
}

/*
 * Splits `data` into held-out rows (`aside`) and training rows (`rest`) by copying them into two datasets. Samples that
 * take more than a quarter of the memory are not copied: of a mapped file without groups and times the last rows are
 * held out; otherwise the held-out rows stay among the training rows with weight 0.
 */
static mercer_status hold_out(mercer_fitting *self, int64_t held)
{
    const mercer_dataset *data = self->data;
    int64_t n = data->rows, bytes = n * data->features * mrc_dtype_size(data->dtype);
    bool large = bytes > self->memory / 4, possible = false;
    if (data->synth) return mrc_dataset_range(&self->aside, data, n, held);
    if (large && mrc_dataset_is_mapped(data) && !data->keys) {
        mrc_fit_decide(self, "samples", "held_out", MRC_FROM_DATA, "last rows");
        MRC_TRY(mrc_dataset_range(&self->aside, data, n - held, held));
        return mrc_dataset_range(&self->rest, data, 0, n - held);
    }
    bool *marks, borrowed = data->borrowed || mrc_dataset_is_mapped(data);
    bool in_place = large && borrowed && mrc_fit_center_count(self) < n - held;
    int64_t *numbers;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &marks, n, sizeof *marks, "marks of rows"));
    MRC_TRY(mrc_scope_alloc(&scope, &numbers, n, sizeof *numbers, "row numbers"));
    MRC_TRY(mark_rows(self, held, marks, &possible));
    if (!possible) {
        mrc_warn(self->context, "validation.fraction",
                 "no rows are held out, because all rows have equal features or each class has only one distinct row");
        return MERCER_OK;
    }
    MRC_TRY(take_part(data, marks, true, numbers, &self->aside));
    return in_place ? drop_weights(self, marks) : take_part(data, marks, false, numbers, &self->rest);
}

/* Chooses the number of rows to hold out for intervals, calibration and score if the caller has not set a share. 0:
   none are needed. */
static mercer_status choose_held(const mercer_fitting *self, int64_t *held)
{
    const mercer_dataset *data = self->data;
    bool intervals = self->options->validation.intervals == MERCER_ON, times = data->key_kind == MRC_KEYS_TIMES;
    /* Small datasets are cross-validated instead. With times, cross-validation would train on later rows than it
       scores. More synthetic samples cost nothing, so some are held out for a score. */
    bool scored = self->options->validation.score == MERCER_ON && data->synth;
    bool crossed = data->rows <= MRC_CROSS_VALIDATED_ROWS && !times && !scored;
    /* In regression no rows are held out only for a score: without a twentieth of the rows of `housing`, R2 was .867
       instead of .870 (mean of four seeds). */
    bool classes = data->task == MERCER_TASK_CLASSIFICATION && data->outputs > 1;
    *held = 0;
    if (!intervals && (crossed || !(classes || scored))) return MERCER_OK;
    int64_t share = !intervals                          ? HELD_SHARE
                    : data->key_kind == MRC_KEYS_GROUPS ? HELD_SHARE_GROUPS
                                                        : HELD_SHARE_INTERVALS;
    *held = mrc_min(HELD_ROWS, data->rows / share);
    if (*held > 0 || !intervals) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_DATA, "intervals: %lld rows are too few to hold out some of them",
                    (long long)data->rows);
}

/* Determines the validation rows: given, held out by request, or held out for calibration, intervals or score. */
static mercer_status split(mercer_fitting *self)
{
    const mercer_dataset *data = self->data;
    double share = self->options->validation.fraction;
    int64_t held = (int64_t)(share * (double)data->rows + 0.5);
    bool wanted = self->options->validation.calibrate == MERCER_ON ||
                  self->options->validation.intervals == MERCER_ON || self->options->validation.score == MERCER_ON;
    self->watched = self->validation || share > 0;
    if (self->validation || (share == 0 && !wanted)) return MERCER_OK;
    if (share > 0 && (held < 1 || held >= data->rows))
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                        "validation.fraction: %g of %lld rows leaves the training or validation set empty", share,
                        (long long)data->rows);
    if (share == 0) MRC_TRY(choose_held(self, &held));
    if (held == 0) return MERCER_OK;
    MRC_TRY(hold_out(self, held));
    self->validation = self->aside;
    self->watched = self->watched && self->aside;
    if (self->rest) self->data = self->rest;
    return MERCER_OK;
}

/* Class weights are applied first, so that merging and splitting see the final weights. */
static mercer_status take_samples(mercer_fitting *self)
{
    self->validation = self->options->validation.data;
    self->given_rows = self->data->rows;
    MRC_TRY(mrc_fit_weigh_classes(self));
    if (mrc_fit_merges(self)) MRC_TRY(merge_samples(self));
    self->info = (mercer_dataset_info){.struct_size = sizeof self->info};
    MRC_TRY(mercer_dataset_query(self->data, &self->info));
    MRC_TRY(split(self));
    return mercer_dataset_query(self->data, &self->info);
}

/* ---- The stage --------------------------------------------------------------------------------------------------- */

static mercer_status check_data(mercer_fitting *self)
{
    const mercer_dataset_info *info = &self->info;
    const mercer_dataset *held = self->validation;
    if (info->rows == 0) return mrc_fail(self->context, MERCER_ERROR_DATA, "the dataset has no rows");
    if (!held || (held->features == info->features && held->outputs == info->outputs && held->task == info->task))
        return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_SHAPE,
                    "validation data: %lld features and %lld outputs, but the training data have %lld and %lld",
                    (long long)held->features, (long long)held->outputs, (long long)info->features,
                    (long long)info->outputs);
}

/* Checks that all ranks have read the same samples. */
static mercer_status agree_on_data(const mercer_fitting *self)
{
    uint64_t prints[2] = {0, 0};
    if (!self->options->run.comm) return MERCER_OK;
    MRC_TRY(mrc_dataset_fingerprint(self->data, &prints[0]));
    if (self->validation) MRC_TRY(mrc_dataset_fingerprint(self->validation, &prints[1]));
    return mercer_comm_agree(self->options->run.comm, "other data", prints, sizeof prints);
}

/* Warns if all rows have the same class. */
static void warn_of_one_class(const mercer_fitting *self)
{
    const char *const *names = self->data->label_names;
    if (self->outer || self->ensemble || self->info.task != MERCER_TASK_CLASSIFICATION || self->info.outputs != 1)
        return;
    mrc_warn(self->context, "task", "all rows have the same class%s%.60s%s, so every prediction is that class",
             names ? " '" : "", names ? names[0] : "", names ? "'" : "");
}

/* Memory limits come first, because merging and holding out depend on them. The transform of the targets comes last,
   because it needs the final training and validation rows. */
mercer_status mrc_stage_samples(mercer_fitting *self)
{
    MRC_TRY(mrc_fit_find_memory(self));
    MRC_TRY(take_samples(self));
    MRC_TRY(agree_on_data(self));
    MRC_TRY(check_data(self));
    warn_of_one_class(self);
    return mrc_fit_find_units(self);
}

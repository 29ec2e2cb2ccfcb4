/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which samples are trained on: equal ones merged, some held back.
 *
 * Merging: a sample of weight 2 and a row that comes twice must give the same model. So samples that are equal in
 * features and targets become one with the sum of their weights, those of weight 0 are left out, and the rest is
 * brought into the order of its bytes: all that follows is then a function of the weighted set of samples, not of how
 * it was written down. Samples that all differ, without weights, stay as they are.
 *
 * Holding back: of n rows m are marked in one pass, each choice equally likely (Knuth's selection sampling, up to the
 * bias of a remainder); where samples are merged, rows with the same features stay together.
 *
 * Cost: a sort of n rows (merging, n <= 10,000); O(n) and a copy of the rows (holding back), unless they are too large
 * for that: see hold_back.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    MERGED_ROWS = 10000,
    CROSS_VALIDATED_ROWS = 5000,
    ASIDE_ROWS = 2000,
    ASIDE_SHARE = 20,
    ASIDE_SHARE_INTERVALS = 10
};

/* ---- Equal rows ------------------------------------------------------------------------------------------------ */

/* A row as bytes that are equal where rows are. */
typedef struct key {
    const unsigned char *bytes;
    size_t size;
    int64_t row;
} key;

static int compare_keys(const void *a, const void *b)
{
    const key *left = a, *right = b;
    int order = memcmp(left->bytes, right->bytes, left->size);
    return order ? order : (left->row > right->row) - (left->row < right->row);
}

/* -0 is 0, in one row. */
static void clear_signs(const mercer_matrix *values)
{
    enum { HALF_SIGN = 0x8000 };
    double *doubles = values->data;
    float *floats = values->data;
    uint16_t *halves = values->data;
    for (int64_t j = 0; j < values->cols && values->dtype == MERCER_F64; j++)
        doubles[j] = doubles[j] == 0 ? 0 : doubles[j];
    for (int64_t j = 0; j < values->cols && values->dtype == MERCER_F32; j++)
        floats[j] = floats[j] == 0 ? 0 : floats[j];
    for (int64_t j = 0; j < values->cols && values->dtype == MERCER_F16; j++)
        halves[j] = halves[j] == HALF_SIGN ? 0 : halves[j];
}

/* The key of a row: its targets, if wanted, and its features. */
static void write_key(const mercer_dataset *data, int64_t row, int64_t targets, char *to)
{
    mercer_matrix y = mrc_view(to, 1, targets, MERCER_F64);
    mercer_matrix x = mrc_view(to + targets * (int64_t)sizeof(double), 1, data->features, data->dtype);
    bool values = targets > 0 && !data->labels;
    mrc_dataset_fetch(data, &row, 0, &x, values ? &y : NULL, NULL);
    if (targets > 0 && data->labels) *(double *)y.data = data->labels[row];
    clear_signs(&x);
    clear_signs(&y);
}

/* The keys of all rows, in order. They live as long as the scope. */
static mercer_status sort_rows(mrc_scope *scope, const mercer_dataset *data, bool with_targets, key **keys)
{
    int64_t targets = !with_targets ? 0 : data->labels ? 1 : data->outputs;
    int64_t used = targets * (int64_t)sizeof(double) + data->features * mrc_dtype_size(data->dtype);
    int64_t size = mrc_round_up(used, sizeof(double));
    char *memory;
    MRC_TRY(mrc_scope_alloc(scope, keys, data->rows, sizeof **keys, "keys of the rows"));
    MRC_TRY(mrc_scope_alloc_zero(scope, &memory, data->rows, size, "keys of the rows"));
    for (int64_t i = 0; i < data->rows; i++) {
        write_key(data, i, targets, memory + i * size);
        (*keys)[i] = (key){(unsigned char *)memory + i * size, (size_t)used, i};
    }
    qsort(*keys, (size_t)data->rows, sizeof **keys, compare_keys);
    return MERCER_OK;
}

static bool is_repeated(const key *keys, int64_t i)
{
    return i > 0 && memcmp(keys[i].bytes, keys[i - 1].bytes, keys[i].size) == 0;
}

mercer_status mrc_fit_distinct_rows(mrc_scope *scope, const mercer_dataset *data, int64_t **rows, int64_t *count,
                                    int64_t *group)
{
    int64_t *first, kept = 0; /* of equal rows the first, and its place among those */
    key *keys;
    MRC_SCOPE(own, data->context);
    MRC_TRY(mrc_scope_alloc(scope, rows, data->rows, sizeof **rows, "row numbers"));
    MRC_TRY(sort_rows(&own, data, false, &keys));
    MRC_TRY(mrc_scope_alloc(&own, &first, data->rows, sizeof *first, "row numbers"));
    for (int64_t i = 0; i < data->rows; i++)
        first[keys[i].row] = is_repeated(keys, i) ? first[keys[i - 1].row] : keys[i].row;
    for (int64_t i = 0; i < data->rows; i++) {
        bool is_first = first[i] == i;
        if (is_first) (*rows)[kept] = i;
        first[i] = is_first ? kept++ : first[first[i]];
    }
    *count = kept;
    if (group) memcpy(group, first, (size_t)data->rows * sizeof *group);
    return MERCER_OK;
}

/* ---- Merging --------------------------------------------------------------------------------------------------- */

/* Rows that stand for all that are equal to them, with the sums of their weights; tells how many. */
static int64_t sum_weights(const mercer_dataset *data, const key *keys, int64_t *rows, double *weights, bool *ones)
{
    int64_t count = 0;
    for (int64_t i = 0; i < data->rows;) {
        double sum = 0;
        int64_t first = i;
        do sum += data->weights ? data->weights[keys[i].row] : 1;
        while (++i < data->rows && is_repeated(keys, i));
        if (sum > 0) {
            rows[count] = keys[first].row;
            weights[count++] = sum;
            *ones = *ones && sum == 1;
        }
    }
    return count;
}

static mercer_status take_merged(mercer_fitting *self, const key *keys, int64_t *rows, double *weights)
{
    const mercer_dataset *data = self->data;
    bool ones = true;
    int64_t count = sum_weights(data, keys, rows, weights, &ones);
    if (count == 0)
        return mrc_fail(self->context, MERCER_ERROR_DATA, "the weights of all %lld samples are 0: none counts",
                        (long long)data->rows);
    if (count == data->rows && !data->weights) return MERCER_OK;
    MRC_TRY(mrc_dataset_take(&self->merged, data, rows, count));
    self->data = self->merged;
    self->merged->weights = NULL;
    double *own;
    if (ones) return MERCER_OK;
    MRC_TRY(mrc_dataset_make_weights(self->merged, &own));
    memcpy(own, weights, (size_t)count * sizeof *own);
    return MERCER_OK;
}

bool mrc_fit_merges(const mercer_fitting *self)
{
    const mercer_dataset *data = self->data;
    return self->options.merge == MERCER_ON && !data->synth && data->rows <= MERGED_ROWS &&
           !mrc_fit_samples_are_centers(self);
}

static mercer_status merge_samples(mercer_fitting *self)
{
    int64_t *rows;
    double *weights;
    key *keys;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &rows, self->data->rows, sizeof *rows, "row numbers"));
    MRC_TRY(mrc_scope_alloc(&scope, &weights, self->data->rows, sizeof *weights, "weights of samples"));
    MRC_TRY(sort_rows(&scope, self->data, true, &keys));
    return take_merged(self, keys, rows, weights);
}

/* ---- Holding back ---------------------------------------------------------------------------------------------- */

/* A random number that is a function of seed and index (SplitMix64). */
static uint64_t random_word(uint64_t seed, uint64_t index)
{
    uint64_t z = seed * 0xD1B54A32D192ED03u + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Marks `count` of n. */
static void draw(bool *chosen, int64_t n, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        chosen[i] = count > 0 && (int64_t)(random_word(seed, (uint64_t)i) % (uint64_t)(n - i)) < count;
        count -= chosen[i];
    }
}

/* The same rows, of which those that are marked count nothing. */
static mercer_status drop_weights(mercer_fitting *self, const bool *chosen)
{
    const mercer_dataset *data = self->data;
    double *weights;
    MRC_TRY(mrc_dataset_range(&self->rest, data, 0, data->rows));
    MRC_TRY(mrc_dataset_make_weights(self->rest, &weights));
    for (int64_t i = 0; i < data->rows; i++) weights[i] = chosen[i] ? 0 : data->weights ? data->weights[i] : 1;
    return MERCER_OK;
}

static mercer_status take_part(const mercer_dataset *data, const bool *chosen, bool wanted, int64_t *rows,
                               mercer_dataset **out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < data->rows; i++)
        if (chosen[i] == wanted) rows[count++] = i;
    return mrc_dataset_take(out, data, rows, count);
}

/* Marks rows: `held` of them, or of the groups of rows with the same features. */
static mercer_status mark_rows(mercer_fitting *self, double share, int64_t held, bool *chosen, int64_t *group)
{
    int64_t n = self->data->rows, *rows = NULL, groups = n;
    bool together = mrc_fit_merges(self);
    if (together) {
        MRC_SCOPE(scope, self->context);
        MRC_TRY(mrc_fit_distinct_rows(&scope, self->data, &rows, &groups, group));
        if (groups < n) held = mrc_max(1, mrc_min(groups - 1, (int64_t)(share * (double)groups + 0.5)));
    }
    draw(chosen, groups, held, self->options.seed);
    for (int64_t i = n - 1; together && groups < n && i >= 0; i--) chosen[i] = chosen[group[i]]; /* group[i] <= i */
    return MERCER_OK;
}

/*
 * The rows are copied into two datasets, but not those of a file that takes more than a quarter of the memory, whose
 * last rows are held back, nor as many in the caller's memory: those held back then count nothing.
 */
static mercer_status hold_back(mercer_fitting *self, double share, int64_t held)
{
    const mercer_dataset *data = self->data;
    int64_t n = data->rows, bytes = n * data->features * mrc_dtype_size(data->dtype);
    bool large = bytes > self->memory / 4;
    if (data->synth) return mrc_dataset_range(&self->aside, data, n, held);
    if (large && mrc_dataset_is_mapped(data)) {
        self->report.held_at_end = 1;
        MRC_TRY(mrc_dataset_range(&self->aside, data, n - held, held));
        return mrc_dataset_range(&self->rest, data, 0, n - held);
    }
    bool *marks, in_place = large && data->borrowed && mrc_fit_center_count(self) < n - held;
    int64_t *numbers;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &marks, n, sizeof *marks, "marks of rows"));
    MRC_TRY(mrc_scope_alloc(&scope, &numbers, n, sizeof *numbers, "row numbers"));
    MRC_TRY(mark_rows(self, share, held, marks, numbers));
    MRC_TRY(take_part(data, marks, true, numbers, &self->aside));
    return in_place ? drop_weights(self, marks) : take_part(data, marks, false, numbers, &self->rest);
}

static mercer_status split(mercer_fitting *self)
{
    const mercer_dataset *data = self->data;
    double share = self->options.validation_fraction;
    int64_t held = (int64_t)(share * (double)data->rows + 0.5);
    bool intervals = self->options.intervals == MERCER_ON;
    if (self->options.validation || (share == 0 && self->options.calibrate != MERCER_ON && !intervals)) {
        self->validation = self->options.validation;
        self->watched = self->validation != NULL;
        return MERCER_OK;
    }
    self->watched = share > 0;
    if (share > 0 && (held < 1 || held >= data->rows))
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                        "validation_fraction: %g of %lld rows leaves one part empty", share, (long long)data->rows);
    if (share == 0) {
        bool crossed = data->rows <= CROSS_VALIDATED_ROWS && self->options.average_models < 2; /* of one model alone */
        if (!intervals && (crossed || data->outputs < 2)) return MERCER_OK;
        held = mrc_min(ASIDE_ROWS, data->rows / (intervals ? ASIDE_SHARE_INTERVALS : ASIDE_SHARE));
        if (held < 1)
            return mrc_fail(self->context, MERCER_ERROR_DATA, "intervals: %lld rows are too few to hold some back",
                            (long long)data->rows);
        share = (double)held / (double)data->rows;
    }
    MRC_TRY(hold_back(self, share, held));
    self->validation = self->aside;
    if (self->rest) self->data = self->rest;
    return MERCER_OK;
}

mercer_status mrc_fit_take_samples(mercer_fitting *self, mercer_dataset *given)
{
    self->data = given;
    MRC_TRY(mrc_fit_weigh_classes(self));
    if (mrc_fit_merges(self)) MRC_TRY(merge_samples(self));
    self->info = (mercer_dataset_info){.struct_size = sizeof self->info};
    MRC_TRY(mercer_dataset_query(self->data, &self->info));
    MRC_TRY(split(self));
    return mercer_dataset_query(self->data, &self->info);
}

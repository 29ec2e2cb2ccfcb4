/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/equal_rows.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/weighted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct hashed_row {
    uint64_t high, low;
    int64_t place; /* index of the row in the list that was hashed */
} hashed_row;

/* Orders by hash, then by index, so that equal rows are adjacent and the first of them comes first. */
static int compare_hashes(const void *a, const void *b)
{
    const hashed_row *left = a, *right = b;
    if (left->high != right->high) return left->high < right->high ? -1 : 1;
    if (left->low != right->low) return left->low < right->low ? -1 : 1;
    return (left->place > right->place) - (left->place < right->place);
}

static bool is_equal(const hashed_row *a, const hashed_row *b)
{
    return a->high == b->high && a->low == b->low;
}

/* Replaces -0 by 0, because equal values must have equal bytes to have equal hashes. */
static void clear_signs(const mercer_matrix *row)
{
    enum { HALF_SIGN = 0x8000 };
    double *doubles = row->data;
    float *floats = row->data;
    uint16_t *halves = row->data;
    for (int64_t j = 0; j < row->cols && row->dtype == MERCER_F64; j++) doubles[j] = doubles[j] == 0 ? 0 : doubles[j];
    for (int64_t j = 0; j < row->cols && row->dtype == MERCER_F32; j++) floats[j] = floats[j] == 0 ? 0 : floats[j];
    for (int64_t j = 0; j < row->cols && row->dtype == MERCER_F16; j++)
        halves[j] = halves[j] == HALF_SIGN ? 0 : halves[j];
}

/* Hashes the listed rows and sorts the hashes. */
static mercer_status hash_rows(mrc_scope *scope, const mercer_dataset *data, const int64_t *rows, int64_t count,
                               bool with_targets, hashed_row **out)
{
    int64_t values = !with_targets ? 0 : data->labels ? 1 : data->outputs;
    int64_t targets = values + (with_targets && data->keys); /* a key is hashed like one more target */
    int64_t feature_bytes = data->features * mrc_dtype_size(data->dtype);
    char *buffer;
    MRC_SCOPE(own, data->context);
    MRC_TRY(mrc_scope_alloc(scope, out, count, sizeof **out, "hashes of rows"));
    MRC_TRY(mrc_scope_alloc_zero(&own, &buffer, targets * (int64_t)sizeof(double) + feature_bytes, 1, "a row"));
    mercer_matrix y = mrc_view(buffer, 1, values, MERCER_F64),
                  x = mrc_view(buffer + targets * (int64_t)sizeof(double), 1, data->features, data->dtype);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows ? rows[i] : i;
        mrc_dataset_fetch(data, &row, 0, &x, values > 0 && !data->labels ? &y : NULL, NULL);
        if (values > 0 && data->labels) *(double *)y.data = data->labels[row];
        if (targets > values) ((double *)(void *)buffer)[values] = data->keys[row];
        clear_signs(&x);
        clear_signs(&y);
        XXH128_hash_t hash = XXH3_128bits(buffer, (size_t)targets * sizeof(double) + (size_t)feature_bytes);
        (*out)[i] = (hashed_row){hash.high64, hash.low64, i};
    }
    qsort(*out, (size_t)count, sizeof **out, compare_hashes);
    return mrc_dataset_check(data);
}

/* Numbers distinct rows in the order of first occurrence. On input id[i] is the index of the first row that equals row
   i; on output it is the number of that distinct row. Returns the number of distinct rows. */
static int64_t number_firsts(int64_t *id, int64_t count)
{
    int64_t distinct = 0;
    for (int64_t i = 0; i < count; i++) id[i] = id[i] == i ? distinct++ : id[id[i]];
    return distinct;
}

mercer_status mrc_equal_rows(const mercer_dataset *data, const int64_t *rows, int64_t count, bool with_targets,
                             int64_t *id, int64_t *distinct)
{
    hashed_row *hashes;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(hash_rows(&scope, data, rows, count, with_targets, &hashes));
    for (int64_t i = 0, first = 0; i < count; i++) {
        if (i > 0 && !is_equal(&hashes[i], &hashes[i - 1])) first = i;
        id[hashes[i].place] = hashes[first].place; /* the smallest index, because the sort orders equal keys by index */
    }
    *distinct = number_firsts(id, count);
    return MERCER_OK;
}

/* Numbers the groups of the listed rows in the order of their first rows. */
static mercer_status number_groups(const mercer_dataset *data, const int64_t *rows, int64_t count, int64_t *id,
                                   int64_t *units)
{
    mrc_keyed *keys;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &keys, count, sizeof *keys, "groups of rows"));
    for (int64_t i = 0; i < count; i++) keys[i] = (mrc_keyed){data->keys[rows ? rows[i] : i], i};
    mrc_keyed_sort(keys, count);
    for (int64_t i = 0, first = 0; i < count; i++) {
        if (i > 0 && keys[i].key != keys[i - 1].key) first = i;
        id[keys[i].row] = keys[first].row;
    }
    *units = number_firsts(id, count);
    return MERCER_OK;
}

mercer_status mrc_row_units(const mercer_dataset *data, const int64_t *rows, int64_t count, int64_t *id, int64_t *units)
{
    if (data->keys && data->key_kind == MRC_KEYS_GROUPS) return number_groups(data, rows, count, id, units);
    if (!data->synth) return mrc_equal_rows(data, rows, count, false, id, units);
    for (int64_t i = 0; i < count; i++) id[i] = i;
    *units = count;
    return MERCER_OK;
}

mercer_status mrc_rows_by_content(const mercer_dataset *data, int64_t *order, int64_t *start, int64_t *distinct)
{
    hashed_row *hashes;
    int64_t n = data->rows, runs = 0;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(hash_rows(&scope, data, NULL, n, true, &hashes));
    for (int64_t i = 0; i < n; i++) {
        order[i] = hashes[i].place;
        if (i == 0 || !is_equal(&hashes[i], &hashes[i - 1])) start[runs++] = i;
    }
    start[runs] = n;
    *distinct = runs;
    return MERCER_OK;
}

mercer_status mrc_first_times(const mercer_dataset *data, double *times)
{
    int64_t n = data->rows, *id, distinct;
    double *first;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &id, n, sizeof *id, "row numbers"));
    MRC_TRY(mrc_scope_alloc(&scope, &first, n, sizeof *first, "times of rows"));
    MRC_TRY(mrc_equal_rows(data, NULL, n, false, id, &distinct));
    for (int64_t i = 0; i < distinct; i++) first[i] = (double)INFINITY;
    for (int64_t i = 0; i < n; i++) first[id[i]] = fmin(first[id[i]], data->keys[i]);
    for (int64_t i = 0; i < n; i++) times[i] = first[id[i]];
    return MERCER_OK;
}

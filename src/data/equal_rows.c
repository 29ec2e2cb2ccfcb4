/* SPDX-License-Identifier: BSD-3-Clause */
/* Equal rows, found by hashing (equal_rows.h). Threads hash a block of rows, and then one thread inserts the hashes
   into a table in the order of the rows. The numbering of the distinct rows therefore does not depend on the number of
   threads. */
#include "data/equal_rows.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/weighted.h"
#include "core/threads/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* BLOCK: rows per parallel loop; EACH: rows per task of the loop; FIRST_SLOTS: initial size of the hash table. */
enum { BLOCK = 4096, EACH = 128, FIRST_SLOTS = 1024 };

typedef struct hashed_row {
    uint64_t high, low;
    int64_t place; /* index of the row in the list that was hashed */
} hashed_row;

/* The distinct rows so far, in the order of first occurrence, and a hash table of their indices. The table uses open
   addressing and is at most half full. */
typedef struct distinct_rows {
    mercer_context *context;
    hashed_row *list; /* (count) */
    int64_t count, capacity;
    int64_t *slots; /* (slot_count, a power of two) indices into list; -1 is empty */
    int64_t slot_count;
} distinct_rows;

static void close_distinct(distinct_rows *self)
{
    MRC_FREE_ALL(self->context, self->list, self->slots);
}

/* Compares two rows by their hashes, for qsort. */
static int compare_hashes(const void *a, const void *b)
{
    const hashed_row *left = a, *right = b;
    if (left->high != right->high) return left->high < right->high ? -1 : 1;
    return (left->low > right->low) - (left->low < right->low);
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

/* Arguments and results of a parallel loop that hashes rows. A place is an index into the list of rows. */
typedef struct hashing {
    const mercer_dataset *data;
    const int64_t *rows; /* row number at each place; NULL: place i is row i */
    /* first: first place of the current block; count: rows of the block; targets: number of doubles (targets and key)
       before the features in a buffer; row_bytes: bytes hashed per row */
    int64_t first, count, targets, row_bytes;
    bool with_targets;
    char *buffers;         /* (threads) one row each: targets, key, features */
    hashed_row out[BLOCK]; /* (count) */
} hashing;

/* Writes targets, key and features of a row to a buffer and hashes it. */
static void hash_row(const hashing *self, int64_t place, char *buffer, hashed_row *out)
{
    const mercer_dataset *data = self->data;
    int64_t row = self->rows ? self->rows[place] : place;
    int64_t values = !self->with_targets ? 0 : data->labels ? 1 : data->outputs;
    mercer_matrix y = mrc_view(buffer, 1, values, MERCER_F64),
                  x = mrc_view(buffer + self->targets * (int64_t)sizeof(double), 1, data->features, data->dtype);
    mrc_dataset_fetch(data, &row, 0, &x, values > 0 && !data->labels ? &y : NULL, NULL);
    if (values > 0 && data->labels) *(double *)y.data = data->labels[row];
    /* a key is hashed like one more target */
    if (self->targets > values) ((double *)(void *)buffer)[values] = data->keys[row];
    clear_signs(&x);
    clear_signs(&y);
    XXH128_hash_t hash = XXH3_128bits(buffer, (size_t)self->row_bytes);
    *out = (hashed_row){hash.high64, hash.low64, place};
}

/* A task of mrc_parallel_for: hashes EACH rows. */
static void hash_some(void *argument, int64_t piece, int worker)
{
    hashing *self = argument;
    int64_t end = mrc_min(self->count, (piece + 1) * EACH);
    char *buffer = self->buffers + worker * mrc_round_up(self->row_bytes, (int64_t)sizeof(double));
    for (int64_t i = piece * EACH; i < end; i++) hash_row(self, self->first + i, buffer, &self->out[i]);
}

/* Returns the slot of a row, or the empty slot where it belongs. */
static int64_t *find_slot(const distinct_rows *self, const hashed_row *row)
{
    uint64_t mask = (uint64_t)self->slot_count - 1;
    for (uint64_t i = row->low;; i++) {
        int64_t *slot = &self->slots[i & mask];
        if (*slot < 0) return slot;
        if (self->list[*slot].low == row->low && self->list[*slot].high == row->high) return slot;
    }
}

/* Grows the list and the hash table, so that BLOCK more rows fit. */
static mercer_status reserve_rows(distinct_rows *self)
{
    const int64_t each = (int64_t)sizeof *self->list;
    if (self->count + BLOCK > self->capacity) {
        int64_t capacity = 2 * self->capacity + BLOCK;
        MRC_TRY(mrc_move(self->context, &self->list, self->count * each, capacity * each, "hashes of rows"));
        self->capacity = capacity;
    }
    if (2 * (self->count + BLOCK) <= self->slot_count) return MERCER_OK;
    int64_t count = self->slot_count ? self->slot_count : FIRST_SLOTS;
    while (count < 2 * (self->count + BLOCK)) count *= 2;
    MRC_TRY(mrc_move(self->context, &self->slots, 0, count * (int64_t)sizeof *self->slots, "hashes of rows"));
    self->slot_count = count;
    memset(self->slots, 0xff, (size_t)count * sizeof *self->slots);
    for (int64_t i = 0; i < self->count; i++) *find_slot(self, &self->list[i]) = i;
    return MERCER_OK;
}

/* Hashes the listed rows, and sets id[i] to the number of listed row i among the distinct rows. */
static mercer_status number_rows(distinct_rows *self, hashing *job, int64_t count, int64_t *id)
{
    const mercer_dataset *data = job->data;
    int threads = data->on_device.data ? 1 : data->context->threads; /* rows on a device are copied one at a time */
    MRC_SCOPE(scope, data->context);
    int64_t features = data->features * mrc_dtype_size(data->dtype);
    job->targets = !job->with_targets ? 0 : (data->labels ? 1 : data->outputs) + (data->keys ? 1 : 0);
    job->row_bytes = job->targets * (int64_t)sizeof(double) + features;
    MRC_TRY(mrc_scope_alloc_zero(&scope, &job->buffers, threads, mrc_round_up(job->row_bytes, (int64_t)sizeof(double)),
                                 "a row"));
    for (job->first = 0; job->first < count; job->first += BLOCK) {
        job->count = mrc_min(BLOCK, count - job->first);
        mrc_parallel_for(threads, (job->count + EACH - 1) / EACH, hash_some, job);
        MRC_TRY(reserve_rows(self));
        for (int64_t i = 0; i < job->count; i++) {
            int64_t *slot = find_slot(self, &job->out[i]);
            if (*slot < 0) *slot = self->count, self->list[self->count++] = job->out[i];
            id[job->first + i] = *slot;
        }
    }
    return mrc_dataset_check(data);
}

/* Finds the distinct rows. The caller has set out->context, and closes *out, also after a failure. */
static mercer_status find_distinct(distinct_rows *out, const mercer_dataset *data, const int64_t *rows, int64_t count,
                                   bool with_targets, int64_t *id)
{
    hashing *job;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &job, 1, sizeof *job, "hashes of rows"));
    job->data = data;
    job->rows = rows;
    job->with_targets = with_targets;
    return number_rows(out, job, count, id);
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
    MRC_OWNED(close_distinct) distinct_rows found = {.context = data->context};
    MRC_TRY(find_distinct(&found, data, rows, count, with_targets, id));
    *distinct = found.count;
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

mercer_status mrc_merge_rows(const mercer_dataset *data, int64_t *rows, double *weights, int64_t *count)
{
    MRC_OWNED(close_distinct) distinct_rows found = {.context = data->context};
    int64_t *id;
    double *sums; /* (rows) total weight of equal rows, at the index of the first */
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &id, data->rows, sizeof *id, "row numbers"));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &sums, data->rows, sizeof *sums, "weights of samples"));
    MRC_TRY(find_distinct(&found, data, NULL, data->rows, true, id));
    *count = 0;
    if (!found.list) return MERCER_OK; /* there are no rows */
    for (int64_t i = 0; i < data->rows; i++) sums[found.list[id[i]].place] += data->weights ? data->weights[i] : 1;
    /* The weights had to be added before sorting, because `id` refers to positions in the unsorted list. */
    qsort(found.list, (size_t)found.count, sizeof *found.list, compare_hashes);
    for (int64_t i = 0; i < found.count; i++) {
        int64_t row = found.list[i].place;
        if (!(sums[row] > 0)) continue;
        rows[*count] = row;
        weights[(*count)++] = sums[row];
    }
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

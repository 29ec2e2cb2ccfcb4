/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The training rows and the held-out rows of a search. Rows are in a random order that depends on the seed only, so the
 * first rows of a fold are a random sample of it.
 *
 *   2,000 rows or more, or times   a fifth is held out, at most half the number of training rows
 *   fewer                          five folds; ten below 300 rows, so that fewer training rows are lost
 *
 * All rows of a group are in one fold, and so are rows with equal features. With times the latest fifth is held out,
 * and rows with equal features get the earliest of their times. A split by groups or times that leaves a class without
 * training rows is an error. A random split with a held-out fold swaps a row of such a class into the training rows.
 * Leave-one-out is not offered: it costs a fit per row, and a row that occurs twice would predict itself.
 */
#include "search/search.h"

#include "core/numbers/random.h"
#include "core/numbers/weighted.h"
#include "data/equal_rows.h"

#include <stdio.h>
#include <string.h>

/* HELD_SHARE: the share 1 / HELD_SHARE of the rows is held out. FOLD_ROWS: with this number of rows or more, a fifth of
   the rows determines an error well enough, and folds would cost five times as much. FEW_ROWS: with fewer rows there
   are 2 FOLDS folds. HELD: index of the held-out fold. */
enum { HELD_SHARE = 5, FOLDS = 5, FOLD_ROWS = 2000, FEW_ROWS = 300, HELD = 1 };
#define RANDOM_SPLIT  UINT64_C(0x73706c6974)
#define RANDOM_GROUPS UINT64_C(0x67726f757073)

/* ---- Groups and times -------------------------------------------------------------------------------------------- */

/* Holds out the latest fifth of the rows, and all rows that have the same time as the earliest of these rows. */
static mercer_status split_times(const mercer_dataset *data, const mrc_keyed *sorted, signed char *fold)
{
    int64_t n = data->rows, from = n - mrc_max(1, n / HELD_SHARE);
    while (from > 0 && sorted[from - 1].key == sorted[from].key) from--;
    if (from == 0)
        return mrc_fail(data->context, MERCER_ERROR_DATA,
                        "times: all rows are in the latest fifth, so there are no training rows");
    for (int64_t i = 0; i < n; i++) fold[sorted[i].row] = i >= from ? HELD : 0;
    return MERCER_OK;
}

/* Assigns groups to folds in random order. With a held-out fold, groups go to that fold until it has a fifth of the
   rows; otherwise each group goes to the fold with the fewest rows so far. starts (groups + 1): position of each
   group's first row in `sorted`. */
static void deal_groups(const mrc_keyed *sorted, const int64_t *starts, int64_t groups, const mrc_folds *folds,
                        uint64_t seed, signed char *fold)
{
    int64_t counts[MRC_FOLDS] = {0}, n = starts[groups], held = mrc_max(1, n / HELD_SHARE);
    for (int64_t k = 0; k < groups; k++) {
        int64_t g = mrc_random_permutation((mrc_rng){seed, RANDOM_GROUPS}, groups, k);
        int to = 0;
        if (folds->held_out) to = counts[HELD] < held && k < groups - 1 ? HELD : 0;
        for (int f = 1; f < folds->count && !folds->held_out; f++)
            if (counts[f] < counts[to]) to = f;
        counts[to] += starts[g + 1] - starts[g];
        for (int64_t i = starts[g]; i < starts[g + 1]; i++) fold[sorted[i].row] = (signed char)to;
    }
}

/* Splits by groups. Reduces the number of folds if there are fewer groups. */
static mercer_status split_groups(const mercer_dataset *data, const mrc_keyed *sorted, mrc_folds *folds, uint64_t seed,
                                  signed char *fold)
{
    int64_t n = data->rows, groups = 0, *starts;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &starts, n + 1, sizeof *starts, "groups of rows"));
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || sorted[i].key != sorted[i - 1].key) starts[groups++] = i;
    starts[groups] = n;
    if (groups < 2)
        return mrc_fail(data->context, MERCER_ERROR_DATA,
                        "groups: all rows are in one group, so no group can be held out");
    folds->count = (int)mrc_min(folds->count, groups);
    deal_groups(sorted, starts, groups, folds, seed, fold);
    return MERCER_OK;
}

/* Fails if some fit would have no training row of a class, because all rows of that class are held out together. */
static mercer_status check_classes(const mercer_dataset *data, const signed char *fold, const mrc_folds *folds)
{
    int64_t *counts;
    MRC_SCOPE(scope, data->context);
    if (!data->labels) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc_zero(&scope, &counts, data->outputs * MRC_FOLDS, sizeof *counts, "counts of classes"));
    for (int64_t i = 0; i < data->rows; i++) counts[data->labels[i] * MRC_FOLDS + fold[i]]++;
    for (int64_t l = 0; l < data->outputs; l++) {
        int64_t all = 0;
        for (int f = 0; f < folds->count; f++) all += counts[l * MRC_FOLDS + f];
        for (int f = folds->held_out ? HELD : 0; f < folds->count; f++) {
            if (all == 0 || counts[l * MRC_FOLDS + f] < all) continue;
            char number[MRC_CLASS_CHARS];
            return mrc_fail(
                data->context, MERCER_ERROR_DATA,
                "after the split by %s class '%s' has no training rows; drop the class or use another column",
                data->key_kind == MRC_KEYS_TIMES ? "time" : "groups", mrc_dataset_class_name(data, l, number));
        }
    }
    return MERCER_OK;
}

/* Splits by groups or times. Sets fold (rows) to the fold of every row. */
static mercer_status split_by_keys(const mercer_dataset *data, mrc_folds *folds, uint64_t seed, signed char *fold)
{
    mrc_keyed *sorted;
    double *first;
    bool times = data->key_kind == MRC_KEYS_TIMES;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &sorted, data->rows, sizeof *sorted, "keys of rows"));
    MRC_TRY(mrc_scope_alloc(&scope, &first, data->rows, sizeof *first, "times of rows"));
    if (times) MRC_TRY(mrc_first_times(data, first));
    for (int64_t i = 0; i < data->rows; i++) sorted[i] = (mrc_keyed){times ? first[i] : data->keys[i], i};
    mrc_keyed_sort(sorted, data->rows);
    MRC_TRY(times ? split_times(data, sorted, fold) : split_groups(data, sorted, folds, seed, fold));
    return check_classes(data, fold, folds);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Splits m random rows by units (data/equal_rows.h): the held-out fold is filled with `held` rows first; with several
   folds, units are dealt to them in turn. Sets the fold of these rows, and *units to the number of units. */
static mercer_status split_rows(const mercer_dataset *data, mrc_folds *folds, int64_t m, int64_t held, mrc_rng rng,
                                signed char *fold, int64_t *units)
{
    int64_t *drawn, *unit, dealt = 0, counts[MRC_FOLDS] = {0};
    signed char *of_unit;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &drawn, 2 * m, sizeof *drawn, "row numbers"));
    MRC_TRY(mrc_scope_alloc(&scope, &of_unit, m, sizeof *of_unit, "folds of rows"));
    unit = drawn + m;
    for (int64_t i = 0; i < m; i++) drawn[i] = mrc_random_permutation(rng, data->rows, i);
    MRC_TRY(mrc_row_units(data, drawn, m, unit, units));
    if (*units < 2)
        return mrc_fail(data->context, MERCER_ERROR_DATA, "all rows have equal features, so no row can be held out");
    folds->count = (int)mrc_min(folds->count, *units);
    for (int64_t i = 0; i < m; i++) {
        if (unit[i] == dealt) { /* units are numbered in order of their first rows */
            bool to_held = counts[HELD] < held && (dealt < *units - 1 || counts[0] > 0);
            of_unit[dealt] = (signed char)(folds->held_out ? (to_held ? HELD : 0) : dealt % folds->count);
            dealt++;
        }
        fold[drawn[i]] = of_unit[unit[i]];
        counts[fold[drawn[i]]]++;
    }
    return MERCER_OK;
}

/* For each class without training rows, swaps a held-out row of the class for a training row of a class with several
   training rows. */
static mercer_status keep_classes(const mercer_dataset *data, mrc_split *split)
{
    int64_t *counts, fitted = mrc_folds_training(&split->folds), spare = fitted - 1;
    MRC_SCOPE(scope, data->context);
    if (!data->labels) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc_zero(&scope, &counts, data->outputs, sizeof *counts, "counts of classes"));
    for (int64_t i = 0; i < fitted; i++) counts[data->labels[split->rows[i]]]++;
    for (int64_t i = fitted; i < mrc_folds_rows(&split->folds); i++) {
        int32_t own = data->labels[split->rows[i]];
        while (counts[own] == 0 && spare >= 0 && counts[data->labels[split->rows[spare]]] < 2) spare--;
        if (counts[own] > 0 || spare < 0) continue;
        int64_t row = split->rows[spare];
        counts[data->labels[row]]--, counts[own]++;
        split->rows[spare--] = split->rows[i], split->rows[i] = row;
    }
    return MERCER_OK;
}

/* Collects the rows of each fold f, up to most[f], from the first m of n rows in random order. fold (n): fold of every
   row. */
static void gather_keys(mrc_split *out, int64_t n, int64_t m, const int64_t *most, const signed char *fold, mrc_rng rng)
{
    int64_t at = 0;
    for (int f = 0; f < out->folds.count; f++) {
        int64_t first = out->folds.start[f] = at;
        for (int64_t i = 0; i < m && at - first < most[f]; i++) {
            int64_t row = mrc_random_permutation(rng, n, i);
            if (fold[row] == f) out->rows[at++] = row;
        }
    }
    out->folds.start[out->folds.count] = at;
}

mercer_status mrc_split_make(mrc_split *out, const mercer_dataset *data, int64_t most, uint64_t seed)
{
    int64_t n = data->rows, capacity[MRC_FOLDS] = {0}, units = 0;
    bool held_out = n >= FOLD_ROWS || data->key_kind == MRC_KEYS_TIMES;
    signed char *fold;
    mrc_rng rng = {seed, RANDOM_SPLIT};
    MRC_SCOPE(scope, data->context);
    *out = (mrc_split){.folds.held_out = held_out};
    if (n < 2)
        return mrc_fail(data->context, MERCER_ERROR_DATA, "%lld rows are too few to hold out some of them",
                        (long long)n);
    out->folds.count = held_out ? 2 : (int)mrc_min(n < FEW_ROWS ? 2 * FOLDS : FOLDS, n);
    int64_t held = held_out ? mrc_min(mrc_max(1, n / HELD_SHARE), most / 2) : 0, fitted = mrc_min(n - held, most),
            m = data->keys ? n : mrc_min(n, fitted + held);
    MRC_TRY(mrc_scope_alloc(&scope, &fold, n, sizeof *fold, "folds of rows"));
    MRC_TRY(mrc_alloc(data->context, &out->rows, mrc_min(n, fitted + held + 1), sizeof *out->rows, "row numbers"));
    MRC_TRY(data->keys ? split_by_keys(data, &out->folds, seed, fold)
                       : split_rows(data, &out->folds, m, mrc_max(1, held), rng, fold, &units));
    int folds = out->folds.count;
    for (int f = 0; f < folds; f++) capacity[f] = data->keys ? (fitted + folds - 1 - f) / folds : m;
    if (data->keys && held_out) capacity[0] = fitted, capacity[HELD] = mrc_max(1, held);
    gather_keys(out, n, m, capacity, fold, rng);
    return held_out && units == m ? keep_classes(data, out) : MERCER_OK;
}

/* ---- Units of a draw --------------------------------------------------------------------------------------------- */

/* Finds cuts: positions between half and three quarters of the rows where the time changes. If the time does not change
   in this range, a change near it is the only cut. Returns the number of cuts. The rows must have at least two distinct
   times. */
static int64_t find_cuts(const mrc_keyed *sorted, int64_t n, int64_t *cuts)
{
    int64_t count = 0, last = n * 3 / 4, before = last, after = last;
    for (int64_t i = mrc_max(1, n / 2); i <= last; i++)
        if (sorted[i - 1].key != sorted[i].key) cuts[count++] = i;
    if (count > 0) return count;
    while (before > 0 && sorted[before - 1].key == sorted[last].key) before--;
    while (after < n && sorted[after].key == sorted[last].key) after++;
    cuts[0] = before > 0 ? before : after;
    return 1;
}

/* Sets keys (n) to the times of the rows. Sets *times to whether the rows have times that are not all equal. */
static mercer_status find_times(const mercer_dataset *data, const int64_t *rows, int64_t n, double *keys, bool *times)
{
    double *first;
    MRC_SCOPE(scope, data->context);
    *times = false;
    if (data->key_kind != MRC_KEYS_TIMES) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc(&scope, &first, data->rows, sizeof *first, "times of rows"));
    MRC_TRY(mrc_first_times(data, first));
    for (int64_t i = 0; i < n; i++) {
        keys[i] = first[rows[i]];
        *times = *times || keys[i] != keys[0];
    }
    return MERCER_OK;
}

mercer_status mrc_split_units(const mercer_dataset *data, const int64_t *rows, int64_t n, mrc_scope *scope,
                              mrc_descent_rows *out)
{
    int64_t *unit, *order, *start, *cuts, units = 0, different;
    mrc_keyed *sorted;
    double *keys;
    bool times;
    MRC_TRY(mrc_scope_alloc(scope, &unit, 4 * n + 2, sizeof *unit, "row numbers"));
    MRC_TRY(mrc_scope_alloc(scope, &keys, n, sizeof *keys, "keys of rows"));
    MRC_TRY(mrc_scope_alloc(scope, &sorted, n, sizeof *sorted, "keys of rows"));
    order = unit + n, start = order + n, cuts = start + n + 1;
    MRC_TRY(mrc_row_units(data, rows, n, unit, &different));
    MRC_TRY(find_times(data, rows, n, keys, &times));
    for (int64_t i = 0; i < n; i++) sorted[i] = (mrc_keyed){times ? keys[i] : (double)unit[i], i};
    mrc_keyed_sort(sorted, n);
    for (int64_t i = 0; i < n; i++) {
        order[i] = sorted[i].row;
        if (i == 0 || times || sorted[i].key != sorted[i - 1].key) start[units++] = i;
    }
    start[units] = n;
    if (units < 2)
        return mrc_fail(
            data->context, MERCER_ERROR_DATA,
            data->key_kind == MRC_KEYS_GROUPS
                ? "search: all training rows are in one group, so no group can be held out; turn the search off or "
                  "remove the groups"
                : "search: all training rows have equal features, so no row can be held out; turn the search off");
    out->order = order;
    out->start = start;
    out->units = units;
    out->different = different;
    out->cuts = cuts;
    out->cut_count = times ? find_cuts(sorted, n, cuts) : 0;
    return MERCER_OK;
}

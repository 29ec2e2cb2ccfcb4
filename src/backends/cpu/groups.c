/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of features in which every row has at most one nonzero value: the one-hot levels of a category, signs, and
 * other features of a table that exclude each other. For a category of L levels, a product of two rows then needs one
 * comparison instead of L multiplications.
 *
 *   before_k = the largest index of a nonzero feature, over the rows in which k is the next nonzero feature
 *   groups   features s .. e with before_k < s for all k in s .. e; formed from the first feature on, each as long as
 *            possible
 *
 * The omitted terms are products with 0 or differences of zeros. They change no bit of a chain that starts at 0, except
 * the sign of a sum that has become -0. A distance does not depend on that sign, but functions of the inner product
 * may, so they do not use groups. Results are bitwise identical to those without groups, so any criterion may decide
 * whether to use groups. Products need zeros in centered rows: origins are 0 where a feature is 0 or one other value
 * (mrc_clear_flags). Sums of differences add both values in the order of their features; they need features with only
 * one nonzero value, as levels have.
 *
 * X (m, d), Z (p, d). Cost: O(d) for a sample of rows of Z; if the sample has groups, O((m + p) d), a few operations
 * per nonzero value. Memory: O(d) per worker.
 */
#include "backends/cpu/tile.h"

#include "core/matrix.h"
#include "core/threads/parallel.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_FEATURES = 8,          /* minimum number of features for a search */
    MOST_FEATURES = 1 << 24,     /* feature indices up to this number are exact in float */
    LEAST_ROWS = 96,             /* minimum rows of X for which a search pays off */
    LEAST_ROWS_DIFFERENCES = 24, /* the same for sums of differences, which take longer than products */
    SOME_ROWS = 32,              /* number of rows of Z in the first sample */
    PIECE_ROWS = 256             /* rows per piece of parallel work */
};

typedef struct search {
    const mrc_product *product;
    mrc_scan *scans; /* one per worker */
} search;

/* Return whether a search for groups is possible and could pay off for this product. */
static bool may_have_groups(const mrc_product *product)
{
    bool suits = product->on_distance && !product->bytes && !product->few && !product->signs &&
                 (!product->direct || product->norm == 1);
    return suits && product->d >= LEAST_FEATURES && product->d <= MOST_FEATURES && product->z->rows > 0 &&
           product->x->rows >= (product->direct ? LEAST_ROWS_DIFFERENCES : LEAST_ROWS);
}

/* Per worker: a struct and three arrays of d elements of at most 8 bytes (row, level, before). After these: value_at,
   group_at and the lengths of the runs, at most 3 d + 2 integers. */
int64_t mrc_groups_bytes(const mrc_product *product, int threads)
{
    int64_t d = product->d;
    return may_have_groups(product) ? threads * ((int64_t)sizeof(mrc_scan) + 3 * d * 8) + (3 * d + 2) * 4 : 0;
}

static int64_t pieces_of(const mercer_matrix *matrix)
{
    return (matrix->rows + PIECE_ROWS - 1) / PIECE_ROWS;
}

/* A piece of parallel work: add up to PIECE_ROWS rows of Z or X to the statistics of this worker. */
static void scan_piece(void *argument, int64_t index, int worker)
{
    search *self = argument;
    const mrc_product *product = self->product;
    int64_t z_pieces = pieces_of(product->z);
    const mercer_matrix *source = index < z_pieces ? product->z : product->x;
    int64_t first = (index < z_pieces ? index : index - z_pieces) * PIECE_ROWS;
    for (int64_t i = first; i < mrc_min(first + PIECE_ROWS, source->rows); i++)
        product->type->scan(product, source, i, &self->scans[worker]);
}

/* Return true if feature k cannot be in a group: in sums of differences, unless its values are 0 and one positive
   value. */
static bool stands_alone(const mrc_product *product, const mrc_scan *scan, int64_t k)
{
    return product->direct && !(product->type->level(scan, k) >= 0);
}

/* Return the end (one past the last feature) of the group that begins at feature `first`. */
static int64_t group_end(const mrc_product *product, const mrc_scan *scan, int64_t first)
{
    int64_t k = first + 1;
    if (stands_alone(product, scan, first)) return k;
    while (k < product->d && scan->before[k] < first && !stands_alone(product, scan, k)) k++;
    return k;
}

/* Fill the tables of groups; return false if groups would not save enough work. A group takes one value and one index,
   and its index is `cost` - 1 times as expensive as a value. A new pair of lengths (ungrouped features, groups) starts
   where an ungrouped feature follows a group. */
static bool form_groups(const mrc_product *product, const mrc_scan *scan, mrc_groups *groups, int32_t *lengths)
{
    const int64_t d = product->d, cost = mrc_max(2, product->uk->group_cost);
    int64_t values = 0, count = 0, runs = 0;
    lengths[0] = lengths[1] = 0;
    for (int64_t first = 0, end; first < d; first = end) {
        end = group_end(product, scan, first);
        bool group = end - first > cost;
        for (int64_t k = first; k < end; k++) {
            groups->value_at[k] = (int32_t)(group ? values : values + k - first);
            groups->group_at[k] = group ? (int32_t)count : -1;
        }
        if (!group && lengths[2 * runs + 1] > 0) runs++, lengths[2 * runs] = lengths[2 * runs + 1] = 0;
        lengths[2 * runs + (group ? 1 : 0)] += (int32_t)(group ? 1 : end - first);
        values += group ? 1 : end - first;
        count += group;
    }
    /* The search costs time, too, so groups must save at least a quarter of the work. */
    if (4 * (values + (cost - 1) * count) > 3 * d) return false;
    /* Indices follow the values. The indices of ungrouped features go to an unused element after the end of the packed
       row. The buffer has space for this element, because groups shorten the row. */
    for (int64_t k = 0; k < d; k++)
        groups->group_at[k] = (int32_t)(groups->group_at[k] >= 0 ? values + groups->group_at[k] : values + count);
    groups->runs = (mrc_runs){lengths, runs + 1, values};
    groups->count = count;
    return true;
}

/* Divide `scratch` into the statistics of the workers, used only by the search, and the tables of the product. */
static void lay_out(const mrc_product *product, mrc_scan *scans, int threads, mrc_groups *groups, int32_t **lengths)
{
    const int64_t d = product->d;
    double *scratch = (double *)(void *)(scans + threads);
    for (int i = 0; i < threads; i++, scratch += 3 * d) {
        scans[i] = (mrc_scan){scratch, memset(scratch + d, 0, (size_t)d * sizeof *scratch),
                              (int32_t *)(void *)(scratch + 2 * d)};
        for (int64_t k = 0; k < d; k++) scans[i].before[k] = -1;
    }
    groups->value_at = (int32_t *)(void *)scratch;
    groups->group_at = groups->value_at + d;
    *lengths = groups->group_at + d;
}

/* A sample of Z decides first whether a scan of all rows can pay off, because further rows can only split groups. The
   final groups come from every row of X and Z, so no row has two nonzero values in a group. */
void mrc_groups_find(mrc_product *product, int threads, void *scratch)
{
    mrc_groups *groups = &product->grouping;
    const mercer_matrix *x = product->x, *z = product->z;
    mrc_scan *scans = scratch;
    int32_t *lengths;
    lay_out(product, scans, threads, groups, &lengths);
    for (int64_t i = 0; i < z->rows; i += mrc_max(1, z->rows / SOME_ROWS)) product->type->scan(product, z, i, scans);
    if (!form_groups(product, scans, groups, lengths)) return;
    search self = {product, scans};
    bool same = x->data == z->data && x->rows == z->rows && x->ld == z->ld && x->dtype == z->dtype;
    mrc_parallel_for(threads, pieces_of(z) + (same ? 0 : pieces_of(x)), scan_piece, &self);
    for (int i = 1; i < threads; i++) product->type->join(product, scans, &scans[i]);
    if (!form_groups(product, scans, groups, lengths)) return;
    product->depth = groups->runs.values + groups->count;
    product->grouped = true;
}

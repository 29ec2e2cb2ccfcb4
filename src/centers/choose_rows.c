/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choice of row numbers: at random, balanced over classes, in proportion to weights.
 *
 *   random      the first p of a random permutation of 0 .. n - 1
 *   balanced    in the order of the same permutation, the first min(n_c, L) rows of each class c, which has n_c rows;
 *               L is the largest number that gives at most p rows; the first surplus rows fill up to p
 *   by weights  row i waits for an exponential time with rate w_i, -log(1 - u_i) / w_i with u_i uniform in [0, 1); the
 *               first p to arrive are chosen: draws without replacement, in proportion to the remaining weights
 *   weighted    row i with probability w_i / sum w: the first i with w_0 + ... + w_i > u sum w, u uniform in [0, 1)
 *
 * Cost: a few dozen operations per chosen row (random) or per row (balanced); a sort of n numbers (by weights); n
 * additions per set of weights and log n steps per draw (weighted).
 */
#include "centers/center_selection.h"

#include "core/memory.h"
#include "core/numbers/weighted.h"

#include <math.h>
#include <string.h>

void mrc_choose_random(uint64_t seed, int64_t n, int64_t p, int64_t *rows)
{
    for (int64_t i = 0; i < p; i++) rows[i] = mrc_random_permutation((mrc_rng){seed, MRC_RANDOM_CHOICE}, n, i);
}

void mrc_choose_fill(uint64_t seed, int64_t n, int64_t have, int64_t p, int64_t *rows, int32_t *taken)
{
    memset(taken, 0, (size_t)n * sizeof *taken);
    for (int64_t i = 0; i < have; i++) taken[rows[i]] = 1;
    for (int64_t i = 0; have < p; i++) {
        int64_t row = mrc_random_permutation((mrc_rng){seed, MRC_RANDOM_FILL}, n, i);
        if (!taken[row]) rows[have++] = row;
    }
}

mercer_status mrc_choose_weighted(mercer_context *context, uint64_t seed, const double *weights, int64_t n, int64_t p,
                                  int64_t *rows)
{
    mrc_keyed *queue; /* (n) rows by waiting time */
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &queue, n, sizeof *queue, "waiting times of rows"));
    for (int64_t i = 0; i < n; i++) {
        double wait = -log1p(-mrc_random_uniform((mrc_rng){seed, MRC_RANDOM_WAITS}, (uint64_t)i));
        queue[i] = (mrc_keyed){weights[i] > 0 ? wait / weights[i] : (double)INFINITY, i};
    }
    mrc_keyed_sort(queue, n);
    for (int64_t i = 0; i < p; i++) rows[i] = queue[i].row;
    return MERCER_OK;
}

/* Returns sum_c min(counts[c], level). */
static int64_t filled_to(const int64_t *counts, int64_t classes, int64_t level)
{
    int64_t sum = 0;
    for (int64_t c = 0; c < classes; c++) sum += mrc_min(counts[c], level);
    return sum;
}

mercer_status mrc_choose_balanced(mercer_context *context, uint64_t seed, const int32_t *labels, int64_t n,
                                  int64_t classes, int64_t p, int64_t *rows)
{
    int64_t *counts;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &counts, 2 * classes, sizeof *counts, "counts of classes"));
    int64_t *took = counts + classes;
    for (int64_t i = 0; i < n; i++) counts[labels[i]]++;
    int64_t low = 0, high = p; /* invariant: filled_to(low) <= p; levels above high exceed p or add no rows */
    while (low < high) {
        int64_t level = low + (high - low + 1) / 2;
        if (filled_to(counts, classes, level) <= p)
            low = level;
        else
            high = level - 1;
    }
    int64_t have = 0, missing = p - filled_to(counts, classes, low);
    for (int64_t i = 0; have < p; i++) {
        int64_t row = mrc_random_permutation((mrc_rng){seed, MRC_RANDOM_CHOICE}, n, i);
        int32_t label = labels[row];
        if (took[label] >= low) { /* the class has its share: fill up with the first surplus rows of all classes */
            if (missing == 0) continue;
            missing--;
        }
        took[label]++;
        rows[have++] = row;
    }
    return MERCER_OK;
}

double mrc_sum_weights(const double *weights, int64_t n, double *sums)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sums[i] = sum += weights[i];
    return sum;
}

int64_t mrc_draw_row(const double *sums, int64_t n, double share)
{
    double target = share * sums[n - 1];
    int64_t low = 0, high = n - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sums[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    /* skip rows of weight 0; needed if share times the sum rounds up */
    while (low > 0 && !(sums[low] > sums[low - 1])) low--;
    return low;
}

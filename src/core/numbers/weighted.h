/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with weights, for quantiles and ranks: sorted by value, then weights are summed from below. */
#ifndef MRC_CORE_NUMBERS_WEIGHTED_H
#define MRC_CORE_NUMBERS_WEIGHTED_H

#include <stdint.h>
#include <stdlib.h>

typedef struct mrc_weighted {
    double value, weight;
} mrc_weighted;

static inline int mrc_weighted_compare(const void *a, const void *b)
{
    const mrc_weighted *left = a, *right = b;
    return (left->value > right->value) - (left->value < right->value);
}

/* Ascending. */
static inline void mrc_weighted_sort(mrc_weighted *list, int64_t count)
{
    qsort(list, (size_t)count, sizeof *list, mrc_weighted_compare);
}

#endif

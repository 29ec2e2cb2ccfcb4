/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts in ascending order: numbers; numbers with weights, for quantiles and ranks; row numbers by a key. */
#ifndef MRC_CORE_NUMBERS_WEIGHTED_H
#define MRC_CORE_NUMBERS_WEIGHTED_H

#include <stdint.h>
#include <stdlib.h>

/* Compares two doubles for qsort, in ascending order. */
static inline int mrc_double_compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static inline void mrc_doubles_sort(double *list, int64_t count)
{
    qsort(list, (size_t)count, sizeof *list, mrc_double_compare);
}

typedef struct mrc_weighted {
    double value, weight;
} mrc_weighted;

static inline int mrc_weighted_compare(const void *a, const void *b)
{
    return mrc_double_compare(&((const mrc_weighted *)a)->value, &((const mrc_weighted *)b)->value);
}

/* Sorts by value. */
static inline void mrc_weighted_sort(mrc_weighted *list, int64_t count)
{
    qsort(list, (size_t)count, sizeof *list, mrc_weighted_compare);
}

typedef struct mrc_keyed {
    double key;
    int64_t row;
} mrc_keyed;

static inline int mrc_keyed_compare(const void *a, const void *b)
{
    const mrc_keyed *left = a, *right = b;
    int order = mrc_double_compare(&left->key, &right->key);
    return order ? order : (left->row > right->row) - (left->row < right->row);
}

/* Sorts by key; rows with equal keys are sorted by row number. */
static inline void mrc_keyed_sort(mrc_keyed *list, int64_t count)
{
    qsort(list, (size_t)count, sizeof *list, mrc_keyed_compare);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The linear map that applies a kernel's metric to its points, y = x A: with M = A A' the distance of mapped points is
 * |y - y'|^2 = (x - x') M (x - x')'. A is (d, d') with d' <= d, or diagonal. The map is plain data, so that model files
 * can store it. features/metric.h computes the map from a metric.
 */
#ifndef MRC_DATA_PREPARE_LINEAR_MAP_H
#define MRC_DATA_PREPARE_LINEAR_MAP_H

#include "core/context.h"

#include <stdbool.h>

/*
 * Adds products of rows and columns of A to sums (MRC_MAP_ROWS, MRC_MAP_STRIP). x: `count` features of MRC_MAP_ROWS
 * rows, which are `stride` doubles apart. a: `groups` groups of MRC_MAP_GROUP columns; the groups are `step` doubles
 * apart.
 */
typedef void mrc_map_add(int64_t groups, int64_t step, int64_t count, const double *a, const double *x, int64_t stride,
                         double *sums);
mrc_map_add mrc_linear_map_add_avx512; /* x86 builds only */

typedef struct mrc_linear_map {
    int64_t features, width; /* d, d'; equal if A is diagonal */
    bool diagonal;
    double *values; /* (d, d'), or the diagonal (d) */
    /* (groups of 8 columns, d, 8) A in groups of columns, padded with zeros, in the allocation of `values`; NULL if
       diagonal */
    double *packed;
    mrc_map_add *add;
} mrc_linear_map;

/* Makes a map. `values` are copied, and must have been checked. */
mercer_status mrc_linear_map_create(mrc_linear_map **out, mercer_context *context, int64_t features, int64_t width,
                                    bool diagonal, const double *values);
void mrc_linear_map_free(mercer_context *context, mrc_linear_map *map);

/*
 * Adds features first .. first + count - 1 of MRC_MAP_ROWS rows, `stride` doubles apart, to the sums of a strip of
 * columns. Sums must start at 0; once all features are added, sums (MRC_MAP_ROWS, MRC_MAP_STRIP) hold columns column,
 * column + 1, ... of x A. Each element is summed over the features in order, so the result for a row is bitwise
 * identical in every batch.
 */
enum { MRC_MAP_ROWS = 4, MRC_MAP_GROUP = 8, MRC_MAP_STRIP = 256 };
void mrc_linear_map_add(const mrc_linear_map *map, int64_t column, int64_t first, int64_t count, const double *x,
                        int64_t stride, double *sums);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The linear map that puts a kernel's metric into its points, y = x A: with M = A A' the distance of mapped points is
 * |y - y'|^2 = (x - x') M (x - x')'. A is (d, d') with d' <= d, or diagonal, and plain data, so that model files can
 * store it; where metrics come from is said in features/metric.h.
 */
#ifndef MRC_DATA_PREPARE_LINEAR_MAP_H
#define MRC_DATA_PREPARE_LINEAR_MAP_H

#include "core/context.h"

#include <stdbool.h>

/*
 * sums (MRC_MAP_ROWS, MRC_MAP_STRIP) += what `count` features of some rows, `stride` doubles apart, give in groups of
 * columns of A that lie `step` doubles apart.
 */
typedef void mrc_map_add(int64_t groups, int64_t step, int64_t count, const double *a, const double *x, int64_t stride,
                         double *sums);
mrc_map_add mrc_linear_map_add_avx512; /* where it was built for that */

typedef struct mrc_linear_map {
    int64_t features, width; /* d, d'; equal if it is diagonal */
    bool diagonal;
    double *values; /* (d, d'), or the diagonal (d) */
    double *packed; /* (groups of 8 columns, d, 8), zeros behind the last column; NULL if diagonal; one block with it */
    mrc_map_add *add;
} mrc_linear_map;

/* A map of these values (copied); they have been checked. */
mercer_status mrc_linear_map_create(mrc_linear_map **out, mercer_context *context, int64_t features, int64_t width,
                                    bool diagonal, const double *values);
void mrc_linear_map_free(mercer_context *context, mrc_linear_map *map);

/*
 * Sums of a strip of columns. begin: 0; add: features first .. first + count - 1 of some rows, `stride` doubles apart;
 * then sums (MRC_MAP_ROWS, MRC_MAP_STRIP) hold columns column .. of x A. One chain over the features for each element:
 * a row's bits depend on that row alone.
 */
enum { MRC_MAP_ROWS = 4, MRC_MAP_GROUP = 8, MRC_MAP_STRIP = 256 };
void mrc_linear_map_add(const mrc_linear_map *map, int64_t column, int64_t first, int64_t count, const double *x,
                        int64_t stride, double *sums);

#endif

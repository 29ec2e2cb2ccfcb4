/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * y_ij = sum_k x_ik A_kj in double. Columns of A lie packed in groups of four, so that four rows and four columns stay
 * in registers. Cost: 2 d d' flops a row, at the speed of plain vectors of the base line.
 */
#include "data/prepare/linear_map.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

static void pack(mrc_linear_map *map)
{
    for (int64_t group = 0; group * MRC_MAP_GROUP < map->width; group++)
        for (int64_t k = 0; k < map->features; k++)
            for (int64_t j = 0; j < MRC_MAP_GROUP; j++) {
                int64_t column = group * MRC_MAP_GROUP + j;
                map->packed[(group * map->features + k) * MRC_MAP_GROUP + j] =
                    column < map->width ? map->values[k * map->width + column] : 0;
            }
}

mercer_status mrc_linear_map_create(mrc_linear_map **out, mercer_context *context, int64_t features, int64_t width,
                                    bool diagonal, const double *values)
{
    mrc_linear_map *map;
    double *numbers;
    int64_t plain = features, padded = 0;
    *out = NULL;
    bool fits = diagonal || (mrc_multiply(features, width, &plain) &&
                             mrc_multiply(features, mrc_round_up(width, MRC_MAP_GROUP), &padded));
    if (!fits || padded > INT64_MAX - plain)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "a metric of %lld x %lld overflows memory", (long long)features,
                        (long long)width);
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &map, 1, sizeof *map, "the metric"));
    MRC_TRY(mrc_scope_alloc(&scope, &numbers, plain + padded, sizeof *numbers, "the metric"));
    mrc_scope_keep(&scope);
    *map = (mrc_linear_map){.features = features, .width = width, .diagonal = diagonal, .values = numbers};
    memcpy(map->values, values, (size_t)plain * sizeof *values);
    if (!diagonal) {
        map->packed = map->values + plain;
        pack(map);
    }
    *out = map;
    return MERCER_OK;
}

void mrc_linear_map_free(mercer_context *context, mrc_linear_map *map)
{
    if (!map) return;
    mrc_free(context, map->values);
    mrc_free(context, map);
}

void mrc_linear_map_add(const mrc_linear_map *map, int64_t column, int64_t first, int64_t count, const double *x,
                        int64_t stride, double *sums)
{
    int64_t groups = (mrc_min(MRC_MAP_STRIP, map->width - column) + MRC_MAP_GROUP - 1) / MRC_MAP_GROUP;
    for (int64_t group = 0; group < groups; group++) {
        const double *a = map->packed + ((column / MRC_MAP_GROUP + group) * map->features + first) * MRC_MAP_GROUP;
        double part[MRC_MAP_ROWS][MRC_MAP_GROUP];
        for (int r = 0; r < MRC_MAP_ROWS; r++)
            memcpy(part[r], sums + r * MRC_MAP_STRIP + group * MRC_MAP_GROUP, sizeof part[r]);
        for (int64_t k = 0; k < count; k++, a += MRC_MAP_GROUP)
            for (int r = 0; r < MRC_MAP_ROWS; r++)
                for (int j = 0; j < MRC_MAP_GROUP; j++) part[r][j] += x[r * stride + k] * a[j];
        for (int r = 0; r < MRC_MAP_ROWS; r++)
            memcpy(sums + r * MRC_MAP_STRIP + group * MRC_MAP_GROUP, part[r], sizeof part[r]);
    }
}

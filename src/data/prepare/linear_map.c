/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * y_ij = sum_k x_ik A_kj in double. Columns of A are packed in groups of eight, so that four rows and eight columns
 * stay in registers. Cost: 2 d d' flops per row, with the widest vectors of the processor (linear_map_body.h).
 */
#include "data/prepare/linear_map.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

#define MAP_SCOPE  static
#define ADD_GROUPS add_groups
#include "data/prepare/linear_map_body.h"

/* Returns the kernel for the context's instruction set. */
static mrc_map_add *best_for(const mercer_context *context)
{
#if defined(MERCER_X86)
    if (context->isa >= MRC_ISA_AVX512) return mrc_linear_map_add_avx512;
#else
    (void)context;
#endif
    return add_groups;
}

/* Fills map->packed; columns from map->width on are 0. */
static void pack_map(mrc_linear_map *map)
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
    /* plain: numbers in `values`; padded: numbers in `packed`, whose columns are rounded up to whole groups */
    bool fits = diagonal || (mrc_multiply(features, width, &plain) &&
                             mrc_multiply(features, mrc_round_up(width, MRC_MAP_GROUP), &padded));
    if (!fits || padded > INT64_MAX - plain)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "a metric of %lld x %lld exceeds the address space",
                        (long long)features, (long long)width);
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &map, 1, sizeof *map, "the metric"));
    MRC_TRY(mrc_scope_alloc(&scope, &numbers, plain + padded, sizeof *numbers, "the metric"));
    mrc_scope_disown(&scope);
    *map = (mrc_linear_map){
        .features = features, .width = width, .diagonal = diagonal, .values = numbers, .add = best_for(context)};
    memcpy(map->values, values, (size_t)plain * sizeof *values);
    if (!diagonal) {
        map->packed = map->values + plain;
        pack_map(map);
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

/* Results are bitwise identical on every instruction set. */
void mrc_linear_map_add(const mrc_linear_map *map, int64_t column, int64_t first, int64_t count, const double *x,
                        int64_t stride, double *sums)
{
    int64_t groups = (mrc_min(MRC_MAP_STRIP, map->width - column) + MRC_MAP_GROUP - 1) / MRC_MAP_GROUP;
    const double *a = map->packed + (column / MRC_MAP_GROUP * map->features + first) * MRC_MAP_GROUP;
    map->add(groups, map->features * MRC_MAP_GROUP, count, a, x, stride, sums);
}

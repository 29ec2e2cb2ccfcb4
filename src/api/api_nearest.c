/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: nearest rows and the median distance. */
#include "centers/center_selection.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

mercer_status mercer_nearest_rows(mercer_context *context, int32_t *nearest, double *sqdistances,
                                  const mercer_matrix *X, const mercer_matrix *Z)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    double x_top, z_top;
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_matrix(context, "Z", Z, MRC_ACCEPT_ANY));
    if (X->cols != Z->cols)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "X has %lld columns, Z has %lld: they must have the same features",
                        (long long)X->cols, (long long)Z->cols);
    if (Z->rows < 1 || Z->rows > INT32_MAX)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "Z has %lld rows, it must have 1 .. %d", (long long)Z->rows,
                        INT32_MAX);
    if (X->rows > 0 && !nearest) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "nearest is NULL");
    MRC_TRY(mrc_check_finite(context, "X", X, &x_top));
    MRC_TRY(mrc_check_finite(context, "Z", Z, &z_top));
    mrc_search search = {.x = X, .z = Z};
    MRC_TRY(mrc_check_range(context, fmax(x_top, z_top), X->cols, &search.wide));
    void *room = NULL;
    if (!sqdistances) MRC_TRY(mrc_alloc(context, &room, X->rows, sizeof(double), "distances"));
    mercer_status status =
        context->backend->ops->nearest_rows(context->backend, &search, nearest, sqdistances ? sqdistances : room);
    mrc_free(context, room);
    return status;
}

mercer_status mercer_median_distance(mercer_context *context, double *out, const mercer_matrix *X, uint64_t seed)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    if (X->rows < 2)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "X has %lld rows: a distance takes two", (long long)X->rows);
    double top, median;
    bool wide;
    MRC_TRY(mrc_check_finite(context, "X", X, &top));
    MRC_TRY(mrc_check_range(context, top, X->cols, &wide));
    MRC_TRY(mrc_median_distance(context->backend, X, seed, &median));
    *out = median;
    return MERCER_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preprocessing by rank: a number becomes the normal quantile of its rank.
 *
 *   x_k = the (k + 1/2) / Q quantile of a feature,  z_k = Phi^-1((k + 1/2) / Q),  k = 0 .. Q - 1,  Q = 256
 *   y = z_0 below x_0, z_Q-1 above x_Q-1, in between by linear interpolation of (x_k, z_k); where several x_k are
 *   equal to x, the mean of the first and the last of their z_k
 *
 * x (n, d); x_k (d, Q) double. The quantiles are computed from at most 65,536 evenly spaced rows. If these rows would
 * take more than 256 MiB, fewer rows are used, but at least 1,024. Features of a table that are 0 or 1 (data/schema)
 * become 0 or 2, or 0 or 1/2 if they are flags of missing values. Cost: O(n d log Q) to apply; to fit, each of the d
 * columns is sorted.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/target_curve.h"
#include "core/numbers/weighted.h"
#include "data/dataset.h"
#include "data/prepare/preprocess.h"
#include "data/prepare/preprocess_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 1 << 16, LEAST_ROWS = 1 << 10, MOST_BYTES = 1 << 28 };

/* ---- Applying ------------------------------------------------------------------------------------------------ */

/* Returns the slope between knot k - 1 and knot k, which must differ; 0 before the first knot and after the last. */
static double slope_before(const double *knots, const double *normal, int k)
{
    if (k == 0 || k == MRC_RANK_KNOTS) return 0;
    return (normal[k] - normal[k - 1]) / (knots[k] - knots[k - 1]);
}

double mrc_rank_slope(const double *knots, const double *normal, double x)
{
    int below = mrc_rank_below(knots, x, false), upto = mrc_rank_below(knots, x, true);
    return 0.5 * (slope_before(knots, normal, below) + slope_before(knots, normal, upto));
}

mercer_status mrc_preprocess_set_knots(mercer_preprocess *self, const double *knots)
{
    double *memory;
    int64_t count = self->features * MRC_RANK_KNOTS;
    MRC_TRY(mrc_alloc(self->context, &memory, count + MRC_RANK_KNOTS, sizeof *memory, "the preprocessing"));
    mrc_free(self->context, self->knots);
    self->knots = memory;
    self->normal = self->knots + count;
    memcpy(self->knots, knots, (size_t)count * sizeof(double));
    for (int k = 0; k < MRC_RANK_KNOTS; k++) self->normal[k] = mrc_normal_quantile((k + 0.5) / MRC_RANK_KNOTS);
    return MERCER_OK;
}

/* ---- Fitting ------------------------------------------------------------------------------------------------- */

/* Computes the quantiles of all features. column (rows): scratch space. With n sorted values, the quantile of share p
   is the value at index floor(p n). */
static mercer_status find_knots(mercer_context *context, const mercer_matrix *rows, double *column, double *knots)
{
    for (int64_t j = 0; j < rows->cols; j++) {
        for (int64_t i = 0; i < rows->rows; i++) {
            column[i] = mrc_load(rows, i, j);
            if (!isfinite(column[i]))
                return mrc_fail(context, MERCER_ERROR_DATA,
                                "feature %lld (from 0) has a value %g; preprocessing needs finite values", (long long)j,
                                column[i]);
        }
        mrc_doubles_sort(column, rows->rows);
        for (int k = 0; k < MRC_RANK_KNOTS; k++)
            knots[j * MRC_RANK_KNOTS + k] = column[(int64_t)((k + 0.5) / MRC_RANK_KNOTS * (double)rows->rows)];
    }
    return MERCER_OK;
}

mercer_status mrc_preprocess_fit_rank(mercer_preprocess **out, mercer_context *context, const mercer_dataset *data)
{
    if (!data || data->rows < 1) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "preprocessing rank needs data");
    int64_t d = data->features, bytes = mrc_max(1, d * mrc_dtype_size(data->dtype)), *rows;
    int64_t m = mrc_min(data->rows, mrc_min(MOST_ROWS, mrc_max(LEAST_ROWS, MOST_BYTES / bytes)));
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *self = NULL;
    double *work, *shift;
    mercer_matrix x;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_view(&scope, &x, m, d, data->dtype, "rows to find ranks"));
    MRC_TRY(mrc_scope_alloc(&scope, &rows, m, sizeof *rows, "rows to find ranks"));
    MRC_TRY(mrc_scope_alloc(&scope, &work, m + d * MRC_RANK_KNOTS, sizeof *work, "ranks"));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &shift, 2 * d, sizeof *shift, "ranks"));
    double *knots = work + m, *factor = shift + d;
    for (int64_t i = 0; i < m; i++) rows[i] = (int64_t)((double)i * (double)data->rows / (double)m);
    mrc_dataset_fetch(data, rows, 0, &x, NULL, NULL);
    MRC_TRY(find_knots(context, &x, work, knots));
    MRC_TRY(mrc_preprocess_flags(context, data, shift, factor, MRC_LEVEL_SIZE));
    MRC_TRY(mrc_preprocess_create(&self, context, MRC_PREPROCESS_RANK, 0, d, shift, factor));
    MRC_TRY(mrc_preprocess_set_knots(self, knots));
    *out = self, self = NULL;
    return MERCER_OK;
}

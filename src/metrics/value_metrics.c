/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regression metrics. With weights w and their sum W, c outputs, e = f - y:
 *
 *   mse = sum w e^2 / (W c)    mae = sum w |e| / (W c)    r2 = 1 - sum w e^2 / sum w (y - mean)^2
 *   interval score of level q = sum w (2 radius + 2 / (1 - q) max(0, |e| - radius)) / (W c)
 *   the quantile q of |e| is the smallest value such that the weight of errors up to it is at least q W
 *
 * Cost: O(c) per row, and a sort of the saved errors for the quantiles.
 */
#include "metrics/metrics.h"

#include "core/memory.h"
#include "core/numbers/weighted.h"

#include <math.h>
#include <string.h>

/* self->weight already includes this row, as Welford's update of the mean requires. */
void mrc_value_row(mercer_evaluation *self, const double *f, const double *y, double weight, double *errors)
{
    const double *radius = self->options.radius;
    for (int64_t j = 0; j < self->outputs; j++) {
        double error = f[j] - y[j], off = y[j] - self->mean[j];
        errors[j] = fabs(error);
        if (!(weight > 0)) continue;
        self->squared_error += weight * error * error;
        self->squared[j] += weight * error * error;
        self->absolute[j] += weight * fabs(error);
        self->mean[j] += off * (weight / self->weight);
        self->spread[j] += weight * off * (y[j] - self->mean[j]);
        if (!radius) continue;
        self->covered[j] += fabs(error) <= radius[j] ? weight : 0;
        self->sizes[j] += weight * 2 * radius[j];
        self->missed[j] += weight * fmax(0, fabs(error) - radius[j]);
    }
}

/* ---- Quantiles ------------------------------------------------------------------------------------------------- */

/* Computes the median, the 90 % and 99 % quantiles and the maximum of the saved errors of outputs first .. last - 1;
   NaN if there are no errors. */
static mercer_status prediction_quantiles(const mercer_evaluation *self, int64_t first, int64_t last, double out[4])
{
    static const double shares[4] = {0.5, 0.9, 0.99, 1};
    int64_t count = self->saved * (last - first), at = 0;
    double total = 0, sum = 0;
    mrc_weighted *list;
    MRC_SCOPE(scope, self->context);
    for (int k = 0; k < 4; k++) out[k] = (double)NAN;
    if (count == 0) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc(&scope, &list, count, sizeof *list, "errors"));
    for (int64_t i = 0; i < self->saved; i++)
        for (int64_t j = first; j < last; j++)
            list[at++] = (mrc_weighted){self->scores[i * self->outputs + j], self->saved_weights[i]};
    mrc_weighted_sort(list, count);
    for (int64_t i = 0; i < count; i++) total += list[i].weight;
    int k = 0;
    for (int64_t i = 0; i < count; i++)
        for (sum += list[i].weight; k < 4 && (sum >= shares[k] * total || i == count - 1); k++) out[k] = list[i].value;
    return MERCER_OK;
}

/* Computes the interval score from sums of widths and misses, and their weight. NaN without a level. */
static double interval_score(const mercer_evaluation *self, double sizes, double missed, double weight)
{
    double level = self->options.interval;
    return level > 0 && level < 1 ? (sizes + 2 / (1 - level) * missed) / weight : (double)NAN;
}

/* ---- Metrics --------------------------------------------------------------------------------------------------- */

mercer_status mrc_value_metrics(const mercer_evaluation *self, mercer_metrics *out)
{
    double absolute = 0, spread = 0, covered = 0, sizes = 0, missed = 0, q[4],
           all = self->weight * (double)self->outputs;
    for (int64_t j = 0; j < self->outputs; j++) {
        absolute += self->absolute[j], spread += self->spread[j];
        covered += self->covered[j], sizes += self->sizes[j], missed += self->missed[j];
    }
    MRC_TRY(prediction_quantiles(self, 0, self->outputs, q));
    out->mse = self->squared_error / all;
    out->rmse = sqrt(out->mse);
    out->mae = absolute / all;
    out->r2 = spread > 0 ? 1 - self->squared_error / spread : (double)NAN;
    out->error_median = q[0], out->error_90 = q[1], out->error_99 = q[2], out->error_max = q[3];
    if (!self->options.radius) return MERCER_OK;
    out->coverage = covered / all, out->interval_size = sizes / all;
    out->interval_score = interval_score(self, sizes, missed, all);
    return MERCER_OK;
}

mercer_status mrc_value_each(const mercer_evaluation *self, int64_t index, mercer_output_metrics *out)
{
    double q[4], squared = self->squared[index];
    MRC_TRY(prediction_quantiles(self, index, index + 1, q));
    out->weight = self->weight;
    out->mse = squared / self->weight;
    out->rmse = sqrt(out->mse);
    out->mae = self->absolute[index] / self->weight;
    out->r2 = self->spread[index] > 0 ? 1 - squared / self->spread[index] : (double)NAN;
    out->error_median = q[0], out->error_90 = q[1], out->error_99 = q[2], out->error_max = q[3];
    if (!self->options.radius) return MERCER_OK;
    out->coverage = self->covered[index] / self->weight;
    out->interval_size = self->sizes[index] / self->weight;
    out->interval_score = interval_score(self, self->sizes[index], self->missed[index], self->weight);
    return MERCER_OK;
}

/* Writes targets x and predictions y of the rows that were saved for a plot. Outputs beyond the first few were not
   saved: their curve is empty. */
mercer_status mrc_value_curve(const mercer_evaluation *self, const char *name, int64_t index, double *x, double *y,
                              int64_t capacity, int64_t *count)
{
    int64_t plotted_outputs = mrc_min(self->outputs, MRC_PLOTTED_OUTPUTS);
    if (strcmp(name, "predictions") != 0)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                        "name: regression has no curve '%s'; valid: "
                        "predictions",
                        name);
    *count = index < plotted_outputs ? mrc_min(self->plotted, capacity) : 0;
    for (int64_t i = 0; i < *count; i++) {
        const double *pair = self->pairs + 2 * (i * plotted_outputs + index);
        x[i] = pair[0], y[i] = pair[1];
    }
    return MERCER_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mean and standard deviation of targets, in one pass.
 *
 * For column j, after rows of total weight W (West's form of Welford's updates, which avoids cancellation):
 *     W += w,   delta = y_j - mean_j,   mean_j += delta w / W,   m2_j += w delta (y_j - mean_j)
 *   deviation = sqrt(m2 / W)
 *
 * Y (n, c); mean, m2 (c) double. One thread takes the rows in order, so results are bitwise identical for any number of
 * threads and any block size. Cost: O(n c) time, O(c) memory and a block of rows. Classes are counted in O(n): the mean
 * is the share of the class in W, and m2 / W = share (1 - share).
 */
#include "data/prepare/preprocess.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

/* COMPUTED_ROWS: number of synthetic samples that represent the infinite sequence. */
enum { BLOCK_ROWS = 1024, COMPUTED_ROWS = 4096 };

typedef struct moments {
    mercer_context *context;
    int64_t columns, before;  /* c; rows so far */
    double weight;            /* W */
    double *mean, *m2, *row;  /* (c) one allocation */
    double *low, *high;       /* (c) smallest and largest value; same allocation */
    const char *const *names; /* (c) names of the targets, or NULL */
} moments;

static mercer_status open_moments(moments *out, mrc_scope *scope, int64_t columns)
{
    *out = (moments){.context = scope->context, .columns = columns};
    MRC_TRY(mrc_scope_alloc_zero(scope, &out->mean, 5 * columns, sizeof *out->mean, "moments of the targets"));
    out->m2 = out->mean + columns;
    out->row = out->m2 + columns;
    out->low = out->row + columns;
    out->high = out->low + columns;
    for (int64_t j = 0; j < columns; j++) out->low[j] = (double)INFINITY, out->high[j] = -(double)INFINITY;
    return MERCER_OK;
}

/* Updates the moments with rows of y; rows of weight 0 do not count. */
static mercer_status add_rows(moments *self, const mercer_matrix *y, const double *weights)
{
    for (int64_t i = 0; i < y->rows; i++, self->before++) {
        double w = weights ? weights[i] : 1, odd = 0;
        if (w == 0) continue;
        self->weight += w;
        double share = w / self->weight;
        mrc_load_row_f64(y, i, self->row);
        for (int64_t j = 0; j < self->columns; j++) {
            double value = self->row[j], delta = value - self->mean[j];
            odd += value - value; /* 0 unless the value is infinite or NaN */
            self->mean[j] += delta * share;
            self->m2[j] += w * delta * (value - self->mean[j]);
            self->low[j] = value < self->low[j] ? value : self->low[j];
            self->high[j] = value > self->high[j] ? value : self->high[j];
        }
        if (odd != 0)
            return mrc_fail(self->context, MERCER_ERROR_DATA, "the targets of sample %lld (from 0) are not all finite",
                            (long long)self->before);
    }
    return MERCER_OK;
}

/* Returns whether a target is constant up to rounding. Standardizing it would turn rounding errors into targets of size
   1. */
static bool is_constant(double mean, double deviation)
{
    return !(deviation > 4 * DBL_EPSILON * fabs(mean)) || deviation < DBL_MIN;
}

enum { TARGET_CHARS = 128 };

/* Writes the description of target j for messages: its name if it has one, else its number. */
static const char *target_text(const moments *self, int64_t j, char text[TARGET_CHARS])
{
    const char *name = self->names ? self->names[j] : NULL;
    if (name)
        snprintf(text, TARGET_CHARS, "target '%.100s'", name);
    else
        snprintf(text, TARGET_CHARS, "target %lld (from 0)", (long long)j);
    return text;
}

/* Fails if the differences of a target's values are larger than rounding errors, but their squares underflow. The
   deviation would then be 0, and standardizing would destroy the values. */
static mercer_status check_width(const moments *self, int64_t j, double width)
{
    double low = self->low[j], high = self->high[j], largest = fmax(fabs(low), fabs(high));
    if (width >= MRC_TARGET_SCALE_LEAST || !(high - low > 4 * DBL_EPSILON * largest)) return MERCER_OK;
    char text[TARGET_CHARS];
    return mrc_fail(self->context, MERCER_ERROR_DATA,
                    "%s ranges from %g to %g, so squares of differences below %g underflow; multiply it by a power of "
                    "ten",
                    target_text(self, j, text), low, high, MRC_TARGET_SCALE_LEAST);
}

/* Writes the results. Fails if the total weight is 0, or if a square overflows or underflows. */
static mercer_status finish_moments(const moments *self, double *mean, double *deviation)
{
    char text[TARGET_CHARS];
    if (!(self->weight > 0)) return mrc_fail(self->context, MERCER_ERROR_DATA, "no sample has a positive weight");
    for (int64_t j = 0; j < self->columns; j++)
        if (!isfinite(self->m2[j]) || !isfinite(self->weight))
            return mrc_fail(self->context, MERCER_ERROR_DATA,
                            "%s ranges from %g to %g, so squares overflow; divide it by a power of ten",
                            target_text(self, j, text), self->low[j], self->high[j]);
    for (int64_t j = 0; j < self->columns; j++) MRC_TRY(check_width(self, j, sqrt(self->m2[j] / self->weight)));
    for (int64_t j = 0; j < self->columns; j++) {
        double width = sqrt(self->m2[j] / self->weight);
        mean[j] = self->mean[j];
        deviation[j] = is_constant(mean[j], width) ? 1 : width;
    }
    return MERCER_OK;
}

mercer_status mrc_moments(mercer_context *context, const mercer_matrix *y, const double *weights, double *mean,
                          double *deviation)
{
    moments self;
    MRC_SCOPE(scope, context);
    MRC_TRY(open_moments(&self, &scope, y->cols));
    MRC_TRY(add_rows(&self, y, weights));
    return finish_moments(&self, mean, deviation);
}

/* ---- Datasets ------------------------------------------------------------------------------------------------ */

/* Computes the moments of one-hot targets from the weights of the classes. Smallest and largest values are not set, so
   check_width accepts all classes. */
static mercer_status count_classes(moments *self, const mercer_dataset *dataset)
{
    double n = 0;
    for (int64_t i = 0; i < dataset->rows; i++) {
        double w = dataset->weights ? dataset->weights[i] : 1;
        self->mean[dataset->labels[i]] += w;
        n += w;
    }
    self->weight = n;
    for (int64_t j = 0; j < self->columns && n > 0; j++) {
        self->mean[j] /= n;
        self->m2[j] = n * self->mean[j] * (1 - self->mean[j]);
    }
    return MERCER_OK;
}

/* Adds the targets in blocks. For synthetic samples, the features must be computed too. */
static mercer_status add_values(moments *self, const mercer_dataset *dataset)
{
    int64_t rows = dataset->synth ? mrc_min(dataset->rows, COMPUTED_ROWS) : dataset->rows;
    int64_t block_rows = mrc_min(rows, BLOCK_ROWS), d = dataset->synth ? dataset->features : 0;
    mercer_matrix targets, samples;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_view(&scope, &targets, block_rows, self->columns, MERCER_F64, "targets"));
    MRC_TRY(mrc_scope_view(&scope, &samples, block_rows, d, dataset->dtype, "samples"));
    for (int64_t first = 0; first < rows; first += block_rows) {
        int64_t count = mrc_min(block_rows, rows - first);
        mercer_matrix y = mrc_rows(&targets, 0, count), x = mrc_rows(&samples, 0, count);
        if (dataset->synth)
            mrc_dataset_fetch(dataset, NULL, first, &x, &y, NULL);
        else
            for (int64_t i = 0; i < count; i++) mrc_dataset_target(dataset, first + i, &y, i);
        MRC_TRY(add_rows(self, &y, dataset->weights ? dataset->weights + first : NULL));
    }
    return MERCER_OK;
}

mercer_status mrc_dataset_moments(const mercer_dataset *dataset, double *mean, double *deviation)
{
    moments self;
    MRC_SCOPE(scope, dataset->context);
    MRC_TRY(open_moments(&self, &scope, dataset->outputs));
    self.names = dataset->labels ? NULL : dataset->target_names;
    MRC_TRY(dataset->labels ? count_classes(&self, dataset) : add_values(&self, dataset));
    return finish_moments(&self, mean, deviation);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Monotone transforms g of targets, one per output: training learns g(y), predictions are transformed back.
 *
 *   log    g(y) = log(y + shift)                inverse: exp(v) - shift
 *   rank   a table of k ascending values and the normal quantiles of their ranks; linear between entries, constant
 *          outside. The inverse interpolates in the other direction, so predictions are between the smallest and the
 *          largest target.
 *
 * Numbers: log has (c, 1) shifts. rank has (2 c, k), k >= 2: rows 2 j and 2 j + 1 are the values and quantiles of
 * output j. Each row ascends strictly up to some entry, and all later entries equal that entry.
 */
#ifndef MRC_CORE_NUMBERS_TARGET_CURVE_H
#define MRC_CORE_NUMBERS_TARGET_CURVE_H

#include "core/context.h"

#include <stdbool.h>

typedef enum mrc_curve_kind { MRC_CURVE_NONE = 0, MRC_CURVE_LOG, MRC_CURVE_RANK } mrc_curve_kind;

typedef struct mrc_curve {
    mrc_curve_kind kind;
    int64_t count;   /* k; 1 for log */
    double *numbers; /* (c or 2 c, count) owned; NULL for NONE */
} mrc_curve;

/* Convert a kind to its name ("log", ...; NULL for NONE), and a name to its kind (false if unknown). */
const char *mrc_curve_name(mrc_curve_kind kind);
bool mrc_curve_find(const char *name, mrc_curve_kind *kind);

/* Checks and copies the numbers of a transform of `outputs` outputs. On failure the curve stays unchanged. */
mercer_status mrc_curve_set(mrc_curve *curve, mercer_context *context, mrc_curve_kind kind, int64_t outputs,
                            const mercer_matrix *numbers);
void mrc_curve_clear(mrc_curve *curve, mercer_context *context);
int64_t mrc_curve_size(const mrc_curve *curve, int64_t outputs); /* returns the length of curve->numbers */

/* Compute g and its inverse for output j. */
double mrc_curve_apply(const mrc_curve *curve, int64_t j, double y);
double mrc_curve_invert(const mrc_curve *curve, int64_t j, double v);

/* Returns the quantile p, in (0, 1), of the standard normal distribution. */
double mrc_normal_quantile(double p);

#endif

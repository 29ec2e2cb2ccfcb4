/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Monotone functions g of targets, for each output its own: training learns g(y), predictions are turned back.
 *
 *   log    g(y) = log(y + shift)                back: exp(v) - shift
 *   rank   a table of k values, ascending, and the normal quantiles of their ranks: linear between them, and the first
 *          or last beyond; back alike, so a prediction lies between the smallest and the largest target
 *
 * Numbers: log (c, 1) shifts; rank (2 c, k) values and quantiles of an output below each other, k >= 2, both strictly
 * ascending up to an entry behind which all are equal to it.
 */
#ifndef MRC_CORE_NUMBERS_TARGET_CURVE_H
#define MRC_CORE_NUMBERS_TARGET_CURVE_H

#include "core/context.h"

#include <stdbool.h>

typedef enum mrc_curve_kind { MRC_CURVE_NONE = 0, MRC_CURVE_LOG, MRC_CURVE_RANK } mrc_curve_kind;

typedef struct mrc_curve {
    mrc_curve_kind kind;
    int64_t count;   /* k; 1 of log */
    double *numbers; /* (c or 2 c, count) owned; NULL if there is none */
} mrc_curve;

/* "log", ...; NULL of NONE; and back, or false. */
const char *mrc_curve_name(mrc_curve_kind kind);
bool mrc_curve_find(const char *name, mrc_curve_kind *kind);

/* Copies numbers, which it checks, for so many outputs. What was there stays if it fails. */
mercer_status mrc_curve_set(mrc_curve *curve, mercer_context *context, mrc_curve_kind kind, int64_t outputs,
                            const mercer_matrix *numbers);
void mrc_curve_clear(mrc_curve *curve, mercer_context *context);
int64_t mrc_curve_size(const mrc_curve *curve, int64_t outputs); /* how many numbers it has */

/* g of output j, and back. */
double mrc_curve_enter(const mrc_curve *curve, int64_t j, double y);
double mrc_curve_leave(const mrc_curve *curve, int64_t j, double v);

/* The x that a normal number does not exceed with probability p in (0, 1). */
double mrc_normal_quantile(double p);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The units of targets. Training learns targets from which an offset has been subtracted, divided by a scale; each
 * output has its own. A product of kernel values and weights is in these units.
 *
 *   enter   y' = (g(y) - offset) / scale          leave   f = g^-1(offset + scale f')
 *
 * with a monotone function g (target_curve.h), if there is one. Both are computed in double and rounded once. Losses
 * are those of g(y).
 */
#ifndef MRC_CORE_NUMBERS_UNITS_H
#define MRC_CORE_NUMBERS_UNITS_H

#include "core/context.h"
#include "core/numbers/target_curve.h"

#include <stdbool.h>

typedef struct mrc_units {
    double *offset; /* (c) owned; NULL: 0, and all scales are 1 */
    double *scale;  /* (c) > 0, in the same block */
    mrc_curve curve;
} mrc_units;

/* Whether there is anything to do. units may be NULL. */
static inline bool mrc_units_given(const mrc_units *units)
{
    return units && units->offset;
}

/* Copies both (c each; NULL: 0, or 1), without a curve. An offset must be finite, a scale finite and above 0. The units
   stay as they were if it fails. */
mercer_status mrc_units_set(mrc_units *units, mercer_context *context, int64_t outputs, const double *offset,
                            const double *scale);
/* Gives units a curve. */
mercer_status mrc_units_bend(mrc_units *units, mercer_context *context, mrc_curve_kind kind, int64_t outputs,
                             const mercer_matrix *numbers);
void mrc_units_clear(mrc_units *units, mercer_context *context);

/* Of matrices (m, c) in host memory, f32 or f64; to may be from. Nothing but a copy if none are given. */
void mrc_units_enter(const mrc_units *units, const mercer_matrix *to, const mercer_matrix *from);
void mrc_units_leave(const mrc_units *units, const mercer_matrix *to, const mercer_matrix *from);

/* A number that differs, very probably, where units do; 0 if none are given. */
uint64_t mrc_units_print(const mrc_units *units, int64_t outputs);

#endif

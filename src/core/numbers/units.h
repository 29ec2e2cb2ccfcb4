/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Target units. Training learns targets minus an offset, divided by a scale; each output has its own offset and
 * scale. Products of kernel values and weights are in these units.
 *
 *   apply   y' = (g(y) - offset) / scale          invert  f = g^-1(offset + scale f')
 *
 * with an optional monotone transform g (target_curve.h). Both directions are computed in double and rounded once.
 * Losses refer to g(y).
 */
#ifndef MRC_CORE_NUMBERS_UNITS_H
#define MRC_CORE_NUMBERS_UNITS_H

#include "core/context.h"
#include "core/numbers/target_curve.h"

#include <stdbool.h>

typedef struct mrc_units {
    double *offset; /* (c) owned; NULL: identity (offsets 0, scales 1, no curve) */
    double *scale;  /* (c) > 0, in the same block of memory as offset */
    mrc_curve curve;
} mrc_units;

/* Returns whether units differ from the identity; units may be NULL. */
static inline bool mrc_units_given(const mrc_units *units)
{
    return units && units->offset;
}

/* Copies offset and scale (c each; NULL: all 0, all 1) and removes a curve. Their ranges are MRC_TARGET_... of
   bounds.h. On failure the units stay unchanged. */
mercer_status mrc_units_set(mrc_units *units, mercer_context *context, int64_t outputs, const double *offset,
                            const double *scale);
/* Sets the curve; offset and scale stay. */
mercer_status mrc_units_set_curve(mrc_units *units, mercer_context *context, mrc_curve_kind kind, int64_t outputs,
                                  const mercer_matrix *numbers);
void mrc_units_clear(mrc_units *units, mercer_context *context);

/* Convert targets (m, c) to these units (apply) or back (invert). Matrices are in host memory, f32 or f64; to may be
   from. Without units they only copy. */
void mrc_units_apply(const mrc_units *units, const mercer_matrix *to, const mercer_matrix *from);
void mrc_units_invert(const mrc_units *units, const mercer_matrix *to, const mercer_matrix *from);

/* Returns a hash of the units, to detect changes; 0 without units. */
uint64_t mrc_units_print(const mrc_units *units, int64_t outputs);

#endif

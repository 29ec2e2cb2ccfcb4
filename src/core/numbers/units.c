/* SPDX-License-Identifier: BSD-3-Clause */
/* Target units: offset, scale and an optional monotone transform. */
#include "core/numbers/units.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"

/* Checks the ranges of offsets and scales. Sets *identity to whether all offsets are 0 and all scales 1. */
static mercer_status check_units(mercer_context *context, int64_t outputs, const double *offset, const double *scale,
                                 bool *identity)
{
    *identity = true;
    for (int64_t j = 0; j < outputs; j++) {
        double from = offset ? offset[j] : 0, by = scale ? scale[j] : 1;
        if (!mrc_in_range(from, -MRC_TARGET_MOST, MRC_TARGET_MOST))
            return mrc_fail(context, MERCER_ERROR_DATA, "offset %lld (from 0) is %g; it must be in -%g .. %g",
                            (long long)j, from, MRC_TARGET_MOST, MRC_TARGET_MOST);
        if (!mrc_in_range(by, MRC_TARGET_SCALE_LEAST, MRC_TARGET_SCALE_MOST))
            return mrc_fail(context, MERCER_ERROR_DATA, "scale %lld (from 0) is %g; it must be in %g .. %g",
                            (long long)j, by, MRC_TARGET_SCALE_LEAST, MRC_TARGET_SCALE_MOST);
        *identity = *identity && from == 0 && by == 1;
    }
    return MERCER_OK;
}

/* Allocates offsets and scales as one block of 2 * outputs numbers. A NULL offset means all 0, a NULL scale all 1. */
static mercer_status make_both(mercer_context *context, int64_t outputs, const double *offset, const double *scale,
                               double **out)
{
    MRC_TRY(mrc_alloc(context, out, 2 * outputs, sizeof **out, "the units of the targets"));
    for (int64_t j = 0; j < outputs; j++) {
        (*out)[j] = offset ? offset[j] : 0;
        (*out)[outputs + j] = scale ? scale[j] : 1;
    }
    return MERCER_OK;
}

mercer_status mrc_units_set(mrc_units *units, mercer_context *context, int64_t outputs, const double *offset,
                            const double *scale)
{
    bool identity;
    double *both = NULL;
    MRC_TRY(check_units(context, outputs, offset, scale, &identity));
    if (!identity) MRC_TRY(make_both(context, outputs, offset, scale, &both));
    mrc_units_clear(units, context);
    if (both) *units = (mrc_units){.offset = both, .scale = both + outputs};
    return MERCER_OK;
}

/* If only a curve is set, offsets of 0 and scales of 1 are allocated, because a NULL `offset` marks the identity. */
mercer_status mrc_units_set_curve(mrc_units *units, mercer_context *context, mrc_curve_kind kind, int64_t outputs,
                                  const mercer_matrix *numbers)
{
    double *both = NULL;
    if (!units->offset) MRC_TRY(make_both(context, outputs, NULL, NULL, &both));
    mercer_status status = mrc_curve_set(&units->curve, context, kind, outputs, numbers);
    if (status != MERCER_OK)
        mrc_free(context, both);
    else if (both)
        units->offset = both, units->scale = both + outputs;
    return status;
}

void mrc_units_clear(mrc_units *units, mercer_context *context)
{
    mrc_free(context, units->offset);
    mrc_curve_clear(&units->curve, context);
    *units = (mrc_units){0};
}

/* Fast path for a row of floats without a curve: with thousands of outputs, a call per number costs more than its
   arithmetic. */
static void enter_floats(const mrc_units *units, int64_t count, const float *restrict from, float *restrict to)
{
    const double *offset = units->offset, *scale = units->scale;
    for (int64_t j = 0; j < count; j++) to[j] = (float)(((double)from[j] - offset[j]) / scale[j]);
}

void mrc_units_apply(const mrc_units *units, const mercer_matrix *to, const mercer_matrix *from)
{
    bool given = mrc_units_given(units);
    bool floats = to->dtype == MERCER_F32 && from->dtype == MERCER_F32 && to->data != from->data;
    bool plain = given && floats && units->curve.kind == MRC_CURVE_NONE;
    for (int64_t i = 0; i < from->rows; i++) {
        if (plain) enter_floats(units, from->cols, mrc_row(from, i), mrc_row(to, i));
        for (int64_t j = 0; j < from->cols && !plain; j++) {
            double value = mrc_load(from, i, j);
            if (given) value = (mrc_curve_apply(&units->curve, j, value) - units->offset[j]) / units->scale[j];
            mrc_store(to, i, j, value);
        }
    }
}

void mrc_units_invert(const mrc_units *units, const mercer_matrix *to, const mercer_matrix *from)
{
    bool given = mrc_units_given(units);
    for (int64_t i = 0; i < from->rows; i++)
        for (int64_t j = 0; j < from->cols; j++) {
            double value = mrc_load(from, i, j);
            if (given) value = mrc_curve_invert(&units->curve, j, units->offset[j] + units->scale[j] * value);
            mrc_store(to, i, j, value);
        }
}

/* Adds numbers to an FNV-1a hash. */
static uint64_t add_bytes(uint64_t print, const double *values, int64_t count)
{
    const unsigned char *bytes = (const unsigned char *)values;
    for (int64_t i = 0; i < count * (int64_t)sizeof(double); i++) print = (print ^ bytes[i]) * 0x100000001b3u;
    return print;
}

uint64_t mrc_units_print(const mrc_units *units, int64_t outputs)
{
    if (!mrc_units_given(units)) return 0;
    uint64_t print =
        add_bytes(0xcbf29ce484222325u, units->offset, 2 * outputs); /* offsets and scales, which are one allocation */
    return add_bytes(print, units->curve.numbers, mrc_curve_size(&units->curve, outputs));
}

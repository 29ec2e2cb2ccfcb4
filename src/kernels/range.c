/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that kernel values are in the range of the type in which they are computed.
 *
 *   |x.z| <= |x| |z| <= r^2,   |K(x, z)| <= sqrt(K(x, x) K(z, z)) <= max over rows of K(x, x) = k(r^2)
 *
 * for functions of the inner product, with r the largest norm of a row: k grows with r for all of them. The check first
 * uses r^2 <= d max |x_ij|^2, which comes from the check for NaN at no cost, and computes the norms only if that bound
 * is too large. Functions of the distance are at most 1, even if an intermediate result overflows.
 */
#include "kernels/table.h"

#include "core/matrix.h"

#include <float.h>
#include <math.h>

/* Limit of inner products and kernel values, relative to the largest number of the type. Rounding of inner products and
   their powers might make larger values overflow. */
#define ROUNDING_MARGIN 0.5

double mrc_kernel_largest(const mercer_kernel *kernel, double sqnorm)
{
    if (mrc_kernel_is_callback(kernel)) return sqnorm;
    double value = mrc_kernel_of_inner(kernel, sqnorm, sqnorm, sqnorm);
    return isnan(value) ? (double)INFINITY : fmax(sqnorm, value);
}

/* Returns the squared norm of the longest row, and sets *row to its index. */
static double longest(const mercer_matrix *x, int64_t *row)
{
    double top = -1;
    for (int64_t i = 0; i < x->rows; i++) {
        double sum = 0;
        for (int64_t k = 0; k < x->cols; k++) sum += mrc_load(x, i, k) * mrc_load(x, i, k);
        if (!(sum > top)) continue;
        top = sum;
        *row = i;
    }
    return top;
}

mercer_status mrc_kernel_check_range(mercer_context *context, const mercer_kernel *kernel, const char *name,
                                     const mercer_matrix *x, mercer_dtype real)
{
    double top, limit = ROUNDING_MARGIN * (real == MERCER_F64 ? DBL_MAX : (double)FLT_MAX);
    MRC_TRY(mrc_check_finite(context, name, x, &top));
    if (mrc_kernel_is_stationary(kernel)) return MERCER_OK;
    if (mrc_kernel_largest(kernel, top * top * (double)x->cols) <= limit) return MERCER_OK;
    int64_t row = 0;
    double sqnorm = longest(x, &row);
    if (mrc_kernel_largest(kernel, sqnorm) <= limit) return MERCER_OK;
    const mrc_kernel_entry *entry = mrc_kernel_find(kernel->id); /* NULL for a callback */
    bool power = entry && mrc_spec_parameter(&entry->form, "degree");
    return mrc_fail(
        context, MERCER_ERROR_DATA,
        "%s: row %lld (from 0) is so long, |x|^2 = %.3g, that values of the %s kernel overflow %s; scale the "
        "features with a preprocessing%s%s",
        name, (long long)row, sqnorm, entry ? entry->form.name : "user's",
        mrc_dtype_name(real == MERCER_F64 ? MERCER_F64 : MERCER_F32), power ? ", lower the degree" : "",
        real == MERCER_F64 ? "" : ", or compute in f64");
}

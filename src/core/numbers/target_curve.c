/* SPDX-License-Identifier: BSD-3-Clause */
/* Monotone transforms of targets. */
#include "core/numbers/target_curve.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {[MRC_CURVE_LOG] = "log", [MRC_CURVE_RANK] = "rank"};

const char *mrc_curve_name(mrc_curve_kind kind)
{
    return names[kind];
}

bool mrc_curve_find(const char *name, mrc_curve_kind *kind)
{
    for (mrc_curve_kind k = MRC_CURVE_LOG; k <= MRC_CURVE_RANK; k++)
        if (strcmp(name, names[k]) == 0) return *kind = k, true;
    return false;
}

/* Returns whether a row of numbers is not constant, and ascends strictly up to the first entry that equals the last
   one. */
static bool is_ascending(const mercer_matrix *numbers, int64_t row)
{
    double last = mrc_load(numbers, row, numbers->cols - 1);
    for (int64_t k = 1; k < numbers->cols; k++) {
        double before = mrc_load(numbers, row, k - 1), here = mrc_load(numbers, row, k);
        if (here < before || (here == before && here != last)) return false;
    }
    return mrc_load(numbers, row, 0) < last;
}

mercer_status mrc_curve_set(mrc_curve *curve, mercer_context *context, mrc_curve_kind kind, int64_t outputs,
                            const mercer_matrix *numbers)
{
    int64_t rows = kind == MRC_CURVE_RANK ? 2 * outputs : outputs;
    double *copy;
    MRC_TRY(mrc_check_finite(context, "numbers", numbers, NULL));
    if (numbers->rows != rows || (kind == MRC_CURVE_LOG ? numbers->cols != 1 : numbers->cols < 2))
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "numbers: is %lld x %lld; transform %s of %lld outputs needs %lld x %s",
                        (long long)numbers->rows, (long long)numbers->cols, names[kind], (long long)outputs,
                        (long long)rows, kind == MRC_CURVE_LOG ? "1" : "2 or more");
    for (int64_t i = 0; i < rows * numbers->cols; i++) {
        double value = mrc_load(numbers, i / numbers->cols, i % numbers->cols);
        if (!mrc_in_range(value, -MRC_TARGET_MOST, MRC_TARGET_MOST))
            return mrc_fail(context, MERCER_ERROR_DATA, "numbers: %g is outside -%g .. %g", value, MRC_TARGET_MOST,
                            MRC_TARGET_MOST);
    }
    for (int64_t i = 0; i < rows && kind == MRC_CURVE_RANK; i++)
        if (!is_ascending(numbers, i))
            return mrc_fail(context, MERCER_ERROR_DATA, "numbers: row %lld (from 0) is not ascending", (long long)i);
    MRC_TRY(mrc_alloc(context, &copy, rows * numbers->cols, sizeof *copy, "a transform of targets"));
    for (int64_t i = 0; i < rows; i++) mrc_load_row_f64(numbers, i, copy + i * numbers->cols);
    mrc_curve_clear(curve, context);
    *curve = (mrc_curve){kind, numbers->cols, copy};
    return MERCER_OK;
}

void mrc_curve_clear(mrc_curve *curve, mercer_context *context)
{
    mrc_free(context, curve->numbers);
    *curve = (mrc_curve){0};
}

int64_t mrc_curve_size(const mrc_curve *curve, int64_t outputs)
{
    return curve->kind == MRC_CURVE_NONE ? 0 : curve->count * (curve->kind == MRC_CURVE_RANK ? 2 : 1) * outputs;
}

/* Returns the value at x of the piecewise linear function through (from[k], to[k]), constant outside from[0] ..
   from[count - 1]. */
static double interpolate_curve(const double *from, const double *to, int64_t count, double x)
{
    int64_t low = 0, high = count - 1;
    if (!(x > from[0])) return to[0];
    if (x >= from[high]) return to[high];
    while (high - low > 1) { /* from[low] <= x < from[high] */
        int64_t middle = low + (high - low) / 2;
        if (from[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return to[low] + (to[high] - to[low]) * ((x - from[low]) / (from[high] - from[low]));
}

double mrc_curve_apply(const mrc_curve *curve, int64_t j, double y)
{
    if (curve->kind == MRC_CURVE_NONE) return y;
    if (curve->kind == MRC_CURVE_LOG) return log(y + curve->numbers[j]);
    const double *values = curve->numbers + 2 * j * curve->count;
    return interpolate_curve(values, values + curve->count, curve->count, y);
}

double mrc_curve_invert(const mrc_curve *curve, int64_t j, double v)
{
    if (curve->kind == MRC_CURVE_NONE) return v;
    if (curve->kind == MRC_CURVE_LOG) return exp(v) - curve->numbers[j];
    const double *values = curve->numbers + 2 * j * curve->count;
    return interpolate_curve(values + curve->count, values, curve->count, v);
}

/* Uses bisection, because erfc is monotone. The start interval -40 .. 40 contains the results for all doubles in (0,
   1): the smallest is above -39, the largest below 8.3. */
double mrc_normal_quantile(double p)
{
    double low = -40, high = 40;
    while (high - low > 1e-15 * fmax(1, fabs(low))) {
        double middle = 0.5 * (low + high);
        if (middle == low || middle == high) break;
        if (0.5 * erfc(-middle * 0.70710678118654752440) < p)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

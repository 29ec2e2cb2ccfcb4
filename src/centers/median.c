/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distances between rows, and their median: a bandwidth to start from.
 *
 *   median of { |x_i - x_j| : i < j, |x_i - x_j| > 0 }      over min(n, 2000) random rows of X (n, d), in double
 *
 * |.| is the norm that the kernel's distance has: a bandwidth is one of its distances.
 *
 * Pairs that coincide say nothing about the scale and are left out. Of an even number of distances the mean of the two
 * in the middle is taken. Cost: 2000^2 d flops at most; memory 8 * 2000^2 bytes.
 *
 * Finding the k-th smallest: non-negative doubles are ordered as their bits are, so the value is found bit by bit, with
 * one count for each: 64 passes over the distances, which stay as they are.
 */
#include "centers/center_selection.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 2000 };

mercer_status mrc_check_range(mercer_context *context, double top, int64_t d, bool *wide)
{
    double square = 4 * top * top * (double)mrc_max(d, 1);
    *wide = top > 0 && !(square <= 1e36 && top >= 1e-15);
    if (top <= 0 || (square <= 1e300 && top >= 1e-140)) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_DATA,
                    "values go up to %g: squared distances of %lld features leave the range of f64; scale the data",
                    top, (long long)d);
}

/* The kernel that is the distance itself. */
static int keep_distance(void *user, const mercer_kernel_block *block)
{
    (void)user, (void)block;
    return 0;
}

mercer_status mrc_distances(mrc_backend *backend, double norm, const mercer_matrix *x, const mercer_matrix *z,
                            const mercer_matrix *out)
{
    const mercer_kernel distance = {.id = MERCER_KERNEL_CALLBACK_DISTANCE, .callback = keep_distance, .p = norm};
    mrc_pair pair = {.kernel = &distance, .x = x, .z = z};
    return backend->ops->kernel_eval(backend, &pair, out);
}

/* The distances above the diagonal that are not 0 to the front of the block; how many there are. */
static int64_t collect_pairs(double *block, int64_t m)
{
    int64_t count = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = i + 1; j < m; j++)
            if (block[i * m + j] > 0) block[count++] = block[i * m + j]; /* never ahead of what is read */
    return count;
}

static int64_t count_below(const double *values, int64_t count, double bound)
{
    int64_t below = 0;
    for (int64_t i = 0; i < count; i++) below += values[i] < bound;
    return below;
}

/* The value with k smaller ones before it, in order: the largest v with at most k values below v. */
static double select_value(const double *values, int64_t count, int64_t k)
{
    uint64_t bits = 0;
    for (uint64_t bit = UINT64_C(1) << 62; bit; bit >>= 1) {
        uint64_t tried = bits | bit;
        double bound;
        memcpy(&bound, &tried, sizeof bound);
        if (!isnan(bound) && count_below(values, count, bound) <= k) bits = tried;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static mercer_status median_of(mrc_backend *backend, double norm, const mercer_matrix *sample, double *block,
                               double *out)
{
    int64_t m = sample->rows;
    mercer_matrix distances = mrc_view(block, m, m, MERCER_F64);
    MRC_TRY(mrc_distances(backend, norm, sample, sample, &distances));
    int64_t count = collect_pairs(block, m);
    if (count == 0)
        return mrc_fail(backend->context, MERCER_ERROR_DATA,
                        "X: all of %lld rows coincide, so there is no median distance; give a bandwidth", (long long)m);
    *out = select_value(block, count, count / 2);
    if (count % 2 == 0) *out = (*out + select_value(block, count, count / 2 - 1)) / 2;
    return MERCER_OK;
}

mercer_status mrc_median_distance(mrc_backend *backend, double norm, const mercer_matrix *x, uint64_t seed, double *out)
{
    int64_t m = mrc_min(x->rows, MOST_ROWS), rows[MOST_ROWS];
    mercer_matrix sample = mrc_view(NULL, m, x->cols, x->dtype);
    double *block;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &block, m * m, sizeof *block, "distances"));
    MRC_TRY(mrc_scope_alloc(&scope, &sample.data, m, x->cols * mrc_dtype_size(x->dtype), "a sample of the rows"));
    mrc_choose_random(seed, x->rows, m, rows);
    MRC_TRY(backend->ops->gather_rows(backend, &sample, x, rows));
    return median_of(backend, norm, &sample, block, out);
}

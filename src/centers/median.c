/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Distances between rows, and their median, which is an initial guess of the bandwidth.
 *
 *   median of { |x_i - x_j| : i < j, |x_i - x_j| > 0 }      over min(n, 2000) random rows of X (n, d), in double
 *
 * |.| is the norm of the kernel's distance, because the bandwidth scales distances in this norm.
 *
 * Equal rows carry no information about the scale, so distances of 0 are left out. The median of an even number of
 * distances is the mean of the two in the middle. Cost: at most 2000^2 d flops; memory: 4 * 2000^2 bytes for the pairs,
 * and a strip of distances.
 *
 * The k-th smallest value is found without sorting: non-negative doubles have the same order as their bit patterns. So
 * the bytes of the k-th value are found one after the other from histograms, in 8 passes over the distances.
 */
#include "centers/center_selection.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

enum { STRIP_ROWS = 256, LEAST_ROWS = 64 };

mercer_status mrc_check_range(mercer_context *context, double top, int64_t d, bool *wide)
{
    /* An upper bound on squared distances. The limits leave a margin to the largest and smallest normal numbers of
       float (3e38, 1e-38) and double (2e308, 2e-308). */
    double square = 4 * top * top * (double)mrc_max(d, 1);
    *wide = top > 0 && !(square <= 1e36 && top >= 1e-15);
    if (top <= 0 || (square <= 1e300 && top >= 1e-140)) return MERCER_OK;
    return mrc_fail(
        context, MERCER_ERROR_DATA,
        "values go up to %g, so squared distances of %lld features overflow or underflow f64; scale the data", top,
        (long long)d);
}

/* A kernel callback whose value is the distance itself: it leaves the block unchanged. */
static int save_distance(void *user, const mercer_kernel_block *block)
{
    (void)user, (void)block;
    return 0;
}

mercer_status mrc_distances(mrc_backend *backend, double norm, const mercer_matrix *x, const mercer_matrix *z,
                            const mercer_matrix *out)
{
    const mercer_kernel distance = {.id = MERCER_KERNEL_CALLBACK_DISTANCE, .callback = save_distance, .p = norm};
    mrc_pair pair = {.kernel = &distance, .x = x, .z = z};
    return backend->ops->kernel_eval(backend, &pair, out);
}

/* Writes the nonzero distances of all pairs i < j to pairs; sets *count to their number. strip (min(STRIP_ROWS, m), m):
   scratch. */
static mercer_status collect_pairs(mrc_backend *backend, double norm, const mercer_matrix *sample, double *strip,
                                   double *pairs, int64_t *count)
{
    int64_t m = sample->rows;
    *count = 0;
    for (int64_t first = 0; first < m; first += STRIP_ROWS) {
        mercer_matrix rows = mrc_rows(sample, first, mrc_min(STRIP_ROWS, m - first));
        mercer_matrix distances = mrc_view(strip, rows.rows, m, MERCER_F64);
        MRC_TRY(mrc_distances(backend, norm, &rows, sample, &distances));
        for (int64_t i = 0; i < rows.rows; i++)
            for (int64_t j = first + i + 1; j < m; j++)
                if (strip[i * m + j] > 0) pairs[(*count)++] = strip[i * m + j];
    }
    return MERCER_OK;
}

/* Returns the value at index k in ascending order; sets *equal to the number of equal values among the k before it. */
static double select_value(const double *values, int64_t count, int64_t k, int64_t *equal)
{
    uint64_t found = 0; /* leading bytes of the value so far */
    for (int shift = 56; shift >= 0; shift -= 8) {
        int64_t with_byte[256] = {0}; /* histogram of the next byte of values that begin with these bytes */
        for (int64_t i = 0; i < count; i++) {
            uint64_t bits;
            memcpy(&bits, &values[i], sizeof bits);
            uint64_t leading = bits >> shift;
            with_byte[leading & 255] += leading >> 8 == found;
        }
        uint64_t byte = 0;
        while (k >= with_byte[byte]) k -= with_byte[byte++];
        found = found << 8 | byte;
    }
    double value;
    memcpy(&value, &found, sizeof value);
    *equal = k;
    return value;
}

static double largest_below(const double *values, int64_t count, double bound)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        if (values[i] < bound && values[i] > largest) largest = values[i];
    return largest;
}

static mercer_status median_of(mrc_backend *backend, double norm, const mercer_matrix *sample, double *strip,
                               double *pairs, double *out)
{
    int64_t count;
    MRC_TRY(collect_pairs(backend, norm, sample, strip, pairs, &count));
    *out = 0;
    if (count == 0) return MERCER_OK;
    int64_t equal;
    *out = select_value(pairs, count, count / 2, &equal);
    if (count % 2 == 0 && equal == 0) *out = (*out + largest_below(pairs, count, *out)) / 2;
    return MERCER_OK;
}

mercer_status mrc_median_distance(mrc_backend *backend, double norm, const mercer_matrix *x, uint64_t seed, double *out)
{
    int64_t m = mrc_min(x->rows, MRC_MEDIAN_ROWS), rows[MRC_MEDIAN_ROWS];
    mercer_matrix sample = mrc_view(NULL, m, x->cols, x->dtype);
    double *strip, *pairs;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &strip, mrc_min(STRIP_ROWS, m) * m, sizeof *strip, "distances"));
    MRC_TRY(mrc_scope_alloc(&scope, &pairs, mrc_max(1, m * (m - 1) / 2), sizeof *pairs, "distances"));
    MRC_TRY(mrc_scope_alloc(&scope, &sample.data, m, x->cols * mrc_dtype_size(x->dtype), "a sample of the rows"));
    mrc_choose_random(seed, x->rows, m, rows);
    MRC_TRY(backend->ops->gather_rows(backend, &sample, x, rows));
    return median_of(backend, norm, &sample, strip, pairs, out);
}

int64_t mrc_median_rows(int64_t n, int64_t row, int64_t memory)
{
    int64_t m = mrc_min(n, MRC_MEDIAN_ROWS);
    /* Memory of the pairs, a strip, the rows and their copy in the sample. */
    while (m > LEAST_ROWS && 4 * m * m + 8 * STRIP_ROWS * m + 2 * m * row > memory) m -= m / 8;
    return m;
}

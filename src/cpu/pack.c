/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packing of bytes for exact integer products, and exact evaluation of single pairs.
 *
 *   group 2: int16 values, both sides                        norms_r = sum_k x_rk^2  (int32, exact)
 *   group 4: bytes; the Z side is shifted by -128 to become signed, and start_r = 128 sum_k x_rk on the X side undoes it:
 *            sum x (z - 128) + 128 sum x = sum x z
 */
#include "cpu/tile.h"

#include "core/matrix.h"

#include <string.h>

static void pack_row(const uint8_t *row, int64_t d, int group, int width, int r, bool shifted, void *panel)
{
    for (int64_t k = 0; k < d; k++) {
        int64_t at = ((k / group) * width + r) * group + k % group;
        if (group == 2)
            ((int16_t *)panel)[at] = row[k];
        else
            ((uint8_t *)panel)[at] = (uint8_t)(shifted ? row[k] - 128 : row[k]);
    }
}

void mrc_pack_u8(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count, int width,
                 bool shifted, void *panel, int32_t *norms, int32_t *start)
{
    memset(panel, 0, (size_t)(product->groups * width * 4)); /* a group is 4 bytes: 2 int16 or 4 bytes */
    for (int r = 0; r < width; r++) {
        norms[r] = 0;
        if (start) start[r] = 0;
        if (r >= count) continue;
        const uint8_t *row = mrc_row(source, first + r);
        int32_t squares = 0, sum = 0;
        for (int64_t k = 0; k < product->d; k++) {
            squares += row[k] * row[k];
            sum += row[k];
        }
        norms[r] = squares;
        if (start && product->group == 4) start[r] = 128 * sum;
        pack_row(row, product->d, product->group, width, r, shifted, panel);
    }
}

/* ---- Single pairs, from coordinates -------------------------------------------------------------------------- */

static double sqdist_f32(const float *x, const float *z, int64_t d)
{
    double sum[4] = {0}; /* four chains hide the latency of an addition; the order is fixed */
    for (int64_t k = 0; k < d; k++) {
        double difference = (double)x[k] - (double)z[k];
        sum[k & 3] += difference * difference;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double mrc_exact_sqdist(const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j)
{
    const void *left = mrc_row(x, i), *right = mrc_row(z, j);
    int64_t d = x->cols;
    if (x->dtype == z->dtype && memcmp(left, right, (size_t)(d * mrc_dtype_size(x->dtype))) == 0) return 0;
    if (x->dtype == MERCER_F32 && z->dtype == MERCER_F32) return sqdist_f32(left, right, d);
    double sum = 0;
    for (int64_t k = 0; k < d; k++) {
        double difference = mrc_load(x, i, k) - mrc_load(z, j, k);
        sum += difference * difference;
    }
    return sum;
}

void mrc_exact_inner(const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j, double *dot, double *xx,
                     double *zz)
{
    *dot = *xx = *zz = 0;
    for (int64_t k = 0; k < x->cols; k++) {
        double left = mrc_load(x, i, k), right = mrc_load(z, j, k);
        *dot += left * right;
        *xx += left * left;
        *zz += right * right;
    }
}

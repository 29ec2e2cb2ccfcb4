/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packing of bytes for exact integer products, and exact evaluation of single pairs.
 *
 *   group 2: int16 values, both sides                        norms_r = sum_k x_rk^2  (int32, exact)
 *   group 4: bytes; the Z side is shifted by -128 to become signed, and start_r = 128 sum_k x_rk on the X side undoes
 *            this shift: sum x (z - 128) + 128 sum x = sum x z
 *   group 64: unmodified bytes; the Z side stores 64 features of a row together, the X side 4
 *   group 8: unmodified bytes, for sums of absolute differences
 */
#include "backends/cpu/tile.h"

#include "core/matrix.h"

#include <string.h>

void mrc_pack_u8(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count, int width,
                 bool centers, void *panel, int32_t *norms, int32_t *start)
{
    const int group = product->group == 64 && !centers ? 4 : product->group;
    if (count < width || product->d % product->group) memset(panel, 0, (size_t)(product->groups * width * 4));
    for (int r = 0; r < width; r++) {
        int32_t sum = 0, squares = 0;
        if (r < count)
            product->uk->panel->pack_u8(product->d, group, width, r, centers && group == 4 ? 128 : 0,
                                        mrc_row(source, first + r), panel, &sum, &squares);
        norms[r] = squares;
        if (start) start[r] = product->group == 4 ? 128 * sum : 0;
    }
}

/* For few rows of X: compute products of bytes (space->dots), or sums of their absolute differences (space->values),
   from rows that are not packed. */
void mrc_few_u8(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    const mrc_panel_ops *panel = product->uk->panel;
    int32_t *norms = space->z_norms;
    float *values = space->values; /* integer arithmetic is used only for float results (tile.h) */
    for (int64_t j = 0; j < place->z_count; j++) {
        const uint8_t *z = mrc_row(product->z, place->z_first + j);
        if (!product->direct) norms[j] = panel->inner_u8(product->d, z, z);
        for (int64_t i = 0; i < place->x_count; i++) {
            const uint8_t *x = mrc_row(product->x, place->x_first + i);
            int64_t at = i * place->x_step + j;
            if (product->direct)
                values[at] = (float)panel->sad_u8(product->d, x, z);
            else
                space->dots[at] = panel->inner_u8(product->d, x, z);
        }
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

double mrc_exact_sum(double norm, const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j)
{
    if (norm == 2) return mrc_exact_sqdist(x, i, z, j);
    double sum = 0;
    for (int64_t k = 0; k < x->cols; k++) sum += mrc_difference_power(norm, mrc_load(x, i, k) - mrc_load(z, j, k));
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

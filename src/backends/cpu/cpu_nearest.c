/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nearest row of Z for each row of X, on the fused driver:
 *
 *   nearest_i = argmin_j |x_i - z_j|^2, the first one for ties;   |x - z|^2 = |x|^2 + |z|^2 - 2 x.z as for kernels
 *   (tile_body.h); in other norms sum_k |x_k - z_k|^p from differences
 *
 * X (m, d), Z (p, d). Cost 2 m p d flops, m p comparisons; memory: a few tiles per worker. Each tile of 240 centers
 * yields its own minimum. Tiles are merged in order. A later minimum replaces an earlier one only if it is smaller, so
 * ties do not depend on threads or on the split of X. Distances that differ by less than their rounding error may be
 * ordered either way.
 */
#include "backends/cpu/tile.h"

#include "backends/cpu/cpu.h"
#include "kernels/formulas.h"

#include <math.h>

/* Row i of a block is in panel i / nr. A panel has nr distances, followed by nr indices. */
void mrc_nearest_begin(const mrc_product *product, double *totals, int64_t rows)
{
    const int64_t nr = product->nr;
    for (int64_t i = 0; i < rows; i++) totals[i / nr * 2 * nr + i % nr] = INFINITY;
}

void mrc_nearest_merge(const mrc_product *product, double *totals, const double *tile, int64_t rows)
{
    const int64_t nr = product->nr;
    for (int64_t first = 0; first < rows; first += nr, totals += 2 * nr, tile += 2 * nr) {
        for (int64_t i = 0; i < nr; i++) {
            if (!(tile[i] < totals[i])) continue;
            totals[i] = tile[i];
            totals[nr + i] = tile[nr + i];
        }
    }
}

void mrc_nearest_write(const mrc_product *product, const double *totals, int64_t x_first, int64_t x_count)
{
    const int64_t nr = product->nr;
    for (int64_t i = 0; i < x_count; i++) {
        const double *result = totals + i / nr * 2 * nr + i % nr;
        product->sqdistances[x_first + i] = result[0];
        product->nearest[x_first + i] = (int32_t)result[nr];
    }
}

/* The driver yields two results per row of X, a distance and an index, instead of sums. */
mercer_status mrc_cpu_nearest_rows(mrc_backend *backend, const mrc_search *search, int32_t *nearest,
                                   double *sqdistances)
{
    /* Any kernel of the distance in this norm works, because it is never evaluated. A bandwidth outside the range of
       float makes the driver use double. */
    const double norm = search->norm > 0 ? search->norm : 2;
    const mercer_kernel kernel = {.id = MRC_KERNEL_LPQ, .p = norm, .q = norm, .bandwidth = search->wide ? 1e100 : 1};
    mrc_pair pair = {.kernel = &kernel, .x = search->x, .z = search->z, .origin = search->origin};
    mrc_product product;
    MRC_TRY(mrc_product_init(&product, backend, &pair, NULL, NULL, NULL));
    product.nearest = nearest;
    product.sqdistances = sqdistances;
    product.results = 2;
    return mrc_product_run(&product, backend);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Typed work on a tile, included by tile_f32.c and tile_f64.c after REAL (float or double), TYPED(name), LOAD_ROW,
 * IS_F32.
 *
 *   pack      panel[k * width + r] = x_rk - o_k; |x_r - o|^2 by the micro-kernels' FMA chain
 *   finish    products -> squared distances -> kernel values. Pairs that are too near for products to resolve
 *             (r^2 <= near (|x|^2 + |z|^2), or overflow) are redone from their coordinates in double: O(d) each, rare.
 *   nearest   r^2_i = min_j, and which: the first of equals in the tile.
 *   multiply  sums_cj += sum_i w_ic K_ij: one FMA chain over the tile's 240 centers, then added in double.
 */

enum { TRANSPOSE_STEP = 16 };

/* Goes through the panel in steps small enough that reads and writes both stay in the first-level cache. */
static void TYPED(interleave)(int64_t d, int width, const REAL *rows, REAL *panel)
{
    for (int64_t first = 0; first < d; first += TRANSPOSE_STEP) {
        int64_t end = mrc_min(first + TRANSPOSE_STEP, d);
        for (int r = 0; r < width; r++)
            for (int64_t k = first; k < end; k++) panel[k * width + r] = rows[r * d + k];
    }
}

static void TYPED(pack)(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count,
                        int width, void *staging, void *panel, void *norms)
{
    const int64_t d = product->d;
    const REAL *origin = product->origin;
    for (int r = 0; r < width; r++) {
        REAL *row = (REAL *)staging + r * d;
        if (r >= count) {
            memset(row, 0, (size_t)d * sizeof *row);
            continue;
        }
        LOAD_ROW(source, first + r, row);
        if (!origin) continue;
        for (int64_t k = 0; k < d; k++) row[k] -= origin[k];
    }
    TYPED(interleave)(d, width, staging, panel);
    product->uk->panel->TYPED(sqnorms)(d, width, panel, norms);
}

static void TYPED(pack_weights)(const mrc_product *product, int64_t first, int64_t count, void *panels)
{
    const mercer_matrix *w = product->w;
    const int mr = product->mr_sum;
    REAL *out = panels;
    for (int64_t panel = 0; panel < product->c_panels; panel++) {
        for (int64_t j = 0; j < MRC_TILE_CENTERS; j++) {
            for (int i = 0; i < mr; i++) {
                int64_t column = panel * mr + i;
                *out++ = j < count && column < w->cols ? (REAL)mrc_load(w, first + j, column) : 0;
            }
        }
    }
}

static void TYPED(dot_panel)(const mrc_product *product, const void *z_panel, const void *x_panel, void *out)
{
    product->uk->TYPED(gemm)(product->d, z_panel, x_panel, out);
}

static void TYPED(redo_near_pairs)(const mrc_product *product, mrc_space *space, const mrc_place *place)
{
    const REAL *x_norms = place->x_norms, *z_norms = space->z_norms;
    REAL *values = space->values;
    for (int64_t j = 0; j < place->z_count; j++) {
        for (int64_t i = 0; i < place->x_count; i++) {
            REAL *value = &values[j * product->nr + i];
            if (*value > NEAR * (x_norms[i] + z_norms[j])) continue;
            *value = (REAL)mrc_exact_sqdist(product->x, place->x_first + i, product->z, place->z_first + j);
        }
    }
}

/* Norms of one side in double, whatever they are stored in. */
static double TYPED(norm_at)(const mrc_product *product, const void *norms, int64_t i)
{
    return product->bytes ? ((const int32_t *)norms)[i] : (double)((const REAL *)norms)[i];
}

/* What the kernel is a function of, in double: integer products are taken before they are rounded to float. */
static double TYPED(argument_at)(const mrc_product *product, const mrc_space *space, int64_t at)
{
    return product->bytes && !product->on_distance ? space->dots[at] : (double)((const REAL *)space->values)[at];
}

static bool TYPED(map_callback)(const mrc_product *product, mrc_space *space, const mrc_place *place)
{
    REAL *values = space->values;
    double *x_sq = space->block + (int64_t)product->nr * MRC_TILE_CENTERS, *z_sq = x_sq + product->nr;
    for (int64_t i = 0; i < place->x_count; i++) {
        x_sq[i] = TYPED(norm_at)(product, place->x_norms, i);
        for (int64_t j = 0; j < place->z_count; j++) {
            double value = TYPED(argument_at)(product, space, j * product->nr + i);
            space->block[i * place->z_count + j] = product->on_distance ? sqrt(value) : value;
        }
    }
    for (int64_t j = 0; j < place->z_count; j++) z_sq[j] = TYPED(norm_at)(product, space->z_norms, j);
    mercer_kernel_block block = {place->x_count,
                                 place->z_count,
                                 place->z_count,
                                 space->block,
                                 product->on_distance ? NULL : x_sq,
                                 product->on_distance ? NULL : z_sq};
    if (product->kernel->callback(product->kernel->callback_user, &block)) return false;
    for (int64_t i = 0; i < place->x_count; i++)
        for (int64_t j = 0; j < place->z_count; j++)
            values[j * product->nr + i] = (REAL)space->block[i * place->z_count + j];
    return true;
}

/* The scalar double formula, element by element: kernels without a float micro-kernel, and all of double. */
static void TYPED(map_formula)(const mrc_product *product, mrc_space *space, const mrc_place *place)
{
    REAL *values = space->values;
    for (int64_t j = 0; j < place->z_count; j++) {
        for (int64_t i = 0; i < place->x_count; i++) {
            REAL *value = &values[j * product->nr + i];
            if (product->on_distance) {
                double square = (double)*value;
                if (isinf(square)) /* beyond REAL, where a heavy tail may still count */
                    square = mrc_exact_sqdist(product->x, place->x_first + i, product->z, place->z_first + j);
                *value = (REAL)mrc_kernel_of_distance(product->kernel, square);
                continue;
            }
            double dot = TYPED(argument_at)(product, space, j * product->nr + i);
            double xx = TYPED(norm_at)(product, place->x_norms, i), zz = TYPED(norm_at)(product, space->z_norms, j);
            if (product->angular && !product->bytes && !(dot * dot <= (1 - (double)NEAR) * (xx * zz)))
                mrc_exact_inner(product->x, place->x_first + i, product->z, place->z_first + j, &dot, &xx, &zz);
            *value = (REAL)mrc_kernel_of_inner(product->kernel, dot, xx, zz);
        }
    }
}

/* Products to squared distances where the kernel is a function of the distance; integer products to REAL. */
static void TYPED(prepare_arguments)(const mrc_product *product, mrc_space *space, const mrc_place *place)
{
    REAL *values = space->values;
    const mrc_panel_ops *panel = product->uk->panel;
#if IS_F32 /* integer products are only formed for float results (tile.h) */
    if (product->bytes && product->on_distance)
        panel->sqdist_u8(MRC_TILE_CENTERS, product->nr, space->dots, place->x_norms, space->z_norms, values);
    else if (product->bytes)
        for (int64_t i = 0; i < (int64_t)MRC_TILE_CENTERS * product->nr; i++) values[i] = (REAL)space->dots[i];
    if (product->bytes) return;
#endif
    if (product->on_distance && panel->TYPED(sqdist)(product->nearest ? place->z_count : MRC_TILE_CENTERS, product->nr,
                                                     values, place->x_norms, space->z_norms, NEAR))
        TYPED(redo_near_pairs)(product, space, place);
}

static bool TYPED(finish)(const mrc_product *product, mrc_space *space, const mrc_place *place)
{
    TYPED(prepare_arguments)(product, space, place);
#if IS_F32
    if (product->map.kind != MRC_MAP_NONE) {
        product->uk->panel->map_f32(&product->map, (int64_t)MRC_TILE_CENTERS * product->nr, space->values);
        return true;
    }
#endif
    /* Rows that pad the tile are not evaluated; what they hold may be infinite, and infinity times weight 0 is NaN. */
    REAL *padding = (REAL *)space->values + place->z_count * product->nr;
    memset(padding, 0, (size_t)((MRC_TILE_CENTERS - place->z_count) * product->nr) * sizeof *padding);
    if (product->callback) return TYPED(map_callback)(product, space, place);
    TYPED(map_formula)(product, space, place);
    return true;
}

static void TYPED(store)(const mrc_product *product, const mrc_space *space, const mrc_place *place)
{
    const REAL *values = space->values;
    int64_t columns = mrc_min(place->z_count, product->k.cols - place->z_first);
    for (int64_t i = 0; i < place->x_count; i++) {
        void *row = mrc_row(&product->k, place->x_first + i);
        if (product->k.dtype == MERCER_F64)
            for (int64_t j = 0; j < columns; j++)
                ((double *)row)[place->z_first + j] = (double)values[j * product->nr + i];
        else
            for (int64_t j = 0; j < columns; j++)
                ((float *)row)[place->z_first + j] = (float)values[j * product->nr + i];
    }
}

static void TYPED(nearest)(const mrc_product *product, mrc_space *space, const mrc_place *place, double *result)
{
    const mrc_panel_ops *panel = product->uk->panel;
    const int nr = product->nr;
    if (product->bytes) {
        int32_t *best = space->partial;
        panel->nearest_u8(place->z_count, nr, space->dots, place->x_norms, space->z_norms, best, space->nearest);
        for (int i = 0; i < nr; i++) result[i] = best[i];
    } else {
        REAL *best = space->partial;
        TYPED(prepare_arguments)(product, space, place);
        panel->TYPED(nearest)(place->z_count, nr, space->values, best, space->nearest);
        for (int i = 0; i < nr; i++) result[i] = (double)best[i];
    }
    for (int i = 0; i < nr; i++) result[nr + i] = (double)(place->z_first + space->nearest[i]);
}

static void TYPED(multiply)(const mrc_product *product, const mrc_space *space, double *sums)
{
    const int64_t size = (int64_t)product->mr_sum * product->nr;
    const REAL *weights = space->weights;
    REAL *partial = space->partial;
    for (int64_t panel = 0; panel < product->c_panels; panel++) {
        product->uk->TYPED(gemm)(MRC_TILE_CENTERS, weights + panel * MRC_TILE_CENTERS * product->mr_sum, space->values,
                                 partial);
        for (int64_t i = 0; i < size; i++) sums[panel * size + i] += (double)partial[i];
    }
}

const mrc_tile_type TYPED(mrc_tile) = {
    .size = sizeof(REAL),
    .pack = TYPED(pack),
    .pack_weights = TYPED(pack_weights),
    .dot_panel = TYPED(dot_panel),
    .finish = TYPED(finish),
    .store = TYPED(store),
    .nearest = TYPED(nearest),
    .multiply = TYPED(multiply),
};

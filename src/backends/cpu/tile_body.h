/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Typed work on a tile, included by tile_f32.c and tile_f64.c after REAL (float or double), TYPED(name), LOAD_ROW,
 * IS_F32.
 *
 *   pack      panel[k * width + r] = x_rk - o_k, o: the origin; |x_r - o|^2 by the micro-kernels' FMA chain
 *   finish    products -> squared distances -> kernel values. Pairs that are too near for an accurate result from
 *             products (r^2 <= near (|x|^2 + |z|^2), or overflow) are recomputed from their coordinates in double: O(d)
 *             each, rare. Sums of |differences|^p are used directly; those of bytes are below 2^24, exact in float.
 *   nearest   min_j r^2_ij and its j, the first one for ties in the tile.
 *   few_...   the same products and sums, in the same chains, for few rows of X, from centers that are not packed
 *   multiply  sums_cj += sum_i w_ic K_ij: one FMA chain over the tile's 240 centers, then added in double.
 *   add_signs sums_ckj += sum_i (w_ic K_ij) sign(x_jk - z_ik): the product rounded, one chain of sums over the tile's
 *             240 centers, then added in double.
 */

/* Convert row i to REAL. */
static void TYPED(load)(const mrc_product *product, const mercer_matrix *source, int64_t i, REAL *row)
{
#if IS_F32
    if (source->dtype == MERCER_F16) {
        product->uk->panel->from_half(source->cols, mrc_row(source, i), row);
        return;
    }
#endif
    (void)product;
    LOAD_ROW(source, i, row);
}

/* Load row i and subtract the origin, if there is one, in REAL. */
static void TYPED(load_centered)(const mrc_product *product, const mercer_matrix *source, int64_t i, REAL *row)
{
    TYPED(load)(product, source, i, row);
    if (product->origin) product->uk->panel->TYPED(center)(product->d, product->origin, row);
}

/* Return row i converted and centered: the row itself if it needs no change, otherwise a copy in `buffer`. */
static const REAL *TYPED(see)(const mrc_product *product, const mercer_matrix *source, int64_t i, REAL *buffer)
{
    if (source->dtype == DTYPE && !product->origin) return mrc_row(source, i);
    TYPED(load_centered)(product, source, i, buffer);
    return buffer;
}

/* Add row i to the statistics of groups, after converting and centering the row as for packing. */
static void TYPED(scan)(const mrc_product *product, const mercer_matrix *source, int64_t i, mrc_scan *scan)
{
    product->uk->panel->TYPED(scan)(product->d, TYPED(see)(product, source, i, scan->row), scan->before, scan->level);
}

/* Merge the statistics of another worker. */
static void TYPED(join)(const mrc_product *product, mrc_scan *scan, const mrc_scan *other)
{
    REAL *level = scan->level;
    const REAL *more = other->level;
    for (int64_t k = 0; k < product->d; k++) {
        scan->before[k] = mrc_max(scan->before[k], other->before[k]);
        if (more[k] != 0) level[k] = level[k] == 0 || level[k] == more[k] ? more[k] : (REAL)NAN;
    }
}

static double TYPED(level)(const mrc_scan *scan, int64_t k)
{
    return (double)((const REAL *)scan->level)[k];
}

/* staging contains `width` rows of d elements and one more row for centering; grouped rows use their first `depth`
   elements. Rows from `count` on are zeros. The norm of a row is the sum over its values, without the indices of
   groups. */
static void TYPED(pack)(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count,
                        int width, void *staging, void *panel, void *norms)
{
    const int64_t d = product->d, depth = product->depth;
    const mrc_groups *groups = &product->grouping;
    const int64_t values = product->grouped ? groups->runs.values : d;
    for (int r = 0; r < width; r++) {
        REAL *row = (REAL *)staging + r * d, *buffer = (REAL *)staging + width * d;
        if (r >= count)
            memset(row, 0, (size_t)d * sizeof *row);
        else if (!product->grouped)
            TYPED(load_centered)(product, source, first + r, row);
        else
            product->uk->panel->TYPED(compress)(d, values, depth - values, groups->value_at, groups->group_at,
                                                TYPED(see)(product, source, first + r, buffer), row);
    }
    product->uk->panel->TYPED(interleave)(depth, width, staging, d, panel);
    if (!product->direct) product->uk->panel->TYPED(sqnorms)(values, width, panel, norms);
}

/* Load the weights of one center for outputs column .. column + columns - 1, padded with zeros to `width`. */
static void TYPED(load_weights)(const mercer_matrix *w, int64_t row, int64_t column, int64_t columns, int64_t width,
                                REAL *out)
{
    const REAL *from = (const REAL *)mrc_row(w, row) + column;
    if (columns == width && w->dtype == DTYPE) {
        memcpy(out, from, (size_t)width * sizeof *out);
        return;
    }
    for (int64_t k = 0; k < width; k++)
        out[k] = k >= columns ? 0 : w->dtype == DTYPE ? from[k] : (REAL)mrc_load(w, row, column + k);
}

/* Distribute a row of W of type REAL over panels of mr columns. The pieces are small, so copies of constant size avoid
   a call of memcpy for each. */
static void TYPED(spread_weights)(const REAL *from, int64_t columns, int mr, REAL *out)
{
    const int64_t step = (int64_t)MRC_TILE_CENTERS * mr;
    int64_t column = 0;
    for (; column + mr <= columns; column += mr, out += step)
        for (int k = 0; k < mr; k += 2) memcpy(out + k, from + column + k, 2 * sizeof *out);
    for (int k = 0; k < mr && column < columns; k++) out[k] = column + k < columns ? from[column + k] : 0;
}

/* panels (c_panels, 240, mr): outputs are divided into panels of mr, and the last panel is padded with zeros. Rows of
   centers after the last one are zeros, so that padding never contributes to a sum. */
static void TYPED(pack_weights)(const mrc_product *product, int64_t first, int64_t count, void *panels)
{
    const mercer_matrix *w = product->w;
    const int mr = product->mr_sum;
    for (int64_t j = 0; j < MRC_TILE_CENTERS; j++) { /* read each row of W from end to end */
        REAL *out = (REAL *)panels + j * mr;
        if (j < count && w->dtype == DTYPE && mr % 2 == 0) {
            TYPED(spread_weights)(mrc_row(w, first + j), w->cols, mr, out);
            continue;
        }
        for (int64_t column = 0; column < w->cols; column += mr, out += MRC_TILE_CENTERS * mr) {
            if (j >= count)
                memset(out, 0, (size_t)mr * sizeof *out);
            else
                TYPED(load_weights)(w, first + j, column, mrc_min(mr, w->cols - column), mr, out);
        }
    }
}

/* out (mr, nr): products of one panel of centers with one panel of X, or sums of |differences|^norm. */
static void TYPED(dot_panel)(const mrc_product *product, const void *z_panel, const void *x_panel, void *out)
{
    if (product->grouped)
        product->uk->TYPED(groups)(product->direct, &product->grouping.runs, z_panel, x_panel, out);
    else if (!product->direct)
        product->uk->TYPED(gemm)(product->d, z_panel, x_panel, out);
    else if (product->norm == 1)
        product->uk->TYPED(l1)(product->d, z_panel, x_panel, out);
    else
        product->uk->panel->TYPED(powers)(product->d, product->norm, product->mr, product->nr, z_panel, x_panel, out);
}

/* Compute values (m, x_step) and, for products, norms (240) for the centers of a tile, `lanes` at a time. Centers of
   another type are converted to staging first; those of type REAL are read in place, and the micro-kernel subtracts the
   origin. */
static void TYPED(few_products)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    const mercer_matrix *z = product->z;
    const int64_t d = product->d, lanes = product->lanes;
    REAL *values = space->values, *norms = space->z_norms;
    for (int64_t j = 0; j < place->z_count; j += lanes) {
        int64_t count = mrc_min(lanes, place->z_count - j), ld = z->ld;
        const REAL *rows = mrc_row(z, place->z_first + j);
        if (z->dtype != DTYPE) {
            for (int64_t r = 0; r < count; r++)
                TYPED(load)(product, z, place->z_first + j + r, (REAL *)space->staging + r * d);
            rows = space->staging;
            ld = d;
        }
        if (product->direct)
            product->uk->TYPED(few_l1)(d, count, rows, ld, product->nr, space->x_panels, values + j, place->x_step);
        else
            product->uk->TYPED(few)(d, count, rows, ld, product->origin, product->nr, space->x_panels, values + j,
                                    place->x_step, norms + j);
    }
}

/* Recompute squared distances that are too small for their rounding error, from the coordinates and in double. The test
   is also false for infinite norms, so pairs whose products overflowed are recomputed, too. */
static void TYPED(redo_near_pairs)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    const REAL *x_norms = place->x_norms, *z_norms = space->z_norms;
    const int64_t x_count = place->x_count, x_step = place->x_step;
    for (int64_t j = 0; j < place->z_count; j++) {
        const REAL z_norm = z_norms[j];
        REAL *value = (REAL *)space->values + j * place->z_step;
        for (int64_t i = 0; i < x_count; i++, value += x_step) {
            if (*value > NEAR * (x_norms[i] + z_norm)) continue;
            *value = (REAL)mrc_exact_sqdist(product->x, place->x_first + i, product->z, place->z_first + j);
        }
    }
}

/* Return norm i of one side in double, from its stored type. */
static double TYPED(norm_at)(const mrc_product *product, const void *norms, int64_t i)
{
    return product->bytes ? ((const int32_t *)norms)[i] : (double)((const REAL *)norms)[i];
}

/* Return the argument of the kernel in double; for integer products, the exact value before rounding to float. */
static double TYPED(argument_at)(const mrc_product *product, const mrc_space *space, int64_t at)
{
    return product->bytes && !product->on_distance ? space->dots[at] : (double)((const REAL *)space->values)[at];
}

/* Call the user's function once for the whole panel of the tile. The block of values is row-major, one row per row of
   X: (x_count, z_count), and contains distances or inner products in double. Return false if the function reports
   failure. */
static bool TYPED(map_callback)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    REAL *values = space->values;
    double *x_sq = space->block + (int64_t)product->nr * MRC_TILE_CENTERS, *z_sq = x_sq + product->nr;
    for (int64_t i = 0; i < place->x_count; i++) {
        x_sq[i] = TYPED(norm_at)(product, place->x_norms, i);
        for (int64_t j = 0; j < place->z_count; j++) {
            double value = TYPED(argument_at)(product, space, i * place->x_step + j * place->z_step);
            space->block[i * place->z_count + j] = product->on_distance ? mrc_norm_root(product->norm, value) : value;
        }
    }
    for (int64_t j = 0; j < place->z_count; j++) z_sq[j] = TYPED(norm_at)(product, space->z_norms, j);
    mercer_kernel_block block = {sizeof block,
                                 place->x_count,
                                 place->z_count,
                                 place->z_count,
                                 space->block,
                                 product->on_distance ? NULL : x_sq,
                                 product->on_distance ? NULL : z_sq};
    if (product->kernel->callback(product->kernel->callback_user, &block)) return false;
    for (int64_t i = 0; i < place->x_count; i++)
        for (int64_t j = 0; j < place->z_count; j++)
            values[i * place->x_step + j * place->z_step] = (REAL)space->block[i * place->z_count + j];
    return true;
}

/* Return true if rows are nearly parallel, so that their inner product does not determine the angle accurately. */
static bool TYPED(nearly_parallel)(const mrc_product *product, double dot, double xx, double zz)
{
    return product->angular && !product->bytes && !(dot * dot <= (1 - (double)NEAR) * (xx * zz));
}

/* Evaluate the scalar double formula for pair (i, j) of the tile; for nearly parallel rows, from inner products that
   are recomputed in double. */
static REAL TYPED(formula)(const mrc_product *product, const mrc_space *space, const mrc_tile_position *place,
                           int64_t i, int64_t j, double argument)
{
    if (product->on_distance) {
        if (isinf(argument)) /* overflow of REAL, where a heavy-tailed kernel may still have a nonzero value */
            argument = mrc_exact_sum(product->norm, product->x, place->x_first + i, product->z, place->z_first + j);
        return (REAL)mrc_kernel_of_distance(product->kernel, argument);
    }
    double xx = TYPED(norm_at)(product, place->x_norms, i), zz = TYPED(norm_at)(product, space->z_norms, j);
    if (TYPED(nearly_parallel)(product, argument, xx, zz))
        mrc_exact_inner(product->x, place->x_first + i, product->z, place->z_first + j, &argument, &xx, &zz);
    return (REAL)mrc_kernel_of_inner(product->kernel, argument, xx, zz);
}

/* Map element by element: for kernels, parameters or values without a vector form. */
static void TYPED(map_formula)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    REAL *values = space->values;
    for (int64_t j = 0; j < place->z_count; j++) {
        for (int64_t i = 0; i < place->x_count; i++) {
            int64_t at = i * place->x_step + j * place->z_step;
            values[at] = TYPED(formula)(product, space, place, i, j, TYPED(argument_at)(product, space, at));
        }
    }
}

/* Map ntk and nngp, one row of the tile at a time (a center, or a row of X if few). */
static void TYPED(map_angular)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    const bool few = product->few;
    const int64_t rows = few ? place->x_count : place->z_count, width = few ? place->z_count : place->x_count;
    const int64_t step = few ? place->x_step : place->z_step;
    /* down_norms: squared norms of the rows of the tile; across_norms: squared norms of its columns. */
    const void *across_norms = few ? space->z_norms : place->x_norms,
               *down_norms = few ? place->x_norms : space->z_norms;
    double across[MRC_TILE_CENTERS], dots[MRC_TILE_CENTERS], out[MRC_TILE_CENTERS];
    for (int64_t k = 0; k < width; k++) across[k] = TYPED(norm_at)(product, across_norms, k);
    for (int64_t row = 0; row < rows; row++) {
        const double down = TYPED(norm_at)(product, down_norms, row);
        REAL *values = (REAL *)space->values + row * step;
        for (int64_t k = 0; k < width; k++) dots[k] = TYPED(argument_at)(product, space, row * step + k);
        product->uk->panel->angular(&product->map, width, dots, across, down, out);
        for (int64_t k = 0; k < width; k++)
            values[k] = TYPED(nearly_parallel)(product, dots[k], across[k], down)
                            ? TYPED(formula)(product, space, place, few ? row : k, few ? k : row, dots[k])
                            : (REAL)out[k];
    }
}

/* Map in vectors of double; return false if the kernel or the values have no such form. */
static bool TYPED(map_wide)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    const mrc_panel_ops *panel = product->uk->panel;
    const int64_t count = (product->few ? place->x_step : MRC_TILE_CENTERS) * product->nr;
    if (product->map.id == 0 || product->angular) return false;
    if (product->on_distance && !panel->TYPED(finite)(count, space->values)) return false;
    panel->MAP_WIDE(&product->map, count, space->values);
    return true;
}

/* Convert products to squared distances if the kernel is a function of the L2 distance; convert integer products to
   REAL. */
static void TYPED(prepare_arguments)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    if (product->direct) return; /* values already contain the arguments */
    REAL *values = space->values;
    const mrc_panel_ops *panel = product->uk->panel;
    /* Rows of the tile are centers, or rows of X if few. The sum of two norms is the same either way. */
    const void *across = product->few ? space->z_norms : place->x_norms;
    const void *down = product->few ? place->x_norms : space->z_norms;
    int64_t rows = product->few ? product->nr : product->nearest ? place->z_count : MRC_TILE_CENTERS;
    int64_t width = product->few ? place->x_step : product->nr;
#if IS_F32 /* integer products are used only for float results (tile.h) */
    if (product->bytes && product->on_distance)
        panel->sqdist_u8(rows, width, space->dots, across, down, values);
    else if (product->bytes)
        for (int64_t i = 0; i < rows * width; i++) values[i] = (REAL)space->dots[i];
    if (product->bytes) return;
#endif
    if (product->on_distance && panel->TYPED(sqdist)(rows, width, values, across, down, NEAR))
        TYPED(redo_near_pairs)(product, space, place);
}

/* The forms are tried from the fastest to the most general one: vectors in REAL, vectors in double, a callback, angular
   kernels in vectors of double, single values. All but the first are evaluated in double and rounded once. */
static bool TYPED(finish)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place)
{
    TYPED(prepare_arguments)(product, space, place);
    if (product->arguments) return true;
#if IS_F32
    if (product->map.in_float) {
        int64_t width = product->few ? place->x_step : MRC_TILE_CENTERS;
        product->uk->panel->map_f32(&product->map, width * product->nr, space->values);
        return true;
    }
#endif
    if (TYPED(map_wide)(product, space, place)) return true;
    /* Padding rows of the tile are not evaluated. Clear them, because infinity times weight 0 is NaN. */
    REAL *padding = (REAL *)space->values + place->z_count * product->nr;
    if (!product->few)
        memset(padding, 0, (size_t)((MRC_TILE_CENTERS - place->z_count) * product->nr) * sizeof *padding);
    if (product->callback) return TYPED(map_callback)(product, space, place);
    if (product->angular && product->map.id != 0)
        TYPED(map_angular)(product, space, place);
    else
        TYPED(map_formula)(product, space, place);
    return true;
}

/* Store part of a row of K from contiguous values. */
static void TYPED(store_row)(const mrc_product *product, int64_t row, int64_t first, int64_t columns,
                             const REAL *values)
{
    void *to = mrc_row(&product->k, product->k_rows ? product->k_rows[row] : row);
#if IS_F32
    if (product->k.dtype == MERCER_F16) {
        product->uk->panel->to_half(columns, values, (uint16_t *)to + first);
        return;
    }
#endif
    if (product->k.dtype == DTYPE)
        memcpy((REAL *)to + first, values, (size_t)columns * sizeof *values);
    else if (product->k.dtype == MERCER_F64)
        for (int64_t j = 0; j < columns; j++) ((double *)to)[first + j] = (double)values[j];
    else if (product->k.dtype == MERCER_F16)
        for (int64_t j = 0; j < columns; j++) ((uint16_t *)to)[first + j] = mrc_half_from_float((float)values[j]);
    else
        for (int64_t j = 0; j < columns; j++) ((float *)to)[first + j] = (float)values[j];
}

/* Store the columns of the tile that product->k has; these may be fewer than z_count. product->k is row-major; a tile
   is center-major unless X has few rows. */
static void TYPED(store)(const mrc_product *product, const mrc_space *space, const mrc_tile_position *place)
{
    const REAL *values = space->values;
    int64_t columns = mrc_min(place->z_count, product->k.cols - place->z_first), step = place->x_step;
    if (!product->few) { /* the rows of the tile are centers, so the tile is transposed first */
        product->uk->panel->TYPED(interleave)(product->nr, MRC_TILE_CENTERS, values, product->nr, space->turned);
        values = space->turned;
        step = MRC_TILE_CENTERS;
    }
    for (int64_t i = 0; i < place->x_count; i++)
        TYPED(store_row)(product, place->x_first + i, place->z_first, columns, values + i * step);
}

/* Squared distances of bytes are compared as integers, exactly. result (2, nr): distances, then indices of centers as
   doubles, which are exact as well. */
static void TYPED(nearest)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place, double *result)
{
    const mrc_panel_ops *panel = product->uk->panel;
    const int nr = product->nr;
    if (product->bytes && !product->direct) {
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

/* Add W' K for all outputs, one panel of mr_sum outputs at a time. The chain in REAL has the length of a tile, so the
   partial sums of a tile depend neither on its position nor on the split of X. */
static void TYPED(multiply)(const mrc_product *product, const mrc_space *space, double *sums)
{
    const int64_t size = (int64_t)product->mr_sum * product->nr;
    const REAL *weights = space->weights;
    REAL *partial = space->partial;
    for (int64_t panel = 0; panel < product->c_panels; panel++) {
        product->uk->TYPED(gemm)(MRC_TILE_CENTERS, weights + panel * MRC_TILE_CENTERS * product->mr_sum, space->values,
                                 partial);
        product->uk->panel->TYPED(add)(size, partial, sums + panel * size);
    }
}

/* For each output, multiply the values of the tile by its weights, then add them with the signs of the differences.
   Padding centers have weighted value 0, even where their kernel value is not finite. */
static void TYPED(add_signs)(const mrc_product *product, const mrc_space *space, const mrc_tile_position *place,
                             const void *x_panel, double *sums)
{
    const int64_t nr = product->nr, size = product->d * nr;
    const REAL *values = space->values;
    REAL *weighted = space->weights, *partial = space->partial;
    for (int64_t l = 0; l < product->w->cols; l++, sums += size) {
        for (int64_t j = 0; j < MRC_TILE_CENTERS; j++) {
            REAL weight = j < place->z_count ? (REAL)mrc_load(product->w, place->z_first + j, l) : 0;
            for (int64_t i = 0; i < nr; i++)
                weighted[j * nr + i] = j < place->z_count ? weight * values[j * nr + i] : 0;
        }
        product->uk->TYPED(signs)(product->d, MRC_TILE_CENTERS / product->mr, space->z_panels, x_panel, weighted,
                                  partial);
        product->uk->panel->TYPED(add)(size, partial, sums);
    }
}

/* Load the weights of up to 16 outputs for the centers of a tile: (count, 16), padded with zeros. */
static void TYPED(few_weights)(const mercer_matrix *w, int64_t first, int64_t count, int64_t column, REAL *out)
{
    const int64_t columns = mrc_min(MRC_FEW_OUTPUTS, w->cols - column);
    for (int64_t j = 0; j < count; j++, out += MRC_FEW_OUTPUTS)
        TYPED(load_weights)(w, first + j, column, columns, MRC_FEW_OUTPUTS, out);
}

/* sums (c, m) += W' K for the existing centers of the tile only: the values of the padding lanes repeat the last
   center. Chains are those of `multiply`, in which padding adds zeros. */
static void TYPED(few_multiply)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place,
                                double *sums)
{
    const REAL *values = space->values;
    REAL partial[MRC_FEW_OUTPUTS];
    for (int64_t column = 0; column < product->results; column += MRC_FEW_OUTPUTS) {
        TYPED(few_weights)(product->w, place->z_first, place->z_count, column, space->weights);
        for (int64_t i = 0; i < place->x_count; i++) {
            product->uk->panel->TYPED(few_sums)(place->z_count, space->weights, values + i * place->x_step, partial);
            for (int64_t k = 0; k < mrc_min(MRC_FEW_OUTPUTS, product->results - column); k++)
                sums[(column + k) * product->nr + i] += (double)partial[k];
        }
    }
}

const mrc_tile_type TYPED(mrc_tile) = {
    .size = sizeof(REAL),
    .scan = TYPED(scan),
    .join = TYPED(join),
    .level = TYPED(level),
    .pack = TYPED(pack),
    .pack_weights = TYPED(pack_weights),
    .dot_panel = TYPED(dot_panel),
    .few_products = TYPED(few_products),
    .finish = TYPED(finish),
    .store = TYPED(store),
    .nearest = TYPED(nearest),
    .multiply = TYPED(multiply),
    .add_signs = TYPED(add_signs),
    .few_multiply = TYPED(few_multiply),
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fused driver: computes Y (+)= K(X, Z) W and K(X, Z) itself, tile by tile; K exists only as one (240, nr) tile per
 * worker.
 *
 *   for each block of X (parallel):   pack it
 *     for each tile of 240 centers:   pack it and its weights
 *       for each panel of the block:  products -> kernel values -> total_sums += W' values   (double)
 *     Y = total_sums
 *
 * Two other operations use the same loops. In the search for the nearest rows of Z, a tile yields the smallest distance
 * and the index of its center, and the loop keeps the minimum over the tiles. For gradients in norm 1, a tile yields
 * sums of w K sign(x_k - z_k) for each feature k.
 *
 * When X has few rows, centers are read in place (tile.h). When X is a single block, tiles are the parallel pieces;
 * their sums are added in order, which gives the same result. Cost: 2 m p (d + c) flops, m p kernel values, p d m / 512
 * packed elements. Memory: a few MB per worker.
 */
#include "backends/cpu/tile.h"

#include "backends/cpu/cpu.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <string.h>

/* When tiles are the parallel pieces, a group of tiles is processed before their sums are added up. A group has at
   least TILES_IN_FLIGHT tiles per thread, and more if all its sums then have at most SUMS_IN_FLIGHT doubles. */
enum { TILES_IN_FLIGHT = 4, SUMS_IN_FLIGHT = 1 << 16 };
/* Approximate number of rows of Z from which the origin is computed; of rows that are checked for flags; and of rows
   that decide whether the check is necessary. */
enum { ORIGIN_ROWS = 1024, FLAG_ROWS = 256, FIRST_FLAG_ROWS = 16 };

/* Check, for every micro-kernel of the list, that panels fill tiles and blocks exactly. */
#define MRC_UK_GEMM_F32(isa, name, mr, nr) \
    _Static_assert(MRC_TILE_CENTERS % (mr) == 0 && MRC_BLOCK_ROWS % (nr) == 0, #name);
#define MRC_UK_GEMM_F64                         MRC_UK_GEMM_F32
#define MRC_UK_DOT_U8(isa, name, mr, nr, group) MRC_UK_GEMM_F32(isa, name, mr, nr)
#define MRC_UK_L1_F32                           MRC_UK_GEMM_F32
#define MRC_UK_L1_F64                           MRC_UK_GEMM_F32
#define MRC_UK_SAD_U8                           MRC_UK_GEMM_F32
#define MRC_UK_FEW_F32(isa, name, l1, lanes)    _Static_assert(MRC_TILE_CENTERS % (lanes) == 0, #name);
#define MRC_UK_FEW_F64                          MRC_UK_FEW_F32
#define MRC_UK_ROWS(isa, dots, sums, group, strip)
#define MRC_UK_SIGNS(isa, single, wide)
#define MRC_UK_GROUPS(isa, single, wide, cost)
#define MRC_UK_FEATURES(isa, single, wide)
#define MRC_UK_PANEL(isa, name)
#include "backends/cpu/micro/ukernels.inc"

/* ---- Choices before the loops ------------------------------------------------------------------------------------ */

/* Return true if squared distances near the bandwidth are in the range of float; otherwise double is used. */
static bool bandwidth_fits_float(const mercer_kernel *kernel)
{
    return kernel->bandwidth >= 1e-15 && kernel->bandwidth <= 1e15;
}

/* Set all fields that follow from the types, the kernel and the number of rows of X. Double is used if an operand or
   the stored K is f64, if bytes have too many features for exact 32-bit sums, or if the bandwidth is outside the range
   of float. Bytes stay exact integers, except for signs and powers of differences, which have micro-kernels for float
   and double only. */
static void choose_arithmetic(mrc_product *product, const mrc_cpu *cpu)
{
    const mrc_ukernels *uk = &cpu->uk;
    bool both_bytes = product->x->dtype == MERCER_U8 && product->z->dtype == MERCER_U8;
    bool wide = mrc_value_dtype(product->x, product->z, product->w, product->y) == MERCER_F64 ||
                (product->k.cols > 0 && product->k.dtype == MERCER_F64) ||
                (both_bytes && product->d > MRC_U8_MAX_FEATURES) ||
                (product->on_distance && !product->callback && !bandwidth_fits_float(product->kernel));
    bool slow = product->direct && product->norm != 1; /* powers are implemented only for panels of float and double */
    product->uk = uk;
    product->bytes = both_bytes && !wide && !slow && !product->signs;
    product->centered = product->on_distance && !product->direct && !both_bytes;
    product->type = wide ? &mrc_tile_f64 : &mrc_tile_f32;
    product->mr_sum = wide ? uk->mr_f64 : uk->mr_f32;
    product->nr = wide ? uk->nr_f64 : uk->nr_f32;
    if (product->direct)
        product->mr = product->bytes ? uk->mr_sad_u8 : wide ? uk->mr_l1_f64 : uk->mr_l1_f32;
    else
        product->mr = product->bytes ? uk->mr_u8 : product->mr_sum;
    product->group = !product->bytes ? 1 : product->direct ? 8 : uk->group_u8;
    /* 32-bit words per group: a pair of int16 or 4 bytes fill one word, 8 bytes two, 64 bytes sixteen. */
    int words = product->group >= 8 ? product->group / 4 : 1;
    product->groups = (product->d + product->group - 1) / product->group * words;
    bool sums = product->w && !product->signs;
    int64_t outputs = product->w ? product->w->cols : 0;
    product->c_panels = sums ? (outputs + product->mr_sum - 1) / product->mr_sum : 0;
    product->results = product->signs ? outputs * product->d : product->c_panels * product->mr_sum;
    product->few = product->x->rows <= (product->bytes ? MRC_FEW_ROWS_U8 : MRC_FEW_ROWS) &&
                   (sums || product->k.cols > 0) && !slow; /* a search for nearest rows always packs */
    if (product->few) { /* without panels: the tile is as wide as X has rows, and there is one result per output */
        product->nr = (int)mrc_max(product->x->rows, 1);
        product->lanes = product->bytes ? 1 : wide ? uk->few_lanes_f64 : uk->few_lanes_f32;
        product->results = outputs;
    }
    product->depth = product->d;
    product->map = mrc_map_for(product->kernel);
}

/* The operands must live as long as the product, which refers to them; k is copied. The origin and the groups of
   features are still unset on return: mrc_product_run finds them. */
static mercer_status init(mrc_product *product, mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                          const mercer_matrix *y, const mercer_matrix *k, bool signs)
{
    memset(product, 0, sizeof *product);
    product->signs = signs;
    MRC_TRY(mrc_backend_check_kernel(backend, pair->kernel));
    product->pair = pair;
    product->kernel = pair->kernel;
    product->x = pair->x;
    product->z = pair->z;
    product->w = w;
    product->y = y;
    if (k) product->k = *k;
    product->d = pair->x->cols;
    product->on_distance = mrc_kernel_is_stationary(pair->kernel);
    product->direct = mrc_kernel_argument(pair->kernel) == MRC_ON_DIFFERENCES;
    product->norm = mrc_kernel_norm(pair->kernel);
    product->angular = mrc_kernel_is_angular(pair->kernel);
    product->callback = mrc_kernel_is_callback(pair->kernel);
    atomic_init(&product->callback_failed, 0);
    choose_arithmetic(product, backend->state);
    return MERCER_OK;
}

mercer_status mrc_product_init(mrc_product *product, mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                               const mercer_matrix *y, const mercer_matrix *k)
{
    return init(product, backend, pair, w, y, k, false);
}

mercer_status mrc_product_init_signs(mrc_product *product, mrc_backend *backend, const mrc_pair *pair,
                                     const mercer_matrix *w, const mercer_matrix *y)
{
    return init(product, backend, pair, w, y, NULL, true);
}

/* ---- Scratch ------------------------------------------------------------------------------------------------- */

/* Allocate `bytes` at offset *used of base and advance *used; if base is NULL, only advance *used. */
static void *take_scratch(char *base, int64_t *used, int64_t bytes)
{
    void *piece = base ? base + *used : NULL;
    *used += mrc_round_up(bytes, MRC_ALIGNMENT);
    return piece;
}

/* Return the bytes that one worker needs for blocks of block_rows rows, and set *space to its parts. base NULL: only
   measure; the pointers of *space are then NULL. Large parts that this product does not use have size 0. */
static int64_t lay_out(const mrc_product *product, int64_t block_rows, char *base, mrc_space *space)
{
    int64_t used = 0, size = product->type->size, nr = product->nr;
    int64_t row_bytes = product->bytes ? product->groups * 4 : product->d * size;
    int64_t tallest = mrc_max(product->nr, product->few ? product->lanes : product->mr);
    int64_t sums = product->results * block_rows;
    *space = (mrc_space){0};
    space->x_panels = take_scratch(base, &used, block_rows * row_bytes);
    space->x_norms = take_scratch(base, &used, block_rows * 8);
    space->x_start = take_scratch(base, &used, block_rows * 4);
    space->z_panels = take_scratch(base, &used, product->few ? 0 : MRC_TILE_CENTERS * row_bytes);
    space->z_norms = take_scratch(base, &used, MRC_TILE_CENTERS * 8);
    space->staging = take_scratch(base, &used, product->bytes ? 0 : (tallest + 1) * product->d * size);
    space->values = take_scratch(base, &used, MRC_TILE_CENTERS * nr * size);
    space->turned = take_scratch(base, &used, product->k.cols > 0 && !product->few ? MRC_TILE_CENTERS * nr * size : 0);
    space->dots = take_scratch(base, &used, product->bytes && !product->direct ? MRC_TILE_CENTERS * nr * 4 : 0);
    space->block =
        take_scratch(base, &used, product->callback ? (MRC_TILE_CENTERS * nr + nr + MRC_TILE_CENTERS) * 8 : 0);
    int64_t weights_each = product->few ? MRC_FEW_OUTPUTS : product->signs ? nr : product->c_panels * product->mr_sum;
    space->weights = take_scratch(base, &used, product->w ? MRC_TILE_CENTERS * weights_each * size : 0);
    space->partial = take_scratch(base, &used, (product->signs ? product->d : product->mr_sum) * nr * size);
    space->nearest = take_scratch(base, &used, product->nearest ? nr * 4 : 0);
    space->tile_sums = take_scratch(base, &used, product->nearest ? sums * 8 : 0);
    space->total_sums = take_scratch(base, &used, sums * 8);
    return used;
}

/* ---- The loops ----------------------------------------------------------------------------------------------- */

typedef struct run {
    mrc_product *product;
    mrc_space *spaces;  /* one per worker */
    int64_t block_rows; /* rows of X in a block */
    int64_t first_tile; /* tile-parallel mode: the group's first tile */
    double *group_sums; /* tile-parallel mode: one set of sums per tile of the group */
    int64_t sums_count; /* doubles in a set */
} run;

/* Pack rows first .. first + count - 1 of one side, and zeros up to `width`, into one panel. norms and start point to
   the elements for the first row of the panel. start is used for bytes only; start is NULL for centers. */
static void pack_panel(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count, int width,
                       bool centers, mrc_space *space, void *panel, void *norms, int32_t *start)
{
    if (product->bytes)
        mrc_pack_u8(product, source, first, count, width, centers, panel, norms, start);
    else
        product->type->pack(product, source, first, count, width, space->staging, panel, norms);
}

/* Return the bytes of a packed panel of `width` rows. A row has `groups` words for bytes, otherwise `depth` elements:
   fewer than d if features are grouped. */
static int64_t panel_bytes(const mrc_product *product, int width)
{
    return (product->bytes ? product->groups * 4 : product->depth * product->type->size) * width;
}

static int64_t norm_bytes(const mrc_product *product)
{
    return product->bytes ? 4 : product->type->size;
}

/* Pack `count` rows of X into panels of nr rows. Their norms are contiguous, in the order of the rows. */
static void pack_block(const mrc_product *product, mrc_space *space, int64_t first, int64_t count)
{
    const int nr = product->nr;
    for (int64_t done = 0, panel = 0; done < count; done += nr, panel++)
        pack_panel(product, product->x, first + done, mrc_min(nr, count - done), nr, false, space,
                   (char *)space->x_panels + panel * panel_bytes(product, nr),
                   (char *)space->x_norms + done * norm_bytes(product), space->x_start + done);
}

/* Return the number of centers of a tile to pack and multiply: all 240, because sums run over the whole tile; for a
   search only the existing ones, rounded up to full panels. */
static int64_t packed_centers(const mrc_product *product, int64_t count)
{
    return product->nearest ? mrc_round_up(count, product->mr) : MRC_TILE_CENTERS;
}

/* Pack the centers of a tile and their weights. Centers after the last one are zeros with weight 0: they have kernel
   values, but add nothing to the sums. */
static void pack_tile(const mrc_product *product, mrc_space *space, int64_t first, int64_t count)
{
    const int mr = product->mr;
    for (int64_t done = 0, panel = 0; done < packed_centers(product, count); done += mr, panel++)
        pack_panel(product, product->z, first + done, mrc_max(0, mrc_min(mr, count - done)), mr, true, space,
                   (char *)space->z_panels + panel * panel_bytes(product, mr),
                   (char *)space->z_norms + done * norm_bytes(product), NULL);
    if (product->c_panels > 0) product->type->pack_weights(product, first, count, space->weights);
}

/* Compute the products of one panel of X with the first `centers` rows of the packed tile; for kernels of differences,
   compute sums of |differences|^norm instead. */
static void multiply_points(const mrc_product *product, mrc_space *space, int64_t panel, int64_t centers)
{
    const int mr = product->mr, nr = product->nr;
    const char *x_panel = (const char *)space->x_panels + panel * panel_bytes(product, nr);
    const char *z_panel = space->z_panels;
    for (int64_t done = 0; done < centers; done += mr, z_panel += panel_bytes(product, mr)) {
        if (product->bytes && product->direct)
            product->uk->sad_u8(product->groups / 2, z_panel, x_panel, (float *)space->values + done * nr);
        else if (product->bytes)
            product->uk->dot_u8(product->groups, z_panel, x_panel, space->x_start + panel * nr,
                                space->dots + done * nr);
        else
            product->type->dot_panel(product, z_panel, x_panel,
                                     (char *)space->values + done * nr * product->type->size);
    }
}

/* Process one tile of centers, not packed, for all of X, which has few rows. */
static void do_few(mrc_product *product, mrc_space *space, int64_t x_count, int64_t z_first, int64_t z_count,
                   double *sums)
{
    mrc_tile_position place = {.x_count = x_count,
                               .z_first = z_first,
                               .z_count = z_count,
                               .x_norms = space->x_norms,
                               .x_step = mrc_round_up(z_count, product->lanes),
                               .z_step = 1};
    if (product->bytes)
        mrc_few_u8(product, space, &place);
    else
        product->type->few_products(product, space, &place);
    if (!product->type->finish(product, space, &place)) {
        atomic_store(&product->callback_failed, 1);
        return;
    }
    if (z_first < product->k.cols) product->type->store(product, space, &place);
    if (product->w) product->type->few_multiply(product, space, &place, sums);
}

/* Process one tile of centers for the packed block of X: compute kernel values, then all outputs that use them. */
static void do_tile(mrc_product *product, mrc_space *space, int64_t x_first, int64_t x_count, int64_t z_first,
                    double *sums)
{
    int64_t z_count = mrc_min(MRC_TILE_CENTERS, product->z->rows - z_first);
    if (product->few) {
        do_few(product, space, x_count, z_first, z_count, sums);
        return;
    }
    pack_tile(product, space, z_first, z_count);
    const int nr = product->nr;
    const int64_t panel_sums = product->results * nr;
    for (int64_t done = 0, panel = 0; done < x_count; done += nr, panel++) {
        mrc_tile_position place = {.x_first = x_first + done,
                                   .x_count = mrc_min(nr, x_count - done),
                                   .z_first = z_first,
                                   .z_count = z_count,
                                   .x_norms = (char *)space->x_norms + done * norm_bytes(product),
                                   .x_step = 1,
                                   .z_step = nr};
        multiply_points(product, space, panel, packed_centers(product, z_count));
        if (product->nearest) {
            product->type->nearest(product, space, &place, sums + panel * panel_sums);
            continue;
        }
        if (!product->type->finish(product, space, &place)) {
            atomic_store(&product->callback_failed, 1);
            return;
        }
        if (z_first < product->k.cols) product->type->store(product, space, &place);
        if (product->signs)
            product->type->add_signs(product, space, &place, (char *)space->x_panels + panel * panel_bytes(product, nr),
                                     sums + panel * panel_sums);
        else if (product->w)
            product->type->multiply(product, space, sums + panel * panel_sums);
    }
}

static int64_t tile_count(const mrc_product *product)
{
    return (product->z->rows + MRC_TILE_CENTERS - 1) / MRC_TILE_CENTERS;
}

/* Write the sums of a block to Y. The sums of a panel are stored output by output, Y is stored row by row: eight
   outputs at a time touch only a few cache lines of the sums and of Y. */
static void write_sums(const mrc_product *product, const double *sums, int64_t x_first, int64_t x_count)
{
    enum { TOGETHER = 8 };
    const mercer_matrix *y = product->y;
    const int nr = product->nr;
    const int64_t panel_sums = product->results * nr;
    for (int64_t done = 0; done < x_count; done += nr, sums += panel_sums)
        for (int64_t k0 = 0; k0 < y->cols; k0 += TOGETHER)
            for (int64_t i = 0; i < mrc_min(nr, x_count - done); i++)
                for (int64_t k = k0; k < mrc_min(k0 + TOGETHER, y->cols); k++) {
                    double old = product->add ? mrc_load(y, x_first + done + i, k) : 0;
                    mrc_store(y, x_first + done + i, k, old + sums[k * nr + i]);
                }
}

/* The results accumulated over all tiles: begin_totals before the first tile, add_to_totals after each tile,
   write_totals after the last. */
static void begin_totals(const run *self, double *totals)
{
    memset(totals, 0, (size_t)self->sums_count * sizeof *totals);
    if (self->product->nearest) mrc_nearest_begin(self->product, totals, self->block_rows);
}

static void add_to_totals(const run *self, double *totals, const double *sums)
{
    if (self->product->nearest)
        mrc_nearest_merge(self->product, totals, sums, self->block_rows);
    else
        for (int64_t i = 0; i < self->sums_count; i++) totals[i] += sums[i];
}

static void write_totals(const mrc_product *product, const double *totals, int64_t x_first, int64_t x_count)
{
    if (product->nearest) mrc_nearest_write(product, totals, x_first, x_count);
    if (product->w && !atomic_load(&product->callback_failed)) write_sums(product, totals, x_first, x_count);
}

/* A piece of parallel work: pack a block of X, go through all tiles in order, write the results. After a failed
   callback no further tile starts, in any piece, and the rows of Y of this block are not written. */
static void do_block(void *argument, int64_t block, int worker)
{
    run *self = argument;
    mrc_product *product = self->product;
    mrc_space *space = &self->spaces[worker];
    int64_t first = block * self->block_rows, count = mrc_min(self->block_rows, product->x->rows - first);
    size_t bytes = (size_t)self->sums_count * sizeof(double);
    pack_block(product, space, first, count);
    begin_totals(self, space->total_sums);
    for (int64_t z = 0; z < product->z->rows && !atomic_load(&product->callback_failed); z += MRC_TILE_CENTERS) {
        if (!product->nearest) { /* a tile adds to each sum only once, so no separate tile sums are needed */
            do_tile(product, space, first, count, z, space->total_sums);
            continue;
        }
        memset(space->tile_sums, 0, bytes);
        do_tile(product, space, first, count, z, space->tile_sums);
        add_to_totals(self, space->total_sums, space->tile_sums);
    }
    write_totals(product, space->total_sums, first, count);
}

/* A piece of parallel work if X is a single block: one tile, with its own set of sums. Each worker packs X into its own
   scratch space, once, before its first tile. */
static void do_tile_of_group(void *argument, int64_t index, int worker)
{
    run *self = argument;
    mrc_product *product = self->product;
    mrc_space *space = &self->spaces[worker];
    double *sums = self->group_sums + index * self->sums_count;
    if (!space->packed) pack_block(product, space, 0, product->x->rows);
    space->packed = true;
    memset(sums, 0, (size_t)self->sums_count * sizeof *sums);
    if (!atomic_load(&product->callback_failed))
        do_tile(product, space, 0, product->x->rows, (self->first_tile + index) * MRC_TILE_CENTERS, sums);
}

/* Process a single block of X: tiles in parallel, one group of tiles at a time, their sums added in order. */
static void run_by_tiles(run *self, int threads, int64_t group, double *totals)
{
    mrc_product *product = self->product;
    begin_totals(self, totals);
    for (int64_t first = 0; first < tile_count(product); first += group) {
        int64_t count = mrc_min(group, tile_count(product) - first);
        self->first_tile = first;
        mrc_parallel_for(threads, count, do_tile_of_group, self);
        for (int64_t tile = 0; tile < count; tile++)
            add_to_totals(self, totals, self->group_sums + tile * self->sums_count);
    }
    write_totals(product, totals, 0, product->x->rows);
}

/* ---- Entry --------------------------------------------------------------------------------------------------- */

/* Set the origin to 0 for each feature that a sample of the rows identifies as a flag (0 or one other value). If the
   first few rows of the sample contain no zeros, stop early. flags: scratch space (3, d). */
static void clear_flags(const mercer_matrix *rows, double *flags, double *origin)
{
    mercer_matrix some = *rows, sums = mrc_view(flags, 3, rows->cols, MERCER_F64);
    int64_t step = mrc_max(1, rows->rows / FLAG_ROWS), first = mrc_min(FIRST_FLAG_ROWS, rows->rows / step), zeros = 0;
    some.rows = rows->rows / step;
    some.ld *= step;
    memset(flags, 0, (size_t)(3 * rows->cols) * sizeof *flags);
    mercer_matrix part = mrc_rows(&some, 0, first), rest = mrc_rows(&some, first, some.rows - first);
    mrc_add_flags(1, &part, &sums);
    for (int64_t k = 0; k < rows->cols; k++) zeros += mrc_load(&sums, 2, k) < (double)first;
    if (zeros == 0) return;
    mrc_add_flags(1, &rest, &sums);
    mrc_clear_flags(&sums, some.rows, origin);
}

/*
 * Set product->origin, in the arithmetic of the product: the origin of the pair, or else the column mean of Z, with 0
 * for flags. If Z has many rows, the mean is taken over evenly spaced rows: if X has few rows, a pass over all of Z
 * would cost as much as the products. Any point amid the data works, as long as it depends only on Z, so that results
 * do not depend on how X is split into batches. mean (d), flags (3, d) and rounded (d, the origin) are scratch space.
 */
static mercer_status find_origin(mrc_product *product, mrc_backend *backend, double *mean, double *flags, void *rounded)
{
    const double *origin = product->pair->origin;
    if (!origin) {
        mercer_matrix some = *product->z;
        int64_t step = mrc_max(1, some.rows / ORIGIN_ROWS);
        some.rows = (some.rows + step - 1) / step;
        some.ld *= step;
        MRC_TRY(backend->ops->column_mean(backend, &some, mean));
        clear_flags(&some, flags, mean);
        origin = mean;
    }
    for (int64_t k = 0; k < product->d; k++) {
        if (product->type == &mrc_tile_f64)
            ((double *)rounded)[k] = origin[k];
        else
            ((float *)rounded)[k] = (float)origin[k];
    }
    product->origin = rounded;
    return MERCER_OK;
}

/* Return the number of rows of X per block, chosen so that every thread gets the same number of blocks and none idles
   at the end. */
static int64_t choose_block_rows(const mrc_product *product, int threads, bool by_tiles)
{
    int64_t m = product->x->rows, all = MRC_BLOCK_ROWS * (int64_t)threads, rounds = (m + all - 1) / all;
    int64_t share = (m + rounds * threads - 1) / (rounds * threads);
    return mrc_round_up(by_tiles ? m : share, product->nr);
}

/* Tiles are the parallel pieces only if X fits one block and there are several tiles and threads. Otherwise blocks are
   the pieces, and each worker has its own sums. The groups of features are found after the origin, because groups need
   features that are 0 after centering. */
mercer_status mrc_product_run(mrc_product *product, mrc_backend *backend)
{
    mrc_arena *arena = &((mrc_cpu *)backend->state)->arena;
    int threads = backend->context->threads;
    int64_t m = product->x->rows;
    if (m == 0 || (product->k.cols == 0 && product->results == 0)) return MERCER_OK;
    bool by_tiles = threads > 1 && m <= MRC_BLOCK_ROWS && tile_count(product) > 1;
    int64_t block_rows = choose_block_rows(product, threads, by_tiles);
    int64_t in_flight =
        mrc_max(TILES_IN_FLIGHT * (int64_t)threads,
                SUMS_IN_FLIGHT / mrc_max(1, product->results * block_rows)); /* small sums: all tiles at once */
    int64_t group = by_tiles ? mrc_min(in_flight, tile_count(product)) : 0;
    run self = {.product = product, .block_rows = block_rows, .sums_count = product->results * block_rows};

    /* All memory is reserved before the loops, so workers never allocate: scratch spaces, the sets of sums of a group
       of tiles and one set for the totals, the origin, and the tables of groups. */
    mrc_space measured;
    int64_t space_bytes = lay_out(product, block_rows, NULL, &measured),
            spaces_bytes = threads * (int64_t)sizeof measured;
    int64_t sums_bytes = (group + 1) * self.sums_count * 8, d_bytes = product->d * 8;
    int64_t groups_bytes = mrc_groups_bytes(product, threads);
    MRC_TRY(mrc_arena_reserve(
        arena, threads * space_bytes + mrc_round_up(spaces_bytes, MRC_ALIGNMENT) +
                   mrc_round_up(sums_bytes, MRC_ALIGNMENT) + 2 * mrc_round_up(d_bytes, MRC_ALIGNMENT) +
                   mrc_round_up(3 * d_bytes, MRC_ALIGNMENT) + mrc_round_up(groups_bytes, MRC_ALIGNMENT)));
    self.spaces = mrc_arena_push(arena, spaces_bytes);
    for (int i = 0; i < threads; i++) lay_out(product, block_rows, mrc_arena_push(arena, space_bytes), &self.spaces[i]);
    self.group_sums = mrc_arena_push(arena, sums_bytes);
    double *mean = mrc_arena_push(arena, d_bytes);
    void *rounded = mrc_arena_push(arena, d_bytes);
    double *flags = mrc_arena_push(arena, 3 * d_bytes);
    if (product->centered)
        MRC_TRY(find_origin(product, backend, mean, flags, rounded));
    else if (product->few) /* the micro-kernels for few rows always subtract an origin */
        product->origin = memset(rounded, 0, (size_t)d_bytes);
    if (groups_bytes > 0) mrc_groups_find(product, threads, mrc_arena_push(arena, groups_bytes));

    if (by_tiles)
        run_by_tiles(&self, threads, group, self.group_sums + group * self.sums_count);
    else
        mrc_parallel_for(threads, (m + block_rows - 1) / block_rows, do_block, &self);
    mrc_arena_reset(arena);
    if (!atomic_load(&product->callback_failed)) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_CALLBACK, "kernel: the callback reported failure");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tiles of a kernel matrix that is never stored as a whole: the interface between the fused driver (product.c) and the
 * typed work on a tile (tile_body.h, compiled for float and double).
 *
 *   X block: up to 512 rows, packed once in panels of nr rows        Z tile: 240 centers, packed in panels of mr rows
 *   products of one X panel with a Z tile: (240, nr), center-major   -> distances -> kernel values, in place, in cache
 *   or sums of |differences|^p, which are directly the kernel's argument
 *   values (240, nr) and weights (240, c)                            -> sums (c, nr), added up in double
 *   or distances (240, nr)                                           -> the nearest of the 240, a running minimum
 *
 * When X has few rows, packing a tile of centers would cost more than the products with it. The centers are then read
 * in place, `lanes` at a time, and the tile is (m, stride), x-major, where stride is the number of its centers rounded
 * up to a multiple of lanes. The layout differs, but the FMA chains are the same.
 *
 * The tile sizes are constants, so the order of every sum is fixed: it depends only on the centers, not on the batch,
 * the number of threads or the instruction set.
 */
#ifndef MRC_BACKENDS_CPU_TILE_H
#define MRC_BACKENDS_CPU_TILE_H

#include "backends/backend.h"
#include "backends/cpu/micro/ukernels.h"

#include <stdatomic.h>

enum {
    MRC_TILE_CENTERS = 240,     /* a multiple of every mr */
    MRC_BLOCK_ROWS = 512,       /* a multiple of every nr */
    MRC_FEW_ROWS = 16,          /* maximum number of rows of X for which centers are not packed */
    MRC_FEW_ROWS_U8 = 4,        /* the same for bytes, which are cheaper to pack */
    MRC_FEW_OUTPUTS = 16,       /* number of outputs summed at a time if X has few rows */
    MRC_U8_MAX_FEATURES = 32768 /* 255^2 * 32768 < 2^31: products of bytes are exact in int32 */
};

/* Pairs with |x - z|^2 below this fraction of |x|^2 + |z|^2 are recomputed from their coordinates in double, because
   cancellation makes the distance from products inaccurate. */
#define MRC_NEAR_F32 0x1p-10f
#define MRC_NEAR_F64 0x1p-20

typedef struct mrc_tile_type mrc_tile_type;

/* Groups of features with at most one nonzero value per row, such as the one-hot levels of a category
   (groups.c). */
typedef struct mrc_groups {
    mrc_runs runs;
    int64_t count;
    /* (d) positions of a feature's value and of its index in a packed row; the index of an ungrouped feature goes after
       the end of the row */
    int32_t *value_at, *group_at;
} mrc_groups;

/* Statistics of the rows that a worker has scanned, all (d). row (scratch space) and level are of the value type. See
   scan_f32 in ukernels.h. */
typedef struct mrc_scan {
    void *row, *level;
    int32_t *before;
} mrc_scan;

/* One fused operation: its inputs, its outputs, and every choice made before the loops. */
typedef struct mrc_product {
    const mrc_pair *pair;
    const mercer_kernel *kernel;
    const mercer_matrix *x, *z;
    const mercer_matrix *w; /* (p, c) or NULL */
    const mercer_matrix *y; /* (m, c) or NULL: result, = or += K W */
    bool add;
    bool signs;                /* y (m, c d) receives sums of w K sign(x_k - z_k) instead; only for norm 1 */
    int32_t *nearest;          /* (m) or NULL: nearest rows of Z; if set, nothing else is computed */
    double *sqdistances;       /* (m) squared distances (in general sums of |x_k - z_k|^norm), only with nearest */
    mercer_matrix k;           /* (m, columns): destination of the first columns of K; 0 columns: not wanted */
    const int64_t *k_rows;     /* (m) destination rows in k; NULL: 0, 1, ... */
    bool arguments;            /* k receives the arguments of the kernel (sums), not its values */
    const mrc_tile_type *type; /* float or double */
    bool bytes;                /* exact integer products: X and Z are u8, results float (double is exact anyway) */
    bool on_distance, angular, callback; /* kind of kernel; on_distance: a function of the distance in any norm */
    bool direct;    /* tiles are computed as sums of |differences|^norm: no products, norms or near pairs */
    double norm;    /* p of the distance; 0 for inner products */
    bool few;       /* X has few rows, so centers are not packed */
    int lanes;      /* number of centers read at a time, if few */
    int mr, nr;     /* size of a micro-tile of products; nr is m if few */
    int mr_sum;     /* height of a micro-tile of sums: (mr_sum, nr) */
    int group;      /* number of features packed together: 1; for bytes group_u8, or 8 for differences */
    int64_t d;      /* number of features */
    int64_t groups; /* 32-bit words per packed row: d / group, rounded up; times 2 (group 8) or 16 (group 64) */
    int64_t depth;  /* elements per packed row, unless bytes: d, or fewer if grouped */
    bool grouped;   /* true: groups of features are packed as value and index, see grouping */
    mrc_groups grouping;
    int64_t c_panels; /* number of panels of mr_sum outputs */
    int64_t results;  /* doubles per row of X that a tile yields: sums, or distance and index of the nearest center */
    bool centered;    /* true: an origin is subtracted from X and Z; inner products and integers need no origin */
    void *origin;     /* (d) of the value type, if centered (zeros if few and not centered) */
    mrc_map map;      /* vectorized kernel function; id 0: the scalar formula or a callback is used */
    const mrc_ukernels *uk;
    atomic_int callback_failed;
} mrc_product;

/* Scratch space of one worker. */
typedef struct mrc_space {
    void *x_panels;     /* packed rows of the X block: per row `groups` words for bytes, else up to d values */
    void *x_norms;      /* (block rows) of the value type, or int32 for bytes */
    int32_t *x_start;   /* (block rows) start of each product of bytes (mrc_dot_u8_fn); bytes only */
    void *z_panels;     /* packed rows of 240 centers, with the same size per row */
    void *z_norms;      /* (240) of the same type as x_norms */
    void *staging;      /* (max of nr and mr or lanes, plus 1; d): rows converted before they are interleaved */
    void *values;       /* (240, nr): products, later kernel values */
    void *turned;       /* (nr, 240): transposed values, for storing K */
    int32_t *dots;      /* (240, nr): integer products; bytes only */
    double *block;      /* arguments of a callback: values (nr, 240), norms (nr) and (240) */
    void *weights;      /* (c_panels, 240, mr_sum); if few, (240, 16); if signs, w K of one output, (240, nr) */
    void *partial;      /* sums of one tile: (mr_sum, nr); if signs, (d, nr) */
    int32_t *nearest;   /* (nr) index of the nearest center in the tile; its distance is in partial */
    double *tile_sums;  /* (block panels, 2, nr): distances and center indices from one tile; only with nearest */
    double *total_sums; /* (block panels, results, nr): results accumulated over all tiles */
    bool packed;        /* true: x_panels already contain X; used only if X is a single block */
} mrc_space;

/* Position of a tile in K, and its layout. */
typedef struct mrc_tile_position {
    int64_t x_first, x_count; /* rows of X in the panel: x_count <= nr */
    int64_t z_first, z_count; /* centers in the tile: z_count <= 240 */
    const void *x_norms;      /* squared norms of the rows of the panel */
    int64_t x_step, z_step;   /* value (i, j) of the tile has index i * x_step + j * z_step */
} mrc_tile_position;

/* Typed work on tiles: the same source compiled for float and for double. */
struct mrc_tile_type {
    int64_t size; /* bytes per element */
    /* scan adds row i of source to the statistics; join merges those of another worker; level returns the only nonzero
       value of feature k, 0 if it has none, NaN if it has several. */
    void (*scan)(const mrc_product *product, const mercer_matrix *source, int64_t i, mrc_scan *scan);
    void (*join)(const mrc_product *product, mrc_scan *scan, const mrc_scan *other);
    double (*level)(const mrc_scan *scan, int64_t k);
    /* Pack rows first .. first + count - 1 of source, converted and centered, into an interleaved panel of `width`
       rows, and compute their squared norms. */
    void (*pack)(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count, int width,
                 void *staging, void *panel, void *norms);
    void (*pack_weights)(const mrc_product *product, int64_t first, int64_t count, void *panels);
    void (*dot_panel)(const mrc_product *product, const void *z_panel, const void *x_panel, void *out);
    /* Compute, for few rows of X, the products with a whole tile and the norms of its centers, into space. */
    void (*few_products)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place);
    /* Convert products in space->values (or space->dots) to kernel values in space->values. Return false if a callback
       fails. */
    bool (*finish)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place);
    /* K(x_first.., z_first..) = values */
    void (*store)(const mrc_product *product, const mrc_space *space, const mrc_tile_position *place);
    /* Convert products to distances; result (2, nr): the smallest distance of each row of X, and its center's index. */
    void (*nearest)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place, double *result);
    /* sums (c_panels, mr_sum, nr) += weights' values */
    void (*multiply)(const mrc_product *product, const mrc_space *space, double *sums);
    /* sums (c, d, nr) += w K sign(x_k - z_k) */
    void (*add_signs)(const mrc_product *product, const mrc_space *space, const mrc_tile_position *place,
                      const void *x_panel, double *sums);
    /* sums (c, m) += weights' values, for few rows of X */
    void (*few_multiply)(const mrc_product *product, mrc_space *space, const mrc_tile_position *place, double *sums);
};

extern const mrc_tile_type mrc_tile_f32;
extern const mrc_tile_type mrc_tile_f64;

/* Work on bytes (pack_panels.c). start may be NULL (the Z side). */
void mrc_few_u8(const mrc_product *product, mrc_space *space, const mrc_tile_position *place);
void mrc_pack_u8(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count, int width,
                 bool centers, void *panel, int32_t *norms, int32_t *start);

/* Compute, for one pair, in double and from the coordinates: the sum of |differences|^norm; |x_i - z_j|^2; the inner
   product and both squared norms. */
double mrc_exact_sum(double norm, const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j);
double mrc_exact_sqdist(const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j);
void mrc_exact_inner(const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j, double *dot, double *xx,
                     double *zz);

/* groups.c: find groups of features in the rows of X and Z, and set product->grouping if the groups save work. scratch:
   scratch space of mrc_groups_bytes bytes (0: groups are not possible), which must live as long as the product. */
int64_t mrc_groups_bytes(const mrc_product *product, int threads);
void mrc_groups_find(mrc_product *product, int threads, void *scratch);

/* The search for nearest rows (cpu_nearest.c): tile results, (panels, 2, nr), are merged in order into totals. */
void mrc_nearest_begin(const mrc_product *product, double *totals, int64_t rows);
void mrc_nearest_merge(const mrc_product *product, double *totals, const double *tile, int64_t rows);
void mrc_nearest_write(const mrc_product *product, const double *totals, int64_t x_first, int64_t x_count);

/* The fused driver. init chooses the arithmetic, the panel sizes, the form of the kernel function, and whether X has so
   few rows that centers are read in place. The caller may then set further fields of product; run computes all outputs
   that are set. */
mercer_status mrc_product_init(mrc_product *product, mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                               const mercer_matrix *y, const mercer_matrix *k);
mercer_status mrc_product_init_signs(mrc_product *product, mrc_backend *backend, const mrc_pair *pair,
                                     const mercer_matrix *w, const mercer_matrix *y);
mercer_status mrc_product_run(mrc_product *product, mrc_backend *backend);

#endif

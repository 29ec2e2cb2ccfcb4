/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tiles of a kernel matrix that is never stored whole: what the fused driver (product.c) and the typed work on a tile
 * (tile_body.h, built for float and double) share.
 *
 *   X block: up to 512 rows, packed once in panels of nr rows        Z tile: 240 centers, packed in panels of mr rows
 *   products of one X panel with a Z tile: (240, nr), center-major   -> distances -> kernel values, in place, in cache
 *   or sums of |differences|^p, which are the kernel's argument as they are
 *   values (240, nr) and weights (240, c)                            -> sums (c, nr), added up in double
 *   or distances (240, nr)                                           -> the nearest of the 240, a running minimum
 *
 * When X has few rows, packing a tile would cost more than all that is done with it. Its rows are then read where they
 * lie, `lanes` at a time, and the tile is (m, stride), x-major, with stride the number of its centers rounded up to
 * lanes: the same chains in another place.
 *
 * The numbers are fixed, so the order of every sum is fixed: it depends on the centers alone, not on batch, threads or
 * ISA.
 */
#ifndef MRC_BACKENDS_CPU_TILE_H
#define MRC_BACKENDS_CPU_TILE_H

#include "backends/backend.h"
#include "backends/cpu/micro/ukernels.h"

#include <stdatomic.h>

enum {
    MRC_TILE_CENTERS = 240,     /* a multiple of every mr */
    MRC_BLOCK_ROWS = 512,       /* a multiple of every nr */
    MRC_FEW_ROWS = 16,          /* rows of X up to which a tile of centers is not packed */
    MRC_FEW_ROWS_U8 = 4,        /* the same of bytes, whose packing is cheap */
    MRC_FEW_OUTPUTS = 16,       /* outputs summed at a time then */
    MRC_U8_MAX_FEATURES = 32768 /* 255^2 * 32768 < 2^31: products of bytes are exact in int32 */
};

/* Pairs nearer than this share of |x|^2 + |z|^2 are evaluated from their coordinates in double: products cannot
   resolve them. */
#define MRC_NEAR_F32 0x1p-10f
#define MRC_NEAR_F64 0x1p-20

typedef struct mrc_tile_type mrc_tile_type;

/* Which features of a product's rows are groups with at most one value other than 0, such as the levels of a
   category (groups.c). */
typedef struct mrc_groups {
    mrc_runs runs;
    int64_t count;
    int32_t *value_at, *group_at; /* (d) where a feature's value and its number go in a packed row; numbers of features
                                     of their own go behind its end */
} mrc_groups;

/* What a worker has seen of the rows; all (d), row and level of the value type. */
typedef struct mrc_scan {
    void *row, *level;
    int32_t *before;
} mrc_scan;

/* One fused operation: what goes in, what comes out, and all that was decided before the loops. */
typedef struct mrc_product {
    const mrc_pair *pair;
    const mercer_kernel *kernel;
    const mercer_matrix *x, *z;
    const mercer_matrix *w; /* (p, c) or NULL */
    const mercer_matrix *y; /* (m, c) or NULL: = or += K W */
    bool add;
    bool signs;                /* y (m, c d) gets sums of w K sign(x_k - z_k) instead, in the norm 1 */
    int32_t *nearest;          /* (m) or NULL: the nearest rows of Z are wanted, and nothing else */
    double *sqdistances;       /* (m) with nearest */
    mercer_matrix k;           /* (m, columns): K itself, its first columns; columns 0: not wanted */
    const int64_t *k_rows;     /* (m) or NULL: rows of k that get them; else 0, 1, ... */
    bool arguments;            /* k gets what the function of the distance takes, not its values */
    const mrc_tile_type *type; /* float or double */
    bool bytes;                /* exact integer products: X and Z are u8, results float (double is exact without) */
    bool on_distance, angular, callback; /* on_distance: in any norm */
    bool direct;    /* tiles hold sums of |differences|^norm from the start: no products, norms or near pairs */
    double norm;    /* p of the distance; 0 for inner products */
    bool few;       /* X has few rows: centers are not packed */
    int lanes;      /* centers read at a time, if few */
    int mr, nr;     /* micro-tile of the products; nr is m if few */
    int mr_sum;     /* micro-tile of the sums: (mr_sum, nr) */
    int group;      /* features packed together: 1, or for bytes group_u8, 8 for differences */
    int64_t d;      /* features */
    int64_t groups; /* 32-bit words of a packed row: d / group, rounded up; a group of 8 has 2, one of 64 16 */
    int64_t depth;  /* elements of a packed row, unless bytes: d, or fewer with groups */
    bool grouped;   /* groups of features are looked up: */
    mrc_groups grouping;
    int64_t c_panels; /* panels of mr_sum outputs */
    int64_t results;  /* doubles that a tile gives for each row of X: sums, or the nearest and its squared distance */
    bool centred;     /* an origin is subtracted from both sides: of no use to inner products and integers */
    void *origin;     /* (d) of the value type, if centred */
    mrc_map map;      /* id 0: the scalar formula, or a callback */
    const mrc_ukernels *uk;
    atomic_int callback_failed;
} mrc_product;

/* Scratch of one worker. */
typedef struct mrc_space {
    void *x_panels;   /* (block rows, groups * group) packed */
    void *x_norms;    /* (block rows) of the value type, or int32 for bytes */
    int32_t *x_start; /* (block rows) bytes only */
    void *z_panels;   /* (240, groups * group) packed */
    void *z_norms;    /* (240) */
    void *staging;    /* (nr, mr or lanes, d): rows converted, before they are interleaved; and one more */
    void *values;     /* (240, nr): products, then kernel values */
    void *turned;     /* (nr, 240): the same for storing */
    int32_t *dots;    /* (240, nr): integer products, bytes only */
    double *block;    /* (nr, 240) for a callback, then its norms (nr) and (240) */
    void *weights;    /* (c_panels, 240, mr_sum); if few, (240, 16); of signs w K of an output, (240, nr) */
    void *partial;    /* (mr_sum, nr); of signs (d, nr) */
    int32_t *nearest; /* (nr) in the tile; their distances are in partial */
    double
        *tile_sums; /* (block panels, c_panels, mr_sum, nr), or (block panels, 2, nr): squared distances, row numbers */
    double *total_sums; /* the same */
    bool packed;        /* x_panels hold the X block, when there is only one */
} mrc_space;

/* Where a tile lies. */
typedef struct mrc_place {
    int64_t x_first, x_count; /* rows of X in the panel: x_count <= nr */
    int64_t z_first, z_count; /* centers in the tile: z_count <= 240 */
    const void *x_norms;      /* of the panel */
    int64_t x_step, z_step;   /* value (i, j) of the tile is at i * x_step + j * z_step */
} mrc_place;

/* Typed work on tiles: the same source built for float and for double. */
struct mrc_tile_type {
    int64_t size; /* of an element */
    /* Row i of source is seen; what another worker has seen; the one value of feature k, 0: none, NaN: there are
       several. */
    void (*scan)(const mrc_product *product, const mercer_matrix *source, int64_t i, mrc_scan *scan);
    void (*join)(const mrc_product *product, mrc_scan *scan, const mrc_scan *other);
    double (*level)(const mrc_scan *scan, int64_t k);
    /* Rows first .. first + count - 1 of source, converted, centred, interleaved in a panel of `width`; and their
       norms. */
    void (*pack)(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count, int width,
                 void *staging, void *panel, void *norms);
    void (*pack_weights)(const mrc_product *product, int64_t first, int64_t count, void *panels);
    void (*dot_panel)(const mrc_product *product, const void *z_panel, const void *x_panel, void *out);
    /* The same for few rows of X, with a whole tile: products and the norms of its centers, into space. */
    void (*few_products)(const mrc_product *product, mrc_space *space, const mrc_place *place);
    /* Products in space->values (or space->dots) become kernel values in space->values. False: the callback failed. */
    bool (*finish)(const mrc_product *product, mrc_space *space, const mrc_place *place);
    /* K(x_first.., z_first..) = values */
    void (*store)(const mrc_product *product, const mrc_space *space, const mrc_place *place);
    /* Products become distances, and result (2, nr) the smallest of each row of X and its center's number. */
    void (*nearest)(const mrc_product *product, mrc_space *space, const mrc_place *place, double *result);
    /* sums (c_panels, mr_sum, nr) += weights' values */
    void (*multiply)(const mrc_product *product, const mrc_space *space, double *sums);
    /* sums (c, d, nr) += w K sign(x_k - z_k) */
    void (*add_signs)(const mrc_product *product, const mrc_space *space, const mrc_place *place, const void *x_panel,
                      double *sums);
    /* sums (c, m) += the same for few rows of X */
    void (*few_multiply)(const mrc_product *product, mrc_space *space, const mrc_place *place, double *sums);
};

extern const mrc_tile_type mrc_tile_f32;
extern const mrc_tile_type mrc_tile_f64;

/* Bytes: see pack.c. start may be NULL (the Z side). */
void mrc_few_u8(const mrc_product *product, mrc_space *space, const mrc_place *place);
void mrc_pack_u8(const mrc_product *product, const mercer_matrix *source, int64_t first, int64_t count, int width,
                 bool centers, void *panel, int32_t *norms, int32_t *start);

/* The sum of |differences|^norm, |x_i - z_j|^2, and the inner product with both norms, from the coordinates in
   double. */
double mrc_exact_sum(double norm, const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j);
double mrc_exact_sqdist(const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j);
void mrc_exact_inner(const mercer_matrix *x, int64_t i, const mercer_matrix *z, int64_t j, double *dot, double *xx,
                     double *zz);

/* groups.c: the groups of features that the rows of X and Z have, into the product where they save work. room:
   mrc_groups_bytes. */
int64_t mrc_groups_bytes(const mrc_product *product, int threads);
void mrc_groups_find(mrc_product *product, int threads, void *room);

/* The search for nearest rows (nearest.c): results of tiles, (panels, 2, nr), are merged in order into totals. */
void mrc_nearest_begin(const mrc_product *product, double *totals, int64_t rows);
void mrc_nearest_merge(const mrc_product *product, double *totals, const double *tile, int64_t rows);
void mrc_nearest_write(const mrc_product *product, const double *totals, int64_t x_first, int64_t x_count);

/* The fused driver. init decides arithmetic, sizes of panels, form of the kernel function, and whether X has so few
   rows that centers are read where they lie; run does everything that product then asks for. */
mercer_status mrc_product_init(mrc_product *product, mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                               const mercer_matrix *y, const mercer_matrix *k);
mercer_status mrc_product_init_signs(mrc_product *product, mrc_backend *backend, const mrc_pair *pair,
                                     const mercer_matrix *w, const mercer_matrix *y);
mercer_status mrc_product_run(mrc_product *product, mrc_backend *backend);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cuda/half_precision: products that round points and kernel values to half precision, if the pair allows
 * rounding. They use one fused kernel on Hopper (fused.h), and tiles around cuBLAS on other GPUs and for many columns.
 * This folder also contains products of float matrices that are split into halves (split_gemm.c). This header declares
 * the operands that the kernel products share.
 */
#ifndef MRC_BACKENDS_CUDA_HALF_PRECISION_HALF_PRECISION_H
#define MRC_BACKENDS_CUDA_HALF_PRECISION_HALF_PRECISION_H

#include "backends/cuda/cuda.h"

/* The backend's packed rows (packed.c), owned by the caller of pack_create. The kernel is not copied, so it must
   outlive this struct. On the device: values (rows, ld) in bytes or halves; norms, int32 or float, padded to whole
   tiles; origin (d) f64, or NULL for bytes and if the origin is 0. */
struct mrc_packed {
    const mercer_kernel *kernel;
    bool bytes;
    int64_t rows, ld;
    void *values, *norms, *origin;
};

/* Returns whether products use these rows as bytes instead of converting them to halves. */
bool mrc_half_precision_takes_bytes(const mrc_backend *backend, const mercer_matrix *points);
/* Returns the leading dimension of packed rows of d features, in elements. */
int64_t mrc_half_precision_ld(int64_t d);

/* The packed rows of one side of a product. */
typedef struct mrc_half_side {
    const mercer_matrix *points;
    mercer_matrix staged; /* scratch for rows that are on the host */
    bool packed_before;   /* whether all_rows and all_norms point into a mrc_packed */
    char *all_rows, *all_norms;
    void *rows, *norms; /* packed rows and norms of the rows in use */
} mrc_half_side;

typedef struct mrc_half_precision {
    mrc_backend *backend;
    const mrc_pair *pair;
    bool bytes;
    int64_t ld;
    double *origin; /* (d) on the device, or NULL */
    mrc_half_side x, z;
} mrc_half_precision;

/* Packs Z and allocates scratch for `rows` rows of X. self->backend, pair and bytes must be set. */
mercer_status mrc_half_precision_make(mrc_half_precision *self, int64_t rows);
/* Packs rows first .. first + count - 1 of a side, unless they are packed already, and makes them the rows in use. */
mercer_status mrc_half_precision_use(mrc_half_precision *self, mrc_half_side *side, int64_t first, int64_t count);

/* Returns the leading dimension, in elements, of the saved kernel values of p centers, which are stored in whole
   tiles. */
int64_t mrc_half_cached_width(const mrc_cached_block *cached, int64_t p);

/* Computes Y = K(X, Z) W, or Y += if add, with W and Y on the device (half_tiles.c). cached: NULL or, on Hopper, where
   the first cached->columns columns of K are saved. */
mercer_status mrc_half_precision_tiles(mrc_half_precision *self, const mercer_matrix *w, const mercer_matrix *y,
                                       bool add, const mrc_cached_block *cached);

#endif

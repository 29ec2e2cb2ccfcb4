/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cuda/half_precision: products that round points and kernel values to half precision, where the context's
 * arithmetic allows it: one fused kernel on Hopper (fused.h), tiles around cuBLAS elsewhere and for many columns. And
 * products of float matrices that are split into halves. Here: the operands that kernel products share.
 */
#ifndef MRC_BACKENDS_CUDA_HALF_PRECISION_HALF_PRECISION_H
#define MRC_BACKENDS_CUDA_HALF_PRECISION_HALF_PRECISION_H

#include "backends/cuda/cuda.h"

/* The backend's packed rows (packed.c). */
struct mrc_packed {
    const mercer_kernel *kernel;
    bool bytes;
    int64_t rows, ld;
    void *values, *norms, *origin;
};

/* Whether rows of that kind are computed with as bytes; the leading dimension of packed rows of d features. */
bool mrc_half_precision_takes_bytes(const mrc_backend *backend, const mercer_matrix *points);
int64_t mrc_half_precision_ld(int64_t d);

/* Rows of one side, packed. */
typedef struct mrc_half_side {
    const mercer_matrix *points;
    mercer_matrix staged; /* for rows that lie on the host */
    bool packed_before;   /* rows and norms are part of a mrc_packed */
    char *all_rows, *all_norms;
    void *rows, *norms; /* of the rows in use */
} mrc_half_side;

typedef struct mrc_half_precision {
    mrc_backend *backend;
    const mrc_pair *pair;
    bool bytes;
    int64_t ld;
    double *origin; /* (d) on the device, or NULL */
    mrc_half_side x, z;
} mrc_half_precision;

/* Packs Z, and makes room for `rows` rows of X. */
mercer_status mrc_half_precision_make(mrc_half_precision *self, int64_t rows);
/* Rows first .. first + count - 1 of a side become those in use. */
mercer_status mrc_half_precision_use(mrc_half_precision *self, mrc_half_side *side, int64_t first, int64_t count);

/* Kept values lie in whole tiles: elements of a row of them, of p centers. */
int64_t mrc_half_kept_width(const mrc_kept *kept, int64_t p);

/* Y = or += K(X, Z) W, weights and Y on the device (half_tiles.c). kept: NULL, or where kept->columns go, on Hopper. */
mercer_status mrc_half_precision_tiles(mrc_half_precision *self, const mercer_matrix *w, const mercer_matrix *y,
                                       bool add, const mrc_kept *kept);

#endif

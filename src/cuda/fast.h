/* SPDX-License-Identifier: BSD-3-Clause */
/* Products in half precision: the operands that the fused kernel and the tiles share. */
#ifndef MRC_CUDA_FAST_H
#define MRC_CUDA_FAST_H

#include "cuda/cuda.h"

/* Rows of one side, packed. */
typedef struct mrc_fast_side {
    mercer_matrix staged; /* for rows that lie on the host */
    void *rows, *norms;
} mrc_fast_side;

typedef struct mrc_fast {
    mrc_backend *backend;
    const mrc_pair *pair;
    bool bytes;
    int64_t ld;
    double *origin; /* (d) on the device, or NULL */
    mrc_fast_side x, z;
} mrc_fast;

/* Packs Z, and makes room for `rows` rows of X. */
mercer_status mrc_fast_make(mrc_fast *fast, int64_t rows);
mercer_status mrc_fast_pack(mrc_fast *fast, mrc_fast_side *side, const mercer_matrix *points);

/* Y = or += K(X, Z) W, weights and Y on the device (fast_tiles.c). */
mercer_status mrc_fast_tiles(mrc_fast *fast, const mercer_matrix *w, const mercer_matrix *y, bool add);

#endif

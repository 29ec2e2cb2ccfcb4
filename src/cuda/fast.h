/* SPDX-License-Identifier: BSD-3-Clause */
/* Products in half precision: the operands that the fused kernel and the tiles share. */
#ifndef MRC_CUDA_FAST_H
#define MRC_CUDA_FAST_H

#include "cuda/cuda.h"

/* The backend's packed rows (packed.c). */
struct mrc_packed {
    const mercer_kernel *kernel;
    bool bytes;
    int64_t rows, ld;
    void *values, *norms, *origin;
};

/* Whether rows of that kind are computed with as bytes; the leading dimension of packed rows of d features. */
bool mrc_fast_takes_bytes(const mrc_backend *backend, const mercer_matrix *points);
int64_t mrc_fast_ld(int64_t d);

/* Rows of one side, packed. */
typedef struct mrc_fast_side {
    const mercer_matrix *points;
    mercer_matrix staged; /* for rows that lie on the host */
    bool packed_before;   /* rows and norms are part of a mrc_packed */
    char *all_rows, *all_norms;
    void *rows, *norms; /* of the rows in use */
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
/* Rows first .. first + count - 1 of a side become those in use. */
mercer_status mrc_fast_use(mrc_fast *fast, mrc_fast_side *side, int64_t first, int64_t count);

/* Y = or += K(X, Z) W, weights and Y on the device (fast_tiles.c). */
mercer_status mrc_fast_tiles(mrc_fast *fast, const mercer_matrix *w, const mercer_matrix *y, bool add);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ridge regressions on few centers, one per ridge, and their errors on held-out rows:
 *
 *   alpha = (K'K + l w K(Z, Z))^-1 K'Y        K = K(X, Z),  w the total weight of the rows X,  l the ridge per unit
 *                                             of weight
 *
 * All in double, from points in float or double. Cost: n p^2 flops for K'K, p^3 / 3 for each ridge and fold. If Z = X,
 * K is a factor of both sides:
 *
 *   alpha = (K + l n I)^-1 Y                  p^3 / 3 for each ridge, and no K'K
 */
#ifndef MRC_SEARCH_SMALL_FITS_H
#define MRC_SEARCH_SMALL_FITS_H

#include "backends/backend.h"
#include "kernels/kernel.h"

enum { MRC_FOLDS = 10, MRC_RIDGES = 8 }; /* at most */

/* Rows first .. first + count - 1. */
typedef struct mrc_span {
    int64_t first, count;
} mrc_span;

typedef struct mrc_small_rows {
    mercer_matrix x;       /* f32 or f64 (rows, d), host memory */
    mercer_matrix y;       /* f64 (rows, c), centered */
    const double *weights; /* (rows), or NULL: all 1 */
    mrc_span folds[MRC_FOLDS];
    int count;     /* number of folds, 2 or more */
    bool held_out; /* only the last fold is scored, by fits to the others; false: every fold is */
} mrc_small_rows;

/* Copies the first rows of the training folds, taken from the folds in turn, into z: random rows, by the order of the
   split. x holds the rows of all folds, in the type of z. */
void mrc_small_gather_centers(const mrc_small_rows *rows, const mercer_matrix *x, const mercer_matrix *z);

typedef struct mrc_small_fits mrc_small_fits;

/* Allocates for p centers, which must be rows by mrc_small_gather_centers. rows, ridges (count) are borrowed. */
mercer_status mrc_small_fits_create(mrc_small_fits **out, mercer_context *context, const mrc_small_rows *rows,
                                    int64_t p, const double *ridges, int count);
void mrc_small_fits_free(mrc_small_fits *self);
MRC_RELEASE(mrc_release_small_fits, mrc_small_fits, mrc_small_fits_free)

/* Jitter added before a Cholesky factorization, relative to the mean of the diagonal. */
#define MRC_SMALL_JITTER 1e-10

/* Sets errors (count): mean squared error of the scored rows for each ridge; infinity if the equations could not be
   solved. x (rows, d), z (p, d) of one type. */
mercer_status mrc_small_fits_try(mrc_small_fits *self, const mercer_kernel *kernel, const mercer_matrix *x,
                                 const mercer_matrix *z, double *errors);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ridge regressions on few centers, one per ridge, and their errors on held-out rows:
 *
 *   alpha = (K'K + l w K(Z, Z))^-1 K'Y        K = K(X, Z),  w the total weight of the rows X,  l the ridge per unit
 *                                             of weight
 *
 * All in double, from points in float or double. Cost: n p^2 flops for K'K, p^3 / 3 for each ridge. If Z = X, K is a
 * factor of both sides:
 *
 *   alpha = (K + l w I)^-1 Y                  p^3 / 3 for each ridge, and no K'K
 *
 * Few rows are cross-validated with all of them as centers (cross_validation.c).
 */
#ifndef MRC_SEARCH_SMALL_FITS_H
#define MRC_SEARCH_SMALL_FITS_H

#include "backends/backend.h"
#include "kernels/kernel.h"

enum { MRC_FOLDS = 10, MRC_RIDGES = 8 }; /* upper limits */

/* Rows first .. first + count - 1. */
typedef struct mrc_span {
    int64_t first, count;
} mrc_span;

typedef struct mrc_small_rows {
    mercer_matrix x;       /* f32 or f64 (rows, d), host memory */
    mercer_matrix y;       /* f64 (rows, c), centered */
    const double *weights; /* (rows) row weights; NULL: all 1 */
    mrc_span folds[MRC_FOLDS];
    int count;     /* number of folds, 2 or more */
    bool held_out; /* true: only the last fold is scored, by a fit to the others; false: every fold is scored */
} mrc_small_rows;

/* Copies the first rows of the training folds, taken from the folds in turn, into z. They are random rows because
   the split is in random order. */
void mrc_small_gather_centers(const mrc_small_rows *rows, const mercer_matrix *z);

/* Jitter added before a Cholesky factorization, relative to the mean of the diagonal. */
#define MRC_SMALL_JITTER 1e-10

/* Sets errors (count): mean squared error of the last fold for each ridge; infinity if the equations could not be
   solved. z (p, d): centers by mrc_small_gather_centers, of the type of the rows. */
mercer_status mrc_small_fits(mercer_context *context, const mrc_small_rows *rows, const mercer_kernel *kernel,
                             const mercer_matrix *z, const double *ridges, int count, double *errors);
/* Sets errors (count): mean squared error of all folds, each predicted by the fit to the rows of all other folds.
   The folds must be contiguous and cover all rows in order. */
mercer_status mrc_cross_validate(mercer_context *context, const mrc_small_rows *rows, const mercer_kernel *kernel,
                                 const double *ridges, int count, double *errors);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ridge regressions with few centers, for several ridges, and their errors on held-out rows:
 *
 *   alpha = (K'K + l w K(Z, Z))^-1 K'Y        K = K(X, Z),  w the total weight of the rows X,  l the ridge per unit
 *                                             of weight
 *
 * Computed in double, from points in float or double. Cost: n p^2 flops for K'K, p^3 / 3 for each ridge. If Z = X, K is
 * a factor of both sides:
 *
 *   alpha = (K + l w I)^-1 Y                  p^3 / 3 for each ridge, and no K'K
 *
 * Without a held-out fold the error is cross-validated, with all rows as centers (cross_validation.c).
 */
#ifndef MRC_SEARCH_SMALL_FITS_H
#define MRC_SEARCH_SMALL_FITS_H

#include "backends/backend.h"
#include "kernels/kernel.h"

enum { MRC_FOLDS = 10, MRC_RIDGES = 8 }; /* upper limits */

/* Consecutive folds of rows: fold f has rows start[f] .. start[f + 1] - 1. Within a fold rows are in random order. */
typedef struct mrc_folds {
    int64_t start[MRC_FOLDS + 1];
    int count; /* 2 or more */
    /* true: there are two folds, and the second one is held out; false: each fold is held out in turn */
    bool held_out;
} mrc_folds;

static inline int64_t mrc_folds_rows(const mrc_folds *folds)
{
    return folds->start[folds->count];
}
/* Returns the number of training rows, which are the first rows. */
static inline int64_t mrc_folds_training(const mrc_folds *folds)
{
    return folds->start[folds->held_out ? 1 : folds->count];
}
/* Returns the number of rows that errors are measured on. */
static inline int64_t mrc_folds_scored(const mrc_folds *folds)
{
    return mrc_folds_rows(folds) - (folds->held_out ? folds->start[1] : 0);
}

typedef struct mrc_small_rows {
    mercer_matrix x;       /* f32 or f64 (rows, d), host memory */
    mercer_matrix y;       /* f64 (rows, c), centered */
    const double *weights; /* (rows) row weights; NULL: all 1 */
    mrc_folds folds;
} mrc_small_rows;

/*
 * Sets errors (count) to the mean squared error for each ridge, or to infinity if its equations could not be solved.
 * With a held-out fold, the model is fitted to the training rows, with the first p of them as centers. The mean is over
 * the held-out rows. Otherwise the mean is over all rows, each predicted by a fit to the other folds; p is ignored.
 */
mercer_status mrc_small_fits(mercer_context *context, const mrc_small_rows *rows, const mercer_kernel *kernel,
                             int64_t p, const double *ridges, int count, double *errors);

/* cross_validation.c: the errors of mrc_small_fits without a held-out fold. */
mercer_status mrc_cross_validate(mercer_context *context, const mrc_small_rows *rows, const mercer_kernel *kernel,
                                 const double *ridges, int count, double *errors);

/* Jitter added to a diagonal, relative to the mean of the diagonal. It is large enough to cover the rounding errors of
   double, and too small to act as a ridge. */
#define MRC_SMALL_JITTER 1e-10

/* Adds penalty + jitter tr(base) / n to the diagonal of A (n, n) f64, and replaces A by its Cholesky factor. base (n,
   n) may be A. diagonal (2 n): scratch space. Sets *solved to whether the matrix was positive definite. */
mercer_status mrc_small_factorize(mrc_backend *backend, const mercer_matrix *a, const mercer_matrix *base,
                                  double penalty, double jitter, double *diagonal, bool *solved);

#endif

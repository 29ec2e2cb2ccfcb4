/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many ridge regressions on few centers, one for each bandwidth and ridge, and what they err by:
 *
 *   alpha = (K'K + l w K(Z, Z))^-1 K'Y        K = K(X, Z),  w the weight of all rows of X,  l the ridge of one sample
 *
 * All in double, from points in float or double. Cost of a bandwidth: n p^2 flops for K'K, p^3 / 3 for each ridge and
 * fold; in closed form 3 n p^2 and an eigensystem, and then nothing for a ridge. Where Z = X, K is a factor of both
 * sides:
 *
 *   alpha = (K + l n I)^-1 Y                  p^3 / 3 for each ridge, and no K'K
 */
#ifndef MRC_TUNE_SMALL_FITS_H
#define MRC_TUNE_SMALL_FITS_H

#include "backends/backend.h"
#include "kernels/kernel.h"

/* What a fit is judged by: the mean squared error of */
typedef enum mrc_criterion {
    MRC_HOLDOUT, /* the last fold, by a fit to the others */
    MRC_KFOLD,   /* every fold, by fits to the others */
    MRC_LOO,     /* every row, by a fit to the others: exact for fixed centers */
    MRC_GCV      /* the rows themselves, over (1 - trace of the smoother / n)^2 */
} mrc_criterion;

enum { MRC_FOLDS = 10, MRC_RIDGES = 8 }; /* at most */

/* Rows first .. first + count - 1. */
typedef struct mrc_span {
    int64_t first, count;
} mrc_span;

typedef struct mrc_small_rows {
    mercer_matrix x;       /* f32 or f64 (rows, d), host memory */
    mercer_matrix y;       /* f64 (rows, c), centred */
    const double *weights; /* (rows), or NULL: all 1 */
    mrc_span folds[MRC_FOLDS];
    int count;        /* of folds: 2 or more of HOLDOUT and KFOLD */
    bool held_out;    /* nothing is fitted to the last */
    bool own_centers; /* centers are the first rows of the folds that are fitted to, in turn */
} mrc_small_rows;

/* Copies the first rows of the training folds, taken from the folds in turn, into z: random rows, by the order of the
   split. x holds the rows of all folds, in the type of z. */
void mrc_small_gather_centers(const mrc_small_rows *rows, const mercer_matrix *x, const mercer_matrix *z);

typedef struct mrc_small_fits mrc_small_fits;

/* Room for p centers. rows, ridges (count) are borrowed; x may be another matrix of as many rows at every call. */
mercer_status mrc_small_fits_create(mrc_small_fits **out, mercer_context *context, const mrc_small_rows *rows,
                                    int64_t p, mrc_criterion criterion, const double *ridges, int count);
void mrc_small_fits_free(mrc_small_fits *self);
MRC_RELEASE(mrc_release_small_fits, mrc_small_fits, mrc_small_fits_free)
/* Flops of one call of try, and of one with so many centers and ridges: those of double, those of kernel values aside.
 */
double mrc_small_fits_flops(const mrc_small_fits *self);
double mrc_small_flops(const mrc_small_rows *rows, int64_t p, mrc_criterion criterion, int count);

/* Flops of kernel values, as the search counts them: of a function of the distance, and of each feature of a pair. */
enum { MRC_VALUE_FLOPS = 20, MRC_MOST_FEATURE_FLOPS = 3 };
static inline double mrc_feature_flops(const mercer_kernel *kernel)
{
    return mrc_kernel_norm(kernel) == 2 ? 1 : MRC_MOST_FEATURE_FLOPS;
}

/* Of the mean of its diagonal, added to what is to be positive definite. */
#define MRC_SMALL_JITTER 1e-10

/* distances.c: what a function of the distance takes, of the rows of all folds and the centers, for many kernels. */
typedef struct mrc_kept_sums {
    mercer_context *context;
    mercer_matrix sums;    /* (rows of the folds one behind the other, p) f32 */
    mercer_matrix centers; /* (p, p) f64 */
    bool there;            /* false: they are of other points, or none */
    void *memory;
    int64_t bytes;
} mrc_kept_sums;
/* Whether they may be kept: they are of use, and take at most `room` bytes (0: any number). */
bool mrc_kept_sums_fit(mercer_context *context, const mrc_small_rows *rows, int64_t p, int64_t room);
/* Of those points, in the norm of the kernel. *self began as zeros. */
mercer_status mrc_kept_sums_make(mrc_kept_sums *self, mercer_context *context, const mercer_kernel *kernel,
                                 const mrc_small_rows *rows, const mercer_matrix *x, const mercer_matrix *z);
/* Those of some rows of one fold. */
mercer_matrix mrc_kept_sums_rows(const mrc_kept_sums *self, const mrc_small_rows *rows, int64_t first, int64_t count);
void mrc_kept_sums_free(mrc_kept_sums *self);

/* errors (count): of that kernel and each ridge; infinity where the equations could not be solved. z (p, d) of the type
   of x. distances: those of these points in the norm of the kernel, or NULL. */
mercer_status mrc_small_fits_try(mrc_small_fits *self, const mercer_kernel *kernel, const mercer_matrix *x,
                                 const mercer_matrix *z, const mrc_kept_sums *distances, double *errors);
/* The weights (p, c) f64 of the last kernel that was tried and that ridge, fitted to all rows but those that HOLDOUT
   holds back. */
mercer_status mrc_small_fits_weights(mrc_small_fits *self, double ridge, const mercer_matrix *weights);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Scales of the features by descent of the error on rows that a fit has not seen. */
#ifndef MRC_TUNE_DESCENT_H
#define MRC_TUNE_DESCENT_H

#include "tune/small_fits.h"

/* Rows drawn for one step, in the backend's memory: the first of them are fitted to, the first of those are centers;
   the others are judged on. */
typedef struct mrc_draw {
    mercer_matrix x;       /* (m, d) f32 or f64 */
    mercer_matrix y;       /* (m, c) f64 */
    const double *weights; /* (m) host memory, or NULL: all 1 */
} mrc_draw;

/* What the slopes of many steps are computed in: matrices of the backend's, doubles but for two. */
typedef struct mrc_slope_room {
    mrc_backend *backend;
    int64_t m, n, p, d, c;          /* rows; those that are fitted to, and the centers among them; features, outputs */
    mercer_matrix sums, steepness;  /* (m, p) of the type of the points: distances, or values; slopes of the kernel */
    mercer_matrix k, y;             /* (m, p), (m, c): times the roots of the weights */
    mercer_matrix zz, factor, ones; /* (p, p), (p, p), (p, 1) */
    mercer_matrix residual;         /* (m, c) K alpha - Y */
    mercer_matrix left, right;      /* (m, 2 c), (p, 2 c): q and t, alpha and u, side by side */
    double *roots, *numbers;        /* (m) of weights, (max(p, c)); host memory */
} mrc_slope_room;
/* Of a draw's shape; it lives as long as the scope. */
mercer_status mrc_slope_open(mrc_slope_room *self, mrc_scope *scope, mrc_backend *backend, const mrc_draw *like,
                             int64_t fitted, int64_t centers);

/*
 * error_slope.c: the mean squared error on the rows that are judged on, of the fit to the others with that ridge of one
 * sample, and its derivatives (d) by the logarithms of the factors of the coordinates. The centers' coordinates are
 * scaled, too. *solved: the equations were positive definite.
 */
mercer_status mrc_error_slope(mrc_slope_room *self, const mercer_kernel *kernel, double ridge, const mrc_draw *draw,
                              double *error, double *slope, bool *solved);

typedef struct mrc_descent {
    mercer_context *context;
    const mercer_kernel *kernel; /* with a slope */
    double ridge;                /* of one sample */
    mercer_matrix x, y;          /* (n, d) f32 and (n, c) f64, of which those that are fitted to are drawn */
    const double *weights;       /* (n), or NULL */
    mrc_span rows[MRC_FOLDS];    /* the rows to draw of: so many spans */
    int spans;
    uint64_t seed;
} mrc_descent;

/* Whether there are rows enough to learn from. */
bool mrc_descent_possible(const mrc_descent *task);
/* Flops of it all, as the search counts them. */
double mrc_descent_flops(const mrc_descent *task);
/* descent.c: logs (d), the logarithms of factors of the coordinates. */
mercer_status mrc_descend(const mrc_descent *task, double *logs);

#endif

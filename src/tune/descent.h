/* SPDX-License-Identifier: BSD-3-Clause */
/* Scales of the features by descent of the error on rows that a fit has not seen. */
#ifndef MRC_TUNE_DESCENT_H
#define MRC_TUNE_DESCENT_H

#include "core/numbers/random.h"
#include "features/gradient.h"
#include "tune/small_fits.h"

/* Rows drawn for one step: the first `fitted` are fitted to, with the first `centers` of them as centers; the others
   are judged on. */
typedef struct mrc_draw {
    mercer_matrix x;       /* (m, d) f32 or f64 */
    mercer_matrix y;       /* (m, c) f64 */
    const double *weights; /* (m), or NULL: all 1 */
    int64_t fitted, centers;
} mrc_draw;

/*
 * error_slope.c: the mean squared error on the rows that are judged on, of the fit to the others with that ridge of one
 * sample, and its derivatives (d) by the logarithms of the factors of the coordinates. The centers' coordinates are
 * scaled, too. More than MRC_AGOP_OUTPUTS outputs: derivatives by random signs, whose mean they are (features/agop.h).
 * All in host memory, by a backend that computes there. *solved: the equations were positive definite.
 */
mercer_status mrc_error_slope(mrc_backend *backend, const mercer_kernel *kernel, double ridge, const mrc_draw *draw,
                              mrc_rng signs, double *error, double *slope, bool *solved);

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

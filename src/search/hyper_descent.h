/* SPDX-License-Identifier: BSD-3-Clause */
/* Hyperparameters by stochastic descent of the held-out error. */
#ifndef MRC_SEARCH_HYPER_DESCENT_H
#define MRC_SEARCH_HYPER_DESCENT_H

#include "core/memory.h"
#include "kernels/kernel.h"

/* What of the points is learned. */
typedef enum mrc_descent_kind {
    MRC_LEARN_SCALES, /* a factor for every coordinate */
    MRC_LEARN_SCALE,  /* one factor for all coordinates: the bandwidth */
    MRC_LEARN_MAP     /* a linear map of the features, norm 2 only, and a factor for every copy of a feature */
} mrc_descent_kind;

/* Rows to draw from, sorted by unit (data/equal_rows.h): all rows of a unit go to the same side of a draw. */
typedef struct mrc_descent_rows {
    mercer_matrix x;       /* (n, k) f32, host memory */
    mercer_matrix y;       /* (n, c) f64, host memory */
    const double *weights; /* (n); NULL: all 1 */
    const int64_t *order;  /* rows, those of unit u at start[u] .. start[u + 1] - 1 */
    const int64_t *start;  /* (units + 1) */
    int64_t units;
    int64_t different; /* number of different rows, or of groups */
    /* With times: a draw takes its training rows from the units before one of the cuts, its held-out rows from the
       others. */
    const int64_t *cuts;
    int64_t cut_count; /* 0: without times */
} mrc_descent_rows;

typedef struct mrc_descent {
    mercer_context *context;
    const mrc_descent_rows *rows;
    mrc_descent_kind kind;
    const int64_t *feature; /* MAP: (k) feature of each coordinate, */
    int64_t features;       /* and their number; without a map the number of preprocessed columns */
    mercer_kernel kernel;   /* bandwidth 1; exppower kernels may have their exponent learned */
    double bandwidth;       /* given: the mean factor of the features is 1 / bandwidth; 0: learned */
    bool learns_exponent;
    bool learns_ridge;
    int steps;                     /* of the whole descent, over which the rates decay */
    int until;                     /* last step of this run */
    int64_t fitted, held, centers; /* of a draw, at most */
    uint64_t seed, sequence;
    /* Called after every step; error: smoothed held-out error. Another value than 0 stops the descent. Or NULL. */
    int (*progress)(void *user, int step, double error);
    void *progress_user;
} mrc_descent;

/* Parameters and the moments of their gradients, count = mrc_descent_count doubles each; borrowed. The last two
   parameters are the exponent (logit of its place in its range) and the logarithm of the ridge. */
typedef struct mrc_descent_state {
    int64_t count;
    double *values, *before; /* parameters now, and those of the last accepted step */
    double *mean, *square;
    double step;  /* steps done */
    double rate;  /* factor of all rates: 1, halved after a rejected step */
    double error; /* smoothed held-out error; NaN: none yet */
} mrc_descent_state;

/* Number of parameters of points with k coordinates, which are copies of `features` features. */
int64_t mrc_descent_count(mrc_descent_kind kind, int64_t k, int64_t features);
/* Run from the state's step to `until`. *stopped: by the callback. */
mercer_status mrc_descent_run(const mrc_descent *task, mrc_descent_state *state, bool *stopped);

/* Sets the error of the draw of a step and its slope (count) in the parameters of the state, for tests. The exponent
   has a slope in odd steps only. */
mercer_status mrc_descent_slope(const mrc_descent *task, const mrc_descent_state *state, int step, double *error,
                                double *slope);

/* The exponent of an exppower kernel and its parameter. */
double mrc_descent_exponent(const mercer_kernel *kernel, double parameter);
double mrc_descent_parameter(const mercer_kernel *kernel, double exponent);

#endif

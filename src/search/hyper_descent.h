/* SPDX-License-Identifier: BSD-3-Clause */
/* The stochastic descent of the held-out error over hyperparameters. */
#ifndef MRC_SEARCH_HYPER_DESCENT_H
#define MRC_SEARCH_HYPER_DESCENT_H

#include "core/memory.h"
#include "kernels/kernel.h"

/* Transformation of the points that a descent learns. */
typedef enum mrc_descent_kind {
    MRC_LEARN_SCALES, /* a factor per coordinate */
    MRC_LEARN_SCALE,  /* one factor for all coordinates: the bandwidth */
    MRC_LEARN_MAP     /* a linear map of the features (norm 2 only) and a factor per copy of a feature */
} mrc_descent_kind;

/* Rows to draw from, sorted by unit (data/equal_rows.h): in a draw, all rows of a unit are training rows or all are
   held out. */
typedef struct mrc_descent_rows {
    mercer_matrix y;       /* (n, c) f64, host memory */
    const double *weights; /* (n); NULL: all 1 */
    /* row numbers, sorted by unit: entries start[u] .. start[u + 1] - 1 are the rows of unit u */
    const int64_t *order;
    const int64_t *start; /* (units + 1) */
    int64_t units;
    int64_t different; /* number of distinct rows, or number of groups */
    /* Cut points in time: a draw takes its training rows from the units before one of the cuts and its held-out rows
       from the units after it. */
    const int64_t *cuts;
    int64_t cut_count; /* 0: the rows have no times */
} mrc_descent_rows;

/* Parameters that descents in one norm learn, and the points that these descents use. */
typedef struct mrc_descent_space {
    int norm; /* 1 or 2 */
    mrc_descent_kind kind;
    mercer_matrix x;        /* (n or more rows, k) f32, host memory */
    const int64_t *feature; /* (k) feature that each coordinate is a copy of; used with a map only */
    int64_t features;       /* number of features, copies not counted */
    mercer_kernel kernel;   /* kernel to start from, with bandwidth 1 */
    bool learns_exponent;   /* the exponent of an exppower kernel is learned */
} mrc_descent_space;

typedef struct mrc_descent {
    mercer_context *context;
    const mrc_descent_rows *rows;
    const mrc_descent_space *space;
    double bandwidth; /* fixed bandwidth: the mean factor of the features is 1 / bandwidth; 0: learned */
    bool learns_ridge;
    int steps;       /* number of steps, over which the rates decay */
    int64_t fitted;  /* largest number of training rows, and of held-out rows, of a draw */
    int64_t centers; /* largest number of centers of a draw */
    uint64_t seed, sequence;
    /* Called after every step with the smoothed held-out error; a nonzero return value stops the descent. May be
       NULL. */
    int (*progress)(void *user, int step, double error);
    void *progress_user;
} mrc_descent;

/* Parameters and the moments of their gradients, count = mrc_descent_count doubles each; borrowed. The last two
   parameters are the exponent (logit of its position in its range) and the logarithm of the ridge. */
typedef struct mrc_descent_state {
    int64_t count;
    double *values, *before; /* values: current parameters; before: parameters before the last accepted step */
    double *mean, *square;
    double step;  /* number of completed steps */
    double rate;  /* factor of all rates, at most 1; halved after a rejected step */
    double error; /* smoothed held-out error; NaN: none yet */
} mrc_descent_state;

/* Returns the number of parameters. */
int64_t mrc_descent_count(const mrc_descent_space *space);
/* Runs the steps that the state has not completed yet. Sets *stopped to whether the callback stopped the descent. */
mercer_status mrc_descent_run(const mrc_descent *task, mrc_descent_state *state, bool *stopped);

/* Convert between the exponent of an exppower kernel and its parameter in the descent, a logit. */
double mrc_descent_exponent(const mercer_kernel *kernel, double parameter);
double mrc_descent_parameter(const mercer_kernel *kernel, double exponent);

#endif

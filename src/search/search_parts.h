/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and functions shared by the files of the search: rows, candidates, and the state of a run. */
#ifndef MRC_SEARCH_SEARCH_PARTS_H
#define MRC_SEARCH_SEARCH_PARTS_H

#include "search/search.h"

/* Rows in the order of the split. */
typedef struct mrc_search_points {
    mrc_scope *scope;
    mercer_preprocess *preprocess; /* fitted to all training rows; owned */
    bool blended;                  /* features have two copies, standardized and ranked */
    int64_t features, width;       /* features: number of features; width: number of columns of x, with copies */
    int64_t *feature; /* (width) feature of each column; the first `features` columns are features 0, 1, ... in order */
    mercer_matrix x, y; /* x (n, width) f32; y (n, c) f64, with mean variance 1 */
    double *weights;    /* (n) row weights, or NULL */
} mrc_search_points;

typedef struct mrc_searcher {
    const mrc_search_task *task;
    mrc_search_result *result;
    mrc_scope *scope;
    mrc_effort effort;
    mrc_split split;
    mrc_search_points points;
    mrc_descent_rows rows;
    int64_t pool;                /* descents draw from the first `pool` rows */
    mrc_descent_space spaces[2]; /* spaces of norm 1 and norm 2 */
    mercer_matrix blend;         /* (n, features) f32: the copies blended with the weights that stage 1 found */
    /* (width) weights of stage 1, each divided by the sum of the weights of all copies of its feature; NULL before
       stage 1 */
    double *weights;
    double *shares;   /* (features) the sums of weights; NULL before stage 1 */
    int total, stage; /* total number of steps, and the current stage, for progress reports */
    bool stopped;
} mrc_searcher;

/* A kernel that a descent found. Its bandwidth is 1 for points that are scaled or mapped by its parameters. */
typedef struct mrc_candidate {
    const mrc_descent_space *space;
    const double *values; /* parameters of the descent */
    mercer_kernel kernel;
    double ridge, error;
} mrc_candidate;

/* search_points.c */
mercer_status mrc_search_points_read(mrc_search_points *self, const mrc_search_task *task, const mrc_split *split);
/* Sets each column of `out` (n, features) to the weighted sum of the copies of one feature, with weights (width). */
void mrc_search_points_blend(const mrc_search_points *self, const double *weights, const mercer_matrix *out);
/* Writes rows first, first + 1, ... of the points, scaled or mapped by a candidate's parameters, to the rows of
   `to`. */
mercer_status mrc_search_points_map(const mrc_searcher *self, const mrc_candidate *candidate, int64_t first,
                                    const mercer_matrix *to);
/* Sets the kernel and the preprocessing of the result from a candidate. The result then owns the preprocessing. */
mercer_status mrc_search_use_candidate(mrc_searcher *self, const mrc_candidate *best);

/* search_score.c: set candidate->error to the smallest held-out error over ridges near candidate->ridge, with few
   centers. */
mercer_status mrc_search_score(const mrc_searcher *self, mrc_candidate *candidate);
/* Choose the final ridge, and set in the result the ridge, its error and the errors with fewer centers. */
mercer_status mrc_search_finish(mrc_searcher *self, const mrc_candidate *best);

#endif

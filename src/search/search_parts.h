/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal to the search: its rows, its candidates, and the state that its files share. */
#ifndef MRC_SEARCH_SEARCH_PARTS_H
#define MRC_SEARCH_SEARCH_PARTS_H

#include "search/search.h"

/* Rows in the order of the split. */
typedef struct mrc_search_points {
    mrc_scope *scope;
    mercer_preprocess *preprocess; /* fitted on all rows; owned */
    bool blended;                  /* several columns are copies of one feature */
    int64_t features, width;       /* columns of a model's points before a map; columns of x */
    int64_t *feature;   /* (width) feature of each column; blended: column k < features is its standardized copy */
    mercer_matrix x, y; /* (n, width) f32; (n, c) f64 with variance 1 */
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
    int64_t pool;                /* number of rows, from the first, that descents draw from */
    mrc_descent_space spaces[2]; /* of norm 1 and norm 2 */
    mercer_matrix blend;         /* (n, features) f32: the copies blended with the weights that stage 1 found */
    double *weights;             /* (width) these weights, relative to their sum for the same feature; or NULL */
    double *shares;              /* (features) these sums; or NULL */
    int total, stage;            /* total number of steps, and the current stage, for progress reports */
    bool stopped;
} mrc_searcher;

/* A kernel that a descent found. Its bandwidth is 1 after the scaling or map that the values describe. */
typedef struct mrc_candidate {
    const mrc_descent_space *space;
    const double *values; /* parameters of the descent */
    mercer_kernel kernel;
    double ridge, error;
} mrc_candidate;

/* search_points.c */
mercer_status mrc_search_points_read(mrc_search_points *self, const mrc_search_task *task, const mrc_split *split);
/* Sets `out` (n, features) to the sum, per feature, of its columns times their weights (width). */
void mrc_search_points_blend(const mrc_search_points *self, const double *weights, const mercer_matrix *out);
/* Writes a candidate's scaled or mapped points to `to`, for the rows from `first` on. */
mercer_status mrc_search_points_map(const mrc_searcher *self, const mrc_candidate *candidate, int64_t first,
                                    const mercer_matrix *to);
/* Sets kernel and preprocessing of the result to those of a candidate. */
mercer_status mrc_search_keep(mrc_searcher *self, const mrc_candidate *best);

/* search_score.c: set candidate->error to its smallest held-out error near its ridge, with few centers. */
mercer_status mrc_search_score(const mrc_searcher *self, mrc_candidate *candidate);
/* Choose the final ridge; set ridge, error and the errors at several sizes of the result. */
mercer_status mrc_search_finish(mrc_searcher *self, const mrc_candidate *best);

#endif

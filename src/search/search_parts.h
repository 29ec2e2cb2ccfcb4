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
    int64_t features, width;       /* features of the samples; columns of x */
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
    mrc_descent_rows rows;   /* rows of norm 1: columns of points */
    mrc_descent_rows joined; /* rows of norm 2: one column per feature; no data: columns of points */
    mercer_matrix joined_x;  /* (n, features) f32: all rows */
    double *weights;         /* (width) column weights found by stage 1, relative to the largest one of the same
                                feature */
    double *shares;          /* (features) weight of each feature */
    int64_t pool;            /* number of rows, from the first, that descents draw from */
    int total, stage;        /* total number of steps, and the current stage, for progress reports */
    mercer_kernel kernel;    /* kernel of the current stage */
    bool learns_exponent;    /* the exponent of that kernel is searched */
    bool stopped;
} mrc_searcher;

/* A kernel that a descent found. Its bandwidth is 1 after the scaling or map that the state describes. */
typedef struct mrc_candidate {
    bool norm_1;
    mercer_kernel kernel;
    double ridge, error;
    const mrc_descent_state *state;
} mrc_candidate;

/* run_search.c: return the number of features, and what a descent learns in a norm. */
int64_t mrc_searcher_features(const mrc_searcher *self);
mrc_descent_kind mrc_searcher_kind(const mrc_searcher *self, bool norm_1);

/* search_points.c */
mercer_status mrc_search_points_read(mrc_search_points *self, const mrc_search_task *task, const mrc_split *split);
/* Sets `out` (n, features) to the sum, per feature, of its columns times their weights (width). */
void mrc_search_points_join(const mrc_search_points *self, const double *weights, const mercer_matrix *out);
/* Returns the number of coordinates of a candidate's points. */
int64_t mrc_search_points_width(const mrc_searcher *self, const mrc_candidate *candidate);
/* Writes a candidate's scaled or mapped points to `to`, for the rows from `first` on. */
void mrc_search_points_map(const mrc_searcher *self, const mrc_candidate *candidate, int64_t first,
                           const mercer_matrix *to);
/* Sets kernel and preprocessing of the result to those of a candidate. */
mercer_status mrc_search_keep(mrc_searcher *self, const mrc_candidate *best);

/* search_score.c: set candidate->error to its smallest held-out error near its ridge, with few centers. */
mercer_status mrc_search_score(const mrc_searcher *self, mrc_candidate *candidate);
/* Choose the final ridge; set ridge, error and the errors at several sizes of the result. */
mercer_status mrc_search_finish(mrc_searcher *self, const mrc_candidate *best);

#endif

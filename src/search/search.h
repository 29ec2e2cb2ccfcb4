/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search: the hyperparameters of a kernel model, by stochastic descent of the held-out error over all of them at once.
 *
 *   search_points.c    the rows as the search sees them: standardized and ranked copies of the features
 *   error_gradient.h   the held-out error of one small fit and its gradient in closed form
 *   hyper_descent.h    the descent: draws, Adam, exponent and ridge
 *   run_search.c       which descents, the choice between norm 1 and norm 2, the final ridge, errors at several sizes
 *
 * Splits and small fits are those of src/tune, the search that fits run today; this one is to replace it. The search
 * sees training rows only. What it does depends on sizes and the effort, never on a clock, unless a deadline
 * is set.
 */
#ifndef MRC_SEARCH_SEARCH_H
#define MRC_SEARCH_SEARCH_H

#include "core/numbers/units.h"
#include "data/dataset.h"
#include "data/prepare/preprocess.h"
#include "search/hyper_descent.h"
#include "tune/tune.h"

enum { MRC_SEARCH_STAGES = 3, MRC_SEARCH_SIZES = 3 };

/* The descents of a search, to be saved and continued: first norm 1, first norm 2, the winner's second. */
typedef struct mrc_search_state {
    mrc_descent_state stages[MRC_SEARCH_STAGES];
    double *memory;  /* of the stages, one allocation, owned */
    int64_t numbers; /* doubles in it */
} mrc_search_state;

typedef struct mrc_search_task mrc_search_task;
struct mrc_search_task {
    mercer_context *context;
    mercer_dataset *data;
    const mercer_kernel *kernel; /* given kernel function, whose bandwidth is searched; NULL: exppower of both norms */
    bool norm_2;                 /* without a kernel: only functions of the distance in norm 2 */
    const mercer_preprocess *preprocess; /* given, fitted; NULL: a blend of standardized and ranked features. If it has
                                            a metric, only the bandwidth of the points is searched */
    const mrc_units *units;              /* transform of the targets */
    double ridge;                        /* given, per unit of weight; below 0: searched */
    int64_t centers;                     /* of the final training */
    int effort;                          /* 1 to 5 */
    int64_t memory;                      /* bytes */
    uint64_t seed;
    double deadline;              /* on the clock of mrc_seconds: descents end when it has passed; 0: none */
    mercer_fit_callback progress; /* or NULL */
    void *progress_user;
    mrc_search_state *state;            /* continued from; its memory may be NULL: from the start */
    void (*save)(void *user, bool now); /* called after each step, and (now) when stopped: write the state. Or NULL */
    void *save_user;
};

typedef struct mrc_search_result {
    mercer_kernel kernel;
    mercer_preprocess *preprocess;     /* fitted, with the metric; owned */
    double ridge;                      /* per unit of weight */
    double error;                      /* held-out squared error over the variance of the targets */
    int64_t steps, rows, held;         /* steps of descent; training rows and held-out rows of the scored fits */
    int64_t centers[MRC_SEARCH_SIZES]; /* sizes that were scored; 0: none */
    double errors[MRC_SEARCH_SIZES];   /* their held-out errors */
    bool cut;                          /* by the deadline */
} mrc_search_result;

/* Whether the table has enough rows (or groups) to search. */
mercer_status mrc_search_possible(const mercer_dataset *data, bool *possible);
/* MERCER_ERROR_CALLBACK: stopped by the callback. */
mercer_status mrc_search_run(const mrc_search_task *task, mrc_search_result *out);
void mrc_search_state_free(mrc_search_state *state, mercer_context *context);
/* Number of centers that the effort asks for, of n rows. */
int64_t mrc_search_centers(int effort, int64_t n);

/* The held-out error with more centers, by extrapolation; NaN: not known. */
double mrc_search_error_with(const mrc_search_result *found, int64_t centers);
/* The share of it that `more` centers would remove. */
double mrc_search_gain(const mrc_search_result *found, int64_t centers, int64_t more);

/* search_points.c */
typedef struct mrc_search_points {
    mrc_scope *scope;
    mercer_preprocess *preprocess; /* fitted to all rows; owned */
    bool blended;                  /* of copies */
    int64_t features, width;       /* of the samples; columns of x */
    int64_t *feature;   /* (width) feature of each column; blended: column k < features is its standardized copy */
    mercer_matrix x, y; /* (n, width) f32, (n, c) f64 in the order of the split */
    double *weights;    /* (n), or NULL */
} mrc_search_points;
mercer_status mrc_search_points_read(mrc_search_points *self, const mrc_search_task *task, const mrc_split *split);
/* x (n, features) = the columns of each feature times weights (width), summed. */
void mrc_search_points_join(const mrc_search_points *self, const double *weights, const mercer_matrix *out);

#endif

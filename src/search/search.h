/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search: the hyperparameters of a kernel model, by stochastic descent of the held-out error over all of them at once.
 *
 *   split.c            training rows and held-out rows, by groups, times and equal rows
 *   search_points.c    the search's copy of the rows, and the preprocessing that gives a model the same features
 *   error_gradient.h   the held-out error of one small fit and its gradient in closed form
 *   hyper_descent.h    the descent: draws, Adam, exponent and ridge
 *   small_fits.h       ridge regressions on few centers, scored on held-out rows
 *   run_search.c       the sequence of descents, and the choice between norm 1 and norm 2
 *   search_score.c     scores of candidates, the final ridge, errors at several sizes
 *   search_effort.c    sizes of each effort level, and its estimated cost
 *
 * The search reads training rows only. Unless a deadline is set, its work depends on sizes and effort, not on a clock,
 * so that results are reproducible.
 */
#ifndef MRC_SEARCH_SEARCH_H
#define MRC_SEARCH_SEARCH_H

#include "core/numbers/units.h"
#include "data/dataset.h"
#include "data/prepare/preprocess.h"
#include "search/hyper_descent.h"
#include "search/small_fits.h"

enum { MRC_SEARCH_STAGES = 4, MRC_SEARCH_SIZES = 3, MRC_SEARCH_STEPS = 440, MRC_JOURNAL_COLUMNS = 4 };

/* State of a search, which can be saved and resumed: descents in norm 1 and norm 2, then both with larger draws. */
typedef struct mrc_search_state {
    mrc_descent_state stages[MRC_SEARCH_STAGES]; /* views of memory */
    double *memory;                              /* owned; NULL: the search has not started */
    int64_t numbers; /* number of doubles in `memory`: the states of the descents, then the journal */
    double *journal; /* (MRC_SEARCH_STEPS, 4) view of memory: stage, smoothed error, exponent, ridge of each step */
    int64_t steps;   /* rows of the journal that are set */
} mrc_search_state;
void mrc_search_state_free(mrc_search_state *state, mercer_context *context);

typedef struct mrc_search_task {
    mercer_context *context;
    mercer_dataset *data;
    /* given kernel function, whose bandwidth is ignored; NULL: search exppower kernels in both norms */
    const mercer_kernel *kernel;
    double bandwidth; /* given bandwidth, for feature weights with a mean of 1; 0: searched */
    bool norm_2;      /* without a given kernel: search norm 2 only */
    /* given preprocessing, fitted; if it includes a metric, no metric is searched. NULL: search a blend of standardized
       and ranked features */
    const mercer_preprocess *preprocess;
    const mrc_units *units; /* transform of the targets */
    double ridge;           /* given ridge per unit of sample weight; negative: searched */
    int effort;             /* effort level, 1 to 5 */
    int64_t memory;         /* memory limit in bytes */
    uint64_t seed;
    double deadline;                   /* deadline on the clock of mrc_seconds, after which descents end; 0: none */
    mercer_progress_callback progress; /* may be NULL */
    void *progress_user;
    mrc_search_state *state; /* state to resume from, all zeros for a new search; updated */
    /* called after each step to save the state; now: save immediately, because the search stops. May be NULL */
    void (*save)(void *user, bool now);
    void *save_user;
} mrc_search_task;

typedef struct mrc_search_result {
    mercer_kernel kernel;
    mercer_preprocess *preprocess; /* fitted, with the metric; owned */
    mercer_search_report report;   /* error, ridge, rows, errors by number of centers, cut */
    /* if a ridge is given: the best of six other ridges, and its error, for a warning */
    double better_ridge, better_error;
} mrc_search_result;

/* Runs a search. Fails with CALLBACK if the callback stops it, and with MISMATCH if the state belongs to a search of
   other sizes. */
mercer_status mrc_search_run(const mrc_search_task *task, mrc_search_result *out);
/* Returns whether the table has enough rows (or groups) to search. */
mercer_status mrc_search_possible(const mercer_dataset *data, bool *possible);

/* search_score.c: extrapolate the held-out error to more centers; predict the share of the error that `more` centers
   would remove compared with `centers`. NaN: unknown. */
double mrc_search_error_with(const mercer_search_report *found, int64_t centers);
double mrc_search_gain(const mercer_search_report *found, int64_t centers, int64_t more);

/* split.c: the rows of a search, ordered by fold. */
typedef struct mrc_split {
    int64_t *rows; /* owned by the caller */
    mrc_folds folds;
} mrc_split;
/* Draws up to `most` training rows and half that number of held-out rows, or folds of up to `most` rows in total. */
mercer_status mrc_split_make(mrc_split *out, const mercer_dataset *data, int64_t most, uint64_t seed);
/* Sets units and cuts of `out` for rows (n) of the data. If the rows have distinct times, each row is its own unit, and
   units are in order of time. The scope owns the memory. */
mercer_status mrc_split_units(const mercer_dataset *data, const int64_t *rows, int64_t n, mrc_scope *scope,
                              mrc_descent_rows *out);

/* search_effort.c */
typedef struct mrc_effort {
    int first, second; /* first: steps of stage 1 and of stage 2; second: steps of stage 3 or 4 */
    /* training rows and centers of a draw in stages 1 and 2; stages 3 and 4 draw 2 times the rows and 1.5 times the
       centers */
    int64_t fitted, centers;
    int64_t rows;                   /* rows read from the table */
    int64_t score_rows, score_size; /* training rows and centers of the final small fits */
    int64_t final_centers;          /* default number of centers of the model */
} mrc_effort;
enum { MRC_DEFAULT_EFFORT = 3, MRC_MOST_EFFORT = 5 };
/* If no kernel is given, tables with more features than this skip the map and the descent in norm 2. */
enum { MRC_MAP_FEATURES = 40 };
/* Returns the sizes of an effort level, 1 to 5, for a table. */
mrc_effort mrc_effort_of(int effort, int64_t rows, int64_t features);
/* Estimates the double-precision flops of a search with n rows, d features and c outputs. */
double mrc_search_flops(int effort, int64_t n, int64_t d, int64_t c);

#endif

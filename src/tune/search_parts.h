/* SPDX-License-Identifier: BSD-3-Clause */
/* What search.c and rounds.c share: the state of a search, its arms and their rounds. */
#ifndef MRC_TUNE_SEARCH_PARTS_H
#define MRC_TUNE_SEARCH_PARTS_H

#include "tune/tune.h"

enum { MRC_TUNE_ARMS = MRC_TUNE_KERNELS * MRC_TUNE_PREPARATIONS, MRC_TUNE_TRIES = 4096 }; /* at most */
/* Parts of the rows that are held back, one after the other: all folds of KFOLD, otherwise one. What is learned of the
   rows, metrics that is, is learned for each of them from the others. */
enum { MRC_VIEWS = MRC_FOLDS };
enum { MRC_TUNE_FIRST = 5 }; /* bandwidths of round 0: 1/4 .. 4, then wider ones */

typedef struct mrc_arm {
    int kernel, preparation;
    mrc_metric now[MRC_VIEWS], best[MRC_VIEWS]; /* of the next round, and of the best */
    int64_t round, best_round;
    int step, best_step; /* of the bandwidth */
    double ridge, error; /* of the best, at the last level that it came to */
    double last_error;   /* the same, of arms left behind too; infinity: there was none */
    int last_level;
    bool settled; /* the last round came back to the bandwidth that it began with */
    bool around;  /* neighbours of the best were tried: */
    double bend;  /* how much the logarithm of the error rises to both, together; 0: not known */
    bool ended;   /* no better, or nothing to learn from */
} mrc_arm;

/* Distances of a norm, kept for the fits that see the same points, and which those are. */
typedef struct mrc_pass {
    mrc_kept_sums distances;
    double norm;
    int level, preparation;
    int64_t metric;
    bool counted; /* its work */
} mrc_pass;

typedef struct mrc_tune_search {
    const mrc_tune_task *task; /* as it was given, but for the budget of a level: */
    mrc_tune_task own;
    mercer_context *context;
    mrc_tune_result *result;
    mrc_tune_points points;
    mrc_split split;
    mrc_arm arms[MRC_TUNE_ARMS];
    int arm_count;
    int level;
    int64_t rows_at_most, p;       /* of the level */
    int64_t winner_rows, winner_p; /* of the level that the best is of */
    int winner_level;
    mrc_small_rows rows;             /* all of them, */
    mrc_small_rows views[MRC_VIEWS]; /* and with one part held back */
    int view_count;
    mrc_small_fits *fits[MRC_VIEWS];
    mrc_small_fits *joint; /* all folds at once, where nothing was learned of the rows; NULL: there is one view */
    mrc_pass passes[2];    /* of L1, and of another norm */
    int64_t metrics;       /* that there were so far: the number of the last */
    mrc_metric winner[MRC_VIEWS]; /* of the best of all */
    bool climbs;                  /* neighbours of a bandwidth are tried: at this level */
    bool out_of_budget;           /* of the level */
    bool left_out;                /* a descent that would have gone over it */
    bool ends_whole;              /* at the last level all rows that are fitted to are centers */
    int64_t total;                /* tries expected, for progress */
} mrc_tune_search;

/* A round of an arm. */
typedef struct mrc_round {
    mrc_arm *of;
    mercer_kernel kernel;
    int preparation;
    const mrc_metric *metrics; /* (views) */
    int64_t width;             /* coordinates, at most */
    double units[MRC_VIEWS];
    mrc_pass *pass;                /* or NULL: every fit forms distances of its own */
    double errors[MRC_TUNE_STEPS]; /* the best of all ridges; infinity: not tried */
    double ridges[MRC_TUNE_STEPS];
    double shift; /* of all bandwidths, in steps */
    int best;
    bool around;           /* neighbours of the best were tried */
    mercer_matrix weights; /* (p, c) of the best, */
    bool fitted;           /* unless its errors are from the journal */
} mrc_round;

/* rounds.c */
double mrc_search_multiple(int step); /* of the median distance: 1/4 .. 32 */
/* The median distance between centers; 0: more than half of all pairs coincide. */
mercer_status mrc_search_unit(mrc_tune_search *self, const mercer_kernel *kernel, const mercer_matrix *z, double *unit);
mrc_norm mrc_search_norm(const mercer_kernel *kernel);
/* Of all views. */
mercer_status mrc_search_copy(mrc_tune_search *self, mrc_metric *to, const mrc_metric *from);
/* Progress; MERCER_ERROR_CALLBACK: stop. */
mercer_status mrc_search_tell(mrc_tune_search *self);
/* Flops of a fit; of the first of a pass, with those of its distances. */
double mrc_round_cost(const mrc_tune_search *self, const mrc_round *round);
/* Points of a view, in its metric. */
mercer_status mrc_round_map(mrc_tune_search *self, const mrc_round *round, int view, mercer_matrix *x,
                            mercer_matrix *z);
/* Median distances of all views; *zero: one is 0. */
mercer_status mrc_round_units(mrc_tune_search *self, mrc_round *round, bool *zero);
/* Errors of the ridges at a multiple of them, by a fit or from the journal; *fitted: by a fit. */
mercer_status mrc_round_fit(mrc_tune_search *self, mrc_round *round, double multiple, double *errors, bool *fitted);
/* The next round of an arm, and the metric of the one after it unless it is the last. *better: than the arm's rounds
   before, at this level. */
mercer_status mrc_round_do(mrc_tune_search *self, mrc_arm *of, bool last, bool *better);
/* Half a step to both sides of the best of all, which is this arm's, and the multiple where a parabola is lowest. */
mercer_status mrc_round_between(mrc_tune_search *self, mrc_arm *of);
/* One more round, with its scales by descent. */
mercer_status mrc_round_descend(mrc_tune_search *self, mrc_arm *of);

#endif

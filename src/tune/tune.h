/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tune: the search for a model: kernel function, preprocessing, metric, bandwidth and ridge, judged together by small
 * fits to a part of the rows.
 *
 *   small_fits.h   ridge regressions on few centers, all ridges of a bandwidth at once, and what they err by;
 *                  distances.c: kept, for all bandwidths and exponents of a norm
 *   split.c        which rows are fitted to, and which they are judged on
 *   points.c       rows and centers as a candidate sees them: preprocessed, mapped by its metric
 *   descent.h      the scales of the features, by descent of the error on rows that a fit has not seen
 *   search.c       which candidates, in which order, and when to stop; rounds.c: one of them
 *   journal.c      what was found so far, to go on from there
 *   more_centers.c what more centers than were tried would bring
 *
 * What is found is relative: a bandwidth is a multiple of the median distance, a ridge that of one sample. The recipe
 * (fit/tuned) makes the training proper of it. Nothing here looks at validation or test rows.
 */
#ifndef MRC_TUNE_TUNE_H
#define MRC_TUNE_TUNE_H

#include "core/numbers/units.h"
#include "data/dataset.h"
#include "features/metric.h"
#include "tune/small_fits.h"

enum { MRC_TUNE_KERNELS = 16, MRC_TUNE_PREPARATIONS = 4 }; /* at most */
enum { MRC_TUNE_SIZES = 3, MRC_TUNE_NEXT = 7, MRC_TUNE_RIDGES = 6, MRC_TUNE_STEPS = 8 };

enum { MRC_JOURNAL_SHAPE = 3 };

/* journal.c. Begins with its limits alone, and what an earlier search left in it. */
typedef struct mrc_journal {
    mercer_context *context;
    int64_t ridges, features;
    int64_t most_numbers; /* of maps: no more are kept */
    double *errors;       /* (fits, ridges) */
    /* (metrics, 3): directions (0: there was nothing to learn from), whether it is diagonal, step of the bandwidth */
    double *shapes;
    double *maps; /* (numbers): of all metrics */
    int64_t fits, metrics, numbers, error_room, shape_room, map_room;
    int64_t next_fit, next_metric, next_number; /* what comes next of what an earlier search left */
    bool full;                                  /* metrics are not kept any more */
} mrc_journal;
/* The next of it, if there is one; what is added was not there. journal may be NULL: nothing is kept. */
bool mrc_journal_recall_fit(mrc_journal *journal, double *errors);
mercer_status mrc_journal_add_fit(mrc_journal *journal, const double *errors);
mercer_status mrc_journal_recall_metric(mrc_journal *journal, mrc_metric *out, int *step, bool *found);
mercer_status mrc_journal_add_metric(mrc_journal *journal, const mrc_metric *metric, int step);
void mrc_journal_free(mrc_journal *journal);

typedef struct mrc_tune_task mrc_tune_task;
struct mrc_tune_task {
    mercer_context *context;
    mercer_dataset *data;
    const mercer_dataset *given_centers; /* NULL: rows */
    const mercer_kernel *kernels;        /* (kernel_count): their bandwidth is to be found */
    int kernel_count;
    const char *const *kernel_names; /* (kernel_count) */
    const char *const *preparations; /* (preparation_count) specs of preprocessing */
    int preparation_count;
    const mrc_units *units; /* the transform of the targets; NULL: they are learned as they are */
    int64_t rounds;         /* of metrics, at most */
    int64_t centers;        /* of the training proper: no more are tried */
    int64_t next;           /* bests of other kernels and preprocessings that are wanted beside the best of all */
    double ridge;           /* of one sample; below 0: to be found */
    mrc_criterion criterion;
    double budget;  /* seconds of counted work */
    double rate;    /* flops a second in double */
    int64_t memory; /* bytes */
    uint64_t seed;
    mercer_fit_callback progress; /* or NULL */
    void *progress_user;
    mrc_journal *journal; /* or NULL */
    /* After every fit, and (now) when it is over or stopped: the journal may be written. Or NULL. */
    void (*keep)(void *user, const mrc_tune_task *task, bool now);
    void *keep_user;
};

/* The best of a kernel function with a preprocessing. */
typedef struct mrc_tune_choice {
    int kernel, preparation;
    double multiple, ridge, error;
    int64_t round;
    mercer_matrix metric; /* as that of the result, owned */
} mrc_tune_choice;

typedef struct mrc_tune_result {
    mercer_context *context;
    bool found; /* false: the budget was too small for one candidate */
    bool whole; /* the search came to its end before the budget did */
    int kernel, preparation;
    double multiple, ridge, error; /* bandwidth over the median distance; ridge of one sample */
    int64_t round;
    mercer_matrix metric; /* M (d, d), or weights (1, d) of the norm of the kernel; no data: none. Owned */
    mercer_tune_try *tries;
    int64_t count;  /* owned */
    double seconds; /* of counted work */
    double ridges[MRC_RIDGES];
    int ridge_count;
    int64_t rows, held; /* that the largest fits were made of and judged on */
    /* The best once more with a quarter and half of its centers, and with all; 0 centers: not tried. */
    int64_t centers[MRC_TUNE_SIZES];
    double center_errors[MRC_TUNE_SIZES];
    /* The bests of other kernels and preprocessings: of those that were judged by larger fits first, then by error. */
    mrc_tune_choice next[MRC_TUNE_NEXT];
    int next_count;
} mrc_tune_result;

/* Names of the tries are borrowed from the task. out is cleared; to be released with mrc_tune_free, also after a
   failure. MERCER_ERROR_CALLBACK: progress said stop. */
mercer_status mrc_tune(const mrc_tune_task *task, mrc_tune_result *out);
void mrc_tune_free(mrc_tune_result *result);

/* more_centers.c: the error of the best with so many centers, by extrapolation, and the share of it that `more` would
   take away; NaN: not known. */
double mrc_tune_error_with(const mrc_tune_result *found, int64_t centers);
double mrc_tune_gain(const mrc_tune_result *found, int64_t centers, int64_t more);

/* The criterion that a name means for so many rows ("auto" or NULL: chosen); false: it is none. */
bool mrc_criterion_find(const char *name, const mercer_dataset *data, mrc_criterion *out);
const char *mrc_criterion_name(mrc_criterion criterion);

/* ---- Parts ---------------------------------------------------------------------------------------------------- */

/* split.c: rows in the order in which they are read, by folds; of HOLDOUT the last is the one that is held back. */
typedef struct mrc_split {
    int64_t *rows; /* (count), to be released */
    int64_t count;
    mrc_span folds[MRC_FOLDS];
    int fold_count;
} mrc_split;
/* At most `most` rows to fit to, and as many as half of that to judge on. */
mercer_status mrc_split_make(mrc_split *out, const mercer_dataset *data, mrc_criterion criterion, int64_t most,
                             uint64_t seed);

/* points.c */
typedef struct mrc_tune_points {
    mrc_scope *scope; /* of the search */
    mercer_context *context;
    int64_t n, d, c;
    mercer_matrix plain[MRC_TUNE_PREPARATIONS];   /* (n, d) f32: preprocessed, in the order of the split */
    mercer_matrix centers[MRC_TUNE_PREPARATIONS]; /* (p, d) f32: given ones; no data: rows */
    mercer_matrix mapped, z;                      /* (n, d), (p, d) f32: as a candidate sees them */
    mercer_matrix y;                              /* (n, c) f64 */
    double *weights;                              /* (n), or NULL */
    float *map;                                   /* (d, d) */
} mrc_tune_points;
mercer_status mrc_tune_points_read(mrc_tune_points *self, const mrc_tune_task *task, const mrc_split *split,
                                   int64_t most_centers);
/* mapped, z: the rows of the folds, and p centers of them, in a metric; views into `self`. */
mercer_status mrc_tune_points_map(mrc_tune_points *self, int preparation, const mrc_metric *metric,
                                  const mrc_small_rows *rows, int64_t p, mercer_matrix *x, mercer_matrix *z);

#endif

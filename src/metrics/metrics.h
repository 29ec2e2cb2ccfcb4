/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics: evaluation of predictions.
 *
 *   evaluation.c      accumulation row by row: sums, and rows saved for ranking
 *   class_metrics.c   accuracy, log loss, Brier score, AUC, F1, calibration error, coverage of sets; curves
 *   value_metrics.c   squared and absolute errors, R2, quantiles of errors, coverage of intervals
 *
 * Sums include all rows, in their order, in double. Metrics that need sorted rows (AUC, quantiles) use the saved rows:
 * all rows, or as many as fit into memory, evenly spaced.
 */
#ifndef MRC_METRICS_METRICS_H
#define MRC_METRICS_METRICS_H

#include "core/memory.h"

#include "mercer/evaluation.h"

#include <stdbool.h>

/* Guo, Pleiss, Sun and Weinberger (2017) use 15 bins of equal width. The same bins make calibration errors comparable
   with published errors. A scatter plot of more than 2,000 points shows no more than a sample of them. */
enum { MRC_CALIBRATION_BINS = 15, MRC_PLOTTED_ROWS = 2000, MRC_PLOTTED_OUTPUTS = 4 };

/* Bin of predictions with about the same confidence. */
typedef struct mrc_confidence_bin {
    double weight, confidence, right; /* sums of w, of w p, and of w over correct predictions */
} mrc_confidence_bin;

struct mercer_evaluation {
    mercer_context *context;
    mercer_evaluation_options options;
    bool classes;
    int64_t outputs; /* c */
    int64_t rows;    /* rows added so far */
    int64_t saved;   /* number of rows in `scores` */
    int64_t plotted; /* number of rows in `pairs` */
    double weight;   /* sum of w */

    double squared_error; /* sum over rows and outputs of w (f - y)^2 */
    double *squared;      /* (c) the same per output */
    double *absolute;     /* (c) sum of w |f - y| */
    /* (c) mean of the targets, and sum of w (y - mean)^2 by Welford's updates, which avoid cancellation */
    double *mean, *spread;
    /* (c) sums for coverage and size. Values: w if |f - y| <= radius, and 2 w radius. Classes, over samples of the
       class: w if the class is in the set, and w times the size of the set */
    double *covered, *sizes;
    double *missed; /* (c) values: sum of w max(0, |f - y| - radius) */

    double *confusion; /* (c, c) weight of samples of class i that were predicted as class j; NULL for values */
    double log_loss, brier;
    mrc_confidence_bin bins[MRC_CALIBRATION_BINS];

    int64_t capacity;      /* capacity of `scores` in rows */
    int64_t plot;          /* capacity of `pairs` in rows */
    double *scores;        /* (capacity, c) values: |f - y|; classes: log(p / (1 - p)) */
    double *saved_weights; /* (capacity) weights of the rows in `scores` */
    int32_t *saved_labels; /* (capacity) labels of the rows in `scores`; NULL for values */
    double *pairs;         /* (plot, min(c, MRC_PLOTTED_OUTPUTS), 2) y and f; NULL for classes */
    /* (6 c) scratch space for f, for y or p, and for errors; then copies of options.radius and class_shift, and
       `shifted` */
    double *row;
    double *shifted;  /* (c) scratch space, a part of `row`: curved scores plus class_shift */
    int32_t *members; /* (c) scratch space: classes of a set */
    mrc_scope held;   /* owner of all arrays above */
};

/* For classes and for values: add a row to the sums and write its ranking scores to margins or errors (c); compute the
   metrics over all outputs; compute the metrics of one output; write a curve of at most `capacity` points. */
void mrc_class_row(mercer_evaluation *self, const double *f, int32_t label, double weight, double *margins);
mercer_status mrc_class_metrics(const mercer_evaluation *self, mercer_metrics *out);
mercer_status mrc_class_each(const mercer_evaluation *self, int64_t index, mercer_output_metrics *out);
mercer_status mrc_class_curve(const mercer_evaluation *self, const char *name, int64_t index, double *x, double *y,
                              int64_t capacity, int64_t *count);

void mrc_value_row(mercer_evaluation *self, const double *f, const double *y, double weight, double *errors);
mercer_status mrc_value_metrics(const mercer_evaluation *self, mercer_metrics *out);
mercer_status mrc_value_each(const mercer_evaluation *self, int64_t index, mercer_output_metrics *out);
mercer_status mrc_value_curve(const mercer_evaluation *self, const char *name, int64_t index, double *x, double *y,
                              int64_t capacity, int64_t *count);

/* Create, free and fill an evaluation. The caller has checked the arguments. */
mercer_status mrc_evaluation_create(mercer_evaluation **out, mercer_context *context,
                                    const mercer_evaluation_options *options);
void mrc_evaluation_free(mercer_evaluation *self);
MRC_RELEASE(mrc_release_evaluation, mercer_evaluation, mrc_evaluation_free)
mercer_status mrc_evaluation_add(mercer_evaluation *self, const mercer_matrix *F, const mercer_matrix *Y,
                                 const int32_t *labels, const double *weights);

#endif

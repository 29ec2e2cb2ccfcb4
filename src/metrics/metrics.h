/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics: how good predictions are.
 *
 *   evaluation.c      rows one after the other: sums, the rows that are kept, a model on a dataset block by block
 *   class_metrics.c   accuracy, log loss, Brier score, AUC, F1, calibration error, coverage of sets; curves
 *   value_metrics.c   squared and absolute errors, R2, quantiles of errors, coverage of intervals
 *
 * Sums are over all rows, in their order, in double. What needs an order of all rows (AUC, quantiles) is of the rows
 * that are kept: all of them, or as many as the memory has room for, spread evenly.
 */
#ifndef MRC_METRICS_METRICS_H
#define MRC_METRICS_METRICS_H

#include "core/memory.h"

#include "mercer/evaluation.h"

#include <stdbool.h>

enum { MRC_CALIBRATION_BINS = 15, MRC_PLOTTED_ROWS = 2000, MRC_PLOTTED_OUTPUTS = 4 };

/* Predictions of about the same confidence. */
typedef struct mrc_confidence_bin {
    double weight, confidence, right; /* sums of w, w p, w [right] */
} mrc_confidence_bin;

struct mercer_evaluation {
    mercer_context *context;
    mercer_evaluation_options options;
    bool classes;
    int64_t outputs; /* c */
    int64_t rows;    /* seen */
    int64_t kept;    /* of them in `scores` */
    int64_t plotted; /* of them in `pairs` */
    double weight;   /* sum of w */

    double squared_error;    /* sum over rows and outputs of w (f - y)^2 */
    double *squared;         /* (c) the same of each output */
    double *absolute;        /* (c) sum of w |f - y| */
    double *mean, *spread;   /* (c) of the targets: sum of w (y - mean)^2, by Welford's updates, which do not cancel */
    double *covered, *sizes; /* (c) values: w [|f - y| <= radius], w 2 radius; classes: of samples of the class, w [in
                                the set], w |set| */

    double *confusion; /* (c, c) weights of samples of class i that were given class j; NULL for values */
    double log_loss, brier;
    mrc_confidence_bin bins[MRC_CALIBRATION_BINS];

    int64_t keep;         /* most rows in `scores` */
    int64_t plot;         /* most rows in `pairs` */
    double *scores;       /* (keep, c) values: |f - y|; classes: log(p / (1 - p)) */
    double *kept_weights; /* (keep) */
    int32_t *kept_labels; /* (keep) NULL for values */
    double *pairs;        /* (plot, shown, 2) y and f; NULL for classes */
    double *row;          /* (3 c) scratch */
    double *shifted;      /* (c) scratch: scores with the shifts of their classes */
    int32_t *members;     /* (c) scratch */
    mrc_scope held;       /* all of these */
};

/* A row's share in the sums; what is ranked of it goes to margins or errors (c). Then the numbers of all rows, and
   curves, of which as many points are written as there is room for. */
void mrc_class_row(mercer_evaluation *self, const double *f, int32_t label, double weight, double *margins);
mercer_status mrc_class_metrics(const mercer_evaluation *self, mercer_metrics *out);
mercer_status mrc_class_each(const mercer_evaluation *self, int64_t index, mercer_output_metrics *out);
mercer_status mrc_class_curve(const mercer_evaluation *self, const char *name, int64_t index, double *x, double *y,
                              int64_t room, int64_t *count);

void mrc_value_row(mercer_evaluation *self, const double *f, const double *y, double weight, double *errors);
mercer_status mrc_value_metrics(const mercer_evaluation *self, mercer_metrics *out);
mercer_status mrc_value_each(const mercer_evaluation *self, int64_t index, mercer_output_metrics *out);
mercer_status mrc_value_curve(const mercer_evaluation *self, const char *name, int64_t index, double *x, double *y,
                              int64_t room, int64_t *count);

/* Arguments have been checked. */
mercer_status mrc_evaluation_create(mercer_evaluation **out, mercer_context *context,
                                    const mercer_evaluation_options *options);
void mrc_evaluation_free(mercer_evaluation *self);
MRC_RELEASE(mrc_release_evaluation, mercer_evaluation, mrc_evaluation_free)
mercer_status mrc_evaluation_add(mercer_evaluation *self, const mercer_matrix *F, const mercer_matrix *Y,
                                 const int32_t *labels, const double *weights);

#endif

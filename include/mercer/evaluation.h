/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evaluation.h: how sure predictions are, and how good. The rules at the top of mercer.h hold here too.
 *
 *   1. probabilities, intervals and sets of classes    2. measures    3. columns beside predictions
 */
#ifndef MERCER_EVALUATION_H
#define MERCER_EVALUATION_H

#include "mercer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Probabilities and intervals --------------------------------------------------------------------------- */

/* T of mercer_model_probabilities, and unless NULL whether it is known: otherwise it is 0.25. Setting 0 forgets it;
   other values must be in 1e-6 .. 1e6. Model files keep it. Errors: DATA. */
MERCER_API double mercer_model_temperature(const mercer_model *model, int *known);
MERCER_API mercer_status mercer_model_set_temperature(mercer_model *model, double temperature);
/* Shifts (c) that are added to scores before the softmax: P = softmax((f + shift) / T). A fit with class weights sets
   them to -T log(weight), so that probabilities are those of the unweighted population while the largest score, the
   decision, follows the weights. NULL: none. Model files keep them. Errors: DATA. */
MERCER_API mercer_status mercer_model_set_class_shift(mercer_model *model, const double *shift);
MERCER_API const double *mercer_model_class_shift(const mercer_model *model);
/* T > 0 that minimises the log loss of probabilities softmax(scores / T): scores (n, c) f32 or f64 of samples that the
   model was not trained on, their labels (n), weights (n) or NULL. 0.25 for fewer than 8 samples or 2 classes. Errors:
   SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_temperature(mercer_context *context, double *out, const mercer_matrix *scores,
                                            const int32_t *labels, const double *weights);

/*
 * Intervals that hold a share `level` of the targets of further rows, from rows that training held back
 * (mercer_fit_options.intervals). For values they are f_j(x) +- radius[j], radius (c); for classes radius (1) is the
 * threshold of mercer_class_sets. Errors: ARGUMENT, if the model has none, or too few rows for the level.
 */
MERCER_API mercer_status mercer_model_interval(const mercer_model *model, double *radius, double level);
/* The likeliest classes of each row of P (m, c), as many as it takes for their probability to exceed the threshold (one
   at least): members (m, c), the likeliest first, -1 behind the last. Errors: SHAPE, DTYPE. */
MERCER_API mercer_status mercer_class_sets(mercer_context *context, int32_t *members, const mercer_matrix *P,
                                           double threshold);

/*
 * Scores of rows that the model was not trained on, for mercer_model_interval; copied, NULL forgets them. Values:
 * |f - y| (outputs, k). Classes: (1, k), the probability of all classes that rank before the right one. Each list is
 * ascending; entry i is that of a share (i + 1) / k of the rows; rows: how many there were (with weights
 * (sum w)^2 / sum w^2). Errors: SHAPE, DTYPE, DATA.
 */
MERCER_API mercer_status mercer_model_set_intervals(mercer_model *model, const mercer_matrix *scores, double rows,
                                                    mercer_task task);
/* The task that intervals are for, and how many rows they come from unless NULL; UNLABELLED and 0 without. */
MERCER_API mercer_task mercer_model_interval_task(const mercer_model *model, double *rows);

/* ---- 2. Measures ---------------------------------------------------------------------------------------------- */

/*
 * How good predictions are. w are the sample weights, which every measure counts; sums of them are W. Of values y, by
 * predictions f:
 *
 *   mse, mae      means over rows and outputs of (f - y)^2 and |f - y|; rmse: the root of mse
 *   r2            1 - sum w (f - y)^2 / sum w (y - mean y)^2
 *   error_...     quantiles of |f - y| over rows and outputs: the least e with a share of 50, 90, 99, 100 % at most e
 *
 * Of classes, by p = softmax(f / T):
 *
 *   accuracy      share of rows whose largest output is their class (the first of equals)
 *   log_loss      mean of -log p of the class
 *   brier         mean of sum_j (p_j - [j is the class])^2, halved for two classes
 *   auc           share of pairs, one of the second class and one of the first, that p orders rightly; equal ones count
 *                 half. For more classes the mean over them, each against the rest
 *   f1            mean over the classes that occur or were given of 2 hits / (2 hits + misses + false alarms)
 *   calibration_error   sum over 15 bins of the largest p, equally wide, of their weight |accuracy - mean p| / W
 *
 * Coverage is the share of targets in the model's intervals, or sets of classes; interval_size the mean width, or
 * number of classes. What does not apply is NaN.
 */
typedef struct mercer_metrics {
    size_t struct_size;
    int64_t rows, outputs;
    int64_t ranked_rows; /* that AUC and quantiles are of: all, or as many as memory allows, spread evenly */
    mercer_task task;
    double weight; /* W */
    double mse;    /* for classes of f against one-hot targets */
    double rmse, mae, r2, error_median, error_90, error_99, error_max;
    double accuracy, log_loss, brier, auc, f1, calibration_error;
    double temperature;                       /* T */
    double interval, coverage, interval_size; /* the level, and what came of it */
} mercer_metrics;

/* Of one output, or of one class against the rest. */
typedef struct mercer_output_metrics {
    size_t struct_size;
    double weight; /* of the samples of the class; of all */
    double mse, rmse, mae, r2, error_median, error_90, error_99, error_max;
    double precision, recall, f1, auc; /* hits among those given the class, among those of the class */
    double coverage, interval_size;
} mercer_output_metrics;

/* Tells how many of all rows are done. Non-zero stops: MERCER_ERROR_CALLBACK. */
typedef int (*mercer_evaluate_callback)(void *user, int64_t done, int64_t total);

typedef struct mercer_evaluation_options {
    size_t struct_size;
    mercer_task task;     /* CLASSIFICATION or REGRESSION; these three are those of model and data in mercer_evaluate */
    int64_t outputs;      /* classes, or columns of the targets */
    int64_t rows;         /* how many will be added */
    double temperature;   /* T of classes, 1e-6 .. 1e6; 0: that of the model, 0.25 without */
    double interval;      /* level of the intervals whose coverage is told, 0.9 or such; 0: none */
    const double *radius; /* (outputs) half their widths, or for classes the threshold of sets: see
                             mercer_model_interval; mercer_evaluate asks the model. Copied; NULL: none */
    int64_t memory;       /* bytes for the rows that AUC and quantiles need; 0: 64 MiB */
    mercer_evaluate_callback progress; /* of mercer_evaluate */
    void *progress_user;
    const double *class_shift; /* (outputs) of probabilities softmax((f + shift) / T); mercer_evaluate asks the model.
                                  Copied; NULL: none */
} mercer_evaluation_options;

/* Predictions and targets, summed up row by row. */
typedef struct mercer_evaluation mercer_evaluation;

/* A model on a dataset with its classes, or values, block by block; sample weights are the dataset's. All ranks that
   share the model call it together. A table is opened with the model's schema or, without one, its column names, and
   with its classes. Errors: as predict; MISMATCH, if it was not; ARGUMENT, if the model has no intervals of that
   level. */
MERCER_API mercer_status mercer_evaluate(mercer_evaluation **out, mercer_model *model, const mercer_dataset *data,
                                         const mercer_evaluation_options *options);
/* The same of predictions that are there: begin, and add F (m, outputs) f32 or f64 with targets Y (m, outputs), or for
   classes with labels (m) and Y NULL; weights (m) or NULL. Errors: SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_evaluation_create(mercer_evaluation **out, mercer_context *context,
                                                  const mercer_evaluation_options *options);
MERCER_API mercer_status mercer_evaluation_add(mercer_evaluation *evaluation, const mercer_matrix *F,
                                               const mercer_matrix *Y, const int32_t *labels, const double *weights);
MERCER_API void mercer_evaluation_free(mercer_evaluation *evaluation); /* releases it */

/* What the rows so far come to; of output or class `index` alone. */
MERCER_API mercer_status mercer_evaluation_query(const mercer_evaluation *evaluation, mercer_metrics *out);
MERCER_API mercer_status mercer_evaluation_output(const mercer_evaluation *evaluation, mercer_output_metrics *out,
                                                  int64_t index);
/* (outputs, outputs) weights of samples of class i that were given class j, borrowed; NULL for values. */
MERCER_API const double *mercer_evaluation_confusion(const mercer_evaluation *evaluation);
/*
 * A curve of at most `room` points x, y; *count tells how many there are.
 *
 *   roc            of class index: shares of the others, and of the class, that a threshold takes for the class
 *   calibration    of bins of the largest probability that are not empty: mean p, and the share that is right
 *   predictions    of output index, up to 3: y and f of up to 2,000 rows spread evenly
 */
MERCER_API mercer_status mercer_evaluation_curve(const mercer_evaluation *evaluation, const char *name, int64_t index,
                                                 double *x, double *y, int64_t room, int64_t *count);

/* ---- 3. Columns beside predictions ---------------------------------------------------------------------------- */

/* The texts of some columns of csv or tsv files, record by record, as they stand there: what is to be written beside
   predictions. */
typedef struct mercer_column_texts mercer_column_texts;
/* Opens the columns with these names, which have commas between them. Of the options x, format, header, target, first,
   rows and memory count: with those of a dataset the records are its rows. Errors: MISSING, IO, FORMAT, SHAPE, MISMATCH
   (no column of that name). */
MERCER_API mercer_status mercer_column_texts_open(mercer_column_texts **out, mercer_context *context,
                                                  const mercer_dataset_options *options, const char *columns);
/* The names, in their order. Borrowed. */
MERCER_API const char *const *mercer_column_texts_names(const mercer_column_texts *texts, int64_t *count);
/* The texts of the next record, one for each column, borrowed until the next call; NULL behind the last. Errors:
   FORMAT. */
MERCER_API mercer_status mercer_column_texts_next(mercer_column_texts *texts, const char *const **fields);
MERCER_API void mercer_column_texts_free(mercer_column_texts *texts); /* releases them */

/* ---- 4. What predictions depend on ---------------------------------------------------------------------------- */

/*
 * G = the gradients of all outputs at the rows of X (m, d), in their units: G is (m, c d) f32 or f64, and
 * G[i, l d + k] = d f_l / d x_k at row i. Arithmetic is double. Where a row is a center, a kernel that is not smooth
 * there (laplace) adds nothing. For functions of the distance that have a name. Cost: c + 1 products of m rows with
 * d columns; memory beyond the arguments at most about 128 MiB. Of a model that ranks share, all of them call it with
 * the same X, and each gets all of G. Errors: SHAPE, DTYPE, OVERLAP, DATA, COMM, UNSUPPORTED (a kernel without
 * gradients).
 */
MERCER_API mercer_status mercer_model_gradient(mercer_model *model, const mercer_matrix *G, const mercer_matrix *X);

/* How much worse a model is without a column. */
typedef struct mercer_importance mercer_importance;

typedef struct mercer_permutation_options {
    size_t struct_size;
    int64_t repeats;                   /* permutations of each column; 0: 5 */
    uint64_t seed;                     /* that they are drawn from */
    mercer_evaluate_callback progress; /* tells how many of all permutations are done */
    void *progress_user;
} mercer_permutation_options;

typedef struct mercer_importance_info {
    size_t struct_size;
    int64_t columns; /* of the table that the model was trained on, as far as it uses them; else its features */
    const char *const *names; /* (columns); NULL: they have none */
    const double *drops;      /* (columns) mean fall of the score when the column is permuted among the rows */
    const double *errors;     /* (columns) standard error of that mean; NaN for a single permutation */
    double score;             /* without permutation: R2 of values, accuracy of classes */
    mercer_task task;
    int64_t rows, repeats;
} mercer_importance_info;

/* Permutes the columns of the table, all features of a category together, one after the other, and measures how much
   worse predictions of the dataset, which has targets, become. Errors: as mercer_evaluate. */
MERCER_API mercer_status mercer_permutation_importance(mercer_importance **out, mercer_model *model,
                                                       const mercer_dataset *data,
                                                       const mercer_permutation_options *options);
/* What came of it; what it points to is borrowed. */
MERCER_API mercer_status mercer_importance_query(const mercer_importance *importance, mercer_importance_info *out);
MERCER_API void mercer_importance_free(mercer_importance *importance); /* releases it */

/*
 * Partial dependence: row k of F (room, c) is the mean prediction of at most 512 rows of the dataset when column number
 * `column` (as above) is values[k] in all of them. values (room), *count of them: of a number or a date (days since
 * 2000-01-01) from the least to the largest that these rows have, of a category the number of a level of its schema.
 * Errors: as mercer_evaluate.
 */
MERCER_API mercer_status mercer_partial_dependence(mercer_model *model, const mercer_dataset *data, int64_t column,
                                                   double *values, const mercer_matrix *F, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif

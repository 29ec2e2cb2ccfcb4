/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evaluation.h: the uncertainty and quality of predictions. The rules at the top of mercer.h hold here too.
 *
 *   1. probabilities, intervals and sets of classes    4. gradients and importance of columns
 *   2. metrics                                         5. Shapley values
 *   3. columns next to predictions
 *
 * Stability: stable. Later versions add declarations; they do not change or remove any.
 */
#ifndef MERCER_EVALUATION_H
#define MERCER_EVALUATION_H

#include "mercer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Probabilities and intervals --------------------------------------------------------------------------- */

/* Sets temperature T and curvature k of the probabilities softmax(g(f) / T), g(f) = asinh(k f) / asinh(k). T: 1e-6 ..
   1e6, or 0 for the default, 0.25, which counts as not calibrated. k: 1e-3 .. 1e6, or 0 for g(f) = f. k must be 0 if T
   is 0. Model files save both. Errors: DATA. */
MERCER_API mercer_status mercer_model_set_calibration(mercer_model *model, double temperature, double curvature);
/* Finds the temperature and curvature that minimize the log loss of the probabilities: scores (n, c) f32 or f64 of
   samples that the model was not trained on, their labels (n) in 0 .. c - 1, weights (n) >= 0 or NULL. The curvature is
   0 unless it lowers the log loss of all samples together by more than log(n) / 2. The result is 0.25 and 0 for fewer
   than 8 samples or fewer than 2 classes. Errors: SHAPE, DTYPE, DATA, MEMORY. */
MERCER_API mercer_status mercer_calibrate(mercer_context *context, double *temperature, double *curvature,
                                          const mercer_matrix *scores, const int32_t *labels, const double *weights);

/*
 * Computes intervals that contain a share `level` (between 0 and 1) of the targets of new rows, from the errors on rows
 * that training held out (mercer_fit_validation.intervals). Regression: the intervals are f_j(x) +- radius[j],
 * radius (c). Classification: radius (1) receives the threshold for mercer_class_sets. Errors: ARGUMENT, if the model
 * has no intervals, or too few rows were held out for the level.
 */
MERCER_API mercer_status mercer_model_interval(const mercer_model *model, double *radius, double level);
/* Finds, for each row of probabilities P (m, c), the smallest set of likeliest classes whose total probability exceeds
   the threshold (>= 0): members (m, c), at least one class per row, likeliest first, then -1. Errors: SHAPE, DTYPE. */
MERCER_API mercer_status mercer_class_sets(mercer_context *context, int32_t *members, const mercer_matrix *P,
                                           double threshold);

/* ---- 2. Metrics ----------------------------------------------------------------------------------------------- */

/*
 * Metrics of predictions. All of them use the sample weights w, whose sum is W. Regression, predictions f of targets y:
 *
 *   mse, mae      means over rows and outputs of (f - y)^2 and |f - y|; rmse: the root of mse
 *   r2            1 - sum w (f - y)^2 / sum w (y - mean y)^2
 *   error_...     quantiles of |f - y| over rows and outputs: the smallest e such that 50, 90, 99, 100 % are at most e
 *
 * Classification, p = softmax((g(f) + class_shift) / T), g(f) = asinh(curvature f) / asinh(curvature):
 *
 *   accuracy      share of rows whose largest output is their class (for ties, the first one)
 *   log_loss      mean of -log p of the true class
 *   brier         mean of sum_j (p_j - [j is the class])^2, halved for two classes
 *   auc           share of pairs, one sample of the second class and one of the first, that p orders correctly; ties
 *                 count half. For more classes the mean over the classes, each against the rest
 *   f1            mean over the classes that occur or were predicted of 2 hits / (2 hits + misses + false alarms)
 *   calibration_error   mean of |accuracy - mean p| over 15 equally wide bins of the largest p, weighted by the sum
 *                 of the sample weights in each bin
 *
 * Coverage is the share of targets in the model's intervals or class sets; interval_size is the mean width of the
 * intervals or number of classes in the sets. interval_score of level q (regression) is the mean of the width plus
 * 2 / (1 - q) times the distance of the target from the interval; the true quantiles minimize it. Metrics that do not
 * apply are NaN.
 */
typedef struct mercer_metrics {
    size_t struct_size;
    int64_t rows, outputs; /* rows evaluated so far; outputs, or number of classes */
    int64_t ranked_rows;   /* rows that AUC and quantiles are computed from: all, or as many as fit into `memory` of the
                              options, evenly spaced */
    mercer_task task;      /* CLASSIFICATION or REGRESSION */
    double weight;         /* W, sum of the sample weights */
    double mse;            /* as above; for classification, of f against one-hot targets */
    double rmse, mae, r2, error_median, error_90, error_99, error_max; /* regression */
    double accuracy, log_loss, brier, auc, f1, calibration_error;      /* classification */
    double temperature;                                                /* T */
    double interval, coverage, interval_size; /* level of the intervals or sets, their coverage and mean size; NaN
                                                 without intervals */
    double curvature;                         /* curvature of the scores; 0: none */
    double interval_score;                    /* regression, with a level */
} mercer_metrics;

/* Metrics of one output, or of one class against the rest. Metrics that do not apply are NaN. */
typedef struct mercer_output_metrics {
    size_t struct_size;
    double weight; /* sum of the weights of the samples of the class; regression: of all samples */
    double mse, rmse, mae, r2, error_median, error_90, error_99, error_max; /* regression */
    double precision, recall, f1, auc; /* classification. precision: share of the predictions of the class that are
                                          correct; recall: share of the samples of the class that are predicted */
    double coverage, interval_size;    /* regression: of the intervals of the output; classification: of the sets of the
                                          samples of the class */
    double interval_score;             /* regression, with a level */
} mercer_output_metrics;

/* Options of an evaluation. mercer_evaluate sets task, outputs and rows itself, from the dataset. */
typedef struct mercer_evaluation_options {
    size_t struct_size;
    mercer_task task;     /* CLASSIFICATION or REGRESSION */
    int64_t outputs;      /* number of classes, or of target columns; at least 1 */
    int64_t rows;         /* largest number of rows that will be added; at least 1 */
    double temperature;   /* T of the probabilities, 1e-6 .. 1e6; 0: in mercer_evaluate the model's T, otherwise 0.25 */
    double interval;      /* level of the intervals or sets whose coverage is computed, for example 0.9; 0: none */
    const double *radius; /* (outputs) half widths of the intervals; classification: (1) threshold of the sets; see
                             mercer_model_interval. Copied; NULL: none. mercer_evaluate takes them from the model if
                             `interval` is set */
    int64_t memory;       /* limit in bytes of the rows saved for AUC and quantiles; 0: 64 MiB */
    /* Progress of mercer_evaluate: stage "evaluation", rows that are done. If it stops, the call fails with
       MERCER_ERROR_CALLBACK. NULL: none. */
    mercer_progress_callback progress;
    void *progress_user;       /* passed to `progress` */
    const double *class_shift; /* (outputs) shifts of the curved scores. Copied; NULL: in mercer_evaluate the model's
                                  shifts, otherwise none */
    double curvature;          /* curvature of the scores, 1e-3 .. 1e6; 0: in mercer_evaluate the model's curvature if
                                  `temperature` is 0, otherwise none */
} mercer_evaluation_options;

/* Sums over rows of predictions and targets, from which metrics are computed. */
typedef struct mercer_evaluation mercer_evaluation;

/* Evaluates a model on a dataset with targets, block by block, with the sample weights of the dataset. All ranks that
   share the model must call this function. A dataset that is a table must be opened with the model's schema (or, if it
   has none, its feature names) and its class names. Errors: those of mercer_model_predict; MISMATCH, if the dataset was
   opened differently; ARGUMENT, if the model has no intervals for that level; IO (as mercer_dataset_read). */
MERCER_API mercer_status mercer_evaluate(mercer_evaluation **out, mercer_model *model, const mercer_dataset *data,
                                         const mercer_evaluation_options *options);
/* Creates an empty evaluation, to which the caller adds predictions. */
MERCER_API mercer_status mercer_evaluation_create(mercer_evaluation **out, mercer_context *context,
                                                  const mercer_evaluation_options *options);
/* Adds rows: predictions F (m, outputs) f32 or f64. Regression: targets Y (m, outputs), labels is ignored.
   Classification: labels (m) in 0 .. outputs - 1, Y is ignored. weights (m) >= 0; NULL: all 1. Nothing is borrowed.
   Errors: SHAPE, DTYPE, DATA. */
MERCER_API mercer_status mercer_evaluation_add(mercer_evaluation *evaluation, const mercer_matrix *F,
                                               const mercer_matrix *Y, const int32_t *labels, const double *weights);
/* Releases an evaluation. */
MERCER_API void mercer_evaluation_free(mercer_evaluation *evaluation);

/* Computes the metrics of all rows added so far. Errors: DATA (no row with a weight above 0). */
MERCER_API mercer_status mercer_evaluation_query(const mercer_evaluation *evaluation, mercer_metrics *out);
/* Computes the metrics of output or class `index`, from 0. Errors: DATA, as mercer_evaluation_query. */
MERCER_API mercer_status mercer_evaluation_output(const mercer_evaluation *evaluation, mercer_output_metrics *out,
                                                  int64_t index);
/* Returns the confusion matrix (outputs, outputs): entry (i, j) is the weight of the samples of class i that were
   predicted as class j. Borrowed from the evaluation; NULL for regression. */
MERCER_API const double *mercer_evaluation_confusion(const mercer_evaluation *evaluation);
/*
 * Computes up to `capacity` points of a curve: x and y (capacity), and sets *count to their number. index: class or
 * output, from 0. Errors: DATA, as mercer_evaluation_query.
 *
 *   roc            of class index: x false positive rate, y true positive rate
 *   calibration    one point per bin of the largest probability that is not empty: x mean p, y accuracy
 *   predictions    of output index, 0 to 3: x targets y, y predictions f, of up to 2,000 evenly spaced rows
 *
 * roc and calibration are for classification, predictions for regression.
 */
MERCER_API mercer_status mercer_evaluation_curve(const mercer_evaluation *evaluation, const char *name, int64_t index,
                                                 double *x, double *y, int64_t capacity, int64_t *count);

/* ---- 3. Columns next to predictions --------------------------------------------------------------------------- */

/* Reader of some columns of csv or tsv files as text, record by record, unchanged: columns that the caller writes next
   to predictions. */
typedef struct mercer_column_texts mercer_column_texts;
/* Opens the columns whose names are listed in `columns`, separated by commas. Only the options x, format, header,
   target, first, rows and memory are used; with the options of a dataset, the records are the rows of the dataset.
   Errors: MISSING, IO, FORMAT, SHAPE, MISMATCH (no column of that name). */
MERCER_API mercer_status mercer_column_texts_open(mercer_column_texts **out, mercer_context *context,
                                                  const mercer_dataset_options *options, const char *columns);
/* Returns the names of the columns, in the order of `columns`, and sets *count to their number. Borrowed. */
MERCER_API const char *const *mercer_column_texts_names(const mercer_column_texts *texts, int64_t *count);
/* Reads the next record: *fields becomes an array of strings, one per column, borrowed until the next call; NULL after
   the last record. Errors: FORMAT. */
MERCER_API mercer_status mercer_column_texts_next(mercer_column_texts *texts, const char *const **fields);
/* Closes the files and releases the reader. */
MERCER_API void mercer_column_texts_free(mercer_column_texts *texts);

/* ---- 4. Gradients and importance of columns ------------------------------------------------------------------- */

/*
 * Computes the gradients of all outputs at the rows of X (m, d), in the units of X and of the targets: G is (m, c d)
 * f32 or f64, and G[i, l d + k] = d f_l / d x_k at row i. Arithmetic is double. Where a row equals a center at which
 * the kernel is not smooth (laplace), that center contributes nothing. Only for built-in kernels that are functions of
 * the distance. Cost: c + 1 products of m rows with d columns; scratch memory: at most about 128 MiB. For a model that
 * ranks share, all ranks call it with the same X, and each gets all of G. Errors: SHAPE, DTYPE, OVERLAP, DATA, COMM,
 * UNSUPPORTED (a kernel without gradients).
 */
MERCER_API mercer_status mercer_model_gradient(mercer_model *model, const mercer_matrix *G, const mercer_matrix *X);

/* Permutation importance of the columns: the decrease of the score when a column is permuted. */
typedef struct mercer_importance mercer_importance;

typedef struct mercer_permutation_options {
    size_t struct_size;
    int64_t repeats; /* number of permutations per column; 0: 5 */
    uint64_t seed;   /* seed of the permutations */
    /* Progress: stage "importance", permutations that are done. If it stops, the call fails with
       MERCER_ERROR_CALLBACK. NULL: none. */
    mercer_progress_callback progress;
    void *progress_user; /* passed to `progress` */
} mercer_permutation_options;

typedef struct mercer_importance_info {
    size_t struct_size;
    int64_t columns;          /* number of table columns that the model uses; number of its features, if it has no
                                 schema */
    const char *const *names; /* (columns) names of the columns; NULL if unknown */
    const double *drops;      /* (columns) mean decrease of the score when the column is permuted among the rows */
    const double *errors;     /* (columns) standard error of that mean; NaN for a single permutation */
    double score;             /* score without permutation: R2 for regression, accuracy for classification */
    mercer_task task;         /* CLASSIFICATION or REGRESSION */
    int64_t rows, repeats;    /* rows of the dataset; permutations per column */
} mercer_importance_info;

/* Measures how much the score of the model on a dataset with targets decreases when one column at a time is permuted
   among the rows; all features of a category are permuted together. Errors: those of mercer_evaluate. */
MERCER_API mercer_status mercer_permutation_importance(mercer_importance **out, mercer_model *model,
                                                       const mercer_dataset *data,
                                                       const mercer_permutation_options *options);
/* Returns the results. Arrays are borrowed from `importance`. */
MERCER_API mercer_status mercer_importance_query(const mercer_importance *importance, mercer_importance_info *out);
/* Releases the results. */
MERCER_API void mercer_importance_free(mercer_importance *importance);

/*
 * Computes the partial dependence of the outputs on column number `column`, numbered as in mercer_importance_info. Row
 * k of F (capacity, c) f32 or f64 becomes the mean prediction of up to 512 rows of the dataset, evenly spaced, after
 * the column is set to values[k] in all of them. values (capacity) and the first *count rows of F are written; *count
 * is at most `capacity`. Values of a number or a date (days since 2000-01-01) ascend from the smallest to the largest
 * in these rows; values of a category are the indices of its levels in the schema. Errors: those of mercer_evaluate.
 */
MERCER_API mercer_status mercer_partial_dependence(mercer_model *model, const mercer_dataset *data, int64_t column,
                                                   double *values, const mercer_matrix *F, int64_t *count);

/* ---- 5. Shapley values ---------------------------------------------------------------------------------------- */

/*
 * Exact Shapley values of the outputs, for the columns of the table that the model uses (numbered as in
 * mercer_importance_info). The game of a row x and a background row b: the columns in a set S have the values of x, and
 * all other columns have the values of b. All features of a column switch together. The value of a column is the mean
 * change of the output when the column switches, over all orders of the columns. Values are means over the background
 * rows, and they sum to f(x) minus the mean of f over the background.
 *
 * Kernels that are products over the features (gaussian, laplace-l1, lpq with p = q) are computed up to rounding. Other
 * kernels of a distance are written as sums of products; mercer_shap_info.error bounds the difference. Not supported
 * (MERCER_ERROR_UNSUPPORTED): kernels of the inner product, callbacks, preprocessing unit, metrics that combine
 * columns, and models that ranks share.
 */
typedef struct mercer_shap mercer_shap;

typedef struct mercer_shap_options {
    size_t struct_size;
    int64_t rows; /* if no background is given: number of the model's centers that serve as background; 0: 100 */
} mercer_shap_options;

typedef struct mercer_shap_info {
    size_t struct_size;
    int64_t columns, outputs;
    const char *const *names; /* (columns) names of the columns; NULL if unknown */
    const double *base;       /* (outputs) mean output over the background */
    int64_t background_rows;
    int from_centers; /* 1: the background rows are centers of the model, drawn at random with a fixed seed */
    int transformed;  /* 1: values and base refer to the transformed target (log, rank) */
    int64_t terms;    /* largest number of products that a kernel of the model is written as; 1: no error */
    double error;     /* bound of the error of a value, not counting rounding, in the units of the outputs */
} mercer_shap_info;

/* Prepares the Shapley values of a model for a background (rows, d), u8, f16, f32 or f64, of samples, which is copied.
   NULL: centers of the model. If the model is a mean of members, each member has its own centers as background. The
   model must outlive *out and must not be changed meanwhile. Errors: SHAPE, DTYPE, DATA, UNSUPPORTED. */
MERCER_API mercer_status mercer_model_shap(mercer_shap **out, mercer_model *model, const mercer_matrix *background,
                                           const mercer_shap_options *options);
/* Returns the columns, the base values and the error bound. Arrays are borrowed from `shap`. */
MERCER_API mercer_status mercer_shap_query(const mercer_shap *shap, mercer_shap_info *out);
/*
 * Computes the values at the rows of X (m, d): V is (m, outputs columns) f32 or f64, and V[i, l columns + k] is the
 * value of column k for output l at row i. Arithmetic is double; the result is bitwise identical for any number of
 * threads and any split of X. Cost per row, background row, center, column and term: about 5 flops for each quadrature
 * node (at most ceil(columns / 2), usually 4 to 8). Errors: SHAPE, DTYPE, OVERLAP, DATA.
 */
MERCER_API mercer_status mercer_shap_values(mercer_shap *shap, const mercer_matrix *V, const mercer_matrix *X);
/*
 * Computes the interactions of the columns at the rows of X (m, d): V is (m, outputs columns columns) f32 or f64. For k
 * and l different, V[i, (o columns + k) columns + l] is half the mean second difference of output o when columns k and
 * l switch, over all orders (the Shapley interaction index); for k = l it is the rest, so that the sum over l is the
 * value of column k. Symmetric. Cost: about columns / 2 times that of the values. Errors: those of mercer_shap_values.
 */
MERCER_API mercer_status mercer_shap_interactions(mercer_shap *shap, const mercer_matrix *V, const mercer_matrix *X);
/* Releases the prepared values. */
MERCER_API void mercer_shap_free(mercer_shap *shap);

#ifdef __cplusplus
}
#endif
#endif

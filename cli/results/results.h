/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/results: results of a model as text and files.
 *
 * metrics_text.c shows evaluation metrics as lines and tables, as JSON, and as events of a run log. prediction_writer.c
 * writes predictions as csv, tsv, npy, JSON lines or plain text, row by row. importance_text.c shows the importance of
 * columns. shap_writer.c writes Shapley values as csv or tsv and shows their means. fit_summary.c prints the result of
 * a training run.
 */
#ifndef MERCER_CLI_RESULTS_H
#define MERCER_CLI_RESULTS_H

#include "commands/evaluate.h"
#include "job.h"

/* ---- Metrics (metrics_text.c) ------------------------------------------------------------------------------------ */

/* Prints the output of mercer eval. Returns an exit code. */
int cli_show_metrics(const cli_values *v, const cli_metrics *metrics, const mercer_model *model);
/* Sets all metrics to NaN, which means unknown. */
void cli_metrics_clear(mercer_metrics *metrics);
/* Returns an object with the metrics that apply to the task, such as accuracy and mse. */
json_t *cli_metrics_json(const mercer_metrics *metrics);
/* Returns a (classes, classes) matrix as an array of rows; integral entries become integers. */
json_t *cli_confusion_json(const double *matrix, int64_t classes);
/* Returns the event "predictions": metrics of each output of a regression, and the sampled pairs. */
json_t *cli_predictions_json(const cli_metrics *metrics, const char *data);
/* Returns the event "curves": the curves of a classifier. */
json_t *cli_curves_json(const cli_metrics *metrics, const char *const *labels, const char *data);

/* ---- Importance of columns (importance_text.c) ------------------------------------------------------------------- */

/* Prints the output of mercer explain --permutation. Returns an exit code. */
int cli_show_importance(const cli_values *v, const mercer_importance *importance);
/* Logs events for the report page: the importance of columns, and the dependence of the mean prediction on the most
   important columns, computed on a sample of the rows. Logs nothing for data without column names, or if the
   computation fails. */
void cli_log_importance(cli_log *log, mercer_model *model, const mercer_dataset *data);

/* Measures the importance of columns on up to 512 rows of a dataset, fewer if needed to take at most about `seconds`.
   Returns an array of {"name", "drop"} in descending order of "drop". Returns NULL if the data or the model have no
   column names, or if there are too many columns for the time. Release with json_decref. */
json_t *cli_find_importance(mercer_model *model, const mercer_dataset *data, double seconds, cli_bar *bar);

/* ---- The result of a training run (fit_summary.c) ---------------------------------------------------------------- */

/* Score on rows that the model was not trained on. */
typedef struct cli_score {
    mercer_metrics all;
    double largest;  /* share of the largest class; NaN for values */
    const char *how; /* "validation set", "held-out rows" or "cross-validation"; NULL: there is no score */
} cli_score;

/* Prints a description of the data that were read. */
void cli_show_read(const cli_job *job);
/* Finds the score of a finished fit. metrics: metrics of the validation rows; NULL if the fit has no validation
   rows. */
cli_score cli_find_score(const cli_job *job, const cli_metrics *metrics);
json_t *cli_score_json(const cli_score *score);
/* Prints the score, the most important columns, the model file and the next command. importance may be NULL. */
void cli_show_result(const cli_job *job, const mercer_report *report, const cli_score *score, const json_t *importance,
                     double seconds);

/* ---- Shapley values (shap_writer.c) ------------------------------------------------------------------------------ */

/* Writer of Shapley values: writes the values of each row to a file, and sums them for the summary that the command
   prints. */
typedef struct cli_shap {
    mercer_shap_info info;
    char **columns, **outputs; /* (info.columns), (info.outputs) names; owned */
    FILE *file;                /* NULL: values are only summarized */
    char separator;
    int pairs;        /* true: interactions, (columns, columns) values per row and output */
    double *absolute; /* (columns), or (columns, columns) if `pairs`: sums of |value| over rows and outputs; owned */
    int64_t rows;     /* number of rows so far */
} cli_shap;

/* Initializes `out` for the values of a model. The caller sets the fields file, separator and pairs before. */
void cli_shap_open(cli_shap *out, const mercer_shap *shap, const mercer_model *model);
/* Writes the header line. */
void cli_shap_begin(const cli_shap *shap);
/* Adds values (rows, outputs columns) f64, or interactions (rows, outputs columns columns). first: number of the first
   row. */
void cli_shap_put(cli_shap *shap, const double *values, int64_t rows, int64_t first);
/* Prints the summary of mercer explain --shap. background: description of the background rows. Returns an exit code. */
int cli_shap_show(const cli_values *v, const cli_shap *shap, const char *background);
void cli_shap_close(cli_shap *shap);

/* ---- Predictions (prediction_writer.c) --------------------------------------------------------------------------- */

typedef enum cli_form { CLI_FORM_NPY, CLI_FORM_CSV, CLI_FORM_TSV, CLI_FORM_JSONL, CLI_FORM_TEXT } cli_form;
/* Contents of an output row. CLI_RESULT_VALUES: values, or scores of classes; CLI_RESULT_CLASS: the class;
   CLI_RESULT_PROBABILITIES: the class, and the probabilities of all classes. */
typedef enum cli_result { CLI_RESULT_VALUES, CLI_RESULT_CLASS, CLI_RESULT_PROBABILITIES } cli_result;

typedef struct cli_writer_plan {
    cli_form form;
    cli_result result;
    const double *radius;      /* (outputs) half-widths of intervals, or the threshold of prediction sets; NULL: none */
    mercer_column_texts *kept; /* input columns written before the predictions; NULL: none. Borrowed. */
} cli_writer_plan;

typedef struct cli_writer cli_writer;
cli_writer *cli_writer_new(const cli_writer_plan *plan, mercer_context *context, const mercer_model *model);
void cli_writer_begin(cli_writer *writer, FILE *file, int64_t rows);
/* Writes rows. The input matrix contains scores of type cli_result_type, but f64 probabilities if sets of classes or
   probabilities are written. */
mercer_status cli_writer_put(cli_writer *writer, const mercer_matrix *rows);
int cli_writer_failed(const cli_writer *writer);
void cli_writer_free(cli_writer *writer);
/* Writes a field of delimited text, quoted if it contains special characters; separator 0: never quoted. */
void cli_put_field(FILE *file, char separator, const char *text);

#endif

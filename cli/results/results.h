/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/results: what comes out of a model, as text and files.
 *
 * metrics_text.c shows how good a model is: as lines and tables, as JSON, as events of a run log. prediction_writer.c
 * writes predictions as csv, tsv, npy, lines of JSON or plain text, row by row. importance_text.c shows what
 * predictions depend on.
 */
#ifndef MERCER_CLI_RESULTS_H
#define MERCER_CLI_RESULTS_H

#include "commands/evaluate.h"

/* ---- Measures (metrics_text.c) ----------------------------------------------------------------------------------- */

/* Prints what mercer eval tells. Exit code. */
int cli_show_metrics(const cli_values *v, const cli_metrics *metrics, const mercer_model *model);
/* No measure is known. */
void cli_metrics_clear(mercer_metrics *metrics);
/* accuracy, mse, ...: the measures that apply. */
json_t *cli_metrics_json(const mercer_metrics *metrics);
/* (classes, classes) as rows; whole numbers where they are. */
json_t *cli_confusion_json(const double *matrix, int64_t classes);
/* Measures of each output of a regression, and the sampled pairs: the event "predictions". */
json_t *cli_predictions_json(const cli_metrics *metrics, const char *data);
/* Curves of a classifier: the event "curves". */
json_t *cli_curves_json(const cli_metrics *metrics, const char *const *labels, const char *data);

/* ---- Importance of columns (importance_text.c) ------------------------------------------------------------------- */

/* Prints what mercer explain --permutation tells. Exit code. */
int cli_show_importance(const cli_values *v, const mercer_importance *importance);
/* Some rows of a table: the columns by importance and what the mean prediction does with the first of them, as events
   that the page about a training shows. Nothing for data without names, and where it fails. */
void cli_log_importance(cli_log *log, mercer_model *model, const mercer_dataset *data);

/* ---- Predictions (prediction_writer.c) --------------------------------------------------------------------------- */

typedef enum cli_form { CLI_FORM_NPY, CLI_FORM_CSV, CLI_FORM_TSV, CLI_FORM_JSONL, CLI_FORM_TEXT } cli_form;
/* What a row holds: values (or scores of classes); the class; the class and the probabilities of all. */
typedef enum cli_result { CLI_RESULT_VALUES, CLI_RESULT_CLASS, CLI_RESULT_PROBABILITIES } cli_result;

typedef struct cli_writer_plan {
    cli_form form;
    cli_result result;
    const double *radius;      /* of intervals of values, (outputs), or the threshold of sets; NULL: none */
    mercer_column_texts *kept; /* columns of the input that stand before the others; NULL: none. Borrowed. */
} cli_writer_plan;

typedef struct cli_writer cli_writer;
cli_writer *cli_writer_new(const cli_writer_plan *plan, mercer_context *context, const mercer_model *model);
void cli_writer_begin(cli_writer *writer, FILE *file, int64_t rows);
/* Rows of scores, of the type that cli_result_type tells; where sets or probabilities are written, of probabilities in
   double. */
mercer_status cli_writer_put(cli_writer *writer, const mercer_matrix *rows);
int cli_writer_failed(const cli_writer *writer);
void cli_writer_free(cli_writer *writer);

#endif

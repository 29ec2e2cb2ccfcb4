/* SPDX-License-Identifier: BSD-3-Clause */
/* How good a model is on labelled samples, read block by block. */
#ifndef MERCER_CLI_EVALUATE_H
#define MERCER_CLI_EVALUATE_H

#include "data.h"

/* One output of a regression. */
typedef struct cli_output_metrics {
    double r2, rmse, mae; /* as below; r2 is NaN for constant targets */
} cli_output_metrics;

typedef struct cli_metrics {
    int64_t rows, outputs;
    int classifier;
    double accuracy;          /* NaN unless a classifier */
    double mse;               /* mean of (f - y)^2 over rows and outputs */
    double r2;                /* 1 - sum (f - y)^2 / sum (y - mean)^2; NaN for a classifier or constant targets */
    double mae;               /* mean of |f - y| over rows and outputs */
    cli_output_metrics *each; /* (outputs); NULL for a classifier. Owned. */
    int64_t sampled,
        shown; /* rows, spread evenly over all, and first outputs whose pairs are kept; 0 for a classifier */
    double *truth, *given; /* (sampled, shown): y and f. Owned. */
    int64_t *confusion;    /* (outputs, outputs): rows are true classes; NULL unless a classifier. Owned. */
    double seconds;
} cli_metrics;

/* The dataset has the model's classes, or its number of outputs; name is for errors. bar may be NULL. Exit code. */
int cli_evaluate(mercer_model *model, mercer_context *context, const mercer_dataset *dataset, const char *name,
                 cli_bar *bar, cli_metrics *out);
void cli_metrics_free(cli_metrics *metrics);
json_t *cli_confusion_json(const cli_metrics *metrics);
/* Measures of each output of a regression, and the sampled pairs: the event "predictions". */
json_t *cli_predictions_json(const cli_metrics *metrics, const char *data);
void cli_print_confusion(const cli_metrics *metrics, const char *const *labels, FILE *file);
/* Rows to compute with at a time. */
int64_t cli_block_rows(int64_t features, int64_t outputs);

/* Data for a model: its classes, its number of features; the errors of data that do not fit it. Exit code. */
/* --model, or this rank's share of it. */
mercer_status cli_load_model(const cli_values *v, mercer_context *context, mercer_model **out);
int cli_open_for_model(const cli_values *v, mercer_context *context, const mercer_model *model, int unlabelled,
                       mercer_dataset **out);

#endif

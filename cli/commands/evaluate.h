/* SPDX-License-Identifier: BSD-3-Clause */
/* Evaluation of a model on labeled samples, read block by block. */
#ifndef MERCER_CLI_EVALUATE_H
#define MERCER_CLI_EVALUATE_H

#include "data.h"

typedef struct cli_metrics {
    mercer_metrics all;
    mercer_evaluation *evaluation; /* owned; released by cli_metrics_free */
    double seconds;
} cli_metrics;

/* Evaluates a model. The dataset must have the model's classes, or for regression the model's number of targets.
   `name`: the dataset in error messages. interval: level of the prediction intervals whose coverage is measured, if the
   model has any; 0: none. bar may be NULL. Returns an exit code; release `out` with cli_metrics_free. */
int cli_evaluate(mercer_model *model, mercer_context *context, const mercer_dataset *dataset, const char *name,
                 double interval, cli_bar *bar, cli_metrics *out);
void cli_metrics_free(cli_metrics *metrics);
/* Returns the number of rows per block: as many as take about 32 MiB, but at least 64 and at most 8192. */
int64_t cli_block_rows(int64_t features, int64_t outputs);

/* Loads --model, or this rank's shard of it. Prints errors. Returns an exit code. */
int cli_load_model(const cli_values *v, mercer_context *context, mercer_model **out);

/* Opens data for a model, with its classes and its number of features; data that do not match the model are an error.
   unlabeled: do not read targets. Prints errors. Returns an exit code. */
int cli_open_for_model(const cli_values *v, mercer_context *context, const mercer_model *model, int unlabeled,
                       mercer_dataset **out);

#endif

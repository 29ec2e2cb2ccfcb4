/* SPDX-License-Identifier: BSD-3-Clause */
/* How good a model is on labelled samples, read block by block. */
#ifndef MERCER_CLI_EVALUATE_H
#define MERCER_CLI_EVALUATE_H

#include "data.h"

typedef struct cli_metrics {
    mercer_metrics all;
    mercer_evaluation *evaluation; /* owned */
    double seconds;
} cli_metrics;

/* The dataset has the model's classes, or its number of outputs; name is for errors. interval is the level of the
   intervals whose coverage is wanted, where the model has any; 0: of none. bar may be NULL. Exit code. */
int cli_evaluate(mercer_model *model, mercer_context *context, const mercer_dataset *dataset, const char *name,
                 double interval, cli_bar *bar, cli_metrics *out);
void cli_metrics_free(cli_metrics *metrics);
/* Rows to compute with at a time. */
int64_t cli_block_rows(int64_t features, int64_t outputs);

/* Data for a model: its classes, its number of features; the errors of data that do not fit it. Exit code. */
/* --model, or this rank's share of it. */
mercer_status cli_load_model(const cli_values *v, mercer_context *context, mercer_model **out);
int cli_open_for_model(const cli_values *v, mercer_context *context, const mercer_model *model, int unlabelled,
                       mercer_dataset **out);

#endif

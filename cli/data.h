/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets from the options of a command, and the memory they may take. */
#ifndef MERCER_CLI_DATA_H
#define MERCER_CLI_DATA_H

#include "cli.h"

/* Samples that are read once, in order: what is larger lies in a temporary file, and little of it in memory. */
enum { CLI_USED_ONCE_BYTES = 8 << 20 };

/* Which samples, and what is known about them already. */
typedef struct cli_request {
    int training;              /* of --data, the training part; else t10k-* (--part decides where it exists) */
    int unlabelled;            /* targets are not read */
    int regression;            /* targets are numbers, whatever --task says */
    const char *const *labels; /* classes that may occur; NULL: those found */
    int64_t label_count;
    const char *const *columns; /* names of the features wanted, in their order; NULL: as they come */
    int64_t column_count;
    const char *schema;         /* instead: of the table that a model was trained on */
    const char *const *targets; /* names of the model's target columns; NULL: unknown */
    int64_t target_count;
    int64_t features;    /* libsvm: 0 for --features */
    int64_t first, rows; /* 0, 0: as --first and --rows say */
} cli_request;

/* Before anything is read: one source of data is named, and options that need each other are there. Exit code. */
int cli_check_data(const cli_values *v);
/* Opens it. The error is printed. Exit code. */
int cli_open_data(const cli_values *v, mercer_context *context, const cli_request *request, mercer_dataset **out);
/* --x-val and --y-val, or the test part of --data; *out stays NULL if there is neither. `like` tells task and
   labels. */
int cli_open_validation(const cli_values *v, mercer_context *context, const mercer_dataset_info *like,
                        mercer_dataset **out);

/* What describes the source in messages: a file, a folder, a specification. */
const char *cli_data_name(const cli_values *v);
mercer_dataset_info cli_data_info(const mercer_dataset *dataset);
json_t *cli_data_json(const mercer_dataset_info *info); /* rows, features, outputs, dtype, task, format */
char *cli_data_text(const mercer_dataset_info *info);   /* "60,000 x 784 u8, 10 classes (idx)" */
/* "offset 199.98, scale 1.22", of at most five outputs; NULL if the model has no units of its targets. */
char *cli_targets_text(const mercer_model *model);
/* Kernel, preprocessing and centers of each member of a mean of models; NULL: a single model. */
json_t *cli_members_json(const mercer_model *model);
/* The type of predictions: that of the weights; f64 for values with an offset, whose digits float might not have. */
mercer_dtype cli_result_type(const mercer_model *model);
/* "age, 72 whole numbers: regression (--task classification to change)"; NULL if nothing was decided. */
char *cli_target_text(const cli_values *v, const mercer_dataset_info *info);
/* What a schema says of its columns, a line for each title: how many of which kind, levels, gaps, what is left out.
   NULL where there is nothing to say. */
extern const char *const cli_schema_titles[]; /* NULL at the end */
char *cli_schema_text(const char *schema, const char *title, int64_t features);
/* cli_fail for a call that read this dataset: names the element that is NaN or infinite, if that was it. */
int cli_fail_on(mercer_context *context, mercer_status status, const mercer_dataset *dataset, const char *name);
const char *cli_dtype_name(mercer_dtype dtype);
mercer_dtype cli_dtype(const char *name); /* 0 for auto */
int64_t cli_dtype_size(mercer_dtype dtype);

/* --memory, or half of what is free. */
int64_t cli_memory(const cli_values *v);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens datasets from the options of a command, and determines the memory limit. */
#ifndef MERCER_CLI_DATA_H
#define MERCER_CLI_DATA_H

#include "cli.h"

/* Memory limit for data that are read once, in order: larger data are spilled to a temporary file. */
enum { CLI_USED_ONCE_BYTES = 8 << 20 };

/* The data to open, and what is already known about them. */
typedef struct cli_request {
    int training;   /* --data: true: read the training part, false: the test part; an option --part overrides this */
    int unlabeled;  /* targets are not read */
    int regression; /* targets are numbers, regardless of --task */
    const char *const *labels; /* class names that may occur; NULL: taken from the data */
    int64_t label_count;
    const char *const *columns; /* names of the feature columns, in order; NULL: all columns, in file order */
    int64_t column_count;
    const char *schema;         /* alternative to columns: schema of the table the model was trained on */
    const char *const *targets; /* names of the model's target columns; NULL: unknown */
    int64_t target_count;
    int64_t features;    /* libsvm: number of features; 0: --features */
    int64_t first, rows; /* row range; 0, 0: from --first and --rows */
} cli_request;

/* Checks, before any file is read, that exactly one data source is named and that no option needs another option that
   is missing. Returns an exit code. */
int cli_check_data(const cli_values *v);
/* Opens the dataset that the options name; prints errors. Returns an exit code. */
int cli_open_data(const cli_values *v, mercer_context *context, const cli_request *request, mercer_dataset **out);
/* Opens the validation set: --x-val and --y-val, or the test part of --data. *out is NULL without a validation set. The
   task and the classes are those of `like`. */
int cli_open_validation(const cli_values *v, mercer_context *context, const mercer_dataset_info *like,
                        mercer_dataset **out);

/* Returns the name of the data source for messages: a file, a folder, a specification. */
const char *cli_data_name(const cli_values *v);
/* Return the library's description of a dataset, of a model (NULL: all fields 0) and of a preprocessing (NULL:
   none). */
mercer_dataset_info cli_data_info(const mercer_dataset *dataset);
mercer_model_info cli_model_info(const mercer_model *model);
mercer_preprocess_info cli_preprocess_info(const mercer_preprocess *preprocess);
json_t *cli_data_json(const mercer_dataset_info *info); /* rows, features, outputs, dtype, task, format */
char *cli_data_text(const mercer_dataset_info *info);   /* "60,000 x 784 u8, 10 classes (idx)" */
/* Returns "offset 199.98, scale 1.22" for at most five outputs; NULL if the model has no target transform. */
char *cli_targets_text(const mercer_model *model);
/* Returns kernel, preprocessing and number of centers of each member of an averaged model; NULL for a single model. */
json_t *cli_members_json(const mercer_model *model);
/* Returns the type of predictions: the type of the weights, but f64 for regression if the targets have an offset,
   because float may lose digits of a sum with a large offset. */
mercer_dtype cli_result_type(const mercer_model *model);
/* Returns, for example, "age, 72 whole numbers: regression (--task classification to change)"; NULL if the task was
   not inferred. */
char *cli_target_text(const cli_values *v, const mercer_dataset_info *info);
/* Returns one line of the description of a schema. `title` is one of cli_schema_titles (such as column counts by kind,
   levels, missing values). Returns NULL if the schema has nothing to report under this title. */
extern const char *const cli_schema_titles[]; /* NULL-terminated */
char *cli_schema_text(const char *schema, const char *title, int64_t features);
/* Calls cli_fail for a failed operation on a dataset. If the cause is a NaN or infinite element, the error names its
   row and column instead. */
int cli_fail_on(mercer_context *context, mercer_status status, const mercer_dataset *dataset, const char *name);
const char *cli_dtype_name(mercer_dtype dtype);
mercer_dtype cli_dtype(const char *name); /* 0 for auto */
int64_t cli_dtype_size(mercer_dtype dtype);

/* Returns --memory in bytes; by default half of the free memory. */
int64_t cli_memory(const cli_values *v);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data: samples and targets, read from files and delivered in batches.
 *
 * files/ finds and reads files, table/ reads delimited text, parquet/ reads Parquet files, and schema/ turns columns of
 * tables into features. synth/ computes samples, prepare/ has preprocessing and augmentation, and stream/ delivers
 * batches. The files in this folder itself open and write datasets, and copy or view parts of them.
 *
 * A dataset has n samples of d features, and their targets unless the task is unlabeled. Samples are stored (in memory
 * or mapped from files) or computed when they are read. The rows of one file are one matrix; the rows of several files
 * are not joined, but kept as a list of parts. All reading goes through mrc_dataset_fetch, which neither allocates nor
 * fails, so that a background thread may call it.
 */
#ifndef MRC_DATA_DATASET_H
#define MRC_DATA_DATASET_H

#include "core/context.h"
#include "core/file/file.h"

#include <stdbool.h>

typedef struct mrc_synth mrc_synth; /* data/synth/synth.h */

/* A contiguous range of rows. */
typedef struct mrc_part {
    int64_t first;      /* index of the first row in the dataset */
    mercer_matrix rows; /* at least one row */
    mrc_mapping map;    /* file mapping that holds the rows, or empty */
    void *memory;       /* allocation that holds the rows, or NULL */
} mrc_part;

typedef struct mrc_parts {
    mrc_part *list; /* (count) in the order of their rows */
    int64_t count;  /* 0: the rows are one matrix, x or y of the dataset */
} mrc_parts;

/* Meaning of the row keys: group numbers, or times. */
typedef enum mrc_key_kind { MRC_KEYS_NONE, MRC_KEYS_GROUPS, MRC_KEYS_TIMES } mrc_key_kind;

struct mercer_dataset {
    mercer_context *context;
    const char *format; /* name of a file format, or "array", "columns", "synthetic"; static text */
    mercer_task task;
    int64_t rows, features, outputs;
    mercer_dtype dtype;
    mercer_matrix x; /* (rows, features); data is NULL if synthetic or in parts */
    /* (rows, outputs) targets in f32 or f64; data is NULL if they are in parts; all fields are 0 if targets are
       classes, absent or synthetic */
    mercer_matrix y;
    mercer_matrix on_device; /* copy of x on the context's device, owned by the caller; data is NULL if there is none */
    int32_t *labels;         /* (rows) class numbers; NULL unless classification with stored labels */
    const char *const *label_names;   /* (outputs) class names, or NULL */
    const char *const *feature_names; /* (features) names, or NULL */
    const char *const *target_names;  /* names of the target columns: 1 for classes, else (outputs); or NULL */
    const char *const *unused_names;  /* (unused) names of the unused columns, or NULL */
    int64_t unused;                   /* number of file columns that are neither features nor targets */
    int64_t distinct;                 /* number of distinct targets if they are integers in one column; else 0 */
    int64_t height, width, channels;  /* image size; 0 if samples are not images */
    const double *weights;            /* (rows) sample weights >= 0; NULL: all 1 */
    const double *keys;               /* (rows) row keys, or NULL */
    mrc_key_kind key_kind;            /* meaning of the keys */
    const char *schema;               /* schema that encoded the table (data/schema); NULL if there is none */
    int64_t left_out;                 /* number of rows left out because they have no target */

    /* Memory of the arrays and matrices above, released by mrc_dataset_free. If `borrowed`, mappings, memory of parts
       and synthetic samples belong to another dataset and are not released. */
    bool borrowed;
    bool spilled; /* x_map is a temporary file; its pages are released after they are read */
    mrc_mapping x_map, y_map;
    mrc_parts x_parts, y_parts;
    void *x_memory, *y_memory, *label_memory, *label_text, *feature_text, *target_text, *unused_text, *weight_memory,
        *key_memory, *schema_text;

    mrc_synth *synth;    /* generator of synthetic samples; owned unless `borrowed`; NULL if samples are stored */
    int64_t synth_first; /* index of the first sample in the infinite sequence */
};

/* Copies samples rows[i], or first + i if rows is NULL, i < x->rows, into x, which has the dataset's dtype. Also copies
   their targets into y (f32 or f64; one-hot for classes) and their class numbers into labels, unless these are NULL.
   Row numbers must be in range. */
void mrc_dataset_fetch(const mercer_dataset *dataset, const int64_t *rows, int64_t first, const mercer_matrix *x,
                       const mercer_matrix *y, int32_t *labels);
/* Writes the target of one stored sample into row i of y. */
void mrc_dataset_target(const mercer_dataset *dataset, int64_t row, const mercer_matrix *y, int64_t i);

/* Returns the part that contains stored sample `row`. The part borrows the memory of the dataset. */
mrc_part mrc_dataset_part(const mercer_dataset *dataset, int64_t row);
/* Returns whether samples are read from a mapped file on access. */
bool mrc_dataset_is_mapped(const mercer_dataset *dataset);
/* Returns MERCER_ERROR_IO if a file that samples or targets are mapped from was truncated or modified. Thread-safe. */
mercer_status mrc_dataset_check(const mercer_dataset *dataset);
/* Returns whether targets are stored values, of type y.dtype. */
bool mrc_dataset_has_values(const mercer_dataset *dataset);
/* Calls `give` (mrc_mapping_release or another hint to the system) for the mapped bytes of samples first .. first +
   count - 1. Thread-safe. */
typedef void (*mrc_mapping_hint)(const mrc_mapping *mapping, int64_t offset, int64_t bytes);
void mrc_dataset_hint(const mercer_dataset *dataset, mrc_mapping_hint give, int64_t first, int64_t count);
void mrc_parts_free(mercer_context *context, mrc_parts *parts);

/* Opens a dataset. The options must have been checked as far as possible without the files. */
mercer_status mrc_dataset_open(mercer_dataset **out, mercer_context *context, const mercer_dataset_options *options);
/* Copies rows rows[0 .. count - 1], which must be in range, into a new dataset in memory. */
mercer_status mrc_dataset_take(mercer_dataset **out, const mercer_dataset *from, const int64_t *rows, int64_t count);
/* Makes a view of rows first .. first + rows - 1, in the same files and memory: `from` must outlive the view. For
   synthetic samples the range may go beyond from->rows. */
mercer_status mrc_dataset_range(mercer_dataset **out, const mercer_dataset *from, int64_t first, int64_t rows);
/* Makes a dataset of arrays, which must have been checked. The dataset borrows the arrays and copies names and
   schema. */
mercer_status mrc_dataset_from_arrays(mercer_dataset **out, mercer_context *context,
                                      const mercer_dataset_arrays *arrays);
/* Makes a dataset of columns in memory, encoded by `schema`. If `schema` is NULL, a schema is inferred from the
   columns. count and rows must be at least 1. */
mercer_status mrc_dataset_from_columns(mercer_dataset **out, mercer_context *context,
                                       const mercer_table_column *columns, int64_t count, int64_t rows,
                                       const char *schema);
/* Allocates weights (rows), uninitialized and owned by the dataset, that replace its previous weights. */
mercer_status mrc_dataset_make_weights(mercer_dataset *dataset, double **weights);
/* Allocates keys (rows) of a kind in the same way. */
mercer_status mrc_dataset_make_keys(mercer_dataset *dataset, mrc_key_kind kind, double **keys);
/* Copies names (count) into one allocation, which *memory and *list then point to. Does nothing if names is NULL. */
mercer_status mrc_dataset_copy_names(mercer_dataset *dataset, const char *const *names, int64_t count, void **memory,
                                     const char *const **list);
/* Copies a schema's text into the dataset. Does nothing if text is NULL. */
mercer_status mrc_dataset_copy_schema(mercer_dataset *dataset, const char *text);

/* Schema, names and sizes that a dataset must match, for example those of the model that is to predict it. */
typedef struct mrc_sample_form {
    const char *whose;                /* owner of the form in messages, such as "the model" */
    const char *schema;               /* NULL: none */
    const char *const *feature_names; /* (features); NULL: columns are matched by position */
    const char *const *labels;        /* (outputs) class names, or NULL */
    int64_t features, outputs;
} mrc_sample_form;
/* Checks that the dataset (`what` in messages) matches the form. Schemas must be equal, but samples that were not read
   from a table are features already and need no schema. Column names and class names are compared if both have them.
   Fails with MERCER_ERROR_MISMATCH, or with MERCER_ERROR_SHAPE if the number of features differs. */
mercer_status mrc_dataset_check_form(mercer_context *context, const mercer_dataset *data, const char *what,
                                     const mrc_sample_form *form);

/* Format of a written file. */
typedef enum mrc_write_form { MRC_WRITE_NPY, MRC_WRITE_CSV, MRC_WRITE_TSV } mrc_write_form;
typedef struct mrc_dataset_file {
    const char *path;
    mrc_write_form form;
} mrc_dataset_file;
/* Sets file->form from the ending of its path; fails if the ending is unknown. */
mercer_status mrc_dataset_file_form(mercer_context *context, mrc_dataset_file *file);
/* Writes samples and, unless `targets` is NULL, targets. Each file is written atomically, and neither appears before
   both are complete. */
mercer_status mrc_dataset_write(const mercer_dataset *dataset, const mrc_dataset_file *samples,
                                const mrc_dataset_file *targets);
mercer_status mrc_matrix_write_npy(mercer_context *context, const mercer_matrix *matrix, const char *path);

/* Returns the name of class k. If classes have no names, prints its number into `number` and returns that. */
enum { MRC_CLASS_CHARS = 40 };
const char *mrc_dataset_class_name(const mercer_dataset *dataset, int64_t k, char number[MRC_CLASS_CHARS]);

/* fingerprint.c: hashes shape, samples, targets and class names. If samples take more than `most` bytes, only blocks
   spread over them are hashed. */
mercer_status mrc_dataset_hash(const mercer_dataset *dataset, int64_t most, uint64_t *out);

/* Implementations of mercer_dataset_fingerprint and mercer_dataset_checksum. */
mercer_status mrc_dataset_fingerprint(const mercer_dataset *dataset, uint64_t *out);
mercer_status mrc_dataset_checksum(const mercer_dataset *dataset, uint64_t *out);

#endif

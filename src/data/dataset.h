/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data: samples and targets, from files to batches.
 *
 * files/ finds and reads files, table/ those of text, synth/ computes samples, prepare/ has preprocessing and
 * augmentation, stream/ the order of samples. This folder opens, writes and takes parts of datasets.
 *
 * A dataset has n samples of d features, stored (in memory or mapped from files) or computed when read, and targets.
 * Rows of one file are a matrix; rows of several files stay where they are, as a list of parts. All reading goes
 * through mrc_dataset_fetch, which neither allocates nor fails, so that a background thread may call it.
 */
#ifndef MRC_DATA_DATASET_H
#define MRC_DATA_DATASET_H

#include "core/context.h"
#include "core/file/file.h"

#include <stdbool.h>

typedef struct mrc_synth mrc_synth; /* data/synth/synth.h */

/* Rows that are contiguous. */
typedef struct mrc_part {
    int64_t first;      /* number of its first row */
    mercer_matrix rows; /* at least one */
    mrc_mapping map;    /* the mapping that holds them, or empty */
    void *memory;       /* or the memory that holds them; NULL */
} mrc_part;

typedef struct mrc_parts {
    mrc_part *list; /* (count), in the order of their rows */
    int64_t count;  /* 0: the rows are one matrix, which is kept elsewhere */
} mrc_parts;

/* What keys of rows say: which belong together, or when they were. */
typedef enum mrc_key_kind { MRC_KEYS_NONE, MRC_KEYS_GROUPS, MRC_KEYS_TIMES } mrc_key_kind;

struct mercer_dataset {
    mercer_context *context;
    const char *format; /* static text */
    mercer_task task;
    int64_t rows, features, outputs;
    mercer_dtype dtype;
    mercer_matrix x; /* (rows, features); data is NULL if synthetic or in parts */
    mercer_matrix
        y; /* (rows, outputs) f32 or f64 targets; data is NULL in parts; all 0 unless they are stored values */
    mercer_matrix there; /* the same samples as x on the device of the context, the caller's; data is NULL: x alone */
    int32_t *labels;     /* (rows) class numbers; NULL unless classification with stored labels */
    const char *const *label_names;   /* (outputs), or NULL */
    const char *const *feature_names; /* (features), or NULL */
    const char *const *target_names;  /* of the columns of targets: 1 for classes, else (outputs); or NULL */
    const char *const *unused_names;  /* (unused), or NULL */
    int64_t unused;                   /* columns of the file that are neither features nor targets */
    int64_t distinct;                 /* different targets, if they are whole numbers in one column; else 0 */
    int64_t height, width, channels;  /* of images, or 0 */
    const double *weights;            /* (rows) >= 0, how often a sample counts; NULL: once each */
    const double *keys;               /* (rows), or NULL: */
    mrc_key_kind key_kind;            /* of what */
    const char *schema;               /* of the table that features were made of (data/schema); NULL: none */
    int64_t left_out;                 /* rows of the file that have no target */

    /* The memory of the views above; released by mrc_dataset_free, but for maps, parts and computed samples that are
       another dataset's. */
    bool borrowed;
    bool spilled; /* x_map is a temporary file: what has been read of it is given back to the system */
    mrc_mapping x_map, y_map;
    mrc_parts x_parts, y_parts;
    void *x_memory, *y_memory, *label_memory, *label_text, *feature_text, *target_text, *unused_text, *weight_memory,
        *key_memory, *schema_text;

    mrc_synth *synth;    /* NULL if stored */
    int64_t synth_first; /* number of the first sample in the endless sequence */
};

/* Samples rows[i], or first + i if rows is NULL, i < x->rows: into x, of the dataset's dtype; their targets into y (f32
   or f64; one-hot for classes) unless NULL; class numbers into labels unless NULL. Row numbers are in range. */
void mrc_dataset_fetch(const mercer_dataset *dataset, const int64_t *rows, int64_t first, const mercer_matrix *x,
                       const mercer_matrix *y, int32_t *labels);
/* The target of one stored sample, into row i of y. */
void mrc_dataset_target(const mercer_dataset *dataset, int64_t row, const mercer_matrix *y, int64_t i);

/* The stored samples with number `row` and those around it, in place. Borrowed. */
mrc_part mrc_dataset_part(const mercer_dataset *dataset, int64_t row);
/* Whether samples are read from a file when they are needed. */
bool mrc_dataset_is_mapped(const mercer_dataset *dataset);
/* MERCER_ERROR_IO if a file that samples or targets are mapped from was cut or written to. Any thread. */
mercer_status mrc_dataset_check(const mercer_dataset *dataset);
/* Whether targets are stored values, of type y.dtype. */
bool mrc_dataset_has_values(const mercer_dataset *dataset);
/* A hint to the system about samples first .. first + count - 1 that are mapped. Any thread. */
typedef void (*mrc_mapping_hint)(const mrc_mapping *mapping, int64_t offset, int64_t bytes);
void mrc_dataset_hint(const mercer_dataset *dataset, mrc_mapping_hint give, int64_t first, int64_t count);
void mrc_parts_free(mercer_context *context, mrc_parts *parts);

/* The options have been checked as far as is possible without the files. */
mercer_status mrc_dataset_open(mercer_dataset **out, mercer_context *context, const mercer_dataset_options *options);
/* Rows rows[0 .. count - 1], which are in range, copied. */
mercer_status mrc_dataset_take(mercer_dataset **out, const mercer_dataset *from, const int64_t *rows, int64_t count);
/* Rows first .. first + rows - 1 where they are, in the same files and memory: `from` must outlive it. Of computed
   samples there are as many as one likes. */
mercer_status mrc_dataset_range(mercer_dataset **out, const mercer_dataset *from, int64_t first, int64_t rows);
/* Samples in the caller's memory; the arrays have been checked. */
mercer_status mrc_dataset_from_arrays(mercer_dataset **out, mercer_context *context,
                                      const mercer_dataset_arrays *arrays);
/* Samples made of columns in memory, by a schema or by one that is found; the columns have been counted. */
mercer_status mrc_dataset_from_columns(mercer_dataset **out, mercer_context *context,
                                       const mercer_table_column *columns, int64_t count, int64_t rows,
                                       const char *schema);
/* Own weights (rows), not set, in place of those that the dataset has. */
mercer_status mrc_dataset_make_weights(mercer_dataset *dataset, double **weights);
/* The same for keys. */
mercer_status mrc_dataset_make_keys(mercer_dataset *dataset, mrc_key_kind kind, double **keys);
/* A copy of names, its memory and the list that lies there; NULL: none. */
mercer_status mrc_dataset_copy_names(mercer_dataset *dataset, const char *const *names, int64_t count, void **memory,
                                     const char *const **list);
/* A copy of a schema's text; NULL: none. */
mercer_status mrc_dataset_keep_schema(mercer_dataset *dataset, const char *text);

/* What samples must agree in to have the same features and classes. */
typedef struct mrc_sample_form {
    const char *whose;                /* in messages: "the model" */
    const char *schema;               /* NULL: none */
    const char *const *feature_names; /* (features), or NULL: columns go by position */
    const char *const *labels;        /* (outputs) names of classes, or NULL */
    int64_t features, outputs;
} mrc_sample_form;
/* MERCER_ERROR_MISMATCH unless the dataset, `what` in messages, has the schema, the column names and the classes of the
   form, as far as both have them; MERCER_ERROR_SHAPE for another number of features. Samples that are not read from a
   table have features already and need no schema. */
mercer_status mrc_dataset_check_form(mercer_context *context, const mercer_dataset *data, const char *what,
                                     const mrc_sample_form *form);

/* What a file is written as. */
typedef enum mrc_write_form { MRC_WRITE_NPY, MRC_WRITE_CSV, MRC_WRITE_TSV } mrc_write_form;
typedef struct mrc_dataset_file {
    const char *path;
    mrc_write_form form;
} mrc_dataset_file;
/* The form that the path ends in; a failure if it is none. */
mercer_status mrc_dataset_file_form(mercer_context *context, mrc_dataset_file *file);
/* Writes samples and, unless NULL, targets, atomically: both files appear, or neither does. */
mercer_status mrc_dataset_write(const mercer_dataset *dataset, const mrc_dataset_file *samples,
                                const mrc_dataset_file *targets);
mercer_status mrc_matrix_write_npy(mercer_context *context, const mercer_matrix *matrix, const char *path);

/* The name of class k, or its number where classes have no names. */
enum { MRC_CLASS_CHARS = 40 };
const char *mrc_dataset_class_name(const mercer_dataset *dataset, int64_t k, char number[MRC_CLASS_CHARS]);

/* fingerprint.c: of samples that take more than `most` bytes, blocks spread over them stand for all. */
mercer_status mrc_dataset_hash(const mercer_dataset *dataset, int64_t most, uint64_t *out);

/* The public functions of the same names, without mercer_. */
mercer_status mrc_dataset_fingerprint(const mercer_dataset *dataset, uint64_t *out);
mercer_status mrc_dataset_checksum(const mercer_dataset *dataset, uint64_t *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What opening samples and opening targets share: the files of a name, and arrays whose rows follow each other. */
#ifndef MRC_DATA_OPENING_H
#define MRC_DATA_OPENING_H

#include "data/files/array.h"
#include "data/files/readers.h"

typedef struct mrc_names {
    const char **list; /* (count), with their texts in one block of memory */
    int64_t count;     /* at least 1 */
} mrc_names;

/*
 * `name` is a file, or its last component has wildcards (* ? [...]) and no file has that very name: then the files of
 * the folder that match, hidden ones only if the pattern begins with a dot. Numbers inside names are compared as
 * numbers, so part-2 comes before part-10. MERCER_ERROR_MISSING if nothing matches. mrc_names_free releases
 * what it found, or had found when it failed.
 */
mercer_status mrc_names_find(mrc_names *out, mercer_context *context, const char *name);
void mrc_names_free(mercer_context *context, mrc_names *names);

typedef struct mrc_opening {
    mercer_context *context;
    const mercer_dataset_options *options;
    mercer_dataset *dataset;
    mrc_budget budget;
    mrc_slice slice; /* of all samples */
} mrc_opening;

/* What the options allow. */
mrc_budget mrc_budget_of(const mercer_dataset_options *options);

/* The files that one name means, in their order. */
typedef struct mrc_files {
    mercer_context *context;
    const char *name; /* as it was given; borrowed */
    mrc_names names;
    mrc_input *inputs; /* (names.count) */
    mrc_array *arrays; /* (names.count) once mrc_files_parse was called, else NULL */
    const mrc_format *format;
} mrc_files;

/* Opens all of them and finds their format. They are to be closed even if that fails. */
mercer_status mrc_files_open(mrc_files *out, mrc_opening *opening, const char *name, const char *format, bool targets);
void mrc_files_close(mrc_files *files);
/* How files of text are to be read; and its end, where the targets that were read go. */
mrc_reading mrc_opening_reading(const mrc_opening *opening, const mrc_files *files);
void mrc_reading_close(mrc_reading *reading);
/* Targets that were collected become those of the dataset. */
mercer_status mrc_opening_settle(mrc_opening *opening, mrc_targets *targets);
/* Files of arrays: reads what their headers say, checks that they agree; the number of rows in all. */
mercer_status mrc_files_parse(mrc_files *files, const char *raw, int64_t *total);
/* Rows of file i that belong to the slice: from *first on, counted in the file; *rows may be 0. `before`: rows of the
   files before it. */
void mrc_files_overlap(const mrc_files *files, const mrc_slice *slice, int64_t i, int64_t before, int64_t *first,
                       int64_t *rows);
/* The rows of the slice as parts, in place where possible; the parts own their memory. `real`: as f32 or f64. */
mercer_status mrc_files_parts(mrc_files *files, const mrc_slice *slice, bool real, mrc_parts *parts);
/* A single part becomes the matrix and its memory; several stay parts, and the matrix gets their shape without
   data. */
void mrc_parts_settle(mercer_context *context, mrc_parts *parts, mercer_matrix *matrix, mrc_mapping *map,
                      void **memory);

/* Targets in files of their own, for the samples that the dataset has. */
mercer_status mrc_open_targets(mrc_opening *opening);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by open.c and open_targets.c: finding and opening the files of a name, and concatenating the rows
   of array files. */
#ifndef MRC_DATA_OPENING_H
#define MRC_DATA_OPENING_H

#include "data/files/array.h"
#include "data/files/readers.h"

enum { MRC_NAME_SEPARATOR = 0x1f }; /* separates several names in one string: the ASCII unit separator */

typedef struct mrc_names {
    const char **list; /* (count) paths; list and strings are one allocation */
    int64_t count;     /* at least 1 */
} mrc_names;

/*
 * Finds the files of `name`: the file of exactly that name if it exists, else, if the last component has wildcards (* ?
 * [...]), the matching files of the folder; hidden files match only if the pattern begins with a dot. Numbers inside
 * names are compared as numbers, so part-2 comes before part-10. If `name` is several names or patterns with
 * separators, the list has the files of each in this order. A name without wildcards is listed even if the file does
 * not exist. Fails with MERCER_ERROR_MISSING if a pattern matches no file. mrc_names_free releases the list, also after
 * a failure.
 */
mercer_status mrc_names_find(mrc_names *out, mercer_context *context, const char *name);
void mrc_names_free(mercer_context *context, mrc_names *names);

typedef struct mrc_opening {
    mercer_context *context;
    const mercer_dataset_options *options;
    /* dataset that is being filled; NULL if only the files are opened (table/column_texts.c) */
    mercer_dataset *dataset;
    /* memory limit for samples and targets together; every mrc_input points to this field, so the struct must not
       move */
    mrc_budget budget;
    mrc_slice slice; /* range of samples, counted over all files */
} mrc_opening;

/* Returns the memory budget that the options allow. */
mrc_budget mrc_budget_of(const mercer_dataset_options *options);

/* The files that one name or pattern stands for, in order. */
typedef struct mrc_files {
    mercer_context *context;
    const char *name; /* as given by the caller; borrowed */
    mrc_names names;
    mrc_input *inputs; /* (names.count) */
    mrc_array *arrays; /* (names.count); NULL before mrc_files_parse */
    const mrc_format *format;
} mrc_files;

/* Opens all files of a name and finds their format. The caller must close them even if this fails. */
mercer_status mrc_files_open(mrc_files *out, mrc_opening *opening, const char *name, const char *format, bool targets);
void mrc_files_close(mrc_files *files);
/* Returns the input of a reader for these files. mrc_reading_close releases the targets that the reader has
   collected. */
mrc_reading mrc_opening_reading(const mrc_opening *opening, const mrc_files *files);
void mrc_reading_close(mrc_reading *reading);
/* Moves the collected targets into the dataset, as classes or values. */
mercer_status mrc_opening_finish_targets(mrc_opening *opening, mrc_targets *targets);
/* Array files: reads the headers, checks that they agree, and sets *total to the total number of rows. `raw` is the
   shape of files without a header. */
mercer_status mrc_files_parse(mrc_files *files, const char *raw, int64_t *total);
/* Finds the rows of file i that belong to the slice: *rows rows (may be 0) from row *first of the file on. `before` is
   the number of rows in the preceding files. */
void mrc_files_overlap(const mrc_files *files, const mrc_slice *slice, int64_t i, int64_t before, int64_t *first,
                       int64_t *rows);
/* Makes the parts for the rows of the slice, without copying rows where possible. The parts own their memory or
   mapping. `real`: rows are f32 or f64. */
mercer_status mrc_files_parts(mrc_files *files, const mrc_slice *slice, bool real, mrc_parts *parts);
/* Moves a single part into *matrix, *map and *memory. Several parts stay in *parts, and *matrix gets their shape
   without data. */
void mrc_parts_finish(mercer_context *context, mrc_parts *parts, mercer_matrix *matrix, mrc_mapping *map,
                      void **memory);

/* Opens separate files of targets for the dataset's samples. */
mercer_status mrc_open_targets(mrc_opening *opening);

#endif

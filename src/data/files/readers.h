/* SPDX-License-Identifier: BSD-3-Clause */
/* File formats and the interface of their readers. */
#ifndef MRC_DATA_FILES_READERS_H
#define MRC_DATA_FILES_READERS_H

#include "data/files/array.h"
#include "data/targets.h"

enum { MRC_FORMAT_ENDINGS = 6 };

typedef struct mrc_format mrc_format;

/* Requested range of rows. */
typedef struct mrc_slice {
    int64_t first, rows; /* first row and number of rows; if `rows` is 0, all rows from `first` on */
    int64_t total;       /* number of rows in all files; set by the reader */
} mrc_slice;

/* Checks the range against `total`, the number of rows in the files of `name`. Sets slice->total, and slice->rows if it
   is 0. */
mercer_status mrc_slice_resolve(mrc_slice *slice, mercer_context *context, const char *name, int64_t total);

/* Input and result of a reader that fills a dataset. */
typedef struct mrc_reading {
    const mrc_input *input; /* (count) files, read in this order; borrowed */
    int64_t count;
    const char *name; /* name that stands for all files in messages */
    const mercer_dataset_options *options;
    const mrc_format *format;
    mrc_slice slice;
    bool want_targets;   /* true: collect the targets in the files of samples */
    mrc_targets targets; /* opened by the reader if have_targets */
    bool have_targets;
} mrc_reading;

/* A file format: an entry of the list in formats.c, defined at the end of its reader. Every function may be NULL. */
struct mrc_format {
    const char *name;
    const char *endings[MRC_FORMAT_ENDINGS]; /* file name suffixes; unused entries are NULL */
    bool has_header;                         /* true: a valid file is never empty */
    bool sparse;                             /* true: zeros are meaningful; preprocessing should preserve them */
    bool labels;                             /* true: integers in a file of targets are class labels */
    bool no_targets;                         /* true: files with only targets cannot have this format */
    char separator;                          /* column separator of a table; newline: a single column; 0: detect it */
    /* is_marked: returns whether the file begins with the magic bytes of the format. looks_like: returns whether text
       could be in this format; called if neither magic bytes nor the file name determine the format, from the last
       format of the list to the first. targets: whether the file is supposed to contain only targets. */
    bool (*is_marked)(const mrc_input *input);
    bool (*looks_like)(const mrc_input *input, bool targets);
    /* Array formats: parse the header and check it against the file size, without copying data. shape: layout given by
       the caller, for formats without a header. */
    mercer_status (*parse)(mrc_array *out, const mrc_input *input, const char *shape);
    /* Other formats: fill the dataset with dense samples and collect its targets. */
    mercer_status (*read_samples)(mrc_reading *reading, mercer_dataset *dataset);
    /* Read files that contain only targets, for `expected` samples: all columns, or the columns that the options name.
       Several columns become the dataset's values directly; a single column is collected in reading->targets, because
       its values may be classes (mrc_targets_finish). */
    mercer_status (*read_targets)(mrc_reading *reading, mercer_dataset *dataset, int64_t expected);
};

extern const mrc_format *const mrc_formats[]; /* NULL at the end */
extern const mrc_format mrc_format_parquet;

/* Returns the format with this name, or NULL. */
const mrc_format *mrc_format_find(const char *name);
/* Returns whether files of the format may contain samples or, with `targets`, only targets. */
bool mrc_format_holds(const mrc_format *format, bool targets);
/* Finds the common format of the files of one dataset. This is the format called `name`. If `name` is NULL or "auto",
   the format is detected from content and file names. Different formats are an error; an empty file matches every
   format that needs no header. */
mercer_status mrc_format_of_files(const mrc_format **out, const mrc_input *inputs, int64_t count, const char *name,
                                  bool targets);

#endif

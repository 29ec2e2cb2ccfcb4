/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats of files: what a reader is. */
#ifndef MRC_DATA_FILES_READERS_H
#define MRC_DATA_FILES_READERS_H

#include "data/files/array.h"
#include "data/targets.h"

enum { MRC_FORMAT_ENDINGS = 6 };

typedef struct mrc_format mrc_format;

/* Which rows are wanted. */
typedef struct mrc_slice {
    int64_t first, rows; /* rows 0: all of the rest */
    int64_t total;       /* rows of all files; set by the reader */
} mrc_slice;

/* The files of `name` have `total` rows: checks the range and sets how many are wanted. */
mercer_status mrc_slice_settle(mrc_slice *slice, mercer_context *context, const char *name, int64_t total);

/* What a reader of text gets and gives. */
typedef struct mrc_reading {
    const mrc_input *input; /* (count) the files, read one after the other */
    int64_t count;
    const char *name; /* of all of them, for messages */
    const mercer_dataset_options *options;
    const mrc_format *format;
    mrc_slice slice;
    bool want_targets;   /* of the file of samples: they are in it */
    mrc_targets targets; /* opened by the reader if it found any */
    bool have_targets;
} mrc_reading;

/* One row of the list in formats.c, at the end of the file that reads it. Every function may be NULL. */
struct mrc_format {
    const char *name;
    const char *endings[MRC_FORMAT_ENDINGS]; /* of file names, up to the first NULL */
    bool has_header;                         /* no file of it is empty */
    bool sparse;                             /* zeros mean something: a preprocessing should keep them */
    bool labels;                             /* whole numbers in a file of targets are classes */
    bool no_targets;                         /* a file of it is never one of targets alone */
    char separator; /* of the columns of a table; newline: there is one column; 0: the text shows it */
    /* The first bytes are its mark. And: it is text that looks like it, where neither a mark nor the name tells; asked
       from the last row to the first, `targets` if the file should hold nothing but targets. */
    bool (*is_marked)(const mrc_input *input);
    bool (*looks_like)(const mrc_input *input, bool targets);
    /* Arrays: what the file says, checked against its size; nothing is copied. shape: of a file without a header. */
    mercer_status (*parse)(mrc_array *out, const mrc_input *input, const char *shape);
    /* Text: a dataset is filled with dense samples in memory, its targets are collected. */
    mercer_status (*read_samples)(mrc_reading *reading, mercer_dataset *dataset);
    /* Targets alone for `expected` samples: all columns, or those named by the options. Several are the dataset's
       values at once; a single one stays in reading->targets, for mrc_targets_settle. */
    mercer_status (*read_targets)(mrc_reading *reading, mercer_dataset *dataset, int64_t expected);
};

extern const mrc_format *const mrc_formats[]; /* NULL at the end */

/* NULL if there is none of that name. */
const mrc_format *mrc_format_find(const char *name);
/* Whether files of it may be samples, or targets alone. */
bool mrc_format_holds(const mrc_format *format, bool targets);
/* The format of files of one dataset, which must be the same: that of `name`, or if it is NULL or "auto" the one that
   content and file name show. Files without a byte have any that needs no header. */
mercer_status mrc_format_of_files(const mrc_format **out, const mrc_input *inputs, int64_t count, const char *name,
                                  bool targets);

#endif

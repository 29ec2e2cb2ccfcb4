/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of text: they fill a dataset with dense samples in memory and collect the targets. */
#ifndef MRC_DATA_FILES_READERS_H
#define MRC_DATA_FILES_READERS_H

#include "data/files/input.h"
#include "data/targets.h"

/* Which rows are wanted. */
typedef struct mrc_slice {
    int64_t first, rows; /* rows 0: all of the rest */
    int64_t total;       /* rows of all files; set by the reader */
} mrc_slice;

/* The files of `name` have `total` rows: checks the range and sets how many are wanted. */
mercer_status mrc_slice_settle(mrc_slice *slice, mercer_context *context, const char *name, int64_t total);

typedef struct mrc_reading {
    const mrc_input *input; /* (count) the files, read one after the other */
    int64_t count;
    const char *name; /* of all of them, for messages */
    const mercer_dataset_options *options;
    mrc_format format;
    mrc_slice slice;
    bool want_targets;   /* of the file of samples: they are in it */
    mrc_targets targets; /* opened by the reader if it found any */
    bool have_targets;
} mrc_reading;

mercer_status mrc_csv_samples(mrc_reading *reading, mercer_dataset *dataset);
/* A file of targets alone for `expected` samples: all columns, or those named by the options. Several are the dataset's
   values at once; a single one stays in reading->targets, for mrc_targets_settle. */
mercer_status mrc_csv_targets(mrc_reading *reading, mercer_dataset *dataset, int64_t expected);
mercer_status mrc_libsvm_samples(mrc_reading *reading, mercer_dataset *dataset);

#endif

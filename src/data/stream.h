/* SPDX-License-Identifier: BSD-3-Clause */
/* A source of batches over a dataset: shuffled, augmented, preprocessed, read ahead by a thread. */
#ifndef MRC_DATA_STREAM_H
#define MRC_DATA_STREAM_H

#include "data/dataset.h"
#include "data/preprocess.h"

typedef struct mrc_data_stream_options {
    uint64_t seed;
    const double *weights; /* (rows) of the samples, or NULL */
    const mercer_preprocess *preprocess;
    const char *augment;
    int64_t height, width, channels;
    int64_t samples, block;
    mercer_switch prefetch;
    int threads; /* that make samples; 0: one. More where the processors have nothing else to do */
} mrc_data_stream_options;

/* What the dataset's views and the options point to is borrowed; the struct itself is copied. Its targets are y, labels or
   computed. Arguments have been checked, except the text of the augmentation. */
mercer_status mrc_data_stream_create(mercer_source *out, mercer_context *context, const mercer_dataset *data,
                                     const mrc_data_stream_options *options);

#endif

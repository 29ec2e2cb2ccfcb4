/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/stream: a dataset as a source of batches: shuffled (order.h), augmented, preprocessed, read ahead by a thread.
 *
 * The order is a function of (seed, pass, sizes) and an augmented sample one of (seed, pass, place): nothing depends on
 * the sizes of batches, on threads or on time, and any place of any pass can be found again.
 */
#ifndef MRC_DATA_STREAM_DATASET_STREAM_H
#define MRC_DATA_STREAM_DATASET_STREAM_H

#include "data/dataset.h"
#include "data/prepare/preprocess.h"

/* Beside what any caller may set. */
typedef struct mrc_data_stream_options {
    mercer_stream_options stream;
    const double *weights; /* (rows) of the samples; NULL: those of the dataset */
    int threads;           /* that make samples; 0: one. More where the processors have nothing else to do */
} mrc_data_stream_options;

/* What the dataset's views and the options point to is borrowed; the struct itself is copied. Its targets are y, labels
   or computed. Arguments have been checked, except the text of the augmentation. */
mercer_status mrc_data_stream_create(mercer_source *out, mercer_context *context, const mercer_dataset *data,
                                     const mrc_data_stream_options *options);

/* The dataset, if every batch of the source is nothing but rows of it, preprocessed, with their numbers; else NULL.
   *preprocess: what is done to them, NULL: nothing. */
const mercer_dataset *mrc_data_stream_rows_of(const mercer_source *source, const mercer_preprocess **preprocess);
/* For such a source: the numbers of the next samples, at most `most`, in place of the samples; tells how many. */
int64_t mrc_data_stream_rows(const mercer_source *source, int64_t most, int64_t *rows);
/* Weights of all its samples, or NULL. */
const double *mrc_data_stream_weights(const mercer_source *source);
/* The heaviest of them over their mean; 0 without weights, and for sources of another kind. */
double mrc_data_stream_unevenness(const mercer_source *source);

#endif

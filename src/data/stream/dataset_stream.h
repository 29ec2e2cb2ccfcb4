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
#include "data/prepare/augment.h"
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

/* What the batches of a source are made of: rows of a dataset, augmented, then preprocessed. */
typedef struct mrc_stream_contents {
    const mercer_dataset
        *data; /* NULL: it is a source of another kind, or which rows are mixed is found in order only */
    const mrc_augment *augment;          /* NULL: rows as they are */
    const mercer_preprocess *preprocess; /* NULL: none */
    bool names_rows;                     /* batches have the numbers of their rows */
    bool again;                          /* a pass has rows more than once, or changed ones */
} mrc_stream_contents;

mrc_stream_contents mrc_data_stream_contents(const mercer_source *source);

/* For a source that has them: the numbers of the next samples, at most `most`, in place of the samples; tells how many.
   They are samples first, first + 1, ... of the pass. */
typedef struct mrc_stream_samples {
    int64_t pass, first;
    int64_t *rows;                    /* (most) of the dataset */
    int64_t *partners, *partner_rows; /* (most) if they are mixed: with these samples, of these rows, and */
    double *shares;                   /* with these shares of their own */
} mrc_stream_samples;

int64_t mrc_data_stream_take(const mercer_source *source, int64_t most, mrc_stream_samples *out);
/* Weights of all its samples, or NULL. */
const double *mrc_data_stream_weights(const mercer_source *source);
/* The heaviest of them over their mean; 0 without weights, and for sources of another kind. */
double mrc_data_stream_unevenness(const mercer_source *source);

#endif

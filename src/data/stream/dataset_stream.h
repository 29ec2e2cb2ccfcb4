/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/stream: datasets as sources of batches: shuffled (order.h), augmented, preprocessed, read ahead by a thread.
 *
 * The order is a function of (seed, pass, sizes), and an augmented sample is a function of (seed, pass, position).
 * Nothing depends on batch sizes, threads or time, and any position of any pass can be reproduced.
 */
#ifndef MRC_DATA_STREAM_DATASET_STREAM_H
#define MRC_DATA_STREAM_DATASET_STREAM_H

#include "data/dataset.h"
#include "data/prepare/augment.h"
#include "data/prepare/preprocess.h"

/* The public stream options and additional internal options. */
typedef struct mrc_data_stream_options {
    mercer_stream_options stream;
    const double *weights; /* (rows) sample weights, borrowed; NULL: the weights of the dataset */
    int threads; /* number of threads that produce samples; 0: one. More are useful only if processors would be idle */
} mrc_data_stream_options;

/* Creates a source over a dataset. The struct *data is copied; the memory that its views and the options point to is
   borrowed. The caller has checked the arguments, except the specification of the augmentation. */
mercer_status mrc_data_stream_create(mercer_source *out, mercer_context *context, const mercer_dataset *data,
                                     const mrc_data_stream_options *options);

/* How the batches of a source are produced: rows of a dataset, augmented, then preprocessed. */
typedef struct mrc_stream_contents {
    const mercer_dataset
        *data; /* NULL: not a source over a dataset, or mixing partners can be determined only in reading order */
    const mrc_augment *augment;          /* NULL: none */
    const mercer_preprocess *preprocess; /* NULL: none */
    bool names_rows;                     /* true: batches report their row numbers */
    bool rows_vary;                      /* true: rows are repeated or changed within a pass or between passes */
} mrc_stream_contents;

mrc_stream_contents mrc_data_stream_contents(const mercer_source *source);

/* Row numbers of the consecutive samples first, first + 1, ... of a pass. The caller provides the arrays. */
typedef struct mrc_stream_samples {
    int64_t pass, first;
    int64_t *rows; /* (most) row numbers in the dataset */
    /* (most) with mixup: the sample that each sample is mixed with, and the row of this partner */
    int64_t *partners, *partner_rows;
    double *shares; /* (most) with mixup: weight of the sample itself, at most 1 */
} mrc_stream_samples;

/* Advances a source over a dataset by up to `most` samples, and writes their row numbers to `out` instead of producing
   the samples. Returns the number of samples. */
int64_t mrc_data_stream_take(const mercer_source *source, int64_t most, mrc_stream_samples *out);
/* Returns the weights of all rows of a source over a dataset, or NULL. */
const double *mrc_data_stream_weights(const mercer_source *source);
/* Returns the largest weight divided by the mean weight; 0 without weights and for sources of other kinds. */
double mrc_data_stream_unevenness(const mercer_source *source);

#endif

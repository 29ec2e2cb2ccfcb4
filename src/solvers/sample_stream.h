/* SPDX-License-Identifier: BSD-3-Clause */
/* Checked batches from a source. All algorithms read samples through this stream. */
#ifndef MRC_SOLVERS_SAMPLE_STREAM_H
#define MRC_SOLVERS_SAMPLE_STREAM_H

#include "core/numbers/units.h"
#include "kernels/kernel.h"

#include <stdbool.h>

typedef struct mrc_sample_stream {
    mercer_context *context;
    const mercer_source *source;
    /* if not NULL, X is checked so that values of this kernel are in the range of type real */
    const mercer_kernel *kernel;
    mercer_dtype real;
    bool rows_known; /* every batch so far had row numbers */
    double heaviest; /* largest sample weight seen; samples without a weight count 1 */
    double weight;   /* sum of the sample weights seen */
    int64_t weighed; /* number of samples in the sum `weight` */
    int64_t passes;  /* number of passes begun */
    int64_t in_pass; /* samples read in the current pass */
    /* Called before each batch unless NULL. If it sets *stop, reading fails with MERCER_ERROR_CALLBACK and sets
       stopped. */
    mercer_status (*poll)(void *user, bool *stop);
    void *poll_user;
    bool stopped;
    bool trusted;           /* values were checked before, and batches are in device memory of the trainer */
    bool new_points;        /* X is checked even if `trusted`, because X is generated for each batch */
    bool elsewhere;         /* the last batch was in device memory of the source */
    const mrc_units *units; /* units that targets are converted to; NULL: none */
    mercer_matrix entered;  /* (rows, c) owned buffer for converted targets */
} mrc_sample_stream;

/* Open a stream on a borrowed source, checked against the model's d and c. */
mercer_status mrc_sample_stream_open(mrc_sample_stream *out, mercer_context *context, const mercer_source *source,
                                     int64_t d, int64_t c);
void mrc_sample_stream_close(mrc_sample_stream *stream);
/* Begin a pass. Passes with the same number have the same order. */
mercer_status mrc_sample_stream_restart(mrc_sample_stream *stream, int64_t epoch);
/* Check the sample weights of a batch and add them to the stream's statistics. */
mercer_status mrc_sample_stream_weigh(mrc_sample_stream *stream, const mercer_batch *batch);
/* Skip the next `rows` samples. */
mercer_status mrc_sample_stream_skip(mrc_sample_stream *stream, int64_t rows);
/* Read the next batch of at most `most` rows, with shapes and values checked (finite, weights >= 0) and targets in the
   stream's units. 0 rows at the end of the pass. */
mercer_status mrc_sample_stream_next(mrc_sample_stream *stream, int64_t most, mercer_batch *batch);
/* Same as mrc_sample_stream_next, without the conversion of targets, for callers that do not use them. */
mercer_status mrc_sample_stream_points(mrc_sample_stream *stream, int64_t most, mercer_batch *batch);
/* Convert targets (m, c), not necessarily of this stream, to the stream's units. *y becomes a view of the stream's
   buffer, valid until the next call; without units it is unchanged. */
mercer_status mrc_sample_stream_to_units(mrc_sample_stream *stream, mercer_matrix *y);

#endif

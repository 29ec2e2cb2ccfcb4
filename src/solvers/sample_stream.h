/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches from a source, checked: what algorithms read. */
#ifndef MRC_SOLVERS_SAMPLE_STREAM_H
#define MRC_SOLVERS_SAMPLE_STREAM_H

#include "core/numbers/units.h"
#include "kernels/kernel.h"

#include <stdbool.h>

typedef struct mrc_sample_stream {
    mercer_context *context;
    const mercer_source *source;
    const mercer_kernel *kernel; /* unless NULL: values of it at the samples must fit type real */
    mercer_dtype real;
    bool rows_known; /* every batch so far said which samples it holds */
    double heaviest; /* largest sample weight seen; a sample that has none counts 1 */
    double weight;   /* sum of the weights seen, */
    int64_t weighed; /* of so many samples */
    int64_t passes;  /* passes begun */
    int64_t in_pass; /* samples of this pass so far */
    /* Asked before each batch, unless NULL; true makes reading fail with MERCER_ERROR_CALLBACK and sets stopped. */
    mercer_status (*poll)(void *user, bool *stop);
    void *poll_user;
    bool stopped;
    bool trusted;           /* values were checked before, and batches lie on the device in memory of the trainer's */
    bool new_points;        /* but for those of X, which are made for each batch */
    bool elsewhere;         /* the last batch lay on the device, in memory of the source's */
    const mrc_units *units; /* that targets are brought to; NULL: as they are */
    mercer_matrix entered;  /* (rows, c) room for targets that were brought to them */
} mrc_sample_stream;

/* Checks the source itself against the model's d and c. */
mercer_status mrc_sample_stream_open(mrc_sample_stream *out, mercer_context *context, const mercer_source *source,
                                     int64_t d, int64_t c);
void mrc_sample_stream_close(mrc_sample_stream *stream);
/* Begins a pass. Passes with the same number have the same order. */
mercer_status mrc_sample_stream_restart(mrc_sample_stream *stream, int64_t epoch);
/* Checks the sample weights of a batch and takes them into the stream's. */
mercer_status mrc_sample_stream_weigh(mrc_sample_stream *stream, const mercer_batch *batch);
/* Passes over the next `rows` samples. */
mercer_status mrc_sample_stream_skip(mrc_sample_stream *stream, int64_t rows);
/* The next batch, at most `most` rows, shapes and values checked (finite, weights >= 0), targets in the stream's
   units. 0 rows at the end of the pass. */
mercer_status mrc_sample_stream_next(mrc_sample_stream *stream, int64_t most, mercer_batch *batch);
/* The same for callers that do not use targets: these are not converted. */
mercer_status mrc_sample_stream_points(mrc_sample_stream *stream, int64_t most, mercer_batch *batch);
/* Targets (m, c) of whatever origin in the stream's units: *y becomes a view of the stream's own room, until the next
   call. */
mercer_status mrc_sample_stream_enter(mrc_sample_stream *stream, mercer_matrix *y);

#endif

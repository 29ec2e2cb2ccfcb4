/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches from a source, checked before they are used. */
#include "solvers/sample_stream.h"

#include "backends/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

enum {
    SKIP_ROWS = 2048,      /* rows per request when a source cannot skip, so that its batches stay small */
    PART_ROWS = 64,        /* rows of targets per task of the conversion */
    MANY_TARGETS = 1 << 16 /* smallest number of targets for which several threads are faster */
};

mercer_status mrc_sample_stream_open(mrc_sample_stream *out, mercer_context *context, const mercer_source *source,
                                     int64_t d, int64_t c)
{
    *out = (mrc_sample_stream){.context = context, .source = source, .rows_known = true};
    if (!source) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "source is NULL");
    if (source->struct_size < offsetof(mercer_source, skip))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "source: struct_size is wrong; set it to "
                        "sizeof(mercer_source)");
    if (!source->restart || !source->next)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "source: %s is NULL", source->next ? "restart" : "next");
    if (source->rows < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "source: has no samples");
    if (source->features != d)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "source: samples have %lld features, but the centers have %lld",
                        (long long)source->features, (long long)d);
    if (source->outputs != c)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "source: samples have %lld outputs, but the model has %lld",
                        (long long)source->outputs, (long long)c);
    return MERCER_OK;
}

void mrc_sample_stream_close(mrc_sample_stream *stream)
{
    if (stream->context) mrc_free(stream->context, stream->entered.data);
    stream->entered = (mercer_matrix){0};
}

static mercer_status fail_source(mrc_sample_stream *stream, const char *what)
{
    const mercer_source *source = stream->source;
    const char *text = source->last_error ? source->last_error(source->user) : NULL;
    char copy[MRC_ERROR_CHARS]; /* a copy, because the text may be in the buffer that mrc_fail writes to */
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    return mrc_fail(stream->context, MERCER_ERROR_CALLBACK, "source: %s failed%s%s", what, text ? ": " : "", copy);
}

mercer_status mrc_sample_stream_restart(mrc_sample_stream *stream, int64_t epoch)
{
    stream->passes++;
    stream->in_pass = 0;
    return stream->source->restart(stream->source->user, epoch) ? fail_source(stream, "restart") : MERCER_OK;
}

mercer_status mrc_sample_stream_weigh(mrc_sample_stream *stream, const mercer_batch *batch)
{
    for (int64_t i = 0; i < batch->X.rows; i++) {
        double weight = batch->weights ? batch->weights[i] : 1;
        if (!(weight >= 0) || isinf(weight))
            return mrc_fail(stream->context, MERCER_ERROR_DATA,
                            "source: sample weight %lld of a batch is %g; it must be >= 0", (long long)i, weight);
        stream->heaviest = fmax(stream->heaviest, weight);
        stream->weight += weight;
    }
    stream->weighed += batch->X.rows;
    return MERCER_OK;
}

/* Checks row numbers, which are used as indices. */
static mercer_status check_rows(mrc_sample_stream *stream, const mercer_batch *batch)
{
    if (!batch->rows) {
        stream->rows_known = false;
        return MERCER_OK;
    }
    for (int64_t i = 0; i < batch->X.rows; i++)
        if (batch->rows[i] < 0 || batch->rows[i] >= stream->source->rows)
            return mrc_fail(stream->context, MERCER_ERROR_DATA, "source: row number %lld is outside 0 .. %lld",
                            (long long)batch->rows[i], (long long)stream->source->rows - 1);
    return MERCER_OK;
}

static mercer_status check_points(mrc_sample_stream *stream, const mercer_matrix *x)
{
    mercer_dtype real = x->dtype == MERCER_F64 ? MERCER_F64 : stream->real;
    mrc_backend *backend = stream->context->backend;
    if (stream->kernel) return mrc_matrix_check_range(backend, stream->kernel, "source: X", x, real);
    return mrc_matrix_check_finite(backend, "source: X", x, NULL);
}

mercer_status mrc_sample_stream_points(mrc_sample_stream *stream, int64_t most, mercer_batch *batch)
{
    const mercer_source *source = stream->source;
    mrc_backend *backend = stream->context->backend;
    *batch = (mercer_batch)MERCER_INIT(mercer_batch);
    bool stop = false;
    if (stream->poll) MRC_TRY(stream->poll(stream->poll_user, &stop));
    if (stop) {
        stream->stopped = true;
        return mrc_fail(stream->context, MERCER_ERROR_CALLBACK, "stopped by the progress callback");
    }
    /* The source may now reuse its device batch, but operations on it may still be running. */
    if (stream->elsewhere) MRC_TRY(backend->ops->sync(backend));
    if (source->next(source->user, most, batch)) return fail_source(stream, "next");
    if (batch->X.rows == 0) return MERCER_OK;
    if (!stream->trusted) {
        MRC_TRY(mrc_backend_check_matrix(backend, "source: X", &batch->X, MRC_ACCEPT_ANY));
        MRC_TRY(mrc_backend_check_matrix(backend, "source: Y", &batch->Y, MRC_ACCEPT_REAL));
        stream->elsewhere = batch->X.memory != MRC_HOST || batch->Y.memory != MRC_HOST;
    }
    if (batch->X.rows > most)
        return mrc_fail(stream->context, MERCER_ERROR_SHAPE,
                        "source: a batch has %lld rows, but at most %lld were requested", (long long)batch->X.rows,
                        (long long)most);
    if (batch->X.dtype != source->dtype)
        return mrc_fail(stream->context, MERCER_ERROR_DTYPE, "source: X is %s, but the source declared %s",
                        mrc_dtype_name(batch->X.dtype), mrc_dtype_name(source->dtype));
    MRC_TRY(mrc_check_size(stream->context, "source: X", &batch->X, batch->X.rows, source->features));
    MRC_TRY(mrc_check_size(stream->context, "source: Y", &batch->Y, batch->X.rows, source->outputs));
    if (!stream->trusted || stream->new_points) MRC_TRY(check_points(stream, &batch->X));
    if (batch->Y.memory == MRC_HOST || !stream->trusted)
        MRC_TRY(mrc_matrix_check_finite(backend, "source: Y", &batch->Y, NULL));
    stream->in_pass += batch->X.rows;
    if (stream->in_pass > source->rows)
        return mrc_fail(stream->context, MERCER_ERROR_DATA,
                        "source: a pass has more than the %lld samples that the source declared",
                        (long long)source->rows);
    MRC_TRY(mrc_sample_stream_weigh(stream, batch));
    return check_rows(stream, batch);
}

static mercer_status reserve_targets(mrc_sample_stream *stream, const mercer_matrix *like)
{
    mercer_matrix *buffer = &stream->entered, made = mrc_view(NULL, like->rows, like->cols, like->dtype);
    if (buffer->rows >= like->rows && buffer->cols == like->cols && buffer->dtype == like->dtype) return MERCER_OK;
    mrc_sample_stream_close(stream);
    MRC_TRY(mrc_alloc(stream->context, &made.data, like->rows * like->cols, mrc_dtype_size(like->dtype),
                      "targets in model units"));
    *buffer = made;
    return MERCER_OK;
}

typedef struct entering {
    const mrc_units *units;
    const mercer_matrix *to, *from;
} entering;

/* A task of mrc_parallel_for: converts PART_ROWS rows of targets. */
static void enter_part(void *argument, int64_t part, int worker)
{
    (void)worker;
    const entering *job = argument;
    int64_t first = part * PART_ROWS, rows = mrc_min(PART_ROWS, job->from->rows - first);
    mercer_matrix to = mrc_rows(job->to, first, rows), from = mrc_rows(job->from, first, rows);
    mrc_units_apply(job->units, &to, &from);
}

mercer_status mrc_sample_stream_to_units(mrc_sample_stream *stream, mercer_matrix *y)
{
    if (!mrc_units_given(stream->units)) return MERCER_OK;
    mercer_matrix host;
    MRC_SCOPE(scope, stream->context);
    MRC_TRY(reserve_targets(stream, y));
    MRC_TRY(mrc_scope_open(&scope, stream->context->backend, y, &host));
    *y = mrc_rows(&stream->entered, 0, y->rows);
    int64_t parts = (y->rows + PART_ROWS - 1) / PART_ROWS;
    bool many = y->rows * y->cols >= MANY_TARGETS;
    mrc_parallel_for(many ? stream->context->threads : 1, parts, enter_part, &(entering){stream->units, y, &host});
    return MERCER_OK;
}

mercer_status mrc_sample_stream_next(mrc_sample_stream *stream, int64_t most, mercer_batch *batch)
{
    MRC_TRY(mrc_sample_stream_points(stream, most, batch));
    return batch->X.rows > 0 ? mrc_sample_stream_to_units(stream, &batch->Y) : MERCER_OK;
}

mercer_status mrc_sample_stream_skip(mrc_sample_stream *stream, int64_t rows)
{
    const mercer_source *source = stream->source;
    bool can_skip = source->struct_size >= offsetof(mercer_source, skip) + sizeof source->skip && source->skip;
    if (can_skip) {
        if (source->skip(source->user, rows)) return fail_source(stream, "skip");
        stream->in_pass += rows;
        return MERCER_OK;
    }
    for (int64_t done = 0; done < rows;) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_points(stream, mrc_min(rows - done, SKIP_ROWS), &batch));
        if (batch.X.rows == 0)
            return mrc_fail(stream->context, MERCER_ERROR_MISMATCH,
                            "source: the pass has fewer than %lld samples to skip", (long long)rows);
        done += batch.X.rows;
    }
    return MERCER_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered output of exported files.
 *
 * Files are written in many small pieces: numbers and tokens. Callers do not check each write. The first failure stays
 * in `status`, later output is dropped, and mrc_output_close returns it.
 */
#include "core/memory.h"
#include "export/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* TEXT_BYTES: longest text of one call of mrc_output_text. Texts of the model, such as names and schemas, are written
   by mrc_output_bytes, which has no limit. */
enum { BUFFER_BYTES = 1 << 16, TEXT_BYTES = 1 << 12 };

/* After a failure the caller has nothing to close. */
mercer_status mrc_output_open(mrc_output *out, mercer_context *context, const char *path)
{
    *out = (mrc_output){.used = 0};
    MRC_TRY(mrc_alloc(context, &out->buffer, BUFFER_BYTES, 1, "a block of an exported file"));
    mercer_status status = mrc_writer_open(&out->writer, context, path);
    if (status != MERCER_OK) mrc_free(context, out->buffer);
    return status;
}

/* Empties the buffer also after a failure, so that later output always finds space in it. */
static void flush_output(mrc_output *self)
{
    if (self->status == MERCER_OK && self->used > 0)
        self->status = mrc_writer_write(&self->writer, self->buffer, self->used);
    self->used = 0;
}

/* Blocks larger than the buffer, such as tensors, are written directly, after the bytes that precede them. */
void mrc_output_bytes(mrc_output *self, const void *data, int64_t bytes)
{
    if (self->used + bytes > BUFFER_BYTES) flush_output(self);
    if (bytes > BUFFER_BYTES) {
        if (self->status == MERCER_OK) self->status = mrc_writer_write(&self->writer, data, bytes);
        return;
    }
    memcpy(self->buffer + self->used, data, (size_t)bytes);
    self->used += bytes;
}

void mrc_output_text(mrc_output *self, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (self->status != MERCER_OK) return; /* the first failure is reported */
    if (length < 0 || length >= TEXT_BYTES)
        self->status = mrc_fail(self->writer.context, MERCER_ERROR_INTERNAL, "a line of an exported file is too long");
    else
        mrc_output_bytes(self, text, length);
}

mercer_status mrc_output_close(mrc_output *self)
{
    mercer_context *context = self->writer.context;
    flush_output(self);
    if (self->status == MERCER_OK)
        self->status = mrc_writer_commit(&self->writer);
    else
        mrc_writer_cancel(&self->writer);
    mrc_free(context, self->buffer);
    self->buffer = NULL;
    return self->status;
}

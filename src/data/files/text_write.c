/* SPDX-License-Identifier: BSD-3-Clause */
/* Separated text written through a buffer. */
#include "data/files/text_write.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"

#include <string.h>

enum { BUFFER_BYTES = 1 << 16, NUMBER_CHARS = 40 };

mercer_status mrc_text_open(mrc_text_writer *out, mrc_writer *to, char separator)
{
    void *memory;
    *out = (mrc_text_writer){.context = to->context, .to = to, .separator = separator};
    MRC_TRY(mrc_alloc(to->context, &memory, BUFFER_BYTES, 1, "a block of text"));
    out->buffer = memory;
    return MERCER_OK;
}

void mrc_text_close(mrc_text_writer *self)
{
    if (self->buffer) mrc_free(self->context, self->buffer);
    *self = (mrc_text_writer){0};
}

mercer_status mrc_text_flush(mrc_text_writer *self)
{
    int64_t used = self->used;
    self->used = 0;
    return used > 0 ? mrc_writer_write(self->to, self->buffer, used) : MERCER_OK;
}

static mercer_status put(mrc_text_writer *self, const char *text, int64_t length)
{
    if (self->used + length > BUFFER_BYTES) MRC_TRY(mrc_text_flush(self));
    if (length > BUFFER_BYTES) return mrc_writer_write(self->to, text, length);
    memcpy(self->buffer + self->used, text, (size_t)length);
    self->used += length;
    return MERCER_OK;
}

/* Quoted if it is empty, or holds what would end a field. */
static mercer_status put_name(mrc_text_writer *self, const char *name)
{
    const char special[] = {self->separator, '"', '\n', '\r', 0};
    int64_t length = (int64_t)strlen(name);
    if (length > 0 && !strpbrk(name, special)) return put(self, name, length);
    MRC_TRY(put(self, "\"", 1));
    for (const char *quote; (quote = strchr(name, '"')); name = quote + 1) {
        MRC_TRY(put(self, name, quote + 1 - name));
        MRC_TRY(put(self, "\"", 1));
    }
    MRC_TRY(put(self, name, (int64_t)strlen(name)));
    return put(self, "\"", 1);
}

mercer_status mrc_text_names(mrc_text_writer *self, const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) MRC_TRY(put(self, &self->separator, 1));
        MRC_TRY(put_name(self, names[i]));
    }
    return put(self, "\n", 1);
}

mercer_status mrc_text_rows(mrc_text_writer *self, const mercer_matrix *rows)
{
    for (int64_t i = 0; i < rows->rows; i++) {
        for (int64_t j = 0; j < rows->cols; j++) {
            char number[NUMBER_CHARS];
            double value = mrc_load(rows, i, j);
            if (j > 0) MRC_TRY(put(self, &self->separator, 1));
            if (rows->dtype == MERCER_F64)
                mrc_print_number(value, number, sizeof number);
            else
                mrc_print_single((float)value, number, sizeof number);
            MRC_TRY(put(self, number, (int64_t)strlen(number)));
        }
        MRC_TRY(put(self, "\n", 1));
    }
    return MERCER_OK;
}

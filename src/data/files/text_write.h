/* SPDX-License-Identifier: BSD-3-Clause */
/* Separated text written through a buffer: names quoted where necessary, numbers in the fewest digits. */
#ifndef MRC_DATA_FILES_TEXT_WRITE_H
#define MRC_DATA_FILES_TEXT_WRITE_H

#include "core/file.h"

typedef struct mrc_text_writer {
    mercer_context *context;
    mrc_writer *to; /* borrowed */
    char separator; /* ',' or '\t' */
    char *buffer;
    int64_t used;
} mrc_text_writer;

mercer_status mrc_text_open(mrc_text_writer *out, mrc_writer *to, char separator);
void mrc_text_close(mrc_text_writer *text); /* what was not flushed is lost */
/* A line of `count` names. */
mercer_status mrc_text_names(mrc_text_writer *text, const char *const *names, int64_t count);
/* A line for each row. */
mercer_status mrc_text_rows(mrc_text_writer *text, const mercer_matrix *rows);
mercer_status mrc_text_flush(mrc_text_writer *text);

#endif

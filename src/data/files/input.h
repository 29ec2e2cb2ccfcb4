/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/files: files of samples and targets.
 *
 * pattern.c finds the files that a name means. This header has the bytes of one of them, mapped or unpacked from gzip,
 * and the limit on memory. A format is a row (readers.h) of the list in formats.c, which also recognises them: readers
 * of arrays (npy.c, idx.c, raw.c) fill an mrc_array (array.h), those of text (libsvm.c, data/table/csv.c) a dataset.
 *
 * A reader trusts no number in a file and allocates nothing before the size of the file and the limit are checked. An
 * error is one line: the file, the line or offset, what is wrong, what to do.
 */
#ifndef MRC_DATA_FILES_INPUT_H
#define MRC_DATA_FILES_INPUT_H

#include "core/context.h"
#include "core/file/file.h"

#include <stdbool.h>

typedef struct mrc_budget {
    int64_t allowed, used;
    int64_t spill; /* what is read from text and takes more bytes than this, or than are left, goes to a temporary file
                      (core/file/spill.h) that is mapped; 0: never */
    bool copies;   /* files are read into memory, not mapped */
} mrc_budget;

/* Whether so many bytes go to a temporary file. */
bool mrc_budget_spills(const mrc_budget *budget, int64_t bytes);

/* Counts bytes that are about to be held for what was read from `path`; refuses what does not fit. */
mercer_status mrc_budget_take(mercer_context *context, mrc_budget *budget, const char *path, int64_t bytes);

typedef struct mrc_input {
    mercer_context *context;
    mrc_budget *budget; /* borrowed */
    const char *path;   /* borrowed; stands in every message */
    const uint8_t *data;
    int64_t bytes;
    mrc_mapping map; /* what data lies in; empty if it was unpacked or is the caller's */
    int64_t copied;  /* bytes that the budget counts for it */
    void *memory;    /* the unpacked file, or NULL */
    bool part;       /* one file of several: it may hold no rows, and text may hold nothing at all */
} mrc_input;

/* Maps a file; if its content is gzip'ed, unpacks it. */
mercer_status mrc_input_open(mrc_input *out, mercer_context *context, const char *path, mrc_budget *budget, bool part);
void mrc_input_close(mrc_input *input);

/* Replaces gzip'ed data by what they hold. */
mercer_status mrc_gzip_unpack(mrc_input *input);

/* A walk over the text stands at `at`: pages of a mapped file that lie well behind it are given back, so that what is
   in memory does not grow with the file, where the budget asks for that. *done: up to where it has happened. */
void mrc_input_release(const mrc_input *input, const char **done, const char *at);

/* The file begins with these bytes. */
bool mrc_input_begins(const mrc_input *input, const char *mark, int64_t bytes);

/* Text of a file as it may stand in a message: cut, unprintable bytes replaced. Returns out. */
enum { MRC_EXCERPT_CHARS = 48 };
const char *mrc_excerpt(char out[MRC_EXCERPT_CHARS], const char *text, int64_t length);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/files: files of samples and targets.
 *
 * pattern.c expands file name patterns. This header declares the memory limit and the content of one file, which is
 * mapped or decompressed (unpack.c). A file format is an mrc_format (readers.h) in the list of formats.c, which also
 * detects the format of a file. Array readers (npy.c, idx.c, raw.c) fill an mrc_array (array.h); the other readers
 * (libsvm.c, cifar.c, data/table/csv.c) fill a dataset.
 *
 * Readers do not trust numbers found in a file: nothing is allocated before these numbers are checked against the file
 * size and the memory limit. Every error is one line: the file, the line or offset, what is wrong, what to do.
 */
#ifndef MRC_DATA_FILES_INPUT_H
#define MRC_DATA_FILES_INPUT_H

#include "core/context.h"
#include "core/file/file.h"

#include <stdbool.h>

typedef struct mrc_budget {
    /* allowed: limit in bytes for the memory of data that are read; used: bytes taken so far */
    int64_t allowed, used;
    /* limit in bytes: data that are read from text and need more than this, or more than is left of `allowed`, go to a
       temporary file (core/file/spill.h), which is mapped; 0: never */
    int64_t spill;
    bool copies; /* true: read files into memory instead of mapping them */
} mrc_budget;

/* Returns whether data of this size should go to a temporary file. */
bool mrc_budget_spills(const mrc_budget *budget, int64_t bytes);

/* Adds bytes to budget->used before they are allocated for data read from `path`. Fails with MERCER_ERROR_MEMORY if
   they exceed the limit. */
mercer_status mrc_budget_take(mercer_context *context, mrc_budget *budget, const char *path, int64_t bytes);

typedef struct mrc_input {
    mercer_context *context;
    mrc_budget *budget; /* borrowed */
    const char *path;   /* borrowed; part of every error message */
    const uint8_t *data;
    int64_t bytes;
    mrc_mapping map; /* mapping that contains `data`; empty if `data` is in `memory` or belongs to the caller */
    int64_t copied;  /* bytes counted in the budget for a file read into memory */
    void *memory;    /* decompressed content, owned; or NULL */
    bool part;       /* true: one of several files; the file may have no rows, and a text file may be empty */
} mrc_input;

/* Opens a file, mapped or (budget->copies) read into memory, and decompresses its content. */
mercer_status mrc_input_open(mrc_input *out, mercer_context *context, const char *path, mrc_budget *budget, bool part);
void mrc_input_close(mrc_input *input);

/* Replaces data compressed with gzip, zstd or xz by the decompressed content; changes nothing if the data are not
   compressed. */
mercer_status mrc_unpack(mrc_input *input);

/* Releases the pages of a mapped file between *done and the read position `at`, and advances *done. Does nothing before
   these pages have at least 1 MiB. Readers call this while they read a file from start to end, so that resident memory
   stays small. Has no effect if budget->spill is 0. */
void mrc_input_release(const mrc_input *input, const char **done, const char *at);

/* Returns whether the file begins with these bytes. */
bool mrc_input_begins(const mrc_input *input, const char *mark, int64_t bytes);

/* Copies text of a file for a message: truncates it and replaces control characters by '?'. Returns out. */
enum { MRC_EXCERPT_CHARS = 48 };
const char *mrc_excerpt(char out[MRC_EXCERPT_CHARS], const char *text, int64_t length);

#endif

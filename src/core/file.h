/* SPDX-License-Identifier: BSD-3-Clause */
/* Files: mapping them to read, and writing them so that a reader finds the old one or the new one, never a part. */
#ifndef MRC_CORE_FILE_H
#define MRC_CORE_FILE_H

#include "core/context.h"

#include <stdbool.h>

/* A file in memory, read when touched. Private: writing to it changes the process's copy, never the file. */
typedef struct mrc_mapping {
    void *data; /* NULL if the file is empty */
    int64_t bytes;
} mrc_mapping;

/* MERCER_ERROR_MISSING if there is no such file; MERCER_ERROR_IO if it cannot be read or is no regular file. */
mercer_status mrc_map_file(mercer_context *context, mrc_mapping *out, const char *path);
void mrc_unmap(mrc_mapping *mapping);
/* Hint for the pages that lie wholly or partly in a range: they will be needed soon. */
void mrc_mapping_will_need(const mrc_mapping *mapping, int64_t offset, int64_t bytes);
/* The same and those around them, which the system may have mapped along with them, up to 2 MiB each side: they will
   not be needed soon. Whoever does need them finds them again, unless they were written to: then the file's bytes are
   back. */
void mrc_mapping_release(const mrc_mapping *mapping, int64_t offset, int64_t bytes);

/*
 * A file being written under a temporary name in the same folder, .NAME.DIGITS.tmp, with digits that no other writer
 * has, whatever process, container or machine it is in. `commit` makes it durable and gives it its name;
 * until then the old file, if any, stays as it is. A path that names a device or a pipe is written directly.
 * Use: open, write ..., then commit or cancel; cancel after a failed commit is allowed and does nothing.
 */
typedef struct mrc_writer {
    mercer_context *context;
    char *path, *temporary, *folder; /* one block; temporary: "" unless this writer made such a file and must end it */
    int descriptor;
    bool direct; /* written under its own name */
    int64_t written;
} mrc_writer;

mercer_status mrc_writer_open(mrc_writer *out, mercer_context *context, const char *path);
mercer_status mrc_writer_write(mrc_writer *writer, const void *data, int64_t bytes);
/* For a file that several processes write: the one that opened it sets its size and tells the others its temporary
   name; they join, write to their places and commit, which only makes their bytes durable; then the first one commits.
   Not for devices and pipes. */
mercer_status mrc_writer_resize(mrc_writer *writer, int64_t bytes);
mercer_status mrc_writer_join(mrc_writer *out, mercer_context *context, const char *temporary);
mercer_status mrc_writer_write_at(mrc_writer *writer, const void *data, int64_t bytes, int64_t offset);
mercer_status mrc_writer_commit(mrc_writer *writer);
void mrc_writer_cancel(mrc_writer *writer);

#endif

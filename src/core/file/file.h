/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/file: the one door to files.
 *
 * system.h has the system calls, as a table that tests replace; mapping.c opens files to read, writer.c writes them so
 * that a reader finds the old one or the new one, never a part; spill.h is a temporary file without a name.
 */
#ifndef MRC_CORE_FILE_H
#define MRC_CORE_FILE_H

#include "core/context.h"

#include <stdbool.h>

enum { MRC_MOST_BYTES_A_CALL = 1 << 30 }; /* read() and write() take no more than 2 GiB at once */

typedef struct mrc_watch mrc_watch;

/* A file in memory, read when touched, or a copy of it. Writing to it changes the process's own, never the file. */
typedef struct mrc_mapping {
    void *data; /* NULL if the file is empty */
    int64_t bytes;
    mercer_context *owner; /* of the memory that holds a copy; NULL: it is mapped */
    mrc_watch *watch;      /* of a file that is mapped under its name: what it was; owned */
} mrc_mapping;

/* A file of up to `copied` bytes is read, a larger one is mapped (0: every one). MERCER_ERROR_MISSING if there is none
   of that name; MERCER_ERROR_IO if it cannot be read or is no regular file. */
mercer_status mrc_open_file(mercer_context *context, mrc_mapping *out, const char *path, int64_t copied);
void mrc_unmap(mrc_mapping *mapping);
/* MERCER_ERROR_IO if a mapped file has been cut or written to since it was opened: touching what is gone would end the
   process. To be called before a block is read, and after it: then the bytes are the file's. Any thread. */
mercer_status mrc_mapping_check(const mrc_mapping *mapping);
/* Hint for the pages that lie wholly or partly in a range: they will be needed soon. */
void mrc_mapping_will_need(const mrc_mapping *mapping, int64_t offset, int64_t bytes);
/* The same and those around them, which the system may have mapped along with them, up to 2 MiB each side: they will
   not be needed soon. Whoever does need them finds them again, unless they were written to: then the file's bytes are
   back. */
void mrc_mapping_release(const mrc_mapping *mapping, int64_t offset, int64_t bytes);

/*
 * A file being written under a temporary name in the same folder, .NAME.DIGITS.tmp, with digits that no other writer
 * has, whatever process, container or machine it is in. `commit` makes it durable and gives it its name;
 * until then the old file, if any, stays as it is. What killed writers of the same name left is removed. Of a link the
 * file that it leads to is written. A path that names a device or a pipe is written directly.
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

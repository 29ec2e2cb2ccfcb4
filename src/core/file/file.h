/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/file: all access to files.
 *
 * system.h has the system calls as a table, which tests replace; mapping.c opens files for reading; writer.c writes
 * them atomically, so that readers see the old file or the new one, never a part; spill.h is a temporary file without a
 * name; beside.h loads libraries on demand.
 */
#ifndef MRC_CORE_FILE_H
#define MRC_CORE_FILE_H

#include "core/context.h"

#include <stdbool.h>

enum { MRC_MOST_BYTES_A_CALL = 1 << 30 }; /* 1 GiB per call: read() and write() transfer less than 2 GiB */

typedef struct mrc_watch mrc_watch;

/* The content of a file: a private mapping, or a copy in memory. Writes to it change only this process's data, never
   the file. */
typedef struct mrc_mapping {
    void *data; /* NULL if the file is empty */
    int64_t bytes;
    mercer_context *owner; /* context whose memory holds the copy; NULL: the file is mapped */
    mrc_watch *watch; /* state of a mapped file when it was opened, for mrc_mapping_check; owned; NULL: not checked */
} mrc_mapping;

/* Opens a file for reading: files of at most `copied` bytes are copied to memory, larger files are mapped (0: always
   map). MERCER_ERROR_MISSING if the file does not exist; MERCER_ERROR_IO if it cannot be read or is not a regular
   file. */
mercer_status mrc_open_file(mercer_context *context, mrc_mapping *out, const char *path, int64_t copied);
void mrc_unmap(mrc_mapping *mapping);
/* Fails with MERCER_ERROR_IO if a mapped file was truncated or modified since it was opened. Reading a page that no
   longer exists would end the process (SIGBUS). Call it before and after reading a block; if both calls succeed, the
   bytes are the contents of the file. Thread-safe. */
mercer_status mrc_mapping_check(const mrc_mapping *mapping);
/* Advises the system that all pages that the range touches will be needed soon. */
void mrc_mapping_will_need(const mrc_mapping *mapping, int64_t offset, int64_t bytes);
/* Advises the system that the pages of a range will not be needed soon. The advice also covers up to 2 MiB on each
   side, because the system may have mapped these pages together with the range. A later access reads the pages from the
   file again; changes to a private copy are lost. */
void mrc_mapping_release(const mrc_mapping *mapping, int64_t offset, int64_t bytes);

/*
 * A file that is written under a temporary name in the same folder, .NAME.DIGITS.tmp. The digits are unique among all
 * processes, containers and machines. `commit` makes the file durable and renames it; until then an old file stays
 * unchanged. Opening removes the temporary files of killed writers of the same NAME. Symbolic links are followed: the
 * target is replaced. A device or a pipe is written directly. Use: open, write ..., then commit or cancel. Cancel after
 * a failed commit is allowed and does nothing.
 */
typedef struct mrc_writer {
    mercer_context *context;
    /* one allocation, owned; `temporary` is "" unless this writer must rename or remove the temporary file */
    char *path, *temporary, *folder;
    int descriptor;
    bool direct; /* a device or a pipe, which is written under its own name */
    int64_t written;
} mrc_writer;

mercer_status mrc_writer_open(mrc_writer *out, mercer_context *context, const char *path);
mercer_status mrc_writer_write(mrc_writer *writer, const void *data, int64_t bytes);
/* Write one file from several processes (ranks). Rank 0 opens the file, sets its size and sends its temporary name to
   the other ranks. They join, write their parts and commit; their commits only make their bytes durable. Rank 0 commits
   last, which renames the file. Devices and pipes are not supported. */
mercer_status mrc_writer_resize(mrc_writer *writer, int64_t bytes);
mercer_status mrc_writer_join(mrc_writer *out, mercer_context *context, const char *temporary);
mercer_status mrc_writer_write_at(mrc_writer *writer, const void *data, int64_t bytes, int64_t offset);
mercer_status mrc_writer_commit(mrc_writer *writer);
void mrc_writer_cancel(mrc_writer *writer);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of system calls, filled with the functions of the system. */
#define _DEFAULT_SOURCE     /* madvise, flock */
#define _XOPEN_SOURCE   700 /* pread, realpath */

#include "core/file/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

/* A wrapper: open() is variadic, the table's functions are not. */
static int open_file(const char *path, int flags, mode_t mode)
{
    return open(path, flags, mode);
}

static void *open_folder(const char *path)
{
    return opendir(path);
}

mrc_system mrc_sys = {
    .open = open_file,
    .close = close,
    .pread = pread,
    .write = write,
    .pwrite = pwrite,
    .ftruncate = ftruncate,
    .fsync = fsync,
    .rename = rename,
    .unlink = unlink,
    .stat = stat,
    .lstat = lstat,
    .fstat = fstat,
    .fstatvfs = fstatvfs,
    .fchmod = fchmod,
    .flock = flock,
    .realpath = realpath,
    .mmap = mmap,
    .munmap = munmap,
    .madvise = madvise,
    .opendir = open_folder,
};

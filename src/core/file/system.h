/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls on files, as one table. All file access of the library goes through this table, so that tests can
   replace functions and make them fail. tools/check-includes rejects direct calls. */
#ifndef MRC_CORE_FILE_SYSTEM_H
#define MRC_CORE_FILE_SYSTEM_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

/* The functions behave as in POSIX: on failure they set errno and return -1 (mmap: MAP_FAILED; realpath, opendir:
   NULL). */
typedef struct mrc_system {
    int (*open)(const char *path, int flags, mode_t mode);
    int (*close)(int descriptor);
    ssize_t (*pread)(int descriptor, void *data, size_t bytes, off_t offset);
    ssize_t (*write)(int descriptor, const void *data, size_t bytes);
    ssize_t (*pwrite)(int descriptor, const void *data, size_t bytes, off_t offset);
    int (*ftruncate)(int descriptor, off_t bytes);
    int (*fsync)(int descriptor);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*stat)(const char *path, struct stat *out);
    int (*lstat)(const char *path, struct stat *out);
    int (*fstat)(int descriptor, struct stat *out);
    int (*fstatvfs)(int descriptor, struct statvfs *out);
    int (*fchmod)(int descriptor, mode_t mode);
    int (*flock)(int descriptor, int operation);
    char *(*realpath)(const char *path, char *resolved);
    void *(*mmap)(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset);
    int (*munmap)(void *address, size_t bytes);
    int (*madvise)(void *address, size_t bytes, int advice);
    void *(*opendir)(const char *path); /* returns a DIR * */
} mrc_system;

/* Changed only by tests, while no other thread runs. */
extern mrc_system mrc_sys;

#endif

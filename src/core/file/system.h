/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls on files, as one table: whatever the library does to a file goes through it, and tests put functions
   of their own in its place to see what happens when one of them fails. tools/check-includes keeps others out. */
#ifndef MRC_CORE_FILE_SYSTEM_H
#define MRC_CORE_FILE_SYSTEM_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

/* Each as POSIX has it: -1 (mmap: MAP_FAILED, realpath and opendir: NULL) and errno where it fails. */
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
    void *(*opendir)(const char *path); /* a DIR */
} mrc_system;

/* Written by tests alone, while nothing else runs. */
extern mrc_system mrc_sys;

#endif

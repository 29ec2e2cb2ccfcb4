/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault injection for system calls. The n-th call of a kind fails or transfers only half. */
#ifndef MRC_TESTS_FAILING_FILES_H
#define MRC_TESTS_FAILING_FILES_H

#include "support/check.h"

#include "core/file/system.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>

/* clang-format has no stable layout for this list: each run changes it. */
/* clang-format off */
#define CALL_KINDS(X) \
    X(open) X(close) X(pread) X(write) X(pwrite) X(ftruncate) X(fsync) X(rename) X(unlink) X(stat) X(lstat) X(fstat) \
    X(fstatvfs) X(fchmod) X(flock) X(realpath) X(mmap) X(opendir)
/* clang-format on */

#define CALL_ENUM(name) CALL_##name,
#define CALL_NAME(name) #name,
typedef enum call_kind { CALL_KINDS(CALL_ENUM) CALL_COUNT } call_kind;
static const char *const call_names[] = {CALL_KINDS(CALL_NAME)};

enum { HALF = -1 }; /* used in place of an errno: the call transfers only half of the bytes */

static struct {
    mrc_system real;
    call_kind kind;
    int64_t at;                        /* index of the failing call of that kind, from 0; -1: none */
    int error;                         /* errno, or HALF */
    _Atomic bool failed;               /* the call has failed */
    _Atomic int64_t calls[CALL_COUNT]; /* calls so far per kind; atomic because rank threads make calls too */
} fault;

static inline bool fails_now(call_kind kind)
{
    bool now = fault.calls[kind]++ == fault.at && fault.kind == kind;
    if (now) fault.failed = true;
    if (now && fault.error != HALF) errno = fault.error;
    return now;
}

static inline int fault_open(const char *path, int flags, mode_t mode)
{
    return fails_now(CALL_open) ? -1 : fault.real.open(path, flags, mode);
}
static inline int fault_close(int descriptor)
{
    bool now = fails_now(CALL_close);
    int done = fault.real.close(descriptor); /* a failing close() closes the descriptor, too */
    if (now) errno = fault.error;
    return now ? -1 : done;
}
static inline ssize_t fault_pread(int descriptor, void *data, size_t bytes, off_t offset)
{
    if (fails_now(CALL_pread)) {
        if (fault.error != HALF) return -1;
        bytes = (bytes + 1) / 2;
    }
    return fault.real.pread(descriptor, data, bytes, offset);
}
static inline ssize_t fault_write(int descriptor, const void *data, size_t bytes)
{
    if (fails_now(CALL_write)) {
        if (fault.error != HALF) return -1;
        bytes = (bytes + 1) / 2;
    }
    return fault.real.write(descriptor, data, bytes);
}
static inline ssize_t fault_pwrite(int descriptor, const void *data, size_t bytes, off_t offset)
{
    if (fails_now(CALL_pwrite)) {
        if (fault.error != HALF) return -1;
        bytes = (bytes + 1) / 2;
    }
    return fault.real.pwrite(descriptor, data, bytes, offset);
}
static inline int fault_ftruncate(int descriptor, off_t bytes)
{
    return fails_now(CALL_ftruncate) ? -1 : fault.real.ftruncate(descriptor, bytes);
}
static inline int fault_fsync(int descriptor)
{
    return fails_now(CALL_fsync) ? -1 : fault.real.fsync(descriptor);
}
static inline int fault_rename(const char *from, const char *to)
{
    return fails_now(CALL_rename) ? -1 : fault.real.rename(from, to);
}
static inline int fault_unlink(const char *path)
{
    return fails_now(CALL_unlink) ? -1 : fault.real.unlink(path);
}
static inline int fault_stat(const char *path, struct stat *out)
{
    return fails_now(CALL_stat) ? -1 : fault.real.stat(path, out);
}
static inline int fault_lstat(const char *path, struct stat *out)
{
    return fails_now(CALL_lstat) ? -1 : fault.real.lstat(path, out);
}
static inline int fault_fstat(int descriptor, struct stat *out)
{
    return fails_now(CALL_fstat) ? -1 : fault.real.fstat(descriptor, out);
}
static inline int fault_fstatvfs(int descriptor, struct statvfs *out)
{
    return fails_now(CALL_fstatvfs) ? -1 : fault.real.fstatvfs(descriptor, out);
}
static inline int fault_fchmod(int descriptor, mode_t mode)
{
    return fails_now(CALL_fchmod) ? -1 : fault.real.fchmod(descriptor, mode);
}
static inline int fault_flock(int descriptor, int operation)
{
    return fails_now(CALL_flock) ? -1 : fault.real.flock(descriptor, operation);
}
static inline char *fault_realpath(const char *path, char *resolved)
{
    return fails_now(CALL_realpath) ? NULL : fault.real.realpath(path, resolved);
}
static inline void *fault_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    return fails_now(CALL_mmap) ? MAP_FAILED : fault.real.mmap(address, bytes, protection, flags, descriptor, offset);
}
static inline void *fault_opendir(const char *path)
{
    return fails_now(CALL_opendir) ? NULL : fault.real.opendir(path);
}

/* Replace the system calls: from now on, call number `at` of a kind (from 0; -1: none) fails. Resets the counts. */
static inline void fault_begin(call_kind kind, int64_t at, int error)
{
    memset(&fault, 0, sizeof fault);
    fault.real = mrc_sys;
    fault.kind = kind, fault.at = at, fault.error = error;
#define CALL_SET(name) mrc_sys.name = fault_##name;
    CALL_KINDS(CALL_SET)
#undef CALL_SET
}

static inline void fault_end(void)
{
    mrc_sys = fault.real;
}

/* Return the number of open descriptors plus a constant; only differences of this number are meaningful. */
static inline int open_descriptors(void)
{
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    for (; list && readdir(list);) count++;
    if (list) closedir(list);
    return count;
}

#endif

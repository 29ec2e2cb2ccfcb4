/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Module for LD_PRELOAD. Call number MERCER_FAULT_AT (from 0) of kind MERCER_FAULT_KIND on a file below the folder
 * MERCER_FAULT_FOLDER fails with errno MERCER_FAULT_ERROR. If MERCER_FAULT_ERROR is -1, mmap succeeds and the file is
 * then truncated. The number of calls of each kind is counted in the file MERCER_FAULT_COUNTS. That file is mapped, so
 * that the counts are complete however the program ends.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN, READ, WRITE, FSYNC, RENAME, MMAP, KINDS, MOST_OPEN = 4096 };
static const char *const kind_names[KINDS] = {"open", "read", "write", "fsync", "rename", "mmap"};

static struct {
    const char *folder;
    int kind, error;
    int64_t at;
    int64_t *counts; /* (KINDS) number of calls, in the mapped file */
    char inside[MOST_OPEN];
    int ready;
} fault;

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void prepare(void)
{
    const char *kind = getenv("MERCER_FAULT_KIND"), *at = getenv("MERCER_FAULT_AT"),
               *file = getenv("MERCER_FAULT_COUNTS");
    int (*open_file)(const char *, int, ...) = (int (*)(const char *, int, ...))real("open");
    void *(*map)(void *, size_t, int, int, int, off_t) = (void *(*)(void *, size_t, int, int, int, off_t))real("mmap");
    static int64_t nowhere[KINDS];
    fault.folder = getenv("MERCER_FAULT_FOLDER");
    fault.kind = fault.at = -1;
    fault.counts = nowhere;
    for (int i = 0; kind && i < KINDS; i++)
        if (strcmp(kind, kind_names[i]) == 0) fault.kind = i;
    if (at) fault.at = strtoll(at, NULL, 10);
    if (getenv("MERCER_FAULT_ERROR")) fault.error = atoi(getenv("MERCER_FAULT_ERROR"));
    int counts = file ? open_file(file, O_RDWR) : -1;
    if (counts >= 0) {
        void *memory = map(NULL, sizeof nowhere, PROT_READ | PROT_WRITE, MAP_SHARED, counts, 0);
        if (memory != MAP_FAILED) fault.counts = memory;
        close(counts);
    }
    fault.ready = fault.folder != NULL;
}

static int is_inside(const char *path)
{
    return fault.ready && path && strncmp(path, fault.folder, strlen(fault.folder)) == 0;
}

static int is_watched(int descriptor)
{
    return fault.ready && descriptor >= 0 && descriptor < MOST_OPEN && fault.inside[descriptor];
}

static int fails(int kind)
{
    int64_t number = __atomic_fetch_add(&fault.counts[kind], 1, __ATOMIC_RELAXED);
    if (kind != fault.kind || number != fault.at) return 0;
    errno = fault.error;
    return 1;
}

static int watch(int descriptor, int inside)
{
    if (descriptor >= 0 && descriptor < MOST_OPEN) fault.inside[descriptor] = (char)inside;
    return descriptor;
}

int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))real("open");
    mode_t mode = 0;
    va_list rest;
    va_start(rest, flags);
    if (flags & (O_CREAT | O_TMPFILE)) mode = va_arg(rest, mode_t);
    va_end(rest);
    int inside = is_inside(path);
    if (inside && fails(OPEN)) return -1;
    return watch(next(path, flags, mode), inside);
}

int mkostemps(char *name, int ending, int flags)
{
    int (*next)(char *, int, int) = (int (*)(char *, int, int))real("mkostemps");
    int inside = is_inside(name);
    if (inside && fails(OPEN)) return -1;
    return watch(next(name, ending, flags), inside);
}

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *) = (FILE * (*)(const char *, const char *)) real("fopen");
    return is_inside(path) && fails(OPEN) ? NULL : next(path, mode);
}

ssize_t read(int descriptor, void *data, size_t bytes)
{
    ssize_t (*next)(int, void *, size_t) = (ssize_t(*)(int, void *, size_t))real("read");
    return is_watched(descriptor) && fails(READ) ? -1 : next(descriptor, data, bytes);
}

ssize_t pread(int descriptor, void *data, size_t bytes, off_t offset)
{
    ssize_t (*next)(int, void *, size_t, off_t) = (ssize_t(*)(int, void *, size_t, off_t))real("pread");
    return is_watched(descriptor) && fails(READ) ? -1 : next(descriptor, data, bytes, offset);
}

ssize_t write(int descriptor, const void *data, size_t bytes)
{
    ssize_t (*next)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))real("write");
    return is_watched(descriptor) && fails(WRITE) ? -1 : next(descriptor, data, bytes);
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t offset)
{
    ssize_t (*next)(int, const void *, size_t, off_t) = (ssize_t(*)(int, const void *, size_t, off_t))real("pwrite");
    return is_watched(descriptor) && fails(WRITE) ? -1 : next(descriptor, data, bytes, offset);
}

/* stdio does not call the write() above. Failures to write through stdio are therefore injected when it flushes. */
int fflush(FILE *file)
{
    int (*next)(FILE *) = (int (*)(FILE *))real("fflush");
    return file && is_watched(fileno(file)) && fails(WRITE) ? EOF : next(file);
}

int fsync(int descriptor)
{
    int (*next)(int) = (int (*)(int))real("fsync");
    return is_watched(descriptor) && fails(FSYNC) ? -1 : next(descriptor);
}

int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = (int (*)(const char *, const char *))real("rename");
    return is_inside(to) && fails(RENAME) ? -1 : next(from, to);
}

/* Truncate the file, as another program could at any moment. */
static void cut(int descriptor)
{
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (readlink(link, path, sizeof path - 1) <= 0 || truncate(path, 0) != 0) abort();
}

void *mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    void *(*next)(void *, size_t, int, int, int, off_t) = (void *(*)(void *, size_t, int, int, int, off_t))real("mmap");
    int failing = is_watched(descriptor) && fails(MMAP);
    if (failing && fault.error >= 0) return MAP_FAILED;
    void *memory = next(address, bytes, protection, flags, descriptor, offset);
    if (failing) cut(descriptor);
    return memory;
}

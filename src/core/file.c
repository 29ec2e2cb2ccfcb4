/* SPDX-License-Identifier: BSD-3-Clause */
/* Files: mapped to read, written under a temporary name and renamed when all bytes are on disk. */
#define _DEFAULT_SOURCE /* madvise, MAP_NORESERVE, getentropy */
#define _XOPEN_SOURCE   700

#include "core/file.h"

#include "core/clock.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_BYTES_A_CALL = 1 << 30, /* write() takes no more than 2 GiB at once */
    LARGEST_PAGE = 2 << 20,      /* what the system may map at once when one byte is touched */
    TEMPORARY_MORE = 22,         /* characters of a temporary name beyond the name: a dot, a dot, 16 digits, .tmp */
    MOST_NAMES = 100             /* that are tried, though the second is never needed */
};

static mercer_status fail_file(mercer_context *context, const char *path, const char *what, int error)
{
    mercer_status status = error == ENOENT || error == ENOTDIR ? MERCER_ERROR_MISSING : MERCER_ERROR_IO;
    return mrc_fail(context, status, "%s: %s: %s", path, what, strerror(error));
}

/* ---- Mapping ------------------------------------------------------------------------------------------------- */

static mercer_status map_descriptor(mercer_context *context, mrc_mapping *out, const char *path, int descriptor)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0) return fail_file(context, path, "cannot read", errno);
    if (S_ISDIR(about.st_mode)) return mrc_fail(context, MERCER_ERROR_IO, "%s: is a folder, not a file", path);
    if (!S_ISREG(about.st_mode))
        return mrc_fail(context, MERCER_ERROR_IO, "%s: is not a regular file; save it to one first", path);
    out->bytes = about.st_size;
    if (out->bytes == 0) return MERCER_OK;
    void *data = mmap(NULL, (size_t)out->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
    if (data == MAP_FAILED) return fail_file(context, path, "cannot map", errno);
    out->data = data;
    return MERCER_OK;
}

mercer_status mrc_map_file(mercer_context *context, mrc_mapping *out, const char *path)
{
    *out = (mrc_mapping){0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */
    if (descriptor < 0) return fail_file(context, path, "cannot open", errno);
    mercer_status status = map_descriptor(context, out, path, descriptor);
    close(descriptor); /* the mapping stays valid */
    if (status != MERCER_OK) *out = (mrc_mapping){0};
    return status;
}

void mrc_unmap(mrc_mapping *mapping)
{
    if (mapping->data) munmap(mapping->data, (size_t)mapping->bytes);
    *mapping = (mrc_mapping){0};
}

static void advise(const mrc_mapping *mapping, int64_t offset, int64_t bytes, int64_t page, int advice)
{
    if (!mapping->data || bytes <= 0) return;
    int64_t first = offset / page * page;
    /* A hint: a failure changes the speed, not the result. */
    (void)madvise((char *)mapping->data + first, (size_t)(mrc_min(offset + bytes, mapping->bytes) - first), advice);
}

void mrc_mapping_will_need(const mrc_mapping *mapping, int64_t offset, int64_t bytes)
{
    advise(mapping, offset, bytes, sysconf(_SC_PAGESIZE), MADV_WILLNEED);
}

void mrc_mapping_release(const mrc_mapping *mapping, int64_t offset, int64_t bytes)
{
    if (bytes <= 0) return;
    /* Neighbours that came along must go as well, or they add up to the whole file. */
    int64_t end = mrc_round_up(offset + bytes, LARGEST_PAGE);
    advise(mapping, offset, end - offset, LARGEST_PAGE, MADV_DONTNEED);
}

/* ---- Writing ------------------------------------------------------------------------------------------------- */

/* Characters of the folder part of a path, its slash included. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

static mercer_status copy_names(mrc_writer *self, const char *path)
{
    int64_t room = (int64_t)strlen(path) + TEMPORARY_MORE + 1;
    int folder = folder_length(path);
    MRC_TRY(mrc_alloc(self->context, &self->path, 3 * room, 1, "a file name"));
    self->temporary = self->path + room;
    self->folder = self->temporary + room;
    self->temporary[0] = 0;
    snprintf(self->path, (size_t)room, "%s", path);
    snprintf(self->folder, (size_t)room, "%.*s", folder > 0 ? folder : 1, folder > 0 ? path : ".");
    return MERCER_OK;
}

/* A number that no other process or thread has. Where the system has none to give, time and place are as good: the file
   is made only if there is none of its name. */
static uint64_t unlike_others(const mrc_writer *self)
{
    uint64_t number;
    if (getentropy(&number, sizeof number) == 0) return number;
    return (uint64_t)(mrc_seconds() * 1e9) ^ ((uint64_t)getpid() << 40) ^ (uint64_t)(uintptr_t)self->path;
}

/* Makes a new file under a name that no other file has: a process on another machine, or in another container, may have
   the same number, and a thread the same path. A long name is cut, for with more characters there is no such file. */
static int make_temporary(mrc_writer *self)
{
    int folder = folder_length(self->path);
    int64_t room = (int64_t)strlen(self->path) + TEMPORARY_MORE + 1;
    uint64_t number = unlike_others(self);
    int descriptor = -1;
    for (int i = 0; i < MOST_NAMES && descriptor < 0 && (i == 0 || errno == EEXIST); i++) {
        snprintf(self->temporary, (size_t)room, "%.*s.%.*s.%016" PRIx64 ".tmp", folder, self->path,
                 NAME_MAX - TEMPORARY_MORE, self->path + folder, number + (uint64_t)i);
        descriptor = open(self->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (descriptor < 0) self->temporary[0] = 0; /* not ours to remove */
    return descriptor;
}

mercer_status mrc_writer_open(mrc_writer *out, mercer_context *context, const char *path)
{
    struct stat about;
    bool exists = stat(path, &about) == 0;
    *out = (mrc_writer){.context = context, .descriptor = -1};
    if (path[0] == 0) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "the name of the file to write is empty");
    if (exists && S_ISDIR(about.st_mode))
        return mrc_fail(context, MERCER_ERROR_IO, "%s: is a folder, cannot be written as a file", path);
    MRC_TRY(copy_names(out, path));
    out->direct = exists && !S_ISREG(about.st_mode);
    out->descriptor = out->direct ? open(path, O_WRONLY | O_CLOEXEC) : make_temporary(out);
    if (out->descriptor < 0) {
        int error = errno;
        mrc_writer_cancel(out);
        return mrc_fail(context, MERCER_ERROR_IO, "%s: cannot write: %s", path, strerror(error));
    }
    if (exists && !out->direct) (void)fchmod(out->descriptor, about.st_mode & 0777);
    return MERCER_OK;
}

mercer_status mrc_writer_write(mrc_writer *self, const void *data, int64_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t done = write(self->descriptor, from, (size_t)mrc_min(bytes, MOST_BYTES_A_CALL));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return mrc_fail(self->context, MERCER_ERROR_IO, "%s: cannot write after %lld bytes: %s", self->path,
                            (long long)self->written, done < 0 ? strerror(errno) : "no room");
        from += done;
        bytes -= done;
        self->written += done;
    }
    return MERCER_OK;
}

mercer_status mrc_writer_resize(mrc_writer *self, int64_t bytes)
{
    if (self->direct)
        return mrc_fail(self->context, MERCER_ERROR_IO,
                        "%s: is no regular file, several ranks cannot write to it; name a file", self->path);
    if (ftruncate(self->descriptor, (off_t)bytes) == 0) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_IO, "%s: cannot make it %lld bytes long: %s", self->path,
                    (long long)bytes, strerror(errno));
}

mercer_status mrc_writer_join(mrc_writer *out, mercer_context *context, const char *temporary)
{
    *out = (mrc_writer){.context = context, .descriptor = -1};
    MRC_TRY(copy_names(out, temporary));
    out->descriptor = open(temporary, O_WRONLY | O_CLOEXEC);
    if (out->descriptor >= 0) return MERCER_OK;
    int error = errno;
    mrc_writer_cancel(out);
    return mrc_fail(context, MERCER_ERROR_IO, "%s: cannot write here what rank 0 began: %s; is the folder shared?",
                    temporary, strerror(error));
}

mercer_status mrc_writer_write_at(mrc_writer *self, const void *data, int64_t bytes, int64_t offset)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t done = pwrite(self->descriptor, from, (size_t)mrc_min(bytes, MOST_BYTES_A_CALL), (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return mrc_fail(self->context, MERCER_ERROR_IO, "%s: cannot write at byte %lld: %s", self->path,
                            (long long)offset, done < 0 ? strerror(errno) : "no room");
        from += done;
        bytes -= done;
        offset += done;
    }
    return MERCER_OK;
}

/* A new name is durable when its folder is. */
static int sync_folder(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno == EACCES ? 0 : errno; /* it may be written but not read */
    int error = fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
    close(folder);
    return error;
}

mercer_status mrc_writer_commit(mrc_writer *self)
{
    int error = !self->direct && fsync(self->descriptor) != 0 ? errno : 0;
    if (close(self->descriptor) != 0 && error == 0) error = errno;
    self->descriptor = -1;
    if (error == 0 && self->temporary[0]) {
        error = rename(self->temporary, self->path) == 0 ? 0 : errno;
        if (error == 0) {
            self->temporary[0] = 0; /* has its name: there is nothing left to remove */
            error = sync_folder(self->folder);
        }
    }
    mercer_status status = MERCER_OK;
    if (error) status = mrc_fail(self->context, MERCER_ERROR_IO, "%s: cannot write: %s", self->path, strerror(error));
    mrc_writer_cancel(self);
    return status;
}

void mrc_writer_cancel(mrc_writer *self)
{
    if (!self->path) return;
    if (self->descriptor >= 0) close(self->descriptor);
    if (self->temporary[0]) unlink(self->temporary);
    mrc_free(self->context, self->path);
    *self = (mrc_writer){.descriptor = -1};
}

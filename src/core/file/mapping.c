/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening of files for reading: mapped, or copied to memory. */
#define _DEFAULT_SOURCE /* madvise, MAP_NORESERVE */
#define _XOPEN_SOURCE   700

#include "core/file/file.h"
#include "core/file/system.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARGEST_PAGE = 2 << 20 }; /* number of bytes that the system may map when one byte is accessed */

/* State of a mapped file when it was opened. */
struct mrc_watch {
    mercer_context *context;
    struct stat about;
    char path[];
};

static mercer_status fail_file(mercer_context *context, const char *path, const char *what, int error)
{
    mercer_status status = error == ENOENT || error == ENOTDIR ? MERCER_ERROR_MISSING : MERCER_ERROR_IO;
    return mrc_fail(context, status, "%s: %s: %s", path, what, strerror(error));
}

static mercer_status fail_changed(mercer_context *context, const char *path)
{
    return mrc_fail(context, MERCER_ERROR_IO,
                    "%s: was truncated or modified while in use; replace such files by renaming a new one", path);
}

/* Gets the size and the identity of a file, which must be a regular file. */
static mercer_status look(mercer_context *context, struct stat *about, const char *path, int descriptor)
{
    if (mrc_sys.fstat(descriptor, about) != 0) return fail_file(context, path, "cannot read", errno);
    if (S_ISDIR(about->st_mode)) return mrc_fail(context, MERCER_ERROR_IO, "%s: is a folder, not a file", path);
    if (!S_ISREG(about->st_mode))
        return mrc_fail(context, MERCER_ERROR_IO, "%s: is not a regular file; save its contents to a file first", path);
    return MERCER_OK;
}

/* ---- Mapped -------------------------------------------------------------------------------------------------- */

/* Maps a file, and stores its state for mrc_mapping_check. */
static mercer_status map_descriptor(mercer_context *context, mrc_mapping *out, const char *path, int descriptor,
                                    const struct stat *about)
{
    size_t chars = strlen(path) + 1;
    mrc_watch *watch;
    MRC_TRY(mrc_alloc(context, &watch, (int64_t)(sizeof *watch + chars), 1, "the name of a file"));
    watch->context = context;
    watch->about = *about;
    memcpy(watch->path, path, chars);
    void *data =
        mrc_sys.mmap(NULL, (size_t)about->st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
    if (data == MAP_FAILED) {
        mercer_status status = fail_file(context, path, "cannot map", errno);
        mrc_free(context, watch);
        return status;
    }
    *out = (mrc_mapping){.data = data, .bytes = about->st_size, .watch = watch};
    return MERCER_OK;
}

/* ---- Copied -------------------------------------------------------------------------------------------------- */

/* Reads a file into memory. Fails if the file has become shorter in the meantime. */
static mercer_status read_descriptor(mercer_context *context, mrc_mapping *out, const char *path, int descriptor,
                                     int64_t bytes)
{
    char *data;
    MRC_TRY(mrc_alloc(context, &data, bytes, 1, "a file"));
    mercer_status status = MERCER_OK;
    for (int64_t done = 0; done < bytes && status == MERCER_OK;) {
        ssize_t some =
            mrc_sys.pread(descriptor, data + done, (size_t)mrc_min(bytes - done, MRC_MOST_BYTES_A_CALL), (off_t)done);
        if (some < 0 && errno == EINTR) continue;
        if (some < 0)
            status = mrc_fail(context, MERCER_ERROR_IO, "%s: cannot read at byte %lld: %s", path, (long long)done,
                              strerror(errno));
        if (some == 0) status = fail_changed(context, path);
        done += some;
    }
    if (status != MERCER_OK)
        mrc_free(context, data);
    else
        *out = (mrc_mapping){.data = data, .bytes = bytes, .owner = context};
    return status;
}

/* ---- Either -------------------------------------------------------------------------------------------------- */

mercer_status mrc_open_file(mercer_context *context, mrc_mapping *out, const char *path, int64_t copied)
{
    struct stat about;
    *out = (mrc_mapping){0};
    /* O_NONBLOCK: opening a pipe must not wait for a writer. */
    int descriptor = mrc_sys.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (descriptor < 0) return fail_file(context, path, "cannot open", errno);
    mercer_status status = look(context, &about, path, descriptor);
    if (status == MERCER_OK && about.st_size > 0)
        status = about.st_size <= copied ? read_descriptor(context, out, path, descriptor, about.st_size)
                                         : map_descriptor(context, out, path, descriptor, &about);
    mrc_sys.close(descriptor); /* a mapping stays valid after its descriptor is closed */
    return status;
}

void mrc_unmap(mrc_mapping *mapping)
{
    if (mapping->owner)
        mrc_free(mapping->owner, mapping->data);
    else if (mapping->data)
        mrc_sys.munmap(mapping->data, (size_t)mapping->bytes);
    if (mapping->watch) mrc_free(mapping->watch->context, mapping->watch);
    *mapping = (mrc_mapping){0};
}

mercer_status mrc_mapping_check(const mrc_mapping *mapping)
{
    struct stat now;
    const mrc_watch *watch = mapping->watch;
    /* a deleted file stays mapped and unchanged */
    if (!watch || mrc_sys.stat(watch->path, &now) != 0) return MERCER_OK;
    const struct stat *then = &watch->about;
    /* another file has replaced the mapped one under this name; the mapped file is unchanged */
    if (now.st_dev != then->st_dev || now.st_ino != then->st_ino) return MERCER_OK;
    if (now.st_size == then->st_size && now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == then->st_mtim.tv_nsec)
        return MERCER_OK;
    return fail_changed(watch->context, watch->path);
}

/* ---- Hints --------------------------------------------------------------------------------------------------- */

/* Passes advice about a range to madvise. Rounds the start down to a multiple of `page`; madvise requires a multiple of
   the system's page size. Files copied to memory need no advice. */
static void advise(const mrc_mapping *mapping, int64_t offset, int64_t bytes, int64_t page, int advice)
{
    if (!mapping->data || mapping->owner || bytes <= 0) return;
    int64_t first = offset / page * page;
    /* Only advice: a failure affects the speed, not the result. */
    (void)mrc_sys.madvise((char *)mapping->data + first, (size_t)(mrc_min(offset + bytes, mapping->bytes) - first),
                          advice);
}

void mrc_mapping_will_need(const mrc_mapping *mapping, int64_t offset, int64_t bytes)
{
    advise(mapping, offset, bytes, sysconf(_SC_PAGESIZE), MADV_WILLNEED);
}

void mrc_mapping_release(const mrc_mapping *mapping, int64_t offset, int64_t bytes)
{
    if (bytes <= 0) return;
    /* Also release neighboring pages that were mapped together with the range. Otherwise the neighbors of many ranges
       would add up to the whole file. */
    int64_t end = mrc_round_up(offset + bytes, LARGEST_PAGE);
    advise(mapping, offset, end - offset, LARGEST_PAGE, MADV_DONTNEED);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Temporary files. The name is removed as soon as the file is open, so that no file remains even if the process is
   killed. */
#define _DEFAULT_SOURCE /* MAP_NORESERVE, getentropy */
#define _XOPEN_SOURCE   700

#include "core/file/spill.h"

#include "core/file/system.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Appended data is collected in a buffer of this size, and the free space is checked once per buffer. */
enum { BUFFER_BYTES = 1 << 20 };

static mercer_status fail_spill(const mrc_spill *self, const char *what, int error)
{
    return mrc_fail(self->context, MERCER_ERROR_IO, "%s: temporary file: %s: %s; set TMPDIR to another folder",
                    self->folder, what, strerror(error));
}

mercer_status mrc_spill_open(mrc_spill *out, mercer_context *context)
{
    char name[PATH_MAX];
    uint64_t number;
    const char *folder = getenv("TMPDIR");
    *out = (mrc_spill){.context = context, .folder = folder && *folder ? folder : "/tmp", .descriptor = -1};
    if (getentropy(&number, sizeof number) != 0) number = (uint64_t)(uintptr_t)out ^ (uint64_t)getpid() << 40;
    int length = snprintf(name, sizeof name, "%s/mercer-%016" PRIx64, out->folder, number);
    if (length >= (int)sizeof name)
        return mrc_fail(context, MERCER_ERROR_IO, "TMPDIR: the path is too long for a file name: %.80s...",
                        out->folder);
    MRC_TRY(mrc_alloc(context, &out->buffer, BUFFER_BYTES, 1, "a temporary file"));
    out->descriptor = mrc_sys.open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out->descriptor < 0) return fail_spill(out, "cannot open", errno);
    mrc_sys.unlink(name);
    return MERCER_OK;
}

/* Fails if the free disk space is below a tenth of the bytes written: a full disk would harm other processes. */
static mercer_status check_free_space(const mrc_spill *self)
{
    struct statvfs disk;
    if (mrc_sys.fstatvfs(self->descriptor, &disk) != 0) return MERCER_OK;
    double left = (double)disk.f_bavail * (double)disk.f_frsize;
    return left > (double)self->written / 10 ? MERCER_OK : fail_spill(self, "cannot write", ENOSPC);
}

static mercer_status flush_spill(mrc_spill *self)
{
    MRC_TRY(check_free_space(self));
    for (int64_t done = 0; done < self->used;) {
        ssize_t some = mrc_sys.write(self->descriptor, self->buffer + done, (size_t)(self->used - done));
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) return fail_spill(self, "cannot write", some < 0 ? errno : EIO);
        done += some;
    }
    self->written += self->used;
    self->used = 0;
    return MERCER_OK;
}

mercer_status mrc_spill_write(mrc_spill *self, const void *data, int64_t bytes)
{
    for (int64_t done = 0; done < bytes;) {
        int64_t some = mrc_min(bytes - done, BUFFER_BYTES - self->used);
        memcpy(self->buffer + self->used, (const char *)data + done, (size_t)some);
        self->used += some;
        done += some;
        if (self->used == BUFFER_BYTES) MRC_TRY(flush_spill(self));
    }
    return MERCER_OK;
}

/* The mapping is private: writes to it stay in memory. An empty file is not mapped, because mmap rejects 0 bytes. */
mercer_status mrc_spill_map(mrc_spill *self, mrc_mapping *out)
{
    *out = (mrc_mapping){0};
    MRC_TRY(flush_spill(self));
    if (self->written > 0) {
        void *data = mrc_sys.mmap(NULL, (size_t)self->written, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                                  self->descriptor, 0);
        if (data == MAP_FAILED) return fail_spill(self, "cannot map", errno);
        *out = (mrc_mapping){.data = data, .bytes = self->written};
    }
    mrc_spill_close(self);
    return MERCER_OK;
}

void mrc_spill_close(mrc_spill *self)
{
    if (!self->context) return;
    if (self->descriptor >= 0) mrc_sys.close(self->descriptor);
    mrc_free(self->context, self->buffer);
    *self = (mrc_spill){.descriptor = -1};
}

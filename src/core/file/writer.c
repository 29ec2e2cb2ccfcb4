/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing of files under a temporary name, which are renamed when all bytes are on disk.
 *
 *   open     remove temporary files of killed writers, create and lock a new one, copy the old file's permissions
 *   commit   sync the file, rename it while it is locked, close it, sync the folder
 *
 * The file is synced before the rename, so the new name never refers to incomplete data after a crash. The sync of the
 * folder makes the rename itself durable.
 */
#define _DEFAULT_SOURCE /* getentropy, flock */
#define _XOPEN_SOURCE   700

#include "core/clock.h"
#include "core/file/file.h"
#include "core/file/system.h"
#include "core/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    DIGITS = 16,         /* hexadecimal digits in a temporary name */
    TEMPORARY_MORE = 22, /* characters that a temporary name adds: two dots, 16 digits, .tmp */
    MOST_NAMES = 100     /* number of names to try; in practice the first name is free */
};

/* Returns the length of the folder part of a path, including its slash. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* Allocates path, folder and space for the temporary name in one block. */
static mercer_status copy_names(mrc_writer *self, const char *path)
{
    int64_t capacity = (int64_t)strlen(path) + TEMPORARY_MORE + 1;
    int folder = folder_length(path);
    MRC_TRY(mrc_alloc(self->context, &self->path, 3 * capacity, 1, "a file name"));
    self->temporary = self->path + capacity;
    self->folder = self->temporary + capacity;
    self->temporary[0] = 0;
    snprintf(self->path, (size_t)capacity, "%s", path);
    snprintf(self->folder, (size_t)capacity, "%.*s", folder > 0 ? folder : 1, folder > 0 ? path : ".");
    return MERCER_OK;
}

/* Returns a number that other processes and threads are unlikely to draw. If getentropy fails, the number is a mix of
   the time, the process id and an address. Rare collisions are harmless, because a temporary file is created only if
   its name is free. */
static uint64_t unlike_others(const mrc_writer *self)
{
    uint64_t number;
    if (getentropy(&number, sizeof number) == 0) return number;
    return (uint64_t)(mrc_seconds() * 1e9) ^ ((uint64_t)getpid() << 40) ^ (uint64_t)(uintptr_t)self->path;
}

/* Returns whether a folder entry is named like a temporary file for the output file `name`. length: number of
   characters of `name` that temporary names contain. */
static bool is_temporary(const char *entry, const char *name, size_t length)
{
    const char *digits = entry + length + 2;
    return strlen(entry) == length + TEMPORARY_MORE && entry[0] == '.' && memcmp(entry + 1, name, length) == 0 &&
           entry[length + 1] == '.' && strspn(digits, "0123456789abcdef") == DIGITS &&
           strcmp(digits + DIGITS, ".tmp") == 0;
}

/* Removes temporary files of the same output file whose writer was killed. A running writer holds a lock on its
   file. */
static void remove_remains(const mrc_writer *self)
{
    const char *name = self->path + folder_length(self->path);
    size_t length = strnlen(name, NAME_MAX - TEMPORARY_MORE);
    DIR *list = mrc_sys.opendir(self->folder);
    if (!list) return; /* the folder may be writable but not readable */
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char path[PATH_MAX];
        if (!is_temporary(entry->d_name, name, length) ||
            snprintf(path, sizeof path, "%s/%s", self->folder, entry->d_name) >= (int)sizeof path)
            continue;
        int file = mrc_sys.open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
        if (file < 0) continue;
        if (mrc_sys.flock(file, LOCK_EX | LOCK_NB) == 0) mrc_sys.unlink(path);
        mrc_sys.close(file);
    }
    closedir(list);
}

/* Locks a new temporary file to mark it as in use. Returns false if another writer removed the file before it was
   locked. On file systems without locks, temporary files of killed writers are never removed. */
static bool hold(int descriptor)
{
    struct stat about;
    if (mrc_sys.flock(descriptor, LOCK_EX) != 0) return true;
    return mrc_sys.fstat(descriptor, &about) != 0 || about.st_nlink > 0;
}

/* Creates a file under a unique temporary name and returns its descriptor, or -1 with errno. Tries further names if a
   file of that name exists: a process on another machine or in another container may draw the same number. A long file
   name is truncated to fit NAME_MAX. */
static int make_temporary(mrc_writer *self)
{
    int folder = folder_length(self->path);
    int64_t capacity = (int64_t)strlen(self->path) + TEMPORARY_MORE + 1;
    uint64_t number = unlike_others(self);
    int descriptor = -1;
    for (int i = 0; i < MOST_NAMES && descriptor < 0 && (i == 0 || errno == EEXIST); i++) {
        snprintf(self->temporary, (size_t)capacity, "%.*s.%.*s.%016" PRIx64 ".tmp", folder, self->path,
                 NAME_MAX - TEMPORARY_MORE, self->path + folder, number + (uint64_t)i);
        descriptor = mrc_sys.open(self->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 && !hold(descriptor)) {
            mrc_sys.close(descriptor);
            descriptor = -1;
            errno = EEXIST; /* try the next name */
        }
    }
    if (descriptor < 0) self->temporary[0] = 0; /* clear the name, because the file belongs to another writer */
    return descriptor;
}

/* Handles stat or lstat having failed with errno value `error`. Returns MERCER_OK if the file does not exist, or if
   opening the file will report the problem; otherwise fails. */
static mercer_status fail_unseen(mercer_context *context, const char *path, int error)
{
    /* opening the file reports these errors */
    if (error == ENOENT || error == ENOTDIR || error == EACCES) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_IO, "%s: cannot write: %s", path, strerror(error));
}

/* Replaces *path by its target if it is a symbolic link, so that the link itself is not replaced. buffer: for the
   new path. */
static mercer_status resolve(mercer_context *context, const char **path, char buffer[PATH_MAX])
{
    struct stat about;
    if (mrc_sys.lstat(*path, &about) != 0) return fail_unseen(context, *path, errno);
    if (!S_ISLNK(about.st_mode)) return MERCER_OK;
    if (!mrc_sys.realpath(*path, buffer))
        return mrc_fail(context, MERCER_ERROR_IO, "%s: is a broken symbolic link: %s", *path, strerror(errno));
    *path = buffer;
    return MERCER_OK;
}

/* Removes temporary files of killed writers before creating a new one. After a failure *out owns nothing, and cancel
   has no effect. */
mercer_status mrc_writer_open(mrc_writer *out, mercer_context *context, const char *path)
{
    struct stat about;
    char buffer[PATH_MAX];
    *out = (mrc_writer){.context = context, .descriptor = -1};
    MRC_TRY(resolve(context, &path, buffer));
    bool exists = mrc_sys.stat(path, &about) == 0;
    if (!exists) MRC_TRY(fail_unseen(context, path, errno));
    if (path[0] == 0) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "the name of the output file is empty");
    if (exists && S_ISDIR(about.st_mode))
        return mrc_fail(context, MERCER_ERROR_IO, "%s: is a folder; name a file", path);
    MRC_TRY(copy_names(out, path));
    out->direct = exists && !S_ISREG(about.st_mode);
    if (!out->direct) remove_remains(out);
    out->descriptor = out->direct ? mrc_sys.open(path, O_WRONLY | O_CLOEXEC, 0) : make_temporary(out);
    if (out->descriptor < 0) {
        int error = errno;
        mrc_writer_cancel(out);
        return mrc_fail(context, MERCER_ERROR_IO, "%s: cannot write: %s", path, strerror(error));
    }
    if (exists && !out->direct) (void)mrc_sys.fchmod(out->descriptor, about.st_mode & 0777);
    return MERCER_OK;
}

mercer_status mrc_writer_write(mrc_writer *self, const void *data, int64_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t done = mrc_sys.write(self->descriptor, from, (size_t)mrc_min(bytes, MRC_MOST_BYTES_A_CALL));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return mrc_fail(self->context, MERCER_ERROR_IO, "%s: cannot write after %lld bytes: %s", self->path,
                            (long long)self->written, done < 0 ? strerror(errno) : "no space");
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
                        "%s: is not a regular file, so several ranks cannot write to it; name a file", self->path);
    if (mrc_sys.ftruncate(self->descriptor, (off_t)bytes) == 0) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_IO, "%s: cannot extend the file to %lld bytes: %s", self->path,
                    (long long)bytes, strerror(errno));
}

/* The path is the temporary name and `temporary` stays "", so commit and cancel neither rename nor remove the file,
   which belongs to rank 0. */
mercer_status mrc_writer_join(mrc_writer *out, mercer_context *context, const char *temporary)
{
    *out = (mrc_writer){.context = context, .descriptor = -1};
    MRC_TRY(copy_names(out, temporary));
    out->descriptor = mrc_sys.open(temporary, O_WRONLY | O_CLOEXEC, 0);
    if (out->descriptor >= 0) return MERCER_OK;
    int error = errno;
    mrc_writer_cancel(out);
    return mrc_fail(context, MERCER_ERROR_IO,
                    "%s: cannot open the file that rank 0 created: %s; use a folder that "
                    "all ranks share",
                    temporary, strerror(error));
}

mercer_status mrc_writer_write_at(mrc_writer *self, const void *data, int64_t bytes, int64_t offset)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t done =
            mrc_sys.pwrite(self->descriptor, from, (size_t)mrc_min(bytes, MRC_MOST_BYTES_A_CALL), (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return mrc_fail(self->context, MERCER_ERROR_IO, "%s: cannot write at byte %lld: %s", self->path,
                            (long long)offset, done < 0 ? strerror(errno) : "no space");
        from += done;
        bytes -= done;
        offset += done;
    }
    return MERCER_OK;
}

/* Syncs a folder, which makes renames in the folder durable. Returns an errno value, or 0 on success. */
static int sync_folder(const char *path)
{
    int folder = mrc_sys.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) return errno == EACCES ? 0 : errno; /* a folder may be writable but not readable */
    int error = mrc_sys.fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
    mrc_sys.close(folder);
    return error;
}

/* An error of close is an error of the commit, because network file systems report failed writes in close. In every
   case the memory is released, and a temporary file that was not renamed is removed. */
mercer_status mrc_writer_commit(mrc_writer *self)
{
    int error = !self->direct && mrc_sys.fsync(self->descriptor) != 0 ? errno : 0;
    bool renamed = false;
    if (error == 0 && self->temporary[0]) {
        /* Rename while the file is open and locked: other writers would remove an unlocked temporary file. */
        error = mrc_sys.rename(self->temporary, self->path) == 0 ? 0 : errno;
        renamed = error == 0;
        if (renamed) self->temporary[0] = 0; /* the temporary name no longer exists */
    }
    if (mrc_sys.close(self->descriptor) != 0 && error == 0) error = errno;
    self->descriptor = -1;
    if (error == 0 && renamed) error = sync_folder(self->folder);
    mercer_status status = MERCER_OK;
    if (error) status = mrc_fail(self->context, MERCER_ERROR_IO, "%s: cannot write: %s", self->path, strerror(error));
    mrc_writer_cancel(self);
    return status;
}

/* The temporary file is removed before close unlocks it, so that no other writer finds it unlocked and removes it. */
void mrc_writer_cancel(mrc_writer *self)
{
    if (!self->path) return;
    if (self->temporary[0]) mrc_sys.unlink(self->temporary);
    if (self->descriptor >= 0) mrc_sys.close(self->descriptor);
    mrc_free(self->context, self->path);
    *self = (mrc_writer){.descriptor = -1};
}

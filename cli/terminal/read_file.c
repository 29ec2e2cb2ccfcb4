/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the program's own input files: configurations and run logs. They are small, so they are read whole. A FIFO, a
 * terminal or a device such as /dev/zero is an error, because the program could wait or read forever. The pipe of a
 * process substitution, --config <(...), has a writer from the start, so the program reads it as long as data arrive.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { MOST_MIB = 1024, WAIT_MS = 5000 };

/* Waits up to WAIT_MS for data or end of file; returns 0 on timeout. */
static int is_ready(int descriptor)
{
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    int ready;
    do ready = poll(&wait, 1, WAIT_MS);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static int read_all(const char *path, int descriptor, char **text, size_t *length)
{
    size_t capacity = 1 << 16;
    *text = cli_allocate((int64_t)capacity, 1);
    *length = 0;
    for (;;) {
        if (*length + 1 == capacity) {
            char *more = cli_allocate(2 * (int64_t)capacity, 1);
            memcpy(more, *text, *length);
            free(*text);
            *text = more;
            capacity *= 2;
        }
        if (!is_ready(descriptor))
            return cli_error(CLI_IO, "%s: no input for %d seconds; save it to a file first", path, WAIT_MS / 1000);
        ssize_t some = read(descriptor, *text + *length, capacity - 1 - *length);
        if (some < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (some < 0) return cli_error(CLI_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (some == 0) return CLI_OK;
        *length += (size_t)some;
        if (*length >> 20 >= MOST_MIB)
            return cli_error(CLI_DATA, "%s: is larger than the limit of %d MiB; give a smaller file", path, MOST_MIB);
    }
}

/* Returns whether a pipe is anonymous, as in process substitutions. */
static int is_anonymous_pipe(int descriptor)
{
    struct statfs system;
    return fstatfs(descriptor, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

static int check_kind(const char *path, int descriptor)
{
    struct stat state;
    if (fstat(descriptor, &state) != 0) return cli_error(CLI_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (S_ISREG(state.st_mode) || (S_ISFIFO(state.st_mode) && is_anonymous_pipe(descriptor))) return CLI_OK;
    return cli_error(CLI_IO, "%s: is not a regular file but a %s; save its contents to a file first", path,
                     S_ISDIR(state.st_mode)    ? "folder"
                     : S_ISFIFO(state.st_mode) ? "pipe"
                                               : "device or socket");
}

int cli_read_file(const char *path, char **out, size_t *length, const char *missing)
{
    *out = NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        int none = errno == ENOENT || errno == ENOTDIR;
        if (none && missing != NULL) return cli_error(CLI_MISSING, "%s: %s", path, missing);
        return cli_error(none ? CLI_MISSING : CLI_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    int code = check_kind(path, descriptor);
    if (code == CLI_OK) code = read_all(path, descriptor, out, length);
    close(descriptor);
    if (code != CLI_OK) {
        free(*out);
        *out = NULL;
    }
    return code;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data from standard input and pipes. A command may read its data more than once, so the program copies a pipe to an
 * unnamed temporary file, which the library opens as /dev/fd/N. Messages contain the name that the user gave.
 *
 * An anonymous pipe is read to its end, however long that takes. Reading a named pipe fails if no program opens it for
 * writing within some seconds, so that no command waits forever.
 */
#include "data.h"
#include "options/options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MOST_PIPES = 64, WAIT_MS = 5000, PIECE_BYTES = 1 << 18 };

/* Pipes that were copied; filled before other threads start. */
static struct {
    char path[32]; /* /dev/fd/N */
    char name[128];
} pipes[MOST_PIPES];
static int pipe_count;

/* Opens a temporary file and removes its name. Returns -1 on failure. */
static int open_temporary(void)
{
    const char *folder = getenv("TMPDIR");
    CLI_OWNED(cli_drop)
    char *path = cli_format("%s/mercer-XXXXXX", folder != NULL && *folder != '\0' ? folder : "/tmp");
    int descriptor = mkstemp(path);
    if (descriptor < 0) {
        cli_error(CLI_IO, "%s: cannot create a temporary file: %s; set TMPDIR to another folder", path,
                  strerror(errno));
        return -1;
    }
    unlink(path);
    return descriptor;
}

/* Writes all bytes. Fails if the free disk space is less than a tenth of the bytes written so far. */
static int write_piece(int to, const char *data, size_t bytes, int64_t written)
{
    struct statvfs disk;
    int full = fstatvfs(to, &disk) == 0 && (double)disk.f_bavail * (double)disk.f_frsize < (double)written / 10;
    for (size_t done = 0; done < bytes && !full;) {
        ssize_t some = write(to, data + done, bytes - done);
        if (some < 0 && errno != EINTR)
            return cli_error(CLI_IO, "temporary file: cannot write: %s; set TMPDIR to another folder", strerror(errno));
        done += some > 0 ? (size_t)some : 0;
    }
    return full ? cli_error(CLI_IO, "temporary file: the disk is nearly full; set TMPDIR to another folder") : CLI_OK;
}

/* Waits for data or the end of a pipe. Returns 0 after `timeout` milliseconds (-1: no limit) without either. */
static int wait_for(int from, int timeout)
{
    struct pollfd wait = {.fd = from, .events = POLLIN};
    int ready;
    do ready = poll(&wait, 1, timeout);
    while (ready < 0 && errno == EINTR);
    return ready != 0;
}

/* Copies a pipe to its end. */
static int copy_pipe(const char *name, int from, int to)
{
    CLI_OWNED(cli_drop) char *piece = cli_allocate(PIECE_BYTES, 1);
    for (int64_t written = 0;;) {
        ssize_t some = read(from, piece, PIECE_BYTES);
        if (some > 0) {
            CLI_TRY(write_piece(to, piece, (size_t)some, written));
            written += some;
        } else if (some < 0 && errno == EAGAIN) {
            wait_for(from, -1); /* another program has the pipe open for writing */
        } else if (some < 0 && errno != EINTR) {
            return cli_error(CLI_IO, "%s: cannot be read: %s", name, strerror(errno));
        } else if (some == 0 && (written > 0 || wait_for(from, 0))) {
            return CLI_OK;
        } else if (some == 0 && !wait_for(from, WAIT_MS)) {
            return cli_error(CLI_IO, "%s: is not a regular file but a pipe that no program writes to", name);
        }
    }
}

/* Copies a pipe to a temporary file and sets *out to the path of the copy. */
static int replace_pipe(const char *name, int from, char **out)
{
    if (pipe_count == MOST_PIPES)
        return cli_error(CLI_USAGE, "%s: more than %d pipes; save some of them to files", name, MOST_PIPES);
    int to = open_temporary();
    if (to < 0) return CLI_IO;
    CLI_TRY(copy_pipe(name, from, to));
    snprintf(pipes[pipe_count].path, sizeof pipes[0].path, "/dev/fd/%d", to);
    snprintf(pipes[pipe_count].name, sizeof pipes[0].name, "%s", name);
    *out = cli_copy(pipes[pipe_count++].path);
    return CLI_OK;
}

int cli_is_pipe(const char *path)
{
    struct stat state;
    return strcmp(path, "-") == 0 || (stat(path, &state) == 0 && S_ISFIFO(state.st_mode));
}

/* Finds the file to read for a path: the file that is standard input, the copy of a pipe, or the path itself. Release
   *out with free. */
static int find_file(const cli_values *v, const char *path, char **out)
{
    struct stat state;
    int standard = strcmp(path, "-") == 0;
    const char *file = standard ? "/dev/stdin" : path, *name = standard ? "standard input" : path;
    *out = NULL;
    if (!cli_is_pipe(path)) *out = cli_copy(path);
    if (*out != NULL) return CLI_OK;
    if (stat(file, &state) != 0) return cli_error(CLI_IO, "%s: cannot be read: %s", name, strerror(errno));
    if (S_ISREG(state.st_mode)) *out = cli_copy(file);
    if (*out != NULL) return CLI_OK;
    if (!S_ISFIFO(state.st_mode))
        return cli_error(CLI_IO, "%s: is not a file or a pipe; redirect a file to it, as in mercer ... < FILE", name);
    if (cli_has(v, "checkpoint") && cli_given(v, "checkpoint"))
        return cli_error(CLI_USAGE,
                         "--checkpoint: %s is a pipe, which a resumed run cannot read again; save it to a file", name);
    int from = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0) return cli_error(CLI_IO, "%s: cannot be opened: %s", name, strerror(errno));
    int code = replace_pipe(name, from, out);
    close(from);
    return code;
}

/* Replaces the pipes among the files of an option by their copies; --x may name several files. */
static int open_pipes(cli_values *v, const cli_option *option, const char *files)
{
    CLI_OWNED(cli_drop) char *left = cli_copy(files), *all = NULL;
    for (char *path = left, *next; path != NULL; path = next) {
        CLI_OWNED(cli_drop) char *file = NULL;
        next = strpbrk(path, CLI_FILE_SEPARATOR);
        if (next != NULL) *next++ = '\0';
        CLI_TRY(find_file(v, path, &file));
        all = cli_append(all, "%s%s", all != NULL ? CLI_FILE_SEPARATOR : "", file);
    }
    return all == NULL || strcmp(all, files) == 0 ? CLI_OK
                                                  : cli_values_set(v, option, all, CLI_FROM_COMMAND, option->name);
}

/* Returns the number of times that standard input is among the files of an option. */
static int count_standard(const char *files)
{
    int count = 0;
    for (const char *at = files; at != NULL; at = strpbrk(at, CLI_FILE_SEPARATOR)) {
        at += at > files;
        count += at[0] == '-' && (at[1] == '\0' || strchr(CLI_FILE_SEPARATOR, at[1]) != NULL);
    }
    return count;
}

int cli_open_pipes(cli_values *v)
{
    static const char *const names[] = {"x", "y", "x-val", "y-val"};
    int standard = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const cli_option *option = cli_find_option(cli_values_command(v), names[i]);
            const char *files = option != NULL ? cli_values_get(v, option) : NULL;
            if (files == NULL) continue;
            if (pass == 1) CLI_TRY(open_pipes(v, option, files));
            standard += pass == 0 ? count_standard(files) : 0;
            if (standard > 1) return cli_error(CLI_USAGE, "--%s: standard input can be read only once", names[i]);
        }
    }
    return CLI_OK;
}

char *cli_name_pipes(const char *text)
{
    char *out = cli_copy(text);
    for (int i = 0; i < pipe_count; i++) {
        size_t length = strlen(pipes[i].path);
        char *at = strstr(out, pipes[i].path);
        if (at == NULL || (at[length] >= '0' && at[length] <= '9')) continue;
        char *next = cli_format("%.*s%s%s", (int)(at - out), out, pipes[i].name, at + length);
        free(out);
        out = next;
        i--; /* the path may occur again in the text */
    }
    return out;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The run log: one JSON object per line, flushed after each line so that it can be read while it grows. */
#include "ranks/program_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cli_log {
    char *path;
    FILE *file;  /* NULL: events are discarded */
    int failure; /* errno of the first failed write */
};

/* If a killed run left an incomplete last line, ends this line, so that the next event starts on a new line. */
static void end_last_line(FILE *file)
{
    if (fseek(file, -1, SEEK_END) == 0) {
        int last = fgetc(file);
        fseek(file, 0, SEEK_END);
        if (last != '\n') fputc('\n', file);
    }
}

/* Returns whether events may be appended to a path: the file does not exist, is empty, starts like a log, or is not a
   regular file. */
static int looks_like_log(const char *path)
{
    struct stat state;
    if (stat(path, &state) != 0 || !S_ISREG(state.st_mode) || state.st_size == 0) return 1;
    FILE *file = fopen(path, "rb");
    int first = file != NULL ? fgetc(file) : '{'; /* an unreadable file is reported when it is opened */
    if (file != NULL) fclose(file);
    return first == '{';
}

int cli_check_log(const char *path)
{
    if (path == NULL || cli_rank() > 0) return CLI_OK;
    struct stat state;
    if (stat(path, &state) == 0 && S_ISFIFO(state.st_mode))
        return cli_error(CLI_USAGE, "--log: %s is a pipe, which could block the training; name a file", path);
    if (!looks_like_log(path))
        return cli_error(CLI_USAGE, "--log: %s exists and is not a run log; choose another file", path);
    if (access(path, F_OK) != 0) return cli_check_output(path);
    if (access(path, W_OK) == 0) return CLI_OK;
    return cli_error(CLI_IO, "%s: cannot be opened for writing: %s", path, strerror(errno));
}

int cli_log_open(cli_log **out, const char *path)
{
    cli_log *log = cli_allocate(1, sizeof *log);
    *out = log;
    if (path == NULL || cli_rank() > 0) return CLI_OK;
    log->path = cli_copy(path);
    log->file = fopen(path, "a+b");
    if (log->file == NULL) {
        int code = cli_error(CLI_IO, "%s: cannot be opened for writing: %s", path, strerror(errno));
        cli_log_close(log);
        *out = NULL;
        return code;
    }
    end_last_line(log->file);
    return CLI_OK;
}

void cli_log_event(cli_log *log, const char *name, json_t *object)
{
    if (log->file != NULL && log->failure == 0) {
        json_t *event = json_pack("{ss}", "event", name);
        json_object_update(event, object);
        errno = 0;
        int failed = json_dumpf(event, log->file, JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0;
        failed = failed || fputc('\n', log->file) == EOF || fflush(log->file) != 0;
        if (failed) log->failure = errno != 0 ? errno : EIO;
        json_decref(event);
    }
    json_decref(object);
}

int cli_log_has_file(const cli_log *log)
{
    return log->file != NULL;
}

int cli_log_close(cli_log *log)
{
    if (log == NULL) return CLI_OK;
    if (log->file != NULL && fclose(log->file) != 0 && log->failure == 0) log->failure = errno;
    int code = CLI_OK;
    if (log->failure != 0) code = cli_error(CLI_IO, "%s: cannot write: %s", log->path, strerror(log->failure));
    free(log->path);
    free(log);
    return code;
}

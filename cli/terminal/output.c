/* SPDX-License-Identifier: BSD-3-Clause */
/* Output files, which get their name only when they are complete; JSON on stdout. */
#include "ranks/program_ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct cli_output {
    char *path, *temporary; /* temporary is NULL for stdout and /dev/null */
    FILE *file;
};

/* Returns the folder of a path. Release with free. */
static char *folder_of(const char *path)
{
    CLI_OWNED(cli_drop) char *copy = cli_copy(path);
    return cli_copy(dirname(copy));
}

/* Deletes temporary files of the output `name` left by a killed program. Such files are not locked. */
static void remove_abandoned_files(const char *folder, const char *name)
{
    DIR *list = opendir(folder);
    CLI_OWNED(cli_drop) char *begin = cli_format(".%s.", name);
    size_t length = strlen(begin);
    for (const struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        if (strncmp(entry->d_name, begin, length) != 0 || !cli_ends_with(entry->d_name, ".tmp")) continue;
        if (strlen(entry->d_name) != length + 6 + 4) continue; /* XXXXXX.tmp */
        int file = openat(dirfd(list), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (file < 0) continue;
        if (flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(list), entry->d_name, 0);
        close(file);
    }
    if (list != NULL) closedir(list);
}

/* Locks a new file. Returns 0 if another program deleted it before it was locked, because it looked abandoned. */
static int lock_new_file(int descriptor)
{
    struct stat state;
    if (flock(descriptor, LOCK_EX) != 0) return 1; /* no locks: temporary files of killed programs remain */
    return fstat(descriptor, &state) != 0 || state.st_nlink > 0;
}

/* Creates an empty temporary file in the folder of `path`, locked to mark it as in use; *out is its name, shortened
   if necessary. Returns a descriptor, or -1 with the error printed. */
static int create_locked_file(const char *path, char **out)
{
    enum { MORE = 12 }; /* characters added to the name */
    CLI_OWNED(cli_drop) char *folder = folder_of(path);
    const char *slash = strrchr(path, '/');
    CLI_OWNED(cli_drop) char *base = cli_format("%.*s", NAME_MAX - MORE, slash != NULL ? slash + 1 : path);
    remove_abandoned_files(folder, base);
    int descriptor = -1;
    do {
        if (descriptor >= 0) close(descriptor);
        free(*out);
        *out = cli_format("%s/.%s.XXXXXX.tmp", folder, base);
        descriptor = mkostemps(*out, 4, O_CLOEXEC);
    } while (descriptor >= 0 && !lock_new_file(descriptor));
    if (descriptor < 0) {
        cli_error(CLI_IO, "%s: cannot create a file in %s: %s", path, folder, strerror(errno));
        free(*out);
        *out = NULL;
    }
    return descriptor;
}

/* Returns the target of a symbolic link, or a copy of the path. Release with free; NULL with the error printed. */
static char *resolve_link(const char *path)
{
    struct stat state;
    if (lstat(path, &state) == 0 && S_ISLNK(state.st_mode)) {
        char *file = realpath(path, NULL);
        if (file == NULL) cli_error(CLI_IO, "%s: is a broken symbolic link: %s", path, strerror(errno));
        return file;
    }
    return cli_copy(path);
}

/* Creates the temporary file for an output that may exist, after checking that it can be replaced. Returns like
   create_locked_file. */
static int create_temporary(const char *path, char **out)
{
    struct stat state;
    if (stat(path, &state) != 0 && errno == ENAMETOOLONG) {
        cli_error(CLI_IO, "%s: cannot be written: %s", path, strerror(errno));
        return -1;
    }
    if (stat(path, &state) == 0) {
        if (S_ISDIR(state.st_mode)) {
            cli_error(CLI_IO, "%s: is a folder; name a file", path);
            return -1;
        }
        if (!S_ISREG(state.st_mode)) {
            cli_error(CLI_IO, "%s: is not a regular file; choose another file, or - for stdout", path);
            return -1;
        }
        if (access(path, W_OK) != 0) {
            cli_error(CLI_IO, "%s: cannot be written: %s", path, strerror(errno));
            return -1;
        }
    }
    return create_locked_file(path, out);
}

int cli_check_output(const char *path)
{
    if (strcmp(path, "-") == 0 || cli_rank() > 0) return CLI_OK;
    CLI_OWNED(cli_drop) char *temporary = NULL, *file = resolve_link(path);
    int descriptor = file != NULL ? create_temporary(file, &temporary) : -1;
    if (descriptor < 0) return CLI_IO;
    unlink(temporary);
    close(descriptor);
    return CLI_OK;
}

static void free_output(cli_output *output)
{
    if (output->temporary == NULL && output->file != NULL && output->file != stdout) fclose(output->file);
    free(output->path);
    free(output->temporary);
    free(output);
}

int cli_output_open(cli_output **out, const char *path)
{
    *out = NULL;
    cli_output *output = cli_allocate(1, sizeof *output);
    if (strcmp(path, "-") == 0 || cli_rank() > 0) { /* output of ranks above 0 is discarded */
        output->file = cli_rank() > 0 ? fopen("/dev/null", "wb") : stdout;
        *out = output;
        if (output->file != NULL) return CLI_OK;
        free_output(output);
        *out = NULL;
        return cli_error(CLI_IO, "/dev/null: cannot be opened: %s", strerror(errno));
    }
    output->path = resolve_link(path);
    int descriptor = output->path != NULL ? create_temporary(output->path, &output->temporary) : -1;
    if (descriptor < 0) {
        free_output(output);
        return CLI_IO;
    }
    /* mkstemp creates files that only the owner can access; give results the permissions of any new file. */
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
    output->file = fdopen(descriptor, "wb");
    if (output->file == NULL) {
        int code = cli_error(CLI_IO, "%s: cannot be opened: %s", path, strerror(errno));
        unlink(output->temporary);
        close(descriptor);
        free_output(output);
        return code;
    }
    *out = output;
    return CLI_OK;
}

FILE *cli_output_file(cli_output *output)
{
    return output->file;
}

void cli_output_drop(cli_output *output)
{
    if (output == NULL) return;
    if (output->temporary != NULL) {
        unlink(output->temporary);
        fclose(output->file);
    }
    free_output(output);
}

/* A file is durable only when its folder entry is on disk. Errors are ignored, because some file systems cannot sync
   folders. */
void cli_sync_name(const char *path)
{
    CLI_OWNED(cli_drop) char *folder = folder_of(path);
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
}

int cli_output_close(cli_output *output)
{
    int failed = fflush(output->file) != 0 || ferror(output->file);
    if (output->temporary == NULL) {
        int code = failed ? cli_error(CLI_IO, "stdout: writing failed: %s", strerror(errno)) : CLI_OK;
        free_output(output);
        return code;
    }
    failed = failed || fsync(fileno(output->file)) != 0;
    int reason = errno;
    if (fclose(output->file) != 0 && !failed) failed = 1, reason = errno;
    if (!failed && rename(output->temporary, output->path) != 0) failed = 1, reason = errno;
    int code = CLI_OK;
    if (failed) {
        unlink(output->temporary);
        code = cli_error(CLI_IO, "%s: cannot write: %s; the file is unchanged", output->path, strerror(reason));
    } else {
        cli_sync_name(output->path);
    }
    free_output(output);
    return code;
}

void cli_guard_streams(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        if (fcntl(i, F_GETFD) >= 0 || errno != EBADF) continue;
        /* Open /dev/null in the wrong direction, so that using the stream still fails. */
        if (open("/dev/null", i == STDIN_FILENO ? O_WRONLY : O_RDONLY) != i) return;
    }
}

json_t *cli_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

int cli_print_answer(json_t *object)
{
    json_object_set_new(object, "warnings", cli_warnings_json());
    return cli_print_json(object);
}

int cli_print_json(json_t *object)
{
    if (cli_rank() > 0) { /* only rank 0 prints */
        json_decref(object);
        return CLI_OK;
    }
    /* With 15 digits, decimal numbers such as 0.1 are printed unchanged. */
    int failed = json_dumpf(object, stdout, JSON_REAL_PRECISION(15)) != 0 || fputc('\n', stdout) == EOF;
    json_decref(object);
    if (failed || fflush(stdout) != 0) return cli_error(CLI_IO, "stdout: writing failed: %s", strerror(errno));
    return CLI_OK;
}

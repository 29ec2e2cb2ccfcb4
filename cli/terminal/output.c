/* SPDX-License-Identifier: BSD-3-Clause */
/* Output files that appear under their name when they are complete, or not at all; JSON on stdout. */
#include "ranks/program_ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cli_output {
    char *path, *temporary; /* temporary is NULL for stdout, and for what leads nowhere */
    FILE *file;
};

/* The folder a path lies in. Released with free. */
static char *folder_of(const char *path)
{
    CLI_OWNED(cli_drop) char *copy = cli_copy(path);
    return cli_copy(dirname(copy));
}

/* A new, empty file beside path; *out is its name. Returns a descriptor, or -1 with the error printed. */
static int make_temporary(const char *path, char **out)
{
    struct stat state;
    if (stat(path, &state) == 0) {
        if (S_ISDIR(state.st_mode)) {
            cli_error(CLI_IO, "%s: is a folder: name a file", path);
            return -1;
        }
        if (!S_ISREG(state.st_mode)) {
            cli_error(CLI_IO, "%s: is not a regular file: name another, or - for stdout", path);
            return -1;
        }
        if (access(path, W_OK) != 0) {
            cli_error(CLI_IO, "%s: cannot be written: %s", path, strerror(errno));
            return -1;
        }
    }
    CLI_OWNED(cli_drop) char *folder = folder_of(path);
    char *name = cli_format("%s/.mercer-XXXXXX", folder);
    int descriptor = mkstemp(name);
    if (descriptor < 0) {
        cli_error(CLI_IO, "%s: no file can be made in %s: %s", path, folder, strerror(errno));
        free(name);
        name = NULL;
    }
    *out = name;
    return descriptor;
}

int cli_check_output(const char *path)
{
    if (strcmp(path, "-") == 0 || cli_rank() > 0) return CLI_OK;
    CLI_OWNED(cli_drop) char *temporary = NULL;
    int descriptor = make_temporary(path, &temporary);
    if (descriptor < 0) return CLI_IO;
    close(descriptor);
    unlink(temporary);
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
    output->path = cli_copy(path);
    if (strcmp(path, "-") == 0 || cli_rank() > 0) { /* what ranks above 0 write leads nowhere */
        output->file = cli_rank() > 0 ? fopen("/dev/null", "wb") : stdout;
        *out = output;
        if (output->file != NULL) return CLI_OK;
        free_output(output);
        *out = NULL;
        return cli_error(CLI_IO, "/dev/null: cannot be opened: %s", strerror(errno));
    }
    int descriptor = make_temporary(path, &output->temporary);
    if (descriptor < 0) {
        free_output(output);
        return CLI_IO;
    }
    /* mkstemp makes files for the owner only; results have the permissions that any new file has. */
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
    output->file = fdopen(descriptor, "wb");
    if (output->file == NULL) {
        int code = cli_error(CLI_IO, "%s: cannot be opened: %s", path, strerror(errno));
        close(descriptor);
        unlink(output->temporary);
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
        fclose(output->file);
        unlink(output->temporary);
    }
    free_output(output);
}

/* The folder's entry must be on disk too before the file can be relied on. Some file systems do not offer it. */
static void sync_folder(const char *path)
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
        code = cli_error(CLI_IO, "%s: writing failed: %s; nothing was changed", output->path, strerror(reason));
    } else {
        sync_folder(output->path);
    }
    free_output(output);
    return code;
}

json_t *cli_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

int cli_print_json(json_t *object)
{
    if (cli_rank() > 0) { /* rank 0 answers */
        json_decref(object);
        return CLI_OK;
    }
    /* 15 digits: a decimal number that was written comes back as it was. */
    int failed = json_dumpf(object, stdout, JSON_REAL_PRECISION(15)) != 0 || fputc('\n', stdout) == EOF;
    json_decref(object);
    if (failed || fflush(stdout) != 0) return cli_error(CLI_IO, "stdout: writing failed: %s", strerror(errno));
    return CLI_OK;
}

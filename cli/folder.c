/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of a resumable run. */
#include "folder.h"
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHECKPOINT "checkpoint.safetensors"

cli_folder *cli_folder_new(const char *path)
{
    cli_folder *folder = cli_allocate(1, sizeof *folder);
    folder->path = cli_copy(path);
    folder->config = cli_format("%s/config.json", path);
    folder->checkpoint = cli_format("%s/" CHECKPOINT, path);
    folder->lock = -1;
    return folder;
}

static char *lock_name(const cli_folder *folder)
{
    return cli_format("%s/lock", folder->path);
}

void cli_drop_folder(cli_folder **owned)
{
    cli_folder *folder = *owned;
    if (folder == NULL) return;
    json_decref(folder->options);
    json_decref(folder->files);
    if (folder->lock >= 0) {
        char *name = lock_name(folder);
        unlink(name); /* delete it while locked: a process that opens the lock file later creates a new one */
        close(folder->lock);
        free(name);
    }
    free(folder->path);
    free(folder->config);
    free(folder->checkpoint);
    free(folder);
}

int cli_folder_has_checkpoint(const cli_folder *folder)
{
    return access(folder->checkpoint, F_OK) == 0;
}

/* Removes partial checkpoints of a killed run: .checkpoint.safetensors.DIGITS.tmp. */
static void remove_partial_checkpoints(const cli_folder *folder)
{
    static const char begin[] = "." CHECKPOINT ".";
    DIR *list = opendir(folder->path);
    if (list == NULL) return;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (strncmp(entry->d_name, begin, sizeof begin - 1) == 0 && cli_ends_with(entry->d_name, ".tmp"))
            unlinkat(dirfd(list), entry->d_name, 0);
    }
    closedir(list);
}

/* Writes a description of this process to the lock file, for the message of report_lock_holder. */
static void write_holder(int lock)
{
    char host[65] = "", text[160], since[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &parts) != NULL) strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", &parts);
    int length = snprintf(text, sizeof text, "process %ld on %s, since %s", (long)getpid(), host, since);
    /* The text is informational; errors are ignored because the lock works without it. */
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, (size_t)length, 0) != length) errno = 0;
}

static int report_lock_holder(const cli_folder *folder, int lock)
{
    char holder[160] = "";
    ssize_t length = pread(lock, holder, sizeof holder - 1, 0);
    return cli_error(CLI_USAGE, "%s: another mercer train or resume is using this folder%s%s%s; wait for it or stop it",
                     folder->path, length > 0 ? " (" : "", holder, length > 0 ? ")" : "");
}

int cli_folder_take(cli_folder *folder)
{
    if (cli_rank() > 0) return CLI_OK;
    char *name = lock_name(folder);
    int code = CLI_OK;
    for (;;) {
        struct stat state;
        int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (lock < 0) break; /* an unusable folder is reported when it is first used */
        if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK) code = report_lock_holder(folder, lock);
            close(lock);
            break;
        }
        if (fstat(lock, &state) == 0 && state.st_nlink == 0) { /* the previous holder deleted it after our open */
            close(lock);
            continue;
        }
        folder->lock = lock;
        write_holder(lock);
        remove_partial_checkpoints(folder);
        break;
    }
    free(name);
    return code;
}

int cli_folder_create(cli_folder *folder, int force)
{
    if (cli_rank() > 0) return CLI_OK;
    if (mkdir(folder->path, 0777) == 0)
        cli_sync_name(folder->path); /* after a crash, a folder without a durable name would lose its synced files */
    else if (errno != EEXIST)
        return cli_error(CLI_IO, "%s: cannot create the folder: %s", folder->path, strerror(errno));
    CLI_TRY(cli_folder_take(folder));
    int held = access(folder->config, F_OK) == 0;
    if (held && !force) {
        CLI_OWNED(cli_drop_folder) cli_folder *old = cli_folder_new(folder->path);
        CLI_TRY(cli_folder_read(old));
        held = !old->finished;
        if (held)
            return cli_error(CLI_USAGE,
                             "%s: contains an unfinished run; continue it with mercer resume %s or discard it with "
                             "--force",
                             folder->path, folder->path);
    }
    folder->replaces = held;
    return cli_check_output(folder->config);
}

int cli_folder_begin(cli_folder *folder, const cli_values *v)
{
    folder->replaces = 0;
    /* Delete the old checkpoint first: config.json without a checkpoint means a run that starts from the beginning. */
    if (cli_rank() == 0 && unlink(folder->checkpoint) != 0 && errno != ENOENT)
        return cli_error(CLI_IO, "%s: cannot be removed: %s", folder->checkpoint, strerror(errno));
    return cli_folder_write(folder, v);
}

/* Returns a path, or each path of a list, as an absolute path. Release with free. */
static char *absolute_path(const char *paths)
{
    struct stat state;
    CLI_OWNED(cli_drop) char *here = getcwd(NULL, 0);
    int list = strchr(paths, CLI_FILE_SEPARATOR[0]) != NULL && lstat(paths, &state) != 0;
    char *result = NULL;
    for (const char *at = paths; at != NULL;) {
        size_t length = list ? strcspn(at, CLI_FILE_SEPARATOR) : strlen(at);
        int whole = at[0] == '/' || here == NULL;
        result = cli_append(result, "%s%s%s%.*s", result != NULL ? CLI_FILE_SEPARATOR : "", whole ? "" : here,
                            whole ? "" : "/", (int)length, at);
        at = at[length] != '\0' ? at + length + 1 : NULL;
    }
    return result;
}

/* Returns the options as an object with absolute paths, without --checkpoint, because the folder may be moved. */
static json_t *portable_options(const cli_values *v)
{
    json_t *object = cli_config_object(v);
    for (const cli_option *option = NULL; (option = cli_next_option(cli_values_command(v), NULL, option)) != NULL;) {
        if (json_object_get(object, option->name) == NULL) continue;
        const char *text = cli_values_get(v, option);
        int prefix = cli_path_in(option, text);
        if (!cli_is_path(option) && prefix == 0) continue;
        CLI_OWNED(cli_drop) char *path = absolute_path(text + prefix);
        CLI_OWNED(cli_drop) char *whole = cli_format("%.*s%s", prefix, text, path);
        json_object_set_new(object, option->name, cli_json_text(whole));
    }
    json_object_del(object, "checkpoint");
    json_object_del(object, "force");
    return object;
}

int cli_folder_write(const cli_folder *folder, const cli_values *v)
{
    char prints[2][24];
    for (int i = 0; i < 2; i++) snprintf(prints[i], sizeof prints[i], "%016" PRIx64, folder->fingerprints[i]);
    json_auto_t *object =
        json_pack("{ss ss so s{ss ss} so sb}", "version", mercer_version(), "command", "train", "options",
                  portable_options(v), "fingerprints", "train", prints[0], "validation", prints[1], "files",
                  folder->files != NULL ? json_incref(folder->files) : json_null(), "finished", folder->finished);
    cli_output *output = NULL;
    CLI_TRY(cli_output_open(&output, folder->config));
    json_dumpf(object, cli_output_file(output), JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', cli_output_file(output));
    return cli_output_close(output);
}

static int take_fingerprint(const json_t *prints, const char *name, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(prints, name));
    if (text == NULL || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) return -1;
    *out = strtoull(text, NULL, 16);
    return 0;
}

int cli_folder_read(cli_folder *folder)
{
    char *missing = cli_format("does not exist: %s is not a folder of mercer train --checkpoint", folder->path), *text;
    size_t length;
    int code = cli_read_file(folder->config, &text, &length, missing);
    free(missing);
    if (code != CLI_OK) return code;
    json_error_t error;
    json_auto_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (object == NULL)
        return cli_error(CLI_DATA, "%s: line %d: %s; the run cannot be resumed", folder->config, error.line,
                         error.text);
    const char *version = json_string_value(json_object_get(object, "version"));
    json_t *options = json_object_get(object, "options"), *prints = json_object_get(object, "fingerprints");
    if (version == NULL || !json_is_object(options) ||
        take_fingerprint(prints, "train", &folder->fingerprints[0]) != 0 ||
        take_fingerprint(prints, "validation", &folder->fingerprints[1]) != 0)
        return cli_error(CLI_DATA, "%s: is not a run configuration of mercer train; the run cannot be resumed",
                         folder->config);
    if (strcmp(version, mercer_version()) != 0)
        return cli_error(CLI_DATA,
                         "%s: was written by version %s, but this is %s; resume with that version or "
                         "train again",
                         folder->config, version, mercer_version());
    folder->finished = json_is_true(json_object_get(object, "finished"));
    folder->options = json_incref(options);
    folder->files = json_incref(json_object_get(object, "files"));
    return CLI_OK;
}

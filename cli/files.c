/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that no output file is also an input or another output, because one would overwrite the other. Checks also
 * that no new output matches the pattern of an input, because the next command with this pattern would read the output
 * as data. The type of an option says whether it names an input or an output. Files are compared by device and inode,
 * so that links and different spellings do not matter. Pipes and devices are ignored.
 */
#include "options/options.h"

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Location of an existing file, or of a name in a folder where the file does not exist yet. */
typedef struct place {
    dev_t device;
    ino_t inode;
    char *name; /* NULL: the file exists; otherwise `device` and `inode` are those of the folder */
} place;

typedef struct used {
    char *option; /* "--x" */
    char *path;
    place at;
    int written;
} used;

/* An input pattern: all files of a folder that match it, now and later. */
typedef struct pattern {
    char *option, *text;
    dev_t device; /* device and inode of the folder */
    ino_t inode;
} pattern;

typedef struct list {
    used *items;
    int64_t count, capacity;
    pattern *patterns;
    int64_t pattern_count, pattern_capacity;
} list;

static const char *file_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? cli_copy(".") : cli_format("%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static int locate_file(const char *path, place *out)
{
    struct stat state;
    *out = (place){.name = NULL};
    if (stat(path, &state) == 0) {
        *out = (place){.device = state.st_dev, .inode = state.st_ino};
        return S_ISREG(state.st_mode) ? 0 : -1;
    }
    const char *name = file_name_of(path);
    CLI_OWNED(cli_drop) char *folder = folder_of(path);
    int found = stat(folder, &state) == 0 && *name != '\0' ? 0 : -1;
    if (found == 0) *out = (place){.device = state.st_dev, .inode = state.st_ino, .name = cli_copy(name)};
    return found;
}

static int is_same_file(const place *a, const place *b)
{
    if (a->device != b->device || a->inode != b->inode || (a->name == NULL) != (b->name == NULL)) return 0;
    return a->name == NULL || strcmp(a->name, b->name) == 0;
}

static void add_file(list *all, const char *option, const char *path, int written)
{
    place at;
    if (locate_file(path, &at) != 0) return;
    if (at.name != NULL && !written) { /* a missing input is reported when it is opened */
        free(at.name);
        return;
    }
    all->items = cli_grow(all->items, all->count, &all->capacity, sizeof *all->items);
    all->items[all->count++] = (used){cli_copy(option), cli_copy(path), at, written};
}

/* Adds the files that are read from an input folder: files of MNIST, or config.json and the checkpoint of a run. */
static void add_folder(list *all, const char *option, const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        if (strstr(name, "-ubyte") == NULL && strcmp(name, "config.json") != 0 &&
            strcmp(name, "checkpoint.safetensors") != 0)
            continue;
        CLI_OWNED(cli_drop) char *file = cli_format("%s/%s", path, name);
        add_file(all, option, file, 0);
    }
    if (folder != NULL) closedir(folder);
}

/* Adds an input pattern. Wildcards are allowed only in the last component of a path, as in the library
   (data/files/pattern.c). */
static void add_pattern(list *all, const char *option, const char *text)
{
    struct stat state;
    CLI_OWNED(cli_drop) char *folder = folder_of(text);
    if (strpbrk(file_name_of(text), "*?[") == NULL || stat(folder, &state) != 0) return;
    all->patterns = cli_grow(all->patterns, all->pattern_count, &all->pattern_capacity, sizeof *all->patterns);
    all->patterns[all->pattern_count++] = (pattern){cli_copy(option), cli_copy(text), state.st_dev, state.st_ino};
}

/* Adds an input: a file, a folder, or a pattern. */
static void add_path(list *all, const char *option, const char *path)
{
    struct stat state;
    glob_t found = {0};
    if (stat(path, &state) == 0) {
        if (S_ISDIR(state.st_mode))
            add_folder(all, option, path);
        else
            add_file(all, option, path, 0);
    } else {
        add_pattern(all, option, path);
        if (glob(path, GLOB_NOSORT, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc; i++) add_file(all, option, found.gl_pathv[i], 0);
    }
    globfree(&found);
}

/* Adds the inputs of an option, whose value may be a list of paths. */
static void add_input(list *all, const char *option, const char *paths)
{
    struct stat state;
    if (strchr(paths, CLI_FILE_SEPARATOR[0]) == NULL || lstat(paths, &state) == 0) {
        add_path(all, option, paths);
        return;
    }
    CLI_OWNED(cli_drop) char *copy = cli_copy(paths);
    char *rest = NULL;
    for (char *path = strtok_r(copy, CLI_FILE_SEPARATOR, &rest); path != NULL;
         path = strtok_r(NULL, CLI_FILE_SEPARATOR, &rest))
        add_path(all, option, path);
}

static void add_output(list *all, const char *option, const char *path)
{
    static const char *const saved_files[] = {"config.json", "checkpoint.safetensors"};
    if (strcmp(path, "-") == 0) return;
    add_file(all, option, path, 1); /* for --checkpoint, only a new folder is added */
    if (strcmp(option, "--checkpoint") != 0) return;
    for (int i = 0; i < 2; i++) {
        CLI_OWNED(cli_drop) char *file = cli_format("%s/%s", path, saved_files[i]);
        add_file(all, option, file, 1);
    }
}

static void collect_files(list *all, const cli_values *v)
{
    const cli_command *command = cli_values_command(v);
    for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;) {
        const char *text = cli_values_get(v, option);
        if (text == NULL) continue;
        CLI_OWNED(cli_drop) char *shown = cli_format("--%s", option->name);
        if (option->type == CLI_INPUT)
            add_input(all, shown, text);
        else if (option->type == CLI_OUTPUT)
            add_output(all, shown, text);
        else if (cli_path_in(option, text) > 0)
            add_input(all, shown, text + cli_path_in(option, text));
    }
    int named = command->words != NULL && !cli_has(v, "x") &&
                (strcmp(command->words, "FILE") == 0 || strcmp(command->words, "DIR") == 0);
    if (named && cli_positional(v, 0) != NULL) add_input(all, command->positional, cli_positional(v, 0));
}

static int matches_pattern(const used *out, const pattern *of)
{
    return out->at.name != NULL && out->at.device == of->device && out->at.inode == of->inode &&
           fnmatch(file_name_of(of->text), out->at.name, FNM_PERIOD) == 0;
}

static int check_pattern_overlap(const list *all)
{
    for (int64_t i = 0; i < all->count; i++)
        for (int64_t j = 0; j < all->pattern_count && all->items[i].written; j++)
            if (matches_pattern(&all->items[i], &all->patterns[j]))
                return cli_error(CLI_USAGE,
                                 "%s: %s matches %s %s and would be read as data by the next command; choose "
                                 "another name or folder",
                                 all->items[i].option, all->items[i].path, all->patterns[j].option,
                                 all->patterns[j].text);
    return CLI_OK;
}

static int check_overlap(const list *all)
{
    for (int64_t i = 0; i < all->count; i++) {
        for (int64_t j = 0; j < all->count && all->items[i].written; j++) {
            const used *out = &all->items[i], *other = &all->items[j];
            if (i == j || (other->written && j > i) || !is_same_file(&out->at, &other->at)) continue;
            return cli_error(CLI_USAGE, "%s: %s is also %s as %s and would be overwritten; choose another name",
                             out->option, out->path, other->written ? "written" : "read", other->option);
        }
    }
    return CLI_OK;
}

static void free_list(list *all)
{
    for (int64_t i = 0; i < all->count; i++) {
        free(all->items[i].option);
        free(all->items[i].path);
        free(all->items[i].at.name);
    }
    free(all->items);
    for (int64_t i = 0; i < all->pattern_count; i++) {
        free(all->patterns[i].option);
        free(all->patterns[i].text);
    }
    free(all->patterns);
}

int cli_check_files(const cli_values *v)
{
    list all = {0};
    collect_files(&all, v);
    int code = check_overlap(&all);
    if (code == CLI_OK) code = check_pattern_overlap(&all);
    free_list(&all);
    return code;
}

json_t *cli_input_states(const cli_values *v)
{
    list all = {0};
    json_t *states = json_object();
    collect_files(&all, v);
    for (int64_t i = 0; i < all.count; i++) {
        struct stat state;
        const used *file = &all.items[i];
        if (file->written || stat(file->path, &state) != 0) continue;
        char *about = cli_format("%" PRId64 " bytes, %" PRId64 ".%09ld", (int64_t)state.st_size,
                                 (int64_t)state.st_mtim.tv_sec, state.st_mtim.tv_nsec);
        const char *slash = strrchr(file->path, '/');
        char *key = cli_format("%s %s", file->option, slash != NULL ? slash + 1 : file->path);
        char *shown = cli_visible(key); /* JSON strings must be UTF-8 */
        json_object_set_new(states, shown, json_string(about));
        free(about);
        free(key);
        free(shown);
    }
    free_list(&all);
    return states;
}

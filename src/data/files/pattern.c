/* SPDX-License-Identifier: BSD-3-Clause */
/* Expansion of file names with wildcards, and of lists of names. A folder is scanned twice, first to count the matches
   and then to copy them, so that one allocation suffices. */
#define _XOPEN_SOURCE 700 /* fnmatch, stat */

#include "data/opening.h"

#include "core/file/system.h"
#include "core/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct search {
    mercer_context *context;
    const char *name;    /* name as given by the caller; borrowed */
    const char *pattern; /* last component of `name` */
    int folder;          /* length of the part before `pattern`, including the slash */
    DIR *open;
} search;

/* ---- Natural order -------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares two runs of digits as numbers of any length, and skips both. */
static int compare_digits(const char **a, const char **b)
{
    while (**a == '0') ++*a;
    while (**b == '0') ++*b;
    int first = 0;
    while (is_digit(**a) && is_digit(**b)) {
        if (first == 0) first = **a - **b;
        ++*a, ++*b;
    }
    return is_digit(**a) ? 1 : is_digit(**b) ? -1 : first;
}

/* Compares paths in natural order: runs of digits as numbers, all else by bytes. */
static int compare_names(const void *left, const void *right)
{
    const char *a = *(const char *const *)left, *b = *(const char *const *)right;
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            int order = compare_digits(&a, &b);
            if (order != 0) return order;
        } else if (*a != *b) {
            break;
        } else {
            a++, b++;
        }
    }
    if (*a != *b) return (unsigned char)*a - (unsigned char)*b;
    /* equal as numbers, such as part-2 and part-02 */
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* ---- Searching ------------------------------------------------------------------------------------------------ */

/* Returns the next matching name, or NULL after the last one. Sets *error to the errno of a failure to read the folder,
   else to 0. */
static const char *next_match(search *self, int *error)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(self->open);
        *error = entry ? 0 : errno;
        if (!entry || fnmatch(self->pattern, entry->d_name, FNM_PERIOD) == 0) return entry ? entry->d_name : NULL;
    }
}

static mercer_status fail_folder(const search *self, int error)
{
    return mrc_fail(self->context, error == ENOENT || error == ENOTDIR ? MERCER_ERROR_MISSING : MERCER_ERROR_IO,
                    "%s: cannot read the folder: %s; use wildcards only in the file name, not in the folder",
                    self->name, strerror(error));
}

/* Counts matches and the bytes of their paths. */
static mercer_status measure_names(search *self, int64_t *count, int64_t *bytes)
{
    int error;
    const char *name;
    for (*count = *bytes = 0; (name = next_match(self, &error)) != NULL; ++*count)
        *bytes += self->folder + (int64_t)strlen(name) + 1;
    if (error) return fail_folder(self, error);
    if (*count > 0) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_MISSING,
                    "%s: no file matches this pattern (* matches any characters, ? one, [0-9] one of a set)",
                    self->name);
}

/* Copies and sorts the matches. The folder may have changed since the matches were counted: no more than out->count
   names are copied, and fewer names are an error. */
static mercer_status copy_matches(search *self, mrc_names *out, int64_t bytes)
{
    char *at = (char *)(out->list + out->count), *end = at + bytes;
    int64_t found = 0;
    int error = 0;
    const char *name;
    while (found < out->count && (name = next_match(self, &error)) != NULL) {
        int64_t length = (int64_t)strlen(name) + 1;
        if (self->folder + length > end - at) break;
        memcpy(at, self->name, (size_t)self->folder);
        memcpy(at + self->folder, name, (size_t)length);
        out->list[found++] = at;
        at += self->folder + length;
    }
    if (error) return fail_folder(self, error);
    if (found < out->count)
        return mrc_fail(self->context, MERCER_ERROR_IO,
                        "%s: files were added or removed during the search; try "
                        "again",
                        self->name);
    qsort(out->list, (size_t)found, sizeof *out->list, compare_names);
    return MERCER_OK;
}

/* Allocates the pointers and the text of the names, in one block. */
static mercer_status reserve(search *self, mrc_names *out, int64_t count, int64_t bytes)
{
    MRC_TRY(mrc_alloc(self->context, &out->list, count * (int64_t)sizeof(char *) + bytes, 1, "names of files"));
    out->count = count;
    return MERCER_OK;
}

static void close_search(search *self)
{
    if (self->open) closedir(self->open);
}

/* Finds the matches in the folder of the pattern; that is the current folder if the pattern has no slash. */
static mercer_status search_folder(search *self, mrc_names *out)
{
    int64_t count, bytes;
    char *folder;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &folder, self->folder + 2, 1, "the name of a folder"));
    memcpy(folder, self->folder ? self->name : ".", (size_t)(self->folder ? self->folder : 1));
    folder[self->folder ? self->folder : 1] = 0;
    self->open = mrc_sys.opendir(folder);
    if (!self->open) return fail_folder(self, errno);
    MRC_TRY(measure_names(self, &count, &bytes));
    MRC_TRY(reserve(self, out, count, bytes));
    rewinddir(self->open);
    return copy_matches(self, out, bytes);
}

/* Finds the files of a name or pattern. Wildcards are not expanded if a file has exactly this name. A file without
   wildcards in its name need not exist: opening the file fails later. */
static mercer_status find_name(mrc_names *out, mercer_context *context, const char *name)
{
    struct stat about;
    const char *slash = strrchr(name, '/');
    MRC_OWNED(close_search) search self = {.context = context, .name = name, .pattern = slash ? slash + 1 : name};
    self.folder = (int)(self.pattern - name);
    *out = (mrc_names){0};
    if (strpbrk(self.pattern, "*?[") && mrc_sys.lstat(name, &about) != 0) return search_folder(&self, out);
    int64_t bytes = (int64_t)strlen(name) + 1;
    MRC_TRY(reserve(&self, out, 1, bytes));
    out->list[0] = memcpy((char *)(out->list + 1), name, (size_t)bytes);
    return MERCER_OK;
}

/* ---- Lists ---------------------------------------------------------------------------------------------------- */

/* The files of each name of a list. */
typedef struct name_list {
    mercer_context *context;
    mrc_names *each; /* (count) */
    int64_t count;
} name_list;

static void free_list(name_list *self)
{
    for (int64_t i = 0; self->each && i < self->count; i++) mrc_names_free(self->context, &self->each[i]);
    mrc_free(self->context, self->each);
}

/* Joins the files of all names, in the order of the names. */
static mercer_status join_names(const name_list *self, mrc_names *out)
{
    int64_t count = 0, bytes = 0;
    for (int64_t i = 0; i < self->count; i++)
        for (int64_t k = 0; k < self->each[i].count; k++, count++) bytes += (int64_t)strlen(self->each[i].list[k]) + 1;
    MRC_TRY(mrc_alloc(self->context, &out->list, count * (int64_t)sizeof(char *) + bytes, 1, "names of files"));
    char *at = (char *)(out->list + count);
    for (int64_t i = 0; i < self->count; i++)
        for (int64_t k = 0; k < self->each[i].count; k++) {
            size_t length = strlen(self->each[i].list[k]) + 1;
            out->list[out->count++] = memcpy(at, self->each[i].list[k], length);
            at += length;
        }
    return MERCER_OK;
}

/* Finds the files of a list of names. Empty names are skipped, unless all names are empty. */
static mercer_status find_list(mrc_names *out, mercer_context *context, const char *names)
{
    MRC_OWNED(free_list) name_list all = {.context = context};
    int64_t size = (int64_t)strlen(names) + 1, most = 1;
    char *copy;
    MRC_SCOPE(scope, context);
    for (const char *at = names; (at = strchr(at, MRC_NAME_SEPARATOR)) != NULL; at++) most++;
    MRC_TRY(mrc_scope_alloc(&scope, &copy, size, 1, "names of files"));
    memcpy(copy, names, (size_t)size);
    MRC_TRY(mrc_alloc_zero(context, &all.each, most, sizeof *all.each, "names of files"));
    for (char *at = copy, *end; at; at = end) {
        end = strchr(at, MRC_NAME_SEPARATOR);
        if (end) *end++ = 0;
        if (*at) MRC_TRY(find_name(&all.each[all.count++], context, at));
    }
    if (all.count == 0) return find_name(out, context, names);
    return join_names(&all, out);
}

mercer_status mrc_names_find(mrc_names *out, mercer_context *context, const char *name)
{
    struct stat about;
    *out = (mrc_names){0};
    bool list = strchr(name, MRC_NAME_SEPARATOR) && mrc_sys.lstat(name, &about) != 0;
    return list ? find_list(out, context, name) : find_name(out, context, name);
}

void mrc_names_free(mercer_context *context, mrc_names *names)
{
    mrc_free(context, (void *)names->list);
    *names = (mrc_names){0};
}

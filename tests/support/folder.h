/* SPDX-License-Identifier: BSD-3-Clause */
/* A temporary folder for a test program, and helpers that read, write and count files. */
#ifndef MRC_TESTS_FOLDER_H
#define MRC_TESTS_FOLDER_H

#include "support/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_CHARS = 512 };

static char folder[FOLDER_CHARS];

static inline void folder_open(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/mercer-test-XXXXXX", base && base[0] ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
}

/* Return the path of a file in the folder. It stays valid for eight calls. */
static inline const char *in_folder(const char *name)
{
    static char paths[8][FOLDER_CHARS + 128];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Return the number of files in the folder, hidden files included. */
static inline int folder_count(void)
{
    int count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) count++;
    closedir(list);
    return count;
}

static inline void folder_clear(void)
{
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
}

static inline void folder_close(void)
{
    folder_clear();
    assert_int_equal(rmdir(folder), 0);
}

/* Contents of a file; the owner frees `data`. */
typedef struct file_bytes {
    unsigned char *data;
    size_t count;
} file_bytes;

static inline file_bytes read_bytes(const char *path)
{
    struct stat about;
    int descriptor = open(path, O_RDONLY);
    assert_true(descriptor >= 0 && fstat(descriptor, &about) == 0);
    file_bytes out = {malloc((size_t)about.st_size + 1), (size_t)about.st_size};
    assert_non_null(out.data);
    assert_int_equal(read(descriptor, out.data, out.count), out.count);
    close(descriptor);
    return out;
}

static inline void write_bytes(const char *path, const void *data, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline void assert_same_bytes(const char *left, const char *right)
{
    file_bytes a = read_bytes(left), b = read_bytes(right);
    assert_that(a.count == b.count && memcmp(a.data, b.data, a.count) == 0, "%s (%zu bytes), %s (%zu bytes)", left,
                a.count, right, b.count);
    free(a.data), free(b.data);
}

#endif

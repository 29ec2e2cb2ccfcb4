/* SPDX-License-Identifier: BSD-3-Clause */
/* Presents the fuzzer's bytes as a named file, and corrects the checksums of a tensor file. */
#ifndef MRC_TESTS_FUZZ_FILE_H
#define MRC_TESTS_FUZZ_FILE_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first header: memfd_create, memmem"
#endif

#include "model/tensor_format.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

/* Write the bytes to an in-memory file and return its path. Each call overwrites the same file. */
static inline const char *fuzz_file(const void *data, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0) file = memfd_create("input", 0);
    if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

/* Overwrite the 16 digits after the first "key":" of the header with `sum`, if there are any. */
static inline void fuzz_put_digits(char *header, size_t length, const char *key, uint64_t sum)
{
    char word[2 * MRC_TENSOR_DIGITS + 96], digits[MRC_TENSOR_DIGITS + 1];
    int chars = snprintf(word, sizeof word, "\"%s\":\"", key);
    if (chars >= (int)sizeof word) return;
    char *found = memmem(header, length, word, (size_t)chars);
    if (!found || header + length - found < chars + MRC_TENSOR_DIGITS) return;
    mrc_tensor_digits(sum, digits);
    memcpy(found + chars, digits, MRC_TENSOR_DIGITS);
}

/* Correct all checksums in the bytes. Otherwise they would reject every mutation before the later code is reached. */
static inline void fuzz_put_right(uint8_t *data, size_t size)
{
    uint64_t length, sum;
    if (size < 8) return;
    memcpy(&length, data, 8);
    if (length > size - 8 || length < sizeof MRC_TENSOR_HEADER_START + MRC_TENSOR_DIGITS) return;
    char *header = (char *)data + 8;
    json_t *root = json_loadb(header, (size_t)length, 0, NULL), *about;
    const char *name;
    json_object_foreach(root, name, about)
    {
        const json_t *offsets = json_object_get(about, "data_offsets");
        json_int_t begin = json_integer_value(json_array_get(offsets, 0)),
                   end = json_integer_value(json_array_get(offsets, 1));
        char key[128];
        if (!offsets || begin < 0 || end < begin || (uint64_t)end > size - 8 - length) continue;
        snprintf(key, sizeof key, "xxh3.%s", name);
        fuzz_put_digits(header, (size_t)length, key, XXH3_64bits(data + 8 + length + begin, (size_t)(end - begin)));
    }
    json_decref(root);
    if (mrc_tensor_header_checksum(header, (int64_t)length, &sum))
        fuzz_put_digits(header, (size_t)length, "xxh3.header", sum);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: any bytes as a model file. They are loaded twice: as they are, and with their checksums put right, since
 * otherwise every change of the fuzzer's would be noticed before the code behind the checksums sees it. A model that
 * loads must predict.
 */
#define _GNU_SOURCE /* memfd_create */

#include "core/matrix.h"
#include "model/tensor_format.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 16, MOST_COLUMNS = 64 };

static mercer_context *context;
static int file = -1;
static char path[64];

static void open_once(void)
{
    if (file >= 0) return;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = 1;
    file = memfd_create("model", 0);
    if (file < 0 || mercer_context_create(&context, &options) != MERCER_OK) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
}

static void load(const uint8_t *data, size_t size)
{
    mercer_model *model;
    double x[MOST_COLUMNS] = {0}, f[MOST_COLUMNS];
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size) abort();
    mercer_status status = mercer_model_load(&model, context, path);
    if (status != MERCER_OK) {
        const char *message = mercer_last_error(context);
        if (model || !strstr(message, path) || strchr(message, '\n')) abort(); /* one line that names the file */
        return;
    }
    int64_t d = mercer_model_centers(model).cols, c = mercer_model_weights(model).cols;
    if (d <= MOST_COLUMNS && c <= MOST_COLUMNS) {
        mercer_matrix in = mrc_view(x, 1, d, MERCER_F64), out = mrc_view(f, 1, c, MERCER_F64);
        status = mercer_model_predict(model, &out, &in);
        /* Weights or units may be so large that predictions overflow, which is refused. */
        if (status != MERCER_OK && status != MERCER_ERROR_DATA && status != MERCER_ERROR_NUMERIC) abort();
    }
    mercer_model_free(model);
}

/* Puts 16 digits behind the first "key":" of the header. */
static void put_digits(char *header, size_t length, const char *key, uint64_t sum)
{
    char word[2 * MRC_TENSOR_DIGITS + 96], digits[MRC_TENSOR_DIGITS + 1];
    int chars = snprintf(word, sizeof word, "\"%s\":\"", key);
    if (chars >= (int)sizeof word) return;
    char *found = memmem(header, length, word, (size_t)chars);
    if (!found || header + length - found < chars + MRC_TENSOR_DIGITS) return;
    mrc_tensor_digits(sum, digits);
    memcpy(found + chars, digits, MRC_TENSOR_DIGITS);
}

static void put_right(uint8_t *data, size_t size)
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
        put_digits(header, (size_t)length, key, XXH3_64bits(data + 8 + length + begin, (size_t)(end - begin)));
    }
    json_decref(root);
    if (mrc_tensor_header_checksum(header, (int64_t)length, &sum))
        put_digits(header, (size_t)length, "xxh3.header", sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t copy[MOST_BYTES];
    open_once();
    if (size > sizeof copy) return 0;
    load(data, size);
    memcpy(copy, data, size);
    put_right(copy, size);
    load(copy, size);
    return 0;
}

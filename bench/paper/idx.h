/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the four gzip'ed IDX files of MNIST-like data for benchmarks and tests. */
#ifndef MERCER_BENCH_IDX_H
#define MERCER_BENCH_IDX_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

typedef struct idx_data {
    int64_t n, d;
    uint8_t *pixels; /* (n, d) */
    int32_t *labels; /* (n) */
} idx_data;

static inline uint32_t idx_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Read the payload of a file with the given number of dimensions; the caller frees the payload. sizes[]: the size of
   each dimension. Returns NULL and prints a message on failure. */
static inline uint8_t *idx_read_file(const char *path, int dimensions, uint32_t *sizes)
{
    gzFile file = gzopen(path, "rb");
    uint8_t head[16], *payload = NULL;
    uint32_t bytes = 1;
    int head_bytes = 4 + 4 * dimensions;
    if (file && gzread(file, head, (unsigned)head_bytes) == head_bytes && head[2] == 8 && head[3] == dimensions) {
        for (int i = 0; i < dimensions; i++) bytes *= sizes[i] = idx_word(head + 4 + 4 * i);
        payload = malloc(bytes);
        if (payload && gzread(file, payload, bytes) != (int)bytes) {
            free(payload);
            payload = NULL;
        }
    }
    if (file) gzclose(file);
    if (!payload) fprintf(stderr, "%s: cannot be read as IDX\n", path);
    return payload;
}

/* Load images and labels; part: "train" or "t10k". Returns 0 on success. */
static inline int idx_load(idx_data *out, const char *folder, const char *part)
{
    char path[4096];
    uint32_t shape[3], count;
    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte.gz", folder, part);
    out->pixels = idx_read_file(path, 3, shape);
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    uint8_t *bytes = out->pixels ? idx_read_file(path, 1, &count) : NULL;
    out->labels = bytes && count == shape[0] ? malloc(count * sizeof *out->labels) : NULL;
    if (!out->labels) {
        free(out->pixels);
        free(bytes);
        return 1;
    }
    out->n = shape[0];
    out->d = (int64_t)shape[1] * shape[2];
    for (uint32_t i = 0; i < count; i++) out->labels[i] = bytes[i];
    free(bytes);
    return 0;
}

static inline void idx_free(idx_data *data)
{
    free(data->pixels);
    free(data->labels);
}

#endif

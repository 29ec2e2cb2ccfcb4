/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small gray images inside the page: PNG (8 bits, one channel), in base64.
 *
 * A PNG is a signature and chunks: length, name, data, CRC of name and data. IHDR holds the shape, IDAT the rows, each
 * with a filter byte 0 before it, compressed by zlib, IEND nothing.
 */
#include "report/report.h"

#include "cli.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static unsigned char *put_word(unsigned char *at, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) *at++ = (unsigned char)(value >> shift);
    return at;
}

static unsigned char *put_chunk(unsigned char *at, const char *name, const unsigned char *data, size_t bytes)
{
    at = put_word(at, (uint32_t)bytes);
    unsigned char *start = at;
    memcpy(at, name, 4);
    if (bytes > 0) memcpy(at + 4, data, bytes);
    at += 4 + bytes;
    return put_word(at, (uint32_t)crc32(0, start, (uInt)(4 + bytes)));
}

static void add_base64(page *out, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;
        if (i + 1 < count) three |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < count) three |= bytes[i + 2];
        char four[5] = {digits[three >> 18], digits[three >> 12 & 63], digits[three >> 6 & 63], digits[three & 63], 0};
        if (i + 1 >= count) four[2] = '=';
        if (i + 2 >= count) four[3] = '=';
        page_add(out, four);
    }
}

void report_image(page *out, const unsigned char *pixels, int height, int width, const char *text)
{
    static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    unsigned char shape[13] = {0};
    size_t raw_bytes = (size_t)height * ((size_t)width + 1);
    uLongf packed_bytes = compressBound((uLong)raw_bytes);
    unsigned char *raw = cli_allocate((int64_t)raw_bytes, 1), *packed = cli_allocate((int64_t)packed_bytes, 1);
    for (int i = 0; i < height; i++)
        memcpy(raw + (size_t)i * ((size_t)width + 1) + 1, pixels + (size_t)i * (size_t)width, (size_t)width);
    put_word(put_word(shape, (uint32_t)width), (uint32_t)height);
    shape[8] = 8; /* bits; then 0: gray, and the only methods there are */
    if (compress2(packed, &packed_bytes, raw, (uLong)raw_bytes, 9) == Z_OK) {
        unsigned char *file = cli_allocate((int64_t)packed_bytes + 100, 1), *end = file + sizeof signature;
        memcpy(file, signature, sizeof signature);
        end = put_chunk(end, "IHDR", shape, sizeof shape);
        end = put_chunk(end, "IDAT", packed, packed_bytes);
        end = put_chunk(end, "IEND", NULL, 0);
        page_print(out, "<img width=\"%d\" height=\"%d\" alt=\"%s\" src=\"data:image/png;base64,", width, height, text);
        add_base64(out, file, (size_t)(end - file));
        page_add(out, "\">");
        free(file);
    }
    free(raw), free(packed);
}

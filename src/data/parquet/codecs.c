/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decompression of pages by codec. Codecs are numbered as in Parquet's Thrift definition; lzo, brotli and codec 5, an
 * older framing of LZ4, are refused. The header of a page states the decompressed size, and decompression must yield
 * exactly this number of bytes. mrc_codec_most bounds the stated size before memory is allocated.
 */
#include "data/parquet/codecs.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#if defined(MERCER_ZSTD)
#include <zstd.h>
#endif

static const char *codec_name(int64_t codec)
{
    static const char *const names[] = {"no compression", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw"};
    return codec >= 0 && codec < (int64_t)(sizeof names / sizeof *names) ? names[codec] : "an unknown codec";
}

mercer_status mrc_codec_check(const mrc_page_place *place, int64_t codec)
{
    char name[MRC_EXCERPT_CHARS];
    bool known = codec == MRC_CODEC_NONE || codec == MRC_CODEC_SNAPPY || codec == MRC_CODEC_GZIP ||
                 codec == MRC_CODEC_LZ4 || codec == MRC_CODEC_ZSTD;
    const char *why = known ? "" : "which is not supported; ";
#if !defined(MERCER_ZSTD)
    if (codec == MRC_CODEC_ZSTD) known = false, why = "but Mercer was built without libzstd; ";
#endif
    if (known) return MERCER_OK;
    return mrc_fail(place->input->context, MERCER_ERROR_FORMAT,
                    "%s: column '%s' is compressed with %s (%lld), %suse snappy, gzip, lz4_raw, zstd or no compression",
                    place->input->path, mrc_excerpt(name, place->name, place->name_length), codec_name(codec),
                    (long long)codec, why);
}

int64_t mrc_codec_most(int64_t codec, int64_t bytes)
{
    /* largest ratios of decompressed to compressed bytes: snappy copies 64 bytes with 3; a byte of LZ4 adds 255 to a
       length; deflate reaches 1032 */
    int64_t ratio = codec == MRC_CODEC_SNAPPY ? 22 : codec == MRC_CODEC_LZ4 ? 256 : codec == MRC_CODEC_GZIP ? 1032 : 1;
    int64_t most;
    return codec != MRC_CODEC_ZSTD && mrc_multiply(bytes, ratio, &most) ? most : INT64_MAX;
}

/* ---- gzip -------------------------------------------------------------------------------------------------------- */

static void *allocate_for_zlib(void *user, unsigned count, unsigned size)
{
    void *memory;
    return mrc_alloc(user, &memory, count, size, "unpacking") == MERCER_OK ? memory : Z_NULL;
}

static void release_for_zlib(void *user, void *memory)
{
    mrc_free(user, memory);
}

static void close_stream(z_stream *stream)
{
    inflateEnd(stream);
}

/* Decompresses one or several gzip or zlib streams. */
static mercer_status gzip_unpack(const mrc_page_place *place, const uint8_t *data, int64_t bytes, uint8_t *out,
                                 int64_t size, bool *fine)
{
    MRC_OWNED(close_stream)
    z_stream stream = {.zalloc = allocate_for_zlib, .zfree = release_for_zlib, .opaque = place->input->context};
    int result = inflateInit2(&stream, 15 + 32); /* 15: largest window; + 32: detect the header */
    if (result == Z_MEM_ERROR) return MERCER_ERROR_MEMORY;
    stream.next_in = (Bytef *)data;
    stream.avail_in = (uInt)bytes; /* sizes of pages are below 2^31 */
    stream.next_out = out;
    stream.avail_out = (uInt)size;
    /* All input and space for all output are available, so each call completes a stream or fails. The next stream
       begins directly after the previous one. */
    while (result == Z_OK) {
        result = inflate(&stream, Z_FINISH);
        if (result == Z_STREAM_END && stream.avail_in > 0) result = inflateReset(&stream);
    }
    *fine = result == Z_STREAM_END && stream.avail_out == 0;
    return result == Z_MEM_ERROR ? MERCER_ERROR_MEMORY : MERCER_OK;
}

/* ---- zstd -------------------------------------------------------------------------------------------------------- */

#if defined(MERCER_ZSTD)
static bool zstd_unpack(const uint8_t *data, int64_t bytes, uint8_t *out, int64_t size)
{
    return ZSTD_decompress(out, (size_t)size, data, (size_t)bytes) == (size_t)size;
}
#else
static bool zstd_unpack(const uint8_t *data, int64_t bytes, uint8_t *out, int64_t size)
{
    (void)data, (void)bytes, (void)out, (void)size;
    return false; /* not reached: mrc_codec_check refuses the codec */
}
#endif

mercer_status mrc_page_unpack(const mrc_page_place *place, int64_t codec, const uint8_t *data, int64_t bytes,
                              uint8_t *out, int64_t size)
{
    char what[64];
    bool fine = false;
    switch (codec) {
        case MRC_CODEC_SNAPPY: fine = mrc_snappy_unpack(data, bytes, out, size); break;
        case MRC_CODEC_LZ4: fine = mrc_lz4_unpack(data, bytes, out, size); break;
        case MRC_CODEC_ZSTD: fine = zstd_unpack(data, bytes, out, size); break;
        case MRC_CODEC_GZIP: MRC_TRY(gzip_unpack(place, data, bytes, out, size, &fine)); break;
        default: break;
    }
    if (fine) return MERCER_OK;
    snprintf(what, sizeof what, "a page compressed with %s is damaged", codec_name(codec));
    return mrc_page_fail(place, what);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Decompression of pages, whose decompressed size is known: snappy, lz4 blocks, gzip, zstd. */
#ifndef MRC_DATA_PARQUET_CODECS_H
#define MRC_DATA_PARQUET_CODECS_H

#include "data/parquet/encodings.h"

enum { MRC_CODEC_NONE = 0, MRC_CODEC_SNAPPY = 1, MRC_CODEC_GZIP = 2, MRC_CODEC_ZSTD = 6, MRC_CODEC_LZ4 = 7 };

/* Decompresses a page to exactly `size` bytes at `out`. */
mercer_status mrc_page_unpack(const mrc_page_place *place, int64_t codec, const uint8_t *data, int64_t bytes,
                              uint8_t *out, int64_t size);
/* Fails if the codec is not supported. The message names the codec. */
mercer_status mrc_codec_check(const mrc_page_place *place, int64_t codec);
/* Returns the largest decompressed size of `bytes` compressed bytes; INT64_MAX if there is no limit. */
int64_t mrc_codec_most(int64_t codec, int64_t bytes);

/* Decompress blocks. Return false unless the result has exactly `size` bytes. */
bool mrc_snappy_unpack(const uint8_t *data, int64_t bytes, uint8_t *out, int64_t size);
bool mrc_lz4_unpack(const uint8_t *data, int64_t bytes, uint8_t *out, int64_t size);

#endif

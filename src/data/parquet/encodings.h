/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodings of the values in a page: plain, dictionary codes, runs and packed bits, deltas, split bytes. */
#ifndef MRC_DATA_PARQUET_ENCODINGS_H
#define MRC_DATA_PARQUET_ENCODINGS_H

#include "data/files/input.h"

/* Location of a page, for messages. */
typedef struct mrc_page_place {
    const mrc_input *input;
    const char *name; /* (name_length) name of the column */
    int64_t name_length;
    int64_t group; /* row group, from 0 */
} mrc_page_place;

/* Fails with "FILE: column 'a', row group 0: WHAT". */
mercer_status mrc_page_fail(const mrc_page_place *place, const char *what);

/* ---- Runs and packed bits --------------------------------------------------------------------------------------- */

/* Decodes integers of up to 32 bits, which are stored as runs of equal values and as packed bits. */
typedef struct mrc_hybrid {
    const uint8_t *at, *end;
    int width;
    int64_t repeated; /* values left in a run */
    int64_t packed;   /* values left in packed bits */
    const uint8_t *bits;
    int64_t position; /* offset of the next packed value, in bits from `bits` */
    int32_t value;    /* value of the run */
} mrc_hybrid;

mrc_hybrid mrc_hybrid_open(const uint8_t *at, const uint8_t *end, int width);
/* Reads `count` values. Returns false if there are fewer. */
bool mrc_hybrid_take(mrc_hybrid *hybrid, int64_t count, int32_t *out);
/* Skips up to `count` values of a run of ones. Returns their number. */
int64_t mrc_hybrid_take_ones(mrc_hybrid *hybrid, int64_t count);

/* ---- Deltas ------------------------------------------------------------------------------------------------------ */

/* Decodes integers that are stored as differences, in blocks of packed bits (DELTA_BINARY_PACKED). */
typedef struct mrc_delta {
    const uint8_t *at, *end;
    int64_t left;            /* values left, including the first */
    int64_t minis, per_mini; /* parts of a block; values per part */
    int64_t mini, mini_left; /* current part; values left in it */
    const uint8_t *widths;   /* (minis) bits of the values of each part */
    const uint8_t *bits;     /* packed bits of the current part */
    int64_t position;        /* offset of the next value, in bits from `bits` */
    uint64_t value, minimum; /* previous value; least difference of the block */
    int width;
    bool first; /* true: the next value is the first, which is `value` */
} mrc_delta;

/* Returns false if the header is not valid. */
bool mrc_delta_open(mrc_delta *out, const uint8_t *at, const uint8_t *end);
bool mrc_delta_take(mrc_delta *delta, int64_t count, int64_t *out);
/* Returns the end of the encoded values; NULL if they are not complete. `delta` must just have been opened. */
const uint8_t *mrc_delta_end(const mrc_delta *delta);

/* ---- Values of a page ------------------------------------------------------------------------------------------- */

enum mrc_encoding {
    MRC_ENCODING_PLAIN = 0,
    MRC_ENCODING_PLAIN_DICTIONARY = 2,
    MRC_ENCODING_RLE = 3,
    MRC_ENCODING_DELTA = 5,
    MRC_ENCODING_DELTA_LENGTH = 6,
    MRC_ENCODING_DELTA_BYTES = 7,
    MRC_ENCODING_DICTIONARY = 8,
    MRC_ENCODING_SPLIT = 9
};

struct mrc_parquet_word;

/* Decodes the values of a page that are present, in order. */
typedef struct mrc_decoder {
    mrc_page_place place;
    int64_t encoding;
    int type;      /* mrc_parquet_type */
    int64_t width; /* bytes of a value, if all have the same size */
    const uint8_t *at, *end;
    int64_t position; /* PLAIN booleans: bits read; SPLIT: values read */
    mrc_hybrid codes; /* dictionary codes, and runs of booleans */
    mrc_delta delta;  /* integers, lengths, or lengths of the common beginning */
    mrc_delta rest;   /* DELTA_BYTES: lengths of the rest */
    uint8_t *texts;   /* (capacity) values of the current batch, for DELTA_BYTES and SPLIT; owned */
    int64_t capacity;
    int64_t last, last_length; /* DELTA_BYTES: previous value, in `texts` */
} mrc_decoder;

/* Begins to decode a page. The buffer `texts` of the decoder is reused from page to page. */
mercer_status mrc_decoder_open(mrc_decoder *self, int64_t encoding, const uint8_t *at, const uint8_t *end);
void mrc_decoder_close(mrc_decoder *self);
bool mrc_decoder_is_coded(const mrc_decoder *self);
/* Decode the next `count` values, at most MRC_PARQUET_BATCH. */
mercer_status mrc_decoder_codes(mrc_decoder *self, int64_t count, int64_t dictionary, int32_t *out);
mercer_status mrc_decoder_integers(mrc_decoder *self, int64_t count, int64_t *out);
mercer_status mrc_decoder_reals(mrc_decoder *self, int64_t count, double *out);
mercer_status mrc_decoder_words(mrc_decoder *self, int64_t count, struct mrc_parquet_word *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoding of the values of a page.
 *
 *   PLAIN          numbers as they are in memory, booleans as bits; texts as length (4 bytes) and bytes
 *   DICTIONARY     width of the codes in bits (1 byte), then codes as runs and packed bits
 *   RLE            booleans: length (4 bytes), then runs and packed bits of width 1
 *   DELTA          integers as deltas
 *   DELTA_LENGTH   all lengths as deltas, then the bytes of all texts
 *   DELTA_BYTES    as deltas: lengths of the prefixes shared with the previous text, and of the rests; then the rests
 *   SPLIT          byte 0 of all values, then byte 1 of all values, ...
 *
 * Numbers are little-endian in the file and are copied without conversion, so the machine must be little-endian, too.
 * Every length and code is checked before it is used.
 */
#include "data/parquet/encodings.h"

#include "core/memory.h"
#include "data/parquet/parquet.h"

#include <stdio.h>
#include <string.h>

static const char too_few[] = "a page has fewer values than it declares";

mercer_status mrc_page_fail(const mrc_page_place *place, const char *what)
{
    char name[MRC_EXCERPT_CHARS];
    return mrc_fail(place->input->context, MERCER_ERROR_FORMAT,
                    "%s: column '%s', row group %lld: %s; create the file again", place->input->path,
                    mrc_excerpt(name, place->name, place->name_length), (long long)place->group, what);
}

/* ---- Beginning of a page ---------------------------------------------------------------------------------------- */

bool mrc_decoder_is_coded(const mrc_decoder *self)
{
    return self->encoding == MRC_ENCODING_DICTIONARY || self->encoding == MRC_ENCODING_PLAIN_DICTIONARY;
}

/* Returns whether values of the type may have the encoding. */
static bool is_allowed(int64_t encoding, int type)
{
    bool integers = type == MRC_PARQUET_INT32 || type == MRC_PARQUET_INT64;
    switch (encoding) {
        case MRC_ENCODING_PLAIN: return true;
        case MRC_ENCODING_PLAIN_DICTIONARY:
        case MRC_ENCODING_DICTIONARY: return type != MRC_PARQUET_BOOLEAN;
        case MRC_ENCODING_RLE: return type == MRC_PARQUET_BOOLEAN;
        case MRC_ENCODING_DELTA: return integers;
        case MRC_ENCODING_DELTA_LENGTH: return type == MRC_PARQUET_BYTES;
        case MRC_ENCODING_DELTA_BYTES: return type == MRC_PARQUET_BYTES || type == MRC_PARQUET_FIXED;
        case MRC_ENCODING_SPLIT:
            return integers || type == MRC_PARQUET_FLOAT || type == MRC_PARQUET_DOUBLE || type == MRC_PARQUET_FIXED;
        default: return false;
    }
}

static mercer_status fail_encoding(const mrc_decoder *self, int64_t encoding)
{
    char what[96];
    snprintf(what, sizeof what, "its values have encoding %lld, which is not supported for their type",
             (long long)encoding);
    return mrc_page_fail(&self->place, what);
}

/* Begins a page of texts whose lengths come first, as deltas. */
static mercer_status open_lengths(mrc_decoder *self)
{
    static const char wrong[] = "the lengths of a page of texts are damaged";
    if (!mrc_delta_open(&self->delta, self->at, self->end)) return mrc_page_fail(&self->place, wrong);
    self->at = mrc_delta_end(&self->delta);
    if (!self->at) return mrc_page_fail(&self->place, wrong);
    if (self->encoding == MRC_ENCODING_DELTA_LENGTH) return MERCER_OK;
    if (!mrc_delta_open(&self->rest, self->at, self->end)) return mrc_page_fail(&self->place, wrong);
    self->at = mrc_delta_end(&self->rest);
    return self->at ? MERCER_OK : mrc_page_fail(&self->place, wrong);
}

mercer_status mrc_decoder_open(mrc_decoder *self, int64_t encoding, const uint8_t *at, const uint8_t *end)
{
    uint32_t bytes;
    self->encoding = encoding;
    self->at = at, self->end = end;
    self->position = 0;
    self->last = self->last_length = 0;
    if (!is_allowed(encoding, self->type)) return fail_encoding(self, encoding);
    if (mrc_decoder_is_coded(self)) {
        /* a page without values may lack the byte with the width */
        if (at<end && * at> 31) return mrc_page_fail(&self->place, "the width of its dictionary codes is not valid");
        self->codes = mrc_hybrid_open(at < end ? at + 1 : at, end, at < end ? *at : 0);
    } else if (encoding == MRC_ENCODING_RLE) {
        if (end - at < 4) return mrc_page_fail(&self->place, too_few);
        memcpy(&bytes, at, 4);
        if (bytes > end - at - 4) return mrc_page_fail(&self->place, too_few);
        self->codes = mrc_hybrid_open(at + 4, at + 4 + bytes, 1);
    } else if (encoding == MRC_ENCODING_DELTA) {
        if (!mrc_delta_open(&self->delta, at, end)) return mrc_page_fail(&self->place, "a page of deltas is damaged");
    } else if (encoding == MRC_ENCODING_DELTA_LENGTH || encoding == MRC_ENCODING_DELTA_BYTES) {
        return open_lengths(self);
    } else if (encoding == MRC_ENCODING_SPLIT && (end - at) % self->width) {
        return mrc_page_fail(&self->place, "a page of split bytes has an incomplete value");
    }
    return MERCER_OK;
}

void mrc_decoder_close(mrc_decoder *self)
{
    if (!self->texts) return;
    self->place.input->budget->used -= self->capacity;
    mrc_free(self->place.input->context, self->texts);
    self->texts = NULL;
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

mercer_status mrc_decoder_codes(mrc_decoder *self, int64_t count, int64_t dictionary, int32_t *out)
{
    uint32_t most = 0;
    if (!mrc_hybrid_take(&self->codes, count, out)) return mrc_page_fail(&self->place, too_few);
    /* Only the largest code of a batch is compared. Negative codes are large as unsigned numbers. */
    for (int64_t i = 0; i < count; i++) most = (uint32_t)out[i] > most ? (uint32_t)out[i] : most;
    if (count > 0 && most >= dictionary)
        return mrc_page_fail(&self->place, "a value is not in the dictionary of its row group");
    return MERCER_OK;
}

/* Gathers the bytes of `count` split values: byte k of value i is at k n + i, where n is the number of values. */
static const uint8_t *gather(const mrc_decoder *self, int64_t count, uint8_t *out)
{
    int64_t values = (self->end - self->at) / self->width;
    for (int64_t k = 0; k < self->width; k++) {
        const uint8_t *from = self->at + k * values + self->position;
        for (int64_t i = 0; i < count; i++) out[i * self->width + k] = from[i];
    }
    return out;
}

/* Returns the next `count` values, of up to 8 bytes each; NULL if fewer are left. Plain values stay in the page, split
   values are gathered in `buffer`. */
static const uint8_t *take_fixed(mrc_decoder *self, int64_t count, uint8_t buffer[MRC_PARQUET_BATCH * 8])
{
    if (self->encoding == MRC_ENCODING_SPLIT) {
        if ((self->end - self->at) / self->width - self->position < count) return NULL;
        gather(self, count, buffer);
        self->position += count;
        return buffer;
    }
    const uint8_t *at = self->at;
    if ((self->end - at) / self->width < count) return NULL;
    self->at += count * self->width;
    return at;
}

/* Converts a time of 96 bits (nanoseconds of the day, then the Julian day) to nanoseconds since 1970-01-01. Returns
   false on overflow. */
static bool read_int96(const uint8_t *at, int64_t *out)
{
    /* 2440588 is the Julian day of 1970-01-01. */
    const int64_t epoch = 2440588, day = 86400;
    int64_t nanoseconds, whole;
    uint32_t julian;
    memcpy(&nanoseconds, at, 8);
    memcpy(&julian, at + 8, 4);
    return mrc_multiply((int64_t)julian - epoch, day * 1000000000, &whole) && mrc_add(whole, nanoseconds, out);
}

static mercer_status take_int96(mrc_decoder *self, int64_t count, int64_t *out)
{
    if ((self->end - self->at) / 12 < count) return mrc_page_fail(&self->place, too_few);
    for (int64_t i = 0; i < count; i++, self->at += 12)
        if (!read_int96(self->at, &out[i]))
            return mrc_page_fail(&self->place, "a time is outside the years 1678 to 2262");
    return MERCER_OK;
}

static mercer_status take_booleans(mrc_decoder *self, int64_t count, int64_t *out)
{
    int32_t bits[MRC_PARQUET_BATCH];
    if (self->encoding == MRC_ENCODING_RLE) {
        if (!mrc_hybrid_take(&self->codes, count, bits)) return mrc_page_fail(&self->place, too_few);
        for (int64_t i = 0; i < count; i++) out[i] = bits[i];
        return MERCER_OK;
    }
    if ((self->end - self->at) * 8 - self->position < count) return mrc_page_fail(&self->place, too_few);
    for (int64_t i = 0; i < count; i++, self->position++)
        out[i] = self->at[self->position / 8] >> self->position % 8 & 1;
    return MERCER_OK;
}

mercer_status mrc_decoder_integers(mrc_decoder *self, int64_t count, int64_t *out)
{
    uint8_t buffer[MRC_PARQUET_BATCH * 8];
    if (self->type == MRC_PARQUET_BOOLEAN) return take_booleans(self, count, out);
    if (self->type == MRC_PARQUET_INT96) return take_int96(self, count, out);
    if (self->encoding == MRC_ENCODING_DELTA) {
        if (!mrc_delta_take(&self->delta, count, out)) return mrc_page_fail(&self->place, too_few);
        for (int64_t i = 0; i < count && self->type == MRC_PARQUET_INT32; i++) out[i] = (int32_t)out[i];
        return MERCER_OK;
    }
    const uint8_t *at = take_fixed(self, count, buffer);
    if (!at) return mrc_page_fail(&self->place, too_few);
    if (self->type == MRC_PARQUET_INT64) memcpy(out, at, (size_t)count * 8);
    for (int64_t i = 0; i < count && self->type == MRC_PARQUET_INT32; i++) {
        int32_t value;
        memcpy(&value, at + 4 * i, 4);
        out[i] = value;
    }
    return MERCER_OK;
}

mercer_status mrc_decoder_reals(mrc_decoder *self, int64_t count, double *out)
{
    uint8_t buffer[MRC_PARQUET_BATCH * 8];
    const uint8_t *at = take_fixed(self, count, buffer);
    if (!at) return mrc_page_fail(&self->place, too_few);
    if (self->type == MRC_PARQUET_DOUBLE) memcpy(out, at, (size_t)count * 8);
    for (int64_t i = 0; i < count && self->type == MRC_PARQUET_FLOAT; i++) {
        float value;
        memcpy(&value, at + 4 * i, 4);
        out[i] = (double)value;
    }
    return MERCER_OK;
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------- */

/* Grows `texts` to at least `bytes` bytes; sizes are doubled up to 1 MiB. The content may move, so the addresses of
   texts are set only after the last text of a batch. */
static mercer_status reserve_texts(mrc_decoder *self, int64_t bytes)
{
    const mrc_input *input = self->place.input;
    if (bytes <= self->capacity) return MERCER_OK;
    int64_t capacity = mrc_max(bytes, mrc_min(2 * bytes, 1 << 20));
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, capacity - self->capacity));
    mercer_status status = mrc_move(input->context, &self->texts, self->capacity, capacity, "a page");
    if (status)
        input->budget->used -= capacity - self->capacity;
    else
        self->capacity = capacity;
    return status;
}

/* Reads texts that share a beginning with the previous text. The last text of the previous batch is first moved to the
   start of `texts`. */
static mercer_status take_prefixed(mrc_decoder *self, int64_t count, mrc_parquet_word *out)
{
    int64_t prefix[MRC_PARQUET_BATCH], rest[MRC_PARQUET_BATCH], used = self->last_length;
    if (!mrc_delta_take(&self->delta, count, prefix) || !mrc_delta_take(&self->rest, count, rest))
        return mrc_page_fail(&self->place, too_few);
    if (used > 0) memmove(self->texts, self->texts + self->last, (size_t)used);
    self->last = 0;
    for (int64_t i = 0; i < count; i++) {
        if (prefix[i] < 0 || prefix[i] > self->last_length || rest[i] < 0 || rest[i] > self->end - self->at)
            return mrc_page_fail(&self->place, "the length of a text is not valid");
        MRC_TRY(reserve_texts(self, used + prefix[i] + rest[i]));
        if (prefix[i] > 0) memcpy(self->texts + used, self->texts + self->last, (size_t)prefix[i]);
        if (rest[i] > 0) memcpy(self->texts + used + prefix[i], self->at, (size_t)rest[i]);
        self->at += rest[i];
        self->last = used;
        self->last_length = out[i].length = prefix[i] + rest[i];
        used += out[i].length;
    }
    /* The texts of this batch are contiguous and end at `used`. `texts` does not move any more, so the addresses can be
       set. */
    const uint8_t *end = self->texts + used;
    for (int64_t i = count; i-- > 0; end -= out[i].length) out[i].bytes = used > 0 ? end - out[i].length : self->at;
    return MERCER_OK;
}

/* Reads texts of the encoding DELTA_LENGTH: all lengths come first, then all bytes. */
static mercer_status take_measured(mrc_decoder *self, int64_t count, mrc_parquet_word *out)
{
    int64_t lengths[MRC_PARQUET_BATCH];
    if (!mrc_delta_take(&self->delta, count, lengths)) return mrc_page_fail(&self->place, too_few);
    for (int64_t i = 0; i < count; i++) {
        if (lengths[i] < 0 || lengths[i] > self->end - self->at)
            return mrc_page_fail(&self->place, "the length of a text is not valid");
        out[i] = (mrc_parquet_word){self->at, lengths[i]};
        self->at += lengths[i];
    }
    return MERCER_OK;
}

/* Reads plain texts: each is a length of four bytes, then the bytes. */
static mercer_status take_plain(mrc_decoder *self, int64_t count, mrc_parquet_word *out)
{
    const uint8_t *at = self->at;
    for (int64_t i = 0; i < count; i++) {
        uint32_t length;
        if (self->end - at < 4) return mrc_page_fail(&self->place, too_few);
        memcpy(&length, at, 4);
        at += 4;
        if (length > self->end - at) return mrc_page_fail(&self->place, "the length of a text is not valid");
        out[i] = (mrc_parquet_word){at, length};
        at += length;
    }
    self->at = at;
    return MERCER_OK;
}

/* Reads values of type FIXED, plain or split. Split values are gathered in `texts` and are valid until the next
   batch. */
static mercer_status take_equal(mrc_decoder *self, int64_t count, mrc_parquet_word *out)
{
    int64_t width = self->width;
    bool split = self->encoding == MRC_ENCODING_SPLIT;
    if ((self->end - self->at) / width - (split ? self->position : 0) < count)
        return mrc_page_fail(&self->place, too_few);
    if (split) MRC_TRY(reserve_texts(self, count * width));
    const uint8_t *at = split ? gather(self, count, self->texts) : self->at;
    for (int64_t i = 0; i < count; i++) out[i] = (mrc_parquet_word){at + i * width, width};
    if (split)
        self->position += count;
    else
        self->at += count * width;
    return MERCER_OK;
}

mercer_status mrc_decoder_words(mrc_decoder *self, int64_t count, mrc_parquet_word *out)
{
    if (self->encoding == MRC_ENCODING_DELTA_LENGTH) return take_measured(self, count, out);
    if (self->encoding == MRC_ENCODING_DELTA_BYTES) {
        MRC_TRY(take_prefixed(self, count, out));
        for (int64_t i = 0; i < count && self->type == MRC_PARQUET_FIXED; i++)
            if (out[i].length != self->width) return mrc_page_fail(&self->place, "a value has the wrong length");
        return MERCER_OK;
    }
    return self->type == MRC_PARQUET_FIXED ? take_equal(self, count, out) : take_plain(self, count, out);
}

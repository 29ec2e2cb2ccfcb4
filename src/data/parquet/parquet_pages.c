/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pages of a column, in order: headers, checksums, definition levels and dictionaries.
 *
 * A page is decompressed into the buffer of its reader, or decoded in place if it is not compressed. The definition
 * levels of a page say which rows have a value. Only the values of these rows are stored.
 */
#include "core/memory.h"
#include "data/parquet/codecs.h"
#include "data/parquet/parquet.h"
#include "data/parquet/thrift.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* Types of pages; pages of other types, such as indexes, are skipped. */
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2, PAGE_DATA_2 = 3 };

typedef struct page_header {
    int64_t type, size, bytes; /* size: bytes after decompression; bytes: bytes in the file */
    int64_t checksum;
    int64_t rows, encoding;
    int64_t level_encoding;              /* only in version 1 */
    int64_t level_bytes, repeated_bytes; /* only in version 2 */
    bool has_checksum, plain;            /* plain: the values are not compressed */
} page_header;

/* ---- Headers ----------------------------------------------------------------------------------------------------- */

static void read_data_header(mrc_thrift *thrift, int type, page_header *out)
{
    mrc_thrift_field field = {0};
    if (!mrc_thrift_begin(thrift, type)) return;
    while (mrc_thrift_next(thrift, &field)) {
        switch (field.id) {
            case 1: out->rows = mrc_thrift_integer(thrift, field.type); break;
            case 2: out->encoding = mrc_thrift_integer(thrift, field.type); break;
            case 3: out->level_encoding = mrc_thrift_integer(thrift, field.type); break;
            default: mrc_thrift_skip(thrift, field.type);
        }
    }
}

static void read_data_2_header(mrc_thrift *thrift, int type, page_header *out)
{
    mrc_thrift_field field = {0};
    if (!mrc_thrift_begin(thrift, type)) return;
    while (mrc_thrift_next(thrift, &field)) {
        switch (field.id) {
            case 1: out->rows = mrc_thrift_integer(thrift, field.type); break;
            case 4: out->encoding = mrc_thrift_integer(thrift, field.type); break;
            case 5: out->level_bytes = mrc_thrift_integer(thrift, field.type); break;
            case 6: out->repeated_bytes = mrc_thrift_integer(thrift, field.type); break;
            case 7: out->plain = !mrc_thrift_integer(thrift, field.type); break;
            default: mrc_thrift_skip(thrift, field.type);
        }
    }
}

/* Reads the header of a page. The cases are field numbers, as in parquet_meta.c. A size or number of rows that is
   missing keeps -1, which later checks refuse. */
static void read_header(mrc_thrift *thrift, page_header *out)
{
    mrc_thrift_field field = {0};
    *out = (page_header){.type = -1, .size = -1, .bytes = -1, .rows = -1, .encoding = -1, .level_encoding = 3};
    mrc_thrift_begin(thrift, 12); /* 12: a struct */
    while (mrc_thrift_next(thrift, &field)) {
        switch (field.id) {
            case 1: out->type = mrc_thrift_integer(thrift, field.type); break;
            case 2: out->size = mrc_thrift_integer(thrift, field.type); break;
            case 3: out->bytes = mrc_thrift_integer(thrift, field.type); break;
            case 4:
                out->checksum = mrc_thrift_integer(thrift, field.type);
                out->has_checksum = true;
                break;
            case 5: /* data page */
            case 7: /* dictionary page, with the same first two fields */
                read_data_header(thrift, field.type, out);
                break;
            case 8: read_data_2_header(thrift, field.type, out); break;
            default: mrc_thrift_skip(thrift, field.type);
        }
    }
}

static mercer_status fail_page(const mrc_parquet_reader *self, const char *what)
{
    return mrc_page_fail(&self->values.place, what);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Replaces a buffer by one of at least `bytes` bytes, counted in the budget. The previous content is lost. */
static mercer_status reserve(const mrc_input *input, uint8_t **memory, int64_t *capacity, int64_t bytes)
{
    if (bytes <= *capacity) return MERCER_OK;
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, bytes - *capacity));
    mercer_status status = mrc_move(input->context, memory, 0, bytes, "a page of a Parquet file");
    if (status)
        input->budget->used -= bytes - *capacity;
    else
        *capacity = bytes;
    return status;
}

/* Decompresses a page, or the part of it with the values, into *memory (*capacity bytes), which grows if necessary.
   *out points to the result: in *memory, or in the file if the data are not compressed. */
static mercer_status unpack(const mrc_parquet_reader *self, const uint8_t *data, int64_t bytes, int64_t size,
                            bool plain, uint8_t **memory, int64_t *capacity, const uint8_t **out)
{
    *out = data;
    if (plain || self->codec == MRC_CODEC_NONE)
        return size == bytes ? MERCER_OK
                             : fail_page(self, "the stored and the declared size of an uncompressed page differ");
    *out = *memory;
    if (size == 0) return MERCER_OK;
    if (size > mrc_codec_most(self->codec, bytes)) return fail_page(self, "a page cannot be as large as it declares");
    MRC_TRY(reserve(self->file->input, memory, capacity, size));
    *out = *memory;
    return mrc_page_unpack(&self->values.place, self->codec, data, bytes, *memory, size);
}

/* ---- Dictionaries ------------------------------------------------------------------------------------------------ */

static void drop_dictionary(mrc_parquet_reader *self)
{
    mrc_parquet_dictionary *old = &self->dictionary;
    const mrc_input *input = self->file->input;
    input->budget->used -= old->held;
    MRC_FREE_ALL(input->context, old->memory, old->integers, old->reals, old->words);
    *old = (mrc_parquet_dictionary){0};
}

/* Return whether values of the type are decoded as floating-point numbers (is_real) or as words (is_word). All other
   values are decoded as integers. */
static bool is_real(mrc_parquet_type type)
{
    return type == MRC_PARQUET_FLOAT || type == MRC_PARQUET_DOUBLE;
}
static bool is_word(mrc_parquet_type type)
{
    return type == MRC_PARQUET_BYTES || type == MRC_PARQUET_FIXED;
}

/* Decodes the values of a dictionary in batches of up to MRC_PARQUET_BATCH values. */
static mercer_status decode_dictionary(mrc_parquet_reader *self, int64_t count)
{
    mrc_parquet_dictionary *to = &self->dictionary;
    mrc_decoder *from = &self->values;
    for (int64_t done = 0; done < count; done += MRC_PARQUET_BATCH) {
        int64_t now = mrc_min(MRC_PARQUET_BATCH, count - done);
        if (to->words)
            MRC_TRY(mrc_decoder_words(from, now, to->words + done));
        else if (to->reals)
            MRC_TRY(mrc_decoder_reals(from, now, to->reals + done));
        else
            MRC_TRY(mrc_decoder_integers(from, now, to->integers + done));
    }
    to->count = count;
    return MERCER_OK;
}

/* Reads a page of plain values as the dictionary of the row group. */
static mercer_status read_dictionary(mrc_parquet_reader *self, const page_header *header, const uint8_t *data)
{
    const mrc_input *input = self->file->input;
    mrc_parquet_type type = self->column->type;
    mrc_parquet_dictionary *to = &self->dictionary;
    /* least: smallest size of a value in bytes. It bounds the number of values before arrays are allocated. */
    int64_t least = type == MRC_PARQUET_BYTES ? 4 : self->column->width, capacity = 0;
    int64_t each = is_word(type) ? (int64_t)sizeof *to->words : 8;
    const uint8_t *at;
    if (to->count > 0) return fail_page(self, "it has two dictionaries");
    if (type == MRC_PARQUET_BOOLEAN || header->rows < 0 || header->rows > header->size / least)
        return fail_page(self, "the dictionary has fewer values than it declares");
    if (header->encoding != MRC_ENCODING_PLAIN && header->encoding != MRC_ENCODING_PLAIN_DICTIONARY)
        return fail_page(self, "the encoding of the dictionary is not supported");
    mercer_status status = unpack(self, data, header->bytes, header->size, false, &to->memory, &capacity, &at);
    to->held = capacity;
    MRC_TRY(status);
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, header->rows * each));
    to->held += header->rows * each;
    void *list = is_word(type) ? (void *)&to->words : is_real(type) ? (void *)&to->reals : (void *)&to->integers;
    MRC_TRY(mrc_alloc(input->context, list, header->rows, each, "the dictionary of a column"));
    MRC_TRY(mrc_decoder_open(&self->values, MRC_ENCODING_PLAIN, at, at + header->size));
    self->generation++;
    return decode_dictionary(self, header->rows);
}

/* ---- Pages of values --------------------------------------------------------------------------------------------- */

/* Begins a page of version 1. The decompressed page has the size of the levels, then the levels, then the values. */
static mercer_status begin_page_1(mrc_parquet_reader *self, const page_header *header, const uint8_t *data)
{
    const uint8_t *at;
    uint32_t bytes;
    MRC_TRY(unpack(self, data, header->bytes, header->size, false, &self->memory, &self->capacity, &at));
    const uint8_t *end = at + header->size;
    if (self->column->optional) {
        if (header->level_encoding != MRC_ENCODING_RLE)
            return fail_page(self, "its definition levels have an encoding that is not supported");
        if (header->size < 4) return fail_page(self, "a page ends before its values");
        memcpy(&bytes, at, sizeof bytes);
        if (bytes > header->size - 4) return fail_page(self, "a page ends before its values");
        at += 4;
        self->levels = mrc_hybrid_open(at, at + bytes, 1);
        at += bytes;
    }
    return mrc_decoder_open(&self->values, header->encoding, at, end);
}

/* Begins a page of version 2: its levels come first and are not compressed. */
static mercer_status begin_page_2(mrc_parquet_reader *self, const page_header *header, const uint8_t *data)
{
    const uint8_t *at;
    int64_t levels = header->level_bytes;
    if (header->repeated_bytes != 0 || levels < 0 || levels > header->bytes || levels > header->size ||
        (levels > 0 && !self->column->optional))
        return fail_page(self, "the levels of a page have an invalid size");
    if (self->column->optional) self->levels = mrc_hybrid_open(data, data + levels, 1);
    int64_t size = header->size - levels;
    MRC_TRY(
        unpack(self, data + levels, header->bytes - levels, size, header->plain, &self->memory, &self->capacity, &at));
    return mrc_decoder_open(&self->values, header->encoding, at, at + size);
}

static mercer_status check_header(const mrc_parquet_reader *self, const mrc_thrift *thrift, const page_header *header)
{
    if (thrift->bad || header->bytes < 0 || header->size < 0 || header->bytes > thrift->end - thrift->at ||
        header->size > INT32_MAX)
        return fail_page(self, "the header of a page is damaged");
    /* The CRC-32 of the page as it is in the file, stored as a signed integer. */
    if (header->has_checksum && (uint32_t)header->checksum != crc32(0, thrift->at, (uInt)header->bytes))
        return fail_page(self, "the checksum of a page is wrong");
    return MERCER_OK;
}

/* Begins the next page that has rows to read. A page whose rows are all skipped is not decompressed. */
static mercer_status begin_page(mrc_parquet_reader *self, int64_t *skip)
{
    page_header header;
    while (self->left == 0 && self->group_left > 0) {
        mrc_thrift thrift = {.at = self->at, .end = self->end};
        if (self->at == self->end) return fail_page(self, "it has fewer rows than its row group");
        read_header(&thrift, &header);
        MRC_TRY(check_header(self, &thrift, &header));
        self->at = thrift.at + header.bytes;
        /* A dictionary is read even if rows are skipped, because later pages of the row group refer to it. */
        if (header.type == PAGE_DICTIONARY) MRC_TRY(read_dictionary(self, &header, thrift.at));
        if (header.type != PAGE_DATA && header.type != PAGE_DATA_2) continue;
        if (header.rows < 0 || header.rows > self->group_left)
            return fail_page(self, "a page has more rows than its row group");
        self->group_left -= header.rows;
        if (*skip >= header.rows) {
            *skip -= header.rows;
            continue;
        }
        self->left = header.rows;
        MRC_TRY(header.type == PAGE_DATA ? begin_page_1(self, &header, thrift.at)
                                         : begin_page_2(self, &header, thrift.at));
    }
    mrc_input_release(self->file->input, &self->released, (const char *)self->at);
    return MERCER_OK;
}

/* ---- Row groups -------------------------------------------------------------------------------------------------- */

/* Moves to the first page of a row group. Dictionaries are valid only within their group. */
static mercer_status begin_group(mrc_parquet_reader *self, int64_t group)
{
    const mrc_parquet *file = self->file;
    const mrc_parquet_chunk *chunk = &file->chunks[group * file->leaves + self->column->leaf];
    drop_dictionary(self);
    self->group = group;
    self->at = file->input->data + chunk->offset;
    self->end = self->at + chunk->bytes;
    self->released = (const char *)self->at;
    self->codec = chunk->codec;
    self->group_left = file->group_rows[group];
    self->left = 0;
    self->values.place.group = group;
    return mrc_codec_check(&self->values.place, chunk->codec);
}

mercer_status mrc_parquet_reader_open(mrc_parquet_reader *out, const mrc_parquet *file, int64_t column)
{
    const mrc_parquet_column *of = &file->columns[column];
    *out = (mrc_parquet_reader){.file = file, .column = of, .group = -1};
    out->values.place = (mrc_page_place){file->input, of->name, of->name_length, 0};
    out->values.type = (int)of->type;
    out->values.width = of->width;
    if (of->kind != MRC_PARQUET_REFUSED) return MERCER_OK;
    char name[MRC_EXCERPT_CHARS];
    return mrc_fail(file->input->context, MERCER_ERROR_FORMAT,
                    "%s: column '%s' is %s, which cannot be used; remove it, or convert it to numbers or text",
                    file->input->path, mrc_excerpt(name, of->name, of->name_length), of->refused);
}

void mrc_parquet_reader_close(mrc_parquet_reader *self)
{
    if (!self->file) return;
    drop_dictionary(self);
    mrc_decoder_close(&self->values);
    self->file->input->budget->used -= self->capacity;
    mrc_free(self->file->input->context, self->memory);
    *self = (mrc_parquet_reader){0};
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Reads the definition levels of `rows` rows. Returns the number of rows that have a value, or -1 if the levels are
   damaged. The fast path is a run of rows that all have a value. */
static int64_t take_levels(mrc_parquet_reader *self, int64_t rows, uint8_t *valid)
{
    int32_t levels[MRC_PARQUET_BATCH];
    int64_t ones = self->column->optional ? mrc_hybrid_take_ones(&self->levels, rows) : rows, present = ones;
    memset(valid, 1, (size_t)ones);
    if (ones == rows) return rows;
    if (!mrc_hybrid_take(&self->levels, rows - ones, levels)) return -1;
    for (int64_t i = ones; i < rows; i++) {
        valid[i] = (uint8_t)levels[i - ones];
        present += levels[i - ones];
    }
    return present;
}

/* Moves the `present` decoded values to their rows, from the last row down. Stops when all remaining rows have a value,
   because these values are in place already. */
#define SPREAD(list, zero)                                  \
    for (int64_t i = rows, k = present; k < i;) {           \
        i--;                                                \
        (list)[i] = batch->valid[i] ? (list)[--k] : (zero); \
    }

static void spread(const mrc_parquet_reader *self, int64_t rows, int64_t present, mrc_parquet_batch *batch)
{
    mrc_parquet_type type = self->column->type;
    if (present == rows) return;
    if (batch->coded) SPREAD(batch->codes, 0)
    if (is_word(type))
        SPREAD(batch->words, ((mrc_parquet_word){0}))
    else if (is_real(type))
        SPREAD(batch->reals, 0)
    else
        SPREAD(batch->integers, 0)
}

/* Decodes codes and copies their values from the dictionary. */
static mercer_status take_coded(mrc_parquet_reader *self, int64_t count, mrc_parquet_batch *batch)
{
    const mrc_parquet_dictionary *from = &self->dictionary;
    MRC_TRY(mrc_decoder_codes(&self->values, count, from->count, batch->codes));
    for (int64_t i = 0; i < count && from->words; i++) batch->words[i] = from->words[batch->codes[i]];
    for (int64_t i = 0; i < count && from->reals; i++) batch->reals[i] = from->reals[batch->codes[i]];
    for (int64_t i = 0; i < count && from->integers; i++) batch->integers[i] = from->integers[batch->codes[i]];
    return MERCER_OK;
}

static mercer_status take_values(mrc_parquet_reader *self, int64_t count, mrc_parquet_batch *batch)
{
    mrc_parquet_type type = self->column->type;
    batch->coded = mrc_decoder_is_coded(&self->values);
    if (count == 0) return MERCER_OK;
    if (batch->coded) return take_coded(self, count, batch);
    if (is_word(type)) return mrc_decoder_words(&self->values, count, batch->words);
    return is_real(type) ? mrc_decoder_reals(&self->values, count, batch->reals)
                         : mrc_decoder_integers(&self->values, count, batch->integers);
}

static mercer_status check_decimals(const mrc_parquet_reader *self, int64_t count, const mrc_parquet_batch *batch)
{
    enum { MOST_BYTES = 32 };
    for (int64_t i = 0; i < count; i++)
        if (batch->words[i].length < 1 || batch->words[i].length > MOST_BYTES)
            return fail_page(self, "a decimal does not have 1 to 32 bytes");
    return MERCER_OK;
}

mercer_status mrc_parquet_reader_next(mrc_parquet_reader *self, int64_t most, int64_t *skip, mrc_parquet_batch *batch)
{
    for (;;) {
        while (self->left == 0 && self->group_left == 0) {
            if (self->group + 1 == self->file->groups) return fail_page(self, "it has fewer rows than the file");
            MRC_TRY(begin_group(self, self->group + 1));
            if (*skip < self->group_left) break;
            *skip -= self->group_left;
            self->group_left = 0;
        }
        if (self->left == 0) MRC_TRY(begin_page(self, skip));
        if (self->left == 0) continue; /* all rows of the group were skipped */
        int64_t rows = mrc_min(mrc_min(most, self->left), MRC_PARQUET_BATCH);
        /* Rows that are skipped within a page are decoded, too, because encodings can be read only in order. */
        if (*skip > 0) rows = mrc_min(rows, *skip);
        int64_t present = take_levels(self, rows, batch->valid);
        if (present < 0) return fail_page(self, "the definition levels of a page are damaged");
        MRC_TRY(take_values(self, present, batch));
        self->left -= rows;
        if (*skip > 0) {
            *skip -= rows;
            continue;
        }
        if (self->column->kind == MRC_PARQUET_DECIMAL && is_word(self->column->type))
            MRC_TRY(check_decimals(self, present, batch));
        spread(self, rows, present, batch);
        batch->rows = rows;
        return MERCER_OK;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The footer of a Parquet file: its columns, its row groups, and the positions of the pages of each column.
 *
 *   file     "PAR1", pages, footer, length of the footer (4 bytes, little-endian), "PAR1"
 *   footer   a Thrift struct: schema (field 2), number of rows (3), row groups (4), encryption (8)
 *
 * The schema is a tree in depth-first order. Each child of the root is a column here. Nested and repeated columns are
 * listed with the reason why they are refused. A file with such columns can be read as long as they are not used. The
 * leaves of the tree are the columns of a row group.
 *
 * The numbers in the cases below are the field numbers of Parquet's Thrift definition. Only fields that are needed to
 * find and decode values are read.
 */
#include "core/memory.h"
#include "data/parquet/parquet.h"
#include "data/parquet/thrift.h"

#include <string.h>

enum { MARK_BYTES = 4, TAIL_BYTES = 8 };

bool mrc_parquet_is_marked(const mrc_input *input)
{
    return mrc_input_begins(input, "PAR1", MARK_BYTES) || mrc_input_begins(input, "PARE", MARK_BYTES);
}

mercer_status mrc_parquet_fail(const mrc_input *input, const char *what)
{
    return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: %s; create the file again", input->path, what);
}

/* Allocates a list whose length the file declares. */
static mercer_status take_list(mrc_parquet *self, void *out, int64_t count, int64_t size)
{
    const mrc_input *input = self->input;
    int64_t bytes;
    if (!mrc_multiply(count, size, &bytes)) bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, bytes));
    self->held += bytes;
    return mrc_alloc_zero(input->context, out, count, size, "metadata of a Parquet file");
}

/* ---- Schema ------------------------------------------------------------------------------------------------------ */

/* An element of the schema: a column, or a group of elements. */
typedef struct element {
    const char *name;
    int64_t name_length;
    int64_t type, width, repetition, children, converted, scale;
    int64_t logical; /* field number in the union of logical types; 0: none */
    int64_t unit;    /* unit of times: 1 milliseconds, 2 microseconds, 3 nanoseconds */
    int64_t bits;    /* width of integers in bits */
    bool is_signed, utc;
} element;

/* Reads a union of empty structs and returns the field number of its member. */
static int64_t read_union(mrc_thrift *thrift, int type)
{
    mrc_thrift_field field = {0};
    int64_t id = 0;
    if (!mrc_thrift_begin(thrift, type)) return 0;
    while (mrc_thrift_next(thrift, &field)) {
        id = field.id;
        mrc_thrift_skip(thrift, field.type);
    }
    return id;
}

/* Reads the parameters of a logical type. */
static void read_parameters(mrc_thrift *thrift, int type, element *out)
{
    mrc_thrift_field field = {0};
    bool time = out->logical == 7 || out->logical == 8;
    if (!mrc_thrift_begin(thrift, type)) return;
    while (mrc_thrift_next(thrift, &field)) {
        if (time && field.id == 1)
            out->utc = mrc_thrift_integer(thrift, field.type) != 0;
        else if (time && field.id == 2)
            out->unit = read_union(thrift, field.type);
        else if (out->logical == 10 && field.id == 1)
            out->bits = mrc_thrift_integer(thrift, field.type);
        else if (out->logical == 10 && field.id == 2)
            out->is_signed = mrc_thrift_integer(thrift, field.type) != 0;
        else
            mrc_thrift_skip(thrift, field.type);
    }
}

static void read_logical(mrc_thrift *thrift, int type, element *out)
{
    mrc_thrift_field field = {0};
    if (!mrc_thrift_begin(thrift, type)) return;
    while (mrc_thrift_next(thrift, &field)) {
        out->logical = field.id;
        read_parameters(thrift, field.type, out);
    }
}

static void read_element(mrc_thrift *thrift, int type, element *out)
{
    mrc_thrift_field field = {0};
    *out = (element){.type = -1, .converted = -1, .name = "", .is_signed = true};
    if (!mrc_thrift_begin(thrift, type)) return;
    while (mrc_thrift_next(thrift, &field)) {
        switch (field.id) {
            case 1: out->type = mrc_thrift_integer(thrift, field.type); break;
            case 2: out->width = mrc_thrift_integer(thrift, field.type); break;
            case 3: out->repetition = mrc_thrift_integer(thrift, field.type); break;
            case 4: mrc_thrift_text(thrift, field.type, &out->name, &out->name_length); break;
            case 5: out->children = mrc_thrift_integer(thrift, field.type); break;
            case 6: out->converted = mrc_thrift_integer(thrift, field.type); break;
            case 7: out->scale = mrc_thrift_integer(thrift, field.type); break;
            case 10: read_logical(thrift, field.type, out); break;
            default: mrc_thrift_skip(thrift, field.type);
        }
    }
}

/* Returns the logical type of an element. Older writers set only a converted type, which is an index into the list.
   Converted types 7 and 8 are times, 9 and 10 are timestamps, first in milliseconds, then in microseconds; 11 to 14 are
   unsigned integers. */
static int64_t logical_of(element *from)
{
    static const signed char logical[] = {1, 2, 2, 3, 4, 5, 6, 7, 7, 8, 8, 10, 10, 10, 10, 10, 10, 10, 10, 12, 13, 9};
    int64_t converted = from->converted;
    if (from->logical || converted < 0 || converted >= (int64_t)sizeof logical) return from->logical;
    if (converted >= 7 && converted <= 10) from->unit = converted == 7 || converted == 9 ? 1 : 2;
    if (converted == 9 || converted == 10) from->utc = true;
    if (converted >= 11 && converted <= 14) from->is_signed = false;
    return logical[converted];
}

/* Returns the kind of a column, and sets its scale and its flag for UTC. Logical types: 1 text, 4 enumeration, 5
   decimal, 6 date, 7 time, 8 timestamp, 10 integer, 12 JSON, 14 UUID, 15 half float. */
static mrc_parquet_kind kind_of(element *from, mrc_parquet_column *column)
{
    bool bytes = from->type == MRC_PARQUET_BYTES, fixed = from->type == MRC_PARQUET_FIXED;
    bool whole = from->type == MRC_PARQUET_INT32 || from->type == MRC_PARQUET_INT64;
    int64_t logical = logical_of(from);
    column->scale = from->unit >= 1 && from->unit <= 3 ? (int32_t)(3 * from->unit) : 0;
    column->utc = from->utc;
    if (from->type == MRC_PARQUET_INT96) {
        column->scale = 9;
        return MRC_PARQUET_MOMENT;
    }
    switch (logical) {
        case 5: /* decimal; scales above 76 exceed every writer's precision */
            column->scale = (int32_t)from->scale;
            if (from->scale < 0 || from->scale > 76 || !(whole || bytes || fixed)) return MRC_PARQUET_REFUSED;
            return from->width <= 32 ? MRC_PARQUET_DECIMAL : MRC_PARQUET_REFUSED;
        case 6: return from->type == MRC_PARQUET_INT32 ? MRC_PARQUET_DATE : MRC_PARQUET_REFUSED;
        case 7: return whole && column->scale ? MRC_PARQUET_TIME : MRC_PARQUET_REFUSED;
        case 8: return from->type == MRC_PARQUET_INT64 && column->scale ? MRC_PARQUET_MOMENT : MRC_PARQUET_REFUSED;
        case 10: return !whole ? MRC_PARQUET_REFUSED : from->is_signed ? MRC_PARQUET_NUMBER : MRC_PARQUET_UNSIGNED;
        case 14: return fixed && from->width == 16 ? MRC_PARQUET_UUID : MRC_PARQUET_REFUSED;
        case 15: return fixed && from->width == 2 ? MRC_PARQUET_HALF : MRC_PARQUET_REFUSED;
        default: break;
    }
    if (from->type == MRC_PARQUET_BOOLEAN) return MRC_PARQUET_TRUTH;
    if (bytes || fixed)
        return logical == 0 || logical == 1 || logical == 4 || logical == 12 ? MRC_PARQUET_TEXT : MRC_PARQUET_REFUSED;
    return logical == 0 || logical == 11 ? MRC_PARQUET_NUMBER : MRC_PARQUET_REFUSED; /* 11: all values are missing */
}

/* Returns the reason why a column cannot be read, which completes "column 'a' is" in messages. */
static const char *refusal(const element *from)
{
    static const char *const names[] = {[2] = "a map",      [3] = "a list",      [9] = "an interval", [13] = "BSON",
                                        [16] = "a variant", [17] = "a geometry", [18] = "a geography"};
    int64_t logical = from->logical;
    if (from->children > 0 && logical == 0 && from->converted == -1) return "a struct";
    if (from->converted == 1 || from->converted == 2) return "a map";
    if (from->converted == 3) return "a list";
    if (from->converted == 21) return "an interval";
    if (logical > 0 && logical < (int64_t)(sizeof names / sizeof *names) && names[logical]) return names[logical];
    return from->repetition == 2 ? "a list" : from->children > 0 ? "nested" : "of a type that is not supported";
}

/* Makes a column from a child of the root. */
static mercer_status make_column(mrc_parquet *self, element *from, mrc_parquet_column *out)
{
    if (from->children == 0 && (from->type < 0 || from->type > MRC_PARQUET_FIXED || from->repetition < 0))
        return mrc_parquet_fail(self->input, "its footer has a column of an unknown type");
    if (from->type == MRC_PARQUET_FIXED && (from->width < 1 || from->width > INT32_MAX))
        return mrc_parquet_fail(self->input, "its footer has values of an invalid size");
    /* Bytes per value by type. Texts have no fixed width (0). FIXED has the width of its element. */
    static const signed char widths[] = {1, 4, 8, 12, 4, 8, 0};
    *out = (mrc_parquet_column){.name = from->name,
                                .name_length = from->name_length,
                                .leaf = self->leaves,
                                .optional = from->repetition == 1,
                                .kind = MRC_PARQUET_REFUSED};
    if (memchr(from->name, 0, (size_t)from->name_length))
        return mrc_parquet_fail(self->input, "the name of a column has a zero byte");
    bool flat = from->children == 0 && from->repetition != 2;
    if (from->children == 0) out->type = (mrc_parquet_type)from->type;
    if (from->children == 0) out->width = out->type == MRC_PARQUET_FIXED ? from->width : widths[out->type];
    if (flat) out->kind = kind_of(from, out);
    if (out->kind == MRC_PARQUET_REFUSED) out->refused = refusal(from);
    return MERCER_OK;
}

/* Reads the schema: the root, then all other elements in depth-first order. Each child of the root is a column. */
static mercer_status read_schema(mrc_parquet *self, mrc_thrift *thrift, int type)
{
    element root, each;
    int kind;
    int64_t count = mrc_thrift_list(thrift, type, &kind), nested = 0;
    read_element(thrift, kind, &root);
    if (thrift->bad || count < 1 || root.children < 0 || root.children >= count)
        return mrc_parquet_fail(self->input, "the schema in its footer is damaged");
    MRC_TRY(take_list(self, &self->columns, root.children, sizeof *self->columns));
    /* nested: number of further elements that belong to the current column */
    for (int64_t i = 1; i < count; i++) {
        read_element(thrift, kind, &each);
        if (thrift->bad || each.children < 0 || each.children >= count || (nested == 0 && self->count == root.children))
            return mrc_parquet_fail(self->input, "the schema in its footer is damaged");
        if (nested > 0)
            nested--;
        else
            MRC_TRY(make_column(self, &each, &self->columns[self->count++]));
        nested += each.children;
        self->leaves += each.children == 0;
    }
    if (nested > 0 || self->count != root.children)
        return mrc_parquet_fail(self->input, "the schema in its footer is damaged");
    return MERCER_OK;
}

/* ---- Row groups -------------------------------------------------------------------------------------------------- */

/* Metadata of the pages of a column in a row group. */
typedef struct pages {
    int64_t type, codec, values, bytes, data, dictionary;
    bool elsewhere, encrypted, present;
} pages;

static void read_chunk_metadata(mrc_thrift *thrift, int type, pages *out)
{
    mrc_thrift_field field = {0};
    if (!mrc_thrift_begin(thrift, type)) return;
    out->present = true;
    while (mrc_thrift_next(thrift, &field)) {
        switch (field.id) {
            case 1: out->type = mrc_thrift_integer(thrift, field.type); break;
            case 4: out->codec = mrc_thrift_integer(thrift, field.type); break;
            case 5: out->values = mrc_thrift_integer(thrift, field.type); break;
            case 7: out->bytes = mrc_thrift_integer(thrift, field.type); break;
            case 9: out->data = mrc_thrift_integer(thrift, field.type); break;
            case 11: out->dictionary = mrc_thrift_integer(thrift, field.type); break;
            default: mrc_thrift_skip(thrift, field.type);
        }
    }
}

static void read_chunk(mrc_thrift *thrift, int type, pages *out)
{
    mrc_thrift_field field = {0};
    *out = (pages){0};
    if (!mrc_thrift_begin(thrift, type)) return;
    while (mrc_thrift_next(thrift, &field)) {
        out->elsewhere = out->elsewhere || field.id == 1;
        out->encrypted = out->encrypted || field.id == 8 || field.id == 9;
        if (field.id == 3)
            read_chunk_metadata(thrift, field.type, out);
        else
            mrc_thrift_skip(thrift, field.type);
    }
}

/* Sets the position of the pages of a column, and checks that they are inside the file. A page with a dictionary comes
   first. */
static mercer_status place_chunk(const mrc_parquet *self, const pages *from, mrc_parquet_chunk *out)
{
    const mrc_input *input = self->input;
    int64_t end;
    if (from->encrypted) return mrc_parquet_fail(input, "it has encrypted columns, which are not supported");
    if (from->elsewhere) return mrc_parquet_fail(input, "its values are in another file, which is not supported");
    if (from->present && from->values == 0) return MERCER_OK; /* an empty row group has no pages */
    /* The pages begin with a dictionary only if the offset of the dictionary is below the offset of the values. Offset
       0 means that there is no dictionary. */
    bool dictionary = from->dictionary > 0 && from->dictionary < from->data;
    out->offset = dictionary ? from->dictionary : from->data;
    out->bytes = from->bytes;
    out->codec = (int32_t)from->codec;
    if (!from->present || out->offset < MARK_BYTES || out->bytes < 0 || !mrc_add(out->offset, out->bytes, &end) ||
        end > input->bytes - TAIL_BYTES || from->codec != out->codec)
        return mrc_parquet_fail(input, "its footer refers to bytes outside the file");
    return MERCER_OK;
}

/* Reads the columns of row group `group`. */
static mercer_status read_chunks(mrc_parquet *self, mrc_thrift *thrift, int type, int64_t group)
{
    int kind;
    int64_t count = mrc_thrift_list(thrift, type, &kind);
    if (count != self->leaves) return mrc_parquet_fail(self->input, "a row group in its footer lacks columns");
    for (int64_t i = 0, column = 0; i < count; i++) {
        pages each;
        read_chunk(thrift, kind, &each);
        if (thrift->bad) return mrc_parquet_fail(self->input, "a row group in its footer is damaged");
        /* Advance to the column that leaf i belongs to. The leaves of a refused column are not checked. */
        while (column + 1 < self->count && self->columns[column + 1].leaf <= i) column++;
        if (self->columns[column].kind == MRC_PARQUET_REFUSED) continue;
        MRC_TRY(place_chunk(self, &each, &self->chunks[group * self->leaves + i]));
        if (each.type != (int64_t)self->columns[column].type)
            return mrc_parquet_fail(self->input, "the type of a row group in its footer differs from the schema");
    }
    return MERCER_OK;
}

static mercer_status read_group(mrc_parquet *self, mrc_thrift *thrift, int type, int64_t group)
{
    mrc_thrift_field field = {0};
    bool chunks = false;
    if (!mrc_thrift_begin(thrift, type)) return MERCER_OK;
    while (mrc_thrift_next(thrift, &field)) {
        if (field.id == 1) {
            MRC_TRY(read_chunks(self, thrift, field.type, group));
            chunks = true;
        } else if (field.id == 3) {
            self->group_rows[group] = mrc_thrift_integer(thrift, field.type);
        } else {
            mrc_thrift_skip(thrift, field.type);
        }
    }
    if (self->group_rows[group] < 0 || !chunks || !mrc_add(self->rows, self->group_rows[group], &self->rows))
        return mrc_parquet_fail(self->input, "a row group in its footer is damaged");
    return MERCER_OK;
}

static mercer_status read_groups(mrc_parquet *self, mrc_thrift *thrift, int type)
{
    int kind;
    int64_t chunks, count = mrc_thrift_list(thrift, type, &kind);
    /* The schema must precede the row groups, because it defines the number of leaves. */
    if (!self->columns || self->group_rows) return mrc_parquet_fail(self->input, "its footer is damaged");
    if (!mrc_multiply(count, self->leaves, &chunks)) chunks = INT64_MAX;
    MRC_TRY(take_list(self, &self->group_rows, count, sizeof *self->group_rows));
    MRC_TRY(take_list(self, &self->chunks, chunks, sizeof *self->chunks));
    for (self->groups = 0; self->groups < count && !thrift->bad; self->groups++)
        MRC_TRY(read_group(self, thrift, kind, self->groups));
    return MERCER_OK;
}

/* ---- Footer ------------------------------------------------------------------------------------------------------ */

static mercer_status read_footer(mrc_parquet *self, mrc_thrift *thrift)
{
    mrc_thrift_field field = {0};
    int64_t rows = -1;
    mrc_thrift_begin(thrift, 12); /* 12: a struct */
    while (mrc_thrift_next(thrift, &field)) {
        switch (field.id) {
            case 2:
                if (self->columns) return mrc_parquet_fail(self->input, "its footer has two schemas");
                MRC_TRY(read_schema(self, thrift, field.type));
                break;
            case 3: rows = mrc_thrift_integer(thrift, field.type); break;
            case 4: MRC_TRY(read_groups(self, thrift, field.type)); break;
            case 8: return mrc_parquet_fail(self->input, "it has encrypted columns, which are not supported");
            default: mrc_thrift_skip(thrift, field.type);
        }
    }
    if (thrift->bad || !self->columns || !self->group_rows)
        return mrc_parquet_fail(self->input, "its footer is damaged");
    if (self->rows != rows)
        return mrc_parquet_fail(self->input, "its row groups do not have as many rows as its footer declares");
    if (self->count == 0) return mrc_parquet_fail(self->input, "it has no columns");
    return MERCER_OK;
}

mercer_status mrc_parquet_open(mrc_parquet *out, const mrc_input *input)
{
    *out = (mrc_parquet){.input = input};
    const uint8_t *end = input->data + input->bytes;
    uint32_t length;
    if (mrc_input_begins(input, "PARE", MARK_BYTES))
        return mrc_parquet_fail(input, "it is an encrypted Parquet file, which is not supported");
    if (input->bytes < MARK_BYTES + TAIL_BYTES || !mrc_input_begins(input, "PAR1", MARK_BYTES))
        return mrc_parquet_fail(input, "it is not a Parquet file");
    if (memcmp(end - MARK_BYTES, "PAR1", MARK_BYTES) != 0)
        return mrc_parquet_fail(input, "it does not end like a Parquet file, so it is probably incomplete");
    memcpy(&length, end - TAIL_BYTES, sizeof length);
    if (length > input->bytes - MARK_BYTES - TAIL_BYTES)
        return mrc_parquet_fail(input, "its footer is larger than the file");
    mrc_thrift thrift = {.at = end - TAIL_BYTES - length, .end = end - TAIL_BYTES};
    return read_footer(out, &thrift);
}

void mrc_parquet_close(mrc_parquet *self)
{
    if (!self->input) return;
    self->input->budget->used -= self->held;
    MRC_FREE_ALL(self->input->context, self->columns, self->chunks, self->group_rows);
    *self = (mrc_parquet){0};
}

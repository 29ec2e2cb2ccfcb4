/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading of Thrift's compact protocol.
 *
 *   integer   unsigned, 7 bits per byte, the lowest first, the high bit set in all bytes but the last; signed numbers
 *             are zigzag-encoded first
 *   field     a byte: type in the low 4 bits, difference of the field number to the previous one in the high 4 bits; a
 *             difference of 0 means that the number follows as an integer
 *   struct    fields, then a byte 0
 *   list      a byte: type of the elements in the low 4 bits, their number in the high 4 bits; 15 means that the number
 *             follows as an integer
 *   text      number of bytes, then the bytes
 *
 * A boolean field has no value: its type is YES or NO. In lists and maps a boolean is a byte.
 */
#include "data/parquet/thrift.h"

enum type { STOP, YES, NO, BYTE, I16, I32, I64, DOUBLE, TEXT, LIST, SET, MAP, STRUCT };

enum { MOST_DEPTH = 24 }; /* nesting of values; Parquet's own metadata need 8 */

/* Marks the input as invalid and ends it, so that all further reads fail and all loops stop. */
static void set_bad(mrc_thrift *self)
{
    self->bad = true;
    self->at = self->end;
}

static unsigned take_byte(mrc_thrift *self)
{
    if (self->at < self->end) return *self->at++;
    set_bad(self);
    return 0;
}

uint64_t mrc_thrift_unsigned(mrc_thrift *self)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint64_t byte = take_byte(self);
        /* The tenth byte can have only the highest of 64 bits. */
        if (shift == 63 && byte > 1) break;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    set_bad(self);
    return 0;
}

/* Enters a struct, list or map. The limit also bounds the recursion of mrc_thrift_skip. */
static void enter(mrc_thrift *self)
{
    if (self->depth++ >= MOST_DEPTH) set_bad(self);
}

bool mrc_thrift_begin(mrc_thrift *self, int type)
{
    enter(self);
    if (type != STRUCT) set_bad(self);
    return !self->bad;
}

bool mrc_thrift_next(mrc_thrift *self, mrc_thrift_field *field)
{
    unsigned head = take_byte(self);
    field->type = (int)(head & 15);
    if (self->bad || field->type == STOP) {
        self->depth--;
        return false;
    }
    if (head >> 4) {
        field->id += head >> 4;
        return true;
    }
    int64_t id = mrc_zigzag(mrc_thrift_unsigned(self));
    if (id < 0 || id > INT16_MAX) set_bad(self);
    field->id = id;
    return true;
}

int64_t mrc_thrift_integer(mrc_thrift *self, int type)
{
    switch (type) {
        case YES: return 1;
        case NO: return 0;
        case BYTE: return (int8_t)take_byte(self);
        case I16:
        case I32:
        case I64: return mrc_zigzag(mrc_thrift_unsigned(self));
        default: set_bad(self); return 0;
    }
}

void mrc_thrift_text(mrc_thrift *self, int type, const char **text, int64_t *length)
{
    uint64_t bytes = type == TEXT ? mrc_thrift_unsigned(self) : UINT64_MAX;
    if (bytes > (uint64_t)(self->end - self->at)) set_bad(self), bytes = 0;
    *text = (const char *)self->at;
    *length = (int64_t)bytes;
    self->at += bytes;
}

int64_t mrc_thrift_list(mrc_thrift *self, int type, int *element)
{
    unsigned head = take_byte(self);
    uint64_t count = head >> 4;
    *element = (int)(head & 15);
    if (count == 15) count = mrc_thrift_unsigned(self);
    if ((type != LIST && type != SET) || count > (uint64_t)(self->end - self->at)) set_bad(self);
    return self->bad ? 0 : (int64_t)count;
}

static void skip_bytes(mrc_thrift *self, uint64_t bytes)
{
    if (bytes > (uint64_t)(self->end - self->at))
        set_bad(self);
    else
        self->at += bytes;
}

/* Skips the elements of a list or of a map, whose booleans take a byte each. */
static void skip_elements(mrc_thrift *self, int64_t count, int first, int second)
{
    enter(self);
    for (int64_t i = 0; i < count && !self->bad; i++) {
        mrc_thrift_skip(self, first == YES || first == NO ? BYTE : first);
        if (second != STOP) mrc_thrift_skip(self, second == YES || second == NO ? BYTE : second);
    }
    self->depth--;
}

static void skip_map(mrc_thrift *self)
{
    uint64_t count = mrc_thrift_unsigned(self);
    /* An empty map has no byte with the types of its keys and values. */
    unsigned types = count ? take_byte(self) : 0;
    if (count > (uint64_t)(self->end - self->at)) set_bad(self);
    if (!self->bad) skip_elements(self, (int64_t)count, (int)(types >> 4), (int)(types & 15));
}

void mrc_thrift_skip(mrc_thrift *self, int type)
{
    mrc_thrift_field field = {0};
    int element;
    switch (type) {
        case YES:
        case NO: return;
        case BYTE: skip_bytes(self, 1); return;
        case I16:
        case I32:
        case I64: mrc_thrift_unsigned(self); return;
        case DOUBLE: skip_bytes(self, 8); return;
        case TEXT: skip_bytes(self, mrc_thrift_unsigned(self)); return;
        case LIST:
        case SET: {
            int64_t count = mrc_thrift_list(self, type, &element);
            skip_elements(self, count, element, STOP);
            return;
        }
        case MAP: skip_map(self); return;
        case STRUCT:
            enter(self);
            while (mrc_thrift_next(self, &field)) mrc_thrift_skip(self, field.type);
            return;
        default: set_bad(self);
    }
}

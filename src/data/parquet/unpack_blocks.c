/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snappy and LZ4 blocks: sequences of literals (bytes that follow) and copies (bytes that were written before).
 *
 * Decoding them takes little code, so no library is needed for snappy, Parquet's most common codec. Nearly all literals
 * and copies have up to 16 bytes. They are moved 16 bytes at once if both buffers have at least 16 bytes left.
 */
#include "data/parquet/codecs.h"

#include <string.h>

enum { STEP = 16 };

/* A block while it is decompressed. */
typedef struct block {
    const uint8_t *at, *end;    /* rest of the input */
    uint8_t *begin, *to, *stop; /* output, filled up to `to` */
} block;

/* Copies bytes of the input. The fast path writes STEP bytes; the bytes after the literal are overwritten later. */
static inline bool take_literal(block *self, uint64_t length)
{
    if (length > (uint64_t)(self->end - self->at) || length > (uint64_t)(self->stop - self->to)) return false;
    if (length <= STEP && self->end - self->at >= STEP && self->stop - self->to >= STEP)
        memcpy(self->to, self->at, STEP);
    else
        memcpy(self->to, self->at, length);
    self->at += length;
    self->to += length;
    return true;
}

/* Appends `length` bytes of the output, from `offset` bytes before its end on. If `length` exceeds `offset`, these
   bytes repeat. With an offset of at least STEP, a step reads only bytes that are complete. */
static inline bool take_copy(block *self, uint64_t offset, uint64_t length)
{
    uint8_t *to = self->to;
    if (offset == 0 || offset > (uint64_t)(to - self->begin) || length > (uint64_t)(self->stop - to)) return false;
    const uint8_t *from = to - offset;
    if (offset >= STEP && self->stop - to >= (int64_t)length + STEP) {
        for (uint64_t i = 0; i < length; i += STEP) memcpy(to + i, from + i, STEP);
    } else if (offset >= length) {
        memcpy(to, from, length);
    } else {
        for (uint64_t i = 0; i < length; i++) to[i] = from[i];
    }
    self->to += length;
    return true;
}

/* Reads `count` bytes as an integer, the lowest byte first. */
static inline bool take_bytes(block *self, int count, uint64_t *out)
{
    *out = 0;
    if (self->end - self->at < count) return false;
    for (int i = 0; i < count; i++) *out |= (uint64_t)self->at[i] << 8 * i;
    self->at += count;
    return true;
}

/* ---- Snappy ------------------------------------------------------------------------------------------------------ */

/* Reads a literal, whose length may be in up to four bytes after its tag. */
static bool snappy_literal(block *self, unsigned tag)
{
    uint64_t length = tag >> 2;
    if (length >= 60 && !take_bytes(self, (int)length - 59, &length)) return false;
    return take_literal(self, length + 1);
}

/* Reads a copy; the lowest two bits of its tag are the number of bytes of the offset, but 3 means 4 bytes. */
static bool snappy_copy(block *self, unsigned tag)
{
    uint64_t offset;
    if ((tag & 3) == 1) {
        if (!take_bytes(self, 1, &offset)) return false;
        return take_copy(self, offset | (uint64_t)(tag >> 5) << 8, (tag >> 2 & 7) + 4);
    }
    return take_bytes(self, (tag & 3) == 2 ? 2 : 4, &offset) && take_copy(self, offset, (tag >> 2) + 1);
}

bool mrc_snappy_unpack(const uint8_t *data, int64_t bytes, uint8_t *out, int64_t size)
{
    block self = {data, data + bytes, out, out, out + size};
    uint64_t declared = 0, byte = 0x80;
    for (int shift = 0; byte & 0x80; shift += 7) {
        if (shift > 28 || !take_bytes(&self, 1, &byte)) return false;
        declared |= (byte & 0x7f) << shift;
    }
    if (declared != (uint64_t)size) return false;
    while (self.at < self.end) {
        unsigned tag = *self.at++;
        if (!((tag & 3) == 0 ? snappy_literal(&self, tag) : snappy_copy(&self, tag))) return false;
    }
    return self.to == self.stop;
}

/* ---- LZ4 --------------------------------------------------------------------------------------------------------- */

/* Adds further bytes to a length of 15, up to the first that is not 255. */
static bool lz4_length(block *self, uint64_t *length)
{
    uint64_t more = 255;
    if (*length < 15) return true;
    while (more == 255) {
        if (!take_bytes(self, 1, &more)) return false;
        *length += more;
    }
    return true;
}

bool mrc_lz4_unpack(const uint8_t *data, int64_t bytes, uint8_t *out, int64_t size)
{
    block self = {data, data + bytes, out, out, out + size};
    while (self.at < self.end) {
        unsigned tag = *self.at++;
        uint64_t literal = tag >> 4, length = tag & 15, offset;
        if (!lz4_length(&self, &literal) || !take_literal(&self, literal)) return false;
        if (self.at == self.end) break; /* the last sequence has no copy */
        if (!take_bytes(&self, 2, &offset) || !lz4_length(&self, &length)) return false;
        if (!take_copy(&self, offset, length + 4)) return false;
    }
    return self.to == self.stop;
}

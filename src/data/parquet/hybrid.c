/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoders of integers that are stored as runs and packed bits, or as deltas.
 *
 * Value i of packed bits of width w takes the bits i w .. i w + w - 1, the lowest bit of a byte first. Deltas: value i
 * is value i - 1 plus the minimum of its block plus a packed difference, modulo 2^64.
 *
 *   run      integer h; if h is even: h / 2 copies of a value, which follows in (w + 7) / 8 bytes; if h is odd:
 *            8 (h - 1) / 2 packed values
 *   deltas   integers: values per block, parts per block, number of values, first value; then blocks
 *   block    minimum; width of each part (1 byte); packed differences of each part
 *
 * Integers have a variable length as in thrift.h; first value and minimum are zigzag-encoded.
 */
#include "core/memory.h"
#include "data/parquet/encodings.h"
#include "data/parquet/thrift.h"

#include <string.h>

enum { MOST_BLOCK = 1 << 20 }; /* limit of values per block of deltas; writers use 128 to 1024 */

/* Returns the `width` bits (up to 64) at a position. All bytes before `end` may be read. Bytes from `end` on count as
   0. */
static inline uint64_t bits_at(const uint8_t *bits, const uint8_t *end, int64_t position, int width)
{
    const uint8_t *at = bits + position / 8;
    int shift = (int)(position % 8);
    uint64_t low = 0, high = 0;
    if (end - at >= 9) {
        memcpy(&low, at, 8);
        high = at[8];
    } else if (end > at) {
        uint8_t copy[16] = {0};
        memcpy(copy, at, (size_t)(end - at));
        memcpy(&low, copy, 8);
        high = copy[8];
    }
    uint64_t value = shift ? low >> shift | high << (64 - shift) : low;
    return width == 64 ? value : value & (((uint64_t)1 << width) - 1);
}

/* Reads an unsigned integer of variable length. Returns false if it is not valid. */
static bool take_unsigned(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    mrc_thrift thrift = {.at = *at, .end = end};
    *out = mrc_thrift_unsigned(&thrift);
    *at = thrift.at;
    return !thrift.bad;
}

/* ---- Runs and packed bits --------------------------------------------------------------------------------------- */

mrc_hybrid mrc_hybrid_open(const uint8_t *at, const uint8_t *end, int width)
{
    return (mrc_hybrid){.at = at, .end = end, .width = width};
}

/* Reads the header of the next run, which may be empty. */
static bool begin_run(mrc_hybrid *self)
{
    uint64_t head;
    /* Larger headers are refused, so that the products below cannot overflow. */
    if (self->at == self->end || !take_unsigned(&self->at, self->end, &head) || head > UINT32_MAX) return false;
    if (head & 1) {
        int64_t values = (int64_t)(head >> 1) * 8, bytes = (int64_t)(head >> 1) * self->width;
        int64_t left = self->end - self->at;
        if (bytes > left) values = left * 8 / self->width, bytes = left; /* the last group of 8 values may be cut off */
        self->bits = self->at;
        self->position = 0;
        self->packed = values;
        self->at += bytes;
        return true;
    }
    int bytes = (self->width + 7) / 8;
    uint32_t value = 0;
    if (self->end - self->at < bytes) return false;
    for (int i = 0; i < bytes; i++) value |= (uint32_t)self->at[i] << 8 * i;
    if (self->width < 32 && value >> self->width) return false;
    self->at += bytes;
    self->repeated = (int64_t)(head >> 1);
    self->value = (int32_t)value;
    return true;
}

static void unpack(mrc_hybrid *self, int64_t count, int32_t *out)
{
    const uint8_t *bits = self->bits;
    int64_t position = self->position, width = self->width, i = 0;
    uint64_t mask = ((uint64_t)1 << width) - 1;
    /* a value and its shift take up to 39 bits */
    for (; i < count && self->end - (bits + position / 8) >= 8; i++, position += width) {
        uint64_t word;
        memcpy(&word, bits + position / 8, 8);
        out[i] = (int32_t)(word >> position % 8 & mask);
    }
    for (; i < count; i++, position += width) out[i] = (int32_t)bits_at(bits, self->end, position, self->width);
    self->position = position;
}

bool mrc_hybrid_take(mrc_hybrid *self, int64_t count, int32_t *out)
{
    while (count > 0) {
        int64_t now = mrc_min(count, self->repeated > 0 ? self->repeated : self->packed);
        if (self->repeated > 0) {
            for (int64_t i = 0; i < now; i++) out[i] = self->value;
            self->repeated -= now;
        } else if (now > 0) {
            unpack(self, now, out);
            self->packed -= now;
        } else if (!begin_run(self)) {
            return false;
        }
        out += now;
        count -= now;
    }
    return true;
}

int64_t mrc_hybrid_take_ones(mrc_hybrid *self, int64_t count)
{
    while (self->repeated == 0 && self->packed == 0)
        if (!begin_run(self)) return 0;
    int64_t now = self->repeated > 0 && self->value == 1 ? mrc_min(count, self->repeated) : 0;
    self->repeated -= now;
    return now;
}

/* ---- Deltas ------------------------------------------------------------------------------------------------------ */

bool mrc_delta_open(mrc_delta *out, const uint8_t *at, const uint8_t *end)
{
    uint64_t block, minis, total, first;
    if (!take_unsigned(&at, end, &block) || !take_unsigned(&at, end, &minis) || !take_unsigned(&at, end, &total) ||
        !take_unsigned(&at, end, &first))
        return false;
    /* The number of values per part must be a multiple of 8, so that parts begin at whole bytes. With mini = minis, the
       first call of begin_mini begins a block. */
    if (block == 0 || block > MOST_BLOCK || minis == 0 || minis > block || block % minis || block / minis % 8 ||
        total > INT32_MAX)
        return false;
    *out = (mrc_delta){.at = at,
                       .end = end,
                       .left = (int64_t)total,
                       .minis = (int64_t)minis,
                       .per_mini = (int64_t)(block / minis),
                       .mini = (int64_t)minis,
                       .value = (uint64_t)mrc_zigzag(first),
                       .first = true};
    return true;
}

/* Begins the next part of the block, or the next block after the last part. */
static bool begin_mini(mrc_delta *self)
{
    if (++self->mini >= self->minis) {
        uint64_t minimum;
        if (!take_unsigned(&self->at, self->end, &minimum) || self->end - self->at < self->minis) return false;
        self->minimum = (uint64_t)mrc_zigzag(minimum);
        self->widths = self->at;
        self->at += self->minis;
        self->mini = 0;
    }
    self->width = self->widths[self->mini];
    if (self->width > 64) return false;
    /* the bytes of the last part may be cut off after its last value */
    int64_t needed = (mrc_min(self->left, self->per_mini) * self->width + 7) / 8;
    if (self->end - self->at < needed) return false;
    self->bits = self->at;
    self->position = 0;
    self->mini_left = self->per_mini;
    self->at += mrc_min(self->end - self->at, self->per_mini * self->width / 8);
    return true;
}

bool mrc_delta_take(mrc_delta *self, int64_t count, int64_t *out)
{
    if (count > self->left) return false;
    if (count > 0 && self->first) {
        self->first = false;
        self->left--;
        *out++ = (int64_t)self->value;
        count--;
    }
    while (count > 0) {
        if (self->mini_left == 0 && !begin_mini(self)) return false;
        int64_t now = mrc_min(count, self->mini_left), position = self->position;
        uint64_t value = self->value;
        for (int64_t i = 0; i < now; i++, position += self->width) {
            value += self->minimum + (self->width ? bits_at(self->bits, self->end, position, self->width) : 0);
            out[i] = (int64_t)value;
        }
        self->value = value;
        self->position = position;
        self->mini_left -= now;
        self->left -= now;
        out += now;
        count -= now;
    }
    return true;
}

const uint8_t *mrc_delta_end(const mrc_delta *delta)
{
    mrc_delta self = *delta;
    self.left -= self.left > 0;
    while (self.left > 0) {
        if (!begin_mini(&self)) return NULL;
        self.left -= mrc_min(self.left, self.per_mini);
    }
    /* The part of the last value is padded to its full size. Later parts of the block have a width but no bytes. */
    return self.at;
}

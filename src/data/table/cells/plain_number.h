/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain decimals such as -12.5, eight bytes at a time.
 *
 * Eight bytes of text are loaded as a 64-bit word whose lowest bits are the first byte. Digits are shifted to the upper
 * end of the word, and the rest is filled with zeros ('0'). Three products then convert all eight digits to a number.
 * So hardly any branch depends on the length of a number, which processors could not predict.
 */
#ifndef MRC_DATA_TABLE_CELLS_PLAIN_NUMBER_H
#define MRC_DATA_TABLE_CELLS_PLAIN_NUMBER_H

#include "data/table/number.h"

#include <string.h>

/* MRC_PLAIN_BEFORE: bytes that must be readable before the first byte of a number of more than eight bytes.
   MRC_PLAIN_BEHIND: bytes that must be readable from the first byte of any number on. */
enum { MRC_PLAIN_BEFORE = 24, MRC_PLAIN_BEHIND = 32 };

/* every byte is 1; every byte is '0' */
static const uint64_t mrc_all_ones = 0x0101010101010101u, mrc_all_zeros = 0x3030303030303030u;

/* Loads eight bytes, the first one in the lowest bits on every machine. */
static inline uint64_t mrc_load_word(const char *at)
{
    uint64_t word;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = 0;
    for (int i = 0; i < 8; i++) word |= (uint64_t)(unsigned char)at[i] << 8 * i;
#else
    memcpy(&word, at, sizeof word);
#endif
    return word;
}

/* Returns a word in which the highest bit of the first byte equal to `c` is set; bits of later bytes are arbitrary. 0:
   there is no such byte. */
static inline uint64_t mrc_find_byte(uint64_t word, char c)
{
    uint64_t off = word ^ (mrc_all_ones * (unsigned char)c);
    return (off - mrc_all_ones) & ~off & (mrc_all_ones << 7);
}

/* Returns whether all eight bytes are digits. */
static inline bool mrc_all_digits(uint64_t word)
{
    const uint64_t high = mrc_all_ones * 0xf0;
    return ((word & high) | ((word + mrc_all_ones * 6) & high) >> 4) == mrc_all_ones * 0x33;
}

/* Returns the number that eight decimal digits represent. Each of three products joins neighbors: digits, pairs, groups
   of four. */
static inline uint64_t mrc_join_digits(uint64_t digits)
{
    digits = (digits & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    digits = (digits & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    return (digits & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

/* Return the first, or the last, `count` of eight bytes, with '0' in the bytes before them. */
static inline uint64_t mrc_first_digits(uint64_t word, int64_t count)
{
    return word << 4 * (8 - count) << 4 * (8 - count) | mrc_all_zeros >> 4 * count >> 4 * count;
}

static inline uint64_t mrc_last_digits(uint64_t word, int64_t count)
{
    uint64_t front = ~UINT64_C(0) >> 4 * count >> 4 * count;
    return (word & ~front) | (mrc_all_zeros & front);
}

/* Returns the bit offset of the first decimal point; 64: none. */
static inline int mrc_point_offset(uint64_t word, char decimal)
{
    uint64_t points = mrc_find_byte(word, '.') | mrc_find_byte(word, decimal);
    return points ? __builtin_ctzll(points) - 7 : 64;
}

/* Reads 1 to 8 bytes without a sign. Sets *digits to the integer that the digits represent without the point, and
   *fraction to the number of digits after the point. Returns false if the bytes are not a plain decimal. */
static inline __attribute__((always_inline)) bool mrc_short_digits(const char *text, int64_t count, char decimal,
                                                                   uint64_t *digits, int64_t *fraction)
{
    uint64_t word = mrc_first_digits(mrc_load_word(text), count);
    *fraction = 0;
    if (!mrc_all_digits(word)) {
        int place = mrc_point_offset(word, decimal);
        if (place == 64 || count == 1) return false;
        uint64_t before = (UINT64_C(1) << place) - 1;
        word = (word & ~(before << 8 | 0xff)) | (word & before) << 8 | '0'; /* remove the point */
        if (!mrc_all_digits(word)) return false;
        *fraction = 7 - place / 8;
    }
    *digits = mrc_join_digits(word);
    return true;
}

/* Reads 9 to 24 bytes in the same way: up to 19 digits, with a point after at most 7 digits, or without a point. */
static inline bool mrc_long_digits(const char *text, int64_t count, char decimal, uint64_t *digits, int64_t *fraction)
{
    uint64_t word = mrc_load_word(text);
    int place = mrc_point_offset(word, decimal);
    int64_t before = place < 64 ? place / 8 : 0, rest = count - before - (place < 64);
    if (before + rest > 19) return false;
    const char *end = text + count;
    uint64_t head = mrc_first_digits(word, before), low = mrc_last_digits(mrc_load_word(end - 8), rest < 8 ? rest : 8),
             middle = mrc_last_digits(mrc_load_word(end - 16), rest < 8    ? 0
                                                               : rest < 16 ? rest - 8
                                                                           : 8),
             high = mrc_last_digits(mrc_load_word(end - 24), rest < 16 ? 0 : rest - 16);
    if (!mrc_all_digits(head) || !mrc_all_digits(low) || !mrc_all_digits(middle) || !mrc_all_digits(high)) return false;
    uint64_t tail = (mrc_join_digits(high) * 100000000u + mrc_join_digits(middle)) * 100000000u + mrc_join_digits(low);
    *digits = mrc_join_digits(head) * mrc_powers_of_ten[rest] + tail;
    *fraction = place < 64 ? rest : 0;
    return true;
}

/* Converts 9 to 24 bytes without a sign to a double. Not inlined, to keep this code out of the loops over short
   numbers. */
static __attribute__((noinline)) bool mrc_long_number(const char *text, int64_t count, char decimal, double *size)
{
    uint64_t digits;
    int64_t fraction;
    *size = 0;
    if (!mrc_long_digits(text, count, decimal, &digits, &fraction)) return false;
    return digits == 0 || mrc_decimal(digits, -fraction, size);
}

/*
 * Converts a text that is a plain decimal; its decimal mark, if any, is a point or `decimal`. Returns false if the text
 * is anything else, or needs the slow path. The text must not be empty. begin: start of the readable memory.
 */
static inline __attribute__((always_inline)) bool mrc_plain_number(const char *text, int64_t length, char decimal,
                                                                   const char *begin, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    static const double signs[] = {1, -1}; /* a table instead of a branch, which would often be mispredicted */
    unsigned negative = *text == '-';
    double size;
    text += negative;
    length -= negative;
    if (length >= 1 && length <= 8) {
        int64_t fraction;
        uint64_t digits;
        if (!mrc_short_digits(text, length, decimal, &digits, &fraction)) return false;
        size = (double)(int64_t)digits / powers[fraction];
    } else if (length < 1 || length > 24 || text - begin < MRC_PLAIN_BEFORE ||
               !mrc_long_number(text, length, decimal, &size)) {
        return false;
    }
    *value = size * signs[negative];
    return true;
}

#endif

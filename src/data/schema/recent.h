/* SPDX-License-Identifier: BSD-3-Clause */
/* A cache of recently seen short words. They are compared as 64-bit numbers, which is faster than hashing byte by
   byte. */
#ifndef MRC_DATA_SCHEMA_RECENT_H
#define MRC_DATA_SCHEMA_RECENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* MRC_RECENT_ENTRIES: 2^8 entries, selected by 8 bits of a hash. MRC_RECENT_BYTES: length of the longest cached word;
   in a lookup, that many bytes must be readable from the start of the word. MRC_RECENT_NONE: result for a word that is
   not cached. */
enum { MRC_RECENT_ENTRIES = 256, MRC_RECENT_BYTES = 32, MRC_RECENT_NONE = INT32_MIN };

typedef struct mrc_recent_word {
    uint64_t bytes[MRC_RECENT_BYTES / 8]; /* first byte lowest; 0 after the last byte */
    int32_t length;                       /* 0: empty entry */
    int32_t number;
} mrc_recent_word;

/* A word is in one of two neighboring entries. A new word is stored in the first entry, whose previous word moves to
   the second. */
typedef struct mrc_recent {
    mrc_recent_word words[MRC_RECENT_ENTRIES];
} mrc_recent;

/* Returns the index of a word's first entry: the upper bits of a multiplicative hash. */
static inline uint64_t mrc_recent_index(const uint64_t bytes[MRC_RECENT_BYTES / 8])
{
    uint64_t mixed = bytes[0] ^ bytes[1] * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= (bytes[2] ^ bytes[3] * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xa0761d6478bd642f);
    return mixed * UINT64_C(0xd6e8feb86659fd93) >> 56;
}

/* Returns eight bytes with all but the first `length` cleared. */
static inline uint64_t mrc_first_bytes(uint64_t word, int64_t length)
{
    static const uint64_t masks[] = {
        0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, 0xffffffffffffffff};
    return word & masks[length];
}

static inline bool mrc_recent_is(const mrc_recent_word *word, const uint64_t bytes[MRC_RECENT_BYTES / 8],
                                 int64_t length)
{
    return (((word->bytes[0] ^ bytes[0]) | (word->bytes[1] ^ bytes[1])) |
            ((word->bytes[2] ^ bytes[2]) | (word->bytes[3] ^ bytes[3]))) == 0 &&
           word->length == (int32_t)length;
}

/* Returns the number of a word of 17 to MRC_RECENT_BYTES bytes, or MRC_RECENT_NONE if it is not cached. */
static inline int32_t mrc_recent_find_long(const mrc_recent *recent, const char *text, int64_t length)
{
    uint64_t bytes[MRC_RECENT_BYTES / 8];
    memcpy(bytes, text, sizeof bytes);
    bytes[2] = mrc_first_bytes(bytes[2], length < 24 ? length - 16 : 8);
    bytes[3] = mrc_first_bytes(bytes[3], length < 24 ? 0 : length - 24);
    uint64_t place = mrc_recent_index(bytes);
    const mrc_recent_word *word = &recent->words[place];
    if (mrc_recent_is(word, bytes, length)) return word->number;
    word = &recent->words[place ^ 1];
    return mrc_recent_is(word, bytes, length) ? word->number : MRC_RECENT_NONE;
}

/* Returns the number of a word of at least one byte, or MRC_RECENT_NONE if it is not cached. MRC_RECENT_BYTES bytes
   must be readable. */
static inline int32_t mrc_recent_find(const mrc_recent *recent, const char *text, int64_t length)
{
    if (length > 16) return length > MRC_RECENT_BYTES ? MRC_RECENT_NONE : mrc_recent_find_long(recent, text, length);
    uint64_t bytes[MRC_RECENT_BYTES / 8] = {0};
    memcpy(bytes, text, 16);
    bytes[0] = mrc_first_bytes(bytes[0], length < 8 ? length : 8);
    bytes[1] = mrc_first_bytes(bytes[1], length < 8 ? 0 : length - 8);
    uint64_t place = mrc_recent_index(bytes);
    const mrc_recent_word *word = &recent->words[place];
    uint64_t differs =
        (word->bytes[0] ^ bytes[0]) | (word->bytes[1] ^ bytes[1]) | (uint64_t)(word->length ^ (int32_t)length);
    if (differs == 0) return word->number;
    word = &recent->words[place ^ 1];
    differs = (word->bytes[0] ^ bytes[0]) | (word->bytes[1] ^ bytes[1]) | (uint64_t)(word->length ^ (int32_t)length);
    return differs == 0 ? word->number : MRC_RECENT_NONE;
}

/* Caches the number of a word that is not cached yet. Empty and too long words are ignored. */
static inline void mrc_recent_note(mrc_recent *recent, const char *text, int64_t length, int64_t number)
{
    mrc_recent_word word = {.length = (int32_t)length, .number = (int32_t)number};
    if (length == 0 || length > MRC_RECENT_BYTES) return;
    memcpy(word.bytes, text, (size_t)length);
    mrc_recent_word *place = &recent->words[mrc_recent_index(word.bytes)];
    recent->words[(place - recent->words) ^ 1] = *place;
    *place = word;
}

#endif

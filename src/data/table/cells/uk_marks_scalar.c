/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks: for each character that is searched for, 64 bytes of text give a 64-bit word with one bit per byte. Every
 * x86-64 processor has SSE2; on other processors bytes are compared one by one, with the same result.
 */
#include "data/table/cells/csv_marks.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Bit masks of separators, line ends and quotes in a block. */
typedef struct marked {
    uint64_t splits, lines, quotes;
} marked;

#ifdef __SSE2__
static inline uint64_t bits_of(__m128i found, int i)
{
    return (uint64_t)(uint32_t)_mm_movemask_epi8(found) << 16 * i;
}

static inline marked find_marks(const char *at, char separator)
{
    marked found = {0, 0, 0};
    for (int i = 0; i < MRC_MARK_BLOCK / 16; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
        found.splits |= bits_of(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(separator)), i);
        found.lines |= bits_of(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')), i);
        found.quotes |= bits_of(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), i);
    }
    return found;
}

/* Returns the bit mask of line ends, and sets *low to the bit mask of all characters up to a space. */
static inline uint64_t find_lines(const char *at, uint64_t *low)
{
    uint64_t lines = *low = 0;
    for (int i = 0; i < MRC_MARK_BLOCK / 16; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
        lines |= bits_of(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')), i);
        /* SSE2 has no unsigned comparison: a byte is at most ' ' if the minimum of the byte and ' ' is the byte. */
        *low |= bits_of(_mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes), i);
    }
    return lines;
}
#else
static inline marked find_marks(const char *at, char separator)
{
    marked found = {0, 0, 0};
    for (int i = 0; i < MRC_MARK_BLOCK; i++) {
        found.splits |= (uint64_t)(at[i] == separator) << i;
        found.lines |= (uint64_t)(at[i] == '\n') << i;
        found.quotes |= (uint64_t)(at[i] == '"') << i;
    }
    return found;
}

static inline uint64_t find_lines(const char *at, uint64_t *low)
{
    uint64_t lines = *low = 0;
    for (int i = 0; i < MRC_MARK_BLOCK; i++) {
        lines |= (uint64_t)(at[i] == '\n') << i;
        *low |= (uint64_t)((unsigned char)at[i] <= ' ') << i;
    }
    return lines;
}
#endif

/* Counts set bits without the popcnt instruction, which the baseline of x86-64 does not have. */
static inline int count_bits(uint64_t word)
{
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    return (int)(((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}

/* Appends the offsets of set bits, always `some` at a time, because the exit of a loop over single bits would be
   mispredicted. The list must have capacity for `some` more entries than there are bits. Returns the new end of the
   list. */
static inline uint32_t *list_bits(uint32_t *to, uint64_t word, uint32_t base, int some)
{
    int count = count_bits(word);
    uint32_t *next = to + count;
    for (int done = 0; done == 0 || done < count; done += some)
        for (int i = 0; i < some; i++) {
            *to++ = base + (uint32_t)__builtin_ctzll(word | UINT64_C(1) << 63);
            word &= word - 1;
        }
    return next;
}

void mrc_uk_marks_u8_scalar(const char *text, int64_t bytes, char separator, mrc_mark_lists *to)
{
    enum { SOME_ENDS = 8, SOME_LINES = 4 };
    uint32_t *ends = to->ends, *lines = to->lines;
    bool quoted = false;
    for (int64_t at = 0; bytes - at >= MRC_MARK_BLOCK && ends < to->full && !quoted; at += MRC_MARK_BLOCK) {
        marked found = find_marks(text + at, separator);
        quoted = found.quotes != 0;
        uint64_t before = (found.quotes & (0 - found.quotes)) - 1; /* bits before the first quote, or all bits */
        ends = list_bits(ends, (found.splits | found.lines) & before, (uint32_t)at, SOME_ENDS);
        lines = list_bits(lines, found.lines & before, (uint32_t)at, SOME_LINES);
    }
    *to = (mrc_mark_lists){ends, lines, to->full, quoted};
}

/* ---- Lines --------------------------------------------------------------------------------------------------- */

bool mrc_uk_lines_u8_scalar(const char *at, const char *stop, int64_t *count)
{
    bool begins = false;
    *count = 0;
    for (; stop - at >= MRC_MARK_BLOCK; at += MRC_MARK_BLOCK) {
        uint64_t low, lines = find_lines(at, &low);
        /* Bytes after a line end, in this block or at the end of the previous block, begin a line. */
        if ((lines << 1 | (uint64_t)begins) & low) return false;
        begins = lines >> 63;
        *count += count_bits(lines);
    }
    for (; at < stop; at++) {
        if (begins && (unsigned char)*at <= ' ') return false;
        begins = *at == '\n';
        *count += begins;
    }
    return true;
}

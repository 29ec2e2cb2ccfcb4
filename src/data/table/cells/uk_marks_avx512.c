/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists the marks in blocks of 64 bytes. The bit mask of a block selects the offsets that compress instructions write
   to the list. */
#include "data/table/cells/mark_kernels.h"

#include <immintrin.h>

/* Appends the offsets of set bits. Returns the new end of the list; up to 16 entries beyond it may be overwritten. */
static inline uint32_t *list_bits(uint32_t *to, uint64_t bits, __m512i places)
{
    for (int i = 0; i < MRC_MARK_BLOCK / 16; i++, bits >>= 16) {
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)bits, places));
        to += __builtin_popcount((unsigned)bits & 0xffff);
        places = _mm512_add_epi32(places, _mm512_set1_epi32(16));
    }
    return to;
}

void mrc_uk_marks_u8_avx512(const char *text, int64_t bytes, char separator, mrc_mark_lists *to)
{
    const __m512i split = _mm512_set1_epi8(separator), line = _mm512_set1_epi8('\n'), quote = _mm512_set1_epi8('"');
    __m512i places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint32_t *ends = to->ends, *lines = to->lines;
    uint64_t quotes = 0;
    for (int64_t at = 0; bytes - at >= MRC_MARK_BLOCK && ends < to->full && !quotes; at += MRC_MARK_BLOCK) {
        __m512i block = _mm512_loadu_si512(text + at);
        uint64_t line_ends = _mm512_cmpeq_epi8_mask(block, line);
        quotes = _mm512_cmpeq_epi8_mask(block, quote);
        uint64_t before = (quotes & (0 - quotes)) - 1; /* bits before the first quote, or all bits */
        ends = list_bits(ends, (_mm512_cmpeq_epi8_mask(block, split) | line_ends) & before, places);
        for (uint64_t rest = line_ends & before; rest; rest &= rest - 1)
            *lines++ = (uint32_t)at + (uint32_t)__builtin_ctzll(rest);
        places = _mm512_add_epi32(places, _mm512_set1_epi32(MRC_MARK_BLOCK));
    }
    *to = (mrc_mark_lists){ends, lines, to->full, quotes != 0};
}

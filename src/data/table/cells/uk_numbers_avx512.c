/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain decimals of a column, eight records at a time. Each number is a 64-bit word as in plain_number.h, and each step
 * is done for eight words. take_long converts fields of more than eight bytes; fields that it cannot convert go to
 * mrc_plain_number one by one.
 *
 * Digits are integers below 10^8 and powers of ten are exact, so the division is the only rounding.
 */
#include "data/table/cells/plain_number.h"
#include "data/table/cells/plain_numbers.h"

#include <immintrin.h>

/* Loads eight 64-bit words at base + at[0], base + at[1], ... Gather instructions do the same and take longer. */
static inline __m512i load_eight(const void *base, const uint64_t at[8])
{
    uint64_t word[8];
    for (int k = 0; k < 8; k++) memcpy(&word[k], (const char *)base + at[k], sizeof word[k]);
    return _mm512_set_epi64((int64_t)word[7], (int64_t)word[6], (int64_t)word[5], (int64_t)word[4], (int64_t)word[3],
                            (int64_t)word[2], (int64_t)word[1], (int64_t)word[0]);
}

/* Loads entries of a table of 64-bit numbers. */
static inline __m512i look_up(const void *table, __m512i places)
{
    _Alignas(64) uint64_t at[8];
    _mm512_store_si512(at, _mm512_slli_epi64(places, 3));
    return load_eight(table, at);
}

/* Returns the numbers that the eight digits of each word represent (see mrc_join_digits). */
static inline __m512i join(__m512i digits)
{
    __m512i pairs = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(0x010a));
    __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x00010064));
    return _mm512_add_epi64(_mm512_mul_epu32(fours, _mm512_set1_epi64(10000)), _mm512_srli_epi64(fours, 32));
}

/* Returns 0xff for bytes that are a decimal point, 0 for all others. */
static inline __m512i find_points(__m512i word, char decimal)
{
    __mmask64 points = _mm512_cmpeq_epi8_mask(word, _mm512_set1_epi8('.'));
    return _mm512_movm_epi8(points | _mm512_cmpeq_epi8_mask(word, _mm512_set1_epi8(decimal)));
}

/* Returns 10^(7 - k) for a point at byte k, given 2^(8 k). In the double 2^(8 k), bits 3 to 5 of the biased exponent
   are k - 1 modulo 8. */
static inline __m512d power_of(__m512i lowest)
{
    const __m512d powers = _mm512_setr_pd(1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0, 1e7);
    __m512i exponent = _mm512_castpd_si512(_mm512_cvtepu64_pd(lowest));
    return _mm512_permutexvar_pd(_mm512_srli_epi64(exponent, 55), powers);
}

/* Converts eight words to values; lengths are at most 8. Returns the lanes that are plain decimals. */
static inline __mmask8 take_words(__m512i word, __m512i length, char decimal, __m512d *values)
{
    const __m512i zeros = _mm512_set1_epi8('0'), bits = _mm512_set1_epi64(64), one = _mm512_set1_epi64(1);
    __mmask8 negative =
        _mm512_cmpeq_epi64_mask(_mm512_and_si512(word, _mm512_set1_epi64(0xff)), _mm512_set1_epi64('-'));
    word = _mm512_mask_srli_epi64(word, negative, word, 8);
    /* The characters without the sign move to the upper end of the word, and '0' fills the bytes before them. */
    __m512i count = _mm512_mask_sub_epi64(length, negative, length, one), used = _mm512_slli_epi64(count, 3);
    word = _mm512_or_si512(_mm512_sllv_epi64(word, _mm512_sub_epi64(bits, used)), _mm512_srlv_epi64(zeros, used));
    __m512i points = find_points(word, decimal);
    __mmask8 pointed = _mm512_test_epi64_mask(points, points);
    __m512i lowest = _mm512_and_si512(points, _mm512_sub_epi64(_mm512_setzero_si512(), points));
    /* bytes before the point, which move up by one byte to take its place */
    __m512i before = _mm512_sub_epi64(lowest, one);
    __m512i moved = _mm512_or_si512(_mm512_slli_epi64(_mm512_and_si512(word, before), 8), _mm512_set1_epi64('0'));
    __m512i behind = _mm512_or_si512(_mm512_slli_epi64(before, 8), _mm512_set1_epi64(0xff));
    word = _mm512_mask_or_epi64(word, pointed, moved, _mm512_andnot_si512(behind, word));
    __m512i digits = _mm512_sub_epi8(word, zeros);
    __m512i wrong = _mm512_movm_epi8(_mm512_cmpgt_epu8_mask(digits, _mm512_set1_epi8(9)));
    __m512d power = _mm512_mask_blend_pd(pointed, _mm512_set1_pd(1), power_of(lowest));
    __m512d value = _mm512_div_pd(_mm512_cvtepi64_pd(join(digits)), power);
    *values = _mm512_mask_xor_pd(value, negative, value, _mm512_set1_pd(-0.0));
    __mmask8 any = _mm512_cmpgt_epi64_mask(count, _mm512_setzero_si512());
    __mmask8 alone = pointed & _mm512_cmpeq_epi64_mask(count, one); /* fields that are only a point */
    return _mm512_testn_epi64_mask(wrong, wrong) & any & (__mmask8)~alone;
}

/* Returns the last `count` of eight bytes, preceded by digits 0. */
static inline __m512i last_digits(__m512i word, __m512i count)
{
    __m512i front = _mm512_srlv_epi64(_mm512_set1_epi64(-1), _mm512_slli_epi64(count, 3));
    return _mm512_or_si512(_mm512_andnot_si512(front, word), _mm512_and_si512(front, _mm512_set1_epi8('0')));
}

static inline __m512i clamp(__m512i number, int64_t most)
{
    return _mm512_min_epi64(_mm512_max_epi64(number, _mm512_setzero_si512()), _mm512_set1_epi64(most));
}

/* Returns the upper halves of 128-bit products. */
static inline __m512i multiply_high(__m512i a, __m512i b)
{
    const __m512i low = _mm512_set1_epi64(0xffffffff);
    __m512i high_a = _mm512_srli_epi64(a, 32), high_b = _mm512_srli_epi64(b, 32);
    __m512i cross = _mm512_mul_epu32(high_a, b), other = _mm512_mul_epu32(a, high_b);
    __m512i carry = _mm512_srli_epi64(_mm512_mul_epu32(a, b), 32);
    carry = _mm512_add_epi64(_mm512_add_epi64(carry, _mm512_and_si512(cross, low)), _mm512_and_si512(other, low));
    __m512i sum = _mm512_add_epi64(_mm512_mul_epu32(high_a, high_b), _mm512_srli_epi64(cross, 32));
    return _mm512_add_epi64(_mm512_add_epi64(sum, _mm512_srli_epi64(other, 32)), _mm512_srli_epi64(carry, 32));
}

/* Returns floor(log2(number)) for integers above 0. Bits that follow a 1 are cleared first, so that the conversion to
   double cannot round up to the next power of two. */
static inline __m512i log_two(__m512i number)
{
    __m512i lead = _mm512_andnot_si512(_mm512_srli_epi64(number, 1), number);
    __m512i pattern = _mm512_castpd_si512(_mm512_cvtepu64_pd(lead));
    return _mm512_sub_epi64(_mm512_srli_epi64(pattern, 52), _mm512_set1_epi64(1023));
}

/* Computes digits / 10^fraction like divide_fast in number.c, for digits above 0 and fractions of 1 to 19. Returns the
   lanes whose result is certain to be correctly rounded. */
static inline __mmask8 divide(__m512i digits, __m512i fraction, __m512d *values)
{
    const __m512i one = _mm512_set1_epi64(1);
    __m512i zeros = _mm512_sub_epi64(_mm512_set1_epi64(63), log_two(digits));
    __m512i share = look_up(mrc_shares_of_five, fraction);
    __m512i bits = look_up(mrc_bits_of_five, fraction);
    __m512i top = multiply_high(_mm512_sllv_epi64(digits, zeros), share);
    __m512i drop = _mm512_add_epi64(_mm512_set1_epi64(10), _mm512_srli_epi64(top, 63));
    __m512i kept = _mm512_srlv_epi64(top, drop), half = _mm512_sllv_epi64(one, _mm512_sub_epi64(drop, one));
    __m512i rest = _mm512_sub_epi64(top, _mm512_sllv_epi64(kept, drop));
    __mmask8 up = _mm512_cmpgt_epi64_mask(rest, half);
    __mmask8 open = (__mmask8)~up & _mm512_cmpgt_epi64_mask(_mm512_add_epi64(rest, _mm512_set1_epi64(2)), half);
    kept = _mm512_mask_add_epi64(kept, up, kept, one);
    __m512i exponent = _mm512_sub_epi64(_mm512_set1_epi64(1076), _mm512_add_epi64(bits, zeros));
    exponent = _mm512_add_epi64(exponent, _mm512_sub_epi64(drop, fraction));
    kept = _mm512_sub_epi64(kept, _mm512_set1_epi64(INT64_C(1) << 52));
    *values = _mm512_castsi512_pd(_mm512_add_epi64(_mm512_slli_epi64(exponent, 52), kept));
    return (__mmask8)~open;
}

/* Converts the fields in `lanes` that have 9 to 24 bytes after the sign (see mrc_long_digits). Returns the lanes that
   are plain decimals and certain to be correctly rounded. */
static __mmask8 take_long(const char *base, __m512i first, __m512i length, char decimal, __mmask8 lanes,
                          __m512d *values)
{
    _Alignas(64) uint64_t at[8];
    const __m512i zeros = _mm512_set1_epi8('0'), one = _mm512_set1_epi64(1), none = _mm512_setzero_si512();
    const __m512i eighth = _mm512_set1_epi64(100000000), nine = _mm512_set1_epi8(9);
    __m512i end = _mm512_add_epi64(first, length);
    _mm512_store_si512(at, first);
    __m512i word = load_eight(base, at), second = load_eight(base + 1, at);
    __mmask8 negative =
        _mm512_cmpeq_epi64_mask(_mm512_and_si512(word, _mm512_set1_epi64(0xff)), _mm512_set1_epi64('-'));
    __m512i count = _mm512_mask_sub_epi64(length, negative, length, one);
    word = _mm512_mask_mov_epi64(word, negative, second);
    __m512i points = find_points(word, decimal);
    __mmask8 pointed = _mm512_test_epi64_mask(points, points);
    __m512i lowest = _mm512_and_si512(points, _mm512_sub_epi64(none, points));
    __m512i before = _mm512_maskz_srli_epi64(pointed, log_two(lowest), 3);
    __m512i rest = _mm512_sub_epi64(count, before);
    rest = _mm512_mask_sub_epi64(rest, pointed, rest, one);
    __m512i used = _mm512_slli_epi64(before, 3);
    /* head: up to 7 digits before the point; rest: digits after it, or all digits if there is no point */
    __m512i head = _mm512_or_si512(_mm512_sllv_epi64(word, _mm512_sub_epi64(_mm512_set1_epi64(64), used)),
                                   _mm512_srlv_epi64(zeros, used));
    __mmask8 fits = lanes & _mm512_cmpgt_epi64_mask(count, _mm512_set1_epi64(8)) &
                    _mm512_cmplt_epi64_mask(count, _mm512_set1_epi64(25)) &
                    _mm512_cmplt_epi64_mask(_mm512_add_epi64(before, rest), _mm512_set1_epi64(20));
    /* The last 24 bytes of the field, as three words; last_digits replaces the bytes before the rest by '0'. */
    _mm512_store_si512(at, end);
    __m512i low = load_eight(base - 8, at);
    __m512i middle = load_eight(base - 16, at);
    __m512i high = load_eight(base - 24, at);
    head = _mm512_sub_epi8(head, zeros);
    low = _mm512_sub_epi8(last_digits(low, clamp(rest, 8)), zeros);
    middle = _mm512_sub_epi8(last_digits(middle, clamp(_mm512_sub_epi64(rest, _mm512_set1_epi64(8)), 8)), zeros);
    high = _mm512_sub_epi8(last_digits(high, clamp(_mm512_sub_epi64(rest, _mm512_set1_epi64(16)), 8)), zeros);
    __mmask64 digits_wrong = _mm512_cmpgt_epu8_mask(head, nine) | _mm512_cmpgt_epu8_mask(low, nine) |
                             _mm512_cmpgt_epu8_mask(middle, nine) | _mm512_cmpgt_epu8_mask(high, nine);
    __m512i wrong = _mm512_movm_epi8(digits_wrong);
    fits &= _mm512_testn_epi64_mask(wrong, wrong);
    __m512i tail = _mm512_add_epi64(_mm512_mul_epu32(join(high), eighth), join(middle));
    tail = _mm512_add_epi64(_mm512_mullo_epi64(tail, eighth), join(low));
    __m512i power = look_up(mrc_powers_of_ten, clamp(rest, 19));
    __m512i digits = _mm512_add_epi64(_mm512_mullo_epi64(join(head), power), tail);
    __mmask8 divided = pointed & fits & _mm512_test_epi64_mask(digits, digits);
    __m512d quotient, value = _mm512_cvtepu64_pd(digits);
    __mmask8 done =
        divide(_mm512_mask_mov_epi64(one, divided, digits), _mm512_mask_mov_epi64(one, divided, rest), &quotient);
    value = _mm512_mask_mov_pd(value, divided, quotient);
    *values = _mm512_mask_xor_pd(value, negative, value, _mm512_set1_pd(-0.0));
    return fits & ((__mmask8)~divided | done);
}

/* Stores the values, their cells, and the lanes whose rounding error exceeds self->off. */
static inline void store_numbers(const mrc_fields *self, __m512d values, mrc_eight_numbers *out)
{
    __m512d moved = _mm512_sub_pd(values, _mm512_set1_pd(self->origin));
    __m256 cells = _mm512_cvtpd_ps(moved);
    __m512d off = _mm512_abs_pd(_mm512_sub_pd(_mm512_cvtps_pd(cells), moved));
    _mm512_store_pd(out->values, values);
    _mm256_store_ps(out->cells, cells);
    out->over = _mm512_cmp_pd_mask(off, _mm512_set1_pd(self->off), _CMP_GT_OQ);
}

/* Converts the remaining lanes one by one. */
static void take_each(const mrc_fields *self, const uint32_t *end, unsigned lanes, mrc_eight_numbers *out)
{
    for (; lanes; lanes &= lanes - 1) {
        int k = __builtin_ctz(lanes);
        uint32_t first = end[k * self->stride - 1] + 1;
        bool plain = mrc_plain_number(self->base + first, (int64_t)end[k * self->stride] - first, self->decimal,
                                      self->begin, &out->values[k]);
        out->plain |= (uint8_t)(plain << k);
    }
    store_numbers(self, _mm512_load_pd(out->values), out);
}

void mrc_uk_numbers_u8_avx512(const mrc_fields *self, int64_t rows, mrc_eight_numbers *out)
{
    const __m512i eight = _mm512_set1_epi64(8);
    const mrc_fields fields = *self;
    const uint32_t *end = fields.ends;
    uint64_t steps[8];
    for (uint64_t k = 0; k < 8; k++) steps[k] = k * (uint64_t)fields.stride * sizeof *end;
    int64_t i = 0;
    for (; i + 8 <= rows; i += 8, out++, end += 8 * fields.stride) {
        uint64_t at[8];
        for (int k = 0; k < 8; k++) at[k] = (uint32_t)(end[k * fields.stride - 1] + 1);
        /* pairs: end of the previous field, end of this field */
        __m512i pairs = load_eight(end - 1, steps);
        __m512i first = _mm512_and_si512(_mm512_add_epi64(pairs, _mm512_set1_epi64(1)), _mm512_set1_epi64(0xffffffff));
        __m512i length = _mm512_sub_epi64(_mm512_srli_epi64(pairs, 32), first);
        __m512i word = load_eight(fields.base, at);
        __mmask8 more = _mm512_cmpgt_epi64_mask(length, eight), empty = _mm512_testn_epi64_mask(length, length);
        __m512d values, others;
        __mmask8 plain = take_words(word, _mm512_min_epi64(length, eight), fields.decimal, &values) & (__mmask8)~more;
        if (more && fields.base + (uint32_t)(end[-1] + 1) - fields.begin >= MRC_PLAIN_BEFORE) {
            __mmask8 done = take_long(fields.base, first, length, fields.decimal, more, &others);
            values = _mm512_mask_mov_pd(values, done, others);
            plain |= done;
            more &= (__mmask8)~done;
        }
        out->plain = plain;
        out->empty = empty;
        store_numbers(&fields, _mm512_mask_blend_pd(empty, values, _mm512_set1_pd(__builtin_nan(""))), out);
        if (more) take_each(&fields, end, more, out);
    }
    mrc_fields rest = fields;
    rest.ends = end;
    if (i < rows) mrc_uk_numbers_u8_scalar(&rest, rows - i, out);
}

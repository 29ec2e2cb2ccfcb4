/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion between IEEE binary16 and binary32 in portable arithmetic, bitwise identical on every machine. */
#ifndef MRC_CORE_NUMBERS_HALF_H
#define MRC_CORE_NUMBERS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float mrc_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t mrc_bits_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Converts exactly: shifts exponent and fraction into place, then corrects the bias of the exponent by multiplying with
   2^112. */
static inline float mrc_half_to_float(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    float value = mrc_float_from_bits(magnitude) * 0x1p112f;
    uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0; /* infinity and NaN keep all exponent bits set */
    return mrc_float_from_bits(mrc_bits_from_float(value) | special | (uint32_t)(half & 0x8000) << 16);
}

/* Rounds to nearest, ties to even; values that are too large become infinity. */
static inline uint16_t mrc_half_from_float(float value)
{
    uint32_t bits = mrc_bits_from_float(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return sign | 0x7e00; /* NaN */
    /* 65520, halfway between the largest half and 65536, and everything above round to infinity. */
    if (magnitude >= 0x477ff000) return sign | 0x7c00;
    if (magnitude < 0x38800000) {
        /* Below the smallest normal half: adding 0.5 lets the float adder round to a multiple of 2^-24. */
        float rounded = mrc_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (mrc_bits_from_float(rounded) - 0x3f000000));
    }
    uint32_t odd = magnitude >> 13 & 1;
    return (uint16_t)(sign | (magnitude - 0x38000000 + 0xfff + odd) >> 13);
}

/* Rounds a float to the 11 significant bits of a normal half, ties to even, for any exponent. NaN and infinity stay
   unchanged. */
static inline float mrc_round_to_half(float value)
{
    uint32_t bits = mrc_bits_from_float(value);
    if ((bits & 0x7f800000) == 0x7f800000) return value;
    return mrc_float_from_bits((bits + 0xfff + (bits >> 13 & 1)) & ~(uint32_t)0x1fff);
}

#endif

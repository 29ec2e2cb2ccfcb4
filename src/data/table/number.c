/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conversion of decimal text to double, correctly rounded.
 *
 * A number is d1 d2 ... dk * 10^e. There are three methods, from fast to general:
 *
 *   k digits make w <= 2^53, |e| <= 22:    w * 10^e or w / 10^-e; both operands are exact, so there is one rounding
 *   w < 2^64, |e| <= 27:                   w * 5^e, or w 2^64 / 5^-e with its remainder, in 128-bit integers; before
 *                                          that, a product with 1 / 5^-e, whose result is used if its error cannot
 *                                          change the rounding
 *   otherwise                              the same with integers of any length
 *
 * The last two yield the first 64 bits of the result, a sticky bit (whether the rest is not 0), and a power of two;
 * `assemble` rounds them once. For very long numbers only the first 800 digits are used, and whether any later digit is
 * not 0. That is enough, because a double or a midpoint between two doubles has at most 768 digits.
 */
#include "data/table/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* 96 limbs of 32 bits: 800 digits need 2,658 bits, 5^1130 fewer, and long division a few more. */
enum { MOST_DIGITS = 800, LIMBS = 96 };

typedef struct decimal {
    uint64_t lead;    /* the first 19 significant digits */
    int lead_digits;  /* number of digits in `lead` */
    int64_t exponent; /* the value is (all significant digits as an integer) * 10^exponent */
    int64_t digits;   /* number of significant digits; only the first MOST_DIGITS are used */
    bool negative;
    const char *begin, *end; /* part of the text with digits and point */
} decimal;

/* ---- Rounding ------------------------------------------------------------------------------------------------ */

/* Rounds (bits + something below 1 if sticky) * 2^exponent to the nearest double; bits has its highest bit set. */
static double assemble(uint64_t bits, int64_t exponent, bool sticky)
{
    int drop = 11; /* bits beyond the 53 of a double */
    int64_t power = exponent + 63;
    if (power > 1023) return INFINITY;
    if (power < -1022) drop += (int)(-1022 - power > 60 ? 60 : -1022 - power); /* subnormal numbers have fewer bits */
    /* The number is below half of the smallest subnormal number. */
    if (drop > 64) return 0;
    uint64_t kept = drop == 64 ? 0 : bits >> drop, half = UINT64_C(1) << (drop - 1);
    uint64_t rest = drop == 64 ? bits : bits & ((half << 1) - 1);
    if (rest > half || (rest == half && (sticky || (kept & 1)))) kept++;
    return ldexp((double)kept, (int)exponent + drop); /* exact, because `kept` has no more bits than the result */
}

/* Shifts the highest bit to the top, and adjusts the exponent. */
static uint64_t normalize(uint64_t bits, int64_t *exponent)
{
    int shift = __builtin_clzll(bits);
    *exponent -= shift;
    return bits << shift;
}

/* 2^(63 + b) / 5^e for e = 1 .. 27, truncated to 64 bits; b is the number of bits of 5^e. */
const uint64_t mrc_shares_of_five[28] = {
    0,
    0xccccccccccccccccu,
    0xa3d70a3d70a3d70au,
    0x83126e978d4fdf3bu,
    0xd1b71758e219652bu,
    0xa7c5ac471b478423u,
    0x8637bd05af6c69b5u,
    0xd6bf94d5e57a42bcu,
    0xabcc77118461cefcu,
    0x89705f4136b4a597u,
    0xdbe6fecebdedd5beu,
    0xafebff0bcb24aafeu,
    0x8cbccc096f5088cbu,
    0xe12e13424bb40e13u,
    0xb424dc35095cd80fu,
    0x901d7cf73ab0acd9u,
    0xe69594bec44de15bu,
    0xb877aa3236a4b449u,
    0x9392ee8e921d5d07u,
    0xec1e4a7db69561a5u,
    0xbce5086492111aeau,
    0x971da05074da7beeu,
    0xf1c90080baf72cb1u,
    0xc16d9a0095928a27u,
    0x9abe14cd44753b52u,
    0xf79687aed3eec551u,
    0xc612062576589ddau,
    0x9e74d1b791e07e48u,
};

const int64_t mrc_bits_of_five[28] = {1,  3,  5,  7,  10, 12, 14, 17, 19, 21, 24, 26, 28, 31,
                                      33, 35, 38, 40, 42, 45, 47, 49, 52, 54, 56, 59, 61, 63};

const uint64_t mrc_powers_of_ten[20] = {1u,
                                        10u,
                                        100u,
                                        1000u,
                                        10000u,
                                        100000u,
                                        1000000u,
                                        10000000u,
                                        100000000u,
                                        1000000000u,
                                        10000000000u,
                                        100000000000u,
                                        1000000000000u,
                                        10000000000000u,
                                        100000000000000u,
                                        1000000000000000u,
                                        10000000000000000u,
                                        100000000000000000u,
                                        1000000000000000000u,
                                        10000000000000000000u};

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;

static const uint64_t powers_of_five[28] = {1u,
                                            5u,
                                            25u,
                                            125u,
                                            625u,
                                            3125u,
                                            15625u,
                                            78125u,
                                            390625u,
                                            1953125u,
                                            9765625u,
                                            48828125u,
                                            244140625u,
                                            1220703125u,
                                            6103515625u,
                                            30517578125u,
                                            152587890625u,
                                            762939453125u,
                                            3814697265625u,
                                            19073486328125u,
                                            95367431640625u,
                                            476837158203125u,
                                            2384185791015625u,
                                            11920928955078125u,
                                            59604644775390625u,
                                            298023223876953125u,
                                            1490116119384765625u,
                                            7450580596923828125u};

/* Rounds (number + something below 1 if sticky) * 2^exponent to the nearest double; number is not 0. */
static double assemble_wide(wide number, int64_t exponent, bool sticky)
{
    uint64_t high = (uint64_t)(number >> 64);
    if (!high) {
        uint64_t bits = normalize((uint64_t)number, &exponent);
        return assemble(bits, exponent, sticky);
    }
    int shift = 64 - __builtin_clzll(high);
    wide rest = number & (((wide)1 << shift) - 1);
    return assemble((uint64_t)(number >> shift), exponent + shift, sticky || rest != 0);
}

/*
 * Computes number / 10^e for e = 1 .. 27 by one product: w r / 2^64 with w = number 2^zeros, r = mrc_shares_of_five[e];
 * `top` is the integer part of this product. r and the product are truncated, so the true quotient is in [top, top +
 * 2). Returns false if that interval contains a midpoint between two doubles.
 */
static bool divide_fast(uint64_t number, int e, double *value)
{
    int zeros = __builtin_clzll(number), bits = (int)mrc_bits_of_five[e];
    uint64_t top = (uint64_t)((wide)(number << zeros) * mrc_shares_of_five[e] >> 64);
    int drop = 10 + (int)(top >> 63); /* bits beyond the 53 of a double */
    uint64_t kept = top >> drop, half = UINT64_C(1) << (drop - 1), rest = top & (2 * half - 1);
    if (rest <= half && rest + 2 > half) return false;
    kept += rest > half;
    /* kept * 2^(drop + 1 - bits - e - zeros) is far from overflow and underflow; kept = 2^53 carries into the
       exponent */
    uint64_t exponent = (uint64_t)(1075 + drop + 1 - bits - e - zeros);
    uint64_t pattern = (exponent << 52) + kept - (UINT64_C(1) << 52);
    memcpy(value, &pattern, sizeof pattern);
    return true;
}

/* Computes number * 10^e for |e| <= 27 with 128-bit integers, correctly rounded. */
static double convert_wide(uint64_t number, int e)
{
    double value;
    if (e >= 0) return assemble_wide((wide)number * powers_of_five[e], e, false);
    if (divide_fast(number, -e, &value)) return value;
    int64_t exponent = e - 64;
    uint64_t bits = normalize(number, &exponent); /* makes the quotient at least 64 bits long */
    wide shifted = (wide)bits << 64, quotient = shifted / powers_of_five[-e];
    return assemble_wide(quotient, exponent, quotient * powers_of_five[-e] != shifted);
}
#endif

/* ---- Integers of any length ---------------------------------------------------------------------------------- */

typedef struct natural {
    int limbs; /* number of limbs, without leading zeros */
    uint32_t limb[LIMBS];
} natural;

/* Computes self = self factor + term. The caller ensures that the result fits. */
static void multiply_add(natural *self, uint32_t factor, uint32_t term)
{
    uint64_t carry = term;
    for (int i = 0; i < self->limbs; i++) {
        carry += (uint64_t)self->limb[i] * factor;
        self->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) self->limb[self->limbs++] = (uint32_t)carry;
}

/* Multiplies by 5^exponent; 5^13 is the largest power that fits into 32 bits. */
static void multiply_power_of_five(natural *self, int64_t exponent)
{
    for (; exponent >= 13; exponent -= 13) multiply_add(self, 1220703125, 0);
    for (; exponent > 0; exponent--) multiply_add(self, 5, 0);
}

static int bit_length(const natural *self)
{
    return self->limbs ? 32 * self->limbs - __builtin_clz(self->limb[self->limbs - 1]) : 0;
}

static void shift_left(natural *self, int bits)
{
    int whole = bits / 32, part = bits % 32;
    multiply_add(self, UINT32_C(1) << part, 0);
    if (!whole || !self->limbs) return;
    memmove(self->limb + whole, self->limb, (size_t)self->limbs * sizeof *self->limb);
    memset(self->limb, 0, (size_t)whole * sizeof *self->limb);
    self->limbs += whole;
}

static bool less(const natural *a, const natural *b)
{
    if (a->limbs != b->limbs) return a->limbs < b->limbs;
    for (int i = a->limbs - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i];
    return false;
}

static void subtract(natural *a, const natural *b)
{
    int64_t borrow = 0;
    for (int i = 0; i < a->limbs; i++) {
        borrow += (int64_t)a->limb[i] - (i < b->limbs ? b->limb[i] : 0);
        a->limb[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->limbs && !a->limb[a->limbs - 1]) a->limbs--;
}

/* Loads up to MOST_DIGITS digits of the text as an integer. Sets *sticky if a later digit is not 0. */
static void load_digits(natural *out, const decimal *number, bool *sticky)
{
    int64_t seen = 0;
    out->limbs = 0;
    for (const char *at = number->begin; at < number->end; at++) {
        if (*at == '.' || (seen == 0 && *at == '0')) continue;
        if (seen++ < MOST_DIGITS)
            multiply_add(out, 10, (uint32_t)(*at - '0'));
        else
            *sticky = *sticky || *at != '0';
    }
}

/* Computes numerator / denominator * 2^exponent by 64 steps of long division in base 2. Destroys numerator and
   denominator. */
static double divide_decimal(natural *numerator, natural *denominator, int64_t exponent, bool sticky)
{
    /* Scale so that 1 <= numerator / denominator < 2: each step below then yields one bit, beginning with a 1. */
    int shift = bit_length(denominator) - bit_length(numerator);
    shift_left(shift > 0 ? numerator : denominator, shift > 0 ? shift : -shift);
    exponent -= shift;
    if (less(numerator, denominator)) {
        shift_left(numerator, 1);
        exponent--;
    }
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++) {
        bool one = !less(numerator, denominator);
        if (one) subtract(numerator, denominator);
        bits = bits << 1 | one;
        multiply_add(numerator, 2, 0);
    }
    return assemble(bits, exponent - 63, sticky || numerator->limbs > 0);
}

/* Converts a number of any length by long division, correctly rounded. */
static double convert_general(const decimal *number)
{
    natural numerator, denominator = {.limbs = 1, .limb = {1}};
    bool sticky = false;
    int64_t e = number->exponent + (number->digits > MOST_DIGITS ? number->digits - MOST_DIGITS : 0);
    load_digits(&numerator, number, &sticky);
    if (e >= 0)
        multiply_power_of_five(&numerator, e);
    else
        multiply_power_of_five(&denominator, -e);
    return divide_decimal(&numerator, &denominator, e, sticky);
}

/* ---- Parsing ------------------------------------------------------------------------------------------------- */

bool mrc_decimal(uint64_t digits, int64_t e, double *value)
{
    static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
#ifdef __SIZEOF_INT128__
    /* Compare with 10^15 and not with 2^53: about half of the numbers with 16 digits are below 2^53, so the branch
       would be mispredicted. */
    if (digits >= UINT64_C(1000000000000000) && e < 0 && e >= -27 && divide_fast(digits, (int)-e, value)) return true;
#endif
    if (digits <= UINT64_C(1) << 53 && e >= -22 && e <= 22) {
        *value = e < 0 ? (double)digits / powers_of_ten[-e] : (double)digits * powers_of_ten[e];
        return true;
    }
#ifdef __SIZEOF_INT128__
    if (e >= -27 && e <= 27) {
        *value = convert_wide(digits, (int)e);
        return true;
    }
#endif
    return false;
}

/* Converts a scanned number by the fastest method that applies. */
static double convert_decimal(const decimal *number)
{
    int64_t e = number->exponent;
    double value;
    if (number->digits == 0) return 0;
    if (number->digits == number->lead_digits && mrc_decimal(number->lead, e, &value)) return value;
    /* 10^(place - 1) <= value < 10^place, so the extremes are decided without conversion */
    int64_t place = number->digits + e;
    if (place > 310) return INFINITY;
    if (place < -330) return 0;
    return convert_general(number);
}

/* Scans digits with at most one point. Returns their end, or NULL if there is no digit. */
static const char *scan_digits(const char *at, const char *end, decimal *out)
{
    const char *point = NULL;
    bool any = false;
    out->begin = at;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = at;
            continue;
        }
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit > 9) break;
        any = true;
        if (point) out->exponent--;
        if (out->digits == 0 && digit == 0) continue;
        out->digits++;
        if (out->lead_digits < 19) {
            out->lead = out->lead * 10 + digit;
            out->lead_digits++;
        }
    }
    out->end = at;
    return any ? at : NULL;
}

/* Scans the exponent after an 'e' and adds it to *exponent. Returns its end, or NULL if it has no digit. Large
   exponents stop growing, because the result is then 0 or infinite. */
static const char *scan_exponent(const char *at, const char *end, int64_t *exponent)
{
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    const char *begin = at;
    int64_t number = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (number < INT64_C(1) << 40) number = number * 10 + (*at - '0');
    *exponent += negative ? -number : number;
    return at > begin ? at : NULL;
}

/* Returns whether a text is one of a list of words, separated by spaces; case is ignored. */
static bool is_word(const char *text, size_t length, const char *words)
{
    for (const char *at = words; *at;) {
        size_t size = strcspn(at, " ");
        if (size == length && strncasecmp(at, text, length) == 0) return true;
        at += size + strspn(at + size, " ");
    }
    return false;
}

mrc_number mrc_read_number(const char *text, const char *end, double *value)
{
    while (text < end && (*text == ' ' || *text == '\t')) text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t')) end--;
    if (text == end) return MRC_NUMBER_MISSING;
    decimal number = {.negative = *text == '-'};
    const char *begin = text + (*text == '-' || *text == '+'), *at = scan_digits(begin, end, &number);
    if (at && at < end && (*at == 'e' || *at == 'E')) at = scan_exponent(at + 1, end, &number.exponent);
    if (!at || at != end) {
        if (is_word(begin, (size_t)(end - begin), "inf infinity")) return MRC_NUMBER_INFINITE;
        bool missing = is_word(text, (size_t)(end - text), "nan +nan -nan na n/a null none ?");
        return missing ? MRC_NUMBER_MISSING : MRC_NUMBER_TEXT;
    }
    double size = convert_decimal(&number);
    if (isinf(size)) return MRC_NUMBER_INFINITE;
    *value = number.negative ? -size : size;
    return MRC_NUMBER;
}

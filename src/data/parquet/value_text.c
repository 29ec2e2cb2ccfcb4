/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values as text, as in a CSV file: numbers as decimals that are read as the same number, dates in ISO 8601, booleans
 * as true and false. mrc_parquet_number and mrc_parquet_days are fast paths with the same results, but without text.
 */
#include "core/spec.h"
#include "data/parquet/parquet.h"
#include "data/schema/date.h"
#include "data/table/number.h"

#include <stdio.h>
#include <string.h>

/* FIRST_DAY and LAST_DAY: 0001-01-01 and 9999-12-31, counted from 1970-01-01. DECIMAL_BYTES: largest size of a decimal,
   256 bits, which have at most 78 digits. */
enum { DAY_SECONDS = 86400, LAST_DAY = 2932896, FIRST_DAY = -719162, DECIMAL_BYTES = 32, DECIMAL_WORDS = 8 };

/* ---- Dates and times --------------------------------------------------------------------------------------------- */

/* Finds year, month and day of a day counted from 1970-01-01. */
static void find_date(int64_t day, int64_t *year, int64_t *month, int64_t *of_month)
{
    int64_t y = (day + 719528) * 400 / 146097; /* 146097: days of 400 years; y is at most one year off */
    int64_t epoch = mrc_day_number(1970, 1, 1);
    while (mrc_day_number(y, 1, 1) - epoch > day) y--;
    while (mrc_day_number(y + 1, 1, 1) - epoch <= day) y++;
    int64_t m = 1;
    while (m < 12 && mrc_day_number(y, m + 1, 1) - epoch <= day) m++;
    *year = y, *month = m;
    *of_month = day - (mrc_day_number(y, m, 1) - epoch) + 1;
}

/* Prints a day. Years outside 1 to 9999 have no ISO 8601 form of four digits and are printed as the number of days. */
static int print_day(int64_t day, char *out, size_t size)
{
    int64_t year, month, of_month;
    if (day < FIRST_DAY || day > LAST_DAY) return snprintf(out, size, "day %lld", (long long)day);
    find_date(day, &year, &month, &of_month);
    return snprintf(out, size, "%04d-%02d-%02d", (int)year, (int)month, (int)of_month);
}

static int64_t power_of_ten(int32_t digits)
{
    return (int64_t)mrc_powers_of_ten[digits];
}

/* Splits a time that counts `unit` ticks per second. Returns the days, rounded down; *second is the second of the day,
   *rest the remaining ticks. */
static int64_t split_time(int64_t time, int64_t unit, int64_t *second, int64_t *rest)
{
    int64_t seconds = time / unit - (time % unit < 0), day = seconds / DAY_SECONDS - (seconds % DAY_SECONDS < 0);
    *rest = time % unit + (time % unit < 0 ? unit : 0);
    *second = seconds - day * DAY_SECONDS;
    return day;
}

/* Prints 12:30:05 or, with a fraction, 12:30:05.25. */
static int print_time(int64_t second, int64_t rest, int32_t digits, char *out, size_t size)
{
    int used = snprintf(out, size, "%02d:%02d:%02d", (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60));
    if (rest == 0) return used;
    used += snprintf(out + used, size - (size_t)used, ".%0*lld", (int)digits, (long long)rest);
    while (out[used - 1] == '0') used--;
    return used;
}

static int print_moment(const mrc_parquet_column *column, int64_t time, char *out, size_t size)
{
    int64_t second, rest, day = split_time(time, power_of_ten(column->scale), &second, &rest);
    int used = print_day(day, out, size);
    out[used++] = ' ';
    used += print_time(second, rest, column->scale, out + used, size - (size_t)used - 1);
    if (column->utc) out[used++] = 'Z';
    return used;
}

bool mrc_parquet_days(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i, double *days)
{
    const int64_t epoch = mrc_day_number(2000, 1, 1) - mrc_day_number(1970, 1, 1);
    int64_t day = batch->integers[i], second = 0, rest = 0;
    if (column->kind == MRC_PARQUET_MOMENT)
        day = split_time(day, power_of_ten(column->scale), &second, &rest);
    else if (column->kind != MRC_PARQUET_DATE)
        return false;
    /* Fractions of a second are read from text, because the parser adds their digits one by one, with other
       roundings. */
    if (rest != 0 || day < FIRST_DAY || day > LAST_DAY) return false;
    *days = (double)(day - epoch) + (double)second / DAY_SECONDS;
    return true;
}

/* ---- Decimals ---------------------------------------------------------------------------------------------------- */

/* Prints digits with a decimal point before the last `scale` digits. */
static int put_point(const char *digits, int count, bool negative, int32_t scale, char *out)
{
    int used = 0;
    if (negative) out[used++] = '-';
    for (int place = count > scale ? count : scale + 1; place > 0; place--) {
        if (place == scale) out[used++] = '.';
        out[used++] = place > count ? '0' : digits[count - place];
    }
    return used;
}

/* Prints a two's complement integer of up to 32 bytes, the highest byte first, as a decimal. */
static int print_decimal(const uint8_t *bytes, int64_t length, int32_t scale, char *out)
{
    enum { DIGITS = 80 };
    uint32_t words[DECIMAL_WORDS] = {0}; /* the lowest word first */
    char digits[DIGITS];
    bool negative = length > 0 && bytes[0] >> 7;
    uint64_t carry = negative;
    for (int64_t k = 0; k < 4 * DECIMAL_WORDS; k++) {
        uint8_t byte = k < length ? bytes[length - 1 - k] : negative ? 0xff : 0;
        words[k / 4] |= (uint32_t)(uint8_t)(negative ? ~byte : byte) << 8 * (k % 4);
    }
    /* The magnitude of a negative number is its complement plus 1. */
    for (int k = 0; k < DECIMAL_WORDS; k++, carry >>= 32) words[k] = (uint32_t)(carry += words[k]);
    int begin = DIGITS;
    bool more = true;
    /* Divide by ten, from the highest word down; the remainder is the next digit from the right. */
    while (more) {
        uint64_t rest = 0;
        more = false;
        for (int k = DECIMAL_WORDS; k-- > 0;) {
            rest = rest << 32 | words[k];
            words[k] = (uint32_t)(rest / 10);
            rest %= 10;
            more = more || words[k];
        }
        digits[--begin] = (char)('0' + rest);
    }
    return put_point(digits + begin, DIGITS - begin, negative, scale, out);
}

/* Returns the bytes of a decimal, the highest byte first. *length is at most DECIMAL_BYTES; a longer decimal gives
   NULL. */
static const uint8_t *decimal_bytes(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i,
                                    uint8_t buffer[8], int64_t *length)
{
    if (column->type == MRC_PARQUET_BYTES || column->type == MRC_PARQUET_FIXED) {
        *length = batch->words[i].length;
        return *length <= DECIMAL_BYTES ? batch->words[i].bytes : NULL;
    }
    for (int k = 0; k < 8; k++) buffer[k] = (uint8_t)((uint64_t)batch->integers[i] >> (56 - 8 * k));
    *length = 8;
    return buffer;
}

/* Computes the value of a decimal whose integer without the point is at most 2^53. Both operands of the division are
   then exact in double, so the result is rounded correctly. Returns false for other decimals. */
static bool decimal_number(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i, double *value)
{
    uint8_t buffer[8];
    int64_t length, whole = 0, most = (int64_t)1 << 53;
    const uint8_t *bytes = decimal_bytes(column, batch, i, buffer, &length);
    if (!bytes || length == 0 || column->scale > 18) return false; /* 10^18 is the last power in int64_t */
    whole = bytes[0] >> 7 ? -1 : 0;
    for (int64_t k = 0; k < length; k++) {
        if (whole > most || whole < -most) return false;
        whole = (int64_t)((uint64_t)whole << 8 | bytes[k]);
    }
    *value = (double)whole / (double)power_of_ten(column->scale);
    return whole <= most && whole >= -most;
}

/* ---- Floats ------------------------------------------------------------------------------------------------------ */

enum { LEAST_TEN = -8, MOST_TEN = 16 };

static const double tens[MOST_TEN - LEAST_TEN + 1] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0,
                                                      1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                                      1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};

static double ten(int exponent)
{
    return tens[exponent - LEAST_TEN];
}

/* Returns the decimal exponent of a number in 1e-6 .. 1e15: 10^e <= size < 10^(e + 1). */
static int exponent_of(double size)
{
    uint64_t bits;
    memcpy(&bits, &size, sizeof bits);
    int e = (((int)(bits >> 52) - 1023) * 1233) >> 12; /* 1233 / 4096 is nearly log10(2); at most one too small */
    return e + (size >= ten(e + 1));
}

/*
 * Finds the double that the shortest decimal of a float f is read as. The shortest decimal has the smallest number of
 * digits, from 6 to 9, with which it is read as f again. Returns false for sizes outside 1e-6 .. 1e15, and if f 10^k is
 * too near to a tie between two decimals.
 *
 * With m = round(f 10^k) the decimal is m / 10^k, which is rounded once, because m < 2^53 and 10^|k| is exact. The
 * error of f 10^k is below 2^-52 10^9 < 1e-6. A decimal that is off by more than 2^-23 of the float is another float.
 */
static bool shortest_number(float value, double *out)
{
    const double whole_bits = 0x1.8p52, apart = 0x1p-23; /* adding whole_bits rounds to an integer */
    double size = fabs((double)value);
    *out = (double)value;
    if (size == 0) return true;
    if (!(size >= 1e-6 && size < 1e15)) return false;
    int e = exponent_of(size);
    for (int digits = 6; digits <= 9; digits++) {
        int k = digits - 1 - e;
        double power = ten(k < 0 ? -k : k), moved = k < 0 ? size / power : size * power;
        double whole = moved + whole_bits - whole_bits, off = fabs(moved - whole);
        if (fabs(off - 0.5) < 1e-6) return false;
        if (off > apart * moved) continue;
        double decimal = k < 0 ? whole * power : whole / power;
        if ((float)decimal != (float)size) continue;
        *out = value < 0 ? -decimal : decimal;
        return true;
    }
    return false;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Returns the value of a half float, stored in two bytes, the lowest first. Exponent 0 is subnormal, 31 infinite or
   NaN. */
static double half_number(const uint8_t *bytes)
{
    unsigned bits = bytes[0] | (unsigned)bytes[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                  : ldexp(fraction + 1024, (int)exponent - 25);
    return bits >> 15 ? -size : size;
}

bool mrc_parquet_number(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i, double *value)
{
    int64_t whole = batch->integers[i];
    switch (column->kind) {
        case MRC_PARQUET_NUMBER:
            /* A float stands for the shortest decimal that is read as this float. As a double, this decimal may be
               another number. */
            if (column->type == MRC_PARQUET_FLOAT) return shortest_number((float)batch->reals[i], value);
            *value = column->type == MRC_PARQUET_DOUBLE ? batch->reals[i] : (double)whole;
            return true;
        case MRC_PARQUET_UNSIGNED:
            *value = column->type == MRC_PARQUET_INT32 ? (double)(uint32_t)whole : (double)(uint64_t)whole;
            return true;
        case MRC_PARQUET_DECIMAL: return decimal_number(column, batch, i, value);
        default: return false;
    }
}

static int print_uuid(const uint8_t *bytes, char *out)
{
    int used = 0;
    for (int k = 0; k < 16; k++)
        used += snprintf(out + used, 4, k == 4 || k == 6 || k == 8 || k == 10 ? "-%02x" : "%02x", bytes[k]);
    return used;
}

/* Prints a number as text that is read as the same number. NaN has an empty text. */
static int print_value(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i,
                       char out[MRC_PARQUET_TEXT_CHARS])
{
    const size_t size = MRC_PARQUET_TEXT_CHARS;
    int64_t whole = batch->integers[i];
    double real = column->kind == MRC_PARQUET_HALF ? half_number(batch->words[i].bytes) : batch->reals[i], decimal;
    bool single = column->kind == MRC_PARQUET_HALF || column->type == MRC_PARQUET_FLOAT;
    if ((single || column->type == MRC_PARQUET_DOUBLE) && isnan(real)) return 0;
    if (single && shortest_number((float)real, &decimal))
        mrc_print_number(decimal, out, size);
    else if (single)
        mrc_print_single((float)real, out, size);
    else if (column->type == MRC_PARQUET_DOUBLE)
        mrc_print_number(batch->reals[i], out, size);
    else if (column->kind == MRC_PARQUET_UNSIGNED)
        snprintf(out, size, "%llu",
                 column->type == MRC_PARQUET_INT32 ? (unsigned long long)(uint32_t)whole : (unsigned long long)whole);
    else
        snprintf(out, size, "%lld", (long long)whole);
    return (int)strlen(out);
}

const char *mrc_parquet_text(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i,
                             char buffer[MRC_PARQUET_TEXT_CHARS], int64_t *length)
{
    const mrc_parquet_word *word = &batch->words[i];
    int64_t bytes, second, rest;
    const uint8_t *decimal;
    uint8_t copy[8];
    *length = 0;
    if (!batch->valid[i]) return "";
    switch (column->kind) {
        case MRC_PARQUET_TEXT: *length = word->length; return (const char *)word->bytes;
        case MRC_PARQUET_TRUTH: *length = batch->integers[i] ? 4 : 5; return batch->integers[i] ? "true" : "false";
        case MRC_PARQUET_DATE: *length = print_day(batch->integers[i], buffer, MRC_PARQUET_TEXT_CHARS); return buffer;
        case MRC_PARQUET_MOMENT:
            *length = print_moment(column, batch->integers[i], buffer, MRC_PARQUET_TEXT_CHARS);
            return buffer;
        case MRC_PARQUET_TIME:
            split_time(batch->integers[i], power_of_ten(column->scale), &second, &rest);
            *length = print_time(second, rest, column->scale, buffer, MRC_PARQUET_TEXT_CHARS);
            return buffer;
        case MRC_PARQUET_DECIMAL:
            decimal = decimal_bytes(column, batch, i, copy, &bytes);
            if (decimal) *length = print_decimal(decimal, bytes, column->scale, buffer);
            return buffer;
        case MRC_PARQUET_UUID: *length = print_uuid(word->bytes, buffer); return buffer;
        default: *length = print_value(column, batch, i, buffer); return buffer;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Decimal numbers in text, read the same way whatever the locale. */
#ifndef MRC_DATA_TABLE_NUMBER_H
#define MRC_DATA_TABLE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum mrc_number {
    MRC_NUMBER,          /* the whole text is a finite number */
    MRC_NUMBER_MISSING,  /* nothing but spaces, or a customary sign for no value: nan, na, n/a, null, none, ? */
    MRC_NUMBER_INFINITE, /* inf, infinity, or beyond the range of a double */
    MRC_NUMBER_TEXT      /* something else */
} mrc_number;

/* Reads text .. end, of which spaces and tabs at both ends do not count: the double nearest to the decimal number, ties
   to even. *value is set for MRC_NUMBER only. */
mrc_number mrc_read_number(const char *text, const char *end, double *value);
/* digits * 10^exponent, rounded in the same way; false if it takes more arithmetic than 128 bits. */
bool mrc_decimal(uint64_t digits, int64_t exponent, double *value);

/* For powers e of ten: 2^(63 + b) / 5^e for b bits of 5^e, cut to an integer, from e = 1 on; b; 10^e. */
extern const uint64_t mrc_shares_of_five[28];
extern const int64_t mrc_bits_of_five[28];
extern const uint64_t mrc_powers_of_ten[20];

#endif

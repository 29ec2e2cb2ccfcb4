/* SPDX-License-Identifier: BSD-3-Clause */
/* Decimal numbers in text, independent of the locale. */
#ifndef MRC_DATA_TABLE_NUMBER_H
#define MRC_DATA_TABLE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum mrc_number {
    MRC_NUMBER,          /* the whole text is a finite number */
    MRC_NUMBER_MISSING,  /* only spaces, or a word for a missing value: nan, na, n/a, null, none, ? */
    MRC_NUMBER_INFINITE, /* inf, infinity, or beyond the range of a double */
    MRC_NUMBER_TEXT      /* something else */
} mrc_number;

/* Reads text .. end without the spaces and tabs at both ends, as the double nearest to the decimal number, ties to
   even. Sets *value for MRC_NUMBER only. */
mrc_number mrc_read_number(const char *text, const char *end, double *value);
/* Computes digits * 10^exponent, correctly rounded. Returns false if that needs integers of more than 128 bits. */
bool mrc_decimal(uint64_t digits, int64_t exponent, double *value);

/* Tables, indexed by the exponent e of a power of ten: 2^(63 + b) / 5^e truncated to an integer (from e = 1 on); b, the
   number of bits of 5^e; 10^e. */
extern const uint64_t mrc_shares_of_five[28];
extern const int64_t mrc_bits_of_five[28];
extern const uint64_t mrc_powers_of_ten[20];

#endif

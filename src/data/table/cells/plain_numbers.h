/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain decimals of a column in many records: plain_number.h says what one is. */
#ifndef MRC_DATA_TABLE_CELLS_PLAIN_NUMBERS_H
#define MRC_DATA_TABLE_CELLS_PLAIN_NUMBERS_H

#include "core/cpuinfo.h"

#include <stdint.h>

/* Fields of a column: of row i the bytes of base from ends[i stride - 1] + 1 to before ends[i stride]. */
typedef struct mrc_fields {
    const char *base, *begin; /* from begin on bytes can be read */
    const uint32_t *ends;
    int64_t stride;
    char decimal;  /* may stand for the point, too */
    double origin; /* taken away before a value is rounded to float */
    double off;    /* what rounding may change without being noted */
} mrc_fields;

/* Eight rows of it: their values as doubles and, less the origin, as floats, NaN where a field is empty; a bit for each
   that is a plain decimal, for each that is empty, and for each that rounding has changed by more than `off`. */
typedef struct mrc_eight_numbers {
    _Alignas(64) double values[8];
    float cells[8];
    uint8_t plain, empty, over;
} mrc_eight_numbers;

/* Of the rows 8 i to 8 i + 7 the i-th of out; fields that it does not know are neither plain nor empty. */
typedef void (*mrc_take_numbers)(const mrc_fields *fields, int64_t rows, mrc_eight_numbers *out);

mrc_take_numbers mrc_numbers_of_isa(mrc_isa isa);
void mrc_uk_numbers_scalar(const mrc_fields *fields, int64_t rows, mrc_eight_numbers *out);
void mrc_uk_numbers_avx512(const mrc_fields *fields, int64_t rows, mrc_eight_numbers *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of the plain decimals (plain_number.h) of a column in many records. */
#ifndef MRC_DATA_TABLE_CELLS_PLAIN_NUMBERS_H
#define MRC_DATA_TABLE_CELLS_PLAIN_NUMBERS_H

#include "core/cpuinfo.h"

#include <stdint.h>

/* Fields of a column: the field of row i is base[ends[i stride - 1] + 1 .. ends[i stride] - 1]. */
typedef struct mrc_fields {
    const char *base, *begin; /* begin: start of the readable memory */
    const uint32_t *ends;
    int64_t stride;
    char decimal;  /* decimal mark in addition to '.' */
    double origin; /* subtracted before a value is rounded to float */
    double off;    /* rounding errors above this are reported in `over` */
} mrc_fields;

/* Results of eight rows: values as doubles, and as floats after subtracting the origin; both are NaN if a field is
   empty. Bit k of `plain`, `empty`, `over` is set if row k is a plain decimal, is empty, has a rounding error above
   `off`. */
typedef struct mrc_eight_numbers {
    _Alignas(64) double values[8];
    float cells[8];
    uint8_t plain, empty, over;
} mrc_eight_numbers;

/* Converts the fields; out[i] receives rows 8 i to 8 i + 7. A field that is not recognized is neither plain nor
   empty. */
typedef void (*mrc_take_numbers)(const mrc_fields *fields, int64_t rows, mrc_eight_numbers *out);

mrc_take_numbers mrc_numbers_of_isa(mrc_isa isa);
void mrc_uk_numbers_u8_scalar(const mrc_fields *fields, int64_t rows, mrc_eight_numbers *out);
void mrc_uk_numbers_u8_avx512(const mrc_fields *fields, int64_t rows, mrc_eight_numbers *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of separated text, after RFC 4180: quotes, doubled quotes inside, line ends of both kinds. */
#ifndef MRC_DATA_TABLE_CSV_PARSE_H
#define MRC_DATA_TABLE_CSV_PARSE_H

#include "data/table/number.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct mrc_csv {
    const char *at, *end; /* what is left */
    int64_t line;         /* of at, from 1 */
    char separator;       /* 0: a line is one field, quotes mean nothing */
} mrc_csv;

typedef struct mrc_csv_field {
    const char *text; /* without its quotes */
    int64_t length;
    int64_t line;
    bool quoted;
    bool escaped; /* has doubled quotes inside */
    bool last;    /* of its record */
} mrc_csv_field;

/* The next field; there must be something left, or the last field must not have been the last of its record. NULL, or
   what is wrong at out->line. */
const char *mrc_csv_next(mrc_csv *csv, mrc_csv_field *out);
/* Passes over an empty line, if that is what comes. */
bool mrc_csv_skip_blank(mrc_csv *csv);
/* The field with doubled quotes made single, cut to size - 1, zero-terminated. Returns its length. */
int64_t mrc_csv_copy(const mrc_csv_field *field, char *out, int64_t size);
/* The number in a field. Where fields are separated by semicolons, a comma may be its decimal point. */
mrc_number mrc_csv_number(const mrc_csv *csv, const mrc_csv_field *field, double *value);
/* The character that separates the fields of the first record: the most frequent of comma, semicolon, tab and bar. */
char mrc_csv_find_separator(const char *at, const char *end);

#endif

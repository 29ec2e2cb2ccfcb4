/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of delimited text, as in RFC 4180: quoted fields, doubled quotes inside them, LF and CRLF line ends. */
#ifndef MRC_DATA_TABLE_CSV_PARSE_H
#define MRC_DATA_TABLE_CSV_PARSE_H

#include "data/table/number.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct mrc_csv {
    const char *at, *end; /* rest of the text */
    int64_t line;         /* line number of `at`, from 1 */
    char separator;       /* between fields; 0: a line is one field and quotes have no meaning */
} mrc_csv;

typedef struct mrc_csv_field {
    const char *text; /* text of the field without its quotes; borrowed */
    int64_t length;
    int64_t line;
    bool quoted;
    bool escaped; /* true: has doubled quotes inside */
    bool last;    /* true: last field of its record */
} mrc_csv_field;

/* Reads the next field. Must be called only if text is left, or if the previous field was not the last of its record.
   Returns NULL, or a description of the error at out->line. */
const char *mrc_csv_next(mrc_csv *csv, mrc_csv_field *out);
/* Skips the next line if it is empty (spaces only). Returns whether a line was skipped. */
bool mrc_csv_skip_blank(mrc_csv *csv);
/* Copies the field with doubled quotes made single, truncated to size - 1, zero-terminated. Returns the length of the
   copy. */
int64_t mrc_csv_copy(const mrc_csv_field *field, char *out, int64_t size);
/* Reads the number in a field. If fields are separated by semicolons, the decimal mark may be a comma. */
mrc_number mrc_csv_number(const mrc_csv *csv, const mrc_csv_field *field, double *value);
/* Returns the separator of the first record: the most frequent of comma, semicolon, tab and vertical bar. */
char mrc_csv_find_separator(const char *at, const char *end);

#endif

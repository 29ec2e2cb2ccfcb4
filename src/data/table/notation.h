/* SPDX-License-Identifier: BSD-3-Clause */
/* Common notations of numbers and dates other than 1234.5 and 2024-02-29: "$1,308", "12 %", "1.234,56",
   "31/12/2024". */
#ifndef MRC_DATA_TABLE_NOTATION_H
#define MRC_DATA_TABLE_NOTATION_H

#include <stdbool.h>
#include <stdint.h>

enum { MRC_NOTATION_CHARS = 16 }; /* buffer for a notation as text */

/* The notation of all values of a column. All fields 0: plain numbers (mrc_read_number) or ISO dates. */
typedef struct mrc_notation {
    const char *date; /* order and separators of a date, such as "d/m/Y"; NULL for numbers; static text */
    char decimal;     /* decimal mark of a number, '.' or ','; 0 for dates */
    int unit;         /* unit of a number, below MRC_UNITS */
} mrc_notation;

static inline bool mrc_notation_is_set(const mrc_notation *notation)
{
    return notation->date || notation->decimal;
}

/* Reads a number in a notation. A currency sign may be absent, a percent sign may not. */
bool mrc_read_amount(const mrc_notation *notation, const char *text, const char *end, double *value);

/* Writes a notation as text: "1,234.5", "$1.234,5", "1,234.5%", "d/m/Y". Returns out. */
const char *mrc_notation_text(const mrc_notation *notation, char out[MRC_NOTATION_CHARS]);
/* Finds the notation that mrc_notation_text writes as `text`. Returns false if there is none. */
bool mrc_notation_find(const char *text, mrc_notation *out);

/* ---- Notations that a text fits ---------------------------------------------------------------------------------- */

/* A set of readings, that is, of notations that a text fits. Bits: plain number, ISO date, numbers by decimal mark and
   unit, dates by order. */
typedef uint32_t mrc_readings;

extern const mrc_readings mrc_readings_plain, mrc_readings_iso, mrc_readings_numbers, mrc_readings_dates;

/*
 * Returns all readings of a text. separator: field separator of the table, 0 for other data. If fields are separated by
 * commas, a comma is never a decimal mark; if they are separated by semicolons, plain numbers may have a decimal comma.
 */
mrc_readings mrc_readings_of(const char *text, const char *end, char separator);

typedef enum mrc_date_order { MRC_ORDER_UNKNOWN, MRC_ORDER_DMY, MRC_ORDER_MDY } mrc_date_order;

/*
 * Chooses one of the readings that all values of a column have. Returns false if there is none, or if day and month
 * are ambiguous (*ambiguous) and `order` does not decide which comes first. Sets *is_date to whether the reading is a
 * date.
 */
bool mrc_readings_choose(mrc_readings common, char separator, mrc_date_order order, mrc_notation *out, bool *is_date,
                         bool *ambiguous);

#endif

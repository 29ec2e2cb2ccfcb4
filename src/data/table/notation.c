/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Common notations of numbers (cells/amount.h) and of dates:
 *
 *   date     = d, m (1 or 2 digits) and Y (4 digits) in one of the orders of `dates`, then a time as in an ISO date
 *
 * A column is read in a notation only if all its values fit, so that no decision depends on a single value.
 */
#include "data/table/notation.h"

#include "data/schema/date.h"
#include "data/table/cells/amount.h"
#include "data/table/number.h"

#include <stdio.h>
#include <string.h>

/* the first PAIRS entries of `dates` are pairs that differ in the order of day and month */
enum { PAIRS = 4, DATES = 6 };

static const char *const dates[DATES] = {"d/m/Y", "m/d/Y", "d-m-Y", "m-d-Y", "d.m.Y", "Y/m/d"};

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

bool mrc_read_amount(const mrc_notation *notation, const char *text, const char *end, double *value)
{
    char plain[MRC_AMOUNT_CHARS];
    int unit = mrc_amount_text(text, end, notation->decimal, plain);
    return unit >= 0 && mrc_unit_fits(unit, notation->unit) &&
           mrc_read_number(plain, plain + strlen(plain), value) == MRC_NUMBER;
}

/* ---- Notations as text ------------------------------------------------------------------------------------------- */

const char *mrc_notation_text(const mrc_notation *notation, char out[MRC_NOTATION_CHARS])
{
    const char *digits = notation->decimal == '.' ? "1,234.5" : "1.234,5", *unit = mrc_unit_sign(notation->unit);
    bool percent = notation->unit == MRC_PERCENT;
    if (notation->date)
        snprintf(out, MRC_NOTATION_CHARS, "%s", notation->date);
    else
        snprintf(out, MRC_NOTATION_CHARS, "%s%s%s", percent ? "" : unit, digits, percent ? unit : "");
    return out;
}

/* ---- Readings ---------------------------------------------------------------------------------------------------- */

/* Bits of mrc_readings: plain number, ISO date, numbers with a point, numbers with a comma, dates. */
enum { PLAIN, ISO, POINT, COMMA = POINT + MRC_UNITS, FORMS = COMMA + MRC_UNITS, READINGS = FORMS + DATES };

const mrc_readings mrc_readings_plain = 1u << PLAIN, mrc_readings_iso = 1u << ISO;
const mrc_readings mrc_readings_numbers = 1u << PLAIN | ((1u << FORMS) - (1u << POINT));
const mrc_readings mrc_readings_dates = 1u << ISO | ((1u << READINGS) - (1u << FORMS));

/* Returns the notation of a bit of mrc_readings. */
static mrc_notation notation_of(int reading)
{
    if (reading >= FORMS) return (mrc_notation){.date = dates[reading - FORMS]};
    if (reading >= COMMA) return (mrc_notation){.decimal = ',', .unit = reading - COMMA};
    if (reading >= POINT) return (mrc_notation){.decimal = '.', .unit = reading - POINT};
    return (mrc_notation){0};
}

bool mrc_notation_find(const char *text, mrc_notation *out)
{
    for (int i = POINT; i < READINGS; i++) {
        char other[MRC_NOTATION_CHARS];
        *out = notation_of(i);
        if (strcmp(mrc_notation_text(out, other), text) == 0) return true;
    }
    *out = (mrc_notation){0};
    return false;
}

/* Returns whether a text is a plain number. If fields are separated by semicolons, the number may have a decimal
   comma. */
static bool is_plain(const char *text, const char *end, char separator)
{
    char copy[MRC_AMOUNT_CHARS];
    double value;
    const char *comma = separator == ';' ? memchr(text, ',', (size_t)(end - text)) : NULL;
    if (!comma || end - text > MRC_AMOUNT_CHARS) return mrc_read_number(text, end, &value) == MRC_NUMBER;
    memcpy(copy, text, (size_t)(end - text));
    copy[comma - text] = '.';
    return mrc_read_number(copy, copy + (end - text), &value) == MRC_NUMBER;
}

/* Returns the readings of a text as a number with this decimal mark, one per unit that the column could have. */
static mrc_readings amounts_of(const char *text, const char *end, char decimal, int first)
{
    char plain[MRC_AMOUNT_CHARS];
    mrc_readings found = 0;
    int unit = mrc_amount_text(text, end, decimal, plain);
    for (int i = 0; i < MRC_UNITS && unit >= 0; i++)
        if (mrc_unit_fits(unit, i)) found |= 1u << (first + i);
    return found;
}

mrc_readings mrc_readings_of(const char *text, const char *end, char separator)
{
    double days;
    mrc_readings found = 0;
    const char *at = text;
    while (at < end && (*at < '0' || *at > '9')) at++;
    if (at == end) return 0; /* fast path: most words have no digit */
    if (is_plain(text, end, separator)) found |= mrc_readings_plain;
    if (mrc_read_date(text, end, &days)) found |= mrc_readings_iso;
    found |= amounts_of(text, end, '.', POINT);
    if (separator != ',') found |= amounts_of(text, end, ',', COMMA);
    for (int i = 0; i < DATES; i++)
        if (mrc_read_date_in(dates[i], text, end, &days)) found |= 1u << (FORMS + i);
    return found;
}

/* Returns the first of `count` readings from `first` on that is in the set; -1 if none is. */
static int first_of(mrc_readings set, int first, int count)
{
    for (int i = first; i < first + count; i++)
        if (set >> i & 1) return i;
    return -1;
}

/* Returns the date reading of a set; -1 if there is none, or if day and month can be exchanged and `order` does not
   decide. */
static int choose_date(mrc_readings set, mrc_date_order order, bool *ambiguous)
{
    for (int i = FORMS; i < FORMS + PAIRS; i += 2) {
        mrc_readings both = set >> i & 3;
        if (both == 3 && order == MRC_ORDER_UNKNOWN) return *ambiguous = true, -1;
        if (both == 3) return order == MRC_ORDER_DMY ? i : i + 1;
        if (both != 0) return both == 1 ? i : i + 1;
    }
    return first_of(set, FORMS + PAIRS, DATES - PAIRS);
}

bool mrc_readings_choose(mrc_readings common, char separator, mrc_date_order order, mrc_notation *out, bool *is_date,
                         bool *ambiguous)
{
    /* Plain numbers and ISO dates first, then amounts with the usual decimal mark of the table, other amounts, other
       dates. */
    int chosen = first_of(common, PLAIN, 2), other = separator == ';' ? COMMA : POINT;
    *ambiguous = false;
    if (chosen < 0) chosen = first_of(common, other, MRC_UNITS);
    if (chosen < 0) chosen = first_of(common, POINT, 2 * MRC_UNITS);
    if (chosen < 0) chosen = choose_date(common, order, ambiguous);
    if (chosen < 0) return false;
    *out = notation_of(chosen);
    *is_date = chosen == ISO || chosen >= FORMS;
    return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers with a unit, with marks between groups of digits, or with a decimal comma.
 *
 *   number   = [sign] [currency [space]] [sign] digits [[space] (currency | "%")]    at most one sign and one unit
 *   digits   = whole [decimal 0-9...] | decimal 0-9...
 *   whole    = 0-9... without a leading zero, or 1 to 3 digits and groups: group 0-9 0-9 0-9, the same mark in all
 *   decimal  = "." or ",", the same in all cells of a column
 *   group    = the other of these two, or a space
 *   currency = "$" | "€" | "£" | "¥"
 *   space    = U+0020, U+00A0, U+2009 or U+202F
 *
 * The value of 12% is 12. Exported C files contain this header.
 */
#ifndef MRC_DATA_TABLE_CELLS_AMOUNT_H
#define MRC_DATA_TABLE_CELLS_AMOUNT_H

#include <stdbool.h>
#include <string.h>

enum {
    MRC_AMOUNT_CHARS = 64, /* size of a buffer for a number as a plain decimal */
    MRC_UNITS = 6,         /* number of units: none, $, euro, pound, yen, % */
    MRC_PERCENT = 5        /* index of the percent sign, the last unit */
};

/* Returns the number of bytes of a space at `at`; 0 if there is none. */
static inline int mrc_space_bytes(const char *at, const char *end)
{
    static const char *const spaces[] = {" ", "\xc2\xa0", "\xe2\x80\x89", "\xe2\x80\xaf"};
    for (int i = 0; i < 4; i++) {
        int bytes = (int)strlen(spaces[i]);
        if (end - at >= bytes && memcmp(at, spaces[i], (size_t)bytes) == 0) return bytes;
    }
    return 0;
}

/* Returns the sign of a unit, such as "$". */
static inline const char *mrc_unit_sign(int unit)
{
    static const char *const signs[] = {"", "$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "%"};
    return signs[unit];
}

/* Skips a unit if there is one. Returns its index; 0: none. */
static inline int mrc_pass_unit(const char **at, const char *end)
{
    for (int unit = 1; unit < MRC_UNITS; unit++) {
        int bytes = (int)strlen(mrc_unit_sign(unit));
        if (end - *at < bytes || memcmp(*at, mrc_unit_sign(unit), (size_t)bytes) != 0) continue;
        *at += bytes;
        return unit;
    }
    return 0;
}

/* Copies digits and returns their end. */
static const char *mrc_copy_digits(const char *at, const char *end, char **to)
{
    while (at < end && *at >= '0' && *at <= '9') *(*to)++ = *at++;
    return at;
}

/* Copies the digits before the decimal mark without their group marks. Returns their end, or NULL if they begin with a
   superfluous zero, because then the text is a code and not a number. */
static const char *mrc_copy_whole(const char *at, const char *end, char decimal, char **to)
{
    const char *first = at;
    char group = decimal == '.' ? ',' : '.';
    at = mrc_copy_digits(at, end, to);
    if (at - first > 1 && *first == '0') return 0;
    if (at == first || at - first > 3 || *first == '0') return at;
    const char *mark = at;
    int bytes = at < end && *at == group ? 1 : mrc_space_bytes(at, end);
    while (bytes > 0 && end - at >= bytes + 3 && memcmp(at, mark, (size_t)bytes) == 0) {
        char *next = *to;
        if (mrc_copy_digits(at + bytes, at + bytes + 3, &next) != at + bytes + 3) break;
        *to = next;
        at += bytes + 3;
    }
    return at;
}

/* Writes a number as a plain decimal to out (MRC_AMOUNT_CHARS). Returns its unit, 0 if it has none, or -1 if the text
   is not a number with this decimal mark. */
static inline int mrc_amount_text(const char *text, const char *end, char decimal, char *out)
{
    while (text < end && (*text == ' ' || *text == '\t')) text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t')) end--;
    if (end - text >= MRC_AMOUNT_CHARS) return -1;
    const char *at = text, *first;
    char *to = out, *sign = out;
    if (at < end && (*at == '-' || *at == '+')) *to++ = *at++;
    int unit = mrc_pass_unit(&at, end);
    if (unit > 0) at += mrc_space_bytes(at, end);
    if (unit == MRC_PERCENT) return -1; /* the percent sign follows its number */
    if (unit > 0 && to == sign && at < end && (*at == '-' || *at == '+')) *to++ = *at++;
    first = at;
    at = mrc_copy_whole(at, end, decimal, &to);
    if (!at) return -1;
    bool any = at > first;
    if (at < end && *at == decimal) {
        *to++ = '.';
        first = at + 1;
        at = mrc_copy_digits(first, end, &to);
        any = at > first;
    }
    if (unit == 0 && any && at < end) {
        at += mrc_space_bytes(at, end);
        unit = mrc_pass_unit(&at, end);
    }
    *to = 0;
    return any && at == end ? unit : -1;
}

/* Returns whether a number with the unit `found` fits a column with the unit `wanted`. */
static inline bool mrc_unit_fits(int found, int wanted)
{
    return found == wanted || (found == 0 && wanted != MRC_PERCENT);
}

#endif

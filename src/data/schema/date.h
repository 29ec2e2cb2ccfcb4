/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dates as ISO 8601 text: 2024-02-29, 2024-02-29T12:30, 2024-02-29 12:30:05.25Z, 2024-02-29T12:30+02:00. Days of the
 * Gregorian calendar are counted from 2000-01-01. Exported C files contain this header.
 */
#ifndef MRC_DATA_SCHEMA_DATE_H
#define MRC_DATA_SCHEMA_DATE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the number of days from 0000-03-01 to y-m-d. Years are counted from March, so that the leap day is the last
   day of a year. */
static inline int64_t mrc_day_number(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t month = m > 2 ? m - 3 : m + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * month + 2) / 5 + d - 1;
}

static inline bool mrc_is_leap(int64_t y)
{
    return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
}

static inline int mrc_days_of_month(int64_t y, int64_t m)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[m - 1] + (m == 2 && mrc_is_leap(y));
}

/* Reads exactly `count` digits. Returns their end, or NULL. */
static const char *mrc_take_digits(const char *at, const char *end, int count, int64_t *out)
{
    *out = 0;
    if (!at || end - at < count) return 0;
    for (int i = 0; i < count; i++, at++) {
        if (*at < '0' || *at > '9') return 0;
        *out = *out * 10 + (*at - '0');
    }
    return at;
}

static const char *mrc_take_sign(const char *at, const char *end, char sign)
{
    return at && at < end && *at == sign ? at + 1 : 0;
}

/* Reads 12:30, 12:30:05 or 12:30:05.25 as a fraction of a day. Returns the end of the time, or NULL. */
static const char *mrc_take_time(const char *at, const char *end, double *out)
{
    int64_t hour, minute, second = 0;
    double seconds = 0, place = 1;
    at = mrc_take_digits(at, end, 2, &hour);
    at = mrc_take_digits(mrc_take_sign(at, end, ':'), end, 2, &minute);
    if (at && at < end && *at == ':') {
        at = mrc_take_digits(at + 1, end, 2, &second);
        if (at && at < end && *at == '.')
            for (at++; at < end && *at >= '0' && *at <= '9'; at++) seconds += (*at - '0') * (place /= 10);
    }
    *out = ((double)(hour * 3600 + minute * 60 + second) + seconds) / 86400;
    return at && hour <= 24 && minute < 60 && second <= 60 ? at : 0;
}

/* Reads an offset from UTC (Z, +02:00 or +0200) as a fraction of a day. The offset is 0 if the text ends at `at`.
   Returns the end of the offset, or NULL. */
static const char *mrc_take_zone(const char *at, const char *end, double *out)
{
    int64_t hour, minute;
    *out = 0;
    if (!at || at == end) return at;
    if (*at == 'Z') return at + 1;
    if (*at != '+' && *at != '-') return 0;
    double sign = *at == '-' ? -1 : 1;
    at = mrc_take_digits(at + 1, end, 2, &hour);
    if (at && at < end && *at == ':') at++;
    at = mrc_take_digits(at, end, 2, &minute);
    *out = sign * (double)(hour * 60 + minute) / 1440;
    return at;
}

/* Converts a date, and the optional time and zone from `at` to `end`, to days since 2000-01-01. Returns false if they
   are not valid. */
static inline bool mrc_finish_date(const char *at, const char *end, int64_t year, int64_t month, int64_t day,
                                   double *days)
{
    double time = 0, zone = 0;
    if (!at || year < 1 || month < 1 || month > 12 || day < 1 || day > mrc_days_of_month(year, month)) return false;
    if (at < end && (*at == 'T' || *at == ' ')) at = mrc_take_zone(mrc_take_time(at + 1, end, &time), end, &zone);
    if (at != end) return false;
    *days = (double)(mrc_day_number(year, month, day) - mrc_day_number(2000, 1, 1)) + time - zone;
    return true;
}

/* Reads a date as days since 2000-01-01, with the time as a fraction of a day, converted to UTC if the text has an
   offset. Returns false if the text is not a date. */
static inline bool mrc_read_date(const char *text, const char *end, double *days)
{
    int64_t year, month, day;
    while (text < end && (*text == ' ' || *text == '\t')) text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t')) end--;
    const char *at = mrc_take_digits(text, end, 4, &year);
    at = mrc_take_digits(mrc_take_sign(at, end, '-'), end, 2, &month);
    at = mrc_take_digits(mrc_take_sign(at, end, '-'), end, 2, &day);
    return mrc_finish_date(at, end, year, month, day, days);
}

/* Reads a date in another order. `form`, such as "d/m/Y", has letters at 0, 2 and 4 and separators between them. Y is a
   year of four digits, d and m are a day and a month of one or two digits. */
static inline bool mrc_read_date_in(const char *form, const char *text, const char *end, double *days)
{
    int64_t year = 0, month = 0, day = 0;
    while (text < end && (*text == ' ' || *text == '\t')) text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t')) end--;
    const char *at = text;
    for (int i = 0; i < 5; i += 2) {
        int64_t *part = form[i] == 'Y' ? &year : form[i] == 'm' ? &month : &day;
        int two = at && end - at > 1 && at[1] >= '0' && at[1] <= '9' ? 2 : 1;
        at = mrc_take_digits(at, end, form[i] == 'Y' ? 4 : two, part);
        if (i < 4) at = mrc_take_sign(at, end, form[i + 1]);
    }
    return mrc_finish_date(at, end, year, month, day, days);
}

/* Computes the time of year of a day: sine and cosine of an angle that grows from 0 to 2 pi during the year, so that
   December is near January. */
static inline void mrc_date_season(double days, double *sine, double *cosine)
{
    const double year = 365.2425, turn = 6.283185307179586;
    double part = days / year - floor(days / year);
    *sine = sin(turn * part);
    *cosine = cos(turn * part);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Dates as ISO 8601 text: 2024-02-29, 2024-02-29T12:30, 2024-02-29 12:30:05.25Z, 2024-02-29T12:30+02:00. */
#ifndef MRC_DATA_SCHEMA_DATE_H
#define MRC_DATA_SCHEMA_DATE_H

#include <stdbool.h>
#include <stdint.h>

/* Days since 2000-01-01, with the time as a fraction, in UTC where the text says how far off it is. False if the text
   is no date. */
bool mrc_read_date(const char *text, const char *end, double *days);
/* Reads a date in another order, such as "d/m/Y": letters at 0, 2, 4, marks between them; Y has four digits, d and m
   one or two. */
bool mrc_read_date_in(const char *form, const char *text, const char *end, double *days);
/* Where in its year a day lies: sine and cosine of an angle that is 0 when the year begins. */
void mrc_date_season(double days, double *sine, double *cosine);

#endif

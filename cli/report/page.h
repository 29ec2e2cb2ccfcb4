/* SPDX-License-Identifier: BSD-3-Clause */
/* A text that grows: HTML and SVG are written into it before anything is written to a file. */
#ifndef MERCER_CLI_PAGE_H
#define MERCER_CLI_PAGE_H

#include <stddef.h>

/* Begins as {0}. Ends the program when memory runs out. */
typedef struct page {
    char *text; /* zero-terminated, or NULL */
    size_t used, room;
} page;

void page_add(page *self, const char *markup); /* as it is */
/* A format of markup. %s is escaped, so it serves for foreign strings. %G, %.4F and %.1A are the first three numbers
   below: a count, a number, a percentage. %d, %zu, %c, %e, %f and %g are those of printf. */
void page_print(page *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_escape(page *self, const char *text);                     /* with & < > " ' as entities; NULL: nothing */
void page_escape_part(page *self, const char *text, size_t length); /* the same, of so many bytes */
void page_free(page *self);

/* Numbers as people read them. "–" stands for a number that is not finite. */
void page_count(page *self, double value);                 /* 12,500 */
void page_number(page *self, double value, int digits);    /* so many significant digits, 3.2e-05 where needed */
void page_percent(page *self, double share, int decimals); /* 97.31 % */
void page_bytes(page *self, double value);                 /* 1.2 GB */
void page_seconds(page *self, double value);               /* 850 ms, 12.3 s, 4 min 05 s, 2 h 10 min */
void page_flops(page *self, double value);                 /* 3.2 TFLOP */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A growing text buffer: HTML and SVG are composed in it before any file is written. */
#ifndef MERCER_CLI_PAGE_H
#define MERCER_CLI_PAGE_H

#include <stddef.h>

/* Initialize with {0}. Exits the program when out of memory. */
typedef struct page {
    char *text; /* zero-terminated, or NULL */
    size_t used, capacity;
} page;

void page_add(page *self, const char *markup); /* appends markup unchanged */
/* Appends formatted markup. %s is escaped, so untrusted strings are safe. %G, %.4F and %.1A print with page_count,
   page_number and page_percent below. %d, %zu, %c, %e, %f and %g work as in printf. */
void page_print(page *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_escape(page *self, const char *text);                     /* & < > " ' become entities; NULL: nothing */
void page_escape_part(page *self, const char *text, size_t length); /* escapes the first `length` bytes */
void page_free(page *self);

/* Append formatted numbers; "–" stands for a number that is not finite. */
void page_count(page *self, double value);                 /* 12,500 */
void page_number(page *self, double value, int digits);    /* up to `digits` significant digits, 3.2e-05 where needed */
void page_percent(page *self, double share, int decimals); /* 97.31 % */
void page_bytes(page *self, double value);                 /* 1.2 GB */
void page_seconds(page *self, double value);               /* 850 ms, 12.3 s, 4 min 05 s, 2 h 10 min */
void page_flops(page *self, double value);                 /* 3.2 TFLOP */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A growing text buffer, and formatting of numbers for readers. */
#include "report/page.h"

#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ---------------------------------------------------------------------------------------------------- */

static void append_text(page *self, const char *bytes, size_t count)
{
    if (count >= self->capacity - self->used) { /* >=, because the terminating zero must fit too */
        size_t capacity = self->capacity ? self->capacity : 4096;
        while (capacity - self->used <= count && capacity <= SIZE_MAX / 4) capacity *= 2;
        char *text = cli_allocate((int64_t)capacity, 1);
        if (self->used > 0) memcpy(text, self->text, self->used);
        free(self->text);
        self->text = text;
        self->capacity = capacity;
    }
    memcpy(self->text + self->used, bytes, count);
    self->used += count;
    self->text[self->used] = '\0';
}

void page_add(page *self, const char *markup)
{
    append_text(self, markup, strlen(markup));
}

void page_escape_part(page *self, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
            case '&': page_add(self, "&amp;"); break;
            case '<': page_add(self, "&lt;"); break;
            case '>': page_add(self, "&gt;"); break;
            case '"': page_add(self, "&quot;"); break;
            case '\'': page_add(self, "&#39;"); break;
            default:
                /* Control characters are not allowed in HTML, not even as entities. */
                if ((unsigned char)text[i] >= ' ' || text[i] == '\n' || text[i] == '\t') append_text(self, &text[i], 1);
        }
    }
}

void page_escape(page *self, const char *text)
{
    if (text) page_escape_part(self, text, strlen(text));
}

void page_free(page *self)
{
    free(self->text);
    *self = (page){0};
}

/* Formats one conversion of page_print, starting at its percent sign; returns the text after it. */
static const char *format_conversion(page *self, const char *at, va_list *given)
{
    char form[16], shown[512] = ""; /* the largest double has 309 digits */
    size_t length = strcspn(at + 1, "%scduefgFGA") + 2;
    int starred = length > 3 && at[2] == '*', precision = starred ? va_arg(*given, int) : 0;
    if (!starred && at[1] == '.') precision = (int)strtol(at + 2, NULL, 10);
    snprintf(form, sizeof form, "%.*s", (int)length, at);
    switch (at[length - 1]) {
        case 'u': snprintf(shown, sizeof shown, form, va_arg(*given, size_t)); break;
        case '%': page_add(self, "%"); break;
        case 's': page_escape(self, va_arg(*given, const char *)); break;
        case 'F': page_number(self, va_arg(*given, double), precision); break;
        case 'G': page_count(self, va_arg(*given, double)); break;
        case 'A': page_percent(self, va_arg(*given, double), precision); break;
        case 'c':
        case 'd': snprintf(shown, sizeof shown, form, va_arg(*given, int)); break;
        default:
            if (starred)
                snprintf(shown, sizeof shown, form, precision, va_arg(*given, double));
            else
                snprintf(shown, sizeof shown, form, va_arg(*given, double));
    }
    page_add(self, shown);
    return at + length;
}

void page_print(page *self, const char *format, ...)
{
    va_list given;
    va_start(given, format);
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        append_text(self, format, plain);
        format += plain;
        if (*format == '%') format = format_conversion(self, format, &given);
    }
    va_end(given);
}

/* ---- Numbers ------------------------------------------------------------------------------------------------- */

static bool append_if_unknown(page *self, double value)
{
    if (isfinite(value)) return false;
    page_add(self, "–");
    return true;
}

void page_count(page *self, double value)
{
    char digits[64];
    if (append_if_unknown(self, value)) return;
    if (fabs(value) >= 1e15) {
        page_print(self, "%.3g", value);
        return;
    }
    snprintf(digits, sizeof digits, "%.0f", fabs(value));
    size_t length = strlen(digits);
    if (value <= -0.5) page_add(self, "−");
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) page_add(self, ",");
        append_text(self, &digits[i], 1);
    }
}

/* Appends a decimal number without trailing zeros. */
static void append_decimal(page *self, double value, int decimals)
{
    char digits[64];
    int length = snprintf(digits, sizeof digits, "%.*f", decimals, value);
    if (decimals > 0)
        while (length > 0 && digits[length - 1] == '0') length--;
    if (length > 0 && digits[length - 1] == '.') length--;
    append_text(self, digits, (size_t)length);
}

void page_number(page *self, double value, int digits)
{
    if (append_if_unknown(self, value)) return;
    double size = fabs(value);
    bool is_whole = size == floor(size);
    if (value < 0) page_add(self, "−");
    if (is_whole ? size < 1e15 : size >= 1000 && size < 1e6) {
        page_count(self, size);
    } else if (size >= 1e-4 && size < 1000) {
        int whole = (int)floor(log10(size)) + 1;
        append_decimal(self, size, digits > whole ? digits - whole : 0);
    } else {
        page_print(self, "%.*e", digits > 1 ? digits - 1 : 0, size);
    }
}

void page_percent(page *self, double share, int decimals)
{
    if (!append_if_unknown(self, share)) page_print(self, "%.*f\u202f%%", decimals, 100 * share);
}

/* Appends the value in the largest unit in which it is at least 1. */
static void append_in_unit(page *self, double value, const char *const *units, int count)
{
    if (append_if_unknown(self, value)) return;
    int unit = 0;
    while (unit < count - 1 && fabs(value) >= 999.5) value /= 1000, unit++;
    page_number(self, value == floor(value) ? value : round(value * 1000) / 1000, 3);
    page_print(self, "\u202f%s", units[unit]);
}

void page_bytes(page *self, double value)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    append_in_unit(self, value, units, 6);
}

void page_flops(page *self, double value)
{
    static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
    append_in_unit(self, value, units, 7);
}

void page_seconds(page *self, double value)
{
    if (append_if_unknown(self, value)) return;
    double whole = floor(value + 0.5);
    if (value < 0.0995)
        page_print(self, "%.*f\u202fms", value > 0 && value < 0.00995 ? 1 : 0, 1000 * value);
    else if (value < 99.95)
        page_print(self, "%.*f\u202fs", value < 9.995 ? 2 : 1, value);
    else if (whole < 3600)
        page_print(self, "%.0f\u202fmin %02.0f\u202fs", floor(whole / 60), fmod(whole, 60));
    else
        page_print(self, "%.0f\u202fh %02.0f\u202fmin", floor(whole / 3600), floor(fmod(whole, 3600) / 60));
}

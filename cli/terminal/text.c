/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and strings. Allocation failures end the program: a command line tool has no way to recover from them. */
#include "ranks/program_ranks.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void *cli_allocate(int64_t count, size_t size)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (memory == NULL) cli_give_up(CLI_FAILURE, "out of memory: cannot allocate %" PRId64 " x %zu bytes", count, size);
    return memory;
}

char *cli_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(cli_allocate((int64_t)size, 1), text, size);
}

/* Returns the text with formatted text appended. Release with free. */
__attribute__((format(printf, 2, 0))) static char *joined(const char *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) cli_give_up(CLI_INTERNAL, "internal error: cannot format a text");
    size_t used = strlen(text);
    char *both = cli_allocate((int64_t)used + length + 1, 1);
    memcpy(both, text, used + 1);
    vsnprintf(both + used, (size_t)length + 1, format, arguments);
    return both;
}

char *cli_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = joined("", format, arguments);
    va_end(arguments);
    return text;
}

char *cli_append(char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *longer = joined(text != NULL ? text : "", format, arguments);
    va_end(arguments);
    free(text);
    return longer;
}

/* Returns the length of the UTF-8 character at this position; 0 if it is invalid or a terminal control character. */
static int visible_bytes(const unsigned char *at)
{
    if (*at < 0x80) return *at >= 32 && *at != 127;
    int length = *at >= 0xF0 && *at < 0xF5 ? 4 : (*at >= 0xE0 && *at < 0xF0 ? 3 : (*at >= 0xC2 && *at < 0xE0 ? 2 : 0));
    if (*at == 0xC2 && at[1] < 0xA0) return 0; /* U+0080 .. U+009F, including CSI, which starts escape sequences */
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80) return 0;
    }
    return length;
}

char *cli_visible(const char *text)
{
    char *out = cli_allocate((int64_t)(4 * strlen(text)) + 1, 1), *to = out;
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        int length = visible_bytes(at);
        if (length == 0 && *at == '\n')
            to += sprintf(to, "\\n");
        else if (length == 0)
            to += sprintf(to, "\\x%02x", *at);
        memcpy(to, at, (size_t)length);
        to += length;
        at += length > 0 ? length : 1;
    }
    return out;
}

void *cli_grow(void *items, int64_t count, int64_t *capacity, size_t size)
{
    if (count < *capacity) return items;
    *capacity = 2 * *capacity + 16;
    void *more = cli_allocate(*capacity, size);
    if (count > 0) memcpy(more, items, (size_t)count * size);
    free(items);
    return more;
}

const char *cli_bytes_text(char text[CLI_SHORT], int64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 999.5 && unit < 5) {
        value /= 1000;
        unit++;
    }
    snprintf(text, CLI_SHORT, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

const char *cli_count_text(char text[CLI_SHORT], int64_t count)
{
    char digits[CLI_SHORT];
    int length = snprintf(digits, sizeof digits, "%" PRId64, count);
    int out = 0;
    for (int i = 0; i < length && out < CLI_SHORT - 2; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-') text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

const char *cli_seconds_text(char text[CLI_SHORT], double seconds)
{
    if (!(seconds >= 0) || seconds > 1e9)
        snprintf(text, CLI_SHORT, "-");
    else if (seconds < 9.995)
        snprintf(text, CLI_SHORT, "%.2f s", seconds);
    else if (seconds < 59.95)
        snprintf(text, CLI_SHORT, "%.1f s", seconds);
    else if (seconds < 3599.5)
        snprintf(text, CLI_SHORT, "%d min %02d s", (int)lround(seconds) / 60, (int)lround(seconds) % 60);
    else
        snprintf(text, CLI_SHORT, "%ld h %02ld min", lround(seconds) / 3600, lround(seconds) % 3600 / 60);
    return text;
}

const char *cli_number_text(char text[CLI_SHORT], double value, int single)
{
    /* Start at FLT_DIG or DBL_DIG digits; fewer are not needed, because %g drops trailing zeros. */
    int digits = single ? FLT_DIG : DBL_DIG, most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    for (; digits <= most; digits++) {
        snprintf(text, CLI_SHORT, "%.*g", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) break;
    }
    return text;
}

int cli_ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

double cli_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double started;

void cli_start_clock(void)
{
    started = cli_now();
}

double cli_elapsed(void)
{
    return cli_now() - started;
}

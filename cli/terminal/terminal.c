/* SPDX-License-Identifier: BSD-3-Clause */
/* Terminal output: width, colors, progress bar, tables. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int cli_is_terminal(FILE *file)
{
    const char *kind = getenv("TERM");
    return isatty(fileno(file)) && kind != NULL && *kind != '\0' && strcmp(kind, "dumb") != 0;
}

int cli_width(FILE *file)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int width = columns != NULL ? (int)strtol(columns, NULL, 10) : 0;
    if (width <= 0 && ioctl(fileno(file), TIOCGWINSZ, &size) == 0) width = size.ws_col;
    if (width <= 0) width = 80;
    return width < 20 ? 20 : (width > 1000 ? 1000 : width);
}

int cli_colors(const cli_values *v, FILE *file)
{
    const char *no_color = getenv("NO_COLOR");
    if (cli_is(v, "color", "always")) return 1;
    if (cli_is(v, "color", "never") || (no_color != NULL && *no_color != '\0')) return 0;
    return cli_is_terminal(file);
}

/* Returns the number of columns of a text: bytes that start a UTF-8 character. */
static int text_width(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++) width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

/* ---- Progress bar ------------------------------------------------------------------------------------------------ */

static _Thread_local cli_bar *visible_bar; /* the visible bar; NULL: none. Only rank 0 draws a bar */

void cli_bar_init(cli_bar *bar, const cli_values *v)
{
    *bar = (cli_bar){0};
    bar->on = !cli_flag(v, "quiet") && cli_is_terminal(stderr);
    bar->colors = cli_colors(v, stderr);
    bar->last = -1;
}

void cli_bar_draw(cli_bar *bar, double share, const char *text, int force)
{
    enum { LONGEST = 30 };
    double now = cli_now();
    if (!bar->on || (!force && bar->drawn && now - bar->last < 0.1)) return;
    int width = cli_width(stderr) - 1, used = 0;
    int length = width / 4 < LONGEST ? width / 4 : LONGEST;
    fputc('\r', stderr);
    if (share >= 0 && length >= 6) {
        int full = (int)((share > 1 ? 1 : share) * length);
        char filled[LONGEST + 1] = "", rest[LONGEST + 1] = "";
        memset(filled, '=', (size_t)full);
        memset(rest, ' ', (size_t)(length - full));
        if (full > 0 && full < length) filled[full - 1] = '>';
        const char *on = bar->colors ? "\033[32m" : "", *off = bar->colors ? "\033[0m" : "";
        fprintf(stderr, "[%s%s%s%s] %3d%% ", on, filled, off, rest, (int)((share > 1 ? 1 : share) * 100));
        used = length + 8;
    }
    for (; *text != '\0'; text++) {
        int begins = ((unsigned char)*text & 0xC0) != 0x80;
        if (begins && used >= width) break;
        used += begins;
        fputc(*text, stderr);
    }
    fputs("\033[K", stderr);
    fflush(stderr);
    bar->drawn = 1;
    bar->last = now;
    visible_bar = bar;
}

void cli_bar_clear(cli_bar *bar)
{
    if (!bar->drawn) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    bar->drawn = 0;
    if (visible_bar == bar) visible_bar = NULL;
}

void cli_bar_make_way(void)
{
    if (visible_bar != NULL) cli_bar_clear(visible_bar);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

struct cli_table {
    int columns;
    char *alignment;
    char **cells; /* (count) row by row; a rule is a row whose first cell is NULL */
    int64_t count, capacity;
};

cli_table *cli_table_new(int columns, const char *alignment)
{
    cli_table *table = cli_allocate(1, sizeof *table);
    table->columns = columns;
    table->alignment = cli_copy(alignment);
    return table;
}

/* Adds a cell and takes ownership of the text. Control characters are escaped, because column and class names come
   from files. */
static void add_cell(cli_table *table, char *text)
{
    table->cells = cli_grow(table->cells, table->count, &table->capacity, sizeof *table->cells);
    table->cells[table->count++] = text != NULL ? cli_visible(text) : NULL;
    free(text);
}

void cli_table_cell(cli_table *table, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    add_cell(table, cli_copy(text));
}

void cli_table_row(cli_table *table, const char *name, char *text)
{
    if (text == NULL) return;
    add_cell(table, cli_copy(name));
    add_cell(table, text);
}

void cli_table_line(cli_table *table)
{
    while (table->count % table->columns != 0) add_cell(table, cli_copy(""));
    for (int i = 0; i < table->columns; i++) add_cell(table, NULL);
}

/* Returns whether a line may break at this space: "p = 4" and "5 %" stay together. */
static int can_break(const char *text, size_t at)
{
    return text[at] == ' ' && at > 0 && text[at - 1] != '=' && text[at + 1] != '=' && text[at + 1] != '%';
}

/* Returns the number of bytes that fit into `width` columns, up to a space; the length of the first word if that
   does not fit. */
static size_t first_part(const char *text, int width)
{
    size_t end = 0;
    int used = 0;
    for (size_t i = 0;; i++) {
        if (can_break(text, i) || text[i] == '\0') {
            if (used > width && end > 0) return end;
            end = i;
        }
        if (text[i] == '\0') return end;
        used += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
}

void cli_print_wrapped(FILE *file, const char *text, int begin, int width)
{
    enum { LEAST = 20 }; /* columns; narrower text is not wrapped */
    while (*text != '\0') {
        size_t part = width - begin >= LEAST ? first_part(text, width - begin) : strlen(text);
        fwrite(text, 1, part, file);
        text += part + (text[part] == ' ');
        if (*text != '\0') fprintf(file, "\n%*s", begin, "");
    }
}

static void print_row(const cli_table *table, int64_t first, const int *widths, FILE *file)
{
    int pending = 0, at = 0; /* pending: spaces written only if text follows; at: current column */
    for (int c = 0; c < table->columns && first + c < table->count; c++) {
        const char *text = table->cells[first + c];
        int space = widths[c] - text_width(text);
        int right = table->alignment[c] == 'r';
        if (right) pending += space;
        if (*text != '\0') {
            fprintf(file, "%*s", pending, "");
            if (c + 1 == table->columns && !right)
                cli_print_wrapped(file, text, at, cli_is_terminal(file) ? cli_width(file) : 0);
            else
                fputs(text, file);
            pending = 0;
        }
        pending += 2 + (right ? 0 : space);
        at += 2 + widths[c];
    }
    fputc('\n', file);
}

void cli_table_print(cli_table *table, FILE *file)
{
    CLI_OWNED(cli_drop) int *widths = cli_allocate(table->columns, sizeof *widths);
    int total = 2 * (table->columns - 1);
    for (int64_t i = 0; i < table->count; i++) {
        int width = table->cells[i] != NULL ? text_width(table->cells[i]) : 0;
        if (width > widths[i % table->columns]) widths[i % table->columns] = width;
    }
    for (int c = 0; c < table->columns; c++) total += widths[c];
    for (int64_t first = 0; first < table->count; first += table->columns) {
        if (table->cells[first] == NULL) {
            for (int i = 0; i < total; i++) fputc('-', file);
            fputc('\n', file);
        } else {
            print_row(table, first, widths, file);
        }
    }
    cli_table_free(table);
}

void cli_table_free(cli_table *table)
{
    if (table == NULL) return;
    for (int64_t i = 0; i < table->count; i++) free(table->cells[i]);
    free(table->cells);
    free(table->alignment);
    free(table);
}

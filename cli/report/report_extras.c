/* SPDX-License-Identifier: BSD-3-Clause */
/* Additional tables, charts and images from the log, as written by mercer demo. */
#include "report/report.h"

#include "cli.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- PNG ----------------------------------------------------------------------------------------------------- */

/*
 * Small gray images inside the page: PNG (8 bits, one channel), in base64.
 *
 * A PNG is a signature and chunks: length, name, data, CRC of name and data. IHDR holds the shape; IDAT holds the rows,
 * each after a filter byte 0, compressed by zlib; IEND is empty.
 */
static unsigned char *put_u32(unsigned char *at, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) *at++ = (unsigned char)(value >> shift);
    return at;
}

static unsigned char *put_chunk(unsigned char *at, const char *name, const unsigned char *data, size_t bytes)
{
    at = put_u32(at, (uint32_t)bytes);
    unsigned char *start = at;
    memcpy(at, name, 4);
    if (bytes > 0) memcpy(at + 4, data, bytes);
    at += 4 + bytes;
    return put_u32(at, (uint32_t)crc32(0, start, (uInt)(4 + bytes)));
}

static void add_base64(page *out, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;
        if (i + 1 < count) three |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < count) three |= bytes[i + 2];
        char four[5] = {digits[three >> 18], digits[three >> 12 & 63], digits[three >> 6 & 63], digits[three & 63], 0};
        if (i + 1 >= count) four[2] = '=';
        if (i + 2 >= count) four[3] = '=';
        page_add(out, four);
    }
}

/* Writes pixels (height, width), 0 (black) .. 255 (white), as an <img> with the alternative text `text`. */
static void put_image(page *out, const unsigned char *pixels, int height, int width, const char *text)
{
    static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    unsigned char shape[13] = {0};
    size_t raw_bytes = (size_t)height * ((size_t)width + 1);
    uLongf packed_bytes = compressBound((uLong)raw_bytes);
    unsigned char *raw = cli_allocate((int64_t)raw_bytes, 1), *packed = cli_allocate((int64_t)packed_bytes, 1);
    for (int i = 0; i < height; i++)
        memcpy(raw + (size_t)i * ((size_t)width + 1) + 1, pixels + (size_t)i * (size_t)width, (size_t)width);
    put_u32(put_u32(shape, (uint32_t)width), (uint32_t)height);
    shape[8] = 8; /* bits per pixel; the zero bytes after it mean gray, and the only defined methods */
    if (compress2(packed, &packed_bytes, raw, (uLong)raw_bytes, 9) == Z_OK) {
        unsigned char *file = cli_allocate((int64_t)packed_bytes + 100, 1), *end = file + sizeof signature;
        memcpy(file, signature, sizeof signature);
        end = put_chunk(end, "IHDR", shape, sizeof shape);
        end = put_chunk(end, "IDAT", packed, packed_bytes);
        end = put_chunk(end, "IEND", NULL, 0);
        page_print(out, "<img width=\"%d\" height=\"%d\" alt=\"%s\" src=\"data:image/png;base64,", width, height, text);
        add_base64(out, file, (size_t)(end - file));
        page_add(out, "\">");
        free(file);
    }
    free(raw), free(packed);
}

enum { MOST_ROWS = 1000, MOST_COLUMNS = 64, MOST_IMAGES = 200, MOST_SIDE = 256 };

/* ---- Tables -------------------------------------------------------------------------------------------------- */

/* Returns whether to align a column right: each cell is a number, or a text that starts with a number ("97.3 %"). */
static bool is_numeric(const json_t *rows, size_t column)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *cell = json_array_get(json_array_get(rows, i), column);
        const char *text = json_string_value(cell);
        bool numeric = !text || !*text || (*text >= '0' && *text <= '9') || strchr("+-.", *text);
        if (!numeric) return false;
    }
    return true;
}

static void write_table_cell(page *out, const json_t *cell)
{
    if (json_is_string(cell))
        page_escape(out, json_string_value(cell));
    else if (json_is_number(cell))
        page_number(out, json_number_value(cell), 5);
    else if (json_is_boolean(cell))
        page_add(out, json_is_true(cell) ? "yes" : "no");
    else
        page_add(out, "–");
}

static void write_table_row(page *out, const json_t *row, size_t columns, const bool *numeric)
{
    page_add(out, "<tr>");
    for (size_t j = 0; j < columns; j++) {
        page_add(out, j == 0 ? "<th scope=\"row\"" : "<td");
        page_add(out, numeric[j] ? " class=\"n\">" : ">");
        if (j < json_array_size(row)) write_table_cell(out, json_array_get(row, j));
        page_add(out, j == 0 ? "</th>" : "</td>");
    }
    page_add(out, "</tr>\n");
}

static void write_table(page *out, const json_t *event)
{
    const json_t *columns = json_object_get(event, "columns"), *rows = json_object_get(event, "rows");
    size_t count = json_array_size(columns), height = json_array_size(rows);
    bool numeric[MOST_COLUMNS];
    if (count > MOST_COLUMNS) count = MOST_COLUMNS;
    if (count == 0) return;
    page_add(out, "<div class=\"scroll\"><table><thead><tr>");
    for (size_t j = 0; j < count; j++) {
        numeric[j] = is_numeric(rows, j);
        page_add(out, numeric[j] ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        write_table_cell(out, json_array_get(columns, j));
        page_add(out, "</th>");
    }
    page_add(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < height && i < MOST_ROWS; i++) write_table_row(out, json_array_get(rows, i), count, numeric);
    page_add(out, "</tbody></table></div>\n");
    if (height > MOST_ROWS) page_print(out, "<p class=\"soft\">The first %d of %zu rows.</p>\n", MOST_ROWS, height);
}

/* ---- Charts -------------------------------------------------------------------------------------------------- */

static void write_chart(page *out, const json_t *event, bool caption)
{
    const json_t *list = json_object_get(event, "series");
    const char *title = report_text(event, "title"), *x = report_text(event, "x"), *y = report_text(event, "y");
    size_t count = json_array_size(list);
    if (count == 0) return;
    CLI_OWNED(cli_drop) svg_series *series = cli_allocate((int64_t)count, sizeof *series);
    for (size_t k = 0; k < count; k++) {
        const json_t *one = json_array_get(list, k), *xs = json_object_get(one, "x"), *ys = json_object_get(one, "y");
        const char *name = report_text(one, "name");
        size_t points = json_array_size(xs) < json_array_size(ys) ? json_array_size(xs) : json_array_size(ys);
        series[k] = (svg_series){name ? name : "", report_values(xs, points), report_values(ys, points), points,
                                 json_is_true(json_object_get(one, "dotted"))};
    }
    svg_chart drawn = svg_chart_of(title ? title : "", x ? x : "", y ? y : "", series, count);
    drawn.log_x = json_is_true(json_object_get(event, "log_x"));
    drawn.log_y = json_is_true(json_object_get(event, "log_y"));
    drawn.percent = json_is_true(json_object_get(event, "percent"));
    report_chart(out, &drawn, caption);
    for (size_t k = 0; k < count; k++) free((void *)series[k].x), free((void *)series[k].y);
}

/* ---- Images -------------------------------------------------------------------------------------------------- */

static void write_image(page *out, const json_t *values, const json_t *label, int height, int width)
{
    const char *name = json_string_value(label);
    unsigned char *pixels = cli_allocate((int64_t)height * width, 1);
    for (int i = 0; i < height * width; i++) {
        double value = json_number_value(json_array_get(values, (size_t)i)); /* 0 if not a number */
        pixels[i] = (unsigned char)fmax(0, fmin(255, value));
    }
    page_add(out, "<li>");
    put_image(out, pixels, height, width, name ? name : "image");
    page_print(out, "%s</li>\n", name);
    free(pixels);
}

static void write_images(page *out, const json_t *event)
{
    const json_t *list = json_object_get(event, "images"), *labels = json_object_get(event, "labels");
    double height = report_number(event, "height"), width = report_number(event, "width");
    if (!(height >= 1 && height <= MOST_SIDE && width >= 1 && width <= MOST_SIDE)) return;
    page_add(out, "<ul class=\"images\">\n");
    for (size_t i = 0; i < json_array_size(list) && i < MOST_IMAGES; i++)
        write_image(out, json_array_get(list, i), json_array_get(labels, i), (int)height, (int)width);
    page_add(out, "</ul>\n");
}

/* ---- Sections ---------------------------------------------------------------------------------------------------- */

static const char *kind_of(const json_t *event)
{
    const char *kind = report_text(event, "event");
    return kind ? kind : "";
}

/* Adds a section with the charts from index `first` on: consecutive charts with the same "section" are placed side
   by side. Returns their number. */
static size_t write_chart_section(report_page *self, const json_t *extras, size_t first, const char *id)
{
    const json_t *event = json_array_get(extras, first);
    const char *section = report_text(event, "section"), *title = report_text(event, "title");
    size_t count = 0;
    report_open(self, id,
                section ? section
                : title ? title
                        : "Chart",
                report_text(event, "text"), section ? "grid2" : "single");
    do {
        write_chart(&self->body, event, section != NULL);
        event = json_array_get(extras, first + ++count);
    } while (section && event && strcmp(kind_of(event), "chart") == 0 && report_text(event, "section") &&
             strcmp(report_text(event, "section"), section) == 0);
    report_close(self);
    return count;
}

void report_extras(report_page *self, const report_run *run)
{
    for (size_t i = 0; i < json_array_size(run->extras);) {
        const json_t *event = json_array_get(run->extras, i);
        const char *title = report_text(event, "title"), *kind = kind_of(event);
        char id[32];
        snprintf(id, sizeof id, "extra-%zu", i + 1);
        if (strcmp(kind, "chart") == 0) {
            i += write_chart_section(self, run->extras, i, id);
            continue;
        }
        bool is_table = strcmp(kind, "table") == 0;
        report_open(self, id, title ? title : is_table ? "Table" : "Images", report_text(event, "text"), NULL);
        (is_table ? write_table : write_images)(&self->body, event);
        report_close(self);
        i++;
    }
}

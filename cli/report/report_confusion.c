/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The confusion matrix. matrix[i][j] counts samples of class i that were classified as class j. Up to TABLE_CLASSES
 * classes are shown as a shaded table, up to MAP_CLASSES classes as a map that is scaled to the width of the page.
 * Above TABLE_CLASSES classes, the most confused pairs are listed.
 */
#include "report/report.h"

#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_CLASSES = 14, MAP_CLASSES = 100, MOST_PAIRS = 20 };

typedef struct confusion {
    size_t classes;
    double *counts; /* (classes, classes) */
    const json_t *labels;
} confusion;

/* Reads the matrix of the event; returns false if it is not a square matrix of counts. */
static bool read_matrix(confusion *out, const json_t *event)
{
    const json_t *matrix = json_object_get(event, "matrix");
    size_t k = json_array_size(matrix);
    *out = (confusion){.classes = k, .labels = json_object_get(event, "labels")};
    if (k == 0) return false;
    for (size_t i = 0; i < k; i++)
        if (json_array_size(json_array_get(matrix, i)) != k) return false;
    out->counts = cli_allocate((int64_t)(k * k), sizeof *out->counts);
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++) {
            const json_t *count = json_array_get(json_array_get(matrix, i), j);
            double value = json_is_number(count) ? json_number_value(count) : -1;
            if (!(value >= 0)) return false;
            out->counts[i * k + j] = value;
        }
    return true;
}

static void class_label(page *out, const confusion *self, size_t i)
{
    const json_t *name = json_array_get(self->labels, i);
    if (json_is_string(name))
        page_escape(out, json_string_value(name));
    else if (json_is_number(name))
        page_number(out, json_number_value(name), 6);
    else
        page_print(out, "%zu", i);
}

static double row_sum(const confusion *self, size_t i)
{
    double sum = 0;
    for (size_t j = 0; j < self->classes; j++) sum += self->counts[i * self->classes + j];
    return sum;
}

static double column_sum(const confusion *self, size_t j)
{
    double sum = 0;
    for (size_t i = 0; i < self->classes; i++) sum += self->counts[i * self->classes + j];
    return sum;
}

/* ---- The table ----------------------------------------------------------------------------------------------- */

/* Returns the color strength of a cell, 0 .. 0.9. For correct predictions it is proportional to their share of the row.
   For mistakes it is proportional to the square root of their share, so that even a small share is visible. */
static double color_strength(double share, bool right)
{
    return right ? 0.9 * share : fmin(0.9, 1.4 * sqrt(share));
}

static void write_cell(page *out, double count, double share, bool right)
{
    double shade = color_strength(share, right);
    if (!(count > 0)) {
        page_add(out, right ? "<td>0</td>" : "<td class=\"zero\">0</td>");
        return;
    }
    page_add(out, shade > 0.55 ? "<td class=\"strong\"" : "<td");
    page_print(out, " style=\"background:rgb(var(--%s)/%.3f)\">%G</td>", right ? "hit" : "miss", shade, count);
}

static void write_table_head(page *out, const confusion *self)
{
    page_add(out, "<table class=\"confusion\"><caption>Rows: true class. Columns: predicted "
                  "class.</caption><thead><tr><td></td>");
    for (size_t j = 0; j < self->classes; j++) {
        page_add(out, "<th scope=\"col\">");
        class_label(out, self, j);
        page_add(out, "</th>");
    }
    page_add(out, "<th scope=\"col\" class=\"rim\">recall</th></tr></thead><tbody>\n");
}

static void write_table_foot(page *out, const confusion *self)
{
    page_add(out, "<tr><th scope=\"row\">precision</th>");
    for (size_t j = 0; j < self->classes; j++)
        page_print(out, "<td class=\"soft\">%.0A</td>", self->counts[j * self->classes + j] / column_sum(self, j));
    page_add(out, "<td></td></tr>\n</tbody></table>\n");
}

static void write_table(page *out, const confusion *self)
{
    write_table_head(out, self);
    for (size_t i = 0; i < self->classes; i++) {
        double sum = row_sum(self, i);
        page_add(out, "<tr><th scope=\"row\">");
        class_label(out, self, i);
        page_add(out, "</th>");
        for (size_t j = 0; j < self->classes; j++) {
            double count = self->counts[i * self->classes + j];
            write_cell(out, count, sum > 0 ? count / sum : 0, i == j);
        }
        page_print(out, "<td class=\"rim\">%.1A</td></tr>\n", self->counts[i * self->classes + i] / sum);
    }
    write_table_foot(out, self);
}

/* ---- The map ------------------------------------------------------------------------------------------------- */

enum { PAGE_WIDTH = 1080, LARGEST_CELL = 34, COUNTED_CELL = 21, LONGEST_LABEL = 14, RIGHT_RIM = 46, BOTTOM_RIM = 20 };

/* Sizes of a map in pixels, for a page at full width. */
typedef struct map {
    double cell, font, left, top;
} map;

/* Appends a label, shortened to LONGEST_LABEL characters. */
static void short_label(page *out, const confusion *self, size_t i)
{
    const char *name = json_string_value(json_array_get(self->labels, i));
    size_t characters = 0, bytes = 0;
    if (!name) {
        class_label(out, self, i);
        return;
    }
    for (; name[bytes] && characters <= LONGEST_LABEL; bytes++)
        characters += ((unsigned char)name[bytes] & 0xC0) != 0x80;
    if (characters > LONGEST_LABEL) {
        while (bytes > 0 && ((unsigned char)name[--bytes] & 0xC0) == 0x80) {}
        page_escape_part(out, name, bytes);
        page_add(out, "…");
    } else {
        page_escape(out, name);
    }
}

static size_t longest_label(const confusion *self)
{
    size_t longest = 1;
    for (size_t i = 0; i < self->classes; i++) {
        const char *name = json_string_value(json_array_get(self->labels, i));
        size_t length = name ? strlen(name) : 3;
        if (length > longest) longest = length;
    }
    return longest < LONGEST_LABEL + 1 ? longest : LONGEST_LABEL + 1;
}

static map plan_map(const confusion *self)
{
    double label = 7.2 * (double)longest_label(self); /* width of the longest label in pixels, 7.2 per character */
    map sizes = {.left = 14 + label};
    sizes.cell = fmin(LARGEST_CELL, (PAGE_WIDTH - sizes.left - RIGHT_RIM) / (double)self->classes);
    sizes.font = fmax(8, fmin(12, 0.85 * sizes.cell));
    sizes.top = 12 + (label > sizes.cell ? label : sizes.font);
    return sizes;
}

static void write_map_labels(page *out, const confusion *self, const map *sizes)
{
    bool upright = sizes->top > 12 + sizes->font;
    for (size_t i = 0; i < self->classes; i++) {
        double middle = ((double)i + 0.5) * sizes->cell, down = sizes->top + middle + 0.35 * sizes->font;
        page_print(out, "<text class=\"name\" style=\"font-size:%.1fpx\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
                   sizes->font, sizes->left - 8, down);
        short_label(out, self, i);
        page_print(out,
                   "</text><text class=\"name\" style=\"font-size:%.1fpx\" transform=\"translate(%.1f %.1f)%s\" "
                   "text-anchor=\"%s\">",
                   sizes->font, sizes->left + middle + (upright ? 0.35 * sizes->font : 0), sizes->top - 6,
                   upright ? " rotate(-90)" : "", upright ? "start" : "middle");
        short_label(out, self, i);
        page_print(out, "</text><text class=\"rim\" style=\"font-size:%.1fpx\" x=\"%.1f\" y=\"%.1f\">%.0A</text>\n",
                   sizes->font, sizes->left + (double)self->classes * sizes->cell + 8, down,
                   self->counts[i * self->classes + i] / row_sum(self, i));
    }
}

static void write_map_cell(page *out, const confusion *self, const map *sizes, size_t i, size_t j, double share)
{
    double x = sizes->left + (double)j * sizes->cell, y = sizes->top + (double)i * sizes->cell;
    double shade = color_strength(share, i == j), count = self->counts[i * self->classes + j];
    page_print(out,
               "<rect style=\"fill:rgb(var(--%s)/%.2f)\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
               i == j ? "hit" : "miss", fmax(shade, 0.02), x, y, sizes->cell - 1, sizes->cell - 1);
    class_label(out, self, i);
    page_add(out, i == j ? ", right: " : ", predicted as ");
    if (i != j) {
        class_label(out, self, j);
        page_add(out, ": ");
    }
    page_print(out, "%G</title></rect>", count);
    if (sizes->cell < COUNTED_CELL) return;
    page_print(out, "<text class=\"count%s\" style=\"font-size:%.1fpx\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
               shade > 0.55 ? " strong" : "", count < 1000 ? fmin(12, 0.45 * sizes->cell) : 0.3 * sizes->cell,
               x + 0.5 * (sizes->cell - 1), y + 0.63 * sizes->cell);
    page_print(out, count < 10000 ? "%.0f</text>" : "%.0fk</text>", count < 10000 ? count : count / 1000);
}

/* Draws the map. The map shrinks with the page until labels would be too small to read; on narrower pages it
   scrolls. */
static void write_map(page *out, const confusion *self)
{
    map sizes = plan_map(self);
    double side = (double)self->classes * sizes.cell, width = sizes.left + side + RIGHT_RIM;
    page_print(out,
               "<svg class=\"map\" style=\"max-width:%.0fpx;min-width:%.0fpx\" viewBox=\"0 0 %.1f %.1f\" role=\"img\">"
               "<title>Confusion of %G classes</title>"
               "<rect class=\"ground\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
               width, width * fmin(1, 8 / sizes.font), width, sizes.top + side + BOTTOM_RIM, (double)self->classes,
               sizes.left, sizes.top, side, side);
    write_map_labels(out, self, &sizes);
    for (size_t i = 0; i < self->classes; i++) {
        double sum = row_sum(self, i);
        for (size_t j = 0; j < self->classes; j++) {
            double count = self->counts[i * self->classes + j];
            if (count > 0) write_map_cell(out, self, &sizes, i, j, count / sum);
        }
        page_add(out, "\n");
    }
    page_add(out, "</svg>\n");
}

/* ---- The most confused pairs --------------------------------------------------------------------------------- */

/* Finds the largest off-diagonal counts, in descending order; ties keep matrix order. Returns their number. */
static size_t find_confused_pairs(const confusion *self, size_t pairs[MOST_PAIRS])
{
    size_t found = 0;
    for (size_t at = 0; at < self->classes * self->classes; at++) {
        double count = self->counts[at];
        if (at / self->classes == at % self->classes || !(count > 0)) continue;
        if (found == MOST_PAIRS && self->counts[pairs[found - 1]] >= count) continue;
        size_t place = found < MOST_PAIRS ? found++ : found - 1;
        for (; place > 0 && self->counts[pairs[place - 1]] < count; place--) pairs[place] = pairs[place - 1];
        pairs[place] = at;
    }
    return found;
}

static void write_pair_table(page *out, const confusion *self, size_t most)
{
    size_t pairs[MOST_PAIRS], count = find_confused_pairs(self, pairs);
    if (count == 0) return;
    if (count > most) count = most;
    page_print(out,
               "<div class=\"scroll pairs\"><table><caption>%G classes; the most frequently confused "
               "pairs.</caption><thead><tr><th scope=\"col\">True class</th><th scope=\"col\">Predicted class</th><th "
               "scope=\"col\" class=\"n\">Samples</th><th scope=\"col\" class=\"n\">Share of the true "
               "class</th></tr></thead><tbody>\n",
               (double)self->classes);
    for (size_t k = 0; k < count; k++) {
        size_t i = pairs[k] / self->classes, j = pairs[k] % self->classes;
        page_add(out, "<tr><th scope=\"row\">");
        class_label(out, self, i);
        page_add(out, "</th><td>");
        class_label(out, self, j);
        page_print(out, "</td><td class=\"n\">%G</td><td class=\"n\">%.1A</td></tr>\n", self->counts[pairs[k]],
                   self->counts[pairs[k]] / row_sum(self, i));
    }
    page_add(out, "</tbody></table></div>\n");
}

static char *lead_text(const confusion *self, const char *data)
{
    char wrong_text[CLI_SHORT], all_text[CLI_SHORT];
    double right = 0, all = 0;
    for (size_t i = 0; i < self->classes; i++) right += self->counts[i * self->classes + i], all += row_sum(self, i);
    return cli_format("%s of %s%s%s samples are misclassified.",
                      cli_count_text(wrong_text, (int64_t)fmin(all - right, 1e18)),
                      cli_count_text(all_text, (int64_t)fmin(all, 1e18)), data ? " " : "", data ? data : "");
}

static const char map_words[] =
    "<p class=\"soft\">Rows: true class, with its recall at the right. Columns: predicted class.</p>\n";

void report_confusion(report_page *self, const report_run *run)
{
    confusion matrix = {0};
    if (run->confusion && read_matrix(&matrix, run->confusion)) {
        CLI_OWNED(cli_drop) char *lead = lead_text(&matrix, report_text(run->confusion, "data"));
        report_open(self, "confusion", "Confusion", lead, NULL);
        bool table = matrix.classes <= TABLE_CLASSES, mapped = !table && matrix.classes <= MAP_CLASSES;
        if (mapped) page_add(&self->body, map_words);
        if (table || mapped) {
            page_add(&self->body, "<div class=\"scroll\">\n");
            (table ? write_table : write_map)(&self->body, &matrix);
            page_add(&self->body, "</div>\n");
        }
        if (!table) write_pair_table(&self->body, &matrix, mapped ? MOST_PAIRS / 2 : MOST_PAIRS);
        report_close(self);
    }
    free(matrix.counts);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which classes are taken for which: a shaded table, or, where there are too many classes for one, the pairs that are
 * confused most. matrix[i][j] counts samples of class i that were given class j.
 */
#include "report.h"

#include "cli.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_CLASSES = 30, MOST_PAIRS = 20 };

typedef struct confusion {
    size_t classes;
    double *counts; /* (classes, classes) */
    const json_t *labels;
} confusion;

/* False if the event is no square matrix of counts. */
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

static void label(page *out, const confusion *self, size_t i)
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

/* Right answers in one colour, in proportion to their share of the row; mistakes in another, where even a small share
   must be seen: by its square root. */
static void cell(page *out, double count, double share, bool right)
{
    double strength = right ? 0.9 * share : fmin(0.9, 1.4 * sqrt(share));
    if (!(count > 0)) {
        page_add(out, right ? "<td>0</td>" : "<td class=\"zero\">0</td>");
        return;
    }
    page_print(out, "<td%s style=\"background:rgb(var(--%s)/%.3f)\">", strength > 0.55 ? " class=\"strong\"" : "",
               right ? "hit" : "miss", strength);
    page_count(out, count);
    page_add(out, "</td>");
}

static void table_head(page *out, const confusion *self)
{
    page_add(out, "<table class=\"confusion\"><caption>Rows: true class. Columns: class given by the model.</caption>"
                  "<thead><tr><td></td>");
    for (size_t j = 0; j < self->classes; j++) {
        page_add(out, "<th scope=\"col\">");
        label(out, self, j);
        page_add(out, "</th>");
    }
    page_add(out, "<th scope=\"col\" class=\"rim\">recall</th></tr></thead><tbody>\n");
}

static void table_foot(page *out, const confusion *self)
{
    page_add(out, "<tr><th scope=\"row\">precision</th>");
    for (size_t j = 0; j < self->classes; j++) {
        page_add(out, "<td class=\"soft\">");
        page_percent(out, self->counts[j * self->classes + j] / column_sum(self, j), 0);
        page_add(out, "</td>");
    }
    page_add(out, "<td></td></tr>\n</tbody></table>\n");
}

static void whole_table(page *out, const confusion *self)
{
    table_head(out, self);
    for (size_t i = 0; i < self->classes; i++) {
        double sum = row_sum(self, i);
        page_add(out, "<tr><th scope=\"row\">");
        label(out, self, i);
        page_add(out, "</th>");
        for (size_t j = 0; j < self->classes; j++) {
            double count = self->counts[i * self->classes + j];
            cell(out, count, sum > 0 ? count / sum : 0, i == j);
        }
        page_add(out, "<td class=\"rim\">");
        page_percent(out, self->counts[i * self->classes + i] / sum, 1);
        page_add(out, "</td></tr>\n");
    }
    table_foot(out, self);
}

/* ---- The most confused pairs --------------------------------------------------------------------------------- */

/* The largest counts off the diagonal, descending, the first of equals first. Returns how many. */
static size_t worst_pairs(const confusion *self, size_t pairs[MOST_PAIRS])
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

static void pair_table(page *out, const confusion *self)
{
    size_t pairs[MOST_PAIRS], count = worst_pairs(self, pairs);
    page_add(out, "<table><caption>");
    page_count(out, (double)self->classes);
    page_add(out, " classes; the pairs that are confused most.</caption><thead><tr><th scope=\"col\">True class</th>"
                  "<th scope=\"col\">Taken for</th><th scope=\"col\" class=\"n\">Samples</th>"
                  "<th scope=\"col\" class=\"n\">Of the true class</th></tr></thead><tbody>\n");
    for (size_t k = 0; k < count; k++) {
        size_t i = pairs[k] / self->classes, j = pairs[k] % self->classes;
        page_add(out, "<tr><th scope=\"row\">");
        label(out, self, i);
        page_add(out, "</th><td>");
        label(out, self, j);
        page_add(out, "</td><td class=\"n\">");
        page_count(out, self->counts[pairs[k]]);
        page_add(out, "</td><td class=\"n\">");
        page_percent(out, self->counts[pairs[k]] / row_sum(self, i), 1);
        page_add(out, "</td></tr>\n");
    }
    page_add(out, "</tbody></table>\n");
}

static char *lead_text(const confusion *self, const char *data)
{
    char wrong_text[CLI_SHORT], all_text[CLI_SHORT];
    double right = 0, all = 0;
    for (size_t i = 0; i < self->classes; i++) right += self->counts[i * self->classes + i], all += row_sum(self, i);
    return cli_format("%s of %s%s%s samples got the wrong class.",
                      cli_count_text(wrong_text, (int64_t)fmin(all - right, 1e18)),
                      cli_count_text(all_text, (int64_t)fmin(all, 1e18)), data ? " " : "", data ? data : "");
}

void report_confusion(report_page *self, const report_run *run)
{
    confusion matrix = {0};
    if (run->confusion && read_matrix(&matrix, run->confusion)) {
        char *lead = lead_text(&matrix, report_text(run->confusion, "data"));
        report_open(self, "confusion", "Confusion", lead);
        page_add(&self->body, "<div class=\"scroll\">\n");
        if (matrix.classes <= MOST_CLASSES)
            whole_table(&self->body, &matrix);
        else
            pair_table(&self->body, &matrix);
        page_add(&self->body, "</div>\n");
        report_close(self);
        free(lead);
    }
    free(matrix.counts);
}

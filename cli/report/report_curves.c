/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The charts of a training run: losses and accuracies, the spectrum, projection residuals.
 *
 * With the tail t = lambda_{q+1}, preconditioning divides eigenvalue i by lambda_i / t for i <= q. The top q
 * eigenvalues become t; all smaller eigenvalues are unchanged. The largest stable step grows from about 1 / lambda_1 to
 * about 1 / t.
 */
#include "report/report.h"

#include "cli.h"
#include "report/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_ROWS = 24, ENOUGH_EPOCHS = 3 };

/* ---- A chart in the page ------------------------------------------------------------------------------------- */

static void write_value_cell(page *out, double value, bool share)
{
    page_print(out, share ? "<td class=\"n\">%.2A</td>" : "<td class=\"n\">%.4F</td>", value);
}

/* Adds a table of a few points of each series, for screen readers and for copying. */
static void write_chart_table(page *out, const svg_chart *chart, bool alone)
{
    page_add(out, alone ? "" : "<details><summary>Numbers</summary>");
    page_print(out,
               "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Series</th><th scope=\"col\" class=\"n\">%s"
               "</th><th scope=\"col\" class=\"n\">%s</th></tr></thead><tbody>\n",
               chart->x_label, chart->y_label);
    for (size_t k = 0; k < chart->count; k++) {
        const svg_series *series = &chart->series[k];
        for (size_t i = 0; i < svg_kept(series->count, TABLE_ROWS); i++) {
            size_t at = svg_kept_index(i, series->count, TABLE_ROWS);
            page_print(out, "<tr><th scope=\"row\">%s</th><td class=\"n\">%.4F</td>", series->name, series->x[at]);
            write_value_cell(out, series->y[at], chart->percent);
            page_add(out, "</tr>\n");
        }
    }
    page_add(out, "</tbody></table></div>");
    page_add(out, alone ? "\n" : "</details>\n");
}

void report_chart(page *out, const svg_chart *chart, bool caption)
{
    bool drawn = svg_worth_drawing(chart);
    if (svg_points(chart) == 0) return;
    page_add(out, "<figure>");
    if (caption) page_print(out, "<figcaption><h3>%s</h3></figcaption>\n", chart->title);
    if (drawn) svg_legend(out, chart);
    if (drawn) svg_line_chart(out, chart);
    write_chart_table(out, chart, !drawn);
    page_add(out, "</figure>\n");
}

/* ---- Losses and accuracies ----------------------------------------------------------------------------------- */

static double point_value(const report_point *point, size_t offset)
{
    double value;
    memcpy(&value, (const char *)point + offset, sizeof value);
    return value;
}

/* Returns whether the run has enough epochs to draw only one point per epoch, at its end. Points within an epoch show
   running means, which jump when the next epoch starts, so they are drawn only for runs of few epochs. */
static bool has_epochs(const report_run *run)
{
    size_t ends = 0;
    for (size_t i = 0; i < run->count; i++) ends += !run->points[i].inside;
    return ends >= ENOUGH_EPOCHS;
}

/* Returns the points of a curve that have finite coordinates. The caller frees x; y is part of the same allocation. */
static svg_series extract_curve(const report_run *run, const char *name, size_t x_offset, size_t y_offset,
                                double x_unit, bool ends_only)
{
    double *block = cli_allocate(2 * (int64_t)run->count, sizeof *block), *y = block + run->count;
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (ends_only && run->points[i].inside) continue;
        double at = point_value(&run->points[i], x_offset) / x_unit, value = point_value(&run->points[i], y_offset);
        if (isfinite(at) && isfinite(value)) block[count] = at, y[count++] = value;
    }
    return (svg_series){.name = name, .x = block, .y = y, .count = count};
}

/* Returns whether to use a log axis: all values are positive, and the largest is more than 20 times the smallest. */
static bool suits_log_axis(const svg_series *series, size_t count)
{
    double low = INFINITY, high = 0;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < series[k].count; i++) {
            if (!(series[k].y[i] > 0)) return false;
            low = fmin(low, series[k].y[i]), high = fmax(high, series[k].y[i]);
        }
    return high > 20 * low;
}

typedef struct time_axis {
    const char *label;
    size_t offset;
    double unit;
} time_axis;

static time_axis seconds_axis(const report_run *run)
{
    double most = 0;
    for (size_t i = 0; i < run->count; i++)
        if (run->points[i].seconds > most) most = run->points[i].seconds;
    time_axis axis = {"seconds", offsetof(report_point, seconds), 1};
    if (most >= 600) axis = (time_axis){"minutes", axis.offset, 60};
    if (most >= 4 * 3600) axis = (time_axis){"hours", axis.offset, 3600};
    return axis;
}

static void write_curve_chart(page *out, const report_run *run, const char *title, const time_axis *x, bool accuracy)
{
    size_t train = accuracy ? offsetof(report_point, train_accuracy) : offsetof(report_point, train_loss);
    size_t validation =
        accuracy ? offsetof(report_point, validation_accuracy) : offsetof(report_point, validation_loss);
    bool ends_only = has_epochs(run);
    svg_series series[] = {extract_curve(run, "training", x->offset, train, x->unit, ends_only),
                           extract_curve(run, "validation", x->offset, validation, x->unit, ends_only)};
    svg_chart chart = svg_chart_of(title, x->label, accuracy ? "accuracy" : "mean squared error", series, 2);
    chart.percent = accuracy;
    chart.log_y = !accuracy && suits_log_axis(series, 2);
    chart.x_whole = ends_only && x->offset == offsetof(report_point, epoch);
    chart.x_from_zero = true;
    chart.y_from_zero = !accuracy;
    if (svg_worth_drawing(&chart)) report_chart(out, &chart, true);
    free((void *)series[0].x), free((void *)series[1].x);
}

/* ---- One value: a table, not a chart ------------------------------------------------------------------------- */

static void write_value_row(page *out, const char *name, double training, double validation, bool share)
{
    if (!isfinite(training) && !isfinite(validation)) return;
    page_print(out, "<tr><th scope=\"row\">%s</th>", name);
    write_value_cell(out, training, share);
    write_value_cell(out, validation, share);
    page_add(out, "</tr>\n");
}

/* Shows a table of the final values instead of curves, for a solver without epochs or a run of one epoch. */
static void write_final_values(report_page *self, const report_run *run)
{
    const report_point *last = &run->points[run->count - 1];
    CLI_OWNED(page_free) page rows = {0};
    if (run->summary && !isfinite(last->train_loss)) return; /* the headline already shows the final values */
    if (!isfinite(last->epoch)) return;
    write_value_row(&rows, "Mean squared error", last->train_loss, last->validation_loss, false);
    write_value_row(&rows, "Accuracy", last->train_accuracy, last->validation_accuracy, true);
    if (rows.used > 0) {
        report_open(self, "curves", "Result", "The log has only the final values.", "scroll");
        page_add(&self->body, "<table><thead><tr><td></td><th scope=\"col\" class=\"n\">Training</th>"
                              "<th scope=\"col\" class=\"n\">Validation</th></tr></thead><tbody>\n");
        page_add(&self->body, rows.text);
        page_add(&self->body, "</tbody></table>\n");
        report_close(self);
    }
}

/* ---- Curves of a training run -------------------------------------------------------------------------------- */

/* Returns the epoch axis. The solver cg reports its steps as epochs, so its axis shows steps. */
static time_axis epochs_axis(const report_run *run)
{
    bool steps = mercer_solver_kind_of(report_text(run->plan, "solver")) == MERCER_SOLVER_STEPS;
    return (time_axis){steps ? "conjugate gradient steps" : "epochs", offsetof(report_point, epoch), 1};
}

void report_curves(report_page *self, const report_run *run)
{
    time_axis epochs = epochs_axis(run), seconds = seconds_axis(run);
    CLI_OWNED(page_free) page charts = {0};
    if (run->count == 0) return;
    write_curve_chart(&charts, run, "Loss over epochs", &epochs, false);
    write_curve_chart(&charts, run, "Loss over time", &seconds, false);
    write_curve_chart(&charts, run, "Accuracy over epochs", &epochs, true);
    write_curve_chart(&charts, run, "Accuracy over time", &seconds, true);
    if (charts.used > 0) {
        report_open(self, "curves", "Learning curves",
                    "Training values are means over the samples of an epoch, each predicted by the model at that "
                    "time.",
                    "grid2");
        page_add(&self->body, charts.text);
        report_close(self);
    } else {
        write_final_values(self, run);
    }
}

/* ---- Spectrum ------------------------------------------------------------------------------------------------ */

static void write_spectrum_note(page *out, double first, double tail, size_t q)
{
    page_print(out,
               "<p class=\"soft\">The top %G eigenvalues of the sample’s kernel matrix are reduced to the tail "
               "λ<sub>q+1</sub> = %.3F. The largest, %.3F, no longer limits the step size, which can be about %.3F "
               "times as large.</p>\n",
               (double)q, tail, first, first / tail);
}

void report_spectrum(report_page *self, const report_run *run)
{
    const json_t *values = json_object_get(run->spectrum, "values");
    double tail = report_number(run->spectrum, "tail"), eigenpairs = report_number(run->spectrum, "eigenpairs");
    size_t count = json_array_size(values), q = eigenpairs >= 0 && eigenpairs < 1e9 ? (size_t)eigenpairs : count - 1;
    if (count == 0) return;
    double *before = report_values(values, count), *x = cli_allocate(2 * (int64_t)count, sizeof *x), *after = x + count;
    for (size_t i = 0; i < count; i++) {
        x[i] = (double)(i + 1);
        after[i] = isfinite(tail) && before[i] > tail ? tail : before[i];
    }
    svg_series series[] = {{"before", x, before, count, false}, {"after preconditioning", x, after, count, false}};
    svg_chart chart =
        svg_chart_of("Eigenvalues of K(Xₛ, Xₛ) / s", "index", "eigenvalue", series, isfinite(tail) ? 2 : 1);
    chart.log_x = count >= 20;
    chart.log_y = true;
    if (svg_worth_drawing(&chart)) {
        report_open(self, "spectrum", "Spectrum", NULL, "grid2");
        report_chart(&self->body, &chart, true);
        if (before[0] > 0 && tail > 0) write_spectrum_note(&self->body, before[0], tail, q);
        report_close(self);
    }
    free(x), free(before);
}

/* ---- Projection residuals ------------------------------------------------------------------------------------ */

void report_residuals(report_page *self, const report_run *run)
{
    time_axis epochs = epochs_axis(run);
    svg_series series =
        extract_curve(run, "residual", epochs.offset, offsetof(report_point, projection_residual), 1, false);
    svg_chart chart =
        svg_chart_of("Relative residual of the last projection", epochs.label, "|h − K(Z, Z) θ| / |h|", &series, 1);
    chart.log_y = chart.x_from_zero = true;
    if (svg_points(&chart) > 0) {
        report_open(self, "residuals", "Projection", NULL, "grid2");
        if (svg_worth_drawing(&chart))
            report_chart(&self->body, &chart, true);
        else
            page_print(&self->body, "<p>Relative residual of the last projection: %.3F</p>\n", series.y[0]);
        page_add(&self->body,
                 "<p class=\"soft\">Residual of the projections onto the span of the centers, relative to their "
                 "right-hand side; 0 is exact. A carried residual is added to the next projection.</p>\n");
        report_close(self);
    }
    free((void *)series.x);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predictions of a regression compared with the targets: metrics for each output, a scatter plot of the sampled pairs
 * for the first outputs, and the residuals (true - predicted) over the predictions.
 */
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PLOTS = 4, MOST_ROWS = 100 };

/* Appends the name of output k, such as "output 3" if it has none. */
static void write_output_name(page *out, const json_t *output, size_t k)
{
    const char *name = report_text(output, "name");
    if (name)
        page_escape(out, name);
    else
        page_print(out, "output %zu", k + 1);
}

static void write_metric_table(page *out, const json_t *outputs)
{
    static const char *const fields[] = {"r2", "rmse", "mae"};
    page_add(out,
             "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Output</th><th scope=\"col\" class=\"n\">R²"
             "</th><th scope=\"col\" class=\"n\">RMSE</th><th scope=\"col\" class=\"n\">MAE</th></tr></thead>"
             "<tbody>\n");
    for (size_t k = 0; k < json_array_size(outputs) && k < MOST_ROWS; k++) {
        const json_t *output = json_array_get(outputs, k);
        page_add(out, "<tr><th scope=\"row\">");
        write_output_name(out, output, k);
        page_add(out, "</th>");
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            page_print(out, "<td class=\"n\">%.4F</td>", report_number(output, fields[i]));
        page_add(out, "</tr>\n");
    }
    page_add(out, "</tbody></table></div>\n");
}

/* Adds the scatter plot of output k, and the plot of its residuals if the model has only one output. */
static void write_plots(page *out, const json_t *output, size_t k, bool alone)
{
    const json_t *truth = json_object_get(output, "true"), *given = json_object_get(output, "predicted");
    size_t count = json_array_size(truth);
    if (count == 0 || count != json_array_size(given)) return;
    double *y = report_values(truth, count), *f = report_values(given, count), *miss = report_values(truth, count);
    char number[32];
    snprintf(number, sizeof number, "output %zu", k + 1);
    const char *name = report_text(output, "name") ? report_text(output, "name") : number;
    for (size_t i = 0; i < count; i++) miss[i] = y[i] - f[i];
    svg_series pairs = {"samples", y, f, count, false}, misses = {"samples", f, miss, count, false};
    svg_chart against = svg_chart_of(alone ? "Predicted against true" : name, "true", "predicted", &pairs, 1);
    svg_chart left = svg_chart_of("Residuals", "predicted", "true − predicted", &misses, 1);
    against.dots = against.tall = left.dots = left.tall = true;
    against.diagonal = left.zero = true;
    report_chart(out, &against, true);
    if (alone) report_chart(out, &left, true);
    free(y), free(f), free(miss);
}

static void describe_sample(page *out, const json_t *event, size_t sampled)
{
    const char *data = report_text(event, "data");
    double rows = report_number(event, "rows");
    page_print(out, "%G", (double)sampled);
    if (rows > (double)sampled) page_print(out, " of %G", rows);
    page_add(out, " ");
    page_add(out, data ? data : ""); /* do not escape here: report_open escapes its argument `lead` */
    page_print(out, "%ssamples%s. Predictions on the dashed line are exact.", data ? " " : "",
               rows > (double)sampled ? ", evenly spaced" : "");
}

void report_predictions(report_page *self, const report_run *run)
{
    const json_t *outputs = json_object_get(run->predictions, "outputs");
    size_t count = json_array_size(outputs);
    CLI_OWNED(page_free) page lead = {0};
    if (count == 0) return;
    describe_sample(&lead, run->predictions, json_array_size(json_object_get(json_array_get(outputs, 0), "true")));
    report_open(self, "predictions", "Predictions", lead.text, NULL);
    if (count > 1) write_metric_table(&self->body, outputs);
    page_add(&self->body, "<div class=\"grid2\">\n");
    for (size_t k = 0; k < count && k < MOST_PLOTS; k++)
        write_plots(&self->body, json_array_get(outputs, k), k, count == 1);
    page_add(&self->body, "</div>\n");
    report_close(self);
}

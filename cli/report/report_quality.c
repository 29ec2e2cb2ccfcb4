/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quality of class probabilities: calibration (accuracy of predictions by confidence) and ROC curves (true and false
 * positive rates of a class by threshold).
 */
#include "report/report.h"

#include "cli.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_CURVES = SVG_COLORS };

/* Returns a series with the lists `x` and `y` of an event; an empty series if their lengths differ. Release with
   free_series. */
static svg_series series_of(const json_t *object, const char *x, const char *y, const char *name)
{
    const json_t *left = json_object_get(object, x), *right = json_object_get(object, y);
    size_t count = json_array_size(left);
    if (count == 0 || count != json_array_size(right)) return (svg_series){.name = name};
    return (svg_series){name, report_values(left, count), report_values(right, count), count, false};
}

static void free_series(const svg_series *series)
{
    free((void *)series->x);
    free((void *)series->y);
}

static void write_calibration_chart(page *out, const json_t *event)
{
    svg_series series =
        series_of(json_object_get(event, "calibration"), "confidence", "accuracy", "share of correct predictions");
    svg_chart chart =
        svg_chart_of("Calibration", "probability of the predicted class", "share of correct predictions", &series, 1);
    chart.diagonal = chart.tall = true;
    if (series.count > 0) report_chart(out, &chart, true);
    free_series(&series);
}

static void write_roc_chart(page *out, const json_t *curves)
{
    svg_series series[MOST_CURVES];
    char *names[MOST_CURVES];
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(curves) && count < MOST_CURVES; i++) {
        const json_t *curve = json_array_get(curves, i);
        const char *name = report_text(curve, "class");
        names[count] = cli_format("%s: AUC %.4f", name ? name : "?", report_number(curve, "auc"));
        series[count] = series_of(curve, "false_positive", "true_positive", names[count]);
        count++;
    }
    svg_chart chart = svg_chart_of("ROC", "false positive rate", "true positive rate", series, count);
    chart.x_from_zero = chart.y_from_zero = chart.diagonal = chart.tall = true;
    if (count > 0) report_chart(out, &chart, true);
    for (size_t i = 0; i < count; i++) {
        free_series(&series[i]);
        free(names[i]);
    }
}

void report_quality(report_page *self, const report_run *run)
{
    const json_t *roc = json_object_get(run->curves, "roc"), *calibration = json_object_get(run->curves, "calibration");
    double error = report_number(calibration, "error");
    const char *data = report_text(run->curves, "data");
    if (json_array_size(roc) == 0 && json_array_size(json_object_get(calibration, "confidence")) == 0) return;
    char *lead =
        isfinite(error)
            ? cli_format("%s samples. First chart: perfect calibration is on the dashed line; the mean deviation is "
                         "%.4f. Second chart: random guessing is on the dashed line.",
                         data ? data : "the", error)
            : NULL;
    report_open(self, "probabilities", "Probabilities", lead, "grid2");
    write_calibration_chart(&self->body, run->curves);
    write_roc_chart(&self->body, roc);
    report_close(self);
    free(lead);
}

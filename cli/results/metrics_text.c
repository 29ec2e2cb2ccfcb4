/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the metrics of the library (mercer_metrics) as lines and tables, and returns them as JSON and events. */
#include "results/results.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED_OUTPUTS = 100, CURVE_POINTS = 200, CURVE_CLASSES = 6, PAIRS = 2000 };

/* ---- The list of metrics ----------------------------------------------------------------------------------------- */

/* The metrics in output order. A metric that does not apply to the task is not finite. If `title` is NULL, the metric
   is only in the JSON output. */
static const struct {
    const char *name, *title;
    size_t offset;
    int percent;
} measures[] = {
    {"accuracy", "accuracy", offsetof(mercer_metrics, accuracy), 1},
    {"mse", "mse", offsetof(mercer_metrics, mse), 0},
    {"rmse", "rmse", offsetof(mercer_metrics, rmse), 0},
    {"mae", "mae", offsetof(mercer_metrics, mae), 0},
    {"r2", "r2", offsetof(mercer_metrics, r2), 0},
    {"error_median", "|error|, median", offsetof(mercer_metrics, error_median), 0},
    {"error_90", "|error|, 90 %", offsetof(mercer_metrics, error_90), 0},
    {"error_99", "|error|, 99 %", offsetof(mercer_metrics, error_99), 0},
    {"error_max", "|error|, largest", offsetof(mercer_metrics, error_max), 0},
    {"auc", "auc", offsetof(mercer_metrics, auc), 0},
    {"log_loss", "log loss", offsetof(mercer_metrics, log_loss), 0},
    {"brier", "brier", offsetof(mercer_metrics, brier), 0},
    {"f1", "f1", offsetof(mercer_metrics, f1), 0},
    {"calibration_error", "calibration error", offsetof(mercer_metrics, calibration_error), 0},
    {"temperature", "temperature", offsetof(mercer_metrics, temperature), 0},
    {"curvature", NULL, offsetof(mercer_metrics, curvature), 0},
    {"interval", NULL, offsetof(mercer_metrics, interval), 0},
    {"coverage", NULL, offsetof(mercer_metrics, coverage), 1},
    {"interval_size", NULL, offsetof(mercer_metrics, interval_size), 0},
    {"interval_score", "interval score", offsetof(mercer_metrics, interval_score), 0},
};
enum { MEASURES = sizeof measures / sizeof measures[0] };

void cli_metrics_clear(mercer_metrics *metrics)
{
    const double none = (double)NAN;
    for (int k = 0; k < MEASURES; k++) memcpy((char *)metrics + measures[k].offset, &none, sizeof none);
}

static double metric_value(const mercer_metrics *metrics, int k)
{
    double value;
    memcpy(&value, (const char *)metrics + measures[k].offset, sizeof value);
    return value;
}

/* Omits metrics that do not apply. For constant targets, r2 is null. */
json_t *cli_metrics_json(const mercer_metrics *metrics)
{
    json_t *object = json_object();
    int values = metrics->task == MERCER_TASK_REGRESSION;
    for (int k = 0; k < MEASURES; k++) {
        double value = metric_value(metrics, k);
        if (isfinite(value) || (values && strcmp(measures[k].name, "r2") == 0))
            json_object_set_new(object, measures[k].name, cli_json_real(value));
    }
    return object;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *count_json(double count)
{
    return count == floor(count) && count < 1e15 ? json_integer((json_int_t)count) : cli_json_real(count);
}

json_t *cli_confusion_json(const double *matrix, int64_t classes)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < classes; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < classes; j++) json_array_append_new(row, count_json(matrix[i * classes + j]));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* Returns the values rounded to seven digits, which are enough for a plot. */
static json_t *list_json(const double *values, int64_t count)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++) {
        char text[CLI_SHORT];
        snprintf(text, sizeof text, "%.7g", values[i]);
        json_array_append_new(array, cli_json_real(strtod(text, NULL)));
    }
    return array;
}

/* Adds the points of a curve to `object` as two lists; returns 0 if the curve has no points. */
static int add_curve(json_t *object, const mercer_evaluation *evaluation, const char *curve, int64_t index,
                     const char *x_name, const char *y_name)
{
    double *x = cli_allocate(2 * (int64_t)PAIRS, sizeof *x), *y = x + PAIRS;
    int64_t capacity = strcmp(curve, "predictions") == 0 ? PAIRS : CURVE_POINTS, count = 0;
    mercer_status status = mercer_evaluation_curve(evaluation, curve, index, x, y, capacity, &count);
    int have = status == MERCER_OK && count > 0;
    if (have) {
        json_object_set_new(object, x_name, list_json(x, count));
        json_object_set_new(object, y_name, list_json(y, count));
    }
    free(x);
    return have;
}

static mercer_output_metrics output_metrics(const mercer_evaluation *evaluation, int64_t index)
{
    mercer_output_metrics one = MERCER_INIT(mercer_output_metrics);
    mercer_evaluation_output(evaluation, &one, index);
    return one;
}

json_t *cli_predictions_json(const cli_metrics *metrics, const char *data)
{
    json_t *outputs = json_array();
    for (int64_t j = 0; j < metrics->all.outputs && j < LISTED_OUTPUTS; j++) {
        mercer_output_metrics one = output_metrics(metrics->evaluation, j);
        json_t *output = json_pack("{so so so}", "r2", cli_json_real(one.r2), "rmse", cli_json_real(one.rmse), "mae",
                                   cli_json_real(one.mae));
        add_curve(output, metrics->evaluation, "predictions", j, "true", "predicted");
        json_array_append_new(outputs, output);
    }
    return json_pack("{ss sI so}", "data", data, "rows", (json_int_t)metrics->all.rows, "outputs", outputs);
}

/* Returns a name as JSON; "?" if it is not valid UTF-8. */
static json_t *name_json(const char *name)
{
    json_t *text = json_string(name);
    return text != NULL ? text : json_string("?");
}

json_t *cli_curves_json(const cli_metrics *metrics, const char *const *labels, const char *data)
{
    const mercer_metrics *all = &metrics->all;
    json_t *object = json_pack("{ss}", "data", data), *roc = json_array(), *calibration = json_object();
    int64_t first = all->outputs == 2 ? 1 : 0; /* two classes: only the curve of the second class */
    for (int64_t j = first; j < all->outputs && j < CURVE_CLASSES; j++) {
        json_t *curve = json_object();
        mercer_output_metrics one = output_metrics(metrics->evaluation, j);
        json_object_set_new(curve, "class", name_json(labels[j]));
        json_object_set_new(curve, "auc", cli_json_real(one.auc));
        if (add_curve(curve, metrics->evaluation, "roc", j, "false_positive", "true_positive"))
            json_array_append_new(roc, curve);
        else
            json_decref(curve);
    }
    add_curve(calibration, metrics->evaluation, "calibration", 0, "confidence", "accuracy");
    json_object_set_new(calibration, "error", cli_json_real(all->calibration_error));
    json_object_set_new(object, "roc", roc);
    json_object_set_new(object, "calibration", calibration);
    return object;
}

/* Returns the metrics of each class or output. */
static json_t *each_json(const cli_metrics *metrics, const char *const *names)
{
    json_t *list = json_array();
    int classes = metrics->all.task == MERCER_TASK_CLASSIFICATION;
    for (int64_t j = 0; j < metrics->all.outputs; j++) {
        mercer_output_metrics m = output_metrics(metrics->evaluation, j);
        json_t *one = json_object();
        if (names != NULL) json_object_set_new(one, "name", name_json(names[j]));
        if (classes) {
            json_object_set_new(one, "count", count_json(m.weight));
            json_object_set_new(one, "precision", cli_json_real(m.precision));
            json_object_set_new(one, "recall", cli_json_real(m.recall));
            json_object_set_new(one, "f1", cli_json_real(m.f1));
            json_object_set_new(one, "auc", cli_json_real(m.auc));
        } else {
            json_object_set_new(one, "r2", cli_json_real(m.r2));
            json_object_set_new(one, "rmse", cli_json_real(m.rmse));
            json_object_set_new(one, "mae", cli_json_real(m.mae));
            json_object_set_new(one, "error_90", cli_json_real(m.error_90));
        }
        if (isfinite(m.coverage)) json_object_set_new(one, "coverage", cli_json_real(m.coverage));
        if (isfinite(m.interval_score)) json_object_set_new(one, "interval_score", cli_json_real(m.interval_score));
        json_array_append_new(list, one);
    }
    return list;
}

/* ---- Text output ------------------------------------------------------------------------------------------------- */

static void print_confusion(const cli_metrics *metrics, const char *const *labels, FILE *file)
{
    int64_t c = metrics->all.outputs;
    const double *matrix = mercer_evaluation_confusion(metrics->evaluation);
    CLI_OWNED(cli_drop) char *alignment = cli_allocate(c + 2, 1);
    memset(alignment, 'r', (size_t)c + 1);
    cli_table *table = cli_table_new((int)c + 1, alignment);
    cli_table_cell(table, "true \\ predicted");
    for (int64_t j = 0; j < c; j++) cli_table_cell(table, "%s", labels[j]);
    for (int64_t i = 0; i < c; i++) {
        cli_table_cell(table, "%s", labels[i]);
        for (int64_t j = 0; j < c; j++) cli_table_cell(table, "%.10g", matrix[i * c + j]);
    }
    cli_table_print(table, file);
}

/* Adds a cell with four significant digits, or four decimals if `fixed`; "-" if not finite. */
static void number_cell(cli_table *table, double value, int fixed)
{
    if (isfinite(value))
        cli_table_cell(table, fixed ? "%.4f" : "%.4g", value);
    else
        cli_table_cell(table, "-");
}

/* Adds a cell with a fraction as a percentage; "-" if not finite. */
static void share_cell(cli_table *table, double share)
{
    if (isfinite(share))
        cli_table_cell(table, "%.2f", 100 * share);
    else
        cli_table_cell(table, "-");
}

static void print_each(const cli_metrics *metrics, const char *const *names)
{
    static const char *const of_classes[] = {"class", "count", "precision", "recall", "f1", "auc"};
    static const char *const of_values[] = {"output", "r2", "rmse", "mae", "|error|, 90 %", "coverage"};
    int classes = metrics->all.task == MERCER_TASK_CLASSIFICATION;
    cli_table *table = cli_table_new(6, "lrrrrr");
    for (int k = 0; k < 6; k++) cli_table_cell(table, "%s", (classes ? of_classes : of_values)[k]);
    for (int64_t j = 0; j < metrics->all.outputs; j++) {
        mercer_output_metrics m = output_metrics(metrics->evaluation, j);
        if (names != NULL)
            cli_table_cell(table, "%s", names[j]);
        else
            cli_table_cell(table, "%" PRId64, j);
        if (classes) {
            cli_table_cell(table, "%.10g", m.weight);
            share_cell(table, m.precision);
            share_cell(table, m.recall);
            share_cell(table, m.f1);
            number_cell(table, m.auc, 1);
        } else {
            number_cell(table, m.r2, 1);
            number_cell(table, m.rmse, 0);
            number_cell(table, m.mae, 0);
            number_cell(table, m.error_90, 0);
            share_cell(table, m.coverage);
        }
    }
    printf("\n");
    cli_table_print(table, stdout);
}

/* Returns the names of the classes or outputs; NULL if they have none. */
static const char *const *output_names(const cli_metrics *metrics, const mercer_model *model)
{
    mercer_model_info info = cli_model_info(model);
    int classes = metrics->all.task == MERCER_TASK_CLASSIFICATION;
    if ((classes ? info.label_count : info.target_count) != metrics->all.outputs) return NULL;
    return classes ? info.labels : info.target_names;
}

static int show_json(const cli_values *v, const cli_metrics *m, const char *const *names)
{
    json_t *object = cli_metrics_json(&m->all);
    json_object_set_new(object, "rows", json_integer(m->all.rows));
    if (m->all.weight != (double)m->all.rows) json_object_set_new(object, "weight", cli_json_real(m->all.weight));
    if (m->all.ranked_rows < m->all.rows) json_object_set_new(object, "ranked_rows", json_integer(m->all.ranked_rows));
    json_object_set_new(object, "seconds", cli_json_real(m->seconds));
    if (m->all.outputs > 1 && cli_flag(v, "each")) json_object_set_new(object, "each", each_json(m, names));
    if (m->all.task == MERCER_TASK_CLASSIFICATION && cli_flag(v, "confusion")) {
        json_t *labels = json_array();
        for (int64_t i = 0; i < m->all.outputs; i++) json_array_append_new(labels, name_json(names[i]));
        json_object_set_new(object, "labels", labels);
        json_object_set_new(object, "confusion",
                            cli_confusion_json(mercer_evaluation_confusion(m->evaluation), m->all.outputs));
    }
    return cli_print_answer(object);
}

int cli_show_metrics(const cli_values *v, const cli_metrics *m, const mercer_model *model)
{
    const char *const *names = output_names(m, model);
    char rows[CLI_SHORT], seconds[CLI_SHORT];
    int calibrated = cli_model_info(model).calibrated, classes = m->all.task == MERCER_TASK_CLASSIFICATION;
    if (cli_flag(v, "json")) return show_json(v, m, names);
    for (int k = 0; k < MEASURES; k++) {
        double value = metric_value(&m->all, k);
        if (measures[k].title == NULL || !isfinite(value)) continue;
        const char *note = strcmp(measures[k].name, "temperature") == 0 && !calibrated ? " (not calibrated)" : "";
        printf(measures[k].percent ? "%-17s %.2f %%\n" : "%-17s %.6g%s\n", measures[k].title,
               measures[k].percent ? 100 * value : value, note);
    }
    if (isfinite(m->all.coverage))
        printf("coverage          %.2f %% of %s are in their %.6g %% %s, %s %.6g\n", 100 * m->all.coverage,
               classes ? "classes" : "targets", 100 * m->all.interval, classes ? "set" : "interval",
               classes ? "mean size" : "mean width", m->all.interval_size);
    printf("rows              %s in %s\n", cli_count_text(rows, m->all.rows), cli_seconds_text(seconds, m->seconds));
    if (m->all.ranked_rows < m->all.rows && m->all.weight == (double)m->all.rows)
        printf("                  rank metrics (such as AUC) from %s of them, evenly spaced\n",
               cli_count_text(rows, m->all.ranked_rows));
    if (m->all.outputs > 1 && cli_flag(v, "each")) print_each(m, names);
    if (classes && cli_flag(v, "confusion")) {
        printf("\n");
        print_confusion(m, names, stdout);
    }
    return CLI_OK;
}

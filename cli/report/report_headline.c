/* SPDX-License-Identifier: BSD-3-Clause */
/* The top of a report: what was trained on what, with which result, and what a reader must know about the log. */
#include "report/report.h"

#include <math.h>
#include <string.h>

/* ---- The sentence -------------------------------------------------------------------------------------------- */

static void say_data(page *out, const report_run *run)
{
    const json_t *data = json_object_get(run->start, "data");
    const char *task = report_text(data, "task"), *preprocess = report_text(run->start, "preprocess");
    double rows = report_number(data, "rows"), features = report_number(data, "features");
    double outputs = report_number(data, "outputs");
    if (!isfinite(rows)) return;
    page_add(out, ", trained on ");
    page_count(out, rows);
    page_add(out, rows == 1 ? " sample" : " samples");
    if (isfinite(features)) {
        page_add(out, " of ");
        page_count(out, features);
        page_add(out, features == 1 ? " feature" : " features");
    }
    if (report_text(data, "dtype")) {
        page_add(out, " (");
        page_escape(out, report_text(data, "dtype"));
        page_add(out, ")");
    }
    if (isfinite(outputs)) {
        bool classes = task && strcmp(task, "classification") == 0;
        page_add(out, classes ? " in " : " with ");
        page_count(out, outputs);
        page_add(out, classes ? " classes" : outputs == 1 ? " output" : " outputs");
    }
    if (preprocess && strcmp(preprocess, "none") != 0) {
        page_add(out, ", preprocessed by <code>");
        page_escape(out, preprocess);
        page_add(out, "</code>");
    }
}

static void say_model(page *out, const report_run *run)
{
    const json_t *centers = json_object_get(run->start, "centers");
    const char *kernel = report_text(run->start, "kernel"), *method = report_text(centers, "method");
    double count = report_number(centers, "count");
    if (!kernel && !isfinite(count)) return;
    page_add(out, "<p class=\"lead\">A kernel model");
    if (kernel) {
        page_add(out, " <code>");
        page_escape(out, kernel);
        page_add(out, "</code>");
    }
    if (isfinite(count)) {
        page_add(out, " with ");
        page_count(out, count);
        page_add(out, count == 1 ? " center" : " centers");
    }
    if (method) {
        page_add(out, " (");
        page_escape(out, method);
        page_add(out, ")");
    }
    say_data(out, run);
    page_add(out, ".</p>\n");
}

/* ---- The cards ----------------------------------------------------------------------------------------------- */

static void open_card(page *out, const char *name)
{
    page_add(out, "<div><dt>");
    page_add(out, name);
    page_add(out, "</dt><dd>");
}

static void close_card(page *out, const char *small)
{
    if (small) {
        page_add(out, "<small>");
        page_escape(out, small);
        page_add(out, "</small>");
    }
    page_add(out, "</dd></div>\n");
}

static void count_card(page *out, const char *name, double value, const char *small)
{
    if (!isfinite(value)) return;
    open_card(out, name);
    page_count(out, value);
    close_card(out, small);
}

/* The last value of a curve that is known. */
static double last_of(const report_run *run, size_t offset)
{
    for (size_t i = run->count; i > 0; i--) {
        double value;
        memcpy(&value, (const char *)&run->points[i - 1] + offset, sizeof value);
        if (isfinite(value)) return value;
    }
    return NAN;
}

typedef struct measure {
    const char *field;
    size_t offset;
    const char *name;
} measure;

/* Shows the first measure that the summary or the curves know; false if none is known. */
static bool result_card(page *out, const report_run *run, const measure *measures, size_t count, bool percent)
{
    for (size_t i = 0; i < count; i++) {
        double value = report_number(run->summary, measures[i].field);
        if (!isfinite(value) && measures[i].offset) value = last_of(run, measures[i].offset);
        if (!isfinite(value)) continue;
        open_card(out, measures[i].name);
        if (percent)
            page_percent(out, value, 2);
        else
            page_number(out, value, 4);
        close_card(out, NULL);
        return true;
    }
    return false;
}

/* A regression is measured by the share of the targets' variance that it explains, and by errors in their unit. */
static void regression_cards(page *out, const report_run *run)
{
    double mae = report_number(run->summary, "mae");
    open_card(out, "R²");
    page_number(out, report_number(run->summary, "r2"), 4);
    close_card(out, "of the variance is explained");
    open_card(out, "RMSE");
    page_number(out, report_number(run->summary, "rmse"), 4);
    if (isfinite(mae)) {
        page_add(out, "<small>mean absolute error ");
        page_number(out, mae, 4);
        page_add(out, "</small>");
    }
    close_card(out, NULL);
}

static void result_cards(page *out, const report_run *run)
{
    static const measure accuracies[] = {
        {"accuracy", 0, "Accuracy"},
        {"validation_accuracy", offsetof(report_point, validation_accuracy), "Validation accuracy"},
        {"train_accuracy", offsetof(report_point, train_accuracy), "Training accuracy"}};
    static const measure losses[] = {{"mse", 0, "Mean squared error"},
                                     {"validation_loss", offsetof(report_point, validation_loss), "Validation loss"},
                                     {"train_loss", offsetof(report_point, train_loss), "Training loss"}};
    result_card(out, run, accuracies, 3, true);
    if (isfinite(report_number(run->summary, "r2")))
        regression_cards(out, run);
    else
        result_card(out, run, losses, 3, false);
}

static void cost_cards(page *out, const report_run *run)
{
    double seconds = report_number(run->summary, "seconds"), bytes = report_number(run->summary, "peak_bytes");
    double flops = report_number(run->summary, "flops");
    if (!isfinite(seconds)) seconds = last_of(run, offsetof(report_point, seconds));
    if (isfinite(seconds)) {
        open_card(out, "Time");
        page_seconds(out, seconds);
        close_card(out, "in all");
    }
    if (isfinite(bytes)) {
        open_card(out, "Peak memory");
        page_bytes(out, bytes);
        close_card(out, "held by training");
    }
    if (isfinite(flops)) {
        open_card(out, "Work");
        page_flops(out, flops);
        if (seconds > 0) {
            page_add(out, "<small>");
            page_flops(out, flops / seconds);
            page_add(out, "/s</small>");
        }
        close_card(out, NULL);
    }
}

/* ---- Notes --------------------------------------------------------------------------------------------------- */

static void note(page *out, const char *text)
{
    page_add(out, "<p class=\"note\">");
    page_add(out, text);
    page_add(out, "</p>\n");
}

static void say_stopped(page *out, const report_run *run)
{
    const json_t *stopped = json_object_get(run->summary, "stopped");
    double code = json_is_number(stopped) ? json_number_value(stopped) : 0;
    const char *text = json_string_value(stopped);
    if (code == 1 || (text && strstr(text, "early")))
        note(out, "Training ended early: the validation result had stopped improving.");
    else if (code != 0 || json_is_true(stopped) || (text && strstr(text, "interrupt")))
        note(out, "Training was stopped before its last epoch; the model keeps the best weights so far.");
}

static void notes(page *out, const report_run *run)
{
    if (run->torn) note(out, "The last line of the log is incomplete and was left out: the run was cut off there.");
    if (run->count > 0 && !run->summary)
        note(out, "The log has no summary: the run was interrupted, or is still going.");
    if (run->runs > 1) {
        page_add(out, "<p class=\"note\">The log holds ");
        page_count(out, (double)run->runs);
        page_add(out, " runs. This page shows the last one, which begins at line ");
        page_count(out, (double)run->first);
        page_add(out, ".</p>\n");
    }
    say_stopped(out, run);
}

void report_headline(report_page *self, const report_run *run)
{
    const json_t *data = json_object_get(run->start, "data"), *centers = json_object_get(run->start, "centers");
    const char *title = report_text(run->start, "title"), *version = report_text(run->start, "version");
    const char *text = report_text(run->start, "text");
    page *out = &self->header;
    page_add(out, "<header>\n<p class=\"brand\">Mercer");
    if (version) {
        page_add(out, " ");
        page_escape(out, version);
    }
    page_add(out, "</p>\n<h1>");
    page_escape(out, title ? title : "Training report");
    page_add(out, "</h1>\n");
    if (text) {
        page_add(out, "<p>");
        page_escape(out, text);
        page_add(out, "</p>\n");
    }
    say_model(out, run);
    notes(out, run);
    page_add(out, "<dl class=\"cards\">\n");
    result_cards(out, run);
    count_card(out, "Samples", report_number(data, "rows"), "n");
    count_card(out, "Centers", report_number(centers, "count"), "p");
    count_card(out, "Features", report_number(data, "features"), "d");
    cost_cards(out, run);
    page_add(out, "</dl>\n");
}

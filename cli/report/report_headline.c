/* SPDX-License-Identifier: BSD-3-Clause */
/* The top of a report: model, data, results, and notes about the log. */
#include "report/report.h"

#include <math.h>
#include <string.h>

/* ---- The sentence -------------------------------------------------------------------------------------------- */

static void write_data(page *out, const report_run *run)
{
    const json_t *data = json_object_get(run->start, "data");
    const char *task = report_text(data, "task"), *preprocess = report_text(run->start, "preprocess");
    double rows = report_number(data, "rows"), features = report_number(data, "features");
    double outputs = report_number(data, "outputs");
    if (!isfinite(rows)) return;
    page_print(out, ", trained on %G sample%s", rows, rows == 1 ? "" : "s");
    if (isfinite(features)) page_print(out, " of %G feature%s", features, features == 1 ? "" : "s");
    if (report_text(data, "dtype")) page_print(out, " (%s)", report_text(data, "dtype"));
    bool classes = task && strcmp(task, "classification") == 0;
    if (isfinite(outputs) && classes) page_print(out, " in %G classes", outputs);
    if (isfinite(outputs) && !classes) page_print(out, " with %G output%s", outputs, outputs == 1 ? "" : "s");
    if (preprocess && strcmp(preprocess, "none") != 0) page_print(out, ", preprocessed by <code>%s</code>", preprocess);
}

static void write_model(page *out, const report_run *run)
{
    const json_t *centers = json_object_get(run->start, "centers");
    const char *kernel = report_text(run->start, "kernel"), *method = report_text(centers, "method");
    double count = report_number(centers, "count");
    if (!kernel && !isfinite(count)) return;
    page_add(out, "<p class=\"lead\">A kernel model");
    if (kernel) page_print(out, " <code>%s</code>", kernel);
    if (isfinite(count)) page_print(out, " with %G center%s", count, count == 1 ? "" : "s");
    if (method) page_print(out, " (%s)", method);
    write_data(out, run);
    page_add(out, ".</p>\n");
}

/* ---- The cards ----------------------------------------------------------------------------------------------- */

/* Adds a card with a number formatted by `show` and a small text below; nothing if the number is unknown. */
static void write_card(page *out, const char *name, double value, void (*show)(page *out, double value),
                       const char *small)
{
    if (!isfinite(value)) return;
    page_print(out, "<div><dt>%s</dt><dd>", name);
    show(out, value);
    page_print(out, "<small>%s</small></dd></div>\n", small);
}

/* Returns the last known value of a curve. */
static double last_known_value(const report_run *run, size_t offset)
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

/* Returns the scores of held-out rows, or the summary if the log has no such scores. */
static const json_t *scores_of(const report_run *run)
{
    const json_t *held = json_object_get(run->summary, "held_out");
    return json_is_object(held) ? held : run->summary;
}

/* Writes the number and kind of the held-out rows that were scored; nothing for other scores. */
static void write_score_rows(page *out, const report_run *run)
{
    const json_t *held = json_object_get(run->summary, "held_out");
    if (report_text(held, "how") == NULL) return;
    page_print(out, "<small>of %G rows (%s)</small>", report_number(held, "rows"), report_text(held, "how"));
}

/* Shows the first of `measures` that the summary or the curves contain. */
static void write_result_card(page *out, const report_run *run, const measure *measures, size_t count, bool percent)
{
    for (size_t i = 0; i < count; i++) {
        double value = report_number(scores_of(run), measures[i].field);
        int scored = isfinite(value);
        if (!scored && measures[i].offset) value = last_known_value(run, measures[i].offset);
        if (!isfinite(value)) continue;
        page_print(out, percent ? "<div><dt>%s</dt><dd>%.2A" : "<div><dt>%s</dt><dd>%.4F", measures[i].name, value);
        if (scored) write_score_rows(out, run);
        page_add(out, "</dd></div>\n");
        return;
    }
}

/* Shows the results of a regression: R², the share of explained variance, and errors in units of the target. */
static void write_regression_cards(page *out, const report_run *run)
{
    const json_t *scores = scores_of(run);
    double mae = report_number(scores, "mae");
    page_print(out, "<div><dt>R²</dt><dd>%.4F", report_number(scores, "r2"));
    write_score_rows(out, run);
    page_print(out, "</dd></div>\n<div><dt>RMSE</dt><dd>%.4F", report_number(scores, "rmse"));
    if (isfinite(mae)) page_print(out, "<small>mean absolute error %.4F</small>", mae);
    page_add(out, "</dd></div>\n");
}

static void write_result_cards(page *out, const report_run *run)
{
    static const measure accuracies[] = {
        {"accuracy", 0, "Accuracy"},
        {"validation_accuracy", offsetof(report_point, validation_accuracy), "Validation accuracy"},
        {"train_accuracy", offsetof(report_point, train_accuracy), "Training accuracy"}};
    static const measure losses[] = {{"mse", 0, "Mean squared error"},
                                     {"validation_loss", offsetof(report_point, validation_loss), "Validation loss"},
                                     {"train_loss", offsetof(report_point, train_loss), "Training loss"}};
    write_result_card(out, run, accuracies, 3, true);
    if (isfinite(report_number(scores_of(run), "r2")))
        write_regression_cards(out, run);
    else
        write_result_card(out, run, losses, 3, false);
}

static void write_cost_cards(page *out, const report_run *run)
{
    double seconds = report_number(run->summary, "seconds"), bytes = report_number(run->summary, "peak_bytes");
    double flops = report_number(run->summary, "flops");
    CLI_OWNED(page_free) page rate = {0};
    if (!isfinite(seconds)) seconds = last_known_value(run, offsetof(report_point, seconds));
    if (seconds > 0 && isfinite(flops)) page_flops(&rate, flops / seconds);
    write_card(out, "Time", seconds, page_seconds, "total");
    write_card(out, "Peak memory", bytes, page_bytes, "allocated by training");
    if (rate.text) page_add(&rate, "/s");
    write_card(out, "Work", flops, page_flops, rate.text ? rate.text : "");
}

/* ---- Notes --------------------------------------------------------------------------------------------------- */

static void write_note(page *out, const char *text)
{
    page_print(out, "<p class=\"note\">%s</p>\n", text);
}

/* Explains why training ended before its last epoch; the values of "stopped" are those of cli_summary_json. */
static void write_stop_reason(page *out, const report_run *run)
{
    static const char *const reasons[][2] = {
        {"early", "Training stopped early, because the validation result no longer improved."},
        {"budget", "Training ended at the time limit; the model has the best weights so far."},
        {"interrupted", "Training was stopped before its last epoch; the model has the best weights so far."}};
    const char *stopped = json_string_value(json_object_get(run->summary, "stopped"));
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (stopped && strcmp(stopped, reasons[i][0]) == 0) write_note(out, reasons[i][1]);
}

static void write_notes(page *out, const report_run *run)
{
    if (run->torn)
        write_note(out, "The last line of the log is incomplete and was ignored; the run was interrupted while "
                        "writing it.");
    if (run->count > 0 && !run->summary)
        write_note(out, "The log has no summary; the run was interrupted or is still active.");
    if (run->runs > 1)
        page_print(out,
                   "<p class=\"note\">The log contains %G runs. This page shows the last one, which begins at line "
                   "%G.</p>\n",
                   (double)run->runs, (double)run->first);
    write_stop_reason(out, run);
}

void report_headline(report_page *self, const report_run *run)
{
    const json_t *data = json_object_get(run->start, "data"), *centers = json_object_get(run->start, "centers");
    const char *title = report_text(run->start, "title"), *version = report_text(run->start, "version");
    const char *text = report_text(run->start, "text");
    page *out = &self->header;
    page_add(out, "<header>\n<p class=\"brand\">Mercer");
    if (version) page_print(out, " %s", version);
    page_print(out, "</p>\n<h1>%s</h1>\n", title ? title : "Training report");
    if (text) page_print(out, "<p>%s</p>\n", text);
    write_model(out, run);
    write_notes(out, run);
    page_add(out, "<dl class=\"cards\">\n");
    write_result_cards(out, run);
    write_card(out, "Samples", report_number(data, "rows"), page_count, "n");
    write_card(out, "Centers", report_number(centers, "count"), page_count, "p");
    write_card(out, "Features", report_number(data, "features"), page_count, "d");
    write_cost_cards(out, run);
    page_add(out, "</dl>\n");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The demonstration's log: what `mercer report` makes its page from, and the same numbers for --json. */
#include "demo.h"

#include <math.h>
#include <stdlib.h>

enum { IMAGES = 20, SIDE = 28 };

/* ---- The run that is watched ---------------------------------------------------------------------------------- */

static json_t *count(int64_t value)
{
    return json_integer((json_int_t)value);
}

/* The first two test samples of each class. */
static void log_images(demo *self)
{
    json_t *images = json_array(), *names = json_array();
    for (int32_t class = 0; class < DEMO_CLASSES; class ++) {
        int found = 0;
        for (int64_t i = 0; i < self->sizes.tests && found < IMAGES / DEMO_CLASSES; i++) {
            if (self->labels[i] != class || self->features != SIDE * SIDE) continue;
            json_t *pixels = json_array();
            for (int64_t j = 0; j < self->features; j++)
                json_array_append_new(pixels, json_integer(self->pixels[i * self->features + j]));
            json_array_append_new(images, pixels);
            json_array_append_new(names, json_sprintf("%d", (int)class));
            found++;
        }
    }
    if (json_array_size(images) == 0) {
        json_decref(images), json_decref(names);
        return;
    }
    cli_log_event(self->log, "images",
                  json_pack("{ss, ss, si, si, so, so}", "title", "The data", "text",
                            "Digits that a program draws with random strokes, thickness, slant and noise; two of each.",
                            "height", SIDE, "width", SIDE, "images", images, "labels", names));
}

void demo_log_start(demo *self)
{
    const demo_sizes *sizes = &self->sizes;
    char kernel[CLI_SHORT * 4] = "";
    mercer_kernel_print(self->context, &self->kernel, kernel, sizeof kernel, NULL);
    json_t *data = json_pack("{so, so, si, ss, ss, ss}", "rows", count(sizes->samples[sizes->sample_sizes - 1]),
                             "features", count(self->features), "outputs", DEMO_CLASSES, "dtype", "u8", "task",
                             "classification", "format", "synthetic");
    json_t *centers =
        json_pack("{so, ss}", "count", count(sizes->centers[sizes->center_sizes - 1]), "method", "random samples");
    cli_log_event(self->log, "start",
                  json_pack("{ss, ss, ss, ss, so, so}", "title", "More data, more centers", "version", mercer_version(),
                            "command", cli_flag(self->v, "quick") ? "mercer demo --quick" : "mercer demo", "kernel",
                            kernel, "data", data, "centers", centers));
    log_images(self);
}

void demo_log_plan(demo *self, const mercer_plan *plan)
{
    json_t *event = json_object();
    struct {
        const char *name;
        double value;
    } const fields[] = {{"epochs", (double)plan->epochs},
                        {"batch", (double)plan->batch},
                        {"nystrom", (double)plan->nystrom},
                        {"eigenpairs", (double)plan->eigenpairs},
                        {"period", (double)plan->period},
                        {"average", plan->average},
                        {"decay", plan->decay},
                        {"cache_data", plan->cache_data},
                        {"cache_centers", plan->cache_centers},
                        {"step_factor", plan->step_factor},
                        {"bytes", (double)plan->bytes},
                        {"flops", plan->flops},
                        {"seconds", plan->seconds}};
    json_object_set_new(event, "solver", json_string(plan->solver));
    json_object_set_new(event, "projector", json_string(plan->projector));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set_new(event, fields[i].name, cli_json_real(fields[i].value));
    json_object_set_new(event, "text", json_string(plan->text));
    cli_log_event(self->log, "plan", event);
}

int demo_log_progress(void *user, const mercer_progress *progress)
{
    demo *self = user;
    double inside = progress->pass_total > 0 ? (double)progress->pass_samples / (double)progress->pass_total : 0;
    json_t *event =
        json_pack("{so, so, so, so, so, so, so, so}", "epoch", cli_json_real((double)progress->epoch + inside),
                  "epochs", count(progress->epochs), "seconds", cli_json_real(progress->seconds), "train_loss",
                  cli_json_real(progress->train_loss), "train_accuracy", cli_json_real(progress->train_accuracy),
                  "validation_loss", cli_json_real(progress->validation_loss), "validation_accuracy",
                  cli_json_real(progress->validation_accuracy), "projection_residual",
                  cli_json_real(progress->projection_residual));
    cli_log_event(self->log, progress->pass_samples > 0 ? "progress" : "epoch", event);
    return 0;
}

void demo_log_spectrum(demo *self, const mercer_trainer *trainer, const mercer_report *report)
{
    int64_t found = 0, room = report->plan.eigenpairs + 1;
    double *values = cli_allocate(room, sizeof *values);
    json_t *list = json_array();
    if (mercer_trainer_spectrum(trainer, values, room, &found) != MERCER_OK) found = 0;
    for (int64_t i = 0; i < found && i < room; i++) json_array_append_new(list, cli_json_real(values[i]));
    if (found > 0)
        cli_log_event(self->log, "spectrum",
                      json_pack("{sO, so, so}", "values", list, "eigenpairs", count(report->plan.eigenpairs), "tail",
                                cli_json_real(report->tail)));
    json_decref(list);
    free(values);
}

void demo_log_confusion(demo *self, const int32_t *given, int64_t tests)
{
    int64_t counts[DEMO_CLASSES][DEMO_CLASSES] = {{0}};
    json_t *names = json_array(), *matrix = json_array();
    for (int64_t i = 0; i < tests; i++) counts[self->labels[i]][given[i]]++;
    for (int i = 0; i < DEMO_CLASSES; i++) {
        json_t *row = json_array();
        for (int j = 0; j < DEMO_CLASSES; j++) json_array_append_new(row, count(counts[i][j]));
        json_array_append_new(matrix, row);
        json_array_append_new(names, json_sprintf("%d", i));
    }
    cli_log_event(self->log, "confusion", json_pack("{ss, so, so}", "data", "test", "labels", names, "matrix", matrix));
}

void demo_log_summary(demo *self, const mercer_report *report, double accuracy)
{
    json_t *phases = json_pack(
        "{so, so, so, so, so}", "setup", cli_json_real(report->setup_seconds), "forward",
        cli_json_real(report->forward_seconds), "gradient", cli_json_real(report->gradient_seconds), "projection",
        cli_json_real(report->projection_seconds), "validation", cli_json_real(report->validation_seconds));
    cli_log_event(self->log, "summary",
                  json_pack("{so, so, so, so, so, si, so}", "accuracy", cli_json_real(accuracy), "mse",
                            cli_json_real(report->validation_loss), "seconds", cli_json_real(report->seconds),
                            "peak_bytes", count(report->peak_bytes), "flops", cli_json_real(report->flops), "stopped",
                            report->stopped, "phases", phases));
}

/* ---- All models ----------------------------------------------------------------------------------------------- */

static json_t *share_text(const demo_cell *cell)
{
    return cell->samples > 0 ? json_sprintf("%.2f %%", 100 * cell->accuracy) : json_string("");
}

static void log_table(demo *self)
{
    char text[CLI_SHORT];
    json_t *columns = json_pack("[s, s]", "centers p", "n = p: own labels only"), *rows = json_array();
    for (int k = 0; k < self->sizes.sample_sizes; k++)
        json_array_append_new(columns, json_sprintf("n = %s", cli_count_text(text, self->sizes.samples[k])));
    for (int i = 0; i < self->sizes.center_sizes; i++) {
        json_t *row = json_pack("[o]", count(self->sizes.centers[i]));
        for (int k = 0; k <= self->sizes.sample_sizes; k++) json_array_append_new(row, share_text(&self->cells[i][k]));
        json_array_append_new(rows, row);
    }
    char *words =
        cli_format("%s %s %s %s", self->conclusion[0], self->conclusion[1], self->conclusion[2], self->conclusion[3]);
    cli_log_event(
        self->log, "table",
        json_pack("{ss, ss, so, so}", "title", "Test accuracy", "text", words, "columns", columns, "rows", rows));
    free(words);
}

static json_t *series(char *name, json_t *x, json_t *y)
{
    json_t *made = json_pack("{ss, so, so}", "name", name, "x", x, "y", y);
    free(name);
    return made;
}

/* Accuracy over samples: a line for each number of centers. */
static json_t *lines_over_samples(const demo *self)
{
    json_t *lines = json_array();
    char text[CLI_SHORT];
    for (int i = 0; i < self->sizes.center_sizes; i++) {
        json_t *x = json_array(), *y = json_array();
        for (int k = 0; k <= self->sizes.sample_sizes; k++) {
            const demo_cell *cell = &self->cells[i][k];
            if (cell->samples == 0 || (k > 0 && cell->samples == cell->centers)) continue;
            json_array_append_new(x, count(cell->samples));
            json_array_append_new(y, cli_json_real(cell->accuracy));
        }
        json_array_append_new(lines, series(cli_format("p = %s", cli_count_text(text, self->sizes.centers[i])), x, y));
    }
    return lines;
}

/* Accuracy over centers: with all samples, and with the centers' own labels only. */
static json_t *lines_over_centers(const demo *self)
{
    char text[CLI_SHORT];
    int last = self->sizes.sample_sizes;
    json_t *p = json_array(), *all = json_array(), *own = json_array(), *lines = json_array();
    for (int i = 0; i < self->sizes.center_sizes; i++) {
        json_array_append_new(p, count(self->sizes.centers[i]));
        json_array_append_new(all, cli_json_real(self->cells[i][last].accuracy));
        json_array_append_new(own, cli_json_real(self->cells[i][0].accuracy));
    }
    char *name = cli_format("n = %s", cli_count_text(text, self->sizes.samples[last - 1]));
    json_array_append_new(lines, series(name, json_incref(p), all));
    json_array_append_new(lines, series(cli_copy("n = p: own labels only"), p, own));
    return lines;
}

static void log_chart(demo *self, const char *title, const char *x, json_t *lines)
{
    cli_log_event(self->log, "chart",
                  json_pack("{ss, ss, ss, ss, sb, sb, so}", "section", "Two ways to grow", "title", title, "x", x, "y",
                            "test accuracy", "log_x", 1, "percent", 1, "series", lines));
}

void demo_log_results(demo *self)
{
    log_table(self);
    log_chart(self, "More data, same model", "samples n", lines_over_samples(self));
    log_chart(self, "More centers, same data", "centers p", lines_over_centers(self));
}

json_t *demo_json(const demo *self)
{
    json_t *cells = json_array(), *words = json_array();
    for (int i = 0; i < self->sizes.center_sizes; i++)
        for (int k = 0; k <= self->sizes.sample_sizes; k++) {
            const demo_cell *cell = &self->cells[i][k];
            if (cell->samples == 0 || (k > 0 && cell->samples == cell->centers)) continue;
            json_array_append_new(cells, json_pack("{so, so, so, so}", "centers", count(cell->centers), "samples",
                                                   count(cell->samples), "accuracy", cli_json_real(cell->accuracy),
                                                   "seconds", cli_json_real(cell->seconds)));
        }
    for (int i = 0; i < self->lines; i++) json_array_append_new(words, json_string(self->conclusion[i]));
    return json_pack("{so, so, so, so}", "tests", count(self->sizes.tests), "cells", cells, "conclusion", words,
                     "seconds", cli_json_real(self->seconds));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The demonstration's log, from which `mercer report` makes the page, and the same numbers for --json. */
#include "commands/demo/demo.h"

#include "results/results.h"
#include "terminal/progress.h"

#include <math.h>
#include <stdlib.h>

enum { IMAGES = 20, SIDE = 28 };

/* ---- The logged run ---------------------------------------------------------------------------------------------- */

static json_t *json_count(int64_t value)
{
    return json_integer((json_int_t)value);
}

/* Logs images of the first two test samples of each class. */
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
                            "Synthetic digits with random strokes, thickness, slant and noise; two of each.", "height",
                            SIDE, "width", SIDE, "images", images, "labels", names));
}

void demo_log_start(demo *self)
{
    const demo_sizes *sizes = &self->sizes;
    char kernel[CLI_SHORT * 4] = "";
    mercer_kernel_print(self->context, kernel, sizeof kernel, NULL, &self->kernel);
    json_t *data = json_pack("{so, so, si, ss, ss, ss}", "rows", json_count(sizes->samples[sizes->sample_sizes - 1]),
                             "features", json_count(self->features), "outputs", DEMO_CLASSES, "dtype", "u8", "task",
                             "classification", "format", "synthetic");
    json_t *centers =
        json_pack("{so, ss}", "count", json_count(sizes->centers[sizes->center_sizes - 1]), "method", "random samples");
    cli_log_event(
        self->log, "start",
        json_pack("{ss, ss, ss, ss, ss, so, so}", "title", "More data, more centers", "text",
                  "The number of centers p and the number of samples n of a kernel model are independent. Below, "
                  "models of several sizes are trained on more and more samples; the rest of the page describes the "
                  "largest of them. The validation samples are the test samples; they do not affect training.",
                  "version", mercer_version(), "command", cli_flag(self->v, "quick") ? "demo --quick" : "demo",
                  "kernel", kernel, "data", data, "centers", centers));
    log_images(self);
}

int demo_log_progress(void *user, const mercer_progress *progress)
{
    demo *self = user;
    if (progress->phase == NULL) cli_log_progress(self->log, progress, progress->pass_samples == 0);
    return 0;
}

void demo_log_best(demo *self, const mercer_trainer *trainer, const mercer_report *report, const int32_t *given)
{
    double counts[DEMO_CLASSES * DEMO_CLASSES] = {0};
    cli_metrics metrics = {.all = {.rows = self->sizes.tests, .task = MERCER_TASK_CLASSIFICATION}};
    mercer_metrics *all = &metrics.all;
    cli_metrics_clear(all);
    all->accuracy = 0;
    json_t *names = json_array();
    for (int64_t i = 0; i < self->sizes.tests; i++) counts[self->labels[i] * DEMO_CLASSES + given[i]]++;
    for (int i = 0; i < DEMO_CLASSES; i++) {
        all->accuracy += counts[i * DEMO_CLASSES + i] / (double)self->sizes.tests;
        json_array_append_new(names, json_sprintf("%d", i));
    }
    all->mse = report->validation_loss;
    cli_log_event(self->log, "plan", cli_plan_json(report->plan));
    cli_log_spectrum(self->log, trainer, report);
    cli_log_event(
        self->log, "confusion",
        json_pack("{ss, so, so}", "data", "test", "labels", names, "matrix", cli_confusion_json(counts, DEMO_CLASSES)));
    cli_log_event(self->log, "summary", cli_summary_json(report, &metrics, report->seconds));
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
        json_t *row = json_pack("[o]", json_count(self->sizes.centers[i]));
        for (int k = 0; k <= self->sizes.sample_sizes; k++) json_array_append_new(row, share_text(&self->cells[i][k]));
        json_array_append_new(rows, row);
    }
    CLI_OWNED(cli_drop)
    char *words = cli_format("%s\n%s\n%s", self->conclusion[0], self->conclusion[1], self->conclusion[2]);
    cli_log_event(
        self->log, "table",
        json_pack("{ss, ss, so, so}", "title", "Test accuracy", "text", words, "columns", columns, "rows", rows));
}

static json_t *series(char *name, json_t *x, json_t *y)
{
    json_t *made = json_pack("{ss, so, so}", "name", name, "x", x, "y", y);
    free(name);
    return made;
}

/* Returns the series of the chart of accuracy by number of samples: one series per number of centers. */
static json_t *lines_over_samples(const demo *self)
{
    json_t *lines = json_array();
    char text[CLI_SHORT];
    for (int i = 0; i < self->sizes.center_sizes; i++) {
        json_t *x = json_array(), *y = json_array();
        for (int k = 0; k <= self->sizes.sample_sizes; k++) {
            const demo_cell *cell = &self->cells[i][k];
            if (cell->samples == 0 || (k > 0 && cell->samples == cell->centers)) continue;
            json_array_append_new(x, json_count(cell->samples));
            json_array_append_new(y, cli_json_real(cell->accuracy));
        }
        json_array_append_new(lines, series(cli_format("p = %s", cli_count_text(text, self->sizes.centers[i])), x, y));
    }
    return lines;
}

/* Returns the series of the chart of accuracy by number of centers: trained on all samples, and trained only on the
   centers. */
static json_t *lines_over_centers(const demo *self)
{
    char text[CLI_SHORT];
    int last = self->sizes.sample_sizes;
    json_t *p = json_array(), *all = json_array(), *own = json_array(), *lines = json_array();
    for (int i = 0; i < self->sizes.center_sizes; i++) {
        json_array_append_new(p, json_count(self->sizes.centers[i]));
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
            json_array_append_new(cells, json_pack("{so, so, so, so}", "centers", json_count(cell->centers), "samples",
                                                   json_count(cell->samples), "accuracy", cli_json_real(cell->accuracy),
                                                   "seconds", cli_json_real(cell->seconds)));
        }
    for (int i = 0; i < DEMO_SENTENCES; i++) json_array_append_new(words, json_string(self->conclusion[i]));
    return json_pack("{so, so, so, so}", "tests", json_count(self->sizes.tests), "cells", cells, "conclusion", words,
                     "seconds", cli_json_real(self->seconds));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mercer demo: shows that the number of centers and the number of samples are independent. The samples are synthetic
 * digits; no files are read.
 *
 * Every model has the same kernel function, and p random samples as centers. A model trained on n = p samples is
 * classical kernel regression: it learns only from the labels of its centers. A model with the same p centers trained
 * on n > p samples learns from all n labels, at the same cost per prediction.
 */
#include "commands/commands.h"
#include "commands/demo/demo.h"

#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#define SOLVER "ep4" /* for every model; an iterative solver, so that the page can show learning curves */
#define KERNEL "laplace:bandwidth=2550" /* for pixels 0 .. 255; equals bandwidth 10 for pixels 0 .. 1 */
#define MEMORY ((int64_t)2 << 30)       /* fixed: plans depend on the memory, and so would the results */

static const demo_sizes usual = {{250, 1000, 4000}, {1000, 3000, 10000, 30000}, 3, 4, 5000};
static const demo_sizes quick = {{100, 400}, {400, 1600, 6400}, 2, 3, 2000};

/* ---- One model ----------------------------------------------------------------------------------------------- */

typedef struct training {
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    mercer_matrix Y; /* one-hot test labels; empty if the model is not logged */
} training;

static void free_training(training *self)
{
    mercer_trainer_free(self->trainer);
    mercer_source_free(&self->source);
    mercer_model_free(self->model);
    free(self->Y.data);
}

static mercer_matrix rows_of(const demo *self, int64_t first, int64_t rows)
{
    return mercer_matrix_view(self->pixels + first * self->features, rows, self->features, MERCER_U8);
}

static mercer_matrix one_hot(const int32_t *labels, int64_t rows)
{
    float *values = cli_allocate(rows * DEMO_CLASSES, sizeof *values);
    for (int64_t i = 0; i < rows; i++) values[i * DEMO_CLASSES + labels[i]] = 1;
    return mercer_matrix_view(values, rows, DEMO_CLASSES, MERCER_F32);
}

/* Trains a model; if `watched`, logs its progress on the test samples. */
static int train_model(demo *self, training *made, const demo_cell *cell, mercer_report *report, bool watched)
{
    int64_t tests = self->sizes.tests;
    mercer_matrix Z = rows_of(self, tests, cell->centers), X = rows_of(self, tests, cell->samples);
    mercer_matrix T = rows_of(self, 0, tests);
    uint64_t seed = (uint64_t)cli_integer(self->v, "seed");
    mercer_train_options options = {.struct_size = sizeof options};
    options.solver = SOLVER;
    options.classification = MERCER_ON;
    options.seed = seed;
    options.memory = MEMORY;
    if (watched) {
        made->Y = one_hot(self->labels, tests);
        options.validation_X = &T;
        options.validation_Y = &made->Y;
        options.progress = demo_log_progress;
        options.progress_user = self;
        options.progress_seconds = 0.25;
    }
    mercer_context *context = self->context;
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = &X;
    arrays.labels = self->labels + tests;
    arrays.classes = DEMO_CLASSES;
    CLI_TRY(cli_check(context,
                      mercer_model_create(&made->model, context, NULL, &self->kernel, &Z, DEMO_CLASSES, MERCER_F32)));
    CLI_TRY(cli_check(context, mercer_source_from_arrays(&made->source, context, &arrays, seed)));
    CLI_TRY(cli_check(context, mercer_trainer_create(&made->trainer, made->model, NULL, &options)));
    return cli_check(context, mercer_trainer_fit(made->trainer, &made->source, report));
}

/* Returns the accuracy of the predicted classes `given` on the test samples. */
static double accuracy_of(const demo *self, const int32_t *given)
{
    int64_t right = 0;
    for (int64_t i = 0; i < self->sizes.tests; i++) right += given[i] == self->labels[i];
    return (double)right / (double)self->sizes.tests;
}

static int train_cell(demo *self, demo_cell *cell, bool watched)
{
    CLI_OWNED(free_training) training made = {0};
    mercer_report report = {.struct_size = sizeof report};
    mercer_matrix T = rows_of(self, 0, self->sizes.tests);
    CLI_OWNED(cli_drop) int32_t *given = cli_allocate(self->sizes.tests, sizeof *given);
    CLI_TRY(train_model(self, &made, cell, &report, watched));
    CLI_TRY(cli_check(self->context, mercer_model_classify(made.model, given, &T)));
    cell->accuracy = accuracy_of(self, given);
    cell->seconds = report.seconds;
    if (watched) demo_log_best(self, made.trainer, &report, given);
    return CLI_OK;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static void print_table_head(const demo *self, FILE *out)
{
    char text[CLI_SHORT];
    mercer_context_info info = {.struct_size = sizeof info};
    mercer_context_query(self->context, &info);
    fprintf(out, "Mercer %s, %s (%s), %d thread%s\n\n", mercer_version(), info.backend, info.isa, info.threads,
            info.threads == 1 ? "" : "s");
    fprintf(out, "Kernel models f(x) = sum_j alpha_j K(x, z_j) of synthetic digits, %s.\n", KERNEL);
    fprintf(out, "Accuracy on %s test digits:\n\n", cli_count_text(text, self->sizes.tests));
    fprintf(out, "  centers |              samples n\n");
    fprintf(out, "        p |    n = p");
    for (int k = 0; k < self->sizes.sample_sizes; k++)
        fprintf(out, "%9s", cli_count_text(text, self->sizes.samples[k]));
    fprintf(out, "   seconds\n  --------+");
    for (int k = 0; k < 9 * (self->sizes.sample_sizes + 1) + 10; k++) fputc('-', out);
    fputc('\n', out);
}

static void print_accuracy(FILE *out, const demo_cell *cell)
{
    if (cell->samples == 0)
        fprintf(out, "%9s", "-");
    else
        fprintf(out, "%7.2f %%", 100 * cell->accuracy);
    fflush(out);
}

/* Trains the models of one row, which have the same centers and increasing numbers of samples, and prints their
   accuracies. */
static int train_row(demo *self, int row, FILE *out)
{
    char text[CLI_SHORT];
    int64_t p = self->sizes.centers[row];
    demo_cell *cells = self->cells[row];
    double seconds = 0;
    fprintf(out, "%9s |", cli_count_text(text, p));
    fflush(out);
    for (int k = 0; k <= self->sizes.sample_sizes; k++) {
        int64_t n = k == 0 ? p : self->sizes.samples[k - 1];
        cells[k] = (demo_cell){.centers = p, .samples = n >= p ? n : 0};
        bool last = row == self->sizes.center_sizes - 1 && k == self->sizes.sample_sizes;
        if (k > 0 && n == p)
            cells[k] = cells[0]; /* n = p is the model of the first column */
        else if (n >= p)
            CLI_TRY(train_cell(self, &cells[k], last));
        seconds += k > 0 && n == p ? 0 : cells[k].seconds;
        print_accuracy(out, &cells[k]);
    }
    fprintf(out, "%10.1f\n", seconds);
    fflush(out);
    return CLI_OK;
}

/* ---- The command --------------------------------------------------------------------------------------------- */

static int make_digits(demo *self)
{
    CLI_OWNED(cli_drop_dataset) mercer_dataset *digits = NULL;
    mercer_dataset_info info = {.struct_size = sizeof info};
    int64_t most = self->sizes.samples[self->sizes.sample_sizes - 1];
    self->rows = self->sizes.tests + most;
    uint64_t seed = (uint64_t)cli_integer(self->v, "seed");
    CLI_TRY(cli_check(self->context, mercer_dataset_synthesize(&digits, self->context, "digits", 0, self->rows, seed)));
    CLI_TRY(cli_check(self->context, mercer_dataset_query(digits, &info)));
    self->features = info.features;
    self->pixels = cli_allocate(self->rows * self->features, 1);
    self->labels = cli_allocate(self->rows, sizeof *self->labels);
    mercer_matrix X = rows_of(self, 0, self->rows);
    return cli_check(self->context, mercer_dataset_read(digits, &X, NULL, self->labels, NULL, NULL, 0));
}

static int run_demo(demo *self, FILE *out)
{
    double begin = cli_now();
    CLI_TRY(cli_context(self->v, &self->context));
    CLI_TRY(cli_check(self->context, mercer_kernel_parse(&self->kernel, self->context, KERNEL)));
    CLI_TRY(make_digits(self));
    demo_log_start(self);
    print_table_head(self, out);
    for (int row = 0; row < self->sizes.center_sizes; row++) CLI_TRY(train_row(self, row, out));
    self->seconds = cli_now() - begin;
    demo_conclude(self);
    demo_log_results(self);
    fputc('\n', out);
    for (int i = 0; i < DEMO_SENTENCES; i++) {
        cli_print_wrapped(out, self->conclusion[i], 2, 80);
        fputc('\n', out);
    }
    return CLI_OK;
}

/* Returns the path of the log: --log, or by default a file in the folder of the page. Release with free. */
static char *log_path(const cli_values *v, const char *html)
{
    const char *given = cli_text(v, "log"), *slash = strrchr(html, '/');
    if (given) return cli_copy(given);
    return cli_format("%.*sdemo.jsonl", slash ? (int)(slash - html + 1) : 0, html);
}

static int write_page(demo *self, const char *log, const char *html, FILE *out)
{
    CLI_TRY(report_write(log, html));
    fprintf(out, "\n%.0f seconds. Page: %s   Log: %s\n", self->seconds, html, log);
    if (!cli_flag(self->v, "json")) return CLI_OK;
    json_t *object = demo_json(self);
    json_object_set_new(object, "report", json_string(html));
    json_object_set_new(object, "log", json_string(log));
    return cli_print_answer(object);
}

static void free_demo(demo *self)
{
    free(self->pixels), free(self->labels);
    cli_drop_context(&self->context);
}

int cli_demo(const cli_values *v)
{
    const char *html = cli_text(v, "output");
    CLI_OWNED(free_demo) demo self = {.v = v, .sizes = cli_flag(v, "quick") ? quick : usual};
    if (strcmp(html, "-") == 0)
        return cli_error(CLI_USAGE, "--output -: stdout is used for the table; name a file for the page");
    FILE *out = cli_flag(v, "json") ? stderr : stdout;
    CLI_OWNED(cli_drop) char *log = log_path(v, html);
    CLI_TRY(cli_check_output(html));
    CLI_TRY(cli_check_log(log));
    CLI_TRY(cli_log_open(&self.log, log));
    int code = run_demo(&self, out), closed = cli_log_close(self.log);
    CLI_TRY(code);
    CLI_TRY(closed);
    return write_page(&self, log, html, out);
}

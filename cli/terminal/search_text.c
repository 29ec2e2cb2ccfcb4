/* SPDX-License-Identifier: BSD-3-Clause */
/* What a search tried and found, as text, JSON and charts: the best of each kernel and preprocessing, errors over
   bandwidth and ridge around the best, and how flat that is. */
#include "terminal/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CENTER_COUNTS = 3 };

static int same_arm(const mercer_tune_try *a, const mercer_tune_try *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->preprocess, b->preprocess) == 0;
}

/* One of the largest fits with kernel, preprocessing and metric of the best of which several bandwidths were tried. */
static int is_around(const mercer_fit_report *fit, const mercer_tune_try *one)
{
    const mercer_tune_try *best = &fit->tries[fit->best_try];
    return same_arm(one, best) && one->round == best->round && one->rows == fit->tune_around;
}

/* A fit to more rows is the better judge of its kernel and preprocessing. */
static int better(const mercer_tune_try *a, const mercer_tune_try *b)
{
    return a->rows != b->rows ? a->rows > b->rows : a->error < b->error;
}

static int by_worth(const void *a, const void *b)
{
    const mercer_tune_try *const *left = a, *const *right = b;
    return better(*right, *left) - better(*left, *right);
}

/* The best of each kernel and preprocessing, best first; *count of them. Released with free. */
static const mercer_tune_try **best_of_arms(const mercer_fit_report *fit, int64_t *count)
{
    const mercer_tune_try **list = cli_allocate(fit->try_count + 1, sizeof *list);
    *count = 0;
    for (int64_t i = 0; i < fit->try_count; i++) {
        int64_t k = 0;
        while (k < *count && !same_arm(list[k], &fit->tries[i])) k++;
        if (k == *count) list[(*count)++] = &fit->tries[i];
        if (better(&fit->tries[i], list[k])) list[k] = &fit->tries[i];
    }
    qsort(list, (size_t)*count, sizeof *list, by_worth);
    return list;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

void cli_show_tuned(const cli_job *job, FILE *file)
{
    const mercer_fit_report *fit = &job->fit;
    int64_t count;
    const mercer_tune_try **list = best_of_arms(fit, &count);
    cli_table *table = cli_table_new(8, "llrrrrrr");
    static const char *const heads[] = {"kernel", "preprocess", "round", "bandwidth",
                                        "ridge",  "error",      "rows",  "centers"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) cli_table_cell(table, "%s", heads[i]);
    cli_table_line(table);
    for (int64_t i = 0; i < count; i++) {
        cli_table_cell(table, "%s", list[i]->kernel);
        cli_table_cell(table, "%s", list[i]->preprocess);
        cli_table_cell(table, "%" PRId64, list[i]->round);
        cli_table_cell(table, "%.3g m", list[i]->multiple);
        cli_table_cell(table, "%.0e n", list[i]->ridge);
        cli_table_cell(table, "%.5g", list[i]->error);
        cli_table_cell(table, "%" PRId64, list[i]->rows);
        cli_table_cell(table, "%" PRId64, list[i]->centers);
    }
    cli_table_print(table, file);
    free(list);
    if (fit->best_try < 0) return;
    fprintf(file,
            "m: the median distance, n: the number of samples; within 1 %% of the best: bandwidths %.3g to %.3g m, "
            "ridges %.0e to %.0e n\n",
            fit->tune_flat[0], fit->tune_flat[1], fit->tune_flat_ridge[0], fit->tune_flat_ridge[1]);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *reals(const double *values, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(list, cli_json_real(values[i]));
    return list;
}

static json_t *try_json(const mercer_fit_report *fit, const mercer_tune_try *one)
{
    return json_pack("{ss ss sI sI sI so so so so so}", "kernel", one->kernel, "preprocess", one->preprocess, "round",
                     (json_int_t)one->round, "rows", (json_int_t)one->rows, "centers", (json_int_t)one->centers,
                     "multiple", cli_json_real(one->multiple), "bandwidth", cli_json_real(one->bandwidth), "ridge",
                     cli_json_real(one->ridge), "error", cli_json_real(one->error), "errors",
                     reals(one->errors, fit->tune_ridge_count));
}

json_t *cli_tuned_json(const cli_job *job)
{
    const mercer_fit_report *fit = &job->fit;
    json_t *tries = json_array(), *object;
    for (int64_t i = 0; i < fit->try_count; i++) json_array_append_new(tries, try_json(fit, &fit->tries[i]));
    object = json_pack("{so so sb sI sI so}", "ridges", reals(fit->tune_ridges, fit->tune_ridge_count), "seconds",
                       cli_json_real(fit->tune_seconds), "whole", fit->tune_whole, "rows", (json_int_t)fit->tune_rows,
                       "held", (json_int_t)fit->tune_held, "tries", tries);
    if (fit->best_try < 0) return object;
    json_object_set_new(object, "best", try_json(fit, &fit->tries[fit->best_try]));
    json_object_set_new(
        object, "flat",
        json_pack("{so so}", "multiple", reals(fit->tune_flat, 2), "ridge", reals(fit->tune_flat_ridge, 2)));
    if (fit->tune_second >= 0) json_object_set_new(object, "second", try_json(fit, &fit->tries[fit->tune_second]));
    if (fit->tune_centers[0] > 0)
        json_object_set_new(object, "centers",
                            json_pack("{s[III] so so}", "counts", (json_int_t)fit->tune_centers[0],
                                      (json_int_t)fit->tune_centers[1], (json_int_t)fit->tune_centers[2], "errors",
                                      reals(fit->tune_center_errors, CENTER_COUNTS), "twice",
                                      cli_json_real(fit->tune_more_centers)));
    return object;
}

/* ---- Charts ------------------------------------------------------------------------------------------------------ */

static json_t *arms_table(const mercer_fit_report *fit)
{
    int64_t count;
    const mercer_tune_try **list = best_of_arms(fit, &count);
    json_t *rows = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(rows, json_pack("[s, s, I, o, o, o, I]", list[i]->kernel, list[i]->preprocess,
                                              (json_int_t)list[i]->round, cli_json_real(list[i]->multiple),
                                              cli_json_real(list[i]->ridge), cli_json_real(list[i]->error),
                                              (json_int_t)list[i]->rows));
    free(list);
    return json_pack("{ss ss s[sssssss] so}", "title", "Search: the best of each kernel and preprocessing", "text",
                     "Mean squared error by the criterion. Bandwidths are multiples of the median distance, ridges are "
                     "those of one sample; the fits to the most rows count.",
                     "columns", "Kernel", "Preprocessing", "Round", "Bandwidth", "Ridge", "Error", "Rows", "rows",
                     rows);
}

static int by_multiple(const void *a, const void *b)
{
    const mercer_tune_try *const *left = a, *const *right = b;
    return ((*left)->multiple > (*right)->multiple) - ((*left)->multiple < (*right)->multiple);
}

/* A curve over the bandwidth for each ridge, of the fits like the best. */
static json_t *ridge_curves(const mercer_fit_report *fit)
{
    const mercer_tune_try **list = cli_allocate(fit->try_count, sizeof *list);
    int64_t count = 0;
    for (int64_t i = 0; i < fit->try_count; i++)
        if (is_around(fit, &fit->tries[i])) list[count++] = &fit->tries[i];
    qsort(list, (size_t)count, sizeof *list, by_multiple);
    json_t *series = json_array();
    for (int r = 0; r < fit->tune_ridge_count; r++) {
        json_t *x = json_array(), *y = json_array();
        for (int64_t i = 0; i < count; i++) {
            json_array_append_new(x, cli_json_real(log2(list[i]->multiple)));
            json_array_append_new(y, cli_json_real(list[i]->errors[r]));
        }
        char *name = cli_format("ridge %.0e", fit->tune_ridges[r]);
        json_array_append_new(series, json_pack("{ss so so}", "name", name, "x", x, "y", y));
        free(name);
    }
    free(list);
    return json_pack("{ss ss ss sb ss so}", "title", "Error over bandwidth and ridge, around the best", "x",
                     "bandwidth over the median distance, as a power of 2", "y", "squared error", "log_y", 1, "section",
                     "Search", "series", series);
}

/* What more centers bring. */
static json_t *center_curve(const mercer_fit_report *fit)
{
    json_t *x = json_array(), *y = json_array();
    for (int i = 0; i < CENTER_COUNTS; i++) {
        json_array_append_new(x, cli_json_real(log2((double)fit->tune_centers[i])));
        json_array_append_new(y, cli_json_real(fit->tune_center_errors[i]));
    }
    return json_pack("{ss ss ss sb ss s[{ss so so}]}", "title", "Error of the best over the number of centers", "x",
                     "centers, as a power of 2", "y", "squared error", "log_y", 1, "section", "Search", "series",
                     "name", "the best", "x", x, "y", y);
}

void cli_log_tuned(cli_log *log, const cli_job *job)
{
    if (log == NULL || job->fit.try_count == 0) return;
    cli_log_event(log, "search", cli_tuned_json(job));
    if (job->fit.best_try < 0) return;
    cli_log_event(log, "table", arms_table(&job->fit));
    cli_log_event(log, "chart", ridge_curves(&job->fit));
    if (job->fit.tune_centers[0] > 0) cli_log_event(log, "chart", center_curve(&job->fit));
}

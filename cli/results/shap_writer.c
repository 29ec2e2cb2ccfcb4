/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shapley values of the command explain. The file has a line for each row, and for each class or target if there are
 * several:
 *
 *   row | target | base | sum | NAME_shap for each column
 *
 * base is the mean output over the background rows. sum is the sum of base and all values: the output of the model.
 * With --interactions, the file has a line for each row, target and column:
 *
 *   row | target | column | NAME_interaction for each column
 *
 * The interactions of a line sum to the Shapley value of its column. The summary lists the mean absolute value of each
 * column, summed over the outputs. With --interactions, it lists the mean absolute interaction of each pair of columns,
 * in both orders together.
 */
#include "results/results.h"

#include "options/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_PAIRS = 20 }; /* number of pairs in the table */

/* Copies `count` names, with control characters escaped if the output is a terminal. If `names` is NULL, the copies are
   numbers. */
static char **copy_names(const cli_shap *shap, const char *const *names, int64_t count)
{
    int terminal = shap->file != NULL && isatty(fileno(shap->file));
    char **list = cli_allocate(count + 1, sizeof *list);
    for (int64_t i = 0; i < count; i++)
        list[i] = names == NULL ? cli_format("%" PRId64, i) : terminal ? cli_visible(names[i]) : cli_copy(names[i]);
    return list;
}

void cli_shap_open(cli_shap *out, const mercer_shap *shap, const mercer_model *model)
{
    mercer_model_info model_info = cli_model_info(model);
    int classes = model_info.labels != NULL && model_info.label_count == model_info.outputs;
    int targets = model_info.target_names != NULL && model_info.target_count == model_info.outputs;
    out->info = (mercer_shap_info){.struct_size = sizeof out->info};
    mercer_shap_query(shap, &out->info);
    out->columns = copy_names(out, out->info.names, out->info.columns);
    out->outputs = copy_names(out,
                              classes   ? model_info.labels
                              : targets ? model_info.target_names
                                        : NULL,
                              out->info.outputs);
    out->absolute = cli_allocate(out->info.columns * (out->pairs ? out->info.columns : 1) + 1, sizeof *out->absolute);
}

void cli_shap_begin(const cli_shap *shap)
{
    if (shap->file == NULL) return;
    fputs("row", shap->file);
    if (shap->info.outputs > 1) fprintf(shap->file, "%ctarget", shap->separator);
    if (shap->pairs)
        fprintf(shap->file, "%ccolumn", shap->separator);
    else
        fprintf(shap->file, "%cbase%csum", shap->separator, shap->separator);
    for (int64_t k = 0; k < shap->info.columns; k++) {
        CLI_OWNED(cli_drop) char *name = cli_format("%s_%s", shap->columns[k], shap->pairs ? "interaction" : "shap");
        fputc(shap->separator, shap->file);
        cli_put_field(shap->file, shap->separator, name);
    }
    fputc('\n', shap->file);
}

static void put_number(const cli_shap *shap, double value)
{
    char text[CLI_SHORT];
    fprintf(shap->file, "%c%s", shap->separator, cli_number_text(text, value, 0));
}

/* Writes the line of a row and output, or with interactions the line of a row, output and column. */
static void put_line(const cli_shap *shap, const double *values, int64_t row, int64_t output, int64_t column)
{
    double sum = shap->info.base[output];
    for (int64_t k = 0; k < shap->info.columns; k++) sum += values[k];
    fprintf(shap->file, "%" PRId64, row);
    if (shap->info.outputs > 1) {
        fputc(shap->separator, shap->file);
        cli_put_field(shap->file, shap->separator, shap->outputs[output]);
    }
    if (shap->pairs) {
        fputc(shap->separator, shap->file);
        cli_put_field(shap->file, shap->separator, shap->columns[column]);
    } else {
        put_number(shap, shap->info.base[output]);
        put_number(shap, sum);
    }
    for (int64_t k = 0; k < shap->info.columns; k++) put_number(shap, values[k]);
    fputc('\n', shap->file);
}

void cli_shap_put(cli_shap *shap, const double *values, int64_t rows, int64_t first)
{
    int64_t columns = shap->info.columns, outputs = shap->info.outputs, lines = shap->pairs ? columns : 1;
    for (int64_t i = 0; i < rows * outputs * lines; i++) {
        const double *line = values + i * columns;
        double *absolute = shap->absolute + i % lines * columns;
        for (int64_t k = 0; k < columns; k++) absolute[k] += fabs(line[k]);
        if (shap->file != NULL) put_line(shap, line, first + i / lines / outputs, i / lines % outputs, i % lines);
    }
    shap->rows += rows;
}

/* A column, or a pair of columns, and its mean absolute value, for sorting. */
typedef struct mean_value {
    int64_t column, other; /* other: -1 for a column */
    double value;
} mean_value;

static int compare_means(const void *a, const void *b)
{
    const mean_value *left = a, *right = b;
    if (left->value != right->value) return left->value < right->value ? 1 : -1;
    if (left->column != right->column) return left->column < right->column ? -1 : 1;
    return (left->other > right->other) - (left->other < right->other);
}

/* Returns the mean absolute values, largest first. */
static mean_value *find_means(const cli_shap *shap, int64_t *count)
{
    int64_t columns = shap->info.columns;
    double rows = shap->rows > 0 ? (double)shap->rows : 1;
    *count = shap->pairs ? columns * (columns - 1) / 2 : columns;
    mean_value *means = cli_allocate(*count + 1, sizeof *means), *to = means;
    for (int64_t k = 0; k < columns; k++) {
        if (!shap->pairs) *to++ = (mean_value){k, -1, shap->absolute[k] / rows};
        for (int64_t l = k + 1; l < columns && shap->pairs; l++)
            *to++ = (mean_value){k, l, 2 * shap->absolute[k * columns + l] / rows};
    }
    qsort(means, (size_t)*count, sizeof *means, compare_means);
    return means;
}

static json_t *answer_json(const cli_values *v, const cli_shap *shap, const char *background, const mean_value *means,
                           int64_t count)
{
    const mercer_shap_info *info = &shap->info;
    json_t *list = json_array(), *outputs = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_t *one =
            json_pack("{sI so so}", "column", (json_int_t)means[i].column, "name",
                      cli_json_text(shap->columns[means[i].column]), "mean_absolute", cli_json_real(means[i].value));
        if (shap->pairs) {
            json_object_set_new(one, "other", json_integer(means[i].other));
            json_object_set_new(one, "other_name", cli_json_text(shap->columns[means[i].other]));
        }
        json_array_append_new(list, one);
    }
    for (int64_t l = 0; l < info->outputs; l++)
        json_array_append_new(outputs, json_pack("{so so}", "name", cli_json_text(shap->outputs[l]), "base",
                                                 cli_json_real(info->base[l])));
    json_t *answer =
        json_pack("{sI so so so sI sI so sb}", "rows", (json_int_t)shap->rows, shap->pairs ? "interactions" : "shap",
                  list, "outputs", outputs, "background", cli_json_text(background), "background_rows",
                  (json_int_t)info->background_rows, "terms", (json_int_t)info->terms, "error",
                  cli_json_real(info->error), "transformed", info->transformed);
    if (cli_text(v, "output") != NULL) json_object_set_new(answer, "output", cli_json_text(cli_text(v, "output")));
    return answer;
}

/* Prints notes about what the values refer to. */
static void print_notes(const cli_values *v, const cli_shap *shap, const char *background)
{
    cli_say(v, "note: background: %s; %s", background,
            shap->info.terms > 1 ? "the kernel is not a product over columns" : "the kernel is a product over columns");
    if (shap->info.terms > 1)
        cli_say(v, "note: values are sums of %" PRId64 " products per center; their error is at most %.2g",
                shap->info.terms, shap->info.error);
    if (shap->info.transformed)
        cli_say(v, "note: values and base refer to the transformed target (--target-transform)");
}

/* Prints the largest mean absolute values as a table. */
static void print_means(const cli_values *v, const cli_shap *shap, const mean_value *means, int64_t count)
{
    int64_t shown = shap->pairs && count > MOST_PAIRS ? MOST_PAIRS : count;
    cli_table *table = cli_table_new(2, "lr");
    cli_table_cell(table, shap->pairs ? "columns" : "column");
    cli_table_cell(table, shap->pairs ? "mean absolute interaction" : "mean absolute Shapley value");
    cli_table_line(table);
    for (int64_t i = 0; i < shown; i++) {
        if (shap->pairs)
            cli_table_cell(table, "%s, %s", shap->columns[means[i].column], shap->columns[means[i].other]);
        else
            cli_table_cell(table, "%s", shap->columns[means[i].column]);
        cli_table_cell(table, "%.4g", means[i].value);
    }
    cli_table_print(table, stdout);
    if (shown < count) cli_say(v, "note: the %" PRId64 " largest of %" PRId64 " pairs; --json lists all", shown, count);
}

int cli_shap_show(const cli_values *v, const cli_shap *shap, const char *background)
{
    int64_t count;
    CLI_OWNED(cli_drop) mean_value *means = find_means(shap, &count);
    print_notes(v, shap, background);
    if (cli_flag(v, "json")) return cli_print_answer(answer_json(v, shap, background, means, count));
    if (shap->file == NULL || !cli_is(v, "output", "-")) print_means(v, shap, means, count);
    return CLI_OK;
}

void cli_shap_close(cli_shap *shap)
{
    for (int64_t k = 0; shap->columns != NULL && k < shap->info.columns; k++) free(shap->columns[k]);
    for (int64_t l = 0; shap->outputs != NULL && l < shap->info.outputs; l++) free(shap->outputs[l]);
    free(shap->columns);
    free(shap->outputs);
    free(shap->absolute);
}

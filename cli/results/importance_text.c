/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Importance of columns: the drop of R2 or accuracy when a column of the table is permuted, as a table or JSON. For the
 * report page, also the partial dependence: the mean prediction as a function of one column.
 */
#include "results/results.h"

#include "options/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A column and its importance, for sorting. */
typedef struct rank {
    int64_t column;
    double drop;
} rank;

static int compare_drops(const void *a, const void *b)
{
    const rank *left = a, *right = b;
    if (left->drop != right->drop) return left->drop < right->drop ? 1 : -1;
    return (left->column > right->column) - (left->column < right->column);
}

static rank *rank_columns(const mercer_importance_info *info)
{
    rank *list = cli_allocate(info->columns + 1, sizeof *list);
    for (int64_t j = 0; j < info->columns; j++) list[j] = (rank){j, info->drops[j]};
    qsort(list, (size_t)info->columns, sizeof *list, compare_drops);
    return list;
}

static char *column_name(const mercer_importance_info *info, int64_t column)
{
    return info->names != NULL ? cli_copy(info->names[column]) : cli_format("%" PRId64, column);
}

static const char *score_name(const mercer_importance_info *info)
{
    return info->task == MERCER_TASK_CLASSIFICATION ? "accuracy" : "r2";
}

/* ---- The command explain --------------------------------------------------------------------------------------- */

static json_t *importance_json(const mercer_importance_info *info, const rank *order)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < info->columns; i++) {
        int64_t j = order[i].column;
        CLI_OWNED(cli_drop) char *name = column_name(info, j);
        json_array_append_new(list, json_pack("{sI so so so}", "column", (json_int_t)j, "name", cli_json_text(name),
                                              "drop", cli_json_real(info->drops[j]), "standard_error",
                                              cli_json_real(info->errors[j])));
    }
    return json_pack("{sI sI ss so so}", "rows", (json_int_t)info->rows, "repeats", (json_int_t)info->repeats,
                     "measure", score_name(info), "score", cli_json_real(info->score), "permutation", list);
}

int cli_show_importance(const cli_values *v, const mercer_importance *importance)
{
    mercer_importance_info info = {.struct_size = sizeof info};
    mercer_importance_query(importance, &info);
    CLI_OWNED(cli_drop) rank *order = rank_columns(&info);
    int code = CLI_OK;
    if (cli_flag(v, "json")) {
        code = cli_print_answer(importance_json(&info, order));
    } else {
        const char *measure = info.task == MERCER_TASK_CLASSIFICATION ? "accuracy" : "R2";
        cli_table *table = cli_table_new(3, "lrr");
        cli_table_cell(table, "column");
        cli_table_cell(table, "decrease of %s", measure);
        cli_table_cell(table, "standard error");
        cli_table_line(table);
        for (int64_t i = 0; i < info.columns; i++) {
            CLI_OWNED(cli_drop) char *name = column_name(&info, order[i].column);
            cli_table_cell(table, "%s", name);
            cli_table_cell(table, "%.4g", info.drops[order[i].column]);
            if (isnan(info.errors[order[i].column]))
                cli_table_cell(table, "-");
            else
                cli_table_cell(table, "%.2g", info.errors[order[i].column]);
        }
        printf("%s %.6g of %" PRId64 " rows; each column permuted %" PRId64 " time%s\n", measure, info.score, info.rows,
               info.repeats, info.repeats == 1 ? "" : "s");
        cli_table_print(table, stdout);
    }
    return code;
}

/* ---- The report page --------------------------------------------------------------------------------------------- */

enum {
    SHOWN_COLUMNS = 6,
    MOST_COLUMNS = 200,
    POINTS = 16,
    PERMUTED_ROWS = 512,
    LEAST_ROWS = 64,
    DEPENDENCE_ROWS = 128,
    SHOWN_CLASSES = 4
};

/* Returns up to `most` evenly spaced rows as a new dataset; NULL on error. */
static mercer_dataset *spread_rows(const mercer_dataset *data, int64_t most)
{
    int64_t all = cli_data_info(data).rows, count = all < most ? all : most;
    CLI_OWNED(cli_drop) int64_t *rows = cli_allocate(count + 1, sizeof *rows);
    mercer_dataset *out = NULL;
    for (int64_t i = 0; i < count; i++) rows[i] = i * all / count;
    if (mercer_dataset_take(&out, data, rows, count) != MERCER_OK) out = NULL;
    return out;
}

/* Returns the levels of a column, whose index counts only columns that are not dropped; NULL if the column is not a
   category. */
static const json_t *levels_of(const json_t *schema, int64_t column)
{
    const json_t *list = json_object_get(schema, "columns");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *kind = json_string_value(json_object_get(one, "kind"));
        if (kind != NULL && strcmp(kind, "drop") == 0) continue;
        if (column-- == 0) return json_object_get(one, "levels");
    }
    return NULL;
}

/* ---- The result of a training run -------------------------------------------------------------------------------- */

/* Returns the number of columns that a model uses. */
static int64_t count_columns(const mercer_model *model)
{
    mercer_model_info info = cli_model_info(model);
    json_auto_t *schema = info.schema != NULL ? json_loads(info.schema, 0, NULL) : NULL;
    const json_t *list = json_object_get(schema, "columns");
    int64_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *kind = json_string_value(json_object_get(json_array_get(list, i), "kind"));
        count += kind == NULL || strcmp(kind, "drop") != 0;
    }
    return list != NULL ? count : info.features;
}

/* Returns the number of rows whose permutation importance takes at most `seconds`, estimated by timing an evaluation of
   LEAST_ROWS rows: PERMUTED_ROWS, halved until the time suffices; 0 if even LEAST_ROWS rows take too long. */
static int64_t affordable_rows(mercer_model *model, const mercer_dataset *data, double seconds)
{
    double start = cli_now();
    int64_t rows = PERMUTED_ROWS;
    mercer_evaluation *evaluation = NULL;
    mercer_dataset *few = spread_rows(data, LEAST_ROWS);
    mercer_status status = few != NULL ? mercer_evaluate(&evaluation, model, few, NULL) : MERCER_ERROR_MEMORY;
    double each = (cli_now() - start) / LEAST_ROWS * (double)count_columns(model);
    mercer_evaluation_free(evaluation);
    mercer_dataset_free(few);
    while (rows >= LEAST_ROWS && (double)rows * each > seconds) rows /= 2;
    return status == MERCER_OK && rows >= LEAST_ROWS ? rows : 0;
}

static int draw_importance(void *user, const mercer_progress *progress)
{
    cli_bar_draw(user, (double)progress->done / (double)progress->total, "importance of columns", 0);
    return cli_signal() != 0;
}

json_t *cli_find_importance(mercer_model *model, const mercer_dataset *data, double seconds, cli_bar *bar)
{
    mercer_permutation_options options = MERCER_INIT(mercer_permutation_options);
    mercer_importance_info info = {.struct_size = sizeof info};
    mercer_importance *importance = NULL;
    json_t *list = NULL;
    if (cli_data_info(data).feature_names == NULL || cli_model_info(model).feature_names == NULL) return NULL;
    int64_t rows = affordable_rows(model, data, seconds);
    mercer_dataset *some = rows > 0 ? spread_rows(data, rows) : NULL;
    options.repeats = 1;
    options.progress = draw_importance;
    options.progress_user = bar;
    if (some != NULL && mercer_permutation_importance(&importance, model, some, &options) == MERCER_OK &&
        mercer_importance_query(importance, &info) == MERCER_OK) {
        CLI_OWNED(cli_drop) rank *order = rank_columns(&info);
        list = json_array();
        for (int64_t i = 0; i < info.columns; i++) {
            CLI_OWNED(cli_drop) char *name = column_name(&info, order[i].column);
            json_array_append_new(list, json_pack("{so so}", "name", cli_json_text(name), "drop",
                                                  cli_json_real(info.drops[order[i].column])));
        }
    }
    cli_bar_clear(bar);
    mercer_importance_free(importance);
    mercer_dataset_free(some);
    return list;
}

/* ---- Events of the log ------------------------------------------------------------------------------------------- */

static void log_importance(cli_log *log, const mercer_importance_info *info, const rank *order)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < info->columns; i++) {
        CLI_OWNED(cli_drop) char *name = column_name(info, order[i].column);
        json_array_append_new(rows, json_pack("[o o]", cli_json_text(name), cli_json_real(order[i].drop)));
    }
    int classes = info->task == MERCER_TASK_CLASSIFICATION;
    cli_log_event(log, "table",
                  json_pack("{ss ss s[ss] so}", "title", "Importance of columns", "text",
                            classes ? "Decrease of accuracy when a column is permuted among the rows."
                                    : "Decrease of R2 when a column is permuted among the rows.",
                            "columns", "column", classes ? "decrease of accuracy" : "decrease of R2", "rows", rows));
}

static json_t *number_array(const double *values, int64_t count, int64_t stride)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(list, cli_json_real(values[i * stride]));
    return list;
}

/* Logs a table of the levels and their mean predictions. */
static void log_levels(cli_log *log, const char *name, const json_t *levels, const double *f, int64_t count, int64_t c,
                       int64_t first, json_t *heads)
{
    json_t *rows = json_array();
    for (int64_t k = 0; k < count; k++) {
        json_t *row = json_array();
        json_array_append(row, json_array_get(levels, (size_t)k));
        for (int64_t l = first; l < c && l < first + SHOWN_CLASSES; l++)
            json_array_append_new(row, cli_json_real(f[k * c + l]));
        json_array_append_new(rows, row);
    }
    CLI_OWNED(cli_drop) char *title = cli_format("Partial dependence on %s", name);
    json_array_insert_new(heads, 0, cli_json_text(name));
    cli_log_event(log, "table", json_pack("{so so so}", "title", cli_json_text(title), "columns", heads, "rows", rows));
}

static void log_dependence(cli_log *log, mercer_model *model, const mercer_dataset *data, int64_t column,
                           const char *name, const json_t *levels)
{
    mercer_model_info about = cli_model_info(model);
    int64_t c = about.outputs, count = 0, first = c == 2 ? 1 : 0;
    const char *const *labels = about.label_count == c ? about.labels : NULL;
    double values[POINTS];
    CLI_OWNED(cli_drop) double *f = cli_allocate(POINTS * c, sizeof *f);
    mercer_matrix F = mercer_matrix_view(f, POINTS, c, MERCER_F64);
    if (labels == NULL) first = 0;
    if (mercer_partial_dependence(model, data, column, values, &F, &count) != MERCER_OK || count < 2) return;
    json_t *series = json_array(), *heads = json_array();
    for (int64_t l = first; l < c && l < first + SHOWN_CLASSES; l++) {
        const char *text = labels != NULL ? labels[l] : "mean prediction";
        json_array_append_new(heads, cli_json_text(text));
        json_array_append_new(series, json_pack("{so so so}", "name", cli_json_text(text), "x",
                                                number_array(values, count, 1), "y", number_array(f + l, count, c)));
    }
    if (levels != NULL) {
        json_decref(series);
        log_levels(log, name, levels, f, count, c, first, heads);
        return;
    }
    json_decref(heads);
    cli_log_event(log, "chart",
                  json_pack("{so ss ss so ss so}", "title", cli_json_text(name), "section", "Partial dependence",
                            "text",
                            "The mean prediction when one column has the same value in all rows and the other columns "
                            "are unchanged, for the most important columns.",
                            "x", cli_json_text(name), "y", "mean prediction", "series", series));
}

/* Logs the partial dependence on the most important columns: first charts of numeric columns, because the page places
   consecutive charts side by side, then tables of categories. */
static void log_importance_and_dependence(cli_log *log, mercer_model *model, const mercer_dataset *data,
                                          const mercer_importance_info *info, const rank *order)
{
    const char *text = cli_model_info(model).schema;
    json_auto_t *schema = text != NULL ? json_loads(text, 0, NULL) : NULL;
    for (int categories = 0; categories < 2; categories++)
        for (int64_t i = 0; i < info->columns && i < SHOWN_COLUMNS; i++) {
            const json_t *levels = levels_of(schema, order[i].column);
            if ((levels != NULL) != categories || !(order[i].drop > 0)) continue;
            CLI_OWNED(cli_drop) char *name = column_name(info, order[i].column);
            log_dependence(log, model, data, order[i].column, name, levels);
        }
}

void cli_log_importance(cli_log *log, mercer_model *model, const mercer_dataset *data)
{
    mercer_dataset_info about = cli_data_info(data);
    mercer_permutation_options options = MERCER_INIT(mercer_permutation_options);
    mercer_importance_info info = {.struct_size = sizeof info};
    mercer_importance *importance = NULL;
    if (about.feature_names == NULL || about.features > MOST_COLUMNS) return;
    mercer_dataset *some = spread_rows(data, PERMUTED_ROWS), *few = spread_rows(data, DEPENDENCE_ROWS);
    options.repeats = 1;
    if (some != NULL && few != NULL && mercer_permutation_importance(&importance, model, some, &options) == MERCER_OK) {
        mercer_importance_query(importance, &info);
        CLI_OWNED(cli_drop) rank *order = rank_columns(&info);
        log_importance(log, &info, order);
        log_importance_and_dependence(log, model, few, &info, order);
    }
    mercer_importance_free(importance);
    mercer_dataset_free(few);
    mercer_dataset_free(some);
}

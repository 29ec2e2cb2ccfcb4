/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How good a model is, and the command that tells.
 *
 *   accuracy = share of rows with argmax_j f_j(x) = class of x
 *   mse      = 1/(n c) sum_i |f(x_i) - y_i|^2,  y one-hot for classes
 *   r2       = 1 - sum |f(x_i) - y_i|^2 / sum |y_i - mean y|^2
 *   mae      = 1/(n c) sum_i sum_j |f_j(x_i) - y_ij|
 *
 * n rows, c outputs. The variance is summed by Welford's updates, which do not cancel.
 */
#include "commands/commands.h"
#include "commands/evaluate.h"
#include "ranks/program_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t cli_block_rows(int64_t features, int64_t outputs)
{
    int64_t rows = ((int64_t)32 << 20) / (8 * (features + 2 * outputs + 1));
    return rows < 64 ? 64 : (rows > 8192 ? 8192 : rows);
}

enum { SAMPLED_ROWS = 2000, SHOWN_OUTPUTS = 4, LISTED_OUTPUTS = 100 };

typedef struct sums {
    double squared_error;
    int64_t right, seen, kept;
    double *mean, *spread;      /* (outputs) of the targets, for r2 */
    double *squared, *absolute; /* (outputs) of the errors */
} sums;

static double element(const mercer_matrix *m, int64_t i, int64_t j)
{
    if (m->dtype == MERCER_F64) return ((const double *)m->data)[i * m->ld + j];
    return (double)((const float *)m->data)[i * m->ld + j];
}

/* Row i of n is among the m that are kept if floor(i m / n) is new: exactly m are, spread evenly. */
static int is_kept(int64_t i, int64_t n, int64_t m)
{
    return i == 0 || i * m / n != (i - 1) * m / n;
}

static void keep_pair(sums *s, cli_metrics *out, const mercer_matrix *F, const mercer_matrix *Y, int64_t i)
{
    if (out->sampled == 0 || !is_kept(s->seen, out->rows, out->sampled)) return;
    for (int64_t j = 0; j < out->shown; j++) {
        out->truth[s->kept * out->shown + j] = element(Y, i, j);
        out->given[s->kept * out->shown + j] = element(F, i, j);
    }
    s->kept++;
}

static void add_row(sums *s, cli_metrics *out, const mercer_matrix *F, const mercer_matrix *Y, int64_t i, int32_t label)
{
    int64_t best = 0;
    keep_pair(s, out, F, Y, i);
    s->seen++;
    for (int64_t j = 0; j < F->cols; j++) {
        double f = element(F, i, j), y = element(Y, i, j), off = y - s->mean[j];
        s->squared_error += (f - y) * (f - y);
        s->squared[j] += (f - y) * (f - y);
        s->absolute[j] += fabs(f - y);
        s->mean[j] += off / (double)s->seen;
        s->spread[j] += off * (y - s->mean[j]);
        if (f > element(F, i, best)) best = j;
    }
    if (!out->classifier) return;
    s->right += best == label;
    out->confusion[label * out->outputs + best]++;
}

static mercer_status add_blocks(mercer_model *model, const mercer_dataset *dataset, cli_bar *bar, cli_metrics *out,
                                sums *s)
{
    mercer_dataset_info info = cli_data_info(dataset);
    mercer_dtype real = cli_result_type(model);
    int64_t most = cli_block_rows(info.features, info.outputs), n = info.rows;
    void *x = cli_allocate(most * info.features, (size_t)cli_dtype_size(info.dtype));
    void *f = cli_allocate(most * info.outputs, (size_t)cli_dtype_size(real));
    void *y = cli_allocate(most * info.outputs, (size_t)cli_dtype_size(real));
    int32_t *labels = out->classifier ? cli_allocate(most, sizeof *labels) : NULL;
    mercer_status status = MERCER_OK;
    for (int64_t first = 0; first < n && status == MERCER_OK; first += most) {
        int64_t m = n - first < most ? n - first : most;
        mercer_matrix X = mercer_matrix_view(x, m, info.features, info.dtype);
        mercer_matrix F = mercer_matrix_view(f, m, info.outputs, real);
        mercer_matrix Y = mercer_matrix_view(y, m, info.outputs, real);
        status = mercer_dataset_read(dataset, &X, &Y, labels, NULL, NULL, first);
        if (status == MERCER_OK) status = mercer_model_predict(model, &F, &X);
        for (int64_t i = 0; i < m && status == MERCER_OK; i++) add_row(s, out, &F, &Y, i, labels ? labels[i] : 0);
        if (bar != NULL) cli_bar_draw(bar, (double)(first + m) / (double)n, "evaluating", 0);
    }
    free(x);
    free(f);
    free(y);
    free(labels);
    return status;
}

static sums new_sums(int64_t outputs)
{
    return (sums){.mean = cli_allocate(outputs, sizeof(double)),
                  .spread = cli_allocate(outputs, sizeof(double)),
                  .squared = cli_allocate(outputs, sizeof(double)),
                  .absolute = cli_allocate(outputs, sizeof(double))};
}

static void free_sums(sums *s)
{
    free(s->mean);
    free(s->spread);
    free(s->squared);
    free(s->absolute);
}

static void new_metrics(cli_metrics *out, const mercer_dataset_info *info)
{
    *out = (cli_metrics){.rows = info->rows, .outputs = info->outputs};
    out->classifier = info->task == MERCER_TASK_CLASSIFICATION;
    if (out->classifier) {
        out->confusion = cli_allocate(info->outputs * info->outputs, sizeof *out->confusion);
        return;
    }
    out->sampled = info->rows < SAMPLED_ROWS ? info->rows : SAMPLED_ROWS;
    out->shown = info->outputs < SHOWN_OUTPUTS ? info->outputs : SHOWN_OUTPUTS;
    out->each = cli_allocate(info->outputs, sizeof *out->each);
    out->truth = cli_allocate(out->sampled * out->shown, sizeof *out->truth);
    out->given = cli_allocate(out->sampled * out->shown, sizeof *out->given);
}

static void finish_metrics(cli_metrics *out, const sums *s)
{
    double spread = 0, absolute = 0, rows = (double)out->rows;
    for (int64_t j = 0; j < out->outputs; j++) {
        spread += s->spread[j];
        absolute += s->absolute[j];
        if (out->each == NULL) continue;
        out->each[j] = (cli_output_metrics){.r2 = s->spread[j] > 0 ? 1 - s->squared[j] / s->spread[j] : (double)NAN,
                                            .rmse = sqrt(s->squared[j] / rows),
                                            .mae = s->absolute[j] / rows};
    }
    out->mse = s->squared_error / (rows * (double)out->outputs);
    out->mae = absolute / (rows * (double)out->outputs);
    out->accuracy = out->classifier ? (double)s->right / rows : (double)NAN;
    out->r2 = !out->classifier && spread > 0 ? 1 - s->squared_error / spread : (double)NAN;
}

int cli_evaluate(mercer_model *model, mercer_context *context, const mercer_dataset *dataset, const char *name,
                 cli_bar *bar, cli_metrics *out)
{
    mercer_dataset_info info = cli_data_info(dataset);
    double start = cli_now();
    sums s = new_sums(info.outputs);
    new_metrics(out, &info);
    mercer_status status = add_blocks(model, dataset, bar, out, &s);
    if (bar != NULL) cli_bar_clear(bar);
    finish_metrics(out, &s);
    out->seconds = cli_now() - start;
    free_sums(&s);
    if (status == MERCER_OK) return CLI_OK;
    cli_metrics_free(out);
    return cli_fail_on(context, status, dataset, name);
}

void cli_metrics_free(cli_metrics *metrics)
{
    free(metrics->confusion);
    free(metrics->each);
    free(metrics->truth);
    free(metrics->given);
    metrics->confusion = NULL;
    metrics->each = NULL;
    metrics->truth = metrics->given = NULL;
}

/* A column of the kept pairs, in the seven digits that a plot can use at most. */
static json_t *column_json(const double *values, int64_t rows, int64_t columns, int64_t column)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < rows; i++) {
        char text[CLI_SHORT];
        snprintf(text, sizeof text, "%.7g", values[i * columns + column]);
        json_array_append_new(array, cli_json_real(strtod(text, NULL)));
    }
    return array;
}

json_t *cli_predictions_json(const cli_metrics *metrics, const char *data)
{
    json_t *outputs = json_array();
    for (int64_t j = 0; j < metrics->outputs && j < LISTED_OUTPUTS; j++) {
        const cli_output_metrics *one = &metrics->each[j];
        json_t *output = json_pack("{so so so}", "r2", cli_json_real(one->r2), "rmse", cli_json_real(one->rmse), "mae",
                                   cli_json_real(one->mae));
        if (j < metrics->shown) {
            json_object_set_new(output, "true", column_json(metrics->truth, metrics->sampled, metrics->shown, j));
            json_object_set_new(output, "predicted", column_json(metrics->given, metrics->sampled, metrics->shown, j));
        }
        json_array_append_new(outputs, output);
    }
    return json_pack("{ss sI so}", "data", data, "rows", (json_int_t)metrics->rows, "outputs", outputs);
}

json_t *cli_confusion_json(const cli_metrics *metrics)
{
    json_t *matrix = json_array();
    for (int64_t i = 0; i < metrics->outputs; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < metrics->outputs; j++)
            json_array_append_new(row, json_integer(metrics->confusion[i * metrics->outputs + j]));
        json_array_append_new(matrix, row);
    }
    return matrix;
}

void cli_print_confusion(const cli_metrics *metrics, const char *const *labels, FILE *file)
{
    int64_t c = metrics->outputs;
    char *alignment = cli_allocate(c + 2, 1);
    memset(alignment, 'r', (size_t)c + 1);
    cli_table *table = cli_table_new((int)c + 1, alignment);
    cli_table_cell(table, "true \\ predicted");
    for (int64_t j = 0; j < c; j++) cli_table_cell(table, "%s", labels[j]);
    for (int64_t i = 0; i < c; i++) {
        cli_table_cell(table, "%s", labels[i]);
        for (int64_t j = 0; j < c; j++) cli_table_cell(table, "%" PRId64, metrics->confusion[i * c + j]);
    }
    cli_table_print(table, file, "");
    cli_table_free(table);
    free(alignment);
}

/* ---- mercer eval ------------------------------------------------------------------------------------------------- */

static int show_metrics(const cli_values *v, const cli_metrics *m, const char *const *labels)
{
    char rows[CLI_SHORT], seconds[CLI_SHORT];
    if (cli_rank() > 0) return CLI_OK;
    cli_count_text(rows, m->rows);
    if (cli_flag(v, "json")) {
        json_t *object = json_object();
        if (m->classifier) json_object_set_new(object, "accuracy", cli_json_real(m->accuracy));
        json_object_set_new(object, "mse", cli_json_real(m->mse));
        if (!m->classifier) {
            json_object_set_new(object, "rmse", cli_json_real(sqrt(m->mse)));
            json_object_set_new(object, "mae", cli_json_real(m->mae));
            json_object_set_new(object, "r2", cli_json_real(m->r2));
        }
        json_object_set_new(object, "rows", json_integer(m->rows));
        json_object_set_new(object, "seconds", cli_json_real(m->seconds));
        if (m->classifier && cli_flag(v, "confusion")) {
            json_t *names = json_array();
            for (int64_t i = 0; i < m->outputs; i++) json_array_append_new(names, json_string(labels[i]));
            json_object_set_new(object, "labels", names);
            json_object_set_new(object, "confusion", cli_confusion_json(m));
        }
        return cli_print_json(object);
    }
    if (m->classifier) printf("accuracy  %.2f %%\n", 100 * m->accuracy);
    printf("mse       %.6g\n", m->mse);
    if (!m->classifier) printf("rmse      %.6g\nmae       %.6g\n", sqrt(m->mse), m->mae);
    if (!m->classifier && isfinite(m->r2)) printf("r2        %.6g\n", m->r2);
    printf("rows      %s in %s\n", rows, cli_seconds_text(seconds, m->seconds));
    if (m->classifier && cli_flag(v, "confusion")) {
        printf("\n");
        cli_print_confusion(m, labels, stdout);
    }
    return CLI_OK;
}

mercer_status cli_load_model(const cli_values *v, mercer_context *context, mercer_model **out)
{
    const char *path = cli_text(v, "model");
    return cli_comm() != NULL ? mercer_model_load_shared(out, cli_comm(), path) : mercer_model_load(out, context, path);
}

int cli_open_for_model(const cli_values *v, mercer_context *context, const mercer_model *model, int unlabelled,
                       mercer_dataset **out)
{
    int64_t count = 0;
    int64_t features = mercer_model_features(model);
    mercer_matrix weights = mercer_model_weights(model);
    const char *const *labels = mercer_model_labels(model, &count);
    int classifier = labels != NULL && count == weights.cols;
    cli_request request = {.unlabelled = unlabelled,
                           .regression = !classifier,
                           .labels = classifier ? labels : NULL,
                           .label_count = classifier ? count : 0,
                           .features = features};
    request.columns = mercer_model_feature_names(model, &request.column_count);
    int code = cli_open_data(v, context, &request, out);
    if (code != CLI_OK) return code;
    mercer_dataset_info info = cli_data_info(*out);
    uint64_t print = 0;
    if (info.features != features)
        code = cli_error(CLI_DATA, "%s: %" PRId64 " features, but the model was trained on %" PRId64, cli_data_name(v),
                         info.features, features);
    else if (info.rows == 0)
        code = cli_error(CLI_DATA, "%s: has no rows", cli_data_name(v));
    else if (!unlabelled && info.task == MERCER_TASK_UNLABELLED)
        code = cli_error(CLI_USAGE, "%s: has no targets to compare with: give --y FILE", cli_data_name(v));
    else if (!unlabelled && info.outputs != weights.cols)
        code = cli_error(CLI_DATA, "%s: %" PRId64 " targets, but the model has %" PRId64 " outputs", cli_data_name(v),
                         info.outputs, weights.cols);
    if (code == CLI_OK && cli_comm() != NULL && mercer_dataset_fingerprint(*out, &print) == MERCER_OK)
        code = cli_agree("other data", &print, sizeof print);
    if (code != CLI_OK) {
        mercer_dataset_free(*out);
        *out = NULL;
    }
    return code;
}

int cli_eval(const cli_values *v)
{
    mercer_context *context = NULL;
    mercer_model *model = NULL;
    mercer_dataset *dataset = NULL;
    cli_metrics metrics = {0};
    cli_bar bar;
    int code = cli_check_data(v);
    if (code == CLI_OK) code = cli_context(v, &context);
    if (code != CLI_OK) return code;
    cli_bar_init(&bar, v);
    mercer_status status = cli_load_model(v, context, &model);
    if (status != MERCER_OK) code = cli_fail(context, status);
    if (code == CLI_OK) code = cli_open_for_model(v, context, model, 0, &dataset);
    if (code == CLI_OK) code = cli_evaluate(model, context, dataset, cli_data_name(v), &bar, &metrics);
    if (code == CLI_OK) code = show_metrics(v, &metrics, mercer_model_labels(model, NULL));
    cli_metrics_free(&metrics);
    mercer_dataset_free(dataset);
    mercer_model_free(model);
    cli_release_context(context);
    return code;
}

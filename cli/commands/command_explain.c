/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command explain: shows which columns or features determine a model's outputs. --permutation computes the
 * permutation importance of columns. --gradients computes for feature k, over the samples i and outputs l,
 *
 *   mean absolute  sum_l mean_i |g_ilk|     root mean squared  sqrt(sum_l mean_i g_ilk^2)     g_ilk = d f_l / d x_k
 *
 * and the products of both with the standard deviation of the feature over the samples. The products do not depend on
 * the unit of the feature. --shap computes the Shapley values of the columns for each row, block by block.
 */
#include "commands/commands.h"
#include "commands/evaluate.h"
#include "data.h"
#include "job.h"
#include "options/options.h"
#include "ranks/program_ranks.h"
#include "results/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Gradient statistics of a feature. */
typedef struct sensitivity {
    int64_t feature;
    char *name;
    double absolute, square;   /* sums of |g| and g^2; at the end their mean and root mean square */
    double mean, spread;       /* mean of the feature, and sum of squared deviations; at the end standard deviation */
    double effect, effect_rms; /* `absolute` and `square`, multiplied by the standard deviation of the feature */
} sensitivity;

static int compare_effects(const void *a, const void *b)
{
    const sensitivity *left = a, *right = b;
    if (left->effect_rms != right->effect_rms) return left->effect_rms < right->effect_rms ? 1 : -1;
    return (left->feature > right->feature) - (left->feature < right->feature);
}

/* Adds m samples x (m, d) and their gradients (m, c d) to the statistics of the d features. `before`: number of samples
   added earlier. */
static void add_gradients(sensitivity *all, int64_t d, int64_t c, int64_t before, int64_t m, const double *gradients,
                          const double *x)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < d; k++) {
            sensitivity *one = &all[k];
            for (int64_t l = 0; l < c; l++) {
                double g = gradients[(i * c + l) * d + k];
                one->absolute += fabs(g);
                one->square += g * g;
            }
            double delta = x[i * d + k] - one->mean;
            one->mean += delta / (double)(before + i + 1);
            one->spread += delta * (x[i * d + k] - one->mean);
        }
}

static int measure_gradients(mercer_model *model, mercer_context *context, mercer_dataset *data, const char *name,
                             sensitivity *all)
{
    mercer_dataset_info info = cli_data_info(data);
    int64_t c = cli_model_info(model).outputs, d = info.features, n = info.rows;
    int64_t most = cli_block_rows(d, c * d);
    CLI_OWNED(cli_drop) void *samples = cli_allocate(most * d, (size_t)cli_dtype_size(info.dtype));
    CLI_OWNED(cli_drop) double *x = cli_allocate(most * d, sizeof *x);
    CLI_OWNED(cli_drop) double *gradients = cli_allocate(most * c * d, sizeof *gradients);
    mercer_status status = MERCER_OK;
    for (int64_t first = 0; first < n && status == MERCER_OK; first += most) {
        int64_t m = n - first < most ? n - first : most;
        mercer_matrix X = mercer_matrix_view(samples, m, d, info.dtype), wide = mercer_matrix_view(x, m, d, MERCER_F64),
                      G = mercer_matrix_view(gradients, m, c * d, MERCER_F64);
        status = mercer_dataset_read(data, &X, NULL, NULL, NULL, NULL, first);
        if (status == MERCER_OK) status = mercer_dataset_read(data, &wide, NULL, NULL, NULL, NULL, first);
        if (status == MERCER_OK) status = mercer_model_gradient(model, &G, &X);
        if (status == MERCER_OK) add_gradients(all, d, c, first, m, gradients, x);
    }
    for (int64_t k = 0; k < d; k++) {
        all[k].absolute /= (double)n;
        all[k].square = sqrt(all[k].square / (double)n);
        all[k].spread = sqrt(all[k].spread / (double)n);
        all[k].effect = all[k].absolute * all[k].spread;
        all[k].effect_rms = all[k].square * all[k].spread;
    }
    return status == MERCER_OK ? CLI_OK : cli_fail_on(context, status, data, name);
}

static int print_gradients(const cli_values *v, const sensitivity *all, int64_t d, int64_t rows)
{
    if (cli_flag(v, "json")) {
        json_t *list = json_array();
        for (int64_t k = 0; k < d; k++)
            json_array_append_new(
                list, json_pack("{sI so so so so so so}", "feature", (json_int_t)all[k].feature, "name",
                                cli_json_text(all[k].name), "mean_absolute", cli_json_real(all[k].absolute),
                                "root_mean_squared", cli_json_real(all[k].square), "deviation",
                                cli_json_real(all[k].spread), "effect_mean_absolute", cli_json_real(all[k].effect),
                                "effect_root_mean_squared", cli_json_real(all[k].effect_rms)));
        return cli_print_answer(json_pack("{sI so}", "rows", (json_int_t)rows, "gradients", list));
    }
    cli_table *table = cli_table_new(5, "lrrrr");
    const char *const heads[] = {"feature", "effect per standard deviation (rms)", "(mean)", "derivative (rms)",
                                 "(mean)"};
    for (int i = 0; i < 5; i++) cli_table_cell(table, "%s", heads[i]);
    cli_table_line(table);
    for (int64_t k = 0; k < d; k++) {
        cli_table_cell(table, "%s", all[k].name);
        const double numbers[] = {all[k].effect_rms, all[k].effect, all[k].square, all[k].absolute};
        for (int i = 0; i < 4; i++) cli_table_cell(table, "%.4g", numbers[i]);
    }
    cli_table_print(table, stdout);
    return CLI_OK;
}

static int explain_gradients(const cli_values *v, mercer_context *context, mercer_model *model, mercer_dataset *data)
{
    mercer_model_info info = cli_model_info(model);
    int64_t d = info.features, rows = cli_data_info(data).rows;
    const char *const *names = info.feature_names;
    CLI_OWNED(cli_drop) sensitivity *all = cli_allocate(d + 1, sizeof *all);
    for (int64_t k = 0; k < d; k++) {
        all[k].feature = k;
        all[k].name = names != NULL ? cli_copy(names[k]) : cli_format("%" PRId64, k);
    }
    int code = measure_gradients(model, context, data, cli_data_name(v), all);
    qsort(all, (size_t)d, sizeof *all, compare_effects);
    if (code == CLI_OK) code = print_gradients(v, all, d, rows);
    for (int64_t k = 0; k < d; k++) free(all[k].name);
    return code;
}

static int draw_permutation(void *user, const mercer_progress *progress)
{
    cli_bar_draw(user, (double)progress->done / (double)progress->total, "permuting columns", 0);
    return cli_signal() != 0;
}

CLI_RELEASE(drop_importance, mercer_importance, mercer_importance_free)

static int explain_permutation(const cli_values *v, mercer_context *context, mercer_model *model, mercer_dataset *data)
{
    mercer_permutation_options options = MERCER_INIT(mercer_permutation_options);
    CLI_OWNED(drop_importance) mercer_importance *importance = NULL;
    cli_bar bar;
    int stop = 0;
    cli_bar_init(&bar, v);
    cli_catch_signals();
    options.repeats = cli_integer(v, "repeats");
    options.seed = (uint64_t)cli_integer(v, "seed");
    options.progress = draw_permutation;
    options.progress_user = &bar;
    mercer_status status = mercer_permutation_importance(&importance, model, data, &options);
    cli_bar_clear(&bar);
    if (status == MERCER_OK) return cli_show_importance(v, importance);
    CLI_TRY(cli_interrupted(&stop));
    if (stop) return cli_error(cli_signal_code(), "interrupted");
    return cli_fail_on(context, status, data, cli_data_name(v));
}

/* ---- Shapley values ---------------------------------------------------------------------------------------------- */

/* Largest number of rows and of values per block. Between blocks, signals are handled and the progress bar is drawn. */
enum { SHAP_ROWS = 64, SHAP_VALUES = 2 << 20 };

CLI_RELEASE(drop_shap, mercer_shap, mercer_shap_free)

/* Reads up to --background-rows evenly spaced rows of --background. */
static int read_background(const cli_values *v, mercer_context *context, mercer_model *model, void **rows,
                           mercer_matrix *out)
{
    static const char *const names[] = {"x", "first", "rows"};
    const char *const values[] = {cli_text(v, "background"), "0", "0"};
    CLI_OWNED(cli_drop_values) cli_values *with = cli_values_copy(v);
    CLI_OWNED(cli_drop_dataset) mercer_dataset *data = NULL;
    for (int i = 0; i < 3; i++)
        CLI_TRY(cli_values_set(with, cli_find_option(cli_values_command(with), names[i]), values[i], CLI_FROM_COMMAND,
                               "--background"));
    CLI_TRY(cli_open_for_model(with, context, model, 1, &data));
    mercer_dataset_info info = cli_data_info(data);
    int64_t most = cli_integer(v, "background-rows"), count = info.rows < most ? info.rows : most;
    CLI_OWNED(cli_drop) int64_t *numbers = cli_allocate(count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++) numbers[i] = i * info.rows / count;
    *rows = cli_allocate(count * info.features, (size_t)cli_dtype_size(info.dtype));
    *out = mercer_matrix_view(*rows, count, info.features, info.dtype);
    mercer_status status = mercer_dataset_read(data, out, NULL, NULL, NULL, numbers, 0);
    return status == MERCER_OK ? CLI_OK : cli_fail_on(context, status, data, values[0]);
}

/* Computes the Shapley values of all rows and adds them to `to`. */
static mercer_status compute_shap(const cli_values *v, mercer_shap *shap, mercer_dataset *data, cli_shap *to)
{
    mercer_dataset_info info = cli_data_info(data);
    int64_t size = to->info.columns * to->info.outputs * (to->pairs ? to->info.columns : 1);
    int64_t most = size > SHAP_VALUES ? 1 : SHAP_VALUES / size < SHAP_ROWS ? SHAP_VALUES / size : SHAP_ROWS;
    CLI_OWNED(cli_drop) void *samples = cli_allocate(most * info.features, (size_t)cli_dtype_size(info.dtype));
    CLI_OWNED(cli_drop) double *values = cli_allocate(most * size, sizeof *values);
    mercer_status status = MERCER_OK;
    cli_bar bar;
    cli_bar_init(&bar, v);
    for (int64_t first = 0; first < info.rows && status == MERCER_OK && cli_signal() == 0; first += most) {
        int64_t m = info.rows - first < most ? info.rows - first : most;
        mercer_matrix X = mercer_matrix_view(samples, m, info.features, info.dtype),
                      V = mercer_matrix_view(values, m, size, MERCER_F64);
        status = mercer_dataset_read(data, &X, NULL, NULL, NULL, NULL, first);
        if (status == MERCER_OK) status = (to->pairs ? mercer_shap_interactions : mercer_shap_values)(shap, &V, &X);
        if (status == MERCER_OK) cli_shap_put(to, values, m, first + cli_integer(v, "first"));
        cli_bar_draw(&bar, (double)(first + m) / (double)info.rows, "Shapley values", 0);
    }
    cli_bar_clear(&bar);
    return status;
}

/* Writes the Shapley values to --output, if the option is set, and prints the summary. */
static int write_shap(const cli_values *v, mercer_context *context, mercer_shap *shap, const mercer_model *model,
                      mercer_dataset *data)
{
    const char *path = cli_text(v, "output"), *given = cli_text(v, "background");
    CLI_OWNED(cli_shap_close) cli_shap values = {.separator = ',', .pairs = cli_flag(v, "interactions")};
    cli_output *output = NULL;
    int stop = 0;
    if (path != NULL) {
        CLI_TRY(cli_output_open(&output, path));
        values.file = cli_output_file(output);
        values.separator = cli_ends_with(path, ".tsv") ? '\t' : ',';
    }
    cli_shap_open(&values, shap, model);
    cli_shap_begin(&values);
    mercer_status status = compute_shap(v, shap, data, &values);
    int code = status == MERCER_OK ? cli_interrupted(&stop) : cli_fail_on(context, status, data, cli_data_name(v));
    if (code == CLI_OK && stop) code = cli_error(cli_signal_code(), "interrupted; nothing was written");
    if (code != CLI_OK) {
        cli_output_drop(output);
        return code;
    }
    if (output != NULL) CLI_TRY(cli_output_close(output));
    CLI_OWNED(cli_drop)
    char *background = given != NULL ? cli_format("%" PRId64 " rows of %s", values.info.background_rows, given)
                                     : cli_format("%" PRId64 " centers of the model", values.info.background_rows);
    return cli_shap_show(v, &values, background);
}

static int explain_shap(const cli_values *v, mercer_context *context, mercer_model *model, mercer_dataset *data)
{
    CLI_OWNED(cli_drop) void *rows = NULL;
    CLI_OWNED(drop_shap) mercer_shap *shap = NULL;
    mercer_matrix background;
    mercer_shap_options options = MERCER_INIT(mercer_shap_options);
    int given = cli_text(v, "background") != NULL;
    cli_catch_signals();
    if (given) CLI_TRY(read_background(v, context, model, &rows, &background));
    if (!given) options.rows = cli_integer(v, "background-rows");
    CLI_TRY(cli_check(context, mercer_model_shap(&shap, model, given ? &background : NULL, &options)));
    return write_shap(v, context, shap, model, data);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* Checks, before any file is read, that the options are compatible. */
static int check_methods(const cli_values *v)
{
    const char *output = cli_text(v, "output");
    int methods = cli_flag(v, "permutation") + cli_flag(v, "gradients") + cli_flag(v, "shap");
    if (methods > 1)
        return cli_error(CLI_USAGE,
                         "explain: --permutation, --gradients and --shap exclude each other; remove all but one");
    if (!cli_flag(v, "shap") && cli_flag(v, "interactions"))
        return cli_error(CLI_USAGE, "--interactions: has no effect without --shap; remove it or add --shap");
    if (!cli_flag(v, "shap") && (output != NULL || cli_text(v, "background") != NULL))
        return cli_error(CLI_USAGE, "--%s: has no effect without --shap; remove it or add --shap",
                         output != NULL ? "output" : "background");
    if (cli_integer(v, "background-rows") < 1)
        return cli_error(CLI_USAGE, "--background-rows: %" PRId64 " is too small; use at least 1",
                         cli_integer(v, "background-rows"));
    if (cli_text(v, "background") != NULL && cli_text(v, "x") == NULL)
        return cli_error(CLI_USAGE, "--background: needs samples in a file; add --x FILE");
    if (output == NULL) return CLI_OK;
    if (strcmp(output, "-") != 0 && !cli_ends_with(output, ".csv") && !cli_ends_with(output, ".tsv"))
        return cli_error(CLI_USAGE, "--output: %s: unknown format; use a name that ends in .csv or .tsv, or -", output);
    if (strcmp(output, "-") == 0 && cli_flag(v, "json"))
        return cli_error(CLI_USAGE, "--json and --output -: both write to stdout; name an output file");
    return cli_check_output(output);
}

int cli_explain(const cli_values *v)
{
    CLI_OWNED(cli_drop_context) mercer_context *context = NULL;
    CLI_OWNED(cli_drop_model) mercer_model *model = NULL;
    CLI_OWNED(cli_drop_dataset) mercer_dataset *data = NULL;
    int permutes = !cli_flag(v, "gradients") && !cli_flag(v, "shap");
    CLI_TRY(cli_check_data(v));
    CLI_TRY(check_methods(v));
    CLI_TRY(cli_context(v, &context));
    CLI_TRY(cli_load_model(v, context, &model));
    CLI_TRY(cli_open_for_model(v, context, model, !permutes, &data));
    if (cli_flag(v, "shap")) return explain_shap(v, context, model, data);
    return (permutes ? explain_permutation : explain_gradients)(v, context, model, data);
}

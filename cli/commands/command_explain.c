/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command explain: what a model's outputs depend on. --permutation computes the permutation importance of columns,
 * as measured by the library. --gradients computes for feature k, over the samples i and outputs l,
 *
 *   mean absolute  sum_l mean_i |g_ilk|     root mean squared  sqrt(sum_l mean_i g_ilk^2)     g_ilk = d f_l / d x_k
 *
 * and both multiplied by the standard deviation of the feature over the samples, which makes them independent of units.
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
    double absolute, square;   /* running sums, finally mean absolute and root mean squared derivative */
    double mean, spread;       /* of the feature: mean, and sum of squared deviations, finally standard deviation */
    double effect, effect_rms; /* absolute and square, multiplied by the standard deviation */
} sensitivity;

static int compare_effects(const void *a, const void *b)
{
    const sensitivity *left = a, *right = b;
    if (left->effect_rms != right->effect_rms) return left->effect_rms < right->effect_rms ? 1 : -1;
    return (left->feature > right->feature) - (left->feature < right->feature);
}

/* Adds gradients (m, c d) of m samples and the samples (m, d) to the statistics; `before` samples were added
   earlier. */
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

int cli_explain(const cli_values *v)
{
    CLI_OWNED(cli_drop_context) mercer_context *context = NULL;
    CLI_OWNED(cli_drop_model) mercer_model *model = NULL;
    CLI_OWNED(cli_drop_dataset) mercer_dataset *data = NULL;
    int permutes = !cli_flag(v, "gradients");
    CLI_TRY(cli_check_data(v));
    if (!permutes && cli_flag(v, "permutation"))
        return cli_error(CLI_USAGE, "explain: --permutation and --gradients exclude each other; remove one of them");
    CLI_TRY(cli_context(v, &context));
    CLI_TRY(cli_load_model(v, context, &model));
    CLI_TRY(cli_open_for_model(v, context, model, !permutes, &data));
    return (permutes ? explain_permutation : explain_gradients)(v, context, model, data);
}

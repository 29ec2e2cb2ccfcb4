/* SPDX-License-Identifier: BSD-3-Clause */
/* The command eval: evaluates a model on labeled samples; cli/results prints the metrics. */
#include "commands/commands.h"
#include "commands/evaluate.h"
#include "ranks/program_ranks.h"
#include "results/results.h"

#include <inttypes.h>
#include <stdlib.h>

int64_t cli_block_rows(int64_t features, int64_t outputs)
{
    int64_t rows = ((int64_t)32 << 20) / (8 * (features + 2 * outputs + 1));
    return rows < 64 ? 64 : (rows > 8192 ? 8192 : rows);
}

static int draw_evaluation(void *user, const mercer_progress *progress)
{
    if (user != NULL) cli_bar_draw(user, (double)progress->done / (double)progress->total, "evaluating", 0);
    return 0;
}

int cli_evaluate(mercer_model *model, mercer_context *context, const mercer_dataset *dataset, const char *name,
                 double interval, cli_bar *bar, cli_metrics *out)
{
    double start = cli_now();
    mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
    *out = (cli_metrics){.all = MERCER_INIT(mercer_metrics)};
    options.interval = cli_model_info(model).interval_task == MERCER_TASK_UNLABELED ? 0 : interval;
    options.progress = draw_evaluation;
    options.progress_user = bar;
    mercer_status status = mercer_evaluate(&out->evaluation, model, dataset, &options);
    if (status == MERCER_OK) status = mercer_evaluation_query(out->evaluation, &out->all);
    if (bar != NULL) cli_bar_clear(bar);
    out->seconds = cli_now() - start;
    return status == MERCER_OK ? CLI_OK : cli_fail_on(context, status, dataset, name);
}

void cli_metrics_free(cli_metrics *metrics)
{
    mercer_evaluation_free(metrics->evaluation);
    metrics->evaluation = NULL;
}

/* Returns whether a file begins like a model file: 8 bytes with the size of the JSON header, then the header. */
static int begins_like_model(const char *path)
{
    char head[9] = "";
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 1; /* the caller reports why the file cannot be opened */
    size_t length = fread(head, 1, sizeof head, file);
    fclose(file);
    return length == sizeof head && head[8] == '{';
}

int cli_load_model(const cli_values *v, mercer_context *context, mercer_model **out)
{
    const char *path = cli_text(v, "model");
    mercer_status status = mercer_model_load(out, context, cli_comm(), path);
    if (status == MERCER_ERROR_FORMAT && !begins_like_model(path))
        return cli_error(CLI_DATA, "%s: is not a Mercer model; name the file that mercer train wrote", path);
    return cli_check(context, status);
}

int cli_open_for_model(const cli_values *v, mercer_context *context, const mercer_model *model, int unlabeled,
                       mercer_dataset **out)
{
    mercer_model_info about = cli_model_info(model);
    int classifier = about.labels != NULL && about.label_count == about.outputs;
    cli_request request = {.unlabeled = unlabeled,
                           .regression = !classifier,
                           .labels = classifier ? about.labels : NULL,
                           .label_count = classifier ? about.label_count : 0,
                           .features = about.features,
                           .schema = about.schema,
                           .targets = about.target_names,
                           .target_count = about.target_count};
    if (about.schema == NULL && about.feature_names != NULL)
        request.columns = about.feature_names, request.column_count = about.features;
    CLI_TRY(cli_open_data(v, context, &request, out));
    mercer_dataset_info info = cli_data_info(*out);
    uint64_t print = 0;
    if (info.features != about.features)
        return cli_error(CLI_DATA, "%s: %" PRId64 " features, but the model was trained on %" PRId64, cli_data_name(v),
                         info.features, about.features);
    if (info.rows == 0) return cli_error(CLI_DATA, "%s: has no rows", cli_data_name(v));
    if (!unlabeled && info.task == MERCER_TASK_UNLABELED)
        return cli_error(CLI_USAGE, "%s: has no targets to compare with; add --y FILE", cli_data_name(v));
    if (!unlabeled && info.outputs != about.outputs)
        return cli_error(CLI_DATA, "%s: %" PRId64 " targets, but the model has %" PRId64 " outputs", cli_data_name(v),
                         info.outputs, about.outputs);
    if (cli_comm() == NULL || mercer_dataset_fingerprint(*out, &print) != MERCER_OK) return CLI_OK;
    return cli_agree("other data", &print, sizeof print);
}

/* Sets *level to the value of --interval, or to 0 if the model has no intervals and --interval was not given
   explicitly. Returns an exit code. */
static int find_level(const cli_values *v, mercer_context *context, const mercer_model *model, double *level)
{
    CLI_OWNED(cli_drop) double *radius = cli_allocate(cli_model_info(model).outputs, sizeof *radius);
    *level = cli_number(v, "interval");
    if (mercer_model_interval(model, radius, *level) == MERCER_OK) return CLI_OK;
    if (cli_given(v, "interval")) return cli_error(CLI_USAGE, "--interval: %s", mercer_last_error(context));
    *level = 0;
    return CLI_OK;
}

int cli_eval(const cli_values *v)
{
    CLI_OWNED(cli_drop_context) mercer_context *context = NULL;
    CLI_OWNED(cli_drop_model) mercer_model *model = NULL;
    CLI_OWNED(cli_drop_dataset) mercer_dataset *dataset = NULL;
    CLI_OWNED(cli_metrics_free) cli_metrics metrics = {0};
    cli_bar bar;
    double level = 0;
    CLI_TRY(cli_check_data(v));
    CLI_TRY(cli_context(v, &context));
    cli_bar_init(&bar, v);
    CLI_TRY(cli_load_model(v, context, &model));
    CLI_TRY(find_level(v, context, model, &level));
    CLI_TRY(cli_open_for_model(v, context, model, 0, &dataset));
    CLI_TRY(cli_evaluate(model, context, dataset, cli_data_name(v), level, &bar, &metrics));
    return cli_rank() == 0 ? cli_show_metrics(v, &metrics, model) : CLI_OK;
}

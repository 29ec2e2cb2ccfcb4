/* SPDX-License-Identifier: BSD-3-Clause */
/* The command predict: computes classes or values of new samples, block by block, and writes them in one of the
   formats of cli/results. */
#include "commands/commands.h"
#include "commands/evaluate.h"
#include "job.h"
#include "options/options.h"
#include "ranks/program_ranks.h"
#include "results/results.h"

#include <stdlib.h>
#include <string.h>

typedef struct prediction {
    const cli_values *v;
    mercer_context *context;
    mercer_model *model;
    mercer_dataset *dataset;
    cli_writer_plan plan;
    double *radius; /* owned */
    cli_writer *writer;
    int uses_probabilities;
} prediction;

/* ---- Options ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *ending;
    cli_form form;
} forms[] = {{"npy", ".npy", CLI_FORM_NPY},       {"csv", ".csv", CLI_FORM_CSV},   {"tsv", ".tsv", CLI_FORM_TSV},
             {"jsonl", ".jsonl", CLI_FORM_JSONL}, {"text", ".txt", CLI_FORM_TEXT}, {"text", "-", CLI_FORM_TEXT}};

static int choose_form(const cli_values *v, cli_form *out)
{
    const char *path = cli_text(v, "output"), *asked = cli_text(v, "output-format");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        int named = strcmp(forms[i].ending, "-") == 0 ? strcmp(path, "-") == 0 : cli_ends_with(path, forms[i].ending);
        if (strcmp(asked, "auto") == 0 ? !named : strcmp(asked, forms[i].name) != 0) continue;
        *out = forms[i].form;
        return CLI_OK;
    }
    return cli_error(CLI_USAGE,
                     "--output: %s: unknown format; use a name that ends in .npy, .csv, .tsv, .jsonl or .txt, or -, "
                     "or add --output-format",
                     path);
}

/* Returns the names of --id-column and --keep as one comma-separated list; NULL if neither is set. Release with
   free. */
static char *copied_column_names(const cli_values *v)
{
    const char *id = cli_text(v, "id-column"), *keep = cli_text(v, "keep");
    if (id == NULL && keep == NULL) return NULL;
    return cli_format("%s%s%s", id != NULL ? id : "", id != NULL && keep != NULL ? "," : "", keep != NULL ? keep : "");
}

static int check_options(const cli_values *v, cli_form form)
{
    int kept = cli_text(v, "keep") != NULL || cli_text(v, "id-column") != NULL;
    double level = cli_number(v, "interval");
    if (cli_flag(v, "json") && cli_is(v, "output", "-"))
        return cli_error(CLI_USAGE, "--json and --output -: both write to stdout; name an output file");
    if (cli_flag(v, "scores") && cli_flag(v, "probabilities"))
        return cli_error(CLI_USAGE, "--scores and --probabilities: only one can be written; remove one of them");
    if (cli_text(v, "interval") != NULL && !(level > 0 && level < 1))
        return cli_error(CLI_USAGE,
                         "--interval: %g is not between 0 and 1; use, for example, 0.9 for 90 %% "
                         "of ten",
                         level);
    if (kept && (form == CLI_FORM_NPY || form == CLI_FORM_TEXT))
        return cli_error(CLI_USAGE, "--keep and --id-column: %s cannot contain other columns; use csv, tsv or jsonl",
                         form == CLI_FORM_NPY ? "an array" : "plain text");
    if (kept && cli_text(v, "x") == NULL)
        return cli_error(CLI_USAGE, "--keep and --id-column: need a csv file with these columns; add --x FILE");
    if (form == CLI_FORM_NPY && cli_flag(v, "probabilities") && cli_text(v, "interval") != NULL)
        return cli_error(CLI_USAGE,
                         "--probabilities and --interval: an array can contain only one of them; use csv, tsv or "
                         "jsonl");
    return CLI_OK;
}

/* ---- Preparing --------------------------------------------------------------------------------------------------- */

static int choose_result(prediction *p)
{
    mercer_model_info info = cli_model_info(p->model);
    int classes = info.labels != NULL && info.label_count == info.outputs;
    p->plan.result = classes && !cli_flag(p->v, "scores") ? CLI_RESULT_CLASS : CLI_RESULT_VALUES;
    if (!cli_flag(p->v, "probabilities")) return CLI_OK;
    if (!classes)
        return cli_error(CLI_USAGE, "--probabilities: %s is not a classifier; remove the option",
                         cli_text(p->v, "model"));
    if (!info.calibrated)
        cli_warn("%s: probabilities are not calibrated; train with --calibrate on", cli_text(p->v, "model"));
    p->plan.result = CLI_RESULT_PROBABILITIES;
    return CLI_OK;
}

static int find_intervals(prediction *p)
{
    const char *model = cli_text(p->v, "model");
    mercer_model_info info = cli_model_info(p->model);
    if (cli_text(p->v, "interval") == NULL) return CLI_OK;
    if (info.interval_task == MERCER_TASK_UNLABELED)
        return cli_error(CLI_USAGE,
                         "--interval: %s was trained without held-out rows; train with --intervals on or "
                         "--validation-fraction 0.1",
                         model);
    if ((info.interval_task == MERCER_TASK_REGRESSION) != (p->plan.result == CLI_RESULT_VALUES))
        return cli_error(CLI_USAGE, "--interval: scores of classes have no intervals; remove --scores");
    p->radius = cli_allocate(info.outputs, sizeof *p->radius);
    if (mercer_model_interval(p->model, p->radius, cli_number(p->v, "interval")) != MERCER_OK)
        return cli_error(CLI_USAGE, "--interval: %s: %s", model, mercer_last_error(p->context));
    p->plan.radius = p->radius;
    return CLI_OK;
}

/* Opens the columns of the input file that are written next to the predictions. */
static int open_copied_columns(prediction *p)
{
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    CLI_OWNED(cli_drop) char *names = copied_column_names(p->v);
    if (names == NULL) return CLI_OK;
    options.x = cli_text(p->v, "x");
    options.format = cli_text(p->v, "format");
    options.target = cli_text(p->v, "target");
    options.header = cli_switch(p->v, "header");
    options.first = cli_integer(p->v, "first");
    options.rows = cli_integer(p->v, "rows");
    options.memory = cli_memory(p->v);
    options.spill = CLI_USED_ONCE_BYTES;
    return cli_check(p->context, mercer_column_texts_open(&p->plan.kept, p->context, &options, names));
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

/* Returns whether to stop, because a write failed or a signal arrived on any rank. All ranks stop at the same block. */
static int any_rank_stopped(const prediction *p)
{
    int any = cli_writer_failed(p->writer) || cli_signal() != 0;
    if (cli_comm() != NULL && mercer_comm_any(cli_comm(), &any, any) != MERCER_OK)
        return 0; /* the next library call reports the error */
    return any;
}

static mercer_status write_blocks(const prediction *p, cli_bar *bar)
{
    mercer_dataset_info info = cli_data_info(p->dataset);
    int64_t outputs = cli_model_info(p->model).outputs, most = cli_block_rows(info.features, outputs), n = info.rows;
    mercer_dtype real = p->uses_probabilities ? MERCER_F64 : cli_result_type(p->model);
    CLI_OWNED(cli_drop) void *x = cli_allocate(most * info.features, (size_t)cli_dtype_size(info.dtype));
    CLI_OWNED(cli_drop) void *f = cli_allocate(most * outputs, (size_t)cli_dtype_size(real));
    mercer_status status = MERCER_OK;
    for (int64_t first = 0; first < n && status == MERCER_OK && !any_rank_stopped(p); first += most) {
        int64_t m = n - first < most ? n - first : most;
        mercer_matrix X = mercer_matrix_view(x, m, info.features, info.dtype);
        mercer_matrix F = mercer_matrix_view(f, m, outputs, real);
        status = mercer_dataset_read(p->dataset, &X, NULL, NULL, NULL, NULL, first);
        if (status == MERCER_OK)
            status = (p->uses_probabilities ? mercer_model_probabilities : mercer_model_predict)(p->model, &F, &X);
        if (status == MERCER_OK) status = cli_writer_put(p->writer, &F);
        cli_bar_draw(bar, (double)(first + m) / (double)n, "predicting", 0);
    }
    cli_bar_clear(bar);
    return status;
}

static int write_predictions(const prediction *p, int64_t rows)
{
    int stop = 0;
    cli_output *output = NULL;
    cli_bar bar;
    cli_bar_init(&bar, p->v);
    CLI_TRY(cli_output_open(&output, cli_text(p->v, "output")));
    cli_writer_begin(p->writer, cli_output_file(output), rows);
    mercer_status status = write_blocks(p, &bar);
    int code =
        status == MERCER_OK ? cli_interrupted(&stop) : cli_fail_on(p->context, status, p->dataset, cli_data_name(p->v));
    if (code == CLI_OK && stop) code = cli_error(cli_signal_code(), "interrupted; nothing was written");
    if (code == CLI_OK) return cli_output_close(output);
    cli_output_drop(output);
    return code;
}

static int predict_and_write(prediction *p)
{
    double start = cli_now();
    int64_t rows = cli_data_info(p->dataset).rows;
    p->uses_probabilities =
        p->plan.result == CLI_RESULT_PROBABILITIES || (p->plan.result == CLI_RESULT_CLASS && p->plan.radius != NULL);
    p->writer = cli_writer_new(&p->plan, p->context, p->model);
    int code = write_predictions(p, rows);
    if (code != CLI_OK || !cli_flag(p->v, "json")) return code;
    return cli_print_answer(json_pack(
        "{so sI ss so}", "output", cli_json_text(cli_text(p->v, "output")), "rows", (json_int_t)rows, "kind",
        p->plan.result == CLI_RESULT_VALUES ? "values" : "labels", "seconds", cli_json_real(cli_now() - start)));
}

static void free_prediction(prediction *p)
{
    cli_writer_free(p->writer);
    mercer_column_texts_free(p->plan.kept);
    free(p->radius);
    mercer_dataset_free(p->dataset);
    mercer_model_free(p->model);
    cli_release_context(p->context);
}

int cli_predict(const cli_values *v)
{
    CLI_OWNED(free_prediction) prediction p = {.v = v};
    CLI_TRY(cli_check_data(v));
    CLI_TRY(choose_form(v, &p.plan.form));
    CLI_TRY(check_options(v, p.plan.form));
    CLI_TRY(cli_check_output(cli_text(v, "output")));
    CLI_TRY(cli_context(v, &p.context));
    cli_catch_signals();
    CLI_TRY(cli_load_model(v, p.context, &p.model));
    CLI_TRY(choose_result(&p));
    CLI_TRY(find_intervals(&p));
    CLI_TRY(cli_open_for_model(v, p.context, p.model, 1, &p.dataset));
    CLI_TRY(open_copied_columns(&p));
    return predict_and_write(&p);
}

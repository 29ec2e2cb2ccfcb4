/* SPDX-License-Identifier: BSD-3-Clause */
/* The command tune: a search without the training, whose result is written as options of train. */
#include "commands/commands.h"
#include "options/options.h"
#include "ranks/program_ranks.h"
#include "terminal/progress.h"

#include <stdlib.h>
#include <string.h>

/* What mercer train needs to train what was found. */
static json_t *found_options(const cli_job *job, const mercer_plan *plan, const char *metric)
{
    json_t *object = json_pack("{ss ss so}", "kernel", job->fit.kernel, "preprocess", job->fit.preprocess, "lambda",
                               cli_json_real(plan->lambda));
    if (!cli_given(job->v, "solver") && mercer_solver_kind_of(plan->solver) != MERCER_SOLVER_BATCHES)
        json_object_set_new(object, "converge", json_string("on"));
    if (strcmp(job->fit.center_method, "all") == 0)
        json_object_set_new(object, "centers", json_string("all"));
    else if (job->options.given_centers == NULL)
        json_object_set_new(object, "centers", json_integer(job->fit.centers));
    if (metric != NULL) { /* next to the options, where --config looks for it */
        const char *slash = strrchr(metric, '/');
        char *text = cli_format("file:%s", slash != NULL ? slash + 1 : metric);
        json_object_set_new(object, "metric", cli_json_text(text));
        free(text);
    }
    return object;
}

static int write_options(const cli_job *job, json_t *object)
{
    cli_output *output = NULL;
    CLI_TRY(cli_output_open(&output, cli_text(job->v, "output")));
    json_dumpf(object, cli_output_file(output), JSON_INDENT(2) | JSON_REAL_PRECISION(17)); /* close tells failures */
    fputc('\n', cli_output_file(output));
    return cli_output_close(output);
}

/* The metric first: options that name it are there only with it. */
static int write_found(const cli_job *job, const mercer_plan *plan, json_t **options)
{
    const char *path = cli_text(job->v, "output");
    int kept = path != NULL && job->fit.tune_metric != NULL;
    CLI_OWNED(cli_drop) char *metric = kept ? cli_format("%s.metric.npy", path) : NULL;
    if (kept) {
        mercer_status status = mercer_matrix_write_npy(job->context, job->fit.tune_metric, metric);
        if (status != MERCER_OK) return cli_fail(job->context, status);
    }
    *options = found_options(job, plan, metric);
    return path != NULL ? write_options(job, *options) : CLI_OK;
}

static int show(const cli_job *job, const mercer_plan *plan)
{
    json_t *options = NULL;
    int code = write_found(job, plan, &options);
    if (code == CLI_OK && cli_flag(job->v, "json")) {
        json_t *object = cli_tuned_json(job);
        json_object_set(object, "options", options);
        json_object_set_new(object, "plan", cli_plan_json(plan));
        code = cli_print_answer(object);
    } else if (code == CLI_OK) {
        cli_show_tuned(job, stdout);
        printf("\n");
        cli_show_plan(job, plan, stdout);
        printf("\n%s", plan->text);
    }
    json_decref(options);
    return code;
}

static int run_search(cli_job *job, cli_bar *bar)
{
    int stop = 0;
    CLI_TRY(cli_job_begin(job));
    CLI_OWNED(cli_drop) mercer_plan *plan = cli_allocate(1, sizeof *plan);
    plan->struct_size = sizeof *plan;
    mercer_status status = mercer_fitting_prepare(job->fitting, plan);
    cli_bar_clear(bar);
    if (status == MERCER_OK || status == MERCER_ERROR_CALLBACK) CLI_TRY(cli_interrupted(&stop));
    if (stop) return cli_error(cli_signal_code(), "interrupted; nothing was written");
    if (status != MERCER_OK) return cli_job_fail(job, status);
    cli_job_look(job);
    return show(job, plan);
}

int cli_tune(const cli_values *v)
{
    CLI_OWNED(cli_job_free) cli_job job = {0};
    cli_bar bar;
    CLI_TRY(cli_check_data(v));
    CLI_TRY(cli_check_job(v));
    if (cli_text(v, "output") != NULL) CLI_TRY(cli_check_output(cli_text(v, "output")));
    CLI_TRY(cli_watch_job(&job, &bar, v));
    return run_search(&job, &bar);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The command plan: what training would do, need and take, from data or from sizes alone. */
#include "commands/commands.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <stdlib.h>

static int has_data(const cli_values *v)
{
    return cli_text(v, "x") != NULL || cli_text(v, "data") != NULL || cli_text(v, "synth") != NULL;
}

static int sizes_given(const cli_values *v, mercer_dataset_info *info)
{
    *info = (mercer_dataset_info){.struct_size = sizeof *info,
                                  .rows = cli_integer(v, "rows"),
                                  .features = cli_integer(v, "features"),
                                  .outputs = cli_integer(v, "outputs"),
                                  .dtype = cli_dtype(cli_text(v, "data-type")),
                                  .task = MERCER_TASK_REGRESSION,
                                  .format = "sizes",
                                  .mapped = 1};
    if (info->rows <= 0 || info->features <= 0 || info->outputs <= 0)
        return cli_error(CLI_USAGE, "plan: give data (--x, --data, --synth), or sizes: --rows N --features N "
                                    "--outputs N --centers N");
    return CLI_OK;
}

static int refuse(cli_job *job, mercer_status status)
{
    int64_t most = job->fit.largest_centers > 0 ? job->fit.largest_centers : 0;
    int code = CLI_OK;
    if (status == MERCER_ERROR_MEMORY && cli_flag(job->v, "json"))
        code = cli_print_json(json_pack("{sb sI sI sI}", "fits", 0, "centers", (json_int_t)job->fit.centers,
                                        "largest_centers", (json_int_t)most, "memory", (json_int_t)job->fit.memory));
    return code != CLI_OK ? code : cli_job_fail(job, status);
}

static int show(const cli_job *job, const mercer_plan *plan)
{
    mercer_rank_plan ranks;
    int shared = cli_given(job->v, "ranks");
    if (shared && cli_plan_ranks(job, plan, &ranks) != MERCER_OK) return cli_fail(job->context, MERCER_ERROR_ARGUMENT);
    if (!cli_flag(job->v, "json")) {
        cli_show_plan(job, plan, stdout);
        printf("\n%s", plan->text);
        if (plan->text[0] != '\0' && !cli_ends_with(plan->text, "\n")) printf("\n");
        if (shared) cli_show_ranks(job->v, &ranks, stdout);
        return CLI_OK;
    }
    json_t *object = cli_plan_json(plan);
    json_object_set_new(object, "fits", json_true());
    json_object_set_new(object, "centers", json_integer(job->fit.centers));
    json_object_set_new(object, "data", cli_data_json(&job->info));
    json_object_set_new(object, "memory", json_integer(job->fit.memory));
    if (shared) json_object_set_new(object, "ranks", cli_ranks_json(&ranks));
    return cli_print_json(object);
}

static int plan_job(cli_job *job)
{
    if (job->options.centers > job->info.rows)
        return cli_error(CLI_DATA, "--centers: %" PRId64 " are more than the %" PRId64 " rows of the data",
                         job->options.centers, job->info.rows);
    mercer_plan *plan = cli_allocate(1, sizeof *plan);
    plan->struct_size = sizeof *plan;
    mercer_status status = mercer_fit_plan(job->context, plan, &job->info, &job->options, &job->fit);
    int code = status == MERCER_OK ? show(job, plan) : refuse(job, status);
    free(plan);
    return code;
}

int cli_plan(const cli_values *v)
{
    cli_job job;
    cli_job_init(&job, v);
    int code = cli_check_job(v);
    if (code == CLI_OK) code = cli_check_ranks(v);
    if (code == CLI_OK) code = has_data(v) ? cli_check_data(v) : sizes_given(v, &job.info);
    if (code != CLI_OK) return code;
    code = has_data(v) ? cli_job_open(&job) : cli_context(v, &job.context);
    if (code == CLI_OK) code = plan_job(&job);
    cli_job_free(&job);
    return code;
}

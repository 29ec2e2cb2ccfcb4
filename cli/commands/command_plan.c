/* SPDX-License-Identifier: BSD-3-Clause */
/* The command plan: what training would do, need and take, from data or from sizes alone. */
#include "commands/commands.h"
#include "options/options.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* The type of samples after the preprocessing that training would choose, without a pass over the data. */
static mercer_dtype planned_type(const cli_values *v, const mercer_dataset_info *info)
{
    static const char *const inner[] = {"polynomial", "linear", "ntk", "nngp"};
    const char *preprocess = cli_text(v, "preprocess");
    if (strcmp(preprocess, "auto") == 0) preprocess = mercer_preprocess_auto(info->format, info->dtype);
    int bytes_stay = strncmp(preprocess, "scale", 5) == 0;
    for (int i = 0; i < 4; i++) {
        if (strncmp(cli_text(v, "kernel"), inner[i], strlen(inner[i])) == 0) bytes_stay = 0;
    }
    if (strcmp(preprocess, "none") == 0 || (info->dtype == MERCER_U8 && bytes_stay)) return info->dtype;
    return info->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
}

static int refuse(const cli_job *job, int64_t p)
{
    if (!cli_flag(job->v, "json")) return cli_job_fits(job, p);
    int64_t most = cli_job_largest(job, p);
    int code = cli_print_json(json_pack("{sb sI sI sI}", "fits", 0, "centers", (json_int_t)p, "largest_centers",
                                        (json_int_t)most, "memory", (json_int_t)job->memory));
    return code != CLI_OK ? code : cli_job_fits(job, p);
}

static int show(const cli_job *job, const mercer_plan *plan, int64_t p)
{
    mercer_rank_plan ranks;
    int shared = cli_given(job->v, "ranks");
    if (shared && cli_plan_ranks(job, plan, p, &ranks) != MERCER_OK)
        return cli_fail(job->context, MERCER_ERROR_ARGUMENT);
    if (!cli_flag(job->v, "json")) {
        cli_show_plan(job, plan, p, job->dtype, stdout);
        printf("\n%s", plan->text);
        if (plan->text[0] != '\0' && !cli_ends_with(plan->text, "\n")) printf("\n");
        if (shared) cli_show_ranks(job->v, &ranks, stdout);
        return CLI_OK;
    }
    json_t *object = cli_plan_json(plan);
    json_object_set_new(object, "fits", json_true());
    json_object_set_new(object, "centers", json_integer(p));
    json_object_set_new(object, "data", cli_data_json(&job->info));
    json_object_set_new(object, "memory", json_integer(job->memory));
    if (shared) json_object_set_new(object, "ranks", cli_ranks_json(&ranks));
    return cli_print_json(object);
}

static int plan_job(cli_job *job)
{
    const cli_values *v = job->v;
    job->dtype = planned_type(v, &job->info);
    snprintf(job->kernel_text, sizeof job->kernel_text, "%s", cli_text(v, "kernel"));
    int64_t p = cli_job_center_count(job);
    if (p > job->info.rows)
        return cli_error(CLI_DATA, "--centers: %" PRId64 " are more than the %" PRId64 " rows of the data", p,
                         job->info.rows);
    mercer_plan *plan = cli_allocate(1, sizeof *plan);
    mercer_status status = cli_job_plan(job, p, plan);
    int code = CLI_OK;
    if (status == MERCER_ERROR_MEMORY)
        code = refuse(job, p);
    else if (status != MERCER_OK)
        code = cli_fail(job->context, status);
    else
        code = show(job, plan, p);
    free(plan);
    return code;
}

int cli_plan(const cli_values *v)
{
    cli_job job = {.v = v, .memory = cli_memory(v)};
    int code = cli_check_job(v);
    if (code == CLI_OK) code = cli_check_ranks(v);
    if (code == CLI_OK && has_data(v)) code = cli_check_data(v);
    if (code == CLI_OK && !has_data(v)) code = sizes_given(v, &job.info);
    if (code != CLI_OK) return code;
    if (has_data(v))
        code = cli_job_open(&job, v);
    else
        code = cli_context(v, &job.context);
    if (code == CLI_OK) code = plan_job(&job);
    cli_job_free(&job);
    return code;
}

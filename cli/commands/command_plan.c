/* SPDX-License-Identifier: BSD-3-Clause */
/* The command plan: shows the plan, memory and time of a training run without running it, from data or from sizes
   only. */
#include "commands/commands.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- On several ranks --------------------------------------------------------------------------------------- */

/* Parses a network speed in bits ("100Gb/s") or bytes ("12.5GB/s") per second into bytes per second. Returns 0, or
   -1 if the text is neither. */
static int read_network(const char *text, double *out)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"Gb/s", 1.25e8}, {"Mb/s", 1.25e5}, {"Tb/s", 1.25e11}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"B/s", 1}};
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || !(value > 0) || !isfinite(value)) return -1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *out = value * units[i].bytes;
            return 0;
        }
    }
    return -1;
}

static int check_ranks(const cli_values *v)
{
    double speed = 0;
    if (read_network(cli_text(v, "network"), &speed) != 0)
        return cli_error(CLI_USAGE, "--network: '%s' is not a bandwidth such as 100Gb/s or 12.5GB/s",
                         cli_text(v, "network"));
    if (cli_given(v, "ranks") && (cli_integer(v, "ranks") < 1 || cli_integer(v, "ranks") > 65536))
        return cli_error(CLI_USAGE, "--ranks: %s is not between 1 and 65536", cli_text(v, "ranks"));
    return CLI_OK;
}

static mercer_status plan_ranks(const cli_job *job, const mercer_plan *plan, mercer_rank_plan *out)
{
    mercer_network network = {.struct_size = sizeof network,
                              .ranks = (int)cli_integer(job->v, "ranks"),
                              .shards = (int)cli_integer(job->v, "shards")};
    read_network(cli_text(job->v, "network"), &network.bytes_per_second);
    mercer_shape shape = {.struct_size = sizeof shape,
                          .samples = job->info.rows,
                          .centers = job->fit.centers,
                          .features = job->info.features,
                          .outputs = job->info.outputs > 0 ? job->info.outputs : 1,
                          .points = job->fit.points,
                          .weights = plan->precision,
                          .shards = job->options.run.shards};
    *out = (mercer_rank_plan){.struct_size = sizeof *out};
    return mercer_plan_ranks(job->context, out, plan, &shape, &network);
}

static json_t *ranks_json(const mercer_rank_plan *r)
{
    return json_pack(
        "{si si sI so so so so so so so so so so so}", "ranks", r->ranks, "shards", r->shards, "centers_a_rank",
        (json_int_t)r->centers_a_rank, "batch_bytes", cli_json_real(r->batch_bytes), "projection_bytes",
        cli_json_real(r->projection_bytes), "epoch_bytes", cli_json_real(r->epoch_bytes), "batch_seconds",
        cli_json_real(r->batch_seconds), "projection_seconds", cli_json_real(r->projection_seconds), "epoch_seconds",
        cli_json_real(r->epoch_seconds), "compute_seconds", cli_json_real(r->compute_seconds), "projection_share",
        cli_json_real(r->projection_share), "shared_bytes", cli_json_real(r->shared_bytes), "replicated_bytes",
        cli_json_real(r->replicated_bytes), "checkpoint_bytes", cli_json_real(r->checkpoint_bytes));
}

static void add_traffic_row(cli_table *table, const char *name, double bytes, double seconds)
{
    char amount[CLI_SHORT];
    cli_table_cell(table, "%s", name);
    cli_table_cell(table, "%s", cli_bytes_text(amount, (int64_t)bytes));
    if (seconds < 0.1)
        cli_table_cell(table, "%.3g ms", 1e3 * seconds);
    else
        cli_table_cell(table, "%s", cli_seconds_text(amount, seconds));
}

static void print_ranks(const cli_values *v, const mercer_rank_plan *r, FILE *file)
{
    char a[CLI_SHORT], b[CLI_SHORT], c[CLI_SHORT];
    double epoch = r->compute_seconds + r->epoch_seconds;
    fprintf(file, "\n%d ranks, %d shards, at most %s centers per rank; network %s\n", r->ranks, r->shards,
            cli_count_text(a, r->centers_a_rank), cli_text(v, "network"));
    cli_table *table = cli_table_new(3, "lrr");
    cli_table_cell(table, "sent by each rank");
    cli_table_cell(table, "bytes");
    cli_table_cell(table, "time");
    cli_table_line(table);
    add_traffic_row(table, "per batch", r->batch_bytes, r->batch_seconds);
    if (r->projection_bytes > 0) add_traffic_row(table, "per projection", r->projection_bytes, r->projection_seconds);
    add_traffic_row(table, "per epoch", r->epoch_bytes, r->epoch_seconds);
    cli_table_print(table, file);
    fprintf(file, "about %s per epoch, %.0f %% of it for network transfers, if every rank is as fast as this machine\n",
            cli_seconds_text(a, epoch), 100 * r->epoch_seconds / (epoch > 0 ? epoch : 1));
    fprintf(file, "memory per rank: %s (decreases with the number of ranks) and %s (does not); checkpoint size: %s\n",
            cli_bytes_text(a, (int64_t)r->shared_bytes), cli_bytes_text(b, (int64_t)r->replicated_bytes),
            cli_bytes_text(c, (int64_t)r->checkpoint_bytes));
}

static int has_data(const cli_values *v)
{
    return cli_text(v, "x") != NULL || cli_text(v, "data") != NULL || cli_text(v, "synth") != NULL;
}

static int read_sizes(const cli_values *v, mercer_dataset_info *info)
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
        return cli_error(CLI_USAGE, "plan: no data; add --x, --data or --synth, or sizes: --rows N --features N "
                                    "--outputs N --centers N");
    return CLI_OK;
}

static int report_failed_plan(cli_job *job, mercer_status status)
{
    int64_t most = job->fit.largest_centers > 0 ? job->fit.largest_centers : 0;
    if (status == MERCER_ERROR_MEMORY && cli_flag(job->v, "json"))
        CLI_TRY(
            cli_print_answer(json_pack("{sb sI sI sI}", "fits", 0, "centers", (json_int_t)job->fit.centers,
                                       "largest_centers", (json_int_t)most, "memory", (json_int_t)job->fit.memory)));
    return cli_job_fail(job, status);
}

static int print_plan(const cli_job *job, const mercer_plan *plan)
{
    mercer_rank_plan ranks;
    int shared = cli_given(job->v, "ranks");
    if (shared && plan_ranks(job, plan, &ranks) != MERCER_OK) return cli_fail(job->context, MERCER_ERROR_ARGUMENT);
    if (!cli_flag(job->v, "json")) {
        cli_show_plan(job, plan, stdout);
        printf("\n%s", plan->text);
        if (plan->text[0] != '\0' && !cli_ends_with(plan->text, "\n")) printf("\n");
        if (shared) print_ranks(job->v, &ranks, stdout);
        return CLI_OK;
    }
    json_t *object = cli_plan_json(plan);
    json_object_set_new(object, "fits", json_true());
    json_object_set_new(object, "centers", json_integer(job->fit.centers));
    json_object_set_new(object, "members", json_integer(job->fit.members));
    json_object_set_new(object, "data", cli_data_json(&job->info));
    json_object_set_new(object, "memory", json_integer(job->fit.memory));
    json_object_set_new(object, "predicted_seconds", cli_json_real(job->fit.predicted_seconds));
    if (shared) json_object_set_new(object, "ranks", ranks_json(&ranks));
    return cli_print_answer(object);
}

static int plan_and_print(cli_job *job)
{
    if (job->options.centers.count > job->info.rows)
        return cli_error(CLI_DATA, "--centers: %" PRId64 " is more than the %" PRId64 " rows of the data",
                         job->options.centers.count, job->info.rows);
    CLI_OWNED(cli_drop) mercer_plan *plan = cli_allocate(1, sizeof *plan);
    plan->struct_size = sizeof *plan;
    mercer_status status = mercer_fit_plan(job->context, plan, &job->info, &job->options, &job->fit);
    return status == MERCER_OK ? print_plan(job, plan) : report_failed_plan(job, status);
}

int cli_plan(const cli_values *v)
{
    CLI_OWNED(cli_job_free) cli_job job;
    cli_job_init(&job, v);
    CLI_TRY(cli_check_job(v));
    CLI_TRY(check_ranks(v));
    CLI_TRY(has_data(v) ? cli_check_data(v) : read_sizes(v, &job.info));
    CLI_TRY(has_data(v) ? cli_job_open(&job) : cli_context(v, &job.context));
    return plan_and_print(&job);
}

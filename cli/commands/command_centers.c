/* SPDX-License-Identifier: BSD-3-Clause */
/* The command centers: chooses centers and writes them to a file. */
#include "commands/commands.h"
#include "options/options.h"
#include "ranks/program_ranks.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <string.h>

static int write_centers(const cli_job *job, const mercer_matrix *centers)
{
    const char *path = cli_text(job->v, "output");
    if (cli_rank() == 0) CLI_TRY(cli_check(job->context, mercer_matrix_write_npy(job->context, centers, path)));
    char count[CLI_SHORT];
    cli_say(job->v, "%s: %s centers (%s), %s", path, cli_count_text(count, centers->rows), cli_job_center_method(job),
            cli_dtype_name(centers->dtype));
    if (job->choice.iterations > 0)
        cli_say(job->v, "rounds %" PRId64 ", mean squared distance %.6g", job->choice.iterations, job->choice.error);
    if (strcmp(job->fit.preprocess, "none") != 0 && cli_job_decision(job, "kernel", "folded") == NULL)
        cli_say(job->v, "the centers are preprocessed (%s); use them with data of the same preprocessing",
                job->fit.preprocess);
    if (!cli_flag(job->v, "json")) return CLI_OK;
    return cli_print_answer(json_pack("{so sI sI ss ss sI so so}", "output", cli_json_text(path), "centers",
                                      (json_int_t)centers->rows, "features", (json_int_t)centers->cols, "dtype",
                                      cli_dtype_name(centers->dtype), "method", cli_job_center_method(job),
                                      "iterations", (json_int_t)job->choice.iterations, "error",
                                      cli_json_real(job->choice.error), "seconds", cli_json_real(job->choice.seconds)));
}

static int choose_and_write(cli_job *job, cli_bar *bar)
{
    mercer_matrix centers;
    int stop = 0;
    CLI_TRY(cli_job_begin(job));
    mercer_status status = mercer_fitting_centers(job->fitting, &centers);
    cli_bar_clear(bar);
    if (status != MERCER_OK) return cli_job_fail(job, status);
    CLI_TRY(cli_interrupted(&stop));
    if (stop) return cli_error(cli_signal_code(), "interrupted; nothing was written");
    cli_job_look(job);
    return write_centers(job, &centers);
}

int cli_centers(const cli_values *v)
{
    CLI_OWNED(cli_job_free) cli_job job = {0};
    cli_bar bar;
    CLI_TRY(cli_check_data(v));
    CLI_TRY(cli_check_job(v));
    CLI_TRY(cli_check_centers(v));
    if (!cli_ends_with(cli_text(v, "output"), ".npy"))
        return cli_error(CLI_USAGE, "--output: %s: the format is not supported; use a name that ends in .npy",
                         cli_text(v, "output"));
    CLI_TRY(cli_check_output(cli_text(v, "output")));
    CLI_TRY(cli_watch_job(&job, &bar, v));
    return choose_and_write(&job, &bar);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing centers, for training and for the command that writes them to a file. */
#include "commands/commands.h"
#include "job.h"
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int cli_check_centers(const cli_values *v)
{
    const char *method = cli_text(v, "center-method");
    int from_file = strncmp(method, "file:", 5) == 0, augmented = strcmp(method, "augmented") == 0;
    if (!from_file && !cli_has_word("random|kmeans|rpcholesky|balanced|augmented", method))
        return cli_error(CLI_USAGE,
                         "--center-method: '%s' is none of random, kmeans, rpcholesky, balanced, augmented, file:PATH",
                         method);
    if (augmented && (!cli_has(v, "augment") || cli_text(v, "augment") == NULL))
        return cli_error(CLI_USAGE,
                         "--center-method augmented takes samples of --augment, which mercer train has; none "
                         "was given");
    if (augmented && cli_dtype(cli_text(v, "center-type")) != (mercer_dtype)0)
        return cli_error(CLI_USAGE, "--center-method augmented keeps the type of the samples: leave --center-type out");
    if (from_file && method[5] == '\0') return cli_error(CLI_USAGE, "--center-method: file: needs a path behind it");
    if (cli_integer(v, "centers") < 0 && cli_given(v, "center-method"))
        return cli_error(CLI_USAGE, "--centers all takes every row in order: --center-method has no say");
    static const char *const of_kmeans[] = {"center-iterations", "center-batch"};
    for (int i = 0; i < 2; i++) {
        if (cli_integer(v, of_kmeans[i]) != 0 && (strcmp(method, "kmeans") != 0 || cli_integer(v, "centers") < 0))
            return cli_error(CLI_USAGE, "--%s is for --center-method kmeans", of_kmeans[i]);
    }
    return CLI_OK;
}

/* Ranks that train share the centers out; those that only choose them hold them all. */
static int is_shared(const cli_job *job)
{
    return cli_comm() != NULL && cli_has(job->v, "solver");
}

int64_t cli_job_center_count(const cli_job *job)
{
    int64_t p = cli_integer(job->v, "centers");
    if (p < 0) return job->info.rows;
    if (p > 0) return p;
    return job->info.rows < 10000 ? job->info.rows : 10000;
}

/* Room for p centers, or for this rank's share of them; the first one comes back. */
static int64_t make_room(cli_job *job, int64_t p, mercer_dtype dtype)
{
    int64_t d = job->info.features, first = 0, rows = p;
    if (is_shared(job)) mercer_comm_share(cli_comm(), &first, &rows, p);
    job->centers = mercer_matrix_view(cli_allocate(rows * d, (size_t)cli_dtype_size(dtype)), rows, d, dtype);
    job->center_count = p;
    return first;
}

/* Rows first .. of a dataset as centers. */
static mercer_status take_rows(cli_job *job, const mercer_dataset *dataset, int64_t first)
{
    if (job->centers.rows == 0) return MERCER_OK;
    return mercer_dataset_read(dataset, &job->centers, NULL, NULL, job->applied, NULL, first);
}

/* Centers that a file holds, in the units of the data. */
static int read_centers(cli_job *job, const char *path)
{
    mercer_dataset_options options;
    mercer_dataset *dataset = NULL;
    options = (mercer_dataset_options)MERCER_INIT(mercer_dataset_options);
    options.x = path;
    options.task = MERCER_TASK_UNLABELLED;
    options.memory = job->memory;
    options.columns = job->info.feature_names;
    options.column_count = job->info.feature_names != NULL ? job->info.features : 0;
    mercer_status status = mercer_dataset_open(&dataset, job->context, &options);
    if (status != MERCER_OK) return cli_fail(job->context, status);
    mercer_dataset_info info = cli_data_info(dataset);
    int64_t asked = cli_integer(job->v, "centers");
    int code = CLI_OK;
    if (info.features != job->info.features)
        code = cli_error(CLI_DATA, "%s: %" PRId64 " features, but the data have %" PRId64, path, info.features,
                         job->info.features);
    else if (asked > 0 && asked != info.rows)
        code = cli_error(CLI_DATA, "%s: has %" PRId64 " rows, but --centers %" PRId64 " was given: leave it out", path,
                         info.rows, asked);
    if (code == CLI_OK) code = cli_job_fits(job, info.rows);
    if (code == CLI_OK) {
        mercer_dtype own = mercer_preprocess_dtype(job->applied, info.dtype);
        mercer_dtype wanted = cli_dtype(cli_text(job->v, "center-type"));
        if (wanted == (mercer_dtype)0) wanted = own;
        status = take_rows(job, dataset, make_room(job, info.rows, wanted));
        if (status != MERCER_OK) code = cli_fail(job->context, status);
    }
    mercer_dataset_free(dataset);
    return code;
}

static int show_centers(void *user, int64_t done, int64_t total, double error)
{
    cli_bar *bar = user;
    char text[96] = "choosing centers";
    if (error > 0 && isfinite(error)) snprintf(text, sizeof text, "choosing centers, error %.4g", error);
    cli_bar_draw(bar, total > 0 ? (double)done / (double)total : -1, text, 0);
    return cli_signal() != 0;
}

static int choose_centers(cli_job *job, cli_bar *bar)
{
    mercer_center_options options;
    options = (mercer_center_options)MERCER_INIT(mercer_center_options);
    options.method = cli_text(job->v, "center-method");
    options.seed = (uint64_t)cli_integer(job->v, "seed");
    options.kernel = &job->kernel;
    options.iterations = cli_integer(job->v, "center-iterations");
    options.batch = cli_integer(job->v, "center-batch");
    options.memory = cli_job_memory_left(job, job->center_count);
    options.comm = cli_comm();
    options.total_centers = is_shared(job) ? job->center_count : 0;
    options.progress = show_centers;
    options.progress_user = bar;
    job->center_report = (mercer_center_report){.struct_size = sizeof job->center_report};
    mercer_status status =
        mercer_choose_centers_from(job->train, &job->centers, job->applied, &options, &job->center_report);
    cli_bar_clear(bar);
    return status == MERCER_OK ? CLI_OK : cli_fail_on(job->context, status, job->train, cli_data_name(job->v));
}

/* Samples as training sees them, from a stream of their own: there may be more of them than rows. */
static int draw_augmented(cli_job *job, int64_t first)
{
    enum { CENTER_STREAM = 0x7a656e74, MOST = 4096 };
    mercer_source source = {0};
    int64_t done = 0, p = job->center_count, row_bytes = job->centers.cols * cli_dtype_size(job->centers.dtype);
    uint64_t seed = (uint64_t)cli_integer(job->v, "seed") + CENTER_STREAM;
    int code = cli_job_open_stream(job, seed, p, &source);
    if (code != CLI_OK) return code;
    int failed = source.restart(source.user, 0);
    while (!failed && done < p && cli_signal() == 0) {
        mercer_batch batch = {0};
        failed = source.next(source.user, p - done < MOST ? p - done : MOST, &batch);
        if (failed || batch.X.rows == 0) break;
        for (int64_t i = 0; i < batch.X.rows; i++, done++) {
            if (done < first || done >= first + job->centers.rows) continue; /* another rank's */
            memcpy((char *)job->centers.data + (done - first) * row_bytes,
                   (const char *)batch.X.data + i * batch.X.ld * cli_dtype_size(batch.X.dtype), (size_t)row_bytes);
        }
    }
    mercer_source_free(&source);
    if (cli_signal() != 0) return CLI_OK; /* the caller asks too, and says so */
    if (failed || done < p) return cli_fail(job->context, MERCER_ERROR_DATA);
    return CLI_OK;
}

int cli_job_centers(cli_job *job, cli_bar *bar)
{
    const char *method = cli_text(job->v, "center-method");
    int64_t n = job->info.rows, p = cli_job_center_count(job);
    int everything = cli_integer(job->v, "centers") < 0;
    snprintf(job->center_method, sizeof job->center_method, "%s", everything ? "all" : method);
    if (strncmp(method, "file:", 5) == 0) {
        snprintf(job->center_method, sizeof job->center_method, "file");
        return read_centers(job, method + 5);
    }
    int augmented = strcmp(method, "augmented") == 0;
    if (p > n && !augmented)
        return cli_error(CLI_DATA,
                         "%s: has %" PRId64 " rows, fewer than --centers %" PRId64 ": give --centers %" PRId64
                         " or less, or --centers all",
                         cli_data_name(job->v), n, p, n);
    int code = cli_job_fits(job, p);
    if (code != CLI_OK) return code;
    mercer_dtype dtype = cli_dtype(cli_text(job->v, "center-type"));
    int64_t first = make_room(job, p, dtype != (mercer_dtype)0 ? dtype : job->dtype);
    if (!everything) return augmented ? draw_augmented(job, first) : choose_centers(job, bar);
    mercer_status status = take_rows(job, job->train, first);
    return status == MERCER_OK ? CLI_OK : cli_fail(job->context, status);
}

/* ---- mercer centers ---------------------------------------------------------------------------------------------- */

static int write_centers(cli_job *job)
{
    const char *path = cli_text(job->v, "output");
    mercer_status status = cli_rank() > 0 ? MERCER_OK : mercer_matrix_write_npy(job->context, &job->centers, path);
    if (status != MERCER_OK) return cli_fail(job->context, status);
    char count[CLI_SHORT];
    cli_say(job->v, "%s: %s centers (%s), %s", path, cli_count_text(count, job->centers.rows), job->center_method,
            cli_dtype_name(job->centers.dtype));
    if (job->center_report.iterations > 0)
        cli_say(job->v, "rounds %" PRId64 ", mean squared distance %.6g", job->center_report.iterations,
                job->center_report.error);
    if (strcmp(mercer_preprocess_spec(job->applied), "none") != 0 && !job->folded)
        cli_say(job->v, "they are preprocessed (%s): use them with data preprocessed alike",
                mercer_preprocess_spec(job->applied));
    if (!cli_flag(job->v, "json")) return CLI_OK;
    return cli_print_json(
        json_pack("{so sI sI ss ss sI so so}", "output", cli_json_text(path), "centers", (json_int_t)job->centers.rows,
                  "features", (json_int_t)job->centers.cols, "dtype", cli_dtype_name(job->centers.dtype), "method",
                  job->center_method, "iterations", (json_int_t)job->center_report.iterations, "error",
                  cli_json_real(job->center_report.error), "seconds", cli_json_real(job->center_report.seconds)));
}

int cli_centers(const cli_values *v)
{
    cli_job job;
    cli_bar bar;
    int stop = 0, code = cli_check_data(v);
    if (code == CLI_OK) code = cli_check_job(v);
    if (code == CLI_OK) code = cli_check_centers(v);
    if (code == CLI_OK && !cli_ends_with(cli_text(v, "output"), ".npy"))
        code = cli_error(CLI_USAGE, "--output: %s: the name must end in .npy", cli_text(v, "output"));
    if (code == CLI_OK) code = cli_check_output(cli_text(v, "output"));
    if (code != CLI_OK) return code;
    cli_bar_init(&bar, v);
    cli_catch_signals();
    code = cli_job_open(&job, v);
    if (code == CLI_OK) code = cli_job_prepare(&job);
    if (code == CLI_OK) code = cli_job_centers(&job, &bar);
    if (code == CLI_OK) code = cli_interrupted(&stop);
    if (code == CLI_OK && stop) code = cli_error(cli_signal_code(), "interrupted; nothing was written");
    if (code == CLI_OK) code = write_centers(&job);
    cli_job_free(&job);
    return code;
}

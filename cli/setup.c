/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets up a fit of the library from the options of a command. */
#include "job.h"
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the path of --metric file:PATH, "" if the value has another form, NULL if it is not set. */
static const char *metric_file(const cli_values *v)
{
    const char *text = cli_has(v, "metric") ? cli_text(v, "metric") : NULL;
    if (text == NULL) return NULL;
    return strncmp(text, "file:", 5) == 0 ? text + 5 : "";
}

/* ---- Checks that need no data ------------------------------------------------------------------------------------ */

static void read_search_options(const cli_values *v, mercer_fit_options *options)
{
    options->search.tune = cli_switch(v, "tune");
    if (!cli_given(v, "kernel")) options->kernel.spec = NULL;
    if (cli_given(v, "effort")) options->search.effort = (int)cli_integer(v, "effort");
    if (cli_has(v, "budget") && cli_given(v, "budget")) options->search.budget = cli_number(v, "budget");
}

/* Prints the message of mercer_fit_check after the name of the option, which is the last part of the field name:
   --bandwidth for "kernel.bandwidth". Returns an exit code. */
static int report_option_error(const cli_values *v)
{
    const char *message = mercer_last_error(NULL);
    const char *field = strrchr(mercer_last_error_field(NULL), '.'), *name = field != NULL ? field + 1 : "";
    if (strcmp(name, "spec") == 0) name = "kernel";
    const cli_option *option = cli_find_option(cli_values_command(v), name);
    return option != NULL ? cli_error(CLI_USAGE, "--%s: %s", option->name, message)
                          : cli_error(CLI_USAGE, "%s", message);
}

/* Checks the values of the options of kernel, search and metric. */
static int check_values(const cli_values *v)
{
    if (cli_is(v, "centers", "0")) return cli_error(CLI_USAGE, "--centers: must be at least 1");
    if (!cli_is(v, "bandwidth", "auto") && !(cli_number(v, "bandwidth") > 0))
        return cli_error(CLI_USAGE, "--bandwidth: must be above 0, or auto");
    if (metric_file(v) != NULL && metric_file(v)[0] == '\0')
        return cli_error(CLI_USAGE, "--metric: '%s' is not of the form file:PATH", cli_text(v, "metric"));
    if (metric_file(v) != NULL && cli_has(v, "learn-features") && cli_switch(v, "learn-features") == MERCER_ON)
        return cli_error(CLI_USAGE, "--learn-features has no effect with --metric; remove one of them");
    if (!cli_has(v, "tune")) return CLI_OK;
    if (cli_integer(v, "effort") < 1 || cli_integer(v, "effort") > 5)
        return cli_error(CLI_USAGE, "--effort: must be 1 to 5");
    if (cli_has(v, "budget") && cli_given(v, "budget") && !(cli_number(v, "budget") > 0))
        return cli_error(CLI_USAGE, "--budget: must be above 0");
    return CLI_OK;
}

int cli_check_job(const cli_values *v)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    CLI_TRY(check_values(v));
    options.kernel.spec = cli_text(v, "kernel");
    options.kernel.bandwidth = cli_number(v, "bandwidth");
    if (cli_has(v, "learn-features")) options.search.learn_features = cli_switch(v, "learn-features");
    if (cli_has(v, "tune")) read_search_options(v, &options);
    return mercer_fit_check(NULL, &options) == MERCER_OK ? CLI_OK : report_option_error(v);
}

/* Returns the path of --center-method file:PATH, or NULL. */
static const char *center_file(const cli_values *v)
{
    const char *method = cli_has(v, "center-method") ? cli_text(v, "center-method") : "";
    return strncmp(method, "file:", 5) == 0 ? method + 5 : NULL;
}

int cli_check_centers(const cli_values *v)
{
    const char *method = cli_text(v, "center-method");
    int augmented = strcmp(method, "augmented") == 0;
    if (center_file(v) == NULL && !cli_has_word("random|kmeans|rpcholesky|balanced|augmented", method))
        return cli_error(CLI_USAGE,
                         "--center-method: '%s' is not one of random, kmeans, rpcholesky, balanced, augmented, "
                         "file:PATH",
                         method);
    if (augmented && (!cli_has(v, "augment") || cli_text(v, "augment") == NULL))
        return cli_error(CLI_USAGE,
                         "--center-method augmented: needs augmented samples; add --augment SPEC to mercer train");
    if (augmented && cli_dtype(cli_text(v, "center-type")) != (mercer_dtype)0)
        return cli_error(CLI_USAGE, "--center-method augmented: centers have the type of the samples; remove "
                                    "--center-type");
    if (center_file(v) != NULL && center_file(v)[0] == '\0')
        return cli_error(CLI_USAGE, "--center-method: the path is missing; use file:PATH");
    if (cli_integer(v, "centers") < 0 && cli_given(v, "center-method"))
        return cli_error(CLI_USAGE, "--center-method has no effect with --centers all; remove one of them");
    static const char *const of_kmeans[] = {"center-iterations", "center-batch"};
    for (int i = 0; i < 2; i++) {
        if (cli_integer(v, of_kmeans[i]) != 0 && (strcmp(method, "kmeans") != 0 || cli_integer(v, "centers") < 0))
            return cli_error(CLI_USAGE, "--%s has no effect without --center-method kmeans; remove it", of_kmeans[i]);
    }
    return CLI_OK;
}

/* ---- Options ----------------------------------------------------------------------------------------------------- */

static void read_train_options(const cli_values *v, mercer_train_options *options)
{
    const mercer_option *option;
    for (int i = 0; (option = mercer_train_option(i)) != NULL; i++) {
        void *field = (char *)options + option->offset;
        switch (option->type) {
            case MERCER_OPTION_INTEGER: *(int64_t *)field = cli_integer(v, option->name); break;
            case MERCER_OPTION_NUMBER: *(double *)field = cli_number(v, option->name); break;
            case MERCER_OPTION_SWITCH: *(mercer_switch *)field = cli_switch(v, option->name); break;
            case MERCER_OPTION_NAME:
                *(const char **)field = cli_is(v, option->name, "auto") ? NULL : cli_text(v, option->name);
                break;
        }
    }
}

/* Reads options that only mercer train has. */
static void read_fit_options(const cli_values *v, mercer_fit_options *options)
{
    options->validation.calibrate = cli_switch(v, "calibrate");
    options->validation.intervals = cli_switch(v, "intervals");
    options->validation.fraction = cli_number(v, "validation-fraction");
    options->data.augment = cli_text(v, "augment");
    options->data.samples = cli_integer(v, "samples");
}

void cli_job_init(cli_job *job, const cli_values *v)
{
    *job = (cli_job){.v = v};
    mercer_fit_options *options = &job->options;
    *options = (mercer_fit_options)MERCER_INIT(mercer_fit_options);
    job->train = (mercer_train_options)MERCER_INIT(mercer_train_options);
    job->fit = (mercer_fit_report)MERCER_INIT(mercer_fit_report);
    job->search = (mercer_search_report)MERCER_INIT(mercer_search_report);
    job->choice = (mercer_center_report)MERCER_INIT(mercer_center_report);
    job->parts = (mercer_fit_parts)MERCER_INIT(mercer_fit_parts);
    job->fit.search = &job->search;
    job->fit.choice = &job->choice;
    options->train = &job->train;
    options->kernel.spec = cli_text(v, "kernel");
    options->kernel.bandwidth = cli_number(v, "bandwidth");
    options->data.preprocess = cli_text(v, "preprocess");
    options->centers.count = cli_integer(v, "centers");
    options->run.seed = (uint64_t)cli_integer(v, "seed");
    options->run.memory = cli_integer(v, "memory");
    options->run.comm = cli_comm();
    if (cli_has(v, "solver")) {
        read_train_options(v, &job->train);
        options->run.precision = cli_dtype(cli_text(v, "precision"));
    }
    if (cli_has(v, "center-method")) {
        options->centers.method = center_file(v) != NULL ? NULL : cli_text(v, "center-method");
        options->centers.type = cli_dtype(cli_text(v, "center-type"));
        options->centers.iterations = cli_integer(v, "center-iterations");
        options->centers.batch = cli_integer(v, "center-batch");
    }
    if (cli_has(v, "learn-features")) options->search.learn_features = cli_switch(v, "learn-features");
    if (cli_has(v, "augment")) read_fit_options(v, options);
    if (cli_has(v, "target-transform")) {
        options->data.target_transform = cli_text(v, "target-transform");
        options->data.class_weight = cli_text(v, "class-weight");
        options->validation.calibrate_to = cli_text(v, "calibrate-to");
    }
    if (cli_has(v, "tune")) read_search_options(v, options);
    if (cli_has(v, "ranks")) { /* mercer plan */
        options->run.shards = (int)cli_integer(v, "shards");
        if (options->run.shards == 0 && cli_given(v, "ranks")) options->run.shards = -1;
    }
}

/* Parses an image shape: "28x28x1", or "32x32" for one channel. */
static int read_image(const char *text, mercer_fit_options *options)
{
    char rest = '\0';
    long long h = 0, w = 0, c = 1;
    int found = sscanf(text, "%lldx%lldx%lld%c", &h, &w, &c, &rest);
    if ((found != 3 && !(found == 2 && strchr(strchr(text, 'x') + 1, 'x') == NULL)) || h < 1 || w < 1 || c < 1)
        return cli_error(CLI_USAGE, "--image: '%s' is not a shape such as 28x28 or 32x32x3", text);
    options->data.height = h;
    options->data.width = w;
    options->data.channels = c;
    return CLI_OK;
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

/* Opens a file of centers, which are in the units of the data. */
static int open_centers(cli_job *job, const char *path)
{
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    options.x = path;
    options.task = MERCER_TASK_UNLABELED;
    options.memory = cli_memory(job->v);
    options.schema = job->info.schema;
    if (options.schema == NULL && job->info.feature_names != NULL) {
        options.columns = job->info.feature_names;
        options.column_count = job->info.features;
    } else if (options.schema == NULL) {
        options.kinds = "numbers";
    }
    CLI_TRY(cli_check(job->context, mercer_dataset_open(&job->centers, job->context, &options)));
    mercer_dataset_info info = cli_data_info(job->centers);
    job->options.centers.given = job->centers;
    if (info.features != job->info.features)
        return cli_error(CLI_DATA, "%s: %" PRId64 " features, but the data have %" PRId64, path, info.features,
                         job->info.features);
    if (job->options.centers.count > 0 && job->options.centers.count != info.rows)
        return cli_error(CLI_DATA, "%s: has %" PRId64 " rows, but --centers is %" PRId64 "; remove --centers", path,
                         info.rows, job->options.centers.count);
    return CLI_OK;
}

/* Reads the metric from a file. */
static int open_metric(cli_job *job, const char *path)
{
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    CLI_OWNED(cli_drop_dataset) mercer_dataset *file = NULL;
    options.x = path;
    options.kinds = "numbers";
    options.task = MERCER_TASK_UNLABELED;
    options.memory = cli_memory(job->v);
    CLI_TRY(cli_check(job->context, mercer_dataset_open(&file, job->context, &options)));
    mercer_dataset_info info = cli_data_info(file);
    void *values = cli_allocate(info.rows * info.features + 1, sizeof(double));
    job->metric = mercer_matrix_view(values, info.rows, info.features, MERCER_F64);
    mercer_status status = mercer_dataset_read(file, &job->metric, NULL, NULL, NULL, NULL, 0);
    job->options.kernel.metric = &job->metric;
    if (status == MERCER_OK) status = mercer_fit_check(job->context, &job->options);
    if (status == MERCER_OK) return CLI_OK;
    return cli_error(CLI_DATA, "%s: %s", path, mercer_last_error(job->context));
}

/* Resolves --calibrate auto: class probabilities are calibrated, as in the Python estimators, unless
   --validation-fraction 0 forbids holding out rows. The test part of a folder is never used: a model that was
   calibrated on the test part could not be tested on it. Under the same conditions, the model is scored on held-out
   rows. */
static void resolve_calibration(cli_job *job)
{
    const cli_values *v = job->v;
    int tests = job->validation != NULL && cli_text(v, "x-val") == NULL;
    int refused = cli_given(v, "validation-fraction") && cli_number(v, "validation-fraction") == 0;
    if (!tests && !refused) job->options.validation.score = MERCER_ON;
    if (tests && job->options.validation.intervals == MERCER_AUTO) job->options.validation.intervals = MERCER_OFF;
    if (job->options.validation.calibrate != MERCER_AUTO) return;
    if (tests)
        job->options.validation.calibrate = MERCER_OFF;
    else if (job->info.task == MERCER_TASK_CLASSIFICATION && !refused)
        job->options.validation.calibrate = MERCER_ON;
}

static int open_files(cli_job *job)
{
    const cli_values *v = job->v;
    const char *command = cli_command_name(v);
    int training = strcmp(command, "train") == 0, choosing = strcmp(command, "centers") == 0;
    /* Only the center method balanced needs targets. */
    cli_request request = {.training = 1, .unlabeled = choosing && !cli_is(v, "center-method", "balanced")};
    CLI_TRY(cli_open_data(v, job->context, &request, &job->data));
    job->info = cli_data_info(job->data);
    /* mercer centers writes centers in the units of the data, unless the user chose a preprocessing. */
    if (choosing && cli_is(v, "preprocess", "auto") && job->info.dtype != MERCER_U8)
        job->options.data.preprocess = "none";
    if (training && job->info.task == MERCER_TASK_UNLABELED)
        return cli_error(CLI_USAGE, "%s: has no targets to learn; add --y FILE", cli_data_name(v));
    if (training) CLI_TRY(cli_open_validation(v, job->context, &job->info, &job->validation));
    job->options.validation.data = job->validation;
    if (training) resolve_calibration(job);
    if (training && cli_text(v, "image") != NULL) CLI_TRY(read_image(cli_text(v, "image"), &job->options));
    if (center_file(v) != NULL) CLI_TRY(open_centers(job, center_file(v)));
    return metric_file(v) != NULL ? open_metric(job, metric_file(v)) : CLI_OK;
}

int cli_job_open(cli_job *job)
{
    mercer_context_info info = MERCER_INIT(mercer_context_info);
    cli_timeline_next(&job->timeline, "context");
    CLI_TRY(cli_context_deferred(job->v, &job->context));
    cli_timeline_next(&job->timeline, "reading data");
    CLI_TRY(open_files(job));
    cli_timeline_next(&job->timeline, "context");
    CLI_TRY(cli_check(job->context, mercer_context_query(job->context, &info))); /* waits for the device */
    cli_timeline_end(&job->timeline);
    cli_timeline_context(&job->timeline, job->context);
    return CLI_OK;
}

/* ---- The fit ----------------------------------------------------------------------------------------------------- */

void cli_job_look(cli_job *job)
{
    mercer_fitting_query(job->fitting, &job->fit);
    mercer_fitting_parts(job->fitting, &job->parts);
    if (job->parts.train != NULL) job->info = cli_data_info(job->parts.train);
}

const char *cli_job_decision(const cli_job *job, const char *stage, const char *name)
{
    mercer_decision one = MERCER_INIT(mercer_decision);
    int exists = job->fitting != NULL;
    for (int i = 0; exists && mercer_fitting_decision(job->fitting, i, &one, &exists) == MERCER_OK && exists; i++)
        if (strcmp(one.stage, stage) == 0 && strcmp(one.name, name) == 0) return one.value;
    return NULL;
}

/* Subtracts the elapsed time: --budget counts from program start, the library's budget from mercer_fitting_open. */
static void subtract_elapsed(mercer_fit_options *options)
{
    const double least = 1e-3; /* 0 would mean no limit */
    if (options->search.budget > 0) options->search.budget = fmax(options->search.budget - cli_elapsed(), least);
}

int cli_job_begin(cli_job *job)
{
    subtract_elapsed(&job->options);
    mercer_status status = mercer_fitting_open(&job->fitting, job->context, job->data, &job->options);
    if (status != MERCER_OK) return cli_fail_on(job->context, status, job->data, cli_data_name(job->v));
    cli_job_look(job);
    if (cli_job_decision(job, "samples", "held_out") != NULL)
        cli_say(job->v, "validation: the last %" PRId64 " rows (the file is too large to draw them at random)",
                job->fit.validation_rows);
    int64_t rows = cli_data_info(job->data).rows; /* before the fit merges equal rows */
    if (job->options.centers.given == NULL && job->options.centers.count > rows &&
        !cli_is(job->v, "center-method", "augmented"))
        return cli_error(CLI_DATA,
                         "%s: has %" PRId64 " rows, fewer than --centers %" PRId64 "; use --centers %" PRId64 " or "
                         "less, or --centers all",
                         cli_data_name(job->v), rows, job->options.centers.count, rows);
    return CLI_OK;
}

/* Returns the cause of a failed sample source, such as a truncated file, by reading from the dataset again. */
static mercer_status source_error(const mercer_dataset *dataset, mercer_status status)
{
    if (status != MERCER_ERROR_CALLBACK || dataset == NULL) return status;
    mercer_dataset_info info = cli_data_info(dataset);
    CLI_OWNED(cli_drop) void *row = cli_allocate(info.features, (size_t)cli_dtype_size(info.dtype));
    mercer_matrix X = mercer_matrix_view(row, 1, info.features, info.dtype);
    mercer_status found = mercer_dataset_read(dataset, &X, NULL, NULL, NULL, NULL, 0);
    return found != MERCER_OK ? found : status;
}

int cli_job_fail(cli_job *job, mercer_status status)
{
    status = source_error(job->parts.train, status);
    CLI_OWNED(cli_drop) char *message = cli_copy(mercer_last_error(job->context));
    CLI_OWNED(cli_drop) char *advice = NULL;
    if (job->fitting != NULL) cli_job_look(job);
    int64_t most = job->fit.largest_centers;
    if (status == MERCER_ERROR_MEMORY && most > 0)
        advice = cli_format("; use --centers %" PRId64 " or more %s", most,
                            job->fit.device_memory > 0 ? "devices" : "--memory");
    else if (status == MERCER_ERROR_MEMORY && most < 0)
        advice = cli_copy("; increase --memory");
    return advice != NULL ? cli_error(cli_exit_code(status), "%s%s", message, advice)
                          : cli_fail_on(job->context, status, job->data, cli_data_name(job->v));
}

int cli_job_on_device(const cli_job *job)
{
    mercer_context_info info = {.struct_size = sizeof info};
    return mercer_context_query(job->context, &info) == MERCER_OK && strcmp(info.backend, "cuda") == 0;
}

const char *cli_job_center_method(const cli_job *job)
{
    return strcmp(job->fit.center_method, "given") == 0 ? "file" : job->fit.center_method;
}

void cli_job_free(cli_job *job)
{
    if (job->context != NULL && cli_comm() == NULL && cli_job_on_device(job)) {
        cli_end_at_once();
        *job = (cli_job){0};
        return;
    }
    mercer_fitting_free(job->fitting);
    free(job->metric.data);
    mercer_dataset_free(job->centers);
    mercer_dataset_free(job->validation);
    mercer_dataset_free(job->data);
    cli_release_context(job->context);
    *job = (cli_job){0};
}

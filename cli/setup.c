/* SPDX-License-Identifier: BSD-3-Clause */
/* Data, preprocessing and kernel function of a training. */
#include "job.h"
#include "ranks/program_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What can be checked without data ---------------------------------------------------------------------------- */

/* The kernel takes a bandwidth. */
static int takes_bandwidth(const char *spec)
{
    size_t length = strcspn(spec, ":");
    for (int i = 0; i < mercer_kernel_count(); i++) {
        const char *name = mercer_kernel_name(i), *parameter;
        if (strlen(name) != length || strncmp(name, spec, length) != 0) continue;
        for (int k = 0; (parameter = mercer_kernel_parameter(i, k)) != NULL; k++)
            if (strcmp(parameter, "bandwidth") == 0) return 1;
    }
    return 0;
}

/* The kernel's text with a bandwidth in it. NULL if it takes none, or has one. */
static char *with_bandwidth(const char *spec, double bandwidth)
{
    if (strstr(spec, "bandwidth=") != NULL || !takes_bandwidth(spec)) return NULL;
    return cli_format("%s%cbandwidth=%.17g", spec, strchr(spec, ':') != NULL ? ',' : ':', bandwidth);
}

static int check_kernel(const cli_values *v)
{
    const char *spec = cli_text(v, "kernel");
    mercer_kernel kernel;
    char *longer = with_bandwidth(spec, 1);
    int wants_bandwidth = longer != NULL;
    mercer_status status = mercer_kernel_parse(&kernel, NULL, longer != NULL ? longer : spec);
    free(longer);
    if (status != MERCER_OK) return cli_error(CLI_USAGE, "--kernel: %s", mercer_last_error(NULL));
    if (!wants_bandwidth && !cli_is(v, "bandwidth", "auto"))
        return cli_error(CLI_USAGE, "--bandwidth: the kernel %s %s", spec,
                         strstr(spec, "bandwidth=") != NULL ? "has a bandwidth already: give it once"
                                                            : "has no bandwidth");
    if (!cli_is(v, "bandwidth", "auto") && !(cli_number(v, "bandwidth") > 0))
        return cli_error(CLI_USAGE, "--bandwidth: must be above 0, or auto");
    return CLI_OK;
}

int cli_check_job(const cli_values *v)
{
    if (cli_is(v, "centers", "0")) return cli_error(CLI_USAGE, "--centers: a model has at least one");
    return check_kernel(v);
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

/* All ranks read the same samples. */
static int agree_on_data(const cli_job *job)
{
    uint64_t prints[2] = {0, 0};
    if (cli_comm() == NULL) return CLI_OK;
    mercer_status status = mercer_dataset_fingerprint(job->train, &prints[0]);
    if (status == MERCER_OK && job->validation != NULL)
        status = mercer_dataset_fingerprint(job->validation, &prints[1]);
    if (status != MERCER_OK) return cli_fail(job->context, status);
    return cli_agree("other data", prints, sizeof prints);
}

int cli_job_open(cli_job *job, const cli_values *v)
{
    *job = (cli_job){.v = v, .memory = cli_memory(v)};
    int code = cli_context(v, &job->context);
    if (code == CLI_OK && cli_ranks() > 1) {
        mercer_status status = mercer_comm_device_bytes(cli_comm(), &job->device_each);
        if (status != MERCER_OK) code = cli_fail(job->context, status);
    }
    cli_request request = {.training = 1};
    /* Centers need targets only to be balanced over classes. */
    if (strcmp(cli_command_name(v), "centers") == 0) request.unlabelled = !cli_is(v, "center-method", "balanced");
    if (code == CLI_OK) code = cli_open_data(v, job->context, &request, &job->train);
    if (code != CLI_OK) return code;
    if (strcmp(cli_command_name(v), "train") == 0) {
        mercer_dataset_info info = cli_data_info(job->train);
        if (info.task == MERCER_TASK_UNLABELLED)
            return cli_error(CLI_USAGE, "%s: has no targets to learn: give --y FILE", cli_data_name(v));
        code = cli_open_validation(v, job->context, &info, &job->validation);
        if (code == CLI_OK) code = cli_split_data(v, job->context, &job->train, &job->validation);
        if (code != CLI_OK) return code;
    }
    job->info = cli_data_info(job->train);
    code = agree_on_data(job);
    if (code != CLI_OK) return code;
    if (job->info.rows == 0) return cli_error(CLI_DATA, "%s: has no rows", cli_data_name(v));
    if (job->validation != NULL) {
        mercer_dataset_info held = cli_data_info(job->validation);
        if (held.features != job->info.features || held.outputs != job->info.outputs)
            return cli_error(CLI_DATA,
                             "validation data: %" PRId64 " features and %" PRId64 " outputs, but the training data "
                             "have %" PRId64 " and %" PRId64,
                             held.features, held.outputs, job->info.features, job->info.outputs);
    }
    return CLI_OK;
}

/* ---- Preprocessing and kernel ------------------------------------------------------------------------------------ */

const char *cli_job_preprocess(const cli_job *job)
{
    const char *spec = cli_text(job->v, "preprocess");
    if (strcmp(spec, "auto") != 0) return spec;
    /* Chosen centers should be in the units of the file they were chosen from. */
    if (job->info.dtype != MERCER_U8 && strcmp(cli_command_name(job->v), "centers") == 0) return "none";
    return mercer_preprocess_auto(job->info.format, job->info.dtype);
}

/* The median distance between preprocessed rows, of at most 2000 spread over the data. */
static int median_distance(cli_job *job, double *out)
{
    enum { MOST = 2000 };
    int64_t n = job->info.rows, m = n < MOST ? n : MOST;
    int64_t rows[MOST];
    mercer_dtype dtype = job->info.dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    for (int64_t i = 0; i < m; i++) rows[i] = (int64_t)((double)i * (double)n / (double)m);
    void *memory = cli_allocate(m * job->info.features, (size_t)cli_dtype_size(dtype));
    mercer_matrix X = mercer_matrix_view(memory, m, job->info.features, dtype);
    /* A preprocessing turns anything into floats; without one samples keep their type. */
    mercer_matrix as_is = X;
    as_is.dtype = mercer_preprocess_dtype(job->preprocess, job->info.dtype);
    mercer_status status = mercer_dataset_read(job->train, &as_is, NULL, NULL, job->preprocess, rows, 0);
    if (status == MERCER_OK) status = mercer_median_distance(job->context, out, &as_is, 0);
    free(memory);
    return status == MERCER_OK ? CLI_OK : cli_fail_on(job->context, status, job->train, cli_data_name(job->v));
}

/* The kernel of --kernel and --bandwidth, in the units of preprocessed samples. */
static int choose_kernel(cli_job *job)
{
    const char *spec = cli_text(job->v, "kernel");
    double bandwidth = cli_number(job->v, "bandwidth");
    char *longer = with_bandwidth(spec, 1);
    int wants_bandwidth = longer != NULL;
    free(longer);
    longer = NULL;
    if (wants_bandwidth && bandwidth == 0) {
        int code = median_distance(job, &bandwidth);
        if (code != CLI_OK) return code;
        /* Four digits are as good as all of them, and can be typed. */
        char digits[32];
        snprintf(digits, sizeof digits, "%.4g", bandwidth);
        bandwidth = strtod(digits, NULL);
        snprintf(job->bandwidth_note, sizeof job->bandwidth_note,
                 "bandwidth %.4g (median distance; set --bandwidth to change)", bandwidth);
    }
    if (wants_bandwidth) longer = with_bandwidth(spec, bandwidth);
    mercer_status status = mercer_kernel_parse(&job->kernel, job->context, longer != NULL ? longer : spec);
    free(longer);
    if (status == MERCER_OK)
        status = mercer_kernel_print(job->context, job->kernel_text, sizeof job->kernel_text, NULL, &job->kernel);
    return status == MERCER_OK ? CLI_OK : cli_fail(job->context, status);
}

int cli_job_prepare(cli_job *job)
{
    mercer_status status = mercer_preprocess_fit(&job->preprocess, job->context, cli_job_preprocess(job), job->train);
    if (status != MERCER_OK) return cli_fail_on(job->context, status, job->train, cli_data_name(job->v));
    int code = choose_kernel(job);
    if (code != CLI_OK) return code;
    status = mercer_preprocess_fold(job->preprocess, &job->kernel, &job->folded);
    if (status != MERCER_OK) return cli_fail(job->context, status);
    job->applied = job->preprocess;
    job->dtype = mercer_preprocess_dtype(job->preprocess, job->info.dtype);
    return CLI_OK;
}

int cli_job_load(cli_job *job, const char *checkpoint)
{
    mercer_status status = cli_comm() != NULL ? mercer_model_load_shared(&job->model, cli_comm(), checkpoint)
                                              : mercer_model_load(&job->model, job->context, checkpoint);
    if (status != MERCER_OK) return cli_fail(job->context, status);
    job->applied = mercer_model_preprocess(job->model);
    job->kernel = *mercer_model_kernel(job->model);
    const mercer_kernel *shown = job->applied != NULL ? mercer_preprocess_kernel(job->applied) : NULL;
    job->folded = shown != NULL;
    if (shown == NULL) shown = &job->kernel;
    status = mercer_kernel_print(job->context, job->kernel_text, sizeof job->kernel_text, NULL, shown);
    if (status != MERCER_OK) return cli_fail(job->context, status);
    job->dtype = mercer_preprocess_dtype(job->applied, job->info.dtype);
    snprintf(job->center_method, sizeof job->center_method, "checkpoint");
    mercer_matrix centers = mercer_model_centers(job->model);
    int64_t p = mercer_model_size(job->model);
    if (centers.cols != job->info.features)
        return cli_error(CLI_DATA, "%s: belongs to other data: %" PRId64 " features, but the data have %" PRId64,
                         checkpoint, centers.cols, job->info.features);
    int64_t named = 0;
    const char *const *names = mercer_model_feature_names(job->model, &named);
    for (int64_t j = 0; job->info.feature_names != NULL && j < named; j++) {
        if (strcmp(names[j], job->info.feature_names[j]) == 0) continue;
        return cli_error(CLI_DATA, "%s: belongs to other data: column '%s', but the data have '%s' there", checkpoint,
                         names[j], job->info.feature_names[j]);
    }
    if (strncmp(cli_text(job->v, "center-method"), "file:", 5) != 0 && p != cli_job_center_count(job))
        return cli_error(CLI_DATA, "%s: belongs to other options: %" PRId64 " centers, but --centers is %" PRId64,
                         checkpoint, p, cli_job_center_count(job));
    return CLI_OK;
}

void cli_job_free(cli_job *job)
{
    mercer_source_free(&job->source);
    mercer_model_free(job->model);
    mercer_preprocess_free(job->preprocess);
    mercer_dataset_free(job->validation);
    mercer_dataset_free(job->train);
    free(job->centers.data);
    free(job->validation_x.data);
    free(job->validation_y.data);
    cli_release_context(job->context);
    *job = (cli_job){0};
}

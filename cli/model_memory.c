/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of a training, the stream it learns from, and the memory it may use. */
#include "job.h"
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The units of the targets that --target-transform asks for. All ranks compute them of the same data. */
static mercer_status set_targets(cli_job *job)
{
    const char *how = cli_text(job->v, "target-transform");
    int classes = job->info.task == MERCER_TASK_CLASSIFICATION;
    if (strcmp(how, "auto") == 0) how = classes ? "center" : "standardise";
    if (strcmp(how, "none") == 0) return MERCER_OK;
    double *mean = cli_allocate(2 * job->info.outputs, sizeof *mean), *deviation = mean + job->info.outputs;
    mercer_status status = mercer_dataset_target_moments(job->train, mean, deviation);
    if (status == MERCER_OK)
        status = mercer_model_set_targets(job->model, mean, strcmp(how, "center") == 0 ? NULL : deviation);
    free(mean);
    return status;
}

int cli_job_model(cli_job *job)
{
    mercer_dtype precision = cli_dtype(cli_text(job->v, "precision"));
    mercer_status status =
        cli_comm() != NULL
            ? mercer_model_create_shared(&job->model, cli_comm(), &job->kernel, &job->centers, job->center_count,
                                         job->info.outputs, precision)
            : mercer_model_create(&job->model, job->context, &job->kernel, &job->centers, job->info.outputs, precision);
    free(job->centers.data); /* the model has its copy */
    job->centers = (mercer_matrix){0};
    if (status == MERCER_OK) status = mercer_model_set_preprocess(job->model, job->preprocess);
    if (status == MERCER_OK && job->info.labels != NULL)
        status = mercer_model_set_labels(job->model, job->info.labels, job->info.outputs);
    if (status == MERCER_OK) status = set_targets(job);
    if (status == MERCER_OK && job->info.feature_names != NULL)
        status = mercer_model_set_feature_names(job->model, job->info.feature_names, job->info.features);
    if (status == MERCER_OK && job->info.target_names != NULL)
        status = mercer_model_set_target_names(job->model, job->info.target_names,
                                               job->info.labels != NULL ? 1 : job->info.outputs);
    return status == MERCER_OK ? CLI_OK : cli_fail_on(job->context, status, job->train, cli_data_name(job->v));
}

/* "28x28x1", or "32x32" for one channel. */
static int read_image(const char *text, mercer_stream_options *options)
{
    char rest = '\0';
    long long h = 0, w = 0, c = 1;
    int found = sscanf(text, "%lldx%lldx%lld%c", &h, &w, &c, &rest);
    if (found != 3 && !(found == 2 && strchr(strchr(text, 'x') + 1, 'x') == NULL)) return -1;
    if (h < 1 || w < 1 || c < 1) return -1;
    options->height = h;
    options->width = w;
    options->channels = c;
    return 0;
}

/* The type of weights and targets. */
static mercer_dtype real_type(const cli_job *job)
{
    int is_double = job->info.dtype == MERCER_F64;
    if (cli_has(job->v, "precision") && !cli_is(job->v, "precision", "auto"))
        is_double = cli_is(job->v, "precision", "f64");
    return is_double ? MERCER_F64 : MERCER_F32;
}

/* Targets keep all their digits until training has taken their mean away; those of classes are 0 and 1. */
static mercer_dtype target_type(const cli_job *job)
{
    return job->info.task == MERCER_TASK_CLASSIFICATION ? real_type(job) : MERCER_F64;
}

/* Of a validation set that would take more than a quarter of the memory, rows spread evenly are watched. */
static int64_t validation_rows(const cli_job *job)
{
    if (job->validation == NULL) return 0;
    mercer_dataset_info info = cli_data_info(job->validation);
    mercer_dtype dtype = mercer_preprocess_dtype(job->applied, info.dtype);
    int64_t row = info.features * cli_dtype_size(dtype) + info.outputs * cli_dtype_size(target_type(job));
    int64_t most = job->memory / 4 / row + 1;
    return info.rows < most ? info.rows : most;
}

/* Validation samples as the trainer wants them: preprocessed, in memory. */
static int read_validation(cli_job *job)
{
    mercer_dataset_info info = cli_data_info(job->validation);
    mercer_dtype real = target_type(job), dtype = mercer_preprocess_dtype(job->applied, info.dtype);
    int64_t m = validation_rows(job);
    int64_t *rows = cli_allocate(m, sizeof *rows);
    for (int64_t i = 0; i < m; i++) rows[i] = (int64_t)((double)i * (double)info.rows / (double)m);
    job->validation_x =
        mercer_matrix_view(cli_allocate(m * info.features, (size_t)cli_dtype_size(dtype)), m, info.features, dtype);
    job->validation_y =
        mercer_matrix_view(cli_allocate(m * info.outputs, (size_t)cli_dtype_size(real)), m, info.outputs, real);
    mercer_status status =
        mercer_dataset_read(job->validation, &job->validation_x, &job->validation_y, NULL, job->applied, rows, 0);
    free(rows);
    return status == MERCER_OK ? CLI_OK : cli_fail(job->context, status);
}

int cli_job_open_stream(cli_job *job, uint64_t seed, int64_t samples, mercer_source *source)
{
    const cli_values *v = job->v;
    mercer_stream_options options;
    options = (mercer_stream_options)MERCER_INIT(mercer_stream_options);
    options.seed = seed;
    options.preprocess = job->applied;
    options.augment = cli_text(v, "augment");
    options.samples = samples;
    if (cli_text(v, "image") != NULL && read_image(cli_text(v, "image"), &options) != 0)
        return cli_error(CLI_USAGE, "--image: '%s' is no shape such as 28x28 or 32x32x3", cli_text(v, "image"));
    mercer_status status = mercer_source_from_dataset(source, job->train, &options);
    return status == MERCER_OK ? CLI_OK : cli_fail(job->context, status);
}

int cli_job_stream(cli_job *job)
{
    return cli_job_open_stream(job, (uint64_t)cli_integer(job->v, "seed"), cli_integer(job->v, "samples"),
                               &job->source);
}

int cli_job_validation(cli_job *job)
{
    return job->validation != NULL ? read_validation(job) : CLI_OK;
}

/* ---- Options of training ----------------------------------------------------------------------------------------- */

void cli_train_options(const cli_values *v, mercer_train_options *options)
{
    const mercer_option *option;
    *options = (mercer_train_options)MERCER_INIT(mercer_train_options);
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
    options->seed = (uint64_t)cli_integer(v, "seed");
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

int cli_job_on_device(const cli_job *job)
{
    mercer_context_info info = {.struct_size = sizeof info};
    return mercer_context_query(job->context, &info) == MERCER_OK && strcmp(info.backend, "cuda") == 0;
}

mercer_shape cli_job_shape(const cli_job *job, int64_t p)
{
    mercer_shape shape = {.struct_size = sizeof shape,
                          .samples = job->source.rows > 0 ? job->source.rows : job->info.rows,
                          .centers = p,
                          .features = job->info.features,
                          .outputs = job->info.outputs > 0 ? job->info.outputs : 1,
                          .points = job->dtype,
                          .weights = cli_dtype(cli_text(job->v, "precision"))};
    if (cli_comm() != NULL) {
        shape.shards = mercer_comm_shard_count(cli_comm(), p);
    } else if (cli_has(job->v, "ranks")) { /* mercer plan */
        shape.shards = (int)cli_integer(job->v, "shards");
        if (shape.shards == 0 && cli_given(job->v, "ranks")) shape.shards = -1;
    }
    return shape;
}

static mercer_status plan_within(const cli_job *job, int64_t p, int64_t memory, mercer_plan *plan)
{
    mercer_train_options options;
    mercer_shape shape = cli_job_shape(job, p);
    cli_train_options(job->v, &options);
    options.memory = memory;
    *plan = (mercer_plan){.struct_size = sizeof *plan};
    return mercer_plan_shape(job->context, plan, &shape, &options);
}

/* What a rank holds of a plan, which counts bytes as for one process: all but the other ranks' shares of what is shared
   out. direct, and polishing, are taken to hold everything everywhere. */
static double held_by_a_rank(const cli_job *job, int64_t p, const mercer_plan *plan)
{
    mercer_rank_plan ranks = {.struct_size = sizeof ranks};
    mercer_network network = {.struct_size = sizeof network, .ranks = cli_ranks(), .bytes_per_second = 1e9};
    mercer_shape shape = cli_job_shape(job, p);
    int alike = strcmp(plan->solver, "direct") == 0 || cli_integer(job->v, "polish") > 0;
    network.shards = mercer_comm_shard_count(cli_comm(), p);
    if (shape.weights == (mercer_dtype)0) shape.weights = plan->precision;
    if (alike || mercer_plan_ranks(job->context, &ranks, plan, &shape, &network) != MERCER_OK)
        return (double)plan->bytes;
    return (double)plan->bytes - (cli_ranks() - 1) * ranks.shared_bytes;
}

/*
 * The memory of several devices is not that of one: what every rank holds must fit each. *memory is the most for which
 * the plan does; as it is given, if it is. MERCER_ERROR_MEMORY if there is none.
 */
static mercer_status plan_on_devices(const cli_job *job, int64_t p, mercer_plan *plan, int64_t *memory)
{
    int64_t given = cli_integer(job->v, "memory");
    *memory = given > 0 ? given : job->device_each * cli_ranks();
    for (;;) {
        mercer_status status = plan_within(job, p, *memory, plan);
        if (status != MERCER_OK || held_by_a_rank(job, p, plan) <= (double)job->device_each) return status;
        if (given > 0 || *memory <= job->device_each) return MERCER_ERROR_MEMORY;
        *memory = *memory / 8 * 7 > job->device_each ? *memory / 8 * 7 : job->device_each;
    }
}

int64_t cli_job_memory_left(const cli_job *job, int64_t p)
{
    /* Samples and the model lie in the host's memory; a device's own is for training alone. 0: what is free there. */
    if (job->device_each > 0 && cli_has(job->v, "solver")) {
        mercer_plan *plan = cli_allocate(1, sizeof *plan);
        int64_t memory = 0;
        mercer_status status = plan_on_devices(job, p, plan, &memory);
        free(plan);
        return status == MERCER_OK ? memory : 0;
    }
    if (cli_job_on_device(job)) return cli_integer(job->v, "memory");
    enum { LEAST = 1 << 20, STREAM = 64 << 20 }; /* the planner then says that it is too little; buffers of a stream */
    const mercer_dataset_info *info = &job->info;
    double row = (double)info->features * (double)cli_dtype_size(job->dtype) +
                 (double)info->outputs * (double)cli_dtype_size(real_type(job));
    double watched = (double)info->features * (double)cli_dtype_size(job->dtype) +
                     (double)info->outputs * (double)cli_dtype_size(target_type(job));
    double bytes = row * (double)p + watched * (double)validation_rows(job);
    double stream = 4 * row * (double)info->rows;
    bytes += stream < STREAM ? stream : STREAM;
    if (!info->mapped && strcmp(info->format, "synthetic") != 0) bytes += (double)info->bytes;
    double left = (double)job->memory - bytes;
    return left < LEAST ? LEAST : (int64_t)left;
}

mercer_status cli_job_plan(const cli_job *job, int64_t p, mercer_plan *plan)
{
    int64_t memory;
    if (job->device_each > 0) return plan_on_devices(job, p, plan, &memory);
    return plan_within(job, p, cli_job_memory_left(job, p), plan);
}

int64_t cli_job_largest(const cli_job *job, int64_t p)
{
    mercer_plan *plan = cli_allocate(1, sizeof *plan);
    int64_t low = 0, high = p; /* low fits, high does not */
    while (high - low > (low > 1000 ? low / 100 : 1)) {
        int64_t middle = low + (high - low) / 2;
        if (cli_job_plan(job, middle, plan) == MERCER_OK)
            low = middle;
        else
            high = middle;
    }
    free(plan);
    return low;
}

int cli_job_fits(const cli_job *job, int64_t p)
{
    if (!cli_has(job->v, "solver")) return CLI_OK; /* nothing will be trained */
    mercer_plan *plan = cli_allocate(1, sizeof *plan);
    mercer_status status = cli_job_plan(job, p, plan);
    free(plan);
    if (status == MERCER_OK) return CLI_OK;
    if (status != MERCER_ERROR_MEMORY) return cli_fail(job->context, status);
    if (cli_job_on_device(job) && job->device_each == 0)
        return cli_fail(job->context, status); /* which names the most centers that fit */
    char budget[CLI_SHORT], asked[CLI_SHORT];
    int64_t most = cli_job_largest(job, p);
    cli_bytes_text(budget, job->device_each > 0 ? job->device_each : job->memory);
    cli_count_text(asked, p);
    if (job->device_each > 0 && most > 0)
        return cli_error(CLI_FAILURE,
                         "%s centers do not fit %d ranks with %s of device memory each: at most about %" PRId64
                         " do; give --centers %" PRId64 " or more devices",
                         asked, cli_ranks(), budget, most, most);
    if (most == 0)
        return cli_error(CLI_FAILURE, "%s: the memory is too small for any number of centers: give more --memory",
                         budget);
    return cli_error(CLI_FAILURE,
                     "%s centers do not fit the memory of %s: at most about %" PRId64 " do; give --centers %" PRId64
                     " or more --memory",
                     asked, budget, most, most);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains on MNIST-like data (four IDX files in a folder) with p centers, random or chosen by a method. Reports test
 * accuracy, epochs, seconds and bytes, in one line of text or JSON per run. Without options, the program runs one cell
 * of the paper's table with all defaults; each option overrides one default. Pixels are stored as bytes, so a bandwidth
 * b in units of pixels/255 becomes 255 b, which gives the same kernel.
 */
#include "../bench.h"
#include "idx.h"

#include <math.h>
#include <sys/resource.h>

typedef struct settings {
    const char *data, *backend;
    int64_t p;
    double bandwidth;
    int seeds, first_seed, ranks, threads;
    bool json, verbose, floats;
    mercer_train_options train;
    mercer_center_options centers; /* method NULL: p random rows drawn by the benchmark itself, as in earlier results */
} settings;

static int usage(FILE *to)
{
    fputs("usage: paper_table DATA_FOLDER [--p N] [--bandwidth B] [--seeds N] [--seed FIRST] [--solver S] [--projector "
          "P]\n"
          "         [--epochs N] [--batch M] [--nystrom S] [--eigenpairs Q] [--period T] [--passes N] [--block N] "
          "[--pq Q] [--ps S]\n"
          "         [--gamma G] [--lambda L] [--carry on|off] [--average on|off] [--decay on|off] [--cache on|off] "
          "[--polish N]\n"
          "         [--memory BYTES] [--backend NAME] [--ranks R] [--threads N] [--float] [--json] [--verbose]\n"
          "         [--center-method random|kmeans|rpcholesky|balanced] [--center-iterations N] [--center-batch N]\n",
          to);
    return to == stdout ? 0 : 2;
}

static mercer_switch to_switch(const char *text)
{
    return strcmp(text, "on") == 0 ? MERCER_ON : strcmp(text, "off") == 0 ? MERCER_OFF : MERCER_AUTO;
}

/* Set one option to a value; return false if the option is unknown. */
static bool set_option(settings *s, const char *name, const char *value)
{
    mercer_train_options *t = &s->train;
    struct {
        const char *name;
        int64_t *field;
    } const whole[] = {{"--p", &s->p},
                       {"--epochs", &t->epochs},
                       {"--batch", &t->batch},
                       {"--nystrom", &t->nystrom},
                       {"--eigenpairs", &t->eigenpairs},
                       {"--period", &t->period},
                       {"--passes", &t->projector_passes},
                       {"--block", &t->projector_block},
                       {"--pq", &t->projector_eigenpairs},
                       {"--ps", &t->projector_nystrom},
                       {"--polish", &t->polish},
                       {"--memory", &t->memory},
                       {"--center-iterations", &s->centers.iterations},
                       {"--center-batch", &s->centers.batch}};
    struct {
        const char *name;
        double *field;
    } const real[] = {{"--bandwidth", &s->bandwidth}, {"--gamma", &t->step_factor}, {"--lambda", &t->lambda}};
    struct {
        const char *name;
        mercer_switch *field;
    } const switches[] = {
        {"--carry", &t->carry}, {"--average", &t->average}, {"--decay", &t->decay}, {"--cache", &t->cache}};
    struct {
        const char *name;
        int *field;
    } const small[] = {
        {"--seeds", &s->seeds}, {"--seed", &s->first_seed}, {"--ranks", &s->ranks}, {"--threads", &s->threads}};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(name, whole[i].name) == 0) return *whole[i].field = (int64_t)atof(value), true;
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        if (strcmp(name, real[i].name) == 0) return *real[i].field = atof(value), true;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (strcmp(name, switches[i].name) == 0) return *switches[i].field = to_switch(value), true;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (strcmp(name, small[i].name) == 0) return *small[i].field = atoi(value), true;
    if (strcmp(name, "--backend") == 0) return s->backend = value, true;
    if (strcmp(name, "--solver") == 0) return t->solver = value, true;
    if (strcmp(name, "--projector") == 0) return t->projector = value, true;
    if (strcmp(name, "--center-method") == 0) return s->centers.method = value, true;
    return false;
}

static int read_settings(int argc, char **argv, settings *s)
{
    *s = (settings){.p = 1000, .bandwidth = 10, .seeds = 1, .first_seed = 1, .ranks = 1};
    s->train = (mercer_train_options)MERCER_INIT(mercer_train_options);
    s->centers = (mercer_center_options)MERCER_INIT(mercer_center_options);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) return usage(stdout);
        if (strcmp(argv[i], "--json") == 0)
            s->json = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            s->verbose = true;
        else if (strcmp(argv[i], "--float") == 0)
            s->floats = true;
        else if (argv[i][0] != '-' && !s->data)
            s->data = argv[i];
        else if (i + 1 >= argc || !set_option(s, argv[i], argv[i + 1])) {
            fprintf(stderr, "paper_table: '%s' is not an option, or its value is missing\n", argv[i]);
            return usage(stderr);
        } else
            i++;
    }
    return s->data ? -1 : usage(stderr);
}

static int show_progress(void *user, const mercer_progress *progress)
{
    const settings *s = user;
    if (s->verbose)
        fprintf(stderr, "  epoch %lld: train loss %.5f accuracy %.4f | test %.4f | residual %.3f step %.3g | %.1f s\n",
                (long long)progress->epoch, progress->train_loss, progress->train_accuracy,
                progress->validation_accuracy, progress->projection_residual, progress->step, progress->seconds);
    return 0;
}

static void log_line(void *user, mercer_log_level level, const char *message)
{
    (void)user, (void)level;
    fprintf(stderr, "  %s\n", message);
}

/* Copy p random rows of the data to centers: a partial Fisher-Yates shuffle with the benchmarks' generator and the
   seed. */
static void draw_centers(const idx_data *data, int64_t p, int seed, uint8_t *centers)
{
    int64_t *ids = malloc((size_t)data->n * sizeof *ids);
    uint64_t state = (uint64_t)seed * 1000003;
    for (int64_t i = 0; ids && i < data->n; i++) ids[i] = i;
    for (int64_t i = 0; ids && i < p; i++) {
        int64_t j = i + (int64_t)(bench_random(&state) * (double)(data->n - i)), swap = ids[i];
        ids[i] = ids[j], ids[j] = swap;
        memcpy(centers + i * data->d, data->pixels + ids[i] * data->d, (size_t)data->d);
    }
    free(ids);
}

/* Return a matrix of the bytes unchanged, or converted to floats pixels/255. */
static mercer_matrix points(const settings *s, const uint8_t *bytes, int64_t rows, int64_t d)
{
    if (!s->floats) return mercer_matrix_view((void *)bytes, rows, d, MERCER_U8);
    float *values = malloc((size_t)(rows * d) * sizeof *values);
    for (int64_t i = 0; values && i < rows * d; i++) values[i] = (float)bytes[i] / 255;
    return mercer_matrix_view(values, rows, d, MERCER_F32);
}

static mercer_matrix one_hot(const idx_data *data)
{
    float *values = calloc((size_t)data->n * 10, sizeof *values);
    for (int64_t i = 0; values && i < data->n; i++) values[i * 10 + data->labels[i]] = 1;
    return mercer_matrix_view(values, data->n, 10, MERCER_F32);
}

/* Format a number as JSON, which has no NaN. */
static const char *json_number(double value, char text[32])
{
    if (!isfinite(value)) return "null";
    snprintf(text, 32, "%.6g", value);
    return text;
}

static void print_run(const settings *s, int seed, const mercer_report *r, const mercer_center_report *z)
{
    struct rusage usage_now;
    getrusage(RUSAGE_SELF, &usage_now);
    const mercer_plan *plan = r->plan;
    char number[32], error_number[32];
    if (s->json)
        printf("{\"bench\": \"paper\", \"data\": \"%s\", \"p\": %lld, \"seed\": %d, \"bandwidth\": %g, \"solver\": "
               "\"%s\", \"projector\": \"%s\", "
               "\"epochs\": %lld, \"m\": %lld, \"s\": %lld, \"q\": %lld, \"T\": %lld, \"carry\": %d, \"average\": %d, "
               "\"decay\": %d, "
               "\"test_accuracy\": %.4f, \"train_loss\": %s, \"residual_mean\": %.4f, "
               "\"seconds\": %.2f, "
               "\"setup_s\": %.2f, \"forward_s\": %.2f, \"gradient_s\": %.2f, \"projection_s\": %.2f, \"flops\": %.4g, "
               "\"peak_bytes\": %lld, \"plan_bytes\": %lld, \"plan_s\": %.2f, \"max_rss_bytes\": %lld, \"halvings\": "
               "%lld, \"centers\": \"%s\", \"center_rounds\": %lld, \"center_error\": %s, \"center_s\": %.2f}\n",
               s->data, (long long)s->p, seed, s->bandwidth, plan->solver, plan->projector, (long long)r->epochs,
               (long long)plan->batch, (long long)plan->nystrom, (long long)plan->eigenpairs, (long long)plan->period,
               plan->carry, plan->average, plan->decay, 100 * r->validation_accuracy,
               json_number(r->train_loss, number), r->projection_residual_mean, r->seconds, r->setup_seconds,
               r->forward_seconds, r->gradient_seconds, r->projection_seconds, r->flops, (long long)r->peak_bytes,
               (long long)plan->bytes, plan->seconds, (long long)usage_now.ru_maxrss * 1024, (long long)r->halvings,
               s->centers.method ? s->centers.method : "random", (long long)z->iterations,
               json_number(z->error, error_number), z->seconds);
    else
        printf("p %6lld seed %d %-6s %-5s: test %.2f %%  %lld epochs  m %lld T %lld q %lld  residual %.3f  %.1f s "
               "(plan %.1f)  peak %.0f MB (plan %.0f)  centers %lld rounds error %.6g %.1f s\n",
               (long long)s->p, seed, plan->solver, plan->projector, 100 * r->validation_accuracy, (long long)r->epochs,
               (long long)plan->batch, (long long)plan->period, (long long)plan->eigenpairs,
               r->projection_residual_mean, r->seconds, plan->seconds, (double)r->peak_bytes * 1e-6,
               (double)plan->bytes * 1e-6, (long long)z->iterations, z->error, z->seconds);
    fflush(stdout);
}

/* Compute the share of correct labels among the test rows. */
static mercer_status test_model(mercer_model *model, const idx_data *data, const mercer_matrix *X, double *accuracy)
{
    int32_t *labels = malloc((size_t)data->n * sizeof *labels);
    int64_t right = 0;
    mercer_status status = labels ? mercer_model_classify(model, labels, X) : MERCER_ERROR_MEMORY;
    for (int64_t i = 0; i < data->n && !status; i++) right += labels[i] == data->labels[i];
    *accuracy = (double)right / (double)data->n;
    free(labels);
    return status;
}

typedef struct experiment {
    mercer_context *context;
    const idx_data *train_data, *test_data;
    mercer_matrix X, test, Y; /* training points, test points, one-hot test labels */
} experiment;

/* Parse a kernel in units of pixels/255, and scale its bandwidth to the type of the stored points. */
static mercer_status parse_kernel(const settings *s, mercer_context *context, mercer_kernel *kernel)
{
    char spec[64];
    snprintf(spec, sizeof spec, "laplace:bandwidth=%.17g", s->floats ? s->bandwidth : 255 * s->bandwidth);
    return mercer_kernel_parse(kernel, context, spec);
}

static mercer_status choose_centers(const settings *s, const experiment *e, const mercer_matrix *Z, int seed,
                                    mercer_center_report *report)
{
    mercer_kernel kernel;
    mercer_center_options options = s->centers;
    mercer_status status = parse_kernel(s, e->context, &kernel);
    options.seed = (uint64_t)seed;
    options.kernel = &kernel;
    options.labels = e->train_data->labels;
    options.classes = 10;
    return status ? status : mercer_choose_centers(e->context, Z, &e->X, &options, report);
}

static mercer_status train(const settings *s, const experiment *e, const mercer_matrix *Z, int seed,
                           mercer_report *report)
{
    static mercer_plan plan; /* copy of the plan, because the report is used after the model is freed */
    mercer_kernel kernel;
    mercer_model *model = NULL;
    mercer_trainer *trainer = NULL;
    mercer_comm *comm = NULL;
    mercer_source source = {0};
    mercer_train_options options = s->train;
    options.seed = (uint64_t)seed;
    options.classification = MERCER_ON;
    options.progress = show_progress;
    options.progress_user = (void *)s;
    if (s->verbose) { /* only to print progress: without `patience`, validation data do not affect training */
        options.validation_X = &e->test;
        options.validation_Y = &e->Y;
    }
    mercer_dataset_arrays arrays = {
        .struct_size = sizeof arrays, .X = &e->X, .labels = e->train_data->labels, .classes = 10};
    mercer_comm_options shards = {.struct_size = sizeof shards, .kind = "self", .shards = s->ranks};
    mercer_status status = parse_kernel(s, e->context, &kernel);
    if (!status) status = mercer_model_create(&model, e->context, NULL, &kernel, Z, 10, (mercer_dtype)0);
    if (!status) status = mercer_source_from_arrays(&source, e->context, &arrays, (uint64_t)seed);
    if (!status && s->ranks > 1) status = mercer_comm_create(&comm, e->context, &shards);
    if (!status) status = mercer_trainer_create(&trainer, model, comm, &options);
    report->struct_size = sizeof *report;
    if (!status) status = mercer_trainer_fit(trainer, &source, report);
    if (!status) plan = *report->plan, report->plan = &plan;
    if (!status) status = test_model(model, e->test_data, &e->test, &report->validation_accuracy);
    mercer_trainer_free(trainer);
    mercer_comm_free(comm);
    mercer_source_free(&source);
    mercer_model_free(model);
    return status;
}

int main(int argc, char **argv)
{
    settings s;
    int leave = read_settings(argc, argv, &s);
    if (leave >= 0) return leave;
    idx_data train_data, test_data;
    if (idx_load(&train_data, s.data, "train") || idx_load(&test_data, s.data, "t10k")) return 1;
    mercer_context_options with = MERCER_INIT(mercer_context_options);
    with.log = log_line;
    with.threads = s.threads;
    with.backend = s.backend;
    with.log_level = s.verbose ? MERCER_LOG_DEBUG : MERCER_LOG_WARNING;
    mercer_context *context;
    if (mercer_context_create(&context, &with) != MERCER_OK) return fprintf(stderr, "%s\n", mercer_last_error(NULL)), 1;
    experiment e = {.context = context,
                    .train_data = &train_data,
                    .test_data = &test_data,
                    .X = points(&s, train_data.pixels, train_data.n, train_data.d),
                    .test = points(&s, test_data.pixels, test_data.n, test_data.d),
                    .Y = one_hot(&test_data)};
    uint8_t *chosen = malloc((size_t)(s.p * train_data.d));
    double sum = 0;
    int failed = !e.X.data || !e.Y.data || !e.test.data || !chosen || s.p > train_data.n;
    for (int seed = s.first_seed; seed < s.first_seed + s.seeds && !failed; seed++) {
        draw_centers(&train_data, s.p, seed, chosen);
        mercer_matrix Z = points(&s, chosen, s.p, train_data.d);
        mercer_report report;
        mercer_center_report center_report = {.struct_size = sizeof center_report};
        if (s.centers.method) failed = choose_centers(&s, &e, &Z, seed, &center_report) != MERCER_OK;
        if (!failed) failed = train(&s, &e, &Z, seed, &report) != MERCER_OK;
        if (failed) {
            fprintf(stderr, "paper_table: %s\n", mercer_last_error(context));
        } else {
            if (s.verbose) fprintf(stderr, "%s", report.plan->text);
            print_run(&s, seed, &report, &center_report);
            sum += report.validation_accuracy;
        }
        if (s.floats) free(Z.data);
    }
    if (!failed && s.seeds > 1 && !s.json) printf("mean of %d seeds: %.3f %%\n", s.seeds, 100 * sum / s.seeds);
    if (s.floats) free(e.X.data), free(e.test.data);
    free(e.Y.data), free(chosen);
    idx_free(&train_data), idx_free(&test_data);
    mercer_context_free(context);
    return failed;
}

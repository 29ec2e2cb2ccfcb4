/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command bench: measures the speed of this machine, or with "gpu" the speed of one GPU. The command times products
 * K(X, Z) W, with X (m, d), Z (p, d) and W (p, c). In the same run, it times X Z' by BLAS, or cuBLAS on a GPU. It also
 * times copies between host and device, and the phases of a training run on synthetic digits. With --phases, the output
 * is instead a timeline of a training run for each kind of solver, from creating the context to writing the file. A
 * product counts as 2 m p (d + c) operations; on a GPU as 2 m p d, the same as X Z'.
 */
#include "commands/commands.h"
#include "data.h"
#include "terminal/timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct bench_shape {
    const char *arithmetic, *kernel;
    mercer_dtype points;
    int64_t m, p, d, c;
} bench_shape;

static const bench_shape on_host[] = {
    {NULL, "laplace:bandwidth=10", MERCER_F32, 4096, 4096, 784, 10},
    {NULL, "laplace:bandwidth=2550", MERCER_U8, 4096, 4096, 784, 10},
    {NULL, "gaussian:bandwidth=5", MERCER_F32, 8192, 8192, 32, 1},
    {NULL, "gaussian:bandwidth=5", MERCER_F32, 4096, 4096, 128, 100},
    {NULL, "laplace:bandwidth=10", MERCER_F64, 2048, 4096, 784, 10},
    {0},
};
static const bench_shape on_gpu[] = {
    {"fast", "laplace:bandwidth=10", MERCER_F16, 8192, 131072, 1280, 10},
    {"fast", "laplace:bandwidth=10", MERCER_F16, 8192, 131072, 784, 10},
    {"fast", "gaussian:bandwidth=10", MERCER_F16, 8192, 131072, 1280, 10},
    {"fast", "laplace:bandwidth=10", MERCER_F16, 8192, 131072, 1280, 100},
    {"fast", "laplace:bandwidth=10", MERCER_F32, 8192, 131072, 1280, 10},
    {"fast", "laplace:bandwidth=2550", MERCER_U8, 8192, 131072, 784, 10},
    {"fast", "laplace:bandwidth=2550", MERCER_U8, 8192, 131072, 1280, 10},
    {"accurate", "laplace:bandwidth=10", MERCER_F32, 8192, 32768, 784, 10},
    {"accurate", "laplace:bandwidth=2550", MERCER_U8, 8192, 32768, 784, 10},
    {"accurate", "laplace:bandwidth=10", MERCER_F64, 4096, 16384, 784, 10},
    {0},
};

typedef struct bench {
    const cli_values *v;
    int gpu;
    json_t *results;
    cli_table *products, *phases;
} bench;

static int open_context(const bench *self, const char *arithmetic, mercer_context **out)
{
    if (!self->gpu) return cli_context(self->v, out);
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    const char *device = cli_text(self->v, "device");
    int named = device != NULL && strncmp(device, "cuda", 4) == 0; /* a specific GPU */
    *out = NULL;
    options.threads = (int)cli_integer(self->v, "threads");
    options.backend = named ? device : "cuda";
    options.arithmetic = arithmetic;
    return cli_check(NULL, mercer_context_create(out, &options));
}

/* ---- Products ---------------------------------------------------------------------------------------------------- */

static void report_product(const bench *self, const bench_shape *s, const mercer_speed *speed)
{
    double pairs = 2 * (double)s->m * (double)s->p, d = (double)s->d;
    double rate = pairs * (self->gpu ? d : d + (double)s->c) / speed->product, share = speed->plain / speed->product;
    double plain = speed->plain > 0 ? pairs * d / speed->plain : 0, unit = self->gpu ? 1e-12 : 1e-9;
    json_t *object = json_pack("{ss ss ss sI sI sI sI so so so so so}", "what", "product", "kernel", s->kernel, "dtype",
                               cli_dtype_name(s->points), "m", (json_int_t)s->m, "p", (json_int_t)s->p, "d",
                               (json_int_t)s->d, "c", (json_int_t)s->c, "seconds", cli_json_real(speed->product),
                               "seconds_median", cli_json_real(speed->median), self->gpu ? "tflops" : "gflops",
                               cli_json_real(unit * rate), self->gpu ? "gemm_tflops" : "gemm_gflops",
                               cli_json_real(unit * plain), "share", cli_json_real(share));
    if (self->gpu) {
        json_object_set_new(object, "arithmetic", json_string(s->arithmetic));
        json_object_set_new(object, "to_device_gbs", cli_json_real(1e-9 * speed->to_device));
        json_object_set_new(object, "from_device_gbs", cli_json_real(1e-9 * speed->from_device));
    }
    json_array_append_new(self->results, object);
    cli_table *table = self->products;
    cli_table_cell(table, "%s%s%s %s", self->gpu ? s->arithmetic : "", self->gpu ? ", " : "", s->kernel,
                   cli_dtype_name(s->points));
    cli_table_cell(table, "%" PRId64 " x %" PRId64 ", d %" PRId64 ", c %" PRId64, s->m, s->p, s->d, s->c);
    cli_table_cell(table, "%.2f ms", 1e3 * speed->product);
    cli_table_cell(table, "%.2f ms", 1e3 * speed->median);
    cli_table_cell(table, "%.1f", unit * rate);
    cli_table_cell(table, plain > 0 ? "%.1f" : "-", unit * plain);
    cli_table_cell(table, plain > 0 ? "%.0f %%" : "-", 100 * share);
    if (self->gpu) cli_table_cell(table, "%.1f, %.1f", 1e-9 * speed->to_device, 1e-9 * speed->from_device);
}

static int measure_shape(const bench *self, mercer_context *context, bench_shape s)
{
    mercer_kernel kernel;
    if (cli_flag(self->v, "quick")) *(self->gpu ? &s.p : &s.m) /= 16;
    mercer_speed speed = {.struct_size = sizeof speed};
    mercer_shape shape = {.struct_size = sizeof shape,
                          .samples = s.m,
                          .centers = s.p,
                          .features = s.d,
                          .outputs = s.c,
                          .points = s.points};
    CLI_TRY(cli_check(context, mercer_kernel_parse(&kernel, context, s.kernel)));
    CLI_TRY(cli_check(context, mercer_measure_speed(context, &speed, &kernel, &shape)));
    report_product(self, &s, &speed);
    return CLI_OK;
}

static int measure_products(const bench *self)
{
    const bench_shape *shapes = self->gpu ? on_gpu : on_host;
    mercer_context *context = NULL;
    cli_bar bar;
    cli_bar_init(&bar, self->v);
    int code = CLI_OK;
    for (int i = 0; shapes[i].kernel != NULL && code == CLI_OK; i++) {
        if (i == 0 || (self->gpu && strcmp(shapes[i].arithmetic, shapes[i - 1].arithmetic) != 0)) {
            mercer_context_free(context);
            code = open_context(self, shapes[i].arithmetic, &context);
        }
        cli_bar_draw(&bar, (double)i / (self->gpu ? 11 : 6), "products", 1);
        if (code == CLI_OK) code = measure_shape(self, context, shapes[i]);
    }
    cli_bar_clear(&bar);
    mercer_context_free(context);
    return code;
}

/* ---- Training ---------------------------------------------------------------------------------------------------- */

CLI_RELEASE(drop_trainer, mercer_trainer, mercer_trainer_free)

static int record_phase(void *user, const mercer_progress *progress)
{
    cli_timeline_progress(user, progress);
    return 0;
}

/* Adds two spans to the timeline: classifying the centers, and writing the model to a temporary file. */
static int time_model_output(mercer_context *context, mercer_model *model, const mercer_matrix *Z, cli_timeline *line)
{
    const char *folder = getenv("TMPDIR");
    CLI_OWNED(cli_drop) int32_t *labels = cli_allocate(Z->rows, sizeof *labels);
    CLI_OWNED(cli_drop)
    char *path =
        cli_format("%s/mercer-bench-%ld.mercer", folder != NULL && *folder != '\0' ? folder : "/tmp", (long)getpid());
    mercer_save_options options = {.struct_size = sizeof options};
    cli_timeline_next(line, "evaluation");
    CLI_TRY(cli_check(context, mercer_model_classify(model, labels, Z)));
    cli_timeline_next(line, "writing the model");
    mercer_status status = mercer_model_save(model, path, &options);
    unlink(path);
    return cli_check(context, status);
}

/* Trains a model with random centers on synthetic digits. All training options have their defaults, except the solver
   if `solver` is not NULL. */
static int train_digits(const cli_values *v, mercer_context *context, const char *solver, int64_t rows, int64_t p,
                        mercer_report *report, mercer_plan *plan, cli_timeline *line)
{
    CLI_OWNED(cli_drop_dataset) mercer_dataset *dataset = NULL;
    CLI_OWNED(cli_drop_model) mercer_model *model = NULL;
    CLI_OWNED(mercer_source_free) mercer_source source = {0};
    CLI_OWNED(drop_trainer) mercer_trainer *trainer = NULL;
    mercer_kernel kernel;
    mercer_center_options centers = MERCER_INIT(mercer_center_options);
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    mercer_stream_options stream = MERCER_INIT(mercer_stream_options);
    uint64_t seed = (uint64_t)cli_integer(v, "seed");
    CLI_OWNED(cli_drop) void *memory = cli_allocate(p * 784, 1);
    mercer_matrix Z = mercer_matrix_view(memory, p, 784, MERCER_U8);
    centers.seed = stream.seed = options.seed = seed;
    options.classification = MERCER_ON, options.solver = solver;
    if (cli_flag(v, "phases"))
        options.progress = record_phase, options.progress_user = line, options.progress_seconds = 1e9;
    cli_timeline_next(line, "generating samples");
    CLI_TRY(cli_check(context, mercer_dataset_synthesize(&dataset, context, "digits", 0, rows, seed)));
    cli_timeline_next(line, "choosing centers");
    CLI_TRY(cli_check(context, mercer_choose_centers_from(dataset, &Z, NULL, &centers, NULL)));
    CLI_TRY(cli_check(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=2550")));
    CLI_TRY(cli_check(context, mercer_model_create(&model, context, NULL, &kernel, &Z, 10, (mercer_dtype)0)));
    CLI_TRY(cli_check(context, mercer_source_from_dataset(&source, dataset, &stream)));
    CLI_TRY(cli_check(context, mercer_trainer_create(&trainer, model, NULL, &options)));
    cli_timeline_next(line, "set-up: other");
    CLI_TRY(cli_check(context, mercer_trainer_fit(trainer, &source, report)));
    *plan = *report->plan, report->plan = plan; /* a copy, because the trainer owns the original and frees it */
    cli_timeline_report(line, report);
    if (cli_flag(v, "phases")) CLI_TRY(time_model_output(context, model, &Z, line));
    cli_timeline_end(line);
    return CLI_OK;
}

static void report_training(const bench *self, const mercer_report *r, int64_t rows, int64_t p)
{
    double known =
        r->setup_seconds + r->forward_seconds + r->gradient_seconds + r->projection_seconds + r->validation_seconds;
    const struct {
        const char *name;
        double seconds;
    } phases[] = {{"set-up", r->setup_seconds},          {"forward", r->forward_seconds},
                  {"gradient", r->gradient_seconds},     {"projection", r->projection_seconds},
                  {"validation", r->validation_seconds}, {"samples, other", r->seconds - known}};
    double rate = r->flops / r->seconds;
    json_t *object =
        json_pack("{ss ss ss sI sI sI so so so so}", "what", "training", "solver", r->plan->solver, "projector",
                  r->plan->projector, "rows", (json_int_t)rows, "p", (json_int_t)p, "epochs", (json_int_t)r->epochs,
                  "seconds", cli_json_real(r->seconds), "gflops", cli_json_real(1e-9 * rate), "tflops",
                  cli_json_real(1e-12 * rate), "train_loss", cli_json_real(r->train_loss));
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        json_object_set_new(object, phases[i].name, cli_json_real(phases[i].seconds));
        cli_table_cell(self->phases, "%s", phases[i].name);
        cli_table_cell(self->phases, "%.3f s", phases[i].seconds);
        cli_table_cell(self->phases, "%.0f %%", r->seconds > 0 ? 100 * phases[i].seconds / r->seconds : 0);
    }
    json_array_append_new(self->results, object);
    cli_table_cell(self->phases, "training digits, %s", r->plan->solver);
    cli_table_cell(self->phases, "%.3f s", r->seconds);
    cli_table_cell(self->phases, "%" PRId64 " rows, p %" PRId64 ", %" PRId64 " epochs, %.1f GFLOP/s", rows, p,
                   r->epochs, 1e-9 * rate);
}

static int measure_training(const bench *self, const char *solver, cli_timeline *line)
{
    int64_t rows = self->gpu ? 100000 : 20000, p = self->gpu ? 20000 : 2000;
    /* With --phases, --quick reduces the size more, because four models are trained. */
    int less = self->gpu ? 10 : cli_flag(self->v, "phases") ? 20 : 5;
    if (cli_flag(self->v, "quick")) rows /= less, p /= less > 5 ? less : 4;
    CLI_OWNED(cli_drop_context) mercer_context *context = NULL;
    cli_timeline_next(line, "context");
    CLI_TRY(open_context(self, "fast", &context));
    cli_timeline_end(line);
    cli_timeline_context(line, context);
    CLI_OWNED(cli_drop) mercer_report *report = cli_allocate(1, sizeof *report);
    CLI_OWNED(cli_drop) mercer_plan *plan = cli_allocate(1, sizeof *plan);
    report->struct_size = sizeof *report;
    CLI_TRY(train_digits(self->v, context, solver, rows, p, report, plan, line));
    report_training(self, report, rows, p);
    return CLI_OK;
}

/* Measures several training runs in sequence. The first run includes initializing the device and loading its
   libraries. */
static int measure_phases(bench *self)
{
    static const char *const solvers[] = {"ep4", "ep4", "cg", "direct"};
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        cli_timeline line = {0};
        CLI_TRY(measure_training(self, solvers[i], &line));
        json_t *last = json_array_get(self->results, json_array_size(self->results) - 1);
        json_object_set_new(last, "timeline", cli_timeline_json(&line));
        cli_table *table = cli_table_new(3, "lrr");
        cli_table_cell(table, "%s, %s", solvers[i], i == 0 ? "first training of the process" : "later training");
        cli_table_cell(table, " "), cli_table_cell(table, " ");
        cli_table_line(table);
        cli_timeline_table(&line, table);
        if (!cli_flag(self->v, "json")) {
            cli_table_print(table, stdout);
            printf("\n");
        } else {
            cli_table_free(table);
        }
    }
    return CLI_OK;
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static int run_bench(bench *self)
{
    mercer_context *context = NULL;
    mercer_context_info info = {.struct_size = sizeof info};
    char isa[256] = "";
    int phases = cli_flag(self->v, "phases");
    /* Measure the phases before any other context exists, to include the first context creation of the process. */
    if (phases) CLI_TRY(measure_phases(self));
    CLI_TRY(open_context(self, "fast", &context));
    if (mercer_context_query(context, &info) == MERCER_OK) snprintf(isa, sizeof isa, "%s", info.isa);
    mercer_context_free(context);
    cli_timeline line = {0};
    if (!phases) CLI_TRY(measure_products(self));
    /* On a GPU, use a solver that has every phase. */
    if (!phases) CLI_TRY(measure_training(self, self->gpu ? "ep4" : NULL, &line));
    if (cli_flag(self->v, "json"))
        return cli_print_answer(json_pack("{ss ss ss si so}", "version", mercer_version(), "device",
                                          self->gpu ? isa : info.backend, "isa", isa, "threads", info.threads,
                                          "results", json_incref(self->results)));
    printf("mercer %s, %s, %s, %d threads\n", mercer_version(), info.backend, isa, info.threads);
    if (phases) return CLI_OK;
    printf("\n");
    cli_table_print(self->products, stdout), self->products = NULL;
    printf("\n");
    cli_table_print(self->phases, stdout), self->phases = NULL;
    return CLI_OK;
}

int cli_bench(const cli_values *v)
{
    const char *where = cli_positional(v, 0);
    if (where != NULL && strcmp(where, "gpu") != 0)
        return cli_error(CLI_USAGE, "bench: unexpected argument '%s'; use gpu or no argument", where);
    bench self = {.v = v, .gpu = where != NULL, .results = json_array()};
    const char *const heads[] = {"product",   "size",  "best",        "median", self.gpu ? "TFLOP/s" : "GFLOP/s",
                                 "X Z' only", "share", "GB/s in, out"};
    int columns = self.gpu ? 8 : 7;
    self.products = cli_table_new(columns, "llrrrrrr");
    self.phases = cli_table_new(3, "lrr");
    for (int i = 0; i < columns; i++) cli_table_cell(self.products, "%s", heads[i]);
    cli_table_line(self.products);
    int code = run_bench(&self);
    cli_table_free(self.products);
    cli_table_free(self.phases);
    json_decref(self.results);
    return code;
}

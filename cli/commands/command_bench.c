/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command bench: how fast this machine is. Fused products K(X, Z) W, with X (m, d), Z (p, d), W (p, c), counted as
 * 2 m p (d + c) operations, and a training on computed digits. Best and median of several runs after a warm-up.
 */
#include "commands/commands.h"
#include "data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5, QUICK_RUNS = 3, QUICK_PART = 8 };

typedef struct shape {
    const char *kernel;
    int64_t m, p, d, c;
    mercer_dtype dtype;
} shape;

typedef struct timing {
    double best, median; /* seconds */
} timing;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Numbers that look random enough to compute with; any values cost the same. */
static void fill(void *data, int64_t count, mercer_dtype dtype, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        if (dtype == MERCER_U8)
            ((uint8_t *)data)[i] = (uint8_t)(state >> 24);
        else if (dtype == MERCER_F32)
            ((float *)data)[i] = (float)(state >> 8) / 16777216.0F;
        else
            ((double *)data)[i] = (double)(state >> 8) / 16777216.0;
    }
}

static mercer_matrix make_matrix(int64_t rows, int64_t cols, mercer_dtype dtype, uint32_t seed)
{
    void *data = cli_allocate(rows * cols, (size_t)cli_dtype_size(dtype));
    fill(data, rows * cols, dtype, seed);
    return mercer_matrix_view(data, rows, cols, dtype);
}

static mercer_status time_product(mercer_context *context, const shape *s, int runs, timing *out)
{
    mercer_dtype real = s->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    mercer_kernel kernel;
    double seconds[RUNS];
    mercer_status status = mercer_kernel_parse(&kernel, context, s->kernel);
    if (status != MERCER_OK) return status;
    mercer_matrix X = make_matrix(s->m, s->d, s->dtype, 1), Z = make_matrix(s->p, s->d, s->dtype, 2);
    mercer_matrix W = make_matrix(s->p, s->c, real, 3), Y = make_matrix(s->m, s->c, real, 4);
    for (int run = -1; run < runs && status == MERCER_OK; run++) {
        double start = cli_now();
        status = mercer_kernel_matmul(context, &Y, &kernel, &X, &Z, &W);
        if (run >= 0) seconds[run] = cli_now() - start;
    }
    if (status == MERCER_OK) {
        qsort(seconds, (size_t)runs, sizeof seconds[0], by_value);
        *out = (timing){seconds[0], seconds[runs / 2]};
    }
    free(X.data);
    free(Z.data);
    free(W.data);
    free(Y.data);
    return status;
}

static int bench_products(const cli_values *v, mercer_context *context, json_t *results, cli_table *table)
{
    static const shape shapes[] = {
        {"laplace:bandwidth=10", 4096, 4096, 784, 10, MERCER_F32},
        {"laplace:bandwidth=2550", 4096, 4096, 784, 10, MERCER_U8},
        {"gaussian:bandwidth=5", 8192, 8192, 32, 1, MERCER_F32},
        {"gaussian:bandwidth=5", 4096, 4096, 128, 100, MERCER_F32},
        {"laplace:bandwidth=10", 2048, 4096, 784, 10, MERCER_F64},
    };
    int64_t part = cli_flag(v, "quick") ? QUICK_PART : 1;
    cli_bar bar;
    cli_bar_init(&bar, v);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        shape s = shapes[i];
        timing t = {0};
        s.m /= part;
        cli_bar_draw(&bar, (double)i / 6, "products", 1);
        mercer_status status = time_product(context, &s, part > 1 ? QUICK_RUNS : RUNS, &t);
        if (status != MERCER_OK) {
            cli_bar_clear(&bar);
            return cli_fail(context, status);
        }
        double flops = 2.0 * (double)s.m * (double)s.p * (double)(s.d + s.c);
        json_array_append_new(results, json_pack("{ss ss ss sI sI sI sI so so so}", "what", "product", "kernel",
                                                 s.kernel, "dtype", cli_dtype_name(s.dtype), "m", (json_int_t)s.m, "p",
                                                 (json_int_t)s.p, "d", (json_int_t)s.d, "c", (json_int_t)s.c, "seconds",
                                                 cli_json_real(t.best), "seconds_median", cli_json_real(t.median),
                                                 "gflops", cli_json_real(flops / t.best * 1e-9)));
        cli_table_cell(table, "%s %s", s.kernel, cli_dtype_name(s.dtype));
        cli_table_cell(table, "%" PRId64 " x %" PRId64 ", d %" PRId64 ", c %" PRId64, s.m, s.p, s.d, s.c);
        cli_table_cell(table, "%.4f s", t.best);
        cli_table_cell(table, "%.4f s", t.median);
        cli_table_cell(table, "%.1f GFLOP/s", flops / t.best * 1e-9);
    }
    cli_bar_clear(&bar);
    return CLI_OK;
}

/* Random centers from computed digits, trained with everything at its default but the solver, if one is named. */
mercer_status cli_train_digits(const cli_values *v, mercer_context *context, const char *solver, int64_t rows,
                               int64_t p, mercer_report *report, mercer_plan *plan)
{
    mercer_dataset *dataset = NULL;
    mercer_model *model = NULL;
    mercer_trainer *trainer = NULL;
    mercer_source source = {0};
    mercer_kernel kernel;
    mercer_center_options centers = MERCER_INIT(mercer_center_options);
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    mercer_stream_options stream = MERCER_INIT(mercer_stream_options);
    uint64_t seed = (uint64_t)cli_integer(v, "seed");
    void *memory = cli_allocate(p * 784, 1);
    mercer_matrix Z = mercer_matrix_view(memory, p, 784, MERCER_U8);
    centers.seed = stream.seed = options.seed = seed;
    options.classification = MERCER_ON, options.solver = solver;
    mercer_status status = mercer_dataset_synthesize(&dataset, context, "digits", 0, rows, seed);
    if (status == MERCER_OK) status = mercer_choose_centers_from(dataset, &Z, NULL, &centers, NULL);
    if (status == MERCER_OK) status = mercer_kernel_parse(&kernel, context, "laplace:bandwidth=2550");
    if (status == MERCER_OK) status = mercer_model_create(&model, context, &kernel, &Z, 10, (mercer_dtype)0);
    if (status == MERCER_OK) status = mercer_source_from_dataset(&source, dataset, &stream);
    if (status == MERCER_OK) status = mercer_trainer_create(&trainer, model, NULL, &options);
    if (status == MERCER_OK) status = mercer_trainer_fit(trainer, &source, report);
    if (status == MERCER_OK) *plan = *report->plan, report->plan = plan; /* the model goes */
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    mercer_dataset_free(dataset);
    free(memory);
    return status;
}

static int bench_training(const cli_values *v, mercer_context *context, json_t *results, cli_table *table)
{
    int64_t rows = cli_flag(v, "quick") ? 4000 : 20000, p = cli_flag(v, "quick") ? 500 : 2000;
    mercer_report *report = cli_allocate(1, sizeof *report);
    mercer_plan *plan = cli_allocate(1, sizeof *plan);
    report->struct_size = sizeof *report;
    mercer_status status = cli_train_digits(v, context, NULL, rows, p, report, plan);
    int code = status == MERCER_OK ? CLI_OK : cli_fail(context, status);
    if (code == CLI_OK) {
        double rate = report->flops / report->seconds * 1e-9;
        json_array_append_new(results,
                              json_pack("{ss ss sI sI sI so so so}", "what", "training", "solver", report->plan->solver,
                                        "rows", (json_int_t)rows, "p", (json_int_t)p, "epochs",
                                        (json_int_t)report->epochs, "seconds", cli_json_real(report->seconds), "gflops",
                                        cli_json_real(rate), "train_loss", cli_json_real(report->train_loss)));
        cli_table_cell(table, "training digits, %s", report->plan->solver);
        cli_table_cell(table, "%" PRId64 " rows, p %" PRId64, rows, p);
        cli_table_cell(table, "%.4f s", report->seconds);
        cli_table_cell(table, "%s", "");
        cli_table_cell(table, "%.1f GFLOP/s", rate);
    }
    free(report), free(plan);
    return code;
}

int cli_bench(const cli_values *v)
{
    const char *where = cli_positional(v, 0);
    if (where != NULL && strcmp(where, "gpu") != 0)
        return cli_error(CLI_USAGE, "bench: '%s' is not understood; gpu is, or nothing", where);
    if (where != NULL) return cli_bench_gpu(v);
    mercer_context *context = NULL;
    mercer_context_info info = {.struct_size = sizeof info};
    int code = cli_context(v, &context);
    if (code != CLI_OK) return code;
    mercer_context_query(context, &info);
    json_t *results = json_array();
    cli_table *table = cli_table_new(5, "llrrr");
    cli_table_cell(table, "what");
    cli_table_cell(table, "size");
    cli_table_cell(table, "best");
    cli_table_cell(table, "median");
    cli_table_cell(table, "speed");
    cli_table_line(table);
    code = bench_products(v, context, results, table);
    if (code == CLI_OK) code = bench_training(v, context, results, table);
    if (code == CLI_OK && cli_flag(v, "json")) {
        code = cli_print_json(json_pack("{ss ss ss si so}", "version", mercer_version(), "device", info.backend, "isa",
                                        info.isa, "threads", info.threads, "results", json_incref(results)));
    } else if (code == CLI_OK) {
        printf("mercer %s, %s, %s, %d threads\n\n", mercer_version(), info.backend, info.isa, info.threads);
        cli_table_print(table, stdout, "");
    }
    cli_table_free(table);
    json_decref(results);
    mercer_context_free(context);
    return code;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command bench gpu: products K(X, Z) W on a GPU, X (m, d), Z (p, d), W (p, c), by arithmetic and type of points,
 * beside X Z' alone by cuBLAS in the same run (2 m p d operations each); copies between host and device; and the phases
 * of a training on computed digits.
 */
#include "commands/commands.h"
#include "data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct gpu_shape {
    const char *arithmetic, *kernel;
    mercer_dtype points;
    int64_t m, p, d, c;
} gpu_shape;

static const gpu_shape shapes[] = {
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
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static int open_gpu(const cli_values *v, const char *arithmetic, mercer_context **out)
{
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    const char *device = cli_text(v, "device");
    int gpu = device != NULL && strncmp(device, "cuda", 4) == 0; /* one of several */
    *out = NULL;
    options.threads = (int)cli_integer(v, "threads");
    options.backend = gpu ? device : "cuda";
    options.arithmetic = arithmetic;
    mercer_status status = mercer_context_create(out, &options);
    return status == MERCER_OK ? CLI_OK : cli_fail(NULL, status);
}

static void show_product(const gpu_shape *s, const mercer_speed *speed, json_t *results, cli_table *table)
{
    double operations = 2e-12 * (double)s->m * (double)s->p * (double)s->d;
    double rate = operations / speed->product, ceiling = speed->plain > 0 ? operations / speed->plain : 0;
    json_array_append_new(
        results,
        json_pack("{ss ss ss ss sI sI sI sI so so so so so so}", "what", "product", "arithmetic", s->arithmetic,
                  "kernel", s->kernel, "dtype", cli_dtype_name(s->points), "m", (json_int_t)s->m, "p", (json_int_t)s->p,
                  "d", (json_int_t)s->d, "c", (json_int_t)s->c, "seconds", cli_json_real(speed->product), "tflops",
                  cli_json_real(rate), "gemm_tflops", cli_json_real(ceiling), "share",
                  cli_json_real(ceiling > 0 ? rate / ceiling : 0), "to_device_gbs",
                  cli_json_real(1e-9 * speed->to_device), "from_device_gbs", cli_json_real(1e-9 * speed->from_device)));
    cli_table_cell(table, "%s, %s %s", s->arithmetic, s->kernel, cli_dtype_name(s->points));
    cli_table_cell(table, "%" PRId64 " x %" PRId64 ", d %" PRId64 ", c %" PRId64, s->m, s->p, s->d, s->c);
    cli_table_cell(table, "%.2f ms", 1e3 * speed->product);
    cli_table_cell(table, "%.1f", rate);
    cli_table_cell(table, ceiling > 0 ? "%.1f" : "-", ceiling);
    cli_table_cell(table, ceiling > 0 ? "%.0f %%" : "-", ceiling > 0 ? 100 * rate / ceiling : 0);
    cli_table_cell(table, "%.1f, %.1f", 1e-9 * speed->to_device, 1e-9 * speed->from_device);
}

static int measure_shape(const cli_values *v, mercer_context *context, gpu_shape s, json_t *results, cli_table *table)
{
    mercer_kernel kernel;
    if (cli_flag(v, "quick")) s.p /= 16;
    mercer_speed speed = {.struct_size = sizeof speed};
    mercer_shape shape = {.struct_size = sizeof shape,
                          .samples = s.m,
                          .centers = s.p,
                          .features = s.d,
                          .outputs = s.c,
                          .points = s.points};
    mercer_status status = mercer_kernel_parse(&kernel, context, s.kernel);
    if (status == MERCER_OK) status = mercer_measure_speed(context, &speed, &kernel, &shape);
    if (status != MERCER_OK) return cli_fail(context, status);
    show_product(&s, &speed, results, table);
    return CLI_OK;
}

static int measure_products(const cli_values *v, json_t *results, cli_table *table)
{
    cli_bar bar;
    cli_bar_init(&bar, v);
    int code = CLI_OK;
    mercer_context *context = NULL;
    for (int i = 0; i < SHAPES && code == CLI_OK; i++) {
        if (i == 0 || strcmp(shapes[i].arithmetic, shapes[i - 1].arithmetic) != 0) {
            mercer_context_free(context);
            code = open_gpu(v, shapes[i].arithmetic, &context);
        }
        cli_bar_draw(&bar, (double)i / (SHAPES + 1), "products", 1);
        if (code == CLI_OK) code = measure_shape(v, context, shapes[i], results, table);
    }
    cli_bar_clear(&bar);
    mercer_context_free(context);
    return code;
}

static void show_phase(json_t *object, cli_table *table, const char *name, double seconds, double all)
{
    json_object_set_new(object, name, cli_json_real(seconds));
    cli_table_cell(table, "%s", name);
    cli_table_cell(table, "%.3f s", seconds);
    cli_table_cell(table, "%.0f %%", all > 0 ? 100 * seconds / all : 0);
}

static int measure_training(const cli_values *v, json_t *results, cli_table *table)
{
    int64_t rows = cli_flag(v, "quick") ? 10000 : 100000, p = cli_flag(v, "quick") ? 2000 : 20000;
    mercer_context *context = NULL;
    int code = open_gpu(v, "fast", &context);
    if (code != CLI_OK) return code;
    mercer_report *report = cli_allocate(1, sizeof *report);
    mercer_plan *plan = cli_allocate(1, sizeof *plan);
    report->struct_size = sizeof *report;
    mercer_status status = cli_train_digits(v, context, "ep4", rows, p, report, plan); /* the one with phases */
    if (status == MERCER_OK) {
        const mercer_report *r = report;
        json_t *object =
            json_pack("{ss ss ss sI sI sI so so}", "what", "training", "solver", r->plan->solver, "projector",
                      r->plan->projector, "rows", (json_int_t)rows, "p", (json_int_t)p, "epochs", (json_int_t)r->epochs,
                      "seconds", cli_json_real(r->seconds), "tflops", cli_json_real(1e-12 * r->flops / r->seconds));
        double known =
            r->setup_seconds + r->forward_seconds + r->gradient_seconds + r->projection_seconds + r->validation_seconds;
        show_phase(object, table, "set-up", r->setup_seconds, r->seconds);
        show_phase(object, table, "forward", r->forward_seconds, r->seconds);
        show_phase(object, table, "gradient", r->gradient_seconds, r->seconds);
        show_phase(object, table, "projection", r->projection_seconds, r->seconds);
        show_phase(object, table, "validation", r->validation_seconds, r->seconds);
        show_phase(object, table, "samples and the rest", r->seconds - known, r->seconds);
        json_array_append_new(results, object);
        cli_table_cell(table, "training digits, %s", r->plan->solver);
        cli_table_cell(table, "%.3f s", r->seconds);
        cli_table_cell(table, "%" PRId64 " rows, p %" PRId64 ", %" PRId64 " epochs", rows, p, r->epochs);
    } else {
        code = cli_fail(context, status);
    }
    free(report), free(plan);
    mercer_context_free(context);
    return code;
}

int cli_bench_gpu(const cli_values *v)
{
    mercer_context *context = NULL;
    mercer_context_info info = {.struct_size = sizeof info};
    char device[256] = "";
    int code = open_gpu(v, "fast", &context);
    if (code != CLI_OK) return code;
    if (mercer_context_query(context, &info) == MERCER_OK) snprintf(device, sizeof device, "%s", info.isa);
    mercer_context_free(context);
    json_t *results = json_array();
    cli_table *products = cli_table_new(7, "llrrrrr"), *phases = cli_table_new(3, "lrr");
    static const char *const heads[] = {"product", "size", "best", "TFLOP/s", "X Z' alone", "share", "GB/s in, out"};
    for (int i = 0; i < 7; i++) cli_table_cell(products, "%s", heads[i]);
    cli_table_line(products);
    code = measure_products(v, results, products);
    if (code == CLI_OK) code = measure_training(v, results, phases);
    if (code == CLI_OK && cli_flag(v, "json")) {
        code = cli_print_json(
            json_pack("{ss ss so}", "version", mercer_version(), "device", device, "results", json_incref(results)));
    } else if (code == CLI_OK) {
        printf("mercer %s, %s\n\n", mercer_version(), device);
        cli_table_print(products, stdout, "");
        printf("\n");
        cli_table_print(phases, stdout, "");
    }
    cli_table_free(products);
    cli_table_free(phases);
    json_decref(results);
    return code;
}

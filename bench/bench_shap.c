/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times Shapley values of all rows, in wall and processor seconds, for kernels that are products over columns and for
 * mixtures of products. For comparison, times the enumeration of all subsets by predictions, for one row and one
 * background row. Before a case is timed, the sum of the values is compared with the prediction.
 */
#include "bench.h"

#include "core/matrix.h"
#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"

#include <math.h>

enum { CENTERS = 10000, COLUMNS = 20, ROWS = 1000, ENUMERATED = 12 };

static const char *const kernels[] = {"laplace-l1:bandwidth=20", "gaussian:bandwidth=5",
                                      "exppower-l1:bandwidth=20,gamma=0.7", "laplace:bandwidth=5"};

static double *normals(uint64_t sequence, int64_t count)
{
    double *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; values && i < count; i++) values[i] = mrc_random_normal((mrc_rng){0, sequence}, (uint64_t)i);
    return values;
}

static void check(mercer_status status, const mercer_context *context)
{
    if (status == MERCER_OK) return;
    fprintf(stderr, "bench_shap: %s\n", mercer_last_error(context));
    exit(1);
}

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static mercer_model *make_model(mercer_context *context, const char *spec, int64_t columns)
{
    mercer_kernel kernel;
    mercer_model *model = NULL;
    mercer_model_info info = MERCER_INIT(mercer_model_info);
    double *z = normals(1, CENTERS * columns), *alpha = normals(2, CENTERS);
    mercer_matrix centers = mercer_matrix_view(z, CENTERS, columns, MERCER_F64);
    check(mercer_kernel_parse(&kernel, context, spec), context);
    check(mercer_model_create(&model, context, NULL, &kernel, &centers, 1, MERCER_F64), context);
    check(mercer_model_query(model, &info), context);
    memcpy(info.weights.data, alpha, CENTERS * sizeof *alpha);
    free(z);
    free(alpha);
    return model;
}

static void report(const bench_options *options, const char *method, const char *kernel, int64_t rows,
                   int64_t background, double seconds, double processor, double error)
{
    if (options->json) bench_begin_json();
    if (options->json)
        printf("\"bench\": \"shap\", \"method\": \"%s\", \"kernel\": \"%s\", \"version\": \"%s\", \"rows\": %d, "
               "\"background\": %d, \"seconds\": %.4g, \"processor_seconds\": %.4g, \"error\": %.3g}\n",
               method, kernel, mercer_version(), (int)rows, (int)background, seconds, processor, error);
    else
        printf("%-12s %-36s %6d %6d %10.3f %10.3f %10.2g\n", method, kernel, (int)rows, (int)background, seconds,
               processor, error);
    fflush(stdout);
}

/* Times the Shapley values of all rows, without the preparation. */
static void time_values(const bench_options *options, mercer_context *context, const char *spec, int64_t rows,
                        int64_t background)
{
    mercer_model *model = make_model(context, spec, COLUMNS);
    mercer_shap *shap = NULL;
    mercer_shap_info info = MERCER_INIT(mercer_shap_info);
    double *x = normals(3, rows * COLUMNS), *b = normals(4, background * COLUMNS), *f = normals(5, rows),
           *v = normals(6, rows * COLUMNS), worst = 0;
    mercer_matrix X = mercer_matrix_view(x, rows, COLUMNS, MERCER_F64), F = mercer_matrix_view(f, rows, 1, MERCER_F64),
                  B = mercer_matrix_view(b, background, COLUMNS, MERCER_F64),
                  V = mercer_matrix_view(v, rows, COLUMNS, MERCER_F64);
    check(mercer_model_shap(&shap, model, &B, NULL), context);
    check(mercer_shap_query(shap, &info), context);
    double start = bench_now(), before = processor_seconds();
    check(mercer_shap_values(shap, &V, &X), context);
    double seconds = bench_now() - start, processor = processor_seconds() - before;
    check(mercer_model_predict(model, &F, &X), context);
    for (int64_t i = 0; i < rows; i++) {
        double sum = info.base[0];
        for (int64_t k = 0; k < COLUMNS; k++) sum += v[i * COLUMNS + k];
        worst = fmax(worst, fabs(sum - f[i]));
    }
    report(options, "shap", spec, rows, background, seconds, processor, worst);
    mercer_shap_free(shap);
    mercer_model_free(model);
    free(x), free(b), free(f), free(v);
}

/* Times the main cost of enumeration: predictions of all mixtures of one row and one background row. */
static void time_enumeration(const bench_options *options, mercer_context *context, const char *spec)
{
    int64_t count = INT64_C(1) << ENUMERATED;
    mercer_model *model = make_model(context, spec, ENUMERATED);
    double *x = normals(3, ENUMERATED), *b = normals(4, ENUMERATED), *f = normals(5, count),
           *mixed = normals(6, count * ENUMERATED);
    for (int64_t set = 0; set < count; set++)
        for (int64_t k = 0; k < ENUMERATED; k++) mixed[set * ENUMERATED + k] = (set >> k & 1) ? x[k] : b[k];
    mercer_matrix X = mercer_matrix_view(mixed, count, ENUMERATED, MERCER_F64),
                  F = mercer_matrix_view(f, count, 1, MERCER_F64);
    double start = bench_now(), before = processor_seconds();
    check(mercer_model_predict(model, &F, &X), context);
    report(options, "enumeration", spec, 1, 1, bench_now() - start, processor_seconds() - before, 0);
    mercer_model_free(model);
    free(x), free(b), free(f), free(mixed);
}

int main(int argc, char **argv)
{
    bench_options options;
    mercer_context_options with = MERCER_INIT(mercer_context_options);
    mercer_context *context = NULL;
    int leave = bench_read_options(argc, argv, &options);
    if (leave >= 0) return leave;
    with.threads = options.threads;
    check(mercer_context_create(&context, &with), NULL);
    int64_t rows = options.quick ? 100 : ROWS;
    if (!options.json)
        printf("%-12s %-36s %6s %6s %10s %10s %10s\n", "method", "kernel", "rows", "backgr", "seconds", "processor",
               "error");
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (options.filter && !strstr(kernels[i], options.filter)) continue;
        time_values(&options, context, kernels[i], rows, 1);
        time_values(&options, context, kernels[i], i < 2 ? rows / 10 : rows / 100, 100);
        time_enumeration(&options, context, kernels[i]);
    }
    mercer_context_free(context);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency of predictions for 1, 8, 16 and 64 rows, compared with a plain copy of the centers in the same run. The copy
 * is the shortest possible time, because a prediction must read all centers once. The arithmetic uses only a small
 * share of the peak rate of products. First checks that the prediction of a row is bitwise identical in small and large
 * batches.
 */
#include "bench.h"
#include "bench_peak.h"

typedef struct bench_case {
    const char *name;
    const char *kernel;
    mercer_dtype dtype;
    int64_t p, d, c;
} bench_case;

static const bench_case cases[] = {
    {"laplace f32 d=784", "laplace:bandwidth=10", MERCER_F32, 16384, 784, 10},
    {"laplace u8 d=784", "laplace:bandwidth=2550", MERCER_U8, 16384, 784, 10},
    {"laplace f64 d=784", "laplace:bandwidth=10", MERCER_F64, 8192, 784, 10},
    {"laplace f32 d=16", "laplace:bandwidth=2", MERCER_F32, 65536, 16, 1},
};
static const int64_t row_counts[] = {1, 8, 16, 64};
enum { MOST_ROWS = 64, ROW_COUNTS = 4 };

typedef struct job {
    mercer_model *model;
    mercer_matrix x, f;
    void *centers, *copy;
    size_t bytes;
    mercer_status status;
} job;

static size_t element_size(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? 8 : dtype == MERCER_F32 ? 4 : 1;
}

static void fill(mercer_matrix *a, uint64_t *state)
{
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        double value = bench_random(state);
        if (a->dtype == MERCER_F64)
            ((double *)a->data)[i] = value;
        else if (a->dtype == MERCER_F32)
            ((float *)a->data)[i] = (float)value;
        else
            ((uint8_t *)a->data)[i] = (uint8_t)(256 * value);
    }
}

static mercer_matrix make_matrix(int64_t rows, int64_t cols, mercer_dtype dtype, uint64_t *state)
{
    mercer_matrix made = mercer_matrix_view(malloc((size_t)(rows * cols) * element_size(dtype)), rows, cols, dtype);
    if (made.data) fill(&made, state);
    return made;
}

static void predict(void *argument)
{
    job *self = argument;
    self->status = mercer_model_predict(self->model, &self->f, &self->x);
}

static void copy(void *argument)
{
    job *self = argument;
    memcpy(self->copy, self->centers, self->bytes);
}

static void report(const bench_options *options, const mercer_context_info *info, const bench_case *test, int64_t rows,
                   bench_times times, bench_times floor, size_t bytes)
{
    double rate = (double)bytes / times.median * 1e-9;
    double flops = 2.0 * (double)(rows * test->p) * (double)(test->d + test->c);
    double share = flops / times.median / bench_peak(test->dtype, info->threads, options->repeats);
    if (options->json) bench_begin_json();
    if (options->json)
        printf("\"bench\": \"predict\", \"case\": \"%s\", \"rows\": %lld, \"p\": %lld, \"d\": %lld, \"c\": %lld, "
               "\"version\": \"%s\", "
               "\"isa\": \"%s\", \"threads\": %d, \"best_s\": %.6g, \"median_s\": %.6g, \"gbytes_s\": %.4g, "
               "\"copy_s\": %.6g, \"of_peak\": %.4g}\n",
               test->name, (long long)rows, (long long)test->p, (long long)test->d, (long long)test->c,
               mercer_version(), info->isa, info->threads, times.best, times.median, rate, floor.median, share);
    else
        printf("%-24s %6lld %6lld %9.3f %9.3f %8.2f %9.3f %7.2f\n", test->name, (long long)rows, (long long)test->p,
               times.best * 1e3, times.median * 1e3, rate, floor.median * 1e3, share);
    fflush(stdout);
}

/* Return whether predictions of single rows are bitwise identical to the predictions of the whole batch; checks every
   7th row. */
static bool same_bits(job *self, const mercer_matrix *x, const mercer_matrix *f)
{
    size_t row_bytes = (size_t)f->cols * element_size(f->dtype);
    self->x = *x, self->f = *f;
    predict(self);
    char alone[1024];
    for (int64_t i = 0; i < x->rows && self->status == MERCER_OK; i += 7) {
        self->x =
            mercer_matrix_view((char *)x->data + (size_t)(i * x->cols) * element_size(x->dtype), 1, x->cols, x->dtype);
        self->f = mercer_matrix_view(alone, 1, f->cols, f->dtype);
        predict(self);
        if (memcmp(alone, (char *)f->data + (size_t)i * row_bytes, row_bytes) != 0) return false;
    }
    return self->status == MERCER_OK;
}

static bool run_case(mercer_context *context, const bench_options *options, bench_case test)
{
    if (options->quick) test.p = 500;
    uint64_t state = 1;
    mercer_dtype real = test.dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    mercer_matrix z = make_matrix(test.p, test.d, test.dtype, &state),
                  x = make_matrix(MOST_ROWS, test.d, test.dtype, &state);
    mercer_matrix f = make_matrix(MOST_ROWS, test.c, real, &state);
    job self = {.centers = z.data, .bytes = (size_t)(test.p * test.d) * element_size(test.dtype)};
    self.copy = calloc(1, self.bytes);
    mercer_kernel kernel;
    mercer_context_info info = {.struct_size = sizeof info};
    bool good = z.data && x.data && f.data && self.copy && mercer_context_query(context, &info) == MERCER_OK &&
                mercer_kernel_parse(&kernel, context, test.kernel) == MERCER_OK &&
                mercer_model_create(&self.model, context, NULL, &kernel, &z, test.c, real) == MERCER_OK;
    if (good) {
        mercer_model_info model = MERCER_INIT(mercer_model_info);
        mercer_model_query(self.model, &model);
        mercer_matrix weights = model.weights;
        fill(&weights, &state);
    }
    if (good && !same_bits(&self, &x, &f)) good = false;
    if (!good) fprintf(stderr, "%s: INVALID (%s)\n", test.name, mercer_last_error(context));
    for (int i = 0; i < ROW_COUNTS && good; i++) {
        self.x = mercer_matrix_view(x.data, row_counts[i], test.d, test.dtype);
        self.f = mercer_matrix_view(f.data, row_counts[i], test.c, real);
        report(options, &info, &test, row_counts[i], bench_time(predict, &self, options->repeats),
               bench_time(copy, &self, options->repeats), self.bytes);
    }
    mercer_model_free(self.model);
    free(z.data), free(x.data), free(f.data), free(self.copy);
    return good;
}

int main(int argc, char **argv)
{
    bench_options options;
    mercer_context *context;
    int leave = bench_open(argc, argv, &options, &context);
    if (leave >= 0) return leave;
    if (!options.json)
        printf("%-24s %6s %6s %9s %9s %8s %9s %7s\n", "predict", "rows", "p", "best ms", "median ms", "GB/s", "copy ms",
               "of peak");
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (options.filter && !strstr(cases[i].name, options.filter)) continue;
        if (!run_case(context, &options, cases[i])) failed++;
    }
    mercer_context_free(context);
    return failed ? 1 : 0;
}

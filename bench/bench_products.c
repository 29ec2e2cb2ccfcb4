/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fused products Y = K(X, Z) W: validated against the scalar reference in double, then timed together with a plain GEMM
 * X Z' by BLAS in the same run. For every kernel, a product counts as 2 m p (d + c) flops and the GEMM as 2 m p d;
 * bytes count X, Z, W and Y once.
 */
#include "bench_peak.h"

#include <cblas.h>
#include <math.h>

typedef struct shape {
    int64_t m, p, d, c;
} shape;

typedef struct bench_case {
    const char *name;
    const char *kernel;
    mercer_dtype dtype;
    shape size;
} bench_case;

/* Features per column in the cases named "table", as in the Adult dataset: 6 numbers with 1 feature each, and 8
   categories with one feature per level; 108 features in total. */
static const int columns[] = {1, 9, 1, 16, 1, 7, 15, 6, 5, 2, 1, 1, 1, 42};

static const bench_case cases[] = {
    {"laplace f32 d=784", "laplace:bandwidth=10", MERCER_F32, {4096, 8192, 784, 10}},
    {"laplace u8 d=784", "laplace:bandwidth=2550", MERCER_U8, {4096, 8192, 784, 10}},
    {"laplace f16 d=784", "laplace:bandwidth=10", MERCER_F16, {4096, 8192, 784, 10}},
    {"laplace f64 d=784", "laplace:bandwidth=10", MERCER_F64, {2048, 4096, 784, 10}},
    {"gaussian f32 d=784", "gaussian:bandwidth=5", MERCER_F32, {4096, 8192, 784, 10}},
    {"matern52 f32 d=784", "matern52:bandwidth=8", MERCER_F32, {4096, 8192, 784, 10}},
    {"ntk f32 d=784", "ntk:depth=2", MERCER_F32, {1024, 4096, 784, 10}},
    {"laplace f32 d=16", "laplace:bandwidth=2", MERCER_F32, {8192, 8192, 16, 1}},
    {"laplace f32 d=32", "laplace:bandwidth=2", MERCER_F32, {8192, 8192, 32, 1}},
    {"laplace f32 d=128", "laplace:bandwidth=4", MERCER_F32, {8192, 8192, 128, 1}},
    {"laplace-l1 f32 d=16", "laplace-l1:bandwidth=5", MERCER_F32, {8192, 8192, 16, 1}},
    {"laplace-l1 f32 d=32", "laplace-l1:bandwidth=10", MERCER_F32, {8192, 8192, 32, 1}},
    {"laplace-l1 f32 d=128", "laplace-l1:bandwidth=40", MERCER_F32, {8192, 8192, 128, 1}},
    {"laplace-l1 u8 d=16", "laplace-l1:bandwidth=1280", MERCER_U8, {8192, 8192, 16, 1}},
    {"laplace-l1 u8 d=32", "laplace-l1:bandwidth=2560", MERCER_U8, {8192, 8192, 32, 1}},
    {"laplace-l1 u8 d=128", "laplace-l1:bandwidth=10240", MERCER_U8, {8192, 8192, 128, 1}},
    {"laplace-l1 f64 d=32", "laplace-l1:bandwidth=10", MERCER_F64, {4096, 8192, 32, 1}},
    {"exppower-l1 f32 d=32", "exppower-l1:bandwidth=10,gamma=0.7", MERCER_F32, {4096, 8192, 32, 1}},
    {"lpq f32 d=32", "lpq:p=1.5,q=1,bandwidth=4", MERCER_F32, {1024, 4096, 32, 1}},
    {"laplace f32 d=128 c=100", "laplace:bandwidth=4", MERCER_F32, {4096, 8192, 128, 100}},
    {"laplace f32 table", "laplace:bandwidth=6", MERCER_F32, {8192, 8192, 108, 2}},
    {"laplace-l1 f32 table", "laplace-l1:bandwidth=30", MERCER_F32, {8192, 8192, 108, 2}},
    {"laplace f32 one row", "laplace:bandwidth=10", MERCER_F32, {1, 16384, 784, 10}},
};

typedef struct job {
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix x, z, w, y;
    float *gemm_x, *gemm_z, *gemm_out; /* operands and result in float, for the plain GEMM */
    int64_t gemm_rows;                 /* number of rows of X in the GEMM, limited because its whole output is stored */
    mercer_status status;
} job;

static size_t element_size(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? 8 : dtype == MERCER_F32 ? 4 : dtype == MERCER_F16 ? 2 : 1;
}

/* Return level / 256 as a half: With level = 2^k (1 + f), the result has exponent k - 8 and fraction f. */
static uint16_t half_of_level(int level)
{
    int k = 0;
    while (level >> (k + 1)) k++;
    return level ? (uint16_t)((k - 8 + 15) << 10 | ((level << (10 - k)) & 0x3ff)) : 0;
}

/* Fill with random multiples of 1/256 in [0, 1), exact in every dtype; bytes store 256 times the value. */
static void fill(mercer_matrix *a, float *copy, uint64_t *state)
{
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        int level = (int)(256 * bench_random(state));
        float value = (float)level / 256;
        switch (a->dtype) {
            case MERCER_F64: ((double *)a->data)[i] = (double)value; break;
            case MERCER_F32: ((float *)a->data)[i] = value; break;
            case MERCER_F16: ((uint16_t *)a->data)[i] = half_of_level(level); break;
            case MERCER_U8: ((uint8_t *)a->data)[i] = (uint8_t)level; break;
        }
        if (copy) copy[i] = a->dtype == MERCER_U8 ? (float)level : value;
    }
}

/* Set the levels of the categories in an f32 matrix to 2 or 0; the columns of numbers stay unchanged. */
static void fill_levels(mercer_matrix *a, float *copy, uint64_t *state)
{
    float *values = a->data;
    for (int64_t i = 0; i < a->rows; i++)
        for (size_t c = 0, k = 0; c < sizeof columns / sizeof *columns; k += (size_t)columns[c++]) {
            float *row = values + (size_t)(i * a->cols) + k;
            double share = bench_random(state);
            if (columns[c] == 1) continue;
            for (int level = 0; level < columns[c]; level++)
                row[level] = level == (int)(share * share * columns[c]) ? 2 : 0;
        }
    memcpy(copy, values, (size_t)(a->rows * a->cols) * sizeof *values);
}

static bool prepare(job *self, const bench_case *test, shape size)
{
    mercer_dtype out = test->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    uint64_t state = 1;
    self->x =
        mercer_matrix_view(malloc((size_t)(size.m * size.d) * element_size(test->dtype)), size.m, size.d, test->dtype);
    self->z =
        mercer_matrix_view(malloc((size_t)(size.p * size.d) * element_size(test->dtype)), size.p, size.d, test->dtype);
    self->w = mercer_matrix_view(malloc((size_t)(size.p * size.c) * element_size(out)), size.p, size.c, out);
    self->y = mercer_matrix_view(malloc((size_t)(size.m * size.c) * element_size(out)), size.m, size.c, out);
    self->gemm_rows = size.m;
    self->gemm_x = malloc((size_t)(size.m * size.d) * sizeof(float));
    self->gemm_z = malloc((size_t)(size.p * size.d) * sizeof(float));
    self->gemm_out = malloc((size_t)(size.m * size.p) * sizeof(float));
    if (!self->x.data || !self->z.data || !self->w.data || !self->y.data || !self->gemm_x || !self->gemm_z ||
        !self->gemm_out)
        return false;
    fill(&self->x, self->gemm_x, &state);
    fill(&self->z, self->gemm_z, &state);
    fill(&self->w, NULL, &state);
    if (strstr(test->name, "table"))
        fill_levels(&self->x, self->gemm_x, &state), fill_levels(&self->z, self->gemm_z, &state);
    return mercer_kernel_parse(&self->kernel, self->context, test->kernel) == MERCER_OK;
}

static void release(job *self)
{
    free(self->x.data), free(self->z.data), free(self->w.data), free(self->y.data);
    free(self->gemm_x), free(self->gemm_z), free(self->gemm_out);
}

static void run_product(void *argument)
{
    job *self = argument;
    self->status = mercer_kernel_matmul(self->context, &self->y, &self->kernel, &self->x, &self->z, &self->w);
}

static void run_gemm(void *argument)
{
    job *self = argument;
    int m = (int)self->gemm_rows, p = (int)self->z.rows, d = (int)self->x.cols;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, p, d, 1, self->gemm_x, d, self->gemm_z, d, 0,
                self->gemm_out, p);
}

static double weight(const job *self, int64_t j, int64_t k)
{
    int64_t at = j * self->w.cols + k;
    return self->w.dtype == MERCER_F64 ? ((double *)self->w.data)[at] : (double)((float *)self->w.data)[at];
}

/* Return the largest error of a few rows relative to sum_j |K w|, to which rounding errors are proportional. Return a
   negative value if the reference fails. */
static double validate(job *self)
{
    int64_t d = self->x.cols, p = self->z.rows, step = self->x.rows > 4 ? self->x.rows / 4 : 1;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_context *reference = NULL;
    double *values = malloc((size_t)p * sizeof *values), worst = 0;
    options.backend = "reference";
    mercer_matrix Z = mercer_matrix_view(self->gemm_z, p, d, MERCER_F32);
    mercer_matrix K = mercer_matrix_view(values, 1, p, MERCER_F64);
    if (!values || mercer_context_create(&reference, &options)) worst = -1;
    for (int64_t i = 0; i < self->x.rows && worst >= 0; i += step) {
        mercer_matrix X = mercer_matrix_view(self->gemm_x + i * d, 1, d, MERCER_F32);
        double sum = 0, size = 0;
        if (mercer_kernel_eval(reference, &K, &self->kernel, &X, &Z)) worst = -1;
        for (int64_t j = 0; j < p && worst >= 0; j++) {
            sum += values[j] * weight(self, j, 0);
            size += fabs(values[j] * weight(self, j, 0));
        }
        int64_t at = i * self->y.cols;
        double got = self->y.dtype == MERCER_F64 ? ((double *)self->y.data)[at] : (double)((float *)self->y.data)[at];
        if (worst >= 0) worst = fmax(worst, fabs(got - sum) / size);
    }
    mercer_context_free(reference);
    free(values);
    return worst;
}

static void report(const bench_options *options, const mercer_context_info *info, const bench_case *test, shape size,
                   bench_times fused, bench_times gemm, double error)
{
    double flops = 2.0 * (double)(size.m * size.p) * (double)(size.d + size.c);
    double gemm_flops = 2.0 * (double)(size.m * size.p) * (double)size.d;
    double point = (double)element_size(test->dtype), real = test->dtype == MERCER_F64 ? 8 : 4;
    double bytes = point * (double)((size.m + size.p) * size.d) + real * (double)((size.m + size.p) * size.c);
    double rate = flops / fused.median, gemm_rate = gemm_flops / gemm.median;
    double share = rate / bench_peak(test->dtype, info->threads, options->repeats);
    if (options->json) bench_begin_json();
    if (options->json)
        printf("\"bench\": \"products\", \"case\": \"%s\", \"kernel\": \"%s\", \"m\": %lld, \"p\": %lld, \"d\": %lld, "
               "\"c\": %lld, "
               "\"version\": \"%s\", \"backend\": \"%s\", \"isa\": \"%s\", \"threads\": %d, \"best_s\": %.6g, "
               "\"median_s\": %.6g, "
               "\"gflops\": %.5g, \"gbytes_s\": %.5g, \"gemm_gflops\": %.5g, \"ratio_to_gemm\": %.4g, \"of_peak\": "
               "%.4g, \"error\": %.3g}\n",
               test->name, test->kernel, (long long)size.m, (long long)size.p, (long long)size.d, (long long)size.c,
               mercer_version(), info->backend, info->isa, info->threads, fused.best, fused.median, rate * 1e-9,
               bytes / fused.median * 1e-9, gemm_rate * 1e-9, rate / gemm_rate, share, error);
    else
        printf("%-24s %6lld %6lld %9.2f %9.2f %9.1f %7.2f %9.1f %7.2f %7.2f %9.1e\n", test->name, (long long)size.m,
               (long long)size.p, fused.best * 1e3, fused.median * 1e3, rate * 1e-9, bytes / fused.median * 1e-9,
               gemm_rate * 1e-9, rate / gemm_rate, share, error);
    fflush(stdout);
}

/* Validate and time one case; return whether it passed validation. */
static bool run_case(mercer_context *context, const bench_options *options, const bench_case *test)
{
    shape size = test->size;
    if (options->quick) size.m = size.m > 64 ? 64 : size.m, size.p = 512;
    job self = {.context = context};
    mercer_context_info info = {.struct_size = sizeof info};
    bool good = false;
    if (mercer_context_query(context, &info) != MERCER_OK || !prepare(&self, test, size)) {
        fprintf(stderr, "%s: not enough memory\n", test->name);
    } else {
        run_product(&self);
        double error = self.status == MERCER_OK ? validate(&self) : -1;
        /* Rounding errors of float distances change kernel values by much less than this limit; a wrong result exceeds
           the limit. */
        double limit = test->dtype == MERCER_F64 ? 1e-12 : 1e-4;
        good = error >= 0 && error <= limit;
        if (!good)
            fprintf(stderr, "%s: INVALID, error %g, limit %g (%s)\n", test->name, error, limit,
                    mercer_last_error(context));
        else
            report(options, &info, test, size, bench_time(run_product, &self, options->repeats),
                   bench_time(run_gemm, &self, options->repeats), error);
    }
    release(&self);
    return good;
}

int main(int argc, char **argv)
{
    bench_options options;
    mercer_context *context;
    int leave = bench_open(argc, argv, &options, &context);
    if (leave >= 0) return leave;
    if (!options.json)
        printf("%-24s %6s %6s %9s %9s %9s %7s %9s %7s %7s %9s\n", "Y = K(X, Z) W", "m", "p", "best ms", "median ms",
               "GFLOP/s", "GB/s", "gemm GF/s", "ratio", "of peak", "error");
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (options.filter && !strstr(cases[i].name, options.filter)) continue;
        if (!run_case(context, &options, &cases[i])) failed++;
    }
    mercer_context_free(context);
    return failed ? 1 : 0;
}

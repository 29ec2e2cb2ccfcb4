/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times Y = K(X, Z) W for several d and element types. Three methods alternate in one run, so that other load on the
 * machine affects all of them equally:
 *
 *   fused      mercer_kernel_matmul
 *   gemm       only X Z', by the BLAS that the library uses, in the same arithmetic (float for bytes)
 *   composed   X Z' by BLAS; squared distances and kernel values in separate passes over the stored matrix, vectorized
 *              and on all threads; K W by BLAS: the best that a program without fusion can do
 *
 * Times are the best and the median of the repeats; ratios are medians of the ratios of the repeats. A product counts
 * as 2 m p (d + c) flops, the GEMM as 2 m p d. The fused result is compared with the composed result before any timing.
 */
#include "bench.h"
#include "bench_peak.h"

#include "core/threads/parallel.h"

#include <cblas.h>
#include <math.h>

extern void openblas_set_num_threads(int count) __attribute__((weak));

enum { M = 4096, P = 8192, C = 10, ROWS_EACH = 64 };

typedef struct bench_case {
    mercer_dtype dtype;
    int64_t d;
} bench_case;

typedef struct job {
    mercer_context *context;
    int threads;
    mercer_kernel kernel;
    mercer_matrix x, z, w, y;
    bool wide;                   /* true: the arithmetic is double */
    void *reals_x, *reals_z, *k; /* X, Z in the type of BLAS; k: (m, p) kernel matrix */
    void *x_norms, *z_norms;
    void *composed_y; /* (m, c) */
    mercer_status status;
} job;

static size_t element_size(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? 8 : dtype == MERCER_F32 ? 4 : 1;
}

static const char *type_name(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? "f64" : dtype == MERCER_F32 ? "f32" : "u8";
}

/* Fill with random integers 0 .. 255, divided by 256 unless the type is bytes; the values are exact in every type. */
static void fill(mercer_matrix *a, void *reals, bool wide, uint64_t *state)
{
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        int level = (int)(256 * bench_random(state));
        double value = a->dtype == MERCER_U8 ? level : level / 256.0;
        if (a->dtype == MERCER_F64)
            ((double *)a->data)[i] = value;
        else if (a->dtype == MERCER_F32)
            ((float *)a->data)[i] = (float)value;
        else
            ((uint8_t *)a->data)[i] = (uint8_t)level;
        if (reals && wide) ((double *)reals)[i] = value;
        if (reals && !wide) ((float *)reals)[i] = (float)value;
    }
}

/* ---- The three methods --------------------------------------------------------------------------------------- */

static void run_fused(void *argument)
{
    job *self = argument;
    self->status = mercer_kernel_matmul(self->context, &self->y, &self->kernel, &self->x, &self->z, &self->w);
}

static void run_gemm(void *argument)
{
    job *self = argument;
    int m = (int)self->x.rows, p = (int)self->z.rows, d = (int)self->x.cols;
    if (self->wide)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, p, d, 1, self->reals_x, d, self->reals_z, d, 0, self->k,
                    p);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, p, d, 1, self->reals_x, d, self->reals_z, d, 0, self->k,
                    p);
}

static void norms_of(const job *self, const void *reals, int64_t rows, void *norms)
{
    for (int64_t i = 0; i < rows; i++) {
        int d = (int)self->x.cols;
        if (self->wide) {
            const double *row = (const double *)reals + i * d;
            ((double *)norms)[i] = cblas_ddot(d, row, 1, row, 1);
        } else {
            const float *row = (const float *)reals + i * d;
            ((float *)norms)[i] = cblas_sdot(d, row, 1, row, 1);
        }
    }
}

/* Each function runs one of the library's vectorized loops as one pass over rows of the stored matrix. */
static void distance_pass(void *argument, int64_t piece, int worker)
{
    (void)worker;
    job *self = argument;
    const mrc_panel_ops *panel = mrc_ukernels_for(mrc_isa_best()).panel;
    int64_t p = self->z.rows, first = piece * ROWS_EACH;
    int64_t rows = self->x.rows - first < ROWS_EACH ? self->x.rows - first : ROWS_EACH;
    if (self->wide)
        panel->sqdist_f64(rows, p, (double *)self->k + first * p, self->z_norms, (double *)self->x_norms + first, 0);
    else
        panel->sqdist_f32(rows, p, (float *)self->k + first * p, self->z_norms, (float *)self->x_norms + first, 0);
}

static void value_pass(void *argument, int64_t piece, int worker)
{
    (void)worker;
    job *self = argument;
    const mrc_panel_ops *panel = mrc_ukernels_for(mrc_isa_best()).panel;
    int64_t p = self->z.rows, first = piece * ROWS_EACH;
    int64_t rows = self->x.rows - first < ROWS_EACH ? self->x.rows - first : ROWS_EACH;
    const mrc_map map = mrc_map_for(&self->kernel);
    if (self->wide)
        panel->map_f64(&map, rows * p, (double *)self->k + first * p);
    else
        panel->map_f32(&map, rows * p, (float *)self->k + first * p);
}

static void run_composed(void *argument)
{
    job *self = argument;
    int m = (int)self->x.rows, p = (int)self->z.rows, c = (int)self->w.cols;
    norms_of(self, self->reals_x, self->x.rows, self->x_norms);
    norms_of(self, self->reals_z, self->z.rows, self->z_norms);
    run_gemm(self);
    mrc_parallel_for(self->threads, (m + ROWS_EACH - 1) / ROWS_EACH, distance_pass, self);
    mrc_parallel_for(self->threads, (m + ROWS_EACH - 1) / ROWS_EACH, value_pass, self);
    if (self->wide)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, c, p, 1, self->k, p, self->w.data, c, 0,
                    self->composed_y, c);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, c, p, 1, self->k, p, self->w.data, c, 0,
                    self->composed_y, c);
}

/* ---- One case ------------------------------------------------------------------------------------------------ */

static bool prepare(job *self, bench_case test, int64_t m, int64_t p)
{
    uint64_t state = 1;
    mercer_dtype out = test.dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    self->wide = test.dtype == MERCER_F64;
    size_t real = element_size(out), point = element_size(test.dtype);
    self->x = mercer_matrix_view(malloc((size_t)(m * test.d) * point), m, test.d, test.dtype);
    self->z = mercer_matrix_view(malloc((size_t)(p * test.d) * point), p, test.d, test.dtype);
    self->w = mercer_matrix_view(malloc((size_t)(p * C) * real), p, C, out);
    self->y = mercer_matrix_view(malloc((size_t)(m * C) * real), m, C, out);
    self->reals_x = malloc((size_t)(m * test.d) * real);
    self->reals_z = malloc((size_t)(p * test.d) * real);
    self->k = malloc((size_t)(m * p) * real);
    self->x_norms = malloc((size_t)m * real);
    self->z_norms = malloc((size_t)p * real);
    self->composed_y = malloc((size_t)(m * C) * real);
    if (!self->x.data || !self->z.data || !self->w.data || !self->y.data || !self->reals_x || !self->reals_z ||
        !self->k || !self->x_norms || !self->z_norms || !self->composed_y)
        return false;
    fill(&self->x, self->reals_x, self->wide, &state);
    fill(&self->z, self->reals_z, self->wide, &state);
    fill(&self->w, NULL, self->wide, &state);
    /* The bandwidth is half of a typical distance, for every d. */
    char spec[64];
    double spread = sqrt((double)test.d / 6) * (test.dtype == MERCER_U8 ? 256 : 1);
    snprintf(spec, sizeof spec, "laplace:bandwidth=%.6g", spread / 2);
    return mercer_kernel_parse(&self->kernel, self->context, spec) == MERCER_OK;
}

static void release(job *self)
{
    free(self->x.data), free(self->z.data), free(self->w.data), free(self->y.data), free(self->reals_x);
    free(self->reals_z), free(self->k), free(self->x_norms), free(self->z_norms), free(self->composed_y);
}

static double value_at(const void *values, bool wide, int64_t i)
{
    return wide ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* Return the largest difference of the two results, relative to the largest value. The composed result is less
   accurate, because the composed method does not center the points. */
static double difference(job *self)
{
    double worst = 0, size = 0;
    run_fused(self);
    run_composed(self);
    if (self->status != MERCER_OK) return INFINITY;
    for (int64_t i = 0; i < self->y.rows * self->y.cols; i++) {
        double fused = value_at(self->y.data, self->wide, i), other = value_at(self->composed_y, self->wide, i);
        worst = fmax(worst, fabs(fused - other)), size = fmax(size, fabs(fused));
    }
    return worst / size;
}

static double time_once(void (*work)(void *), job *self)
{
    double start = bench_now();
    work(self);
    return bench_now() - start;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, bench_compare);
    return values[count / 2];
}

/* Print the results of one case. times: best and median of the three methods. */
static void report(const bench_options *options, const mercer_context_info *info, const char *name, const job *self,
                   const bench_times *times, double to_gemm, double to_composed)
{
    const double seconds[] = {times[0].median, times[1].median, times[2].median};
    double pairs = 2.0 * (double)self->x.rows * (double)self->z.rows, d = (double)self->x.cols;
    double rate = pairs * (d + C) / seconds[0];
    double share = rate / bench_peak(self->x.dtype, info->threads, options->repeats);
    if (options->json) bench_begin_json();
    if (options->json)
        printf("\"bench\": \"kernel_matmul\", \"case\": \"%s\", \"m\": %lld, \"p\": %lld, \"d\": %lld, \"c\": %d, "
               "\"version\": \"%s\", \"isa\": \"%s\", \"threads\": %d, \"fused_s\": %.6g, \"gemm_s\": %.6g, "
               "\"composed_s\": %.6g, \"fused_best_s\": %.6g, \"gemm_best_s\": %.6g, \"composed_best_s\": %.6g, "
               "\"gflops\": %.5g, \"gemm_gflops\": %.5g, \"of_peak\": %.4g, \"ratio_to_gemm\": %.4g, "
               "\"times_composed\": %.4g}\n",
               name, (long long)self->x.rows, (long long)self->z.rows, (long long)self->x.cols, C, mercer_version(),
               info->isa, info->threads, seconds[0], seconds[1], seconds[2], times[0].best, times[1].best,
               times[2].best, rate * 1e-9, pairs * d / seconds[1] * 1e-9, share, to_gemm, to_composed);
    else
        printf("%-16s %6lld %6lld %10.2f %10.2f %10.2f %10.2f %9.1f %9.1f %7.2f %8.2f %9.2f\n", name,
               (long long)self->x.rows, (long long)self->z.rows, times[0].best * 1e3, seconds[0] * 1e3,
               seconds[1] * 1e3, seconds[2] * 1e3, rate * 1e-9, pairs * d / seconds[1] * 1e-9, share, to_gemm,
               to_composed);
    fflush(stdout);
}

static void time_ways(const bench_options *options, const mercer_context_info *info, const char *name, job *self)
{
    static void (*const ways[])(void *) = {run_fused, run_gemm, run_composed};
    double seconds[3][BENCH_MOST_REPEATS], to_gemm[BENCH_MOST_REPEATS], to_composed[BENCH_MOST_REPEATS];
    bench_times times[3];
    double d = (double)self->x.cols;
    for (int i = 0; i < options->repeats; i++) {
        for (int way = 0; way < 3; way++) seconds[way][i] = time_once(ways[way], self);
        to_gemm[i] = seconds[1][i] / seconds[0][i] * (d + C) / d;
        to_composed[i] = seconds[2][i] / seconds[0][i];
    }
    for (int way = 0; way < 3; way++) {
        double middle = median(seconds[way], options->repeats); /* median() sorts the times */
        times[way] = (bench_times){seconds[way][0], middle};
    }
    report(options, info, name, self, times, median(to_gemm, options->repeats), median(to_composed, options->repeats));
}

static bool run_case(mercer_context *context, const bench_options *options, bench_case test)
{
    char name[32];
    snprintf(name, sizeof name, "%s d=%lld", type_name(test.dtype), (long long)test.d);
    if (options->filter && strcmp(name, options->filter) != 0 && !strstr(name, options->filter)) return true;
    mercer_context_info info = {.struct_size = sizeof info};
    if (mercer_context_query(context, &info) != MERCER_OK) return false;
    job self = {.context = context, .threads = info.threads};
    bool half = test.d > 1000 || test.dtype == MERCER_F64;
    int64_t m = options->quick ? 64 : half ? M / 2 : M, p = options->quick ? 512 : half ? P / 2 : P;
    bool good = false;
    if (!prepare(&self, test, m, p)) {
        fprintf(stderr, "%s: not enough memory\n", name);
    } else {
        double error = difference(&self), limit = self.wide ? 1e-11 : 1e-3;
        good = error <= limit;
        if (good)
            time_ways(options, &info, name, &self);
        else
            fprintf(stderr, "%s: INVALID, error %g, limit %g (%s)\n", name, error, limit, mercer_last_error(context));
    }
    release(&self);
    return good;
}

int main(int argc, char **argv)
{
    static const mercer_dtype dtypes[] = {MERCER_F32, MERCER_U8, MERCER_F64};
    static const int64_t dimensions[] = {4, 16, 64, 784, 3072};
    bench_options options;
    mercer_context *context;
    int leave = bench_open(argc, argv, &options, &context);
    if (leave >= 0) return leave;
    if (openblas_set_num_threads && options.threads > 0) openblas_set_num_threads(options.threads);
    if (!options.json)
        printf("%-16s %6s %6s %10s %10s %10s %10s %9s %9s %7s %8s %9s\n", "Y = K(X, Z) W", "m", "p", "best ms",
               "median ms", "gemm ms", "composed", "GFLOP/s", "gemm GF/s", "of peak", "to gemm", "composed/");
    int failed = 0;
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 5; i++)
            if (!run_case(context, &options, (bench_case){dtypes[t], dimensions[i]})) failed++;
    mercer_context_free(context);
    return failed ? 1 : 0;
}

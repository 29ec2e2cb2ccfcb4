/* SPDX-License-Identifier: BSD-3-Clause */
/* Times the search for the nearest of p rows, the main cost of k-means, by element type. The results of a few rows are
   checked. */
#include "bench.h"
#include "bench_peak.h"

#include <math.h>

typedef struct bench_case {
    const char *name;
    mercer_dtype x, z;
    int64_t n, p, d;
} bench_case;

static const bench_case cases[] = {
    {"u8", MERCER_U8, MERCER_U8, 10000, 10000, 784},
    {"f32", MERCER_F32, MERCER_F32, 10000, 10000, 784},
    {"u8 x f32", MERCER_U8, MERCER_F32, 10000, 10000, 784},
    {"u8, one tile", MERCER_U8, MERCER_U8, 60000, 240, 784},
};

typedef struct job {
    mercer_context *context;
    mercer_matrix x, z;
    int32_t *nearest;
    double *distances;
    mercer_status status;
} job;

/* Create integers 0 .. 255, which every type represents exactly. */
static mercer_matrix make_points(int64_t rows, int64_t d, mercer_dtype dtype, uint64_t seed)
{
    size_t size = dtype == MERCER_U8 ? 1 : sizeof(float);
    char *data = malloc((size_t)(rows * d) * size);
    for (int64_t i = 0; i < rows * d && data; i++) {
        int value = (int)(256 * bench_random(&seed));
        if (dtype == MERCER_U8)
            ((uint8_t *)data)[i] = (uint8_t)value;
        else
            ((float *)data)[i] = (float)value;
    }
    return mercer_matrix_view(data, rows, d, dtype);
}

static double element(const mercer_matrix *a, int64_t i, int64_t j)
{
    int64_t at = i * a->ld + j;
    return a->dtype == MERCER_U8 ? ((const uint8_t *)a->data)[at] : (double)((const float *)a->data)[at];
}

static void search(void *argument)
{
    job *self = argument;
    self->status = mercer_nearest_rows(self->context, self->nearest, self->distances, NULL, &self->x, &self->z);
}

/* Return the largest relative error of the distances of a few rows. */
static double validate(const job *self)
{
    double worst = 0;
    for (int64_t i = 0; i < self->x.rows; i += self->x.rows / 8 + 1) {
        double best = INFINITY;
        for (int64_t j = 0; j < self->z.rows; j++) {
            double sum = 0;
            for (int64_t k = 0; k < self->x.cols; k++) sum += pow(element(&self->x, i, k) - element(&self->z, j, k), 2);
            best = fmin(best, sum);
        }
        worst = fmax(worst, fabs(self->distances[i] - best) / best);
    }
    return worst;
}

static bool run_case(mercer_context *context, const bench_options *options, const bench_case *test)
{
    int64_t n = options->quick ? 500 : test->n, p = options->quick ? 300 : test->p;
    job self = {.context = context,
                .x = make_points(n, test->d, test->x, 1),
                .z = make_points(p, test->d, test->z, 2),
                .nearest = malloc((size_t)n * sizeof(int32_t)),
                .distances = malloc((size_t)n * sizeof(double))};
    mercer_context_info info = {.struct_size = sizeof info};
    bool good = self.x.data && self.z.data && self.nearest && self.distances &&
                mercer_context_query(context, &info) == MERCER_OK;
    if (good) {
        search(&self);
        good = self.status == MERCER_OK && validate(&self) < 1e-5;
    }
    if (good) {
        bench_times times = bench_time(search, &self, options->repeats);
        double rate = 2 * (double)(n * p) * (double)test->d / times.median;
        mercer_dtype products = test->x == test->z ? test->x : MERCER_F32; /* mixed types multiply as floats */
        double share = rate / bench_peak(products, info.threads, options->repeats);
        if (options->json) bench_begin_json();
        printf(
            options->json
                ? "\"bench\": \"nearest\", \"case\": \"%s\", \"n\": %lld, \"p\": %lld, \"d\": %lld, \"threads\": %d, "
                  "\"best_s\": %.4g, \"median_s\": %.4g, \"gflops\": %.5g, \"of_peak\": %.4g}\n"
                : "%-14s %7lld x %6lld, d = %lld, %d threads: best %8.4f s, median %8.4f s, %7.1f GFLOP/s, %.2f of "
                  "the peak\n",
            test->name, (long long)n, (long long)p, (long long)test->d, info.threads, times.best, times.median,
            1e-9 * rate, share);
        fflush(stdout);
    } else {
        fprintf(stderr, "%s: failed (%s)\n", test->name, mercer_last_error(context));
    }
    free(self.x.data), free(self.z.data), free(self.nearest), free(self.distances);
    return good;
}

int main(int argc, char **argv)
{
    bench_options options;
    mercer_context *context;
    int leave = bench_open(argc, argv, &options, &context);
    if (leave >= 0) return leave;
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (options.filter && !strstr(cases[i].name, options.filter)) continue;
        if (!run_case(context, &options, &cases[i])) failed++;
    }
    mercer_context_free(context);
    return failed ? 1 : 0;
}

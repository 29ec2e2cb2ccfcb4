/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the peak rates of this machine on one thread and on all threads, for comparison with products and training
 * runs:
 *
 *   micro-kernels     products of panels in the first-level cache: f32, f64 (GFLOP/s) and u8 (GOP/s)
 *   kernel values     squared distances and the Laplace function on a tile in cache (million values/s): f32 and f64
 *   copy, read        a buffer of 256 MB (GB/s; a copy counts the bytes read and the bytes written)
 *   fused             the complete product Y = K(X, Z) W (GFLOP/s, u8: GOP/s), to show how it scales
 *
 * Before an operation is timed, its result is compared with the result of a plain loop.
 */
#include "bench.h"

#include "backends/cpu/micro/ukernels.h"
#include "core/cpuinfo.h"
#include "core/threads/parallel.h"
#include "kernels/formulas.h"

#include <math.h>

enum {
    DEPTH = 128,
    AREA = 16384,
    ROUNDS = 1000,
    SHARES = 8,
    TILE = 240 * 32,
    BUFFER_BYTES = 256 << 20,
    PIECES = 64,
    M = 2048,
    P = 4096,
    D = 784,
    C = 10
};

typedef struct job {
    mrc_ukernels uk;
    float *a, *b;    /* AREA floats per worker: a: packed panels or tiles, b: results or norms */
    char *from, *to; /* (BUFFER_BYTES) */
    int64_t *read;   /* (PIECES) results of read_all, stored so that the compiler cannot remove the reading */
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix x, z, w, y;
    int threads;
    mrc_work work;
    int64_t pieces;
} job;

static void dot_f32(void *argument, int64_t piece, int worker)
{
    (void)piece;
    job *self = argument;
    float *a = self->a + (int64_t)worker * AREA, *c = self->b + (int64_t)worker * AREA;
    for (int i = 0; i < ROUNDS; i++) self->uk.gemm_f32(DEPTH, a, a + (int64_t)DEPTH * self->uk.mr_f32, c);
}

static void dot_f64(void *argument, int64_t piece, int worker)
{
    (void)piece;
    job *self = argument;
    double *a = (double *)(void *)(self->a + (int64_t)worker * AREA);
    double *c = (double *)(void *)(self->b + (int64_t)worker * AREA);
    for (int i = 0; i < ROUNDS; i++) self->uk.gemm_f64(DEPTH / 2, a, a + (int64_t)DEPTH / 2 * self->uk.mr_f64, c);
}

static void dot_u8(void *argument, int64_t piece, int worker)
{
    (void)piece;
    job *self = argument;
    float *a = self->a + (int64_t)worker * AREA;
    int32_t *c = (int32_t *)(void *)(self->b + (int64_t)worker * AREA), *start = c + AREA / 2;
    for (int i = 0; i < ROUNDS; i++) self->uk.dot_u8(DEPTH, a, a + (int64_t)DEPTH * self->uk.mr_u8, start, c);
}

/* The output values are the inputs of the next round. Their meaning does not matter; they stay between 0 and 1. */
static void values_f32(void *argument, int64_t piece, int worker)
{
    (void)piece;
    job *self = argument;
    float *tile = self->a + (int64_t)worker * AREA, *norms = self->b + (int64_t)worker * AREA;
    const mrc_map map = mrc_map_for(&self->kernel);
    for (int i = 0; i < ROUNDS / 10; i++) {
        self->uk.panel->sqdist_f32(TILE / self->uk.nr_f32, self->uk.nr_f32, tile, norms, norms, 0);
        self->uk.panel->map_f32(&map, TILE, tile);
    }
}

static void values_f64(void *argument, int64_t piece, int worker)
{
    (void)piece;
    job *self = argument;
    double *tile = (double *)(void *)(self->a + (int64_t)worker * AREA);
    double *norms = (double *)(void *)(self->b + (int64_t)worker * AREA);
    const mrc_map map = mrc_map_for(&self->kernel);
    for (int i = 0; i < ROUNDS / 10; i++) {
        self->uk.panel->sqdist_f64(TILE / self->uk.nr_f64, self->uk.nr_f64, tile, norms, norms, 0);
        self->uk.panel->map_f64(&map, TILE, tile);
    }
}

static void copy(void *argument, int64_t piece, int worker)
{
    (void)worker;
    job *self = argument;
    const int64_t bytes = BUFFER_BYTES / PIECES;
    memcpy(self->to + piece * bytes, self->from + piece * bytes, (size_t)bytes);
}

/* Compute squared norms of long rows of bytes, a computation whose speed is limited only by reading. */
static void read_all(void *argument, int64_t piece, int worker)
{
    (void)worker;
    job *self = argument;
    const int64_t bytes = BUFFER_BYTES / PIECES, row = 16384;
    const uint8_t *at = (const uint8_t *)self->from + piece * bytes;
    self->read[piece] = 0;
    for (int64_t done = 0; done < bytes; done += row)
        self->read[piece] += self->uk.panel->inner_u8(row, at + done, at + done);
}

/* ---- Plain loops --------------------------------------------------------------------------------------------- */

/* The checks run one piece on worker 0 and return the largest relative error, or for exact results the number of wrong
   values. A quotient 0 / 0 is NaN and fails the check. */
static double check_dot_f32(job *self)
{
    int mr = self->uk.mr_f32, nr = self->uk.nr_f32;
    double worst = 0;
    uint64_t state = 1;
    for (int i = 0; i < AREA; i++) self->a[i] = (float)bench_random(&state);
    dot_f32(self, 0, 0);
    for (int i = 0; i < mr * nr; i++) {
        double sum = 0;
        for (int k = 0; k < DEPTH; k++)
            sum += (double)self->a[k * mr + i / nr] * (double)self->a[DEPTH * mr + k * nr + i % nr];
        worst = fmax(worst, fabs((double)self->b[i] - sum) / sum);
    }
    return worst;
}

static double check_dot_f64(job *self)
{
    double *a = (double *)(void *)self->a, worst = 0;
    const double *c = (const double *)(const void *)self->b;
    int mr = self->uk.mr_f64, nr = self->uk.nr_f64;
    uint64_t state = 1;
    for (int i = 0; i < AREA / 2; i++) a[i] = bench_random(&state);
    dot_f64(self, 0, 0);
    for (int i = 0; i < mr * nr; i++) {
        double sum = 0;
        for (int k = 0; k < DEPTH / 2; k++) sum += a[k * mr + i / nr] * a[DEPTH / 2 * mr + k * nr + i % nr];
        worst = fmax(worst, fabs(c[i] - sum) / sum);
    }
    return worst;
}

/* Value k of row r of a panel of `width` rows (ukernels.h): words of 16 bits in groups of 2, otherwise bytes; in groups
   of 4, the bytes of the first factor are signed. */
static int32_t packed(const void *panel, int group, int width, int k, int r, bool is_signed)
{
    int at = (k / group * width + r) * group + k % group;
    if (group == 2) return ((const int16_t *)panel)[at];
    return is_signed ? ((const int8_t *)panel)[at] : ((const uint8_t *)panel)[at];
}

static double check_dot_u8(job *self)
{
    int mr = self->uk.mr_u8, nr = self->uk.nr_u8, group = self->uk.group_u8, group_b = group == 64 ? 4 : group;
    int wrong = 0, depth = group == 2 ? 2 * DEPTH : 4 * DEPTH;
    const void *b = self->a + (int64_t)DEPTH * mr;
    for (int i = 0; i < AREA * 2; i++) ((int16_t *)(void *)self->a)[i] = (int16_t)(i % 251);
    memset(self->b, 0, AREA * sizeof *self->b); /* zero: the micro-kernel adds the products to these values */
    dot_u8(self, 0, 0);
    for (int i = 0; i < mr * nr; i++) {
        int32_t sum = 0;
        for (int k = 0; k < depth; k++)
            sum += packed(self->a, group, mr, k, i / nr, group == 4) * packed(b, group_b, nr, k, i % nr, false);
        wrong += sum != ((const int32_t *)(const void *)self->b)[i];
    }
    return wrong;
}

/* Compute one round of values from products of 0.25 and squared norms of 1, in both types. */
static double check_values(job *self, bool wide)
{
    const mrc_map map = mrc_map_for(&self->kernel);
    const mrc_panel_ops *panel = self->uk.panel;
    double worst = 0, expected = exp(-sqrt(1.5) / self->kernel.bandwidth);
    double *a = (double *)(void *)self->a, *b = (double *)(void *)self->b;
    int nr = wide ? self->uk.nr_f64 : self->uk.nr_f32;
    for (int i = 0; i < TILE; i++)
        if (wide)
            a[i] = 0.25, b[i] = 1;
        else
            self->a[i] = 0.25F, self->b[i] = 1;
    wide ? panel->sqdist_f64(TILE / nr, nr, a, b, b, 0)
         : panel->sqdist_f32(TILE / nr, nr, self->a, self->b, self->b, 0);
    wide ? panel->map_f64(&map, TILE, a) : panel->map_f32(&map, TILE, self->a);
    for (int i = 0; i < TILE; i++) worst = fmax(worst, fabs((wide ? a[i] : (double)self->a[i]) - expected) / expected);
    return worst;
}

static double check_values_f32(job *self)
{
    return check_values(self, false);
}

static double check_values_f64(job *self)
{
    return check_values(self, true);
}

static double check_copy(job *self)
{
    for (int64_t i = 0; i < PIECES; i++) copy(self, i, 0);
    return memcmp(self->to, self->from, BUFFER_BYTES) != 0;
}

static double check_read(job *self)
{
    int64_t sum = 0, bytes = BUFFER_BYTES / PIECES;
    read_all(self, 0, 0);
    for (int64_t i = 0; i < bytes; i++) sum += (uint8_t)self->from[i] * (uint8_t)self->from[i];
    return self->read[0] != sum;
}

/* Return the largest relative error of a few rows of the product, which has no cancellation: points and weights are not
   negative. */
static double check_fused(job *self)
{
    mercer_context *reference = NULL;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_matrix y = mercer_matrix_view(malloc(2 * C * sizeof(double)), 2, C, MERCER_F64), x = self->x;
    double worst = 0;
    options.backend = "reference", x.rows = 2;
    mercer_status status = mercer_context_create(&reference, &options);
    if (!status) status = mercer_kernel_matmul(reference, &y, &self->kernel, &x, &self->z, &self->w);
    for (int i = 0; i < 2 * C && !status; i++) {
        double expected = ((const double *)y.data)[i], got = (double)((const float *)self->y.data)[i];
        worst = fmax(worst, fabs(got - expected) / fabs(expected));
    }
    mercer_context_free(reference);
    free(y.data);
    return status ? (double)NAN : worst;
}

/* Limits of relative errors, for sums of DEPTH or P rounded terms. A wrong index causes a much larger error. */
#define LIMIT_F32 1e-4
#define LIMIT_F64 1e-12

static bool is_right(const char *name, double error, double limit)
{
    if (!(error <= limit)) fprintf(stderr, "%s: INVALID, error %g, limit %g\n", name, error, limit);
    return error <= limit;
}

/* ---- Measurements -------------------------------------------------------------------------------------------- */

static void run_pieces(void *argument)
{
    job *self = argument;
    mrc_parallel_for(self->threads, self->pieces, self->work, self);
}

static void run_fused(void *argument)
{
    job *self = argument;
    if (mercer_kernel_matmul(self->context, &self->y, &self->kernel, &self->x, &self->z, &self->w) != MERCER_OK)
        exit(1);
}

static void report(const bench_options *options, const char *name, const char *unit, int threads, double amount,
                   bench_times times, double alone)
{
    double rate = amount / times.median;
    if (options->json) bench_begin_json();
    if (options->json)
        printf("\"bench\": \"ceilings\", \"case\": \"%s\", \"unit\": \"%s\", \"version\": \"%s\", \"isa\": \"%s\", "
               "\"threads\": %d, \"best\": %.5g, \"rate\": %.5g, \"speed_up\": %.4g}\n",
               name, unit, mercer_version(), mrc_isa_name(mrc_isa_best()), threads, amount / times.best, rate,
               rate / alone);
    else
        printf("%-28s %8d %12.1f %12.1f  %-18s %8.2f\n", name, threads, amount / times.best, rate, unit, rate / alone);
    fflush(stdout);
}

typedef struct bench_case {
    const char *name, *unit;
    mrc_work work;
    double (*check)(job *self);
    double limit;       /* largest valid error that `check` returns */
    double amount_each; /* operations or bytes per piece, in units of `unit` */
    bool in_memory;
} bench_case;

/* Validate one case, and run it on one thread and on all threads. */
static bool run_both(job *self, const bench_options *options, const bench_case *test)
{
    if (options->filter && !strstr(test->name, options->filter)) return true;
    if (!is_right(test->name, test->check(self), test->limit)) return false;
    int all = options->threads ? options->threads : mrc_processors();
    double alone = 0;
    self->work = test->work;
    for (int threads = 1; threads <= all; threads += all > 1 ? all - 1 : 1) {
        self->threads = threads;
        self->pieces = test->in_memory ? PIECES : SHARES * threads; /* several, so that a slow thread takes fewer */
        bench_times times = bench_time(run_pieces, self, options->repeats);
        double amount = test->amount_each * (double)self->pieces;
        if (threads == 1) alone = amount / times.median;
        report(options, test->name, test->unit, threads, amount, times, alone);
    }
    return true;
}

static bool run_products(job *self, const bench_options *options, const char *name, mercer_dtype dtype)
{
    if (options->filter && !strstr(name, options->filter)) return true;
    int all = options->threads ? options->threads : mrc_processors();
    int64_t m = options->quick ? 64 : M, p = options->quick ? 512 : P;
    double alone = 0;
    size_t row = D * (dtype == MERCER_U8 ? 1 : sizeof(float));
    self->x = mercer_matrix_view(self->from, m, D, dtype);
    self->z = mercer_matrix_view(self->from + (size_t)m * row, p, D, dtype);
    self->w = mercer_matrix_view(self->from, p, C, MERCER_F32),
    self->y = mercer_matrix_view(self->to, m, C, MERCER_F32);
    if (mercer_kernel_parse(&self->kernel, NULL,
                            dtype == MERCER_U8 ? "laplace:bandwidth=2550" : "laplace:bandwidth=10") != MERCER_OK)
        return false;
    for (int threads = 1; threads <= all; threads += all > 1 ? all - 1 : 1) {
        mercer_context_options with = MERCER_INIT(mercer_context_options);
        with.threads = threads;
        if (mercer_context_create(&self->context, &with) != MERCER_OK) return false;
        run_fused(self);
        if (!is_right(name, check_fused(self), LIMIT_F32)) return mercer_context_free(self->context), false;
        bench_times times = bench_time(run_fused, self, options->repeats);
        double amount = 2e-9 * (double)m * (double)p * (D + C);
        if (threads == 1) alone = amount / times.median;
        report(options, name, dtype == MERCER_U8 ? "GOP/s" : "GFLOP/s", threads, amount, times, alone);
        mercer_context_free(self->context);
    }
    return true;
}

static bool prepare(job *self, const bench_options *options)
{
    int all = options->threads ? options->threads : mrc_processors();
    uint64_t state = 1;
    void *pieces[4] = {NULL};
    size_t area = (size_t)all * AREA * sizeof(float), sizes[4] = {area, area, BUFFER_BYTES, BUFFER_BYTES};
    for (int i = 0; i < 4; i++) {
        if (posix_memalign(&pieces[i], 64, sizes[i])) return false;
        memset(pieces[i], 0, sizes[i]);
    }
    self->a = pieces[0], self->b = pieces[1], self->from = pieces[2], self->to = pieces[3];
    self->uk = mrc_ukernels_for(mrc_isa_best());
    self->kernel = (mercer_kernel){.id = MRC_KERNEL_LAPLACE, .bandwidth = 10};
    self->read = calloc(PIECES, sizeof *self->read);
    float *points = pieces[2];
    for (int64_t i = 0; i < (int64_t)(M + P) * D; i++) points[i] = (float)bench_random(&state);
    return self->read != NULL;
}

int main(int argc, char **argv)
{
    bench_options options;
    int leave = bench_read_options(argc, argv, &options);
    if (leave >= 0) return leave;
    job self = {0};
    if (!prepare(&self, &options)) return fprintf(stderr, "bench_ceilings: not enough memory\n"), 1;
    const mrc_ukernels *uk = &self.uk;
    double rounds = 2e-9 * ROUNDS * DEPTH, f32 = rounds * uk->mr_f32 * uk->nr_f32,
           f64 = rounds / 2 * uk->mr_f64 * uk->nr_f64,
           u8 = rounds * (uk->group_u8 == 2 ? 2 : 4) * uk->mr_u8 * uk->nr_u8, values = 1e-7 * ROUNDS * TILE;
    if (!options.json)
        printf("%-28s %8s %12s %12s  %-18s %8s\n", "ceilings", "threads", "best", "median", "unit", "speed-up");
    const double buffer = 1e-9 * BUFFER_BYTES / PIECES;
    const bench_case cases[] = {
        {"micro-kernel f32", "GFLOP/s", dot_f32, check_dot_f32, LIMIT_F32, f32, false},
        {"micro-kernel f64", "GFLOP/s", dot_f64, check_dot_f64, LIMIT_F64, f64, false},
        {"micro-kernel u8", "GOP/s", dot_u8, check_dot_u8, 0, u8, false},
        {"laplace values f32", "million/s", values_f32, check_values_f32, LIMIT_F32, values, false},
        {"laplace values f64", "million/s", values_f64, check_values_f64, LIMIT_F64, values, false},
        {"copy", "GB/s", copy, check_copy, 0, 2 * buffer, true},
        {"read", "GB/s", read_all, check_read, 0, buffer, true},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) good = run_both(&self, &options, &cases[i]) && good;
    good = run_products(&self, &options, "fused f32 d=784", MERCER_F32) &&
           run_products(&self, &options, "fused u8 d=784", MERCER_U8) && good;
    free(self.a), free(self.b), free(self.from), free(self.to), free(self.read);
    return good ? 0 : 1;
}

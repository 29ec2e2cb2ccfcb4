/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The demonstration that `make demo` runs. Four parts, each a few calls of the public header:
 *
 *   1. the machine           what the context decided
 *   2. kernel functions      their values over distance and over angle
 *   3. a model               least squares  min |K(X, Z) alpha - y|^2  by conjugate gradients on fused products
 *   4. one large product     its speed and memory, measured here and now, and two checks of its values
 */
#include <mercer/mercer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double pi = 3.14159265358979323846;

/* A demonstration has no use for going on after a failure; a real program would pass the status on. */
static void must(const mercer_context *context, mercer_status status)
{
    if (status == MERCER_OK) return;
    fprintf(stderr, "mercer: %s: %s\n", mercer_status_string(status), mercer_last_error(context));
    exit(1);
}

static void *memory(int64_t count, size_t size)
{
    void *block = calloc((size_t)count, size);
    if (block) return block;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

static mercer_kernel parse(mercer_context *context, const char *spec)
{
    mercer_kernel kernel;
    must(context, mercer_kernel_parse(context, &kernel, spec));
    return kernel;
}

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Uniform in [0, 1): a small generator of its own, so that the demonstration shows the same everywhere. */
static double uniform(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

/* ---- 1. The machine ------------------------------------------------------------------------------------------ */

static mercer_context_info query(mercer_context *context)
{
    mercer_context_info info = {.struct_size = sizeof info};
    must(context, mercer_context_query(context, &info));
    return info;
}

static void show_machine(mercer_context *context)
{
    mercer_context_info info = query(context);
    printf("Mercer %s    backend %s, instruction set %s, %d thread%s\n", mercer_version(), info.backend, info.isa,
           info.threads, info.threads == 1 ? "" : "s");
}

/* ---- 2. Kernel functions ------------------------------------------------------------------------------------- */

static void show_over_distance(mercer_context *context)
{
    static const char *const specs[] = {
        "laplace:bandwidth=1",           "gaussian:bandwidth=1", "matern32:bandwidth=1",
        "matern52:bandwidth=1",          "cauchy:bandwidth=1",   "exppower:bandwidth=1,gamma=0.5",
        "rational-quadratic:bandwidth=1"};
    static const double distances[] = {0, 0.5, 1, 2, 3};
    static const char shades[] = "@%#*+=-:. "; /* from 1 to 0 */
    printf("\nKernel functions of the distance r = |x - z|, bandwidth 1\n\n");
    printf("  %-32s r = 0   0.5     1     2     3  | r = 0 to 4\n", "");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        mercer_kernel kernel = parse(context, specs[i]);
        double zero = 0, value;
        printf("  %-32s", specs[i]);
        for (size_t j = 0; j < sizeof distances / sizeof *distances; j++) {
            must(context, mercer_kernel_value(context, &value, &kernel, 1, &zero, &distances[j]));
            printf(" %.3f", value);
        }
        printf("  | ");
        for (int column = 0; column <= 10; column++) {
            double r = 4 * column / 10.0;
            must(context, mercer_kernel_value(context, &value, &kernel, 1, &zero, &r));
            putchar(shades[(int)(9.999 * (1 - value))]);
        }
        putchar('\n');
    }
}

static void show_over_angle(mercer_context *context)
{
    static const char *const specs[] = {"linear", "polynomial:degree=2", "nngp:depth=1", "ntk:depth=1", "ntk:depth=4"};
    printf("\nKernel functions of the inner product x.z, for unit vectors\n\n");
    printf("  %-21s angle = 0     45     90    135    180 degrees\n", "");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        mercer_kernel kernel = parse(context, specs[i]);
        printf("  %-24s", specs[i]);
        for (int degrees = 0; degrees <= 180; degrees += 45) {
            double x[2] = {1, 0}, z[2] = {cos(degrees * pi / 180), sin(degrees * pi / 180)}, value;
            must(context, mercer_kernel_value(context, &value, &kernel, 2, x, z));
            printf(" %6.3f", value);
        }
        putchar('\n');
    }
}

/* ---- 3. A model ---------------------------------------------------------------------------------------------- */

enum { SAMPLES = 400, CENTERS = 40, STEPS = 32, WIDTH = 72, HEIGHT = 13 };

static double target(double x)
{
    return sin(2 * pi * x * x) + (x > 0.75 ? -1 : 0);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double model_error(mercer_context *context, const mercer_kernel *kernel, const mercer_matrix *Z, double *alpha)
{
    enum { FINE = 1000 };
    static double grid[FINE], f[FINE];
    for (int i = 0; i < FINE; i++) grid[i] = (i + 0.5) / FINE;
    mercer_matrix X = mercer_matrix_view(grid, FINE, 1, MERCER_F64), F = mercer_matrix_view(f, FINE, 1, MERCER_F64);
    mercer_matrix A = mercer_matrix_view(alpha, Z->rows, 1, MERCER_F64);
    must(context, mercer_kernel_matmul(context, &F, kernel, &X, Z, &A));
    double sum = 0;
    for (int i = 0; i < FINE; i++) sum += (f[i] - target(grid[i])) * (f[i] - target(grid[i]));
    return sqrt(sum / FINE);
}

/*
 * Conjugate gradients on K'K alpha = K'y, with K = K(X, Z) only ever multiplied:
 *   g = K'(y - K alpha), direction v;  step = |g|^2 / |K v|^2;  alpha += step v;  residual -= step K v
 */
static void fit(mercer_context *context, const mercer_kernel *kernel, const mercer_matrix *X, const mercer_matrix *Z,
                const double *y, double *alpha)
{
    double residual[SAMPLES], kv[SAMPLES], g[CENTERS], v[CENTERS];
    mercer_matrix R = mercer_matrix_view(residual, SAMPLES, 1, MERCER_F64);
    mercer_matrix KV = mercer_matrix_view(kv, SAMPLES, 1, MERCER_F64);
    mercer_matrix G = mercer_matrix_view(g, CENTERS, 1, MERCER_F64), V = mercer_matrix_view(v, CENTERS, 1, MERCER_F64);
    memcpy(residual, y, sizeof residual);
    memset(alpha, 0, CENTERS * sizeof *alpha);
    memset(v, 0, sizeof v);
    double old_square = 1;
    for (int step = 1; step <= STEPS; step++) {
        must(context, mercer_kernel_matmul(context, &G, kernel, Z, X, &R)); /* K' residual */
        double square = dot(g, g, CENTERS);
        for (int j = 0; j < CENTERS; j++) v[j] = g[j] + (step > 1 ? square / old_square : 0) * v[j];
        must(context, mercer_kernel_matmul(context, &KV, kernel, X, Z, &V)); /* K v */
        double length = square / dot(kv, kv, SAMPLES);
        for (int j = 0; j < CENTERS; j++) alpha[j] += length * v[j];
        for (int i = 0; i < SAMPLES; i++) residual[i] -= length * kv[i];
        old_square = square;
        if (step & (step - 1)) continue; /* report at powers of two */
        double error = model_error(context, kernel, Z, alpha);
        printf("  step %2d  error %.4f  ", step, error);
        for (int bar = 0; bar < (int)(60 * error + 0.5); bar++) putchar('=');
        putchar('\n');
    }
}

static int height(double f)
{
    int row = (int)lrint((1.25 - f) / 3.5 * (HEIGHT - 1));
    return row < 0 ? 0 : row >= HEIGHT ? HEIGHT - 1 : row;
}

static void plot(const double *x, const double *y, const double *f)
{
    char page[HEIGHT][WIDTH + 1];
    memset(page, ' ', sizeof page);
    for (int row = 0; row < HEIGHT; row++) page[row][WIDTH] = 0;
    for (int i = 0; i < SAMPLES; i++) page[height(y[i])][(int)(x[i] * WIDTH)] = '.';
    for (int column = 0; column < WIDTH; column++) page[height(f[column])][column] = '#';
    printf("\n");
    for (int row = 0; row < HEIGHT; row++) printf("  |%s\n", page[row]);
    printf("  +");
    for (int column = 0; column < WIDTH; column++) putchar('-');
    printf("\n   .  noisy samples    #  the model\n");
}

static void show_model(mercer_context *context)
{
    const char *spec = "matern32:bandwidth=0.2";
    mercer_kernel kernel = parse(context, spec);
    static double x[SAMPLES], y[SAMPLES], z[CENTERS], alpha[CENTERS], grid[WIDTH], f[WIDTH];
    for (int i = 0; i < SAMPLES; i++) {
        x[i] = uniform();
        y[i] = target(x[i]) + 0.6 * (uniform() + uniform() - 1);
    }
    for (int j = 0; j < CENTERS; j++) z[j] = (j + 0.5) / CENTERS;
    for (int i = 0; i < WIDTH; i++) grid[i] = (i + 0.5) / WIDTH;
    mercer_matrix X = mercer_matrix_view(x, SAMPLES, 1, MERCER_F64), Z = mercer_matrix_view(z, CENTERS, 1, MERCER_F64);
    mercer_matrix Grid = mercer_matrix_view(grid, WIDTH, 1, MERCER_F64),
                  F = mercer_matrix_view(f, WIDTH, 1, MERCER_F64);
    mercer_matrix A = mercer_matrix_view(alpha, CENTERS, 1, MERCER_F64);

    printf("\nA kernel model f(x) = sum_j alpha_j K(x, z_j), %s\n", spec);
    printf("%d centers fitted to %d noisy samples by conjugate gradients; error against\n", CENTERS, SAMPLES);
    printf("the function without noise:\n\n");
    fit(context, &kernel, &X, &Z, y, alpha);
    must(context, mercer_kernel_matmul(context, &F, &kernel, &Grid, &Z, &A));
    plot(x, y, f);
}

/* ---- 4. One large product ------------------------------------------------------------------------------------ */

enum { FEATURES = 256, OUTPUTS = 10, MANY = 20000, FIRST_ROWS = 64, MOST_ROWS = 16384, CHECKED = 4 };

static float *random_floats(int64_t count)
{
    float *values = memory(count, sizeof *values);
    for (int64_t i = 0; i < count; i++) values[i] = (float)uniform();
    return values;
}

/* The largest difference from sums of the scalar double reference, in parts of the largest result. */
static double difference(mercer_context *context, const mercer_kernel *kernel, const float *x, const float *z,
                         const float *w, const float *y)
{
    static double xi[FEATURES], zj[FEATURES], sums[OUTPUTS];
    double worst = 0, largest = 0, value;
    for (int i = 0; i < CHECKED; i++) {
        memset(sums, 0, sizeof sums);
        for (int k = 0; k < FEATURES; k++) xi[k] = (double)x[i * FEATURES + k];
        for (int j = 0; j < MANY; j++) {
            for (int k = 0; k < FEATURES; k++) zj[k] = (double)z[j * FEATURES + k];
            must(context, mercer_kernel_value(context, &value, kernel, FEATURES, xi, zj));
            for (int k = 0; k < OUTPUTS; k++) sums[k] += value * (double)w[j * OUTPUTS + k];
        }
        for (int k = 0; k < OUTPUTS; k++) {
            worst = fmax(worst, fabs((double)y[i * OUTPUTS + k] - sums[k]));
            largest = fmax(largest, fabs(sums[k]));
        }
    }
    return worst / largest;
}

static int same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* Doubles the batch until the product takes long enough to be timed; returns the rows of the last one. */
static int64_t time_product(mercer_context *context, const mercer_kernel *kernel, mercer_matrix *X, mercer_matrix *Z,
                            mercer_matrix *W, mercer_matrix *Y)
{
    for (int64_t rows = FIRST_ROWS;; rows *= 2) {
        X->rows = Y->rows = rows;
        double start = seconds();
        must(context, mercer_kernel_matmul(context, Y, kernel, X, Z, W));
        double elapsed = seconds() - start, flops = 2.0 * (double)rows * MANY * (FEATURES + OUTPUTS);
        if (elapsed < 0.5 && rows < MOST_ROWS) continue;
        printf("  %lld rows in %.2f s: %.1f million kernel values a second, %.1f GFLOP/s\n", (long long)rows, elapsed,
               1e-6 * (double)rows * MANY / elapsed, 1e-9 * flops / elapsed);
        return rows;
    }
}

static void show_product(mercer_context *context)
{
    const char *spec = "laplace:bandwidth=5";
    mercer_kernel kernel = parse(context, spec);
    float *x = random_floats((int64_t)MOST_ROWS * FEATURES), *z = random_floats((int64_t)MANY * FEATURES);
    float *w = random_floats((int64_t)MANY * OUTPUTS), *y = memory((int64_t)MOST_ROWS * OUTPUTS, sizeof *y);
    float *again = memory(FIRST_ROWS * OUTPUTS, sizeof *again);
    mercer_matrix X = mercer_matrix_view(x, 0, FEATURES, MERCER_F32),
                  Z = mercer_matrix_view(z, MANY, FEATURES, MERCER_F32);
    mercer_matrix W = mercer_matrix_view(w, MANY, OUTPUTS, MERCER_F32),
                  Y = mercer_matrix_view(y, 0, OUTPUTS, MERCER_F32);

    printf("\nOne fused product Y = K(X, Z) W, %s, f32\n", spec);
    printf("%d centers, %d features, %d outputs; K is computed tile by tile\n\n", MANY, FEATURES, OUTPUTS);
    int64_t rows = time_product(context, &kernel, &X, &Z, &W, &Y);
    printf("  memory: K would take %.1f MB; Mercer held at most %.1f MB\n", 4e-6 * (double)rows * MANY,
           1e-6 * (double)query(context).bytes_peak);
    printf("  largest relative difference from the scalar double reference: %.1e\n",
           difference(context, &kernel, x, z, w, y));

    mercer_context_options options = MERCER_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    mercer_context *single = NULL;
    must(NULL, mercer_context_create(&single, &options));
    X.rows = FIRST_ROWS;
    mercer_matrix Again = mercer_matrix_view(again, FIRST_ROWS, OUTPUTS, MERCER_F32);
    must(single, mercer_kernel_matmul(single, &Again, &kernel, &X, &Z, &W));
    printf("  the first %d rows alone, on one thread: %s\n", FIRST_ROWS,
           same_bits(again, y, FIRST_ROWS * OUTPUTS * sizeof *y) ? "the same bits" : "DIFFERENT BITS");
    mercer_context_free(single);
    free(x), free(z), free(w), free(y), free(again);
}

int main(void)
{
    mercer_context *context = NULL;
    must(NULL, mercer_context_create(&context, NULL));
    show_machine(context);
    show_over_distance(context);
    show_over_angle(context);
    show_model(context);
    show_product(context);
    mercer_context_free(context);
    return 0;
}

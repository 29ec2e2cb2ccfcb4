/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The demonstration that `make demo` runs. Four parts, each a few calls of the public header:
 *
 *   1. the machine           what the context decided
 *   2. kernel functions      their values over distance
 *   3. training              plan, epochs, result and picture of a classifier, judged by the exact solution
 *   4. one large product     its speed and memory, measured here and now
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

static void show_kernels(mercer_context *context)
{
    static const char *const specs[] = {"laplace:bandwidth=1", "gaussian:bandwidth=1", "matern32:bandwidth=1",
                                        "cauchy:bandwidth=1", "exppower:bandwidth=1,gamma=0.5"};
    static const double distances[] = {0, 0.5, 1, 2, 3};
    static const char shades[] = "@%#*+=-:. "; /* from 1 to 0 */
    printf("\nFive of the kernel functions, over the distance r = |x - z|\n\n");
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

/* ---- 3. Training --------------------------------------------------------------------------------------------- */

enum { SAMPLES = 20000, TESTS = 4000, CENTERS = 1000, CLASSES = 3, WIDTH = 72, HEIGHT = 24 };

/* Which of three spiral arms a point of [-1, 1]^2 lies on. */
static int32_t arm(double a, double b)
{
    double turn = atan2(b, a) / (2 * pi) + 1.5 * sqrt(a * a + b * b);
    return (int32_t)(CLASSES * (turn - floor(turn))) % CLASSES;
}

typedef struct problem {
    float x[SAMPLES][2], test_x[TESTS][2], test_y[TESTS][CLASSES];
    int32_t labels[SAMPLES];
    mercer_matrix X, T, TY; /* views of samples, test points, their one-hot labels */
} problem;

/* One sample in ten has a random label; test points have the right one. */
static problem *make_problem(void)
{
    problem *data = memory(1, sizeof *data);
    for (int i = 0; i < SAMPLES; i++) {
        double a = 2 * uniform() - 1, b = 2 * uniform() - 1;
        data->x[i][0] = (float)a, data->x[i][1] = (float)b;
        data->labels[i] = uniform() < 0.1 ? (int32_t)(CLASSES * uniform()) : arm(a, b);
    }
    for (int i = 0; i < TESTS; i++) {
        double a = 2 * uniform() - 1, b = 2 * uniform() - 1;
        data->test_x[i][0] = (float)a, data->test_x[i][1] = (float)b;
        data->test_y[i][arm(a, b)] = 1;
    }
    data->X = mercer_matrix_view(data->x, SAMPLES, 2, MERCER_F32);
    data->T = mercer_matrix_view(data->test_x, TESTS, 2, MERCER_F32);
    data->TY = mercer_matrix_view(data->test_y, TESTS, CLASSES, MERCER_F32);
    return data;
}

/* Prints lines of any length, broken at spaces so that they fit 80 columns. */
static void print_wrapped(const char *text)
{
    enum { COLUMNS = 76 };
    while (*text) {
        int length = (int)strcspn(text, "\n");
        for (int first = 1; length > 0; first = 0) {
            int room = first ? COLUMNS : COLUMNS - 2;
            int part = length > room ? room : length;
            while (part < length && part > 1 && text[part] != ' ') part--;
            printf("  %s%.*s\n", first ? "" : "  ", part, text);
            text += part, length -= part;
            while (length > 0 && *text == ' ') text++, length--;
        }
        text += *text == '\n';
    }
}

static int show_epoch(void *user, const mercer_progress *progress)
{
    (void)user;
    double wrong = 1 - progress->validation_accuracy;
    printf("  %5lld  %10.5f  %12.2f %%  %11.2f %%  ", (long long)progress->epoch, progress->train_loss,
           100 * progress->train_accuracy, 100 * progress->validation_accuracy);
    for (int bar = 0; bar < (int)(200 * wrong + 0.5) && bar < 32; bar++) putchar('=');
    putchar('\n');
    fflush(stdout);
    return 0; /* anything else would stop the training */
}

/* Trains a fresh model. The caller releases it. */
static mercer_model *train(mercer_context *context, problem *data, const mercer_train_options *options,
                           mercer_report *report)
{
    mercer_kernel kernel = parse(context, "laplace:bandwidth=1");
    mercer_matrix Z = data->X;
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    mercer_plan plan = {.struct_size = sizeof plan};
    Z.rows = CENTERS; /* the first samples; any points would do */
    must(context, mercer_model_create(&model, context, &kernel, &Z, CLASSES, MERCER_F32));
    must(context, mercer_train_plan(model, &plan, SAMPLES, options));
    if (options->progress) {
        print_wrapped(plan.text);
        printf("\n  epoch  train loss  train accuracy  test accuracy  test errors\n");
    }
    must(context, mercer_source_from_labels(&source, context, &data->X, data->labels, CLASSES, NULL, 1));
    must(context, mercer_trainer_create(&trainer, model, NULL, options));
    must(context, mercer_trainer_fit(trainer, report, &source));
    mercer_trainer_free(trainer);
    mercer_source_release(&source);
    return model;
}

/* The class the model gives to each point of the square. */
static void show_picture(mercer_context *context, mercer_model *model)
{
    static float grid[HEIGHT * WIDTH][2];
    static int32_t labels[HEIGHT * WIDTH];
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        int row = i / WIDTH, column = i % WIDTH;
        grid[i][0] = 2 * ((float)column + 0.5f) / WIDTH - 1;
        grid[i][1] = 1 - 2 * ((float)row + 0.5f) / HEIGHT;
    }
    mercer_matrix Grid = mercer_matrix_view(grid, (int64_t)HEIGHT * WIDTH, 2, MERCER_F32);
    must(context, mercer_model_classify(model, labels, &Grid));
    putchar('\n');
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        if (i % WIDTH == 0) printf("  ");
        putchar(" .#"[labels[i]]);
        if (i % WIDTH == WIDTH - 1) putchar('\n');
    }
}

static void show_training(mercer_context *context)
{
    problem *data = make_problem();
    mercer_report report = {.struct_size = sizeof report}, exact = {.struct_size = sizeof exact};
    mercer_train_options options = {.struct_size = sizeof options};
    options.solver = "ep4"; /* without a name the planner would choose one */
    options.classification = MERCER_ON;
    options.validation_X = &data->T; /* only watched: nothing is chosen by it */
    options.validation_Y = &data->TY;
    options.progress = show_epoch;

    printf("\nTraining f(x) = sum_j alpha_j K(x, z_j), laplace:bandwidth=1, %d centers,\n", CENTERS);
    printf("on %d points of three spiral arms, a tenth of them with random labels.\n", SAMPLES);
    printf("The plan:\n\n");
    mercer_model *model = train(context, data, &options, &report);
    if (report.plan.average) printf("  (in the later half the model is the average of the iterates)\n");
    printf("\n  %.1f s: %lld steps with batches of %lld, a projection every %lld; %.0f MB\n", report.seconds,
           (long long)report.steps, (long long)report.plan.batch, (long long)report.plan.period,
           1e-6 * (double)report.peak_bytes);
    options.solver = "direct";
    options.progress = NULL;
    mercer_model_free(train(context, data, &options, &exact));
    printf("  test accuracy %.2f %%; least squares to the end (direct, %.1f s): %.2f %%\n",
           100 * report.validation_accuracy, exact.seconds, 100 * exact.validation_accuracy);
    show_picture(context, model);
    mercer_model_free(model);
    free(data);
}

/* ---- 4. One large product ------------------------------------------------------------------------------------ */

enum { FEATURES = 256, OUTPUTS = 10, MANY = 20000, FIRST_ROWS = 64, MOST_ROWS = 16384 };

static float *random_floats(int64_t count)
{
    float *values = memory(count, sizeof *values);
    for (int64_t i = 0; i < count; i++) values[i] = (float)uniform();
    return values;
}

/* Doubles the batch until the product takes long enough to be timed. */
static void show_product(mercer_context *context)
{
    mercer_kernel kernel = parse(context, "laplace:bandwidth=5");
    float *x = random_floats((int64_t)MOST_ROWS * FEATURES), *z = random_floats((int64_t)MANY * FEATURES);
    float *w = random_floats((int64_t)MANY * OUTPUTS), *y = memory((int64_t)MOST_ROWS * OUTPUTS, sizeof *y);
    mercer_matrix Z = mercer_matrix_view(z, MANY, FEATURES, MERCER_F32);
    mercer_matrix W = mercer_matrix_view(w, MANY, OUTPUTS, MERCER_F32);
    for (int64_t rows = FIRST_ROWS; rows <= MOST_ROWS; rows *= 2) {
        mercer_matrix X = mercer_matrix_view(x, rows, FEATURES, MERCER_F32);
        mercer_matrix Y = mercer_matrix_view(y, rows, OUTPUTS, MERCER_F32);
        double start = seconds();
        must(context, mercer_kernel_matmul(context, &Y, &kernel, &X, &Z, &W));
        double elapsed = seconds() - start, flops = 2.0 * (double)rows * MANY * (FEATURES + OUTPUTS);
        if (elapsed < 0.5 && rows < MOST_ROWS) continue;
        printf("\nOne product K(X, Z) W, %lld x %d kernel values, %d features, %d outputs:\n", (long long)rows, MANY,
               FEATURES, OUTPUTS);
        printf("%.2f s, %.1f GFLOP/s, and K (%.0f MB) was never stored\n", elapsed, 1e-9 * flops / elapsed,
               4e-6 * (double)rows * MANY);
        break;
    }
    free(x), free(z), free(w), free(y);
}

int main(void)
{
    mercer_context *context = NULL;
    must(NULL, mercer_context_create(&context, NULL));
    show_machine(context);
    show_kernels(context);
    show_training(context);
    show_product(context);
    mercer_context_free(context);
    return 0;
}

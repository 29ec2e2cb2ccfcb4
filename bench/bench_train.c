/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times training runs, from the choice of random centers to the weights:
 *
 *   mnist     $MERCER_DATA/mnist, p = 10,000, Laplace kernel of bandwidth 10 on pixels/255 (2550 on bytes): one epoch
 *             of ep4 and of ep3, the default plan, and cg with the fewest steps that reach 97.3 % test accuracy
 *   tabular   1,000,000 synthetic samples, d = 16, p = 5,000: one epoch of ep4, and the whole default plan
 *
 * Each case first trains on a small part of its data, as a warm-up; the model must already predict well. Then the
 * training is timed; the test error is measured outside the timed part. The reported numbers of bytes are the estimate
 * of the plan, the peak of the library, and the peak of the process. A separate run, which evaluates the test images
 * after every step, counts the steps needed for 97.3 %.
 */
#include "bench.h"
#include "bench_peak.h"
#include "bench_rss.h"

#include <math.h>

enum { MNIST_CENTERS = 10000, TABULAR_CENTERS = 5000, SMALL_ROWS = 4000, SMALL_CENTERS = 400, MOST_RUNS = 3 };
enum { TABULAR_ROWS = 1000000, TABULAR_QUICK = 20000, TABULAR_TEST = 10000, TABULAR_FEATURES = 16 };

#define WANTED_ACCURACY 0.973

/* Training and test samples in memory; labels are NULL for regression. */
typedef struct problem {
    const char *name, *kernel;
    mercer_dataset *files[2];
    mercer_matrix x, y, test_x, test_y;
    const int32_t *labels, *test_labels;
    int64_t outputs, p;
    double small_worst, worst; /* largest valid 1 - accuracy, or 1 - R2, of the small and the full training run */
} problem;

typedef struct bench_case {
    const char *name, *solver; /* solver NULL: chosen by the planner */
    int64_t epochs;            /* 0: chosen by the planner */
    int runs;
    bool to_accuracy; /* true: use the fewest steps that reach WANTED_ACCURACY */
} bench_case;

static const bench_case mnist_cases[] = {{"mnist ep4 one epoch", "ep4", 1, 1, false},
                                         {"mnist ep3 one epoch", "ep3", 1, 1, false},
                                         {"mnist default", NULL, 0, 1, false},
                                         {"mnist to 97.3 %", "cg", 0, MOST_RUNS, true}};
static const bench_case tabular_cases[] = {{"tabular one epoch", "ep4", 1, 1, false},
                                           {"tabular default", NULL, 0, 1, false}};

/* Results of repeated runs with the same settings. */
typedef struct result {
    mercer_report report;
    mercer_plan plan; /* copy of the plan, to which report.plan points */
    double seconds[MOST_RUNS], test_error;
    int64_t rss, rss_before;
} result;

/* ---- Data ---------------------------------------------------------------------------------------------------- */

static mercer_status open_images(mercer_context *context, const char *folder, const char *part, mercer_dataset **out)
{
    char x[4096], y[4096];
    mercer_dataset_options options;
    options = (mercer_dataset_options)MERCER_INIT(mercer_dataset_options);
    snprintf(x, sizeof x, "%s/mnist/%s-images-idx3-ubyte.gz", folder, part);
    snprintf(y, sizeof y, "%s/mnist/%s-labels-idx1-ubyte.gz", folder, part);
    options.x = x, options.y = y, options.task = MERCER_TASK_CLASSIFICATION;
    return mercer_dataset_open(out, context, &options);
}

static mercer_status load_mnist(mercer_context *context, const char *folder, problem *out)
{
    *out = (problem){.name = "mnist",
                     .kernel = "laplace:bandwidth=2550",
                     .outputs = 10,
                     .p = MNIST_CENTERS,
                     .small_worst = 0.2,
                     .worst = 0.045};
    mercer_status status = open_images(context, folder, "train", &out->files[0]);
    if (!status) status = open_images(context, folder, "t10k", &out->files[1]);
    if (status) return status;
    out->x = mercer_dataset_samples(out->files[0]), out->labels = mercer_dataset_labels(out->files[0]);
    out->test_x = mercer_dataset_samples(out->files[1]), out->test_labels = mercer_dataset_labels(out->files[1]);
    return MERCER_OK;
}

static mercer_status make_tabular(mercer_context *context, bool quick, problem *out)
{
    static const char spec[] = "teacher:d=16,c=1,centers=200,noise=0.1,kernel=laplace,bandwidth=4";
    int64_t rows = quick ? TABULAR_QUICK : TABULAR_ROWS;
    *out = (problem){.name = "tabular",
                     .kernel = "laplace:bandwidth=4",
                     .outputs = 1,
                     .p = quick ? SMALL_CENTERS : TABULAR_CENTERS,
                     .small_worst = 0.9,
                     .worst = quick ? 0.9 : 0.5};
    float *values = malloc((size_t)((rows + TABULAR_TEST) * (TABULAR_FEATURES + 1)) * sizeof *values);
    if (!values) return MERCER_ERROR_MEMORY;
    mercer_matrix x = mercer_matrix_view(values, rows + TABULAR_TEST, TABULAR_FEATURES, MERCER_F32);
    mercer_matrix y = mercer_matrix_view(values + x.rows * TABULAR_FEATURES, x.rows, 1, MERCER_F32);
    mercer_status status = mercer_dataset_synthesize(&out->files[0], context, spec, 0, x.rows, 1);
    if (!status) status = mercer_dataset_read(out->files[0], &x, &y, NULL, NULL, NULL, 0);
    out->x = x, out->y = y, out->x.rows = out->y.rows = rows;
    out->test_x = mercer_matrix_view(values + rows * TABULAR_FEATURES, TABULAR_TEST, TABULAR_FEATURES, MERCER_F32);
    out->test_y = mercer_matrix_view((float *)y.data + rows, TABULAR_TEST, 1, MERCER_F32);
    return status;
}

static void release(problem *self)
{
    if (!self->labels) free(self->x.data);
    mercer_dataset_free(self->files[0]), mercer_dataset_free(self->files[1]);
}

/* ---- One training run ---------------------------------------------------------------------------------------- */

/* Compute the test error: 1 - accuracy, or 1 - R2. */
static mercer_status exact(mercer_model *model, const problem *self, double *error)
{
    int64_t n = self->test_x.rows;
    double left = 0, sum = 0, squares = 0;
    int32_t *labels = malloc((size_t)n * sizeof *labels);
    float *values = malloc((size_t)n * sizeof *values);
    mercer_matrix f = mercer_matrix_view(values, n, 1, MERCER_F32);
    mercer_status status = !labels || !values  ? MERCER_ERROR_MEMORY
                           : self->test_labels ? mercer_model_classify(model, labels, &self->test_x)
                                               : mercer_model_predict(model, &f, &self->test_x);
    for (int64_t i = 0; i < n && !status; i++) {
        if (self->test_labels) {
            left += labels[i] != self->test_labels[i];
            continue;
        }
        double y = (double)((const float *)self->test_y.data)[i], off = y - (double)values[i];
        left += off * off, sum += y, squares += y * y;
    }
    *error = self->test_labels ? left / (double)n : left / (squares - sum * sum / (double)n);
    free(labels), free(values);
    return status;
}

/* Choose random centers, create a model and train it on the first `rows` rows. The caller frees *model. */
static mercer_status train(mercer_context *context, const problem *self, int64_t rows, int64_t p,
                           const mercer_train_options *options, mercer_report *report, mercer_model **model)
{
    mercer_matrix x = self->x, y = self->y;
    x.rows = y.rows = rows;
    size_t size = x.dtype == MERCER_U8 ? 1 : sizeof(float);
    mercer_matrix z = mercer_matrix_view(malloc((size_t)(p * x.cols) * size), p, x.cols, x.dtype);
    mercer_center_options how;
    mercer_kernel kernel;
    mercer_trainer *trainer = NULL;
    mercer_source source = {0};
    how = (mercer_center_options)MERCER_INIT(mercer_center_options);
    how.seed = 1;
    mercer_status status = z.data ? mercer_choose_centers(context, &z, &x, &how, NULL) : MERCER_ERROR_MEMORY;
    if (!status) status = mercer_kernel_parse(&kernel, context, self->kernel);
    if (!status) status = mercer_model_create(model, context, NULL, &kernel, &z, self->outputs, (mercer_dtype)0);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .Y = self->labels ? NULL : &y};
    arrays.labels = self->labels, arrays.classes = self->labels ? self->outputs : 0;
    if (!status) status = mercer_source_from_arrays(&source, context, &arrays, 1);
    if (!status) status = mercer_trainer_create(&trainer, *model, NULL, options);
    report->struct_size = sizeof *report;
    if (!status) status = mercer_trainer_fit(trainer, &source, report);
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    free(z.data);
    return status;
}

static mercer_train_options options_for(const problem *self, const char *solver, int64_t epochs)
{
    mercer_train_options options;
    options = (mercer_train_options)MERCER_INIT(mercer_train_options);
    options.solver = solver;
    options.epochs = epochs;
    options.seed = 1;
    options.classification = self->labels ? MERCER_ON : MERCER_OFF;
    return options;
}

/* Train on a small part of the data, as a warm-up; return whether the model is accurate enough. */
static bool small_is_right(mercer_context *context, const problem *self, const char *solver)
{
    mercer_model *model = NULL;
    mercer_report report;
    double error = INFINITY;
    mercer_train_options options = options_for(self, solver, 0);
    mercer_status status = train(context, self, SMALL_ROWS, SMALL_CENTERS, &options, &report, &model);
    if (!status) status = exact(model, self, &error);
    mercer_model_free(model);
    return status == MERCER_OK && error <= self->small_worst;
}

/* Progress callback: stop at the first step that reaches WANTED_ACCURACY. Sets *user to the index of that step. */
static int watch_accuracy(void *user, const mercer_progress *progress)
{
    *(int64_t *)user = progress->epoch;
    return progress->validation_accuracy >= WANTED_ACCURACY;
}

static mercer_status count_steps(mercer_context *context, const problem *self, const char *solver, int64_t *steps)
{
    int64_t n = self->test_x.rows;
    float *targets = calloc((size_t)(n * self->outputs), sizeof *targets);
    if (!targets) return MERCER_ERROR_MEMORY;
    for (int64_t i = 0; i < n; i++) targets[i * self->outputs + self->test_labels[i]] = 1;
    mercer_matrix test_y = mercer_matrix_view(targets, n, self->outputs, MERCER_F32);
    mercer_train_options options = options_for(self, solver, 0);
    options.validation_X = &self->test_x, options.validation_Y = &test_y;
    options.progress = watch_accuracy, options.progress_user = steps;
    mercer_model *model = NULL;
    mercer_report report;
    mercer_status status = train(context, self, self->x.rows, self->p, &options, &report, &model);
    mercer_model_free(model);
    free(targets);
    return status;
}

/* ---- Cases --------------------------------------------------------------------------------------------------- */

static void report_case(const bench_options *options, const mercer_context_info *info, const bench_case *test,
                        const problem *self, const result *r)
{
    double sorted[MOST_RUNS];
    memcpy(sorted, r->seconds, sizeof sorted);
    qsort(sorted, (size_t)test->runs, sizeof *sorted, bench_compare);
    const mercer_report *t = &r->report;
    double median = sorted[test->runs / 2], epoch = t->forward_seconds + t->gradient_seconds + t->projection_seconds,
           rest = t->seconds - t->setup_seconds - epoch;
    /* share of the peak of float products on all threads, although factorizations and some sums are in double */
    double share = t->flops / median / bench_peak(self->x.dtype, info->threads, options->repeats);
    char loss[32] = "null"; /* the direct solver reports no loss */
    if (isfinite(t->train_loss)) snprintf(loss, sizeof loss, "%.6g", t->train_loss);
    if (options->json) bench_begin_json();
    if (options->json)
        printf("\"bench\": \"train\", \"case\": \"%s\", \"n\": %lld, \"p\": %lld, \"d\": %lld, \"c\": %lld, "
               "\"version\": \"%s\", \"isa\": \"%s\", \"threads\": %d, \"solver\": \"%s\", \"projector\": \"%s\", "
               "\"epochs\": %lld, \"best_s\": %.4g, \"median_s\": %.4g, \"setup_s\": %.4g, \"forward_s\": %.4g, "
               "\"gradient_s\": %.4g, \"projection_s\": %.4g, \"other_s\": %.4g, \"plan_s\": %.4g, \"flops\": %.5g, "
               "\"of_peak\": %.4g, \"train_loss\": %s, \"test_%s\": %.6g, \"plan_bytes\": %lld, \"peak_bytes\": %lld, "
               "\"rss_before_bytes\": %lld, \"rss_bytes\": %lld}\n",
               test->name, (long long)self->x.rows, (long long)self->p, (long long)self->x.cols,
               (long long)self->outputs, mercer_version(), info->isa, info->threads, t->plan->solver,
               t->plan->projector, (long long)t->epochs, sorted[0], median, t->setup_seconds, t->forward_seconds,
               t->gradient_seconds, t->projection_seconds, rest, t->plan->seconds, t->flops, share, loss,
               self->labels ? "accuracy" : "variance_left", self->labels ? 100 * (1 - r->test_error) : r->test_error,
               (long long)t->plan->bytes, (long long)t->peak_bytes, (long long)r->rss_before, (long long)r->rss);
    else
        printf("%-20s %-4s %-6s %4lld %8.2f %8.2f %8.2f %8.2f %8.2f %10s %8.3f%% %7.0f %7.0f %7.0f\n", test->name,
               t->plan->solver, t->plan->projector, (long long)t->epochs, median, t->setup_seconds, t->forward_seconds,
               t->gradient_seconds, t->projection_seconds, loss, 100 * r->test_error, (double)t->plan->bytes * 1e-6,
               (double)t->peak_bytes * 1e-6, (double)r->rss * 1e-6);
    fflush(stdout);
}

static mercer_status run_once(mercer_context *context, const problem *self, const mercer_train_options *options,
                              int run, result *r)
{
    mercer_model *model = NULL;
    r->rss_before = bench_rss_restart();
    double start = bench_now();
    mercer_status status = train(context, self, self->x.rows, self->p, options, &r->report, &model);
    r->seconds[run] = bench_now() - start;
    r->rss = bench_rss_peak();
    if (!status) r->plan = *r->report.plan, r->report.plan = &r->plan;
    if (!status) status = exact(model, self, &r->test_error);
    mercer_model_free(model);
    return status;
}

/* Get the solver that the planner chooses for a full run, to use the same solver for a run of fewer epochs. */
static mercer_status name_solver(mercer_context *context, const problem *self, char *solver)
{
    mercer_shape shape = {.struct_size = sizeof shape,
                          .samples = self->x.rows,
                          .centers = self->p,
                          .features = self->x.cols,
                          .outputs = self->outputs,
                          .points = self->x.dtype};
    mercer_plan plan = {.struct_size = sizeof plan};
    mercer_status status = mercer_plan_shape(context, &plan, &shape, NULL);
    if (!status) memcpy(solver, plan.solver, sizeof plan.solver);
    return status;
}

static bool run_case(mercer_context *context, const bench_options *options, const bench_case *test, const problem *self)
{
    if (options->filter && !strstr(test->name, options->filter)) return true;
    mercer_context_info info = {.struct_size = sizeof info};
    char named[16] = "";
    const char *solver = test->solver;
    result r = {.test_error = INFINITY};
    mercer_status status = mercer_context_query(context, &info);
    if (!status && !solver && test->epochs) status = name_solver(context, self, named), solver = named;
    if (status || !small_is_right(context, self, solver)) {
        fprintf(stderr, "%s: INVALID on a small part (%s)\n", test->name, mercer_last_error(context));
        return false;
    }
    int64_t epochs = test->epochs;
    if (test->to_accuracy) status = count_steps(context, self, solver, &epochs);
    for (bool enough = false; !status && !enough;) {
        mercer_train_options train_options = options_for(self, solver, epochs);
        for (int run = 0; run < test->runs && !status; run++) status = run_once(context, self, &train_options, run, &r);
        /* For fewer steps, the planner may choose a cheaper preconditioner, and the run may miss the accuracy: add one
           step. */
        enough = !test->to_accuracy || 1 - r.test_error >= WANTED_ACCURACY || r.report.epochs < epochs;
        if (!enough) epochs++;
    }
    bool good = status == MERCER_OK && r.test_error <= (test->to_accuracy ? 1 - WANTED_ACCURACY : self->worst);
    if (good)
        report_case(options, &info, test, self, &r);
    else
        fprintf(stderr, "%s: INVALID, test error %g (%s)\n", test->name, r.test_error, mercer_last_error(context));
    return good;
}

static int run_cases(mercer_context *context, const bench_options *options, const bench_case *cases, size_t count,
                     const problem *self)
{
    int failed = 0;
    for (size_t i = 0; i < count; i++) failed += !run_case(context, options, &cases[i], self);
    return failed;
}

static bool wanted(const bench_options *options, const bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!options->filter || strstr(cases[i].name, options->filter)) return true;
    return false;
}

static int run_mnist(mercer_context *context, const bench_options *options)
{
    const size_t count = sizeof mnist_cases / sizeof *mnist_cases;
    if (!wanted(options, mnist_cases, count)) return 0;
    const char *folder = getenv("MERCER_DATA");
    problem images = {0};
    if (!folder || options->quick) {
        fprintf(stderr, "bench_train: mnist is left out%s\n", folder ? " (--quick)" : ": MERCER_DATA is not set");
        return 0;
    }
    int failed = 1;
    if (load_mnist(context, folder, &images) == MERCER_OK)
        failed = run_cases(context, options, mnist_cases, count, &images);
    else
        fprintf(stderr, "bench_train: %s\n", mercer_last_error(context));
    release(&images);
    return failed;
}

static int run_tabular(mercer_context *context, const bench_options *options)
{
    const size_t count = sizeof tabular_cases / sizeof *tabular_cases;
    problem table = {0};
    if (!wanted(options, tabular_cases, count)) return 0;
    int failed = 1;
    if (make_tabular(context, options->quick, &table) == MERCER_OK)
        failed = run_cases(context, options, tabular_cases, count, &table);
    else
        fprintf(stderr, "bench_train: %s\n", mercer_last_error(context));
    release(&table);
    return failed;
}

int main(int argc, char **argv)
{
    bench_options options;
    mercer_context *context;
    int leave = bench_open(argc, argv, &options, &context);
    if (leave >= 0) return leave;
    if (!options.json)
        printf("%-20s %-4s %-6s %4s %8s %8s %8s %8s %8s %10s %9s %7s %7s %7s\n", "train", "", "", "ep.", "s", "set-up",
               "forward", "gradient", "project", "loss", "test err", "plan MB", "peak", "rss");
    int failed = run_mnist(context, &options) + run_tabular(context, &options);
    mercer_context_free(context);
    return failed ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hyperparameters of a fit: which fits search, effort and budget, that given values are not changed, interrupted
 * and resumed searches, the same bytes for any number of threads, and degenerate tables, which give a model or an
 * error, never NaN.
 */
#include "support/datasets.h"

#include "support/info.h"

#include "core/matrix.h"
#include "core/numbers/random.h"
#include "fit/fitting.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"
#include "mercer/samples.h"
#include "model/tensor_file.h"
#include "plan/plan.h"
#include "search/search.h"

#include <math.h>
#include <string.h>

enum { ROWS = 240, D = 4, MOST_D = 100, NEW = 200 };

static double x_all[ROWS * MOST_D], y_all[ROWS], x_new[NEW][D];
static int32_t labels_all[ROWS];

static double normal(uint64_t sequence, int index)
{
    return mrc_random_normal((mrc_rng){61, sequence}, (uint64_t)index);
}

static double truth(const double *x)
{
    return sin(2 * x[0]) + fabs(x[1]);
}

static void plant(void)
{
    for (int i = 0; i < ROWS * D; i++) x_all[i] = normal(0, i);
    for (int i = 0; i < ROWS; i++) {
        y_all[i] = 5 + truth(x_all + (ptrdiff_t)i * D) + 0.05 * normal(1, i);
        labels_all[i] = y_all[i] > 5.6;
    }
    for (int i = 0; i < NEW * D; i++) x_new[i / D][i % D] = normal(2, i);
}

static mercer_matrix matrix_of(void *values, int64_t rows, int64_t cols)
{
    return mercer_matrix_view(values, rows, cols, MERCER_F64);
}

static mercer_dataset *open_rows(mercer_context *by, int64_t rows, int64_t d, const double *groups, int classes)
{
    mercer_matrix x = matrix_of(x_all, rows, d), y = matrix_of(y_all, rows, 1);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .groups = groups};
    mercer_dataset *data = NULL;
    if (classes > 0)
        arrays.labels = labels_all, arrays.classes = classes;
    else
        arrays.Y = &y;
    assert_succeeds(by, mercer_dataset_from_arrays(&data, by, &arrays));
    return data;
}

static mercer_fit_options quick(mercer_train_options *train)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    *train = (mercer_train_options)MERCER_INIT(mercer_train_options);
    options.train = train, options.run.memory = INT64_C(1) << 30, options.search.effort = 1;
    return options;
}

/* A prepared fitting with its reports, its parts and its plan, including the text. */
typedef struct prepared {
    mercer_fitting *fitting;
    mercer_fit_report report;
    mercer_search_report search;
    mercer_fit_parts parts;
    mercer_plan plan;
} prepared;

static const prepared *prepare(mercer_dataset *data, const mercer_fit_options *options)
{
    static prepared self;
    self = (prepared){.report = {.struct_size = sizeof self.report, .search = &self.search},
                      .search = {.struct_size = sizeof self.search},
                      .parts = {.struct_size = sizeof self.parts},
                      .plan = {.struct_size = sizeof self.plan}};
    assert_succeeds(context, mercer_fitting_open(&self.fitting, context, data, options));
    assert_succeeds(context, mercer_fitting_prepare(self.fitting, &self.plan));
    assert_succeeds(context, mercer_fitting_query(self.fitting, &self.report));
    assert_succeeds(context, mercer_fitting_parts(self.fitting, &self.parts));
    return &self;
}

/* ---- Whether to search ------------------------------------------------------------------------------------------- */

/* A table is searched by default, even if the bandwidth is given; other samples are searched only on request. */
static void test_rule(void **state)
{
    (void)state;
    const mercer_kernel kernel = {0};
    mercer_fit_options fit;
    const mercer_dataset_info table = {
        .rows = 500, .features = 1024, .dtype = MERCER_F32, .task = MERCER_TASK_REGRESSION, .format = "csv"};
    const int64_t memory = INT64_C(1) << 30;
#define WHY(field, value, words, asked_too)                                                \
    do {                                                                                   \
        fit = (mercer_fit_options){0};                                                     \
        mercer_dataset_info info = table;                                                  \
        assert_null(mrc_fit_search_skipped(&fit, &info, memory));                          \
        (field) = (value);                                                                 \
        const char *why = mrc_fit_search_skipped(&fit, &info, memory);                     \
        assert_non_null(why);                                                              \
        assert_that(mentions(why, words), "%s", why);                                      \
        if (fit.search.tune == MERCER_AUTO) fit.search.tune = MERCER_ON;                   \
        assert_true((mrc_fit_search_skipped(&fit, &info, memory) == NULL) == (asked_too)); \
    } while (0)
    WHY(fit.kernel.function, &kernel, "kernel.function", false);
    WHY(fit.data.augment, "flip", "augmented", false);
    WHY(fit.data.samples, 1, "augmented", false);
    WHY(fit.run.model, (mercer_model *)&fit, "model", false);
    WHY(fit.search.tune, MERCER_OFF, "off", false);
    WHY(info.task, MERCER_TASK_UNLABELED, "targets", false);
    WHY(info.features, 1025, "features", true);
    WHY(info.dtype, MERCER_U8, "bytes", true);
    WHY(info.dtype, MERCER_F16, "f16", true);
    WHY(info.format, "synthetic", "synthetic", true);
    WHY(info.format, "libsvm", "sparse", true);
    WHY(info.format, NULL, "sizes", true);
    WHY(info.format, "sizes", "sizes", true);
    WHY(info.rows, memory / 4096 / 4 + 1, "memory", true);
#undef WHY
    for (int sides = 0; sides < 4; sides++) { /* an image has a height and a width */
        mercer_dataset_info info = table;
        fit = (mercer_fit_options){0};
        info.height = sides & 1, info.width = sides >> 1;
        const char *why = mrc_fit_search_skipped(&fit, &info, memory);
        assert_true((why != NULL) == (sides == 3));
        if (why) assert_true(mentions(why, "images"));
    }
    for (int i = 0; i < 6; i++) { /* few features are a table, whatever their type */
        mercer_dataset_info info = table;
        fit = (mercer_fit_options){0};
        info.features = i % 2 ? 64 : 63;
        if (i < 4) info.dtype = i < 2 ? MERCER_U8 : MERCER_F16;
        if (i >= 4) info.format = "libsvm";
        assert_true((mrc_fit_search_skipped(&fit, &info, memory) == NULL) == (i % 2 == 0));
    }
    const mercer_matrix metric = {0};
    fit = (mercer_fit_options){.centers = {.count = 100},
                               .data = {.preprocess = "rank"},
                               .kernel = {.spec = "laplace", .metric = &metric, .bandwidth = 2}};
    assert_null(mrc_fit_search_skipped(&fit, &table, memory));
    fit = (mercer_fit_options){.kernel = {.spec = "laplace:bandwidth=2"}};
    assert_null(mrc_fit_search_skipped(&fit, &table, memory));
}

/* The decision is in the report and in the plan text. Few rows and unsupported kernels are not searched. */
static void test_decisions(void **state)
{
    (void)state;
    static const struct {
        int64_t rows;
        const char *kernel, *skipped, *warns;
        double bandwidth;
        mercer_switch tune;
    } cases[] = {{ROWS, NULL, NULL, NULL, 0, MERCER_AUTO},
                 {ROWS, NULL, NULL, NULL, 0, MERCER_ON},
                 {ROWS, "gaussian", NULL, "kernel.spec", 0, MERCER_AUTO},
                 {ROWS, NULL, NULL, "kernel.bandwidth", 2, MERCER_AUTO},
                 {ROWS, "gaussian:bandwidth=2", NULL, "kernel.spec", 0, MERCER_ON},
                 {ROWS, NULL, "tune*off", "search.tune", 0, MERCER_OFF},
                 {ROWS, "polynomial:degree=2", "no metric", "kernel.spec", 0, MERCER_AUTO},
                 {ROWS, "lpq:p=1.5,q=1", "no metric", "kernel.spec", 0, MERCER_AUTO},
                 {49, NULL, "fewer than 50", NULL, 0, MERCER_AUTO},
                 {49, NULL, "fewer than 50", "search.tune", 0, MERCER_ON},
                 {50, NULL, NULL, NULL, 0, MERCER_AUTO}};
    plant();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_train_options train;
        mercer_fit_options options = quick(&train);
        const char *field = "", *skipped = cases[i].skipped;
        options.kernel.spec = cases[i].kernel, options.kernel.bandwidth = cases[i].bandwidth,
        options.search.tune = cases[i].tune;
        mercer_dataset *data = open_rows(context, cases[i].rows, D, NULL, 0);
        mercer_clear_warnings(context);
        const prepared *made = prepare(data, &options);
        const char *warning = mercer_warning(context, 0, &field);
        assert_that((warning != NULL) == (cases[i].warns != NULL), "case %zu: %s", i, warning ? warning : "silent");
        if (warning) assert_string_equal(field, cases[i].warns);
        assert_true((made->search.skipped != NULL) == (skipped != NULL));
        assert_true((made->search.steps != NULL) == (skipped == NULL));
        if (skipped) assert_that(mentions(made->search.skipped, skipped), "%s", made->search.skipped);
        assert_true(mentions(made->plan.text, skipped ? "search: none, " : "search: effort 1, "));
        assert_true(made->plan.lambda > 0 && made->search.ridge > 0);
        mercer_fitting_free(made->fitting);
        mercer_dataset_free(data);
    }
}

/* A fit that only chooses centers needs no search unless it is requested. */
static void test_centers_only(void **state)
{
    (void)state;
    plant();
    for (int asked = 0; asked < 2; asked++) {
        mercer_train_options train;
        mercer_fit_options options = quick(&train);
        mercer_fit_report report = MERCER_INIT(mercer_fit_report);
        mercer_search_report search = MERCER_INIT(mercer_search_report);
        mercer_fitting *fitting = NULL;
        mercer_matrix centers;
        mercer_dataset *data = open_rows(context, ROWS, D, NULL, 0);
        options.centers.count = 20, options.search.tune = asked ? MERCER_ON : MERCER_AUTO;
        report.search = &search;
        assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
        assert_succeeds(context, mercer_fitting_centers(fitting, &centers));
        assert_succeeds(context, mercer_fitting_query(fitting, &report));
        assert_true(centers.rows == 20 && (search.steps != NULL) == asked);
        mercer_fitting_free(fitting);
        mercer_dataset_free(data);
    }
}

static void test_rejected_arguments(void **state)
{
    (void)state;
    mercer_train_options train;
    mercer_fit_options options = quick(&train);
    static const int efforts[] = {-1, 6};
    static const double budgets[] = {-1, (double)NAN, (double)INFINITY};
    for (int i = 0; i < 2; i++) {
        options = quick(&train), options.search.effort = efforts[i];
        assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "effort is ");
    }
    for (int i = 0; i < 3; i++) {
        options = quick(&train), options.search.budget = budgets[i];
        assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "budget is ");
    }
    mercer_kernel kernel;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=3"));
    options = quick(&train), options.search.tune = MERCER_ON, options.kernel.function = &kernel;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "kernel.function");
    options.search.tune = MERCER_AUTO;
    assert_succeeds(context, mercer_fit_check(context, &options));
}

/* ---- The result -------------------------------------------------------------------------------------------------- */

static mercer_model *fit(mercer_context *by, mercer_dataset *data, const mercer_fit_options *options,
                         mercer_fit_report *report)
{
    mercer_model *model = NULL;
    assert_succeeds(by, mercer_fit(&model, by, data, options, report));
    return model;
}

/* Return the mean squared error on new rows; the variance of the true function is about 0.8. */
static double error_of(mercer_model *model)
{
    double f[NEW], sum = 0;
    mercer_matrix X = matrix_of(x_new, NEW, D), F = matrix_of(f, NEW, 1);
    assert_succeeds(context, mercer_model_predict(model, &F, &X));
    for (int i = 0; i < NEW; i++) sum += pow(f[i] - 5 - truth(x_new[i]), 2) / NEW;
    return sum;
}

/* Two of four features are noise: a search gives a much smaller error than the defaults. Kernel, ridge and sizes of
   the model are those in the report. */
static void test_search(void **state)
{
    (void)state;
    mercer_train_options train;
    mercer_fit_options options = quick(&train);
    mercer_search_report report = MERCER_INIT(mercer_search_report);
    char text[MERCER_KERNEL_TEXT];
    plant();
    mercer_dataset *data = open_rows(context, ROWS, D, NULL, 0);
    mercer_model *model = fit(context, data, &options, NULL);
    double found = error_of(model);
    mercer_model_free(model);
    options.search.tune = MERCER_OFF;
    model = fit(context, data, &options, NULL);
    double plain = error_of(model);
    mercer_model_free(model);
    assert_that(found < 0.6 * plain, "error %g with a search, %g without", found, plain);

    options.search.tune = MERCER_AUTO;
    const prepared *made = prepare(data, &options);
    report = made->search;
    assert_true(report.error > 0 && report.error < 1 && made->report.effort == 1 && !report.cut);
    assert_true(report.rows == ROWS && report.held_out == ROWS);      /* cross-validated */
    assert_true(report.centers[0] == 0 && report.centers[2] == ROWS); /* by fits to all rows */
    for (int64_t i = 0; i < report.steps->rows; i++)
        assert_true(mrc_load(report.steps, i, 0) >= 1 && mrc_load(report.steps, i, 1) > 0);
    assert_that(fabs(made->plan.lambda - report.ridge * ROWS) < 1e-12 * made->plan.lambda, "lambda %g",
                made->plan.lambda);
    assert_succeeds(context,
                    mercer_kernel_print(context, text, sizeof text, NULL, model_info(made->parts.model).kernel));
    assert_string_equal(text, made->report.kernel);
    assert_int_equal(model_info(made->parts.model).size, ROWS); /* every row is a center */
    mercer_fitting_free(made->fitting);
    mercer_dataset_free(data);
}

/* Each of kernel, preprocessing, ridge, metric and bandwidth is left unchanged if it is given; the others are
   searched. */
static void test_given(void **state)
{
    (void)state;
    double w[D] = {1, 0.5, 0, 0};
    const mercer_matrix metric = matrix_of(w, 1, D);
    plant();
    mercer_dataset *data = open_rows(context, ROWS, D, NULL, 0);
    for (int which = 0; which < 7; which++) {
        mercer_train_options train;
        mercer_fit_options options = quick(&train);
        if (which == 0) options.kernel.spec = "matern52";
        if (which == 1) options.data.preprocess = "minmax";
        if (which == 2) train.lambda = 0.03;
        if (which == 3) options.kernel.metric = &metric, options.data.preprocess = "standardize";
        if (which == 4) train.lambda = -1; /* no ridge */
        if (which == 5) options.kernel.bandwidth = 3;
        if (which == 6) options.kernel.spec = "laplace-l1:bandwidth=3";
        const prepared *made = prepare(data, &options);
        const mercer_preprocess *applied = model_info(made->parts.model).preprocess;
        mercer_matrix found = preprocess_info(applied).metric;
        assert_non_null(made->search.steps);
        assert_true((strncmp(made->report.kernel, "matern52:", 9) == 0) == (which == 0));
        assert_true((model_info(made->parts.model).kernel->bandwidth == 3) == (which >= 5));
        assert_string_equal(made->report.preprocess, which == 1 ? "minmax" : which == 3 ? "standardize" : "blend");
        assert_true(which == 2   ? made->plan.lambda == 0.03
                    : which == 4 ? made->plan.lambda == 0
                                 : made->plan.lambda > 0);
        if (which == 3)
            for (int k = 0; k < D; k++) assert_true(mrc_load(&found, 0, k) == sqrt(w[k]));
        assert_true(which != 3 || found.rows == 1);
        mercer_fitting_free(made->fitting);
    }
    mercer_dataset_free(data);
}

/* The search does not use validation rows: changing their targets has no effect. */
static void test_validation_is_not_seen(void **state)
{
    (void)state;
    static double false_y[NEW];
    double errors[2];
    plant();
    for (int run = 0; run < 2; run++) {
        mercer_train_options train;
        mercer_fit_options options = quick(&train);
        mercer_matrix x = matrix_of(x_new, NEW, D), y = matrix_of(false_y, NEW, 1);
        mercer_dataset_arrays held = {.struct_size = sizeof held, .X = &x, .Y = &y};
        mercer_dataset *data = open_rows(context, ROWS, D, NULL, 0), *validation = NULL;
        for (int i = 0; i < NEW; i++) false_y[i] = run * 1e3 * normal(6, i);
        assert_succeeds(context, mercer_dataset_from_arrays(&validation, context, &held));
        options.validation.data = validation;
        const prepared *made = prepare(data, &options);
        errors[run] = made->search.error;
        mercer_fitting_free(made->fitting);
        mercer_dataset_free(data), mercer_dataset_free(validation);
    }
    assert_true(errors[0] == errors[1]);
}

/* ---- Effort and budget ------------------------------------------------------------------------------------------- */

/* The effort sets the number of centers, with and without a search. */
static void test_efforts(void **state)
{
    (void)state;
    static const int64_t searched[] = {6000, 3000, 4500, 6000, 10000, 8000},
                         plain[] = {10000, 2500, 5000, 10000, 20000, 40000};
    static const mercer_dataset_info info = {.struct_size = sizeof info,
                                             .rows = 1000000,
                                             .features = 10,
                                             .outputs = 1,
                                             .dtype = MERCER_F32,
                                             .task = MERCER_TASK_REGRESSION,
                                             .format = "csv"};
    for (int tune = 0; tune < 2; tune++)
        for (int effort = 0; effort <= 5; effort++) {
            static mercer_plan plan;
            mercer_train_options train;
            mercer_fit_options options = quick(&train);
            mercer_fit_report report = MERCER_INIT(mercer_fit_report);
            plan = (mercer_plan){.struct_size = sizeof plan};
            options.search.effort = effort, options.search.tune = tune ? MERCER_AUTO : MERCER_OFF,
            options.run.memory = INT64_C(1) << 38;
            assert_succeeds(context, mercer_fit_plan(context, &plan, &info, &options, &report));
            assert_int_equal(report.centers, tune ? searched[effort] : plain[effort]);
            assert_int_equal(report.effort, effort > 0 ? effort : 3);
            assert_int_equal(report.members, tune && effort >= 4 ? 3 : 1);
            assert_true((mentions(plan.text, "\nsize: *3 models")) == (tune && effort >= 4));
        }
}

static size_t save(mercer_model *model, unsigned char *bytes, size_t capacity)
{
    const char *path = in_folder("model.safetensors");
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, capacity, file);
    fclose(file);
    assert_in_range(size, 1000, capacity - 1);
    return size;
}

static unsigned char first_bytes[1 << 17], other_bytes[1 << 17];
static size_t first_size;

static void assert_same_model(mercer_model *model)
{
    size_t size = save(model, other_bytes, sizeof other_bytes);
    assert_int_equal(size, first_size);
    assert_memory_equal(other_bytes, first_bytes, size);
}

/* A sufficient budget selects the largest effort, or the given one, and changes no byte of the model. */
static void test_large_budget(void **state)
{
    (void)state;
    plant();
    mercer_dataset *data = open_rows(context, ROWS, D, NULL, 0);
    for (int effort = 0; effort <= 2; effort += 2)
        for (int budget = 0; budget < 2; budget++) {
            mercer_train_options train;
            mercer_fit_options options = quick(&train);
            mercer_fit_report report = MERCER_INIT(mercer_fit_report);
            mercer_search_report search = MERCER_INIT(mercer_search_report);
            options.search.effort = effort == 0 && !budget ? 5 : effort, options.search.budget = budget ? 1e6 : 0;
            report.search = &search;
            mercer_clear_warnings(context);
            mercer_model *model = fit(context, data, &options, &report);
            assert_int_equal(report.effort, effort > 0 ? effort : 5);
            assert_false(search.cut);
            const char *field = "";
            for (int i = 0; mercer_warning(context, i, &field); i++) assert_string_not_equal(field, "search.budget");
            if (budget)
                assert_same_model(model);
            else
                first_size = save(model, first_bytes, sizeof first_bytes);
            mercer_model_free(model);
        }
    mercer_dataset_free(data);
}

/* A budget that is too small is reported. Effort 1 starts, ends by the deadline and produces a model. */
static void test_small_budget(void **state)
{
    (void)state;
    mercer_train_options train;
    mercer_fit_options options = quick(&train);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_search_report search = MERCER_INIT(mercer_search_report);
    const char *field = "";
    plant();
    mercer_dataset *data = open_rows(context, ROWS, D, NULL, 0);
    options.search.budget = 1e-6, options.search.effort = 0;
    report.search = &search;
    mercer_clear_warnings(context);
    mercer_model *model = fit(context, data, &options, &report);
    const char *warning = mercer_warning(context, 0, &field);
    assert_true(warning && mentions(warning, "effort 1"));
    assert_string_equal(field, "search.budget");
    assert_true(report.effort == 1 && search.cut && search.error > 0);
    assert_that(error_of(model) < 0.5, "error %g", error_of(model));
    mercer_model_free(model);
    mercer_dataset_free(data);
}

/* ---- Checkpoints ------------------------------------------------------------------------------------------------- */

/* stage in which to stop; stop_at: number of the progress call in this stage that stops the fit, 0: never */
static const char *stop_stage;
static int stop_at, seen;

static int watch(void *user, const mercer_progress *progress)
{
    (void)user;
    assert_true(progress->done >= 0 && progress->done <= progress->total);
    return stop_at > 0 && strcmp(progress->stage, stop_stage) == 0 && ++seen == stop_at;
}

typedef struct checkpointed {
    const char *from, *to, *kernel, *method;
    uint64_t seed;
    int effort;
    mercer_switch tune;
} checkpointed;

/* Fit with checkpoints `with`. If out is NULL, only prepare the fitting, without a model. */
static mercer_status fit_from(checkpointed with, mercer_model **out)
{
    mercer_train_options train;
    mercer_fit_options options = quick(&train);
    mercer_dataset *data = open_rows(context, ROWS / 2, D, NULL, 0);
    options.run.checkpoint = with.from, train.checkpoint = with.to, train.checkpoint_seconds = 1e9;
    options.kernel.spec = with.kernel, options.run.seed = with.seed,
    options.search.effort = with.effort > 0 ? with.effort : 1;
    options.centers.count = 30, options.centers.method = with.method, options.search.tune = with.tune;
    options.run.progress = watch, seen = 0;
    mercer_status status = MERCER_OK;
    if (out)
        status = mercer_fit(out, context, data, &options, NULL);
    else
        mercer_fitting_free(prepare(data, &options)->fitting);
    mercer_dataset_free(data);
    return status;
}

/* A search that is stopped after any step and resumed gives the same bytes. */
static void test_resumed(void **state)
{
    (void)state;
    mercer_model *model = NULL;
    char path[256];
    plant();
    snprintf(path, sizeof path, "%s", in_folder("search.checkpoint"));
    stop_stage = "search", stop_at = 1000;
    assert_succeeds(context, fit_from((checkpointed){0}, &model));
    int steps = seen;
    assert_true(steps >= 24); /* at least 8 in each stage */
    first_size = save(model, first_bytes, sizeof first_bytes);
    mercer_model_free(model), model = NULL;
    for (int stop = 1; stop < steps; stop++) {
        stop_at = stop;
        assert_fails(context, fit_from((checkpointed){.to = path}, &model), MERCER_ERROR_CALLBACK, "search");
        assert_null(model);
        if (stop % 5 == 0) { /* stop the resumed fit, too */
            stop_at = 1;
            assert_int_equal(fit_from((checkpointed){.from = path, .to = path}, &model), MERCER_ERROR_CALLBACK);
        }
        stop_at = 1000;
        assert_succeeds(context, fit_from((checkpointed){.from = path, .to = path, .effort = 2}, &model));
        assert_int_equal(seen, steps - stop - (stop % 5 == 0)); /* no step is repeated; effort as in the checkpoint */
        assert_same_model(model);
        mercer_model_free(model), model = NULL;
    }
}

/* A fit that stopped after the search, before training, does not search again when it is resumed. */
static void test_resumed_after_search(void **state)
{
    (void)state;
    mercer_model *model = NULL;
    char path[256];
    plant();
    snprintf(path, sizeof path, "%s", in_folder("search.checkpoint"));
    stop_at = 0;
    assert_succeeds(context, fit_from((checkpointed){.method = "kmeans"}, &model));
    first_size = save(model, first_bytes, sizeof first_bytes);
    mercer_model_free(model), model = NULL;
    assert_succeeds(context, fit_from((checkpointed){.to = path, .method = "kmeans"}, NULL));
    stop_stage = "search", stop_at = 1;
    assert_succeeds(context, fit_from((checkpointed){.from = path, .method = "kmeans"}, &model));
    assert_int_equal(seen, 0);
    assert_same_model(model);
    mercer_model_free(model);
}

/* Copy the file `from` to `to`, with one value of a tensor changed, or without the tensor (column -1). */
static void change(const char *from, const char *to, const char *name, int64_t row, int64_t column, double value)
{
    static const char *const names[] = {"search.memory", "search.stages", "search.sizes"};
    mrc_tensor tensors[3];
    mrc_tensor_file *file;
    int count = 0;
    static double numbers[1 << 14];
    assert_succeeds(context, mrc_tensor_file_open(&file, context, from));
    const char *text = mrc_tensor_file_metadata(file, "search");
    assert_non_null(text);
    for (int i = 0; i < 3; i++) {
        mercer_matrix found;
        bool changed = strcmp(names[i], name) == 0;
        assert_true(mrc_tensor_file_find(file, names[i], &found));
        if (changed && column < 0) continue;
        if (changed) {
            assert_true(found.rows * found.cols <= (int64_t)(sizeof numbers / sizeof *numbers));
            memcpy(numbers, found.data, (size_t)(found.rows * found.cols) * sizeof *numbers);
            found.data = numbers;
            mrc_store(&found, row, column, value);
        }
        tensors[count++] = (mrc_tensor){.name = names[i], .value = found};
    }
    const mrc_metadata metadata[] = {{"search", text}};
    assert_succeeds(context, mrc_tensor_file_write(context, to, tensors, count, metadata, 1));
    mrc_tensor_file_close(file);
}

/* Checkpoints that were written with other options, or contain values that no search writes, are refused. */
static void test_refused_checkpoints(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t row, column;
        double value;
    } lies[] = {{"search.sizes", 0, 0, 0},    {"search.sizes", 0, 0, 6},    {"search.sizes", 0, 0, 1.5},
                {"search.sizes", 0, 1, -1},   {"search.sizes", 0, 1, 1e9},  {"search.stages", 1, 0, -1},
                {"search.stages", 1, 0, 2.5}, {"search.stages", 1, 0, 1e9}, {"search.stages", 0, 1, 2},
                {"search.stages", 0, 1, NAN}, {"search.stages", 0, 2, -1},  {"search.stages", 0, -1, 0},
                {"search.sizes", 0, -1, 0}};
    static const checkpointed others[] = {{.seed = 2}, {.kernel = "gaussian"}, {.tune = MERCER_OFF}};
    mercer_model *model = NULL;
    char path[256], other[256];
    plant();
    snprintf(path, sizeof path, "%s", in_folder("search.checkpoint"));
    snprintf(other, sizeof other, "%s", in_folder("other.checkpoint"));
    stop_stage = "search", stop_at = 5;
    assert_fails(context, fit_from((checkpointed){.to = path}, &model), MERCER_ERROR_CALLBACK, "search");
    stop_at = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        checkpointed with = others[i];
        with.from = path;
        assert_fails(context, fit_from(with, &model), MERCER_ERROR_MISMATCH, "search.checkpoint");
    }
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        change(path, other, lies[i].name, lies[i].row, lies[i].column, lies[i].value);
        assert_fails(context, fit_from((checkpointed){.from = other}, &model), MERCER_ERROR_FORMAT, "search");
    }
    change(path, other, "search.memory", 0, 3, (double)NAN);
    assert_fails(context, fit_from((checkpointed){.from = other}, &model), MERCER_ERROR_DATA, "search.memory");
    assert_null(model);
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static void test_threads(void **state)
{
    (void)state;
    plant();
    for (int threads = 1; threads <= 2; threads++) {
        mercer_context *own = NULL;
        mercer_context_options settings = MERCER_INIT(mercer_context_options);
        mercer_train_options train;
        mercer_fit_options options = quick(&train);
        settings.threads = threads;
        assert_succeeds(NULL, mercer_context_create(&own, &settings));
        mercer_dataset *data = open_rows(own, ROWS, D, NULL, 2);
        options.search.effort = 2, options.validation.calibrate = MERCER_ON;
        mercer_model *model = fit(own, data, &options, NULL);
        if (threads == 1)
            first_size = save(model, first_bytes, sizeof first_bytes);
        else
            assert_same_model(model);
        mercer_model_free(model);
        mercer_dataset_free(data);
        mercer_context_free(own);
    }
}

/* ---- Odd tables -------------------------------------------------------------------------------------------------- */

/* Fit a table: the result must be a model with finite predictions, or an error with a message. Return the status. */
static mercer_status try_table(const char *name, int64_t rows, int64_t d, const double *groups, int classes)
{
    static double f[ROWS * 2];
    mercer_train_options train;
    mercer_fit_options options = quick(&train);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_search_report search = MERCER_INIT(mercer_search_report);
    mercer_model *model = NULL;
    mercer_dataset *data = open_rows(context, rows, d, groups, classes);
    report.search = &search;
    mercer_status status = mercer_fit(&model, context, data, &options, &report);
    mercer_matrix X = matrix_of(x_all, rows, d), F = matrix_of(f, rows, classes > 0 ? classes : 1);
    if (status == MERCER_OK) {
        assert_succeeds(context, mercer_model_predict(model, &F, &X));
        for (int64_t i = 0; i < rows * F.cols; i++)
            assert_that(isfinite(f[i]), "%s: prediction %d is %g", name, (int)i, f[i]);
        assert_that(search.skipped || (isfinite(search.error) && search.ridge > 0), "%s", name);
    } else {
        assert_null(model);
        assert_that(strlen(mercer_last_error(context)) > 20, "%s: '%s'", name, mercer_last_error(context));
    }
    mercer_model_free(model);
    mercer_dataset_free(data);
    return status;
}

static void test_odd_features(void **state)
{
    (void)state;
    plant();
    for (int i = 0; i < ROWS; i++) x_all[i * D + 1] = 7, x_all[i * D + 3] = 0;
    assert_int_equal(try_table("constant columns", ROWS, D, NULL, 0), MERCER_OK);
    for (int i = 0; i < ROWS * D; i++) x_all[i] = 3;
    assert_int_equal(try_table("identical rows", ROWS, D, NULL, 0), MERCER_OK);
    for (int i = 0; i < ROWS; i++) x_all[i * D] = i % 2;
    assert_int_equal(try_table("two different rows", ROWS, D, NULL, 0), MERCER_OK);
    plant();
    for (int i = 0; i < ROWS * D; i++) x_all[i] = x_all[i] > 0;
    assert_int_equal(try_table("binary features", ROWS, D, NULL, 0), MERCER_OK);
    plant();
    for (int i = 0; i < ROWS; i++) x_all[i * D + 2] = exp(60 * normal(3, i));
    assert_int_equal(try_table("long tails", ROWS, D, NULL, 0), MERCER_OK);
    for (int i = 0; i < ROWS * MOST_D; i++) x_all[i] = normal(4, i);
    assert_int_equal(try_table("more features than rows", 60, MOST_D, NULL, 0), MERCER_OK);
    assert_int_equal(try_table("one feature", ROWS, 1, NULL, 0), MERCER_OK);
}

static void test_odd_targets(void **state)
{
    (void)state;
    plant();
    for (int i = 0; i < ROWS; i++) y_all[i] = 2.5;
    assert_int_equal(try_table("constant targets", ROWS, D, NULL, 0), MERCER_OK);
    for (int i = 0; i < ROWS; i++) y_all[i] = i == 0 ? 1e6 : 0;
    assert_int_equal(try_table("one outlier", ROWS, D, NULL, 0), MERCER_OK);
    for (int i = 0; i < ROWS; i++) y_all[i] = 1e100 * normal(5, i);
    assert_int_equal(try_table("large targets", ROWS, D, NULL, 0), MERCER_OK);
    for (int i = 0; i < ROWS; i++) labels_all[i] = 0;
    assert_int_equal(try_table("one class of two", ROWS, D, NULL, 2), MERCER_OK);
    labels_all[7] = 1;
    assert_int_equal(try_table("class", ROWS, D, NULL, 2), MERCER_OK);
}

/* Groups that are hard to split: a class in only one group, a group with nearly all rows, in any order. */
static void test_odd_groups(void **state)
{
    (void)state;
    static double groups[ROWS];
    plant();
    for (int i = 0; i < ROWS; i++) groups[i] = i % 60, labels_all[i] = i % 60 == 0;
    assert_int_equal(try_table("class*group", ROWS, D, groups, 2), MERCER_ERROR_DATA);
    assert_true(mentions(mercer_last_error(context), "training rows"));
    for (int large = 0; large < 60; large += 7) {
        for (int i = 0; i < ROWS; i++) groups[i] = i < 60 ? i : large;
        assert_int_equal(try_table("a large group", ROWS, D, groups, 0), MERCER_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_centers_only),
        cmocka_unit_test(test_rejected_arguments),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_validation_is_not_seen),
        cmocka_unit_test(test_efforts),
        cmocka_unit_test(test_large_budget),
        cmocka_unit_test(test_small_budget),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_resumed_after_search),
        cmocka_unit_test(test_refused_checkpoints),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_odd_features),
        cmocka_unit_test(test_odd_targets),
        cmocka_unit_test(test_odd_groups),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fits that were silently wrong in 0.2: equal rows and groups in every split, the ridge of fits without a search and of
 * models that are trained further, the loss of krr in float, transforms of targets in the search, probabilities with
 * class weights.
 */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "data/equal_rows.h"
#include "fit/fitting.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"

#include <math.h>
#include <string.h>

enum { N = 600, D = 3, TEST = 400 };

static float X[N][D], Xt[TEST][D];
static double Y[N], Yt[TEST];

static double truth(const float *x)
{
    return sin((double)x[0]) + (double)x[1] - 0.5 * (double)x[2];
}

static int open_tests(void **state)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) X[i][j] = (float)mrc_random_normal((mrc_rng){1, 0}, (uint64_t)(i * D + j));
        Y[i] = truth(X[i]) + 0.5 * mrc_random_normal((mrc_rng){1, 1}, (uint64_t)i);
    }
    for (int i = 0; i < TEST; i++) {
        for (int j = 0; j < D; j++) Xt[i][j] = (float)mrc_random_normal((mrc_rng){1, 2}, (uint64_t)(i * D + j));
        Yt[i] = truth(Xt[i]);
    }
    return open_datasets(state);
}

typedef struct arrays {
    mercer_matrix x, y;
    mercer_dataset_arrays of;
} arrays;

/* Describes X and y in self->of. The caller may set further fields of self->of before opening the dataset. */
static void describe(arrays *self, void *x, double *y, int64_t n)
{
    self->x = mercer_matrix_view(x, n, D, MERCER_F32), self->y = mercer_matrix_view(y, n, 1, MERCER_F64);
    self->of = (mercer_dataset_arrays)MERCER_INIT(mercer_dataset_arrays);
    self->of.X = &self->x, self->of.Y = &self->y;
}

static mercer_dataset *open_arrays(const arrays *self)
{
    mercer_dataset *out = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&out, context, &self->of));
    return out;
}

static mercer_dataset *make_dataset(arrays *self, void *x, double *y, int64_t n)
{
    describe(self, x, y, n);
    return open_arrays(self);
}

static mercer_fit_options options_for(mercer_train_options *train)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    *train = (mercer_train_options)MERCER_INIT(mercer_train_options);
    options.train = train, options.run.memory = INT64_C(1) << 30, options.search.effort = 1;
    return options;
}

/* Returns the fraction of the variance of y that the model does not predict. */
static double error_on(mercer_model *model, void *x, const double *y, int64_t n)
{
    static double f[N];
    mercer_matrix F = mercer_matrix_view(f, n, 1, MERCER_F64), rows = mercer_matrix_view(x, n, D, MERCER_F32);
    double mean = 0, error = 0, spread = 0;
    assert_succeeds(context, mercer_model_predict(model, &F, &rows));
    for (int64_t i = 0; i < n; i++) mean += y[i] / (double)n;
    for (int64_t i = 0; i < n; i++) error += (f[i] - y[i]) * (f[i] - y[i]), spread += (y[i] - mean) * (y[i] - mean);
    return error / spread;
}

/* Fits a model and returns its error on the test rows. */
static double fit_error(mercer_dataset *data, const mercer_fit_options *options)
{
    mercer_model *model = NULL;
    assert_succeeds(context, mercer_fit(&model, context, data, options, NULL));
    double error = error_on(model, Xt, Yt, TEST);
    mercer_model_free(model);
    return error;
}

/* ---- Groups, times and repeated rows --------------------------------------------------------------------------- */

static void test_equal_rows(void **state)
{
    (void)state;
    float x[6][D] = {{1, 2, 3}, {0, 0, 1}, {1, 2, 3}, {-0.0f, 0, 1}, {1, 2, 4}, {1, 2, 3}};
    double y[6] = {1, 2, 1, 2, 5, 7}, groups[6] = {4, 4, 3, 3, 4, 3};
    const int64_t by_features[6] = {0, 1, 0, 1, 2, 0}, with_targets[6] = {0, 1, 0, 1, 2, 3};
    const int64_t by_group[6] = {0, 0, 1, 1, 0, 1}, some[3] = {5, 4, 0};
    double weights[6];
    int64_t id[6], count, order[6];
    arrays of;
    mercer_dataset *data = make_dataset(&of, x, y, 6);
    assert_succeeds(context, mrc_equal_rows(data, NULL, 6, false, id, &count));
    assert_int_equal(count, 3), assert_memory_equal(id, by_features, sizeof id);
    assert_succeeds(context, mrc_equal_rows(data, NULL, 6, true, id, &count));
    assert_int_equal(count, 4), assert_memory_equal(id, with_targets, sizeof id);
    assert_succeeds(context, mrc_row_units(data, some, 3, id, &count));
    assert_int_equal(count, 2), assert_true(id[0] == 0 && id[1] == 1 && id[2] == 0);
    assert_succeeds(context, mrc_merge_rows(data, order, weights, &count));
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++)
        assert_true(weights[i] == (order[i] < 2 ? 2 : 1)); /* rows 0, 1, 4 and 5 are the first */
    mercer_dataset_free(data);
    describe(&of, x, y, 6);
    of.of.groups = groups;
    data = open_arrays(&of);
    assert_succeeds(context, mrc_row_units(data, NULL, 6, id, &count));
    assert_int_equal(count, 2), assert_memory_equal(id, by_group, sizeof id);
    mercer_dataset_free(data);
}

/* Equal rows are merged into one with their total weight, which gives the same model as explicit weights. */
static void test_repeated_rows(void **state)
{
    (void)state;
    enum { TIMES = 6000, ROWS = 200 }; /* more than a million rows take little more time than 200 */
    static float x[TIMES * ROWS][D];
    static double y[TIMES * ROWS], weights[ROWS];
    mercer_train_options train;
    arrays of;
    for (int i = 0; i < TIMES * ROWS; i++) memcpy(x[i], X[i / TIMES], sizeof x[i]), y[i] = Y[i / TIMES];
    for (int i = 0; i < ROWS; i++) weights[i] = TIMES;
    mercer_fit_options options = options_for(&train);
    mercer_dataset *repeated = make_dataset(&of, x, y, TIMES * ROWS);
    double error = fit_error(repeated, &options);
    mercer_dataset_free(repeated);
    describe(&of, X, Y, ROWS);
    of.of.weights = weights;
    mercer_dataset *weighted = open_arrays(&of);
    assert_true(error == fit_error(weighted, &options));
    assert_that(error < 0.1, "%g", error);
    mercer_dataset_free(weighted);
}

/* Returns whether a group has rows in both datasets. */
static bool share_groups(const mercer_dataset *a, const mercer_dataset *b)
{
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = 0; k < b->rows; k++)
            if (a->keys[i] == b->keys[k]) return true;
    return false;
}

/* Rows held out for validation and for intervals are whole groups, or the latest rows. */
static void test_groups_and_times(void **state)
{
    (void)state;
    static double keys[N];
    for (int kind = 0; kind < 4; kind++) {
        bool times = kind & 1, intervals = kind & 2;
        arrays of;
        mercer_train_options train;
        mercer_fitting *fitting = NULL;
        mercer_fit_parts parts = MERCER_INIT(mercer_fit_parts);
        for (int i = 0; i < N; i++) keys[i] = times ? (double)((i * 7) % N) : (double)(i % 40);
        describe(&of, X, Y, N);
        if (times)
            of.of.times = keys;
        else
            of.of.groups = keys;
        mercer_dataset *data = open_arrays(&of);
        mercer_fit_options options = options_for(&train);
        options.search.tune = MERCER_OFF;
        if (intervals)
            options.validation.intervals = MERCER_ON;
        else
            options.validation.fraction = 0.2;
        assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
        assert_succeeds(context, mercer_fitting_parts(fitting, &parts));
        const mercer_dataset *held = parts.validation, *rest = parts.train;
        assert_non_null(held);
        assert_that(held->rows >= N / 10 && held->rows <= N / 4, "%lld rows", (long long)held->rows);
        assert_int_equal(held->rows + rest->rows, N);
        assert_false(share_groups(held, rest));
        for (int64_t i = 0; i < rest->rows && times; i++) assert_true(rest->keys[i] < N - held->rows);
        mercer_fitting_free(fitting);
        mercer_dataset_free(data);
    }
}

/* A row that is repeated at a later time is not held out: it has the time of its first occurrence. */
static void test_repeats_in_time(void **state)
{
    enum { TIMES = 3, ROWS = 100 };
    static float x[TIMES * ROWS][D];
    static double y[TIMES * ROWS], times[TIMES * ROWS];
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_fitting *fitting = NULL;
    mercer_fit_parts parts = MERCER_INIT(mercer_fit_parts);
    for (int i = 0; i < TIMES * ROWS; i++) {
        memcpy(x[i], X[i % ROWS], sizeof x[i]), y[i] = Y[i % ROWS];
        times[i] = i < ROWS ? 2 * i : 2 * (i * 7 % (TIMES * ROWS)) + 1;
    }
    describe(&of, x, y, TIMES * ROWS);
    of.of.times = times;
    mercer_dataset *data = open_arrays(&of);
    mercer_fit_options options = options_for(&train);
    options.search.tune = MERCER_OFF, options.validation.intervals = MERCER_ON;
    assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
    assert_succeeds(context, mercer_fitting_parts(fitting, &parts));
    const mercer_dataset *held = parts.validation, *rest = parts.train;
    assert_true(held && held->rows > 0);
    for (int64_t i = 0; i < held->rows; i++)
        for (int64_t k = 0; k < rest->rows; k++)
            assert_memory_not_equal(mrc_row(&held->x, i), mrc_row(&rest->x, k), D * sizeof(float));
    mercer_fitting_free(fitting);
    mercer_dataset_free(data);
}

/* Data with a single group or a single time cannot be split. */
static void test_one_group(void **state)
{
    (void)state;
    static double keys[N];
    for (int times = 0; times < 2; times++) {
        arrays of;
        mercer_train_options train;
        mercer_fitting *fitting = NULL;
        describe(&of, X, Y, N);
        if (times)
            of.of.times = keys;
        else
            of.of.groups = keys;
        mercer_dataset *data = open_arrays(&of);
        mercer_fit_options options = options_for(&train);
        options.validation.fraction = 0.2;
        assert_fails(context, mercer_fitting_open(&fitting, context, data, &options), MERCER_ERROR_DATA,
                     times ? "time" : "group");
        mercer_dataset_free(data);
    }
}

/* ---- The ridge --------------------------------------------------------------------------------------------------- */

/* Fits without a search, with a given kernel, a given bandwidth or few rows, do not interpolate noise. */
static void test_ridge(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        double bandwidth;
        mercer_switch tune;
        int64_t rows;
        const char *warns;
    } paths[] = {{NULL, 0, MERCER_AUTO, N, NULL},
                 {"gaussian", 0, MERCER_AUTO, N, "kernel.spec"},
                 {NULL, 2, MERCER_AUTO, N, "kernel.bandwidth"},
                 {"gaussian:bandwidth=2", 0, MERCER_AUTO, N, "kernel.spec"},
                 {NULL, 0, MERCER_OFF, N, "search.tune"},
                 {"gaussian", 0, MERCER_OFF, N, "search.tune"},
                 {NULL, 0, MERCER_AUTO, 200, NULL},
                 {"gaussian", 0, MERCER_AUTO, 200, "kernel.spec"}};
    for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
        arrays of;
        mercer_train_options train;
        const char *field = "";
        mercer_dataset *data = make_dataset(&of, X, Y, paths[k].rows);
        mercer_fit_options options = options_for(&train);
        options.kernel.spec = paths[k].kernel, options.kernel.bandwidth = paths[k].bandwidth,
        options.search.tune = paths[k].tune;
        mercer_clear_warnings(context);
        double error = fit_error(data, &options);
        assert_that(error < 0.12, "path %zu: %g", k, error); /* an interpolating model has an error of at least 0.2 */
        const char *warning = mercer_warning(context, 0, &field);
        assert_that((warning != NULL) == (paths[k].warns != NULL), "path %zu: %s", k, warning ? warning : "silent");
        if (warning) assert_string_equal(field, paths[k].warns);
        mercer_dataset_free(data);
    }
}

/* A ridge of -1 means no ridge; smaller values are refused. */
static void test_ridge_values(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_model *model = NULL;
    mercer_dataset *data = make_dataset(&of, X, Y, 100);
    mercer_report training = MERCER_INIT(mercer_report);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    report.training = &training;
    mercer_fit_options options = options_for(&train);
    train.lambda = -1;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, &report));
    assert_true(training.plan->lambda == 0);
    mercer_model_free(model), model = NULL;
    train.lambda = 0;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, &report));
    assert_true(training.plan->lambda > 0);
    mercer_model_free(model), model = NULL;
    train.lambda = -2;
    assert_fails(context, mercer_fit(&model, context, data, &options, NULL), MERCER_ERROR_ARGUMENT, "lambda");
    mercer_dataset_free(data);
}

/* A model that is trained further on the same data stays the same model: its ridge is unchanged. */
static void test_trained_further(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_model *model = NULL, *again = NULL;
    mercer_dataset *data = make_dataset(&of, X, Y, N);
    mercer_fit_options options = options_for(&train);
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    double before = error_on(model, Xt, Yt, TEST);
    options.run.model = model;
    assert_succeeds(context, mercer_fit(&again, context, data, &options, NULL));
    assert_true(before == error_on(again, Xt, Yt, TEST));
    mercer_model_free(model);
    mercer_dataset_free(data);
}

/* ---- krr --------------------------------------------------------------------------------------------------------- */

/* Equal rows have weights of both signs, which cancel in float sums. The reported loss is that of predictions,
   and is not larger than that of the best constant. */
static void test_loss_of_krr(void **state)
{
    (void)state;
    enum { ROWS = 400 };
    static float x[ROWS][D];
    static double y[ROWS];
    for (int i = 0; i < ROWS; i++) x[i][0] = (float)(i % 7), y[i] = i / 10. + .01;
    for (int k = 0; k < 2; k++) {
        arrays of;
        mercer_train_options train;
        mercer_model *model = NULL;
        mercer_report training = MERCER_INIT(mercer_report);
        mercer_fit_report report = MERCER_INIT(mercer_fit_report);
        mercer_dataset *data = make_dataset(&of, x, y, ROWS);
        mercer_fit_options options = options_for(&train);
        report.training = &training, options.search.tune = MERCER_OFF;
        if (k == 1) train.solver = "krr", train.lambda = 1e-6;
        assert_succeeds(context, mercer_fit(&model, context, data, &options, &report));
        double share = error_on(model, x, y, ROWS), variance = 133.33;
        assert_that(share < 1.01, "%g of the variance is left", share);
        assert_that(fabs(training.train_loss - share * variance) < 0.01 * variance, "loss %g, real %g",
                    training.train_loss, share * variance);
        mercer_model_free(model);
        mercer_dataset_free(data);
    }
}

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

/* The search uses the targets that training learns: the option of the log transform gives the same accuracy as targets
   that the test transforms. */
static void test_transform_in_search(void **state)
{
    (void)state;
    static double heavy[N];
    static float x[N][D];
    memcpy(x, X, sizeof x);
    for (int i = 0; i < N; i++) heavy[i] = exp(3 * Y[i]);
    arrays of;
    mercer_train_options train;
    mercer_model *model = NULL;
    mercer_dataset *data = make_dataset(&of, x, heavy, N), *plain;
    mercer_fit_options options = options_for(&train);
    options.data.target_transform = "log";
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    static double f[TEST];
    mercer_matrix F = mercer_matrix_view(f, TEST, 1, MERCER_F64), rows = mercer_matrix_view(Xt, TEST, D, MERCER_F32);
    assert_succeeds(context, mercer_model_predict(model, &F, &rows));
    double error = 0, spread = 0;
    for (int i = 0; i < TEST; i++) {
        double log_f = log(f[i]) / 3;
        error += (log_f - Yt[i]) * (log_f - Yt[i]), spread += Yt[i] * Yt[i];
    }
    mercer_model_free(model);
    mercer_dataset_free(data);
    plain = make_dataset(&of, x, Y, N);
    options.data.target_transform = NULL;
    double by_hand = fit_error(plain, &options);
    assert_that(error / spread < 1.02 * by_hand + 0.005, "%g, by hand %g", error / spread, by_hand);
    mercer_dataset_free(plain);
}

/* ---- Classes ----------------------------------------------------------------------------------------------------- */

/* Returns the mean probability of class 1 on the test rows. */
static double mean_probability(mercer_dataset *data, const mercer_fit_options *options)
{
    static double p[TEST][2];
    mercer_model *model = NULL;
    mercer_matrix P = mercer_matrix_view(p, TEST, 2, MERCER_F64), rows = mercer_matrix_view(Xt, TEST, D, MERCER_F32);
    assert_succeeds(context, mercer_fit(&model, context, data, options, NULL));
    assert_succeeds(context, mercer_model_probabilities(model, &P, &rows));
    double sum = 0;
    for (int i = 0; i < TEST; i++) sum += p[i][1] / TEST;
    mercer_model_free(model);
    return sum;
}

/* Class weights change decisions, but probabilities remain those of the data, unless weighted ones are requested. */
static void test_class_weights(void **state)
{
    (void)state;
    static int32_t classes[N];
    double share = 0;
    for (int i = 0; i < N; i++) classes[i] = Y[i] > 0.5, share += classes[i] / (double)N;
    arrays of;
    mercer_train_options train;
    describe(&of, X, Y, N);
    of.of.Y = NULL, of.of.labels = classes, of.of.classes = 2;
    mercer_dataset *data = open_arrays(&of);
    mercer_fit_options options = options_for(&train);
    options.validation.calibrate = MERCER_ON, options.data.class_weight = "1=20";
    double population = mean_probability(data, &options);
    assert_that(fabs(population - share) < 0.1, "%g, the data have %g", population, share);
    options.validation.calibrate_to = "weighted";
    double weighted = mean_probability(data, &options);
    assert_that(weighted > share + 0.15, "%g, the data have %g", weighted, share);
    options.validation.calibrate_to = "everybody";
    mercer_model *model = NULL;
    assert_fails(context, mercer_fit(&model, context, data, &options, NULL), MERCER_ERROR_ARGUMENT, "calibrate_to");
    mercer_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_rows),       cmocka_unit_test(test_repeated_rows),
        cmocka_unit_test(test_groups_and_times), cmocka_unit_test(test_repeats_in_time),
        cmocka_unit_test(test_one_group),        cmocka_unit_test(test_ridge),
        cmocka_unit_test(test_ridge_values),     cmocka_unit_test(test_trained_further),
        cmocka_unit_test(test_loss_of_krr),      cmocka_unit_test(test_transform_in_search),
        cmocka_unit_test(test_class_weights),
    };
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

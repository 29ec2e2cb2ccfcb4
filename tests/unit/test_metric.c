/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A metric in the kernel: given metrics against points that are transformed explicitly, refused ones, the model file;
 * learned metrics on problems with a known answer; gradients of models with a preprocessing.
 */
#include "support/datasets.h"

#include "support/fitted.h"
#include "support/info.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"

#include <float.h>
#include <math.h>

enum { N = 500, D = 5, CENTERS = 80 };

static double X[N][D], Y[N];

static int open_tests(void **state)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) X[i][j] = 3 + (j + 1) * mrc_random_normal((mrc_rng){21, 0}, (uint64_t)(i * D + j));
        Y[i] = sin(X[i][0] - 3) + 0.3 * (X[i][2] - 3);
    }
    return open_datasets(state);
}

static mercer_matrix matrix_of(void *values, int64_t rows, int64_t cols)
{
    return mercer_matrix_view(values, rows, cols, MERCER_F64);
}

typedef struct arrays {
    mercer_matrix x, y;
    mercer_dataset_arrays of;
} arrays;

static mercer_dataset *dataset(arrays *self, void *x, int64_t n, int64_t d, double *y)
{
    mercer_dataset *out = NULL;
    self->x = matrix_of(x, n, d), self->y = matrix_of(y, n, 1);
    self->of = (mercer_dataset_arrays)MERCER_INIT(mercer_dataset_arrays);
    self->of.X = &self->x, self->of.Y = &self->y;
    assert_succeeds(context, mercer_dataset_from_arrays(&out, context, &self->of));
    return out;
}

static mercer_fit_options options_for(mercer_train_options *train)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    *train = (mercer_train_options)MERCER_INIT(mercer_train_options);
    train->solver = "direct", train->lambda = 1e-3;
    options.train = train, options.centers.count = CENTERS, options.run.memory = INT64_C(1) << 30,
    options.search.tune = MERCER_OFF;
    return options;
}

/* ---- Given metrics ----------------------------------------------------------------------------------------------- */

/* Assert that two models agree on samples that differ by a linear map. */
static void assert_same_values(mercer_model *a, void *xa, int64_t da, mercer_model *b, void *xb, int64_t db)
{
    double fa[N], fb[N];
    mercer_matrix FA = matrix_of(fa, N, 1), FB = matrix_of(fb, N, 1), XA = matrix_of(xa, N, da),
                  XB = matrix_of(xb, N, db);
    assert_succeeds(context, mercer_model_predict(a, &FA, &XA));
    assert_succeeds(context, mercer_model_predict(b, &FB, &XB));
    for (int i = 0; i < N; i++) assert_that(fabs(fa[i] - fb[i]) < 1e-6, "row %d: %.12g and %.12g", i, fa[i], fb[i]);
}

/* With A A' = M, a fit with metric M to x and a fit without a metric to x A are the same function. Their weights differ
   by the effect of rounding the points on a system of condition 1e7 or less in double: 1e-6 is far above that. */
static void test_full_metric(void **state)
{
    (void)state;
    enum { Q = 3 };
    static double mapped[N][Q], A[D][Q], M[D][D];
    arrays of, other;
    mercer_train_options train;
    for (int i = 0; i < D * Q; i++) A[i / Q][i % Q] = mrc_random_normal((mrc_rng){22, 0}, (uint64_t)i) / 2;
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++)
            for (int k = 0; k < Q; k++) M[i][j] += A[i][k] * A[j][k];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < Q; k++)
            for (int j = 0; j < D; j++) mapped[i][k] += X[i][j] * A[j][k];
    mercer_fit_options options = options_for(&train);
    mercer_matrix metric = matrix_of(M, D, D);
    options.data.preprocess = "none", options.kernel.bandwidth = 4, options.kernel.metric = &metric;
    mercer_dataset *data = dataset(&of, X, N, D, Y), *by_hand = dataset(&other, mapped, N, Q, Y);
    mercer_model *model = NULL, *wanted = NULL;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    options.kernel.metric = NULL;
    assert_succeeds(context, mercer_fit(&wanted, context, by_hand, &options, NULL));
    assert_int_equal(model_info(model).features, D);
    assert_int_equal(model_info(model).centers.cols, Q); /* M has rank 3, so three directions */
    mercer_matrix map = preprocess_info(model_info(model).preprocess).metric;
    assert_int_equal(map.rows, D), assert_int_equal(map.cols, Q);
    assert_same_values(model, X, D, wanted, mapped, Q);
    mercer_model_free(model), mercer_model_free(wanted), mercer_dataset_free(data), mercer_dataset_free(by_hand);
}

/* A diagonal metric w equals a scaling by sqrt(w) after the preprocessing. */
static void test_diagonal_metric(void **state)
{
    (void)state;
    static double scaled[N][D];
    double w[D] = {4, 0.25, 0, 1, 9};
    arrays of, other;
    mercer_train_options train;
    mercer_preprocess *standard = NULL;
    mercer_matrix x = matrix_of(X, N, D), out = matrix_of(scaled, N, D), metric = matrix_of(w, D, 1);
    assert_succeeds(context, fit_to_matrix(&standard, context, "standardize", &x));
    assert_succeeds(context, mercer_preprocess_apply(standard, &out, &x));
    mercer_preprocess_free(standard);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < D; j++) scaled[i][j] *= sqrt(w[j]);
    mercer_fit_options options = options_for(&train);
    options.kernel.metric = &metric, options.data.preprocess = "standardize", options.kernel.bandwidth = 2;
    mercer_dataset *data = dataset(&of, X, N, D, Y), *by_hand = dataset(&other, scaled, N, D, Y);
    mercer_model *model = NULL, *wanted = NULL;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    options.kernel.metric = NULL, options.data.preprocess = "none";
    assert_succeeds(context, mercer_fit(&wanted, context, by_hand, &options, NULL));
    assert_same_values(model, X, D, wanted, scaled, D);
    mercer_model_free(model), mercer_model_free(wanted), mercer_dataset_free(data), mercer_dataset_free(by_hand);
}

/* In norm 1, a diagonal metric w equals a scaling by w; a full metric is undefined. */
static void test_other_norms(void **state)
{
    (void)state;
    static double scaled[N][D];
    double w[D] = {4, 0.25, 0, 1, 9}, full[D][D] = {{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 0, 1}};
    arrays of, other;
    mercer_train_options train;
    mercer_matrix metric = matrix_of(w, 1, D), all = matrix_of(full, D, D);
    for (int i = 0; i < N * D; i++) scaled[i / D][i % D] = X[i / D][i % D] * w[i % D];
    mercer_fit_options options = options_for(&train);
    options.kernel.metric = &metric, options.data.preprocess = "none", options.kernel.spec = "laplace-l1",
    options.kernel.bandwidth = 9;
    mercer_dataset *data = dataset(&of, X, N, D, Y), *by_hand = dataset(&other, scaled, N, D, Y);
    mercer_model *model = NULL, *wanted = NULL;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    options.kernel.metric = NULL;
    assert_succeeds(context, mercer_fit(&wanted, context, by_hand, &options, NULL));
    assert_same_values(model, X, D, wanted, scaled, D);
    mercer_model_free(model), mercer_model_free(wanted);
    options.kernel.metric = &all, model = NULL;
    assert_fails(context, mercer_fit(&model, context, data, &options, NULL), MERCER_ERROR_UNSUPPORTED,
                 "metric is 5 x 5");
    mercer_dataset_free(data), mercer_dataset_free(by_hand);
}

/* A blend with given weights equals the weighted sum of both transforms as computed here, and the model reports the
   weights. */
static void test_blend(void **state)
{
    (void)state;
    static double by_hand[N][D], ranked[N][D];
    double weights[2][D] = {{0.5, 0, 2, 1, 0.25}, {1, 3, 0, 0.5, 0.125}};
    const char *const specs[] = {"standardize", "rank"};
    arrays of, other;
    mercer_train_options train;
    mercer_matrix x = matrix_of(X, N, D), blend = matrix_of(weights, 2, D);
    for (int which = 0; which < 2; which++) {
        mercer_preprocess *one = NULL;
        mercer_matrix out = which == 0 ? matrix_of(by_hand, N, D) : matrix_of(ranked, N, D);
        assert_succeeds(context, fit_to_matrix(&one, context, specs[which], &x));
        assert_succeeds(context, mercer_preprocess_apply(one, &out, &x));
        mercer_preprocess_free(one);
    }
    for (int i = 0; i < N * D; i++) {
        double *value = &by_hand[i / D][i % D];
        *value = weights[1][i % D] * *value + weights[0][i % D] * ranked[i / D][i % D];
    }
    mercer_fit_options options = options_for(&train);
    options.kernel.blend = &blend, options.data.preprocess = "blend", options.kernel.bandwidth = 2;
    options.search.tune = MERCER_OFF;
    mercer_dataset *data = dataset(&of, X, N, D, Y), *hand = dataset(&other, by_hand, N, D, Y);
    mercer_model *model = NULL, *wanted = NULL;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    mercer_matrix found = preprocess_info(model_info(model).preprocess).blend;
    assert_int_equal(found.rows, 2), assert_int_equal(found.cols, D);
    for (int j = 0; j < 2 * D; j++) assert_true(((double *)found.data)[j] == weights[j / D][j % D]);
    options.kernel.blend = NULL, options.data.preprocess = "none";
    assert_succeeds(context, mercer_fit(&wanted, context, hand, &options, NULL));
    assert_same_values(model, X, D, wanted, by_hand, D);
    mercer_model_free(model), mercer_model_free(wanted), mercer_dataset_free(data), mercer_dataset_free(hand);
}

static void test_refused_blends(void **state)
{
    (void)state;
    double weights[2][D] = {{0}, {1, 1, 1, 1, 1}}, bad[2][D] = {{-1}, {1, 1, 1, 1, 1}};
    arrays of;
    mercer_train_options train;
    mercer_matrix good = matrix_of(weights, 2, D), flat = matrix_of(weights, 1, 2 * D),
                  few = matrix_of(weights, 2, D - 1), negative = matrix_of(bad, 2, D);
    const struct {
        const mercer_matrix *blend;
        const char *preprocess, *part;
        mercer_switch tune;
        mercer_status status;
    } cases[] = {{&good, "rank", "preprocess*blend", MERCER_OFF, MERCER_ERROR_ARGUMENT},
                 {&good, NULL, "preprocess*blend", MERCER_OFF, MERCER_ERROR_ARGUMENT},
                 {&good, "blend", "tune*off", MERCER_AUTO, MERCER_ERROR_ARGUMENT},
                 {&flat, "blend", "blend has 1 rows", MERCER_OFF, MERCER_ERROR_SHAPE},
                 {&few, "blend", "2 x 5", MERCER_OFF, MERCER_ERROR_SHAPE},
                 {&negative, "blend", "rank weight*feature 0", MERCER_OFF, MERCER_ERROR_ARGUMENT}};
    mercer_dataset *data = dataset(&of, X, N, D, Y);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_fit_options options = options_for(&train);
        mercer_model *model = NULL;
        options.kernel.blend = cases[i].blend, options.data.preprocess = cases[i].preprocess;
        options.search.tune = cases[i].tune;
        assert_fails(context, mercer_fit(&model, context, data, &options, NULL), cases[i].status, cases[i].part);
    }
    mercer_dataset_free(data);
}

static void refuse(const mercer_matrix *metric, mercer_status status, const char *part)
{
    arrays of;
    mercer_train_options train;
    mercer_model *model = NULL;
    mercer_fit_options options = options_for(&train);
    mercer_dataset *data = dataset(&of, X, N, D, Y);
    options.kernel.metric = metric;
    assert_fails(context, mercer_fit(&model, context, data, &options, NULL), status, part);
    assert_null(model);
    mercer_dataset_free(data);
}

static void test_refused_metrics(void **state)
{
    (void)state;
    double w[D] = {1, 2, -0.5, 1, 1}, zero[D] = {0}, nan[D] = {1, 1, (double)NAN, 1, 1}, m[D][D] = {{0}},
           four[4] = {1, 1, 1, 1};
    mercer_matrix metric = matrix_of(w, 1, D);
    refuse(&metric, MERCER_ERROR_DATA, "weight 2 (from 0) is -0.5");
    metric = matrix_of(zero, 1, D);
    refuse(&metric, MERCER_ERROR_DATA, "weights*0");
    metric = matrix_of(nan, D, 1);
    refuse(&metric, MERCER_ERROR_DATA, "metric: *row 2, column 0*NaN");
    metric = matrix_of(four, 1, 4);
    refuse(&metric, MERCER_ERROR_SHAPE, "metric is 1 x 4");
    for (int i = 0; i < D; i++) m[i][i] = 1;
    m[1][3] = 0.5;
    metric = matrix_of(m, D, D);
    refuse(&metric, MERCER_ERROR_DATA, "entry (3, 1) (from 0) is 0, but (1, 3) is 0.5");
    m[3][1] = 0.5, m[1][3] = 0.5, m[4][4] = -2;
    refuse(&metric, MERCER_ERROR_DATA, "-2, the largest");
    metric.rows = 4;
    refuse(&metric, MERCER_ERROR_SHAPE, "metric is 4 x 5");
    metric = (mercer_matrix){.data = m, .rows = D, .cols = D, .ld = D, .dtype = MERCER_U8};
    refuse(&metric, MERCER_ERROR_DTYPE, "metric");
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static mercer_model *fit_small(const mercer_matrix *metric, const char *preprocess)
{
    arrays of;
    mercer_train_options train;
    mercer_model *model = NULL;
    static const char *const names[D] = {"a", "b", "c", "d", "e"};
    mercer_fit_options options = options_for(&train);
    mercer_dataset *data = dataset(&of, X, N, D, Y);
    options.kernel.metric = metric, options.data.preprocess = preprocess;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_FEATURES, names, D));
    mercer_dataset_free(data);
    return model;
}

static void test_files(void **state)
{
    (void)state;
    double full[D][D] = {{2, 1, 0, 0, 0}, {1, 2, 0, 0, 0}, {0, 0, 1, 0, 0}}, w[D] = {1, 2, 3, 4, 0}, before[N],
           after[N];
    const mercer_matrix metrics[] = {matrix_of(full, D, D), matrix_of(w, 1, D)};
    for (int k = 0; k < 2; k++) {
        mercer_model *model = fit_small(&metrics[k], k ? "minmax" : "none"), *loaded = NULL;
        assert_succeeds(context, mercer_model_save(model, in_folder("metric"), NULL));
        assert_succeeds(context, mercer_model_load(&loaded, context, NULL, in_folder("metric")));
        assert_int_equal(model_info(loaded).features, D);
        assert_string_equal(model_info(loaded).feature_names[4], "e");
        mercer_matrix x = matrix_of(X, N, D), F = matrix_of(before, N, 1), G = matrix_of(after, N, 1);
        assert_succeeds(context, mercer_model_predict(model, &F, &x));
        assert_succeeds(context, mercer_model_predict(loaded, &G, &x));
        assert_memory_equal(before, after, sizeof before);
        char header[4096];
        size_t needed = 0;
        assert_succeeds(context,
                        mercer_model_file_header(context, header, sizeof header, &needed, in_folder("metric")));
        assert_non_null(strstr(header, "\"format_version\":\"3\""));
        mercer_matrix narrow = matrix_of(X, N, D - 1);
        assert_fails(context, mercer_model_predict(loaded, &G, &narrow), MERCER_ERROR_SHAPE, "X has 4 columns");
        mercer_model_free(model), mercer_model_free(loaded);
    }
    mercer_model *plain = fit_small(NULL, "none");
    char header[4096];
    size_t needed = 0;
    assert_succeeds(context, mercer_model_save(plain, in_folder("plain"), NULL));
    assert_succeeds(context, mercer_model_file_header(context, header, sizeof header, &needed, in_folder("plain")));
    assert_non_null(strstr(header, "\"format_version\":\"2\"")); /* also readable by versions without metrics */
    mercer_model_free(plain);
}

/* ---- Gradients of models ----------------------------------------------------------------------------------------- */

/*
 * Check gradients against differences of predictions, h = 1e-5. With S = scale sum_j |alpha_j|, a prediction is rounded
 * by at most p 2^-53 S, so a difference by p 2^-52 S / (2 h); and h^2 |f^(3)| / 6 is at most 10 h^2 S, since the third
 * derivative of K is at most 60 for bandwidths of 0.3 or more in the units of X.
 */
static void check_gradients(mercer_model *model, const char *what)
{
    enum { ROWS = 20 };
    double g[ROWS][D], f[2], moved[2][D];
    mercer_matrix G = matrix_of(g, ROWS, D), x = matrix_of(X, ROWS, D), F = matrix_of(f, 2, 1),
                  two = matrix_of(moved, 2, D);
    assert_succeeds(context, mercer_model_gradient(model, &G, &x));
    mercer_matrix alpha = model_info(model).weights;
    double size = 0;
    for (int64_t j = 0; j < alpha.rows; j++) size += fabs(mrc_load(&alpha, j, 0)) * model_info(model).target_scale[0];
    assert_that(size < 1e4, "%s: weights of %g", what, size); /* the bound must be tight enough to detect errors */
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < D; k++) {
            double h = 1e-5;
            memcpy(moved[0], X[i], sizeof moved[0]), memcpy(moved[1], X[i], sizeof moved[1]);
            moved[0][k] += h, moved[1][k] -= h;
            assert_succeeds(context, mercer_model_predict(model, &F, &two));
            double wanted = (f[0] - f[1]) / (2 * h), bound = size * (CENTERS * DBL_EPSILON / h + 10 * h * h);
            assert_that(fabs(g[i][k] - wanted) < bound, "%s: row %d, feature %d: %.10g, difference %.10g", what, i, k,
                        g[i][k], wanted);
        }
}

static void test_model_gradients(void **state)
{
    (void)state;
    static const char *const preprocess[] = {"none", "standardize", "minmax", "unit", "scale:factor=0.3"};
    double full[D][D] = {{2, 1, 0, 0, 0}, {1, 2, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}, {0, 0, 0, 0, 1}},
           w[D] = {1, 2, 3, 4, 0};
    const mercer_matrix metrics[] = {matrix_of(full, D, D), matrix_of(w, 1, D)};
    for (int k = 0; k < 3; k++)
        for (int p = 0; p < 5; p++) {
            arrays of;
            mercer_train_options train;
            mercer_model *model = NULL;
            mercer_fit_options options = options_for(&train);
            mercer_dataset *data = dataset(&of, X, N, D, Y);
            train.lambda = 1;
            options.kernel.spec = "gaussian", options.kernel.metric = k < 2 ? &metrics[k] : NULL,
            options.data.preprocess = preprocess[p];
            assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
            check_gradients(model, preprocess[p]);
            mercer_model_free(model), mercer_dataset_free(data);
        }
    mercer_model *model = NULL;
    mercer_kernel kernel;
    double one[D] = {1}, g[D];
    mercer_matrix center = matrix_of(one, 1, D), G = matrix_of(g, 1, D), narrow = matrix_of(g, 1, D - 1);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "polynomial:degree=2"));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &center, 1, MERCER_F64));
    assert_fails(context, mercer_model_gradient(model, &G, &center), MERCER_ERROR_UNSUPPORTED, "kernel polynomial");
    assert_fails(context, mercer_model_gradient(model, &narrow, &center), MERCER_ERROR_SHAPE, "G");
    assert_fails(NULL, mercer_model_gradient(NULL, &G, &center), MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_model_free(model);
}

/* ---- Learning ---------------------------------------------------------------------------------------------------- */

/* y depends on feature 0 and on the sum of features 1 and 2, of 8: the learned metric must find this plane, and the
   error must decrease. */
enum { ROWS = 1000, FEATURES = 8 };
static double planted_x[ROWS][FEATURES], planted_y[ROWS];

static void plant(void)
{
    for (int i = 0; i < ROWS; i++) {
        double *x = planted_x[i];
        for (int j = 0; j < FEATURES; j++) x[j] = mrc_random_normal((mrc_rng){23, 0}, (uint64_t)(i * FEATURES + j));
        planted_y[i] = sin(2 * x[0]) + cos(x[1] + x[2]);
    }
}

static mercer_model *learn(mercer_fit_report *report, const char *kernel, mercer_switch learned)
{
    arrays of;
    mercer_train_options train;
    mercer_model *model = NULL;
    mercer_fit_options options = options_for(&train);
    options.kernel.spec = kernel, options.search.learn_features = learned, options.centers.count = 200,
    options.search.effort = 2;
    train.lambda = 0;
    if (learned == MERCER_ON) options.search.tune = MERCER_AUTO;
    mercer_dataset *data = dataset(&of, planted_x, ROWS, FEATURES, planted_y);
    assert_succeeds(context, mercer_fit(&model, context, data, &options, report));
    mercer_dataset_free(data);
    return model;
}

/* Return the mean squared error on new rows. */
static double error_of(mercer_model *model)
{
    enum { NEW = 300 };
    static double x[NEW][FEATURES], f[NEW];
    double sum = 0;
    for (int i = 0; i < NEW * FEATURES; i++)
        x[i / FEATURES][i % FEATURES] = mrc_random_normal((mrc_rng){23, 1}, (uint64_t)i);
    mercer_matrix rows = matrix_of(x, NEW, FEATURES), F = matrix_of(f, NEW, 1);
    assert_succeeds(context, mercer_model_predict(model, &F, &rows));
    for (int i = 0; i < NEW; i++) sum += pow(f[i] - sin(2 * x[i][0]) - cos(x[i][1] + x[i][2]), 2) / NEW;
    return sum;
}

/* Assert that a learned metric reduces the error below `share` of that without a metric; return the model with the
   metric. */
static mercer_model *compare_errors(const char *kernel, double share)
{
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_model *plain = learn(&report, kernel, MERCER_AUTO), *model = learn(&report, kernel, MERCER_ON);
    double before = error_of(plain), after = error_of(model);
    assert_that(after < share * before, "%s: error %g without a metric, %g with it", kernel, before, after);
    assert_true(strncmp(report.kernel, kernel, strcspn(kernel, ":")) == 0);
    assert_string_equal(report.preprocess, "standardize");
    mercer_model_free(plain);
    return model;
}

/* Norm 2: the metric finds the plane, and the error decreases. */
static void test_learning(void **state)
{
    (void)state;
    static const char *const kernels[] = {"laplace", "gaussian"};
    plant();
    for (int k = 0; k < 2; k++) {
        mercer_model *model = compare_errors(kernels[k], 0.5);
        mercer_matrix a = preprocess_info(model_info(model).preprocess).metric;
        double weight[FEATURES] = {0}, across = 0, along = 0;
        assert_true(a.rows == FEATURES && a.cols == FEATURES);
        for (int i = 0; i < FEATURES; i++)
            for (int64_t j = 0; j < a.cols; j++) weight[i] += mrc_load(&a, i, j) * mrc_load(&a, i, j);
        for (int64_t j = 0; j < a.cols; j++) {
            along += pow(mrc_load(&a, 1, j) + mrc_load(&a, 2, j), 2);
            across += pow(mrc_load(&a, 1, j) - mrc_load(&a, 2, j), 2);
        }
        for (int i = 3; i < FEATURES; i++)
            assert_that(weight[i] < 0.2 * weight[0] && weight[i] < 0.2 * weight[1], "%s: weight %d is %g, of 0 %g",
                        kernels[k], i, weight[i], weight[0]);
        assert_that(along > 5 * across, "%s: along %g, across %g", kernels[k], along, across);
        mercer_model_free(model);
    }
}

/* Norm 1: one weight per feature, the largest is 1, and those of irrelevant features are small. */
static void test_learning_norm_1(void **state)
{
    (void)state;
    static const char *const kernels[] = {"laplace-l1", "exppower-l1:gamma=0.7", "lpq:p=1,q=0.9"};
    plant();
    for (int k = 0; k < 3; k++) {
        mercer_model *model = compare_errors(kernels[k], 0.9);
        double largest = 0;
        mercer_matrix w = preprocess_info(model_info(model).preprocess).metric;
        assert_true(w.rows == 1 && w.cols == FEATURES);
        for (int i = 0; i < FEATURES; i++) largest = fmax(largest, mrc_load(&w, 0, i));
        assert_that(fabs(largest - 1) < 1e-12, "%s: largest weight %g", kernels[k], largest);
        for (int i = 3; i < FEATURES; i++)
            for (int j = 0; j < 3; j++)
                assert_that(mrc_load(&w, 0, i) < 0.6 * mrc_load(&w, 0, j), "%s: weight %d is %g, of %d %g", kernels[k],
                            i, mrc_load(&w, 0, i), j, mrc_load(&w, 0, j));
        mercer_model_free(model);
    }
}

/* Kernels without a slope, and options that are incompatible with learning a metric. */
static void test_refused_learning(void **state)
{
    (void)state;
    double w[D] = {1, 1, 1, 1, 1};
    const mercer_matrix metric = matrix_of(w, 1, D);
    mercer_train_options train;
    mercer_fit_options options = options_for(&train);
    options.search.learn_features = MERCER_ON, options.kernel.spec = "lpq:p=1.5,q=1", options.search.tune = MERCER_AUTO;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_UNSUPPORTED, "kernel lpq");
    options.kernel.spec = "ntk";
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_UNSUPPORTED, "ntk");
    mercer_kernel function;
    assert_succeeds(context, mercer_kernel_parse(&function, context, "laplace:bandwidth=6"));
    options.kernel.spec = NULL, options.kernel.function = &function;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "learn_features*kernel.function");
    options.kernel.function = NULL, options.kernel.bandwidth = 2, options.kernel.metric = &metric;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "learn_features*metric");
    options.kernel.metric = NULL, options.search.tune = MERCER_OFF;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "learn_features*tune");
    options.search.tune = MERCER_AUTO;
    assert_succeeds(context, mercer_fit_check(context, &options));
}

/* A constant target has no gradients: the fit succeeds, and predicts the constant. */
static void test_constant_target(void **state)
{
    (void)state;
    static double constant[N], f[N];
    arrays of;
    mercer_train_options train;
    mercer_model *model = NULL;
    for (int i = 0; i < N; i++) constant[i] = 5;
    mercer_fit_options options = options_for(&train);
    mercer_dataset *data = dataset(&of, X, N, D, constant);
    mercer_matrix x = matrix_of(X, N, D), F = matrix_of(f, N, 1);
    options.search.learn_features = MERCER_ON, options.search.tune = MERCER_AUTO, options.search.effort = 1;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    assert_succeeds(context, mercer_model_predict(model, &F, &x));
    for (int i = 0; i < N; i++) assert_true(f[i] == 5);
    mercer_model_free(model);
    mercer_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_metric),
        cmocka_unit_test(test_diagonal_metric),
        cmocka_unit_test(test_other_norms),
        cmocka_unit_test(test_blend),
        cmocka_unit_test(test_refused_blends),
        cmocka_unit_test(test_refused_metrics),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_model_gradients),
        cmocka_unit_test(test_learning),
        cmocka_unit_test(test_learning_norm_1),
        cmocka_unit_test(test_refused_learning),
        cmocka_unit_test(test_constant_target),
    };
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scales by descent: the slope of the held-back error against differences of that error, for both norms, weights and
 * several outputs; and a planted problem whose features are worth something known.
 */
#include "support/backends.h"
#include "support/datasets.h"

#include "core/matrix.h"
#include "features/metric.h"
#include "mercer/advanced.h"
#include "tune/descent.h"

#include <math.h>
#include <string.h>

enum { M = 40, FITTED = 26, CENTERS = 9, D = 3, MOST_C = 5 };

static double points[M][D], scaled[M][D], targets[M][MOST_C], weights[M];

static double normal(uint64_t sequence, int index)
{
    return mrc_random_normal((mrc_rng){97, sequence}, (uint64_t)index);
}

static int open_tests(void **state)
{
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < D; k++) points[i][k] = normal(0, i * D + k);
        for (int l = 0; l < MOST_C; l++) targets[i][l] = sin(points[i][l % D]) + 0.3 * normal(1, i * MOST_C + l);
        weights[i] = 0.5 + i % 3;
    }
    return open_datasets(state);
}

static mercer_kernel kernel_of(const char *text)
{
    mercer_kernel kernel;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, text));
    return kernel;
}

/* The error of a draw in host memory, and its slopes, where the backend computes. */
static double slope_of(mrc_backend *backend, const mercer_kernel *kernel, double ridge, const mrc_draw *draw,
                       int64_t fitted, int64_t centers, double *slope)
{
    const mrc_backend_ops *ops = backend->ops;
    mrc_slope_room room;
    mrc_draw there = *draw;
    double error;
    bool solved;
    MRC_SCOPE(scope, backend->context);
    assert_succeeds(backend->context,
                    mrc_scope_matrix(&scope, backend, &there.x, draw->x.rows, draw->x.cols, draw->x.dtype, "rows"));
    assert_succeeds(backend->context,
                    mrc_scope_matrix(&scope, backend, &there.y, draw->y.rows, draw->y.cols, MERCER_F64, "rows"));
    assert_succeeds(backend->context, ops->copy(backend, &there.x, &draw->x));
    assert_succeeds(backend->context, ops->copy(backend, &there.y, &draw->y));
    assert_succeeds(backend->context, mrc_slope_open(&room, &scope, backend, &there, fitted, centers));
    assert_succeeds(backend->context, mrc_error_slope(&room, kernel, ridge, &there, &error, slope, &solved));
    assert_true(solved);
    return error;
}

/* With coordinate k times e^log. */
static double error_at(mrc_backend *backend, const char *text, int c, bool weighted, int k, double log, double slope[D])
{
    mercer_kernel kernel = kernel_of(text);
    double y[M][MOST_C];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < D; j++) scaled[i][j] = points[i][j] * (j == k ? exp(log) : 1);
    for (int i = 0; i < M; i++)
        for (int l = 0; l < c; l++) (&y[0][0])[i * c + l] = targets[i][l];
    mrc_draw draw = {.x = mrc_view(scaled, M, D, MERCER_F64),
                     .y = mrc_view(y, M, c, MERCER_F64),
                     .weights = weighted ? weights : NULL};
    return slope_of(backend, &kernel, 1e-3, &draw, FITTED, CENTERS, slope);
}

/* A central difference is off by h^2 / 6 third derivatives, and by the error's rounding over h: both below 1e-7 here. */
static void compare_slopes(mrc_backend *backend)
{
    static const char *const kernels[] = {"laplace-l1:bandwidth=3", "exppower-l1:bandwidth=3,gamma=0.7",
                                          "laplace:bandwidth=2", "gaussian:bandwidth=2", "matern52:bandwidth=2"};
    const double h = 1e-4;
    double slope[D], unused[D];
    for (size_t which = 0; which < sizeof kernels / sizeof *kernels; which++)
        for (int c = 1; c <= MOST_C; c += 2)
            for (int weighted = 0; weighted < 2; weighted++) {
                error_at(backend, kernels[which], c, weighted, 0, 0, slope);
                for (int k = 0; k < D; k++) {
                    double up = error_at(backend, kernels[which], c, weighted, k, h, unused);
                    double down = error_at(backend, kernels[which], c, weighted, k, -h, unused);
                    assert_true(fabs((up - down) / (2 * h) - slope[k]) <= 1e-6);
                }
            }
}

static void test_slope(void **state)
{
    (void)state;
    for_each_backend(compare_slopes);
}

/* ---- Descent ----------------------------------------------------------------------------------------------------- */

enum { ROWS = 1200, FEATURES = 5 };
static float planted_x[ROWS][FEATURES];
static double planted_y[ROWS];

/* Feature 0 is 0 for nine rows of ten, and decides over the others; 1 has a wave; 2 to 4 are noise. */
static void plant(void)
{
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < FEATURES; k++) planted_x[i][k] = (float)normal(2, i * FEATURES + k);
        bool rare = i % 10 == 0;
        planted_x[i][0] = rare ? planted_x[i][0] : 0;
        planted_y[i] =
            (rare ? (planted_x[i][0] > 0 ? 3 : -3) : 0) + sin(2 * (double)planted_x[i][1]) + 0.1 * normal(3, i);
    }
}

static void descend(mercer_context *by, double logs[FEATURES])
{
    mercer_kernel kernel = kernel_of("laplace-l1:bandwidth=6");
    mrc_descent task = {.context = by,
                        .kernel = &kernel,
                        .ridge = 1e-5,
                        .x = mrc_view(planted_x, ROWS, FEATURES, MERCER_F32),
                        .y = mrc_view(planted_y, ROWS, 1, MERCER_F64),
                        .rows = {{100, 500}, {600, ROWS - 600}},
                        .spans = 2,
                        .seed = 3};
    assert_true(mrc_descent_possible(&task));
    assert_true(mrc_descent_flops(&task) > 0);
    assert_succeeds(by, mrc_descend(&task, logs));
    task.spans = 1, task.rows[0].count = 300;
    assert_false(mrc_descent_possible(&task));
    mercer_kernel without_slope = kernel_of("lpq:p=1.5,q=1,bandwidth=2");
    task.rows[0].count = ROWS, task.kernel = &without_slope;
    assert_false(mrc_descent_possible(&task));
}

/* Of rows 300 and on, by a fit to those before, the rows that descent does not see among them. */
static double error_with(const double logs[FEATURES])
{
    mercer_kernel kernel = kernel_of("laplace-l1:bandwidth=6");
    static float x[ROWS][FEATURES];
    double slope[FEATURES];
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < FEATURES; k++) x[i][k] = planted_x[i][k] * (float)exp(logs[k]);
    mrc_draw draw = {.x = mrc_view(x, ROWS, FEATURES, MERCER_F32), .y = mrc_view(planted_y, ROWS, 1, MERCER_F64)};
    return slope_of(context->backend, &kernel, 1e-5, &draw, 300, 200, slope);
}

static void descend_planted(mercer_context *by)
{
    double logs[FEATURES], once_more[FEATURES];
    plant();
    descend(by, logs);
    for (int k = 2; k < FEATURES; k++) assert_true(logs[0] > logs[k] + log(10) && logs[1] > logs[k]);
    assert_true(error_with(logs) < 0.5 * error_with((double[FEATURES]){0}));
    for (int i = 0; i < 100; i++) planted_y[i] = 1e6; /* rows that are not to be seen */
    descend(by, once_more);
    assert_memory_equal(logs, once_more, sizeof logs);
}

static void test_planted(void **state)
{
    (void)state;
    descend_planted(context);
}

static void descend_there(mrc_backend *backend)
{
    if (backend->ops->capabilities(backend).memory == MRC_HOST) return;
    backend->context->backend = backend;
    descend_planted(backend->context);
}

static void test_planted_on_devices(void **state)
{
    (void)state;
    for_each_backend(descend_there);
}

/* A metric with factors: relative weights of norm 1, squares of norm 2, the directions of a full one. */
static void test_scaled_metric(void **state)
{
    (void)state;
    const double logs[] = {log(2), 0, log(0.5)};
    mrc_metric none = {.features = 3, .width = 3}, one, full, next;
    assert_succeeds(context, mrc_metric_scaled(&one, context->backend, MRC_NORM_1, &none, logs));
    for (int k = 0; k < 3; k++) assert_true(fabs(mrc_metric_weight(&one, MRC_NORM_1, k) - exp(logs[k]) / 2) < 1e-12);
    mrc_metric_free(&one);
    assert_succeeds(context, mrc_metric_scaled(&one, context->backend, MRC_NORM_2, &none, logs));
    for (int k = 0; k < 3; k++)
        assert_true(fabs(mrc_metric_weight(&one, MRC_NORM_2, k) - 3 * exp(2 * logs[k]) / 5.25) < 1e-12);
    mrc_metric_free(&one);
    double m[3][3] = {{2, 1, 0}, {1, 2, 0}, {0, 0, 1}}; /* eigenvalues 3, 1, 1: (1, 1, 0) and what is across it */
    mercer_matrix given = mrc_view(m, 3, 3, MERCER_F64);
    const double factors[] = {log(2), 0, 0};
    assert_succeeds(context, mrc_metric_given(&full, context->backend, MRC_NORM_2, 3, &given));
    assert_succeeds(context, mrc_metric_scaled(&next, context->backend, MRC_NORM_2, &full, factors));
    double scale = 3. / 14; /* to trace 3: eigenvalues 12, 1, 1 */
    assert_true(fabs(mrc_metric_weight(&next, MRC_NORM_2, 0) - 6.5 * scale) < 1e-12);
    assert_true(fabs(mrc_metric_weight(&next, MRC_NORM_2, 2) - scale) < 1e-12);
    mrc_metric_free(&next);
    mrc_metric_free(&full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slope), cmocka_unit_test(test_planted),
                                       cmocka_unit_test(test_planted_on_devices), cmocka_unit_test(test_scaled_metric)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

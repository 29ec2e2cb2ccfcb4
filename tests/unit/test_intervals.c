/* SPDX-License-Identifier: BSD-3-Clause */
/* Probabilities, intervals and sets of classes of a model: their promised coverage, and storing them in its file.
   */
#include "support/datasets.h"

#include "support/info.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"
#include "model/model.h"

#include <math.h>

enum { N = 2400, TEST = 2400, D = 2, C = 3 };

static double X[N + TEST][D], Y[N + TEST];
static int32_t labels[N + TEST];

/* Noisy values; classes, one third of them drawn at random. */
static void make_samples(void)
{
    const mrc_rng rng = {5, 1};
    for (int i = 0; i < N + TEST; i++) {
        for (int j = 0; j < D; j++) X[i][j] = mrc_random_normal(rng, (uint64_t)(i * D + j));
        Y[i] = sin(X[i][0]) + X[i][1] + 0.5 * mrc_random_normal(rng, (uint64_t)(1000000 + i));
        labels[i] = X[i][0] > 0.5 ? 2 : X[i][1] > 0;
        if (mrc_random_uniform(rng, (uint64_t)(2000000 + i)) < 1.0 / 3)
            labels[i] = (int32_t)(C * mrc_random_uniform(rng, (uint64_t)(3000000 + i)));
    }
}

static int open_tests(void **state)
{
    make_samples();
    return open_datasets(state);
}

static mercer_dataset *dataset(int first, int rows, bool classes, const double *weights)
{
    mercer_dataset *out = NULL;
    mercer_matrix x = mercer_matrix_view(X[first], rows, D, MERCER_F64),
                  y = mercer_matrix_view(Y + first, rows, 1, MERCER_F64);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = &x, arrays.weights = weights;
    if (classes)
        arrays.labels = labels + first, arrays.classes = C;
    else
        arrays.Y = &y;
    assert_succeeds(context, mercer_dataset_from_arrays(&out, context, &arrays));
    return out;
}

static mercer_model *fit(bool classes, double fraction, mercer_switch intervals)
{
    mercer_model *model = NULL;
    mercer_train_options train = MERCER_INIT(mercer_train_options);
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    mercer_dataset *data = dataset(0, N, classes, NULL);
    train.solver = "direct", train.lambda = 1;
    options.train = &train, options.run.memory = 1 << 28, options.centers.count = 100,
    options.validation.fraction = fraction;
    options.validation.intervals = intervals, options.search.effort = 1;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    mercer_dataset_free(data);
    return model;
}

/* ---- Levels ---------------------------------------------------------------------------------------------------- */

/* With n scores the interval of level q is score number ceil(q (n + 1)); a level that would need more scores is
   refused. */
static void test_levels(void **state)
{
    (void)state;
    enum { R = 9 };
    double scores[R], radius, one[1] = {0};
    mercer_kernel kernel;
    mercer_model *model = NULL;
    mercer_matrix z = mercer_matrix_view(one, 1, 1, MERCER_F64), list = mercer_matrix_view(scores, 1, R, MERCER_F64);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=1"));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, 1, MERCER_F64));
    assert_fails(context, mercer_model_interval(model, &radius, 0.5), MERCER_ERROR_ARGUMENT, "no intervals");
    for (int i = 0; i < R; i++) scores[i] = i + 1;
    assert_succeeds(context, mrc_model_set_intervals(model, &list, R, MERCER_TASK_REGRESSION));
    for (int k = 1; k <= R; k++) { /* k / 10 (9 + 1) = k: score k for this level and for slightly lower levels */
        assert_succeeds(context, mercer_model_interval(model, &radius, k / 10.0));
        assert_true(radius == k);
        assert_succeeds(context, mercer_model_interval(model, &radius, k / 10.0 - 0.05));
        assert_true(radius == k);
    }
    assert_succeeds(context, mercer_model_interval(model, &radius, 1e-12)); /* uses the first score, not index -1 */
    assert_true(radius == 1);
    assert_fails(context, mercer_model_interval(model, &radius, 0.91), MERCER_ERROR_ARGUMENT, "level is 0.91");
    assert_fails(context, mercer_model_interval(model, &radius, 1), MERCER_ERROR_ARGUMENT, "between 0 and 1");
    scores[4] = 0;
    assert_fails(context, mrc_model_set_intervals(model, &list, R, MERCER_TASK_REGRESSION), MERCER_ERROR_DATA,
                 "ascending");
    list.rows = 0;
    assert_fails(context, mrc_model_set_intervals(model, &list, R, MERCER_TASK_REGRESSION), MERCER_ERROR_SHAPE, "");
    assert_succeeds(context, mercer_model_interval(model, &radius, 0.5));
    assert_succeeds(context, mrc_model_set_intervals(model, NULL, 0, MERCER_TASK_AUTO));
    assert_fails(context, mercer_model_interval(model, &radius, 0.5), MERCER_ERROR_ARGUMENT, "no intervals");
    assert_fails(context, mercer_model_set_calibration(model, -1, 0), MERCER_ERROR_DATA, "-1");
    mercer_model_free(model);
}

/* ---- Coverage -------------------------------------------------------------------------------------------------- */

/* With n held-out rows and m test rows, the coverage of level q has variance q (1 - q) (1 / n + 1 / m). Its mean is
   between q and q + 1 / n, plus 1 / 1000 for a table of scores. Four standard deviations are exceeded once in
   16,000. */
static void check_coverage(const mercer_model *given, const char *path, bool classes, double level)
{
    mercer_model *model = NULL;
    mercer_evaluation *of = NULL;
    mercer_metrics found = MERCER_INIT(mercer_metrics);
    mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
    mercer_dataset *data = dataset(N, TEST, classes, NULL);
    double before[C], after[C];
    assert_succeeds(context, mercer_model_load(&model, context, NULL, path));
    assert_succeeds(context, mercer_model_interval(given, before, level));
    assert_succeeds(context, mercer_model_interval(model, after, level));
    assert_true(before[0] == after[0]);
    const double rows = model_info(model).interval_rows;
    assert_int_equal(model_info(model).interval_task, classes ? MERCER_TASK_CLASSIFICATION : MERCER_TASK_REGRESSION);
    options.interval = level;
    assert_succeeds(context, mercer_evaluate(&of, model, data, &options));
    assert_succeeds(context, mercer_evaluation_query(of, &found));
    double off = 4 * sqrt(level * (1 - level) * (1 / rows + 1.0 / TEST));
    assert_that(found.coverage > level - off && (found.coverage < level + 1 / rows + 1e-3 + off || classes),
                "coverage %g of level %g, off by at most %g", found.coverage, level, off);
    /* A mean of TEST equal numbers is off by the rounding of their sum. */
    double width = 2 * after[0];
    assert_true(found.interval == level && (classes || fabs(found.interval_size - width) <= TEST * 0x1p-53 * width));
    mercer_evaluation_free(of), mercer_dataset_free(data), mercer_model_free(model);
}

static void test_coverage(void **state)
{
    (void)state;
    char path[256];
    for (int classes = 0; classes < 2; classes++) {
        mercer_model *held = fit(classes, 0.5, MERCER_AUTO), *chosen = fit(classes, 0, MERCER_ON);
        assert_true(model_info(held).interval_rows == N / 2);
        assert_true(model_info(chosen).interval_rows == N / 10);
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%s", in_folder("model"));
            assert_succeeds(context, mercer_model_save(k ? chosen : held, path, NULL));
            check_coverage(k ? chosen : held, path, classes, 0.9);
            check_coverage(k ? chosen : held, path, classes, 0.5);
        }
        mercer_model_free(held), mercer_model_free(chosen);
    }
}

/* A model has no intervals without held-out rows, or if they are switched off. */
static void test_none(void **state)
{
    (void)state;
    double radius[C];
    mercer_model *plain = fit(false, 0, MERCER_AUTO), *off = fit(false, 0.5, MERCER_OFF);
    assert_fails(context, mercer_model_interval(plain, radius, 0.9), MERCER_ERROR_ARGUMENT, "no intervals");
    assert_fails(context, mercer_model_interval(off, radius, 0.9), MERCER_ERROR_ARGUMENT, "no intervals");
    mercer_model_free(plain), mercer_model_free(off);
}

/* ---- Probabilities --------------------------------------------------------------------------------------------- */

static long double curved(double f, double curvature)
{
    return curvature > 0 ? asinhl((long double)curvature * f) / asinhl((long double)curvature) : f;
}

/* softmax(g / T) with the model's temperature T and g = asinh(k f) / asinh(k), both saved in its file; without
   calibration T is 1/4 and g = f. The sums of C powers and the quotient are off by less than 2 C ulps. With a curvature,
   k f, two inverse sines and their quotient are off by 4 ulps, so exponents are off by 4 ulps of |g| / T <= 10. */
static void test_probabilities(void **state)
{
    (void)state;
    enum { M = 50 };
    double p[M][C], f[M][C];
    mercer_model *fitted = fit(true, 0.2, MERCER_AUTO), *model = NULL;
    mercer_matrix x = mercer_matrix_view(X[N], M, D, MERCER_F64), P = mercer_matrix_view(p, M, C, MERCER_F64),
                  F = mercer_matrix_view(f, M, C, MERCER_F64);
    double t = model_info(fitted).temperature, curvature = 0;
    assert_true(model_info(fitted).calibrated && t != 0.25);
    for (int again = 0; again < 3; again++) {
        assert_succeeds(context, mercer_model_save(fitted, in_folder("model"), NULL));
        assert_succeeds(context, mercer_model_load(&model, context, NULL, in_folder("model")));
        assert_true(model_info(model).temperature == t && model_info(model).calibrated == (again < 2));
        assert_true(model_info(model).curvature == curvature);
        assert_succeeds(context, mercer_model_probabilities(model, &P, &x));
        assert_succeeds(context, mercer_model_predict(model, &F, &x));
        for (int i = 0; i < M; i++)
            for (int j = 0; j < C; j++) {
                long double sum = 0;
                for (int k = 0; k < C; k++) sum += expl((curved(f[i][k], curvature) - curved(f[i][j], curvature)) / t);
                assert_that(fabs(p[i][j] - (double)(1 / sum)) <= (2 * C + (curvature > 0 ? 2 * 4 * 10 : 0)) * 0x1p-52,
                            "%g, not %g", p[i][j], (double)(1 / sum));
                assert_true(curvature == 0 || fabsl(curved(f[i][j], curvature)) <= 10 * t);
            }
        mercer_model_free(model);
        t = again ? 0.25 : 0.3, curvature = again ? 0 : 20;
        assert_succeeds(context, mercer_model_set_calibration(fitted, again ? 0 : t, curvature));
    }
    model = fitted;
    P.cols = C - 1;
    assert_fails(context, mercer_model_probabilities(model, &P, &x), MERCER_ERROR_SHAPE, "P");
    mercer_model_free(fitted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels), cmocka_unit_test(test_coverage),
                                       cmocka_unit_test(test_none), cmocka_unit_test(test_probabilities)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

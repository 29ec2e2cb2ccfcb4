/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Permutation importance against plain loops, in which every row gets the column of another row and R2 is computed in
 * long double. Predictions of a row have the same bits in any block, so the two results differ only by the rounding of
 * sums: each of the two sums of R2 = 1 - A / B over n rows is off by at most (n + 16) 4 U of itself (test_metrics.c),
 * the quotient by twice that, and a mean of k drops in score adds 2 k U of their size.
 */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "data/dataset.h"

#include <float.h>
#include <math.h>
#include <mercer/evaluation.h>

enum { N = 300, REPEATS = 3 };

static mercer_dataset *make_table(const char *target)
{
    static const char *const towns[] = {"Ulm", "Bonn", "Rom"};
    char text[N * 40 + 100], *at = text;
    const mrc_rng rng = {5, 1};
    at += sprintf(at, "a,town,c,y\n");
    for (int64_t i = 0; i < N; i++) {
        int64_t a = mrc_random_below(rng, 3 * (uint64_t)i, 100), t = mrc_random_below(rng, 3 * (uint64_t)i + 1, 3);
        at += sprintf(at, i % 17 ? "%d," : ",", (int)a);
        at += sprintf(at, "%s,%d,", towns[t], (int)mrc_random_below(rng, 3 * (uint64_t)i + 2, 100));
        at += target ? sprintf(at, "%s\n", a + 30 * t > 70 ? "yes" : "no") : sprintf(at, "%d.5\n", (int)(a + 30 * t));
    }
    mercer_dataset_options options = data_options(text_file("t.csv", text), NULL);
    options.target = "y";
    return open_with(&options);
}

static mercer_model *fit(mercer_dataset *data)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    mercer_model *model = NULL;
    options.centers.count = 60, options.search.tune = MERCER_OFF;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    return model;
}

/* Return R2 or accuracy where features first .. first + width - 1 of row i come from row P(i); width 0: the
   unchanged rows. */
static double plain_score(mercer_model *model, const mercer_dataset *data, int64_t first, int64_t width, mrc_rng rng,
                          double *slack)
{
    int64_t d = data->features, c = data->outputs;
    float *x = malloc(sizeof(float) * (size_t)(N * d));
    double *f = malloc(sizeof(double) * (size_t)(N * c));
    memcpy(x, data->x.data, sizeof(float) * (size_t)(N * d));
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = first; j < first + width; j++)
            x[i * d + j] = ((const float *)data->x.data)[mrc_random_permutation(rng, N, i) * d + j];
    mercer_matrix X = mrc_view(x, N, d, MERCER_F32), F = mrc_view(f, N, c, MERCER_F64);
    assert_succeeds(context, mercer_model_predict(model, &F, &X));
    long double mean = 0, squares = 0, spread = 0, hits = 0;
    for (int64_t i = 0; i < N && data->labels; i++) hits += (f[2 * i + 1] > f[2 * i]) == data->labels[i];
    for (int64_t i = 0; i < N && !data->labels; i++) mean += (long double)((double *)data->y.data)[i] / N;
    for (int64_t i = 0; i < N && !data->labels; i++) {
        long double y = (long double)((double *)data->y.data)[i];
        squares += (y - (long double)f[i]) * (y - (long double)f[i]);
        spread += (y - mean) * (y - mean);
    }
    free(x), free(f);
    *slack = data->labels ? 0 : (N + 16) * 4 * DBL_EPSILON * (double)(squares / spread);
    return data->labels ? (double)(hits / N) : (double)(1 - squares / spread);
}

static void compare(const char *target, int64_t features)
{
    mercer_dataset *data = make_table(target);
    mercer_model *model = fit(data);
    mercer_permutation_options options = MERCER_INIT(mercer_permutation_options);
    mercer_importance_info info = {.struct_size = sizeof info};
    mercer_importance *importance = NULL;
    options.repeats = REPEATS;
    options.seed = 42;
    assert_succeeds(context, mercer_permutation_importance(&importance, model, data, &options));
    assert_succeeds(context, mercer_importance_query(importance, &info));
    static const char *const names[] = {"a", "town", "c"};
    static const int64_t firsts[] = {0, 2, 5, 6}; /* features: a, missing flag of a, three towns, c */
    assert_int_equal(data->features, features);
    assert_int_equal(info.columns, 3);
    double base_slack, base = plain_score(model, data, 0, 0, (mrc_rng){0}, &base_slack);
    assert_that(fabs(info.score - base) <= base_slack, "score %.17g, wanted %.17g", info.score, base);
    for (int64_t j = 0; j < 3; j++) {
        double mean = 0, slack = base_slack, squares = 0, drops[REPEATS];
        for (int64_t k = 0; k < REPEATS; k++) {
            double more;
            mrc_rng rng = {42, (uint64_t)(j * REPEATS + k + 1)};
            drops[k] = base - plain_score(model, data, firsts[j], firsts[j + 1] - firsts[j], rng, &more);
            mean += drops[k] / REPEATS;
            slack += more + 2 * REPEATS * DBL_EPSILON * fabs(drops[k]);
        }
        for (int64_t k = 0; k < REPEATS; k++) squares += (drops[k] - mean) * (drops[k] - mean);
        assert_string_equal(info.names[j], names[j]);
        assert_that(fabs(info.drops[j] - mean) <= slack, "%s: %.17g, wanted %.17g", names[j], info.drops[j], mean);
        double error = sqrt(squares / (REPEATS - 1) / REPEATS);
        assert_that(fabs(info.errors[j] - error) <= 4 * slack + 1e-15, "%s: %.17g, wanted %.17g", names[j],
                    info.errors[j], error);
    }
    assert_true(info.drops[0] > 0.1 && info.drops[1] > 0.1 && info.drops[2] < 0.1 * info.drops[1]);
    mercer_importance_free(importance);
    mercer_model_free(model);
    mercer_dataset_free(data);
}

static void test_values(void **state)
{
    (void)state;
    compare(NULL, 6);
}

static void test_classes(void **state)
{
    (void)state;
    compare("classes", 6);
}

/* Partial dependence of bytes: the values that replace a column are bytes, too. */
static void test_bytes(void **state)
{
    enum { FEATURES = 5 };
    static uint8_t x[N][FEATURES], changed[N][FEATURES];
    static double y[N], f[N];
    double values[4], means[4];
    int64_t count = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < FEATURES; k++)
            x[i][k] = (uint8_t)mrc_random_below((mrc_rng){6, (uint64_t)k}, (uint64_t)i, 256);
        y[i] = x[i][1] - 0.5 * x[i][4];
    }
    mercer_matrix X = mrc_view(x, N, FEATURES, MERCER_U8), Y = mrc_view(y, N, 1, MERCER_F64);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &X, .Y = &Y};
    mercer_dataset *data = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    mercer_model *model = fit(data);
    mercer_matrix M = mrc_view(means, 4, 1, MERCER_F64), F = mrc_view(f, N, 1, MERCER_F64),
                  C = mrc_view(changed, N, FEATURES, MERCER_U8);
    assert_succeeds(context, mercer_partial_dependence(model, data, 4, values, &M, &count));
    assert_int_equal(count, 4);
    for (int k = 0; k < 4; k++) {
        double mean = 0;
        memcpy(changed, x, sizeof x);
        for (int i = 0; i < N; i++) changed[i][4] = (uint8_t)values[k];
        assert_succeeds(context, mercer_model_predict(model, &F, &C));
        for (int i = 0; i < N; i++) mean += f[i] / N;
        assert_that(fabs(means[k] - mean) <= 1e-9 * fabs(mean) + 1e-9, "%d: %.17g, wanted %.17g", k, means[k], mean);
    }
    mercer_model_free(model);
    mercer_dataset_free(data);
}

/* Compute the mean prediction with one column set to a fixed value in all rows, by a plain loop. */
static void test_dependence(void **state)
{
    (void)state;
    mercer_dataset *data = make_table(NULL);
    mercer_model *model = fit(data);
    double values[8], means[8], f[N];
    float x[N * 6];
    int64_t count = 0;
    mercer_matrix M = mrc_view(means, 8, 1, MERCER_F64), F = mrc_view(f, N, 1, MERCER_F64),
                  X = mrc_view(x, N, 6, MERCER_F32);
    for (int64_t column = 0; column < 2; column++) {
        assert_succeeds(context, mercer_partial_dependence(model, data, column, values, &M, &count));
        assert_int_equal(count, column ? 3 : 8);
        for (int64_t k = 0; k < count; k++) {
            memcpy(x, data->x.data, sizeof x);
            for (int64_t i = 0; i < N && !column; i++) x[i * 6] = (float)values[k], x[i * 6 + 1] = 0;
            for (int64_t i = 0; i < N && column; i++)
                for (int64_t l = 0; l < 3; l++) x[i * 6 + 2 + l] = l == k;
            assert_succeeds(context, mercer_model_predict(model, &F, &X));
            long double sum = 0, size = 0;
            for (int64_t i = 0; i < N; i++) sum += (long double)f[i], size += fabsl((long double)f[i]);
            assert_that(fabs(means[k] - (double)(sum / N)) <= (N + 2) * DBL_EPSILON * (double)(size / N),
                        "%lld, %lld: %.17g", (long long)column, (long long)k, means[k]);
            if (k > 0 && !column) assert_true(values[k] > values[k - 1]);
        }
        if (!column) assert_true(values[0] == 0 && values[7] == 99 && means[7] > means[0] + 50);
    }
    mercer_model_free(model);
    mercer_dataset_free(data);
}

static int stop(void *user, const mercer_progress *progress)
{
    assert_string_equal(progress->stage, "importance");
    *(int64_t *)user = progress->done;
    return progress->done == 2;
}

static void test_rejected_arguments(void **state)
{
    (void)state;
    mercer_dataset *data = make_table(NULL), *classes = make_table("classes");
    mercer_model *model = fit(data);
    mercer_permutation_options options = MERCER_INIT(mercer_permutation_options);
    mercer_importance *out = NULL;
    double values[4], means[4];
    mercer_matrix M = mrc_view(means, 4, 1, MERCER_F64);
    int64_t count, seen = 0;
    assert_fails(context, mercer_permutation_importance(&out, model, classes, &options), MERCER_ERROR_SHAPE,
                 "data: 2 outputs*1");
    options.repeats = -1;
    assert_fails(context, mercer_permutation_importance(&out, model, data, &options), MERCER_ERROR_ARGUMENT,
                 "repeats is -1");
    options.repeats = 2, options.progress = stop, options.progress_user = &seen;
    assert_fails(context, mercer_permutation_importance(&out, model, data, &options), MERCER_ERROR_CALLBACK, "stopped");
    assert_true(seen == 2 && !out);
    assert_fails(context, mercer_partial_dependence(model, data, 3, values, &M, &count), MERCER_ERROR_ARGUMENT,
                 "column is 3");
    mercer_model_free(model);
    mercer_dataset_free(classes);
    mercer_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_dependence),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_rejected_arguments),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

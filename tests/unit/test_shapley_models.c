/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shapley values of models with schema, preprocessing, target units and members, wide and degenerate tables, and
 * what is refused. Where sums are compared with predictions in float, the bound is that of the prediction: an inner
 * product of d features and a sum over p centers in float, 2^-24 (4 d + p) of sum |alpha|, times 30 for the slope of
 * the kernel in the squared distance.
 */
#include "support/datasets.h"
#include "support/fitted.h"
#include "support/info.h"
#include "support/shapley.h"

#include "core/numbers/random.h"
#include "data/dataset.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"
#include "model/model.h"

#include <float.h>

enum { N = 60, D = 5 };

static mercer_matrix matrix_of(void *values, int64_t m, int64_t n)
{
    return mercer_matrix_view(values, m, n, MERCER_F64);
}

static double normal(uint64_t sequence, int64_t index)
{
    return mrc_random_normal((mrc_rng){11, sequence}, (uint64_t)index);
}

/* Creates a model with the given centers and random weights from the normal distribution. */
static mercer_model *make_model(const char *spec, const mercer_matrix *centers)
{
    mercer_kernel kernel;
    mercer_model *model = NULL;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, spec));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, centers, 1, MERCER_F64));
    for (int64_t j = 0; j < centers->rows; j++) ((double *)model_info(model).weights.data)[j] = normal(9, j);
    return model;
}

static double total_weight(const mercer_model *model)
{
    mercer_matrix alpha = model_info(model).weights;
    double sum = 0;
    for (int64_t j = 0; j < alpha.rows; j++) sum += fabs(mrc_load(&alpha, j, 0));
    return sum;
}

/* Compute values, base and information for a background, which may be NULL. values (rows, columns). */
static mercer_shap_info find_values(mercer_model *model, const mercer_matrix *background, const mercer_matrix *X,
                                    double *base, double *values)
{
    mercer_shap *shap = NULL;
    mercer_shap_info info = MERCER_INIT(mercer_shap_info);
    assert_succeeds(context, mercer_model_shap(&shap, model, background, NULL));
    assert_succeeds(context, mercer_shap_query(shap, &info));
    mercer_matrix V = matrix_of(values, X->rows, info.columns * info.outputs);
    assert_succeeds(context, mercer_shap_values(shap, &V, X));
    memcpy(base, info.base, sizeof(double) * (size_t)info.outputs);
    mercer_shap_free(shap);
    return info;
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

static mercer_dataset *make_table(void)
{
    static const char *const towns[] = {"Ulm", "Bonn", "Rom"};
    char text[N * 40 + 100], *at = text;
    at += sprintf(at, "a,town,c,y\n");
    for (int i = 0; i < N; i++) {
        at += sprintf(at, i % 7 ? "%.3f," : ",", normal(1, i)); /* some values are missing */
        at += sprintf(at, "%s,%.3f,%.3f\n", towns[i % 3], normal(2, i), normal(3, i));
    }
    mercer_dataset_options options = data_options(text_file("t.csv", text), NULL);
    options.target = "y";
    return open_with(&options);
}

/* A category, and a number with the flag of its missing values, are one player each. */
static void test_columns(void **state)
{
    (void)state;
    enum { FEATURES = 6, COLUMNS = 3, ROWS = 6, BACKGROUND = 4 };
    static const int64_t owner[FEATURES] = {0, 0, 1, 1, 1, 2};
    static const char *const specs[] = {"gaussian:bandwidth=2", "exppower-l1:bandwidth=3,gamma=0.7"};
    mercer_dataset *data = make_table();
    double z[N * FEATURES], values[ROWS * COLUMNS], base;
    assert_int_equal(data->features, FEATURES);
    for (int i = 0; i < N * FEATURES; i++) z[i] = mrc_load(&data->x, i / FEATURES, i % FEATURES);
    for (int s = 0; s < 2; s++) {
        mercer_matrix centers = matrix_of(z, N, FEATURES), X = mrc_rows(&data->x, 0, ROWS),
                      background = mrc_rows(&data->x, 20, BACKGROUND);
        mercer_model *model = make_model(specs[s], &centers);
        assert_succeeds(context, mrc_model_set_schema(model, data->schema));
        mercer_shap_info info = find_values(model, &background, &X, &base, values);
        assert_int_equal(info.columns, COLUMNS);
        plain_sum sum = {&model->kernel, N, FEATURES, z, model->weights.data, COLUMNS, owner};
        double bound = info.error + 1e-12 * total_weight(model), mean = 0;
        for (int b = 0; b < BACKGROUND; b++) mean += plain_output(&sum, z + (20 + b) * FEATURES) / BACKGROUND;
        assert_true(fabs(mean - base) <= bound);
        for (int i = 0; i < ROWS; i++) {
            double wanted[COLUMNS] = {0};
            for (int b = 0; b < BACKGROUND; b++)
                enumerate_values(&sum, z + i * FEATURES, z + (20 + b) * FEATURES, 1.0 / BACKGROUND, wanted);
            for (int k = 0; k < COLUMNS; k++)
                assert_that(fabs(values[i * COLUMNS + k] - wanted[k]) <= bound, "%.15g, wanted %.15g",
                            values[i * COLUMNS + k], wanted[k]);
        }
        mercer_model_free(model);
    }
    mercer_dataset_free(data);
}

/* ---- Fits -------------------------------------------------------------------------------------------------------- */

/* Values and base of fits sum to their predictions: preprocessing, units, float, the mean of two models. */
static void test_fits(void **state)
{
    (void)state;
    static const char *const preprocess[] = {"none", "standardize", "minmax", "rank", "scale:factor=0.3"};
    static double x[N][D], y[N], f[N], values[N][D];
    for (int i = 0; i < N * D; i++) x[i / D][i % D] = 3 + 2 * normal(4, i);
    for (int i = 0; i < N; i++) y[i] = 100 + 10 * sin(x[i][0]) + x[i][1] * x[i][2];
    mercer_matrix X = matrix_of(x, N, D), Y = matrix_of(y, N, 1), F = matrix_of(f, N, 1);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &X, .Y = &Y};
    mercer_dataset *data = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    for (int s = 0; s < 5; s++) {
        mercer_model *models[2] = {NULL, NULL};
        double base, size = 0;
        for (int m = 0; m < 2; m++) {
            mercer_fit_options options = MERCER_INIT(mercer_fit_options);
            options.search.tune = MERCER_OFF, options.data.preprocess = preprocess[s];
            options.kernel.spec = m ? "laplace" : "laplace-l1";
            assert_succeeds(context, mercer_fit(&models[m], context, data, &options, NULL));
            size += total_weight(models[m]) * model_info(models[m]).target_scale[0] / 2;
        }
        assert_succeeds(context, mrc_model_append(models[0], models[1]));
        mercer_shap_info info = find_values(models[0], NULL, &X, &base, values[0]);
        assert_true(info.from_centers && info.terms > 1);
        assert_int_equal(info.background_rows, N < 100 ? N : 100);
        assert_succeeds(context, mercer_model_predict(models[0], &F, &X));
        for (int i = 0; i < N; i++) {
            double sum = base, bound = D * info.error + 30 * ldexp(4 * D + N, -24) * size;
            for (int k = 0; k < D; k++) sum += values[i][k];
            assert_that(fabs(sum - f[i]) <= bound, "%s, row %d: %.12g, predicted %.12g, bound %g", preprocess[s], i,
                        sum, f[i], bound);
        }
        mercer_model_free(models[0]);
    }
    mercer_dataset_free(data);
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

/* A table of a thousand columns; constant columns, whose value must be 0; a table without rows; rows that are also the
   background. */
static void test_sizes(void **state)
{
    (void)state;
    enum { WIDE = 1000, FEW = 8 };
    static double z[FEW][WIDE], x[2][WIDE], values[2][WIDE];
    double base, f[2];
    for (int i = 0; i < FEW * WIDE; i++) z[i / WIDE][i % WIDE] = normal(5, i);
    for (int i = 0; i < 2 * WIDE; i++) x[i / WIDE][i % WIDE] = normal(6, i);
    for (int i = 0; i < FEW; i++) z[i][3] = 1;
    x[0][3] = x[1][3] = 1;
    mercer_matrix centers = matrix_of(z, FEW, WIDE), X = matrix_of(x, 2, WIDE), F = matrix_of(f, 2, 1),
                  row = matrix_of(x[1], 1, WIDE), none = matrix_of(x, 0, WIDE);
    static const char *const specs[] = {"gaussian:bandwidth=30", "laplace-l1:bandwidth=1000", "laplace:bandwidth=40"};
    for (int s = 0; s < 3; s++) {
        mercer_model *model = make_model(specs[s], &centers);
        mercer_shap_info info = find_values(model, &row, &X, &base, values[0]);
        assert_succeeds(context, mercer_model_predict(model, &F, &X));
        double sum = base;
        for (int k = 0; k < WIDE; k++) sum += values[0][k];
        assert_true(values[0][3] == 0);
        assert_that(fabs(sum - f[0]) <= 2 * info.error + 1e-11 * total_weight(model), "%.15g, predicted %.15g", sum,
                    f[0]);
        for (int k = 0; k < WIDE; k++) assert_true(values[1][k] == 0);
        find_values(model, &row, &none, &base, values[0]);
        mercer_model_free(model);
    }
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    double z[8][D], x[4][D], v[4][D], full[D][D] = {{2, 1}, {1, 2}, {0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 0, 1}};
    for (int i = 0; i < 8 * D; i++) z[i / D][i % D] = normal(7, i);
    for (int i = 0; i < 4 * D; i++) x[i / D][i % D] = normal(8, i);
    mercer_matrix centers = matrix_of(z, 8, D), X = matrix_of(x, 4, D), narrow = matrix_of(x, 4, D - 1),
                  none = matrix_of(x, 0, D), V = matrix_of(v, 4, D), metric = matrix_of(full, D, D);
    mercer_shap_options options = {.struct_size = sizeof options, .rows = 3};
    mercer_shap *shap = NULL;
    static const char *const kernels[] = {"linear", "polynomial:degree=2", "ntk:depth=1"};
    for (int i = 0; i < 3; i++) {
        mercer_model *model = make_model(kernels[i], &centers);
        assert_fails(context, mercer_model_shap(&shap, model, &X, NULL), MERCER_ERROR_UNSUPPORTED, "Shapley*built-in");
        mercer_model_free(model);
    }
    mercer_model *model = make_model("gaussian:bandwidth=2", &centers);
    assert_fails(context, mercer_model_shap(&shap, model, &narrow, NULL), MERCER_ERROR_SHAPE, "background is 4 x 4");
    assert_fails(context, mercer_model_shap(&shap, model, &none, NULL), MERCER_ERROR_SHAPE, "background*rows");
    assert_fails(context, mercer_model_shap(&shap, model, &X, &options), MERCER_ERROR_ARGUMENT, "background");
    options.rows = -1;
    assert_fails(context, mercer_model_shap(&shap, model, NULL, &options), MERCER_ERROR_ARGUMENT, "rows");
    assert_fails(NULL, mercer_model_shap(&shap, NULL, NULL, NULL), MERCER_ERROR_ARGUMENT, "model is NULL");
    assert_fails(context, mercer_model_shap(NULL, model, NULL, NULL), MERCER_ERROR_ARGUMENT, "out is NULL");
    x[2][1] = (double)NAN;
    assert_fails(context, mercer_model_shap(&shap, model, &X, NULL), MERCER_ERROR_DATA, "background");
    assert_null(shap);
    assert_succeeds(context, mercer_model_shap(&shap, model, NULL, NULL));
    assert_fails(context, mercer_shap_values(shap, &V, &X), MERCER_ERROR_DATA, "X");
    assert_fails(context, mercer_shap_values(shap, &V, &narrow), MERCER_ERROR_SHAPE, "X is 4 x 4");
    assert_fails(context, mercer_shap_values(shap, &narrow, &X), MERCER_ERROR_SHAPE, "V");
    assert_fails(context, mercer_shap_values(shap, &X, &X), MERCER_ERROR_OVERLAP, "V");
    assert_fails(NULL, mercer_shap_values(NULL, &V, &X), MERCER_ERROR_ARGUMENT, "shap is NULL");
    assert_fails(context, mercer_shap_interactions(shap, &V, &none), MERCER_ERROR_SHAPE, "V");
    assert_fails(NULL, mercer_shap_interactions(NULL, &V, &X), MERCER_ERROR_ARGUMENT, "shap is NULL");
    assert_fails(NULL, mercer_shap_query(NULL, NULL), MERCER_ERROR_ARGUMENT, "shap is NULL");
    mercer_shap_free(shap);
    x[2][1] = 0;
    static const char *const preprocess[] = {"none", "unit"};
    for (int i = 0; i < 2; i++) {
        mercer_preprocess *made = NULL;
        assert_succeeds(context, fit_to_matrix(&made, context, preprocess[i], &X));
        if (i == 0) set_metric(made, &metric, D);
        assert_succeeds(context, mercer_model_set_preprocess(model, made));
        mercer_preprocess_free(made);
        assert_fails(context, mercer_model_shap(&shap, model, &X, NULL), MERCER_ERROR_UNSUPPORTED,
                     i == 0 ? "full metric" : "preprocessing 'unit'");
    }
    mercer_model_free(model);
    mercer_shap_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shapley values against the enumeration of all subsets, against sums that have no cancellation, and against their
 * axioms. The library's error is the bound that it states plus rounding: at most (p + players + 8) 2^-52 for each
 * center and term, which is below 1e-12 of sum |alpha| for all sizes here; enumeration rounds by p 2^-52 of the same.
 */
#include "support/datasets.h"
#include "support/fitted.h"
#include "support/info.h"
#include "support/shapley.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"
#include "model/model.h"

#include <float.h>

enum { MOST_D = 64, P = 70, M = 5, B = 3, C = 2 };

static double z[P][MOST_D], rows[M][MOST_D], background[B][MOST_D], weights[P][C];
static const int64_t each[MOST_D] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                     32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                     48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

static int open_tests(void **state)
{
    for (int i = 0; i < P * MOST_D; i++) z[i / MOST_D][i % MOST_D] = mrc_random_normal((mrc_rng){3, 0}, (uint64_t)i);
    for (int i = 0; i < M * MOST_D; i++) rows[i / MOST_D][i % MOST_D] = mrc_random_normal((mrc_rng){3, 1}, (uint64_t)i);
    for (int i = 0; i < B * MOST_D; i++)
        background[i / MOST_D][i % MOST_D] = mrc_random_normal((mrc_rng){3, 2}, (uint64_t)i);
    for (int i = 0; i < P * C; i++) weights[i / C][i % C] = mrc_random_normal((mrc_rng){3, 3}, (uint64_t)i) / P;
    for (int l = 0; l < MOST_D; l += 3) rows[0][l] = z[0][l], background[0][l] = z[1][l]; /* equal coordinates */
    return open_datasets(state);
}

static mercer_matrix matrix_of(void *values, int64_t m, int64_t n)
{
    return mercer_matrix_view(values, m, n, MERCER_F64);
}

/* A view of the first d columns of one of the arrays above. */
static mercer_matrix first_columns(void *values, int64_t m, int64_t d)
{
    mercer_matrix all = matrix_of(values, m, MOST_D);
    all.cols = d;
    return all;
}

static mercer_model *make_model(const char *spec, int64_t d)
{
    mercer_kernel kernel;
    mercer_model *model = NULL;
    mercer_matrix centers = first_columns(z, P, d);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, spec));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &centers, C, MERCER_F64));
    memcpy(model_info(model).weights.data, weights, sizeof weights);
    return model;
}

static double total_weight(int c)
{
    double sum = 0;
    for (int j = 0; j < P; j++) sum += fabs(weights[j][c]);
    return sum;
}

/* Compute the values of a model for the rows and the background above; values (M, C d). */
static mercer_shap_info find_values(mercer_model *model, int64_t d, double *values)
{
    mercer_shap *shap = NULL;
    mercer_shap_info info = MERCER_INIT(mercer_shap_info);
    mercer_matrix X = first_columns(rows, M, d), all = first_columns(background, B, d), V = matrix_of(values, M, C * d);
    assert_succeeds(context, mercer_model_shap(&shap, model, &all, NULL));
    assert_succeeds(context, mercer_shap_query(shap, &info));
    assert_int_equal(info.columns, d);
    assert_int_equal(info.outputs, C);
    assert_int_equal(info.background_rows, B);
    assert_false(info.from_centers || info.transformed);
    assert_succeeds(context, mercer_shap_values(shap, &V, &X));
    mercer_matrix F = matrix_of(calloc(M * C, sizeof(double)), M, C);
    assert_succeeds(context, mercer_model_predict(model, &F, &X));
    for (int i = 0; i < M; i++) /* the efficiency axiom */
        for (int c = 0; c < C; c++) {
            double sum = info.base[c], wanted = ((double *)F.data)[i * C + c];
            for (int64_t k = 0; k < d; k++) sum += values[(i * C + c) * d + k];
            double bound = (double)d * info.error + 1e-12 * total_weight(c);
            assert_that(fabs(sum - wanted) <= bound, "row %d: values sum to %.15g, prediction %.15g", i, sum, wanted);
        }
    free(F.data);
    info.base = NULL, info.names = NULL;
    mercer_shap_free(shap);
    return info;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static void compare_with_enumeration(const char *spec, int64_t d)
{
    double found[M * C * MOST_D], alpha[P], centers[P * MOST_D];
    mercer_kernel kernel;
    mercer_model *model = make_model(spec, d);
    mercer_shap_info info = find_values(model, d, found);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, spec));
    for (int j = 0; j < P; j++) memcpy(centers + j * d, z[j], sizeof(double) * (size_t)d);
    for (int c = 0; c < C; c++) {
        double bound = info.error + 1e-12 * total_weight(c);
        assert_true(bound < 1e-9); /* a small part of the values, which are about 0.01 */
        for (int j = 0; j < P; j++) alpha[j] = weights[j][c];
        plain_sum sum = {&kernel, P, d, centers, alpha, d, each};
        for (int i = 0; i < (d > 8 ? 1 : M); i++) {
            double wanted[MOST_D] = {0};
            for (int b = 0; b < B; b++) enumerate_values(&sum, rows[i], background[b], 1.0 / B, wanted);
            for (int64_t k = 0; k < d; k++) {
                double value = found[(i * C + c) * d + k];
                assert_that(fabs(value - wanted[k]) <= bound, "%s, d = %d: row %d, column %d: %.15g, wanted %.15g",
                            spec, (int)d, i, (int)k, value, wanted[k]);
            }
        }
    }
    mercer_model_free(model);
}

static void test_enumeration(void **state)
{
    (void)state;
    static const char *const specs[] = {"gaussian:bandwidth=2",
                                        "laplace-l1:bandwidth=3",
                                        "lpq:p=1.5,q=1.5,bandwidth=2",
                                        "exppower:bandwidth=2,gamma=2",
                                        "laplace:bandwidth=3",
                                        "matern32:bandwidth=2",
                                        "matern52:bandwidth=2",
                                        "exppower:bandwidth=3,gamma=1.4",
                                        "exppower-l1:bandwidth=4,gamma=0.6",
                                        "cauchy:bandwidth=2",
                                        "rational-quadratic:bandwidth=2,alpha=2",
                                        "lpq:p=1.5,q=0.8,bandwidth=5"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) compare_with_enumeration(specs[i], 5);
    compare_with_enumeration("gaussian:bandwidth=0.4", 7); /* narrow */
    compare_with_enumeration("laplace-l1:bandwidth=0.1", 7);
    compare_with_enumeration("gaussian:bandwidth=3", 1);
    compare_with_enumeration("laplace:bandwidth=3", 1);
    compare_with_enumeration("gaussian:bandwidth=3", 12);
    compare_with_enumeration("laplace-l1:bandwidth=8", 12);
    compare_with_enumeration("exppower-l1:bandwidth=10,gamma=0.7", 12);
}

/* Tables with enough columns that the library takes fewer quadrature nodes than the exact rule has, for bandwidths from
   those where only the row and the background row themselves matter to those where all factors are near 1. */
static void test_many_columns(void **state)
{
    (void)state;
    static const double bandwidths[] = {0.3, 1.5, 6, 25, 1000};
    double found[M * C * MOST_D], alpha[P];
    for (int power = 1; power <= 2; power++)
        for (int64_t d = 13; d <= MOST_D; d += 17)
            for (size_t w = 0; w < sizeof bandwidths / sizeof *bandwidths; w++) {
                char spec[80];
                double centers[P * MOST_D], rate = power == 1 ? 1 / bandwidths[w] : 0.5 / bandwidths[w] / bandwidths[w];
                snprintf(spec, sizeof spec, "%s:bandwidth=%g", power == 1 ? "laplace-l1" : "gaussian", bandwidths[w]);
                mercer_model *model = make_model(spec, d);
                mercer_shap_info info = find_values(model, d, found);
                for (int j = 0; j < P; j++) memcpy(centers + j * d, z[j], sizeof(double) * (size_t)d);
                for (int j = 0; j < P; j++) alpha[j] = weights[j][1];
                plain_sum sum = {NULL, P, d, centers, alpha, d, each};
                for (int i = 0; i < M; i++) {
                    double wanted[MOST_D] = {0};
                    for (int b = 0; b < B; b++)
                        symmetric_values(&sum, rate, power, rows[i], background[b], 1.0 / B, wanted);
                    for (int64_t k = 0; k < d; k++) {
                        double value = found[(i * C + 1) * d + k], bound = info.error + 1e-13 * total_weight(1);
                        assert_that(fabs(value - wanted[k]) <= bound, "%s, d = %d: %.16g, wanted %.16g", spec, (int)d,
                                    value, wanted[k]);
                    }
                }
                mercer_model_free(model);
            }
}

/* Interactions against enumeration; lines sum to the values. Their errors are at most twice those of the values. */
static void test_interactions(void **state)
{
    (void)state;
    enum { D = 6 };
    static const char *const specs[] = {"gaussian:bandwidth=2", "laplace-l1:bandwidth=0.5", "laplace:bandwidth=3"};
    static double values[M * C * D], found[M * C * D * D], centers[P * D], alpha[P];
    for (int j = 0; j < P; j++) memcpy(centers + j * D, z[j], sizeof(double) * D);
    for (int s = 0; s < 3; s++) {
        mercer_model *model = make_model(specs[s], D);
        mercer_shap *shap = NULL;
        mercer_shap_info info = find_values(model, D, values);
        mercer_matrix X = first_columns(rows, M, D), all = first_columns(background, B, D),
                      V = matrix_of(found, M, C * D * D);
        assert_succeeds(context, mercer_model_shap(&shap, model, &all, NULL));
        assert_succeeds(context, mercer_shap_interactions(shap, &V, &X));
        mercer_shap_free(shap);
        for (int i = 0; i < M * C; i++) {
            double bound = 2 * info.error + 1e-12 * total_weight(i % C);
            const double *square = found + i * D * D;
            for (int j = 0; j < P; j++) alpha[j] = weights[j][i % C];
            plain_sum sum = {&model->kernel, P, D, centers, alpha, D, each};
            for (int k = 0; k < D; k++) {
                double line = 0;
                for (int l = 0; l < D; l++) {
                    double wanted = 0;
                    line += square[k * D + l];
                    assert_true(square[k * D + l] == square[l * D + k]);
                    if (l <= k) continue;
                    for (int b = 0; b < B; b++)
                        enumerate_interaction(&sum, rows[i / C], background[b], 0.5 / B, k, l, &wanted);
                    assert_that(fabs(square[k * D + l] - wanted) <= bound, "%s: columns %d and %d: %.15g, wanted %.15g",
                                specs[s], k, l, square[k * D + l], wanted);
                }
                assert_true(fabs(line - values[i * D + k]) <= 1e-13);
            }
        }
        mercer_model_free(model);
    }
}

/* ---- Axioms ------------------------------------------------------------------------------------------------------ */

/* A column with weight 0 has value 0; two columns that are equal in rows, background and centers have equal values;
   values are linear in the weights; the values of a background are means over its rows. */
static void test_axioms(void **state)
{
    (void)state;
    enum { D = 6 };
    static const char *const specs[] = {"gaussian:bandwidth=2", "exppower:bandwidth=3,gamma=1.3"};
    double own[D] = {1, 1, 0, 2, 1, 1}, found[M * C * D], other[M * C * D];
    mercer_matrix metric = matrix_of(own, 1, D), X = first_columns(rows, M, D);
    for (int i = 0; i < P; i++) z[i][5] = z[i][4];
    for (int i = 0; i < M; i++) rows[i][5] = rows[i][4];
    for (int i = 0; i < B; i++) background[i][5] = background[i][4];
    for (size_t s = 0; s < 2; s++) {
        mercer_model *model = make_model(specs[s], D);
        mercer_preprocess *preprocess = NULL;
        assert_succeeds(context, fit_to_matrix(&preprocess, context, "none", &X));
        set_metric(preprocess, &metric, D);
        assert_succeeds(context, mercer_model_set_preprocess(model, preprocess));
        mercer_preprocess_free(preprocess);
        find_values(model, D, found);
        for (int i = 0; i < M * C; i++) {
            assert_true(found[i * D + 2] == 0);
            double apart = fabs(found[i * D + 4] - found[i * D + 5]);
            assert_that(apart <= 1e-13 * total_weight(i % C), "equal columns differ by %g", apart);
        }
        double *alpha = model_info(model).weights.data;
        for (int j = 0; j < P; j++) alpha[j * C + 1] = 3 * alpha[j * C] + alpha[j * C + 1];
        find_values(model, D, other);
        for (int i = 0; i < M; i++)
            for (int k = 0; k < D; k++) {
                double wanted = 3 * found[i * C * D + k] + found[(i * C + 1) * D + k];
                assert_true(fabs(other[(i * C + 1) * D + k] - wanted) <= 1e-12 * total_weight(0));
            }
        mercer_model_free(model);
    }
}

/* The mean over single background rows is the value for all of them. */
static void test_backgrounds(void **state)
{
    (void)state;
    enum { D = 4 };
    double all[M * C * D], one[M * C * D], mean[M * C * D] = {0};
    mercer_model *model = make_model("exppower-l1:bandwidth=3,gamma=0.7", D);
    find_values(model, D, all);
    for (int b = 0; b < B; b++) {
        mercer_shap *shap = NULL;
        mercer_matrix X = first_columns(rows, M, D), row = first_columns(background[b], 1, D),
                      V = matrix_of(one, M, C * D);
        assert_succeeds(context, mercer_model_shap(&shap, model, &row, NULL));
        assert_succeeds(context, mercer_shap_values(shap, &V, &X));
        for (int i = 0; i < M * C * D; i++) mean[i] += one[i] / B;
        mercer_shap_free(shap);
    }
    for (int i = 0; i < M * C * D; i++) assert_true(fabs(mean[i] - all[i]) <= 1e-13);
    mercer_model_free(model);
}

/* ---- Threads, instruction sets, splits -------------------------------------------------------------------------- */

/* The bits do not depend on threads, instruction set and split of the rows; there are several chunks of centers. */
static void test_bits(void **state)
{
    (void)state;
    enum { D = 21, MANY = 1500, ROWS = 19 };
    static double centers[MANY][D], X[ROWS][D], first[ROWS][D], other[ROWS][D];
    static const char *const specs[] = {"laplace-l1:bandwidth=15", "exppower:bandwidth=4,gamma=1.2"};
    for (int i = 0; i < MANY * D; i++) centers[i / D][i % D] = mrc_random_normal((mrc_rng){4, 0}, (uint64_t)i);
    for (int i = 0; i < ROWS * D; i++) X[i / D][i % D] = mrc_random_normal((mrc_rng){4, 1}, (uint64_t)i);
    mrc_isa own = context->isa;
    int threads = context->threads;
    for (int s = 0; s < 2; s++) {
        mercer_kernel kernel;
        mercer_model *model = NULL;
        mercer_shap *shap = NULL;
        mercer_shap_options options = {.struct_size = sizeof options, .rows = 3};
        mercer_shap_info info = MERCER_INIT(mercer_shap_info);
        mercer_matrix all = matrix_of(centers, MANY, D), x = matrix_of(X, ROWS, D), V = matrix_of(first, ROWS, D),
                      W = matrix_of(other, ROWS, D);
        assert_succeeds(context, mercer_kernel_parse(&kernel, context, specs[s]));
        assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &all, 1, MERCER_F64));
        for (int j = 0; j < MANY; j++)
            ((double *)model_info(model).weights.data)[j] = mrc_random_normal((mrc_rng){4, 2}, (uint64_t)j);
        assert_succeeds(context, mercer_model_shap(&shap, model, NULL, &options));
        assert_succeeds(context, mercer_shap_query(shap, &info));
        assert_true(info.from_centers && info.background_rows == 3);
        context->threads = 1;
        assert_succeeds(context, mercer_shap_values(shap, &V, &x));
        context->threads = 3;
        for (int isa = 0; isa <= (int)own; isa++) {
            context->isa = (mrc_isa)isa;
            memset(other, 0, sizeof other);
            assert_succeeds(context, mercer_shap_values(shap, &W, &x));
            assert_memory_equal(first, other, sizeof first);
        }
        for (int i = 0; i < ROWS; i += 3) {
            mercer_matrix some = matrix_of(X[i], i + 3 <= ROWS ? 3 : ROWS - i, D),
                          to = matrix_of(other[i], some.rows, D);
            assert_succeeds(context, mercer_shap_values(shap, &to, &some));
        }
        assert_memory_equal(first, other, sizeof first);
        context->isa = own, context->threads = threads;
        mercer_shap_free(shap);
        mercer_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enumeration), cmocka_unit_test(test_many_columns), cmocka_unit_test(test_interactions),
        cmocka_unit_test(test_backgrounds), cmocka_unit_test(test_axioms),       cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

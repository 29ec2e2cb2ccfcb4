/* SPDX-License-Identifier: BSD-3-Clause */
/* The transforms log and rank of targets, and class weights: their values, that files preserve them, and which are
   refused. */
#include "support/datasets.h"

#include "support/info.h"

#include "core/numbers/random.h"
#include "core/numbers/target_curve.h"
#include "core/numbers/units.h"
#include "mercer/advanced.h"

#include <float.h>
#include <math.h>

enum { N = 300, D = 2 };

static double X[N][D], Y[N], weights[N];
static int32_t labels[N];

/* A positive target with a heavy tail; one class has a sixth of the rows. */
static void make_samples(void)
{
    const mrc_rng rng = {9, 4};
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) X[i][j] = mrc_random_normal(rng, (uint64_t)(i * D + j));
        Y[i] = exp(2 * X[i][0] + X[i][1]);
        labels[i] = i % 6 == 0;
        weights[i] = i % 5;
    }
}

static int open_tests(void **state)
{
    make_samples();
    return open_datasets(state);
}

static mercer_dataset *dataset(double *y, const int32_t *classes, const double *given, const char *const *names)
{
    mercer_dataset *out = NULL;
    mercer_matrix x = mercer_matrix_view(X, N, D, MERCER_F64), values = mercer_matrix_view(y, N, 1, MERCER_F64);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = &x, arrays.weights = given;
    if (classes)
        arrays.labels = classes, arrays.classes = 2, arrays.label_names = names;
    else
        arrays.Y = &values;
    assert_succeeds(context, mercer_dataset_from_arrays(&out, context, &arrays));
    return out;
}

static mercer_status fit(mercer_model **out, mercer_dataset *data, const char *transform, const char *class_weight)
{
    mercer_train_options train = MERCER_INIT(mercer_train_options);
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    train.solver = "direct", train.lambda = 1e-3;
    options.train = &train, options.run.memory = 1 << 28, options.centers.count = 80,
    options.kernel.spec = "gaussian:bandwidth=2";
    options.data.target_transform = transform, options.data.class_weight = class_weight;
    return mercer_fit(out, context, data, &options, NULL);
}

/* ---- Curves ---------------------------------------------------------------------------------------------------- */

/* Phi(x) = erfc(-x / sqrt 2) / 2 inverts it, up to the slope of Phi times the last digit of x. */
static void test_normal_quantile(void **state)
{
    (void)state;
    for (int k = 1; k < 1000; k++) {
        double p = k / 1000.0, x = mrc_normal_quantile(p);
        assert_that(fabs(0.5 * erfc(-x / sqrt(2)) - p) <= 8 * DBL_EPSILON, "quantile %g of %g", x, p);
    }
    assert_true(isfinite(mrc_normal_quantile(1e-300)) && fabs(mrc_normal_quantile(0.5)) < 1e-15);
}

/* Between knots g is linear and invertible; beyond them it has the values at the ends. */
static void test_rank_table(void **state)
{
    (void)state;
    double numbers[2][4] = {{1, 2, 10, 10}, {-1, 0, 3, 3}};
    mercer_matrix of = mercer_matrix_view(numbers, 2, 4, MERCER_F64);
    mrc_curve curve = {0};
    assert_succeeds(context, mrc_curve_set(&curve, context, MRC_CURVE_RANK, 1, &of));
    assert_true(mrc_curve_apply(&curve, 0, 1) == -1 && mrc_curve_apply(&curve, 0, -7) == -1);
    assert_true(mrc_curve_apply(&curve, 0, 6) == 1.5 && mrc_curve_apply(&curve, 0, 99) == 3);
    assert_true(mrc_curve_invert(&curve, 0, 1.5) == 6 && mrc_curve_invert(&curve, 0, 5) == 10);
    assert_true(mrc_curve_invert(&curve, 0, -2) == 1);
    numbers[0][1] = 1;
    assert_fails(context, mrc_curve_set(&curve, context, MRC_CURVE_RANK, 1, &of), MERCER_ERROR_DATA, "ascending");
    of.cols = 1;
    assert_fails(context, mrc_curve_set(&curve, context, MRC_CURVE_RANK, 1, &of), MERCER_ERROR_SHAPE, "2 or more");
    assert_true(mrc_curve_apply(&curve, 0, 6) == 1.5); /* the curve is unchanged */
    mrc_curve_clear(&curve, context);
}

/* ---- Fits ------------------------------------------------------------------------------------------------------ */

static void predict(mercer_model *model, double *f)
{
    mercer_matrix x = mercer_matrix_view(X, N, D, MERCER_F64), out = mercer_matrix_view(f, N, 1, MERCER_F64);
    assert_succeeds(context, mercer_model_predict(model, &out, &x));
}

/* Which curves are valid, and that units are unchanged if a curve is refused. */
static void test_units(void **state)
{
    (void)state;
    enum { C = 2 };
    const double offset[C] = {1, -2}, scale[C] = {2, 4}, none[C] = {0}, one[C] = {1, 1};
    const double bad[][C] = {{1, (double)NAN}, {1, (double)INFINITY}, {1, 0}, {1, -1}};
    double y[C] = {5, 6}, back[C];
    mrc_units units = {0};
    mercer_matrix from = mercer_matrix_view(y, 1, C, MERCER_F64), to = mercer_matrix_view(back, 1, C, MERCER_F64);
    int64_t live = allocator.live;
    for (int way = 0; way < 3; way++) { /* units that change nothing */
        assert_succeeds(context, mrc_units_set(&units, context, C, way ? none : NULL, way == 1 ? NULL : one));
        assert_true(!mrc_units_given(&units) && mrc_units_print(&units, C) == 0);
    }
    mrc_units_apply(&units, &to, &from);
    assert_memory_equal(back, y, sizeof y);
    assert_false(mrc_units_given(NULL));
    assert_succeeds(context, mrc_units_set(&units, context, C, NULL, scale));
    uint64_t print = mrc_units_print(&units, C);
    assert_true(units.offset[1] == 0 && units.scale[1] == 4 && print != 0);
    assert_succeeds(context, mrc_units_set(&units, context, C, offset, NULL));
    assert_true(units.offset[1] == -2 && units.scale[1] == 1 && mrc_units_print(&units, C) != print);
    assert_succeeds(context, mrc_units_set(&units, context, C, offset, scale));
    mrc_units_apply(&units, &to, &from);
    assert_true(back[0] == 2 && back[1] == 2);
    mrc_units_invert(&units, &to, &to);
    assert_memory_equal(back, y, sizeof y);
    for (int i = 0; i < 4; i++)
        assert_fails(context, mrc_units_set(&units, context, C, i < 2 ? bad[i] : NULL, i < 2 ? NULL : bad[i]),
                     MERCER_ERROR_DATA, i < 2 ? "offset 1 (from 0)" : "scale 1 (from 0)");
    assert_fails(context, mrc_units_set(&units, context, C, NULL, bad[1]), MERCER_ERROR_DATA, "scale 1 (from 0)");
    assert_true(units.offset[0] == 1);
    mrc_units_clear(&units, context);
    assert_int_equal(allocator.live, live);

    double numbers[2 * C * 3] = {1, 2, 3, 4, 5, 6, 1, 1, 1, 2, 4, 4};
    mercer_matrix rank = mercer_matrix_view(numbers, 2 * C, 3, MERCER_F64),
                  log = mercer_matrix_view(numbers, C, 1, MERCER_F64);
    assert_fails(context, mrc_units_set_curve(&units, context, MRC_CURVE_RANK, C, &rank), MERCER_ERROR_DATA, "row 2");
    assert_int_equal(allocator.live, live); /* the units created for the curve have been released */
    numbers[6] = 0;                         /* equal values are allowed only at the end */
    assert_succeeds(context, mrc_units_set_curve(&units, context, MRC_CURVE_RANK, C, &rank));
    assert_int_equal(mrc_curve_size(&units.curve, C), 12);
    numbers[7] = 0;
    assert_fails(context, mrc_units_set_curve(&units, context, MRC_CURVE_RANK, C, &rank), MERCER_ERROR_DATA, "row 2");
    numbers[7] = -1;
    assert_fails(context, mrc_units_set_curve(&units, context, MRC_CURVE_RANK, C, &rank), MERCER_ERROR_DATA, "row 2");
    numbers[7] = (double)NAN;
    assert_fails(context, mrc_units_set_curve(&units, context, MRC_CURVE_RANK, C, &rank), MERCER_ERROR_DATA,
                 "column 1");
    rank.cols = 1;
    assert_fails(context, mrc_units_set_curve(&units, context, MRC_CURVE_RANK, C, &rank), MERCER_ERROR_SHAPE,
                 "4 x 2 or more");
    log.cols = 2;
    assert_fails(context, mrc_units_set_curve(&units, context, MRC_CURVE_LOG, C, &log), MERCER_ERROR_SHAPE, "2 x 1");
    log.cols = 1, log.rows = 3;
    assert_fails(context, mrc_units_set_curve(&units, context, MRC_CURVE_LOG, C, &log), MERCER_ERROR_SHAPE, "2 x 1");
    log.rows = 2;
    assert_succeeds(context, mrc_units_set_curve(&units, context, MRC_CURVE_LOG, C, &log));
    assert_int_equal(mrc_curve_size(&units.curve, C), 2);
    for (int n = 1; n <= 2; n++) { /* without memory the units are unchanged */
        mrc_units other = {0};
        allocator.fail_at = allocator.requests + n;
        assert_fails(context, mrc_units_set_curve(&other, context, MRC_CURVE_LOG, C, &log), MERCER_ERROR_MEMORY, "");
        allocator.fail_at = 0;
        assert_true(!mrc_units_given(&other) && !other.curve.numbers);
    }
    allocator.fail_at = allocator.requests + 1;
    assert_fails(context, mrc_units_set(&units, context, C, offset, scale), MERCER_ERROR_MEMORY, "units");
    allocator.fail_at = 0;
    assert_true(units.curve.kind == MRC_CURVE_LOG);
    mrc_curve_kind kind;
    assert_true(mrc_curve_find("rank", &kind) && kind == MRC_CURVE_RANK && !mrc_curve_find("root", &kind));
    mrc_units_clear(&units, context);
    assert_int_equal(allocator.live, live);
}

/* log is a fit to the logarithms, transformed back: the weights are bitwise identical, and predictions are the
   exponentials up to the rounding of exp and of the mean and deviation that both add: a few ulps of values up to
   exp(8). */
static void test_log(void **state)
{
    (void)state;
    double logs[N], plain[N], bent[N], again[N];
    mercer_model *a = NULL, *b = NULL, *loaded = NULL;
    for (int i = 0; i < N; i++) logs[i] = log(Y[i]);
    mercer_dataset *of = dataset(Y, NULL, NULL, NULL), *by_hand = dataset(logs, NULL, NULL, NULL);
    assert_succeeds(context, fit(&a, of, "log", NULL));
    /* check-words: allow spelling -ise (the name of 0.1 and 0.2, an alias) */
    assert_succeeds(context, fit(&b, by_hand, "standardise", NULL));
    predict(a, bent), predict(b, plain);
    for (int i = 0; i < N; i++)
        assert_that(fabs(bent[i] - exp(plain[i])) <= 64 * DBL_EPSILON * exp(plain[i]), "%g, not %g", bent[i],
                    exp(plain[i]));
    assert_string_equal(model_info(a).target_curve, "log");
    assert_null(model_info(b).target_curve);
    assert_succeeds(context, mercer_model_save(a, in_folder("m"), NULL));
    assert_succeeds(context, mercer_model_load(&loaded, context, NULL, in_folder("m")));
    predict(loaded, again);
    assert_memory_equal(again, bent, sizeof again);
    mercer_model_free(a), mercer_model_free(b), mercer_model_free(loaded);
    mercer_dataset_free(of), mercer_dataset_free(by_hand);
}

/* A target of 0 is learned as log(1 + y); a negative target is refused, with its value in the message. */
static void test_log_of_zero(void **state)
{
    (void)state;
    double y[N], f[N];
    mercer_model *model = NULL;
    memcpy(y, Y, sizeof y);
    y[17] = 0;
    mercer_dataset *of = dataset(y, NULL, NULL, NULL);
    assert_succeeds(context, fit(&model, of, "log", NULL));
    predict(model, f);
    for (int i = 0; i < N; i++) assert_true(f[i] > -1);
    mercer_model_free(model);
    y[17] = -0.25;
    model = NULL;
    assert_fails(context, fit(&model, of, "log", NULL), MERCER_ERROR_DATA, "sample 17 (from 0) is -0.25");
    assert_null(model);
    mercer_dataset_free(of);
    of = dataset(NULL, labels, NULL, NULL);
    assert_fails(context, fit(&model, of, "rank", NULL), MERCER_ERROR_ARGUMENT, "target_transform ");
    mercer_dataset_free(of);
}

/* Ranks do not depend on a monotone transform of the targets: the weights are bitwise identical. Predictions are
   within the range of the targets. */
static void test_rank(void **state)
{
    (void)state;
    double y[N], f[N], again[N], least = (double)INFINITY, most = 0;
    mercer_model *a = NULL, *b = NULL, *loaded = NULL;
    for (int i = 0; i < N; i++) y[i] = 1e6 * Y[i] * Y[i] + 3, least = fmin(least, Y[i]), most = fmax(most, Y[i]);
    mercer_dataset *of = dataset(Y, NULL, NULL, NULL), *bent = dataset(y, NULL, NULL, NULL);
    assert_succeeds(context, fit(&a, of, "rank", NULL));
    assert_succeeds(context, fit(&b, bent, "rank", NULL));
    mercer_matrix left = model_info(a).weights, right = model_info(b).weights;
    assert_memory_equal(left.data, right.data, (size_t)left.rows * sizeof(double));
    predict(a, f);
    double error = 0, spread = 0, mean = 0;
    for (int i = 0; i < N; i++) assert_true(f[i] >= least && f[i] <= most), mean += log(Y[i]) / N;
    for (int i = 0; i < N; i++) error += pow(log(f[i]) - log(Y[i]), 2), spread += pow(log(Y[i]) - mean, 2);
    assert_that(error < 0.1 * spread, "%g of %g", error, spread);
    assert_succeeds(context, mercer_model_save(a, in_folder("m"), NULL));
    assert_succeeds(context, mercer_model_load(&loaded, context, NULL, in_folder("m")));
    predict(loaded, again);
    assert_memory_equal(again, f, sizeof f);
    mercer_model_free(a), mercer_model_free(b), mercer_model_free(loaded);
    for (int i = 0; i < N; i++) y[i] = 5;
    b = NULL;
    assert_fails(context, fit(&b, bent, "rank", NULL), MERCER_ERROR_DATA, "constant");
    mercer_dataset_free(of), mercer_dataset_free(bent);
}

/* ---- Class weights --------------------------------------------------------------------------------------------- */

static void assert_same_weights(mercer_dataset *left, const char *how, mercer_dataset *right)
{
    mercer_model *a = NULL, *b = NULL;
    assert_succeeds(context, fit(&a, left, NULL, how));
    assert_succeeds(context, fit(&b, right, NULL, NULL));
    mercer_matrix of = model_info(a).weights, as = model_info(b).weights;
    assert_memory_equal(of.data, as.data, (size_t)(of.rows * of.cols) * sizeof(double));
    mercer_model_free(a), mercer_model_free(b);
}

/* Class weights act as sample weights: a fit with the corresponding sample weights is bitwise identical. Class names
   may have commas and equals signs. */
static void test_class_weights(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "a=1,b"};
    double balanced[N], given[N], sums[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        const double *own = k ? weights : NULL;
        sums[0] = sums[1] = 0;
        for (int i = 0; i < N; i++) sums[labels[i]] += own ? own[i] : 1;
        for (int i = 0; i < N; i++) {
            double w = own ? own[i] : 1;
            balanced[i] = (sums[0] + sums[1]) / (2 * sums[labels[i]]) * w;
            given[i] = (labels[i] ? 2.5 : 0.5) * w;
        }
        mercer_dataset *of = dataset(NULL, labels, own, names), *by_hand = dataset(NULL, labels, balanced, names),
                       *by_name = dataset(NULL, labels, given, names);
        assert_same_weights(of, "balanced", by_hand);
        assert_same_weights(of, "a=1,b=2.5,a=0.5", by_name);
        assert_same_weights(of, "none", of);
        mercer_dataset_free(of), mercer_dataset_free(by_hand), mercer_dataset_free(by_name);
    }
}

static void test_class_weights_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"no", "yes"};
    mercer_model *model = NULL;
    mercer_dataset *classes = dataset(NULL, labels, NULL, names), *values = dataset(Y, NULL, NULL, NULL);
    assert_fails(context, fit(&model, classes, NULL, "equal"), MERCER_ERROR_ARGUMENT, "balanced");
    assert_fails(context, fit(&model, classes, NULL, "maybe=1"), MERCER_ERROR_ARGUMENT, "'maybe=1'");
    assert_fails(context, fit(&model, classes, NULL, "no=-1"), MERCER_ERROR_ARGUMENT, "'-1'");
    assert_fails(context, fit(&model, classes, NULL, "no=1,"), MERCER_ERROR_ARGUMENT, "comma");
    assert_fails(context, fit(&model, values, NULL, "balanced"), MERCER_ERROR_ARGUMENT, "class_weight");
    assert_null(model);
    mercer_dataset_free(classes), mercer_dataset_free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normal_quantile), cmocka_unit_test(test_rank_table),
        cmocka_unit_test(test_units),           cmocka_unit_test(test_log),
        cmocka_unit_test(test_log_of_zero),     cmocka_unit_test(test_rank),
        cmocka_unit_test(test_class_weights),   cmocka_unit_test(test_class_weights_refused)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

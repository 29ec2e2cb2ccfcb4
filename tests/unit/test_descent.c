/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descents of the held-out error: gradients against finite differences in every hyperparameter, on every backend;
 * random splits that never divide a group of rows; steps that are rejected.
 */
#include "support/backends.h"
#include "support/datasets.h"

#include "core/matrix.h"
#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "search/error_gradient.h"
#include "search/hyper_descent.h"

#include <math.h>
#include <string.h>

/* ---- The gradient ------------------------------------------------------------------------------------------------ */

enum { M = 40, FITTED = 26, CENTERS = 9, D = 3, MOST_C = 3 };
static double points[M][D], targets[M][MOST_C], row_weights[M];

static double normal(uint64_t sequence, int index)
{
    return mrc_random_normal((mrc_rng){97, sequence}, (uint64_t)index);
}

static int open_tests(void **state)
{
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < D; k++) points[i][k] = normal(0, i * D + k);
        for (int l = 0; l < MOST_C; l++) targets[i][l] = sin(points[i][l % D]) + 0.3 * normal(1, i * MOST_C + l);
        row_weights[i] = 0.5 + i % 3;
    }
    return open_datasets(state);
}

/* A point in the space of hyperparameters: a map (its diagonal: scales), an exponent, a ridge. */
typedef struct place {
    const char *kernel;
    int outputs;
    bool weighted, mapped;
    double map[D][D], gamma, ridge;
} place;

static mercer_status upload(mrc_backend *backend, mrc_scope *scope, mercer_matrix *to, const mercer_matrix *from)
{
    MRC_TRY(mrc_scope_matrix(scope, backend, to, from->rows, from->cols, from->dtype, "test"));
    return backend->ops->copy(backend, to, from);
}

static double find_gradient(mrc_backend *backend, const place *at, mrc_error_gradient *out)
{
    double x[M][D] = {{0}}, y[M * MOST_C];
    mercer_kernel kernel;
    mrc_gradient_buffer buffer;
    mrc_draw draw = {.weights = at->weighted ? row_weights : NULL};
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, at->kernel));
    kernel.gamma = at->gamma > 0 ? at->gamma : kernel.gamma;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < D; j++)
            for (int k = 0; k < D; k++) x[i][j] += points[i][k] * at->map[k][j];
    for (int i = 0; i < M; i++)
        for (int l = 0; l < at->outputs; l++) y[i * at->outputs + l] = targets[i][l];
    mercer_matrix mapped = mrc_view(x, M, D, MERCER_F64), plain = mrc_view(points, M, D, MERCER_F64),
                  wanted = mrc_view(y, M, at->outputs, MERCER_F64);
    MRC_SCOPE(scope, backend->context);
    assert_succeeds(backend->context, upload(backend, &scope, &draw.x, &mapped));
    assert_succeeds(backend->context, upload(backend, &scope, &draw.y, &wanted));
    if (at->mapped) assert_succeeds(backend->context, upload(backend, &scope, &draw.plain, &plain));
    assert_succeeds(backend->context, mrc_gradient_open(&buffer, &scope, backend, &draw, FITTED, CENTERS));
    assert_succeeds(backend->context, mrc_error_gradient_find(&buffer, &kernel, at->ridge, true, &draw, out));
    assert_true(out->solved);
    return out->error;
}

/* Returns a central difference with h = 1e-4. Its error is h^2 / 6 third derivatives plus rounding over h: both
   below 1e-6. */
static double difference(mrc_backend *backend, const place *at, double *parameter, bool relative)
{
    const double h = 1e-4, value = *parameter;
    double scales[D], moment[D * D], error[2];
    mrc_error_gradient unused = {.scales = scales, .moment = moment};
    for (int side = 0; side < 2; side++) {
        double by = side == 0 ? h : -h;
        *parameter = relative ? value * exp(by) : value + by;
        error[side] = find_gradient(backend, at, &unused);
    }
    *parameter = value;
    return (error[0] - error[1]) / (2 * h);
}

static void compare_gradient(mrc_backend *backend, place at)
{
    double scales[D], moment[D * D];
    mrc_error_gradient g = {.scales = scales, .moment = moment};
    find_gradient(backend, &at, &g);
    assert_true(fabs(difference(backend, &at, &at.ridge, true) - g.ridge) <= 1e-6);
    for (int k = 0; k < D && !at.mapped; k++)
        assert_true(fabs(difference(backend, &at, &at.map[k][k], true) - g.scales[k]) <= 1e-6);
    for (int i = 0; i < D && at.mapped; i++)
        for (int j = 0; j < D; j++) {
            double slope = 0; /* dE/dA = S A */
            for (int l = 0; l < D; l++) slope += moment[i * D + l] * at.map[l][j];
            assert_true(fabs(difference(backend, &at, &at.map[i][j], false) - slope) <= 1e-6);
        }
    /* The gradient in the exponent is itself a difference with h = 1e-3. */
    if (at.gamma > 0) assert_true(fabs(difference(backend, &at, &at.gamma, false) - g.exponent) <= 1e-5);
}

static void compare_gradients(mrc_backend *backend)
{
    static const char *const kernels[] = {"laplace-l1:bandwidth=3", "exppower-l1:bandwidth=3,gamma=0.7",
                                          "gaussian:bandwidth=2", "exppower:bandwidth=2,gamma=1.3"};
    for (int which = 0; which < 4; which++)
        for (int c = 1; c <= MOST_C; c += 2)
            for (int weighted = 0; weighted < 2; weighted++) {
                place at = {.kernel = kernels[which], .outputs = c, .weighted = weighted, .ridge = 1e-3};
                at.gamma = which == 1 ? 0.7 : which == 3 ? 1.3 : 0;
                for (int k = 0; k < D; k++) at.map[k][k] = 1 + 0.3 * k;
                compare_gradient(backend, at);
                if (which < 2) continue; /* a map needs norm 2 */
                at.mapped = true, at.map[0][1] = 0.4, at.map[2][0] = -0.3;
                compare_gradient(backend, at);
            }
}

static void test_gradient(void **state)
{
    (void)state;
    for_each_backend(compare_gradients);
}

/* Kernel values of floats are rounded, so a smooth kernel with a large bandwidth has eigenvalues below zero. The
   equations must be solved nevertheless, because otherwise a descent would reject every step. */
static void solve_rounded(mrc_backend *backend)
{
    enum { ALL = 300, TRAIN = 200, Z = 150 };
    static float x[ALL][2];
    static double y[ALL];
    for (int i = 0; i < ALL; i++) {
        for (int k = 0; k < 2; k++) x[i][k] = (float)normal(4, 2 * i + k);
        y[i] = sin((double)x[i][0]) + 0.3 * normal(5, i);
    }
    mercer_matrix points_of = mrc_view(x, ALL, 2, MERCER_F32), targets_of = mrc_view(y, ALL, 1, MERCER_F64);
    for (int scale = 1; scale <= 64; scale *= 4) {
        double scales[2];
        mercer_kernel kernel;
        mrc_error_gradient found = {.scales = scales};
        mrc_gradient_buffer buffer;
        mrc_draw draw = {.weights = NULL};
        MRC_SCOPE(scope, backend->context);
        assert_succeeds(context, mercer_kernel_parse(&kernel, context, "gaussian:bandwidth=1"));
        kernel.bandwidth = scale;
        assert_succeeds(backend->context, upload(backend, &scope, &draw.x, &points_of));
        assert_succeeds(backend->context, upload(backend, &scope, &draw.y, &targets_of));
        assert_succeeds(backend->context, mrc_gradient_open(&buffer, &scope, backend, &draw, TRAIN, Z));
        assert_succeeds(backend->context, mrc_error_gradient_find(&buffer, &kernel, 1e-2, false, &draw, &found));
        assert_that(found.solved && isfinite(found.error) && isfinite(found.ridge), "bandwidth %d", scale);
    }
}

static void test_rounded_kernel(void **state)
{
    (void)state;
    for_each_backend(solve_rounded);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static int take_error(void *user, int step, double error)
{
    double *worst = user;
    assert_int_equal(step, 1);
    *worst = fmin(*worst, error);
    return 0;
}

/* Random splits where one unit (group) has nearly all rows: rows of a unit are never on both sides of a split. Targets
   are noise, which a small ridge interpolates: a draw with training rows on its held-out side has an error far below 1.
   */
static void test_large_unit(void **state)
{
    enum { UNITS = 3, MANY = 200, FEATURES = 5 };
    static float plain[MANY][FEATURES];
    static double noise[MANY];
    static const int64_t start[UNITS + 1] = {0, 10, MANY - 10, MANY};
    int64_t order[MANY];
    double least = (double)INFINITY;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        order[i] = i, noise[i] = normal(9, i);
        for (int k = 0; k < FEATURES; k++) plain[i][k] = (float)normal(2, i * FEATURES + k);
    }
    mrc_descent_rows rows = {
        .y = mrc_view(noise, MANY, 1, MERCER_F64), .order = order, .start = start, .units = UNITS, .different = UNITS};
    mrc_descent_space space = {.kind = MRC_LEARN_SCALES, .x = mrc_view(plain, MANY, FEATURES, MERCER_F32)};
    assert_succeeds(context, mercer_kernel_parse(&space.kernel, context, "laplace-l1:bandwidth=1"));
    for (uint64_t seed = 0; seed < 12; seed++) {
        double memory[4][FEATURES + 2] = {{0}};
        mrc_descent_state at = {.count = mrc_descent_count(&space), .rate = 1, .error = (double)NAN};
        at.values = memory[0], at.before = memory[1], at.mean = memory[2], at.square = memory[3];
        memory[0][FEATURES + 1] = log(1e-9);
        bool stopped;
        mrc_descent task = {.context = context,
                            .rows = &rows,
                            .space = &space,
                            .steps = 1,
                            .fitted = MANY,
                            .centers = MANY,
                            .seed = seed,
                            .progress = take_error,
                            .progress_user = &least};
        assert_succeeds(context, mrc_descent_run(&task, &at, &stopped));
    }
    assert_that(least > 0.3, "error %g", least);
}

/* Runs the first step of a descent from parameters. Returns the error of its draw; slope (count): its gradient, which
   is 10 times the mean that starts with it. */
static double first_step(const mrc_descent *task, const double *values, int64_t count, double *slope)
{
    enum { MOST = 32 };
    double memory[4][MOST] = {{0}};
    mrc_descent_state at = {.count = count, .rate = 1, .error = (double)NAN};
    bool stopped;
    assert_true(count <= MOST);
    memcpy(memory[0], values, (size_t)count * sizeof *values);
    at.values = memory[0], at.before = memory[1], at.mean = memory[2], at.square = memory[3];
    assert_succeeds(context, mrc_descent_run(task, &at, &stopped));
    for (int i = 0; i < count; i++) slope[i] = 10 * at.mean[i];
    return at.error;
}

/* The derivative of a draw's error in all parameters of a descent, against central differences. Points are floats:
   rounding by u = 2^-24 changes kernel values and errors by about 10 u, which with h = 0.01 becomes 1e-4 of a
   derivative. The error of the difference itself is h^2 / 6 third derivatives. Derivatives are of the size of the
   error. The prior, which is not part of the error, is divided by the number of distinct rows: 10^12 make it
   negligible. */
static void test_slopes(void **state)
{
    enum { COPIES = 4, KEPT = 3, MOST = COPIES + KEPT * KEPT + 2, MANY = 300 };
    static const int64_t feature[COPIES] = {0, 1, 2, 0};
    static const mrc_descent_kind kinds[] = {MRC_LEARN_SCALES, MRC_LEARN_SCALE, MRC_LEARN_MAP};
    static float copies[MANY][COPIES];
    static double wanted[MANY];
    int64_t order[MANY], start[MANY + 1];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        order[i] = start[i] = i;
        for (int j = 0; j < COPIES; j++) copies[i][j] = (float)normal(20 + (uint64_t)j, i);
        wanted[i] = sin((double)copies[i][0] + (double)copies[i][1]) + 0.3 * (double)copies[i][3];
    }
    start[MANY] = MANY;
    mrc_descent_rows rows = {.y = mrc_view(wanted, MANY, 1, MERCER_F64),
                             .order = order,
                             .start = start,
                             .units = MANY,
                             .different = 1000000000000};
    for (int k = 0; k < 3; k++) {
        double values[MOST] = {0}, slope[MOST], other[MOST];
        mrc_descent_space space = {.kind = kinds[k],
                                   .x = mrc_view(copies, MANY, COPIES, MERCER_F32),
                                   .feature = feature,
                                   .features = KEPT,
                                   .learns_exponent = true};
        mrc_descent task = {.context = context,
                            .rows = &rows,
                            .space = &space,
                            .learns_ridge = true,
                            .steps = 1,
                            .fitted = 120,
                            .centers = 40};
        const char *kernel = k == 2 ? "exppower:bandwidth=1,gamma=1.3" : "exppower-l1:bandwidth=1,gamma=0.8";
        assert_succeeds(context, mercer_kernel_parse(&space.kernel, context, kernel));
        int64_t count = mrc_descent_count(&space);
        for (int i = 0; i < count; i++) values[i] = 0.1 * normal(30, i) - (k == 2 && i < COPIES ? 0.5 : 1);
        for (int i = 0; i < KEPT * KEPT && k == 2; i++) values[COPIES + i] = 0.2 * normal(31, i) + (i % 4 == 0);
        values[count - 1] = log(1e-3);
        double size = first_step(&task, values, count, slope);
        for (int i = 0; i < count; i++) {
            const double h = 0.01, middle = values[i];
            values[i] = middle + h;
            double up = first_step(&task, values, count, other);
            values[i] = middle - h;
            double down = first_step(&task, values, count, other);
            values[i] = middle;
            assert_that(fabs((up - down) / (2 * h) - slope[i]) <= 1e-3 * size, "kind %d, parameter %d: %g, not %g", k,
                        i, slope[i], (up - down) / (2 * h));
        }
    }
}

/* A given ridge outside the range of searched ridges is not changed. A prior that is not finite, because the trace of
   the map is 0, rejects the step. */
static void test_one_step(void **state)
{
    enum { COUNT = D + D * D + 2, MANY = 200 };
    static const int64_t feature[D] = {0, 1, 2};
    static float plain[MANY][D];
    static double wanted[MANY];
    int64_t order[MANY], start[MANY + 1];
    (void)state;
    for (int i = 0; i <= MANY; i++) start[i] = i;
    for (int i = 0; i < MANY; i++) {
        order[i] = i;
        for (int k = 0; k < D; k++) plain[i][k] = (float)normal(2, i * D + k);
        wanted[i] = sin(2 * (double)plain[i][0]) + 0.3 * (double)plain[i][1];
    }
    mrc_descent_rows rows = {
        .y = mrc_view(wanted, MANY, 1, MERCER_F64), .order = order, .start = start, .units = MANY, .different = MANY};
    mrc_descent_space space = {
        .kind = MRC_LEARN_MAP, .x = mrc_view(plain, MANY, D, MERCER_F32), .feature = feature, .features = D};
    mrc_descent task = {.context = context, .rows = &rows, .space = &space, .steps = 1, .fitted = MANY, .centers = 50};
    assert_succeeds(context, mercer_kernel_parse(&space.kernel, context, "gaussian:bandwidth=1"));
    for (int singular = 0; singular < 2; singular++) {
        double memory[4][COUNT] = {{0}}, diagonal[D] = {1, singular ? -1 : 0.5, singular ? 0 : 0.5};
        mrc_descent_state at = {.count = COUNT, .rate = 1, .error = (double)NAN};
        bool stopped;
        for (int k = 0; k < D; k++) memory[0][D + k * D + k] = diagonal[k];
        memory[0][COUNT - 1] = log(1e-14);
        at.values = memory[0], at.before = memory[1], at.mean = memory[2], at.square = memory[3];
        assert_succeeds(context, mrc_descent_run(&task, &at, &stopped));
        assert_true(memory[0][COUNT - 1] == log(1e-14));
        assert_true(at.rate == (singular ? 0.5 : 1));
        for (int i = 0; i < COUNT; i++) assert_true(isfinite(memory[0][i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient), cmocka_unit_test(test_rounded_kernel), cmocka_unit_test(test_large_unit),
        cmocka_unit_test(test_slopes),   cmocka_unit_test(test_one_step),
    };
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

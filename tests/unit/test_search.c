/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search by descent: its gradient against finite differences in every hyperparameter, on every backend; planted
 * problems whose useful features are known; bitwise equality for any number of threads and after a continuation; given
 * hyperparameters, groups and odd tables.
 */
#include "support/backends.h"
#include "support/datasets.h"

#include "core/matrix.h"
#include "mercer/advanced.h"
#include "search/error_gradient.h"
#include "search/search.h"

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

/* A point of the space of hyperparameters: a map (its diagonal: scales), an exponent, a ridge. */
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
    assert_succeeds(backend->context, mrc_error_gradient_find(&buffer, &kernel, at->ridge, &draw, out));
    assert_true(out->solved);
    return out->error;
}

/* A central difference with h = 1e-4 is off by h^2 / 6 third derivatives and by rounding over h: both below 1e-6. */
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
                if (which < 2) continue; /* a map is for norm 2 */
                at.mapped = true, at.map[0][1] = 0.4, at.map[2][0] = -0.3;
                compare_gradient(backend, at);
            }
}

static void test_gradient(void **state)
{
    (void)state;
    for_each_backend(compare_gradients);
}

/* ---- Searches ---------------------------------------------------------------------------------------------------- */

enum { ROWS = 1500, FEATURES = 5 };
static float planted_x[ROWS][FEATURES];
static double planted_y[ROWS], groups[ROWS];

/* Feature 0 has long tails and counts through its sign, feature 1 has a wave; 2 to 4 are noise. */
static void plant(void)
{
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < FEATURES; k++) planted_x[i][k] = (float)normal(2, i * FEATURES + k);
        planted_y[i] = (planted_x[i][0] > 0 ? 1 : -1) + sin(2 * (double)planted_x[i][1]) + 0.1 * normal(3, i);
        planted_x[i][0] = (float)sinh(4 * (double)planted_x[i][0]);
        groups[i] = i % 40;
    }
}

static mercer_dataset *open_planted(mercer_context *by, int64_t rows, bool grouped)
{
    mercer_dataset *data;
    plant();
    mercer_matrix x = mrc_view(planted_x, rows, FEATURES, MERCER_F32), y = mrc_view(planted_y, rows, 1, MERCER_F64);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .Y = &y, .groups = grouped ? groups : NULL};
    assert_succeeds(by, mercer_dataset_from_arrays(&data, by, &arrays));
    return data;
}

/* What a test saves of a search. */
typedef struct saved {
    mrc_search_state *state;
    int stop, steps;
} saved;

static int count_steps(void *user, const char *phase, int64_t done, int64_t total, double error)
{
    saved *self = user;
    assert_string_equal(phase, "search");
    assert_true(done <= total && !(error < 0));
    return ++self->steps == self->stop;
}

static mrc_search_task task_for(mercer_context *by, mercer_dataset *data, const mrc_units *units,
                                mrc_search_state *state)
{
    return (mrc_search_task){.context = by,
                             .data = data,
                             .units = units,
                             .ridge = -1,
                             .effort = 1,
                             .centers = ROWS,
                             .memory = (int64_t)1 << 30,
                             .seed = 3,
                             .state = state};
}

static void scale_targets(mercer_context *by, mercer_dataset *data, mrc_units *units)
{
    double mean, deviation;
    assert_succeeds(by, mercer_dataset_target_moments(data, &mean, &deviation));
    assert_succeeds(by, mrc_units_set(units, by, 1, &mean, &deviation));
}

static void run_planted(mercer_context *by, mrc_search_result *out, int stop)
{
    mrc_search_state state = {0};
    mrc_units units = {0};
    saved steps = {.state = &state, .stop = stop};
    mercer_dataset *data = open_planted(by, ROWS, false);
    scale_targets(by, data, &units);
    mrc_search_task task = task_for(by, data, &units, &state);
    task.progress = count_steps, task.progress_user = &steps;
    mercer_status status = mrc_search_run(&task, out);
    if (stop > 0) {
        assert_int_equal(status, MERCER_ERROR_CALLBACK);
        assert_int_equal(steps.steps, stop);
        status = mrc_search_run(&task, out);
    }
    assert_succeeds(by, status);
    mrc_search_state_free(&state, by);
    mrc_units_clear(&units, by);
    mercer_dataset_free(data);
}

static void assert_same(const mrc_search_result *a, const mrc_search_result *b)
{
    const mercer_preprocess *left = a->preprocess, *right = b->preprocess;
    assert_memory_equal(&a->kernel, &b->kernel, sizeof a->kernel);
    assert_true(a->ridge == b->ridge && a->error == b->error);
    assert_memory_equal(left->factor, right->factor, FEATURES * sizeof(double));
    assert_memory_equal(left->rank_weight, right->rank_weight, FEATURES * sizeof(double));
}

/* The variance that the useful features leave is 0.01 / 1.5: a search must get near it, and drop the noise. */
static void test_planted(void **state)
{
    mrc_search_result found;
    (void)state;
    run_planted(context, &found, 0);
    assert_true(found.error < 0.15);
    assert_true(found.steps > 0 && found.rows > 0 && found.held > 0 && found.ridge > 0);
    assert_true(found.errors[0] >= found.errors[2]);
    assert_true(mrc_search_error_with(&found, 4 * found.centers[2]) <= found.errors[2]);
    mercer_preprocess_free(found.preprocess);
}

static void test_same_bits(void **state)
{
    mrc_search_result one, other;
    mercer_context *second;
    mercer_context_options options = {.struct_size = sizeof options, .threads = 3};
    (void)state;
    assert_succeeds(NULL, mercer_context_create(&second, &options));
    run_planted(context, &one, 0);
    run_planted(second, &other, 0);
    assert_same(&one, &other);
    mercer_preprocess_free(other.preprocess);
    mercer_context_free(second);
    static const int stops[] = {1, 7, 13, 20};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        run_planted(context, &other, stops[i]);
        assert_same(&one, &other);
        mercer_preprocess_free(other.preprocess);
    }
    mercer_preprocess_free(one.preprocess);
}

/* A given kernel, preprocessing and ridge stay; groups are searched. */
static void test_given(void **state)
{
    static const char *const kernels[] = {"gaussian:bandwidth=1", "laplace-l1:bandwidth=1"};
    (void)state;
    for (int which = 0; which < 2; which++) {
        mrc_search_state search = {0};
        mrc_search_result found;
        mrc_units units = {0};
        mercer_kernel kernel;
        mercer_preprocess *given = NULL;
        mercer_dataset *data = open_planted(context, ROWS, true);
        scale_targets(context, data, &units);
        assert_succeeds(context, mercer_kernel_parse(&kernel, context, kernels[which]));
        assert_succeeds(context, mercer_preprocess_fit(&given, context, "rank", data));
        mrc_search_task task = task_for(context, data, &units, &search);
        task.kernel = &kernel, task.preprocess = given, task.ridge = 1e-3;
        assert_succeeds(context, mrc_search_run(&task, &found));
        assert_int_equal(found.kernel.id, kernel.id);
        assert_true(found.ridge == 1e-3 && found.error < 0.5);
        assert_string_equal(mercer_preprocess_spec(found.preprocess), "rank");
        assert_non_null(found.preprocess->map);
        mercer_preprocess_free(found.preprocess);
        mercer_preprocess_free(given);
        mrc_search_state_free(&search, context);
        mrc_units_clear(&units, context);
        mercer_dataset_free(data);
    }
}

static void test_few_rows(void **state)
{
    bool possible;
    (void)state;
    static const struct {
        int rows;
        bool grouped, wanted;
    } cases[] = {{49, false, false}, {60, false, true}, {ROWS, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset *data = open_planted(context, cases[i].rows, cases[i].grouped);
        assert_succeeds(context, mrc_search_possible(data, &possible));
        assert_int_equal(possible, cases[i].wanted); /* 1,500 rows are 40 groups */
        mercer_dataset_free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradient), cmocka_unit_test(test_planted),
                                       cmocka_unit_test(test_same_bits), cmocka_unit_test(test_given),
                                       cmocka_unit_test(test_few_rows)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

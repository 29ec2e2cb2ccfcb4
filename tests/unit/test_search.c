/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search by descent: its gradient against finite differences in every hyperparameter, on every backend; splits by
 * groups, times and classes; planted problems with known useful features; planted leaks; bitwise equality for any
 * number of threads and after a resume; given hyperparameters, weights, deadlines.
 */
#include "support/backends.h"
#include "support/datasets.h"

#include "core/clock.h"
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

/* Kernel values of floats are rounded, so a smooth kernel with a large bandwidth has eigenvalues below zero. The equations
   are solved nevertheless; otherwise a descent would reject every step. */
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

/* ---- Splits ------------------------------------------------------------------------------------------------------ */

enum { ROWS = 2100, FEATURES = 5, FEW = 900, GROUPS = 60 };
static float planted_x[ROWS][FEATURES];
static double planted_y[ROWS], keys[ROWS];
static int32_t labels[ROWS];

/* Feature 0 has long tails and matters through its sign, feature 1 is a wave; features 2 to 4 are noise. */
static void plant(void)
{
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < FEATURES; k++) planted_x[i][k] = (float)normal(2, i * FEATURES + k);
        planted_y[i] = (planted_x[i][0] > 0 ? 1 : -1) + sin(2 * (double)planted_x[i][1]) + 0.1 * normal(3, i);
        planted_x[i][0] = (float)sinh(4 * (double)planted_x[i][0]);
        keys[i] = i % GROUPS, labels[i] = planted_y[i] > 0;
    }
}

/* Optional parts of a dataset besides features and targets. */
typedef struct extras {
    const double *groups, *times, *weights;
    bool classes;
} extras;

static mercer_dataset *open_rows(mercer_context *by, int64_t rows, extras with)
{
    static const char *const names[] = {"low", "high", "late"};
    mercer_dataset *data;
    mercer_matrix x = mrc_view(planted_x, rows, FEATURES, MERCER_F32), y = mrc_view(planted_y, rows, 1, MERCER_F64);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .groups = with.groups};
    arrays.times = with.times, arrays.weights = with.weights;
    if (with.classes)
        arrays.labels = labels, arrays.classes = 3, arrays.label_names = names;
    else
        arrays.Y = &y;
    assert_succeeds(by, mercer_dataset_from_arrays(&data, by, &arrays));
    return data;
}

/* Checks that each row is in exactly one fold. */
static void count_rows(const mrc_split *split, int64_t rows, int fold[ROWS])
{
    assert_int_equal(split->count, rows);
    for (int i = 0; i < rows; i++) fold[i] = -1;
    for (int f = 0; f < split->fold_count; f++)
        for (int64_t i = 0; i < split->folds[f].count; i++) {
            int64_t row = split->rows[split->folds[f].first + i];
            assert_true(row >= 0 && row < rows && fold[row] < 0);
            fold[row] = f;
        }
}

/* With many rows a random fifth is held out, with times the latest fifth; otherwise there are folds. A group is
   never on both sides. */
static void test_splits(void **state)
{
    (void)state;
    static const struct {
        int64_t rows;
        int folds;
        bool held_out;
    } cases[] = {{ROWS, 2, true}, {1980, 5, false}, {FEW, 5, false}, {240, 10, false}};
    plant();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int kind = 0; kind < 3; kind++) {
            int64_t rows = cases[c].rows, held = 0;
            int fold[ROWS];
            bool held_out = cases[c].held_out || kind == 2;
            mrc_split split;
            mercer_dataset *data =
                open_rows(context, rows, (extras){.groups = kind == 1 ? keys : NULL, .times = kind == 2 ? keys : NULL});
            assert_succeeds(context, mrc_split_make(&split, data, 100000, 7));
            assert_int_equal(split.held_out, held_out);
            assert_int_equal(split.fold_count, held_out ? 2 : cases[c].folds);
            count_rows(&split, rows, fold);
            for (int i = 0; i < rows; i++) {
                held += fold[i] == split.fold_count - 1;
                if (kind == 1) assert_int_equal(fold[i], fold[i % GROUPS]);
                if (kind == 2) assert_int_equal(fold[i], i % GROUPS >= GROUPS - GROUPS / 5);
            }
            int64_t wanted = held_out ? rows / 5 : rows / cases[c].folds;
            assert_that(held >= wanted - 25 && held <= wanted + 25, "%lld of %lld rows", (long long)held,
                        (long long)rows);
            mrc_free(context, split.rows);
            mercer_dataset_free(data);
        }
}

/* A class that exists only in the latest rows is an error that names the class; if the split is random, one of its
   rows is a training row. */
static void test_classes(void **state)
{
    (void)state;
    plant();
    for (int i = 0; i < ROWS; i++) keys[i] = i;
    labels[ROWS - 1] = 2;
    for (int times = 0; times < 2; times++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            mrc_split split;
            mercer_dataset *data = open_rows(context, ROWS, (extras){.times = times ? keys : NULL, .classes = true});
            if (times) {
                assert_fails(context, mrc_split_make(&split, data, ROWS, seed), MERCER_ERROR_DATA, "'late'");
                mrc_free(context, split.rows);
            } else {
                bool trained = false;
                assert_succeeds(context, mrc_split_make(&split, data, ROWS, seed));
                for (int64_t i = 0; i < split.folds[0].count; i++) trained = trained || split.rows[i] == ROWS - 1;
                assert_true(trained);
                mrc_free(context, split.rows);
            }
            mercer_dataset_free(data);
        }
}

/* ---- Searches ---------------------------------------------------------------------------------------------------- */

/* A search in a test: its task, which the test may change, and the data it owns. */
typedef struct search {
    mercer_context *context;
    mercer_dataset *data;
    mrc_units units;
    mrc_search_state state;
    mrc_search_task task;
    mrc_search_result found;
    int64_t stop, steps, last; /* step to stop after, or 0; number of steps; last step */
} search;

static int count_steps(void *user, const mercer_progress *progress)
{
    search *self = user;
    assert_string_equal(progress->stage, "search");
    assert_true(progress->done > self->last && progress->done <= progress->total && !(progress->error < 0));
    self->last = progress->done;
    return ++self->steps == self->stop;
}

static void open_search(search *self, mercer_context *by, mercer_dataset *data)
{
    double mean, deviation;
    *self = (search){.context = by, .data = data};
    assert_succeeds(by, mercer_dataset_target_moments(data, &mean, &deviation));
    assert_succeeds(by, mrc_units_set(&self->units, by, 1, &mean, &deviation));
    self->task = (mrc_search_task){.context = by,
                                   .data = data,
                                   .units = &self->units,
                                   .ridge = -1,
                                   .effort = 1,
                                   .memory = (int64_t)1 << 30,
                                   .seed = 3,
                                   .state = &self->state,
                                   .progress = count_steps,
                                   .progress_user = self};
}

static void run(search *self)
{
    assert_succeeds(self->context, mrc_search_run(&self->task, &self->found));
    assert_true(self->found.error >= 0 && isfinite(self->found.error) && isfinite(self->found.kernel.bandwidth));
}

static void close_search(search *self)
{
    mercer_preprocess_free(self->found.preprocess);
    mrc_search_state_free(&self->state, self->context);
    mrc_units_clear(&self->units, self->context);
    mercer_dataset_free(self->data);
}

/* Returns the error of a search on `rows` rows with the given extras. */
static double search_error(int64_t rows, extras with)
{
    search one;
    open_search(&one, context, open_rows(context, rows, with));
    run(&one);
    double error = one.found.error;
    close_search(&one);
    return error;
}

static void assert_same(const mrc_search_result *a, const mrc_search_result *b)
{
    const mercer_preprocess *left = a->preprocess, *right = b->preprocess;
    assert_memory_equal(&a->kernel, &b->kernel, sizeof a->kernel);
    assert_true(a->ridge == b->ridge && a->error == b->error);
    assert_memory_equal(left->factor, right->factor, FEATURES * sizeof(double));
    assert_memory_equal(left->rank_weight, right->rank_weight, FEATURES * sizeof(double));
    assert_true(!left->map == !right->map);
}

static void run_planted(search *self, mercer_context *by, int stop)
{
    plant();
    open_search(self, by, open_rows(by, ROWS, (extras){0}));
    self->stop = stop;
    if (stop > 0) {
        assert_fails(by, mrc_search_run(&self->task, &self->found), MERCER_ERROR_CALLBACK, "stopped the search");
        assert_int_equal(self->steps, stop);
        assert_null(self->found.preprocess);
    }
    run(self);
}

/* Noise is 0.01 of a variance of 1.5. The search must get below a tenth, which a kernel of all five features does not,
   and the noise features must get small weights. */
static void test_planted(void **state)
{
    search one;
    (void)state;
    run_planted(&one, context, 0);
    const mrc_search_result *found = &one.found;
    assert_that(found->error < 0.1, "error %g", found->error);
    assert_true(one.steps > 30 && one.state.steps == one.steps && found->ridge > 0 && !found->cut);
    assert_int_equal(found->rows + found->held, ROWS);
    assert_true(found->errors[0] >= found->errors[2]);
    assert_true(mrc_search_error_with(found, 4 * found->centers[2]) <= found->errors[2]);
    for (int64_t i = 0; i < one.state.steps; i++) {
        const double *row = one.state.journal + i * MRC_JOURNAL_COLUMNS;
        assert_true(row[0] >= 1 && row[0] <= MRC_SEARCH_STAGES && row[1] > 0 && row[2] > 0 && row[3] > 0);
    }
    close_search(&one);
}

/* Noise targets give the error of a constant prediction: hyperparameters fitted to the held-out rows would show as a
   smaller error. 300 squares of mean 1 and deviation 1.4 have a mean above 1 - 3 * 1.4 / sqrt(300). */
static void test_noise(void **state)
{
    (void)state;
    plant();
    for (int i = 0; i < ROWS; i++) planted_y[i] = normal(4, i);
    double error = search_error(ROWS, (extras){0});
    assert_that(error > 0.76, "error %g", error);
}

/* The result is bitwise identical for any number of threads, and after a stop in each stage. */
static void test_same_bits(void **state)
{
    static const int stops[] = {1, 15, 16, 17, 32, 33, 63};
    search one, other;
    mercer_context *second;
    mercer_context_options options = {.struct_size = sizeof options, .threads = 3};
    (void)state;
    run_planted(&one, context, 0);
    assert_succeeds(NULL, mercer_context_create(&second, &options));
    run_planted(&other, second, 0);
    assert_same(&one.found, &other.found);
    close_search(&other);
    mercer_context_free(second);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        assert_true(stops[i] < one.steps);
        run_planted(&other, context, stops[i]);
        assert_int_equal(other.steps, one.steps);
        assert_same(&one.found, &other.found);
        assert_memory_equal(one.state.journal, other.state.journal,
                            (size_t)(one.steps * MRC_JOURNAL_COLUMNS) * sizeof(double));
        close_search(&other);
    }
    close_search(&one);
}

/* The saved state of another search is refused. */
static void test_other_state(void **state)
{
    search one;
    double numbers[3] = {0};
    (void)state;
    plant();
    open_search(&one, context, open_rows(context, ROWS, (extras){0}));
    one.state = (mrc_search_state){.memory = numbers, .numbers = 3};
    assert_fails(context, mrc_search_run(&one.task, &one.found), MERCER_ERROR_MISMATCH, "its search has 3 numbers");
    one.state = (mrc_search_state){0};
    close_search(&one);
}

/* ---- Leaks ------------------------------------------------------------------------------------------------------- */

/*
 * Rows in groups that have nearly the same features and the same target, decided by a coin. Rows of the same group
 * predict each other, rows of other groups do not: the error is near 0 if a group is on both sides of a split, and at
 * least that of a constant prediction otherwise. Groups are given (1), found as equal features (2), or unknown (0).
 */
static void plant_groups(int64_t rows, int64_t size, bool equal, int coins)
{
    for (int i = 0; i < rows; i++) {
        int64_t group = i / size;
        for (int k = 0; k < FEATURES; k++)
            planted_x[i][k] = (float)(normal(5, (int)group * FEATURES + k) + (equal ? 0 : 1e-3 * normal(6, i * 8 + k)));
        planted_y[i] = normal((uint64_t)(100 * coins + 7), (int)group) > 0 ? 1 : -1;
        keys[i] = (double)group;
    }
}

/* One table holds out 33 groups, whose error varies by chance from 0.74 to 1.25 (12 tables): the test bounds a mean
   of four. */
static void test_leaks(void **state)
{
    static const int64_t rows[] = {ROWS, FEW};
    enum { TABLES = 4 };
    (void)state;
    for (int few = 0; few < 2; few++)
        for (int kind = 0; kind < 3; kind++) {
            double error = 0;
            for (int t = 0; t < TABLES; t++) {
                plant_groups(rows[few], 9, kind == 2, t);
                error += search_error(rows[few], (extras){.groups = kind == 1 ? keys : NULL}) / TABLES;
            }
            assert_that(kind == 0 ? error < 0.1 : error > 0.85, "%lld rows, groups %d: error %g", (long long)rows[few],
                        kind, error);
        }
}

/* Feature 0 is the time. Targets are constant in blocks of 25 times, with a random sign per block: they can be
   interpolated, but not predicted. */
static void test_times(void **state)
{
    (void)state;
    plant();
    for (int i = 0; i < ROWS; i++) {
        keys[i] = i, planted_x[i][0] = (float)i;
        planted_y[i] = normal(8, i / 25) > 0 ? 1 : -1;
    }
    double mixed = search_error(ROWS, (extras){0}), ordered = search_error(ROWS, (extras){.times = keys});
    assert_that(mixed < 0.7 && ordered > 0.75, "error %g at random, %g in the order of time", mixed, ordered);
}

static int take_error(void *user, int step, double error)
{
    double *worst = user;
    assert_int_equal(step, 1);
    *worst = fmin(*worst, error);
    return 0;
}

/* Draws with a unit that has nearly all rows: its rows are never on both sides. Targets are noise, which a small
   ridge interpolates: a draw with training rows on its held-out side has an error far below 1. */
static void test_large_unit(void **state)
{
    enum { UNITS = 3, MANY = 200 };
    static const int64_t start[UNITS + 1] = {0, 10, MANY - 10, MANY};
    int64_t order[MANY];
    double least = (double)INFINITY;
    (void)state;
    plant();
    for (int i = 0; i < MANY; i++) order[i] = i, planted_y[i] = normal(9, i), planted_x[i][0] = (float)normal(10, i);
    mrc_descent_rows rows = {.x = mrc_view(planted_x, MANY, FEATURES, MERCER_F32),
                             .y = mrc_view(planted_y, MANY, 1, MERCER_F64),
                             .order = order,
                             .start = start,
                             .units = UNITS,
                             .different = UNITS};
    for (uint64_t seed = 0; seed < 12; seed++) {
        double memory[4][FEATURES + 2] = {{0}};
        mrc_descent_state at = {
            .count = mrc_descent_count(MRC_LEARN_SCALES, FEATURES, FEATURES), .rate = 1, .error = (double)NAN};
        at.values = memory[0], at.before = memory[1], at.mean = memory[2], at.square = memory[3];
        memory[0][FEATURES + 1] = log(1e-9);
        bool stopped;
        mrc_descent task = {.context = context,
                            .rows = &rows,
                            .kind = MRC_LEARN_SCALES,
                            .steps = 1,
                            .until = 1,
                            .fitted = MANY,
                            .held = MANY,
                            .centers = MANY,
                            .seed = seed,
                            .progress = take_error,
                            .progress_user = &least};
        assert_succeeds(context, mercer_kernel_parse(&task.kernel, context, "laplace-l1:bandwidth=1"));
        assert_succeeds(context, mrc_descent_run(&task, &at, &stopped));
    }
    assert_that(least > 0.3, "error %g", least);
}

/* The derivative of a draw's error in all parameters of a descent, against central differences. Points are floats:
   rounding by u = 2^-24 changes kernel values and errors by about 10 u, which with h = 0.01 becomes 1e-4 of a
   derivative. The error of the difference itself is h^2 / 6 third derivatives. Derivatives are of the size of the
   error. */
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
    mrc_descent_rows rows = {.x = mrc_view(copies, MANY, COPIES, MERCER_F32),
                             .y = mrc_view(wanted, MANY, 1, MERCER_F64),
                             .order = order,
                             .start = start,
                             .units = MANY,
                             .different = MANY};
    for (int k = 0; k < 3; k++) {
        double values[MOST] = {0}, slope[MOST], other[MOST], up, down;
        mrc_descent task = {.context = context,
                            .rows = &rows,
                            .kind = kinds[k],
                            .feature = feature,
                            .features = KEPT,
                            .learns_exponent = true,
                            .learns_ridge = true,
                            .steps = 1,
                            .until = 1,
                            .fitted = 150,
                            .held = 100,
                            .centers = 40};
        const char *kernel = k == 2 ? "exppower:bandwidth=1,gamma=1.3" : "exppower-l1:bandwidth=1,gamma=0.8";
        assert_succeeds(context, mercer_kernel_parse(&task.kernel, context, kernel));
        mrc_descent_state at = {.count = mrc_descent_count(kinds[k], COPIES, KEPT), .values = values};
        for (int i = 0; i < at.count; i++) values[i] = 0.1 * normal(30, i) - (k == 2 && i < COPIES ? 0.5 : 1);
        for (int i = 0; i < KEPT * KEPT && k == 2; i++) values[COPIES + i] = 0.2 * normal(31, i) + (i % 4 == 0);
        values[at.count - 1] = log(1e-3);
        assert_succeeds(context, mrc_descent_slope(&task, &at, 1, &up, slope));
        double size = up;
        for (int i = 0; i < at.count; i++) {
            const double h = 0.01, middle = values[i];
            values[i] = middle + h;
            assert_succeeds(context, mrc_descent_slope(&task, &at, 1, &up, other));
            values[i] = middle - h;
            assert_succeeds(context, mrc_descent_slope(&task, &at, 1, &down, other));
            values[i] = middle;
            assert_that(fabs((up - down) / (2 * h) - slope[i]) <= 1e-3 * size, "kind %d, parameter %d: %g, not %g", k,
                        i, slope[i], (up - down) / (2 * h));
        }
    }
}

/* A group with nearly all rows: whether it is held out depends on the seed. A split with all training rows in one
   group is an error. */
static void test_large_group(void **state)
{
    int failed = 0, found = 0;
    (void)state;
    plant();
    for (int i = 0; i < ROWS; i++) keys[i] = i < 3 ? i : 3;
    for (uint64_t seed = 0; seed < 12; seed++) {
        search one;
        open_search(&one, context, open_rows(context, ROWS, (extras){.groups = keys}));
        one.task.seed = seed;
        mercer_status status = mrc_search_run(&one.task, &one.found);
        if (status == MERCER_OK)
            assert_true(isfinite(one.found.error) && one.found.ridge > 0);
        else
            assert_fails(context, status, MERCER_ERROR_DATA, "are in one group");
        failed += status != MERCER_OK, found += status == MERCER_OK;
        close_search(&one);
    }
    assert_true(failed > 0 && found > 0);
}

/* ---- Given hyperparameters --------------------------------------------------------------------------------------- */

/* A given kernel, preprocessing and ridge are unchanged, in both norms; groups are searched, too. */
static void test_given(void **state)
{
    static const char *const kernels[] = {"gaussian:bandwidth=1", "laplace-l1:bandwidth=1"};
    (void)state;
    for (int which = 0; which < 2; which++) {
        search one;
        mercer_kernel kernel;
        mercer_preprocess *given = NULL;
        plant();
        open_search(&one, context, open_rows(context, ROWS, (extras){.groups = keys}));
        assert_succeeds(context, mercer_kernel_parse(&kernel, context, kernels[which]));
        assert_succeeds(context, mercer_preprocess_fit(&given, context, "rank", one.data));
        one.task.kernel = &kernel, one.task.preprocess = given, one.task.ridge = 1e-3;
        run(&one);
        assert_int_equal(one.found.kernel.id, kernel.id);
        assert_true(one.found.ridge == 1e-3 && one.found.error < 0.5);
        assert_string_equal(mercer_preprocess_spec(one.found.preprocess), "rank");
        assert_non_null(one.found.preprocess->map);
        mercer_preprocess_free(given);
        close_search(&one);
    }
}

/* Only the kernel is given: before it is used, a descent in norm 1 blends the features. */
static void test_given_kernel(void **state)
{
    (void)state;
    for (int norm = 1; norm <= 2; norm++) {
        search one;
        mercer_kernel kernel;
        plant();
        open_search(&one, context, open_rows(context, ROWS, (extras){0}));
        const char *text = norm == 1 ? "exppower-l1:bandwidth=1,gamma=0.5" : "exppower:bandwidth=1,gamma=1.9";
        assert_succeeds(context, mercer_kernel_parse(&kernel, context, text));
        one.task.kernel = &kernel;
        run(&one);
        assert_int_equal(one.found.kernel.id, kernel.id);
        assert_true(one.found.kernel.gamma == kernel.gamma && one.found.kernel.bandwidth != 1);
        assert_string_equal(mercer_preprocess_spec(one.found.preprocess), "blend");
        close_search(&one);
    }
}

/* A given bandwidth is unchanged, whatever the norm; the weights of a diagonal metric then have a mean of 1. */
static void test_given_bandwidth(void **state)
{
    static const char *const kernels[] = {NULL, "gaussian:bandwidth=1", "laplace-l1:bandwidth=1"};
    (void)state;
    for (int which = 0; which < 3; which++) {
        search one;
        mercer_kernel kernel;
        mercer_preprocess *given = NULL;
        double sum = 0;
        plant();
        open_search(&one, context, open_rows(context, ROWS, (extras){0}));
        assert_succeeds(context, mercer_preprocess_fit(&given, context, "standardise", one.data));
        if (which > 0) assert_succeeds(context, mercer_kernel_parse(&kernel, context, kernels[which]));
        one.task.kernel = which > 0 ? &kernel : NULL, one.task.bandwidth = 1.5;
        if (which > 0) one.task.preprocess = given;
        run(&one);
        assert_true(one.found.kernel.bandwidth == 1.5);
        assert_that(one.found.error < 0.7, "case %d: error %g", which, one.found.error);
        mercer_matrix metric = mercer_preprocess_metric(one.found.preprocess);
        for (int k = 0; k < FEATURES && which == 2; k++) sum += mrc_load(&metric, 0, k);
        if (which == 2) assert_that(fabs(sum - FEATURES) < 1e-3, "sum of weights %g", sum);
        mercer_preprocess_free(given);
        close_search(&one);
    }
}

/* A given metric is unchanged; only the bandwidth is searched, in norm 2. */
static void test_given_metric(void **state)
{
    double weights[FEATURES] = {0, 4, 0, 0.25, 0};
    const mercer_matrix metric = mrc_view(weights, 1, FEATURES, MERCER_F64);
    search one;
    mercer_preprocess *given = NULL;
    (void)state;
    plant();
    open_search(&one, context, open_rows(context, ROWS, (extras){0}));
    assert_succeeds(context, mercer_preprocess_fit(&given, context, "standardise", one.data));
    assert_succeeds(context, mercer_preprocess_set_metric(given, &metric, FEATURES));
    one.task.preprocess = given, one.task.norm_2 = true;
    run(&one);
    mercer_matrix before = mercer_preprocess_metric(given), after = mercer_preprocess_metric(one.found.preprocess);
    assert_true(before.rows == after.rows && before.cols == after.cols);
    assert_memory_equal(before.data, after.data, FEATURES * sizeof(double));
    assert_true(mrc_kernel_norm(&one.found.kernel) == 2 && one.found.kernel.bandwidth != 1);
    mercer_preprocess_free(given);
    close_search(&one);
}

/* Rows of weight 0 have no effect: with other targets in them the result is bitwise identical. Without the weights
   it is not. */
static void test_weights(void **state)
{
    static double row_mass[ROWS];
    search runs[2];
    (void)state;
    for (int which = 0; which < 2; which++) {
        plant();
        for (int i = 0; i < ROWS; i++) {
            row_mass[i] = i % 4 == 0 ? 0 : 1 + i % 3;
            if (i % 4 == 0) planted_y[i] = which == 0 ? 0 : 100 * normal(11, i);
        }
        open_search(&runs[which], context, open_rows(context, ROWS, (extras){.weights = row_mass}));
        run(&runs[which]);
    }
    assert_same(&runs[0].found, &runs[1].found);
    assert_that(runs[0].found.error < 0.15, "error %g", runs[0].found.error);
    assert_true(search_error(ROWS, (extras){0}) > 0.5);
    close_search(&runs[0]);
    close_search(&runs[1]);
}

/* A deadline in the past ends each descent after one step; there is a result nevertheless. */
static void test_deadline(void **state)
{
    (void)state;
    for (int given = 0; given < 2; given++) {
        search one;
        mercer_kernel kernel;
        plant();
        open_search(&one, context, open_rows(context, ROWS, (extras){0}));
        assert_succeeds(context, mercer_kernel_parse(&kernel, context, "gaussian:bandwidth=1"));
        one.task.deadline = mrc_seconds() - 1;
        if (given) one.task.kernel = &kernel;
        run(&one);
        assert_true(one.found.cut && one.found.ridge > 0);
        assert_int_equal(one.steps, given ? 2 : 1); /* one of the steps blends the copies of the features */
        close_search(&one);
    }
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

static void test_few_rows(void **state)
{
    bool possible;
    (void)state;
    static const struct {
        int rows, groups, equal;
        bool wanted;
    } cases[] = {{49, 0, 1, false}, {50, 0, 1, true}, {ROWS, 49, 1, false}, {ROWS, 50, 1, true}, {400, 0, 9, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plant();
        for (int j = 0; j < ROWS && cases[i].groups > 0; j++) keys[j] = j % cases[i].groups;
        for (int j = 0; j < ROWS; j++) memcpy(planted_x[j], planted_x[j - j % cases[i].equal], sizeof planted_x[j]);
        mercer_dataset *data = open_rows(context, cases[i].rows, (extras){.groups = cases[i].groups > 0 ? keys : NULL});
        assert_succeeds(context, mrc_search_possible(data, &possible));
        assert_int_equal(possible, cases[i].wanted);
        mercer_dataset_free(data);
    }
}

/* More effort increases every size, and the estimate of its flops. */
static void test_efforts(void **state)
{
    (void)state;
    for (int e = 2; e <= MRC_MOST_EFFORT; e++) {
        mrc_effort less = mrc_effort_of(e - 1, 1000, 10), more = mrc_effort_of(e, 1000, 10);
        assert_true(more.first > less.first && more.second > less.second && more.fitted > less.fitted);
        assert_true(more.centers > less.centers && more.rows > less.rows && more.score_rows >= less.score_rows);
        assert_true(more.score_size >= less.score_size && more.final_centers > less.final_centers);
        assert_true(2 * more.first + more.second <= MRC_SEARCH_STEPS);
        assert_true(mrc_search_flops(e, 60000, 20, 1) > mrc_search_flops(e - 1, 60000, 20, 1));
        assert_true(mrc_search_flops(e, 100000, 20, 1) >= mrc_search_flops(e - 1, 100000, 20, 1));
    }
    assert_true(mrc_search_flops(3, 100000, 40, 1) > mrc_search_flops(3, 100000, 20, 1));
    assert_true(mrc_search_flops(3, 100000, 20, 9) > mrc_search_flops(3, 100000, 20, 1));
}

/* Errors a + b P^-s are extrapolated exactly; errors that no longer fall are predicted to stay the same. */
static void test_more_centers(void **state)
{
    (void)state;
    mrc_search_result found = {.centers = {100, 200, 400}};
    for (int i = 0; i < 3; i++) found.errors[i] = 0.2 + 3 * pow((double)found.centers[i], -0.7);
    for (int64_t p = 400; p < 100000; p *= 3) {
        double error = 0.2 + 3 * pow((double)p, -0.7), more = 0.2 + 3 * pow(2 * (double)p, -0.7);
        assert_that(fabs(mrc_search_error_with(&found, p) - error) < 1e-12, "%g, not %g",
                    mrc_search_error_with(&found, p), error);
        assert_true(fabs(mrc_search_gain(&found, p, 2 * p) - (error - more) / error) < 1e-11);
    }
    found.errors[2] = found.errors[1];
    assert_true(mrc_search_gain(&found, 1000, 2000) == 0);
    found.centers[0] = 0;
    assert_true(isnan(mrc_search_gain(&found, 1000, 2000)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),     cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_splits),       cmocka_unit_test(test_classes),
        cmocka_unit_test(test_planted),      cmocka_unit_test(test_noise),
        cmocka_unit_test(test_same_bits),    cmocka_unit_test(test_other_state),
        cmocka_unit_test(test_leaks),        cmocka_unit_test(test_times),
        cmocka_unit_test(test_large_unit),   cmocka_unit_test(test_large_group),
        cmocka_unit_test(test_given),        cmocka_unit_test(test_given_kernel),
        cmocka_unit_test(test_given_metric), cmocka_unit_test(test_given_bandwidth),
        cmocka_unit_test(test_weights),      cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_few_rows),     cmocka_unit_test(test_efforts),
        cmocka_unit_test(test_more_centers), cmocka_unit_test(test_rounded_kernel),
    };
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search by descent: splits by groups, times and classes; planted problems with known useful features; planted
 * leaks; bitwise equality for any number of threads and after resuming; given hyperparameters, weights, deadlines.
 */
#include "support/datasets.h"
#include "support/fitted.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "search/search.h"

#include <math.h>
#include <string.h>

static double normal(uint64_t sequence, int index)
{
    return mrc_random_normal((mrc_rng){97, sequence}, (uint64_t)index);
}

/* ---- Splits ------------------------------------------------------------------------------------------------------ */

enum { ROWS = 2100, FEATURES = 5, OUTPUTS = 3, FEW = 900, GROUPS = 60 }; /* OUTPUTS: maximum number of targets */
static float planted_x[ROWS][FEATURES];
static double planted_y[ROWS], keys[ROWS];
static int32_t labels[ROWS];

/* Draws the data. The target depends on the sign of feature 0, which has long tails, and on a sine of feature 1.
   Features 2 to 4 are noise. */
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
    const mrc_folds *folds = &split->folds;
    assert_int_equal(mrc_folds_rows(folds), rows);
    for (int i = 0; i < rows; i++) fold[i] = -1;
    for (int f = 0; f < folds->count; f++)
        for (int64_t i = folds->start[f]; i < folds->start[f + 1]; i++) {
            int64_t row = split->rows[i];
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
            assert_int_equal(split.folds.held_out, held_out);
            assert_int_equal(split.folds.count, held_out ? 2 : cases[c].folds);
            count_rows(&split, rows, fold);
            for (int i = 0; i < rows; i++) {
                held += fold[i] == split.folds.count - 1;
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
                for (int64_t i = 0; i < mrc_folds_training(&split.folds); i++)
                    trained = trained || split.rows[i] == ROWS - 1;
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
    double mean[OUTPUTS], deviation[OUTPUTS];
    *self = (search){.context = by, .data = data};
    assert_succeeds(by, mrc_dataset_moments(data, mean, deviation));
    assert_succeeds(by, mrc_units_set(&self->units, by, data->outputs, mean, deviation));
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

static void run_search(search *self)
{
    assert_succeeds(self->context, mrc_search_run(&self->task, &self->found));
    assert_true(self->found.report.error >= 0 && isfinite(self->found.report.error) &&
                isfinite(self->found.kernel.bandwidth));
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
    run_search(&one);
    double error = one.found.report.error;
    close_search(&one);
    return error;
}

static void assert_same(const mrc_search_result *a, const mrc_search_result *b)
{
    const mercer_preprocess *left = a->preprocess, *right = b->preprocess;
    assert_memory_equal(&a->kernel, &b->kernel, sizeof a->kernel);
    assert_true(a->report.ridge == b->report.ridge && a->report.error == b->report.error);
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
        assert_fails(by, mrc_search_run(&self->task, &self->found), MERCER_ERROR_CALLBACK, "search");
        assert_int_equal(self->steps, stop);
        assert_null(self->found.preprocess);
    }
    run_search(self);
}

/* Noise is 0.01 of a variance of 1.5. The error of the search must be below 0.1, which a kernel with equal weights for
   all five features does not reach, and the noise features must get small weights. */
static void test_planted(void **state)
{
    search one;
    (void)state;
    run_planted(&one, context, 0);
    const mercer_search_report *found = &one.found.report;
    assert_that(found->error < 0.1, "error %g", found->error);
    assert_true(one.steps > 30 && one.state.steps == one.steps && found->ridge > 0 && !found->cut);
    assert_int_equal(found->rows + found->held_out, ROWS);
    assert_true(found->center_errors[0] >= found->center_errors[2]);
    assert_true(mrc_search_error_with(found, 4 * found->centers[2]) <= found->center_errors[2]);
    for (int64_t i = 0; i < one.state.steps; i++) {
        const double *row = one.state.journal + i * MRC_JOURNAL_COLUMNS;
        assert_true(row[0] >= 1 && row[0] <= MRC_SEARCH_STAGES && row[1] > 0 && row[2] > 0 && row[3] > 0);
    }
    close_search(&one);
}

/* If the targets are noise, the error must be that of a constant prediction. A smaller error would show that
   hyperparameters were fitted to the held-out rows. 300 squares of mean 1 and deviation 1.4 have a mean above 1 - 3 *
   1.4 / sqrt(300). */
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
    assert_fails(context, mrc_search_run(&one.task, &one.found), MERCER_ERROR_MISMATCH, "search*3 numbers");
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

/* Times that change once only, as late as the held-out rows begin or in the last quarter of the training rows: descents
   must still draw many training rows. With a single one the error was 0.1. */
static void test_few_times(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        plant();
        for (int i = 0; i < ROWS; i++) keys[i] = i < (late ? ROWS * 4 / 5 : ROWS * 3 / 4) ? 0 : i;
        double error = search_error(ROWS, (extras){.times = keys});
        assert_that(error < 0.03, "late %d: error %g", late, error);
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
            assert_true(isfinite(one.found.report.error) && one.found.report.ridge > 0);
        else
            assert_fails(context, status, MERCER_ERROR_DATA, "group");
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
        run_search(&one);
        assert_int_equal(one.found.kernel.id, kernel.id);
        assert_true(one.found.report.ridge == 1e-3 && one.found.report.error < 0.5);
        assert_string_equal(preprocess_info(one.found.preprocess).spec, "rank");
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
        run_search(&one);
        assert_int_equal(one.found.kernel.id, kernel.id);
        assert_true(one.found.kernel.gamma == kernel.gamma && one.found.kernel.bandwidth != 1);
        assert_string_equal(preprocess_info(one.found.preprocess).spec, "blend");
        close_search(&one);
    }
}

/* A given bandwidth is unchanged in both norms; the weights of a diagonal metric then have a mean of 1. */
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
        assert_succeeds(context, mercer_preprocess_fit(&given, context, "standardize", one.data));
        if (which > 0) assert_succeeds(context, mercer_kernel_parse(&kernel, context, kernels[which]));
        one.task.kernel = which > 0 ? &kernel : NULL, one.task.bandwidth = 1.5;
        if (which > 0) one.task.preprocess = given;
        run_search(&one);
        assert_true(one.found.kernel.bandwidth == 1.5);
        assert_that(one.found.report.error < 0.7, "case %d: error %g", which, one.found.report.error);
        mercer_matrix metric = preprocess_info(one.found.preprocess).metric;
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
    (void)state, plant();
    open_search(&one, context, open_rows(context, ROWS, (extras){0}));
    assert_succeeds(context, mercer_preprocess_fit(&given, context, "standardize", one.data));
    set_metric(given, &metric, FEATURES);
    one.task.preprocess = given, one.task.norm_2 = true;
    run_search(&one);
    mercer_matrix before = preprocess_info(given).metric, after = preprocess_info(one.found.preprocess).metric;
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
        run_search(&runs[which]);
    }
    assert_same(&runs[0].found, &runs[1].found);
    assert_that(runs[0].found.report.error < 0.15, "error %g", runs[0].found.report.error);
    assert_true(search_error(ROWS, (extras){0}) > 0.5);
    close_search(&runs[0]);
    close_search(&runs[1]);
}

/* A deadline in the past ends each descent after one step; the search still returns a result. */
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
        run_search(&one);
        assert_true(one.found.report.cut && one.found.report.ridge > 0);
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

/* Training rows and their targets take at most an eighth of the memory limit. */
static void test_memory(void **state)
{
    enum { MEMORY = 1 << 18 };
    search one;
    (void)state;
    plant();
    open_search(&one, context, open_rows(context, ROWS, (extras){.classes = true}));
    one.task.memory = MEMORY;
    run_search(&one);
    assert_true(one.found.report.rows * (FEATURES * 2 * 4 + OUTPUTS * 8) <= MEMORY / 8);
    close_search(&one);
}

/* Sixty groups in order: the first 4,096 rows have only 41 of them. */
static void test_groups_in_order(void **state)
{
    enum { MANY = 6000 };
    static float x[MANY];
    static double y[MANY], group[MANY];
    bool possible;
    (void)state;
    for (int i = 0; i < MANY; i++) x[i] = (float)i, y[i] = i % 7, group[i] = i / 100;
    mercer_matrix X = mrc_view(x, MANY, 1, MERCER_F32), Y = mrc_view(y, MANY, 1, MERCER_F64);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &X, .Y = &Y, .groups = group};
    mercer_dataset *data;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_succeeds(context, mrc_search_possible(data, &possible));
    assert_true(possible);
    mercer_dataset_free(data);
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
    mercer_search_report found = {.centers = {100, 200, 400}};
    for (int i = 0; i < 3; i++) found.center_errors[i] = 0.2 + 3 * pow((double)found.centers[i], -0.7);
    for (int64_t p = 400; p < 100000; p *= 3) {
        double error = 0.2 + 3 * pow((double)p, -0.7), more = 0.2 + 3 * pow(2 * (double)p, -0.7);
        assert_that(fabs(mrc_search_error_with(&found, p) - error) < 1e-12, "%g, not %g",
                    mrc_search_error_with(&found, p), error);
        assert_true(fabs(mrc_search_gain(&found, p, 2 * p) - (error - more) / error) < 1e-11);
    }
    found.center_errors[2] = found.center_errors[1];
    assert_true(mrc_search_gain(&found, 1000, 2000) == 0);
    found.centers[0] = 0;
    assert_true(isnan(mrc_search_gain(&found, 1000, 2000)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(test_splits),       cmocka_unit_test(test_classes),
        cmocka_unit_test(test_planted),      cmocka_unit_test(test_noise),
        cmocka_unit_test(test_same_bits),    cmocka_unit_test(test_other_state),
        cmocka_unit_test(test_leaks),        cmocka_unit_test(test_times),
        cmocka_unit_test(test_few_times),    cmocka_unit_test(test_large_group),
        cmocka_unit_test(test_given),        cmocka_unit_test(test_given_kernel),
        cmocka_unit_test(test_given_metric), cmocka_unit_test(test_given_bandwidth),
        cmocka_unit_test(test_weights),      cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_few_rows),     cmocka_unit_test(test_groups_in_order),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_efforts),
        cmocka_unit_test(test_more_centers),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search: splits of rows, what is found on problems whose answer is known, the rules of scale, and what a search must
 * not see. test_small_fits.c has its fits.
 */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "plan/plan.h"
#include "tune/tune.h"

#include <math.h>

static double normal(uint64_t sequence, int index)
{
    return mrc_random_normal((mrc_rng){41, sequence}, (uint64_t)index);
}

static mercer_matrix matrix_of(void *values, int64_t rows, int64_t cols)
{
    return mercer_matrix_view(values, rows, cols, MERCER_F64);
}

static mercer_kernel kernel_of(const char *text)
{
    mercer_kernel kernel;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, text));
    return kernel;
}

/* ---- Splits ------------------------------------------------------------------------------------------------------ */

enum { ROWS = 900, FEATURES = 6 };
static double planted_x[ROWS][FEATURES], planted_y[ROWS], keys[ROWS];
static int32_t labels[ROWS];

/* Two of six features matter; the third class is rare. */
static void plant(void)
{
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < FEATURES; j++) planted_x[i][j] = normal(2, i * FEATURES + j);
        planted_y[i] = sin(2 * planted_x[i][0]) + fabs(planted_x[i][1]) + 0.05 * normal(3, i);
        labels[i] = planted_y[i] > 0.8;
        keys[i] = i % 30;
    }
}

static mercer_dataset *planted(mercer_dataset_arrays *of, mercer_matrix *x, mercer_matrix *y, int64_t rows)
{
    mercer_dataset *data = NULL;
    *x = matrix_of(planted_x, rows, FEATURES), *y = matrix_of(planted_y, rows, 1);
    of->struct_size = sizeof *of;
    of->X = x;
    if (!of->labels) of->Y = y;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, of));
    return data;
}

/* Every row once, in one fold. */
static void count_rows(const mrc_split *split, int fold[ROWS])
{
    for (int i = 0; i < ROWS; i++) fold[i] = -1;
    for (int f = 0; f < split->fold_count; f++)
        for (int64_t i = 0; i < split->folds[f].count; i++) {
            int64_t row = split->rows[split->folds[f].first + i];
            assert_true(row >= 0 && row < ROWS && fold[row] < 0);
            fold[row] = f;
        }
}

static void test_splits(void **state)
{
    (void)state;
    mercer_matrix x, y;
    mrc_split split;
    int fold[ROWS], held = 0;
    plant();
    for (int kind = 0; kind < 3; kind++) {
        mercer_dataset_arrays of = {.groups = kind == 1 ? keys : NULL, .times = kind == 2 ? keys : NULL};
        mercer_dataset *data = planted(&of, &x, &y, ROWS);
        assert_succeeds(context, mrc_split_make(&split, data, MRC_HOLDOUT, 100000, 7));
        assert_int_equal(split.count, ROWS);
        count_rows(&split, fold);
        for (int i = 0; i < ROWS; i++) {
            held += fold[i];
            assert_true(fold[i] >= 0);
            if (kind == 1) assert_int_equal(fold[i], fold[i % 30]); /* groups are whole */
            if (kind == 2) assert_int_equal(fold[i], i % 30 >= 24); /* the latest fifth */
        }
        assert_true(held >= 180 * (kind + 1) && held <= 180 * (kind + 1) + 30);
        mrc_free(context, split.rows);
        if (kind == 1) {
            assert_succeeds(context, mrc_split_make(&split, data, MRC_KFOLD, 100000, 7));
            count_rows(&split, fold);
            for (int i = 0; i < ROWS; i++) assert_int_equal(fold[i], fold[i % 30]);
            mrc_free(context, split.rows);
        }
        if (kind > 0)
            assert_fails(context, mrc_split_make(&split, data, MRC_LOO, 1000, 7), MERCER_ERROR_ARGUMENT,
                         kind == 1 ? "groups together" : "times in order");
        mercer_dataset_free(data);
    }
}

/* A class that stands in the latest rows alone is refused by its name; where nothing but chance decides, one of its rows is
   among those that are fitted to. */
static void test_classes(void **state)
{
    (void)state;
    static const char *const names[] = {"low", "high", "late"};
    mercer_matrix x, y;
    mrc_split split;
    plant();
    for (int i = 0; i < ROWS; i++) keys[i] = i;
    labels[ROWS - 1] = 2;
    for (int times = 0; times < 2; times++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            mercer_dataset_arrays of = {
                .labels = labels, .classes = 3, .label_names = names, .times = times ? keys : NULL};
            mercer_dataset *data = planted(&of, &x, &y, ROWS);
            if (times) {
                assert_fails(context, mrc_split_make(&split, data, MRC_HOLDOUT, 1000, seed), MERCER_ERROR_DATA,
                             "'late'");
            } else {
                bool there = false;
                assert_succeeds(context, mrc_split_make(&split, data, MRC_HOLDOUT, 1000, seed));
                for (int64_t i = 0; i < split.folds[0].count; i++) there = there || split.rows[i] == ROWS - 1;
                assert_true(there);
                mrc_free(context, split.rows);
            }
            mercer_dataset_free(data);
        }
}

/* ---- The search -------------------------------------------------------------------------------------------------- */

static mercer_fit_options tuned(mercer_train_options *train)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    *train = (mercer_train_options)MERCER_INIT(mercer_train_options);
    train->solver = "direct";
    options.train = train, options.centers = 150, options.memory = INT64_C(1) << 30;
    options.tune = MERCER_ON, options.tune_kernels = "laplace-l1,gaussian", options.learn_features = 2;
    return options;
}

/* A search whose memory has room for distances and one whose memory has none try the same and find the same; the former
   counts less work. */
static void test_shared_distances(void **state)
{
    (void)state;
    static const char *const names[] = {"laplace-l1", "exppower-l1:gamma=0.7", "gaussian"}, *const preparations[] = {
                                                                                                "standardise"};
    enum { CENTERS = 60, KERNELS = 3 };
    const int64_t needed = ROWS * CENTERS * 4 + CENTERS * CENTERS * 8;
    mercer_kernel kernels[KERNELS] = {kernel_of("laplace-l1:bandwidth=1"),
                                      kernel_of("exppower-l1:bandwidth=1,gamma=0.7"),
                                      kernel_of("gaussian:bandwidth=1")};
    mrc_tune_result found[2];
    mercer_matrix x, y;
    mercer_dataset_arrays of = {0};
    plant();
    mercer_dataset *data = planted(&of, &x, &y, ROWS);
    for (int kept = 0; kept < 2; kept++) {
        mrc_tune_task task = {.context = context,
                              .data = data,
                              .kernels = kernels,
                              .kernel_count = KERNELS,
                              .kernel_names = names,
                              .preparations = preparations,
                              .preparation_count = 1,
                              .rounds = 1,
                              .centers = CENTERS,
                              .ridge = -1,
                              .criterion = MRC_HOLDOUT,
                              .budget = 1e9,
                              .rate = 1e9,
                              .memory = 8 * needed - (kept ? 0 : 8)};
        assert_succeeds(context, mrc_tune(&task, &found[kept]));
        assert_true(found[kept].whole && found[kept].found);
    }
    assert_int_equal(found[0].count, found[1].count);
    for (int64_t i = 0; i < found[0].count; i++)
        for (int r = 0; r < found[0].ridge_count; r++)
            assert_true(found[0].tries[i].errors[r] == found[1].tries[i].errors[r]);
    assert_true(found[0].error == found[1].error && found[0].kernel == found[1].kernel);
    /* Both functions of L1 try five bandwidths or more in the first round, and form distances once. */
    double pass = (double)ROWS * CENTERS * 3 * FEATURES / 1e9;
    assert_true(found[0].seconds - found[1].seconds > 9 * pass);
    for (int kept = 0; kept < 2; kept++) mrc_tune_free(&found[kept]);
    mercer_dataset_free(data);
}

/* The mean squared error of a model on new rows of the planted function. */
static double error_of(mercer_model *model)
{
    enum { NEW = 400 };
    static double x[NEW][FEATURES], f[NEW];
    double sum = 0;
    for (int i = 0; i < NEW * FEATURES; i++) x[i / FEATURES][i % FEATURES] = normal(5, i);
    mercer_matrix X_new = matrix_of(x, NEW, FEATURES), F = matrix_of(f, NEW, 1);
    assert_succeeds(context, mercer_model_predict(model, &F, &X_new));
    for (int i = 0; i < NEW; i++) sum += pow(f[i] - sin(2 * x[i][0]) - fabs(x[i][1]), 2);
    return sum / NEW;
}

/* What is found is better than the defaults, by far: four of six features are noise. And the fit proper follows the rules of
   scale: the bandwidth is the multiple that was found of the median distance, the ridge that of a sample times their number. */
static void test_search(void **state)
{
    (void)state;
    mercer_matrix x, y;
    mercer_dataset_arrays of = {0};
    mercer_train_options train;
    mercer_model *model = NULL;
    plant();
    mercer_dataset *data = planted(&of, &x, &y, ROWS);
    mercer_fit_options options = tuned(&train);
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    double found = error_of(model);
    mercer_model_free(model);
    options.tune = MERCER_OFF, options.tune_kernels = NULL, options.learn_features = 0, train.lambda = 1e-3;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    double plain = error_of(model);
    mercer_model_free(model);
    assert_that(found < 0.3 * plain, "error %g with a search, %g without", found, plain);

    mercer_fitting *fitting = NULL;
    mercer_plan *plan = calloc(1, sizeof *plan);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    plan->struct_size = sizeof *plan;
    options = tuned(&train);
    assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
    assert_succeeds(context, mercer_fitting_prepare(fitting, plan));
    assert_succeeds(context, mercer_fitting_query(fitting, &report));
    assert_true(report.try_count > 10 && report.best_try >= 0 && report.tune_whole);
    for (int64_t i = 0; i < report.try_count; i++) assert_true(report.tries[i].error >= report.tune_error);
    assert_that(fabs(plan->lambda - report.tune_ridge * ROWS) < 1e-12 * plan->lambda, "lambda %g", plan->lambda);
    const mercer_kernel *kernel = mercer_model_kernel(report.model);
    static double mapped[ROWS][FEATURES];
    mercer_matrix points = matrix_of(mapped, ROWS, FEATURES);
    double unit;
    points.cols = mercer_preprocess_width(mercer_model_preprocess(report.model), FEATURES);
    assert_succeeds(context, mercer_preprocess_apply(mercer_model_preprocess(report.model), &points, &x));
    assert_succeeds(context, mercer_kernel_median_distance(context, &unit, kernel, &points, 0));
    /* of all rows here as there, in four digits */
    assert_that(fabs(kernel->bandwidth - report.tune_multiple * unit) < 1e-3 * kernel->bandwidth, "%g, %g of %g",
                kernel->bandwidth, report.tune_multiple, unit);
    assert_non_null(strstr(plan->text, "\ntuned: "));
    mercer_fitting_free(fitting);
    free(plan);
    mercer_dataset_free(data);
}

/* The same tries with the same errors, in bits, for any number of threads, and whatever rows are validated on: were the search
   to look at those, other targets there would show. */
static void test_what_decides(void **state)
{
    (void)state;
    static double false_y[300];
    double errors[3][256];
    int64_t count = 0;
    mercer_matrix x, y;
    plant();
    for (int run = 0; run < 3; run++) {
        mercer_context *own = NULL;
        mercer_context_options settings = MERCER_INIT(mercer_context_options);
        settings.threads = run == 1 ? 3 : 1;
        assert_int_equal(mercer_context_create(&own, &settings), MERCER_OK);
        mercer_matrix held_x = matrix_of(planted_x[600], 300, FEATURES), held_y = matrix_of(false_y, 300, 1);
        for (int i = 0; i < 300; i++) false_y[i] = 1e3 * normal(6, i);
        mercer_dataset_arrays of = {.struct_size = sizeof of},
                              held = {.struct_size = sizeof held, .X = &held_x, .Y = &held_y};
        x = matrix_of(planted_x, 300, FEATURES), y = matrix_of(planted_y, 300, 1);
        of.X = &x, of.Y = &y;
        mercer_dataset *data = NULL, *validation = NULL;
        assert_succeeds(own, mercer_dataset_from_arrays(&data, own, &of));
        assert_succeeds(own, mercer_dataset_from_arrays(&validation, own, &held));
        mercer_train_options train;
        mercer_fit_options options = tuned(&train);
        mercer_fit_report report = MERCER_INIT(mercer_fit_report);
        mercer_fitting *fitting = NULL;
        options.tune_budget = 1e6;
        if (run == 2) options.validation = validation;
        assert_succeeds(own, mercer_fitting_open(&fitting, own, data, &options));
        assert_succeeds(own, mercer_fitting_prepare(fitting, NULL));
        assert_succeeds(own, mercer_fitting_query(fitting, &report));
        assert_true(report.try_count <= 256 && (run == 0 || report.try_count == count));
        count = report.try_count;
        for (int64_t i = 0; i < count; i++) errors[run][i] = report.tries[i].error;
        assert_memory_equal(errors[run], errors[0], (size_t)count * sizeof(double));
        mercer_fitting_free(fitting);
        mercer_dataset_free(data), mercer_dataset_free(validation);
        mercer_context_free(own);
    }
}

/* Nothing can be tried within a nanosecond: the defaults are taken, and the plan says so. Fewer than 50 rows are judged by
   leaving one out, whatever was asked for. */
static void test_limits(void **state)
{
    (void)state;
    mercer_matrix x, y;
    mercer_dataset_arrays of = {0};
    mercer_train_options train;
    mercer_plan *plan = calloc(1, sizeof *plan);
    plan->struct_size = sizeof *plan;
    plant();
    for (int small = 0; small < 2; small++) {
        mercer_dataset *data = planted(&of, &x, &y, small ? 45 : ROWS);
        mercer_fit_options options = tuned(&train);
        mercer_fitting *fitting = NULL;
        mercer_fit_report report = MERCER_INIT(mercer_fit_report);
        options.centers = 0;
        options.tune_criterion = "holdout";
        if (!small) options.tune_budget = 1e-9;
        assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
        assert_succeeds(context, mercer_fitting_prepare(fitting, plan));
        assert_succeeds(context, mercer_fitting_query(fitting, &report));
        assert_non_null(strstr(plan->text, small ? "judged by holdout" : "too small for one candidate"));
        assert_true(small ? report.best_try >= 0 : report.try_count == 0 && strncmp(report.kernel, "laplace:", 8) == 0);
        mercer_fitting_free(fitting);
        mercer_dataset_free(data);
    }
    free(plan);
}

static void test_refusals(void **state)
{
    (void)state;
    mercer_train_options train;
    mercer_fit_options options = tuned(&train);
    options.tune_criterion = "guess";
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "tune_criterion 'guess'");
    options = tuned(&train), options.bandwidth = 2;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT,
                 "tune asks for a search, but bandwidth is given");
    options = tuned(&train), options.tune_kernels = "laplace:bandwidth=3";
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "has one: leave it out");
    options = tuned(&train), options.tune_kernels = "laplace,ntk";
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "takes none");
    options = tuned(&train), options.tune_kernels = "";
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "tune_kernels is empty");
    options = tuned(&train), options.tune_kernels = "rational-quadratic:alpha=2,exppower:gamma=0.5";
    assert_succeeds(context, mercer_fit_check(context, &options));
    options = tuned(&train), options.tune_budget = -1;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "tune_budget is -1");
}

static int stop(void *user, const char *phase, int64_t done, int64_t total, double error)
{
    (void)error;
    int *seen = user;
    if (strcmp(phase, "tuning") != 0) return 0;
    assert_true(done >= 0 && done <= total);
    return ++*seen == 3;
}

static void test_stopping(void **state)
{
    (void)state;
    mercer_matrix x, y;
    mercer_dataset_arrays of = {0};
    mercer_train_options train;
    mercer_model *model = NULL;
    int seen = 0;
    plant();
    mercer_dataset *data = planted(&of, &x, &y, ROWS);
    mercer_fit_options options = tuned(&train);
    options.progress = stop, options.progress_user = &seen;
    assert_fails(context, mercer_fit(&model, context, data, &options, NULL), MERCER_ERROR_CALLBACK, "searched for");
    assert_true(seen == 3 && model == NULL);
    mercer_dataset_free(data);
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

/* What a search that is killed after its fits of number `at` leaves. */
typedef struct killed {
    int64_t at[2], views;
    mrc_journal left[2];
    int64_t descents; /* metrics that came with the step of a bandwidth */
} killed;

static double *copy_of(const double *from, int64_t count)
{
    double *to = NULL;
    assert_succeeds(context, mrc_alloc(context, &to, count + 1, sizeof *to, "a journal"));
    memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

static void keep_copies(void *user, const mrc_tune_task *task, bool now)
{
    killed *self = user;
    const mrc_journal *all = task->journal;
    self->descents = 0;
    for (int64_t i = 0; i < all->metrics; i++) self->descents += all->shapes[MRC_JOURNAL_SHAPE * i + 2] > 0;
    for (int i = 0; i < 2 && !now; i++) {
        if (self->at[i] == 0 && self->descents == (i + 1) * self->views) self->at[i] = all->fits;
        if (self->at[i] != all->fits) continue;
        mrc_journal *left = &self->left[i];
        *left = (mrc_journal){.context = context,
                              .ridges = all->ridges,
                              .features = all->features,
                              .most_numbers = all->most_numbers,
                              .fits = all->fits,
                              .metrics = all->metrics,
                              .numbers = all->numbers};
        left->errors = copy_of(all->errors, all->fits * all->ridges), left->error_room = all->fits * all->ridges;
        left->shapes = copy_of(all->shapes, all->metrics * MRC_JOURNAL_SHAPE);
        left->shape_room = all->metrics * MRC_JOURNAL_SHAPE;
        left->maps = copy_of(all->maps, all->numbers), left->map_room = all->numbers;
    }
}

/* A search that goes on from what another left, after the scales of one arm went down and after those of both, ends in
   the same bits. */
static void go_on(mrc_criterion criterion, int views, int64_t rows, int kernel, int arms)
{
    mercer_matrix x, y;
    mercer_dataset_arrays of = {0};
    plant();
    mercer_dataset *data = planted(&of, &x, &y, rows);
    const mercer_kernel kernels[] = {kernel_of("laplace-l1:bandwidth=1"),
                                     kernel_of("exppower-l1:bandwidth=1,gamma=0.9"), kernel_of("gaussian:bandwidth=1")};
    static const char *const names[] = {"laplace-l1", "exppower-l1:gamma=0.9", "gaussian"}, *const preparations[] = {
                                                                                                "standardise"};
    mrc_journal first = {
        .context = context, .ridges = MRC_TUNE_RIDGES, .features = FEATURES, .most_numbers = INT64_C(1) << 20};
    killed left = {.views = views};
    mrc_tune_task task = {.context = context,
                          .data = data,
                          .kernels = kernels + kernel,
                          .kernel_count = arms,
                          .kernel_names = names + kernel,
                          .preparations = preparations,
                          .preparation_count = 1,
                          .rounds = 1,
                          .centers = 300,
                          .ridge = -1,
                          .criterion = criterion,
                          .budget = 1e6,
                          .rate = 1e9,
                          .memory = INT64_C(1) << 30,
                          .journal = &first,
                          .keep = keep_copies,
                          .keep_user = &left};
    mrc_tune_result whole, rest;
    assert_succeeds(context, mrc_tune(&task, &whole));
    assert_int_equal(left.descents, arms * views);
    for (int i = 0; i < arms; i++) {
        assert_true(left.at[i] > 0 && left.at[i] < first.fits);
        task.journal = &left.left[i], task.keep = NULL;
        assert_succeeds(context, mrc_tune(&task, &rest));
        assert_int_equal(left.left[i].fits, first.fits);
        assert_int_equal(rest.count, whole.count);
        for (int64_t t = 0; t < rest.count; t++) {
            assert_memory_equal(rest.tries[t].errors, whole.tries[t].errors, sizeof whole.tries[t].errors);
            assert_true(rest.tries[t].bandwidth == whole.tries[t].bandwidth);
        }
        assert_true(rest.multiple == whole.multiple && rest.ridge == whole.ridge && rest.round == whole.round);
        assert_true(rest.metric.rows == whole.metric.rows && rest.metric.data);
        assert_memory_equal(rest.metric.data, whole.metric.data,
                            (size_t)(rest.metric.rows * rest.metric.cols) * sizeof(double));
        mrc_tune_free(&rest);
        mrc_journal_free(&left.left[i]);
    }
    mrc_tune_free(&whole);
    mrc_journal_free(&first);
    mercer_dataset_free(data);
}

static void test_going_on(void **state)
{
    (void)state;
    go_on(MRC_HOLDOUT, 1, ROWS, 0, 2);
    go_on(MRC_KFOLD, 5, 420, 0, 1);
    go_on(MRC_HOLDOUT, 1, ROWS, 2, 1);
}

/* Targets that nothing can tell: metrics that were learned of the rows that they are judged on would seem to. */
static void test_noise(void **state)
{
    (void)state;
    enum { FEW = 240, MANY = 80 };
    static double noise_x[FEW][MANY], noise_y[FEW];
    for (int i = 0; i < FEW * MANY; i++) noise_x[i / MANY][i % MANY] = normal(7, i);
    for (int i = 0; i < FEW; i++) noise_y[i] = normal(8, i);
    mercer_matrix x = matrix_of(noise_x, FEW, MANY), y = matrix_of(noise_y, FEW, 1);
    mercer_dataset_arrays of = {.struct_size = sizeof of, .X = &x, .Y = &y};
    mercer_dataset *data = NULL;
    mercer_train_options train;
    mercer_fit_options options = tuned(&train);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_fitting *fitting = NULL;
    options.tune_criterion = "kfold", options.tune_kernels = "gaussian", options.tune_budget = 1e6;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &of));
    assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
    assert_succeeds(context, mercer_fitting_prepare(fitting, NULL));
    assert_succeeds(context, mercer_fitting_query(fitting, &report));
    for (int64_t i = 0; i < report.try_count; i++) /* of 240 squares of mean 1 with deviation 1.4: 9 % are chance */
        assert_that(report.tries[i].error > 0.91, "round %lld: %g", (long long)report.tries[i].round,
                    report.tries[i].error);
    mercer_fitting_free(fitting);
    mercer_dataset_free(data);
}

/* ---- The default ------------------------------------------------------------------------------------------------- */

/* A table is searched, whatever else is given, unless that has no meaning without the default of the rest; what is not a
   table never is. */
static void test_rule(void **state)
{
    (void)state;
    const mercer_matrix metric = {0};
    const mercer_kernel kernel = {0};
    mercer_fit_options fit = {0};
    const mercer_dataset_info table = {
        .rows = 500, .features = 1024, .dtype = MERCER_F32, .task = MERCER_TASK_REGRESSION, .format = "csv"};
    const int64_t memory = INT64_C(1) << 30;
#define WHY(field, value, words)                                            \
    do {                                                                    \
        fit = (mercer_fit_options){0};                                      \
        mercer_dataset_info info = table;                                   \
        assert_null(mrc_plan_untuned(&fit, &info, info.rows, memory));      \
        (field) = (value);                                                  \
        const char *why = mrc_plan_untuned(&fit, &info, info.rows, memory); \
        assert_non_null(why);                                               \
        assert_that(strstr(why, words) != NULL, "%s", why);                 \
    } while (0)
    WHY(fit.kernel, "laplace:bandwidth=2", "bandwidth");
    WHY(fit.kernel_function, &kernel, "bandwidth");
    WHY(fit.bandwidth, 2, "bandwidth");
    WHY(fit.metric, &metric, "metric");
    WHY(fit.learn_features, -1, "metric");
    WHY(fit.augment, "flip", "augmented");
    WHY(fit.samples, 1, "augmented");
    WHY(info.rows, 499, "500 rows");
    WHY(info.features, 1025, "features");
    WHY(info.dtype, MERCER_U8, "not a table");
    WHY(info.dtype, MERCER_F16, "not a table");
    WHY(info.format, "synthetic", "not a table");
    WHY(info.format, "libsvm", "not a table");
    WHY(info.format, NULL, "sizes");
    WHY(info.format, "sizes", "sizes");
    WHY(info.task, MERCER_TASK_UNLABELLED, "targets");
    WHY(info.rows, memory / 4096 / 4 + 1, "memory");
#undef WHY
    fit = (mercer_fit_options){0};
    for (int sides = 0; sides < 4; sides++) { /* an image has both */
        mercer_dataset_info info = table;
        info.height = sides & 1, info.width = sides >> 1;
        const char *why = mrc_plan_untuned(&fit, &info, info.rows, memory);
        assert_true((why != NULL) == (sides == 3));
        if (why) assert_string_equal(why, "the samples are images");
    }
    mercer_dataset_info quarter = table;
    quarter.rows = memory / 4096 / 4;
    assert_null(mrc_plan_untuned(&fit, &quarter, quarter.rows, memory));
    fit = (mercer_fit_options){.centers = 100, .preprocess = "rank", .kernel = "laplace", .validation_fraction = 0.2};
    assert_null(mrc_plan_untuned(&fit, &table, table.rows, memory));
    mercer_dataset_info trained = table; /* rows that were held out count */
    trained.rows = 400;
    assert_null(mrc_plan_untuned(&fit, &trained, 500, memory));
}

/* What the plan chose is in the report and in its text; a search that was not asked for is one like any other. */
static void test_default(void **state)
{
    (void)state;
    mercer_matrix x, y;
    mercer_dataset_arrays of = {0};
    mercer_plan *plan = calloc(1, sizeof *plan);
    plant();
    for (int given = 0; given < 2; given++) {
        mercer_dataset *data = planted(&of, &x, &y, ROWS);
        mercer_fit_options options = MERCER_INIT(mercer_fit_options);
        mercer_fitting *fitting = NULL;
        mercer_fit_report report = MERCER_INIT(mercer_fit_report);
        options.centers = 60, options.memory = INT64_C(1) << 30;
        if (given)
            options.bandwidth = 2;
        else
            options.tune_budget = 0.01;
        *plan = (mercer_plan){.struct_size = sizeof *plan};
        assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
        assert_succeeds(context, mercer_fitting_prepare(fitting, plan));
        assert_succeeds(context, mercer_fitting_query(fitting, &report));
        assert_true(given ? report.try_count == 0 : report.try_count > 0);
        assert_true((report.untuned != NULL) == (given == 1));
        assert_non_null(strstr(plan->text, given ? "\nnot tuned: the bandwidth is given" : "\ntuned: "));
        assert_true(given || mercer_solver_kind_of(plan->solver) != MERCER_SOLVER_BATCHES);
        mercer_fitting_free(fitting);
        mercer_dataset_free(data);
    }
    free(plan);
}

/* Errors a + b P^-s are extrapolated exactly; what does not fall any more brings nothing. */
static void test_more_centers(void **state)
{
    (void)state;
    mrc_tune_result found = {.centers = {100, 200, 400}};
    for (int i = 0; i < 3; i++) found.center_errors[i] = 0.2 + 3 * pow((double)found.centers[i], -0.7);
    for (int64_t p = 400; p < 100000; p *= 3) {
        double error = 0.2 + 3 * pow((double)p, -0.7);
        assert_that(fabs(mrc_tune_error_with(&found, p) - error) < 1e-12, "%g, not %g", mrc_tune_error_with(&found, p),
                    error);
        double gain = (error - (0.2 + 3 * pow(2 * (double)p, -0.7))) / error;
        assert_true(fabs(mrc_tune_gain(&found, p, 2 * p) - gain) < 1e-11);
    }
    found.center_errors[2] = found.center_errors[1];
    assert_true(mrc_tune_gain(&found, 1000, 2000) == 0);
    found.centers[0] = 0;
    assert_true(isnan(mrc_tune_gain(&found, 1000, 2000)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits),   cmocka_unit_test(test_classes),      cmocka_unit_test(test_shared_distances),
        cmocka_unit_test(test_search),   cmocka_unit_test(test_what_decides), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_stopping),     cmocka_unit_test(test_rule),
        cmocka_unit_test(test_default),  cmocka_unit_test(test_more_centers), cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

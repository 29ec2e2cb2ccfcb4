/* SPDX-License-Identifier: BSD-3-Clause */
/* Fitting: in one call and in steps, merged and weighted samples, held-out rows, probabilities, memory, errors. */
#include "support/datasets.h"

#include "support/info.h"

#include "core/numbers/random.h"
#include "data/dataset.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"

#include <math.h>

enum { N = 240, D = 3 };

static double X[N][D], Y[N];
static int32_t labels[N];

/* Fill X, Y and labels. The sign of the first feature determines the class; every tenth label is flipped. */
static void make_samples(void)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) X[i][j] = mrc_random_normal((mrc_rng){11, 0}, (uint64_t)(i * D + j));
        Y[i] = sin(X[i][0]) + X[i][1];
        labels[i] = (X[i][0] > 0) != (i % 10 == 0);
    }
}

static int open_tests(void **state)
{
    make_samples();
    return open_datasets(state);
}

typedef struct arrays {
    mercer_matrix x, y;
    mercer_dataset_arrays of;
} arrays;

static mercer_dataset *dataset(arrays *self, void *x, double *y, int32_t *classes, const double *weights, int64_t n)
{
    mercer_dataset *out = NULL;
    self->x = mercer_matrix_view(x, n, D, MERCER_F64), self->y = mercer_matrix_view(y, n, 1, MERCER_F64);
    self->of = (mercer_dataset_arrays)MERCER_INIT(mercer_dataset_arrays);
    self->of.X = &self->x, self->of.weights = weights;
    if (classes)
        self->of.labels = classes, self->of.classes = 2;
    else
        self->of.Y = &self->y;
    assert_succeeds(context, mercer_dataset_from_arrays(&out, context, &self->of));
    return out;
}

static mercer_fit_options options_for(mercer_train_options *train, const char *solver)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    *train = (mercer_train_options)MERCER_INIT(mercer_train_options);
    train->solver = solver;
    options.train = train;
    options.run.memory = INT64_C(1) << 30;
    options.search.tune = MERCER_OFF;
    return options;
}

static mercer_model *fit(mercer_dataset *data, const mercer_fit_options *options, mercer_fit_report *report)
{
    mercer_model *model = NULL;
    assert_succeeds(context, mercer_fit(&model, context, data, options, report));
    return model;
}

/* Check that both models have the same centers and weights. */
static void assert_same(const mercer_model *a, const mercer_model *b)
{
    mercer_matrix parts[2][2] = {{model_info(a).centers, model_info(a).weights},
                                 {model_info(b).centers, model_info(b).weights}};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(parts[0][k].rows, parts[1][k].rows);
        for (int64_t i = 0; i < parts[0][k].rows; i++)
            assert_memory_equal(mrc_row(&parts[0][k], i), mrc_row(&parts[1][k], i),
                                (size_t)parts[0][k].cols * sizeof(double));
    }
}

/* Returns the value of a decision of a fit; fails if it was not made. */
static const char *decision(const mercer_fitting *fitting, const char *name)
{
    mercer_decision one = MERCER_INIT(mercer_decision);
    int exists = 1;
    for (int i = 0; exists; i++) {
        assert_succeeds(context, mercer_fitting_decision(fitting, i, &one, &exists));
        if (exists && strcmp(one.name, name) == 0) return one.value;
    }
    fail_msg("%s was not decided", name);
    return NULL;
}

static double median_distance(const mercer_fitting *fitting)
{
    return strtod(decision(fitting, "bandwidth"), NULL);
}

/* ---- One call and steps ---------------------------------------------------------------------------------------- */

static void test_at_once_and_in_steps(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_dataset *data = dataset(&of, X, Y, NULL, NULL, N);
    mercer_fit_options options = options_for(&train, "ep4");
    options.centers.count = 60, options.validation.fraction = 0.25, options.run.seed = 3;
    mercer_report training = MERCER_INIT(mercer_report);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_fit_parts parts = MERCER_INIT(mercer_fit_parts);
    report.training = &training;
    mercer_model *whole = fit(data, &options, &report), *steps = NULL;
    assert_int_equal(report.rows, 180), assert_int_equal(report.validation_rows, 60);
    assert_string_equal(report.preprocess, "standardize"), assert_string_equal(training.plan->solver, "ep4");
    assert_true(isnan(report.temperature));
    assert_true(training.validation_loss < 0.5 && strstr(model_info(whole).note, "\"seed\": 3"));
    mercer_fitting *fitting = NULL;
    mercer_plan plan = MERCER_INIT(mercer_plan);
    assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
    assert_succeeds(context, mercer_fitting_parts(fitting, &parts));
    assert_true(parts.train && parts.validation && !parts.model);
    assert_succeeds(context, mercer_fitting_prepare(fitting, &plan));
    assert_true(median_distance(fitting) > 1 && median_distance(fitting) < 4);
    assert_string_equal(plan.solver, "ep4");
    assert_fails(context, mercer_fitting_prepare(fitting, &plan), MERCER_ERROR_ARGUMENT, "prepared");
    assert_succeeds(context, mercer_fitting_run(fitting, NULL));
    assert_succeeds(context, mercer_fitting_take_model(fitting, &steps));
    mercer_fitting_free(fitting);
    assert_same(whole, steps);
    mercer_model_free(whole), mercer_model_free(steps), mercer_dataset_free(data);
}

/* Training an existing model continues with its centers and weights. */
static void test_trained_further(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_dataset *data = dataset(&of, X, Y, NULL, NULL, N);
    mercer_fit_options options = options_for(&train, "ep4");
    mercer_report first = MERCER_INIT(mercer_report), second = MERCER_INIT(mercer_report);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    options.centers.count = 60, train.epochs = 1, train.average = MERCER_OFF;
    report.training = &first;
    mercer_model *model = fit(data, &options, &report);
    options.run.model = model, report.training = &second;
    mercer_model *again = fit(data, &options, &report);
    assert_ptr_equal(model, again);
    assert_true(second.train_loss < first.train_loss);
    mercer_model_free(model), mercer_dataset_free(data);
}

/* ---- Samples --------------------------------------------------------------------------------------------------- */

static void test_weights_are_repetitions(void **state)
{
    (void)state;
    static double weights[N], repeated[3 * N][D], targets[3 * N];
    static const struct {
        const char *solver, *method;
        int64_t centers;
        double fraction;
    } cases[] = {{"direct", NULL, 0, 0},  {"direct", NULL, -1, 0},         {"ep4", NULL, 40, 0},
                 {"cg", "kmeans", 40, 0}, {"direct", "rpcholesky", 40, 0}, {"ep4", NULL, 40, 0.2}};
    int64_t count = 0;
    for (int i = 0; i < N; i++) weights[i] = i % 4;
    for (int k = 3; k > 0; k--) /* different row order than the weighted dataset */
        for (int i = N - 1; i >= 0; i--)
            if (i % 4 >= k) memcpy(repeated[count], X[i], sizeof X[i]), targets[count++] = Y[i];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        arrays weighted_of, repeated_of;
        mercer_train_options train;
        mercer_fit_options options = options_for(&train, cases[k].solver);
        options.data.merge = MERCER_ON, options.centers.count = cases[k].centers,
        options.centers.method = cases[k].method;
        options.validation.fraction = cases[k].fraction;
        mercer_dataset *few = dataset(&weighted_of, X, Y, NULL, weights, N);
        mercer_dataset *many = dataset(&repeated_of, repeated, targets, NULL, NULL, count);
        mercer_model *a = fit(few, &options, NULL), *b = fit(many, &options, NULL);
        assert_same(a, b);
        mercer_model_free(a), mercer_model_free(b), mercer_dataset_free(few), mercer_dataset_free(many);
    }
}

/* Merging changes nothing for distinct samples without weights. */
static void test_merging_changes_nothing_else(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_dataset *data = dataset(&of, X, Y, NULL, NULL, N);
    mercer_fit_options options = options_for(&train, "ep4");
    options.centers.count = 50, options.validation.fraction = 0.1;
    mercer_model *plain = fit(data, &options, NULL);
    options.data.merge = MERCER_ON;
    mercer_model *merged = fit(data, &options, NULL);
    assert_same(plain, merged);
    mercer_model_free(plain), mercer_model_free(merged), mercer_dataset_free(data);
}

/* Samples with equal features and different labels stay separate but share one center. */
static void test_centers_differ(void **state)
{
    (void)state;
    static double twice[2 * N][D];
    static int32_t both[2 * N];
    arrays of;
    mercer_train_options train;
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    for (int i = 0; i < 2 * N; i++) memcpy(twice[i], X[i / 2], sizeof X[0]), both[i] = i % 2;
    mercer_dataset *data = dataset(&of, twice, NULL, both, NULL, 2 * N);
    mercer_fit_options options = options_for(&train, "direct");
    options.data.merge = MERCER_ON;
    mercer_model *model = fit(data, &options, &report);
    assert_int_equal(report.rows, 2 * N), assert_int_equal(model_info(model).centers.rows, N);
    mercer_model_free(model), mercer_dataset_free(data);
}

static void test_heavy_rows_are_likelier_centers(void **state)
{
    (void)state;
    static double weights[N];
    arrays of;
    mercer_train_options train;
    for (int i = 0; i < N; i++) weights[i] = i < 40 ? 1000 : 1e-3;
    mercer_dataset *data = dataset(&of, X, Y, NULL, weights, N);
    mercer_fit_options options = options_for(&train, "direct");
    options.centers.count = 30, options.data.preprocess = "none";
    mercer_model *model = fit(data, &options, NULL);
    mercer_matrix centers = model_info(model).centers;
    for (int64_t j = 0, found = 0; j < centers.rows; j++, found = 0) {
        for (int i = 0; i < 40; i++) found += memcmp(mrc_row(&centers, j), X[i], sizeof X[i]) == 0;
        assert_int_equal(found, 1);
    }
    mercer_model_free(model), mercer_dataset_free(data);
}

/* Every row is either a training or a validation row, and another seed holds out other rows. */
static void test_parts(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_dataset *data = dataset(&of, X, Y, NULL, NULL, N);
    mercer_fit_options options = options_for(&train, NULL);
    double first[2];
    options.validation.fraction = 0.3;
    for (int seed = 0; seed < 2; seed++) {
        mercer_fitting *fitting = NULL;
        mercer_fit_parts of_fit = MERCER_INIT(mercer_fit_parts);
        int64_t found = 0;
        options.run.seed = (uint64_t)seed;
        assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
        assert_succeeds(context, mercer_fitting_parts(fitting, &of_fit));
        mercer_matrix parts[] = {mercer_dataset_samples(of_fit.train), mercer_dataset_samples(of_fit.validation)};
        assert_int_equal(parts[1].rows, 72), assert_int_equal(parts[0].rows, N - 72);
        for (int i = 0; i < N; i++)
            for (int k = 0; k < 2; k++)
                for (int64_t j = 0; j < parts[k].rows; j++)
                    found += memcmp(mrc_row(&parts[k], j), X[i], sizeof X[i]) == 0;
        assert_int_equal(found, N);
        first[seed] = *(double *)parts[1].data;
        mercer_fitting_free(fitting);
    }
    assert_true(first[0] != first[1]);
    mercer_dataset_free(data);
}

/* Callers' rows that are too large to copy are split in place: held-out rows get weight 0 in the training set. */
static void test_large_rows_stay_where_they_are(void **state)
{
    (void)state;
    arrays of, given_of;
    mercer_train_options train;
    mercer_dataset *data = dataset(&of, X, Y, NULL, NULL, N), *given = dataset(&given_of, X, Y, NULL, NULL, 20);
    mercer_fit_options options = options_for(&train, "direct");
    mercer_fitting *fitting = NULL;
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_fit_parts parts = MERCER_INIT(mercer_fit_parts);
    options.validation.fraction = 0.25, options.centers.given = given, options.run.memory = 4 * N * D;
    assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
    assert_succeeds(context, mercer_fitting_query(fitting, &report));
    assert_succeeds(context, mercer_fitting_parts(fitting, &parts));
    assert_ptr_equal(mercer_dataset_samples(parts.train).data, X);
    assert_int_equal(report.rows, N), assert_int_equal(report.validation_rows, 60);
    mercer_matrix held = mercer_dataset_samples(parts.validation);
    for (int64_t i = 0, next = 0; i < N; i++) {
        bool aside = next < held.rows && memcmp(mrc_row(&held, next), X[i], sizeof X[i]) == 0;
        assert_true(parts.train->weights[i] == (aside ? 0 : 1));
        next += aside;
    }
    mercer_fitting_free(fitting);
    mercer_dataset_free(given), mercer_dataset_free(data);
}

static void test_last_rows_of_a_large_file(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_dataset *memory = dataset(&of, X, Y, NULL, NULL, N), *file = NULL;
    mercer_dataset_options opening = MERCER_INIT(mercer_dataset_options);
    mercer_fit_options options = options_for(&train, NULL);
    mercer_fitting *fitting = NULL;
    mercer_fit_parts parts = MERCER_INIT(mercer_fit_parts);
    const char *x = in_folder("x.npy"), *y = in_folder("y.npy");
    assert_succeeds(context, mercer_dataset_write(memory, x, y));
    opening.x = x, opening.y = y, opening.task = MERCER_TASK_REGRESSION;
    assert_succeeds(context, mercer_dataset_open(&file, context, &opening));
    options.validation.fraction = 0.25, options.run.memory = 4 * N * D;
    assert_succeeds(context, mercer_fitting_open(&fitting, context, file, &options));
    assert_succeeds(context, mercer_fitting_parts(fitting, &parts));
    assert_string_equal(decision(fitting, "held_out"), "last rows");
    assert_memory_equal(mercer_dataset_samples(parts.validation).data, X[180], sizeof X[0] * 60);
    assert_memory_equal(mercer_dataset_samples(parts.train).data, X, sizeof X[0] * 180);
    mercer_fitting_free(fitting), mercer_dataset_free(file), mercer_dataset_free(memory);
}

/* ---- Probabilities --------------------------------------------------------------------------------------------- */

static double curved(double f, double curvature)
{
    return curvature > 0 ? asinh(curvature * f) / asinh(curvature) : f;
}

static double log_loss(const double (*scores)[2], const int32_t *classes, int64_t n, double temperature,
                       double curvature)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double own = curved(scores[i][classes[i]], curvature), other = curved(scores[i][1 - classes[i]], curvature);
        sum += log1p(exp((other - own) / temperature));
    }
    return sum / (double)n;
}

static void test_temperature_minimizes_the_loss(void **state)
{
    (void)state;
    double scores[N][2], found, curvature;
    for (int i = 0; i < N; i++) scores[i][1] = 0.3 + 0.2 * X[i][0], scores[i][0] = 0.7 - 0.2 * X[i][0];
    mercer_matrix of = mercer_matrix_view(scores, N, 2, MERCER_F64);
    assert_succeeds(context, mercer_calibrate(context, &found, &curvature, &of, labels, NULL));
    double least = log_loss((const double(*)[2])scores, labels, N, found, curvature);
    for (int k = -10; k <= 10; k++) /* steps of 0.02 in log T; the search ends within 1e-4 */
        assert_true(log_loss((const double(*)[2])scores, labels, N, found * exp(k * 0.02), curvature) >= least - 1e-9);
    of.rows = 7;
    assert_succeeds(context, mercer_calibrate(context, &found, &curvature, &of, labels, NULL));
    assert_true(found == 0.25 && curvature == 0);
    assert_fails(context, mercer_calibrate(context, &found, &curvature, &of, NULL, NULL), MERCER_ERROR_ARGUMENT,
                 "labels");
    assert_fails(context, mercer_calibrate(context, &found, NULL, &of, labels, NULL), MERCER_ERROR_ARGUMENT,
                 "curvature");
    assert_fails(context, mercer_calibrate(context, NULL, &curvature, &of, labels, NULL), MERCER_ERROR_ARGUMENT,
                 "temperature");
}

/* Labels are drawn from known probabilities of scores f and 1 - f. Calibration must find the curvature within a factor
   of 4, and its log loss must not exceed that of the known probabilities. For few rows, separable classes and scores
   that need no curvature, calibration must choose none. */
static void test_curvature_is_recovered(void **state)
{
    (void)state;
    enum { ROWS = 4000, FEW = 12 };
    static double scores[ROWS][2];
    static int32_t classes[ROWS];
    const double drawn[] = {0, 8, 32, 128};
    double t, curvature;
    mercer_matrix of = mercer_matrix_view(scores, ROWS, 2, MERCER_F64);
    for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++) {
        for (uint64_t i = 0; i < ROWS; i++) {
            scores[i][1] = mrc_random_uniform((mrc_rng){17, k}, i), scores[i][0] = 1 - scores[i][1];
            double odds = (curved(scores[i][1], drawn[k]) - curved(scores[i][0], drawn[k])) / 0.2;
            classes[i] = mrc_random_uniform((mrc_rng){18, k}, i) < 1 / (1 + exp(-odds));
        }
        of.rows = ROWS;
        assert_succeeds(context, mercer_calibrate(context, &t, &curvature, &of, classes, NULL));
        double truth = log_loss((const double(*)[2])scores, classes, ROWS, 0.2, drawn[k]),
               reached = log_loss((const double(*)[2])scores, classes, ROWS, t, curvature);
        assert_that(drawn[k] == 0 ? curvature == 0 : curvature >= drawn[k] / 4 && curvature <= drawn[k] * 4,
                    "curvature %g, not %g", curvature, drawn[k]);
        assert_that(reached <= truth + 1e-3 && t > 0.1 && t < 0.4, "T %g, log loss %g, not %g", t, reached, truth);
        of.rows = FEW;
        assert_succeeds(context, mercer_calibrate(context, &t, &curvature, &of, classes, NULL));
        assert_true(curvature == 0);
    }
    for (int i = 0; i < ROWS; i++) classes[i] = scores[i][1] > 0.5;
    of.rows = ROWS;
    assert_succeeds(context, mercer_calibrate(context, &t, &curvature, &of, classes, NULL));
    assert_true(t < 0.011 && curvature == 0);
}

/* An interpolating model is overconfident; calibration by folds or a validation set changes only the temperature. */
static void test_calibration(void **state)
{
    (void)state;
    arrays of, held_of;
    mercer_train_options train;
    mercer_fit_options options = options_for(&train, "direct");
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_dataset *data = dataset(&of, X, NULL, labels, NULL, 160);
    mercer_dataset *held = dataset(&held_of, X[160], NULL, labels + 160, NULL, 80);
    options.validation.calibrate = MERCER_ON;
    mercer_model *crossed = fit(data, &options, &report);
    double by_folds = report.temperature;
    options.validation.data = held;
    mercer_model *validated = fit(data, &options, &report);
    double by_validation = report.temperature;
    options.validation.calibrate = MERCER_AUTO, options.validation.data = NULL;
    mercer_model *plain = fit(data, &options, &report);
    assert_same(plain, crossed), assert_same(plain, validated); /* calibration does not change centers and weights */
    assert_true(isnan(report.temperature));
    assert_true(by_folds > 0.25 && by_folds < 2.5 && by_folds != by_validation && by_validation > 0.25);
    mercer_model_free(crossed), mercer_model_free(validated), mercer_model_free(plain);
    mercer_dataset_free(data), mercer_dataset_free(held);
}

/* ---- Memory and rejected input --------------------------------------------------------------------------------- */

/* The default bandwidth is computed within the memory limit, from fewer rows if necessary. */
static void test_bandwidth_within_memory(void **state)
{
    (void)state;
    enum { ROWS = 3000, MEMORY = 20000000 };
    double(*x)[D] = malloc(sizeof *x * ROWS), *y = malloc(sizeof *y * ROWS), found[2];
    for (int i = 0; i < ROWS; i++) {
        memcpy(x[i], X[i % N], sizeof *x);
        x[i][0] += i / N, y[i] = Y[i % N];
    }
    for (int small = 0; small < 2; small++) {
        mercer_context *own;
        mercer_train_options train;
        mercer_fit_options options = options_for(&train, "ep4");
        mercer_context_info info = MERCER_INIT(mercer_context_info);
        arrays of;
        mercer_model *model = NULL;
        assert_succeeds(NULL, mercer_context_create(&own, NULL));
        mercer_context *others = context;
        context = own;
        mercer_dataset *data = dataset(&of, x, y, NULL, NULL, ROWS);
        if (small) options.run.memory = MEMORY;
        options.centers.count = 50, options.kernel.spec = "gaussian";
        model = fit(data, &options, NULL);
        assert_succeeds(own, mercer_context_query(own, &info));
        found[small] = model_info(model).kernel->bandwidth; /* the median distance */
        if (small)
            assert_that(info.bytes_peak <= MEMORY, "%lld bytes", (long long)info.bytes_peak);
        else
            assert_true(info.bytes_peak > MEMORY); /* the median distance of 2000 rows needs two million pairs */
        mercer_model_free(model), mercer_dataset_free(data), mercer_context_free(own);
        context = others;
    }
    assert_true(fabs(found[1] / found[0] - 1) < 0.1);
    free(x), free(y);
}

static void test_the_most_centers(void **state)
{
    (void)state;
    mercer_train_options train;
    mercer_fit_options options = options_for(&train, "ep4");
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_plan plan = MERCER_INIT(mercer_plan);
    mercer_dataset_info sizes = MERCER_INIT(mercer_dataset_info);
    sizes.rows = 1000000, sizes.features = 100, sizes.outputs = 10, sizes.dtype = MERCER_F32, sizes.mapped = 1;
    sizes.format = "npy", sizes.task = MERCER_TASK_CLASSIFICATION;
    options.run.memory = 0;
    assert_succeeds(context, mercer_fit_plan(context, &plan, &sizes, &options, &report));
    assert_int_equal(report.centers, 10000); /* the default */
    options.run.memory = INT64_C(1) << 30, options.centers.count = 900000;
    assert_fails(context, mercer_fit_plan(context, &plan, &sizes, &options, &report), MERCER_ERROR_MEMORY,
                 "900,000 centers");
    int64_t most = report.largest_centers;
    assert_true(most > 1000 && most < 900000);
    options.centers.count = most;
    assert_succeeds(context, mercer_fit_plan(context, &plan, &sizes, &options, &report));
    options.centers.count = most + 1;
    assert_fails(context, mercer_fit_plan(context, &plan, &sizes, &options, &report), MERCER_ERROR_MEMORY, "fit");
    options.run.memory = 1, options.centers.count = 10;
    assert_fails(context, mercer_fit_plan(context, &plan, &sizes, &options, &report), MERCER_ERROR_MEMORY,
                 "1 bytes: *memory");
    assert_int_equal(report.largest_centers, -1);
    options.centers.count = 2000000;
    assert_fails(context, mercer_fit_plan(context, &plan, &sizes, &options, &report), MERCER_ERROR_SHAPE, "2000000");
}

/* Solvers whose centers are the samples use all samples by default. */
static void test_samples_as_centers(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_dataset *data = dataset(&of, X, Y, NULL, NULL, N);
    mercer_fit_options options = options_for(&train, "ep2");
    train.epochs = 2;
    mercer_model *model = fit(data, &options, &report);
    assert_int_equal(report.centers, N), assert_string_equal(report.center_method, "all");
    mercer_model_free(model), mercer_dataset_free(data);
}

static bool warns(const char *part)
{
    const char *text;
    bool found = false;
    for (int i = 0; (text = mercer_warning(context, i, NULL)); i++) found = found || mentions(text, part);
    mercer_clear_warnings(context);
    return found;
}

/* Without a transform, targets far from 0 cause a warning; class labels never do. */
static void test_targets_far_from_zero(void **state)
{
    (void)state;
    static const struct {
        const char *transform;
        double offset; /* offset of the targets, in deviations */
        bool warned;
    } cases[] = {{"none", 0, false},  {"none", -8, false},   {"none", 12, true},
                 {"none", -50, true}, {"center", 50, false}, {NULL, 50, false}};
    static const char says[] = "target_transform none: *mean*10 ";
    static double far[N];
    arrays of;
    mercer_train_options train;
    mercer_fit_options options = options_for(&train, "direct");
    options.centers.count = 40;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int j = 0; j < N; j++) far[j] = Y[j] + cases[i].offset * 1.2; /* 1.2: approximate deviation of Y */
        mercer_dataset *data = dataset(&of, X, far, NULL, NULL, N);
        options.data.target_transform = cases[i].transform;
        mercer_clear_warnings(context);
        mercer_model_free(fit(data, &options, NULL));
        assert_that(warns(says) == cases[i].warned, "%g deviations", cases[i].offset);
        mercer_dataset_free(data);
    }
    mercer_dataset *data = dataset(&of, X, NULL, labels, NULL, N);
    options.data.target_transform = "none";
    mercer_model_free(fit(data, &options, NULL));
    assert_false(warns(says));
    mercer_dataset_free(data);
}

/* The kernel matrix has rank D. In float, conjugate gradients may end far from the optimum, depending on the rounding
   of the BLAS library; a warning must then be recorded. In double, with a rough kernel or with a direct solver, the fit
   must be good. */
static void test_cg_of_a_singular_kernel(void **state)
{
    (void)state;
    enum { ROWS = 2000 };
    static const struct {
        const char *kernel, *solver;
        mercer_dtype precision;
        double lambda;
        bool may_be_far;
    } cases[] = {{"linear", "cg", MERCER_F32, -1, true},         {"linear", "cg", MERCER_F32, 1, true},
                 {"gaussian:bandwidth=30", "cg", 0, 1e-3, true}, {"linear", "cg", MERCER_F64, -1, false},
                 {"laplace", "cg", MERCER_F32, -1, false},       {"linear", "direct", MERCER_F32, -1, false}};
    int far_count = 0;
    static float points[ROWS][D];
    static double y[ROWS];
    mercer_train_options train;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < D; j++) points[i][j] = (float)mrc_random_normal((mrc_rng){12, 0}, (uint64_t)(i * D + j));
        y[i] = (double)points[i][0] - 2 * (double)points[i][1] + 0.1 * mrc_random_normal((mrc_rng){12, 1}, (uint64_t)i);
    }
    mercer_matrix x = mercer_matrix_view(points, ROWS, D, MERCER_F32),
                  targets = mercer_matrix_view(y, ROWS, 1, MERCER_F64);
    mercer_dataset_arrays of = MERCER_INIT(mercer_dataset_arrays);
    of.X = &x, of.Y = &targets;
    mercer_dataset *data = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &of));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_report training = MERCER_INIT(mercer_report);
        mercer_fit_report report = MERCER_INIT(mercer_fit_report);
        mercer_fit_options options = options_for(&train, cases[i].solver);
        options.kernel.spec = cases[i].kernel, options.run.precision = cases[i].precision,
        train.lambda = cases[i].lambda;
        report.training = &training;
        mercer_clear_warnings(context);
        mercer_model_free(fit(data, &options, &report));
        bool far = training.train_loss > 0.05; /* optimum: 0.01, the variance of the noise */
        assert_that(!far || cases[i].may_be_far, "case %zu: loss %g", i, training.train_loss);
        assert_that(warns("cg *eigenvalues") == far, "case %zu: loss %g, gradient %g", i, training.train_loss,
                    training.projection_residual_last);
        far_count += far;
    }
    assert_true(far_count > 0);
    mercer_dataset_free(data);
}

/* Padding between rows does not affect the fingerprint. */
static void test_fingerprint_of_rows_apart(void **state)
{
    (void)state;
    static double wide_x[N][D + 2], wide_y[N][3];
    uint64_t prints[3];
    for (int pass = 0; pass < 3; pass++) {
        mercer_matrix x = mercer_matrix_view(X, N, D, MERCER_F64), y = mercer_matrix_view(Y, N, 1, MERCER_F64);
        for (int i = 0; i < N; i++) {
            memcpy(wide_x[i], X[i], sizeof X[i]);
            wide_x[i][D] = wide_x[i][D + 1] = wide_y[i][1] = wide_y[i][2] = pass;
            wide_y[i][0] = Y[i];
        }
        if (pass > 0) x.data = wide_x, x.ld = D + 2, y.data = wide_y, y.ld = 3;
        mercer_dataset_arrays of = MERCER_INIT(mercer_dataset_arrays);
        of.X = &x, of.Y = &y;
        mercer_dataset *data = NULL;
        assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &of));
        assert_succeeds(context, mercer_dataset_fingerprint(data, &prints[pass]));
        mercer_dataset_free(data);
    }
    assert_true(prints[0] == prints[1] && prints[1] == prints[2]);
}

static void test_rejected_arguments(void **state)
{
    (void)state;
    arrays of;
    mercer_train_options train;
    mercer_model *model = NULL;
    mercer_fit_options good = options_for(&train, NULL), bad;
    mercer_dataset *data = dataset(&of, X, Y, NULL, NULL, N), *bare = NULL;
    of.of.Y = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&bare, context, &of.of));
#define REFUSED(status, part) \
    assert_fails(context, mercer_fit(&model, context, data, &bad, NULL), status, part), assert_null(model)
    bad = good, bad.kernel.spec = "laplac", REFUSED(MERCER_ERROR_KERNEL, "laplace");
    bad = good, bad.kernel.spec = "laplace:bandwidth=2", bad.kernel.bandwidth = 1,
    REFUSED(MERCER_ERROR_ARGUMENT, "bandwidth");
    bad = good, bad.kernel.spec = "linear", bad.kernel.bandwidth = 1, REFUSED(MERCER_ERROR_ARGUMENT, "bandwidth");
    bad = good, bad.kernel.bandwidth = -1, REFUSED(MERCER_ERROR_ARGUMENT, "bandwidth");
    bad = good, bad.data.preprocess = "wash", REFUSED(MERCER_ERROR_ARGUMENT, "wash");
    bad = good, bad.data.target_transform = "square", REFUSED(MERCER_ERROR_ARGUMENT, "target_transform");
    bad = good, bad.centers.count = N + 1, REFUSED(MERCER_ERROR_SHAPE, "centers is 241");
    bad = good, bad.centers.count = -2, REFUSED(MERCER_ERROR_ARGUMENT, "centers");
    bad = good, bad.centers.method = "guess", REFUSED(MERCER_ERROR_ARGUMENT, "guess");
    bad = good, bad.centers.method = "balanced", bad.centers.count = 9, REFUSED(MERCER_ERROR_ARGUMENT, "classes");
    bad = good, bad.centers.method = "augmented", REFUSED(MERCER_ERROR_ARGUMENT, "augment");
    bad = good, bad.centers.batch = 9, REFUSED(MERCER_ERROR_ARGUMENT, "centers.batch");
    bad = good, bad.validation.fraction = 1, REFUSED(MERCER_ERROR_ARGUMENT, "validation.fraction");
    bad = good, bad.validation.fraction = 1e-6, REFUSED(MERCER_ERROR_ARGUMENT, "validation.fraction");
    bad = good, bad.validation.data = bare, REFUSED(MERCER_ERROR_SHAPE, "validation data");
    bad = good, bad.run.precision = MERCER_U8, REFUSED(MERCER_ERROR_DTYPE, "precision");
    bad = good, bad.run.memory = -1, REFUSED(MERCER_ERROR_ARGUMENT, "memory");
    bad = good, train.patience = 1, REFUSED(MERCER_ERROR_ARGUMENT, "patience");
    train.patience = 0;
    bad = good, train.validation_X = &of.x, REFUSED(MERCER_ERROR_ARGUMENT, "validation_X");
    train.validation_X = NULL;
    bad = good, bad.run.checkpoint = "/nowhere/at/all", REFUSED(MERCER_ERROR_MISSING, "/nowhere");
    assert_fails(context, mercer_fit(&model, context, bare, &good, NULL), MERCER_ERROR_ARGUMENT, "targets");
    assert_fails(context, mercer_fit(&model, context, NULL, &good, NULL), MERCER_ERROR_ARGUMENT, "data is NULL");
    assert_fails(NULL, mercer_fit(&model, NULL, data, &good, NULL), MERCER_ERROR_ARGUMENT, "context is NULL");
    assert_fails(context, mercer_fit(NULL, context, data, &good, NULL), MERCER_ERROR_ARGUMENT, "out is NULL");
    mercer_dataset_free(data), mercer_dataset_free(bare);
}

static void test_bad_arrays(void **state)
{
    (void)state;
    mercer_dataset *out = NULL;
    double weights[N] = {-1};
    mercer_matrix x = mercer_matrix_view(X, N, D, MERCER_F64), y = mercer_matrix_view(Y, N - 1, 1, MERCER_F64);
    mercer_dataset_arrays good = MERCER_INIT(mercer_dataset_arrays), bad;
    good.X = &x;
#define BAD(status, part) assert_fails(context, mercer_dataset_from_arrays(&out, context, &bad), status, part)
    bad = good, bad.Y = &y, BAD(MERCER_ERROR_SHAPE, "Y");
    bad = good, bad.X = NULL, BAD(MERCER_ERROR_ARGUMENT, "X");
    bad = good, bad.labels = labels, BAD(MERCER_ERROR_SHAPE, "classes");
    bad = good, bad.labels = labels, bad.classes = 1, BAD(MERCER_ERROR_DATA, "labels");
    bad = good, bad.classes = 2, BAD(MERCER_ERROR_ARGUMENT, "labels is NULL");
    bad = good, bad.labels = labels, bad.classes = 2, bad.Y = &y, BAD(MERCER_ERROR_ARGUMENT, "both");
    bad = good, bad.weights = weights, BAD(MERCER_ERROR_DATA, "weights");
    assert_null(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_at_once_and_in_steps),
                                       cmocka_unit_test(test_trained_further),
                                       cmocka_unit_test(test_weights_are_repetitions),
                                       cmocka_unit_test(test_merging_changes_nothing_else),
                                       cmocka_unit_test(test_centers_differ),
                                       cmocka_unit_test(test_heavy_rows_are_likelier_centers),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_large_rows_stay_where_they_are),
                                       cmocka_unit_test(test_last_rows_of_a_large_file),
                                       cmocka_unit_test(test_temperature_minimizes_the_loss),
                                       cmocka_unit_test(test_curvature_is_recovered),
                                       cmocka_unit_test(test_calibration),
                                       cmocka_unit_test(test_bandwidth_within_memory),
                                       cmocka_unit_test(test_the_most_centers),
                                       cmocka_unit_test(test_samples_as_centers),
                                       cmocka_unit_test(test_targets_far_from_zero),
                                       cmocka_unit_test(test_cg_of_a_singular_kernel),
                                       cmocka_unit_test(test_fingerprint_of_rows_apart),
                                       cmocka_unit_test(test_rejected_arguments),
                                       cmocka_unit_test(test_bad_arrays)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

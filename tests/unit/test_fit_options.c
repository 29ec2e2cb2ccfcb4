/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a fit in groups: fields that errors name, reserved words; its progress callback, its reports, and its
   scores on held-out rows. */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"

#include <math.h>
#include <string.h>

enum { N = 160, D = 3, CENTERS = 20, EPOCHS = 3 };

static double x_all[N][D], y_all[N];

static int open_tests(void **state)
{
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < D; k++) x_all[i][k] = sin(1.0 + 7 * i + 3 * k * k + i * k);
        y_all[i] = x_all[i][0] * x_all[i][1] + x_all[i][2];
    }
    return open_datasets(state);
}

static mercer_dataset *open_samples(void)
{
    mercer_matrix x = mercer_matrix_view(x_all, N, D, MERCER_F64), y = mercer_matrix_view(y_all, N, 1, MERCER_F64);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    mercer_dataset *data = NULL;
    arrays.X = &x, arrays.Y = &y;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    return data;
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* An error names the field with its group. */
static void test_fields_of_errors(void **state)
{
    (void)state;
    mercer_fit_options options;
#define BLAMES(group, field, value)                                               \
    do {                                                                          \
        options = (mercer_fit_options)MERCER_INIT(mercer_fit_options);            \
        options.group.field = (value);                                            \
        assert_true(mercer_fit_check(context, &options) != MERCER_OK);            \
        assert_string_equal(mercer_last_error_field(context), #group "." #field); \
    } while (0)
    BLAMES(data, target_transform, "square");
    BLAMES(data, class_weight, "heavy");
    BLAMES(data, samples, -1);
    BLAMES(validation, fraction, 1);
    BLAMES(validation, calibrate_to, "nothing");
    BLAMES(kernel, spec, "gaussain");
    BLAMES(kernel, bandwidth, -1);
    BLAMES(centers, count, -2);
    BLAMES(centers, method, "guess");
    BLAMES(centers, type, (mercer_dtype)9);
    BLAMES(centers, batch, -2);
    BLAMES(search, effort, 6);
    BLAMES(search, budget, -1);
    BLAMES(run, memory, -1);
    BLAMES(run, precision, MERCER_U8);
    BLAMES(run, shards, -2);
#undef BLAMES
}

static void test_reserved_words(void **state)
{
    (void)state;
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    int64_t *reserved[] = {options.data.reserved,    options.validation.reserved, options.kernel.reserved,
                           options.centers.reserved, options.search.reserved,     options.run.reserved};
    static const char *const groups[] = {"data", "validation", "kernel", "centers", "search", "run"};
    static const int words[] = {4, 3, 3, 4, 4, 4};
    assert_succeeds(context, mercer_fit_check(context, &options));
    for (int i = 0; i < 6; i++)
        for (int word = 0; word < words[i]; word++) {
            reserved[i][word] = 1;
            assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, groups[i]);
            reserved[i][word] = 0;
        }
}

static int ignore(void *user, const mercer_progress *progress)
{
    (void)user, (void)progress;
    return 0;
}

static void test_one_callback(void **state)
{
    (void)state;
    mercer_train_options train = MERCER_INIT(mercer_train_options);
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    options.train = &train, train.progress = ignore;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "run.progress");
}

/* ---- Progress and reports ---------------------------------------------------------------------------------------- */

typedef struct seen {
    int search, centers, epochs;
    char order[8]; /* first letters of the stages, in the order of their first calls */
} seen;

static int watch(void *user, const mercer_progress *progress)
{
    seen *self = user;
    const char letter = progress->stage[0];
    bool training = strcmp(progress->stage, "training") == 0;
    assert_int_equal(progress->struct_size, sizeof *progress);
    if (!strchr(self->order, letter)) self->order[strlen(self->order)] = letter;
    assert_true(training ? progress->total == 0 : progress->epochs == 0 && progress->done <= progress->total);
    self->search += strcmp(progress->stage, "search") == 0;
    self->centers += strcmp(progress->stage, "centers") == 0;
    self->epochs += training && progress->epoch > 0;
    return 0;
}

/* One callback gets the progress of all stages. The reports of the parts are filled on request. */
static void test_stages_and_reports(void **state)
{
    (void)state;
    mercer_dataset *data = open_samples();
    mercer_train_options train = MERCER_INIT(mercer_train_options);
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_report training = MERCER_INIT(mercer_report);
    mercer_search_report search = MERCER_INIT(mercer_search_report);
    mercer_center_report choice = MERCER_INIT(mercer_center_report);
    seen self = {0};
    mercer_model *model = NULL;
    train.solver = "ep4", train.epochs = EPOCHS;
    options.train = &train, options.centers.count = CENTERS, options.centers.method = "kmeans";
    options.search.effort = 1, options.run.progress = watch, options.run.progress_user = &self;
    report.training = &training, report.search = &search, report.choice = &choice;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, &report));
    assert_string_equal(self.order, "sct");
    assert_true(self.search > 0 && self.centers > 0);
    assert_int_equal(self.epochs, EPOCHS);
    assert_int_equal(training.epochs, EPOCHS), assert_string_equal(training.plan->solver, "ep4");
    assert_true(!search.skipped && search.error > 0 && search.ridge > 0 && search.rows > 0 && !search.steps);
    assert_true(choice.iterations > 0 && choice.error > 0 && choice.seconds >= 0);
    assert_int_equal(report.centers, CENTERS), assert_string_equal(report.center_method, "kmeans");
    assert_int_equal(report.effort, 1), assert_int_equal(report.members, 1);
    mercer_model_free(model);
    model = NULL;
    search.struct_size = 0;
    assert_fails(context, mercer_fit(&model, context, data, &options, &report), MERCER_ERROR_ARGUMENT,
                 "report: search");
    mercer_dataset_free(data);
}

/* ---- Scores ------------------------------------------------------------------------------------------------------ */

enum { MANY = 5400 }; /* more than are cross-validated */

static double x_many[MANY][D], y_many[MANY];
static int32_t classes[MANY];

static mercer_dataset *open_rows(int64_t rows, bool classified)
{
    mercer_matrix x = mercer_matrix_view(x_many, rows, D, MERCER_F64),
                  y = mercer_matrix_view(y_many, rows, 1, MERCER_F64);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    mercer_dataset *data = NULL;
    arrays.X = &x;
    if (classified)
        arrays.labels = classes, arrays.classes = 2;
    else
        arrays.Y = &y;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    return data;
}

/* Fits a model that interpolates its training rows. Returns the fitting, for the caller to release. */
static mercer_fitting *run_fit(mercer_dataset *data, mercer_switch score, mercer_fit_parts *parts)
{
    mercer_train_options train = MERCER_INIT(mercer_train_options);
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    mercer_fitting *fitting = NULL;
    train.solver = "direct", train.lambda = -1;
    options.train = &train, options.search.tune = MERCER_OFF, options.validation.score = score;
    mercer_dataset_info info = MERCER_INIT(mercer_dataset_info);
    assert_succeeds(context, mercer_dataset_query(data, &info));
    options.centers.count = info.rows > N ? CENTERS : -1;
    assert_succeeds(context, mercer_fitting_open(&fitting, context, data, &options));
    assert_succeeds(context, mercer_fitting_run(fitting, NULL));
    *parts = (mercer_fit_parts)MERCER_INIT(mercer_fit_parts);
    assert_succeeds(context, mercer_fitting_parts(fitting, parts));
    return fitting;
}

static mercer_metrics metrics_of(const mercer_evaluation *evaluation)
{
    mercer_metrics found = MERCER_INIT(mercer_metrics);
    assert_succeeds(context, mercer_evaluation_query(evaluation, &found));
    return found;
}

/* No feature explains the targets or classes of this test. A model that interpolates them is perfect on its training
   rows, and the score of held-out rows must show that the model has learned nothing. Without a relation to the targets,
   the expected R2 is at most 0, with a standard deviation of about 2 / sqrt(N) = 0.16; accuracy has 0.5 / sqrt(N) =
   0.04 around 0.5. */
static void test_scores_are_of_rows_held_out(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < D; k++) x_many[i][k] = mrc_random_normal((mrc_rng){3, 0}, (uint64_t)(i * D + k));
        y_many[i] = mrc_random_normal((mrc_rng){3, 1}, (uint64_t)i);
        classes[i] = mrc_random_normal((mrc_rng){3, 2}, (uint64_t)i) > 0;
    }
    for (int classified = 0; classified < 2; classified++) {
        mercer_dataset *data = open_rows(N, classified);
        mercer_fit_parts parts, plain;
        mercer_fitting *fitting = run_fit(data, MERCER_ON, &parts), *other = run_fit(data, MERCER_AUTO, &plain);
        mercer_evaluation *trained = NULL;
        assert_non_null(parts.scores), assert_null(plain.scores), assert_null(parts.validation);
        assert_succeeds(context, mercer_evaluate(&trained, parts.model, data, NULL));
        mercer_metrics held = metrics_of(parts.scores), known = metrics_of(trained);
        assert_int_equal(held.rows, N);
        assert_true(classified ? known.accuracy == 1 : known.r2 > 0.99);
        assert_that(classified ? fabs(held.accuracy - 0.5) < 0.2 : held.r2 < 0.5, "%g, %g", held.accuracy, held.r2);
        mercer_model_info a = MERCER_INIT(mercer_model_info), b = MERCER_INIT(mercer_model_info);
        assert_succeeds(context, mercer_model_query(parts.model, &a));
        assert_succeeds(context, mercer_model_query(plain.model, &b));
        for (int64_t i = 0; i < a.weights.rows; i++) /* cross-validation does not change the model */
            assert_memory_equal(mrc_row(&a.weights, i), mrc_row(&b.weights, i),
                                (size_t)(a.weights.cols * mrc_dtype_size(a.weights.dtype)));
        mercer_evaluation_free(trained);
        mercer_fitting_free(fitting), mercer_fitting_free(other);
        mercer_dataset_free(data);
    }
}

/* For large data, no rows are held out for a score, and no models are trained for cross-validation. */
static void test_large_data_are_not_split(void **state)
{
    (void)state;
    mercer_dataset *data = open_rows(MANY, false);
    for (int on = 0; on < 2; on++) {
        mercer_fit_parts parts;
        mercer_dataset_info train = MERCER_INIT(mercer_dataset_info);
        mercer_fitting *fitting = run_fit(data, on ? MERCER_ON : MERCER_OFF, &parts);
        assert_null(parts.validation), assert_null(parts.scores);
        assert_succeeds(context, mercer_dataset_query(parts.train, &train));
        assert_int_equal(train.rows, MANY);
        mercer_fitting_free(fitting);
    }
    mercer_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields_of_errors),
                                       cmocka_unit_test(test_reserved_words),
                                       cmocka_unit_test(test_one_callback),
                                       cmocka_unit_test(test_stages_and_reports),
                                       cmocka_unit_test(test_scores_are_of_rows_held_out),
                                       cmocka_unit_test(test_large_data_are_not_split)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a fit in groups: fields that errors name, reserved words; its progress callback and its reports. */
#include "support/datasets.h"

#include "mercer/mercer.h"

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
    static const int words[] = {4, 4, 3, 4, 4, 4};
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields_of_errors), cmocka_unit_test(test_reserved_words),
                                       cmocka_unit_test(test_one_callback), cmocka_unit_test(test_stages_and_reports)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Means of models: predictions, probabilities and gradients are those of the members, their file, trainings that are
   stopped and go on, and what refuses them. */
#include "support/datasets.h"
#include "support/dense.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"
#include "mercer/samples.h"

#include <math.h>

enum { ROWS = 240, NEW = 30, D = 3, K = 3 };

static double x_all[ROWS][D], y_all[ROWS], x_new[NEW][D];
static int32_t labels_all[ROWS];

static int open_tests(void **state)
{
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < D; j++) x_all[i][j] = mrc_random_normal((mrc_rng){7, 0}, (uint64_t)(i * D + j));
        y_all[i] = 5 + sin(2 * x_all[i][0]) + fabs(x_all[i][1]);
        labels_all[i] = y_all[i] > 6;
    }
    for (int i = 0; i < NEW * D; i++) x_new[i / D][i % D] = mrc_random_normal((mrc_rng){7, 1}, (uint64_t)i);
    return open_datasets(state);
}

static mercer_matrix matrix_of(void *values, int64_t rows, int64_t cols)
{
    return mercer_matrix_view(values, rows, cols, MERCER_F64);
}

static mercer_fit_options averaged(mercer_train_options *train)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    *train = (mercer_train_options)MERCER_INIT(mercer_train_options);
    options.train = train, options.centers = 40, options.memory = INT64_C(1) << 30;
    options.tune = MERCER_ON, options.tune_kernels = "laplace-l1,gaussian", options.learn_features = 1;
    options.tune_budget = 1e6, options.average_models = K;
    return options;
}

static mercer_model *fit(bool classes)
{
    mercer_matrix x = matrix_of(x_all, ROWS, D), y = matrix_of(y_all, ROWS, 1);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x};
    mercer_train_options train;
    mercer_fit_options options = averaged(&train);
    mercer_dataset *data = NULL;
    mercer_model *model = NULL;
    if (classes)
        arrays.labels = labels_all, arrays.classes = 2;
    else
        arrays.Y = &y;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    mercer_dataset_free(data);
    for (int i = 0; i < K; i++) assert_non_null(mercer_model_member(model, i));
    assert_null(mercer_model_member(model, K));
    assert_null(mercer_model_member(model, -1));
    return model;
}

/* The same numbers as a model of its own. */
static mercer_model *alone(const mercer_model *model, int number)
{
    const mercer_model *of = mercer_model_member(model, number);
    mercer_matrix centers = mercer_model_centers(of), from = mercer_model_weights(of);
    mercer_model *made = NULL;
    assert_succeeds(context,
                    mercer_model_create(&made, context, mercer_model_kernel(of), &centers, from.cols, from.dtype));
    mercer_matrix to = mercer_model_weights(made);
    memcpy(to.data, from.data, (size_t)(from.rows * from.cols) * sizeof(double));
    assert_succeeds(context, mercer_model_set_preprocess(made, mercer_model_preprocess(of)));
    assert_succeeds(
        context, mercer_model_set_targets(made, mercer_model_target_offset(model), mercer_model_target_scale(model)));
    return made;
}

typedef mercer_status (*call)(mercer_model *model, const mercer_matrix *out, const mercer_matrix *X);

/* A call's result is the mean of what it is of the members alone. */
static void compare(mercer_model *model, call function, int64_t columns)
{
    double found[NEW * D * 2], sum[NEW * D * 2] = {0}, one[NEW * D * 2];
    mercer_matrix X = matrix_of(x_new, NEW, D), F = matrix_of(found, NEW, columns), part = matrix_of(one, NEW, columns);
    assert_succeeds(context, function(model, &F, &X));
    for (int m = 0; m < K; m++) {
        mercer_model *member = alone(model, m);
        assert_succeeds(context, function(member, &part, &X));
        for (int64_t i = 0; i < NEW * columns; i++) sum[i] += one[i] / K;
        mercer_model_free(member);
    }
    /* Each is summed in double: K roundings of numbers up to the largest. */
    for (int64_t i = 0; i < NEW * columns; i++)
        assert_that(fabs(found[i] - sum[i]) <= 1e-14 * (fabs(sum[i]) + 10), "%g, not %g", found[i], sum[i]);
}

static void test_means(void **state)
{
    (void)state;
    mercer_model *model = fit(false);
    compare(model, mercer_model_predict, 1);
    compare(model, mercer_model_gradient, D);
    mercer_model_free(model);
}

/* Classes and probabilities are those of the mean. */
static void test_classes(void **state)
{
    (void)state;
    mercer_model *model = fit(true);
    double f[NEW][2], p[NEW][2];
    int32_t labels[NEW];
    mercer_matrix X = matrix_of(x_new, NEW, D), F = matrix_of(f, NEW, 2), P = matrix_of(p, NEW, 2);
    compare(model, mercer_model_predict, 2);
    assert_succeeds(context, mercer_model_predict(model, &F, &X));
    assert_succeeds(context, mercer_model_probabilities(model, &P, &X));
    assert_succeeds(context, mercer_model_classify(model, labels, &X));
    double temperature = mercer_model_temperature(model, NULL);
    for (int i = 0; i < NEW; i++) {
        assert_int_equal(labels[i], f[i][1] > f[i][0]);
        assert_true(fabs(p[i][1] - 1 / (1 + exp((f[i][0] - f[i][1]) / temperature))) < 1e-12);
    }
    mercer_model_free(model);
}

static void test_file(void **state)
{
    (void)state;
    mercer_model *model = fit(false), *again = NULL;
    double f[2][NEW];
    char header[20000], path[2][256];
    mercer_matrix X = matrix_of(x_new, NEW, D);
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s", in_folder(i ? "again.safetensors" : "m.safetensors"));
    for (int i = 0; i < 2; i++) {
        mercer_matrix F = matrix_of(f[i], NEW, 1);
        mercer_model *of = i ? again : model;
        assert_succeeds(context, mercer_model_predict(of, &F, &X));
        assert_succeeds(context, mercer_model_save(of, path[i], NULL));
        if (i == 0) assert_succeeds(context, mercer_model_load(&again, context, path[0]));
    }
    assert_memory_equal(f[0], f[1], sizeof f[0]);
    assert_succeeds(context, mercer_model_file_header(context, header, sizeof header, NULL, path[1]));
    assert_non_null(strstr(header, "\"format_version\":\"6\""));
    assert_non_null(strstr(header, "\"members\":\"3\""));
    assert_non_null(strstr(header, "\"member2.centers\""));
    mercer_model_free(again);
    mercer_model_free(model);
}

static void test_refusals(void **state)
{
    (void)state;
    mercer_model *model = fit(false);
    mercer_trainer *trainer = NULL;
    mercer_train_options train;
    mercer_fit_options options = averaged(&train);
    assert_fails(context, mercer_trainer_create(&trainer, model, NULL, NULL), MERCER_ERROR_UNSUPPORTED,
                 "the mean of 3 models");
    options.average_models = MERCER_MEMBERS + 1;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "average_models is 9");
    options = averaged(&train), options.tune = MERCER_OFF;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "tune is off");
    options = averaged(&train), options.model = model, options.tune = MERCER_AUTO, options.learn_features = 0;
    assert_fails(context, mercer_fit_check(context, &options), MERCER_ERROR_ARGUMENT, "model is given");
    options = (mercer_fit_options)MERCER_INIT(mercer_fit_options), options.model = model, options.tune = MERCER_OFF;
    mercer_matrix x = matrix_of(x_all, ROWS, D), y = matrix_of(y_all, ROWS, 1);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .Y = &y};
    mercer_dataset *data = NULL;
    mercer_model *further = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_fails(context, mercer_fit(&further, context, data, &options, NULL), MERCER_ERROR_UNSUPPORTED,
                 "the mean of 3 models");
    assert_non_null(mercer_model_member(model, K - 1)); /* as it was */
    mercer_dataset_free(data);
    mercer_model_free(model);
}

/* ---- Checkpoints ------------------------------------------------------------------------------------------------- */

/* Where a fit is stopped: in the search (-1), in the training of member 0, 1, ... or of the first (K - 1), or nowhere
   (K); and after how many calls there. */
static int stop_in, stop_after;

static int count(int part)
{
    return part == stop_in && stop_after-- <= 0;
}

static int watch(void *user, const char *what, int64_t done, int64_t total, double seconds)
{
    (void)user, (void)total, (void)seconds;
    return count(strcmp(what, "members") == 0 ? (int)done : -1);
}

static int watch_first(void *user, const mercer_progress *progress)
{
    (void)user, (void)progress;
    return count(K - 1);
}

/* MERCER_ERROR_CALLBACK also where training ends early. */
static mercer_status fit_from(const char *from, const char *to, const char *model_path, const char *solver, int models)
{
    mercer_matrix x = matrix_of(x_all, ROWS, D);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .labels = labels_all, .classes = 2};
    mercer_train_options train;
    mercer_fit_options options = averaged(&train);
    mercer_report training = {.struct_size = sizeof training};
    mercer_fit_report report = {.struct_size = sizeof report, .training = &training};
    mercer_dataset *data = NULL;
    mercer_model *model = NULL;
    options.average_models = models, options.checkpoint = from, options.progress = watch;
    train.checkpoint = to, train.checkpoint_seconds = 1e9, train.solver = solver;
    train.progress = watch_first, train.progress_seconds = 1e-9;
    if (strcmp(solver, "ep4") == 0) train.epochs = 5, train.batch = 60;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    mercer_status status = mercer_fit(&model, context, data, &options, &report);
    mercer_dataset_free(data);
    if (status == MERCER_OK && training.stopped == MERCER_STOP_CALLBACK) status = MERCER_ERROR_CALLBACK;
    if (status == MERCER_OK) assert_succeeds(context, mercer_model_save(model, model_path, NULL));
    mercer_model_free(model);
    return status;
}

/* What the file of a checkpoint has: "search", "state", and how many models. */
static void look_at(const char *path, bool search, bool state, const char *members)
{
    char header[20000];
    assert_succeeds(context, mercer_model_file_header(context, header, sizeof header, NULL, path));
    assert_int_equal(strstr(header, "\"search.of\"") != NULL, search);
    assert_int_equal(strstr(header, "\"state.plan\"") != NULL, state);
    char wanted[40];
    snprintf(wanted, sizeof wanted, "\"members\":\"%s\"", members);
    assert_that((strstr(header, wanted) != NULL) == (members[0] > '1'), "not %s members: %.300s", members, header);
}

static void assert_same_file(const char *a, const char *b)
{
    static unsigned char bytes[2][1 << 18];
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(i ? b : a, "rb");
        assert_non_null(file);
        size[i] = fread(bytes[i], 1, sizeof bytes[i], file);
        fclose(file);
        assert_in_range(size[i], 1000, sizeof bytes[i] - 1);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
}

/* Wherever it was stopped, and wherever once more, it ends in the same bytes. */
static void test_stopped(void **state)
{
    (void)state;
    static const char *const solvers[] = {"ep4", "cg", "direct"};
    char path[256], whole[256], file[256];
    snprintf(path, sizeof path, "%s", in_folder("mean.checkpoint"));
    snprintf(whole, sizeof whole, "%s", in_folder("whole.safetensors"));
    snprintf(file, sizeof file, "%s", in_folder("resumed.safetensors"));
    for (int s = 0; s < 3; s++) {
        stop_in = K;
        assert_int_equal(fit_from(NULL, NULL, whole, solvers[s], K), MERCER_OK);
        for (int part = -1; part < K; part++)
            for (int again = part; again < K; again++) {
                stop_in = part, stop_after = s == 0 ? 4 + part : 0;
                assert_int_equal(fit_from(NULL, path, file, solvers[s], K), MERCER_ERROR_CALLBACK);
                if (part < 0)
                    look_at(path, true, false, "0");
                else if (part < K - 1)
                    look_at(path, true, true, part == 0 ? "1" : "2");
                else
                    look_at(path, false, true, "3");
                stop_in = again, stop_after = 0;
                assert_int_equal(fit_from(path, path, file, solvers[s], K), MERCER_ERROR_CALLBACK);
                stop_in = K;
                assert_int_equal(fit_from(path, path, file, solvers[s], K), MERCER_OK);
                assert_same_file(file, whole);
            }
    }
}

static void test_other_checkpoints(void **state)
{
    (void)state;
    char path[256], file[256];
    snprintf(path, sizeof path, "%s", in_folder("other.checkpoint"));
    snprintf(file, sizeof file, "%s", in_folder("never.safetensors"));
    for (int part = 1; part < K; part++) {
        stop_in = part, stop_after = 0;
        assert_int_equal(fit_from(NULL, path, file, "cg", K), MERCER_ERROR_CALLBACK);
        stop_in = K;
        assert_fails(context, fit_from(path, NULL, file, "cg", K - 1), MERCER_ERROR_MISMATCH,
                     part < K - 1 ? "2 more" : "the mean of 3 models, but average_models is 2");
        assert_fails(context, fit_from(path, NULL, file, "cg", 0), MERCER_ERROR_MISMATCH, "belongs to");
        FILE *bytes = fopen(path, "rb+");
        assert_non_null(bytes);
        assert_int_equal(fseek(bytes, -9, SEEK_END), 0);
        int last = fgetc(bytes);
        assert_int_equal(fseek(bytes, -9, SEEK_END), 0);
        assert_true(fputc(last ^ 1, bytes) != EOF && fclose(bytes) == 0);
        assert_fails(context, fit_from(path, NULL, file, "cg", K), MERCER_ERROR_FORMAT, "other.checkpoint");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means),    cmocka_unit_test(test_classes), cmocka_unit_test(test_file),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_stopped), cmocka_unit_test(test_other_checkpoints),
    };
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

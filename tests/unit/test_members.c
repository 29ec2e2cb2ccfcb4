/* SPDX-License-Identifier: BSD-3-Clause */
/* Averages of models: predictions, probabilities and gradients are the means over the members; their model file; and
   operations that refuse averages. The first tests append members themselves, the others fit with effort 4. */
#include "support/datasets.h"
#include "support/dense.h"
#include "support/info.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"
#include "mercer/samples.h"
#include "model/model.h"

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

static mercer_model *fit_one(const char *kernel, bool classes)
{
    mercer_matrix x = matrix_of(x_all, ROWS, D), y = matrix_of(y_all, ROWS, 1);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x};
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    mercer_dataset *data = NULL;
    mercer_model *model = NULL;
    options.centers.count = 40, options.run.memory = INT64_C(1) << 30, options.search.tune = MERCER_OFF,
    options.kernel.spec = kernel;
    if (classes)
        arrays.labels = labels_all, arrays.classes = 2;
    else
        arrays.Y = &y;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    mercer_dataset_free(data);
    return model;
}

static mercer_model *fit(bool classes)
{
    static const char *const kernels[K] = {"laplace-l1", "gaussian", "laplace"};
    mercer_model *model = fit_one(kernels[0], classes);
    for (int i = 1; i < K; i++) assert_succeeds(context, mrc_model_append(model, fit_one(kernels[i], classes)));
    assert_int_equal(model_info(model).member_count, K);
    for (int i = 0; i < K; i++) assert_non_null(model_info(model).members[i]);
    return model;
}

/* Return a member's kernel, centers and weights as a separate model. */
static mercer_model *alone(const mercer_model *model, int number)
{
    const mercer_model *of = model_info(model).members[number];
    mercer_matrix centers = model_info(of).centers, from = model_info(of).weights;
    mercer_model *made = NULL;
    assert_succeeds(context,
                    mercer_model_create(&made, context, NULL, model_info(of).kernel, &centers, from.cols, from.dtype));
    mercer_matrix to = model_info(made).weights;
    memcpy(to.data, from.data, (size_t)(from.rows * from.cols) * sizeof(double));
    assert_succeeds(context, mercer_model_set_preprocess(made, model_info(of).preprocess));
    assert_succeeds(context,
                    mercer_model_set_targets(made, model_info(model).target_offset, model_info(model).target_scale));
    return made;
}

typedef mercer_status (*call)(mercer_model *model, const mercer_matrix *out, const mercer_matrix *X);

/* Assert that a call's result is the mean of its results for the separate members. */
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
    /* Sums are in double: K roundings of numbers up to the largest. */
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

/* Classes and probabilities are computed from the mean. */
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
    double temperature = model_info(model).temperature;
    for (int i = 0; i < NEW; i++) {
        assert_int_equal(labels[i], f[i][1] > f[i][0]);
        assert_true(fabs(p[i][1] - 1 / (1 + exp((f[i][0] - f[i][1]) / temperature))) < 1e-12);
    }
    mercer_model_free(model);
}

static void assert_same_files(const char *one, const char *other)
{
    FILE *files[] = {fopen(one, "rb"), fopen(other, "rb")};
    int bytes[2];
    assert_true(files[0] && files[1]);
    do {
        for (int i = 0; i < 2; i++) bytes[i] = fgetc(files[i]);
        assert_int_equal(bytes[0], bytes[1]);
    } while (bytes[0] != EOF);
    for (int i = 0; i < 2; i++) fclose(files[i]);
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
        if (i == 0) assert_succeeds(context, mercer_model_load(&again, context, NULL, path[0]));
    }
    assert_memory_equal(f[0], f[1], sizeof f[0]);
    assert_same_files(path[0], path[1]);
    assert_succeeds(context, mercer_model_file_header(context, header, sizeof header, NULL, path[1]));
    assert_non_null(strstr(header, "\"format_version\":\"6\""));
    assert_non_null(strstr(header, "\"members\":\"3\""));
    assert_non_null(strstr(header, "\"member2.centers\""));
    mercer_model_free(again);
    mercer_model_free(model);
}

/* Members must be single models with the same features and outputs, at most MERCER_MEMBERS; averages cannot be
   trained further. */
static void test_rejected_arguments(void **state)
{
    (void)state;
    mercer_model *model = fit(false), *other = fit_one("laplace", true), *further = NULL;
    mercer_trainer *trainer = NULL;
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    mercer_matrix x = matrix_of(x_all, ROWS, D), y = matrix_of(y_all, ROWS, 1);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .Y = &y};
    mercer_dataset *data = NULL;
    assert_fails(context, mrc_model_append(model, other), MERCER_ERROR_SHAPE, "features*outputs");
    assert_fails(context, mercer_trainer_create(&trainer, model, NULL, NULL), MERCER_ERROR_UNSUPPORTED, "3 models");
    options.run.model = model, options.search.tune = MERCER_OFF;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_fails(context, mercer_fit(&further, context, data, &options, NULL), MERCER_ERROR_UNSUPPORTED, "3 models");
    assert_int_equal(model_info(model).member_count, K); /* unchanged */
    mercer_dataset_free(data);
    mercer_model_free(other);
    other = fit_one("laplace", false);
    assert_fails(context, mrc_model_append(other, model), MERCER_ERROR_ARGUMENT, "at most 8 single models");
    for (int i = K; i < MERCER_MEMBERS; i++)
        assert_succeeds(context, mrc_model_append(model, fit_one("laplace", false)));
    assert_fails(context, mrc_model_append(model, other), MERCER_ERROR_ARGUMENT, "at most 8 single models");
    mercer_model_free(other);
    mercer_model_free(model);
}

/* ---- Fits -------------------------------------------------------------------------------------------------------- */

enum { TRAINED = 180, CENTERS = 25 };

static char stop_stage[16];
static int64_t stop_at = -1; /* number of members at which to stop; -1: never */

static int watch(void *user, const mercer_progress *progress)
{
    (void)user;
    int64_t done = progress->done, total = progress->total;
    assert_true(strcmp(progress->stage, "members") != 0 || (done >= 1 && done < total && total == K));
    return strcmp(progress->stage, stop_stage) == 0 && done == stop_at;
}

typedef struct fitted {
    mercer_model *model;
    mercer_fit_report report;
    mercer_report training;
} fitted;

typedef struct fit_case {
    const char *from, *to; /* checkpoints */
    int effort, threads;   /* 0: defaults 4 and 1 */
    bool classes, validated;
    double budget;
} fit_case;

/* Fit an average of models. With a path, save the model there and free it; otherwise return it. */
static fitted fit_mean(fit_case of, const char *path)
{
    fitted out = {.report = {.struct_size = sizeof out.report}, .training = {.struct_size = sizeof out.training}};
    mercer_context *own = NULL;
    mercer_context_options settings = MERCER_INIT(mercer_context_options);
    settings.threads = of.threads > 0 ? of.threads : 1;
    if (path) assert_succeeds(NULL, mercer_context_create(&own, &settings));
    mercer_context *by = path ? own : context;
    mercer_dataset *data[2] = {NULL};
    for (int i = 0; i < 2; i++) {
        int64_t rows = i == 0 ? TRAINED : ROWS - TRAINED, first = i == 0 ? 0 : TRAINED;
        mercer_matrix x = matrix_of(x_all[first], rows, D), y = matrix_of(y_all + first, rows, 1);
        mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x};
        if (of.classes)
            arrays.labels = labels_all + first, arrays.classes = 2;
        else
            arrays.Y = &y;
        assert_succeeds(by, mercer_dataset_from_arrays(&data[i], by, &arrays));
    }
    mercer_train_options train = MERCER_INIT(mercer_train_options);
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    train.checkpoint = of.to, options.run.checkpoint = of.from, options.train = &train;
    options.run.memory = INT64_C(1) << 30, options.centers.count = CENTERS, options.run.seed = 5,
    options.search.budget = of.budget;
    options.search.effort = of.effort > 0 ? of.effort : 4, options.run.progress = watch;
    options.validation.calibrate = of.classes ? MERCER_ON : MERCER_OFF;
    options.validation.data = of.validated ? data[1] : NULL;
    out.report.training = &out.training;
    assert_succeeds(by, mercer_fit(&out.model, by, data[0], &options, &out.report));
    if (path) {
        assert_succeeds(by, mercer_model_save(out.model, path, NULL));
        mercer_model_free(out.model), out.model = NULL;
    }
    for (int i = 0; i < 2; i++) mercer_dataset_free(data[i]);
    mercer_context_free(own);
    return out;
}

static const char *path_of(char path[256], const char *name)
{
    snprintf(path, 256, "%s", in_folder(name));
    return path;
}

/* Each member has its own search and centers; validation, intervals and exports use the mean. */
static void test_fitted(void **state)
{
    (void)state;
    fitted found = fit_mean((fit_case){.validated = true}, NULL);
    double f[ROWS - TRAINED], error = 0, radius = 0;
    mercer_matrix X = matrix_of(x_all[TRAINED], ROWS - TRAINED, D), F = matrix_of(f, ROWS - TRAINED, 1);
    char text[2][MERCER_KERNEL_TEXT];
    assert_int_equal(found.report.members, K);
    compare(found.model, mercer_model_predict, 1);
    for (int m = 0; m < K; m++) {
        const mercer_model *member = model_info(found.model).members[m];
        mercer_matrix centers = model_info(member).centers, first = model_info(found.model).centers;
        mercer_kernel_print(context, text[m > 0], MERCER_KERNEL_TEXT, NULL, model_info(member).kernel);
        assert_int_equal(centers.rows, CENTERS);
        if (m == 0) continue;
        assert_string_not_equal(text[0], text[1]);
        assert_memory_not_equal(centers.data, first.data, (size_t)(CENTERS * D) * sizeof(double));
    }
    assert_succeeds(context, mercer_model_predict(found.model, &F, &X));
    for (int i = 0; i < ROWS - TRAINED; i++)
        error += (f[i] - y_all[TRAINED + i]) * (f[i] - y_all[TRAINED + i]) / (ROWS - TRAINED);
    /* Both sum the same squares in double, but in different orders. */
    assert_true(fabs(found.training.validation_loss - error) <= 1e-13 * error * ROWS);
    assert_succeeds(context, mercer_model_interval(found.model, &radius, 0.98));
    for (int i = 0; i < ROWS - TRAINED; i++) error = fmax(i > 0 ? error : 0, fabs(f[i] - y_all[TRAINED + i]));
    assert_true(radius == error); /* the 60th of 60 errors, as 0.98 (60 + 1) > 59 */
    assert_succeeds(context, mercer_model_export(found.model, in_folder("mean.c"), NULL));
    assert_succeeds(context, mercer_model_export(found.model, in_folder("mean.onnx"), NULL));
    mercer_model_free(found.model);
}

/* The number of threads, writing a checkpoint, and a sufficient budget change no byte. */
static void test_same_bytes(void **state)
{
    (void)state;
    char whole[256], other[256], checkpoint[256];
    path_of(whole, "whole.safetensors"), path_of(other, "other.safetensors"), path_of(checkpoint, "checkpoint");
    for (int classes = 0; classes < 2; classes++) { /* classes are calibrated by cross-validation */
        assert_int_equal(fit_mean((fit_case){.classes = classes}, whole).report.members, K);
        fit_mean((fit_case){.classes = classes, .threads = 2, .effort = 4, .budget = 1e6, .to = checkpoint}, other);
        assert_same_files(whole, other);
    }
    /* A fit that is stopped after some members returns the mean so far. The checkpoint has the first member. */
    fit_mean((fit_case){0}, whole);
    snprintf(stop_stage, sizeof stop_stage, "members");
    for (stop_at = 1; stop_at < K; stop_at++) {
        fitted found = fit_mean((fit_case){.to = checkpoint}, other);
        assert_int_equal(found.training.stopped, MERCER_STOP_CALLBACK);
        assert_int_equal(found.report.members, stop_at);
        stop_stage[0] = 0;
        assert_int_equal(fit_mean((fit_case){.from = checkpoint, .to = checkpoint}, other).report.members, K);
        assert_same_files(whole, other);
        snprintf(stop_stage, sizeof stop_stage, "members");
    }
    stop_stage[0] = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_means),  cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_file),   cmocka_unit_test(test_rejected_arguments),
                                       cmocka_unit_test(test_fitted), cmocka_unit_test(test_same_bytes)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

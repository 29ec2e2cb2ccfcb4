/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that overflow in a computation: training, files and predictions reject them and suggest a remedy; no model
   contains NaN. */
#include "support/folder.h"

#include "support/info.h"
#include "support/sources.h"
#include "support/training.h"

#include "mercer/evaluation.h"
#include "model/model.h"

enum { N = 30, P = 6, D = 2 };

static const char *const solvers[] = {"auto", "direct", "cg", "ep4", "ep3", "nytro", "gd"};

/* Return a task with samples and centers multiplied by `factor`. */
static task scaled_task(const char *kernel, double factor, mercer_dtype dtype)
{
    task data = task_open(context, kernel, (sizes){N, P, D, 1}, 1, dtype);
    for (int64_t i = 0; i < N; i++)
        for (int64_t k = 0; k < D; k++) data_store(&data.x, i, k, factor * mrc_load(&data.x, i, k));
    for (int64_t i = 0; i < P; i++)
        for (int64_t k = 0; k < D; k++) data_store(&data.z, i, k, factor * mrc_load(&data.z, i, k));
    return data;
}

/* Assert that fitting fails and the weights are still 0. */
static void refuse_training(const task *data, const mercer_train_options *options, const char *part)
{
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &data->kernel, &data->z, 1, 0));
    assert_succeeds(context, source_from_matrices(&source, context, &data->x, &data->y, NULL, 1));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, options));
    assert_fails(context, mercer_trainer_fit(trainer, &source, NULL), MERCER_ERROR_DATA, part);
    mercer_matrix weights = model_info(model).weights;
    for (int64_t i = 0; i < P; i++) assert_true(mrc_load(&weights, i, 0) == 0);
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
}

static void test_training_names_the_kernel(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof solvers / sizeof *solvers; s++) {
        mercer_train_options options = options_for(solvers[s]);
        task data = scaled_task("linear", 1e30, MERCER_F32);
        refuse_training(&data, &options, "centers: row");
        refuse_training(&data, &options, "linear*overflow f32");
        refuse_training(&data, &options, "f64");
        task_close(&data);
        data = scaled_task("polynomial:degree=9", 3e4, MERCER_F32);
        refuse_training(&data, &options, "polynomial*overflow f32");
        refuse_training(&data, &options, "degree");
        task_close(&data);
        data = scaled_task("linear", 1e200, MERCER_F64);
        refuse_training(&data, &options, "linear*overflow f64");
        task_close(&data);
    }
}

/* No center causes an overflow, but one sample does; the message names the sample. */
static void test_training_names_the_sample(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof solvers / sizeof *solvers; s++) {
        mercer_train_options options = options_for(solvers[s]);
        task data = scaled_task("polynomial:degree=3", 1, MERCER_F32);
        data_store(&data.x, 17, 1, 1e10);
        refuse_training(&data, &options, "source: X: row");
        task_close(&data);
    }
}

/* The same numbers are accepted in double, and kernels of the distance never overflow. */
static void test_plans_that_fit_are_trained(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        double factor;
        mercer_dtype dtype;
    } cases[] = {{"linear", 1e30, MERCER_F64},
                 {"linear", 1e17, MERCER_F32},
                 {"laplace:bandwidth=1e30", 1e30, MERCER_F32},
                 {"gaussian:bandwidth=1", 1e30, MERCER_F32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        task data = scaled_task(cases[i].kernel, cases[i].factor, cases[i].dtype);
        mercer_train_options options = options_for("direct");
        dense alpha = train_as(&data, &options, 0, cases[i].dtype, NULL); /* train_as asserts finite weights */
        free(alpha.a);
        task_close(&data);
    }
}

static void test_steps_and_validation(void **state)
{
    (void)state;
    task data = scaled_task("linear", 1, MERCER_F32);
    mercer_model *model;
    mercer_trainer *trainer;
    mercer_train_options options = options_for("ep4");
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &data.kernel, &data.z, 1, 0));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    data_store(&data.x, 3, 0, 1e30);
    assert_fails(context, mercer_trainer_step(trainer, &data.x, &data.y, NULL), MERCER_ERROR_DATA, "X: row 3 ");
    mercer_trainer_free(trainer);
    options.validation_X = &data.x, options.validation_Y = &data.y;
    assert_fails(context, mercer_trainer_create(&trainer, model, NULL, &options), MERCER_ERROR_DATA,
                 "validation_X: row 3 ");
    mercer_model_free(model);
    task_close(&data);
}

/* A file is refused if kernel values at the centers overflow; the same model stored in double is valid. */
static void test_files(void **state)
{
    (void)state;
    folder_open();
    const char *path = in_folder("model.safetensors");
    task data = scaled_task("linear", 1e30, MERCER_F32);
    mercer_model *model;
    mercer_save_options options = {.struct_size = sizeof options};
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &data.kernel, &data.z, 1, MERCER_F32));
    assert_fails(context, mercer_model_save(model, path, &options), MERCER_ERROR_DATA, "centers: row");
    assert_int_equal(folder_count(), 0);
    options.weights = MERCER_F64;
    assert_succeeds(context, mercer_model_save(model, path, &options));
    folder_close();
    mercer_model_free(model);
    task_close(&data);
}

/* Non-finite numbers are never saved, because writing checks every tensor of a model. */
static void test_no_tensor_is_spoiled(void **state)
{
    (void)state;
    folder_open();
    const char *path = in_folder("model.safetensors");
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    task data = scaled_task("laplace:bandwidth=2", 1, MERCER_F64);
    mercer_model *model;
    double offset[1] = {1}, scale[1] = {2}, scores[] = {0.1, 0.2, 0.3};
    mercer_matrix residuals = mrc_view(scores, 1, 3, MERCER_F64);
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &data.kernel, &data.z, 1, MERCER_F64));
    assert_succeeds(context, mercer_model_set_targets(model, offset, scale));
    assert_succeeds(context, mrc_model_set_intervals(model, &residuals, 3, MERCER_TASK_REGRESSION));
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    folder_clear();
    struct {
        const char *name;
        double *value;
    } places[] = {{"centers", model->centers.data},
                  {"weights", model->weights.data},
                  {"origin", model->origin},
                  {"targets.offset", model->units.offset},
                  {"targets.scale", model->units.scale},
                  {"intervals.scores", model->calibration.scores},
                  {"rows", &model->calibration.rows},
                  {"temperature", &model->calibration.temperature}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int b = 0; b < 3; b++) {
            double old = *places[i].value;
            *places[i].value = bad[b];
            assert_fails(context, mercer_model_save(model, path, NULL), MERCER_ERROR_DATA, places[i].name);
            assert_int_equal(folder_count(), 0);
            *places[i].value = old;
        }
    ((double *)model->weights.data)[0] = 1e300; /* finite, but too large for the requested type */
    mercer_save_options options = {.struct_size = sizeof options, .weights = MERCER_F32};
    assert_fails(context, mercer_model_save(model, path, &options), MERCER_ERROR_DATA,
                 "weights: *row 0, column 0 *f32");
    assert_int_equal(folder_count(), 0);
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    folder_close();
    mercer_model_free(model);
    task_close(&data);
}

static void test_predictions(void **state)
{
    (void)state;
    task data = scaled_task("linear", 1, MERCER_F32);
    mercer_model *model;
    float values[N];
    int32_t labels[N];
    mercer_matrix F = mrc_view(values, N, 1, MERCER_F32);
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &data.kernel, &data.z, 1, MERCER_F32));
    assert_succeeds(context, mercer_model_predict(model, &F, &data.x));
    mercer_matrix weights = model_info(model).weights;
    for (int64_t j = 0; j < P; j++) data_store(&weights, j, 0, mrc_load(&data.z, j, 0) > 0 ? 3e38 : -3e38);
    data_store(&data.x, 0, 0, 100);
    assert_fails(context, mercer_model_predict(model, &F, &data.x), MERCER_ERROR_NUMERIC, "predictions*finite");
    assert_fails(context, mercer_model_classify(model, labels, &data.x), MERCER_ERROR_NUMERIC, "predictions*finite");
    data_store(&data.x, 5, 1, 1e25);
    assert_fails(context, mercer_model_predict(model, &F, &data.x), MERCER_ERROR_DATA, "X: row 5 ");
    assert_fails(context, mercer_model_classify(model, labels, &data.x), MERCER_ERROR_DATA, "X: row 5 ");
    mercer_model_free(model);
    task_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_names_the_kernel),
        cmocka_unit_test(test_training_names_the_sample),
        cmocka_unit_test(test_plans_that_fit_are_trained),
        cmocka_unit_test(test_steps_and_validation),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_no_tensor_is_spoiled),
        cmocka_unit_test(test_predictions),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

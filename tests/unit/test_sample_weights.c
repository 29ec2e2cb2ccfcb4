/* SPDX-License-Identifier: BSD-3-Clause */
/* Sample weights: in the reported losses, in validation and patience, and in the step size. */
#include "support/training.h"

enum { N = 200, P = 40, D = 3 };

static task weighted_task(void)
{
    task t = task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, 1}, 1, MERCER_F64);
    t.weights = malloc(N * sizeof *t.weights);
    for (int i = 0; i < N; i++) t.weights[i] = 0.25 * (1 + i % 8);
    return t;
}

/* Returns sum w |f - y|^2 / sum w on the task's samples, f with weights alpha (no data: f = 0). */
static double weighted_loss(const task *t, dense alpha, const double *weights)
{
    dense y = dense_of(&t->y), f = dense_new(N, 1);
    if (alpha.a) {
        dense k = dense_kernel(&t->kernel, &t->x, &t->z);
        free(f.a);
        f = dense_times(false, false, k, alpha);
        free(k.a);
    }
    double sum = 0, all = 0;
    for (int64_t i = 0; i < N; i++) {
        double error = AT(f, i, 0) - AT(y, i, 0), weight = weights ? weights[i] : 1;
        sum += weight * error * error, all += weight;
    }
    free(y.a), free(f.a);
    return sum / all;
}

static void assert_close(double got, double wanted, const char *what)
{
    assert_that(fabs(got - wanted) <= 1e-12 * fabs(wanted), "%s: %.17g, recomputed %.17g", what, got, wanted);
}

/* The first batch is evaluated with the zero model: if it has all samples, the loss of the first epoch is known. */
static void test_training_loss(void **state)
{
    (void)state;
    task t = weighted_task();
    mercer_train_options options = options_for("ep4");
    mercer_report report;
    options.epochs = 1, options.batch = N, options.nystrom = N;
    dense alpha = train(&t, &options, &report);
    assert_close(report.train_loss, weighted_loss(&t, (dense){0}, t.weights), "ep4");
    free(alpha.a);
    options = options_for("cg"); /* cg updates its loss by a recurrence, and sometimes recomputes the loss */
    alpha = train(&t, &options, &report);
    double loss = weighted_loss(&t, alpha, t.weights);
    assert_that(fabs(report.train_loss - loss) <= 1e-6 * loss, "cg: %g, recomputed %g", report.train_loss, loss);
    free(alpha.a);
    task_close(&t);
}

/* The loss of every solver on the training samples, passed as a validation set with the same weights. */
static void test_validation_loss(void **state)
{
    (void)state;
    static const char *const solvers[] = {"direct", "cg", "ep4", "nytro"};
    task t = weighted_task();
    for (size_t s = 0; s < sizeof solvers / sizeof *solvers; s++) {
        mercer_train_options options = options_for(solvers[s]);
        mercer_report report;
        options.validation_X = &t.x, options.validation_Y = &t.y, options.validation_weights = t.weights;
        dense alpha = train(&t, &options, &report);
        assert_close(report.validation_loss, weighted_loss(&t, alpha, t.weights), solvers[s]);
        free(alpha.a);
    }
    task_close(&t);
}

/* Half of the validation set has the zero model as its target, from which every epoch moves further away; the other
   half has the labels. The half with nonzero weights decides when training stops. */
static void test_patience(void **state)
{
    (void)state;
    task t = weighted_task();
    mercer_matrix wanted = data_matrix(N, 1, 0, MERCER_F64);
    double first[N], second[N];
    for (int64_t i = 0; i < N; i++) {
        data_store(&wanted, i, 0, i < N / 2 ? 0 : mrc_load(&t.y, i, 0));
        first[i] = i < N / 2, second[i] = 1 - first[i];
    }
    mercer_train_options options = options_for("nytro");
    mercer_report report;
    options.epochs = 8, options.step_factor = 0.4, options.patience = 2;
    options.validation_X = &t.x, options.validation_Y = &wanted, options.validation_weights = first;
    dense stopped = train(&t, &options, &report);
    assert_int_equal(report.stopped, 1);
    assert_int_equal(report.epochs, 3);
    options.validation_weights = second;
    dense whole = train(&t, &options, &report);
    assert_int_equal(report.stopped, 0);
    assert_int_equal(report.epochs, 8);
    free(stopped.a), free(whole.a), free(wanted.data);
    task_close(&t);
}

static void test_accuracy(void **state)
{
    (void)state;
    task t = task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, 2}, 1, MERCER_F64);
    mercer_matrix wanted = data_matrix(N, 2, 0, MERCER_F64);
    double weights[N];
    for (int64_t i = 0; i < N; i++) { /* the zero model predicts class 0 everywhere */
        data_store(&wanted, i, i % 4 == 0, 1);
        weights[i] = i % 4 == 0 ? 5 : 1;
        data_store(&t.y, i, 0, 0), data_store(&t.y, i, 1, 0);
    }
    mercer_train_options options = options_for("ep4");
    mercer_report report;
    options.epochs = 1, options.classification = MERCER_ON;
    options.validation_X = &t.x, options.validation_Y = &wanted, options.validation_weights = weights;
    dense alpha = train(&t, &options, &report);
    assert_close(report.validation_accuracy, 3.0 / 8, "accuracy");
    free(alpha.a), free(wanted.data);
    task_close(&t);
}

static void test_bad_weights(void **state)
{
    (void)state;
    task t = weighted_task();
    mercer_model *model;
    mercer_trainer *trainer;
    mercer_train_options options = options_for("ep4");
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &t.kernel, &t.z, 1, MERCER_F64));
    options.validation_weights = t.weights;
    assert_fails(context, mercer_trainer_create(&trainer, model, NULL, &options), MERCER_ERROR_ARGUMENT,
                 "validation_weights needs validation_X");
    options.validation_X = &t.x, options.validation_Y = &t.y;
    t.weights[7] = -1;
    assert_fails(context, mercer_trainer_create(&trainer, model, NULL, &options), MERCER_ERROR_DATA,
                 "validation_weights: element 7");
    for (int i = 0; i < N; i++) t.weights[i] = 0;
    assert_fails(context, mercer_trainer_create(&trainer, model, NULL, &options), MERCER_ERROR_DATA,
                 "validation_weights");
    mercer_model_free(model);
    task_close(&t);
}

/* Scaling weights and ridge by a power of two gives the same problem and, bitwise, the same steps. */
static void test_scale_of_weights(void **state)
{
    (void)state;
    static const char *const solvers[] = {"ep4", "ep3", "nytro"};
    for (size_t s = 0; s < sizeof solvers / sizeof *solvers; s++) {
        task t = weighted_task();
        mercer_train_options options = options_for(solvers[s]);
        options.epochs = 4, options.batch = s == 2 ? 0 : 20, options.lambda = 0.5;
        for (int i = 0; i < N; i++) t.weights[i] = 0.5 * (1 + i % 2);
        dense plain = train(&t, &options, NULL);
        for (int i = 0; i < N; i++) t.weights[i] *= 0x1p-10;
        options.lambda *= 0x1p-10;
        dense light = train(&t, &options, NULL);
        double apart = dense_distance(plain, light);
        assert_that(apart == 0, "%s: %g apart, of %g", solvers[s], apart, dense_norm(plain));
        free(plain.a), free(light.a);
        task_close(&t);
    }
}

/* One sample has a weight of a million: auto finds the minimum of the weighted loss nevertheless. */
static void test_heavy_sample(void **state)
{
    (void)state;
    task t = weighted_task();
    t.weights[11] = 1e6;
    mercer_train_options options = options_for(NULL), exact = options_for("direct");
    dense found = train(&t, &options, NULL), wanted = train(&t, &exact, NULL);
    double loss = weighted_loss(&t, found, t.weights), least = weighted_loss(&t, wanted, t.weights);
    assert_that(loss <= least * (1 + 1e-6), "loss %g, least %g", loss, least);
    free(found.a), free(wanted.a);
    task_close(&t);
}

/* ---- Warnings ------------------------------------------------------------------------------------------------ */

typedef struct heard {
    int weights, bias;
} heard;

static void hear(void *user, mercer_log_level level, const char *text)
{
    heard *self = user;
    if (level != MERCER_LOG_WARNING) return;
    self->weights += mentions(text, "sample weight");
    self->bias += mentions(text, "eigenpairs");
}

/* Each warning is logged once in a training run, however often the plan is made. */
static void test_warnings(void **state)
{
    (void)state;
    heard said = {0};
    mercer_context_options with = MERCER_INIT(mercer_context_options);
    with.log = hear, with.log_user = &said, with.log_level = MERCER_LOG_WARNING;
    mercer_context *talking;
    assert_succeeds(NULL, mercer_context_create(&talking, &with));
    task t = weighted_task();
    t.context = talking;
    mercer_train_options options = options_for("ep4");
    options.epochs = 3, options.eigenpairs = P / 10 + 1;
    dense even = train(&t, &options, NULL);
    assert_int_equal(said.bias, 1);
    assert_int_equal(said.weights, 0);
    t.weights[11] = 1e6, options.eigenpairs = 0;
    dense uneven = train(&t, &options, NULL);
    assert_int_equal(said.bias, 1);
    assert_int_equal(said.weights, 1);
    free(even.a), free(uneven.a);
    task_close(&t);
    mercer_context_free(talking);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_loss), cmocka_unit_test(test_validation_loss),
        cmocka_unit_test(test_patience),      cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_bad_weights),   cmocka_unit_test(test_scale_of_weights),
        cmocka_unit_test(test_heavy_sample),  cmocka_unit_test(test_warnings),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Target units: moments and predictions; and training with units must equal training on targets that were converted in
   advance. */
#include "support/folder.h"

#include "support/info.h"
#include "support/sources.h"
#include "support/training.h"

#include "core/numbers/units.h"
#include "data/prepare/preprocess.h"

#include <stdio.h>
#include <unistd.h>

enum { N = 300, P = 40, D = 3, C = 2 };

static const double OFFSET[C] = {200, -3e6}, SCALE[C] = {1.5, 2e3};

static task open_task(mercer_dtype dtype)
{
    return task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, C}, 1, dtype);
}

/* ---- Moments ------------------------------------------------------------------------------------------------- */

/* Computes moments in two passes in long double. */
static void plain_moments(const mercer_matrix *y, const double *weights, int64_t j, long double *mean, long double *m2)
{
    long double sum = 0, mass = 0, squares = 0;
    for (int64_t i = 0; i < y->rows; i++) {
        mass += weights ? weights[i] : 1;
        sum += (weights ? weights[i] : 1) * (long double)mrc_load(y, i, j);
    }
    *mean = sum / mass;
    for (int64_t i = 0; i < y->rows; i++) {
        long double off = (long double)mrc_load(y, i, j) - *mean;
        squares += (weights ? weights[i] : 1) * off * off;
    }
    *m2 = squares / mass;
}

/*
 * The error of Welford's mean is at most n u (|mean| + deviation) to first order, and that of its m2 n u relative to
 * itself plus the square of the mean's error: with n = 300 and an offset of 1e9 deviations far below 1e-4 in total.
 */
static void test_moments(void **state)
{
    (void)state;
    double weights[N], mean[C], deviation[C], offsets[] = {0, 200, -1e9};
    for (int i = 0; i < N; i++) weights[i] = i % 3;
    for (int k = 0; k < 6; k++) {
        task self = open_task(MERCER_F64);
        const double *given = k % 2 ? weights : NULL;
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < C; j++) data_store(&self.y, i, j, mrc_load(&self.y, i, j) + offsets[k / 2]);
        assert_succeeds(context, mercer_target_moments(context, mean, deviation, &self.y, given));
        for (int64_t j = 0; j < C; j++) {
            long double m, v;
            plain_moments(&self.y, given, j, &m, &v);
            double width = sqrt((double)v), bound = N * U * (fabs((double)m) + width);
            assert_that(fabs(mean[j] - (double)m) <= bound, "mean %g, not %g", mean[j], (double)m);
            assert_that(fabs(deviation[j] - width) <= N * U * width + bound * bound / width + bound,
                        "deviation %g, not %g", deviation[j], width);
        }
        task_close(&self);
    }
}

static void test_constant_targets(void **state)
{
    (void)state;
    double values[7] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, weights[7] = {1, 2, 0.3, 5, 0, 1, 7}, mean, deviation;
    mercer_matrix y = mrc_view(values, 7, 1, MERCER_F64);
    assert_succeeds(context, mercer_target_moments(context, &mean, &deviation, &y, weights));
    assert_true(mean == 0.1 && deviation == 1);
    values[3] = nextafter(0.1, 1); /* a constant up to rounding */
    assert_succeeds(context, mercer_target_moments(context, &mean, &deviation, &y, weights));
    assert_true(deviation == 1);
    values[3] = 0.2;
    assert_succeeds(context, mercer_target_moments(context, &mean, &deviation, &y, NULL));
    assert_true(deviation > 0.03 && deviation < 0.04);
    memset(values, 0, sizeof values);
    assert_succeeds(context, mercer_target_moments(context, &mean, &deviation, &y, NULL));
    assert_true(mean == 0 && deviation == 1);
}

static void test_moments_of_classes(void **state)
{
    (void)state;
    mercer_dataset *digits;
    double mean[10], deviation[10], sum = 0;
    assert_succeeds(context, mercer_dataset_synthesize(&digits, context, "digits", 0, 500, 3));
    assert_succeeds(context, mrc_dataset_moments(digits, mean, deviation));
    for (int j = 0; j < 10; j++) {
        sum += mean[j];
        assert_true(fabs(deviation[j] * deviation[j] - mean[j] * (1 - mean[j])) < 1e-12);
    }
    assert_true(fabs(sum - 1) < 1e-12);
    mercer_dataset_free(digits);
}

static void test_moments_refused(void **state)
{
    (void)state;
    double values[3] = {1, NAN, 2}, none[3] = {0}, mean = 7, deviation = 7;
    mercer_matrix y = mrc_view(values, 3, 1, MERCER_F64), empty = mrc_view(values, 0, 1, MERCER_F64);
    assert_fails(NULL, mercer_target_moments(NULL, &mean, &deviation, &y, NULL), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(context, mercer_target_moments(context, &mean, &deviation, NULL, NULL), MERCER_ERROR_ARGUMENT, "Y");
    assert_fails(context, mercer_target_moments(context, &mean, NULL, &y, NULL), MERCER_ERROR_ARGUMENT, "deviation");
    assert_fails(context, mercer_target_moments(context, &mean, &deviation, &empty, NULL), MERCER_ERROR_SHAPE, "rows");
    assert_fails(context, mercer_target_moments(context, &mean, &deviation, &y, NULL), MERCER_ERROR_DATA, "Y");
    values[1] = 0;
    assert_fails(context, mercer_target_moments(context, &mean, &deviation, &y, none), MERCER_ERROR_DATA, "weight");
    values[1] = 1e300;
    assert_fails(context, mercer_target_moments(context, &mean, &deviation, &y, NULL), MERCER_ERROR_DATA,
                 "target 0 (from 0) ranges from 1 to 1e+300");
    values[0] = 1e-300, values[1] = 3e-300, values[2] = 2e-300; /* their squares underflow to 0 */
    assert_fails(context, mercer_target_moments(context, &mean, &deviation, &y, NULL), MERCER_ERROR_DATA,
                 "target 0 (from 0) ranges from 1e-300 to 3e-300");
    assert_true(mean == 7 && deviation == 7);
}

/* ---- Models -------------------------------------------------------------------------------------------------- */

static mercer_model *make_model(const task *self, mercer_dtype real, bool units)
{
    mercer_model *model;
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &self->kernel, &self->z, C, real));
    if (units) assert_succeeds(context, mercer_model_set_targets(model, OFFSET, SCALE));
    return model;
}

static void assert_units(const mercer_model *model)
{
    const double *offset = model_info(model).target_offset, *scale = model_info(model).target_scale;
    assert_true(offset && memcmp(offset, OFFSET, sizeof OFFSET) == 0 && memcmp(scale, SCALE, sizeof SCALE) == 0);
}

static void test_setting(void **state)
{
    (void)state;
    task self = open_task(MERCER_F64);
    mercer_model *model = make_model(&self, MERCER_F64, false);
    const double bad[] = {0, -1, NAN, INFINITY};
    assert_true(!model_info(model).target_offset && !model_info(model).target_scale);
    assert_succeeds(context, mercer_model_set_targets(model, OFFSET, SCALE));
    for (int i = 0; i < 4; i++) {
        assert_fails(context, mercer_model_set_targets(model, NULL, (double[C]){1, bad[i]}), MERCER_ERROR_DATA,
                     "scale 1");
        if (i >= 2)
            assert_fails(context, mercer_model_set_targets(model, (double[C]){bad[i], 0}, NULL), MERCER_ERROR_DATA,
                         "offset 0");
    }
    assert_units(model); /* unchanged */
    assert_succeeds(context, mercer_model_set_targets(model, (double[C]){0, 0}, (double[C]){1, 1}));
    assert_null(model_info(model).target_offset); /* offset 0 and scale 1 count as no units */
    assert_fails(NULL, mercer_model_set_targets(NULL, OFFSET, SCALE), MERCER_ERROR_ARGUMENT, "model");
    assert_true(!model_info(NULL).target_offset && !model_info(NULL).target_scale);
    mercer_model_free(model);
    task_close(&self);
}

/* f = offset + scale times the product, rounded once to the type of F; predicted classes are those of f. */
static void test_predicting(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        mercer_dtype real = k % 2 ? MERCER_F32 : MERCER_F64, wide = k / 2 ? MERCER_F64 : real;
        task self = open_task(real);
        mercer_model *plain = make_model(&self, real, false), *model = make_model(&self, real, true);
        mercer_matrix weights = model_info(plain).weights, same = model_info(model).weights;
        mercer_matrix f = data_matrix(N, C, 0, real), g = data_matrix(N, C, 0, wide);
        int32_t labels[N];
        data_fill_normal(&weights, (mrc_rng){5, 1}, 0, 1), data_fill_normal(&same, (mrc_rng){5, 1}, 0, 1);
        assert_succeeds(context, mercer_model_predict(plain, &f, &self.x));
        assert_succeeds(context, mercer_model_predict(model, &g, &self.x));
        assert_succeeds(context, mercer_model_classify(model, labels, &self.x));
        for (int64_t i = 0; i < N; i++) {
            for (int64_t j = 0; j < C; j++) {
                double wanted = OFFSET[j] + SCALE[j] * mrc_load(&f, i, j);
                assert_true(mrc_load(&g, i, j) == (wide == MERCER_F32 ? (double)(float)wanted : wanted));
            }
            assert_int_equal(labels[i], 0); /* an offset of 200 against -3e6 */
        }
        mercer_model_free(plain), mercer_model_free(model);
        free(f.data), free(g.data);
        task_close(&self);
    }
}

/* ---- Training ------------------------------------------------------------------------------------------------ */

/* A task with targets in units, and the same task with converted targets. */
typedef struct both {
    task raw, entered;
    mrc_units units;
} both;

static both open_both(mercer_dtype dtype)
{
    both out = {.raw = open_task(dtype), .entered = open_task(dtype)};
    assert_succeeds(context, mrc_units_set(&out.units, context, C, OFFSET, SCALE));
    free(out.raw.y.data);
    out.raw.y = data_matrix(N, C, 0, MERCER_F64);
    mrc_units_invert(&out.units, &out.raw.y, &out.entered.y);
    free(out.entered.y.data);
    out.entered.y = data_matrix(N, C, 0, MERCER_F64);
    mrc_units_apply(&out.units, &out.entered.y, &out.raw.y);
    return out;
}

static void close_both(both *self)
{
    mrc_units_clear(&self->units, context);
    task_close(&self->raw), task_close(&self->entered);
}

static dense run_training(const task *self, mercer_train_options options, mercer_dtype real, bool units,
                          mercer_report *report)
{
    mercer_model *model = make_model(self, real, units);
    mercer_source source;
    mercer_trainer *trainer;
    *report = (mercer_report){.struct_size = sizeof *report};
    options.validation_X = &self->x, options.validation_Y = &self->y;
    assert_succeeds(context, source_from_matrices(&source, context, &self->x, &self->y, NULL, 7));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    assert_succeeds(context, mercer_trainer_fit(trainer, &source, report));
    copy_plan(report);
    mercer_matrix weights = model_info(model).weights;
    dense out = dense_of(&weights);
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    return out;
}

static void assert_same(dense a, dense b, const char *what)
{
    assert_that(memcmp(a.a, b.a, (size_t)(a.rows * a.cols) * sizeof(double)) == 0, "%s: other weights", what);
}

/* Returns the mean squared error of `weights` in the units of the targets. */
static double plain_loss(const both *self, dense weights)
{
    dense k = dense_kernel(&self->raw.kernel, &self->raw.x, &self->raw.z), f = dense_times(false, false, k, weights);
    double sum = 0;
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < C; j++) {
            double off = SCALE[j] * (AT(f, i, j) - mrc_load(&self->entered.y, i, j));
            sum += off * off;
        }
    free(k.a), free(f.a);
    return sum / (N * C);
}

/* Every way of training gives a result bitwise identical to training on converted targets, and reports losses in the
   units of y. */
static void test_training(void **state)
{
    (void)state;
    static const char *const solvers[] = {"direct", "cg", "ep4", "ep3", "gd"};
    for (int k = 0; k < 10; k++) {
        mercer_dtype real = k % 2 ? MERCER_F32 : MERCER_F64;
        both self = open_both(real);
        mercer_train_options options = options_for(solvers[k / 2]);
        mercer_report report, entered;
        options.epochs = 3, options.nystrom = 60, options.batch = 50;
        if (k / 2 == 2) options.polish = 2;
        dense a = run_training(&self.raw, options, real, true, &report);
        dense b = run_training(&self.entered, options, real, false, &entered);
        assert_same(a, b, solvers[k / 2]);
        double loss = plain_loss(&self, a), tolerance = real == MERCER_F32 ? 1e-4 : 1e-9;
        assert_that(fabs(report.validation_loss - loss) <= tolerance * loss, "%s: loss %g, not %g", solvers[k / 2],
                    report.validation_loss, loss);
        if (k / 2 == 1) /* with the returned weights */
            assert_that(fabs(report.train_loss - loss) <= 1e-2 * loss, "train loss %g, not %g", report.train_loss,
                        loss);
        assert_that(report.peak_bytes <= report.plan->bytes, "%s: %lld bytes, %lld planned", solvers[k / 2],
                    (long long)report.peak_bytes, (long long)report.plan->bytes);
        free(a.a), free(b.a);
        close_both(&self);
    }
}

static dense step_through(const task *self, bool units, double *loss)
{
    mercer_model *model = make_model(self, MERCER_F64, units);
    mercer_trainer *trainer;
    mercer_train_options options = options_for("ep4");
    mercer_report report = {.struct_size = sizeof report};
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    for (int64_t first = 0; first < N; first += 100) {
        mercer_matrix x = mrc_rows(&self->x, first, 100), y = mrc_rows(&self->y, first, 100);
        assert_succeeds(context, mercer_trainer_step(trainer, &x, &y, NULL));
    }
    assert_succeeds(context, mercer_trainer_finish(trainer));
    assert_succeeds(context, mercer_trainer_report(trainer, &report));
    *loss = report.train_loss;
    mercer_matrix weights = model_info(model).weights;
    dense out = dense_of(&weights);
    mercer_trainer_free(trainer);
    mercer_model_free(model);
    return out;
}

static void test_steps(void **state)
{
    (void)state;
    both self = open_both(MERCER_F64);
    double loss, entered;
    dense a = step_through(&self.raw, true, &loss), b = step_through(&self.entered, false, &entered);
    assert_same(a, b, "steps");
    assert_true(loss > entered * SCALE[0] * SCALE[0] && loss < entered * SCALE[1] * SCALE[1]);
    free(a.a), free(b.a);
    close_both(&self);
}

/* Class frequencies are the offset: the accuracies that training reports include it. */
static void test_accuracy(void **state)
{
    (void)state;
    task self = open_task(MERCER_F64);
    for (int64_t i = 0; i < N; i++) {
        bool rare = mrc_load(&self.x, i, 0) > 1.5;
        data_store(&self.y, i, 0, rare), data_store(&self.y, i, 1, !rare);
    }
    mercer_model *model = make_model(&self, MERCER_F64, false);
    mercer_source source;
    mercer_trainer *trainer;
    mercer_train_options options = options_for("direct");
    mercer_report report = {.struct_size = sizeof report};
    double mean[C], deviation[C];
    int32_t labels[N];
    options.classification = MERCER_ON;
    options.validation_X = &self.x, options.validation_Y = &self.y;
    assert_succeeds(context, mercer_target_moments(context, mean, deviation, &self.y, NULL));
    assert_succeeds(context, mercer_model_set_targets(model, mean, NULL));
    assert_succeeds(context, source_from_matrices(&source, context, &self.x, &self.y, NULL, 7));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    assert_succeeds(context, mercer_trainer_fit(trainer, &source, &report));
    assert_succeeds(context, mercer_model_classify(model, labels, &self.x));
    int64_t right = 0;
    for (int64_t i = 0; i < N; i++) right += mrc_load(&self.y, i, labels[i]) == 1;
    assert_true(report.validation_accuracy == (double)right / N);
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    task_close(&self);
}

/* ---- Checkpoints --------------------------------------------------------------------------------------------- */

/* A checkpoint stores the units: its model has them, and a training run with other units cannot resume from it. */
static void test_checkpoint(void **state)
{
    (void)state;
    folder_open();
    const char *path = in_folder("checkpoint.safetensors");
    both self = open_both(MERCER_F64);
    mercer_train_options options = options_for("ep4");
    mercer_model *loaded;
    mercer_trainer *trainer;
    mercer_source source;
    mercer_report report;
    options.checkpoint = path, options.epochs = 2;
    dense a = run_training(&self.raw, options, MERCER_F64, true, &report);
    assert_succeeds(context, mercer_model_load(&loaded, context, NULL, path));
    assert_units(loaded);
    assert_succeeds(context, mercer_model_set_targets(loaded, NULL, SCALE));
    assert_succeeds(context, source_from_matrices(&source, context, &self.raw.x, &self.raw.y, NULL, 7));
    options.checkpoint = NULL;
    assert_succeeds(context, mercer_trainer_create(&trainer, loaded, NULL, &options));
    assert_succeeds(context, mercer_trainer_resume(trainer, path));
    assert_fails(context, mercer_trainer_fit(trainer, &source, NULL), MERCER_ERROR_MISMATCH, "targets");
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(loaded);
    folder_close();
    free(a.a);
    close_both(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_constant_targets),
        cmocka_unit_test(test_moments_of_classes),
        cmocka_unit_test(test_moments_refused),
        cmocka_unit_test(test_setting),
        cmocka_unit_test(test_predicting),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_checkpoint),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half precision where it is justified: which training runs use it, the bound that justifies it, and that a training
 * run for which held-out rows reject it ends bitwise identical to the accurate one.
 *
 * No GPU is needed. A backend that gains from half precision is simulated: the CPU backend, whose products get a given
 * relative error wherever half precision is allowed, and which reports a higher rate for it.
 */
#include "support/folder.h"

#include "support/info.h"
#include "support/plans.h"
#include "support/sources.h"
#include "support/training.h"

#include "backends/backend.h"
#include "core/numbers/half.h"
#include "plan/plan.h"

#include <string.h>

/* ---- A backend that rounds --------------------------------------------------------------------------------------- */

static const mrc_backend_ops *honest;
static mrc_backend_ops rounding;
static double share;       /* relative error added to products */
static mercer_status fate; /* status returned by rounded products */
static int rounded_products, warnings;
static char last_warning[1024];

static mrc_capabilities rated(const mrc_backend *backend, bool half)
{
    mrc_capabilities out = honest->capabilities(backend, half);
    out.rate = half ? 500e12 : 40e12, out.rate_double = 40e12;
    return out;
}

static bool gains(const mrc_backend *backend, const mercer_kernel *kernel)
{
    (void)backend;
    return mrc_kernel_is_stationary(kernel);
}

static mercer_status round_off(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *y, mercer_status status)
{
    if (!pair->half || status != MERCER_OK) return status;
    rounded_products++;
    if (fate != MERCER_OK) return mrc_fail(backend->context, fate, "arithmetic fast: coordinate 7");
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++)
            data_store(y, i, j, mrc_load(y, i, j) * (1 + share * (((i + j) & 1) ? 1 : -1)));
    return MERCER_OK;
}

static mercer_status rounded_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *y, bool add)
{
    return round_off(backend, pair, y, honest->kernel_matmul(backend, pair, w, y, add));
}

static mercer_status rounded_forward(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                     const mercer_matrix *f, mrc_cached_block *cached)
{
    return round_off(backend, pair, f, honest->kernel_forward(backend, pair, w, f, cached));
}

static void hear(void *user, mercer_log_level level, const char *message)
{
    (void)user;
    if (level != MERCER_LOG_WARNING) return;
    warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", message);
}

static int open_rounding(void **state)
{
    open_all(state);
    folder_open();
    honest = context->backend->ops;
    rounding = *honest;
    rounding.capabilities = rated, rounding.gains_by_half = gains;
    rounding.kernel_matmul = rounded_matmul, rounding.kernel_forward = rounded_forward;
    context->backend->ops = &rounding;
    context->log = hear;
    return 0;
}

static int close_rounding(void **state)
{
    context->backend->ops = honest;
    folder_close();
    return close_all(state);
}

/* ---- Decisions --------------------------------------------------------------------------------------------------- */

static mrc_plan_request request_for(const mercer_train_options *options)
{
    return (mrc_plan_request){.machine = mrc_machine_of(context),
                              .options = options,
                              .n = 60000,
                              .p = 20000,
                              .d = 100,
                              .c = 10,
                              .real = MERCER_F32,
                              .points = MERCER_F32,
                              .shards = 1,
                              .threads = 4,
                              .bounded = true,
                              .rows_known = true,
                              .gains_by_half = true,
                              .coordinates = 0.1,
                              .farthest = 3};
}

/* Makes a plan and checks that its line about arithmetic mentions `says` ("": no such line). Returns
   whether the plan uses half precision. */
static bool takes_half(const mrc_plan_request *request, const char *says)
{
    mrc_plan plan;
    assert_succeeds(context, make_plan(context, &plan, request));
    char line[256] = "";
    const char *found = strstr(plan.public_plan.text, "arithmetic ");
    if (found) snprintf(line, sizeof line, "%.*s", (int)strcspn(found, "\n"), found);
    assert_that(says[0] ? mentions(line, says) : !found, "'%s' is not in\n%s", says, plan.public_plan.text);
    return plan.half_chosen;
}

static const char *const FAST = "arithmetic fast: *3.1e-04*4.1e-03";

static void test_solvers(void **state)
{
    (void)state;
    const mrc_solver *row;
    for (int i = 0; (row = mrc_solver_row(i)); i++) {
        mercer_train_options options = options_for(row->name);
        options.memory = (int64_t)200 << 30;
        mrc_plan_request request = request_for(&options);
        if (row->traits & MRC_NEEDS_SAMPLES) request.p = request.n, request.on_samples = true;
        bool iterates = !(row->traits & MRC_CONVERGES);
        assert_true(takes_half(&request, iterates ? FAST : "arithmetic accurate: *solver") == iterates);
    }
}

/* One reason against half precision at a time, each removed again. */
static void test_reasons(void **state)
{
    (void)state;
    mercer_train_options options = options_for("ep4");
    options.memory = (int64_t)200 << 30;
    mrc_plan_request good = request_for(&options), bad = good;
    assert_true(takes_half(&good, FAST));
    options.polish = 2;
    assert_false(takes_half(&good, "arithmetic accurate: polishing"));
    options.polish = 0;
    bad.real = MERCER_F64;
    assert_false(takes_half(&bad, "arithmetic accurate: double"));
    bad = good, bad.points = MERCER_F64;
    assert_false(takes_half(&bad, "arithmetic accurate: double"));
    bad = good, bad.streaming = true;
    assert_false(takes_half(&bad, "arithmetic accurate: single batches"));
    bad = good, bad.accurate = "it was refused";
    assert_false(takes_half(&bad, "arithmetic accurate: it was refused"));
    bad = good, bad.gains_by_half = false;
    assert_false(takes_half(&bad, ""));
    bad = good, bad.farthest = 501;
    assert_false(takes_half(&bad, "arithmetic accurate: *501 bandwidths"));
    bad.farthest = 500;
    assert_true(takes_half(&bad, FAST));
    bad = good, bad.coordinates = 200;
    assert_false(takes_half(&bad, "arithmetic accurate: *5.6e-03"));
    bad.points = MERCER_U8, bad.farthest = 501; /* distances of bytes are exact */
    assert_true(takes_half(&bad, "arithmetic fast: the error, about 2.8e-04"));
    bad = good, bad.n = 12000000;
    assert_false(takes_half(&bad, "arithmetic accurate: *3.1e-04"));
    bad.n = 10000000;
    assert_true(takes_half(&bad, "arithmetic fast"));
    good.machine.arithmetic = MRC_ACCURATE; /* accurate arithmetic was requested */
    assert_false(takes_half(&good, ""));
}

/* The estimated time of a solver uses the flop rate of the arithmetic that the solver would use. */
static void test_rates(void **state)
{
    (void)state;
    mrc_plan fast, slow;
    mercer_train_options options = options_for("ep4");
    options.memory = (int64_t)200 << 30;
    mrc_plan_request request = request_for(&options);
    assert_succeeds(context, make_plan(context, &fast, &request));
    request.accurate = "asked for";
    assert_succeeds(context, make_plan(context, &slow, &request));
    assert_true(fast.public_plan.flops == slow.public_plan.flops);
    assert_true(fast.public_plan.seconds < slow.public_plan.seconds / 2);
}

/* ---- The bound --------------------------------------------------------------------------------------------------- */

static double half(double value)
{
    return (double)mrc_half_to_float(mrc_half_from_float((float)value));
}

/* Returns the root mean square error of K(x, z) caused by rounding coordinates and values to half precision, with
   128 units per bandwidth as on the device; sets *coordinates to a mean of (sum of x^4) / (sum of x^2) over rows x, in
   bandwidths. */
static double measured_error(const mercer_kernel *kernel, const mercer_matrix *x, double *coordinates)
{
    mercer_matrix r = data_matrix(x->rows, x->cols, 0, MERCER_F64);
    double unit = 128 / kernel->bandwidth, sum = 0;
    *coordinates = 0;
    for (int64_t i = 0; i < x->rows; i++) {
        double squares = 0, fourths = 0;
        for (int64_t k = 0; k < x->cols; k++) {
            double value = mrc_load(x, i, k), in_bandwidths = value / kernel->bandwidth;
            data_store(&r, i, k, half(value * unit) / unit);
            squares += pow(in_bandwidths, 2), fourths += pow(in_bandwidths, 4);
        }
        *coordinates += fourths / squares / (double)x->rows;
    }
    dense exact = dense_kernel(kernel, x, x), rough = dense_kernel(kernel, &r, &r);
    int64_t pairs = 0;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < i; j++, pairs++) sum += pow(half(AT(rough, i, j) * 32768) / 32768 - AT(exact, i, j), 2);
    free(exact.a), free(rough.a), free(r.data);
    return sqrt(sum / (double)pairs);
}

static void test_bound(void **state)
{
    (void)state;
    static const char *const specs[] = {"laplace:bandwidth=%g", "gaussian:bandwidth=%g", "matern32:bandwidth=%g",
                                        "matern52:bandwidth=%g", "cauchy:bandwidth=%g"};
    mercer_matrix x = data_matrix(60, 6, 0, MERCER_F64);
    double closest = 0;
    data_fill_normal(&x, (mrc_rng){77, 1}, 0, 1);
    for (size_t f = 0; f < sizeof specs / sizeof *specs; f++)
        for (int step = 0; step < 7; step++) {
            double bandwidth = 0.1 * pow(3, step);
            char text[64];
            mercer_kernel kernel;
            double coordinates;
            snprintf(text, sizeof text, specs[f], bandwidth);
            assert_succeeds(context, mercer_kernel_parse(&kernel, context, text));
            double error = measured_error(&kernel, &x, &coordinates), bound = mrc_rounding_error(coordinates);
            assert_that(error <= bound, "%s: %g, bound %g", text, error, bound);
            closest = fmax(closest, error / bound);
        }
    assert_that(closest > 0.3, "the bound is %g times what was ever seen", 1 / closest); /* else of little use */
    free(x.data);
}

/* ---- The check --------------------------------------------------------------------------------------------------- */

static mercer_train_options small_training(void)
{
    mercer_train_options options = options_for("ep4");
    options.batch = 20, options.nystrom = 40, options.eigenpairs = 3, options.epochs = 3;
    options.projector = "exact", options.memory = (int64_t)1 << 30;
    return options;
}

/* Trains with a backend whose products have the relative error `off`, and fills in the report. The caller frees the
   result. */
static dense train_off(const task *t, const mercer_train_options *options, int ranks, double off, mercer_status ends,
                       mercer_report *report)
{
    share = off, fate = ends, rounded_products = warnings = 0;
    dense out = train_as(t, options, ranks, MERCER_F32, report);
    return out;
}

static dense train_accurately(const task *t, const mercer_train_options *options, int ranks)
{
    mercer_report report;
    context->arithmetic = MRC_ACCURATE;
    dense out = train_off(t, options, ranks, 0.5, MERCER_OK, &report);
    context->arithmetic = MRC_BY_PLAN;
    assert_true(rounded_products == 0 && !mentions(report.plan->text, "arithmetic"));
    return out;
}

static void test_check(void **state)
{
    (void)state;
    task t = task_open(context, "laplace:bandwidth=2", (sizes){300, 60, 4, 2}, 1, MERCER_F32);
    mercer_train_options options = small_training();
    mercer_report report;
    t.weights = malloc(300 * sizeof *t.weights); /* the heaviest sample bounds the steps, once it has been seen */
    assert_non_null(t.weights);
    for (int64_t i = 0; i < 300; i++) t.weights[i] = 1 + (double)(i == 150) * 20;
    for (int ranks = 0; ranks <= 2; ranks += 2)
        for (int held = 0; held < 2; held++) {
            options.validation_X = held ? &t.z : NULL; /* 60 rows different from all samples */
            mercer_matrix y = mrc_rows(&t.y, 0, t.z.rows);
            options.validation_Y = held ? &y : NULL; /* with targets that the model cannot explain */
            dense accurate = train_accurately(&t, &options, ranks);
            dense kept = train_off(&t, &options, ranks, 1e-4, MERCER_OK, &report);
            assert_true(mentions(report.plan->text, "arithmetic fast, confirmed: on 6"));
            assert_true((mentions(report.plan->text, "confirmed: *held-out")) == (held == 1));
            assert_true(warnings == 0 && rounded_products > 0 && dense_distance(kept, accurate) > 0);
            dense refused = train_off(&t, &options, ranks, 0.3, MERCER_OK, &report);
            assert_true(mentions(report.plan->text, "replaced: arithmetic fast: on 6"));
            assert_true(mentions(report.plan->text, "arithmetic accurate, *solver ep4"));
            assert_false(mentions(report.plan->text, "fast, confirmed"));
            assert_true(warnings == 1 && mentions(last_warning, "accurate"));
            assert_true(report.epochs == 3 && report.samples == 900 && rounded_products > 0);
            assert_that(dense_distance(refused, accurate) == 0, "%d ranks: %g from the accurate training", ranks,
                        dense_distance(refused, accurate));
            free(accurate.a), free(kept.a), free(refused.a);
        }
    task_close(&t);
}

typedef struct stopper {
    int64_t calls, stop_at; /* number of calls; call to stop at, 0: never */
} stopper;

static int count_steps(void *user, const mercer_progress *progress)
{
    stopper *self = user;
    return !progress->phase && ++self->calls == self->stop_at;
}

/* Trains until call number stop_at, from the checkpoint if `resume`. Counts the calls in *calls. */
static dense run_until(const task *t, mercer_train_options options, bool resume, int64_t stop_at, int64_t *calls)
{
    const char *path = in_folder("checkpoint.safetensors");
    stopper watch = {.stop_at = stop_at};
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    options.progress = count_steps, options.progress_user = &watch, options.progress_seconds = 1e-9;
    options.checkpoint = stop_at > 0 ? path : NULL;
    rounded_products = warnings = 0;
    if (resume)
        assert_succeeds(context, mercer_model_load(&model, context, NULL, path));
    else
        assert_succeeds(context, mercer_model_create(&model, context, NULL, &t->kernel, &t->z, t->y.cols, MERCER_F32));
    assert_succeeds(context, source_from_matrices(&source, context, &t->x, &t->y, NULL, t->seed));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    if (resume) assert_succeeds(context, mercer_trainer_resume(trainer, path));
    assert_succeeds(context, mercer_trainer_fit(trainer, &source, NULL));
    mercer_matrix weights = model_info(model).weights;
    dense out = dense_of(&weights);
    if (calls) *calls = watch.calls;
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    return out;
}

/* A training run resumes in its previous arithmetic; where half precision was rejected, it stays rejected. */
static void test_resume(void **state)
{
    (void)state;
    task t = task_open(context, "laplace:bandwidth=2", (sizes){300, 60, 4, 2}, 1, MERCER_F32);
    mercer_train_options options = small_training();
    fate = MERCER_OK;
    for (int refused = 0; refused < 2; refused++) {
        int64_t calls;
        share = refused ? 0.3 : 1e-4;
        dense whole = run_until(&t, options, false, 0, &calls);
        assert_int_equal(warnings, refused);
        for (int64_t at = 5; at < calls; at += calls / 3) {
            bool again = refused && at > 16; /* 15 steps and the end of an epoch in half precision came first */
            free(run_until(&t, options, false, at, NULL).a);
            dense rest = run_until(&t, options, true, 0, NULL);
            assert_that(dense_distance(whole, rest) == 0, "stopped at %lld of %lld: other weights, by %g",
                        (long long)at, (long long)calls, dense_distance(whole, rest));
            assert_true((rounded_products == 0) == again && warnings == (refused && !again));
            free(rest.a);
        }
        free(whole.a);
    }
    task_close(&t);
}

/* A coordinate outside the range of half precision is not an error if half precision was not requested. */
static void test_overflow(void **state)
{
    (void)state;
    task t = task_open(context, "laplace:bandwidth=2", (sizes){300, 60, 4, 2}, 1, MERCER_F32);
    mercer_train_options options = small_training();
    mercer_report report;
    dense accurate = train_accurately(&t, &options, 0);
    dense refused = train_off(&t, &options, 0, 0, MERCER_ERROR_DATA, &report);
    assert_non_null(mentions(report.plan->text, "replaced: arithmetic fast: coordinate 7; arithmetic accurate"));
    assert_true(warnings == 1 && dense_distance(refused, accurate) == 0);
    free(accurate.a), free(refused.a);
    t.kernel.bandwidth = 1e-3; /* detected before anything is computed */
    free(train_off(&t, &options, 0, 0, MERCER_ERROR_DATA, &report).a);
    assert_true(mentions(report.plan->text, "arithmetic accurate: *coordinate"));
    assert_true(warnings == 0 && rounded_products == 0);
    task_close(&t);
}

/* If the model explains the targets to the last digit, half precision must be rejected, although it is acceptable for
   noisy targets. */
static void test_targets_without_noise(void **state)
{
    (void)state;
    task t = task_open(context, "gaussian:bandwidth=3", (sizes){300, 60, 2, 1}, 1, MERCER_F32);
    mercer_train_options options = small_training();
    mercer_report report;
    options.epochs = 30;
    free(train_off(&t, &options, 0, 5e-3, MERCER_OK, &report).a);
    assert_true(mentions(report.plan->text, "fast, confirmed"));
    for (int64_t i = 0; i < t.y.rows; i++) data_store(&t.y, i, 0, sin(mrc_load(&t.x, i, 0)));
    free(train_off(&t, &options, 0, 5e-3, MERCER_OK, &report).a);
    assert_that(mentions(report.plan->text, "replaced: arithmetic fast"), "%s", report.plan->text);
    task_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_solvers), cmocka_unit_test(test_reasons),
                                       cmocka_unit_test(test_rates),   cmocka_unit_test(test_bound),
                                       cmocka_unit_test(test_check),   cmocka_unit_test(test_overflow),
                                       cmocka_unit_test(test_resume),  cmocka_unit_test(test_targets_without_noise)};
    return cmocka_run_group_tests(tests, open_rounding, close_rounding);
}

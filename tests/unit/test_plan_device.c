/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans for a device with fast products: matrices that are not cached because evaluating them is as fast, and the
   periods of an epoch. No GPU is needed: the planner queries a backend for its rates, and computes nothing. */
#include "support/plans.h"
#include "support/training.h"

#include "backends/backend.h"
#include "plan/plan.h"

#include <string.h>

static const mrc_backend_ops *honest;
static mrc_backend_ops device;

/* Capabilities like those of a GPU. */
static mrc_capabilities rated(const mrc_backend *backend, bool half)
{
    mrc_capabilities out = honest->capabilities(backend, half);
    out.memory = MRC_CUDA, out.bandwidth = 3e12, out.rate_double = 40e12, out.float_factors = false;
    out.rate = half ? 500e12 : 40e12;
    out.cached_size = half ? 2 : 4;
    return out;
}

static int open_device(void **state)
{
    open_all(state);
    honest = context->backend->ops;
    device = *honest;
    device.capabilities = rated;
    context->backend->ops = &device;
    context->arithmetic = MRC_FAST;
    return 0;
}

static int close_device(void **state)
{
    context->backend->ops = honest;
    context->arithmetic = MRC_BY_PLAN;
    return close_all(state);
}

/* A request with 60,000 images, all of them centers. */
static mrc_plan_request images(const mercer_train_options *options)
{
    return (mrc_plan_request){.machine = mrc_machine_of(context),
                              .options = options,
                              .n = 60000,
                              .p = 60000,
                              .d = 784,
                              .c = 10,
                              .real = MERCER_F32,
                              .points = MERCER_U8,
                              .shards = 1,
                              .threads = 16,
                              .budget = (int64_t)130 << 30,
                              .roughness = 0.46,
                              .bounded = true,
                              .norm = 2,
                              .rows_known = true,
                              .gains_by_half = true,
                              .on_samples = true};
}

static mercer_plan plan_of(const mrc_plan_request *request)
{
    static mrc_plan plan;
    assert_succeeds(context, make_plan(context, &plan, request));
    return plan.public_plan;
}

/* K(X,Z) is cached if reading it is faster than evaluating it, or if the caller requests it. */
static void test_evaluated_instead_of_cached(void **state)
{
    (void)state;
    mercer_train_options options = options_for("auto");
    mrc_plan_request request = images(&options);
    mercer_plan plan = plan_of(&request);
    assert_that(strcmp(plan.solver, "ep4") == 0 && !plan.cache_data && plan.epochs == 10 &&
                    mentions(plan.text, "recomputed"),
                "%s", plan.text);
    options.solver = "ep4";
    request.d = 4000; /* 2 d flops at 500e12 take longer than 16 bytes at 3e12 */
    assert_true(plan_of(&request).cache_data);
    request.d = 784;
    request.gains_by_half = false; /* another kernel function: half precision gains nothing */
    assert_true(plan_of(&request).cache_data);
    request.gains_by_half = true, request.machine.arithmetic = MRC_ACCURATE;
    assert_true(plan_of(&request).cache_data);
    request.machine.arithmetic = MRC_FAST, options.cache = MERCER_ON;
    assert_true(plan_of(&request).cache_data);
    options.cache = MERCER_AUTO, request.budget = (int64_t)8 << 30; /* a cache does not fit: usual number of epochs */
    plan = plan_of(&request);
    assert_that(!plan.cache_data && plan.epochs == 6 && !mentions(plan.text, "recomputed"), "%s", plan.text);
}

/* Periods T near p/m, and an epoch of periods of nearly equal length. */
static void test_periods(void **state)
{
    (void)state;
    static const struct {
        int64_t n, p, batch, period;
    } cases[] = {{60000, 60000, 7168, 9},    /* 9 batches: one period, not one of 8 and one of 1 */
                 {200000, 65536, 4352, 16},  /* 46 batches: 16, 16, 14, not 15, 15, 15, 1 */
                 {500000, 131072, 4864, 26}, /* 103 batches: 26, 26, 26, 25 */
                 {5000000, 1024000, 4864, 206},
                 {60000, 60000, 60000, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_train_options options = options_for("ep4");
        options.batch = cases[i].batch, options.epochs = 2, options.projector = "bgs";
        mrc_plan_request request = images(&options);
        request.n = cases[i].n, request.p = cases[i].p, request.on_samples = false;
        assert_int_equal(plan_of(&request).period, cases[i].period);
        options.epochs = 1; /* the periods of a single epoch are not made equal */
        assert_int_equal(plan_of(&request).period, mrc_max(1, cases[i].p / cases[i].batch));
        options.period = 3;
        assert_int_equal(plan_of(&request).period, 3);
    }
    mercer_train_options options = options_for("ep4");
    options.batch = 7168, options.projector = "bgs", options.epochs = 2;
    mrc_plan_request request = images(&options);
    request.budget = (int64_t)4 << 30; /* an eighth holds temporary centers of 9 batches if rows are narrow */
    assert_int_equal(plan_of(&request).period, 9);
    request.d = 9000, request.budget = (int64_t)16 << 30, request.points = MERCER_F32;
    assert_int_equal(plan_of(&request).period, 8);
    context->backend->ops = honest; /* plans for the CPU are unchanged */
    request = images(&options);
    assert_int_equal(plan_of(&request).period, 8);
    context->backend->ops = &device;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_evaluated_instead_of_cached, open_device, close_device),
        cmocka_unit_test_setup_teardown(test_periods, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

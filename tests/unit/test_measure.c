/* SPDX-License-Identifier: BSD-3-Clause */
/* Speed measurements of products on every available backend: plausible numbers, no leaked memory, invalid input. */
#include "support/check.h"

#include "backends/backend.h"

static void measure_on(mercer_context *context)
{
    static const mercer_dtype types[] = {MERCER_F32, MERCER_F64, MERCER_F16, MERCER_U8};
    mercer_context_info before = {.struct_size = sizeof before}, after = before;
    for (int t = 0; t < 4; t++)
        for (int outputs = SANITIZED && t % 2 ? 92 : 2; outputs < 100; outputs += SANITIZED ? 180 : 90) {
            mercer_kernel kernel;
            mercer_speed speed = {.struct_size = sizeof speed};
            mercer_shape shape = {.struct_size = sizeof shape,
                                  .samples = 32,
                                  .centers = 1104, /* more than the period of the random rows */
                                  .features = 48,
                                  .outputs = outputs,
                                  .points = types[t]};
            assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=100"));
            assert_succeeds(context, mercer_measure_speed(context, &speed, &kernel, &shape)); /* keeps its scratch */
            assert_succeeds(context, mercer_context_query(context, &before));
            assert_succeeds(context, mercer_measure_speed(context, &speed, &kernel, &shape));
            assert_succeeds(context, mercer_context_query(context, &after));
            assert_true(speed.product > 0 && speed.product < 100);
            assert_true(speed.plain > 0 && speed.plain < 100);
            bool device = strcmp(after.backend, "cuda") == 0;
            assert_true((speed.to_device > 0) == device && (speed.from_device > 0) == device);
            if (!device) assert_int_equal(after.bytes_now, before.bytes_now);
        }
}

static void test_every_backend(void **state)
{
    (void)state;
    for (int b = 0; mrc_backend_registry[b]; b++)
        for (int fast = 0; fast < (SANITIZED ? 1 : 2); fast++) {
            mercer_context *context;
            mercer_context_options options = MERCER_INIT(mercer_context_options);
            options.backend = mrc_backend_registry[b]->name, options.arithmetic = fast ? "fast" : "accurate";
            options.threads = 2;
            mercer_status status = mercer_context_create(&context, &options);
            if (status == MERCER_ERROR_UNSUPPORTED && mercer_device_count(options.backend) == 0) {
                print_message("    %s\n", mercer_last_error(NULL));
                continue;
            }
            assert_succeeds(NULL, status);
            measure_on(context);
            mercer_context_free(context);
        }
}

static void test_bad_input(void **state)
{
    (void)state;
    mercer_context *context;
    mercer_kernel kernel, none = {0};
    mercer_speed speed = {.struct_size = sizeof speed};
    mercer_shape good = {.struct_size = sizeof good, .samples = 5, .centers = 5, .features = 5, .outputs = 1},
                 bad = good;
    assert_succeeds(NULL, mercer_context_create(&context, NULL));
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "gaussian:bandwidth=1"));
    assert_fails(NULL, mercer_measure_speed(NULL, &speed, &kernel, &good), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(context, mercer_measure_speed(context, NULL, &kernel, &good), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(context, mercer_measure_speed(context, &speed, &kernel, NULL), MERCER_ERROR_ARGUMENT, "shape");
    assert_true(mercer_measure_speed(context, &speed, &none, &good) != MERCER_OK);
    bad.features = 0;
    assert_fails(context, mercer_measure_speed(context, &speed, &kernel, &bad), MERCER_ERROR_SHAPE, "at least 1");
    bad = good, bad.points = (mercer_dtype)77;
    assert_fails(context, mercer_measure_speed(context, &speed, &kernel, &bad), MERCER_ERROR_DTYPE, "points");
    bad = good, bad.samples = bad.centers = INT64_MAX / 4;
    assert_fails(context, mercer_measure_speed(context, &speed, &kernel, &bad), MERCER_ERROR_MEMORY, "");
    assert_true(speed.product == 0); /* unchanged */
    assert_succeeds(context, mercer_measure_speed(context, &speed, &kernel, &good));
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_backend), cmocka_unit_test(test_bad_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

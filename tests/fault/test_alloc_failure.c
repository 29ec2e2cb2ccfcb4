/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the n-th allocation fail, n = 1, 2, ... until a call succeeds. Each public call with a context must return
 * MERCER_ERROR_MEMORY, write no output, leak nothing, and then succeed in the same context.
 */
#include "support/check.h"

#include "support/allocator.h"
#include "support/data.h"

enum { M = 70, P = 300, D = 19, C = 5, MOST_ALLOCATIONS = 200 };

typedef struct fixture {
    test_allocator counter;
    mercer_context_options options;
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix X, Z, W;
    mercer_matrix out;
} fixture;

typedef mercer_status (*call)(fixture *f);

static mercer_status call_eval(fixture *f)
{
    return mercer_kernel_eval(f->context, &f->out, &f->kernel, &f->X, &f->Z);
}

static mercer_status call_matmul(fixture *f)
{
    return mercer_kernel_matmul(f->context, &f->out, &f->kernel, &f->X, &f->Z, &f->W);
}

static mercer_status call_diagonal(fixture *f)
{
    return mercer_kernel_diagonal(f->context, &f->out, &f->kernel, &f->X);
}

static mercer_status call_parse(fixture *f)
{
    mercer_kernel kernel;
    return mercer_kernel_parse(&kernel, f->context, "exppower:bandwidth=3,gamma=1.5");
}

static mercer_status call_print(fixture *f)
{
    return mercer_kernel_print(f->context, f->out.data, 200, NULL, &f->kernel);
}

static int keep(void *user, const mercer_kernel_block *block)
{
    (void)user, (void)block;
    return 0;
}

static mercer_status call_from_callback(fixture *f)
{
    mercer_kernel kernel;
    return mercer_kernel_from_callback(&kernel, f->context, MERCER_KERNEL_CALLBACK_INNER, keep, NULL);
}

static mercer_status call_query(fixture *f)
{
    mercer_context_info info = {.struct_size = sizeof info};
    return mercer_context_query(f->context, &info);
}

static size_t out_bytes(const fixture *f)
{
    return (size_t)(f->out.rows * f->out.ld * mrc_dtype_size(f->out.dtype));
}

/* Open a new context, which has not allocated its scratch memory yet. */
static void open_context(fixture *f)
{
    f->counter = (test_allocator){0};
    f->options.allocator = test_allocator_table(&f->counter);
    assert_succeeds(NULL, mercer_context_create(&f->context, &f->options));
}

static void close_context(fixture *f)
{
    mercer_context_free(f->context);
    assert_that(f->counter.live == 0, "%lld blocks are left", (long long)f->counter.live);
    assert_int_equal(f->counter.misused, 0);
}

/* Run a call with allocation n failing, then repeat it; return true if the call made fewer than n allocations. */
static bool fail_one(fixture *f, const char *what, call run, int n, bool and_all_later)
{
    open_context(f);
    memset(f->out.data, 0x3c, out_bytes(f));
    f->counter.fail_at = f->counter.requests + n, f->counter.fail_after = and_all_later;
    int64_t bytes_before = f->context->bytes_now;
    mercer_status status = run(f);
    bool done = status == MERCER_OK;
    if (!done) {
        assert_that(status == MERCER_ERROR_MEMORY, "%s, allocation %d: %s", what, n, mercer_status_string(status));
        assert_that(strlen(mercer_last_error(f->context)) > 0, "%s, allocation %d: no message", what, n);
        for (size_t i = 0; i < out_bytes(f); i++)
            assert_that(((unsigned char *)f->out.data)[i] == 0x3c, "%s, allocation %d: byte %d was written", what, n,
                        (int)i);
        /* The context may keep scratch memory for reuse, but not more than after a successful call. */
        int64_t kept = f->context->bytes_now;
        f->counter.fail_at = 0;
        assert_succeeds(f->context, run(f));
        assert_that(kept <= f->context->bytes_now || kept <= bytes_before, "%s, allocation %d: %lld bytes stay", what,
                    n, (long long)kept);
    }
    close_context(f);
    return done;
}

static void fail_each(fixture *f, const char *what, call run)
{
    for (int all = 0; all < 2; all++) {
        int n = 1;
        while (!fail_one(f, what, run, n, all)) {
            n++;
            assert_that(n < MOST_ALLOCATIONS, "%s never succeeds", what);
        }
    }
}

static void set_points(fixture *f, mercer_dtype x_type, mercer_dtype z_type, mercer_dtype value_type)
{
    f->X = data_matrix(M, D, D + 2, x_type), f->Z = data_matrix(P, D, 0, z_type),
    f->W = data_matrix(P, C, 0, value_type);
    data_fill_uniform(&f->X, (mrc_rng){3, 1}, 0, 20);
    data_fill_uniform(&f->Z, (mrc_rng){3, 2}, 0, 20);
    data_fill_normal(&f->W, (mrc_rng){3, 3}, 0, 1);
}

static void free_points(fixture *f)
{
    free(f->X.data), free(f->Z.data), free(f->W.data);
}

static void with_output(fixture *f, const char *what, call run, int64_t cols, mercer_dtype dtype)
{
    f->out = data_matrix(M, cols, 0, dtype);
    fail_each(f, what, run);
    free(f->out.data);
}

static void run_products(fixture *f, const mercer_kernel *kernel)
{
    static const mercer_dtype types[][3] = {{MERCER_F32, MERCER_F32, MERCER_F32},
                                            {MERCER_F64, MERCER_F64, MERCER_F64},
                                            {MERCER_U8, MERCER_U8, MERCER_F32},
                                            {MERCER_F16, MERCER_F32, MERCER_F64}};
    f->kernel = *kernel;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            f->options.threads = threads;
            set_points(f, types[t][0], types[t][1], types[t][2]);
            with_output(f, "mercer_kernel_eval", call_eval, P, types[t][2]);
            with_output(f, "mercer_kernel_matmul", call_matmul, C, types[t][2]);
            with_output(f, "mercer_kernel_diagonal", call_diagonal, 1, types[t][2]);
            free_points(f);
        }
    }
}

static void test_products(void **state)
{
    const char *const specs[] = {"laplace:bandwidth=10", "ntk:depth=2,bias=0.1"};
    for (int b = 0; b < 2; b++) {
        fixture f = {.options = MERCER_INIT(mercer_context_options)};
        f.options.backend = b ? "reference" : "cpu";
        for (int i = 0; i < 2; i++) {
            mercer_kernel kernel;
            assert_succeeds(NULL, mercer_kernel_parse(&kernel, NULL, specs[i]));
            run_products(&f, &kernel);
        }
        mercer_kernel callback = {.id = MERCER_KERNEL_CALLBACK_DISTANCE, .callback = keep};
        run_products(&f, &callback);
    }
    (void)state;
}

static void test_small_calls(void **state)
{
    (void)state;
    fixture f = {.options = MERCER_INIT(mercer_context_options)};
    assert_succeeds(NULL, mercer_kernel_parse(&f.kernel, NULL, "laplace:bandwidth=10"));
    f.out = data_matrix(1, 200, 0, MERCER_U8);
    fail_each(&f, "mercer_kernel_parse", call_parse);
    fail_each(&f, "mercer_kernel_print", call_print);
    fail_each(&f, "mercer_kernel_from_callback", call_from_callback);
    fail_each(&f, "mercer_context_query", call_query);
    free(f.out.data);
}

static void test_context_create(void **state)
{
    (void)state;
    for (int b = 0; b < 2; b++) {
        for (int n = 1;; n++) {
            assert_true(n < MOST_ALLOCATIONS);
            test_allocator counter = {.fail_at = n};
            mercer_context_options options = MERCER_INIT(mercer_context_options);
            options.backend = b ? "reference" : "cpu";
            options.allocator = test_allocator_table(&counter);
            mercer_context *context = (mercer_context *)&counter;
            mercer_status status = mercer_context_create(&context, &options);
            if (status == MERCER_OK) {
                mercer_context_free(context);
                assert_int_equal(counter.live, 0);
                assert_true(n > 1);
                break;
            }
            assert_int_equal(status, MERCER_ERROR_MEMORY);
            assert_null(context);
            assert_int_equal(counter.live, 0);
            assert_non_null(strstr(mercer_last_error(NULL), "memory"));
        }
    }
}

/* Check that a context whose scratch memory cannot grow further still serves calls that fit in it. */
static void test_growth_fails(void **state)
{
    (void)state;
    fixture f = {.options = MERCER_INIT(mercer_context_options)};
    assert_succeeds(NULL, mercer_kernel_parse(&f.kernel, NULL, "gaussian:bandwidth=3"));
    f.options.threads = 2;
    open_context(&f);
    set_points(&f, MERCER_F32, MERCER_F32, MERCER_F32);
    f.out = data_matrix(M, C, 0, MERCER_F32);
    assert_succeeds(f.context, call_matmul(&f));
    float *first = malloc(out_bytes(&f));
    memcpy(first, f.out.data, out_bytes(&f));
    mercer_matrix wide = data_matrix(M, 4000, 0, MERCER_F32), centers = data_matrix(P, 4000, 0, MERCER_F32);
    f.counter.fail_at = f.counter.requests + 1, f.counter.fail_after = true;
    assert_fails(f.context, mercer_kernel_matmul(f.context, &f.out, &f.kernel, &wide, &centers, &f.W),
                 MERCER_ERROR_MEMORY, "");
    assert_memory_equal(first, f.out.data, out_bytes(&f));
    f.counter.fail_at = 0;
    assert_succeeds(f.context, call_matmul(&f));
    assert_memory_equal(first, f.out.data, out_bytes(&f));
    free(first), free(wide.data), free(centers.data), free(f.out.data);
    free_points(&f);
    close_context(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context_create),
        cmocka_unit_test(test_small_calls),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_growth_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

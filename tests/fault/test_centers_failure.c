/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the n-th allocation fail, n = 1, 2, ... until the call succeeds. Choosing centers by every method, nearest rows
 * and the median distance must return MERCER_ERROR_MEMORY, write no output, leak nothing, and then succeed in the same
 * context.
 */
#include "support/check.h"

#include "support/allocator.h"
#include "support/data.h"

#include "kernels/formulas.h"

enum { N = 300, D = 8, P = 20, MOST_ALLOCATIONS = 200 };

typedef struct fixture {
    test_allocator counter;
    mercer_context *context;
    mercer_kernel kernel;
    mercer_center_options options;
    mercer_matrix X, Z, out; /* out: (N, D) f64, large enough for every result */
    mercer_dataset *digits;
    int32_t labels[N];
} fixture;

typedef mercer_status (*call)(fixture *f);

static mercer_status call_choose(fixture *f)
{
    mercer_matrix Z = mrc_rows(&f->out, 0, P);
    return mercer_choose_centers(f->context, &Z, &f->X, &f->options, NULL);
}

static mercer_status call_choose_from(fixture *f)
{
    mercer_matrix Z = mrc_view(f->out.data, P, 784, MERCER_U8);
    f->options.labels = NULL;
    return mercer_choose_centers_from(f->digits, &Z, NULL, &f->options, NULL);
}

static mercer_status call_nearest(fixture *f)
{
    return mercer_nearest_rows(f->context, f->out.data, NULL, NULL, &f->X, &f->Z);
}

static mercer_status call_median(fixture *f)
{
    return mercer_median_distance(f->context, f->out.data, NULL, &f->X, 1);
}

static void open_context(fixture *f)
{
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    f->counter = (test_allocator){0};
    options.threads = 2;
    options.allocator = test_allocator_table(&f->counter);
    assert_succeeds(NULL, mercer_context_create(&f->context, &options));
    assert_succeeds(f->context, mercer_dataset_synthesize(&f->digits, f->context, "digits", 0, 60, 1));
}

static void close_context(fixture *f)
{
    mercer_dataset_free(f->digits);
    mercer_context_free(f->context);
    assert_that(f->counter.live == 0, "%lld blocks are left", (long long)f->counter.live);
    assert_int_equal(f->counter.misused, 0);
}

static void fail_each(fixture *f, const char *what, call run)
{
    size_t bytes = N * D * sizeof(double);
    for (int n = 1, done = 0; !done; n++) {
        assert_that(n < MOST_ALLOCATIONS, "%s never succeeds", what);
        open_context(f);
        memset(f->out.data, 0x3c, bytes);
        f->counter.fail_at = f->counter.requests + n;
        mercer_status status = run(f);
        done = status == MERCER_OK;
        if (!done) {
            assert_that(status == MERCER_ERROR_MEMORY, "%s, allocation %d: %s", what, n, mercer_status_string(status));
            for (size_t i = 0; i < bytes; i++)
                assert_that(((char *)f->out.data)[i] == 0x3c, "%s, allocation %d: byte %d was written", what, n,
                            (int)i);
            f->counter.fail_at = 0;
            assert_succeeds(f->context, run(f));
        }
        close_context(f);
    }
}

static void test_every_call(void **state)
{
    (void)state;
    static const char *const methods[] = {"random", "kmeans", "rpcholesky", "balanced"};
    static const mercer_dtype types[] = {MERCER_F32, MERCER_U8};
    for (int t = 0; t < 2; t++) {
        fixture f = {.kernel = {.id = MRC_KERNEL_LAPLACE, .bandwidth = 20}};
        f.X = data_matrix(N, D, 0, types[t]), f.Z = data_matrix(P, D, 0, types[t]);
        f.out = data_matrix(N, D, 0, MERCER_F64);
        data_fill_uniform(&f.X, (mrc_rng){3, 1}, 0, 200);
        data_fill_uniform(&f.Z, (mrc_rng){3, 2}, 0, 200);
        for (int64_t batch = 0; batch <= 50; batch += 50)
            for (int m = 0; m < 4; m++) {
                f.options = (mercer_center_options)MERCER_INIT(mercer_center_options);
                f.options.method = methods[m], f.options.kernel = &f.kernel, f.options.labels = f.labels;
                if (strcmp(f.options.method, "kmeans") == 0) f.options.batch = batch, f.options.iterations = 2;
                fail_each(&f, methods[m], call_choose);
                fail_each(&f, methods[m], call_choose_from);
            }
        fail_each(&f, "mercer_nearest_rows", call_nearest);
        fail_each(&f, "mercer_median_distance", call_median);
        free(f.X.data), free(f.Z.data), free(f.out.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

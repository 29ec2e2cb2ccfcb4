/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staging batches to a device, on every backend: staged data arrive complete and stay valid until the second next call,
 * and computations with a batch see neither the previous batch nor the next one. Small operands that are sent without
 * waiting arrive in order.
 */
#include "support/backends.h"
#include "support/data.h"

#include <cmocka.h>

static const mercer_dtype types[] = {MERCER_F32, MERCER_F64, MERCER_F16, MERCER_U8};

static mercer_matrix own_matrix(mrc_backend *backend, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    mercer_matrix out = mrc_view(NULL, rows, cols, dtype);
    out.memory = mrc_backend_memory(backend);
    assert_succeeds(backend->context,
                    backend->ops->alloc(backend, &out.data, rows * cols * mrc_dtype_size(dtype), "a test"));
    assert_succeeds(backend->context, backend->ops->clear(backend, &out));
    return out;
}

static void fill(const mercer_matrix *a, int64_t with)
{
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) data_store(a, i, j, (double)((i * 31 + j * 7 + with * 13) % 100));
}

static void assert_content(mrc_backend *backend, const mercer_matrix *staged, int64_t with)
{
    mercer_matrix back = data_matrix(staged->rows, staged->cols, 0, staged->dtype);
    assert_succeeds(backend->context, backend->ops->copy(backend, &back, staged));
    for (int64_t i = 0; i < back.rows; i++)
        for (int64_t j = 0; j < back.cols; j++)
            assert_that(mrc_load(&back, i, j) == (double)((i * 31 + j * 7 + with * 13) % 100),
                        "%lld x %lld, element %lld, %lld is %g", (long long)back.rows, (long long)back.cols,
                        (long long)i, (long long)j, mrc_load(&back, i, j));
    free(back.data);
}

/* Two staged batches are valid at a time, of any type, size and leading dimension; sizes grow and shrink. */
static void stage_all(mrc_backend *backend)
{
    static const int64_t shapes[][3] = {{1, 1, 0},      {300, 17, 22}, {2, 100000, 0},
                                        {5000, 900, 0}, {40, 3, 4},    {0, 5, 0}};
    mercer_matrix before = {0}, host_before = {0};
    int64_t number = 0;
    for (int t = 0; t < 4; t++)
        for (int s = 0; s < 6; s++, number++) {
            mercer_matrix host = data_matrix(shapes[s][0], shapes[s][1], shapes[s][2], types[t]), staged;
            fill(&host, number);
            assert_succeeds(backend->context, backend->ops->stage(backend, &host, &staged));
            assert_true(staged.rows == host.rows && staged.cols == host.cols && staged.dtype == host.dtype);
            assert_true(staged.rows == 0 || staged.memory == mrc_backend_memory(backend));
            if (staged.data != host.data && host.rows > 0) fill(&host, 99); /* the caller may reuse its memory */
            assert_content(backend, &staged, number);
            if (number > 0 && before.rows > 0 && host.rows > 0) assert_content(backend, &before, number - 1);
            mercer_matrix again;
            if (staged.memory != MRC_HOST) { /* data in the backend's memory are not copied */
                assert_succeeds(backend->context, backend->ops->stage(backend, &staged, &again));
                assert_ptr_equal(again.data, staged.data);
            }
            free(host_before.data);
            before = staged, host_before = host;
        }
    free(host_before.data);
}

static void test_content(void **state)
{
    (void)state;
    for_each_backend(stage_all);
}

/* Sums over many batches, each staged while the work on the previous ones is only queued. Integers: the sum is
   exact. */
static void sum_batches(mrc_backend *backend)
{
    enum { ROWS = 400, COLS = 3000, BATCHES = SANITIZED ? 8 : 60 };
    mercer_matrix host = data_matrix(ROWS, COLS, 0, MERCER_F32), sum = own_matrix(backend, ROWS, COLS, MERCER_F32),
                  sums = data_matrix(ROWS, COLS, 0, MERCER_F32), staged;
    for (int64_t batch = 0; batch < BATCHES; batch++) {
        fill(&host, batch);
        assert_succeeds(backend->context, backend->ops->stage(backend, &host, &staged));
        for (int again = 0; again < 3; again++)
            assert_succeeds(backend->context, backend->ops->axpby(backend, 1, &staged, 1, &sum));
    }
    assert_succeeds(backend->context, backend->ops->copy(backend, &sums, &sum));
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++) {
            double right = 0;
            for (int64_t batch = 0; batch < BATCHES; batch++)
                right += 3 * (double)((i * 31 + j * 7 + batch * 13) % 100);
            assert_that(mrc_load(&sums, i, j) == right, "element %lld, %lld is %g, not %g", (long long)i, (long long)j,
                        mrc_load(&sums, i, j), right);
        }
    backend->ops->free(backend, sum.data);
    free(host.data), free(sums.data);
}

static void test_overlap(void **state)
{
    (void)state;
    for_each_backend(sum_batches);
}

/* Many small operands from the same host memory, which changes after every call. */
static void send_small(mrc_backend *backend)
{
    enum { ROWS = 3000, STEPS = SANITIZED ? 50 : 500 };
    mercer_matrix x = data_matrix(ROWS, 2, 0, MERCER_F64), table = own_matrix(backend, ROWS, 2, MERCER_F64),
                  picked = own_matrix(backend, ROWS, 2, MERCER_F64), total = own_matrix(backend, ROWS, 2, MERCER_F64);
    int64_t rows[ROWS];
    double factors[ROWS];
    fill(&x, 1);
    assert_succeeds(backend->context, backend->ops->copy(backend, &table, &x));
    for (int64_t step = 0; step < STEPS; step++) {
        for (int64_t i = 0; i < ROWS; i++) rows[i] = (i + step) % ROWS, factors[i] = (double)(1 << (i + step) % 3);
        assert_succeeds(backend->context, backend->ops->gather_rows(backend, &picked, &table, rows));
        memset(rows, 0, sizeof rows);
        assert_succeeds(backend->context, backend->ops->scale_rows(backend, &picked, factors));
        memset(factors, 0, sizeof factors);
        assert_succeeds(backend->context, backend->ops->axpby(backend, 1, &picked, 1, &total));
    }
    assert_succeeds(backend->context, backend->ops->copy(backend, &x, &total));
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < 2; j++) {
            double right = 0;
            for (int64_t step = 0; step < STEPS; step++)
                right += (double)(((i + step) % ROWS * 31 + j * 7 + 13) % 100 * (1 << (i + step) % 3));
            assert_that(mrc_load(&x, i, j) == right, "row %lld is %g, not %g", (long long)i, mrc_load(&x, i, j), right);
        }
    backend->ops->free(backend, table.data);
    backend->ops->free(backend, picked.data);
    backend->ops->free(backend, total.data);
    free(x.data);
}

static void test_small_operands(void **state)
{
    (void)state;
    for_each_backend(send_small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_small_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

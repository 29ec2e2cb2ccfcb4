/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of every backend on rows and elements, against straightforward loops in long double. Moves are exact.
 * A result of a few operations in the dtype's precision has an error of at most 4 roundings of the sum of the
 * magnitudes of its terms; a sum of n terms returned as double is formed in double: n + 2 roundings of 2^-53.
 */
#include "core/numbers/half.h"
#include "support/backends.h"
#include "support/data.h"

static const mercer_dtype dtypes[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
static const int64_t shapes[][2] = {{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 33}, {33, 1}, {7, 13}, {65, 31}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static mercer_matrix filled(int64_t rows, int64_t cols, mercer_dtype dtype, uint64_t stream)
{
    mercer_matrix matrix = data_matrix(rows, cols, cols + 3, dtype);
    if (dtype == MERCER_U8)
        data_fill_uniform(&matrix, (mrc_rng){77, stream}, 0, 255);
    else
        data_fill_normal(&matrix, (mrc_rng){77, stream}, 0.5, 2);
    set_sentinels(&matrix);
    return matrix;
}

static double unit_of(mercer_dtype dtype)
{
    return dtype == MERCER_F32 ? 0x1p-24 : 0x1p-53;
}

static void check_close(double got, long double wanted, long double terms, double roundings, double unit,
                        const char *what)
{
    double bound = roundings * unit / (1 - roundings * unit) * (double)terms;
    assert_that(fabsl((long double)got - wanted) <= (long double)bound, "%s: %.17g, wanted %.17Lg, bound %g", what, got,
                wanted, bound);
}

static void copy_on(mrc_backend *backend)
{
    for (int s = 0; s < SHAPES; s++) {
        for (int from_type = 0; from_type < 4; from_type++) {
            for (int to_type = 0; to_type < 4; to_type++) {
                mercer_matrix from = filled(shapes[s][0], shapes[s][1], dtypes[from_type], 1);
                mercer_matrix to = data_matrix(shapes[s][0], shapes[s][1], shapes[s][1] + 1, dtypes[to_type]);
                set_sentinels(&to);
                mercer_status status = backend->ops->copy(backend, &to, &from);
                bool to_half = dtypes[to_type] == MERCER_F16 && dtypes[from_type] == MERCER_F32;
                if (to_type != from_type && to_type > 1 && !to_half) { /* to f32 and f64, and from f32 to f16 */
                    assert_int_equal(status, MERCER_ERROR_DTYPE);
                } else {
                    assert_succeeds(backend->context, status);
                    for (int64_t i = 0; i < to.rows; i++)
                        for (int64_t j = 0; j < to.cols; j++) {
                            double wanted = mrc_load(&from, i, j);
                            if (to_type == 1) wanted = (double)(float)wanted;
                            if (to_half) wanted = (double)mrc_half_to_float(mrc_half_from_float((float)wanted));
                            assert_true(mrc_load(&to, i, j) == wanted);
                        }
                }
                assert_true(sentinels_intact(&to) && sentinels_intact(&from));
                free(from.data), free(to.data);
            }
        }
    }
}

static void gather_on(mrc_backend *backend)
{
    const int64_t rows[] = {4, 0, 4, 9, 1};
    for (int t = 0; t < 4; t++) {
        for (int64_t count = 0; count <= 5; count++) {
            mercer_matrix from = filled(10, 7, dtypes[t], 2), to = filled(count, 7, dtypes[t], 3);
            assert_succeeds(backend->context, backend->ops->gather_rows(backend, &to, &from, rows));
            for (int64_t i = 0; i < count; i++)
                assert_memory_equal(mrc_row(&to, i), mrc_row(&from, rows[i]), 7 * (size_t)mrc_dtype_size(dtypes[t]));
            assert_true(sentinels_intact(&to));
            free(from.data), free(to.data);
        }
    }
}

/* Rows of f16 are converted to f32 or f64 exactly. There are more rows and columns than in a piece and a vector. */
static void gather_halves_on(mrc_backend *backend)
{
    enum { ROWS = 70, COLUMNS = 45 };
    int64_t rows[ROWS];
    for (int64_t i = 0; i < ROWS; i++) rows[i] = i * 7 % ROWS;
    for (int t = 0; t < 2; t++) {
        mercer_matrix from = filled(ROWS, COLUMNS, MERCER_F16, 2), to = filled(ROWS, COLUMNS, dtypes[t], 3);
        assert_succeeds(backend->context, backend->ops->gather_rows(backend, &to, &from, rows));
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t j = 0; j < COLUMNS; j++) assert_true(mrc_load(&to, i, j) == mrc_load(&from, rows[i], j));
        assert_true(sentinels_intact(&to));
        free(from.data), free(to.data);
    }
}

static void scatter_on(mrc_backend *backend)
{
    const int64_t rows[] = {6, 0, 9, 3};
    for (int t = 0; t < 4; t++) { /* each dtype as source and as destination */
        mercer_dtype to_type = dtypes[t % 2], from_type = dtypes[t / 2];
        mercer_matrix to = filled(10, 7, to_type, 4), old = filled(10, 7, to_type, 4),
                      from = filled(4, 7, from_type, 5);
        assert_succeeds(backend->context, backend->ops->scatter_add_rows(backend, &to, &from, rows, -0.3));
        for (int64_t i = 0; i < 10; i++) {
            int64_t source = -1;
            for (int64_t r = 0; r < 4; r++)
                if (rows[r] == i) source = r;
            for (int64_t j = 0; j < 7; j++) {
                long double before = mrc_load(&old, i, j), add = source < 0 ? 0 : -0.3L * mrc_load(&from, source, j);
                if (source < 0) /* other rows are bitwise unchanged */
                    assert_true(mrc_load(&to, i, j) == (double)before);
                else
                    check_close(mrc_load(&to, i, j), before + add, fabsl(before) + fabsl(add), 4, unit_of(to_type),
                                "scatter");
            }
        }
        assert_true(sentinels_intact(&to));
        free(to.data), free(old.data), free(from.data);
    }
}

static void axpby_on(mrc_backend *backend)
{
    const double factors[][2] = {{1, 0}, {0.3, 1}, {0, -2}, {-1.7, 0.1}, {0, 0}};
    for (int s = 0; s < SHAPES; s++) {
        for (int f = 0; f < 10; f++) {
            double a = factors[f / 2][0], b = factors[f / 2][1];
            mercer_matrix x = filled(shapes[s][0], shapes[s][1], dtypes[f % 2], 6);
            mercer_matrix y = filled(x.rows, x.cols, dtypes[f % 2], 7), old = filled(x.rows, x.cols, dtypes[f % 2], 7);
            for (int64_t i = 0; i < y.rows && b == 0; i++)
                for (int64_t j = 0; j < y.cols; j++) mrc_store(&y, i, j, NAN); /* must not be read */
            assert_succeeds(backend->context, backend->ops->axpby(backend, a, &x, b, &y));
            for (int64_t i = 0; i < y.rows; i++)
                for (int64_t j = 0; j < y.cols; j++) {
                    long double ax = (long double)a * mrc_load(&x, i, j), by = (long double)b * mrc_load(&old, i, j);
                    check_close(mrc_load(&y, i, j), ax + by, fabsl(ax) + fabsl(by), 4, unit_of(y.dtype), "axpby");
                }
            assert_true(sentinels_intact(&y));
            free(x.data), free(y.data), free(old.data);
        }
    }
}

static void scale_on(mrc_backend *backend)
{
    double factors[65];
    for (int i = 0; i < 65; i++) factors[i] = i == 3 ? 0 : mrc_random_normal((mrc_rng){77, 8}, (uint64_t)i);
    for (int s = 0; s < 2 * SHAPES; s++) {
        mercer_dtype dtype = dtypes[s % 2];
        mercer_matrix x = filled(shapes[s / 2][0], shapes[s / 2][1], dtype, 9), old = filled(x.rows, x.cols, dtype, 9);
        assert_succeeds(backend->context, backend->ops->scale_rows(backend, &x, factors));
        for (int64_t i = 0; i < x.rows; i++)
            for (int64_t j = 0; j < x.cols; j++) {
                long double wanted = (long double)factors[i] * mrc_load(&old, i, j);
                check_close(mrc_load(&x, i, j), wanted, fabsl(wanted), 2, unit_of(dtype), "scale_rows");
                mrc_store(&old, i, j, mrc_load(&x, i, j));
            }
        assert_succeeds(backend->context, backend->ops->scale_columns(backend, &x, factors));
        for (int64_t i = 0; i < x.rows; i++)
            for (int64_t j = 0; j < x.cols; j++) {
                long double wanted = (long double)factors[j] * mrc_load(&old, i, j);
                check_close(mrc_load(&x, i, j), wanted, fabsl(wanted), 2, unit_of(dtype), "scale_columns");
            }
        assert_true(sentinels_intact(&x));
        free(x.data), free(old.data);
    }
}

static void add_columns_on(mrc_backend *backend)
{
    double factors[65];
    for (int i = 0; i < 65; i++) factors[i] = i == 3 ? 0 : mrc_random_normal((mrc_rng){77, 10}, (uint64_t)i);
    for (int s = 0; s < 2 * SHAPES; s++) {
        mercer_dtype dtype = dtypes[s % 2];
        mercer_matrix x = filled(shapes[s / 2][0], shapes[s / 2][1], dtype, 11), y = filled(x.rows, x.cols, dtype, 12),
                      old = filled(x.rows, x.cols, dtype, 12);
        assert_succeeds(backend->context, backend->ops->add_columns(backend, &x, factors, &y));
        for (int64_t i = 0; i < y.rows; i++)
            for (int64_t j = 0; j < y.cols; j++) {
                long double term = (long double)factors[j] * mrc_load(&x, i, j), before = mrc_load(&old, i, j);
                check_close(mrc_load(&y, i, j), before + term, fabsl(before) + fabsl(term), 2, unit_of(dtype),
                            "add_columns");
            }
        assert_true(sentinels_intact(&y));
        free(x.data), free(y.data), free(old.data);
    }
}

/* An error of at most 2^-11 of an element, exactly 11 bits, ties to even; tiny, huge and non-finite values. */
static void round_half_on(mrc_backend *backend)
{
    static const float given[] = {
        1 + 0x1p-11f, 1 + 0x1p-10f, 1 + 3 * 0x1p-11f, -1 - 0x1.8p-11f, 0x1.ffffp-100f, 0x1.ffffp100f, 0,
        INFINITY,     NAN,          0x1.fffffep127f};
    static const float wanted[] = {1, 1 + 0x1p-10f, 1 + 0x1p-9f, -1 - 0x1p-10f, 0x1p-99f, 0x1p101f,
                                   0, INFINITY,     NAN,         INFINITY};
    enum { COUNT = sizeof given / sizeof *given };
    mercer_matrix x = filled(7, 33, MERCER_F32, 13), old = filled(7, 33, MERCER_F32, 13);
    for (int j = 0; j < COUNT; j++) mrc_store(&x, 2, j, (double)given[j]);
    assert_succeeds(backend->context, backend->ops->round_half(backend, &x));
    for (int j = 0; j < COUNT; j++) {
        double value = mrc_load(&x, 2, j);
        assert_true(value == (double)wanted[j] || (isnan(value) && isnan(wanted[j])));
    }
    for (int64_t i = 0; i < x.rows; i++)
        for (int64_t j = 0; j < x.cols; j++) {
            int exponent;
            double value = mrc_load(&x, i, j), scaled = ldexp(frexp(value, &exponent), 11);
            if (i == 2 && j < COUNT) continue;
            assert_true(scaled == floor(scaled) && fabs(value - mrc_load(&old, i, j)) <= 0x1p-11 * fabs(value));
        }
    assert_true(sentinels_intact(&x));
    free(x.data), free(old.data);
}

static void symmetrize_on(mrc_backend *backend)
{
    mercer_matrix a = filled(33, 33, MERCER_F64, 21), old = filled(33, 33, MERCER_F64, 21);
    assert_succeeds(backend->context, backend->ops->symmetrize(backend, &a));
    for (int64_t i = 0; i < 33; i++)
        for (int64_t j = 0; j < 33; j++)
            assert_true(mrc_load(&a, i, j) == (mrc_load(&old, i, j) + mrc_load(&old, j, i)) / 2);
    assert_true(sentinels_intact(&a));
    free(a.data), free(old.data);
}

static void column_sums_on(mrc_backend *backend)
{
    for (int s = 0; s < SHAPES; s++) {
        for (int t = 0; t < 4; t++) {
            mercer_matrix x = filled(shapes[s][0], shapes[s][1], dtypes[t], 10),
                          y = filled(x.rows, x.cols, dtypes[t], 11);
            double dots[40], means[40];
            for (int j = 0; j < 40; j++) dots[j] = means[j] = -77;
            if (t < 2) assert_succeeds(backend->context, backend->ops->column_dots(backend, &x, &y, dots));
            assert_succeeds(backend->context, backend->ops->column_mean(backend, &x, means));
            for (int64_t j = 0; j < x.cols; j++) {
                long double dot = 0, size = 0, sum = 0, all = 0, m = x.rows > 0 ? (long double)x.rows : 1;
                for (int64_t i = 0; i < x.rows; i++) {
                    long double term = (long double)mrc_load(&x, i, j) * mrc_load(&y, i, j);
                    dot += term, size += fabsl(term);
                    sum += mrc_load(&x, i, j), all += fabsl((long double)mrc_load(&x, i, j));
                }
                if (t < 2) check_close(dots[j], dot, size, (double)x.rows + 2, 0x1p-53, "column_dots");
                check_close(means[j], sum / m, all / m, (double)x.rows + 2, 0x1p-53, "column_mean");
            }
            assert_true(dots[x.cols] == -77 && means[x.cols] == -77);
            free(x.data), free(y.data);
        }
    }
}

static void row_sqnorms_on(mrc_backend *backend)
{
    for (int s = 0; s < SHAPES; s++) {
        for (int t = 0; t < 4; t++) {
            mercer_matrix x = filled(shapes[s][0], shapes[s][1], dtypes[t], 12);
            double norms[70];
            norms[x.rows] = -77;
            assert_succeeds(backend->context, backend->ops->row_sqnorms(backend, &x, norms));
            for (int64_t i = 0; i < x.rows; i++) {
                long double sum = 0;
                for (int64_t j = 0; j < x.cols; j++) sum += (long double)mrc_load(&x, i, j) * mrc_load(&x, i, j);
                check_close(norms[i], sum, sum, (double)x.cols + 2, 0x1p-53, "row_sqnorms");
            }
            assert_true(norms[x.rows] == -77);
            free(x.data);
        }
    }
}

static void memory_on(mrc_backend *backend)
{
    int64_t before = backend->context->bytes_now;
    void *memory = NULL;
    assert_succeeds(backend->context, backend->ops->alloc(backend, &memory, 1000, "a test"));
    assert_non_null(memory);
    assert_true(backend->context->bytes_now >= before + 1000);
    mercer_matrix view = mrc_view(memory, 10, 100, MERCER_U8), host;
    view.memory = mrc_backend_memory(backend);
    assert_succeeds(backend->context, backend->ops->clear(backend, &view));
    assert_succeeds(backend->context, backend->ops->sync(backend));
    assert_succeeds(backend->context, mrc_host_open(backend, &view, &host));
    for (int i = 0; i < 1000; i++) assert_int_equal(((unsigned char *)host.data)[i], 0);
    memset(host.data, 1, 1000);
    assert_succeeds(backend->context, mrc_host_close(backend, &view, &host, true, MERCER_OK));
    assert_succeeds(backend->context, mrc_host_open(backend, &view, &host));
    for (int i = 0; i < 1000; i++) assert_int_equal(((unsigned char *)host.data)[i], 1);
    assert_succeeds(backend->context, mrc_host_close(backend, &view, &host, false, MERCER_OK));
    backend->ops->free(backend, memory);
    assert_int_equal(backend->context->bytes_now, before);
    mrc_capabilities can = backend->ops->capabilities(backend, false);
    assert_non_null(can.isa);
    assert_true(can.memory == MRC_HOST || can.memory == MRC_CUDA);
    assert_true(backend->ops->free_memory(backend) > 0);
    assert_int_equal(can.point_dtypes & MRC_ACCEPT_REAL, MRC_ACCEPT_REAL);
}

/* A table with only the required operations is completed; an operation that the table has is not replaced. */
static void test_defaults_complete_a_table(void **state)
{
    (void)state;
    for (int b = 0; mrc_backend_registry[b]; b++) {
        mrc_backend_ops ops = *mrc_backend_registry[b];
        mrc_backend_fill_defaults(&ops);
        assert_true(ops.kernel_eval && ops.kernel_diagonal && ops.row_sqnorms && ops.column_mean && ops.eigen_top);
        assert_true(ops.cholesky && ops.triangular_solve && ops.gather_rows && ops.scatter_add_rows && ops.axpby);
        assert_true(ops.scale_rows && ops.scale_columns && ops.column_dots && ops.symmetrize && ops.clear);
        assert_true(ops.add_columns && ops.round_half && ops.split_gemm);
        if (mrc_backend_registry[b]->axpby) assert_true(ops.axpby == mrc_backend_registry[b]->axpby);
    }
}

static void test_value_dtype(void **state)
{
    (void)state;
    mercer_matrix f64 = mrc_view(NULL, 0, 0, MERCER_F64), f32 = mrc_view(NULL, 0, 0, MERCER_F32);
    mercer_matrix f16 = mrc_view(NULL, 0, 0, MERCER_F16), u8 = mrc_view(NULL, 0, 0, MERCER_U8);
    assert_int_equal(mrc_value_dtype(&f32, &f16, &f32, NULL), MERCER_F32);
    assert_int_equal(mrc_value_dtype(&u8, &u8, NULL, NULL), MERCER_F32);
    assert_int_equal(mrc_value_dtype(&f64, &f16, NULL, NULL), MERCER_F64);
    assert_int_equal(mrc_value_dtype(&u8, &u8, NULL, &f64), MERCER_F64);
}

#define ON_EVERY_BACKEND(name)            \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        for_each_backend(name##_on);      \
    }
ON_EVERY_BACKEND(copy)
ON_EVERY_BACKEND(gather_halves)
ON_EVERY_BACKEND(gather)
ON_EVERY_BACKEND(scatter)
ON_EVERY_BACKEND(axpby)
ON_EVERY_BACKEND(scale)
ON_EVERY_BACKEND(add_columns)
ON_EVERY_BACKEND(round_half)
ON_EVERY_BACKEND(symmetrize)
ON_EVERY_BACKEND(column_sums)
ON_EVERY_BACKEND(row_sqnorms)
ON_EVERY_BACKEND(memory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_gather_halves),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_axpby),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_add_columns),
        cmocka_unit_test(test_round_half),
        cmocka_unit_test(test_symmetrize),
        cmocka_unit_test(test_column_sums),
        cmocka_unit_test(test_row_sqnorms),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_defaults_complete_a_table),
        cmocka_unit_test(test_value_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of a stored matrix on every backend: products with them, forward and transposed, kernel values written to them,
 * and moves.
 *
 * A product is a sum of k terms in the precision of the factor: its error is at most k + 2 of its roundings of the sum
 * of the magnitudes of the terms. Float sums run in chains of at most 1024 on the CPU; the bound allows for one. Moves
 * are exact.
 */
#include "core/numbers/half.h"
#include "support/backends.h"
#include "support/data.h"

/* Numbers of rows and columns below and above the sizes of vectors, chunks, pieces and chains; more outputs than a
   group has. */
static const int64_t shapes[][3] = {{1, 1, 1},    {3, 17, 2},     {33, 31, 10}, {5, 513, 12}, {70, 640, 13},
                                    {600, 45, 3}, {34, 1040, 26}, {0, 9, 2},    {4, 9, 0}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static mercer_matrix filled(int64_t rows, int64_t cols, mercer_dtype dtype, uint64_t stream)
{
    mercer_matrix matrix = data_matrix(rows, cols, cols + 3, dtype);
    data_fill_normal(&matrix, (mrc_rng){78, stream}, 0.1, 1);
    set_sentinels(&matrix);
    return matrix;
}

static void check_product(const mercer_matrix *k, const int64_t *rows, int64_t m, bool transpose,
                          const mercer_matrix *w, const mercer_matrix *y)
{
    double unit = w->dtype == MERCER_F32 ? 0x1p-24 : 0x1p-53;
    int64_t depth = transpose ? m : k->cols;
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++) {
            long double sum = 0, terms = 0;
            for (int64_t t = 0; t < depth; t++) {
                int64_t row = transpose ? t : i, column = transpose ? i : t;
                long double term = (long double)mrc_load(k, rows ? rows[row] : row, column) * mrc_load(w, t, j);
                sum += term, terms += fabsl(term);
            }
            double bound = (double)(depth + 2) * unit * (double)terms;
            assert_that(fabsl(mrc_load(y, i, j) - sum) <= (long double)bound, "(%lld, %lld): %.9g, wanted %.9Lg",
                        (long long)i, (long long)j, mrc_load(y, i, j), sum);
        }
}

static void products_on(mrc_backend *backend)
{
    const mercer_dtype types[][2] = {{MERCER_F16, MERCER_F32}, {MERCER_F32, MERCER_F32}, {MERCER_F64, MERCER_F64}};
    for (int s = 0; s < SHAPES; s++)
        for (int t = 0; t < 3; t++)
            for (int variant = 0; variant < 4; variant++) {
                bool transpose = variant % 2, listed = variant / 2;
                int64_t m = shapes[s][0], p = shapes[s][1], c = shapes[s][2], *rows = calloc((size_t)m + 1, 8);
                for (int64_t i = 0; i < m; i++) rows[i] = (i * 7 + 2) % (m + 3); /* rows may repeat: allowed here */
                mercer_matrix k = filled(m + 3, p, types[t][0], 1), scratch = filled(13, p, types[t][1], 2);
                mercer_matrix w = filled(transpose ? m : p, c, types[t][1], 3),
                              y = filled(transpose ? p : m, c, types[t][1], 4);
                mrc_stored stored = {.k = &k, .rows = listed ? rows : NULL, .count = m, .scratch = &scratch};
                assert_succeeds(backend->context, backend->ops->rows_product(backend, &stored, transpose, &w, &y));
                check_product(&k, stored.rows, m, transpose, &w, &y);
                assert_true(sentinels_intact(&y) && sentinels_intact(&k) && sentinels_intact(&w));
                free(k.data), free(scratch.data), free(w.data), free(y.data), free(rows);
            }
}

/* Forward, then transposed with the rows declared to be in the buffer already. */
static void again_on(mrc_backend *backend)
{
    enum { M = 9, WIDTH = 21, COLUMNS = 4 };
    int64_t rows[M];
    for (int64_t i = 0; i < M; i++) rows[i] = M - i;
    mercer_matrix k = filled(M + 1, WIDTH, MERCER_F16, 1), scratch = filled(M, WIDTH, MERCER_F32, 2);
    mercer_matrix w = filled(WIDTH, COLUMNS, MERCER_F32, 3), f = filled(M, COLUMNS, MERCER_F32, 4),
                  h = filled(WIDTH, COLUMNS, MERCER_F32, 5);
    mrc_stored stored = {.k = &k, .rows = rows, .count = M, .scratch = &scratch};
    assert_succeeds(backend->context, backend->ops->rows_product(backend, &stored, false, &w, &f));
    stored.same_rows = true;
    assert_succeeds(backend->context, backend->ops->rows_product(backend, &stored, true, &f, &h));
    check_product(&k, rows, M, true, &f, &h);
    free(k.data), free(scratch.data), free(w.data), free(f.data), free(h.data);
}

static void scatter_on(mrc_backend *backend)
{
    enum { ROWS = 70, COLUMNS = 45 };
    int64_t rows[ROWS];
    for (int64_t i = 0; i < ROWS; i++) rows[i] = i * 11 % (ROWS + 3); /* distinct: 73 is prime */
    const mercer_dtype types[][2] = {{MERCER_F32, MERCER_F16}, {MERCER_F32, MERCER_F32}, {MERCER_F32, MERCER_F64}};
    for (int t = 0; t < 3; t++) {
        mercer_matrix from = filled(ROWS, COLUMNS, types[t][0], 1), to = filled(ROWS + 3, COLUMNS, types[t][1], 2),
                      old = filled(ROWS + 3, COLUMNS, types[t][1], 2);
        assert_succeeds(backend->context, backend->ops->scatter_rows(backend, &to, &from, rows));
        for (int64_t i = 0; i < ROWS + 3; i++) {
            int64_t source = -1;
            for (int64_t r = 0; r < ROWS; r++)
                if (rows[r] == i) source = r;
            for (int64_t j = 0; j < COLUMNS; j++) {
                double wanted = source < 0 ? mrc_load(&old, i, j) : mrc_load(&from, source, j);
                if (t == 0 && source >= 0) wanted = (double)mrc_half_to_float(mrc_half_from_float((float)wanted));
                assert_true(mrc_load(&to, i, j) == wanted);
            }
        }
        assert_true(sentinels_intact(&to));
        free(from.data), free(to.data), free(old.data);
    }
}

/* Checks that row i of plain, rounded to the type of k, is row rows[i] of k. */
static void check_rows(const mercer_matrix *plain, const mrc_stored *stored)
{
    for (int64_t i = 0; i < plain->rows; i++)
        for (int64_t j = 0; j < plain->cols; j++) {
            double wanted = mrc_load(plain, i, j), got = mrc_load(stored->k, stored->rows ? stored->rows[i] : i, j);
            if (stored->k->dtype == MERCER_F16) wanted = (double)mrc_half_to_float(mrc_half_from_float((float)wanted));
            assert_true(got == wanted);
        }
}

/* Kernel values in stored rows are those of kernel_eval; the product with them equals plain sums. */
static void kernel_rows_on(mrc_backend *backend)
{
    enum { WIDTH = 300, FEATURES = 6, COLUMNS = 3 };
    const int64_t heights[] = {1, 3, 40, 600};
    const double origin[FEATURES] = {0};
    mercer_kernel kernel;
    assert_succeeds(backend->context, mercer_kernel_parse(&kernel, backend->context, "laplace:bandwidth=3"));
    for (int h = 0; h < 4; h++)
        for (int t = 0; t < 3; t++) {
            int64_t m = heights[h], *rows = calloc((size_t)m, 8);
            mercer_dtype real = t == 2 ? MERCER_F64 : MERCER_F32, type = t == 0 ? MERCER_F16 : real;
            for (int64_t i = 0; i < m; i++) rows[i] = m - i;
            mercer_matrix x = filled(m, FEATURES, real, 1), z = filled(WIDTH, FEATURES, real, 2);
            mercer_matrix k = filled(m + 1, WIDTH, type, 3), scratch = filled(50, WIDTH, real, 4);
            mercer_matrix plain = filled(m, WIDTH, real, 5), w = filled(WIDTH, COLUMNS, real, 6),
                          y = filled(m, COLUMNS, real, 7);
            mrc_pair pair = {.kernel = &kernel, .x = &x, .z = &z, .origin = origin};
            mrc_stored stored = {.k = &k, .rows = h % 2 ? rows : NULL, .count = m, .scratch = &scratch};
            assert_succeeds(backend->context, backend->ops->kernel_eval(backend, &pair, &plain));
            assert_succeeds(backend->context, backend->ops->kernel_rows(backend, &pair, NULL, NULL, &stored));
            check_rows(&plain, &stored);
            for (int64_t i = 0; i <= m; i++) memset(mrc_row(&k, i), 0, (size_t)(WIDTH * mrc_dtype_size(type)));
            assert_succeeds(backend->context, backend->ops->kernel_rows(backend, &pair, &w, &y, &stored));
            check_rows(&plain, &stored);
            check_product(&plain, NULL, m, false, &w, &y);
            mercer_matrix twice = filled(m, COLUMNS, real, 7);
            for (int64_t i = 0; i < m; i++)
                memcpy(mrc_row(&twice, i), mrc_row(&y, i), COLUMNS * (size_t)mrc_dtype_size(real));
            stored.add = true;
            assert_succeeds(backend->context, backend->ops->kernel_rows(backend, &pair, &w, &twice, &stored));
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < COLUMNS; j++)
                    assert_true(fabs(mrc_load(&twice, i, j) - 2 * mrc_load(&y, i, j)) <=
                                (real == MERCER_F32 ? 0x1p-23 : 0x1p-52) * fabs(mrc_load(&twice, i, j)));
            check_rows(&plain, &stored);
            free(twice.data);
            assert_true(sentinels_intact(&k) && sentinels_intact(&y));
            free(x.data), free(z.data), free(k.data), free(scratch.data), free(plain.data), free(w.data), free(y.data);
            free(rows);
        }
}

#define ON_EVERY_BACKEND(name)            \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        for_each_backend(name##_on);      \
    }
ON_EVERY_BACKEND(products)
ON_EVERY_BACKEND(again)
ON_EVERY_BACKEND(scatter)
ON_EVERY_BACKEND(kernel_rows)

/* Products are bitwise independent of the instruction set and of the number of threads. */
static void test_same_bits(void **state)
{
    (void)state;
    enum { M = 130, WIDTH = 1111, COLUMNS = 14 };
    mercer_matrix k = filled(M, WIDTH, MERCER_F16, 1),
                  w[2] = {filled(WIDTH, COLUMNS, MERCER_F32, 3), filled(M, COLUMNS, MERCER_F32, 4)};
    mercer_matrix wanted[2] = {filled(M, COLUMNS, MERCER_F32, 5), filled(WIDTH, COLUMNS, MERCER_F32, 5)};
    bool first = true;
    for (int isa = 0; isa <= (int)mrc_isa_best(); isa++)
        for (int threads = 1; threads <= 3; threads++, first = false) {
            mercer_context context = {.threads = threads, .isa = (mrc_isa)isa};
            mrc_backend *backend;
            assert_succeeds(&context, mrc_backend_create(&backend, &context, "cpu"));
            for (int transpose = 0; transpose < 2; transpose++) {
                mercer_matrix y = filled(wanted[transpose].rows, COLUMNS, MERCER_F32, 6);
                mrc_stored stored = {.k = &k, .count = M};
                mercer_matrix *to = first ? &wanted[transpose] : &y;
                assert_succeeds(&context, backend->ops->rows_product(backend, &stored, transpose, &w[transpose], to));
                for (int64_t i = 0; i < y.rows && !first; i++)
                    assert_memory_equal(mrc_row(&y, i), mrc_row(&wanted[transpose], i), COLUMNS * sizeof(float));
                free(y.data);
            }
            mrc_backend_free(backend);
        }
    free(k.data), free(w[0].data), free(w[1].data), free(wanted[0].data), free(wanted[1].data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),    cmocka_unit_test(test_again),     cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_kernel_rows), cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

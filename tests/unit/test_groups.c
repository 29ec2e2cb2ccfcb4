/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Categories in products of the CPU backend: which features form groups, and that products with table look-ups give the
 * same bits as products without them, which are used for few rows of X. Also the origin of a model, which is 0 for
 * flags, on any number of ranks.
 */
#include "support/backends.h"
#include "support/data.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/tile.h"

enum { FEATURES = 66, ROWS = 130, CENTERS = 250, OUTPUTS = 2, FEW = 10 };

/* Widths of columns: two numbers, a category of 30 levels, a number, categories of 24 and 3 levels, six numbers. */
static const int widths[] = {1, 1, 30, 1, 24, 3, 1, 1, 1, 1, 1, 1};

static double size_of(int64_t k)
{
    return 0.5 + (double)(k % 7) / 3; /* arbitrary scale, as after a diagonal metric */
}

static mercer_matrix table(int64_t rows, uint64_t seed, mercer_dtype dtype)
{
    mercer_matrix x = data_matrix(rows, FEATURES, FEATURES + 1, dtype);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0, c = 0; k < FEATURES; k += widths[c++]) {
            double u = mrc_random_uniform((mrc_rng){seed, 1}, (uint64_t)(i * FEATURES + k));
            int64_t level = (int64_t)(u * (widths[c] + 0.5)); /* level == width: no level is set */
            if (widths[c] == 1)
                data_store(&x, i, k, 4 * u - 1);
            else if (level < widths[c])
                data_store(&x, i, k + level, size_of(k + level));
        }
    return x;
}

/* Return the depth that a product finds for these rows: elements of a packed row, 0 without groups. */
static int64_t depth_of(mrc_backend *backend, const char *spec, const mercer_matrix *x, const mercer_matrix *z)
{
    mercer_kernel kernel;
    mrc_product product;
    mercer_matrix w = data_matrix(z->rows, 1, 0, x->dtype), y = data_matrix(x->rows, 1, 0, x->dtype);
    assert_succeeds(backend->context, mrc_kernel_parse(backend->context, &kernel, spec));
    mrc_pair pair = {.kernel = &kernel, .x = x, .z = z};
    assert_succeeds(backend->context, mrc_product_init(&product, backend, &pair, &w, &y, NULL));
    int64_t bytes = mrc_groups_bytes(&product, 3);
    void *scratch = malloc((size_t)bytes + 1);
    assert_non_null(scratch);
    if (bytes > 0) mrc_groups_find(&product, 3, scratch);
    int64_t depth = product.grouped ? product.depth : 0;
    free(scratch), free(w.data), free(y.data);
    return depth;
}

static void test_found(void **state)
{
    (void)state;
    mercer_context context = {.threads = 2, .isa = MRC_ISA_SCALAR};
    mrc_backend *backend = NULL;
    assert_succeeds(&context, mrc_backend_create(&backend, &context, "cpu"));
    ((mrc_cpu *)backend->state)->uk.group_cost = 2; /* as in vector code, on any machine */
    mercer_matrix x = table(ROWS, 1, MERCER_F32), z = table(CENTERS, 2, MERCER_F32);
    const int64_t whole = 9 + 3 + 3; /* 9 numbers; values and feature indices of 3 groups */
    assert_int_equal(depth_of(backend, "laplace-l1:bandwidth=5", &x, &z), whole);
    assert_int_equal(depth_of(backend, "laplace:bandwidth=5", &x, &z), whole);
    assert_int_equal(depth_of(backend, "lpq:bandwidth=5,p=1.5,q=1", &x, &z), 0); /* lpq has no look-up code */
    assert_int_equal(depth_of(backend, "linear", &x, &z), 0);
    mercer_matrix some = mrc_rows(&x, 0, 20);
    assert_int_equal(depth_of(backend, "laplace-l1:bandwidth=5", &some, &z), 0); /* too few rows for look-ups */
    data_store(&x, 77, 5, 9); /* A level with a second value: sums of differences treat that feature as a number. */
    for (int64_t k = 2; k < 32; k++) data_store(&x, 77, k, k == 5 ? 9 : 0);
    assert_int_equal(depth_of(backend, "laplace:bandwidth=5", &x, &z), whole);
    /* The packed rows have a number and a group more: the group is split into 3 levels, the feature with two values,
       and 26 levels. */
    assert_int_equal(depth_of(backend, "laplace-l1:bandwidth=5", &x, &z), whole + 3);
    for (int64_t k = 2; k < 32; k++) /* a row with two levels: the second starts a new group */
        data_store(&z, 200, k, k == 5 || k == 20 ? 1 : 0);
    assert_int_equal(depth_of(backend, "laplace:bandwidth=5", &x, &z), whole + 2);
    free(x.data), free(z.data);
    mrc_backend_free(backend);
}

/* Compare K(X, Z) W computed at once with the product computed a few rows at a time. */
static void check_bits(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *x,
                       const mercer_matrix *z, const double *origin)
{
    mercer_matrix w = data_matrix(z->rows, OUTPUTS, 0, x->dtype), once = data_matrix(x->rows, OUTPUTS, 0, x->dtype),
                  pieces = data_matrix(x->rows, OUTPUTS, 0, x->dtype);
    data_fill_normal(&w, (mrc_rng){4, 4}, 0, 1);
    mrc_pair pair = {.kernel = kernel, .x = x, .z = z, .origin = origin};
    assert_succeeds(backend->context, backend->ops->kernel_matmul(backend, &pair, &w, &once, false));
    for (int64_t i = 0; i < x->rows; i += FEW) {
        mercer_matrix part = mrc_rows(x, i, FEW), y = mrc_rows(&pieces, i, FEW);
        pair.x = &part;
        assert_succeeds(backend->context, backend->ops->kernel_matmul(backend, &pair, &w, &y, false));
    }
    assert_memory_equal(once.data, pieces.data, (size_t)(x->rows * OUTPUTS * mrc_dtype_size(x->dtype)));
    free(w.data), free(once.data), free(pieces.data);
}

static void check_backend(mrc_backend *backend)
{
    const char *const specs[] = {"laplace:bandwidth=5", "laplace-l1:bandwidth=5", "gaussian:bandwidth=4"};
    if (strcmp(backend->ops->name, "cpu") != 0) return; /* other backends do not promise identical bits */
    for (int t = 0; t < 2; t++) {
        mercer_dtype dtype = t ? MERCER_F64 : MERCER_F32;
        mercer_matrix x = table(ROWS, 1, dtype), z = table(CENTERS, 2, dtype);
        double origin[FEATURES] = {0.5, 0.25};
        for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
            mercer_kernel kernel;
            assert_succeeds(backend->context, mrc_kernel_parse(backend->context, &kernel, specs[s]));
            check_bits(backend, &kernel, &x, &z, NULL);
            check_bits(backend, &kernel, &x, &z, origin);
            check_bits(backend, &kernel, &z, &x, origin);
        }
        free(x.data), free(z.data);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    for_each_backend(check_backend);
}

/* Columns: 0 or one value, which the later blocks of rows lack; 0 and several values; a constant; numbers; all
   zeros. */
static void test_origin(void **state)
{
    (void)state;
    enum { N = 40, D = 5 };
    mercer_matrix x = data_matrix(N, D, 0, MERCER_F32), sums = data_matrix(3, D, 0, MERCER_F64);
    double origin[D] = {1, 2, 3, 4, 5};
    for (int64_t i = 0; i < N; i++) {
        data_store(&x, i, 0, i < 3 ? 0.3 : 0);
        data_store(&x, i, 1, i % 2 ? 1 + (double)i : 0);
        data_store(&x, i, 2, 7);
        data_store(&x, i, 3, (double)i + 1);
    }
    for (int part = 0; part < 4; part++) {
        mercer_matrix rows = mrc_rows(&x, part * N / 4, N / 4);
        mrc_add_flags(2, &rows, &sums);
    }
    mrc_clear_flags(&sums, N, origin);
    const double wanted[D] = {0, 2, 3, 4, 0};
    for (int k = 0; k < D; k++) assert_true(origin[k] == wanted[k]);
    free(x.data), free(sums.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of the public API must not depend on other rows in the batch, threads, the instruction set, or the order of
 * centers. Also tests rows whose distances are difficult in floating point: coincident, almost coincident, far from the
 * origin, enormous.
 */
#include "support/check.h"

#include "conformance/budget.h"
#include "support/data.h"

enum {
    M = 70,
    P = 1000,
    D = 21,
    C = 5
}; /* P is more than one chunk of tiles, so that few rows are split over threads by centers */

typedef struct dataset {
    mercer_matrix X, Z, W;
} dataset;

static const mercer_dtype dtypes[] = {MERCER_F32, MERCER_F64, MERCER_U8, MERCER_F16};
static const char *const distance_specs[] = {"laplace:bandwidth=10",
                                             "gaussian:bandwidth=5",
                                             "matern32:bandwidth=8",
                                             "matern52:bandwidth=8",
                                             "exppower:bandwidth=10,gamma=0.7",
                                             "cauchy:bandwidth=10",
                                             "rational-quadratic:bandwidth=10,alpha=0.5",
                                             "laplace-l1:bandwidth=20",
                                             "exppower-l1:bandwidth=20,gamma=0.7",
                                             "lpq:p=1.5,q=0.8,bandwidth=12"};
enum { DTYPES = 4, DISTANCE_SPECS = 10 };

static mercer_context *open_context(int isa, int threads)
{
    mercer_context *context = NULL;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.isa = mrc_isa_name((mrc_isa)isa);
    options.threads = threads;
    assert_succeeds(NULL, mercer_context_create(&context, &options));
    return context;
}

static mercer_kernel parse(const char *spec)
{
    mercer_kernel kernel;
    assert_succeeds(NULL, mercer_kernel_parse(&kernel, NULL, spec));
    return kernel;
}

static mercer_dtype value_type(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
}

static dataset make_data(mercer_dtype dtype)
{
    dataset s = {data_matrix(M, D, 0, dtype), data_matrix(P, D, D + 3, dtype), data_matrix(P, C, 0, value_type(dtype))};
    double mean = dtype == MERCER_U8 ? 100 : 4;
    data_fill_normal(&s.X, (mrc_rng){41, 1}, mean, 2);
    data_fill_normal(&s.Z, (mrc_rng){41, 2}, mean, 2);
    data_fill_normal(&s.W, (mrc_rng){41, 3}, 0, 1);
    for (int64_t j = 0; j < P; j += 50) /* some centers are samples */
        for (int64_t k = 0; k < D; k++) data_store(&s.Z, j, k, mrc_load(&s.X, j % M, k));
    return s;
}

static void free_data(dataset *s)
{
    free(s->X.data), free(s->Z.data), free(s->W.data);
}

/* ---- The same bits ------------------------------------------------------------------------------------------- */

/* Compute rows first .. first + rows - 1 of the batch separately; the results must equal those of the whole batch. */
static void check_part(mercer_context *context, const mercer_kernel *kernel, const dataset *s, int64_t first,
                       int64_t rows, const mercer_matrix *K, const mercer_matrix *Y)
{
    mercer_matrix part = mrc_rows(&s->X, first, rows), k = data_matrix(rows, P, 0, K->dtype),
                  y = data_matrix(rows, C, 0, Y->dtype);
    assert_succeeds(context, mercer_kernel_eval(context, &k, kernel, &part, &s->Z));
    assert_succeeds(context, mercer_kernel_matmul(context, &y, kernel, &part, &s->Z, &s->W));
    int64_t size = mrc_dtype_size(K->dtype);
    assert_that(memcmp(k.data, mrc_row(K, first), (size_t)(rows * P * size)) == 0, "%s, %s: K of rows %d + %d",
                mrc_isa_name(context->isa), mrc_dtype_name(s->X.dtype), (int)first, (int)rows);
    assert_that(memcmp(y.data, mrc_row(Y, first), (size_t)(rows * C * size)) == 0, "%s, %s: Y of rows %d + %d",
                mrc_isa_name(context->isa), mrc_dtype_name(s->X.dtype), (int)first, (int)rows);
    free(k.data), free(y.data);
}

static void check_splits(const char *spec, mercer_dtype dtype)
{
    mercer_kernel kernel = parse(spec);
    dataset s = make_data(dtype);
    mercer_matrix K = data_matrix(M, P, 0, value_type(dtype)), Y = data_matrix(M, C, 0, value_type(dtype));
    mercer_context *first = open_context(MRC_ISA_SCALAR, 1); /* one thread, one batch, scalar code */
    assert_succeeds(first, mercer_kernel_eval(first, &K, &kernel, &s.X, &s.Z));
    assert_succeeds(first, mercer_kernel_matmul(first, &Y, &kernel, &s.X, &s.Z, &s.W));
    mercer_context_free(first);
    const int threads[] = {1, 2, 3, 8};
    for (int isa = 0; isa <= (int)mrc_isa_best(); isa++) {
        for (int t = 0; t < 4; t += SANITIZED ? 3 : 1) {
            mercer_context *context = open_context(isa, threads[t]);
            check_part(context, &kernel, &s, 0, M, &K, &Y);
            if (t < 2) {
                const int64_t cuts[] = {0, 1, 2, 5, 12, 28, 45, M};
                for (int c = 0; c < 7; c++) check_part(context, &kernel, &s, cuts[c], cuts[c + 1] - cuts[c], &K, &Y);
                check_part(context, &kernel, &s, M - 1, 1, &K, &Y);
            }
            mercer_context_free(context);
        }
    }
    free(K.data), free(Y.data);
    free_data(&s);
}

static void test_rows_do_not_depend_on_the_batch(void **state)
{
    (void)state;
    for (int t = 0; t < DTYPES; t++) {
        check_splits("laplace:bandwidth=10", dtypes[t]);
        check_splits("ntk:depth=2,bias=0.1", dtypes[t]);
    }
    check_splits("polynomial:degree=3,scale=0.01,offset=1", MERCER_F32);
    check_splits("rational-quadratic:bandwidth=10,alpha=0.5", MERCER_F32);
}

/* Many rows: more than one block of 512 per thread. */
static void test_threads_on_many_rows(void **state)
{
    (void)state;
    enum { ROWS = 1500, CENTERS = 250 };
    mercer_kernel kernel = parse("gaussian:bandwidth=5");
    mercer_matrix X = data_matrix(ROWS, 4, 0, MERCER_F32), Z = data_matrix(CENTERS, 4, 0, MERCER_F32);
    mercer_matrix W = data_matrix(CENTERS, 2, 0, MERCER_F32), Y[4];
    data_fill_normal(&X, (mrc_rng){42, 1}, 1, 2);
    data_fill_normal(&Z, (mrc_rng){42, 2}, 1, 2);
    data_fill_normal(&W, (mrc_rng){42, 3}, 0, 1);
    const int threads[] = {1, 2, 3, 8};
    for (int t = 0; t < 4; t++) {
        Y[t] = data_matrix(ROWS, 2, 0, MERCER_F32);
        mercer_context *context = open_context((int)mrc_isa_best(), threads[t]);
        assert_succeeds(context, mercer_kernel_matmul(context, &Y[t], &kernel, &X, &Z, &W));
        mercer_context_free(context);
        assert_memory_equal(Y[t].data, Y[0].data, ROWS * 2 * sizeof(float));
    }
    for (int t = 0; t < 4; t++) free(Y[t].data);
    free(X.data), free(Z.data), free(W.data);
}

/* ---- The order of centers ------------------------------------------------------------------------------------ */

/*
 * Both orders are within the same bound of the exact sum (derivation: conformance/budget.h): values within E_j, chains
 * of 240, sums of tiles in double, one rounding of the result. Their difference is therefore at most twice that bound.
 */
static double order_bound(const mercer_kernel *kernel, const dataset *s, const double *mean, int64_t i, int64_t column)
{
    double x[D], z[D], value, sum = 0, total = 0;
    arithmetic how = s->X.dtype == MERCER_F64 ? in_double : in_float;
    how.bytes = s->X.dtype == MERCER_U8;
    mrc_load_row_f64(&s->X, i, x);
    for (int64_t j = 0; j < P; j++) {
        mrc_load_row_f64(&s->Z, j, z);
        assert_true(mrc_kernel_reference(kernel, D, x, z, &value));
        double e = value_error(kernel, D, x, z, mean, &how), weight = fabs(mrc_load(&s->W, j, column));
        sum += weight * (e + (gamma_k(241, how.unit) + gamma_k(16, 0x1p-53)) * (fabs(value) + e));
        total += weight * fabs(value);
    }
    return 2 * (sum + how.unit * total);
}

static void check_order(mercer_context *context, const char *spec, mercer_dtype dtype)
{
    mercer_kernel kernel = parse(spec);
    dataset s = make_data(dtype), moved = make_data(dtype);
    double mean[D] = {0};
    for (int64_t j = 0; j < P; j++) {
        int64_t from = mrc_random_permutation((mrc_rng){43, 1}, P, j);
        for (int64_t k = 0; k < D; k++)
            data_store(&moved.Z, j, k, mrc_load(&s.Z, from, k)), mean[k] += mrc_load(&s.Z, j, k) / P;
        for (int64_t k = 0; k < C; k++) data_store(&moved.W, j, k, mrc_load(&s.W, from, k));
    }
    mercer_matrix one = data_matrix(M, C, 0, value_type(dtype)), two = data_matrix(M, C, 0, value_type(dtype));
    assert_succeeds(context, mercer_kernel_matmul(context, &one, &kernel, &s.X, &s.Z, &s.W));
    assert_succeeds(context, mercer_kernel_matmul(context, &two, &kernel, &moved.X, &moved.Z, &moved.W));
    for (int64_t i = 0; i < M; i += 7) {
        for (int64_t k = 0; k < C; k++) {
            double difference = fabs(mrc_load(&one, i, k) - mrc_load(&two, i, k)),
                   bound = order_bound(&kernel, &s, mean, i, k);
            assert_that(difference <= bound, "%s %s (%d, %d): differ by %g, bound %g", spec, mrc_dtype_name(dtype),
                        (int)i, (int)k, difference, bound);
        }
    }
    free(one.data), free(two.data);
    free_data(&s), free_data(&moved);
}

static void test_order_of_centers(void **state)
{
    (void)state;
    mercer_context *context = open_context((int)mrc_isa_best(), 2);
    for (int t = 0; t < DTYPES; t++) {
        check_order(context, "laplace:bandwidth=10", dtypes[t]);
        check_order(context, "polynomial:degree=2,scale=0.01,offset=1", dtypes[t]);
    }
    mercer_context_free(context);
}

/* ---- Hard rows ----------------------------------------------------------------------------------------------- */

/* Images: 784 features, an offset that makes |x|^2 + |z|^2 - 2 x.z lose every digit of a small distance. */
static void test_coincident_rows_give_exactly_one(void **state)
{
    (void)state;
    enum { N = 40, PIXELS = 784 };
    for (int t = 0; t < DTYPES; t++) {
        mercer_matrix X = data_matrix(N, PIXELS, 0, dtypes[t]), K = data_matrix(N, N, 0, value_type(dtypes[t]));
        mercer_matrix diagonal = data_matrix(N, 1, 0, value_type(dtypes[t]));
        data_fill_uniform(&X, (mrc_rng){44, 1}, 100, 101 + 50 * (t >= 2));
        for (int64_t k = 0; k < PIXELS; k++) data_store(&X, N - 1, k, mrc_load(&X, 0, k)); /* a duplicate row */
        for (int isa = 0; isa <= (int)mrc_isa_best(); isa++) {
            mercer_context *context = open_context(isa, 2);
            for (int i = 0; i < DISTANCE_SPECS; i++) {
                mercer_kernel kernel = parse(distance_specs[i]);
                assert_succeeds(context, mercer_kernel_eval(context, &K, &kernel, &X, &X));
                assert_succeeds(context, mercer_kernel_diagonal(context, &diagonal, &kernel, &X));
                for (int64_t r = 0; r < N; r++) {
                    assert_that(mrc_load(&K, r, r) == 1 && mrc_load(&diagonal, r, 0) == 1,
                                "%s %s row %d: K(x, x) = %.9g", distance_specs[i], mrc_dtype_name(dtypes[t]), (int)r,
                                mrc_load(&K, r, r));
                    assert_true(mrc_load(&K, r, (r + 1) % (N - 1)) < 1 || r % (N - 1) == (r + 1) % (N - 1));
                }
                assert_true(mrc_load(&K, 0, N - 1) == 1 && mrc_load(&K, N - 1, 0) == 1);
            }
            mercer_context_free(context);
        }
        free(X.data), free(K.data), free(diagonal.data);
    }
}

/* Rows that differ in one coordinate by a few units in the last place, far from the origin: still accurate to float. */
static void test_almost_coincident_rows(void **state)
{
    (void)state;
    enum { N = 12, FEATURES = 50 };
    mercer_kernel kernel = parse("laplace:bandwidth=0.001");
    mercer_matrix X = data_matrix(N, FEATURES, 0, MERCER_F32), K = data_matrix(N, N, 0, MERCER_F32);
    data_fill_uniform(&X, (mrc_rng){45, 1}, 100, 101);
    for (int64_t i = 1; i < N; i++) {
        memcpy(mrc_row(&X, i), mrc_row(&X, 0), FEATURES * sizeof(float));
        ((float *)mrc_row(&X, i))[i] += (float)i * 0x1p-17f; /* the spacing of floats at 100 */
    }
    for (int isa = 0; isa <= (int)mrc_isa_best(); isa++) {
        mercer_context *context = open_context(isa, 1);
        assert_succeeds(context, mercer_kernel_eval(context, &K, &kernel, &X, &X));
        for (int64_t i = 0; i < N; i++) {
            for (int64_t j = 0; j < N; j++) {
                double x[FEATURES], z[FEATURES], wanted;
                mrc_load_row_f64(&X, i, x), mrc_load_row_f64(&X, j, z);
                assert_true(mrc_kernel_reference(&kernel, FEATURES, x, z, &wanted));
                assert_true(i == j || wanted < 1);
                /* exponent y <= 1: 2.5 roundings in r and y, three in exp, one in K */
                double error = fabs(mrc_load(&K, i, j) - wanted);
                assert_that(error <= 7 * 0x1p-24, "(%d, %d): %.9g, wanted %.9g", (int)i, (int)j, mrc_load(&K, i, j),
                            wanted);
            }
        }
        mercer_context_free(context);
    }
    free(X.data), free(K.data);
}

/* The squares overflow the arithmetic, the kernel does not: 1 for equal rows, otherwise the true value, and sums
   stay finite. */
enum { N_ENORMOUS = 5, FEATURES_ENORMOUS = 3 };

/*
 * In units of `size` nothing overflows, and a function of r / bandwidth does not depend on the units. Allowed: 16
 * roundings of the value and 8 of the exponent (budget.h has fewer), and one rounding of 1 where the squares of r /
 * bandwidth are out of range.
 */
static void check_enormous_values(const mercer_kernel *kernel, const mercer_matrix *X, const mercer_matrix *K,
                                  double size, double floor)
{
    double u = X->dtype == MERCER_F64 ? 0x1p-53 : 0x1p-24;
    for (int64_t i = 0; i < N_ENORMOUS; i++) {
        for (int64_t j = 0; j < N_ENORMOUS; j++) {
            double x[FEATURES_ENORMOUS], z[FEATURES_ENORMOUS], wanted = 1, got = mrc_load(K, i, j);
            mercer_kernel scaled = *kernel;
            scaled.bandwidth = kernel->bandwidth / size;
            for (int64_t k = 0; k < FEATURES_ENORMOUS; k++)
                x[k] = mrc_load(X, i, k) / size, z[k] = mrc_load(X, j, k) / size;
            if (i != j) assert_true(mrc_kernel_reference(&scaled, FEATURES_ENORMOUS, x, z, &wanted));
            double y = wanted > 0 && wanted < 1 ? -log(wanted) : 0,
                   bound = i == j ? 0 : wanted * u * (16 + 8 * y) + floor;
            assert_that(fabs(got - wanted) <= bound, "kernel %d %s, size %g, bandwidth %g (%d, %d): %g, wanted %g",
                        kernel->id, mrc_dtype_name(X->dtype), size, kernel->bandwidth, (int)i, (int)j, got, wanted);
        }
    }
}

static void check_enormous(mercer_context *context, const mercer_kernel *kernel, mercer_dtype dtype, double size,
                           double floor)
{
    mercer_matrix X = data_matrix(N_ENORMOUS, FEATURES_ENORMOUS, 0, dtype), W = data_matrix(N_ENORMOUS, 2, 0, dtype);
    mercer_matrix K = data_matrix(N_ENORMOUS, N_ENORMOUS, 0, dtype), Y = data_matrix(N_ENORMOUS, 2, 0, dtype);
    data_fill_normal(&X, (mrc_rng){46, 1}, 0, size);
    data_fill_normal(&W, (mrc_rng){46, 2}, 0, 1);
    assert_succeeds(context, mercer_kernel_eval(context, &K, kernel, &X, &X));
    assert_succeeds(context, mercer_kernel_matmul(context, &Y, kernel, &X, &X, &W));
    check_enormous_values(kernel, &X, &K, size, floor);
    for (int64_t i = 0; i < N_ENORMOUS; i++)
        assert_that(isfinite(mrc_load(&Y, i, 0)) && isfinite(mrc_load(&Y, i, 1)), "kernel %d %s, size %g: product %g",
                    kernel->id, mrc_dtype_name(dtype), size, mrc_load(&Y, i, 0));
    free(X.data), free(W.data), free(K.data), free(Y.data);
}

static void test_enormous_rows_small_bandwidth(void **state)
{
    (void)state;
    mercer_context *context = open_context((int)mrc_isa_best(), 1);
    for (int i = 0; i < DISTANCE_SPECS; i++) {
        mercer_kernel kernel = parse(distance_specs[i]);
        check_enormous(context, &kernel, MERCER_F32, 1e20, 0x1p-24);
        check_enormous(context, &kernel, MERCER_F64, 1e200, 0x1p-53);
    }
    mercer_context_free(context);
}

static void test_enormous_rows_enormous_bandwidth(void **state)
{
    (void)state;
    mercer_context *context = open_context((int)mrc_isa_best(), 1);
    for (int i = 0; i < DISTANCE_SPECS; i++) {
        mercer_kernel kernel = parse(distance_specs[i]);
        kernel.bandwidth = 1e20;
        check_enormous(context, &kernel, MERCER_F32, 1e20, 0);
    }
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_do_not_depend_on_the_batch),
        cmocka_unit_test(test_threads_on_many_rows),
        cmocka_unit_test(test_order_of_centers),
        cmocka_unit_test(test_coincident_rows_give_exactly_one),
        cmocka_unit_test(test_almost_coincident_rows),
        cmocka_unit_test(test_enormous_rows_small_bandwidth),
        cmocka_unit_test(test_enormous_rows_enormous_bandwidth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

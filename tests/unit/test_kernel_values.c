/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scalar double kernel functions against different expressions in long double.
 *
 * Tolerance: with e = 2^-53, an argument y of exp carries at most 5 roundings, and |y exp(-y)| <= 1/e, so the value is
 * off by less than 5 e / 2.7 from that and 2 e from exp and the last product; matern adds 4 e. 8 e absolute covers
 * functions of the distance, which are <= 1. Functions of the inner product are relative to the sum of the magnitudes
 * of their terms.
 */
#include "support/check.h"

#include "backends/backend.h"
#include "kernels/table.h"
#include "support/data.h"
#include "support/info.h"
#include "support/kernel_table.h"

#include <float.h>

#define E (DBL_EPSILON / 2)
static const long double pi = 3.14159265358979323846264338327950288L;

static mercer_kernel parse(const char *spec)
{
    mercer_kernel kernel;
    assert_succeeds(NULL, mrc_kernel_parse(NULL, &kernel, spec));
    return kernel;
}

/* ---- Functions of the distance ------------------------------------------------------------------------------- */

static long double expected_of_distance(const mercer_kernel *k, double sum)
{
    long double s = sum, r = powl(s, 1 / (long double)mrc_kernel_norm(k)), b = k->bandwidth, u = r / b;
    (void)u;
    switch (k->id) {
#define WANTED(ID, wanted, slope, y, steps, factor, roundings) \
    case MRC_KERNEL_##ID: return wanted;
        DISTANCE_KERNELS(WANTED)
        default: fail_msg("kernel %s has no row in tests/support/kernel_table.h", mrc_kernel_find(k->id)->form.name);
    }
    return 0;
}

static double largest_slope(const mercer_kernel *k)
{
    switch (k->id) {
#define SLOPE(ID, wanted, slope, y, steps, factor, roundings) \
    case MRC_KERNEL_##ID: return (slope) / k->bandwidth;
        DISTANCE_KERNELS(SLOPE)
        default: fail();
    }
    return 0;
}

/* Tested in addition to the example of each kernel. */
static const char *const further_specs[] = {
    "laplace:bandwidth=0.5",        "gaussian:bandwidth=0.5",          "exppower:bandwidth=3,gamma=1",
    "exppower:bandwidth=3,gamma=2", "exppower:bandwidth=2,gamma=0.1",  "rational-quadratic:bandwidth=2,alpha=7",
    "laplace-l1:bandwidth=0.5",     "exppower-l1:bandwidth=3,gamma=1", "lpq:p=1,q=1,bandwidth=3",
    "lpq:p=2,q=1.3,bandwidth=3",    "lpq:p=0.5,q=0.5,bandwidth=2"};
enum { FURTHER = sizeof further_specs / sizeof *further_specs, MOST = 128 };

static const char *distance_specs[MOST];
static int distance_count;

static int collect_specs(void **state)
{
    (void)state;
    for (int i = 0; i < mrc_kernel_table_size; i++)
        if (mrc_kernel_table[i].argument != MRC_ON_INNER) distance_specs[distance_count++] = kernel_info(i).example;
    for (int i = 0; i < FURTHER; i++) distance_specs[distance_count++] = further_specs[i];
    return 0;
}

static void test_functions_of_distance(void **state)
{
    (void)state;
    const double squares[] = {0, 1e-300, 1e-20, 1e-6, 0.01, 0.5, 1, 3, 25, 100, 1000, 12345.678, 1e6};
    for (int i = 0; i < distance_count; i++) {
        mercer_kernel kernel = parse(distance_specs[i]);
        assert_true(mrc_kernel_is_stationary(&kernel));
        assert_false(mrc_kernel_is_angular(&kernel));
        assert_true(mrc_kernel_of_distance(&kernel, 0) == 1); /* exactly */
        for (size_t j = 0; j < sizeof squares / sizeof *squares; j++) {
            double got = mrc_kernel_of_distance(&kernel, squares[j]);
            double wanted = (double)expected_of_distance(&kernel, squares[j]);
            assert_that(fabs(got - wanted) <= 8 * E, "%s at r^2 = %g: %.17g, wanted %.17g", distance_specs[i],
                        squares[j], got, wanted);
        }
    }
}

/* Far away: values are exactly between 0 and 1, never NaN, and do not increase. */
static void test_huge_distances(void **state)
{
    (void)state;
    const double squares[] = {1e10, 1e100, 1e300, DBL_MAX, INFINITY};
    for (int i = 0; i < distance_count; i++) {
        mercer_kernel kernel = parse(distance_specs[i]);
        double before = 1;
        for (size_t j = 0; j < sizeof squares / sizeof *squares; j++) {
            double value = mrc_kernel_of_distance(&kernel, squares[j]);
            assert_that(value >= 0 && value <= before, "%s at r^2 = %g: %g", distance_specs[i], squares[j], value);
            before = value;
        }
        assert_true(before == 0);
    }
}

/* Every bandwidth that the parser accepts gives 1 at distance 0 and values between 0 and 1 elsewhere, even where its
   square is out of range. */
static void test_extreme_bandwidths(void **state)
{
    (void)state;
    const double bandwidths[] = {5e-324, 1e-300, 1e-200, 1e-160, 1e160, 1e300},
                 squares[] = {1e-320, 1e-100, 1, 1e100, 1e300};
    for (int i = 0; i < distance_count; i++) {
        for (size_t b = 0; b < sizeof bandwidths / sizeof *bandwidths; b++) {
            mercer_kernel kernel = parse(distance_specs[i]);
            kernel.bandwidth = bandwidths[b];
            assert_that(mrc_kernel_of_distance(&kernel, 0) == 1, "%s, bandwidth %g: K(x, x) = %g", distance_specs[i],
                        bandwidths[b], mrc_kernel_of_distance(&kernel, 0));
            for (size_t j = 0; j < sizeof squares / sizeof *squares; j++) {
                double value = mrc_kernel_of_distance(&kernel, squares[j]);
                assert_that(value >= 0 && value <= 1, "%s, bandwidth %g, r^2 = %g: %g", distance_specs[i],
                            bandwidths[b], squares[j], value);
            }
        }
    }
}

/* The slope bound is >= |K(r + h) - K(r)| / h everywhere and is nearly reached; the quotient itself is off by at
   most 16 e / h. */
static void test_slopes(void **state)
{
    (void)state;
    for (int i = 0; i < distance_count; i++) {
        mercer_kernel kernel = parse(distance_specs[i]);
        double bound = largest_slope(&kernel), largest = 0, h = 1e-4 * kernel.bandwidth;
        const double norm = mrc_kernel_norm(&kernel);
        for (double r = 0; r < 8 * kernel.bandwidth; r += h) {
            double k0 = mrc_kernel_of_distance(&kernel, mrc_difference_power(norm, r));
            double k1 = mrc_kernel_of_distance(&kernel, mrc_difference_power(norm, r + h));
            largest = fmax(largest, fabs(k1 - k0) / h);
        }
        /* Unbounded slope: between 0 and h the function is steeper the smaller h is, (h/b)^gamma over h. */
        if (isinf(bound)) {
            assert_that(largest > 2 / kernel.bandwidth, "%s: slope %g only", distance_specs[i], largest);
            continue;
        }
        assert_that(largest <= bound + 16 * E / h, "%s: slope %.12g exceeds the bound %.12g", distance_specs[i],
                    largest, bound);
        assert_that(largest >= 0.99 * bound, "%s: slope %g, bound %g", distance_specs[i], largest, bound);
    }
}

/* ---- Functions of the inner product -------------------------------------------------------------------------- */

static void test_linear_and_polynomial(void **state)
{
    (void)state;
    mercer_kernel linear = parse("linear");
    assert_true(mrc_kernel_of_inner(&linear, -3.25, 5, 7) == -3.25);
    const char *const specs[] = {"polynomial:degree=3,scale=0.01,offset=1", "polynomial:degree=1,scale=2,offset=0",
                                 "polynomial:degree=64,scale=0.1,offset=0.5", "polynomial:degree=2,scale=1,offset=3"};
    const double dots[] = {0, 1, -1, -2.5, 7.125, -150, 9.75};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        mercer_kernel k = parse(specs[i]);
        for (size_t j = 0; j < sizeof dots / sizeof *dots; j++) {
            double got = mrc_kernel_of_inner(&k, dots[j], 1, 1);
            double base = fabs(k.scale * dots[j]) + k.offset; /* sum of the magnitudes of the terms, which may cancel */
            double wanted = (double)powl((long double)k.scale * dots[j] + (long double)k.offset, k.degree);
            double exact_base = fabs(k.scale * dots[j] + k.offset);
            double bound = k.degree * (2 * base * E) * pow(exact_base + 2 * base * E, k.degree - 1) +
                           (k.degree + 1) * E * fabs(wanted);
            assert_that(fabs(got - wanted) <= bound, "%s at %g: %.17g, wanted %.17g", specs[i], dots[j], got, wanted);
        }
    }
}

/* One hidden layer without bias, with angle t: nngp = |x||z| (sin t + (pi - t) cos t) / pi (the arc-cosine kernel of
   order 1), ntk = |x||z| (sin t + 2 (pi - t) cos t) / pi. */
static void test_one_layer_closed_form(void **state)
{
    (void)state;
    mercer_kernel nngp = parse("nngp:depth=1"), ntk = parse("ntk:depth=1");
    const double nx = 3.5, nz = 0.25;
    for (int i = 0; i <= 64; i++) {
        long double t = pi * i / 64, n = sqrtl((long double)nx * nz);
        double dot = (double)(n * cosl(t));
        /* The inner product is rounded, and acos is steep at both ends: an error e in the cosine moves the angle by
           up to sqrt(2 e). */
        double angle_error = fmin(4 * E / fmax((double)sinl(t), 1e-30), sqrt(8 * E));
        double bound = (double)n * (angle_error + 8 * E);
        double got = mrc_kernel_of_inner(&nngp, dot, nx, nz),
               wanted = (double)(n * (sinl(t) + (pi - t) * cosl(t)) / pi);
        assert_that(fabs(got - wanted) <= (double)n * 16 * E, "nngp at angle %d/64 pi: %.17g, wanted %.17g", i, got,
                    wanted);
        got = mrc_kernel_of_inner(&ntk, dot, nx, nz), wanted = (double)(n * (sinl(t) + 2 * (pi - t) * cosl(t)) / pi);
        assert_that(fabs(got - wanted) <= bound, "ntk at angle %d/64 pi: %.17g, wanted %.17g", i, got, wanted);
    }
}

/*
 * A deeper network adds one layer at the end: with S the nngp of depth L, the nngp of depth L + 1 is that of depth 1
 * for inputs with inner product S - v^2 and squared norms |x|^2 + L v^2. And T_{L+1} = T_L k0 + S_{L+1}, k0 = 1 - angle
 * / pi.
 */
static void test_depth_recursion(void **state)
{
    (void)state;
    const double biases[] = {0, 0.5}, dots[] = {-1.9, -1, 0, 0.3, 1.5};
    const double xx = 4, zz = 1;
    for (int b = 0; b < 2; b++) {
        for (size_t i = 0; i < sizeof dots / sizeof *dots; i++) {
            double v = biases[b], dot = dots[i];
            mercer_kernel one = {.id = MRC_KERNEL_NNGP, .depth = 1, .bias = v};
            for (int depth = 1; depth < 6; depth++) {
                mercer_kernel low = {.id = MRC_KERNEL_NNGP, .depth = depth, .bias = v}, high = low;
                high.depth = depth + 1;
                double s = mrc_kernel_of_inner(&low, dot, xx, zz), nx = xx + depth * v * v, nz = zz + depth * v * v;
                double wanted = mrc_kernel_of_inner(&one, s - v * v, nx, nz);
                double got = mrc_kernel_of_inner(&high, dot, xx, zz);
                double scale = sqrt((nx + v * v) * (nz + v * v)) + v * v;
                assert_that(fabs(got - wanted) <= 32 * E * scale, "nngp depth %d, dot %g, bias %g: %.17g, wanted %.17g",
                            depth + 1, dot, v, got, wanted);
                double angle = acos(fmax(-1, fmin(1, s / sqrt((nx + v * v) * (nz + v * v)))));
                low.id = high.id = MRC_KERNEL_NTK;
                wanted = mrc_kernel_of_inner(&low, dot, xx, zz) * (1 - angle / (double)pi) + got;
                got = mrc_kernel_of_inner(&high, dot, xx, zz);
                /* cosines here stay below 0.99, where acos is at most 8 times steeper than its argument */
                assert_that(fabs(got - wanted) <= (depth + 1) * 8 * 32 * E * scale,
                            "ntk depth %d, dot %g, bias %g: %.17g, wanted %.17g", depth + 1, dot, v, got, wanted);
            }
        }
    }
}

/* K(x, x): nngp = |x|^2 + (L + 1) v^2; ntk sums that over the layers. No angle is involved, so a few roundings are
   enough. */
static void test_coincident_vectors(void **state)
{
    (void)state;
    const double norms[] = {0, 1e-12, 0.1, 1, 3.7, 784.3, 1e12}, biases[] = {0, 0.1, 0.3, 2};
    for (int depth = 1; depth <= 8; depth++) {
        for (int b = 0; b < 4; b++) {
            for (int i = 0; i < 7; i++) {
                double xx = norms[i], v = biases[b], nngp = xx + (depth + 1) * v * v, ntk = 0;
                for (int layer = 0; layer <= depth; layer++) ntk += xx + (layer + 1) * v * v;
                mercer_kernel kernel = {.id = MRC_KERNEL_NNGP, .depth = depth, .bias = v};
                double got = mrc_kernel_of_inner(&kernel, xx, xx, xx);
                assert_that(fabs(got - nngp) <= 4 * (depth + 1) * E * nngp,
                            "nngp depth %d, |x|^2 = %g, bias %g: %.17g, not %.17g", depth, xx, v, got, nngp);
                kernel.id = MRC_KERNEL_NTK;
                got = mrc_kernel_of_inner(&kernel, xx, xx, xx);
                assert_that(fabs(got - ntk) <= 4 * (depth + 1) * E * ntk,
                            "ntk depth %d, |x|^2 = %g, bias %g: %.17g, not %.17g", depth, xx, v, got, ntk);
            }
        }
    }
}

static void test_antiparallel_and_zero_vectors(void **state)
{
    (void)state;
    mercer_kernel k = parse("nngp:depth=1");
    assert_true(mrc_kernel_of_inner(&k, -6, 4, 9) == 0); /* no direction activates both points */
    k = parse("ntk:depth=1");
    assert_true(mrc_kernel_of_inner(&k, -6, 4, 9) == 0);
    k = parse("nngp:depth=2"); /* the first layer maps them to orthogonal points: |x||z| / pi */
    assert_that(fabs(mrc_kernel_of_inner(&k, -6, 4, 9) - (double)(6 / pi)) <= 16 * E, "%g",
                mrc_kernel_of_inner(&k, -6, 4, 9));
    for (int depth = 1; depth <= 4; depth++) {
        mercer_kernel kernel = {.id = MRC_KERNEL_NTK, .depth = depth};
        assert_true(mrc_kernel_of_inner(&kernel, 0, 0, 9) == 0);
        assert_true(mrc_kernel_of_inner(&kernel, 0, 0, 0) == 0);
        kernel.id = MRC_KERNEL_NNGP;
        assert_true(mrc_kernel_of_inner(&kernel, 0, 0, 9) == 0);
        kernel.bias = 0.5;
        double value = mrc_kernel_of_inner(&kernel, 0, 0, 9);
        assert_true(isfinite(value) && value > 0);
    }
}

/* ---- From coordinates ---------------------------------------------------------------------------------------- */

static int square_distance(void *user, const mercer_kernel_block *block)
{
    ++*(int *)user;
    if (block->x_sqnorms || block->z_sqnorms || block->rows != 1 || block->cols != 1) return 1;
    block->values[0] *= block->values[0];
    return 0;
}

static int cosine(void *user, const mercer_kernel_block *block)
{
    ++*(int *)user;
    if (!block->x_sqnorms || !block->z_sqnorms) return 1;
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->cols; j++)
            block->values[i * block->ld + j] /= sqrt(block->x_sqnorms[i] * block->z_sqnorms[j]);
    return 0;
}

static int refuse(void *user, const mercer_kernel_block *block)
{
    (void)user, (void)block;
    return 7;
}

static void test_callbacks(void **state)
{
    (void)state;
    const double x[3] = {1, 2, 2}, z[3] = {1, 2, -1};
    int calls = 0;
    double value = -1;
    mercer_kernel kernel = {
        .id = MERCER_KERNEL_CALLBACK_DISTANCE, .callback = square_distance, .callback_user = &calls};
    assert_true(mrc_kernel_is_callback(&kernel));
    assert_int_equal(mrc_kernel_argument(&kernel), MRC_ON_DISTANCE);
    assert_true(mrc_kernel_reference(&kernel, 3, x, z, &value));
    assert_true(value == 9);
    kernel = (mercer_kernel){.id = MERCER_KERNEL_CALLBACK_INNER, .callback = cosine, .callback_user = &calls};
    assert_int_equal(mrc_kernel_argument(&kernel), MRC_ON_INNER);
    assert_true(mrc_kernel_reference(&kernel, 3, x, x, &value));
    assert_true(value == 1);
    assert_int_equal(calls, 2);
    kernel.callback = refuse;
    value = 42;
    assert_false(mrc_kernel_reference(&kernel, 3, x, z, &value));
    assert_true(value == 42);
}

/* The same sum under different names: laplace-l1 and exppower-l1 are lpq with p = 1, exppower is lpq with p = 2, and
   a user's function gets the distance in its own norm. Both sides are within 8 e of the value. */
static void test_norms_agree(void **state)
{
    (void)state;
    const char *const pairs[][2] = {{"laplace-l1:bandwidth=3", "lpq:p=1,q=1,bandwidth=3"},
                                    {"exppower-l1:bandwidth=3,gamma=0.7", "lpq:p=1,q=0.7,bandwidth=3"},
                                    {"exppower-l1:bandwidth=3,gamma=1", "laplace-l1:bandwidth=3"},
                                    {"exppower:bandwidth=3,gamma=1.3", "lpq:p=2,q=1.3,bandwidth=3"}};
    const double x[4] = {1, -2, 0.5, 3}, z[4] = {0, 2, 1.5, -1};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        mercer_kernel one = parse(pairs[i][0]), other = parse(pairs[i][1]);
        double a, b;
        assert_true(mrc_kernel_reference(&one, 4, x, z, &a) && mrc_kernel_reference(&other, 4, x, z, &b));
        assert_that(fabs(a - b) <= 16 * E, "%s: %.17g, %s: %.17g", pairs[i][0], a, pairs[i][1], b);
    }
    int calls = 0;
    double value;
    mercer_kernel square = {
        .id = MERCER_KERNEL_CALLBACK_DISTANCE, .callback = square_distance, .callback_user = &calls};
    square.p = 1;
    assert_int_equal(mrc_kernel_argument(&square), MRC_ON_DIFFERENCES);
    assert_true(mrc_kernel_reference(&square, 4, x, z, &value) && value == 100); /* (1 + 4 + 1 + 4)^2 */
    square.p = 0.5;
    assert_true(mrc_kernel_reference(&square, 4, x, z, &value) && value == 1296); /* ((1 + 2 + 1 + 2)^2)^2 */
}

static void test_reference_is_the_formula_of_the_rows(void **state)
{
    (void)state;
    const double x[4] = {1, -2, 0.5, 3}, z[4] = {0, 2, 1.5, -1}; /* the sums below are exact */
    for (int i = 0; i < mrc_kernel_table_size; i++) {
        mercer_kernel kernel = parse(kernel_info(i).example);
        double value, wanted;
        assert_true(mrc_kernel_reference(&kernel, 4, x, z, &value));
        if (mrc_kernel_argument(&kernel) == MRC_ON_DISTANCE)
            wanted = mrc_kernel_of_distance(&kernel, 1 + 16 + 1 + 16);
        else if (mrc_kernel_norm(&kernel) > 0) /* 1 and powers of 2 */
            wanted = mrc_kernel_of_distance(&kernel, 1 + pow(4, mrc_kernel_norm(&kernel)) + 1 +
                                                         pow(4, mrc_kernel_norm(&kernel)));
        else
            wanted = mrc_kernel_of_inner(&kernel, -4 + 0.75 - 3, 14.25, 7.25);
        assert_true(value == wanted);
        assert_true(mrc_kernel_reference(&kernel, 0, NULL, NULL, &value)); /* zero features */
        assert_true(isfinite(value));
    }
}

/*
 * Positive semi-definite: entries are off by at most 64 e max|K| (tolerances above), which moves eigenvalues by at most
 * n 64 e max|K|; Jacobi's own error is of the same order and smaller.
 */
static void test_gram_matrices_are_psd(void **state)
{
    (void)state;
    enum { N = 24, D = 3 };
    mercer_context context = {.threads = 1};
    mrc_backend *backend;
    assert_succeeds(&context, mrc_backend_create(&backend, &context, "reference"));
    for (int which = 0; which < mrc_kernel_table_size; which++) {
        mercer_kernel kernel = parse(kernel_info(which).example);
        double points[N][D], gram[N * N], values[N], vectors[N * N], largest = 0;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < D; j++) points[i][j] = 4 * mrc_random_normal((mrc_rng){11, 0}, (uint64_t)(i * D + j));
        memcpy(points[N - 1], points[0], sizeof points[0]); /* a duplicate point makes the matrix singular */
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N; j++) {
                assert_true(mrc_kernel_reference(&kernel, D, points[i], points[j], &gram[i * N + j]));
                largest = fmax(largest, fabs(gram[i * N + j]));
            }
        }
        mercer_matrix a = mrc_view(gram, N, N, MERCER_F64), v = mrc_view(vectors, N, N, MERCER_F64);
        assert_succeeds(&context, backend->ops->eigen_top(backend, &a, N, values, &v));
        assert_that(values[N - 1] >= -N * 64 * E * largest, "%s: smallest eigenvalue %g, largest entry %g",
                    kernel_info(which).name, values[N - 1], largest);
    }
    mrc_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_of_distance),
        cmocka_unit_test(test_huge_distances),
        cmocka_unit_test(test_extreme_bandwidths),
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_linear_and_polynomial),
        cmocka_unit_test(test_one_layer_closed_form),
        cmocka_unit_test(test_depth_recursion),
        cmocka_unit_test(test_coincident_vectors),
        cmocka_unit_test(test_antiparallel_and_zero_vectors),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_reference_is_the_formula_of_the_rows),
        cmocka_unit_test(test_norms_agree),
        cmocka_unit_test(test_gram_matrices_are_psd),
    };
    return cmocka_run_group_tests(tests, collect_specs, NULL);
}

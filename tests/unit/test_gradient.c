/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gradients: slopes against differences of the kernel functions, the definition against differences of sums, and fused
 * products against the definition on every backend.
 */
#include "support/backends.h"

#include "core/matrix.h"
#include "explain/gradient.h"
#include "kernels/formulas.h"
#include "kernels/table.h"
#include "support/data.h"
#include "support/kernel_table.h"

#include <float.h>

#define E (DBL_EPSILON / 2)

static mercer_kernel parse(const char *spec)
{
    mercer_kernel kernel;
    assert_succeeds(NULL, mrc_kernel_parse(NULL, &kernel, spec));
    return kernel;
}

/* ---- Slopes ------------------------------------------------------------------------------------------------------ */

static long double value_at(const mercer_kernel *k, long double r)
{
    long double s = mrc_kernel_norm(k) == 1 ? r : r * r, b = k->bandwidth, u = r / b;
    switch (k->id) {
#define WANTED(ID, wanted, slope, y, steps, factor, roundings) \
    case MRC_KERNEL_##ID: return wanted;
        DISTANCE_KERNELS(WANTED)
        default: fail();
    }
    return 0;
}

/*
 * psi = -phi'(r) / r against (phi(r - h) - phi(r + h)) / (2 h r) in long double, h = 1e-6 r; in norm 1 without 1 / r.
 * The error of the difference is below h^2 |phi'''| / 6 + 2^-63 / h; h^2 phi''' is below 1e-11 phi' for all specs where
 * r is between 0.1 and 10 bandwidths, and 2^-63 / h below 1e-11 / b. So 1e-10 of the slope and of 1 / (b r) covers
 * both.
 */
static void test_slopes(void **state)
{
    (void)state;
    const double shares[] = {0.1, 0.3, 0.9, 1, 2.5, 6, 10};
    for (int i = 0; i < mrc_kernel_table_size; i++) {
        mercer_kernel kernel = parse(mrc_kernel_table[i].form.example), slope;
        bool has = mrc_kernel_slope(&kernel, &slope);
        double norm = mrc_kernel_norm(&kernel);
        assert_true(has == (norm == 1 || norm == 2));
        for (size_t j = 0; has && j < sizeof shares / sizeof *shares; j++) {
            long double r = shares[j] * kernel.bandwidth, h = 1e-6L * r;
            long double by = norm == 1 ? 1 : r;
            double wanted = (double)((value_at(&kernel, r - h) - value_at(&kernel, r + h)) / (2 * h * by));
            double got = mrc_kernel_of_distance(&slope, (double)(r * by));
            double bound = 1e-10 * (wanted + 1 / (kernel.bandwidth * (double)by));
            assert_that(fabs(got - wanted) <= bound, "%s at r = %g: %.15g, wanted %.15g",
                        mrc_kernel_table[i].form.example, (double)r, got, wanted);
        }
        if (has) assert_true(isfinite(mrc_kernel_of_distance(&slope, 0)));
        if (has) assert_true(mrc_kernel_of_distance(&slope, (double)INFINITY) == 0);
    }
}

/* A slope is not a valid model kernel and has no text form; kernels of the inner product have no slope. */
static void test_slopes_are_no_kernels(void **state)
{
    (void)state;
    mercer_kernel laplace = parse("laplace:bandwidth=2"), slope, none = parse("linear");
    char text[64];
    assert_true(mrc_kernel_slope(&laplace, &slope));
    assert_true(mrc_kernel_check(NULL, &slope) == MERCER_ERROR_KERNEL);
    assert_true(mrc_kernel_print(NULL, &slope, text, sizeof text, NULL) == MERCER_ERROR_KERNEL);
    assert_false(mrc_kernel_slope(&none, &slope));
    assert_true(mrc_gradient_slope(NULL, &none, &slope) == MERCER_ERROR_UNSUPPORTED);
    none = parse("lpq:p=1.5,q=1,bandwidth=2");
    assert_false(mrc_kernel_slope(&none, &slope));
    assert_true(mrc_gradient_slope(NULL, &none, &slope) == MERCER_ERROR_UNSUPPORTED);
}

/* ---- The definition ---------------------------------------------------------------------------------------------- */

/* Adds the contribution of pair (x, z) to the gradients of c outputs. alpha (c): weights of z. */
static void add_pair(const mercer_kernel *slope, double norm, int64_t d, const double *x, const double *z, int64_t c,
                     const double *alpha, double *gradients)
{
    double s = 0;
    for (int64_t k = 0; k < d; k++) s += mrc_difference_power(norm, x[k] - z[k]);
    if (s == 0) return;
    double psi = mrc_kernel_of_distance(slope, s);
    for (int64_t l = 0; l < c; l++)
        for (int64_t k = 0; k < d; k++) {
            double difference = x[k] - z[k], sign = (double)((difference > 0) - (difference < 0));
            gradients[l * d + k] -= alpha[l] * psi * (norm == 1 ? sign : difference);
        }
}

/* Computes the gradients (m, c d) f64 of f_l(x) = sum_j alpha_jl phi(|x - z_j|) at the rows of x by definition. */
static void define_gradients(const mercer_kernel *kernel, const mercer_matrix *x, const mercer_matrix *z,
                             const mercer_matrix *alpha, const mercer_matrix *gradients)
{
    enum { MOST = 16 };
    mercer_kernel slope;
    double x_row[MOST], z_row[MOST], weights[MOST];
    int64_t d = x->cols, c = alpha->cols;
    assert_true(d <= MOST && c <= MOST && mrc_kernel_slope(kernel, &slope));
    for (int64_t i = 0; i < x->rows; i++) {
        double *out = mrc_row(gradients, i);
        mrc_load_row_f64(x, i, x_row);
        memset(out, 0, (size_t)(c * d) * sizeof *out);
        for (int64_t j = 0; j < z->rows; j++) {
            mrc_load_row_f64(z, j, z_row);
            mrc_load_row_f64(alpha, j, weights);
            add_pair(&slope, mrc_kernel_norm(kernel), d, x_row, z_row, c, weights, out);
        }
    }
}

enum { M = 7, P = 9, D = 4, C = 2 };

static double sum_at(const mercer_kernel *kernel, const double *x, const mercer_matrix *z, const mercer_matrix *alpha,
                     int64_t output)
{
    double sum = 0, row[D];
    for (int64_t j = 0; j < z->rows; j++) {
        double value = 0;
        mrc_load_row_f64(z, j, row);
        assert_true(mrc_kernel_reference(kernel, z->cols, x, row, &value));
        sum += mrc_load(alpha, j, output) * value;
    }
    return sum;
}

/* Differences with h = 1e-6: their rounding, 2^-52 |f| / h, is about 1e-9, h^2 f''' less. */
static void test_definition(void **state)
{
    (void)state;
    static const char *const specs[] = {"laplace:bandwidth=1.7",     "exppower:bandwidth=1.7,gamma=0.7",
                                        "gaussian:bandwidth=1.7",    "cauchy:bandwidth=2",
                                        "laplace-l1:bandwidth=1.7",  "exppower-l1:bandwidth=1.7,gamma=0.7",
                                        "lpq:p=1,q=0.8,bandwidth=2", "lpq:p=2,q=1.3,bandwidth=2"};
    const int count = (int)(sizeof specs / sizeof *specs);
    mercer_matrix x = data_matrix(M, D, 0, MERCER_F64), z = data_matrix(P, D, 0, MERCER_F64),
                  alpha = data_matrix(P, C, 0, MERCER_F64), g = data_matrix(M, C * D, 0, MERCER_F64);
    data_fill_normal(&x, (mrc_rng){1, 0}, 0, 1);
    data_fill_normal(&z, (mrc_rng){1, 1}, 0, 1);
    data_fill_normal(&alpha, (mrc_rng){1, 2}, 0, 1);
    for (int s = 0; s < count; s++) {
        mercer_kernel kernel = parse(specs[s]);
        define_gradients(&kernel, &x, &z, &alpha, &g);
        for (int64_t i = 0; i < M; i++)
            for (int64_t l = 0; l < C; l++)
                for (int64_t k = 0; k < D; k++) {
                    double *row = mrc_row(&x, i), h = 1e-6, at = row[k];
                    row[k] = at + h;
                    double up = sum_at(&kernel, row, &z, &alpha, l);
                    row[k] = at - h;
                    double down = sum_at(&kernel, row, &z, &alpha, l);
                    row[k] = at;
                    double got = mrc_load(&g, i, l * D + k), wanted = (up - down) / (2 * h);
                    assert_that(fabs(got - wanted) < 1e-7, "%s: %.12g, difference %.12g", specs[s], got, wanted);
                }
    }
    /* A single point that coincides with the only center has gradient 0. */
    mercer_matrix one = mrc_rows(&z, 0, 1), weight = mrc_rows(&alpha, 0, 1), none = mrc_rows(&g, 0, 1);
    for (int s = 0; s < count; s++) {
        mercer_kernel kernel = parse(specs[s]);
        define_gradients(&kernel, &one, &one, &weight, &none);
        for (int k = 0; k < C * D; k++) assert_true(mrc_load(&none, 0, k) == 0);
    }
    free(x.data), free(z.data), free(alpha.data), free(g.data);
}

/* ---- Fused products ---------------------------------------------------------------------------------------------- */

enum { ROWS = 70, CENTERS = 300, FEATURES = 11, OUTPUTS = 3 };

/*
 * Largest difference between the fused product and the definition at row i, output l. With t_j = |psi alpha_j|, u =
 * 2^-53 and origin 0:
 *   sums      (p + 4) u sum_j t_j (|x| + |z_j|): p terms in any order, the weight's product, s x and the difference
 *   slopes    r^2 is off by (d + 3) u (|x|^2 + |z|^2) unless the pair is near, and then by (d + 3) u r^2; psi changes
 *             by at most (2 + r / b) times the relative change of r, plus 8 u of its own: sum_j t_j (|x| + |z|) of that
 * For pairs that are not near, the points of this test have |x|^2 + |z|^2 <= 2^20 r^2.
 */
static double allowed(const mercer_kernel *slope, const mercer_matrix *x, int64_t i, const mercer_matrix *z,
                      const mercer_matrix *alpha, int64_t l)
{
    double sum = 0, xx = 0;
    for (int64_t k = 0; k < x->cols; k++) xx += mrc_load(x, i, k) * mrc_load(x, i, k);
    for (int64_t j = 0; j < z->rows; j++) {
        double s = 0, zz = 0;
        for (int64_t k = 0; k < x->cols; k++) {
            double difference = mrc_load(x, i, k) - mrc_load(z, j, k);
            s += difference * difference, zz += mrc_load(z, j, k) * mrc_load(z, j, k);
        }
        if (s == 0) continue;
        double t = fabs(mrc_load(alpha, j, l)) * mrc_kernel_of_distance(slope, s), r = sqrt(s);
        double near = s <= 0x1p-20 * (xx + zz) ? 1 : (xx + zz) / s;
        double in_slope = (2 + r / slope->bandwidth) * (double)(x->cols + 3) * E * near + 8 * E;
        sum += t * ((sqrt(xx) + sqrt(zz)) * (double)(z->rows + 4) * E + r * in_slope);
    }
    return 2 * sum; /* the definition is rounded too */
}

/* Row 0 coincides with a center, row 1 nearly does. */
static void fill_points(const mercer_matrix *x, const mercer_matrix *z)
{
    data_fill_normal(x, (mrc_rng){5, 0}, 0, 1);
    data_fill_normal(z, (mrc_rng){5, 1}, 0, 1);
    for (int64_t k = 0; k < x->cols; k++) {
        mrc_store(x, 0, k, mrc_load(z, 17, k));
        mrc_store(x, 1, k, mrc_load(z, 33, k) + (k == 2 ? 1e-6 : 0));
    }
}

static void check_gradient(const char *spec, const mercer_matrix *got, const mercer_matrix *wanted, int64_t i,
                           int64_t k, double bound)
{
    assert_that(fabs(mrc_load(got, i, k) - mrc_load(wanted, i, k)) <= bound,
                "%s, row %d: %.17g, wanted %.17g, bound %.3g", spec, (int)i, mrc_load(got, i, k),
                mrc_load(wanted, i, k), bound);
}

/* Compute the same sum in four shards. Partial sums added up in a tree are rounded no more often than one sum over
   all centers. */
static mrc_expansion in_shards(mrc_backend *backend, const mrc_expansion *sum)
{
    mrc_expansion parted = *sum;
    assert_succeeds(backend->context, mrc_comm_create_virtual(&parted.comm, backend->context, 4));
    parted.total = sum->z->rows;
    return parted;
}

static void compare_products(mrc_backend *backend, const char *spec, mercer_dtype points, mercer_dtype weights)
{
    mercer_kernel kernel = parse(spec), slope;
    mercer_matrix x = data_matrix(ROWS, FEATURES, 0, points), z = data_matrix(CENTERS, FEATURES, FEATURES + 2, points),
                  alpha = data_matrix(CENTERS, OUTPUTS, 0, weights),
                  got = data_matrix(ROWS, OUTPUTS * FEATURES, 0, MERCER_F64),
                  shared = data_matrix(ROWS, OUTPUTS * FEATURES, 0, MERCER_F64),
                  wanted = data_matrix(ROWS, OUTPUTS * FEATURES, 0, MERCER_F64);
    const double origin[FEATURES] = {0};
    fill_points(&x, &z);
    data_fill_normal(&alpha, (mrc_rng){5, 2}, 0, 1);
    mrc_expansion sum = {.kernel = &kernel, .z = &z, .origin = origin};
    mrc_expansion parted = in_shards(backend, &sum);
    assert_true(mrc_kernel_slope(&kernel, &slope));
    assert_succeeds(backend->context, mrc_gradient_product(backend, &sum, &x, &alpha, &got));
    assert_succeeds(backend->context, mrc_gradient_product(backend, &parted, &x, &alpha, &shared));
    define_gradients(&kernel, &x, &z, &alpha, &wanted);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t l = 0; l < OUTPUTS; l++) {
            double bound = allowed(&slope, &x, i, &z, &alpha, l);
            for (int64_t k = l * FEATURES; k < (l + 1) * FEATURES; k++) {
                check_gradient(spec, &got, &wanted, i, k, bound);
                check_gradient(spec, &shared, &wanted, i, k, bound);
            }
            assert_true(bound < 1e-3);
        }
    mercer_comm_free(parted.comm);
    free(x.data), free(z.data), free(alpha.data), free(got.data), free(shared.data), free(wanted.data);
}

/*
 * Norm 1. With u = 2^-53 and t_j = |alpha_j psi_j|: r is off by d u r, psi by (2 + r / b) times that and by 8 u
 * of its own (4.2 |log psi| more where it is a power, below 64), the weighted value by u, and sums of p terms by p u.
 * Signs are exact.
 */
static double allowed_signs(const mercer_kernel *slope, const mercer_matrix *x, int64_t i, const mercer_matrix *z,
                            const mercer_matrix *alpha, int64_t l)
{
    double sum = 0;
    for (int64_t j = 0; j < z->rows; j++) {
        double r = 0;
        for (int64_t k = 0; k < x->cols; k++) r += fabs(mrc_load(x, i, k) - mrc_load(z, j, k));
        double t = fabs(mrc_load(alpha, j, l)) * mrc_kernel_of_distance(slope, r);
        sum += t * E * ((2 + r / slope->bandwidth) * (double)x->cols + 72 + (double)z->rows);
    }
    return 2 * sum; /* the definition is rounded too */
}

static void compare_signs(mrc_backend *backend, const char *spec, mercer_dtype points)
{
    mercer_kernel kernel = parse(spec), slope;
    mercer_matrix x = data_matrix(ROWS, FEATURES, 0, points), z = data_matrix(CENTERS, FEATURES, FEATURES + 2, points),
                  alpha = data_matrix(CENTERS, OUTPUTS, 0, MERCER_F64),
                  got = data_matrix(ROWS, OUTPUTS * FEATURES, 0, MERCER_F64),
                  shared = data_matrix(ROWS, OUTPUTS * FEATURES, 0, MERCER_F64),
                  wanted = data_matrix(ROWS, OUTPUTS * FEATURES, 0, MERCER_F64);
    const double origin[FEATURES] = {0};
    fill_points(&x, &z);
    for (int64_t i = 0; i < ROWS; i++)
        mrc_store(&x, i, 3, (double)(i % 3)); /* a feature in which most pairs coincide */
    for (int64_t j = 0; j < CENTERS; j++) mrc_store(&z, j, 3, (double)(j % 3));
    data_fill_normal(&alpha, (mrc_rng){5, 2}, 0, 1);
    mrc_expansion sum = {.kernel = &kernel, .z = &z, .origin = origin};
    assert_true(mrc_kernel_slope(&kernel, &slope));
    mrc_expansion parted = in_shards(backend, &sum);
    assert_succeeds(backend->context, mrc_gradient_product(backend, &sum, &x, &alpha, &got));
    assert_succeeds(backend->context, mrc_gradient_product(backend, &parted, &x, &alpha, &shared));
    define_gradients(&kernel, &x, &z, &alpha, &wanted);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t l = 0; l < OUTPUTS; l++) {
            double bound = allowed_signs(&slope, &x, i, &z, &alpha, l);
            for (int64_t k = l * FEATURES; k < (l + 1) * FEATURES; k++) {
                check_gradient(spec, &got, &wanted, i, k, bound);
                check_gradient(spec, &shared, &wanted, i, k, bound);
            }
        }
    mercer_comm_free(parted.comm);
    free(x.data), free(z.data), free(alpha.data), free(got.data), free(shared.data), free(wanted.data);
}

static void signs_on(mrc_backend *backend)
{
    static const char *const specs[] = {"laplace-l1:bandwidth=6", "exppower-l1:bandwidth=6,gamma=0.7",
                                        "lpq:p=1,q=0.8,bandwidth=6"};
    for (int s = 0; s < 3; s++) {
        compare_signs(backend, specs[s], MERCER_F64);
        compare_signs(backend, specs[s], MERCER_F32);
    }
}

static void test_norm_1(void **state)
{
    (void)state;
    for_each_backend(signs_on);
}

static void products_on(mrc_backend *backend)
{
    for (int i = 0; i < mrc_kernel_table_size; i++) {
        if (mrc_kernel_table[i].argument != MRC_ON_DISTANCE) continue;
        compare_products(backend, mrc_kernel_table[i].form.example, MERCER_F64, MERCER_F64);
        compare_products(backend, mrc_kernel_table[i].form.example, MERCER_F32, MERCER_F32);
    }
    compare_products(backend, "laplace:bandwidth=0.5", MERCER_F32, MERCER_F64);
    compare_products(backend, "exppower:bandwidth=2,gamma=1.5", MERCER_F64, MERCER_F32);
}

static void test_products(void **state)
{
    (void)state;
    for_each_backend(products_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slopes),     cmocka_unit_test(test_slopes_are_no_kernels),
        cmocka_unit_test(test_definition), cmocka_unit_test(test_products),
        cmocka_unit_test(test_norm_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

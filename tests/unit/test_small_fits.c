/* SPDX-License-Identifier: BSD-3-Clause */
/* Small fits of the search: their errors against regressions solved one at a time. */
#include "support/datasets.h"
#include "support/dense.h"

#include "core/numbers/random.h"
#include "search/small_fits.h"

#include <math.h>
#include <string.h>

enum { N = 40, D = 3, C = 2, P = 12 };

static double X[N][D], Y[N][C], W[N];
static const mrc_folds HELD_OUT = {.start = {0, 30, 40}, .count = 2, .held_out = true},
                       FOUR = {.start = {0, 10, 20, 30, 40}, .count = 4};

static double normal(uint64_t sequence, int index)
{
    return mrc_random_normal((mrc_rng){41, sequence}, (uint64_t)index);
}

static int open_tests(void **state)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) X[i][j] = normal(0, i * D + j);
        for (int l = 0; l < C; l++) Y[i][l] = sin(X[i][l]) + 0.1 * normal(1, i * C + l);
        W[i] = 0.5 + i % 3;
    }
    return open_datasets(state);
}

static mercer_matrix matrix_of(void *values, int64_t rows, int64_t cols)
{
    return mercer_matrix_view(values, rows, cols, MERCER_F64);
}

static mercer_kernel kernel_of(const char *text)
{
    mercer_kernel kernel;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, text));
    return kernel;
}

/* Returns weights fitted to the rows that are not held out, with the ridge lambda (not multiplied by the weight of the
   rows). */
static dense fit_to(dense k, dense zz, const bool *held, double lambda)
{
    int64_t p = zz.rows;
    dense a = dense_copy(zz), b = dense_new(p, C);
    for (int64_t i = 0; i < p * p; i++) a.a[i] *= lambda;
    for (int i = 0; i < N; i++) {
        if (held[i]) continue;
        for (int j = 0; j < p; j++) {
            for (int m = 0; m < p; m++) AT(a, j, m) += W[i] * AT(k, i, j) * AT(k, i, m);
            for (int l = 0; l < C; l++) AT(b, j, l) += W[i] * AT(k, i, j) * Y[i][l];
        }
    }
    dense alpha = dense_solve(a, b);
    free(a.a), free(b.a);
    return alpha;
}

/* Returns the weighted squared error of the held-out rows. */
static double error_on(dense k, dense alpha, const bool *held)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int l = 0; l < C && held[i]; l++) {
            double f = 0;
            for (int j = 0; j < alpha.rows; j++) f += AT(k, i, j) * AT(alpha, j, l);
            sum += W[i] * (f - Y[i][l]) * (f - Y[i][l]);
        }
    return sum;
}

/* Returns the error over folds of 10 rows from fold `first` on, each held out once. The ridge is per unit of
   training weight: of this fit, or of an average fit if `mean`. */
static double score(dense k, dense zz, double ridge, int first, bool mean)
{
    double sum = 0, scored = 0, total = 0;
    for (int i = 0; i < N; i++) total += W[i];
    for (int f = first; f < N / 10; f++) {
        bool held[N];
        double own = 0;
        for (int i = 0; i < N; i++) held[i] = i / 10 == f;
        for (int i = 0; i < N; i++) own += held[i] ? W[i] : 0;
        dense alpha = fit_to(k, zz, held, ridge * (mean ? total * (1 - 10.0 / N) : total - own));
        sum += error_on(k, alpha, held);
        scored += own;
        free(alpha.a);
    }
    return sum / scored / C;
}

/*
 * Held-out rows and folds against separate fits. Both sides solve systems of condition up to that of K(Z, Z) times
 * 1 / ridge, here below 1e6, in double: 1e-9. The library adds 1e-10 of the diagonal, which changes weights by 1e-10
 * times that condition: 1e-4 of an error at most, and 1e-6 at the ridges of this test.
 */
static void test_errors(void **state)
{
    (void)state;
    static const double ridges[] = {1e-3, 1e-2, 0.3};
    mercer_kernel kernel = kernel_of("laplace-l1:bandwidth=2");
    mercer_matrix x = matrix_of(X, N, D), y = matrix_of(Y, N, C);
    for (int held_out = 0; held_out < 2; held_out++) {
        mercer_matrix z = matrix_of(X, held_out ? P : N, D);
        dense k = dense_kernel(&kernel, &x, &z), zz = dense_kernel(&kernel, &z, &z);
        mrc_small_rows rows = {.x = x, .y = y, .weights = W, .folds = held_out ? HELD_OUT : FOUR};
        double errors[3];
        assert_succeeds(context, mrc_small_fits(context, &rows, &kernel, P, ridges, 3, errors));
        for (int r = 0; r < 3; r++) {
            double wanted = score(k, zz, ridges[r], held_out ? 3 : 0, !held_out);
            assert_that(fabs(errors[r] - wanted) < 1e-6 * wanted, "held out %d, ridge %g: %.12g, one by one %.12g",
                        held_out, ridges[r], errors[r], wanted);
        }
        free(k.a), free(zz.a);
    }
}

/* Folds of different sizes, one of them empty, and rows of weight 0: the errors equal those without these rows, up
   to the jitter. */
static void test_folds(void **state)
{
    (void)state;
    enum { KEPT = 33 };
    static const double ridges[] = {1e-2};
    static double points[N][D], targets[N][C], weights[N];
    static const int64_t counts[2][4] = {{9, 0, 20, 4}, {12, 0, 24, 4}};
    double errors[2];
    mercer_kernel kernel = kernel_of("laplace-l1:bandwidth=2");
    for (int all = 0; all < 2; all++) {
        mrc_small_rows rows = {.x = matrix_of(points, all ? N : KEPT, D),
                               .y = matrix_of(targets, all ? N : KEPT, C),
                               .weights = weights,
                               .folds.count = 4};
        int64_t n = 0, from = 0;
        for (int f = 0; f < 4; f++) {
            rows.folds.start[f + 1] = rows.folds.start[f] + counts[all][f];
            for (int64_t i = 0; i < counts[all][f]; i++, n++) {
                bool kept = i < counts[0][f];
                memcpy(points[n], X[kept ? from : N - 1 - n % 7], sizeof points[n]);
                memcpy(targets[n], Y[kept ? from : N - 1 - n % 7], sizeof targets[n]);
                weights[n] = kept ? W[from] : 0;
                from += kept;
            }
        }
        assert_succeeds(context, mrc_small_fits(context, &rows, &kernel, 0, ridges, 1, &errors[all]));
    }
    assert_that(fabs(errors[0] - errors[1]) < 1e-6 * errors[0], "%.12g, with rows of weight 0 %.12g", errors[0],
                errors[1]);
}

/* Points in float: 12 kernel values with an error of 1e-7 each, times a condition of 1e3 over the ridge's share. */
static void test_float(void **state)
{
    (void)state;
    static const double ridges[] = {1e-2};
    static float single[N][D];
    double errors[2];
    mercer_kernel kernel = kernel_of("gaussian:bandwidth=1");
    for (int i = 0; i < N * D; i++) single[i / D][i % D] = (float)X[i / D][i % D];
    for (int wide = 0; wide < 2; wide++) {
        mercer_matrix x = mercer_matrix_view(wide ? (void *)X : (void *)single, N, D, wide ? MERCER_F64 : MERCER_F32);
        mrc_small_rows rows = {.x = x, .y = matrix_of(Y, N, C), .weights = W, .folds = HELD_OUT};
        assert_succeeds(context, mrc_small_fits(context, &rows, &kernel, P, ridges, 1, &errors[wide]));
    }
    assert_that(fabs(errors[0] - errors[1]) < 1e-3 * errors[1], "in float %g, in double %g", errors[0], errors[1]);
}

/* If the centers are all training rows, K cancels in the equations: the errors equal those of the full equations,
   which weights of 1 select. Both solve systems of condition at most that of K over the smallest ridge, in double;
   the jitter, 1e-10 of the diagonal, changes weights by less than 1e-6 at ridges of 1e-3 and more. */
static void test_all_rows_as_centers(void **state)
{
    (void)state;
    enum { FITTED = 30 };
    static const double ridges[] = {1e-3, 1e-2, 0.3};
    static double ones[N];
    double errors[2][3];
    mercer_kernel kernel = kernel_of("laplace-l1:bandwidth=2");
    mercer_matrix x = matrix_of(X, N, D);
    for (int i = 0; i < N; i++) ones[i] = 1;
    for (int whole = 0; whole < 2; whole++) {
        mrc_small_rows rows = {.x = x, .y = matrix_of(Y, N, C), .weights = whole ? NULL : ones, .folds = HELD_OUT};
        assert_succeeds(context, mrc_small_fits(context, &rows, &kernel, FITTED, ridges, 3, errors[whole]));
    }
    for (int r = 0; r < 3; r++)
        assert_that(fabs(errors[0][r] - errors[1][r]) < 1e-6 * errors[0][r], "ridge %g: %.12g, %.12g", ridges[r],
                    errors[0][r], errors[1][r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors), cmocka_unit_test(test_folds),
                                       cmocka_unit_test(test_float), cmocka_unit_test(test_all_rows_as_centers)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Small fits of the search: their errors and weights against fits that are made one by one, and of distances that are kept. */
#include "support/datasets.h"
#include "support/dense.h"

#include "core/numbers/random.h"
#include "tune/tune.h"

#include <math.h>
#include <string.h>

enum { N = 40, D = 3, C = 2, P = 12 };

static double X[N][D], Y[N][C], W[N];

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

/* Weights fitted to the rows that are not left out, with the ridge lambda itself. */
static dense fit_to(dense k, dense zz, const bool *left, double lambda)
{
    dense a = dense_copy(zz), b = dense_new(P, C);
    for (int64_t i = 0; i < P * P; i++) a.a[i] *= lambda;
    for (int i = 0; i < N; i++) {
        if (left[i]) continue;
        for (int j = 0; j < P; j++) {
            for (int m = 0; m < P; m++) AT(a, j, m) += W[i] * AT(k, i, j) * AT(k, i, m);
            for (int l = 0; l < C; l++) AT(b, j, l) += W[i] * AT(k, i, j) * Y[i][l];
        }
    }
    dense alpha = dense_solve(a, b);
    free(a.a), free(b.a);
    return alpha;
}

/* The squared error of the rows that were left out, each with its weight. */
static double error_on(dense k, dense alpha, const bool *left)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int l = 0; l < C && left[i]; l++) {
            double f = 0;
            for (int j = 0; j < P; j++) f += AT(k, i, j) * AT(alpha, j, l);
            sum += W[i] * (f - Y[i][l]) * (f - Y[i][l]);
        }
    return sum;
}

/* Over folds of `size` rows, from fold `first` on: every fold left out once. The ridge goes with the weight of the rows that are
   fitted to, or of all, as in closed forms. */
static double judge(dense k, dense zz, double ridge, int first, int size, bool of_all)
{
    double sum = 0, judged = 0, total = 0;
    for (int i = 0; i < N; i++) total += W[i];
    for (int f = first; f < N / size; f++) {
        bool left[N];
        double own = 0;
        for (int i = 0; i < N; i++) left[i] = i / size == f;
        for (int i = 0; i < N; i++) own += left[i] ? W[i] : 0;
        dense alpha = fit_to(k, zz, left, ridge * (of_all ? total : total - own));
        sum += error_on(k, alpha, left);
        judged += own;
        free(alpha.a);
    }
    return sum / judged / C;
}

/* |y - f|^2 / n / (1 - trace / n)^2 from the smoother itself, n being the weight of all rows. */
static double generalise(dense k, dense zz, double ridge)
{
    bool none[N] = {false}, all[N];
    double total = 0, trace = 0;
    for (int i = 0; i < N; i++) all[i] = true, total += W[i];
    dense alpha = fit_to(k, zz, none, ridge * total), a = dense_copy(zz);
    double fit = error_on(k, alpha, all);
    for (int64_t i = 0; i < P * P; i++) a.a[i] *= ridge * total;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < P * P; j++) a.a[j] += W[i] * AT(k, i, j / P) * AT(k, i, j % P);
    dense turned = dense_transposed(k), solved = dense_solve(a, turned);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < P; j++) trace += W[i] * AT(k, i, j) * AT(solved, j, i);
    free(alpha.a), free(a.a), free(turned.a), free(solved.a);
    return fit / total / C / pow(1 - trace / total, 2);
}

/*
 * All criteria against fits one by one. Both sides solve systems of condition up to that of K(Z, Z) times 1 / ridge, here below
 * 1e6, in double: 1e-9. The library adds 1e-10 of the diagonal, which changes weights by 1e-10 times that condition: 1e-4 of an
 * error at most, and 1e-6 leaves that only where it does not happen.
 */
static void test_criteria(void **state)
{
    (void)state;
    static const double ridges[] = {1e-3, 1e-2, 0.3};
    mercer_kernel kernel = kernel_of("laplace-l1:bandwidth=2");
    mercer_matrix x = matrix_of(X, N, D), y = matrix_of(Y, N, C), z = matrix_of(X, P, D);
    dense k = dense_kernel(&kernel, &x, &z), zz = dense_kernel(&kernel, &z, &z);
    for (int criterion = MRC_HOLDOUT; criterion <= MRC_GCV; criterion++) {
        mrc_small_rows rows = {.x = x, .y = y, .weights = W};
        int size = criterion == MRC_LOO ? 1 : 10;
        rows.count = criterion == MRC_HOLDOUT ? 2 : criterion == MRC_KFOLD ? 4 : 1;
        rows.held_out = criterion == MRC_HOLDOUT;
        for (int f = 0; f < 4 && criterion == MRC_KFOLD; f++) rows.folds[f] = (mrc_span){10 * f, 10};
        if (criterion != MRC_KFOLD) rows.folds[0] = (mrc_span){0, rows.held_out ? 30 : N};
        if (rows.held_out) rows.folds[1] = (mrc_span){30, 10};
        mrc_small_fits *fits = NULL;
        double errors[3], wanted;
        assert_succeeds(context, mrc_small_fits_create(&fits, context, &rows, P, (mrc_criterion)criterion, ridges, 3));
        assert_succeeds(context, mrc_small_fits_try(fits, &kernel, &x, &z, NULL, errors));
        for (int r = 0; r < 3; r++) {
            wanted = criterion == MRC_GCV ? generalise(k, zz, ridges[r])
                                          : judge(k, zz, ridges[r], rows.held_out ? 3 : 0, size, criterion == MRC_LOO);
            assert_that(fabs(errors[r] - wanted) < 1e-6 * wanted, "%s, ridge %g: %.12g, one by one %.12g",
                        mrc_criterion_name((mrc_criterion)criterion), ridges[r], errors[r], wanted);
        }
        mrc_small_fits_free(fits);
    }
    free(k.a), free(zz.a);
}

/* Weights of a fit to all rows that are fitted to, and points in float. */
static void test_weights(void **state)
{
    (void)state;
    static const double ridges[] = {1e-2};
    static float single[N][D];
    double weights[P][C], errors[2], total = 0;
    bool held[N], none[N] = {false};
    mercer_kernel kernel = kernel_of("gaussian:bandwidth=1");
    mercer_matrix x = matrix_of(X, N, D), y = matrix_of(Y, N, C), z = matrix_of(X, P, D),
                  out = matrix_of(weights, P, C);
    dense k = dense_kernel(&kernel, &x, &z), zz = dense_kernel(&kernel, &z, &z);
    for (int i = 0; i < N; i++) held[i] = i >= 30, total += W[i];
    for (int closed = 0; closed < 2; closed++) {
        mrc_small_rows rows = {.x = x, .y = y, .weights = W, .count = closed ? 1 : 2, .held_out = !closed};
        rows.folds[0] = (mrc_span){0, closed ? N : 30}, rows.folds[1] = (mrc_span){30, 10};
        mrc_small_fits *fits = NULL;
        assert_succeeds(context,
                        mrc_small_fits_create(&fits, context, &rows, P, closed ? MRC_LOO : MRC_HOLDOUT, ridges, 1));
        assert_succeeds(context, mrc_small_fits_try(fits, &kernel, &x, &z, NULL, errors + closed));
        assert_succeeds(context, mrc_small_fits_weights(fits, ridges[0], &out));
        double mass = total;
        for (int i = 30; i < N && !closed; i++) mass -= W[i];
        dense wanted = fit_to(k, zz, closed ? none : held, ridges[0] * mass);
        for (int i = 0; i < P * C; i++)
            assert_that(fabs(weights[i / C][i % C] - wanted.a[i]) < 1e-5 * dense_norm(wanted), "weight %d: %g, %g", i,
                        weights[i / C][i % C], wanted.a[i]);
        free(wanted.a);
        mrc_small_fits_free(fits);
    }
    /* Kernel values are then off by 1e-7 each: 12 of them, times a condition of 1e3 over the ridge's share. */
    for (int i = 0; i < N * D; i++) single[i / D][i % D] = (float)X[i / D][i % D];
    mercer_matrix xs = mercer_matrix_view(single, N, D, MERCER_F32), zs = mercer_matrix_view(single, P, D, MERCER_F32);
    mrc_small_rows rows = {.x = xs, .y = y, .weights = W, .count = 2, .held_out = true};
    rows.folds[0] = (mrc_span){0, 30}, rows.folds[1] = (mrc_span){30, 10};
    mrc_small_fits *fits = NULL;
    double error;
    assert_succeeds(context, mrc_small_fits_create(&fits, context, &rows, P, MRC_HOLDOUT, ridges, 1));
    assert_succeeds(context, mrc_small_fits_try(fits, &kernel, &xs, &zs, NULL, &error));
    assert_that(fabs(error - errors[0]) < 1e-3 * errors[0], "in float %g, in double %g", error, errors[0]);
    mrc_small_fits_free(fits);
    free(k.a), free(zz.a);
}

/* Where centers are all rows that are fitted to, K is taken out of the equations: the errors and weights are those of the others.
   Both solve systems of condition at most that of K over the smallest ridge, in double; what is added to the diagonal, 1e-10
   of it, changes weights by less than 1e-6 at ridges of 30e-3 and more. */
static void test_whole(void **state)
{
    (void)state;
    enum { FITTED = 30 };
    static const double ridges[] = {1e-3, 1e-2, 0.3};
    static double centers[FITTED][D], weights[2][FITTED][C];
    double errors[2][3], flops[2];
    mercer_kernel kernel = kernel_of("laplace-l1:bandwidth=2");
    mercer_matrix x = matrix_of(X, N, D), z = matrix_of(centers, FITTED, D);
    const mrc_span folds[] = {{0, 16}, {20, 14}, {34, 6}};
    for (int i = 0, done = 0; done < FITTED; i++)
        for (int f = 0; f < 2; f++)
            for (int j = 0; j < D && i < folds[f].count; j++) {
                centers[done][j] = X[folds[f].first + i][j];
                done += j == D - 1;
            }
    for (int own = 0; own < 2; own++) {
        mrc_small_rows rows = {.x = x, .y = matrix_of(Y, N, C), .count = 3, .held_out = true, .own_centers = own == 1};
        memcpy(rows.folds, folds, sizeof folds);
        mrc_small_fits *fits = NULL;
        mercer_matrix out = matrix_of(weights[own], FITTED, C);
        assert_succeeds(context, mrc_small_fits_create(&fits, context, &rows, FITTED, MRC_HOLDOUT, ridges, 3));
        assert_succeeds(context, mrc_small_fits_try(fits, &kernel, &x, &z, NULL, errors[own]));
        assert_succeeds(context, mrc_small_fits_weights(fits, ridges[1], &out));
        flops[own] = mrc_small_fits_flops(fits);
        mrc_small_fits_free(fits);
    }
    for (int r = 0; r < 3; r++)
        assert_that(fabs(errors[0][r] - errors[1][r]) < 1e-6 * errors[0][r], "ridge %g: %.12g, %.12g", ridges[r],
                    errors[0][r], errors[1][r]);
    for (int i = 0; i < FITTED * C; i++)
        assert_that(fabs(weights[0][i / C][i % C] - weights[1][i / C][i % C]) < 1e-6, "weight %d: %g, %g", i,
                    weights[0][i / C][i % C], weights[1][i / C][i % C]);
    assert_true(flops[0] - flops[1] == (double)FITTED * FITTED * (FITTED + 2 * C));
}

/* Distances that are kept change no bit of an error, whatever the folds are and for every function of their norm. */
static void test_kept_sums(void **state)
{
    (void)state;
    static const char *const kernels[] = {"laplace-l1:bandwidth=1", "laplace-l1:bandwidth=4",
                                          "exppower-l1:bandwidth=2,gamma=0.7", "gaussian:bandwidth=1",
                                          "laplace:bandwidth=2"};
    static const double ridges[] = {1e-3, 0.3};
    static float single[N][D];
    for (int i = 0; i < N * D; i++) single[i / D][i % D] = (float)X[i / D][i % D];
    mercer_matrix x = mercer_matrix_view(single, N, D, MERCER_F32), z = mercer_matrix_view(single, P, D, MERCER_F32);
    mrc_small_rows rows = {.x = x, .y = matrix_of(Y, N, C), .weights = W, .count = 3, .held_out = true};
    rows.folds[0] = (mrc_span){2, 11}, rows.folds[1] = (mrc_span){15, 9}, rows.folds[2] = (mrc_span){30, 10};
    assert_true(mrc_kept_sums_fit(context, &rows, P, 30 * P * 4 + P * P * 8));
    assert_false(mrc_kept_sums_fit(context, &rows, P, 30 * P * 4 + P * P * 8 - 1));
    for (int criterion = MRC_HOLDOUT; criterion <= MRC_GCV; criterion++) {
        mrc_small_fits *fits = NULL;
        mrc_kept_sums sums = {0};
        double errors[2][2];
        assert_succeeds(context, mrc_small_fits_create(&fits, context, &rows, P, (mrc_criterion)criterion, ridges, 2));
        for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
            mercer_kernel kernel = kernel_of(kernels[i]);
            if (i == 0 || i == 3) assert_succeeds(context, mrc_kept_sums_make(&sums, context, &kernel, &rows, &x, &z));
            assert_succeeds(context, mrc_small_fits_try(fits, &kernel, &x, &z, NULL, errors[0]));
            assert_succeeds(context, mrc_small_fits_try(fits, &kernel, &x, &z, &sums, errors[1]));
            for (int r = 0; r < 2; r++)
                assert_that(errors[0][r] == errors[1][r], "%s, ridge %g: %.17g, of kept distances %.17g", kernels[i],
                            ridges[r], errors[0][r], errors[1][r]);
        }
        mrc_kept_sums_free(&sums);
        mrc_small_fits_free(fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_criteria), cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_whole), cmocka_unit_test(test_kept_sums)};
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}

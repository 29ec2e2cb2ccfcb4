/* SPDX-License-Identifier: BSD-3-Clause */
/* Top eigenpairs by the block method and by LAPACK, the tail, beta, the step rule, and the spectrum after
   preconditioning. */
#include "support/training.h"

#include "solvers/iteration/eigensystem.h"

enum { D = 4 };

static const double origin[16];

typedef struct bench {
    task data; /* task whose x is the sample S */
    mrc_comm *comm;
    mrc_centers centers;
} bench;

static void open_bench(bench *self, const char *kernel, int64_t s, int64_t d)
{
    self->data = task_open(context, kernel, (sizes){s, 1, d, 1}, 1, MERCER_F64);
    assert_succeeds(context, mrc_comm_create_virtual(&self->comm, context, 1));
    assert_succeeds(context, mrc_centers_create(&self->centers, context->backend, self->comm, &self->data.kernel,
                                                &self->data.z, self->data.z.rows, origin, MERCER_F64));
}

static void close_bench(bench *self)
{
    mrc_centers_destroy(&self->centers);
    mercer_comm_free(self->comm);
    task_close(&self->data);
}

static mrc_eigensystem system_of(bench *self, int64_t q)
{
    mrc_eigensystem system;
    assert_succeeds(context, mrc_eigensystem_create(&system, &self->centers, &self->data.x, q, 5));
    return system;
}

/* K(S,S)/s */
static dense scaled_kernel(const bench *self)
{
    dense k = dense_kernel(&self->data.kernel, &self->data.x, &self->data.x);
    for (int64_t i = 0; i < k.rows * k.cols; i++) k.a[i] /= (double)k.rows;
    return k;
}

/* ---- Eigenpairs ---------------------------------------------------------------------------------------------- */

/* Check that the eigenpairs of K satisfy |K v - lambda v| <= limit, |V'V - I| <= limit, and the sign rule. */
static void check_pairs(dense k, const double *values, dense vectors, double limit, const char *what)
{
    dense kv = dense_times(false, false, k, vectors), gram = dense_times(true, false, vectors, vectors);
    for (int64_t j = 0; j < vectors.cols; j++) {
        double residual = 0, largest = 0;
        for (int64_t i = 0; i < vectors.rows; i++) {
            residual = hypot(residual, AT(kv, i, j) - values[j] * AT(vectors, i, j));
            if (fabs(AT(vectors, i, j)) > fabs(largest)) largest = AT(vectors, i, j);
        }
        assert_that(residual <= limit * values[0], "%s, pair %d: residual %g of %g", what, (int)j, residual, values[0]);
        assert_that(largest > 0, "%s, pair %d: the largest entry is %g", what, (int)j, largest);
        assert_true(j == 0 || values[j] <= values[j - 1]);
        for (int64_t i = 0; i < vectors.cols; i++)
            assert_that(fabs(AT(gram, i, j) - (i == j)) <= 1e-12, "%s: v_%d'v_%d = %g", what, (int)i, (int)j,
                        AT(gram, i, j));
    }
    free(kv.a), free(gram.a);
}

/*
 * The block method stops at residuals of 1e-7 lambda_1. Each Ritz value then has an eigenvalue within 1e-7 lambda_1
 * (and within its square over the gap); the comparison with LAPACK shows that the i-th belongs to the i-th. Two
 * Cholesky steps make the columns orthonormal up to b^1.5 u, far below 1e-12.
 */
static void test_block_method(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int64_t s, r;
    } cases[] = {{"laplace:bandwidth=3", 200, 1},
                 {"laplace:bandwidth=3", 300, 30},
                 {"gaussian:bandwidth=2", 250, 20},
                 {"cauchy:bandwidth=1", 40, 39},
                 {"laplace:bandwidth=3", 20, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench self;
        open_bench(&self, cases[i].kernel, cases[i].s, D);
        int64_t s = cases[i].s, r = cases[i].r;
        dense k = scaled_kernel(&self), all = dense_new(s, s), got = dense_new(s, r), again = dense_new(s, r);
        double *values = calloc((size_t)s, sizeof(double)), *expected = calloc((size_t)s, sizeof(double));
        double *twice = calloc((size_t)s, sizeof(double));
        mercer_matrix a = mrc_view(k.a, s, s, MERCER_F64), v = mrc_view(got.a, s, r, MERCER_F64);
        mercer_matrix w = mrc_view(again.a, s, r, MERCER_F64);
        dense original = dense_copy(k);
        double left;
        assert_succeeds(context, mrc_eigen_block(&self.centers, &a, values, &v, 5, false, &left));
        assert_succeeds(context, mrc_eigen_block(&self.centers, &a, twice, &w, 5, false, &left));
        assert_memory_equal(original.a, k.a, (size_t)(s * s) * sizeof(double));
        assert_memory_equal(values, twice, (size_t)r * sizeof(double));
        assert_memory_equal(got.a, again.a, (size_t)(s * r) * sizeof(double));
        check_pairs(k, values, got, 1e-7 + (double)s * U, cases[i].kernel);
        assert_succeeds(context, mrc_eigen_block(&self.centers, &a, twice, &w, 6, false, &left));
        mercer_matrix full = mrc_view(all.a, s, s, MERCER_F64), scratch = mrc_view(original.a, s, s, MERCER_F64);
        assert_succeeds(context, context->backend->ops->eigen_top(context->backend, &scratch, s, expected, &full));
        check_pairs(k, expected, all, (double)s * 4 * U, "LAPACK");
        for (int64_t j = 0; j < r; j++) {
            assert_that(fabs(values[j] - expected[j]) <= 1e-7 * expected[0], "%s, value %d: %g, LAPACK %g",
                        cases[i].kernel, (int)j, values[j], expected[j]);
            assert_that(fabs(twice[j] - expected[j]) <= 1e-7 * expected[0], "another seed: %g, LAPACK %g", twice[j],
                        expected[j]);
        }
        free(k.a), free(all.a), free(got.a), free(again.a), free(original.a), free(values), free(expected), free(twice);
        close_bench(&self);
    }
}

/*
 * Rough pairs: |K v - theta v| <= sqrt(theta theta_r) / 20, so there is an eigenvalue within theta / 20 of each. The
 * comparison with LAPACK shows that they are the largest ones, each off by the residual's square over the distance to the next eigenvalue: 1 %
 * here, where the distances to the eigenvalues outside the block are a tenth and more. Equal seeds give bitwise identical
 * pairs.
 */
static void test_rough_pairs(void **state)
{
    (void)state;
    enum { S = 400, R = 30 };
    bench self;
    open_bench(&self, "laplace:bandwidth=3", S, D);
    dense k = scaled_kernel(&self), got = dense_new(S, R), again = dense_new(S, R), all = dense_new(S, S);
    double left, values[R], twice[R], *expected = calloc(S, sizeof *expected);
    mercer_matrix a = mrc_view(k.a, S, S, MERCER_F64), v = mrc_view(got.a, S, R, MERCER_F64),
                  w = mrc_view(again.a, S, R, MERCER_F64), full = mrc_view(all.a, S, S, MERCER_F64);
    assert_succeeds(context, mrc_eigen_block(&self.centers, &a, values, &v, 5, true, &left));
    assert_succeeds(context, mrc_eigen_block(&self.centers, &a, twice, &w, 5, true, &left));
    assert_memory_equal(values, twice, sizeof values);
    assert_memory_equal(got.a, again.a, (size_t)(S * R) * sizeof(double));
    dense kv = dense_times(false, false, k, got), gram = dense_times(true, false, got, got), original = dense_copy(k);
    mercer_matrix scratch = mrc_view(original.a, S, S, MERCER_F64);
    assert_succeeds(context, context->backend->ops->eigen_top(context->backend, &scratch, S, expected, &full));
    for (int64_t j = 0; j < R; j++) {
        double residual = 0;
        for (int64_t i = 0; i < S; i++) residual = hypot(residual, AT(kv, i, j) - values[j] * AT(got, i, j));
        assert_that(residual <= 0.05 * sqrt(values[j] * values[R - 1]) * (1 + 1e-9), "pair %d: residual %g of %g",
                    (int)j, residual, values[j]);
        assert_that(fabs(values[j] - expected[j]) <= 1e-2 * expected[j], "value %d: %g, LAPACK %g", (int)j, values[j],
                    expected[j]);
        for (int64_t i = 0; i < R; i++) assert_true(fabs(AT(gram, i, j) - (i == j)) <= 1e-12);
    }
    free(k.a), free(got.a), free(again.a), free(all.a), free(kv.a), free(gram.a), free(original.a), free(expected);
    close_bench(&self);
}

/* Request more pairs than the rank, 5, from the block method. */
static void low_rank(bool sparse)
{
    bench self;
    int64_t s = 150, r = 12;
    open_bench(&self, "linear", s, 5);
    if (sparse) /* exact rank 5 without rounding noise: only five rows are not 0 */
        memset(mrc_row(&self.data.x, 5), 0, (size_t)((s - 5) * 5) * sizeof(double));
    dense k = scaled_kernel(&self), got = dense_new(s, r);
    double left, values[12];
    mercer_matrix a = mrc_view(k.a, s, s, MERCER_F64), v = mrc_view(got.a, s, r, MERCER_F64);
    assert_succeeds(context, mrc_eigen_block(&self.centers, &a, values, &v, 5, false, &left));
    dense first = dense_new(s, 5);
    for (int64_t i = 0; i < s; i++)
        for (int64_t j = 0; j < 5; j++) AT(first, i, j) = AT(got, i, j);
    check_pairs(k, values, first, 1e-7 + (double)s * U, "rank 5");
    for (int64_t j = 5; j < r; j++) assert_that(fabs(values[j]) <= 1e-7 * values[0], "value %d: %g", (int)j, values[j]);
    free(k.a), free(got.a), free(first.a);
    close_bench(&self);
}

static void test_block_method_low_rank(void **state)
{
    (void)state;
    low_rank(false);
    low_rank(true);
}

/* ---- The eigensystem ----------------------------------------------------------------------------------------- */

/* lambda, t and D by their definitions. The values of Jacobi and of LAPACK are accurate to s u lambda_1. */
static void test_definitions(void **state)
{
    (void)state;
    for (int64_t q = 0; q <= 9; q += 3) {
        bench self;
        open_bench(&self, "laplace:bandwidth=2", 60, D);
        mrc_eigensystem system = system_of(&self, q);
        dense k = scaled_kernel(&self), vectors = dense_new(60, 60);
        double values[60], slack;
        dense_eigen(k, values, vectors);
        slack = 60 * V * U * values[0];
        assert_int_equal(system.q, q);
        assert_int_equal(system.s, 60);
        assert_that(fabs(system.tail - values[q]) <= slack, "t = %g, expected %g", system.tail, values[q]);
        for (int64_t i = 0; i < q; i++) {
            double d = (1 - values[q] / values[i]) / values[i] / 60;
            assert_that(fabs(system.lambda[i] - values[i]) <= slack, "lambda_%d = %g", (int)i, system.lambda[i]);
            /* |dD/dlambda| + |dD/dt| <= 3 / lambda^2 / s */
            assert_that(fabs(system.d[i] - d) <= 3 * slack / values[i] / values[i] / 60, "D_%d = %g, expected %g",
                        (int)i, system.d[i], d);
        }
        if (q > 0) {
            dense e = dense_of(&system.vectors);
            check_pairs(k, system.lambda, e, 60 * V * U, "the system");
            free(e.a);
        }
        free(k.a), free(vectors.a);
        mrc_eigensystem_destroy(&system, context->backend);
        close_bench(&self);
    }
}

/* Six distinct rows, each ten times: rank 6. Directions beyond the rank are dropped; the tail stays above rounding. */
static void test_duplicate_rows(void **state)
{
    (void)state;
    bench self;
    open_bench(&self, "gaussian:bandwidth=1", 60, D);
    for (int64_t i = 6; i < 60; i++) memcpy(mrc_row(&self.data.x, i), mrc_row(&self.data.x, i % 6), D * sizeof(double));
    for (int64_t q = 3; q < 60; q += 8) {
        mrc_eigensystem system = system_of(&self, q);
        assert_that(system.tail >= 1e-9 * (1 - 4 * U) * system.lambda[0], "t = %g", system.tail);
        /* Beyond the rank there is only rounding error, so the tail is at its floor of 1e-9 lambda_1. */
        if (q > 6) assert_int_equal(system.q, 6);
        if (q > 6) assert_that(system.tail <= 2e-9 * system.lambda[0], "t = %g is not rounding", system.tail);
        for (int64_t i = 0; i < system.q; i++) assert_true(isfinite(system.d[i]) && system.d[i] >= 0);
        double beta;
        assert_succeeds(context, mrc_eigensystem_beta(&system, &self.centers, &self.data.x, MRC_STEP_SHARP, &beta));
        assert_true(beta > 0 && beta <= 1);
        assert_int_equal(mrc_critical_batch(beta, system.tail, 1000) >= 1, 1);
        mrc_eigensystem_destroy(&system, context->backend);
    }
    close_bench(&self);
}

static void test_smallest_samples(void **state)
{
    (void)state;
    bench self;
    open_bench(&self, "laplace:bandwidth=2", 1, D);
    mrc_eigensystem system = system_of(&self, 7);
    assert_int_equal(system.q, 0);
    assert_true(system.tail == 1 && system.s == 1); /* a single sample: K(x,x) / 1 */
    mrc_eigensystem_destroy(&system, context->backend);
    mercer_matrix none = mrc_rows(&self.data.x, 0, 0);
    assert_fails(context, mrc_eigensystem_create(&system, &self.centers, &none, 1, 5), MERCER_ERROR_SHAPE, "sample");
    close_bench(&self);
    open_bench(&self, "laplace:bandwidth=2", 2, D);
    system = system_of(&self, 7);
    dense both = dense_kernel(&self.data.kernel, &self.data.x, &self.data.x);
    double k = AT(both, 0, 1);
    free(both.a);
    assert_int_equal(system.q, 1);
    assert_true(fabs(system.lambda[0] - (1 + k) / 2) <= V * U && fabs(system.tail - (1 - k) / 2) <= V * U);
    mrc_eigensystem_destroy(&system, context->backend);
    close_bench(&self);
}

/* ---- beta, batch, step --------------------------------------------------------------------------------------- */

static void test_beta(void **state)
{
    (void)state;
    static const char *const specs[] = {"laplace:bandwidth=2", "polynomial:degree=2,scale=0.1,offset=1"};
    for (int i = 0; i < 2; i++) {
        bench self;
        open_bench(&self, specs[i], 60, D);
        mrc_eigensystem system = system_of(&self, 6);
        task fresh = task_open(context, specs[i], (sizes){50, 1, D, 1}, 1.3, MERCER_F64);
        double beta, top = 0, whole = 0;
        assert_succeeds(context, mrc_eigensystem_beta(&system, &self.centers, &fresh.x, MRC_STEP_SHARP, &beta));
        dense k = dense_kernel(&self.data.kernel, &fresh.x, &self.data.x), e = dense_of(&system.vectors);
        dense own = dense_kernel(&self.data.kernel, &fresh.x, &fresh.x), phi = dense_times(false, false, k, e);
        for (int64_t r = 0; r < 50; r++) {
            double value = AT(own, r, r);
            whole = fmax(whole, value);
            for (int64_t j = 0; j < 6; j++) value -= system.d[j] * AT(phi, r, j) * AT(phi, r, j);
            top = fmax(top, value);
        }
        double expected = fmin(1.05 * top, whole);
        assert_that(fabs(beta - expected) <= 60 * V * U * whole, "%s: beta %g, expected %g", specs[i], beta, expected);
        assert_true(top < whole); /* preconditioning lowers the diagonal */
        free(k.a), free(e.a), free(own.a), free(phi.a);
        mrc_eigensystem_destroy(&system, context->backend);
        task_close(&fresh);
        close_bench(&self);
    }
}

static void test_batch_and_step(void **state)
{
    (void)state;
    assert_int_equal(mrc_critical_batch(0.5, 0.01, 1000), 50);
    assert_int_equal(mrc_critical_batch(0.5, 0.01, 20), 20);
    assert_int_equal(mrc_critical_batch(0.01, 0.5, 1000), 1);
    assert_int_equal(mrc_critical_batch(0.5, 0, 1000), 1000);
    assert_int_equal(mrc_critical_batch(1e300, 1e-300, 1000), 1000);
    assert_true(mrc_step_over_batch(MRC_STEP_SHARP, 0.5, 0.01, 1, 0.5, 0) == 2); /* 1 / beta at m = 1 */
    assert_true(mrc_step_over_batch(MRC_STEP_SHARP, 0.5, 0.25, 3, 0.5, 0) == 1);
    assert_true(mrc_step_over_batch(MRC_STEP_SHARP, 0.5, 0.25, 4, 0.875, 0.125) == 1);
    /* as printed, m* = 8: 1 / (2 beta) below, 0.99 / (beta + (m - 1) t) from there on */
    for (int64_t m = 1; m < 8; m++) assert_true(mrc_step_over_batch(MRC_STEP_PRINTED, 2, 0.25, m, 0.5, 0) == 0.25);
    assert_true(fabs(mrc_step_over_batch(MRC_STEP_PRINTED, 2, 0.25, 8, 0.5, 0) - 0.99 / 3.75) < 1e-15);
    assert_true(fabs(mrc_step_over_batch(MRC_STEP_PRINTED, 2, 0.25, 80, 0.5, 0) - 0.99 / 21.75) < 1e-15);
    assert_true(mrc_step_over_batch(MRC_STEP_PRINTED, 2, 0.25, 2, 0.5, 2) == 0.125);
}

/* ---- The spectrum -------------------------------------------------------------------------------------------- */

/*
 * (K(F,F) - K(F,S) E D E' K(S,F)) / n, F = S: its top eigenvalue is t, all others min(lambda_i, t). On n fresh rows F:
 *   below: by Weyl's inequality a correction of rank q leaves at least lambda_{q+1} of K(F,F)/n
 *   above: an average of n independent operators of norm <= beta around one of norm about t; matrix Bernstein bounds
 *          the deviation by sqrt(2 beta t L / n) + beta L / (3 n), L = log(2 n / 0.01). Twice: once for S, once for F.
 */
static void test_spectrum_is_capped(void **state)
{
    (void)state;
    enum { S = 150, Q = 8 };
    for (int fresh = 0; fresh < 2; fresh++) {
        bench self;
        open_bench(&self, "laplace:bandwidth=4", S, D);
        mrc_eigensystem system = system_of(&self, Q);
        mercer_matrix f = data_matrix(S, D, 0, MERCER_F64);
        data_fill_normal(&f, (mrc_rng){21, fresh ? 9 : 1}, 0, 1);
        dense k = dense_kernel(&self.data.kernel, &f, &f), ks = dense_kernel(&self.data.kernel, &f, &self.data.x);
        dense e = dense_of(&system.vectors), phi = dense_times(false, false, ks, e), vectors = dense_new(S, S);
        double plain[S], beta = 0;
        for (int64_t i = 0; i < S * S; i++) k.a[i] /= S;
        dense_eigen(k, plain, vectors);
        for (int64_t i = 0; i < S; i++)
            for (int64_t j = 0; j < S; j++)
                for (int64_t l = 0; l < Q; l++) AT(k, i, j) -= system.d[l] * AT(phi, i, l) * AT(phi, j, l) / S;
        for (int64_t i = 0; i < S; i++) beta = fmax(beta, AT(k, i, i) * S);
        double top = dense_spectrum(k, (dense){0}).top, t = system.tail, l = log(2 * S / 0.01);
        double deviation = 2 * (sqrt(2 * beta * t * l / S) + beta * l / (3 * S));
        if (!fresh) assert_that(fabs(top - t) <= S * V * U * plain[0], "in the sample: %g, t %g", top, t);
        assert_that(top >= plain[Q] * (1 - 1e-9) && top <= t + deviation, "%g is not in %g .. %g", top, plain[Q],
                    t + deviation);
        assert_that(t + deviation < plain[0] / 2, "the bound %g says nothing about %g", t + deviation, plain[0]);
        free(k.a), free(ks.a), free(e.a), free(phi.a), free(vectors.a), free(f.data);
        mrc_eigensystem_destroy(&system, context->backend);
        close_bench(&self);
    }
}

/* K = 0 (all rows at the origin, linear kernel) must not lead to a division by 0. */
static void test_zero_kernel(void **state)
{
    (void)state;
    bench self;
    double beta;
    open_bench(&self, "linear", 20, D);
    memset(self.data.x.data, 0, 20 * D * sizeof(double));
    mrc_eigensystem system = system_of(&self, 5);
    assert_succeeds(context, mrc_eigensystem_beta(&system, &self.centers, &self.data.x, MRC_STEP_SHARP, &beta));
    assert_int_equal(system.q, 0);
    double step = mrc_step_over_batch(MRC_STEP_SHARP, beta, system.tail, 10, 0.9, 0);
    assert_that(isfinite(step), "the step is %g: beta %g, t %g", step, beta, system.tail);
    mrc_eigensystem_destroy(&system, context->backend);
    close_bench(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_method),     cmocka_unit_test(test_block_method_low_rank),
        cmocka_unit_test(test_definitions),      cmocka_unit_test(test_duplicate_rows),
        cmocka_unit_test(test_smallest_samples), cmocka_unit_test(test_beta),
        cmocka_unit_test(test_batch_and_step),   cmocka_unit_test(test_spectrum_is_capped),
        cmocka_unit_test(test_zero_kernel),      cmocka_unit_test(test_rough_pairs),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

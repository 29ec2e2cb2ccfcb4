/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The preconditioner without a factor (polynomial_preconditioner.c) against dense algebra, and conjugate gradients with
 * it.
 *
 * The notation is that of polynomial_preconditioner.c. In double, the expected P is known to about p q roundings of its
 * norm: here 1e-10 of it. If the coarse space consists of all centers, U is exact. Then, on an eigenvector v of K with
 * eigenvalue l, v'Pv = h(l) for the first q eigenvectors, and v'Pv is within the polynomial's error of h(l), 1/3, for
 * the others: l h_k(l) in (0, 4/3], from below where l < a.
 */
#include "support/exact_solvers.h"

#include "support/dense.h"

enum { MANY = 48, BASIS = 10, SAMPLE = 24, MOST_ALLOCATIONS = 1000 };

static const mrc_preconditioner_sizes small = {.sample = 15, .basis = 5, .stored = MERCER_F64};

/* ---- The operator -------------------------------------------------------------------------------------------- */

/* Returns P as a matrix, by applying it to the columns of I. The caller frees it. */
static dense operator_of(bench *self, mrc_preconditioner *preconditioner)
{
    int64_t p = self->centers.p;
    mercer_matrix x = data_matrix(p, p, 0, MERCER_F64);
    for (int64_t i = 0; i < p; i++) mrc_store(&x, i, i, 1);
    assert_succeeds(&self->context, mrc_preconditioner_apply(preconditioner, &x));
    dense out = dense_of(&x);
    free(x.data);
    return out;
}

/* y += factor x */
static dense plus(dense y, double factor, dense x)
{
    dense out = dense_copy(y);
    dense_add(out, factor, x);
    return out;
}

/* Returns P by its formula, from G, F, the nodes and the coefficients. The caller frees it. */
static dense formula(const mrc_preconditioner *preconditioner, dense k)
{
    dense g = dense_of(&preconditioner->g), f = dense_of(&preconditioner->f), one = dense_new(k.rows, k.rows);
    for (int64_t i = 0; i < k.rows; i++) AT(one, i, i) = 1;
    dense ff = dense_times(false, true, f, f), fg = dense_times(false, true, f, g), r = plus(k, -1, ff);
    dense project = plus(one, -1, fg), power = dense_copy(one), sum = dense_new(k.rows, k.rows);
    for (int64_t j = 0; j <= preconditioner->degree; j++) {
        dense_add(sum, preconditioner->coefficients[j], power);
        dense times = dense_times(false, false, r, power);
        dense_add(times, -preconditioner->nodes[j], power);
        free(power.a), power = times;
    }
    dense half = dense_times(false, false, sum, project), out = dense_times(true, false, project, half);
    for (int64_t i = 0; i < g.rows; i++)
        for (int64_t j = 0; j < g.rows; j++)
            for (int64_t s = 0; s < g.cols; s++) AT(out, i, j) += AT(g, i, s) * preconditioner->scale[s] * AT(g, j, s);
    free(g.a), free(f.a), free(one.a), free(ff.a), free(fg.a), free(r.a), free(project.a), free(power.a), free(sum.a);
    free(half.a);
    return out;
}

static void check_basis(const mrc_preconditioner *preconditioner, dense k)
{
    dense g = dense_of(&preconditioner->g), f = dense_of(&preconditioner->f), kg = dense_times(false, false, k, g),
          inner = dense_times(true, false, g, f);
    assert_that(dense_distance(f, kg) <= 1e-10 * dense_norm(kg), "F - K G: %g", dense_distance(f, kg));
    for (int64_t i = 0; i < inner.rows; i++)
        for (int64_t j = 0; j < inner.cols; j++) assert_true(fabs(AT(inner, i, j) - (i == j)) <= 1e-10);
    free(g.a), free(f.a), free(kg.a), free(inner.a);
}

static void test_operator(void **state)
{
    (void)state;
    for (int variant = 0; variant < 6; variant++) {
        problem data = make_problem(N, MANY, C, MERCER_F64);
        double tau = variant % 2 ? 0.7 : 0;
        mrc_preconditioner_sizes options = {.sample = SAMPLE, .basis = BASIS, .stored = MERCER_F64};
        bench self;
        mrc_preconditioner preconditioner;
        open_bench(&self, &data, 1 + variant / 2, MERCER_F64, false);
        assert_succeeds(&self.context, mrc_preconditioner_create(&preconditioner, &self.centers, MANY, &options, tau));
        dense k = dense_kernel(&data.kernel, &data.z, &data.z), p = operator_of(&self, &preconditioner);
        dense wanted = formula(&preconditioner, k), turned = dense_transposed(p);
        assert_true(preconditioner.q == BASIS && preconditioner.degree >= 1);
        check_basis(&preconditioner, k);
        assert_that(dense_distance(p, wanted) <= 1e-10 * dense_norm(wanted), "variant %d: P off by %g of %g", variant,
                    dense_distance(p, wanted), dense_norm(wanted));
        assert_that(dense_distance(p, turned) <= 1e-10 * dense_norm(p), "P - P': %g", dense_distance(p, turned));
        free(k.a), free(p.a), free(wanted.a), free(turned.a);
        mrc_preconditioner_destroy(&preconditioner);
        close_bench(&self);
        free_problem(&data);
    }
}

/* All centers are in the sample: P is h(K) on the coarse space, and close to it elsewhere. */
static void test_exact_basis(void **state)
{
    (void)state;
    for (int variant = 0; variant < 2; variant++) {
        problem data = make_problem(N, MANY, C, MERCER_F64);
        double tau = variant ? 0.7 : 0, values[MANY];
        mrc_preconditioner_sizes options = {.sample = MANY, .basis = BASIS, .stored = MERCER_F64};
        bench self;
        mrc_preconditioner preconditioner;
        open_bench(&self, &data, 1, MERCER_F64, false);
        assert_succeeds(&self.context, mrc_preconditioner_create(&preconditioner, &self.centers, MANY, &options, tau));
        dense k = dense_kernel(&data.kernel, &data.z, &data.z), p = operator_of(&self, &preconditioner),
              v = dense_new(MANY, MANY);
        dense_eigen(k, values, v);
        dense pv = dense_times(false, false, p, v);
        for (int64_t i = 0; i < MANY; i++) {
            double form = 0, ratio;
            for (int64_t s = 0; s < MANY; s++) form += AT(v, s, i) * AT(pv, s, i);
            ratio = form * sqrt(values[i] * (values[i] + tau));
            if (i < BASIS)
                assert_that(fabs(ratio - 1) <= 1e-8, "pair %lld: %g", (long long)i, ratio);
            else
                assert_that(ratio > 0 && ratio <= 4.0 / 3 + 1e-6, "pair %lld of %g: %g", (long long)i, values[i],
                            ratio);
        }
        free(k.a), free(p.a), free(v.a), free(pv.a);
        mrc_preconditioner_destroy(&preconditioner);
        close_bench(&self);
        free_problem(&data);
    }
}

/* More centers than a strip has: K and F are assembled from several strips, with several shards and with one. */
static void test_strips(void **state)
{
    (void)state;
    enum { LONG = 1100 };
    problem data = make_problem(N, LONG, C, MERCER_F64);
    dense k = dense_kernel(&data.kernel, &data.z, &data.z);
    mrc_preconditioner_sizes options = {.sample = 60, .basis = BASIS, .stored = MERCER_F64};
    for (int shards = 1; shards <= 3; shards += 2) {
        bench self;
        mrc_preconditioner preconditioner;
        open_bench(&self, &data, shards, MERCER_F64, false);
        assert_succeeds(&self.context, mrc_preconditioner_create(&preconditioner, &self.centers, C, &options, 0));
        check_basis(&preconditioner, k);
        mercer_matrix v = data_matrix(LONG, C, 0, MERCER_F64), out = data_matrix(LONG, C, 0, MERCER_F64);
        data_fill_normal(&v, (mrc_rng){5, 9}, 0, 1);
        assert_succeeds(&self.context, mrc_preconditioner_times(&preconditioner, &v, &out));
        dense from = dense_of(&v), got = dense_of(&out), wanted = dense_times(false, false, k, from);
        assert_that(dense_distance(got, wanted) <= 1e-12 * dense_norm(wanted), "K V: %g", dense_distance(got, wanted));
        assert_true(fabs(preconditioner.mean - 1) < 1e-12);
        free(from.a), free(got.a), free(wanted.a), free(v.data), free(out.data);
        mrc_preconditioner_destroy(&preconditioner);
        close_bench(&self);
    }
    free(k.a);
    free_problem(&data);
}

/* K in half precision changes P by the effect of the change of K: about 2^-11 times 1/a. */
static void test_half(void **state)
{
    (void)state;
    problem data = make_problem(N, MANY, C, MERCER_F32);
    dense p[2];
    for (int half = 0; half < 2; half++) {
        mrc_preconditioner_sizes options = {.sample = SAMPLE, .basis = BASIS, .stored = half ? MERCER_F16 : MERCER_F32};
        bench self;
        mrc_preconditioner preconditioner;
        open_bench(&self, &data, 1, MERCER_F32, false);
        assert_succeeds(&self.context, mrc_preconditioner_create(&preconditioner, &self.centers, MANY, &options, 0));
        mercer_matrix x = data_matrix(MANY, MANY, 0, MERCER_F32);
        for (int64_t i = 0; i < MANY; i++) mrc_store(&x, i, i, 1);
        assert_succeeds(&self.context, mrc_preconditioner_apply(&preconditioner, &x));
        p[half] = dense_of(&x);
        free(x.data);
        mrc_preconditioner_destroy(&preconditioner);
        close_bench(&self);
    }
    double moved = dense_distance(p[0], p[1]) / dense_norm(p[0]);
    assert_that(moved > 0 && moved <= 0.02, "moved by %g", moved);
    free(p[0].a), free(p[1].a);
    free_problem(&data);
}

/* ---- Conjugate gradients with it ----------------------------------------------------------------------------- */

static void test_solution(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        problem data = make_problem(N, P, C, MERCER_F64);
        data.lambda = variant % 2 ? 0.3 : 0;
        if (variant / 2) add_weights(&data);
        reference ref = solve_reference(&data);
        for (int ranks = 1; ranks <= 3; ranks++) {
            bench self;
            open_bench(&self, &data, ranks, MERCER_F64, ranks == 2);
            self.exact.preconditioner_sizes = small;
            assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
            double error = difference(&self.alpha, &ref.alpha), limit = bound(&ref, 1e-13);
            assert_that(error <= limit, "%d ranks: %g, bound %g", ranks, error, limit);
            assert_true(self.exact.jitter == 0);
            close_bench(&self);
        }
        free_reference(&ref);
        free_problem(&data);
    }
}

/* Number of steps until the gradient is 1e-4 of its first value: not much larger than with the exact factor. */
static void test_steps(void **state)
{
    (void)state;
    problem data = make_problem(2000, 300, C, MERCER_F64);
    int64_t steps[2];
    for (int preconditioner = 0; preconditioner < 2; preconditioner++) {
        bench self;
        open_bench(&self, &data, 1, MERCER_F64, true);
        self.exact.tolerance = 1e-4;
        if (preconditioner)
            self.exact.preconditioner_sizes =
                (mrc_preconditioner_sizes){.sample = 100, .basis = 30, .stored = MERCER_F64};
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        steps[preconditioner] = self.exact.steps_done;
        close_bench(&self);
    }
    print_message("    %lld steps with the factor, %lld without\n", (long long)steps[0], (long long)steps[1]);
    assert_that(steps[1] <= 2 * steps[0], "%lld steps, %lld with the factor", (long long)steps[1], (long long)steps[0]);
    free_problem(&data);
}

/* The result is bitwise identical for any number of threads. */
static void test_threads(void **state)
{
    (void)state;
    problem data = make_problem(N, MANY, C, MERCER_F32);
    mercer_matrix first = {0};
    for (int threads = 1; threads <= 4; threads++) {
        bench self;
        open_bench(&self, &data, 1, MERCER_F32, true);
        self.context.threads = threads;
        self.exact.steps = 6;
        self.exact.preconditioner_sizes =
            (mrc_preconditioner_sizes){.sample = SAMPLE, .basis = BASIS, .stored = MERCER_F16};
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        if (threads == 1) {
            first = self.alpha;
            self.alpha.data = NULL;
        } else {
            assert_memory_equal(self.alpha.data, first.data, MANY * C * sizeof(float));
        }
        close_bench(&self);
    }
    free(first.data);
    free_problem(&data);
}

/* If every center occurs twice, no jitter is needed, and the fit equals that with every center once. */
static void test_singular(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64), once = make_problem(N, P, C, MERCER_F64);
    double fit[2], ridge;
    for (int64_t i = 0; i < P; i++) memcpy(mrc_row(&data.z, i), mrc_row(&once.z, i / 2), D * sizeof(double));
    once.z.rows = (P + 1) / 2;
    for (int k = 0; k < 2; k++) {
        bench self;
        open_bench(&self, k ? &once : &data, 1, MERCER_F64, false);
        self.exact.tolerance = 1e-12;
        if (!k) self.exact.preconditioner_sizes = small;
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        assert_succeeds(&self.context, mrc_objective(&self.exact, &self.alpha, &fit[k], &ridge));
        assert_true(self.exact.jitter == 0);
        close_bench(&self);
    }
    assert_that(fabs(fit[0] - fit[1]) <= 1e-9 * fit[1], "%.15g, once each %.15g", fit[0], fit[1]);
    free_problem(&data), free_problem(&once);
}

/* A kernel that is 0 at all centers, or at all but one: there is nothing to precondition with and nothing to fit. */
static void test_no_kernel(void **state)
{
    (void)state;
    for (int variant = 0; variant < 2; variant++) {
        problem data = make_problem(N, P, C, MERCER_F64);
        assert_succeeds(NULL, mercer_kernel_parse(&data.kernel, NULL, "linear"));
        memset(data.z.data, 0, (size_t)(P * D) * sizeof(double));
        if (variant) mrc_store(&data.z, 3, 1, 2.0);
        bench self;
        open_bench(&self, &data, 1, MERCER_F64, false);
        self.exact.preconditioner_sizes = small;
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        for (int64_t i = 0; i < P * C; i++) assert_true(isfinite(((double *)self.alpha.data)[i]));
        close_bench(&self);
        free_problem(&data);
    }
}

/* ---- Memory -------------------------------------------------------------------------------------------------- */

static void test_bytes(void **state)
{
    (void)state;
    for (int variant = 0; variant < 8; variant++) {
        mercer_dtype real = variant / 2 % 2 ? MERCER_F32 : MERCER_F64;
        int shards = variant / 4 ? 3 : 1;
        problem data = make_problem(N, 400, C, real);
        bench self;
        data.lambda = variant % 2 ? 0.3 : 0;
        mrc_preconditioner_sizes preconditioner_sizes = {
            .sample = 120, .basis = 40, .stored = real == MERCER_F32 && data.lambda == 0 ? MERCER_F16 : real};
        mrc_problem sizes = {.p = 400,
                             .d = D,
                             .c = C,
                             .shards = shards,
                             .real_size = mrc_dtype_size(real),
                             .point_size = mrc_dtype_size(real)};
        mrc_cost once, each;
        mrc_exact_cg_cost(&sizes, BATCH, data.lambda, &preconditioner_sizes, &once, &each);
        open_bench(&self, &data, shards, real, false);
        self.exact.preconditioner_sizes = preconditioner_sizes, self.exact.steps = 5;
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        int64_t before = self.context.bytes_peak = self.context.bytes_now;
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        int64_t held = self.context.bytes_peak - before, said = (int64_t)mrc_bytes_sum(once.held);
        assert_that(held <= said && (double)held >= 0.95 * (double)said, "variant %d: %lld held, %lld said", variant,
                    (long long)held, (long long)said);
        close_bench(&self);
        free_problem(&data);
    }
}

static bool fails_cleanly(const problem *data, int ranks, int nth)
{
    bench self;
    open_bench(&self, data, ranks, MERCER_F64, false);
    self.exact.steps = 4, self.exact.preconditioner_sizes = small;
    self.counter.fail_at = self.counter.requests + nth;
    mercer_status status = mrc_exact_cg(&self.exact, &self.alpha);
    assert_that(status == MERCER_OK || status == MERCER_ERROR_MEMORY, "allocation %d: %s", nth,
                mercer_status_string(status));
    bool done = self.counter.requests < self.counter.fail_at;
    close_bench(&self); /* also checks that no memory is left allocated */
    return !done;
}

static void test_allocation_failures(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64);
    data.lambda = 0.3;
    for (int ranks = 1; ranks <= 2; ranks++) {
        int nth = 1;
        while (nth < MOST_ALLOCATIONS && fails_cleanly(&data, ranks, nth)) nth++;
        assert_true(nth > 20 && nth < MOST_ALLOCATIONS);
    }
    free_problem(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operator),
        cmocka_unit_test(test_exact_basis),
        cmocka_unit_test(test_strips),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_solution),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_singular),
        cmocka_unit_test(test_no_kernel),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct and cg against the normal equations solved in long double, and against each other.
 *
 * With A = K'WK + lambda K_ZZ (p, p), kappa its condition number (|A|_F |A^-1|_F, from the reference) and u = 2^-53:
 *
 *   direct  kernel values are off by a few u and each factorization by p u:  |alpha - alpha*| <= 40 p u kappa |alpha*|
 *   cg      it stops at |r|_{M^-1} <= t |b|_{M^-1}, so |r| <= t sqrt(kappa_M) |b| and, with kappa_M taken as kappa,
 *           |alpha - alpha*| <= (40 p u + t sqrt(kappa)) kappa |alpha*|
 *   float   K' = K + O(2^-24): f moves by about 2^-24 sqrt(kappa) |y|
 */
#include "support/exact_solvers.h"

enum { MOST_ALLOCATIONS = 400 };

/* ---- Solutions ----------------------------------------------------------------------------------------------- */

static void check_against_reference(const problem *data, int ranks)
{
    reference ref = solve_reference(data);
    for (int k = 0; k < EXACT_SOLVERS; k++) {
        mercer_matrix alpha = exact_times(data, exact_solvers[k].call, ranks);
        double error = difference(&alpha, &ref.alpha), limit = bound(&ref, exact_solvers[k].tolerance);
        assert_that(error <= limit, "%s, %d ranks: %g, bound %g (condition %g)", exact_solvers[k].name, ranks, error,
                    limit, ref.condition);
        free(alpha.data);
    }
    free_reference(&ref);
}

static void test_closed_form(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        problem data = make_problem(N, P, C, MERCER_F64);
        data.lambda = variant % 2 ? 0.3 : 0;
        if (variant / 2) add_weights(&data);
        for (int ranks = 1; ranks <= 3; ranks++) check_against_reference(&data, ranks);
        free_problem(&data);
    }
}

/* Weight 2 equals repeating the row twice, weight 0 equals omitting it. */
static void test_weights_repeat_rows(void **state)
{
    (void)state;
    problem weighted = make_problem(N, P, C, MERCER_F64), repeated = make_problem(N, P, C, MERCER_F64);
    add_weights(&weighted);
    int64_t rows = 0;
    for (int64_t i = 0; i < N; i++) rows += (int64_t)weighted.weights[i];
    free(repeated.x.data), free(repeated.y.data);
    repeated.x = data_matrix(rows, D, 0, MERCER_F64), repeated.y = data_matrix(rows, C, 0, MERCER_F64);
    for (int64_t i = 0, row = 0; i < N; i++) {
        for (int64_t k = 0; k < (int64_t)weighted.weights[i]; k++, row++) {
            for (int64_t j = 0; j < D; j++) mrc_store(&repeated.x, row, j, mrc_load(&weighted.x, i, j));
            for (int64_t j = 0; j < C; j++) mrc_store(&repeated.y, row, j, mrc_load(&weighted.y, i, j));
        }
    }
    reference ref = solve_reference(&repeated);
    for (int k = 0; k < EXACT_SOLVERS; k++) {
        mercer_matrix one = exact_times(&weighted, exact_solvers[k].call, 1),
                      other = exact_times(&repeated, exact_solvers[k].call, 1);
        assert_that(difference(&one, &other) <= 2 * bound(&ref, exact_solvers[k].tolerance), "%s: %g",
                    exact_solvers[k].name, difference(&one, &other));
        free(one.data), free(other.data);
    }
    free_reference(&ref);
    free_problem(&weighted), free_problem(&repeated);
}

static void test_zero_labels(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64);
    memset(data.y.data, 0, (size_t)(N * C) * sizeof(double));
    for (int k = 0; k < EXACT_SOLVERS; k++) {
        bench self;
        open_bench(&self, &data, 1, MERCER_F64, false);
        data_fill_normal(&self.alpha, (mrc_rng){6, 1}, 0, 1); /* random start: cg must reach 0 from any weights */
        assert_succeeds(&self.context, exact_solvers[k].call(&self.exact, &self.alpha));
        for (int64_t i = 0; i < P * C; i++) assert_true(((double *)self.alpha.data)[i] == 0);
        close_bench(&self);
    }
    free_problem(&data);
}

/* Additional outputs, constant or 0, do not change the others. */
static void test_constant_output(void **state)
{
    (void)state;
    problem few = make_problem(N, P, C, MERCER_F64), many = make_problem(N, P, C + 2, MERCER_F64);
    for (int64_t i = 0; i < N; i++) mrc_store(&many.y, i, C, 1), mrc_store(&many.y, i, C + 1, 0);
    reference ref = solve_reference(&few);
    for (int k = 0; k < EXACT_SOLVERS; k++) {
        mercer_matrix one = exact_times(&few, exact_solvers[k].call, 1),
                      other = exact_times(&many, exact_solvers[k].call, 1);
        assert_that(difference(&other, &one) <= 2 * bound(&ref, exact_solvers[k].tolerance), "%s: %g",
                    exact_solvers[k].name, difference(&other, &one));
        for (int64_t i = 0; i < P; i++) assert_true(mrc_load(&other, i, C + 1) == 0);
        free(one.data), free(other.data);
    }
    free_reference(&ref);
    free_problem(&few), free_problem(&many);
}

/* Return the predictions f at the samples, computed in double; the caller frees data. */
static mercer_matrix predictions(const mercer_matrix *k, const mercer_matrix *alpha)
{
    mercer_matrix f = data_matrix(k->rows, alpha->cols, 0, MERCER_F64);
    for (int64_t i = 0; i < k->rows; i++) {
        for (int64_t j = 0; j < alpha->cols; j++) {
            double sum = 0;
            for (int64_t s = 0; s < k->cols; s++) sum += mrc_load(k, i, s) * mrc_load(alpha, s, j);
            mrc_store(&f, i, j, sum);
        }
    }
    return f;
}

static void test_float_agrees(void **state)
{
    (void)state;
    for (int ridge = 0; ridge < 2; ridge++) {
        problem data = make_problem(N, P, C, MERCER_F32);
        data.lambda = ridge ? 0.3 : 0;
        reference ref = solve_reference(&data);
        mercer_matrix exact = predictions(&ref.k, &ref.alpha);
        for (int k = 0; k < EXACT_SOLVERS; k++) {
            bench self;
            open_bench(&self, &data, 1, MERCER_F32, false);
            self.exact.tolerance = 0; /* iterate until rounding stops progress */
            assert_succeeds(&self.context, exact_solvers[k].call(&self.exact, &self.alpha));
            assert_true(self.exact.steps_done < self.exact.steps && (k == 0 || self.exact.stalled));
            mercer_matrix f = predictions(&ref.k, &self.alpha);
            double error = difference(&f, &exact), limit = 32 * 0x1p-24 * sqrt(ref.condition);
            assert_that(error <= limit, "%s: %g, bound %g", exact_solvers[k].name, error, limit);
            free(f.data);
            close_bench(&self);
        }
        free(exact.data);
        free_reference(&ref);
        free_problem(&data);
    }
}

/* Smooth kernels make A numerically singular and the optimal weights too large for float: both solvers must still reach
   a fit within 5 % of the best. */
static void test_float_smooth(void **state)
{
    (void)state;
    double fit[4], ridge;
    for (int run = 0; run < 4; run++) {
        mercer_dtype real = run < 2 ? MERCER_F64 : MERCER_F32;
        problem data = make_problem(400, 60, C, real);
        assert_succeeds(NULL, mercer_kernel_parse(&data.kernel, NULL, "gaussian:bandwidth=2"));
        bench self;
        open_bench(&self, &data, 1, real, false);
        self.exact.tolerance = 1e-6;
        assert_succeeds(&self.context, exact_solvers[run % 2].call(&self.exact, &self.alpha));
        assert_succeeds(&self.context, mrc_objective(&self.exact, &self.alpha, &fit[run], &ridge));
        close_bench(&self);
        free_problem(&data);
    }
    for (int run = 1; run < 4; run++)
        assert_that(fit[run] <= 1.05 * fit[0], "run %d: %g, best %g", run, fit[run], fit[0]);
}

static void test_noiseless(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64);
    reference ref = solve_reference(&data); /* for K and its condition; its alpha defines the targets */
    mercer_matrix f = predictions(&ref.k, &ref.alpha);
    free(data.y.data);
    data.y = f;
    for (int k = 0; k < EXACT_SOLVERS; k++) {
        bench self;
        double fit, ridge;
        open_bench(&self, &data, 2, MERCER_F64, false);
        assert_succeeds(&self.context, exact_solvers[k].call(&self.exact, &self.alpha));
        double limit = bound(&ref, exact_solvers[k].tolerance);
        assert_that(difference(&self.alpha, &ref.alpha) <= limit, "%s: %g, bound %g", exact_solvers[k].name,
                    difference(&self.alpha, &ref.alpha), limit);
        assert_succeeds(&self.context, mrc_objective(&self.exact, &self.alpha, &fit, &ridge));
        assert_that(sqrt(fit) <= 1e-10 && ridge > 0, "%s: fit %g", exact_solvers[k].name, fit);
        close_bench(&self);
    }
    free_reference(&ref);
    free_problem(&data);
}

/* ---- Starts and stops ---------------------------------------------------------------------------------------- */

static void test_memory_refused(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64);
    bench self;
    char needed[64];
    open_bench(&self, &data, 1, MERCER_F64, false);
    self.exact.memory = 5000;
    mrc_problem sizes = {.p = P, .c = C};
    int64_t direct = (int64_t)mrc_bytes_sum(mrc_exact_direct_bytes(&sizes, BATCH));
    snprintf(needed, sizeof needed, "%lld bytes", (long long)direct);
    assert_fails(&self.context, mrc_exact_direct(&self.exact, &self.alpha), MERCER_ERROR_MEMORY, needed);
    assert_true(mentions(mercer_last_error(&self.context), "5000"));
    assert_fails(&self.context, mrc_exact_cg(&self.exact, &self.alpha), MERCER_ERROR_MEMORY, "5000");
    self.exact.memory = direct;
    assert_succeeds(&self.context, mrc_exact_direct(&self.exact, &self.alpha));
    close_bench(&self);
    free_problem(&data);
}

static void test_warm_start(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64);
    bench self;
    for (int ridge = 0; ridge < 2; ridge++) {
        data.lambda = ridge ? 0.3 : 0;
        open_bench(&self, &data, 1, MERCER_F64, true);
        self.exact.tolerance = 1e-11;
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        assert_true(self.exact.steps_done > 1 && self.exact.relative_gradient <= 1e-11);
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        assert_that(self.exact.steps_done <= 1, "%lld steps", (long long)self.exact.steps_done);
        close_bench(&self);
    }
    free_problem(&data);
}

typedef struct watcher {
    int64_t calls, stop_at;
    double last;
} watcher;

/* Check the reported loss: it belongs to the alpha that is passed, and it never rises (there is no ridge). */
static bool watch(void *user, int64_t step, double relative_gradient, double loss)
{
    watcher *me = user;
    me->calls++;
    assert_true(step == me->calls && relative_gradient >= 0);
    assert_that(loss <= me->last * (1 + 1e-12), "%g after %g", loss, me->last);
    me->last = loss;
    return step == me->stop_at;
}

static void test_monitor(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64);
    add_weights(&data);
    double mass = 0;
    for (int64_t i = 0; i < N; i++) mass += data.weights[i];
    for (int64_t stop = 1; stop < 14; stop++) {
        bench self;
        double fit, ridge;
        open_bench(&self, &data, 1, MERCER_F64, false);
        watcher me = {.stop_at = stop, .last = 1e300};
        self.exact.monitor = watch, self.exact.monitor_user = &me, self.exact.tolerance = 0;
        assert_succeeds(&self.context, mrc_exact_cg(&self.exact, &self.alpha));
        assert_true(me.calls == stop && self.exact.steps_done == stop);
        assert_succeeds(&self.context, mrc_objective(&self.exact, &self.alpha, &fit, &ridge));
        assert_that(fabs(fit / mass - me.last) <= 1e-10 * me.last, "%g, reported %g", fit / mass, me.last);
        close_bench(&self);
    }
    free_problem(&data);
}

/* Compare the objective with plain sums. */
static void test_objective(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64);
    add_weights(&data);
    mercer_matrix k = kernel_matrix(&data, &data.x), kz = kernel_matrix(&data, &data.z);
    for (int ranks = 1; ranks <= 3; ranks++) {
        bench self;
        double fit, ridge, fit_wanted = 0, ridge_wanted = 0;
        open_bench(&self, &data, ranks, MERCER_F64, false);
        data_fill_normal(&self.alpha, (mrc_rng){8, 1}, 0, 1);
        mercer_matrix f = predictions(&k, &self.alpha), g = predictions(&kz, &self.alpha);
        for (int64_t j = 0; j < C; j++) {
            for (int64_t i = 0; i < N; i++)
                fit_wanted += data.weights[i] * pow(mrc_load(&f, i, j) - mrc_load(&data.y, i, j), 2);
            for (int64_t i = 0; i < P; i++) ridge_wanted += mrc_load(&self.alpha, i, j) * mrc_load(&g, i, j);
        }
        assert_succeeds(&self.context, mrc_objective(&self.exact, &self.alpha, &fit, &ridge));
        assert_true(fabs(fit - fit_wanted) <= 1e-13 * fit_wanted && fabs(ridge - ridge_wanted) <= 1e-13 * ridge_wanted);
        free(f.data), free(g.data);
        close_bench(&self);
    }
    free(k.data), free(kz.data);
    free_problem(&data);
}

/*
 * Return the allowed error of a fit in test_singular, relative to the best fit or, if that is 0, absolute.
 *
 * direct, equal centers: with the jitter r (relative to the mean diagonals, taken as 1 and n / p) the second of them
 * has the pivot sqrt(r), so its row of B is sqrt(r) k(x) with errors of eps / sqrt(r): a feature that differs from the
 * first one's only by rounding, of energy n eps^2 / r. The jitter r n / p of G shrinks its share to p (eps / r)^2, and
 * it contains the n-th part of the residual: the fit rises by 2 p (eps / r)^2 / n of its value, times 4 for
 * random variation. With r = 16 eps p this is 1 / (32 p n).
 *
 * Fewer samples than centers: the labels are fitted up to jitter (or tolerance) times condition, below 1e-12 times 1e4,
 * squared. cg, equal centers: 1e-12.
 */
static double singular_bound(int variant, int exact, double jitter)
{
    if (variant) return 1e-16;
    return exact == 1 ? 1e-12 : 8 * P * pow(2 * UNIT / jitter, 2) / N;
}

/* Equal centers (variant 0), fewer samples than centers (variant 1): a jitter is reported, and the fit is near the
   best. */
static void test_singular(void **state)
{
    (void)state;
    for (int variant = 0; variant < 2; variant++) {
        problem data = make_problem(variant ? P / 2 : N, P, C, MERCER_F64), apart = make_problem(N, P, C, MERCER_F64);
        if (!variant) { /* the last center twice; `apart` is the problem without the duplicate */
            memcpy(mrc_row(&data.z, P - 1), mrc_row(&data.z, P - 2), D * sizeof(double));
            apart.z.rows = P - 1;
        }
        double best = 0, unused;
        bench self;
        open_bench(&self, &apart, 1, MERCER_F64, false);
        assert_succeeds(&self.context, mrc_exact_direct(&self.exact, &self.alpha));
        assert_succeeds(&self.context, mrc_objective(&self.exact, &self.alpha, &best, &unused));
        close_bench(&self);
        for (int k = 0; k < EXACT_SOLVERS; k++) {
            double fit, scale = variant ? 1 : best;
            open_bench(&self, &data, 1, MERCER_F64, false);
            assert_succeeds(&self.context, exact_solvers[k].call(&self.exact, &self.alpha));
            assert_succeeds(&self.context, mrc_objective(&self.exact, &self.alpha, &fit, &unused));
            double limit = singular_bound(variant, k, self.exact.jitter);
            assert_that(fabs(fit - (variant ? 0 : best)) <= limit * scale,
                        "%s, variant %d: fit %.17g, best %.17g, bound %g", exact_solvers[k].name, variant, fit, best,
                        limit);
            assert_true(k == 1 || self.exact.jitter > 0);
            close_bench(&self);
        }
        free_problem(&data), free_problem(&apart);
    }
}

/* ---- Memory -------------------------------------------------------------------------------------------------- */

/* The second run allocates what the cost model predicts; the first run has already allocated the backend's scratch. */
static void test_bytes(void **state)
{
    (void)state;
    problem data = make_problem(N, 96, C, MERCER_F64);
    for (int variant = 0; variant < 4; variant++) {
        bench self;
        solver_call call = exact_solvers[variant / 2].call;
        data.lambda = variant % 2 ? 0.3 : 0;
        open_bench(&self, &data, 1, MERCER_F64, false);
        assert_succeeds(&self.context, call(&self.exact, &self.alpha));
        int64_t before = self.context.bytes_peak = self.context.bytes_now;
        assert_succeeds(&self.context, call(&self.exact, &self.alpha));
        int64_t held = self.context.bytes_peak - before;
        mrc_problem sizes = {.p = 96, .c = C};
        mrc_cost cg, step;
        mrc_exact_cg_cost(&sizes, BATCH, data.lambda, &(mrc_preconditioner_sizes){0}, &cg, &step);
        int64_t said = (int64_t)mrc_bytes_sum(variant < 2 ? mrc_exact_direct_bytes(&sizes, BATCH) : cg.held);
        assert_that(held <= said && (double)held >= 0.95 * (double)said, "%s: %lld held, %lld said",
                    exact_solvers[variant / 2].name, (long long)held, (long long)said);
        close_bench(&self);
    }
    free_problem(&data);
}

static mercer_status call_objective(mrc_exact_solver *exact, const mercer_matrix *alpha)
{
    double fit, ridge;
    return mrc_objective(exact, alpha, &fit, &ridge);
}

static bool fails_cleanly(const problem *data, solver_call call, int ranks, int nth)
{
    bench self;
    open_bench(&self, data, ranks, MERCER_F64, false);
    self.exact.steps = 12;
    self.counter.fail_at = self.counter.requests + nth;
    mercer_status status = call(&self.exact, &self.alpha);
    assert_that(status == MERCER_OK || status == MERCER_ERROR_MEMORY, "allocation %d: %s", nth,
                mercer_status_string(status));
    for (int64_t i = 0; i < P * C && status != MERCER_OK; i++) assert_true(((double *)self.alpha.data)[i] == 0);
    bool done = self.counter.requests < self.counter.fail_at;
    close_bench(&self); /* checks that all memory is freed */
    return !done;
}

static void test_allocation_failures(void **state)
{
    (void)state;
    problem data = make_problem(N, P, C, MERCER_F64);
    data.lambda = 0.3;
    const solver_call calls[] = {mrc_exact_direct, mrc_exact_cg, call_objective};
    for (int k = 0; k < 3; k++) {
        for (int ranks = 1; ranks <= 2; ranks++) {
            int nth = 1;
            while (nth < MOST_ALLOCATIONS && fails_cleanly(&data, calls[k], ranks, nth)) nth++;
            assert_true(nth > 3);
        }
    }
    free_problem(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),  cmocka_unit_test(test_weights_repeat_rows),
        cmocka_unit_test(test_zero_labels),  cmocka_unit_test(test_constant_output),
        cmocka_unit_test(test_float_agrees), cmocka_unit_test(test_float_smooth),
        cmocka_unit_test(test_noiseless),    cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_warm_start),   cmocka_unit_test(test_monitor),
        cmocka_unit_test(test_objective),    cmocka_unit_test(test_singular),
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fixed points of training, and pairs of training runs that must be identical; all tests use double and the public
 * API.
 *
 * Fixed points. A full-batch step with exact projection is  e <- (I - eta K_ZZ^-1 A) e  for the error e of the weights,
 * A = K_ZX W K_XZ + lambda K_ZZ with W = I - Q (or I). K_ZZ^-1 A is symmetric in the metric of the RKHS, so N steps
 * leave rate^N |e|, rate = max |1 - eta mu| over its eigenvalues mu. A step computes theta = K_ZZ^-1 h from sums over n
 * and p terms with kernel values accurate to V u; solving magnifies that by the condition kappa of K_ZZ. A contraction
 * accumulates such errors to at most 1 / (1 - rate) times one of them:
 *
 *     |alpha_N - alpha*|_H  <=  (rate^N + kappa (n + p + V) u / (1 - rate)) S,     S = |alpha*|_H + |y|
 *
 * Identical training runs. Two ways to compute the same K steps differ by one step's rounding each, and steps are
 * non-expansive:
 *
 *     |alpha - alpha'|_H  <=  K kappa (n + p + V) u S
 */
#include "support/training.h"

enum { N = 60, P = 14, D = 4, C = 2 }; /* sizes of the first-step tests */

static const sizes SMALL = {60, 8, 4, 2};
static const char *const KERNEL = "laplace:bandwidth=2";
static const char *const projectors[] = {"exact", "ep2", "pcg", "bgs"};

static int save_step(void *user, const mercer_progress *progress)
{
    *(double *)user = progress->step;
    return 0;
}

/* Return eta / m of a solver on this task. */
static double step_of(const task *self, mercer_train_options options)
{
    double step = 0;
    options.epochs = 1, options.progress = save_step, options.progress_user = &step;
    dense alpha = train(self, &options, NULL);
    free(alpha.a);
    assert_true(step > 0);
    return step;
}

/* ---- Fixed points -------------------------------------------------------------------------------------------- */

/* Assert that the solver reaches (K_ZX W K_XZ + lambda K_ZZ)^-1 K_ZX W y after the number of epochs that its rate
   requires. */
static void converges(const task *self, mercer_train_options options, dense w, bool plain, const char *what)
{
    kernels k = kernels_of(self);
    dense normal, star = least_squares(&k, w, options.lambda, &normal);
    double step = step_of(self, options);
    spectrum mu = dense_spectrum(normal, plain ? (dense){0} : k.zz);
    double rate = fmax(fabs(1 - step * mu.top), fabs(1 - step * mu.bottom));
    assert_that(rate < 0.9999, "%s: rate %g, eigenvalues %g .. %g, step %g", what, rate, mu.bottom, mu.top, step);
    options.epochs = (int64_t)ceil(log(1e-12) / log(rate));
    mercer_report report;
    dense alpha = train(self, &options, &report);
    double error = rkhs_distance(k.zz, alpha, star);
    double limit = 1e-12 * (rkhs_norm(k.zz, star) + dense_norm(k.y)) + one_step_error(self, &k, star) / (1 - rate);
    /* gradient descent in R^p contracts in the Euclidean norm, which is within sqrt(kappa) of the RKHS norm */
    if (plain) limit *= sqrt(k.condition);
    assert_that(error <= limit, "%s: %g after %d epochs, bound %g, rate %g, |alpha*| %g, condition %g", what, error,
                (int)options.epochs, limit, rate, rkhs_norm(k.zz, star), k.condition);
    assert_int_equal(report.epochs, options.epochs);
    assert_int_equal(report.halvings, 0);
    free(alpha.a), free(star.a), free(normal.a);
    kernels_free(&k);
}

/* EigenPro 3 with all samples solves weighted least squares, W = I - Q. */
static void test_weighted_fixed_point(void **state)
{
    (void)state;
    for (int64_t q = 1; q <= 5; q += 2) {
        task t = task_open(context, KERNEL, SMALL, 1, MERCER_F64);
        kernels k = kernels_of(&t);
        dense w = weights_of_preconditioner(&k, q);
        mercer_train_options options = options_for("ep3-exact");
        options.eigenpairs = q;
        converges(&t, options, w, false, "ep3-exact");
        free(w.a);
        kernels_free(&k);
        task_close(&t);
    }
}

static void test_least_squares_fixed_point(void **state)
{
    (void)state;
    task t = task_open(context, KERNEL, SMALL, 1, MERCER_F64);
    mercer_train_options options = options_for("ep3-exact");
    options.eigenpairs = -1;
    converges(&t, options, (dense){0}, false, "ep3-exact without eigenpairs");
    converges(&t, options_for("nytro"), (dense){0}, false, "nytro");
    converges(&t, options_for("gd"), (dense){0}, true, "gd");
    task_close(&t);
    sizes square = {30, 0, 4, 2};
    t = task_open(context, "laplace:bandwidth=0.5", square, 1, MERCER_F64);
    converges(&t, options_for("richardson"), (dense){0}, false, "richardson");
    task_close(&t);
}

static void test_ridge_fixed_point(void **state)
{
    (void)state;
    task t = task_open(context, KERNEL, SMALL, 1, MERCER_F64);
    mercer_train_options options = options_for("nytro");
    for (options.lambda = 0.1; options.lambda < 20; options.lambda *= 10)
        converges(&t, options, (dense){0}, false, "nytro with ridge");
    task_close(&t);
    sizes square = {30, 0, 4, 2};
    t = task_open(context, "laplace:bandwidth=0.5", square, 1, MERCER_F64);
    options.solver = "richardson", options.lambda = 0.5;
    converges(&t, options, (dense){0}, false, "richardson with ridge");
    task_close(&t);
}

/* Gradient descent in R^p minimizes the same objective as the other solvers, with the penalty lambda alpha' K(Z,Z)
   alpha. */
static void test_plain_ridge_fixed_point(void **state)
{
    (void)state;
    task t = task_open(context, KERNEL, SMALL, 1, MERCER_F64);
    mercer_train_options options = options_for("gd");
    for (options.lambda = 0.1; options.lambda < 20; options.lambda *= 10)
        converges(&t, options, (dense){0}, true, "gd with ridge");
    task_close(&t);
}

/* A row of weight 2 equals two copies of the row, weight 0 equals no row: the fixed points agree. */
static void test_weights_repeat_rows(void **state)
{
    (void)state;
    task t = task_open(context, KERNEL, SMALL, 1, MERCER_F64);
    dense w = dense_new(SMALL.n, SMALL.n);
    t.weights = calloc((size_t)SMALL.n, sizeof(double));
    for (int64_t i = 0; i < SMALL.n; i++) t.weights[i] = AT(w, i, i) = (double)(i % 4);
    converges(&t, options_for("nytro"), w, false, "weighted nytro");
    if (getenv("MERCER_TEST_LONG")) converges(&t, options_for("gd"), w, true, "weighted gd");
    free(w.a);
    task_close(&t);
}

/* Direct solvers are accurate to p u of their condition; cg stops at 1e-4 of the preconditioned gradient: see
   test_exact_solvers.c. */
static void test_exact_solvers_agree(void **state)
{
    (void)state;
    for (int ridge = 0; ridge < 2; ridge++) {
        task t = task_open(context, KERNEL, SMALL, 1, MERCER_F64);
        kernels k = kernels_of(&t);
        dense normal, star = least_squares(&k, (dense){0}, ridge ? 0.5 : 0, &normal);
        spectrum of_normal = dense_spectrum(normal, (dense){0});
        double condition = of_normal.top / of_normal.bottom;
        mercer_train_options options = options_for("direct");
        options.lambda = ridge ? 0.5 : 0;
        dense direct = train(&t, &options, NULL);
        double error = dense_distance(direct, star), limit = 40 * (double)SMALL.p * U * condition * dense_norm(star);
        assert_that(error <= limit, "direct: %g, bound %g", error, limit);
        options.solver = "cg", options.epochs = 100;
        dense cg = train(&t, &options, NULL);
        error = dense_distance(cg, star),
        limit = (limit / dense_norm(star) + 1e-4 * sqrt(condition)) * dense_norm(star);
        assert_that(error <= limit, "cg: %g, bound %g", error, limit);
        free(direct.a), free(cg.a), free(star.a), free(normal.a);
        kernels_free(&k);
        task_close(&t);
    }
}

/* ---- One training run, two names ----------------------------------------------------------------------------- */

static mercer_train_options steps_of(const char *solver, const char *projector)
{
    mercer_train_options options = options_for(solver);
    options.projector = projector;
    options.period = projects(solver), options.step_factor = 0.6, options.average = MERCER_OFF,
    options.decay = MERCER_OFF;
    options.nystrom = 40, options.eigenpairs = 3, options.batch = 16, options.epochs = 3;
    return options;
}

static void same_bits(const task *self, const mercer_train_options *one, const mercer_train_options *other,
                      const char *what)
{
    dense a = train(self, one, NULL), b = train(self, other, NULL);
    assert_that(dense_norm(a) > 0 && dense_distance(a, b) == 0, "%s: |a| %g, |a - b| %g", what, dense_norm(a),
                dense_distance(a, b));
    free(a.a), free(b.a);
}

static void test_corners_coincide(void **state)
{
    (void)state;
    task t = task_open(context, KERNEL, (sizes){90, 30, 4, 2}, 1, MERCER_F64);
    for (int i = 0; i < 4; i++) {
        mercer_train_options ep3 = steps_of("ep3", projectors[i]), ep4 = steps_of("ep4", projectors[i]);
        same_bits(&t, &ep3, &ep4, projectors[i]);
    }
    mercer_train_options nytro = options_for("nytro"), exact = options_for("ep3-exact");
    exact.eigenpairs = -1;
    same_bits(&t, &nytro, &exact, "nytro");
    task_close(&t);
    t = task_open(context, KERNEL, (sizes){60, 0, 4, 2}, 1, MERCER_F64);
    mercer_train_options richardson = options_for("richardson"), pegasos = options_for("pegasos");
    pegasos.batch = 60;
    same_bits(&t, &richardson, &pegasos, "richardson is pegasos with one batch");
    mercer_train_options ep1 = options_for("ep1"), ep2 = options_for("ep2");
    ep2.nystrom = 60;
    same_bits(&t, &ep1, &ep2, "ep1 is ep2 with all samples");
    ep2.eigenpairs = -1, pegasos.batch = ep2.batch = 7;
    same_bits(&t, &pegasos, &ep2, "pegasos is ep2 without eigenpairs");
    task_close(&t);
}

/* With Z = X, the direct update of EigenPro 2 equals exact projection. The weights are compared after 1, 2, ... epochs.
   */
static void test_projection_onto_samples(void **state)
{
    (void)state;
    task t = task_open(context, KERNEL, (sizes){60, 0, 4, 2}, 1, MERCER_F64);
    kernels k = kernels_of(&t);
    for (int ridge = 0; ridge < 2; ridge++)
        for (int64_t epochs = 1; epochs <= 4; epochs++) {
            mercer_train_options ep2 = steps_of("ep2", NULL), ep3 = steps_of("ep3", "exact");
            ep2.lambda = ep3.lambda = ridge ? 3 : 0;
            ep2.epochs = ep3.epochs = epochs;
            mercer_report report;
            dense a = train(&t, &ep2, NULL), b = train(&t, &ep3, &report);
            assert_int_equal(report.steps, epochs * 4);
            double error = rkhs_distance(k.zz, a, b), limit = (double)report.steps * one_step_error(&t, &k, b);
            assert_that(error <= limit && dense_norm(a) > 0, "%d epochs, lambda %g: %g, bound %g", (int)epochs,
                        ep2.lambda, error, limit);
            free(a.a), free(b.a);
        }
    kernels_free(&k);
    task_close(&t);
}

/* ---- First steps of the named solvers ------------------------------------------------------------------------ */

/* From zero weights with q = 0, one full batch: beta = K(x,x) = 1 and t = lambda_1 of K(X,X)/n give
   eta/m = 0.95 2 / (1 + (n - 1) lambda_1), and the step is eta/m times y, K_ZZ^-1 K_ZX y or K_ZX y. */
static void test_first_steps(void **state)
{
    (void)state;
    static const char *const names[] = {"richardson", "nytro", "gd"};
    for (int i = 0; i < 3; i++) {
        task t = task_open(context, "laplace:bandwidth=2", (sizes){N, i ? P : 0, D, C}, 1, MERCER_F64);
        kernels k = kernels_of(&t);
        mercer_train_options options = options_for(names[i]);
        options.epochs = 1;
        mercer_report report;
        dense alpha = train(&t, &options, &report), kzx = dense_times(true, false, k.xz, k.y);
        dense step = i == 0 ? dense_copy(k.y) : i == 1 ? dense_solve(k.zz, kzx) : dense_copy(kzx);
        double rule = 0.95 * 2 / (1 + (N - 1) * dense_spectrum(k.xx, (dense){0}).top / N);
        /* The step rule of gd uses an estimate of the largest eigenvalue of K_ZX K_XZ, with a margin of 1.1. The
           estimate comes from power iteration, which never exceeds the eigenvalue. */
        if (i == 2) {
            dense normal = dense_times(true, false, k.xz, k.xz);
            double top = dense_spectrum(normal, (dense){0}).top;
            rule = AT(alpha, 0, 0) / AT(step, 0, 0);
            assert_that(rule >= 0.95 * 2 / (1.1 * top) * (1 - 1e-9) && rule < 2 / top, "gd: step %g, top %g", rule,
                        top);
            free(normal.a);
        }
        for (int64_t j = 0; j < step.rows * step.cols; j++) step.a[j] *= rule;
        double error = dense_distance(alpha, step), limit = k.condition * (N + P + V) * U * dense_norm(step);
        assert_that(error <= limit, "%s: %g, bound %g", names[i], error, limit);
        assert_int_equal(report.steps, 1);
        free(alpha.a), free(kzx.a), free(step.a);
        kernels_free(&k);
        task_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weighted_fixed_point),    cmocka_unit_test(test_least_squares_fixed_point),
        cmocka_unit_test(test_ridge_fixed_point),       cmocka_unit_test(test_plain_ridge_fixed_point),
        cmocka_unit_test(test_weights_repeat_rows),     cmocka_unit_test(test_exact_solvers_agree),
        cmocka_unit_test(test_corners_coincide),        cmocka_unit_test(test_first_steps),
        cmocka_unit_test(test_projection_onto_samples),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The solver `paper`: EigenPro 3 as printed in "Toward Large Kernel Models" (errors corrected: docs/math.md, section
 * 6).
 *
 * If the two preconditioner samples hold all samples and all centers, and every batch holds all samples, nothing is
 * random, and an epoch is one step with a closed formula. t and t_Z are the tails of K(X,X)/n and K(Z,Z)/p:
 *
 *   alpha  <-  alpha - a b (I - Q_Z) K_ZX (I - Q) (K_XZ alpha - y),     a = rule(n, t),   b = rule(p, t_Z)
 *   rule(m, t) = 1 / (2 beta)  if m < beta / t,   0.99 / (beta + (m - 1) t)  otherwise;     beta = max K(x,x)
 *
 * Both sides sum over n and p terms with kernel values accurate to V u. I - Q is a function of K with slope at most
 * 1/t. With a, b < 1 and steps that are non-expansive up to the condition of K_ZZ, the results of k steps therefore
 * differ by k (n + p + V) u (1/(n t) + 1/(p t_Z)) |K_ZX| (|y| + |K_XZ alpha|).
 */
#include "support/plans.h"
#include "support/training.h"

#include "plan/plan.h"

enum { N = 60, P = 20 };

static double rule(double beta, double tail, int64_t m)
{
    return (double)m < floor(beta / tail) ? 1 / (2 * beta) : 0.99 / (beta + (double)(m - 1) * tail);
}

static double tail_of(dense k, int64_t q)
{
    dense vectors = dense_new(k.rows, k.rows);
    double *values = calloc((size_t)k.rows, sizeof(double));
    dense_eigen(k, values, vectors);
    double tail = values[q] / (double)k.rows;
    free(values), free(vectors.a);
    return tail;
}

static double largest_diagonal(dense k)
{
    double out = 0;
    for (int64_t i = 0; i < k.rows; i++) out = fmax(out, AT(k, i, i));
    return out;
}

/* Runs `steps` steps of the formula in plain C. The caller frees the returned weights. */
static dense printed_steps(const kernels *k, double step, dense left, dense right, int64_t steps)
{
    dense alpha = dense_new(k->zz.rows, k->y.cols);
    for (int64_t i = 0; i < steps; i++) {
        dense g = dense_times(false, false, k->xz, alpha);
        dense_add(g, -1, k->y);
        dense flat = dense_times(false, false, right, g), h = dense_times(true, false, k->xz, flat),
              theta = dense_times(false, false, left, h);
        dense_add(alpha, -step, theta);
        free(g.a), free(flat.a), free(h.a), free(theta.a);
    }
    return alpha;
}

static int save_step(void *user, const mercer_progress *progress)
{
    *(double *)user = progress->step;
    return 0;
}

/* K(x,x) is 1 for only one of the two kernels. With few eigenpairs n exceeds the critical batch size, with many
   eigenpairs it does not. */
static void test_steps(void **state)
{
    (void)state;
    bool small = false, large = false;
    for (int run = 0; run < 6; run++) {
        int64_t q = run % 3 ? 40 : 2, q_z = run % 3 == 2 ? 8 : 10, steps = 1 + run;
        task t =
            task_open(context, run < 3 ? "laplace:bandwidth=0.8" : "ntk:depth=2", (sizes){N, P, 4, 2}, 1, MERCER_F64);
        kernels k = kernels_of(&t), centers = {.xx = k.zz};
        double beta = largest_diagonal(k.xx), tail = tail_of(k.xx, q);
        double beta_z = largest_diagonal(k.zz), tail_z = tail_of(k.zz, q_z);
        assert_that(beta_z / tail_z >= P, "the projector's batch is %g of %d centers", beta_z / tail_z, (int)P);
        double step = rule(beta, tail, N), seen = 0;
        dense right = weights_of_preconditioner(&k, q), left = weights_of_preconditioner(&centers, q_z);
        dense expected = printed_steps(&k, step * rule(beta_z, tail_z, P), left, right, steps);
        mercer_train_options options = options_for("paper");
        options.nystrom = N, options.eigenpairs = q, options.batch = N, options.epochs = steps;
        options.projector_nystrom = P, options.projector_eigenpairs = q_z;
        options.progress = save_step, options.progress_user = &seen;
        mercer_report report;
        dense got = train(&t, &options, &report);
        double limit = (double)steps * (N + P + V) * U * (1 / (N * tail) + 1 / (P * tail_z)) * k.condition *
                       dense_norm(k.xz) * (dense_norm(k.y) + dense_norm(k.xz) * dense_norm(expected));
        assert_that(fabs(report.beta - beta) <= 8 * U * beta && fabs(seen - step) <= 1e-9 * step,
                    "beta %.17g, %.17g; step %.17g, %.17g", report.beta, beta, seen, step);
        assert_that(limit < 1e-6 && dense_distance(got, expected) <= limit, "run %d: %g, bound %g of %g", run,
                    dense_distance(got, expected), limit, dense_norm(expected));
        *(N < floor(beta / tail) ? &small : &large) = true;
        free(right.a), free(left.a), free(expected.a), free(got.a);
        kernels_free(&k);
        task_close(&t);
    }
    assert_true(small && large); /* both branches of the rule */
}

/* The planned sizes and epochs are those of the paper: no averaging, decay or carry. Explicit options override them. */
static void test_plan(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for("paper");
    options.memory = (int64_t)16 << 30;
    mrc_plan_request request = {.machine = mrc_machine_of(context),
                                .options = &options,
                                .n = 60000,
                                .p = 1000,
                                .d = 784,
                                .c = 10,
                                .real = MERCER_F32,
                                .points = MERCER_U8,
                                .shards = 1,
                                .threads = 2,
                                .bounded = true,
                                .rows_known = true};
    const mercer_plan *is = &plan.public_plan;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_string_equal(is->projector, "ep2");
    assert_true(is->nystrom == 5000 && is->eigenpairs == 500 && is->period == 1 && is->epochs == 50);
    assert_true(is->projector_nystrom == 1000 && is->projector_eigenpairs == 100 && is->projector_passes == 1);
    assert_true(is->step_factor == 0.5 && !is->average && !is->decay && !is->carry && is->cache_data);
    assert_true(plan.projector_options.gamma == 0.5 && plan.projector_options.rule == MRC_STEP_PRINTED);
    assert_true(plan.projector_options.tolerance == 0);
    assert_true(mentions(is->text, "as printed"));
    request.p = 10000;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(is->projector_nystrom == 2000 && is->projector_eigenpairs == 200 && is->epochs == 50);
    request.p = 100000;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(is->projector_nystrom == 10000 && is->projector_eigenpairs == 1000 && is->epochs == 50);
    options.epochs = 3, options.nystrom = 900, options.average = MERCER_ON;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(is->epochs == 3 && is->nystrom == 900 && is->eigenpairs == 90 && is->average);
    options.period = 4;
    assert_fails(context, make_plan(context, &plan, &request), MERCER_ERROR_ARGUMENT, "period");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}

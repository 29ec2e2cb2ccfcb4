/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A training run must not depend on the order of the centers, the number of threads or ranks, or additional outputs.
 * Labels of 0 must give weights of 0.
 *
 * Two ways to compute the same K steps differ by one step's rounding each (one_step_error, derived in
 * test_identities.c), and steps are non-expansive: |alpha - alpha'|_H <= K times that.
 */
#include "support/training.h"

static const char *const KERNEL = "laplace:bandwidth=2";
static const char *const projectors[] = {"exact", "ep2", "pcg", "bgs"};

static mercer_train_options usual(const char *solver, const char *projector)
{
    mercer_train_options options = options_for(solver);
    options.projector = projector;
    bool stochastic = strcmp(solver, "pegasos") == 0 || strncmp(solver, "ep", 2) == 0;
    if (stochastic && strcmp(solver, "ep3-exact") != 0) options.batch = 8; /* others use all samples at once */
    options.nystrom = 40, options.eigenpairs = 3, options.epochs = 3;
    if (projects(solver)) options.projector_nystrom = 20, options.projector_eigenpairs = 4, options.projector_block = 8;
    return options;
}

static void test_permuted_centers(void **state)
{
    (void)state;
    sizes of = {90, 30, 4, 2};
    task t = task_open(context, KERNEL, of, 1, MERCER_F64);
    kernels k = kernels_of(&t);
    const char *const solvers[] = {"ep4", "ep3-exact", "gd", "direct", "cg"};
    for (int i = 0; i < 5; i++) {
        mercer_train_options options = usual(solvers[i], i == 0 ? "exact" : NULL);
        dense a = train(&t, &options, NULL);
        task moved = t;
        moved.z = data_matrix(of.p, of.d, 0, MERCER_F64);
        for (int64_t j = 0; j < of.p; j++)
            memcpy(mrc_row(&moved.z, j), mrc_row(&t.z, (7 * j + 3) % of.p), (size_t)of.d * sizeof(double));
        dense b = train(&moved, &options, NULL), back = dense_new(of.p, of.c);
        for (int64_t j = 0; j < of.p; j++)
            memcpy(&AT(back, (7 * j + 3) % of.p, 0), &AT(b, j, 0), (size_t)of.c * sizeof(double));
        /* 12 batches per epoch; the exact solvers solve systems of the squared condition */
        double limit = 40 * one_step_error(&t, &k, a) * (i >= 3 ? k.condition : 1);
        assert_that(rkhs_distance(k.zz, a, back) <= limit, "%s: %g, bound %g", solvers[i], rkhs_distance(k.zz, a, back),
                    limit);
        assert_true(rkhs_distance(k.zz, a, b) > limit); /* the test would notice an ignored reordering */
        free(a.a), free(b.a), free(back.a), free(moved.z.data);
    }
    kernels_free(&k);
    task_close(&t);
}

static const char *const all_solvers[] = {"direct", "cg",  "ep3-exact",  "nytro",   "gd",  "ep2",
                                          "ep1",    "krr", "richardson", "pegasos", "ep3", "paper"};
enum { SOLVERS = 12, FIRST_ON_SAMPLES = 5, LAST_ON_SAMPLES = 9 };

/* Training is bitwise identical with 1, 2 and 5 threads, for every solver and projector, in double and in float. */
static void test_threads(void **state)
{
    (void)state;
    for (int run = 0; run < SOLVERS + 4; run++) {
        bool ep4 = run >= SOLVERS, on_samples = run >= FIRST_ON_SAMPLES && run <= LAST_ON_SAMPLES;
        const char *solver = ep4 ? "ep4" : all_solvers[run];
        mercer_train_options options = usual(solver, ep4 ? projectors[run - SOLVERS] : NULL);
        if (SANITIZED) options.epochs = 2;
        for (int single = SANITIZED ? run % 2 : 0; single < (SANITIZED ? run % 2 + 1 : 2); single++) {
            dense first = {0};
            for (int threads = 1; threads <= 5; threads *= SANITIZED ? 4 : 2) {
                mercer_context *own = open_context(threads);
                task t = task_open(own, KERNEL, (sizes){SANITIZED ? 180 : 300, on_samples ? 0 : 170, 4, 2}, 1,
                                   single ? MERCER_F32 : MERCER_F64);
                dense a = train_as(&t, &options, 0, single ? MERCER_F32 : MERCER_F64, NULL);
                if (first.a)
                    assert_that(dense_distance(first, a) == 0, "%s %s, %d threads: %g", solver,
                                ep4 ? projectors[run - SOLVERS] : "", threads, dense_distance(first, a));
                if (first.a)
                    free(a.a);
                else
                    first = a;
                task_close(&t);
                mercer_context_free(own);
            }
            free(first.a);
        }
    }
}

/* R ranks, also more ranks than centers, give the model of one rank: |f - f'| as above, f32 with its own u. */
static void test_ranks(void **state)
{
    (void)state;
    const int counts[] = {1, 2, 3, 8};
    for (int run = 0; run < SOLVERS + 8; run++) {
        bool ep4 = run >= SOLVERS, on_samples = run >= FIRST_ON_SAMPLES && run <= LAST_ON_SAMPLES,
             few = run >= SOLVERS + 4;
        const char *solver = ep4 ? "ep4" : all_solvers[run], *projector = ep4 ? projectors[(run - SOLVERS) % 4] : NULL;
        mercer_train_options options = usual(solver, projector);
        for (int single = SANITIZED ? run % 2 : 0; single < (SANITIZED ? run % 2 + 1 : 2); single++) {
            mercer_dtype real = single ? MERCER_F32 : MERCER_F64;
            task t = task_open(context, KERNEL, (sizes){90, on_samples ? 0 : few ? 5 : 30, 4, 2}, 1, real);
            kernels k = kernels_of(&t);
            dense first = train_as(&t, &options, 0, real, NULL);
            double unit = single ? 0x1p-24 / U : 1, steps = 3 * 12 + 1;
            double limit = steps * unit * one_step_error(&t, &k, first) * (run < 2 ? k.condition : 1);
            /* cg stops at 1e-4 of the gradient, after a number of steps that rounding may change */
            if (run == 1) limit += 2e-4 * k.condition * rkhs_norm(k.zz, first);
            for (int r = SANITIZED ? run % 2 : 0; r < 4; r += SANITIZED ? 2 : 1) {
                dense a = train_as(&t, &options, counts[r], real, NULL);
                double error = rkhs_distance(k.zz, a, first);
                assert_that(error <= limit, "%s %s f%d, %d ranks: %g, bound %g", solver, projector ? projector : "",
                            single ? 32 : 64, counts[r], error, limit);
                free(a.a);
            }
            assert_that(limit < 0.5 * rkhs_norm(k.zz, first) || single, "%s: the bound %g says nothing", solver, limit);
            free(first.a);
            kernels_free(&k);
            task_close(&t);
        }
    }
}

static void test_zero_labels(void **state)
{
    (void)state;
    for (int run = 0; run < SOLVERS + 4; run += SANITIZED ? 2 : 1) { /* the other runs are in the next test */
        bool ep4 = run >= SOLVERS, on_samples = run >= FIRST_ON_SAMPLES && run <= LAST_ON_SAMPLES;
        task t = task_open(context, KERNEL, (sizes){90, on_samples ? 0 : 30, 4, 2}, 1, MERCER_F64);
        mercer_train_options options = usual(ep4 ? "ep4" : all_solvers[run], ep4 ? projectors[run - SOLVERS] : NULL);
        memset(t.y.data, 0, (size_t)(t.y.rows * t.y.cols) * sizeof(double));
        dense a = train(&t, &options, NULL);
        for (int64_t i = 0; i < a.rows * a.cols; i++) assert_that(a.a[i] == 0, "%s", options.solver);
        free(a.a);
        task_close(&t);
    }
}

/* An additional constant output does not change the others. (The stopping rule of pcg depends on all outputs: passes
   are fixed.) */
static void test_constant_output(void **state)
{
    (void)state;
    for (int run = SANITIZED; run < SOLVERS + 4; run += SANITIZED ? 2 : 1) {
        bool ep4 = run >= SOLVERS, on_samples = run >= FIRST_ON_SAMPLES && run <= LAST_ON_SAMPLES;
        task t = task_open(context, KERNEL, (sizes){90, on_samples ? 0 : 30, 4, 2}, 1, MERCER_F64);
        task wide = task_open(context, KERNEL, (sizes){90, on_samples ? 0 : 30, 4, 3}, 1, MERCER_F64);
        for (int64_t i = 0; i < 90; i++) mrc_store(&wide.y, i, 2, 1);
        mercer_train_options options = usual(ep4 ? "ep4" : all_solvers[run], ep4 ? projectors[run - SOLVERS] : NULL);
        if (projects(options.solver)) options.projector_tolerance = 1e-300, options.projector_passes = 2;
        dense a = train(&t, &options, NULL), b = train(&wide, &options, NULL), part = dense_new(a.rows, a.cols);
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t j = 0; j < a.cols; j++) AT(part, i, j) = AT(b, i, j);
        kernels k = kernels_of(&t);
        double error = rkhs_distance(k.zz, a, part),
               limit = 40 * one_step_error(&t, &k, a) * (run < 2 ? k.condition : 1);
        if (run == 1) limit += 2e-4 * k.condition * rkhs_norm(k.zz, a); /* as for ranks */
        assert_that(error <= limit, "%s %s: %g, bound %g", options.solver, options.projector ? options.projector : "",
                    error, limit);
        free(a.a), free(b.a), free(part.a);
        kernels_free(&k);
        task_close(&t), task_close(&wide);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permuted_centers), cmocka_unit_test(test_threads),         cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_zero_labels),      cmocka_unit_test(test_constant_output),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

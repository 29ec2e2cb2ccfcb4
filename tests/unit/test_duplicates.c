/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Duplicate samples with different labels, also used as centers: K(Z,Z) is singular and no model fits the labels.
 *
 * The minimum of the squared error is known: the prediction of a pair is the mean of its labels, which leaves the error
 * (y - y')^2 / 2. The last iterate of stochastic steps of constant length exceeds this minimum by about half of it,
 * because each batch pulls toward its own labels; the mean of the iterates does not. With the starting point and the
 * number of averaged iterates here (the later half of 10 epochs of 4 batches), its excess is less than a tenth.
 */
#include "support/training.h"

enum { PAIRS = 100, N = 2 * PAIRS, D = 4 };

/* Create a task whose rows 2 i and 2 i + 1 are the same point, with independent labels of deviation 1. */
static task paired_task(mercer_dtype dtype)
{
    task t = task_open(context, "laplace:bandwidth=2", (sizes){N, 0, D, 1}, 1, dtype);
    for (int64_t i = 0; i < N; i++) {
        for (int64_t k = 0; k < D; k++) data_store(&t.x, i, k, mrc_load(&t.x, i / 2 * 2, k));
        data_store(&t.y, i, 0, mrc_random_normal((mrc_rng){77, 1}, (uint64_t)i));
    }
    memcpy(t.z.data, t.x.data, (size_t)(N * D * mrc_dtype_size(dtype)));
    return t;
}

static double squared_error(const task *t, dense alpha)
{
    dense y = dense_of(&t->y), k = dense_kernel(&t->kernel, &t->x, &t->z), f = dense_times(false, false, k, alpha);
    double distance = dense_distance(f, y);
    free(y.a), free(k.a), free(f.a);
    return distance * distance;
}

static void test_noise_is_averaged(void **state)
{
    (void)state;
    static const char *const solvers[] = {"direct", "cg", "ep4", "ep3", "ep2", "ep1"};
    static const mercer_dtype types[] = {MERCER_F32, MERCER_F64};
    for (size_t s = 0; s < sizeof solvers / sizeof *solvers; s++)
        for (int type = 0; type < 2; type++) {
            task t = paired_task(types[type]);
            double least = 0;
            for (int64_t i = 0; i < N; i += 2) {
                double apart = mrc_load(&t.y, i, 0) - mrc_load(&t.y, i + 1, 0);
                least += apart * apart / 2;
            }
            mercer_train_options options = options_for(solvers[s]);
            if (s > 1) options.epochs = 10, options.batch = N / 4;
            dense alpha = train_as(&t, &options, 0, types[type], NULL);
            double error = squared_error(&t, alpha);
            assert_that(error <= 1.1 * least, "%s: squared error %g, at least %g", solvers[s], error, least);
            free(alpha.a);
            task_close(&t);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_noise_is_averaged)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels of distances other than L2 in every part that uses kernels: all solvers and projectors, ranks, bandwidths,
 * centers, plans, nearest rows.
 *
 * Required accuracy of a solver: the minimum of the squared error over all weights is that of least squares; the error
 * due to a preconditioner or to few epochs may be half of the zero model's excess over it. Solvers that converge reach
 * the minimum itself, up to 1e-6.
 */
#include "support/training.h"

#include "kernels/kernel.h"

static const char *const specs[] = {"laplace-l1:bandwidth=6", "exppower-l1:bandwidth=6,gamma=0.7",
                                    "lpq:p=1.4,q=0.9,bandwidth=5", "lpq:p=2,q=1,bandwidth=4"};
enum { SPECS = sizeof specs / sizeof *specs };

static double error_of(const kernels *k, dense alpha)
{
    dense f = dense_times(false, false, k->xz, alpha);
    double distance = dense_distance(f, k->y);
    free(f.a);
    return distance * distance;
}

/* Train with two threads and with one, and with the centers in two shards: identical bits for any number of threads,
   and a small error. */
static void check_solver(const char *kernel, const char *solver, const char *projector)
{
    sizes of = {120, needs_samples(solver) ? 0 : 30, 4, 2};
    task t = task_open(context, kernel, of, 1, MERCER_F64);
    kernels k = kernels_of(&t);
    mercer_train_options options = options_for(solver);
    options.projector = projector;
    bool exact = mercer_solver_kind_of(solver) == MERCER_SOLVER_DIRECT, to_the_end = exact || strcmp(solver, "cg") == 0;
    options.epochs = exact ? 0 : to_the_end ? 200 : 100;
    dense one = train_as(&t, &options, 0, MERCER_F64, NULL), shards = train_as(&t, &options, 2, MERCER_F64, NULL);
    if (!SANITIZED) {
        t.context = open_context(1);
        dense again = train_as(&t, &options, 0, MERCER_F64, NULL);
        mercer_context_free(t.context);
        assert_memory_equal(one.a, again.a, (size_t)(one.rows * one.cols) * sizeof *one.a);
        free(again.a);
    }
    dense best = least_squares(&k, (dense){0}, 1e-9, NULL), none = dense_new(one.rows, one.cols);
    double got = fmax(error_of(&k, one), error_of(&k, shards)), wanted = error_of(&k, best), zero = error_of(&k, none);
    double allowed = to_the_end ? wanted + 1e-6 * zero : wanted + (zero - wanted) / 2;
    assert_that(got <= allowed, "%s, %s, %s: error %g, allowed %g, best %g, zero %g", kernel, solver,
                projector ? projector : "-", got, allowed, wanted, zero);
    free(one.a), free(shards.a), free(best.a), free(none.a);
    kernels_free(&k);
    task_close(&t);
}

static void test_solvers(void **state)
{
    (void)state;
    for (int i = 0; mrc_solver_row(i); i += SANITIZED ? 2 : 1) check_solver(specs[0], mrc_solver_row(i)->name, NULL);
    for (int i = 1; i < SPECS; i++) check_solver(specs[i], i % 2 ? "direct" : "cg", NULL);
}

static void test_projectors(void **state)
{
    (void)state;
    for (int i = 0; mrc_projector_row(i); i += SANITIZED ? 2 : 1)
        check_solver(specs[i % 2], "ep4", mrc_projector_row(i)->name);
}

/* ---- From data to a model ---------------------------------------------------------------------------------------- */

static void rows_of(mercer_matrix *x, mercer_matrix *y, int64_t n, int64_t d)
{
    *x = data_matrix(n, d, 0, MERCER_F32), *y = data_matrix(n, 1, 0, MERCER_F32);
    data_fill_normal(x, (mrc_rng){31, 1}, 0, 1);
    for (int64_t i = 0; i < n; i++) data_store(y, i, 0, fabs(mrc_load(x, i, 0)) + 0.5 * mrc_load(x, i, 1));
}

static mercer_status fit_with(const mercer_matrix *x, const mercer_matrix *y, const char *kernel, const char *method,
                              mercer_fit_report *report)
{
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = x, arrays.Y = y;
    mercer_dataset *data;
    mercer_model *model = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    options.kernel.spec = kernel, options.centers.method = method, options.centers.count = 40,
    options.data.preprocess = "none";
    options.search.tune = MERCER_OFF; /* a search would choose another bandwidth */
    mercer_status status = mercer_fit(&model, context, data, &options, report);
    mercer_model_free(model);
    mercer_dataset_free(data);
    return status;
}

/* The default bandwidth is the median distance in the kernel's own norm. */
static void test_bandwidth_follows_the_norm(void **state)
{
    (void)state;
    mercer_matrix x, y;
    rows_of(&x, &y, 300, 6);
    static const char *const open[] = {"laplace-l1", "exppower-l1:gamma=0.7", "lpq:p=1.4,q=0.9", "laplace"};
    double last = 0;
    for (int i = 0; i < 4; i++) {
        mercer_fit_report report = MERCER_INIT(mercer_fit_report);
        assert_succeeds(context, fit_with(&x, &y, open[i], NULL, &report));
        mercer_kernel kernel;
        assert_succeeds(context, mercer_kernel_parse(&kernel, context, report.kernel));
        double median;
        assert_succeeds(context, mercer_median_distance(context, &median, &kernel, &x, 0));
        assert_that(fabs(kernel.bandwidth - median) <= 6e-4 * median, "%s: bandwidth %g, median %g", open[i],
                    kernel.bandwidth, median);
        assert_that(i == 0 || i == 1 ? kernel.bandwidth > 5 : kernel.bandwidth != last, "%s: %g", open[i],
                    kernel.bandwidth);
        last = kernel.bandwidth;
    }
    free(x.data), free(y.data);
}

static void test_center_methods(void **state)
{
    (void)state;
    mercer_matrix x, y;
    rows_of(&x, &y, 200, 4);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    assert_succeeds(context, fit_with(&x, &y, "laplace-l1", "random", &report));
    assert_succeeds(context, fit_with(&x, &y, "lpq:p=1.4,q=0.9", "rpcholesky", &report));
    assert_succeeds(context, fit_with(&x, &y, "lpq:p=2,q=0.9", "kmeans", &report)); /* kmeans uses the L2 distance */
    assert_fails(context, fit_with(&x, &y, "laplace-l1", "kmeans", &report), MERCER_ERROR_ARGUMENT, "kmeans");
    assert_true(mentions(mercer_last_error(context), "p = 1"));
    mercer_center_options options = MERCER_INIT(mercer_center_options);
    mercer_kernel kernel;
    mercer_matrix z = data_matrix(10, 4, 0, MERCER_F32);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, specs[2]));
    options.method = "kmeans", options.kernel = &kernel;
    assert_fails(context, mercer_choose_centers(context, &z, &x, &options, NULL), MERCER_ERROR_ARGUMENT, "p = 1.4");
    options.kernel = NULL;
    assert_succeeds(context, mercer_choose_centers(context, &z, &x, &options, NULL));
    free(x.data), free(y.data), free(z.data);
}

/* Sums of differences take longer than products, and powers much longer: the plan's time estimate includes this. */
static void test_plan_counts_differences(void **state)
{
    (void)state;
    static const char *const kernel[] = {"laplace:bandwidth=4", "laplace-l1:bandwidth=6",
                                         "lpq:p=1.4,q=0.9,bandwidth=5"};
    double seconds[3];
    for (int i = 0; i < 3; i++) {
        task t = task_open(context, kernel[i], (sizes){400, 60, 50, 1}, 1, MERCER_F32);
        mercer_train_options options = options_for("ep4");
        mercer_report report;
        dense alpha = train_as(&t, &options, 0, MERCER_F32, &report);
        seconds[i] = report.plan->seconds;
        free(alpha.a);
        task_close(&t);
    }
    assert_that(seconds[1] > 1.5 * seconds[0] && seconds[2] > 10 * seconds[1], "%g, %g, %g", seconds[0], seconds[1],
                seconds[2]);
}

/* ---- Nearest rows and medians ------------------------------------------------------------------------------------ */

/* Compare with plain sums in double: distances of float rows are off by at most d roundings of float. */
static void test_nearest_rows(void **state)
{
    (void)state;
    enum { M = 70, P = 300, D = 5 };
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < SPECS; i++) {
            mercer_kernel kernel;
            assert_succeeds(context, mercer_kernel_parse(&kernel, context, specs[i]));
            double norm = mrc_kernel_norm(&kernel), far[M];
            int32_t nearest[M];
            mercer_matrix x = data_matrix(M, D, 0, types[t]), z = data_matrix(P, D, 0, types[t]);
            data_fill_normal(&x, (mrc_rng){41, 1}, 100, 20);
            data_fill_normal(&z, (mrc_rng){41, 2}, 100, 20);
            assert_succeeds(context, mercer_nearest_rows(context, nearest, far, &kernel, &x, &z));
            for (int64_t r = 0; r < M; r++) {
                double least = INFINITY, own = 0;
                for (int64_t j = 0; j < P; j++) {
                    double sum = 0;
                    for (int64_t k = 0; k < D; k++)
                        sum += mrc_difference_power(norm, mrc_load(&x, r, k) - mrc_load(&z, j, k));
                    least = fmin(least, mrc_norm_root(norm, sum));
                    if (j == nearest[r]) own = mrc_norm_root(norm, sum);
                }
                double error = types[t] == MERCER_F64 ? 1e-13 : norm < 2 ? 8 * 0x1p-24 : 1e-4;
                assert_that(own <= least * (1 + 2 * error) && fabs(far[r] - own) <= error * own,
                            "%s, %s, row %d: %.9g, reported %.9g, least %.9g", specs[i], mrc_dtype_name(types[t]),
                            (int)r, own, far[r], least);
            }
            free(x.data), free(z.data);
        }
}

static void test_refused(void **state)
{
    (void)state;
    mercer_matrix x, y;
    rows_of(&x, &y, 20, 3);
    int32_t nearest[20];
    double median;
    mercer_kernel inner;
    assert_succeeds(context, mercer_kernel_parse(&inner, context, "linear"));
    assert_fails(context, mercer_nearest_rows(context, nearest, NULL, &inner, &x, &x), MERCER_ERROR_KERNEL,
                 "inner product*distance");
    assert_fails(context, mercer_median_distance(context, &median, &inner, &x, 0), MERCER_ERROR_KERNEL,
                 "inner product*distance");
    mercer_kernel wrong;
    assert_succeeds(context, mercer_kernel_parse(&wrong, context, specs[2]));
    wrong.q = 1.75;
    assert_fails(context, mercer_median_distance(context, &median, &wrong, &x, 0), MERCER_ERROR_KERNEL, "q is 1.75");
    free(x.data), free(y.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solvers),
        cmocka_unit_test(test_projectors),
        cmocka_unit_test(test_bandwidth_follows_the_norm),
        cmocka_unit_test(test_center_methods),
        cmocka_unit_test(test_plan_counts_differences),
        cmocka_unit_test(test_nearest_rows),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel ridge regression where the centers are the samples: A alpha = y with A = K + lambda W^-1.
 *
 * The solver stops when |y - A alpha| <= t |y| for its own residual, which it updates in every step: each of S steps
 * adds at most (p + 8) u (|A| |alpha| + |y|) of rounding to it, u = 2^-53. So the true residual, in long double,
 * satisfies
 *
 *   |y - A alpha| <= t |y| + (S + 1) (p + 8) u (| |A| |alpha| | + |y|)
 *
 * In float, alpha is rounded once more: + 2^-24 | |A| |alpha| |, and kernel values of float points are off by few u.
 *
 * The error that it reports, y - K alpha from residuals, agrees with that of a pass over the samples, whose kernel
 * values are off by few units of the type, v: as roots of sums of squares they differ by at most
 *
 *   sqrt(max w) ((S + 1) (p + 8) u (| |A| |alpha| | + |y|) + 16 v | |A| |alpha| |)
 */
#include "support/exact_solvers.h"

#include "support/sources.h"

#include <string.h>

static problem on_samples(int64_t n, int64_t c, mercer_dtype dtype, const char *kernel, double lambda)
{
    problem data = make_problem(n, n, c, dtype);
    memcpy(data.z.data, data.x.data, (size_t)(n * D * mrc_dtype_size(dtype)));
    assert_succeeds(NULL, mercer_kernel_parse(&data.kernel, NULL, kernel));
    data.lambda = lambda;
    return data;
}

/* Return the residual of column j over |y_j|; `rounding` receives | |A| |alpha| | over |y_j|. */
static double residual(const problem *data, const mercer_matrix *k, const mercer_matrix *alpha, int64_t j,
                       double *rounding)
{
    long double squares = 0, sizes = 0, targets = 0;
    for (int64_t i = 0; i < k->rows; i++) {
        long double mu = (long double)data->lambda / (data->weights ? data->weights[i] : 1);
        long double sum = mu * mrc_load(alpha, i, j), size = fabsl(sum);
        for (int64_t s = 0; s < k->cols; s++) {
            long double term = (long double)mrc_load(k, i, s) * mrc_load(alpha, s, j);
            sum += term, size += fabsl(term);
        }
        long double y = mrc_load(&data->y, i, j);
        squares += (sum - y) * (sum - y), sizes += size * size, targets += y * y;
    }
    *rounding = (double)sqrtl(sizes / targets);
    return (double)sqrtl(squares / targets);
}

/* rounding: error of K alpha and of the residuals, in units of the targets' size */
static void check_fit(bench *self, const problem *data, const mrc_units *units, double rounding)
{
    double fit, most = 1, targets = 0;
    for (int64_t i = 0; i < data->x.rows; i++) {
        if (data->weights) most = fmax(most, data->weights[i]);
        for (int64_t j = 0; j < data->y.cols; j++) {
            double y = mrc_load(&data->y, i, j) * units->scale[j];
            targets += y * y;
        }
    }
    assert_succeeds(&self->context, mrc_objective(&self->exact, &self->alpha, &fit, NULL));
    double error = fabs(sqrt(fit) - sqrt(self->exact.fit)), limit = sqrt(most * targets) * rounding;
    assert_that(error <= limit, "fit %.17g, by its own account %.17g: %g, bound %g", fit, self->exact.fit, error,
                limit);
}

/* factored: a factor in float exists, so K is cached and the training error is known */
static void check_equations(const problem *data, int ranks, mercer_dtype real, bool factored)
{
    static double offset[C], scale[C];
    int64_t p = data->z.rows;
    double largest = 0;
    for (int64_t j = 0; j < C; j++) offset[j] = 1, scale[j] = 2 + (double)j;
    mrc_units units = {.offset = offset, .scale = scale};
    mercer_matrix k = kernel_matrix(data, &data->x);
    bench self;
    open_bench(&self, data, ranks, real, false);
    self.exact.units = &units;
    assert_succeeds(&self.context, mrc_exact_krr(&self.exact, &self.alpha));
    for (int64_t j = 0; j < data->y.cols; j++) {
        double size, error = residual(data, &k, &self.alpha, j, &size);
        double single = real == MERCER_F32 ? 1 : 0, steps = (double)self.exact.steps_done;
        double limit =
            (single ? 1e-7 : 1e-13) + (steps + 1) * (double)(p + 8) * UNIT * (size + 1) + single * 0x1p-24 * size;
        assert_that(error <= limit, "kernel %d, lambda %g, %d ranks, output %d: %g, bound %g after %d steps",
                    (int)data->kernel.id, data->lambda, ranks, (int)j, error, limit, (int)steps);
        double unit = single ? 0x1p-24 : UNIT;
        largest = fmax(largest, (steps + 1) * (double)(p + 8) * UNIT * (size + 1) + 16 * unit * size);
    }
    assert_true(isnan(self.exact.fit) == !factored);
    if (factored) check_fit(&self, data, &units, largest);
    free(k.data);
    close_bench(&self);
}

static void test_equations(void **state)
{
    (void)state;
    static const char *const kernels[] = {"laplace:bandwidth=2", "gaussian:bandwidth=1", "linear"};
    for (int variant = 0; variant < 12; variant++) {
        mercer_dtype dtype = variant % 2 ? MERCER_F32 : MERCER_F64;
        problem data = on_samples(N, C, dtype, kernels[variant / 4], variant / 2 % 2 ? 1e-2 : 3);
        if (variant % 4 == 2) {
            data.weights = malloc(N * sizeof(double));
            for (int64_t i = 0; i < N; i++) data.weights[i] = 0.5 + (double)(i % 4);
        }
        for (int ranks = 1; ranks <= 3; ranks++) check_equations(&data, ranks, dtype, true);
        free_problem(&data);
    }
}

/* The samples have more rows than a block of the factor, and more than a block of samples that is read at once. */
static void test_blocks(void **state)
{
    (void)state;
    problem data = on_samples(SANITIZED ? 300 : 1100, 1, MERCER_F64, "laplace:bandwidth=2", 1e-3);
    check_equations(&data, 1, MERCER_F64, true);
    free_problem(&data);
}

/* A wide Gaussian has no factor in float: the diagonal shift, or the factor in double, costs only additional steps. */
static void test_no_factor_in_float(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        problem data = on_samples(N, 1, MERCER_F64, "gaussian:bandwidth=10", i ? 1e-9 : 1e-5);
        check_equations(&data, 1, MERCER_F64, i == 0);
        free_problem(&data);
    }
}

/* The result is the same function as from the normal equations: both minimize the same sum. */
static void test_agrees_with_direct(void **state)
{
    (void)state;
    problem data = on_samples(N, C, MERCER_F64, "laplace:bandwidth=2", 0.3);
    mercer_matrix one = exact_times(&data, mrc_exact_krr, 1), other = exact_times(&data, mrc_exact_direct, 1);
    reference ref = solve_reference(&data);
    assert_that(difference(&one, &other) <= 2 * bound(&ref, 0), "%g, bound %g", difference(&one, &other),
                2 * bound(&ref, 0));
    free_reference(&ref);
    free(one.data), free(other.data);
    free_problem(&data);
}

/* Duplicate samples make K singular; lambda = 0 asks for an interpolation that no weights can achieve exactly. */
static void test_singular(void **state)
{
    (void)state;
    problem data = on_samples(N, 1, MERCER_F64, "laplace:bandwidth=2", 0);
    for (int64_t i = 0; i < 20; i++) {
        memcpy(mrc_row(&data.x, i + 50), mrc_row(&data.x, i), D * sizeof(double));
        memcpy(mrc_row(&data.z, i + 50), mrc_row(&data.x, i), D * sizeof(double));
        mrc_store(&data.y, i + 50, 0, mrc_load(&data.y, i, 0));
    }
    bench self;
    double fit;
    open_bench(&self, &data, 1, MERCER_F64, false);
    assert_succeeds(&self.context, mrc_exact_krr(&self.exact, &self.alpha));
    assert_succeeds(&self.context, mrc_objective(&self.exact, &self.alpha, &fit, NULL));
    assert_that(fit / N < 1e-12, "loss %g", fit / N); /* duplicates have equal targets, so the loss can reach 0 */
    close_bench(&self);
    free_problem(&data);
}

static void test_zero_labels(void **state)
{
    (void)state;
    problem data = on_samples(N, C, MERCER_F64, "laplace:bandwidth=2", 1);
    memset(data.y.data, 0, (size_t)(N * C) * sizeof(double));
    mercer_matrix alpha = exact_times(&data, mrc_exact_krr, 1);
    for (int64_t i = 0; i < N * C; i++) assert_true(((double *)alpha.data)[i] == 0);
    free(alpha.data);
    free_problem(&data);
}

/* ---- When the solver is chosen --------------------------------------------------------------------------------- */

static mercer_status fit_as(const problem *data, const char *solver, mercer_plan *plan, mercer_context **context)
{
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    options.solver = solver, options.lambda = data->lambda;
    assert_succeeds(NULL, mercer_context_create(context, NULL));
    assert_succeeds(*context, mercer_model_create(&model, *context, NULL, &data->kernel, &data->z, C, data->x.dtype));
    assert_succeeds(*context, source_from_matrices(&source, *context, &data->x, &data->y, data->weights, 1));
    assert_succeeds(*context, mercer_trainer_create(&trainer, model, NULL, &options));
    plan->struct_size = sizeof *plan;
    mercer_status status = mercer_trainer_plan(trainer, plan, &source);
    if (status == MERCER_OK) status = mercer_trainer_fit(trainer, &source, NULL);
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    return status;
}

static void check_plan(const problem *data, const char *asked, const char *taken)
{
    mercer_plan plan = {0};
    mercer_context *context;
    mercer_status status = fit_as(data, asked, &plan, &context);
    if (taken) {
        assert_succeeds(context, status);
        assert_string_equal(plan.solver, taken);
    } else
        assert_fails(context, status, MERCER_ERROR_DATA, "same rows");
    mercer_context_free(context);
}

static void test_choice(void **state)
{
    (void)state;
    problem data = on_samples(N, C, MERCER_F64, "laplace:bandwidth=2", 1);
    check_plan(&data, NULL, "krr");
    check_plan(&data, "direct", "direct");
    data.weights = malloc(N * sizeof(double));
    for (int64_t i = 0; i < N; i++) data.weights[i] = i == 7 ? 0 : 1;
    check_plan(&data, NULL, "direct"); /* a sample with weight 0 */
    check_plan(&data, "krr", NULL);
    data.weights[7] = 2;
    check_plan(&data, "krr", "krr");
    mrc_store(&data.z, N - 1, D - 1, 3);
    check_plan(&data, NULL, "direct"); /* a center that is not a sample */
    check_plan(&data, "krr", NULL);
    data.z.rows = N - 1;
    check_plan(&data, NULL, "direct");
    check_plan(&data, "krr", NULL);
    free_problem(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equations),
                                       cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_no_factor_in_float),
                                       cmocka_unit_test(test_agrees_with_direct),
                                       cmocka_unit_test(test_singular),
                                       cmocka_unit_test(test_zero_labels),
                                       cmocka_unit_test(test_choice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

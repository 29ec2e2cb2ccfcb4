/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fixed-point lemma of EigenPro 3 with exact projection (docs/math.md, section 6), checked on the library's steps.
 *
 *   alpha  <-  alpha - eta K_ZZ^-1 K_ZX (I - Q) (K_XZ alpha - y),      A = K_ZX (I - Q) K_XZ,   M = K_ZZ^-1 A
 *
 *   limit      A^-1 K_ZX (I - Q) y, if and only if eta < 2 / lambda_max(M); and lambda_max(M) <= n t
 *   noise      y = K_XZ alpha* + xi:   mean alpha*,
 *              variance tr(A^-2 K_ZX (I - Q)^2 K_XZ) = tr(A^-1) - tr(A^-2 K_ZX Q (I - Q) K_XZ), times sigma^2
 *   batches    a step on m rows drawn without replacement has mean m/n times the full step, and the variance of m
 *              draws out of n
 *
 * The rounding error of a step is kappa (n + p + V) u of its input, with kappa the condition of K_ZZ
 * (test_identities.c); over the steps of a contraction it sums up to at most 1 / (1 - rate) times that.
 */
#include "support/training.h"

#include "solvers/iteration/iteration.h"

enum { PROBLEMS = 10, D = 3 };

typedef struct bench {
    task data;
    int64_t n, p, c, q;
    mrc_comm *comm;
    mrc_centers centers;
    mrc_kernel_blocks blocks;
    mrc_eigensystem system;
    mrc_projector *projector;
    mrc_iteration iteration;
    double origin[D];
    kernels k;
    dense w, normal, map; /* I - Q, A, K_ZX (I - Q) */
    spectrum mu;          /* of M */
} bench;

static void open_iteration(bench *self)
{
    mrc_projector_options exact = {.nystrom = self->p, .eigenpairs = 1, .passes = 1, .block = 5, .gamma = 0.9};
    mrc_iteration_options options = {.batch = self->n, .period = 1, .gamma = 0.5};
    assert_succeeds(context, mrc_comm_create_virtual(&self->comm, context, 1));
    assert_succeeds(context, mrc_centers_create(&self->centers, context->backend, self->comm, &self->data.kernel,
                                                &self->data.z, self->p, self->origin, MERCER_F64));
    assert_succeeds(context, mrc_eigensystem_create(&self->system, &self->centers, &self->data.x, self->q, 5));
    assert_int_equal(self->system.q, self->q);
    assert_succeeds(context, mrc_kernel_blocks_create(&self->blocks, &self->centers, self->n, self->n * self->p * 8, 0,
                                                      MERCER_F64));
    assert_succeeds(context,
                    mrc_projector_create(&self->projector, mrc_projector_find("exact"), &self->centers, &exact));
    assert_succeeds(context, mrc_iteration_create(&self->iteration, &self->centers, &self->blocks, &self->system,
                                                  self->projector, 1, self->c, &options));
}

static bench *open_bench(const char *kernel, double spread, sizes of, int64_t q)
{
    bench *self = calloc(1, sizeof *self);
    *self = (bench){.n = of.n, .p = of.p, .c = of.c, .q = q};
    self->data = task_open(context, kernel, of, spread, MERCER_F64);
    open_iteration(self);
    self->k = kernels_of(&self->data);
    self->w = weights_of_preconditioner(&self->k, q);
    self->map = dense_times(true, false, self->k.xz, self->w);
    dense star = least_squares(&self->k, self->w, 0, &self->normal);
    self->mu = dense_spectrum(self->normal, self->k.zz);
    free(star.a);
    return self;
}

static void close_bench(bench *self)
{
    mrc_iteration_destroy(&self->iteration);
    mrc_projector_free(self->projector);
    mrc_kernel_blocks_destroy(&self->blocks);
    mrc_eigensystem_destroy(&self->system, context->backend);
    mrc_centers_destroy(&self->centers);
    mercer_comm_free(self->comm);
    free(self->w.a), free(self->normal.a), free(self->map.a);
    kernels_free(&self->k);
    task_close(&self->data);
    free(self);
}

/* Make one step of length eta on these rows (NULL: all), with beta set so that the step rule yields eta. */
static void step(bench *self, double eta, const int64_t *rows, int64_t m)
{
    double x[64 * D], y[64 * 64];
    assert_true(m <= 64 && self->c <= 64);
    for (int64_t i = 0; i < m; i++) {
        memcpy(x + i * D, mrc_row(&self->data.x, rows ? rows[i] : i), D * sizeof(double));
        memcpy(y + i * self->c, mrc_row(&self->data.y, rows ? rows[i] : i), (size_t)self->c * sizeof(double));
    }
    mercer_batch batch = {sizeof batch, mrc_view(x, m, D, MERCER_F64), mrc_view(y, m, self->c, MERCER_F64), NULL, NULL};
    mrc_loss loss;
    self->iteration.beta = 1 / eta - (double)(m - 1) * self->system.tail;
    assert_succeeds(context, mrc_iteration_residual(&self->iteration, &batch, &loss));
    assert_succeeds(context, mrc_iteration_step(&self->iteration, &batch));
    assert_true(fabs(self->iteration.last_step - eta) <= 1e-9 * eta);
}

/* Return the library's weights after `steps` full steps from 0. */
static dense steps_from_zero(bench *self, double eta, int64_t steps)
{
    memset(self->iteration.alpha.data, 0, (size_t)(self->p * self->iteration.alpha.ld) * sizeof(double));
    assert_succeeds(context, mrc_iteration_forget(&self->iteration));
    for (int64_t i = 0; i < steps; i++) step(self, eta, NULL, self->n);
    return dense_of(&self->iteration.alpha);
}

/* Return the number of steps that reduce the initial error to 1e-10; set *error to a bound of the remaining error, with
   rounding. */
static int64_t enough(const bench *self, double eta, dense limit, double *error)
{
    double rate = fmax(fabs(1 - eta * self->mu.top), fabs(1 - eta * self->mu.bottom));
    assert_that(rate < 0.995, "rate %g, eigenvalues %g .. %g", rate, self->mu.bottom, self->mu.top);
    *error = 1e-10 * rkhs_norm(self->k.zz, limit) + one_step_error(&self->data, &self->k, limit) / (1 - rate);
    return (int64_t)ceil(log(1e-10) / log(rate));
}

/* ---- The lemma ----------------------------------------------------------------------------------------------- */

static bench *random_problem(int i)
{
    static const char *const names[] = {"laplace:bandwidth=2", "matern32:bandwidth=1", "laplace:bandwidth=1",
                                        "cauchy:bandwidth=0.7", "ntk:depth=2"};
    mrc_rng rng = {77, (uint64_t)i};
    sizes of = {24 + (int64_t)(mrc_random_u64(rng, 0) % 20), 3 + (int64_t)(mrc_random_u64(rng, 1) % 4), D, 2};
    return open_bench(names[i % 5], 1, of, 1 + (int64_t)(mrc_random_u64(rng, 2) % 3));
}

/* Below the bound the iterates converge to the closed form; above it they diverge, at the rate of the lemma. */
static void test_bound(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEMS; i++) {
        if (check_leaves_out(i)) continue;
        bench *self = random_problem(i);
        double bound = 2 / self->mu.top, allowed;
        dense limit = least_squares(&self->k, self->w, 0, NULL);
        for (int below = 0; below < 2; below++) {
            double eta = (below ? 0.5 : 0.95) * bound;
            int64_t count = enough(self, eta, limit, &allowed);
            dense alpha = steps_from_zero(self, eta, count);
            double error = rkhs_distance(self->k.zz, alpha, limit);
            assert_that(error <= allowed, "problem %d: %g after %d steps of %g of the bound, allowed %g", i, error,
                        (int)count, eta / bound, allowed);
            free(alpha.a);
        }
        /* the part along the top eigenvector grows by |1 - eta lambda_max| */
        const double above[] = {1.05, 2};
        const int64_t counts[] = {300, 30};
        for (int a = 0; a < 2; a++) {
            dense alpha = steps_from_zero(self, above[a] * bound, counts[a]);
            double growth = rkhs_distance(self->k.zz, alpha, limit) / rkhs_norm(self->k.zz, limit);
            double expected = pow(2 * above[a] - 1, (double)counts[a]);
            assert_that(growth > 1e-3 * expected && growth < 1.001 * expected, "problem %d: %g of %g times the start",
                        i, growth, expected);
            free(alpha.a);
        }
        /* lambda_max(M) <= n t, a bound that does not depend on the centers. */
        double free_bound = (double)self->n * self->system.tail;
        assert_that(self->mu.top <= free_bound * (1 + 1e-9), "lambda_max %g, n t %g", self->mu.top, free_bound);
        free(limit.a);
        close_bench(self);
    }
}

/* 2 / lambda_max(A), as printed, is not a bound: its unit differs. K here is spread^2 times that of spread 1. */
static void test_printed_bound(void **state)
{
    (void)state;
    bench *self = open_bench("ntk:depth=2", 0.05, (sizes){30, 5, D, 1}, 2);
    dense limit = least_squares(&self->k, self->w, 0, NULL);
    double printed = 2 / dense_spectrum(self->normal, (dense){0}).top, bound = 2 / self->mu.top;
    assert_that(printed > 2 * bound, "printed %g, true %g", printed, bound);
    dense alpha = steps_from_zero(self, 0.9 * printed, 30);
    assert_true(rkhs_norm(self->k.zz, alpha) > 1e3 * rkhs_norm(self->k.zz, limit));
    free(alpha.a), free(limit.a);
    close_bench(self);
}

static double trace_of_product(dense a, dense b)
{
    double sum = 0;
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.cols; j++) sum += AT(a, i, j) * AT(b, j, i);
    return sum;
}

/* Outputs 2 i and 2 i + 1 have the noise +1 and -1 in sample i only, so means over outputs are exact expectations; for
   independent noise of variance 1 the variance is n times the mean over all outputs. */
static void test_noise(void **state)
{
    (void)state;
    enum { N = 20, P = 4 };
    bench *self = open_bench("laplace:bandwidth=1", 1, (sizes){N, P, D, 2 * N}, 2);
    dense star = dense_new(P, 1), clean, inverse, unit = dense_new(P, P);
    for (int64_t i = 0; i < P; i++) star.a[i] = mrc_random_normal((mrc_rng){5, 1}, (uint64_t)i), AT(unit, i, i) = 1;
    clean = dense_times(false, false, self->k.xz, star);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < 2 * N; j++) {
            double value = clean.a[i] + (j / 2 == i ? 1 - 2 * (double)(j % 2) : 0);
            mrc_store(&self->data.y, i, j, value), AT(self->k.y, i, j) = value;
        }
    dense limit = least_squares(&self->k, self->w, 0, NULL);
    double allowed, eta = 1.8 / self->mu.top, variance = 0, off = 0;
    int64_t count = enough(self, eta, limit, &allowed);
    dense alpha = steps_from_zero(self, eta, count);
    allowed /= sqrt(self->k.of_zz.bottom); /* converts a bound in the RKHS norm to the Euclidean norm */
    for (int64_t i = 0; i < P; i++) {
        double mean = 0;
        for (int64_t j = 0; j < 2 * N; j++) mean += AT(alpha, i, j) / (2 * N);
        off = fmax(off, fabs(mean - star.a[i]));
        for (int64_t j = 0; j < 2 * N; j++) variance += pow(AT(alpha, i, j) - star.a[i], 2) / 2;
    }
    assert_that(off <= allowed, "the mean is %g off, allowed %g", off, allowed);
    inverse = dense_solve(self->normal, unit);
    dense square = dense_times(false, false, inverse, inverse), outer = dense_times(false, true, self->map, self->map);
    dense mixed = dense_copy(self->normal); /* K_ZX Q (I - Q) K_XZ = A - K_ZX (I - Q)^2 K_XZ */
    dense_add(mixed, -1, outer);
    double first = trace_of_product(square, outer), trace = trace_of_product(inverse, unit);
    double second = trace - trace_of_product(square, mixed), slack = 4 * allowed * sqrt(first * 2 * N) + 1e-9 * trace;
    assert_that(fabs(variance - first) <= slack && fabs(first - second) <= 1e-9 * trace && slack < 1e-3 * first,
                "variance %.12g, tr(A^-2 ..) %.12g, tr(A^-1) - .. %.12g", variance, first, second);
    assert_true(fabs(N - trace_of_product(square, mixed) - first) > 0.1 * first); /* n in place of tr(A^-1) is wrong */
    free(star.a), free(clean.a), free(limit.a), free(alpha.a), free(inverse.a), free(unit.a), free(square.a);
    free(outer.a), free(mixed.a);
    close_bench(self);
}

/* Mean and variance of a step over all 84 batches of 3 rows out of 9, each starting from the same weights. */
static void test_batches(void **state)
{
    (void)state;
    enum { N = 9, P = 3, M = 3, COUNT = 84 };
    bench *self = open_bench("laplace:bandwidth=1", 1, (sizes){N, P, D, 1}, 2);
    dense start = dense_new(P, 1), g, theta;
    double eta = 0.3, change[COUNT][P], mean[P] = {0}, variance = 0, each = 0, whole = 0, slack;
    for (int64_t i = 0; i < P; i++) start.a[i] = mrc_random_normal((mrc_rng){5, 2}, (uint64_t)i);
    int count = 0;
    for (int64_t a = 0; a < N; a++)
        for (int64_t b = a + 1; b < N; b++)
            for (int64_t c = b + 1; c < N; c++) {
                int64_t rows[M] = {a, b, c};
                for (int64_t i = 0; i < P; i++) mrc_store(&self->iteration.alpha, i, 0, start.a[i]);
                assert_succeeds(context, mrc_iteration_forget(&self->iteration));
                step(self, eta, rows, M);
                for (int64_t i = 0; i < P; i++) change[count][i] = mrc_load(&self->iteration.alpha, i, 0) - start.a[i];
                for (int64_t i = 0; i < P; i++) mean[i] += change[count][i] / COUNT;
                count++;
            }
    assert_int_equal(count, COUNT);
    for (int b = 0; b < COUNT; b++)
        for (int64_t i = 0; i < P; i++) variance += pow(change[b][i] - mean[i], 2) / COUNT;
    g = dense_times(false, false, self->k.xz, start);
    dense_add(g, -1, self->k.y);
    dense parts = dense_copy(self->map); /* column i: contribution of sample i to the step */
    for (int64_t i = 0; i < P; i++)
        for (int64_t j = 0; j < N; j++) AT(parts, i, j) *= g.a[j];
    theta = dense_solve(self->k.zz, parts);
    slack = self->k.condition * (N + P + V) * U * dense_norm(theta) * sqrt(N);
    for (int64_t i = 0; i < P; i++) {
        double full = 0;
        for (int64_t j = 0; j < N; j++) full += AT(theta, i, j), each += pow(AT(theta, i, j), 2) / N;
        whole += pow(full / N, 2);
        assert_that(fabs(mean[i] + eta * M / N * full) <= slack && fabs(full) > 1e-3, "mean %g, m/n of the step %g",
                    mean[i], -eta * M / N * full);
    }
    double expected = eta * eta * M * (N - M) / (N - 1) * (each - whole);
    assert_that(fabs(variance - expected) <= slack && expected > 1e-3, "variance %g, expected %g", variance, expected);
    free(start.a), free(g.a), free(parts.a), free(theta.a);
    close_bench(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound), cmocka_unit_test(test_printed_bound),
                                       cmocka_unit_test(test_noise), cmocka_unit_test(test_batches)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}

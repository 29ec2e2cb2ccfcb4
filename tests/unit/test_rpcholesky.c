/* SPDX-License-Identifier: BSD-3-Clause */
/* Randomly pivoted Cholesky: the remaining fraction of the trace, compared with other choices, and the distribution
   of its pivots. */
#include "support/centers.h"

#include "support/dense.h"

static mercer_kernel kernel_of(const char *spec)
{
    mercer_kernel kernel;
    assert_succeeds(NULL, mercer_kernel_parse(&kernel, NULL, spec));
    return kernel;
}

static mercer_center_options pivot_options(const mercer_kernel *kernel, uint64_t seed)
{
    mercer_center_options options = center_options("rpcholesky", seed);
    options.kernel = kernel;
    return options;
}

/* Eliminates row `pivot` of the residual matrix (Schur complement). */
static void eliminate(dense residual, int64_t pivot)
{
    double value = AT(residual, pivot, pivot);
    if (!(value > 0)) return;
    dense column = dense_new(residual.rows, 1);
    for (int64_t i = 0; i < residual.rows; i++) AT(column, i, 0) = AT(residual, i, pivot);
    for (int64_t i = 0; i < residual.rows; i++)
        for (int64_t j = 0; j < residual.rows; j++) AT(residual, i, j) -= AT(column, i, 0) * AT(column, j, 0) / value;
    for (int64_t i = 0; i < residual.rows; i++) AT(residual, i, pivot) = AT(residual, pivot, i) = 0;
    free(column.a);
}

static double trace_of(dense a)
{
    double sum = 0;
    for (int64_t i = 0; i < a.rows; i++) sum += AT(a, i, i);
    return sum;
}

/* Returns the fraction of the trace of K(X,X) that remains with centers Z, rows of X: dense, in double. */
static double trace_left(const mercer_kernel *kernel, const mercer_matrix *X, const mercer_matrix *Z)
{
    dense residual = dense_kernel(kernel, X, X);
    double all = trace_of(residual);
    for (int64_t j = 0; j < Z->rows; j++) eliminate(residual, find_row(X, Z, j));
    double left = trace_of(residual);
    free(residual.a);
    return left / all;
}

/* Returns the same fraction for the method that always picks the largest remaining diagonal. */
static double greedy_left(const mercer_kernel *kernel, const mercer_matrix *X, int64_t p)
{
    dense residual = dense_kernel(kernel, X, X);
    double all = trace_of(residual);
    for (int64_t k = 0; k < p; k++) {
        int64_t best = 0;
        for (int64_t i = 1; i < X->rows; i++) best = AT(residual, i, i) > AT(residual, best, best) ? i : best;
        eliminate(residual, best);
    }
    double left = trace_of(residual);
    free(residual.a);
    return left / all;
}

/* A large cloud and a few distant rows that random choices miss. */
static mercer_matrix cloud(int64_t n, mercer_dtype dtype)
{
    mercer_matrix X = data_matrix(n, 4, 5, dtype);
    data_fill_normal(&X, (mrc_rng){12, 1}, 100, 0.5);
    for (int64_t i = 0; i < n; i += 12) data_store(&X, i, i / 12 % 4, 100 + 8 * (1 + (double)(i / 48 % 5)));
    return X;
}

static void test_trace_error(void **state)
{
    (void)state;
    enum { N = 240 };
    static const char *const specs[] = {"gaussian:bandwidth=3", "laplace:bandwidth=4",
                                        "polynomial:degree=2,scale=0.0001", "ntk:depth=2,bias=1",
                                        "matern52:bandwidth=5"};
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    mercer_context *context = open_threads(2);
    for (int s = 0; s < 5; s++) {
        mercer_kernel kernel = kernel_of(specs[s]);
        for (int t = 0; t < 4; t++) {
            mercer_matrix X = cloud(N, types[t]);
            for (int64_t p = 1; p <= 25; p += 12) {
                mercer_matrix Z = data_matrix(p, 4, 0, types[t]);
                mercer_center_options options = pivot_options(&kernel, (uint64_t)p);
                mercer_center_report report = choose(context, &Z, &X, &options);
                double left = trace_left(&kernel, &X, &Z), slack = types[t] == MERCER_F64 ? 1e-10 : 2e-4;
                assert_that(fabs(report.error - left) <= slack, "%s, %s, p = %d: %g, really %g", specs[s],
                            mrc_dtype_name(types[t]), (int)p, report.error, left);
                free(Z.data);
            }
            free(X.data);
        }
    }
    mercer_context_free(context);
}

static void test_against_others(void **state)
{
    (void)state;
    enum { N = 300, P = 30, RUNS = 8 };
    mercer_context *context = open_threads(1);
    mercer_kernel kernel = kernel_of("gaussian:bandwidth=3");
    mercer_matrix X = cloud(N, MERCER_F64), Z = data_matrix(P, 4, 0, MERCER_F64);
    double pivoted = 0, uniform = 0, greedy = greedy_left(&kernel, &X, P);
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        mercer_center_options options = pivot_options(&kernel, seed);
        pivoted += choose(context, &Z, &X, &options).error / RUNS;
        assert_different_rows(&X, &Z);
        options.method = "random";
        choose(context, &Z, &X, &options);
        uniform += trace_left(&kernel, &X, &Z) / RUNS;
    }
    assert_that(pivoted < 0.5 * uniform, "%g by pivots, %g by chance", pivoted, uniform);
    assert_that(pivoted < 2 * greedy, "%g by pivots, %g greedily", pivoted, greedy);
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

/* A matrix of rank 3, and one that is 0: pivots while there are any, then random rows, all different. */
static void test_low_rank(void **state)
{
    (void)state;
    enum { N = 60, P = 12 };
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32};
    mercer_context *context = open_threads(2);
    mercer_kernel kernel = kernel_of("linear");
    for (int t = 0; t < 2; t++) {
        mercer_matrix X = data_matrix(N, 3, 0, types[t]), Z = data_matrix(P, 3, 0, types[t]);
        data_fill_normal(&X, (mrc_rng){13, 1}, 0, 1);
        mercer_center_options options = pivot_options(&kernel, 1);
        mercer_center_report report = choose(context, &Z, &X, &options);
        assert_that(report.error < 1e-5, "error %g", report.error);
        assert_different_rows(&X, &Z);
        mercer_matrix all = data_matrix(N, 3, 0, types[t]);
        choose(context, &all, &X, &options);
        assert_different_rows(&X, &all);
        memset(X.data, 0, (size_t)(N * 3 * mrc_dtype_size(types[t])));
        report = choose(context, &Z, &X, &options);
        assert_true(report.error == 0);
        free(X.data), free(Z.data), free(all.data);
    }
    mercer_context_free(context);
}

static void test_threads(void **state)
{
    (void)state;
    enum { N = 900, P = 200 };
    mercer_kernel kernel = kernel_of("laplace:bandwidth=3");
    mercer_matrix X = cloud(N, MERCER_F32), first = data_matrix(P, 4, 0, MERCER_F32),
                  other = data_matrix(P, 4, 0, MERCER_F32);
    mercer_center_options options = pivot_options(&kernel, 4);
    for (int threads = 1; threads <= 4; threads *= 2) {
        mercer_context *context = open_threads(threads);
        mercer_center_report report = choose(context, threads == 1 ? &first : &other, &X, &options);
        if (threads > 1) assert_memory_equal(first.data, other.data, P * 4 * sizeof(float));
        assert_true(report.error > 0 && report.error < 1);
        mercer_context_free(context);
    }
    mercer_context *context = open_threads(1);
    options.seed = 5;
    choose(context, &other, &X, &options);
    assert_true(memcmp(first.data, other.data, P * 4 * sizeof(float)) != 0);
    mercer_context_free(context);
    free(X.data), free(first.data), free(other.data);
}

static int stop_midway(void *user, const mercer_progress *progress)
{
    assert_true(progress->done >= *(int64_t *)user && progress->done < progress->total);
    assert_true(progress->error >= 0 && progress->error <= 1);
    *(int64_t *)user = progress->done;
    return progress->done > 20;
}

/* If F does not fit in memory, a random subset of the rows is used; then the cases that are refused. */
static void test_memory_and_stop(void **state)
{
    (void)state;
    enum { N = 5000, P = 40 };
    mercer_context *context = open_threads(1);
    mercer_kernel kernel = kernel_of("gaussian:bandwidth=3");
    mercer_matrix X = data_matrix(N, 4, 0, MERCER_F32), Z = data_matrix(P, 4, 0, MERCER_F32);
    data_fill_normal(&X, (mrc_rng){14, 1}, 0, 1);
    mercer_center_options options = pivot_options(&kernel, 1);
    choose(context, &Z, &X, &options);
    options.memory = 1200000; /* small matrices take 740,000 of it; all rows would take a million more */
    context->bytes_high = context->bytes_now;
    int64_t before = context->bytes_now;
    mercer_center_report report = choose(context, &Z, &X, &options);
    assert_that(context->bytes_high - before <= options.memory + 8 * P + 4096, "%lld bytes",
                (long long)(context->bytes_high - before));
    assert_different_rows(&X, &Z);
    assert_true(report.error < 0.5);
    options.memory = 700000;
    assert_fails(context, mercer_choose_centers(context, &Z, &X, &options, NULL), MERCER_ERROR_MEMORY, "fewer centers");
    options.memory = 0;
    int64_t last = 0;
    options.progress = stop_midway, options.progress_user = &last;
    memset(Z.data, 0x3c, P * 4 * sizeof(float));
    assert_fails(context, mercer_choose_centers(context, &Z, &X, &options, NULL), MERCER_ERROR_CALLBACK, "stopped");
    for (size_t i = 0; i < P * 4 * sizeof(float); i++) assert_int_equal(((char *)Z.data)[i], 0x3c);
    options.progress = NULL;
    kernel = kernel_of("polynomial:degree=9,scale=1e6");
    assert_fails(context, mercer_choose_centers(context, &Z, &X, &options, NULL), MERCER_ERROR_DATA,
                 "row 0 *1e+30; scale");
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

/* ---- The distribution ------------------------------------------------------------------------------------------ */

enum { FEW = 6, PIVOTS = 5 };

/* Returns the probability that row `out` is not picked, given the residual after some pivots. */
static double left_out(dense residual, const bool *pivots, int have, int out)
{
    if (have == PIVOTS) return pivots[out] ? 0 : 1;
    double sum = trace_of(residual), probability = 0;
    for (int i = 0; i < FEW; i++) {
        if (pivots[i]) continue;
        bool more[FEW];
        memcpy(more, pivots, sizeof more);
        more[i] = true;
        dense next = dense_copy(residual);
        eliminate(next, i);
        probability += AT(residual, i, i) / sum * left_out(next, more, have + 1, out);
        free(next.a);
    }
    return probability;
}

/* Candidates drawn together and partly rejected: the same distribution as with one at a time. */
static void test_law(void **state)
{
    (void)state;
    enum { RUNS = 6000 };
    mercer_context *context = open_threads(1);
    mercer_kernel kernel = kernel_of("gaussian:bandwidth=1");
    mercer_matrix X = data_matrix(FEW, 1, 0, MERCER_F64), Z = data_matrix(PIVOTS, 1, 0, MERCER_F64);
    const double places[FEW] = {0, 0.8, 1.6, 3, 5, 5.4};
    memcpy(X.data, places, sizeof places);
    int counts[FEW] = {0};
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        mercer_center_options options = pivot_options(&kernel, seed);
        choose(context, &Z, &X, &options);
        for (int64_t i = 0; i < FEW; i++) counts[i] += find_row(&Z, &X, i) < 0;
    }
    dense K = dense_kernel(&kernel, &X, &X);
    for (int i = 0; i < FEW; i++) {
        bool none[FEW] = {false};
        double wanted = left_out(K, none, 0, i), deviation = sqrt(wanted * (1 - wanted) / RUNS);
        assert_that(fabs((double)counts[i] / RUNS - wanted) <= 4 * deviation, "row %d left out %g of the times, not %g",
                    i, (double)counts[i] / RUNS, wanted);
    }
    free(K.a), free(X.data), free(Z.data);
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_error), cmocka_unit_test(test_against_others),  cmocka_unit_test(test_low_rank),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_memory_and_stop), cmocka_unit_test(test_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

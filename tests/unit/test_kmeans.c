/* SPDX-License-Identifier: BSD-3-Clause */
/* k-means: the clusters it finds, invariants that must hold, and the distribution of its seeds. */
#include "support/centers.h"

#include "centers/kmeans.h"
#include "support/levels.h"

static const mercer_dtype all_dtypes[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};

static void test_known_clusters(void **state)
{
    (void)state;
    enum { N = 1500, D = 6, K = 25 };
    mercer_context *context = open_threads(2);
    for (int t = 0; t < 4; t++) {
        mercer_matrix X = cluster_rows(N, D, K, all_dtypes[t], 1.5), Z = data_matrix(K, D, D + 3, all_dtypes[t]);
        for (int64_t batch = -1; batch <= 200; batch += 201) {
            mercer_center_options options = center_options("kmeans", 3);
            options.batch = batch;
            mercer_center_report report = choose(context, &Z, &X, &options);
            assert_that(report.error < 1.3 * D * 1.5 * 1.5, "%s, batch %d: error %g", mrc_dtype_name(all_dtypes[t]),
                        (int)batch, report.error);
            if (batch < 0)
                assert_that(fabs(report.error - plain_error(&X, &Z)) < 0.05 * report.error + 1e-12,
                            "error %g, really %g", report.error, plain_error(&X, &Z));
            int owner[K] = {0};
            for (int64_t j = 0; j < K; j++) { /* each center is nearest to the rows of exactly one cluster */
                int64_t best = 0;
                for (int64_t i = 1; i < K; i++)
                    best = sqdist_rows(&X, i, &Z, j) < sqdist_rows(&X, best, &Z, j) ? i : best;
                owner[best]++;
            }
            for (int j = 0; j < K; j++) assert_that(owner[j] == 1, "cluster %d has %d centers", j, owner[j]);
        }
        free(X.data), free(Z.data);
    }
    mercer_context_free(context);
}

/* ---- Lloyd ----------------------------------------------------------------------------------------------------- */

typedef struct watch {
    double errors[128];
    int64_t calls, last, total, stop_at; /* stop_at: the value of `done` to stop at; -1: never */
} watch;

static int record(void *user, const mercer_progress *progress)
{
    watch *self = user;
    assert_string_equal(progress->stage, "centers");
    assert_true(progress->done >= self->last && progress->done <= progress->total);
    if (self->calls < 128) self->errors[self->calls] = progress->error;
    self->calls++;
    self->last = progress->done, self->total = progress->total;
    return progress->done == self->stop_at;
}

static void test_error_never_rises(void **state)
{
    (void)state;
    enum { N = 700, D = 4, P = 60 };
    mercer_context *context = open_threads(2);
    mercer_matrix X = data_matrix(N, D, 0, MERCER_F64), Z = data_matrix(P, D, 0, MERCER_F64);
    for (uint64_t seed = 0; seed < 10; seed++) {
        data_fill_normal(&X, (mrc_rng){5, seed}, 1000, 1);
        watch seen = {.stop_at = -1};
        mercer_center_options options = center_options("kmeans", seed);
        options.iterations = 40, options.batch = -1, options.progress = record, options.progress_user = &seen;
        mercer_center_report report = choose(context, &Z, &X, &options);
        for (int64_t i = 1; i < seen.calls && i < 128; i++)
            assert_that(seen.errors[i] <= seen.errors[i - 1] * (1 + 1e-12), "call %d: %.17g after %.17g", (int)i,
                        seen.errors[i], seen.errors[i - 1]);
        assert_that(report.iterations >= 2 && report.iterations <= 40, "%lld rounds", (long long)report.iterations);
        assert_int_equal(seen.last, report.iterations + 1);
        assert_int_equal(seen.total, 41);
        assert_that(fabs(report.error - plain_error(&X, &Z)) <= 1e-9 * report.error, "error %g", report.error);
    }
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

/* At convergence every center is the mean of its rows. */
static void test_fixed_point(void **state)
{
    (void)state;
    enum { N = 300, D = 3, P = 12 };
    mercer_context *context = open_threads(1);
    mercer_matrix X = cluster_rows(N, D, P, MERCER_F64, 0.5), Z = data_matrix(P, D, 0, MERCER_F64);
    mercer_center_options options = center_options("kmeans", 1);
    options.iterations = 1000, options.batch = -1;
    choose(context, &Z, &X, &options);
    int32_t nearest[N];
    assert_succeeds(context, mercer_nearest_rows(context, nearest, NULL, NULL, &X, &Z));
    for (int64_t j = 0; j < P; j++)
        for (int64_t k = 0; k < D; k++) {
            double sum = 0, count = 0;
            for (int64_t i = 0; i < N; i++)
                if (nearest[i] == j) sum += mrc_load(&X, i, k), count++;
            assert_that(fabs(sum / count - mrc_load(&Z, j, k)) < 1e-10, "center %d, feature %d", (int)j, (int)k);
        }
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

/* ---- Edge cases ------------------------------------------------------------------------------------------------ */

static void test_duplicates(void **state)
{
    (void)state;
    enum { N = 120, D = 5, DIFFERENT = 7, P = 20 };
    mercer_context *context = open_threads(2);
    for (int t = 0; t < 4; t++) {
        mercer_matrix X = data_matrix(N, D, 0, all_dtypes[t]), Z = data_matrix(P, D, 0, all_dtypes[t]);
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < D; j++) data_store(&X, i, j, (double)((i % DIFFERENT) * (j + 1)));
        for (int64_t batch = -1; batch <= 40; batch += 41) {
            mercer_center_options options = center_options("kmeans", 2);
            options.batch = batch;
            mercer_center_report report = choose(context, &Z, &X, &options);
            assert_that(report.error == 0, "%s, batch %d: error %g", mrc_dtype_name(all_dtypes[t]), (int)batch,
                        report.error);
            for (int64_t j = 0; j < P; j++) assert_true(find_row(&X, &Z, j) >= 0);
            for (int64_t i = 0; i < DIFFERENT; i++) assert_true(find_row(&Z, &X, i) >= 0);
        }
        free(X.data), free(Z.data);
    }
    mercer_context_free(context);
}

static void test_as_many_as_rows(void **state)
{
    (void)state;
    enum { N = 90, D = 4 };
    mercer_context *context = open_threads(2);
    for (int t = 0; t < 4; t++) {
        mercer_matrix X = cluster_rows(N, D, N, all_dtypes[t], 0), Z = data_matrix(N, D, 0, all_dtypes[t]);
        mercer_center_options options = center_options("kmeans", 2);
        mercer_center_report report = choose(context, &Z, &X, &options);
        assert_true(report.error == 0);
        assert_different_rows(&X, &Z);
        mercer_matrix one = mrc_rows(&Z, 0, 1); /* a single center is the mean of all rows */
        choose(context, &one, &X, &options);
        for (int64_t j = 0; j < D; j++) {
            double sum = 0, unit = all_dtypes[t] == MERCER_U8 ? 0.51 : all_dtypes[t] == MERCER_F16 ? 0.07 : 1e-4;
            for (int64_t i = 0; i < N; i++) sum += mrc_load(&X, i, j);
            assert_that(fabs(sum / N - mrc_load(&one, 0, j)) < unit, "feature %d", (int)j);
        }
        free(X.data), free(Z.data);
    }
    mercer_context_free(context);
}

/* Five rows, all assigned to the second of four centers: the empty clusters get the farthest rows, and the means
   follow. */
static void test_empty_clusters(void **state)
{
    (void)state;
    enum { N = 5, P = 4 };
    mercer_context *context = open_threads(2);
    double rows[N] = {1, 9, 3, 20, 9}, centers[P] = {50, 2, 60, 70}, distances[N], weights[P] = {3, 8, 0.5, 0};
    double scratch[2 * 3], sums[N];
    int32_t nearest[N] = {1, 1, 1, 1, 1}, fresh[N];
    int64_t order[N], starts[P + 1], seeds[P];
    for (int i = 0; i < N; i++) distances[i] = (rows[i] - 2) * (rows[i] - 2);
    mrc_center_selection selection = {0};
    mrc_kmeans_state self = {.selection = &selection,
                             .context = context,
                             .n = N,
                             .d = 1,
                             .p = P,
                             .x = mrc_view(rows, N, 1, MERCER_F64),
                             .z = mrc_view(centers, P, 1, MERCER_F64),
                             .nearest = nearest,
                             .fresh_nearest = fresh,
                             .distances = distances,
                             .order = order,
                             .sums = sums,
                             .weights = weights,
                             .starts = starts,
                             .seeds = seeds,
                             .scratch = scratch};
    mrc_kmeans_update(&self, 0);
    assert_int_equal(selection.report.reseeded, 3);
    /* The farthest row first, then the first of two equally far rows before the second; values 1 and 3 remain. */
    const double wanted[P] = {20, 2, 9, 9};
    for (int j = 0; j < P; j++) assert_that(centers[j] == wanted[j], "center %d is %g", j, centers[j]);
    for (int i = 0; i < N; i++) assert_true((distances[i] == 0) == (rows[i] > 5));

    double old[P] = {3, 8, 0.5, 0.5}; /* earlier weights: only nearly forgotten centers count as empty */
    memcpy(weights, old, sizeof old);
    for (int i = 0; i < N; i++) nearest[i] = 1, distances[i] = (rows[i] - 2) * (rows[i] - 2);
    centers[0] = 50, centers[1] = 2, centers[2] = 60, centers[3] = 70;
    mrc_kmeans_update(&self, 0.02);
    assert_int_equal(selection.report.reseeded, 3 + 2);
    assert_true(centers[0] == 50 && centers[2] == 20 && centers[3] == 9);
    assert_that(fabs(centers[1] - (0.16 * 2 + 1 + 3 + 9) / 3.16) < 1e-14, "center 1 is %g", centers[1]);

    /* If all rows coincide with centers, empty centers are not moved. */
    for (int i = 0; i < N; i++) nearest[i] = 1, rows[i] = 2, distances[i] = 0;
    mrc_kmeans_update(&self, 0);
    assert_int_equal(selection.report.reseeded, 5);
    assert_true(centers[0] == 50 && centers[1] == 2 && centers[2] == 20 && centers[3] == 9);
    mercer_context_free(context);
}

/* Mini-batches forget centers that get no rows, and reseed them. */
static void test_forgotten_centers(void **state)
{
    (void)state;
    enum { N = 2000, D = 3, P = 50 };
    mercer_context *context = open_threads(1);
    mercer_matrix X = data_matrix(N, D, 0, MERCER_F64), Z = data_matrix(P, D, 0, MERCER_F64);
    int64_t reseeded = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < D; j++) /* heavy tails: some seeds are far from all other rows */
                data_store(&X, i, j, pow(mrc_random_normal((mrc_rng){6, seed}, (uint64_t)(i * D + j)), 3));
        mercer_center_options options = center_options("kmeans", seed);
        options.iterations = 100, options.batch = 100;
        mercer_center_report report = choose(context, &Z, &X, &options);
        reseeded += report.reseeded;
        options.batch = -1;
        double lloyd = choose(context, &Z, &X, &options).error;
        assert_that(report.error < 3 * lloyd, "error %g, by Lloyd %g", report.error, lloyd);
    }
    assert_true(reseeded > 0);
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

/* Bytes: rounded centers are used for comparisons where that is harmless, and not where it would spoil the result. */
static void test_bytes(void **state)
{
    (void)state;
    enum { N = 600, D = 16, P = 10 };
    mercer_context *context = open_threads(2);
    mercer_matrix Z = data_matrix(P, D, 0, MERCER_U8), F = data_matrix(P, D, 0, MERCER_F32);
    for (int binary = 0; binary < 2; binary++) {
        mercer_matrix X = cluster_rows(N, D, P, MERCER_U8, 40);
        for (int64_t i = 0; i < N && binary; i++)
            for (int64_t j = 0; j < D; j++) data_store(&X, i, j, mrc_load(&X, i, j) > 120);
        mercer_center_options options = center_options("kmeans", 4);
        choose(context, &Z, &X, &options);
        mercer_center_report report = choose(context, &F, &X, &options);
        int64_t whole = 0;
        for (int64_t j = 0; j < P; j++)
            for (int64_t k = 0; k < D; k++) {
                double value = mrc_load(&F, j, k);
                assert_true(mrc_load(&Z, j, k) == (double)lrint(value)); /* the same centers, rounded only at the end */
                whole += value == (double)lrint(value);
            }
        assert_that(whole < P * D / 2, "%lld of %d values are whole numbers", (long long)whole, P * D);
        assert_that(fabs(report.error - plain_error(&X, &F)) < 2e-3 * report.error, "binary %d: error %g, really %g",
                    binary, report.error, plain_error(&X, &F));
        free(X.data);
    }
    free(Z.data), free(F.data);
    mercer_context_free(context);
}

/* Every backend finds the same centers: distances of bytes to seeds are exact, no row is equally far from two
   centers up to the rounding of float, and the means are computed on the host. The rows of a mini-batch change in
   every round. */
static void test_backends(void **state)
{
    (void)state;
    enum { N = 900, D = 12, K = 20 };
    mercer_matrix X = cluster_rows(N, D, K, MERCER_U8, 4), first = data_matrix(K, D, 0, MERCER_F32),
                  other = data_matrix(K, D, 0, MERCER_F32);
    for (int b = 0; mrc_backend_registry[b]; b++) {
        mercer_context *context = NULL;
        mercer_context_options made = MERCER_INIT(mercer_context_options);
        made.threads = 2, made.backend = mrc_backend_registry[b]->name;
        mercer_status status = mercer_context_create(&context, &made);
        if (is_left_out(mrc_backend_registry[b], status)) continue;
        assert_succeeds(NULL, status);
        mercer_context *cpu = open_threads(2);
        for (int64_t batch = -1; batch <= 300; batch += 301) {
            mercer_center_options options = center_options("kmeans", 5);
            options.batch = batch;
            mercer_center_report wanted = choose(cpu, &first, &X, &options);
            mercer_center_report found = choose(context, &other, &X, &options);
            assert_int_equal(found.iterations, wanted.iterations);
            assert_memory_equal(first.data, other.data, K * D * sizeof(float));
        }
        mercer_context_free(cpu);
        mercer_context_free(context);
    }
    free(X.data), free(first.data), free(other.data);
}

/* ---- Options --------------------------------------------------------------------------------------------------- */

static void test_threads(void **state)
{
    (void)state;
    enum { N = 1300, D = 9, P = 130 };
    for (int t = 0; t < 4; t++) {
        mercer_matrix X = cluster_rows(N, D, 40, all_dtypes[t], 12), first = data_matrix(P, D, 0, MERCER_F32),
                      other = data_matrix(P, D, 0, MERCER_F32);
        for (int64_t batch = -1; batch <= 300; batch += 301) {
            mercer_center_options options = center_options("kmeans", 9);
            options.batch = batch, options.iterations = 6;
            for (int threads = 1; threads <= 4; threads *= 2) {
                mercer_context *context = open_threads(threads);
                choose(context, threads == 1 ? &first : &other, &X, &options);
                if (threads > 1) assert_memory_equal(first.data, other.data, P * D * sizeof(float));
                mercer_context_free(context);
            }
            mercer_context *context = open_threads(2);
            options.seed = 10;
            choose(context, &other, &X, &options);
            assert_true(memcmp(first.data, other.data, P * D * sizeof(float)) != 0);
            mercer_context_free(context);
        }
        free(X.data), free(first.data), free(other.data);
    }
}

static void test_stopping(void **state)
{
    (void)state;
    enum { N = 400, D = 3, P = 50 };
    mercer_context *context = open_threads(1);
    mercer_matrix X = cluster_rows(N, D, 20, MERCER_F32, 10), Z = data_matrix(P, D, 0, MERCER_F32);
    for (int64_t stop = 0; stop <= 3; stop++) {
        watch seen = {.stop_at = stop};
        mercer_center_options options = center_options("kmeans", 5);
        options.iterations = 9, options.progress = record, options.progress_user = &seen;
        mercer_center_report report = choose(context, &Z, &X, &options);
        assert_int_equal(seen.last, stop);
        assert_int_equal(report.iterations, stop > 1 ? stop - 1 : 0);
        if (stop <= 1) assert_different_rows(&X, &Z); /* seeding, or random rows as initial centers */
    }
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

static void test_memory(void **state)
{
    (void)state;
    enum { N = 40000, D = 20, P = 30 };
    mercer_context *context = open_threads(1);
    mercer_matrix X = cluster_rows(N, D, P, MERCER_F32, 5), Z = data_matrix(P, D, 0, MERCER_F32);
    mercer_center_options options = center_options("kmeans", 5);
    mercer_center_report all = choose(context, &Z, &X, &options);
    options.memory = 900000; /* less than 32 bytes per row, but enough for a few rows */
    context->bytes_high = context->bytes_now;
    int64_t before = context->bytes_now;
    mercer_center_report part = choose(context, &Z, &X, &options);
    assert_that(context->bytes_high - before <= options.memory + 2000, "%lld bytes",
                (long long)(context->bytes_high - before));
    assert_that(part.error < 1.3 * all.error, "error %g, with all rows %g", part.error, all.error);
    options.batch = -1;
    assert_fails(context, mercer_choose_centers(context, &Z, &X, &options, NULL), MERCER_ERROR_MEMORY, "900000");
    options.batch = 0, options.memory = 1000;
    assert_fails(context, mercer_choose_centers(context, &Z, &X, &options, NULL), MERCER_ERROR_MEMORY, "fewer centers");
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

/* ---- The distribution of the seeds ----------------------------------------------------------------------------- */

enum { FEW = 6, SEEDS = 5 };

/* Return the probability that k-means++ does not select row `left`, given the rows selected so far. */
static double left_out(const mercer_matrix *X, const bool *seeds, int have, int left)
{
    if (have == SEEDS) return seeds[left] ? 0 : 1;
    double weight[FEW], sum = 0, out = 0;
    for (int i = 0; i < FEW; i++) {
        weight[i] = have ? INFINITY : 1;
        for (int s = 0; s < FEW && have; s++)
            if (seeds[s]) weight[i] = fmin(weight[i], sqdist_rows(X, i, X, s));
        sum += weight[i];
    }
    for (int i = 0; i < FEW; i++) {
        if (!(weight[i] > 0)) continue;
        bool more[FEW];
        memcpy(more, seeds, sizeof more);
        more[i] = true;
        out += weight[i] / sum * left_out(X, more, have + 1, left);
    }
    return out;
}

/* Candidates drawn together with rejection have the same distribution as seeds drawn one at a time. */
static void test_seeding_law(void **state)
{
    (void)state;
    enum { RUNS = 6000 };
    mercer_context *context = open_threads(1);
    mercer_matrix X = data_matrix(FEW, 1, 0, MERCER_F64), Z = data_matrix(SEEDS, 1, 0, MERCER_F64);
    const double places[FEW] = {0, 1, 1.6, 3, 7, 7.5};
    memcpy(X.data, places, sizeof places);
    int counts[FEW] = {0};
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        watch seen = {.stop_at = 1};
        mercer_center_options options = center_options("kmeans", seed);
        options.progress = record, options.progress_user = &seen;
        choose(context, &Z, &X, &options);
        for (int64_t i = 0; i < FEW; i++) counts[i] += find_row(&Z, &X, i) < 0;
    }
    for (int i = 0; i < FEW; i++) {
        bool none[FEW] = {false};
        double wanted = left_out(&X, none, 0, i), deviation = sqrt(wanted * (1 - wanted) / RUNS);
        assert_that(fabs((double)counts[i] / RUNS - wanted) <= 4 * deviation, "row %d left out %g of the times, not %g",
                    i, (double)counts[i] / RUNS, wanted);
    }
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_clusters),    cmocka_unit_test(test_error_never_rises),
        cmocka_unit_test(test_fixed_point),       cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_as_many_as_rows),   cmocka_unit_test(test_empty_clusters),
        cmocka_unit_test(test_forgotten_centers), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_backends),          cmocka_unit_test(test_threads),
        cmocka_unit_test(test_stopping),          cmocka_unit_test(test_memory),
        cmocka_unit_test(test_seeding_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

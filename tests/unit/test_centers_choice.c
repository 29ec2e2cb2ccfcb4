/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing centers: random and balanced rows, rejected input, nearest rows, the median distance. */
#include "support/centers.h"

#include "centers/center_selection.h"
#include "core/memory.h"
#include "kernels/formulas.h"
#include "support/backends.h"

/* ---- Rows ------------------------------------------------------------------------------------------------------ */

static void test_random(void **state)
{
    (void)state;
    enum { N = 150, D = 3, P = 40 };
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    mercer_context *context = open_threads(2);
    for (int x = 0; x < 4; x++)
        for (int z = 0; z < 4; z++) {
            mercer_matrix X = data_matrix(N, D, D + 2, types[x]), Z = data_matrix(P, D, D + 1, types[z]);
            for (int64_t i = 0; i < N; i++) /* integers up to 250, which every dtype represents exactly */
                for (int64_t j = 0; j < D; j++) data_store(&X, i, j, (double)((i * (j + 1) + j) % 251));
            set_sentinels(&Z);
            choose(context, &Z, &X, NULL);
            assert_different_rows(&X, &Z);
            assert_true(sentinels_intact(&Z));
            free(X.data), free(Z.data);
        }
    mercer_context_free(context);
}

/* Every row is chosen with the same probability. */
static void test_random_is_uniform(void **state)
{
    (void)state;
    enum { N = 10, P = 3, RUNS = 5000 };
    int counts[N] = {0};
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        int64_t rows[P];
        mrc_choose_random(seed, N, P, rows);
        for (int i = 0; i < P; i++) counts[rows[i]]++;
    }
    double wanted = (double)P / N, deviation = sqrt(wanted * (1 - wanted) / RUNS);
    for (int i = 0; i < N; i++)
        assert_that(fabs((double)counts[i] / RUNS - wanted) < 4.5 * deviation, "row %d: %d times", i, counts[i]);
}

static void test_balanced(void **state)
{
    (void)state;
    enum { N = 200, CLASSES = 5 };
    static const int sizes[CLASSES] = {3, 100, 0, 37, 60};
    mercer_context *context = open_threads(1);
    mercer_matrix X = data_matrix(N, 2, 0, MERCER_F32);
    int32_t labels[N];
    for (int i = 0, c = 0, used = 0; i < N; i++, used++) {
        while (used == sizes[c]) used = 0, c++;
        data_store(&X, i, 0, i), data_store(&X, i, 1, c);
        labels[i] = c;
    }
    for (int64_t p = 1; p <= N; p++) {
        mercer_matrix Z = data_matrix(p, 2, 0, MERCER_F32);
        mercer_center_options options = center_options("balanced", (uint64_t)p);
        options.labels = labels, options.classes = p % 2 ? CLASSES : 0;
        choose(context, &Z, &X, &options);
        assert_different_rows(&X, &Z);
        int64_t counts[CLASSES] = {0}, most = 0;
        for (int64_t j = 0; j < p; j++) counts[(int)mrc_load(&Z, j, 1)]++;
        for (int c = 0; c < CLASSES; c++) most = counts[c] > most ? counts[c] : most;
        int64_t level = 0, filled = 0; /* number of centers per class before the remainder is distributed */
        for (;; level++) {
            filled = 0;
            for (int c = 0; c < CLASSES; c++) filled += sizes[c] < level + 1 ? sizes[c] : level + 1;
            if (filled > p || level == N) break;
        }
        for (int c = 0; c < CLASSES; c++)
            assert_that(counts[c] >= (sizes[c] < level ? sizes[c] : level), "p = %d: %d of class %d", (int)p,
                        (int)counts[c], c);
        free(Z.data);
    }
    mercer_context_free(context);
    free(X.data);
}

static void test_draws(void **state)
{
    (void)state;
    const double weights[6] = {0, 2, 0, 0, 1, 0};
    double sums[6];
    assert_true(mrc_sum_weights(weights, 6, sums) == 3);
    assert_int_equal(mrc_draw_row(sums, 6, 0), 1);
    assert_int_equal(mrc_draw_row(sums, 6, 0.66), 1);
    assert_int_equal(mrc_draw_row(sums, 6, 0.67), 4);
    assert_int_equal(mrc_draw_row(sums, 6, 1 - 0x1p-53), 4);
    assert_int_equal(mrc_draw_row(sums, 6, 1), 4); /* 1 if rounded up; row 5 has weight 0 */
}

/* ---- Rejected input -------------------------------------------------------------------------------------------- */

typedef struct fixture {
    mercer_context *context;
    mercer_matrix X, Z;
    mercer_center_options options;
} fixture;

static void refuse(fixture *f, mercer_status status, const char *part)
{
    memset(f->Z.data, 0x3c, (size_t)(f->Z.rows * f->Z.ld * mrc_dtype_size(f->Z.dtype)));
    mercer_center_report report = {.struct_size = sizeof report, .iterations = -7};
    assert_fails(f->context, mercer_choose_centers(f->context, &f->Z, &f->X, &f->options, &report), status, part);
    for (int64_t i = 0; i < f->Z.rows * f->Z.ld * mrc_dtype_size(f->Z.dtype); i++)
        assert_int_equal(((char *)f->Z.data)[i], 0x3c);
    assert_int_equal(report.iterations, -7);
}

static void test_refused_options(void **state)
{
    (void)state;
    fixture f = {open_threads(1), data_matrix(20, 3, 0, MERCER_F32), data_matrix(5, 3, 0, MERCER_F32),
                 center_options("k-means", 1)};
    refuse(&f, MERCER_ERROR_ARGUMENT, "'k-means'");
    f.options.method = "random", f.options.iterations = 3;
    refuse(&f, MERCER_ERROR_ARGUMENT, "iterations");
    f.options.method = "rpcholesky", f.options.iterations = 0, f.options.batch = -1;
    refuse(&f, MERCER_ERROR_ARGUMENT, "batch");
    f.options.batch = 0;
    refuse(&f, MERCER_ERROR_ARGUMENT, "kernel");
    mercer_kernel broken = {.id = MRC_KERNEL_LAPLACE, .bandwidth = -1};
    f.options.kernel = &broken;
    refuse(&f, MERCER_ERROR_KERNEL, "bandwidth");
    f.options.method = "balanced";
    refuse(&f, MERCER_ERROR_ARGUMENT, "labels");
    int32_t labels[20] = {0, 1, 2, 3};
    f.options.labels = labels, f.options.classes = 3;
    refuse(&f, MERCER_ERROR_DATA, "0 .. 2");
    labels[3] = -1;
    refuse(&f, MERCER_ERROR_DATA, "element 3 (from 0) is -1");
    f.options = center_options("kmeans", 1);
    f.options.iterations = -1;
    refuse(&f, MERCER_ERROR_ARGUMENT, "iterations is -1");
    f.options.iterations = 0, f.options.batch = -2;
    refuse(&f, MERCER_ERROR_ARGUMENT, "batch is -2");
    f.options.batch = 0, f.options.memory = -3;
    refuse(&f, MERCER_ERROR_ARGUMENT, "memory is -3");
    f.options.memory = 0, f.options.struct_size = 3;
    refuse(&f, MERCER_ERROR_ARGUMENT, "struct_size");
    f.options = center_options(NULL, 1);
    assert_fails(NULL, mercer_choose_centers(NULL, &f.Z, &f.X, NULL, NULL), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(f.context, mercer_choose_centers(f.context, NULL, &f.X, NULL, NULL), MERCER_ERROR_ARGUMENT, "centers");
    assert_fails(f.context, mercer_choose_centers(f.context, &f.Z, NULL, NULL, NULL), MERCER_ERROR_ARGUMENT, "X");
    free(f.X.data), free(f.Z.data);
    mercer_context_free(f.context);
}

static void test_refused_data(void **state)
{
    (void)state;
    static const char *const methods[] = {"random", "kmeans", "rpcholesky", "balanced"};
    mercer_kernel kernel = {.id = MRC_KERNEL_LAPLACE, .bandwidth = 2};
    const int32_t labels[20] = {0};
    fixture f = {.context = open_threads(1)};
    for (int m = 0; m < 4; m++) {
        f.X = data_matrix(20, 3, 0, MERCER_F32), f.Z = data_matrix(21, 3, 0, MERCER_F32);
        data_fill_normal(&f.X, (mrc_rng){1, 1}, 5, 1);
        f.options = center_options(methods[m], 1);
        f.options.kernel = &kernel, f.options.labels = labels;
        refuse(&f, MERCER_ERROR_SHAPE, "21 centers");
        f.Z.rows = 5, f.Z.cols = 2;
        refuse(&f, MERCER_ERROR_SHAPE, "centers has 2 columns");
        f.Z.cols = 3;
        mercer_matrix inside = mrc_rows(&f.X, 2, 5);
        assert_fails(f.context, mercer_choose_centers(f.context, &inside, &f.X, &f.options, NULL), MERCER_ERROR_OVERLAP,
                     "centers overlaps X");
        data_store(&f.X, 4, 1, (double)NAN);
        refuse(&f, MERCER_ERROR_DATA, "X: *row 4, column 1*NaN");
        data_store(&f.X, 4, 1, -3);
        f.Z.dtype = MERCER_U8;
        refuse(&f, MERCER_ERROR_DATA, "0 .. 255");
        f.Z.dtype = MERCER_F32, f.Z.rows = 0; /* zero centers are valid */
        assert_succeeds(f.context, mercer_choose_centers(f.context, &f.Z, &f.X, &f.options, NULL));
        free(f.X.data), free(f.Z.data);
    }
    f.X = data_matrix(20, 3, 0, MERCER_F64), f.Z = data_matrix(5, 3, 0, MERCER_F64);
    f.options = center_options("kmeans", 1);
    data_fill_normal(&f.X, (mrc_rng){1, 1}, 0, 1e160);
    refuse(&f, MERCER_ERROR_DATA, "3 features*f64; scale");
    free(f.X.data), free(f.Z.data);
    mercer_context_free(f.context);
}

/* ---- Nearest rows ---------------------------------------------------------------------------------------------- */

/* Scales at which squares of floats overflow, underflow, or are lost against an offset. */
static void test_nearest_scales(void **state)
{
    (void)state;
    enum { M = 50, P = 300, D = 7 };
    static const double scales[] = {1, 1e-30, 1e25, 1e-6};
    mercer_context *context = open_threads(2);
    mercer_matrix X = data_matrix(M, D, 0, MERCER_F32), Z = data_matrix(P, D, 0, MERCER_F32);
    for (int s = 0; s < 4; s++) {
        data_fill_normal(&X, (mrc_rng){21, 1}, 0, scales[s]);
        data_fill_normal(&Z, (mrc_rng){21, 2}, 0, scales[s]);
        int32_t nearest[M], again[M];
        double distances[M];
        assert_succeeds(context, mercer_nearest_rows(context, nearest, distances, NULL, &X, &Z));
        assert_succeeds(context, mercer_nearest_rows(context, again, NULL, NULL, &X, &Z));
        assert_memory_equal(nearest, again, sizeof nearest);
        for (int64_t i = 0; i < M; i++) {
            double best = INFINITY;
            for (int64_t j = 0; j < P; j++) best = fmin(best, sqdist_rows(&X, i, &Z, j));
            assert_that(fabs(distances[i] - best) <= 1e-5 * best, "scale %g, row %d: %g, not %g", scales[s], (int)i,
                        distances[i], best);
            assert_true(sqdist_rows(&X, i, &Z, nearest[i]) <= best * (1 + 1e-5));
        }
    }
    assert_fails(context, mercer_nearest_rows(context, NULL, NULL, NULL, &X, &Z), MERCER_ERROR_ARGUMENT, "nearest");
    mercer_matrix none = mrc_rows(&Z, 0, 0), narrow = mrc_columns(&Z, 0, 2);
    int32_t nearest[M];
    assert_fails(context, mercer_nearest_rows(context, nearest, NULL, NULL, &X, &none), MERCER_ERROR_SHAPE,
                 "Z has 0 rows");
    assert_fails(context, mercer_nearest_rows(context, nearest, NULL, NULL, &X, &narrow), MERCER_ERROR_SHAPE,
                 "columns");
    data_store(&Z, 7, 2, (double)INFINITY);
    assert_fails(context, mercer_nearest_rows(context, nearest, NULL, NULL, &X, &Z), MERCER_ERROR_DATA,
                 "row 7, column 2");
    free(X.data), free(Z.data);
    mercer_context_free(context);
}

static void split_nearest(mrc_backend *backend)
{
    enum { M = 1100, P = 500, D = 3 };
    mercer_matrix X = data_matrix(M, D, 0, MERCER_U8), Z = data_matrix(P, D, 0, MERCER_U8);
    data_fill_uniform(&X, (mrc_rng){22, 1}, 0, 9); /* few distinct values, hence many equal distances */
    data_fill_uniform(&Z, (mrc_rng){22, 2}, 0, 9);
    int32_t whole[M], part[M];
    double far[M], part_far[M];
    mrc_search search = {.x = &X, .z = &Z};
    assert_succeeds(backend->context, backend->ops->nearest_rows(backend, &search, whole, far));
    for (int64_t i = 0; i < M; i++) {
        int32_t first = 0;
        for (int32_t j = 1; j < P; j++)
            if (sqdist_rows(&X, i, &Z, j) < sqdist_rows(&X, i, &Z, first)) first = j;
        assert_true(whole[i] == first && far[i] == sqdist_rows(&X, i, &Z, first));
    }
    for (int64_t first = 0, rows = 1; first < M; first += rows, rows = mrc_min(2 * rows + 1, M - first)) {
        mercer_matrix some = mrc_rows(&X, first, rows);
        search.x = &some;
        assert_succeeds(backend->context, backend->ops->nearest_rows(backend, &search, part + first, part_far + first));
    }
    assert_memory_equal(whole, part, sizeof whole);
    assert_memory_equal(far, part_far, sizeof far);
    free(X.data), free(Z.data);
}

/* The first of several nearest rows is returned, however X is split into calls. */
static void test_nearest_splits(void **state)
{
    (void)state;
    for_each_backend(split_nearest);
}

/* ---- The median ------------------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void test_median(void **state)
{
    (void)state;
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    mercer_context *context = open_threads(2);
    for (int64_t n = 2; n <= 60; n += 29)
        for (int t = 0; t < 4; t++) {
            mercer_matrix X = data_matrix(n, 5, 0, types[t]);
            data_fill_normal(&X, (mrc_rng){23, 1}, 100, 20);
            for (int64_t i = 4; i < n; i += 5)
                memcpy(mrc_row(&X, i), mrc_row(&X, 1), 5 * (size_t)mrc_dtype_size(types[t]));
            double all[60 * 59 / 2], median = -1;
            size_t count = 0;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < i; j++)
                    if (sqdist_rows(&X, i, &X, j) > 0) all[count++] = sqrt(sqdist_rows(&X, i, &X, j));
            qsort(all, count, sizeof *all, compare);
            double wanted = count % 2 ? all[count / 2] : (all[count / 2 - 1] + all[count / 2]) / 2;
            assert_succeeds(context, mercer_median_distance(context, &median, NULL, &X, 9));
            assert_that(fabs(median - wanted) <= 1e-12 * wanted, "n = %d, %s: %.17g, not %.17g", (int)n,
                        mrc_dtype_name(types[t]), median, wanted);
            free(X.data);
        }
    mercer_matrix X = data_matrix(3000, 2, 0, MERCER_F32); /* more rows than mercer_median_distance samples */
    data_fill_normal(&X, (mrc_rng){23, 2}, 0, 1);
    double one, two;
    assert_succeeds(context, mercer_median_distance(context, &one, NULL, &X, 1));
    assert_succeeds(context, mercer_median_distance(context, &two, NULL, &X, 1));
    assert_true(one == two);
    assert_that(fabs(one - 2 * sqrt(log(2))) < 0.05, "%g", one); /* |x - y|^2 / 4 is exponential: median 4 ln 2 */
    assert_succeeds(context, mercer_median_distance(context, &two, NULL, &X, 2));
    assert_true(one != two);
    mercer_matrix single = mrc_rows(&X, 0, 1);
    assert_fails(context, mercer_median_distance(context, &one, NULL, &single, 1), MERCER_ERROR_SHAPE, "1 rows");
    assert_fails(context, mercer_median_distance(context, NULL, NULL, &X, 1), MERCER_ERROR_ARGUMENT, "out");
    memset(X.data, 0, 3000 * 2 * sizeof(float));
    assert_fails(context, mercer_median_distance(context, &one, NULL, &X, 1), MERCER_ERROR_DATA, "median distance");
    data_store(&X, 2, 1, (double)NAN);
    assert_fails(context, mercer_median_distance(context, &one, NULL, &X, 1), MERCER_ERROR_DATA, "row 2, column 1");
    free(X.data);
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),          cmocka_unit_test(test_random_is_uniform),
        cmocka_unit_test(test_balanced),        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_refused_options), cmocka_unit_test(test_refused_data),
        cmocka_unit_test(test_nearest_scales),  cmocka_unit_test(test_nearest_splits),
        cmocka_unit_test(test_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

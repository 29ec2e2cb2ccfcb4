/* SPDX-License-Identifier: BSD-3-Clause */
/* Centers from datasets: stored, mapped, computed and preprocessed samples; the memory limit. */
#include "support/centers.h"

#include "support/fitted.h"
#include "support/folder.h"

#include "kernels/formulas.h"

enum { N = 1500, D = 12, P = 30, CLASSES = 4 };

static mercer_matrix points; /* the samples as f32, the same as in the files */
static mercer_dataset *stored;
static mercer_context *bed;

static int open_data(void **state)
{
    (void)state;
    folder_open();
    bed = open_threads(2);
    points = cluster_rows(N, D, P, MERCER_F32, 2);
    points.ld = D; /* no padding between rows, as in NPY files */
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < D; j++)
            data_store(&points, i, j,
                       10 * (double)(i % P) + mrc_random_normal((mrc_rng){31, (uint64_t)i}, (uint64_t)j));
    mercer_matrix labels = data_matrix(N, 1, 0, MERCER_U8);
    for (int64_t i = 0; i < N; i++) data_store(&labels, i, 0, i < 30 ? 0 : 1 + (double)(i % (CLASSES - 1)));
    const char *x = in_folder("x.npy"), *y = in_folder("y.npy");
    assert_succeeds(bed, mercer_matrix_write_npy(bed, &points, x));
    assert_succeeds(bed, mercer_matrix_write_npy(bed, &labels, y));
    mercer_dataset_options options;
    options = (mercer_dataset_options)MERCER_INIT(mercer_dataset_options);
    options.x = x, options.y = y, options.task = MERCER_TASK_CLASSIFICATION;
    assert_succeeds(bed, mercer_dataset_open(&stored, bed, &options));
    free(labels.data);
    return 0;
}

static int close_data(void **state)
{
    (void)state;
    mercer_dataset_free(stored);
    mercer_context_free(bed);
    free(points.data);
    folder_close();
    return 0;
}

static mercer_kernel laplace(void)
{
    return (mercer_kernel){.id = MRC_KERNEL_LAPLACE, .bandwidth = 20};
}

/* A mapped file without preprocessing yields the same centers as a matrix. */
static void test_same_as_matrix(void **state)
{
    (void)state;
    static const char *const methods[] = {"random", "kmeans", "rpcholesky", "balanced"};
    mercer_kernel kernel = laplace();
    for (int m = 0; m < 4; m++) {
        mercer_matrix one = data_matrix(P, D, 0, MERCER_F32), two = data_matrix(P, D, 0, MERCER_F32);
        mercer_center_options options = center_options(methods[m], 6);
        options.kernel = &kernel;
        mercer_center_report report = {.struct_size = sizeof report};
        assert_succeeds(bed, mercer_choose_centers_from(stored, &one, NULL, &options, &report));
        assert_true(report.seconds > 0);
        options.labels = mercer_dataset_labels(stored);
        choose(bed, &two, &points, &options);
        assert_memory_equal(one.data, two.data, P * D * sizeof(float));
        free(one.data), free(two.data);
    }
}

static void test_preprocessed(void **state)
{
    (void)state;
    static const char *const methods[] = {"random", "kmeans", "rpcholesky", "balanced"};
    mercer_kernel kernel = laplace();
    mercer_preprocess *scale = NULL;
    assert_succeeds(bed, mercer_preprocess_fit(&scale, bed, "scale:factor=0.5", stored));
    for (int m = 0; m < 4; m++) {
        mercer_matrix one = data_matrix(P, D, 0, MERCER_F32), two = data_matrix(P, D, 0, MERCER_F32);
        mercer_center_options options = center_options(methods[m], 6);
        options.kernel = &kernel;
        assert_succeeds(bed, mercer_choose_centers_from(stored, &two, NULL, &options, NULL));
        kernel.bandwidth = 10; /* the kernel matrix is that of the scaled samples, so the random draws are the same */
        assert_succeeds(bed, mercer_choose_centers_from(stored, &one, scale, &options, NULL));
        kernel.bandwidth = 20;
        for (int64_t j = 0; j < P; j++)
            for (int64_t k = 0; k < D; k++)
                assert_that(fabs(2 * mrc_load(&one, j, k) - mrc_load(&two, j, k)) < 1e-3, "%s: center %d", methods[m],
                            (int)j);
        free(one.data), free(two.data);
    }
    mercer_preprocess_free(scale);
}

/* For a file larger than the memory limit, the centers are chosen from a random part of its rows, and the limit holds.
   */
static void test_larger_than_memory(void **state)
{
    (void)state;
    mercer_kernel kernel = laplace();
    for (int m = 0; m < 2; m++) {
        mercer_matrix Z = data_matrix(P, D, 0, MERCER_F32);
        mercer_center_options options = center_options(m ? "rpcholesky" : "kmeans", 6);
        options.kernel = &kernel;
        mercer_center_report all = {.struct_size = sizeof all}, part = all;
        assert_succeeds(bed, mercer_choose_centers_from(stored, &Z, NULL, &options, &all));
        options.memory = m ? 270000 : 100000; /* the file has 72,000 bytes, K(X,Z) 180,000 */
        bed->bytes_high = bed->bytes_now;
        int64_t before = bed->bytes_now;
        assert_succeeds(bed, mercer_choose_centers_from(stored, &Z, NULL, &options, &part));
        assert_that(bed->bytes_high - before <= options.memory + 8192, "%lld bytes of %lld",
                    (long long)(bed->bytes_high - before), (long long)options.memory);
        assert_that(part.error < 1.5 * all.error + 1e-3, "error %g, with all %g", part.error, all.error);
        options.memory = 2500;
        assert_fails(bed, mercer_choose_centers_from(stored, &Z, NULL, &options, &part), MERCER_ERROR_MEMORY,
                     "fewer centers");
        free(Z.data);
    }
}

static void test_computed(void **state)
{
    (void)state;
    static const char *const methods[] = {"random", "kmeans", "rpcholesky", "balanced"};
    mercer_kernel kernel = {.id = MRC_KERNEL_LAPLACE, .bandwidth = 2550};
    mercer_dataset *digits = NULL;
    assert_succeeds(bed, mercer_dataset_synthesize(&digits, bed, "digits", 100, 400, 3));
    mercer_matrix all = data_matrix(400, 784, 0, MERCER_U8), Z = data_matrix(P, 784, 0, MERCER_U8);
    int32_t labels[400];
    assert_succeeds(bed, mercer_dataset_read(digits, &all, NULL, labels, NULL, NULL, 0));
    for (int m = 0; m < 4; m++) {
        mercer_center_options options = center_options(methods[m], 6);
        options.kernel = &kernel;
        assert_succeeds(bed, mercer_choose_centers_from(digits, &Z, NULL, &options, NULL));
        if (m != 1) assert_different_rows(&all, &Z);
        int counts[10] = {0};
        for (int64_t j = 0; j < P && m == 3; j++) counts[labels[find_row(&all, &Z, j)]]++;
        for (int c = 0; c < 10 && m == 3; c++) assert_int_equal(counts[c], P / 10);
    }
    mercer_dataset_free(digits);
    free(all.data), free(Z.data);
}

static void test_refused(void **state)
{
    (void)state;
    mercer_matrix Z = data_matrix(N + 1, D, 0, MERCER_F32);
    mercer_center_options options = center_options("balanced", 1);
    assert_fails(NULL, mercer_choose_centers_from(NULL, &Z, NULL, NULL, NULL), MERCER_ERROR_ARGUMENT, "dataset");
    assert_fails(bed, mercer_choose_centers_from(stored, NULL, NULL, NULL, NULL), MERCER_ERROR_ARGUMENT, "centers");
    assert_fails(bed, mercer_choose_centers_from(stored, &Z, NULL, NULL, NULL), MERCER_ERROR_SHAPE, "1501 centers");
    Z.rows = P;
    options.labels = mercer_dataset_labels(stored);
    assert_fails(bed, mercer_choose_centers_from(stored, &Z, NULL, &options, NULL), MERCER_ERROR_ARGUMENT, "labels");
    options.labels = NULL;
    mercer_dataset_options open;
    open = (mercer_dataset_options)MERCER_INIT(mercer_dataset_options);
    open.x = in_folder("x.npy"), open.task = MERCER_TASK_UNLABELED;
    mercer_dataset *plain = NULL;
    assert_succeeds(bed, mercer_dataset_open(&plain, bed, &open));
    assert_fails(bed, mercer_choose_centers_from(plain, &Z, NULL, &options, NULL), MERCER_ERROR_ARGUMENT,
                 "balanced*dataset");
    mercer_preprocess *narrow = NULL;
    mercer_matrix few = mrc_columns(&points, 0, 3);
    assert_succeeds(bed, fit_to_matrix(&narrow, bed, "standardize", &few));
    assert_fails(bed, mercer_choose_centers_from(plain, &Z, narrow, NULL, NULL), MERCER_ERROR_SHAPE, "3 features");
    Z.dtype = MERCER_U8; /* the data go up to 300, beyond u8 */
    assert_fails(bed, mercer_choose_centers_from(plain, &Z, NULL, NULL, NULL), MERCER_ERROR_DATA, "u8");
    mercer_preprocess_free(narrow);
    mercer_dataset_free(plain);
    free(Z.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_matrix),
        cmocka_unit_test(test_preprocessed),
        cmocka_unit_test(test_larger_than_memory),
        cmocka_unit_test(test_computed),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}

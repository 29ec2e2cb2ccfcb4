/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of a dataset as an independent dataset: rows, targets, names, lifetime. */
#include "support/datasets.h"

#include "data/dataset.h"

static mercer_dataset *take(const mercer_dataset *from, const int64_t *rows, int64_t count)
{
    mercer_dataset *part = NULL;
    assert_succeeds(context, mercer_dataset_take(&part, from, rows, count));
    return part;
}

static void test_classes(void **state)
{
    (void)state;
    static const int64_t rows[] = {3, 0, 3};
    static const double samples[] = {7, 8, 1, 2, 7, 8};
    static const int32_t labels[] = {1, 1, 1};
    mercer_dataset_options options =
        data_options(text_file("c.csv", "a,b,t\n1,2,red\n3,4,blue\n5,6,blue\n7,8,red\n"), NULL);
    options.target = "t";
    mercer_dataset *whole = open_with(&options);
    mercer_dataset *part = take(whole, rows, 3);
    mercer_dataset_free(whole); /* The part owns copies of its names and rows. */
    assert_samples(part, 3, 2, samples);
    assert_classes(part, "blue red", labels); /* a class without rows is still listed */
    mercer_dataset_info info = about(part);
    assert_string_equal(info.feature_names[1], "b");
    assert_string_equal(info.format, "csv");
    assert_int_equal(info.mapped, 0);
    mercer_dataset_free(part);
}

static void test_values(void **state)
{
    (void)state;
    static const int64_t rows[] = {2, 1};
    static const double samples[] = {5, 6, 3, 4}, targets[] = {0.5, -1.5};
    mercer_dataset_options options = data_options(text_file("v.csv", "1,2,2.5\n3,4,-1.5\n5,6,0.5\n"), NULL);
    options.target = "-1";
    options.task = MERCER_TASK_REGRESSION;
    mercer_dataset *whole = open_with(&options), *part = take(whole, rows, 2);
    mercer_dataset_free(whole);
    assert_samples(part, 2, 2, samples);
    assert_values(part, 1, targets);
    mercer_dataset_free(part);
}

/* A part of a synthetic dataset stores its samples. */
static void test_synthetic(void **state)
{
    (void)state;
    static const int64_t rows[] = {4, 2};
    mercer_dataset *whole = NULL;
    unsigned char expected[2 * 784];
    mercer_matrix X = mercer_matrix_view(expected, 2, 784, MERCER_U8);
    assert_succeeds(context, mercer_dataset_synthesize(&whole, context, "digits", 0, 5, 1));
    assert_succeeds(context, mercer_dataset_read(whole, &X, NULL, NULL, NULL, rows, 0));
    mercer_dataset *part = take(whole, rows, 2);
    assert_memory_equal(mercer_dataset_samples(part).data, expected, sizeof expected);
    assert_int_equal(about(part).height, 28);
    assert_string_equal(about(part).labels[9], "9");
    mercer_dataset_free(part);
    mercer_dataset_free(whole);
}

/* A dataset of arrays with all optional parts; part: a copy of some of its rows; range: rows that share its memory. */
typedef struct sorted {
    mercer_dataset_arrays arrays;
    mercer_dataset *whole, *part, *range;
} sorted;

static mercer_status make_all(sorted *self)
{
    static const int64_t rows[] = {3, 1};
    self->whole = self->part = self->range = NULL;
    MRC_TRY(mercer_dataset_from_arrays(&self->whole, context, &self->arrays));
    MRC_TRY(mercer_dataset_take(&self->part, self->whole, rows, 2));
    return mrc_dataset_range(&self->range, self->whole, 1, 2);
}

static void free_all(sorted *self)
{
    mercer_dataset_free(self->range);
    mercer_dataset_free(self->part);
    mercer_dataset_free(self->whole);
}

static void test_arrays(void **state)
{
    (void)state;
    static float x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int32_t labels[] = {0, 1, 1, 0};
    static const double weights[] = {1, 2, 3, 4}, keys[] = {5, 6, 7, 8};
    static const char *const names[] = {"u", "v"}, *const features[] = {"a", "b"};
    static const char schema[] = "{\"missing\":[],\"columns\":[{\"kind\":\"number\",\"mean\":1,\"missing\":0}]}";
    const mercer_matrix X = mercer_matrix_view(x, 4, 2, MERCER_F32);
    for (int by_time = 0; by_time < 2; by_time++) {
        sorted self = {.arrays = MERCER_INIT(mercer_dataset_arrays)};
        self.arrays.X = &X, self.arrays.labels = labels, self.arrays.classes = 2, self.arrays.weights = weights;
        self.arrays.label_names = names, self.arrays.feature_names = features, self.arrays.schema = schema;
        *(by_time ? &self.arrays.times : &self.arrays.groups) = keys;
        for (int64_t n = 1;; n++) {
            int64_t live = allocator.live;
            allocator.fail_at = allocator.requests + n;
            mercer_status status = make_all(&self);
            allocator.fail_at = 0;
            if (status == MERCER_OK) break;
            assert_int_equal(status, MERCER_ERROR_MEMORY);
            free_all(&self);
            assert_true(allocator.live == live && n < 50);
        }
        assert_samples(self.part, 2, 2, (double[]){7, 8, 3, 4});
        assert_samples(self.range, 2, 2, (double[]){3, 4, 5, 6});
        assert_classes(self.part, "u v", (int32_t[]){0, 1});
        assert_classes(self.range, "u v", (int32_t[]){1, 1});
        assert_string_equal(about(self.part).schema, schema);
        assert_string_equal(about(self.part).feature_names[1], "b");
        const mrc_key_kind kind = by_time ? MRC_KEYS_TIMES : MRC_KEYS_GROUPS;
        assert_true(self.part->key_kind == kind && self.range->key_kind == kind);
        assert_true(self.part->keys[0] == 8 && self.part->keys[1] == 6 && self.range->keys[0] == 6);
        assert_true(self.part->weights[0] == 4 && self.part->weights[1] == 2 && self.range->weights[1] == 3);
        free_all(&self);
    }
}

/* A range of samples from several files holds the right rows, wherever the files end. */
static void test_range_of_files(void **state)
{
    (void)state;
    float numbers[12];
    double targets[6];
    for (int i = 0; i < 12; i++) numbers[i] = (float)i, targets[i / 2] = i;
    plain_file("x-1.npy", "<f4", false, "1, 2", numbers, 8),
        plain_file("x-2.npy", "<f4", false, "3, 2", numbers + 2, 24);
    plain_file("x-3.npy", "<f4", false, "2, 2", numbers + 8, 16);
    plain_file("y-1.npy", "<f8", false, "4", targets, 32), plain_file("y-2.npy", "<f8", false, "2", targets + 4, 16);
    mercer_dataset *whole = open_data(in_folder("x-*.npy"), in_folder("y-*.npy"));
    for (int64_t first = 0; first < 6; first++)
        for (int64_t rows = 1; first + rows <= 6; rows++) {
            mercer_dataset *range = NULL;
            double y[6];
            float x[12];
            mercer_matrix X = mercer_matrix_view(x, rows, 2, MERCER_F32),
                          Y = mercer_matrix_view(y, rows, 1, MERCER_F64);
            for (int64_t n = 1; mrc_dataset_range(&range, whole, first, rows) != MERCER_OK || n < 4; n++) {
                mercer_dataset_free(range);
                allocator.fail_at = allocator.requests + n; /* 3 allocations: dataset, two lists */
                assert_int_equal(mrc_dataset_range(&range, whole, first, rows), MERCER_ERROR_MEMORY);
                allocator.fail_at = 0;
                assert_null(range);
            }
            assert_succeeds(context, mercer_dataset_read(range, &X, &Y, NULL, NULL, NULL, 0));
            assert_memory_equal(x, numbers + 2 * first, (size_t)rows * 8);
            assert_memory_equal(y, targets + first, (size_t)rows * 8);
            mercer_dataset_free(range);
        }
    mercer_dataset_free(whole);
}

static void test_rejected_arguments(void **state)
{
    (void)state;
    static const int64_t beyond[] = {0, 2}, negative[] = {-1}, good[] = {1, 0};
    mercer_dataset_options options = data_options(text_file("r.csv", "a,b,t\n1,2,x\n3,4,y\n"), NULL);
    options.target = "t";
    mercer_dataset *whole = open_with(&options), *part = whole;
    assert_fails(NULL, mercer_dataset_take(&part, NULL, good, 2), MERCER_ERROR_ARGUMENT, "from");
    assert_fails(context, mercer_dataset_take(NULL, whole, good, 2), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(context, mercer_dataset_take(&part, whole, NULL, 2), MERCER_ERROR_ARGUMENT, "rows");
    assert_null(part);
    assert_fails(context, mercer_dataset_take(&part, whole, good, 0), MERCER_ERROR_ARGUMENT, "count is 0");
    assert_fails(context, mercer_dataset_take(&part, whole, beyond, 2), MERCER_ERROR_SHAPE, "rows[1] is 2");
    assert_fails(context, mercer_dataset_take(&part, whole, negative, 1), MERCER_ERROR_SHAPE, "rows[0] is -1");
    for (int64_t fail_at = 1;; fail_at++) {
        int64_t live = allocator.live;
        allocator.requests = 0, allocator.fail_at = fail_at;
        mercer_status status = mercer_dataset_take(&part, whole, good, 2);
        allocator.fail_at = 0;
        if (status == MERCER_OK) {
            assert_int_equal(fail_at, 7); /* six allocations: the dataset, three lists of names, samples, labels */
            break;
        }
        assert_int_equal(status, MERCER_ERROR_MEMORY);
        assert_null(part);
        assert_int_equal(allocator.live, live);
    }
    mercer_dataset_free(part);
    mercer_dataset_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes),   cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_synthetic), cmocka_unit_test(test_rejected_arguments),
                                       cmocka_unit_test(test_arrays),    cmocka_unit_test(test_range_of_files)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

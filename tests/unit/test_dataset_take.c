/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of a dataset as a dataset of its own: rows, targets, names, independence of where it came from. */
#include "support/datasets.h"

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
    mercer_dataset_free(whole); /* the part has its own names and rows */
    assert_samples(part, 3, 2, samples);
    assert_classes(part, "blue red", labels); /* a class without rows is still one */
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

/* Computed samples become stored ones. */
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

static void test_refusals(void **state)
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
            assert_int_equal(fail_at, 7); /* the dataset, three lists of names, samples, labels */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes), cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_synthetic), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

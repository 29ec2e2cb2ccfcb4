/* SPDX-License-Identifier: BSD-3-Clause */
/* Binary files of CIFAR-10 and CIFAR-100: pixels and labels, several files, and invalid files with their names. */
#include "support/datasets.h"

#include "data/targets.h"

enum { PIXELS = 3072, PLANE = 1024, MOST = 4 };

static unsigned char bytes[MOST * (PIXELS + 2)];

/* Return the test value of the pixel at index `place` of color plane `plane` in record i. */
static unsigned char pixel(int64_t i, int plane, int place)
{
    return (unsigned char)(37 * i + 101 * plane + 7 * place + place / 32);
}

/* Write `count` records with these labels (`coarse`: for CIFAR-100, else NULL) into `bytes`; return the number of
   bytes. */
static size_t fill(const int *coarse, const int *fine, int first, int count)
{
    unsigned char *to = bytes;
    for (int i = 0; i < count; i++) {
        if (coarse) *to++ = (unsigned char)coarse[i];
        *to++ = (unsigned char)fine[i];
        for (int k = 0; k < PIXELS; k++) *to++ = pixel(first + i, k / PLANE, k % PLANE);
    }
    return (size_t)(to - bytes);
}

static void check_pixels(mercer_dataset *data, int64_t first, int64_t rows)
{
    static unsigned char got[MOST * PIXELS];
    int64_t ids[MOST];
    mercer_dataset_info info = about(data);
    assert_true(info.rows == rows && info.features == PIXELS && info.dtype == MERCER_U8);
    assert_true(info.height == 32 && info.width == 32 && info.channels == 3);
    for (int64_t i = 0; i < rows; i++) ids[i] = i;
    mercer_matrix x = mercer_matrix_view(got, rows, PIXELS, MERCER_U8);
    assert_succeeds(context, mercer_dataset_read(data, &x, NULL, NULL, NULL, ids, 0));
    for (int64_t i = 0; i < rows; i++)
        for (int k = 0; k < PIXELS; k++) /* samples are stored as height x width x channel */
            assert_int_equal(got[i * PIXELS + k], pixel(first + i, k % 3, k / 3));
}

static void test_cifar10(void **state)
{
    (void)state;
    const char *first = byte_file("data_batch_1.bin", bytes, fill(NULL, (int[]){7, 0}, 0, 2));
    byte_file("data_batch_2.bin", bytes, fill(NULL, (int[]){9, 7}, 2, 2));
    mercer_dataset *data = open_data(first, NULL);
    check_pixels(data, 0, 2);
    assert_classes(data, "0 7", (int32_t[]){1, 0});
    assert_string_equal(about(data).format, "cifar10");
    mercer_dataset_free(data);
    mercer_dataset_options options = data_options(in_folder("data_batch_*.bin"), NULL);
    data = open_with(&options);
    check_pixels(data, 0, 4);
    assert_classes(data, "0 7 9", (int32_t[]){1, 0, 2, 1});
    mercer_dataset_free(data);
    options.first = 1, options.rows = 2; /* one record from each file */
    data = open_with(&options);
    check_pixels(data, 1, 2);
    assert_classes(data, "0 9", (int32_t[]){0, 1});
    mercer_dataset_free(data);
    options.rows = 4;
    assert_refused(&options, MERCER_ERROR_SHAPE, "only 4");
    data = open_data(gzip_file("test_batch.bin.gz", bytes, fill(NULL, (int[]){3}, 0, 1)), NULL);
    check_pixels(data, 0, 1);
    mercer_dataset_free(data);
    options = data_options(first, NULL);
    options.task = MERCER_TASK_UNLABELED;
    data = open_with(&options);
    assert_int_equal(about(data).task, MERCER_TASK_UNLABELED);
    mercer_dataset_free(data);
}

static void test_cifar100(void **state)
{
    (void)state;
    const char *path = byte_file("train.bin", bytes, fill((int[]){19, 4, 19}, (int[]){99, 0, 50}, 0, 3));
    mercer_dataset_options options = data_options(path, NULL);
    options.format = "cifar100";
    mercer_dataset *data = open_with(&options);
    check_pixels(data, 0, 3);
    assert_classes(data, "0 50 99", (int32_t[]){2, 0, 1});
    mercer_dataset_free(data);
    options.target = "coarse";
    data = open_with(&options);
    assert_classes(data, "4 19", (int32_t[]){1, 0, 1});
    mercer_dataset_free(data);
    options.target = "fine grained";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "CIFAR-100 has 'fine' and 'coarse'");
}

static void test_bad(void **state)
{
    (void)state;
    size_t size = fill(NULL, (int[]){1, 2}, 0, 2);
    for (size_t cut = 1; cut < size; cut += 611) {
        mercer_dataset_options options = data_options(byte_file("data_batch_3.bin", bytes, size - cut), NULL);
        if (size - cut == PIXELS + 1) continue;
        assert_refused(&options, MERCER_ERROR_FORMAT, "data_batch_3.bin");
        assert_refused(&options, MERCER_ERROR_FORMAT, "CIFAR-10");
    }
    mercer_dataset_options options =
        data_options(byte_file("test_batch.bin", bytes, fill(NULL, (int[]){1, 10}, 0, 2)), NULL);
    assert_refused(&options, MERCER_ERROR_DATA, "test_batch.bin: record 1 *label 10");
    options.task = MERCER_TASK_UNLABELED; /* without targets the invalid label does not matter */
    mercer_dataset_free(open_with(&options));
    options = data_options(byte_file("test.bin", bytes, fill((int[]){20}, (int[]){100}, 0, 1)), NULL);
    options.format = "cifar100";
    assert_refused(&options, MERCER_ERROR_DATA, "label 100 (fine)");
    options.target = "coarse";
    assert_refused(&options, MERCER_ERROR_DATA, "label 20 (coarse)");
    options.format = "cifar10", options.target = "fine";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "CIFAR-10 has 'label'");
    options = data_options(byte_file("data_batch_4.bin", bytes, 0), NULL);
    assert_refused(&options, MERCER_ERROR_FORMAT, "empty");
    options = data_options(byte_file("data_batch_5.bin", bytes, fill(NULL, (int[]){1, 2}, 0, 2)), NULL);
    options.memory = 1000, options.mapping = MERCER_OFF;
    assert_refused(&options, MERCER_ERROR_MEMORY, "data_batch_5.bin");
    options.mapping = MERCER_AUTO; /* The limit counts exactly the bytes of pixels and targets. */
    options.memory = 2 * (PIXELS + MRC_TARGET_BYTES) - 1;
    assert_refused(&options, MERCER_ERROR_MEMORY, "data_batch_5.bin");
    options.memory++;
    mercer_dataset_free(open_with(&options));
    folder_clear(); /* an empty file is an error, also among several */
    byte_file("data_batch_1.bin", bytes, PIXELS + 1), byte_file("data_batch_2.bin", bytes, 0);
    options = data_options(in_folder("data_batch_*.bin"), NULL);
    assert_refused(&options, MERCER_ERROR_FORMAT, "data_batch_2.bin: *empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cifar10), cmocka_unit_test(test_cifar100),
                                       cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Written NPY files are read back bit for bit; a failed write leaves no files. */
#include "support/datasets.h"

static const double numbers[6] = {1, 2, 3, 4, 5, 250};

static void test_write_matrix(void **state)
{
    (void)state;
    double store[8] = {1, 2, 3, -1, 4, 5, 250, -1};
    mercer_matrix matrix = mrc_view(store, 2, 3, MERCER_F64);
    matrix.ld = 4;
    const char *path = in_folder("out.npy");
    assert_succeeds(context, mercer_matrix_write_npy(context, &matrix, path));
    file_bytes file = read_bytes(path);
    static const char header[] = "\x93NUMPY\1\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    assert_int_equal(file.count, 128 + 48);
    assert_memory_equal(file.data, header, sizeof header - 1);
    assert_int_equal(file.data[127], '\n');
    free(file.data);
    mercer_dataset *data = open_data(path, NULL);
    assert_samples(data, 2, 3, numbers);
    assert_int_equal(about(data).mapped, 1);
    mercer_dataset_free(data);
    assert_fails(context, mercer_matrix_write_npy(context, &matrix, in_folder("no/out.npy")), MERCER_ERROR_IO,
                 "no/out.npy");
    if (access("/dev/full", W_OK) == 0)
        assert_fails(context, mercer_matrix_write_npy(context, &matrix, "/dev/full"), MERCER_ERROR_IO, "/dev/full");
    assert_fails(context, mercer_matrix_write_npy(context, &matrix, NULL), MERCER_ERROR_ARGUMENT, "path");
    matrix.cols = 5;
    assert_fails(context, mercer_matrix_write_npy(context, &matrix, path), MERCER_ERROR_SHAPE, "matrix");
    matrix.cols = 3;
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    for (int i = 0; i < 4; i++) {
        uint8_t raw[48] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        mercer_matrix typed = mrc_view(raw, 3, 2, types[i]);
        assert_succeeds(context, mercer_matrix_write_npy(context, &typed, path));
        data = open_data(path, NULL);
        mercer_matrix back = mercer_dataset_samples(data);
        assert_int_equal(back.dtype, types[i]);
        assert_memory_equal(back.data, raw, (size_t)(6 * mrc_dtype_size(types[i])));
        mercer_dataset_free(data);
    }
}

static void test_write_dataset(void **state)
{
    (void)state;
    const char *x = in_folder("x.npy"), *y = in_folder("y.npy"), *z = in_folder("z.npy"), *w = in_folder("w.npy");
    static const char *const texts[] = {"1,2,b\n3,4,a\n5,6,b\n", "1,2,7\n3,4,-3\n5,6,7\n", "1,2,0.5\n3,4,2.25\n5,6,8\n",
                                        "1,2,\xc3\xa4\n3,4,\xf0\x9f\x98\x80 x\n5,6,1\n"};
    for (int i = 0; i < 4; i++) {
        mercer_dataset_options options = data_options(text_file("t.csv", texts[i]), NULL);
        options.target = "2";
        mercer_dataset *data = open_with(&options);
        uint64_t before, after;
        assert_succeeds(context, mercer_dataset_fingerprint(data, &before));
        assert_succeeds(context, mercer_dataset_write(data, x, y));
        mercer_dataset *again = open_data(x, y);
        assert_int_equal(about(again).task, about(data).task);
        assert_int_equal(about(again).outputs, about(data).outputs);
        assert_samples(again, 3, 2, (double[]){1, 2, 3, 4, 5, 6});
        for (int64_t k = 0; about(data).labels && k < about(data).outputs; k++)
            assert_string_equal(about(data).labels[k], about(again).labels[k]);
        assert_succeeds(context, mercer_dataset_fingerprint(again, &after));
        assert_true(before == after);
        assert_succeeds(context, mercer_dataset_write(again, z, w)); /* identical bytes */
        assert_same_bytes(x, z);
        assert_same_bytes(y, w);
        mercer_dataset_free(again);
        mercer_dataset_free(data);
    }
}

/* Return samples 0, 1, ... with these two class names; NULL: without names. */
static mercer_dataset *named_classes(const char *const *names)
{
    static float x[2] = {0, 1};
    static const int32_t labels[2] = {1, 0};
    const mercer_matrix X = mercer_matrix_view(x, 2, 1, MERCER_F32);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = &X, arrays.labels = labels, arrays.classes = 2, arrays.label_names = names;
    mercer_dataset *data = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    return data;
}

/* Class names are written so that they can be read back: names in the exact form of an integer as numbers, all
   others as text. */
static void test_class_names(void **state)
{
    (void)state;
    static const struct {
        const char *names[2], *descr;
    } cases[] = {{{"-7", "10"}, "'<i8'"},
                 {{"0", "999999999999999"}, "'<i8'"},
                 {{"1", "007"}, "'<U3'"},
                 {{"-0", "1"}, "'<U2'"},
                 {{"-", "1"}, "'<U1'"},
                 {{"", "12"}, "'<U2'"},
                 {{"1", "1000000000000000"}, "'<U16'"},
                 {{"1", "+2"}, "'<U2'"},
                 {{"\xe2\x82\xac", "\xf4\x8f\xbf\xbf."}, "'<U2'"},
                 {{"\xc2\x80", "\xdf\xbf\xe0\xa0\x80"}, "'<U2'"}};
    static const char *const broken[] = {"\x80", "\xc1\x81", "\xc3", "\xe2\x82", "\xf0\x9f\x98x", "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset *data = named_classes(cases[i].names);
        assert_succeeds(context, mercer_dataset_write(data, in_folder("x.npy"), in_folder("y.npy")));
        file_bytes file = read_bytes(in_folder("y.npy"));
        assert_that(strstr((char *)file.data + 10, cases[i].descr), "%s, %s: %.60s", cases[i].names[0],
                    cases[i].names[1], (char *)file.data + 10);
        free(file.data);
        mercer_dataset_free(data);
        if (i > 1 && i < 8) continue; /* number-like texts are read back as those numbers */
        data = open_data(in_folder("x.npy"), in_folder("y.npy"));
        for (int k = 0; k < 2; k++)
            assert_string_equal(about(data).labels[mercer_dataset_labels(data)[k]], cases[i].names[1 - k]);
        mercer_dataset_free(data);
    }
    int count = folder_count();
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        mercer_dataset *data = named_classes((const char *[]){"a", broken[i]});
        assert_fails(context, mercer_dataset_write(data, in_folder("a.npy"), in_folder("b.npy")), MERCER_ERROR_DATA,
                     "class 1");
        mercer_dataset_free(data);
    }
    assert_int_equal(folder_count(), count);
    static const char *const ends[] = {"y.npy", "y.csv"};
    for (int i = 0; i < 2; i++) { /* classes without names are numbered */
        mercer_dataset *data = named_classes(NULL);
        assert_succeeds(context, mercer_dataset_write(data, in_folder("x.npy"), in_folder(ends[i])));
        mercer_dataset_free(data);
        data = open_data(in_folder("x.npy"), in_folder(ends[i]));
        assert_classes(data, "0 1", (int32_t[]){1, 0});
        mercer_dataset_free(data);
    }
}

/* Tables that are larger than a buffer, with a name that is longer than a buffer, are read back unchanged. */
static void test_long_tables(void **state)
{
    (void)state;
    enum { ROWS = 9000, NAME = 70000 };
    static float x[2 * ROWS];
    static char name[NAME + 1];
    double *expected = malloc(sizeof(double) * 2 * ROWS);
    for (int i = 0; i < 2 * ROWS; i++) x[i] = (float)(i % 991) / 7, expected[i] = (double)x[i];
    memset(name, 'n', NAME), name[1] = '"';
    const char *const names[] = {"", name};
    const mercer_matrix X = mercer_matrix_view(x, ROWS, 2, MERCER_F32);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = &X, arrays.feature_names = names;
    mercer_dataset *data = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_succeeds(context, mercer_dataset_write(data, in_folder("long.csv"), NULL));
    mercer_dataset_free(data);
    mercer_dataset_options options = data_options(in_folder("long.csv"), NULL);
    options.task = MERCER_TASK_UNLABELED, options.header = MERCER_ON;
    data = open_with(&options);
    assert_samples(data, ROWS, 2, expected);
    assert_string_equal(about(data).feature_names[1], name);
    mercer_dataset_free(data);
    free(expected);
}

/* Images preserve their shape, with and without channels. */
static void test_image_shapes(void **state)
{
    (void)state;
    static const char *const shapes[] = {"2, 1, 3", "1, 1, 2, 3", "2, 3"};
    for (int i = 0; i < 3; i++) {
        mercer_dataset *data = open_data(plain_file("x.npy", "<f8", false, shapes[i], numbers, 48), NULL);
        char part[80];
        snprintf(part, sizeof part, "'shape': (%s), }", shapes[i]);
        assert_succeeds(context, mercer_dataset_write(data, in_folder("z.npy"), NULL));
        file_bytes file = read_bytes(in_folder("z.npy"));
        assert_non_null(strstr((char *)file.data + 10, part));
        free(file.data);
        mercer_dataset_free(data);
    }
}

static void test_write_refusals(void **state)
{
    (void)state;
    folder_clear();
    mercer_dataset *data = open_data(plain_file("x.npy", "<f8", false, "3, 2", numbers, 48), NULL);
    const char *x = in_folder("out.npy"), *place = in_folder("folder.npy");
    assert_fails(context, mercer_dataset_write(data, x, in_folder("y.npy")), MERCER_ERROR_ARGUMENT, "no targets");
    assert_fails(context, mercer_dataset_write(data, NULL, NULL), MERCER_ERROR_ARGUMENT, "x_path");
    assert_fails(context, mercer_dataset_write(data, folder, NULL), MERCER_ERROR_ARGUMENT, ".npy");
    assert_int_equal(mkdir(place, 0700), 0);
    assert_fails(context, mercer_dataset_write(data, place, NULL), MERCER_ERROR_IO, "folder");
    assert_int_equal(rmdir(place), 0);
    assert_fails(NULL, mercer_dataset_write(NULL, x, NULL), MERCER_ERROR_ARGUMENT, "dataset");
    mercer_dataset_free(data);
    data = open_data(in_folder("x.npy"), plain_file("y.npy", "|u1", false, "3", "\1\2\1", 3));
    assert_fails(context, mercer_dataset_write(data, x, x), MERCER_ERROR_ARGUMENT, "same file");
    assert_fails(context, mercer_dataset_write(data, x, in_folder("none/y.npy")), MERCER_ERROR_IO, "none/y.npy");
    assert_int_equal(folder_count(), 2); /* neither file was written */
    /* Overwriting the mapped file is safe: the mapping stays valid, because the new file is a different one. */
    assert_succeeds(context, mercer_dataset_write(data, in_folder("x.npy"), in_folder("y.npy")));
    assert_samples(data, 3, 2, numbers);
    mercer_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_write_matrix), cmocka_unit_test(test_write_dataset),
                                       cmocka_unit_test(test_class_names),  cmocka_unit_test(test_long_tables),
                                       cmocka_unit_test(test_image_shapes), cmocka_unit_test(test_write_refusals)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

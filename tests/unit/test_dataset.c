/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets: options, formats, raw files, reading rows with preprocessing, fingerprints, failing allocations. */
#include "support/datasets.h"

#include "support/fitted.h"

#include "core/numbers/random.h"
#include "data/dataset.h"

#include <math.h>

/* ---- Options and formats ------------------------------------------------------------------------------------- */

static void test_options(void **state)
{
    (void)state;
    mercer_dataset *data;
    mercer_dataset_options options = data_options(NULL, NULL);
    options.struct_size = 4;
    assert_fails(context, mercer_dataset_open(&data, context, &options), MERCER_ERROR_ARGUMENT, "struct_size");
    options = data_options(NULL, NULL);
    assert_fails(context, mercer_dataset_open(NULL, context, &options), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(NULL, mercer_dataset_open(&data, NULL, &options), MERCER_ERROR_ARGUMENT, "context");
    assert_refused(NULL, MERCER_ERROR_ARGUMENT, "x *missing");
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "x *missing");
    options.x = text_file("x.csv", "1,2\n3,4\n");
    options.y = "";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "y *empty");
    options.y = NULL;
    options.header = (mercer_switch)7;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "header is 7");
    options.header = MERCER_AUTO;
    options.task = (mercer_task)9;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "task is 9");
    options.task = MERCER_TASK_UNLABELED;
    options.first = -1;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "first");
    options.first = 0;
    options.format = "hdf5";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "'hdf5'*format*samples");
    options.format = "auto";
    mercer_dataset_free(open_with(&options));
    options.format = "npy";
    assert_refused(&options, MERCER_ERROR_FORMAT, "x.csv: *NPY");
    options.format = NULL;
    options.struct_size = offsetof(mercer_dataset_options, memory); /* size in a caller built with an older header */
    mercer_dataset_free(open_with(&options));
    mercer_dataset_free(NULL);
    assert_null(mercer_dataset_samples(NULL).data);
    assert_null(mercer_dataset_labels(NULL));
}

static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *part;
        size_t count;
    } foreign[] = {{"PK\3\4....", "zip archive", 8},
                   {"\x89HDF\r\n....", "HDF5", 10},
                   {"PAR1....", "not a Parquet file", 8},
                   {"BZh91AY", "bzip2", 7},
                   {"\xfd"
                    "7zXZ\0.",
                    "xz", 7},
                   {"\x28\xb5\x2f\xfd...", "zstd", 7},
                   {"\1\2\3\0\5", "not recognized", 5}};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        mercer_dataset_options options = data_options(byte_file("thing", foreign[i].bytes, foreign[i].count), NULL);
        assert_refused(&options, MERCER_ERROR_FORMAT, foreign[i].part);
    }
    mercer_dataset_options options = data_options(text_file("x.csv", "1,2\n3,4\n"), text_file("y.txt", "1\n0\n"));
    options.y_format = "libsvm";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "y.txt: 'libsvm'*format*targets");
    options.y_format = "text";
    mercer_dataset_free(open_with(&options));
    options.y = in_folder("missing");
    assert_refused(&options, MERCER_ERROR_MISSING, "missing");
    options.y = NULL;
    options.x = byte_file("x.npy", "", 0);
    assert_refused(&options, MERCER_ERROR_FORMAT, "x.npy: *empty");
}

static void test_targets_missing(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(byte_file("x.raw", "abcd", 4), NULL);
    options.raw = "u8:2";
    options.task = MERCER_TASK_CLASSIFICATION;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "x.raw");
    options.task = MERCER_TASK_REGRESSION;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "targets");
}

static void test_raw(void **state)
{
    (void)state;
    float values[7] = {-1, 1, 2, 3, 4, 5, 6};
    const double expected[] = {1, 2, 3, 4, 5, 6};
    mercer_dataset_options options = data_options(byte_file("x.raw", values, sizeof values), NULL);
    static const char *const good[] = {"f32:2x3@4", "f32:3@4"};
    for (int i = 0; i < 2; i++) {
        options.raw = good[i];
        mercer_dataset *data = open_with(&options);
        assert_samples(data, 2, 3, expected);
        assert_int_equal(about(data).mapped, 1);
        assert_string_equal(about(data).format, "raw");
        mercer_dataset_free(data);
    }
    options.raw = "u8:28";
    mercer_dataset *data = open_with(&options);
    assert_int_equal(about(data).rows, 1);
    mercer_dataset_free(data);
    const double wide[] = {1, 2, 3, 4, 5, 6};
    const uint16_t halves[] = {0x3c00, 0x4000};
    options.x = byte_file("x.raw", wide, sizeof wide), options.raw = "f64:3";
    data = open_with(&options);
    assert_samples(data, 2, 3, expected);
    mercer_dataset_free(data);
    options.x = byte_file("x.raw", halves, sizeof halves), options.raw = "f16:2";
    data = open_with(&options);
    assert_samples(data, 1, 2, expected);
    mercer_dataset_free(data);
    char moved[sizeof values + 1] = {0};
    memcpy(moved + 1, values, sizeof values); /* at an unaligned offset the file is copied, not mapped */
    options.x = byte_file("odd.bin", moved, sizeof moved);
    options.raw = "f32:2x3@5";
    data = open_with(&options);
    assert_samples(data, 2, 3, expected);
    assert_int_equal(about(data).mapped, 0);
    mercer_dataset_free(data);
    options.memory = 23;
    assert_refused(&options, MERCER_ERROR_MEMORY, "needs 24 more bytes");
    options.memory = 0;
    static const char *const bad[] = {NULL,
                                      "",
                                      "f32",
                                      "f32:",
                                      "i32:3",
                                      "3",
                                      "3x3@0",
                                      "f32:0",
                                      "f32:0x3",
                                      "f32:3x0",
                                      "f32:3x",
                                      "f32:3@",
                                      "f32:3@1x",
                                      "f32:x3",
                                      "f32:-3",
                                      "f32:3x3x3",
                                      "f32:99999999999999999999",
                                      "f64:2305843009213693952",
                                      "f32:3 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.raw = bad[i];
        assert_refused(&options, MERCER_ERROR_ARGUMENT, "odd.bin: raw: ");
    }
    options.raw = "f32:3@2";
    assert_refused(&options, MERCER_ERROR_FORMAT, "27 bytes*offset");
    options.raw = "f32:3@30";
    assert_refused(&options, MERCER_ERROR_FORMAT, "odd.bin: *29 bytes*30");
    options.raw = "f32:3@29"; /* no bytes remain after the offset */
    assert_refused(&options, MERCER_ERROR_FORMAT, "no elements");
    options.raw = "f32:2x4@1";
    assert_refused(&options, MERCER_ERROR_FORMAT, "truncated");
    options.raw = "u8:4611686018427387904x4";
    assert_refused(&options, MERCER_ERROR_FORMAT, "odd.bin: *larger");
}

static void test_counts_disagree(void **state)
{
    (void)state;
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 9, 0, 9};
    mercer_dataset_options options =
        data_options(text_file("x.csv", "1,2\n3,4\n"), byte_file("y", labels, sizeof labels));
    assert_refused(&options, MERCER_ERROR_SHAPE, "y has 3 targets, ");
    assert_refused(&options, MERCER_ERROR_SHAPE, "x.csv has 2 samples");
}

/* ---- Reading ------------------------------------------------------------------------------------------------- */

static mercer_dataset *open_classes(void)
{
    mercer_dataset_options options = data_options(text_file("t.csv", "1,2,b\n3,4,a\n5,6,b\n7,8,c\n"), NULL);
    options.target = "-1";
    return open_with(&options);
}

static void test_read(void **state)
{
    (void)state;
    mercer_dataset *data = open_classes();
    float x[8];
    double wide[8], y[12];
    int32_t labels[4];
    mercer_matrix X = mrc_view(x, 3, 2, MERCER_F32), Y = mrc_view(y, 3, 3, MERCER_F64);
    const int64_t rows[] = {3, 0, 3};
    assert_succeeds(context, mercer_dataset_read(data, &X, &Y, labels, NULL, rows, 0));
    assert_true(x[0] == 7 && x[1] == 8 && x[2] == 1 && x[5] == 8);
    assert_true(y[0] == 0 && y[2] == 1 && y[4] == 1 && y[3] == 0 && y[8] == 1);
    assert_true(labels[0] == 2 && labels[1] == 1 && labels[2] == 2);
    X = mrc_view(wide, 2, 2, MERCER_F64); /* rows from row 1 on, converted to another type */
    assert_succeeds(context, mercer_dataset_read(data, &X, NULL, labels, NULL, NULL, 1));
    assert_true(wide[0] == 3 && wide[3] == 6 && labels[0] == 0 && labels[1] == 1);
    mercer_preprocess *scale;
    assert_succeeds(context, mercer_preprocess_fit(&scale, context, "scale:factor=2", data));
    assert_succeeds(context, mercer_dataset_read(data, &X, NULL, NULL, scale, rows, 0));
    assert_true(wide[0] == 14 && wide[1] == 16 && wide[2] == 2 && wide[3] == 4);
    mercer_preprocess_free(scale);
    mercer_dataset_free(data);
}

static void test_read_refusals(void **state)
{
    (void)state;
    mercer_dataset *data = open_classes();
    float x[12];
    float y[12];
    int32_t labels[4];
    mercer_matrix X = mrc_view(x, 3, 2, MERCER_F32), Y = mrc_view(y, 3, 3, MERCER_F32), bad;
    const int64_t rows[] = {3, 4, 0}, negative[] = {0, -1, 0};
    assert_fails(context, mercer_dataset_read(data, &X, NULL, NULL, NULL, rows, 0), MERCER_ERROR_SHAPE, "rows[1] is 4");
    assert_fails(context, mercer_dataset_read(data, &X, NULL, NULL, NULL, negative, 0), MERCER_ERROR_SHAPE, "rows[1]");
    assert_fails(context, mercer_dataset_read(data, &X, NULL, NULL, NULL, NULL, 2), MERCER_ERROR_SHAPE, "3 rows");
    assert_fails(context, mercer_dataset_read(data, &X, NULL, NULL, NULL, NULL, -1), MERCER_ERROR_SHAPE, "row -1 ");
    assert_fails(context, mercer_dataset_read(data, &X, NULL, NULL, NULL, NULL, INT64_MAX - 1), MERCER_ERROR_SHAPE,
                 "3 rows*9223372036854775806*4");
    bad = X, bad.cols = 1;
    assert_fails(context, mercer_dataset_read(data, &bad, NULL, NULL, NULL, NULL, 0), MERCER_ERROR_SHAPE, "X");
    bad = X, bad.dtype = MERCER_U8;
    assert_fails(context, mercer_dataset_read(data, &bad, NULL, NULL, NULL, NULL, 0), MERCER_ERROR_DTYPE, "X");
    bad = Y, bad.cols = 2;
    assert_fails(context, mercer_dataset_read(data, &X, &bad, NULL, NULL, NULL, 0), MERCER_ERROR_SHAPE, "Y");
    bad = Y, bad.dtype = MERCER_F16;
    assert_fails(context, mercer_dataset_read(data, &X, &bad, NULL, NULL, NULL, 0), MERCER_ERROR_DTYPE, "Y");
    bad = Y, bad.data = x;
    assert_fails(context, mercer_dataset_read(data, &X, &bad, NULL, NULL, NULL, 0), MERCER_ERROR_OVERLAP, "Y");
    assert_fails(NULL, mercer_dataset_read(NULL, &X, NULL, NULL, NULL, NULL, 0), MERCER_ERROR_ARGUMENT, "dataset");
    mercer_preprocess *fitted;
    mercer_matrix other = mrc_view(x, 3, 3, MERCER_F32);
    for (int i = 0; i < 9; i++) x[i] = (float)(i * i);
    assert_succeeds(context, fit_to_matrix(&fitted, context, "standardize", &other));
    assert_fails(context, mercer_dataset_read(data, &X, NULL, NULL, fitted, NULL, 0), MERCER_ERROR_SHAPE,
                 "preprocess*3 features");
    mercer_preprocess_free(fitted);
    mercer_dataset_free(data);
    mercer_dataset_options options = data_options(in_folder("t.csv"), NULL);
    options.target = "-1", options.task = MERCER_TASK_UNLABELED;
    data = open_with(&options);
    assert_fails(context, mercer_dataset_read(data, &X, &Y, NULL, NULL, NULL, 0), MERCER_ERROR_ARGUMENT, "no targets");
    assert_fails(context, mercer_dataset_read(data, &X, NULL, labels, NULL, NULL, 0), MERCER_ERROR_ARGUMENT,
                 "no classes");
    mercer_dataset_info info = {0};
    assert_fails(context, mercer_dataset_query(data, &info), MERCER_ERROR_ARGUMENT, "info");
    assert_fails(context, mercer_dataset_query(data, NULL), MERCER_ERROR_ARGUMENT, "info");
    mercer_dataset_free(data);
}

/* Synthetic datasets also support reading, writing and fingerprints. */
static void test_synthetic(void **state)
{
    (void)state;
    mercer_dataset *data, *later;
    assert_succeeds(context, mercer_dataset_synthesize(&data, context, "digits", 0, 300, 1));
    assert_succeeds(context, mercer_dataset_synthesize(&later, context, "digits", 1, 300, 1));
    const char *x = in_folder("x.npy"), *y = in_folder("y.npy");
    assert_succeeds(context, mercer_dataset_write(data, x, y));
    mercer_dataset *stored = open_data(x, y);
    mercer_dataset_info info = about(stored);
    assert_int_equal(info.rows, 300);
    assert_int_equal(info.height, 28);
    assert_int_equal(info.outputs, 10);
    unsigned char *made = malloc(300 * 784);
    mercer_matrix X = mrc_view(made, 300, 784, MERCER_U8);
    int32_t labels[300];
    assert_succeeds(context, mercer_dataset_read(data, &X, NULL, labels, NULL, NULL, 0));
    assert_memory_equal(made, mercer_dataset_samples(stored).data, 300 * 784);
    assert_memory_equal(labels, mercer_dataset_labels(stored), sizeof labels);
    uint64_t one, two, again;
    assert_succeeds(context, mercer_dataset_fingerprint(data, &one));
    assert_succeeds(context, mercer_dataset_fingerprint(later, &two));
    assert_succeeds(context, mercer_dataset_fingerprint(data, &again));
    assert_true(one == again && one != two);
    free(made);
    mercer_dataset_free(stored), mercer_dataset_free(data), mercer_dataset_free(later);
}

/* ---- Fingerprint --------------------------------------------------------------------------------------------- */

/* The hash of large data covers only some blocks, including the first and last byte; a checksum covers every byte. */
static void test_checksum(void **state)
{
    (void)state;
    enum { SIZE = 6 << 20, LIMIT = 5 << 20, BLOCK = 1 << 16, BLOCKS = 64 };
    unsigned char *bytes = calloc(SIZE, 1);
    /* Block i of 64 begins at (SIZE - BLOCK) i / 63; on average 65,536 of 98,304 bytes are hashed. */
    const int64_t seen[] = {0, BLOCK - 1, SIZE - 1, SIZE - BLOCK, (SIZE - BLOCK) / 63 * 20 + 5},
                  unseen[] = {BLOCK + 1, (SIZE - BLOCK) / 63 * 20 + BLOCK + 2000, SIZE - BLOCK - 1};
    for (int pass = 0; pass < 2; pass++) {
        uint64_t base[3] = {0};
        int64_t count = pass ? 3 : 5;
        for (int64_t i = -1; i < count; i++) {
            int64_t place = i < 0 ? 0 : (pass ? unseen : seen)[i];
            bytes[place] ^= i >= 0;
            mercer_dataset_options options = data_options(byte_file("many", bytes, SIZE), NULL);
            options.format = "raw", options.raw = "u8:1024";
            mercer_dataset *data = open_with(&options);
            uint64_t found[3];
            assert_succeeds(context, mrc_dataset_hash(data, LIMIT, &found[0]));
            assert_succeeds(context, mercer_dataset_checksum(data, &found[1]));
            assert_succeeds(context, mercer_dataset_fingerprint(data, &found[2]));
            mercer_dataset_free(data);
            bytes[place] ^= i >= 0;
            if (i < 0) memcpy(base, found, sizeof base);
            assert_that((found[0] != base[0]) == (i >= 0 && pass == 0), "byte %lld", (long long)place);
            assert_that((found[1] != base[1]) == (i >= 0), "byte %lld", (long long)place);
            assert_true(found[1] == found[2] && found[0] != found[1]);
        }
    }
    free(bytes);
}

static uint64_t fingerprint_of(const char *x, const char *spec, const char *y)
{
    mercer_dataset_options options = data_options(x, y);
    options.raw = spec;
    mercer_dataset *data = open_with(&options);
    uint64_t out = 0;
    assert_succeeds(context, mercer_dataset_fingerprint(data, &out));
    mercer_dataset_free(data);
    return out;
}

static void test_fingerprint(void **state)
{
    (void)state;
    enum { SIZE = 5 << 20 }; /* larger than the size up to which all bytes are hashed */
    unsigned char *content = calloc(SIZE, 1);
    for (int i = 0; i < SIZE; i++) content[i] = (unsigned char)(i * 7 + i / 251);
    char path[FOLDER_CHARS + 128];
    snprintf(path, sizeof path, "%s", byte_file("x.raw", content, SIZE));
    uint64_t base = fingerprint_of(path, "u8:1024", NULL);
    assert_true(base == fingerprint_of(path, "u8:1024", NULL));
    assert_true(base != fingerprint_of(path, "u8:512", NULL));
    assert_true(base != fingerprint_of(path, "f16:512", NULL));
    content[0] ^= 1;
    byte_file("x.raw", content, SIZE);
    assert_true(base != fingerprint_of(path, "u8:1024", NULL)); /* the hash covers the first and the last byte */
    content[0] ^= 1, content[SIZE - 1] ^= 1;
    byte_file("x.raw", content, SIZE);
    assert_true(base != fingerprint_of(path, "u8:1024", NULL));
    byte_file("x.raw", content, 4);
    uint64_t labeled = fingerprint_of(path, "u8:1", text_file("y.txt", "a\nb\na\nb\n"));
    assert_true(labeled != fingerprint_of(path, "u8:1", NULL));
    assert_true(labeled != fingerprint_of(path, "u8:1", text_file("y.txt", "a\nb\nb\nb\n")));
    assert_true(labeled != fingerprint_of(path, "u8:1", text_file("y.txt", "a\nc\na\nc\n"))); /* other class names */
    assert_true(labeled == fingerprint_of(path, "u8:1", text_file("y.txt", "a\nb\na\nb\n")));
    free(content);
    assert_fails(NULL, mercer_dataset_fingerprint(NULL, &base), MERCER_ERROR_ARGUMENT, "dataset");
    assert_fails(NULL, mercer_dataset_checksum(NULL, &base), MERCER_ERROR_ARGUMENT, "dataset");
}

/* ---- Failing allocations ------------------------------------------------------------------------------------- */

static void test_out_of_memory(void **state)
{
    (void)state;
    struct {
        const char *x, *y, *target;
    } cases[] = {{text_file("a.csv", "p,q,label\n1,2,\"a \"\"b\"\"\"\n3,4,c\n"), NULL, "label"},
                 {text_file("b.svm", "1 1:1\n2 2:2\n"), NULL, NULL},
                 {text_file("c.csv", "1,2\n3,4\n"), text_file("d.txt", "cat\ndog\n"), NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset_options options = data_options(cases[i].x, cases[i].y);
        options.target = cases[i].target;
        for (int64_t fail_at = 1;; fail_at++) {
            mercer_dataset *data = NULL;
            int64_t live = allocator.live;
            allocator.requests = 0, allocator.fail_at = fail_at;
            mercer_status status = mercer_dataset_open(&data, context, &options);
            allocator.fail_at = 0;
            if (status == MERCER_OK) {
                assert_true(fail_at > 5);
                mercer_dataset_free(data);
                break;
            }
            assert_int_equal(status, MERCER_ERROR_MEMORY);
            assert_null(data);
            assert_int_equal(allocator.live, live);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options),         cmocka_unit_test(test_formats),
                                       cmocka_unit_test(test_targets_missing), cmocka_unit_test(test_raw),
                                       cmocka_unit_test(test_counts_disagree), cmocka_unit_test(test_read),
                                       cmocka_unit_test(test_read_refusals),   cmocka_unit_test(test_synthetic),
                                       cmocka_unit_test(test_fingerprint),     cmocka_unit_test(test_checksum),
                                       cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

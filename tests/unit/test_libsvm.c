/* SPDX-License-Identifier: BSD-3-Clause */
/* LIBSVM text: converted to a dense matrix; errors name the invalid word and its line. */
#include "support/datasets.h"

static void refuse(const char *text, mercer_status status, const char *part)
{
    mercer_dataset_options options = data_options(text_file("bad.svm", text), NULL);
    assert_refused(&options, status, part);
    assert_refused(&options, status, "bad.svm: ");
}

static void test_dense(void **state)
{
    (void)state;
    mercer_dataset *data =
        open_data(text_file("x.svm", "+1 1:0.5 3:-2 # a remark: 4:4\n\n# 9:9\n-1 2:1e1\r\n1\n-1\t3:7 \n"), NULL);
    assert_samples(data, 4, 3, (double[]){0.5, 0, -2, 0, 10, 0, 0, 0, 0, 0, 0, 7});
    assert_classes(data, "-1 1", (int32_t[]){1, 0, 1, 0});
    assert_string_equal(about(data).format, "libsvm");
    assert_int_equal(about(data).dtype, MERCER_F32);
    mercer_dataset_free(data);
    data = open_data(text_file("x.svm", "a 0:1 2:3\nb 1:2"), NULL); /* a 0 occurs: indices count from 0 */
    assert_samples(data, 2, 3, (double[]){1, 0, 3, 0, 2, 0});
    assert_classes(data, "a b", (int32_t[]){0, 1});
    mercer_dataset_free(data);
    data = open_data(text_file("x.svm", "1 0:5\n2 0:6\n"), NULL);
    assert_samples(data, 2, 1, (double[]){5, 6});
    mercer_dataset_free(data);
    data = open_data(text_file("x.svm", "1 0000000002:5 100:7\n"), NULL); /* any index of up to ten digits */
    mercer_matrix x = mercer_dataset_samples(data);
    assert_true(x.cols == 100 && mrc_load(&x, 0, 1) == 5 && mrc_load(&x, 0, 99) == 7);
    mercer_dataset_free(data);
    data = open_data(text_file("nameless", "0.5 1:1\n0.25 1:2\n"), NULL); /* recognized by its contents */
    assert_samples(data, 2, 1, (double[]){1, 2});
    assert_values(data, 1, (double[]){0.5, 0.25});
    mercer_dataset_free(data);
    static const char text[] = "1 1:1 2:2\n2 1:3 2:4\n";
    data = open_data(gzip_file("x.libsvm.gz", text, sizeof text - 1), NULL);
    assert_samples(data, 2, 2, (double[]){1, 2, 3, 4});
    mercer_dataset_free(data);
}

/* Return whether the LIBSVM reader accepted the text: it parsed it, or reported what is wrong with it. */
static bool is_taken(const char *text)
{
    static const char *const words[] = {"index:value", "begin*index", "label", "number"};
    mercer_dataset *data = NULL;
    mercer_dataset_options options = data_options(text_file("nameless", text), NULL);
    options.task = MERCER_TASK_UNLABELED;
    bool taken = false;
    if (mercer_dataset_open(&data, context, &options) == MERCER_OK)
        taken = strcmp(about(data).format, "libsvm") == 0;
    else
        for (int i = 0; i < 4; i++) taken = taken || mentions(mercer_last_error(context), words[i]);
    mercer_dataset_free(data);
    return taken;
}

/* Only the second word of a text determines whether it is recognized as LIBSVM. */
static void test_recognized(void **state)
{
    (void)state;
    static const char *const sparse[] = {"1 1:2\n", "a \t2:3", "0.5\t 0:1\n", "1 1:", "1 2:1 # x", " 1:2"};
    static const char *const others[] = {"1", "1\n1:2\n", "1 x:2\n", "1 :2\n", "1 2 3:4\n", "1 12", "1:2\n", "1 1-2\n"};
    for (size_t i = 0; i < sizeof sparse / sizeof *sparse; i++)
        assert_that(is_taken(sparse[i]), "'%s': %s", sparse[i], mercer_last_error(context));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_that(!is_taken(others[i]), "'%s': %s", others[i], mercer_last_error(context));
    /* Only the beginning of a file is examined. */
    char wide[5000];
    for (int beyond = 0; beyond < 2; beyond++) {
        memset(wide, '1', sizeof wide);
        memcpy(wide + 4093 + beyond, " 1:2\n", 6);
        assert_int_equal(is_taken(wide), !beyond);
    }
}

static void test_options(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(text_file("x.svm", "1 1:1 2:2\n2 1:3\n3 2:4\n"), NULL);
    options.features = 4;
    mercer_dataset *data = open_with(&options);
    assert_samples(data, 3, 4, (double[]){1, 2, 0, 0, 3, 0, 0, 0, 0, 4, 0, 0});
    mercer_dataset_free(data);
    options.features = 1;
    assert_refused(&options, MERCER_ERROR_MISMATCH, "x.svm: index 2");
    options.features = 0;
    options.first = 1, options.rows = 1;
    data = open_with(&options);
    assert_samples(data, 1, 2, (double[]){3, 0});
    mercer_dataset_free(data);
    options.rows = 3;
    assert_refused(&options, MERCER_ERROR_SHAPE, "only 3");
    options.first = options.rows = 0;
    options.task = MERCER_TASK_UNLABELED;
    data = open_with(&options);
    assert_int_equal(about(data).outputs, 0);
    mercer_dataset_free(data);
    options.task = MERCER_TASK_REGRESSION;
    data = open_with(&options);
    assert_values(data, 1, (double[]){1, 2, 3});
    mercer_dataset_free(data);
    options.y = text_file("y.txt", "p\nq\np\n"); /* targets from another file */
    options.task = MERCER_TASK_AUTO;
    data = open_with(&options);
    assert_classes(data, "p q", (int32_t[]){0, 1, 0});
    mercer_dataset_free(data);
    options.features = -1;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "features");
    options = data_options(text_file("x.svm", "1\n2\n"), NULL);
    assert_refused(&options, MERCER_ERROR_FORMAT, "index:value");
    options.features = 2;
    data = open_with(&options);
    assert_samples(data, 2, 2, (double[]){0, 0, 0, 0});
    mercer_dataset_free(data);
}

/* A few bytes that would expand to a large matrix. */
static void test_memory(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(text_file("x.svm", "1 1:1 2147483647:2\n2 1:3\n"), NULL);
    options.memory = 1000000000;
    assert_refused(&options, MERCER_ERROR_MEMORY, "x.svm: needs 17179869200 more");
    options.memory = 0;
    options.features = INT64_MAX;
    assert_refused(&options, MERCER_ERROR_MEMORY, "x.svm: needs");
}

/* If the number of features is not given, memory is limited to 64 MiB + 4096 bytes per byte of the file, for any
   indices in the file. */
static void test_claims(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(text_file("x.svm", "1 20000000:2\n2 1:3\n"), NULL);
    assert_refused(&options, MERCER_ERROR_MEMORY, "x.svm: index 20000000");
    options = data_options(text_file("x.svm", "1 5000000:2\n2 1:3\n"), NULL); /* 40 MB are accepted */
    mercer_dataset *data = open_with(&options);
    assert_int_equal(about(data).features, 5000000);
    mercer_dataset_free(data);
    /* 64 MiB + 89 KiB are needed, 64 MiB + 72 KiB allowed. */
    options = data_options(text_file("x.svm", "1 8400000:2\n2 1:3\n"), NULL);
    assert_refused(&options, MERCER_ERROR_MEMORY, "x.svm: index 8400000*67200024*18");
    options.features = 8400000;
    mercer_dataset_free(open_with(&options));
}

static void test_bad_text(void **state)
{
    (void)state;
    const mercer_status format = MERCER_ERROR_FORMAT;
    refuse("1 1:1\n1:2 2:3\n", format, "line 2: '1:2'");
    refuse("1 1:1\n2 2\n", format, "line 2: '2' *index:value");
    refuse("1 1:1\n2 x:2\n", format, "line 2: 'x:2' *begin");
    refuse("1 1:1\n2 :2\n", format, "line 2: ':2' *begin");
    refuse("1 1:1\n2 00000000002:2\n", format, "line 2: '00000000002:2' *begin");
    refuse("1 1:1\n2 -1:2\n", format, "line 2: '-1:2' *begin");
    refuse("1 1:1\n2 2147483648:2\n", format, "line 2: '2147483648:2' *begin");
    refuse("1 1:1\n2 99999999999999999999:2\n", format, "line 2: '99999999999999999999:2' *begin");
    refuse("1 2:1 2:2\n", format, "line 1: '2:2' *larger");
    refuse("1 2:1 1:2\n", format, "line 1: '1:2' *larger");
    refuse("1 1:\n", format, "line 1: '1:'");
    refuse("1 1:abc\n", format, "line 1: '1:abc'");
    refuse("1 1:nan\n", format, "number");
    refuse("1 1:1e40\n", format, "line 1: '1:1e40'*f32");
    refuse("1 1:inf\n", format, "line 1: '1:inf'*f32");
    refuse("1 qid:3 1:1\n", format, "ranking");
    refuse("1,2 1:1\n", format, "several labels");
    refuse("# nothing\n\n", format, "samples");
    refuse("inf 1:1\n", MERCER_ERROR_DATA, "line 1: *target*infinite");
}

/* A warning names the first index with values that floats cannot distinguish. */
static void test_coarse_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* NULL: no warning */
    } cases[] = {{"1 1:0.5 2:1700000001\n2 1:1 2:1700000050\n", "index 2: *1700000050*rounded"},
                 {"1 2:1000000.001\n2 2:1000000.002\n", "index 2: *1000000.00"},
                 {"1 2:1000000.001\n2 1:3\n3 2:1000000.002\n", NULL}, /* 0 is a value, too, so the range is wide */
                 {"1 1:0.1\n2 1:0.1\n", NULL},
                 {"1 1:0.1 3:12.345\n2 1:0.2\n3 1:16777216\n", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset_options options = data_options(text_file("x.svm", cases[i].text), NULL);
        assert_warning(&options, cases[i].says);
    }
}

/* The format does not specify whether indices count from 0, so counting from 0 is a guess. */
static void test_indices_from_zero(void **state)
{
    (void)state;
    static const char says[] = "x.svm: *0";
    mercer_dataset_options options = data_options(text_file("x.svm", "1 0:1 2:3\n2 1:4\n"), NULL);
    assert_warning(&options, says);
    options.first = 1; /* the rows without index 0 */
    assert_warning(&options, says);
    options = data_options(text_file("x.svm", "1 1:1 2:3\n2 1:4\n"), NULL);
    assert_warning(&options, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dense),         cmocka_unit_test(test_recognized),
                                       cmocka_unit_test(test_options),       cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_claims),        cmocka_unit_test(test_bad_text),
                                       cmocka_unit_test(test_coarse_values), cmocka_unit_test(test_indices_from_zero)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

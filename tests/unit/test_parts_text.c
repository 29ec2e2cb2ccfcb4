/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets in several text files: column names in the first file or in each, targets, sparse rows, error messages. */
#include "support/parts.h"

static int clear(void **state)
{
    (void)state;
    folder_clear();
    return 0;
}

/* Writes files NAME-1, NAME-2, ... with these contents; NULL ends the list. */
static void text_files(const char *name, const char *const *texts)
{
    char path[64];
    for (int i = 0; texts[i]; i++) {
        snprintf(path, sizeof path, "%s-%d", name, i + 1);
        text_file(path, texts[i]);
    }
}

#define texts(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_csv(void **state)
{
    (void)state;
    const char *whole = "a,b,label\n1,2,cat\n3,4,dog\n5,6,cat\n";
    const char *const *cuts[] = {texts("a,b,label\n1,2,cat\n3,4,dog\n5,6,cat\n"),
                                 texts("a,b,label\n1,2,cat\n", "3,4,dog\n5,6,cat\n"), /* files as written by `split` */
                                 texts("a,b,label\n1,2,cat\n", "a,b,label\n3,4,dog\n", "a, b ,label\n5,6,cat\n"),
                                 texts("a,b,label\n", "1,2,cat\n", "a,b,label\n", "", "3,4,dog\n5,6,cat\n\n"),
                                 texts("", "a,b,label\n1,2,cat\n3,4,dog\n5,6,cat"),
                                 texts("a,b,label\n1,2,cat\n3,4,dog\n", "\n", "5,6,cat\n")};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        folder_clear();
        text_files("part", cuts[i]);
        text_file("whole", whole);
        mercer_dataset_options one = data_options(all_of("whole"), NULL);
        mercer_dataset_options several = data_options(all_of("part-*"), NULL);
        mercer_dataset *data = open_with(&several);
        assert_samples(data, 3, 2, (const double[]){1, 2, 3, 4, 5, 6});
        assert_classes(data, "cat dog", (const int32_t[]){0, 1, 0});
        assert_same_data(open_with(&one), data);
        one.first = several.first = 1, one.rows = several.rows = 2;
        data = open_with(&several);
        assert_same_data(open_with(&one), data);
    }
    folder_clear();
    text_files("part", texts("x,y\n1,2\n", "x,y\n3,4\n"));
    mercer_dataset_options options = data_options(all_of("part-*"), NULL);
    options.header = MERCER_ON, options.target = "-1", options.task = MERCER_TASK_REGRESSION;
    mercer_dataset *data = open_with(&options);
    assert_samples(data, 2, 1, (const double[]){1, 3});
    assert_values(data, 1, (const double[]){2, 4});
    mercer_dataset_free(data);
    text_files("part", texts("5,6\n1,2\n", "3,4\n"));
    options.header = MERCER_OFF;
    data = open_with(&options);
    assert_samples(data, 3, 1, (const double[]){5, 1, 3});
    mercer_dataset_free(data);
    gzip_file("g-1.csv.gz", "1,2\n", 4), gzip_file("g-2.csv.gz", "", 0), text_file("g-3.csv", "3,4\n");
    options = data_options(all_of("g-*"), NULL), options.task = MERCER_TASK_UNLABELED;
    data = open_with(&options);
    assert_samples(data, 2, 2, (const double[]){1, 2, 3, 4});
    mercer_dataset_free(data);
}

/* The kind of the targets is decided from all files. */
static void test_targets(void **state)
{
    (void)state;
    text_file("x.csv", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    text_file("y", "1\n2\n3\n1\n2\n3\n1\n2\n3\n");
    const char *const *cuts[] = {texts("1\n2\n3\n1\n", "2\n3\n1\n", "", "2\n3\n"),
                                 texts("t\n1\n2\n3\n1\n", "2\n3\n1\n2\n3\n"),
                                 texts("t\n1\n2\n3\n1\n", "t\n2\n3\n1\n2\n3\n")};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        unlink(in_folder("t-3")), unlink(in_folder("t-4"));
        text_files("t", cuts[i]);
        mercer_dataset *data = open_data(in_folder("x.csv"), in_folder("t-*"));
        assert_classes(data, "1 2 3", (const int32_t[]){0, 1, 2, 0, 1, 2, 0, 1, 2});
        assert_same_data(open_data(in_folder("x.csv"), in_folder("y")), data);
    }
    /* Class names after a header, in the first file or in every file. The header is recognized only because there is
       one record more than expected. */
    text_files("n", texts("animal\ncat\ndog\ncat\ncat\n", "animal\ndog\ndog\ncat\ncat\ncat\n"));
    mercer_dataset *data = open_data(in_folder("x.csv"), in_folder("n-*"));
    assert_classes(data, "cat dog", (const int32_t[]){0, 1, 0, 0, 1, 1, 0, 0, 0});
    mercer_dataset_free(data);
    text_files("n", texts("animal\ncat\ndog\ncat\ncat\n", "dog\ndog\ncat\ncat\ncat\n"));
    data = open_data(in_folder("x.csv"), in_folder("n-*"));
    assert_classes(data, "cat dog", (const int32_t[]){0, 1, 0, 0, 1, 1, 0, 0, 0});
    mercer_dataset_free(data);
    text_files("n", texts("id,kind\n1,a\n2,b\n3,a\n4,a\n", "id,kind\n5,b\n6,b\n7,b\n8,a\n9,a\n"));
    mercer_dataset_options options = data_options(all_of("x.csv"), all_of("n-*"));
    options.y_format = "csv", options.target = "kind";
    data = open_with(&options);
    assert_classes(data, "a b", (const int32_t[]){0, 1, 0, 0, 1, 1, 1, 0, 0});
    mercer_dataset_free(data);
}

static void test_libsvm(void **state)
{
    (void)state;
    text_file("whole.svm", "a 1:1\nb 3:2\na\nb 0:5 2:1\n");
    const char *const *cuts[] = {
        texts("a 1:1\nb 3:2\n", "a\nb 0:5 2:1\n"), /* indices start at 0, which only the second file shows */
        texts("# nothing\n", "a 1:1\nb 3:2\na\n", "", "b 0:5 2:1")};
    for (int i = 0; i < 2; i++) {
        text_files("part", cuts[i]);
        mercer_dataset_options one = data_options(all_of("whole.svm"), NULL);
        mercer_dataset_options several = data_options(all_of("part-*"), NULL);
        one.format = several.format = "libsvm";
        mercer_dataset *data = open_with(&several);
        assert_samples(data, 4, 4, (const double[]){0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 5, 0, 1, 0});
        assert_same_data(open_with(&one), data);
        one.first = several.first = 1, one.rows = several.rows = 2;
        data = open_with(&several);
        assert_same_data(open_with(&one), data);
    }
    mercer_dataset_options options = data_options(all_of("part-*"), NULL);
    options.format = "libsvm", options.features = 2;
    assert_refused(&options, MERCER_ERROR_MISMATCH, "part-*: index 3");
    text_file("part-3", "c 2:1\nc 2:x\n"), options.features = 0;
    assert_refused(&options, MERCER_ERROR_FORMAT, "part-3: line 2: '2:x'");
}

/* Joins names in the test's folder into a list. */
static const char *list_of(const char *const *names)
{
    static char list[4096];
    list[0] = 0;
    for (int i = 0; names[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? "\x1f" : "", in_folder(names[i]));
    return list;
}

/* A list of names and patterns is read in its order. Every failing allocation is an error without leaks. */
static void test_lists(void **state)
{
    (void)state;
    text_files("part", texts("a,b,label\n1,2,cat\n", "a,b,label\n3,4,dog\n", "a,b,label\n5,6,cat\n"));
    mercer_dataset_options options = data_options(list_of(texts("part-3", "part-[12]")), NULL);
    mercer_dataset *data = open_with(&options);
    assert_samples(data, 3, 2, (const double[]){5, 6, 1, 2, 3, 4});
    mercer_dataset_free(data);
    int64_t count = 0;
    for (mercer_status status = MERCER_ERROR_MEMORY; status == MERCER_ERROR_MEMORY; count++) {
        allocator.requests = 0, allocator.fail_at = count + 1;
        data = NULL;
        status = mercer_dataset_open(&data, context, &options);
        allocator.fail_at = 0;
        assert_true(status == MERCER_OK || (status == MERCER_ERROR_MEMORY && !data));
    }
    assert_true(count > 3);
    mercer_dataset_free(data);
    options.x = list_of(texts("part-1", "none"));
    assert_refused(&options, MERCER_ERROR_MISSING, "none: cannot open");
    options.x = list_of(texts("part-1", "none-*"));
    assert_refused(&options, MERCER_ERROR_MISSING, "none-*: *file");
    text_file("odd\x1fname", "a,b,label\n7,8,dog\n"); /* a file of exactly this name is read */
    options.x = in_folder("odd\x1fname");
    data = open_with(&options);
    assert_samples(data, 1, 2, (const double[]){7, 8});
    mercer_dataset_free(data);
}

static void test_refused(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(all_of("p-*"), NULL);
    text_files("p", texts("a,b,label\n1,2,x\n", "1,x\n"));
    assert_refused(&options, MERCER_ERROR_SHAPE, "p-2: has 2 columns, but ");
    text_files("p", texts("a,b,label\n1,2,x\n", "a,c,label\n1,2,x\n"));
    assert_refused(&options, MERCER_ERROR_MISMATCH, "p-2: column 1 (from 0) is 'c', but 'b' in ");
    text_files("p", texts("a,b,label\n1,2,x\n", "1,2,x\n1,z,x\n"));
    options.kinds = "b:number";
    assert_refused(&options, MERCER_ERROR_DATA, "p-2: line 2, column 1 *'z'*number");
    options.kinds = NULL;
    text_files("p", texts("a,b,label\n1,2,x\n", "1,2,x\n1,2\n"));
    assert_refused(&options, MERCER_ERROR_FORMAT, "p-2: line 2 has fewer columns");
    text_files("p", texts("a,b,label\n1,2,x\n", "1,2,x\n1,\"2,x\n"));
    assert_refused(&options, MERCER_ERROR_FORMAT, "p-2: line 2");
    text_files("p", texts("a,b,label\n1,2,3\n", "1,2,3\n1,2,cat\n"));
    options.task = MERCER_TASK_REGRESSION;
    assert_refused(&options, MERCER_ERROR_DATA, "p-2: line 2: target 'cat'*number");
    static const char *const known[] = {"3", "dog"};
    options.task = MERCER_TASK_AUTO, options.labels = known, options.label_count = 2;
    assert_refused(&options, MERCER_ERROR_DATA, "p-2: line 2: label 'cat'*2 ");
    options.labels = NULL, options.label_count = 0;
    text_files("p", texts("a,b,label\n1,2,3\n", "1,2,\n"));
    mercer_dataset *shorter = open_with(&options);
    assert_samples(shorter, 1, 2, (double[]){1, 2});
    assert_int_equal(about(shorter).left_out, 1);
    mercer_dataset_free(shorter);
    text_files("p", texts("\n", ""));
    options.format = "csv";
    assert_refused(&options, MERCER_ERROR_FORMAT, "p-*");
    text_files("p", texts("a,b,label\n", ""));
    assert_refused(&options, MERCER_ERROR_FORMAT, "p-*");
    text_files("p", texts("a,b,label\n1,2,x\n", "1,2,x\n"));
    options.memory = 10;
    assert_refused(&options, MERCER_ERROR_MEMORY, "p-*: needs 40 more bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_csv, clear),     cmocka_unit_test_setup(test_targets, clear),
        cmocka_unit_test_setup(test_libsvm, clear),  cmocka_unit_test_setup(test_lists, clear),
        cmocka_unit_test_setup(test_refused, clear),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

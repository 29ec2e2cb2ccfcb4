/* SPDX-License-Identifier: BSD-3-Clause */
/* CSV and TSV: separators, quotes, headers, targets, and every error of a cell, a line or a column. */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "data/table/number.h"

#include <math.h>

static mercer_dataset *open_text(const char *name, const char *text, const char *target)
{
    mercer_dataset_options options = data_options(text_file(name, text), NULL);
    options.target = target;
    if (!target) options.task = MERCER_TASK_UNLABELED;
    return open_with(&options);
}

static void refuse(const char *text, const char *target, mercer_status status, const char *part)
{
    mercer_dataset_options options = data_options(text_file("bad.csv", text), NULL);
    options.target = target;
    assert_refused(&options, status, part);
    assert_refused(&options, status, "bad.csv: ");
}

/* ---- Fields -------------------------------------------------------------------------------------------------- */

static const double six[] = {1, -2.5, 3e2, 4, 5, 6};

static void test_separators(void **state)
{
    (void)state;
    static const char *const texts[] = {"1,-2.5\n3e2,4\n5,6\n",
                                        "1;-2.5\n3e2;4\n5;6",
                                        "1\t-2.5\n3e2\t4\n5\t6\n",
                                        "1,-2.5\r\n3e2,4\r\n5,6\r\n",
                                        "1,-2.5\r\n3e2,4\r\n5,6\r",
                                        "\xef\xbb\xbf"
                                        "1,-2.5\n3e2,4\n5,6\n",
                                        " 1 , -2.5\n3e2,\t4\n5,6 \n",
                                        "\"1\",\"-2.5\"\n\"3e2\",\"4\"\n5, \"6\" \n",
                                        "1,-2.5\n3e2,4\n5,6\n\n\r\n  \n",
                                        "a,b\n1,-2.5\n3e2,4\n5,6\n",
                                        "\"a\",\"b, \"\"c\"\"\nd\"\n1,-2.5\n3e2,4\n5,6\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mercer_dataset *data = open_text("x.csv", texts[i], NULL);
        assert_samples(data, 3, 2, six);
        assert_int_equal(about(data).dtype, MERCER_F32);
        assert_int_equal(about(data).mapped, 0);
        assert_string_equal(about(data).format, "csv");
        mercer_dataset_free(data);
    }
    mercer_dataset *data = open_text("x.tsv", "1\t-2.5\n3e2\t4\n5\t6\n", NULL);
    assert_samples(data, 3, 2, six);
    assert_string_equal(about(data).format, "tsv");
    mercer_dataset_free(data);
    static const char packed[] = "1,-2.5\n3e2,4\n5,6\n";
    mercer_dataset_options options = data_options(gzip_file("x.csv.gz", packed, sizeof packed - 1), NULL);
    options.task = MERCER_TASK_UNLABELED;
    data = open_with(&options);
    assert_samples(data, 3, 2, six);
    mercer_dataset_free(data);
    options.x = text_file("nameless", packed); /* no file extension: recognized by the content */
    data = open_with(&options);
    assert_string_equal(about(data).format, "csv");
    mercer_dataset_free(data);
}

static void test_names(void **state)
{
    (void)state;
    mercer_dataset *data = open_text("x.csv", "\"a\",\" b \"\"c\"\" \",label , d\n1,2,x,3\n4,5,y,6\n", "label");
    mercer_dataset_info info = about(data);
    assert_int_equal(info.features, 3);
    assert_string_equal(info.feature_names[0], "a");
    assert_string_equal(info.feature_names[1], "b \"c\"");
    assert_string_equal(info.feature_names[2], "d");
    assert_samples(data, 2, 3, (double[]){1, 2, 3, 4, 5, 6});
    assert_classes(data, "x y", (int32_t[]){0, 1});
    mercer_dataset_free(data);
}

/* ---- Header -------------------------------------------------------------------------------------------------- */

static void test_header_detection(void **state)
{
    (void)state;
    struct {
        const char *text, *target;
        int64_t rows;
    } cases[] = {{"5.1,3.5,setosa\n4.9,3.0,setosa\n", "2", 2}, /* text in both lines of the same column: no header */
                 {"a,b,c\n5.1,3.5,setosa\n4.9,3.0,setosa\n", "2", 2},
                 {"0,1,label\n5.1,3.5,setosa\n4.9,3.0,other\n", "label", 2},
                 {"0,1,label\n5.1,3.5,setosa\n4.9,3.0,other\n", "2", 2},
                 {"0,1,kind\n5.1,3.5,setosa\n4.9,3.0,other\n", "kind", 2}, /* the requested target names it: a header */
                 {"1,2,y\n3,4,n\n", "2", 2},                               /* y and n are classes: no header */
                 {"x1,x2,y\n3,4,n\n", "2", 1},
                 {"1,2,3\n3,4,3\n", "-1", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset *data = open_text("x.csv", cases[i].text, cases[i].target);
        assert_that(about(data).rows == cases[i].rows, "case %zu: %lld rows", i, (long long)about(data).rows);
        mercer_dataset_free(data);
    }
    mercer_dataset_options options = data_options(text_file("x.csv", "1,2,3\n4,5,6\n"), NULL);
    options.target = "1";
    options.header = MERCER_ON;
    mercer_dataset *data = open_with(&options); /* a column name takes precedence over an index */
    assert_samples(data, 1, 2, (double[]){5, 6});
    assert_string_equal(about(data).feature_names[1], "3");
    mercer_dataset_free(data);
    options.target = "-2"; /* no column has this name, so it is an index from the end */
    data = open_with(&options);
    assert_samples(data, 1, 2, (double[]){4, 6});
    mercer_dataset_free(data);
    options.x = text_file("x.csv", "a,b,c\n4,5,6\n");
    options.header = MERCER_OFF;
    options.target = "0";
    data = open_with(&options); /* a column with words among its numbers is a category */
    assert_samples(data, 2, 4, (double[]){0, 1, 0, 1, 1, 0, 1, 0});
    mercer_dataset_free(data);
    data = open_text("x.csv", "NA,2,3\n1,2,3\n2,3,4\n", "2"); /* a missing value does not make a header */
    assert_samples(data, 3, 3, (double[]){1.5, 1, 2, 1, 0, 2, 2, 0, 3});
    mercer_dataset_free(data);
}

/* ---- Targets ------------------------------------------------------------------------------------------------- */

static void test_target_choice(void **state)
{
    (void)state;
    static const char *const texts[] = {"a,b,target\n1,2,x\n3,4,y\n", "a,b,Label\n1,2,x\n3,4,y\n",
                                        "a,b,class\n1,2,x\n3,4,y\n", "a,b,y\n1,2,x\n3,4,y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mercer_dataset_options options = data_options(text_file("x.csv", texts[i]), NULL);
        mercer_dataset *data = open_with(&options);
        assert_samples(data, 2, 2, (double[]){1, 2, 3, 4});
        assert_classes(data, "x y", (int32_t[]){0, 1});
        mercer_dataset_free(data);
    }
    refuse("a,b,c\n1,2,3\n", NULL, MERCER_ERROR_MISMATCH, "columns: 'a', 'b', 'c'");
    refuse("a,label,class\n1,2,3\n", NULL, MERCER_ERROR_MISMATCH, "columns*'a', 'label', 'class'");
    refuse("1,2,3\n4,5,6\n", NULL, MERCER_ERROR_MISMATCH, "--target NAME");
    refuse("a,b,c\n1,2,3\n", "d", MERCER_ERROR_MISMATCH, "'d'*3 columns*'a'*'c'");
    refuse("1,2,3\n4,5,6\n", "d", MERCER_ERROR_MISMATCH, "'d'*3 columns*header");
    refuse("a,b,a\n1,2,3\n", "a", MERCER_ERROR_MISMATCH, "columns*'a'");
    refuse("a,b,c\n1,2,3\n", "3", MERCER_ERROR_MISMATCH, "target column 3");
    refuse("a,b,c\n1,2,3\n", "-4", MERCER_ERROR_MISMATCH, "target column -4");
    refuse("label\n1\n2\n", NULL, MERCER_ERROR_FORMAT, "columns");
    mercer_dataset *data = open_text("x.csv", "1,2,x\n3,4,y\n", "-1");
    assert_samples(data, 2, 2, (double[]){1, 2, 3, 4});
    mercer_dataset_free(data);
    /* Unlabeled data: all columns are features, except a column that is named as the target. */
    mercer_dataset_options options = data_options(text_file("x.csv", "a,label\n1,2\n3,4\n"), NULL);
    options.task = MERCER_TASK_UNLABELED;
    data = open_with(&options);
    assert_samples(data, 2, 2, (double[]){1, 2, 3, 4});
    mercer_dataset_free(data);
    options.target = "label";
    data = open_with(&options);
    assert_samples(data, 2, 1, (double[]){1, 3});
    assert_int_equal(about(data).task, MERCER_TASK_UNLABELED);
    mercer_dataset_free(data);
}

/* Open a file of `count` * `repeat` rows "i,target" that cycles through `targets`. */
static mercer_dataset *open_targets(const char *const *targets, int count, int repeat, mercer_task task)
{
    char text[8192] = "";
    for (int i = 0; i < count * repeat; i++) {
        char line[64];
        snprintf(line, sizeof line, "%d,%s\n", i, targets[i % count]);
        strcat(text, line);
    }
    mercer_dataset_options options = data_options(text_file("x.csv", text), NULL);
    options.target = "1";
    options.task = task;
    return open_with(&options);
}

static void test_task_rule(void **state)
{
    (void)state;
    static const char *const few[] = {"10", "9", "-1", "+2.0", "0"}, *const names[] = {"10", "9", "a"},
                             *const halves[] = {"1", "2.5", "3"};
    mercer_dataset *data = open_targets(few, 5, 3, MERCER_TASK_AUTO);
    int32_t expected[15] = {4, 3, 0, 2, 1, 4, 3, 0, 2, 1, 4, 3, 0, 2, 1};
    assert_classes(data, "-1 0 2 9 10", expected);
    mercer_dataset_free(data);
    data = open_targets(few, 5, 2, MERCER_TASK_AUTO); /* five numbers, twice each: regression */
    assert_values(data, 1, (double[]){10, 9, -1, 2, 0, 10, 9, -1, 2, 0});
    mercer_dataset_free(data);
    data = open_targets(few, 2, 1, MERCER_TASK_AUTO); /* two distinct numbers are always classes */
    assert_classes(data, "9 10", (int32_t[]){1, 0});
    mercer_dataset_free(data);
    data = open_targets(few, 5, 2, MERCER_TASK_CLASSIFICATION);
    assert_classes(data, "-1 0 2 9 10", expected);
    mercer_dataset_free(data);
    data = open_targets(few, 5, 1, MERCER_TASK_REGRESSION);
    assert_values(data, 1, (double[]){10, 9, -1, 2, 0});
    mercer_dataset_free(data);
    data = open_targets(names, 3, 1, MERCER_TASK_AUTO); /* one name makes all targets class names, sorted bytewise */
    assert_classes(data, "10 9 a", (int32_t[]){0, 1, 2});
    mercer_dataset_free(data);
    data = open_targets(halves, 3, 10, MERCER_TASK_AUTO);
    assert_int_equal(about(data).task, MERCER_TASK_REGRESSION);
    mercer_dataset_free(data);
    data = open_targets(halves, 3, 1, MERCER_TASK_CLASSIFICATION);
    assert_classes(data, "1 2.5 3", (int32_t[]){0, 1, 2});
    mercer_dataset_free(data);
}

static void test_label_list(void **state)
{
    (void)state;
    static const char *const labels[] = {"dog", "cat", "3", "bird"}, *const twice[] = {"cat", "dog", "cat"};
    mercer_dataset_options options =
        data_options(text_file("x.csv", "a,label\n1,cat\n2,\"dog\"\n3,3.0\n4,cat\n"), NULL);
    options.labels = labels;
    options.label_count = 4;
    mercer_dataset *data = open_with(&options);
    assert_classes(data, "dog cat 3 bird", (int32_t[]){1, 0, 2, 1});
    mercer_dataset_free(data);
    options.label_count = 2;
    assert_refused(&options, MERCER_ERROR_DATA, "x.csv: line 4: label '3'*2 ");
    options.labels = twice;
    options.label_count = 3;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "'cat'*listed*twice");
    options.task = MERCER_TASK_REGRESSION;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "labels");
    options.task = MERCER_TASK_AUTO;
    options.label_count = 0;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "label_count");
}

static void test_quoted_labels(void **state)
{
    (void)state;
    mercer_dataset *data =
        open_text("x.csv", "a,label\n1,\"a, \"\"b\"\"\"\n2,\"two\nlines\"\n3, plain \n4,\"two\nlines\"\n", "label");
    assert_classes(data, "a, \"b\" plain two\nlines", (int32_t[]){0, 2, 1, 2});
    mercer_dataset_free(data);
}

static void test_bad_targets(void **state)
{
    (void)state;
    refuse("a,y\n1,\n2,nan\n", "y", MERCER_ERROR_DATA, "target*missing");
    refuse("a,y\n1,2\n2,inf\n", "y", MERCER_ERROR_DATA, "line 3: *target*infinite");
    mercer_dataset_options options = data_options(text_file("bad.csv", "a,y\n1,2\n2,\"x\ny\"\n3,4\n"), NULL);
    options.task = MERCER_TASK_REGRESSION;
    assert_refused(&options, MERCER_ERROR_DATA, "bad.csv: line 3: target 'x?y'*number");
    char text[1024] = "a,label\n1,";
    memset(text + strlen(text), 'x', 300);
    refuse(text, "label", MERCER_ERROR_DATA, "line 2: *target*300 characters");
    char *many = malloc(400000);
    size_t length = (size_t)sprintf(many, "a,label\n");
    for (int i = 0; i < 10001; i++) length += (size_t)sprintf(many + length, "1,c%d\n", i);
    refuse(many, "label", MERCER_ERROR_DATA, "more than 10000 distinct targets");
    sprintf(many + length - strlen("1,c10000\n"), "1,c0\n");
    refuse(many, "label", MERCER_ERROR_DATA, "target*10000*10001*'c0'");
    options = data_options(text_file("x.csv", many), NULL);
    options.task = MERCER_TASK_CLASSIFICATION; /* explicit classification is accepted */
    mercer_dataset *data = open_with(&options);
    assert_int_equal(about(data).outputs, 10000);
    mercer_dataset_free(data);
    free(many);
}

/* ---- Invalid files ------------------------------------------------------------------------------------------- */

static void test_bad_text(void **state)
{
    (void)state;
    const mercer_status format = MERCER_ERROR_FORMAT, cell = MERCER_ERROR_DATA;
    refuse("a,b,y\n1,2,3\n1,2\n", "y", format, "line 3*fewer*3");
    refuse("a,b,y\n1,2,3\n1,2,3,4\n", "y", format, "line 3*more");
    refuse("a,b,y\n1,2,3\n\n1,2,3\n", "y", format, "line 3: is empty");
    refuse("a,b,y\n1,\"2,3\n4,5,6\n", "y", format, "line 2");
    refuse("a,b,y\n1,\"2\"2,3\n", "y", format, "line 2: ");
    refuse("a,b,y\n1,1e39,3\n2,3,4\n", "y", cell, "line 2, column 'b': '1e39'*range*f32");
    refuse("a,b,y\n1,-inf,3\n2,3,4\n", "y", cell, "line 2, column 'b': '-inf'*range*f32");
    refuse("a,b,y\n1,2,\"one\ntwo\"\ninf,3,4\n", "y", cell, "line 4, column 'a'");
    refuse("\n\n", "y", format, "empty lines");
    refuse("a,b,y\n", "y", format, "samples");
    refuse("\xff\xfe"
           "1\0",
           "0", format, "UTF-16");
    refuse("", "0", format, "bad.csv: *empty");
    mercer_dataset_options options = data_options(in_folder("missing.csv"), NULL);
    assert_refused(&options, MERCER_ERROR_MISSING, "missing.csv");
    options.x = folder;
    assert_refused(&options, MERCER_ERROR_IO, "folder");
    options.x = byte_file("bad.csv", "1,\0002\n3,4\n", 9);
    options.target = "0";
    assert_refused(&options, MERCER_ERROR_FORMAT, "offset 2");
}

static void test_range_of_floats(void **state)
{
    (void)state;
    mercer_dataset *data = open_text("x.csv", "3.4028235e38,1e-60\n-1.1754944e-38,1e-45\n", NULL);
    mercer_matrix x = mercer_dataset_samples(data);
    assert_true(mrc_load(&x, 0, 0) == (double)3.4028235e38f && mrc_load(&x, 0, 1) == 0);
    assert_true(mrc_load(&x, 1, 0) == (double)-1.1754944e-38f && mrc_load(&x, 1, 1) > 0);
    mercer_dataset_free(data);
}

/* Decimals of every length, with and without sign and point, must be parsed exactly as by the general number parser. */
static void test_many_numbers(void **state)
{
    (void)state;
    enum { ROWS = 4000, COLS = 5 };
    static const char separators[] = ",;|\t";
    mrc_rng rng = {.seed = 11};
    char *text = malloc(ROWS * COLS * 32), *at;
    float *expected = malloc(ROWS * COLS * sizeof *expected);
    for (int kind = 0; kind < 4; kind++) {
        at = text;
        for (int k = 0; k < ROWS * COLS; k++) {
            uint64_t draw = mrc_random_u64(rng, (uint64_t)(2 * (k + ROWS * COLS * kind))), length = 1 + draw % 20;
            uint64_t bits = mrc_random_u64(rng, (uint64_t)(2 * (k + ROWS * COLS * kind) + 1));
            uint64_t point = draw >> 8 & 1 ? draw >> 16 & 31 : 99;
            char *begin = at;
            if (draw >> 9 & 1) *at++ = '-';
            for (uint64_t i = 0; i < length; i++) {
                if (i == point) *at++ = kind == 1 && (draw >> 10 & 1) ? ',' : '.';
                *at++ = (char)('0' + (bits >> (3 * i)) % 10);
            }
            char copy[32];
            double value = 0;
            snprintf(copy, sizeof copy, "%.*s", (int)(at - begin), begin);
            for (char *c = copy; *c; c++) *c = *c == ',' ? '.' : *c;
            assert_int_equal(mrc_read_number(copy, copy + strlen(copy), &value), MRC_NUMBER);
            expected[k] = (float)value;
            if (k % COLS < COLS - 1)
                *at++ = separators[kind];
            else
                at += sprintf(at, k % 3 ? "\n" : "\r\n");
        }
        *at = 0;
        mercer_dataset_options options = data_options(text_file("n.csv", text), NULL);
        options.task = MERCER_TASK_UNLABELED;
        options.header = MERCER_OFF;
        mercer_dataset *data = open_with(&options);
        mercer_matrix x = mercer_dataset_samples(data);
        assert_int_equal(x.rows, ROWS);
        for (int k = 0; k < ROWS * COLS; k++)
            assert_that(((float *)x.data)[k] == expected[k], "number %d is %.9g, not %.9g", k,
                        (double)((float *)x.data)[k], (double)expected[k]);
        mercer_dataset_free(data);
    }
    free(text), free(expected);
}

static void test_slices_and_memory(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(text_file("x.csv", "a,y\n1,p\n\"2\",\"q\nq\"\n3,r\n4,p\n"), NULL);
    options.first = 2;
    options.rows = 1;
    mercer_dataset *data = open_with(&options);
    assert_samples(data, 1, 1, (double[]){3});
    assert_classes(data, "r", (int32_t[]){0});
    mercer_dataset_free(data);
    options.rows = 3;
    assert_refused(&options, MERCER_ERROR_SHAPE, "only 4");
    options.first = options.rows = 0;
    options.memory = 63; /* the limit is one byte less than 4 rows of 4 bytes plus 12 bytes per target */
    assert_refused(&options, MERCER_ERROR_MEMORY, "x.csv: needs 64 more");
    assert_refused(&options, MERCER_ERROR_MEMORY, "x.csv: *64 *63 *npy");
    options.memory = 64;
    mercer_dataset_free(open_with(&options));
}

/* ---- Target files -------------------------------------------------------------------------------------------- */

static void test_target_files(void **state)
{
    (void)state;
    const char *x = text_file("x.csv", "a,b\n1,2\n3,4\n5,6\n"); /* returned paths stay valid for eight files */
    struct {
        const char *name, *text, *classes;
        int32_t labels[3];
    } cases[] = {{"y.txt", "cat\ndog\ncat\n", "cat dog", {0, 1, 0}},
                 {"y.txt", "animal\ncat\ndog\ncat\n", "cat dog", {0, 1, 0}}, /* one extra line: a header */
                 {"y.csv", "label\n7\n8\n7", "7 8", {0, 1, 0}},
                 {"y.txt", "y\nn\ny", "n y", {1, 0, 1}},
                 {"y.txt", "a, b\nc\r\na, b", "a, b c", {0, 1, 0}},
                 {"y", "1\n0\n1\n", "0 1", {1, 0, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        x = in_folder("x.csv");
        mercer_dataset *data = open_data(x, text_file(cases[i].name, cases[i].text));
        assert_samples(data, 3, 2, (double[]){1, 2, 3, 4, 5, 6});
        assert_classes(data, cases[i].classes, cases[i].labels);
        mercer_dataset_free(data);
    }
    mercer_dataset *data = open_data(x, text_file("y.csv", "0.5\n1.5\n2.5\n"));
    assert_values(data, 1, (double[]){0.5, 1.5, 2.5});
    mercer_dataset_free(data);
    x = in_folder("x.csv");
    mercer_dataset_options options = data_options(x, text_file("y.csv", "p,q\n1,a\n2,b\n3,a\n"));
    assert_refused(&options, MERCER_ERROR_DATA, "2, column 'q': 'a'");
    options.target = "q";
    data = open_with(&options);
    assert_samples(data, 3, 2, (double[]){1, 2, 3, 4, 5, 6});
    assert_classes(data, "a b", (int32_t[]){0, 1, 0});
    mercer_dataset_free(data);
    options = data_options(in_folder("x.csv"), text_file("y.txt", "a\nb\nc\n"));
    options.first = 1;
    data = open_with(&options); /* options.first applies to the file of samples and to the file of targets */
    assert_samples(data, 2, 2, (double[]){3, 4, 5, 6});
    assert_classes(data, "b c", (int32_t[]){0, 1});
    mercer_dataset_free(data);
    x = in_folder("x.csv");
    options = data_options(x, text_file("y.txt", "1\n0\n"));
    assert_refused(&options, MERCER_ERROR_SHAPE, "y.txt has 2 targets, ");
    assert_refused(&options, MERCER_ERROR_SHAPE, "x.csv has 3 samples");
    options = data_options(x, text_file("y.txt", "1\n0\n\n1\n"));
    assert_refused(&options, MERCER_ERROR_FORMAT, "y.txt: line 3: is empty");
}

/* Floats do not represent all integers beyond 2^24: a column that loses precision this way is warned about. */
static void test_coarse_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* says: part of the warning; NULL: no warning */
    } cases[] = {
        {"a,t\n1,1700000001\n2,1700000050\n3,5\n", "column 't'*1700000050*float"},
        {"a,t\n1,16777216\n2,1700000000\n3,-33554432\n", NULL},
        {"a,t\n1,-16777217\n2,3\n3,5\n", "column 't'*-16777217"},
        {"a,t\n1,1.25e8\n2,-1.000000001e8\n3,\n", "column 't'"},
        {"a,t\n1,1.25e8\n2,1.000000001e8\n3,\n", NULL}, /* the large common part is subtracted, so nothing is lost */
        {"a,t\n0.1,1e30\n0.2,0.3\n0.7,5\n", "such as 1e+30"},
        {"a,t\n0.1,0.2\n0.2,0.3\n0.7,12345.678\n", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset_options options = data_options(text_file("x.csv", cases[i].text), NULL);
        options.task = MERCER_TASK_UNLABELED;
        assert_warning(&options, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_separators),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_header_detection), cmocka_unit_test(test_target_choice),
        cmocka_unit_test(test_task_rule),        cmocka_unit_test(test_label_list),
        cmocka_unit_test(test_quoted_labels),    cmocka_unit_test(test_bad_targets),
        cmocka_unit_test(test_bad_text),         cmocka_unit_test(test_range_of_floats),
        cmocka_unit_test(test_many_numbers),     cmocka_unit_test(test_slices_and_memory),
        cmocka_unit_test(test_target_files),     cmocka_unit_test(test_coarse_numbers)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

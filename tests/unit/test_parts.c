/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets in several array files: equality with the single file that they make up; file names, boundaries, error
   messages. */
#include "support/parts.h"

#include "core/numbers/random.h"
#include "data/opening.h"
#include "data/stream/order.h"

#include <math.h>

enum { N = 40, D = 5, MOST = 12 };

static float samples[N * D];
static double values[N * 2];
static int64_t classes[N];

static int open_numbers(void **state)
{
    for (int64_t i = 0; i < N * D; i++) samples[i] = (float)mrc_random_uniform((mrc_rng){1, 2}, (uint64_t)i);
    for (int64_t i = 0; i < N * 2; i++) values[i] = mrc_random_uniform((mrc_rng){3, 4}, (uint64_t)i) - 0.5;
    for (int64_t i = 0; i < N; i++) classes[i] = 3 * (i * i % 7);
    return open_datasets(state);
}

static int open_empty(void **state)
{
    (void)state;
    folder_clear();
    return 0;
}

/* Writes rows first .. first + rows - 1 of samples, values or classes as an NPY file. */
static const char *rows_file(const char *name, const void *all, const char *descr, int64_t cols, int64_t first,
                             int64_t rows)
{
    char shape[64];
    size_t size = (size_t)cols * (size_t)(descr[2] - '0');
    snprintf(shape, sizeof shape, cols > 1 ? "%lld, %lld" : "%lld,", (long long)rows, (long long)cols);
    return plain_file(name, descr, false, shape, (const char *)all + (size_t)first * size, (size_t)rows * size);
}

/* Writes files STEM-1.npy, STEM-2.npy, ... with the given numbers of rows; -1 ends the list. */
static void cut(const char *stem, const void *all, const char *descr, int64_t cols, const int *rows)
{
    char name[64];
    for (int64_t i = 0, first = 0; rows[i] >= 0; first += rows[i++]) {
        snprintf(name, sizeof name, "%s-%lld.npy", stem, (long long)(i + 1));
        rows_file(name, all, descr, cols, first, rows[i]);
    }
}

static const int cuts[][MOST + 2] = {{40, -1},
                                     {13, 27, -1},
                                     {7, 0, 33, -1},
                                     {0, 40, 0, -1},
                                     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 29, -1},
                                     {20, 0, 0, 1, 19, -1}};

/* ---- Equality with one file ------------------------------------------------------------------------------------- */

static void test_classes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        folder_clear();
        cut("part", samples, "<f4", D, cuts[i]);
        cut("label", classes, "<i8", 1, cuts[(i + 1) % (sizeof cuts / sizeof *cuts)]); /* other boundaries */
        mercer_dataset *one =
            open_data(rows_file("x.npy", samples, "<f4", D, 0, N), rows_file("y.npy", classes, "<i8", 1, 0, N));
        mercer_dataset *parts = open_data(in_folder("part-*.npy"), in_folder("label-?*.npy"));
        assert_true(about(parts).mapped);
        assert_same_data(one, parts);
        one = open_data(in_folder("x.npy"), NULL), parts = open_data(in_folder("part-*.npy"), NULL);
        assert_same_data(one, parts);
    }
}

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        folder_clear();
        cut("part", samples, "<f4", D, cuts[(i + 2) % (sizeof cuts / sizeof *cuts)]);
        cut("value", values, "<f8", 2, cuts[i]);
        mercer_dataset *one =
            open_data(rows_file("x.npy", samples, "<f4", D, 0, N), rows_file("y.npy", values, "<f8", 2, 0, N));
        assert_same_data(one, open_data(in_folder("part-*.npy"), in_folder("value-*.npy")));
        one = open_data(in_folder("x.npy"), in_folder("y.npy"));
        assert_same_data(one, open_data(in_folder("x.npy"), in_folder("value-*.npy")));
        one = open_data(in_folder("x.npy"), in_folder("y.npy"));
        assert_same_data(one, open_data(in_folder("part-*.npy"), in_folder("y.npy")));
    }
}

static void test_slices(void **state)
{
    (void)state;
    static const int rows[] = {7, 0, 13, 20, -1}, target_rows[] = {21, 19, -1};
    static const int64_t slices[][2] = {{0, 7}, {0, 8}, {6, 2}, {7, 13}, {7, 0}, {20, 20}, {39, 1}, {3, 30}, {19, 2}};
    cut("part", samples, "<f4", D, rows);
    cut("value", values, "<f8", 2, target_rows);
    rows_file("x.npy", samples, "<f4", D, 0, N), rows_file("y.npy", values, "<f8", 2, 0, N);
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        mercer_dataset_options one = data_options(all_of("x.npy"), all_of("y.npy"));
        mercer_dataset_options several = data_options(all_of("part-*.npy"), all_of("value-*.npy"));
        one.first = several.first = slices[i][0], one.rows = several.rows = slices[i][1];
        mercer_dataset *parts = open_with(&several);
        assert_same_data(open_with(&one), parts);
    }
    mercer_dataset_options options = data_options(all_of("part-*.npy"), NULL);
    options.first = 30, options.rows = 11;
    assert_refused(&options, MERCER_ERROR_SHAPE, "part-*.npy: rows from 30");
}

/* Formats without an NPY header, compressed files, other byte orders. */
static void test_formats(void **state)
{
    (void)state;
    mercer_dataset_options one, several;
    byte_file("r-1.raw", samples, 3 * D * 4), byte_file("r-2.raw", "", 0);
    byte_file("r-3.raw", samples + 3 * D, 37 * D * 4), byte_file("whole.raw", samples, sizeof samples);
    one = data_options(all_of("whole.raw"), NULL), several = data_options(all_of("r-[1-3].raw"), NULL);
    one.raw = several.raw = "f32:5";
    assert_same_data(open_with(&one), open_with(&several));
    static const unsigned char a[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8},
                               b[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 9, 10, 11, 12},
                               none[] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2},
                               all[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8, 9, 10, 11, 12};
    byte_file("i-1.idx", a, sizeof a), byte_file("i-2.idx", none, sizeof none), byte_file("i-3.idx", b, sizeof b);
    mercer_dataset *data = open_data(in_folder("i-*"), NULL);
    assert_int_equal(about(data).width, 2);
    assert_same_data(open_data(byte_file("all", all, sizeof all), NULL), data);
    gzip_file("g-1.idx.gz", a, sizeof a), gzip_file("g-2.idx.gz", none, sizeof none);
    gzip_file("g-3.idx.gz", b, sizeof b);
    assert_same_data(open_data(gzip_file("all.gz", all, sizeof all), NULL), open_data(in_folder("g-*"), NULL));
    /* A compressed file, a file that must be converted, and a file that is mapped. */
    static const double one_row[] = {1, 2}, columns[] = {3, 5, 4, 6}, whole[] = {1, 2, 3, 4, 5, 6};
    gzip_file("m-1.raw.gz", one_row, sizeof one_row), byte_file("m-2.raw", one_row, sizeof one_row);
    several = data_options(all_of("m-*"), NULL), several.raw = "f64:2", several.format = "raw";
    data = open_with(&several);
    assert_true(about(data).mapped && about(data).rows == 2);
    mercer_dataset_free(data);
    plain_file("f-1.npy", "<f8", false, "1, 2", one_row, sizeof one_row);
    plain_file("f-2.npy", "<f8", true, "2, 2", columns, sizeof columns);
    assert_same_data(open_data(plain_file("f.npy", "<f8", false, "3, 2", whole, sizeof whole), NULL),
                     open_data(in_folder("f-*.npy"), NULL));
}

/* If integers of one file need f64, the values of all files are f64. */
static void test_widest_type(void **state)
{
    (void)state;
    static const int32_t whole[] = {1, 2, 3, 1 << 25 | 1};
    plain_file("w-1.npy", "<i4", false, "1, 2", whole, 8), plain_file("w-2.npy", "<i4", false, "1, 2", whole + 2, 8);
    mercer_dataset *data = open_data(in_folder("w-*.npy"), NULL);
    assert_int_equal(about(data).dtype, MERCER_F64);
    assert_same_data(open_data(plain_file("w.npy", "<i4", false, "2, 2", whole, 16), NULL), data);
    mercer_dataset_options options = data_options(all_of("w-*.npy"), NULL);
    options.rows = 1; /* as with one file: the rows that are read do not include the large integer */
    data = open_with(&options);
    assert_int_equal(about(data).dtype, MERCER_F32);
    mercer_dataset_free(data);
}

/* Class names of different string lengths are the same type. */
static void test_named_classes(void **state)
{
    (void)state;
    static const uint32_t first[] = {'b', 'c'}, second[] = {'a', 'b', 'b', 0},
                          all[] = {'b', 0, 'c', 0, 'a', 'b', 'b', 0};
    rows_file("x.npy", samples, "<f4", D, 0, 4);
    plain_file("n-1.npy", "<U1", false, "2,", first, sizeof first);
    plain_file("n-2.npy", "<U2", false, "2,", second, sizeof second);
    plain_file("n.npy", "<U2", false, "4,", all, sizeof all);
    mercer_dataset *data = open_data(in_folder("x.npy"), in_folder("n-*"));
    assert_classes(data, "ab b c", (const int32_t[]){1, 2, 0, 1});
    assert_same_data(open_data(in_folder("x.npy"), in_folder("n.npy")), data);
}

/* Where the reading order depends on the size, the total size of all files counts. */
static void test_large_files(void **state)
{
    (void)state;
    static const char *const names[] = {"whole", "l-1.raw", "l-2.raw", "l-3.raw"};
    static const int64_t sizes[] = {300 << 20, 100 << 20, 0, 200 << 20};
    for (int i = 0; i < 4; i++) {
        byte_file(names[i], "", 0);
        assert_int_equal(truncate(in_folder(names[i]), (off_t)sizes[i]), 0);
    }
    mrc_order orders[2];
    mercer_dataset *data[2];
    for (int i = 0; i < 2; i++) {
        mercer_dataset_options options = data_options(all_of(i ? "l-*.raw" : "whole"), NULL);
        options.format = "raw", options.raw = "u8:1000";
        if (i == 1) assert_refused(&options, MERCER_ERROR_FORMAT, "l-1.raw: 104857600 bytes");
        options.raw = "u8:1024";
        data[i] = open_with(&options);
        mrc_order_init(&orders[i], data[i], 0, 9);
    }
    assert_true(orders[0].block > 1);
    for (int64_t k = 0; k < 20000;) {
        int64_t rows[2][256];
        int64_t found = mrc_order_rows(&orders[0], k, 256, rows[0]);
        assert_int_equal(mrc_order_rows(&orders[1], k, 256, rows[1]), found);
        assert_memory_equal(rows[0], rows[1], (size_t)found * sizeof(int64_t));
        k += found;
    }
    for (int i = 0; i < 2; i++) mrc_order_restart(&orders[i], 1), assert_int_equal(about(data[i]).rows, 300 << 10);
    assert_same_info(data[0], data[1]);
    mercer_dataset_free(data[0]), mercer_dataset_free(data[1]);
}

static void test_centers(void **state)
{
    (void)state;
    static const int rows[] = {3, 20, 0, 17, -1};
    static const char *const methods[] = {"random", "kmeans", "rpcholesky"};
    cut("part", samples, "<f4", D, rows);
    mercer_dataset *data[2] = {open_data(rows_file("x.npy", samples, "<f4", D, 0, N), NULL),
                               open_data(in_folder("part-*"), NULL)};
    mercer_kernel kernel;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "gaussian:bandwidth=1"));
    for (int m = 0; m < 3; m++)
        for (int64_t memory = 1 << 20; memory > 0; memory -= (1 << 20) - 600) { /* memory for all or some rows */
            float chosen[2][4 * D] = {{0}};
            mercer_status status[2];
            for (int i = 0; i < 2; i++) {
                mercer_center_options options = {.struct_size = sizeof options, .method = methods[m], .seed = 2};
                options.kernel = &kernel, options.memory = memory;
                mercer_matrix centers = mrc_view(chosen[i], 4, D, MERCER_F32);
                status[i] = mercer_choose_centers_from(data[i], &centers, NULL, &options, NULL);
            }
            assert_int_equal(status[0], status[1]);
            assert_memory_equal(chosen[0], chosen[1], sizeof chosen[0]);
            if (memory > 600) assert_int_equal(status[0], MERCER_OK);
            if (memory <= 600) break;
        }
    mercer_dataset_free(data[0]), mercer_dataset_free(data[1]);
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

static void assert_names(const char *pattern, const char *expected)
{
    mrc_names names;
    char joined[1024] = "";
    assert_succeeds(context, mrc_names_find(&names, context, in_folder(pattern)));
    for (int64_t i = 0; i < names.count; i++) {
        assert_int_equal(strncmp(names.list[i], folder, strlen(folder)), 0);
        if (i) strcat(joined, " ");
        strcat(joined, names.list[i] + strlen(folder) + 1);
    }
    assert_string_equal(joined, expected);
    mrc_names_free(context, &names);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const files[] = {"p10",
                                        "p9",
                                        "p2b",
                                        "p2",
                                        "p02",
                                        "p1-10",
                                        "p1-9",
                                        "p",
                                        "pq",
                                        ".p3",
                                        "q*",
                                        "q1",
                                        "p99999999999999999999999",
                                        "p100000000000000000000000"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) byte_file(files[i], "", 0);
    assert_names("p*", "p p1-9 p1-10 p02 p2 p2b p9 p10 p99999999999999999999999 p100000000000000000000000 pq");
    assert_names("p?", "p2 p9 pq");
    assert_names("p[0-9]", "p2 p9");
    assert_names(".p*", ".p3");
    assert_names("q*", "q*"); /* a file has exactly this name */
    assert_names("q?", "q* q1");
    assert_names("missing", "missing"); /* not a pattern: opening the file reports the error */
    mercer_dataset_options options = data_options(all_of("missing"), NULL);
    assert_refused(&options, MERCER_ERROR_MISSING, "missing: cannot open");
    options.x = all_of("z*.npy");
    assert_refused(&options, MERCER_ERROR_MISSING, "z*.npy: *pattern");
    options.x = all_of("none/z*.npy");
    assert_refused(&options, MERCER_ERROR_MISSING, "none/z*.npy");
    options.x = all_of("n*e/z.npy");
    assert_refused(&options, MERCER_ERROR_MISSING, "n*e/z.npy: cannot open");
    rows_file("x.npy", samples, "<f4", D, 0, N);
    options.x = all_of("x.npy"), options.y = all_of("y*");
    assert_refused(&options, MERCER_ERROR_MISSING, "y*: *file");
    assert_int_equal(mkdir(in_folder("x"), 0777), 0);
    options.x = all_of("x*"), options.y = NULL;
    assert_refused(&options, MERCER_ERROR_IO, "x: *folder");
    assert_int_equal(rmdir(in_folder("x")), 0);
    options.x = all_of("*.npy"); /* a pattern with one match is treated like one file */
    mercer_dataset *data = open_with(&options);
    assert_non_null(mercer_dataset_samples(data).data);
    mercer_dataset_free(data);
}

/* ---- Error messages --------------------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(all_of("part-*"), NULL);
    rows_file("part-1", samples, "<f4", D, 0, 10);
    rows_file("part-2", samples, "<f4", D - 1, 0, 10);
    assert_refused(&options, MERCER_ERROR_SHAPE, "part-2: *4 f32");
    assert_refused(&options, MERCER_ERROR_SHAPE, "rows of 5 f32");
    rows_file("part-2", values, "<f8", D, 0, 10);
    assert_refused(&options, MERCER_ERROR_DTYPE, "part-2: *5 f64");
    plain_file("part-2", "<f4", false, "2, 5, 1", samples, 40);
    assert_refused(&options, MERCER_ERROR_SHAPE, "part-2: *5 x 1 f32");
    plain_file("part-2", "<f4", false, "10, 5", samples, 199);
    assert_refused(&options, MERCER_ERROR_FORMAT, "200 bytes*offset");
    plain_file("part-2", "<f4", false, "0, 0", samples, 0);
    assert_refused(&options, MERCER_ERROR_FORMAT, "part-2");
    byte_file("part-2", "", 0);
    assert_refused(&options, MERCER_ERROR_FORMAT, "part-2: *empty");
    text_file("part-2", "1,2,3,4,5\n");
    assert_refused(&options, MERCER_ERROR_MISMATCH, "part-2: is csv, but ");
    byte_file("part-2", "PK\3\4....", 8);
    assert_refused(&options, MERCER_ERROR_FORMAT, "part-2: *zip");
    rows_file("part-2", samples, "<f4", D, 0, 0), rows_file("part-1", samples, "<f4", D, 0, 0);
    assert_refused(&options, MERCER_ERROR_FORMAT, "part-*");
    byte_file("part-1", "", 0), byte_file("part-2", "", 0);
    assert_refused(&options, MERCER_ERROR_FORMAT, "part-1: *empty");
    byte_file("part-2", "\x1f\x8b.....", 7);
    assert_refused(&options, MERCER_ERROR_FORMAT, "part-2: gzip data");
}

static void test_refused_targets(void **state)
{
    (void)state;
    static const int rows[] = {10, 30, -1}, fewer[] = {10, 29, -1};
    static const char *const labels[] = {"0", "3", "6", "12"};
    cut("part", samples, "<f4", D, rows), cut("label", classes, "<i8", 1, fewer);
    mercer_dataset_options options = data_options(all_of("part-*"), all_of("label-*"));
    assert_refused(&options, MERCER_ERROR_SHAPE, "label-* has 39 targets, ");
    cut("label", classes, "<i8", 1, rows);
    classes[17] = 5, cut("label", classes, "<i8", 1, rows), classes[17] = 3 * (17 * 17 % 7);
    options.labels = labels, options.label_count = 4;
    assert_refused(&options, MERCER_ERROR_DATA, "label-2.npy: element 7 *'5'");
    cut("value", values, "<f8", 2, rows);
    options = data_options(all_of("part-*"), all_of("value-*"));
    mercer_dataset_free(open_with(&options));
    double saved = values[2 * 13 + 1];
    values[2 * 13 + 1] = NAN, cut("value", values, "<f8", 2, rows), values[2 * 13 + 1] = saved;
    assert_refused(&options, MERCER_ERROR_DATA, "value-2.npy: *row 3, column 1 *NaN");
    rows_file("value-2.npy", samples, "<f4", 2, 0, 30);
    assert_refused(&options, MERCER_ERROR_DTYPE, "value-2.npy: *2 f32");
}

/* Two unchanged files are not enough for the same fingerprint: a missing or a changed file changes it. */
static void test_fingerprint(void **state)
{
    (void)state;
    static const int rows[] = {10, 20, 10, -1};
    uint64_t prints[4];
    cut("part", samples, "<f4", D, rows);
    for (int i = 0; i < 4; i++) {
        if (i == 1) rows_file("part-2.npy", samples, "<f4", D, 11, 20);
        if (i == 2) unlink(in_folder("part-2.npy"));
        if (i == 3) cut("part", samples, "<f4", D, cuts[4]);
        mercer_dataset *data = open_data(in_folder("part-*"), NULL);
        assert_succeeds(context, mercer_dataset_fingerprint(data, &prints[i]));
        mercer_dataset_free(data);
    }
    assert_true(prints[0] != prints[1] && prints[0] != prints[2] && prints[1] != prints[2] && prints[0] == prints[3]);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const int rows[] = {7, 13, 20, -1};
    cut("part", samples, "<f4", D, rows), cut("value", values, "<f8", 2, rows);
    plain_file("w-1.npy", "<i4", false, "7, 5", samples, 140),
        plain_file("w-2.npy", "<i4", false, "33, 5", samples, 660);
    text_file("t-1.csv", "a,b,label\n1,2,x\n"), text_file("t-2.csv", "3,4,y\n"), text_file("t-3.csv", "");
    const char *cases[][2] = {{"part-*", "value-*"}, {"w-*", NULL}, {"t-*.csv", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int64_t fail_at = 1;; fail_at++) {
            mercer_dataset *data = NULL;
            mercer_dataset_options options =
                data_options(all_of(cases[i][0]), cases[i][1] ? all_of(cases[i][1]) : NULL);
            int64_t live = allocator.live;
            allocator.requests = 0, allocator.fail_at = fail_at;
            mercer_status status = mercer_dataset_open(&data, context, &options);
            bool reached = allocator.requests >= fail_at;
            allocator.fail_at = 0;
            assert_int_equal(status, reached ? MERCER_ERROR_MEMORY : MERCER_OK);
            mercer_dataset_free(data);
            assert_int_equal(allocator.live, live);
            if (!reached) break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_classes, open_empty),
        cmocka_unit_test_setup(test_values, open_empty),
        cmocka_unit_test_setup(test_slices, open_empty),
        cmocka_unit_test_setup(test_formats, open_empty),
        cmocka_unit_test_setup(test_widest_type, open_empty),
        cmocka_unit_test_setup(test_named_classes, open_empty),
        cmocka_unit_test_setup(test_large_files, open_empty),
        cmocka_unit_test_setup(test_centers, open_empty),
        cmocka_unit_test_setup(test_names, open_empty),
        cmocka_unit_test_setup(test_refused, open_empty),
        cmocka_unit_test_setup(test_refused_targets, open_empty),
        cmocka_unit_test_setup(test_fingerprint, open_empty),
        cmocka_unit_test_setup(test_out_of_memory, open_empty),
    };
    return cmocka_run_group_tests(tests, open_numbers, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that are too large for memory are stored in a temporary file, bitwise identical to the content in memory. */
#include "support/datasets.h"

#include "support/info.h"

#include "core/file/spill.h"
#include "core/file/system.h"
#include "core/numbers/random.h"
#include "data/dataset.h"

#include <stdlib.h>

static void compare(mercer_dataset_options options)
{
    mercer_dataset *held = open_with(&options);
    options.spill = 1;
    mercer_dataset *spilled = open_with(&options);
    mercer_dataset_info a = about(held), b = about(spilled);
    assert_true(b.mapped && spilled->spilled && !held->spilled);
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.features, b.features);
    assert_int_equal(a.outputs, b.outputs);
    assert_int_equal(a.task, b.task);
    assert_int_equal(a.left_out, b.left_out);
    assert_int_equal(a.unused, b.unused);
    assert_int_equal(a.schema == NULL, b.schema == NULL);
    if (a.schema) assert_string_equal(a.schema, b.schema);
    for (int64_t j = 0; a.feature_names && j < a.features; j++)
        assert_string_equal(a.feature_names[j], b.feature_names[j]);
    assert_memory_equal(held->x.data, spilled->x.data, (size_t)(a.rows * a.features * 4));
    if (held->y.data) assert_memory_equal(held->y.data, spilled->y.data, (size_t)(a.rows * a.outputs * 8));
    if (held->labels) assert_memory_equal(held->labels, spilled->labels, (size_t)a.rows * sizeof(int32_t));
    if (held->weights) assert_memory_equal(held->weights, spilled->weights, (size_t)a.rows * sizeof(double));
    mercer_dataset_free(spilled);
    mercer_dataset_free(held);
}

/* Every kind of column; the last column turns out to be words in the last rows. There are several blocks of 1 MiB. */
static char *make_table(int64_t rows, int64_t *length)
{
    static const char *const towns[] = {"Ulm", "Bonn", "\"Bad \"\"X\"\", Y\"", "", "NA"};
    char *text = malloc((size_t)(rows * 160 + 200)), *at = text;
    mrc_rng rng = {7, 0};
    at += sprintf(at, "size,town,built,garden,constant,late,w,y\n");
    for (int64_t i = 0; i < rows; i++) {
        int64_t a = mrc_random_below(rng, i * 4, 1000), t = mrc_random_below(rng, i * 4 + 1, 5),
                d = mrc_random_below(rng, i * 4 + 2, 27) + 1;
        at += sprintf(at, i % 7 ? "%.2f," : ",", (double)a / 8);
        at += sprintf(at, "%s,2020-02-%02d,%s,5,", towns[t], (int)d, a % 3 ? "true" : "False");
        at += sprintf(at, i + i / 10 > rows ? "word%d," : "%d,", (int)(a % 9));
        at += sprintf(at, i % 11 ? "%d,%.3f\n" : "%d,\n", (int)t, (double)(a + t) / 3);
    }
    *length = at - text;
    return text;
}

static void test_kinds(void **state)
{
    (void)state;
    int64_t length;
    char *text = make_table(25000, &length);
    mercer_dataset_options options = data_options(byte_file("t.csv", text, (size_t)length), NULL);
    options.target = "y";
    options.weight_column = "w";
    compare(options);
    options.first = 17, options.rows = 20001;
    compare(options);
    options.first = options.rows = 0;
    options.kinds = "size:drop,late:category";
    compare(options);
    options.kinds = NULL;
    mercer_dataset *whole = open_with(&options);
    mercer_dataset_options like = options;
    like.schema = whole->schema;
    compare(like);
    options.x = gzip_file("t.csv.gz", text, (size_t)length);
    compare(options);
    mercer_dataset_free(whole);
    free(text);
}

static void test_numbers(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(text_file("n.csv", "a,b,y\n1,2,u\n3,4.5,v\n-1,0,u\n"), NULL);
    options.target = "y";
    compare(options);
    options.kinds = "numbers";
    compare(options);
    options.kinds = NULL;
    text_file("part-1.csv", "a,b,y\n1,2,u\n3,4,v\n");
    text_file("part-2.csv", "a,b,y\n1,2,v\n3,x,v\n");
    options.x = in_folder("part-*.csv");
    compare(options);
}

/* A fit does not depend on where the samples are stored. */
static void test_fit(void **state)
{
    (void)state;
    int64_t length;
    char *text = make_table(400, &length);
    mercer_dataset_options options = data_options(byte_file("f.csv", text, (size_t)length), NULL);
    mercer_fit_options fit = MERCER_INIT(mercer_fit_options);
    mercer_model *models[2];
    options.target = "y";
    fit.centers.count = 50;
    fit.validation.fraction = 0.2;
    for (int i = 0; i < 2; i++) {
        options.spill = i;
        mercer_dataset *data = open_with(&options);
        assert_succeeds(context, mercer_fit(&models[i], context, data, &fit, NULL));
        mercer_dataset_free(data);
    }
    mercer_matrix a = model_info(models[0]).weights, b = model_info(models[1]).weights;
    assert_memory_equal(a.data, b.data, (size_t)(a.rows * a.cols * mrc_dtype_size(a.dtype)));
    mercer_model_free(models[0]);
    mercer_model_free(models[1]);
    free(text);
}

/* The cells fit into the memory limit, their features do not: the table is read a second time. */
static void test_features_do_not_fit(void **state)
{
    (void)state;
    char text[4000] = "c,y\n", *at = text + 4;
    for (int i = 0; i < 400; i++) at += sprintf(at, "%c,%d.5\n", 'a' + i % 20, i % 7);
    mercer_dataset_options options = data_options(text_file("c.csv", text), NULL);
    options.target = "y";
    mercer_dataset *held = open_with(&options);
    options.memory = 400 * (4 + 12) + 1000; /* cells and targets, and a little more */
    assert_refused(&options, MERCER_ERROR_MEMORY, "c.csv: *32000*memory");
    options.spill = INT64_MAX;
    mercer_dataset *spilled = open_with(&options);
    assert_true(spilled->spilled);
    assert_string_equal(held->schema, spilled->schema);
    assert_memory_equal(held->x.data, spilled->x.data, 32000);
    mercer_dataset_free(spilled);
    mercer_dataset_free(held);
}

/* Errors in a table are detected and reported in the same way. */
static void test_rejected_arguments(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(text_file("b.csv", "a,y\n1,1.5\n2,2.5\n3\n"), NULL);
    options.target = "y";
    options.spill = 1;
    assert_refused(&options, MERCER_ERROR_FORMAT, "b.csv: line 4 has fewer columns");
    options.x = text_file("e.csv", "a,y\n1,\n2,NA\n");
    assert_refused(&options, MERCER_ERROR_DATA, "target*missing");
    options.x = text_file("o.csv", "a,y\n1,1.5\n2,2.5\n3,1\n");
    const char *old = getenv("TMPDIR");
    char *saved = old ? strdup(old) : NULL;
    setenv("TMPDIR", in_folder("nowhere"), 1);
    assert_refused(&options, MERCER_ERROR_IO, "temporary file: cannot open");
    if (saved)
        setenv("TMPDIR", saved, 1);
    else
        unsetenv("TMPDIR");
    free(saved);
    options.spill = -1;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "memory*spill");
}

/* ---- The temporary file itself ---------------------------------------------------------------------------------- */

static mrc_system true_system;
static int free_space;

static ssize_t write_nothing(int descriptor, const void *data, size_t bytes)
{
    (void)descriptor, (void)data, (void)bytes;
    return 0;
}

static int little_space(int descriptor, struct statvfs *out)
{
    true_system.fstatvfs(descriptor, out);
    out->f_bavail = (fsblkcnt_t)free_space, out->f_frsize = 1;
    return 0;
}

/* Sizes around that of the buffer, a disk that is nearly full, and names that are too long. */
static void test_file(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    static char bytes[2 * MIB + 7];
    static const int64_t sizes[] = {0, 1, MIB - 1, MIB, MIB + 1, 2 * MIB + 7};
    mrc_spill spill;
    mrc_mapping map;
    int64_t live = allocator.live;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i % 253);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_succeeds(context, mrc_spill_open(&spill, context));
        assert_succeeds(context, mrc_spill_write(&spill, bytes, sizes[i] / 3));
        assert_succeeds(context, mrc_spill_write(&spill, bytes + sizes[i] / 3, sizes[i] - sizes[i] / 3));
        assert_succeeds(context, mrc_spill_map(&spill, &map));
        assert_true(map.bytes == sizes[i] && (map.data != NULL) == (sizes[i] > 0));
        if (sizes[i]) assert_memory_equal(map.data, bytes, (size_t)sizes[i]);
        mrc_unmap(&map);
        mrc_spill_close(&spill); /* a second close has no effect */
    }
    true_system = mrc_sys;
    for (int way = 0; way < 3; way++) { /* write accepts no byte; a tenth of the data fits; one more byte fits */
        assert_succeeds(context, mrc_spill_open(&spill, context));
        assert_succeeds(context, mrc_spill_write(&spill, bytes, MIB));
        free_space = MIB / 10 + (way == 2);
        if (way == 0)
            mrc_sys.write = write_nothing;
        else
            mrc_sys.fstatvfs = little_space;
        mercer_status status = mrc_spill_write(&spill, bytes, MIB);
        mrc_sys = true_system;
        mrc_spill_close(&spill);
        if (way == 2)
            assert_succeeds(context, status);
        else
            assert_fails(context, status, MERCER_ERROR_IO, way ? "No space left" : "Input/output error");
    }
    static char name[5000];
    const char *old = getenv("TMPDIR");
    char *saved = old ? strdup(old) : NULL;
    memset(name, 'n', sizeof name - 1);
    setenv("TMPDIR", name, 1);
    mercer_status status = mrc_spill_open(&spill, context);
    mrc_spill_close(&spill);
    setenv("TMPDIR", "", 1);
    assert_succeeds(context, mrc_spill_open(&spill, context));
    assert_string_equal(spill.folder, "/tmp");
    mrc_spill_close(&spill);
    if (saved)
        setenv("TMPDIR", saved, 1);
    else
        unsetenv("TMPDIR");
    free(saved);
    assert_fails(context, status, MERCER_ERROR_IO, "TMPDIR");
    assert_int_equal(allocator.live, live);
}

/* Compressed data other than tables are also mapped from a temporary file. */
static void test_gzip(void **state)
{
    (void)state;
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (40000, 2), }";
    int64_t bytes = 80000 * 4 + 128;
    char *all = calloc(1, (size_t)bytes);
    memcpy(all, "\x93NUMPY\x01\x00\x76\x00", 10);
    snprintf(all + 10, 119, "%-117s\n", header);
    float *values = (float *)(all + 128);
    for (int64_t i = 0; i < 80000; i++) values[i] = (float)(i % 977);
    mercer_dataset_options options = data_options(gzip_file("x.npy.gz", all, (size_t)bytes), NULL);
    options.spill = 1000;
    mercer_dataset *data = open_with(&options);
    assert_int_equal(data->rows, 40000);
    assert_true(about(data).mapped);
    assert_memory_equal(data->x.data, values, 80000 * 4);
    mercer_dataset_free(data);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_features_do_not_fit),
        cmocka_unit_test(test_rejected_arguments),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_fit),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

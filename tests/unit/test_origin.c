/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that floats cannot distinguish: a common origin is subtracted before they are rounded. */
#include "support/datasets.h"

#include <math.h>

static mercer_dataset_options table(const char *name, const char *text)
{
    mercer_dataset_options options = data_options(text_file(name, text), NULL);
    options.task = MERCER_TASK_UNLABELED;
    return options;
}

static mercer_dataset *open_table(const char *text)
{
    mercer_dataset_options options = table("t.csv", text);
    return open_with(&options);
}

/* Assert that differences between a feature's values equal those of the numbers, up to the rounding of the stored
   values. */
static void assert_apart(const mercer_dataset *data, int64_t feature, const double *values, int64_t rows)
{
    mercer_matrix x = mercer_dataset_samples(data);
    double range = 0;
    assert_int_equal(x.rows, rows);
    for (int64_t i = 0; i < rows; i++) range = fmax(range, fabs(values[i] - values[0]));
    for (int64_t i = 1; i < rows; i++) {
        double found = mrc_load(&x, i, feature) - mrc_load(&x, 0, feature), wanted = values[i] - values[0];
        /* Each of the two cells is at most `range` and is rounded by 2^-24 of itself; the origin is in the middle of
           floats, which are off by 2^-24 of the values: exact in double up to 2^-52 of them. */
        double bound = 2 * 0x1p-24 * range + 4 * 0x1p-52 * fabs(values[0]);
        assert_that(fabs(found - wanted) <= bound, "row %lld: %.17g, not %.17g", (long long)i, found, wanted);
    }
}

static const double seconds[] = {1700000001, 1700000002, 1700000003, 1700000050};
static const char *const seconds_text = "a,t\n0.5,1700000001\n1,1700000002\n2.5,1700000003\n4,1700000050\n";

static void test_seconds(void **state)
{
    (void)state;
    mercer_dataset *data = open_table(seconds_text);
    mercer_dataset_info info = about(data);
    assert_int_equal(info.features, 2);
    assert_apart(data, 1, seconds, 4);
    assert_apart(data, 0, (const double[]){0.5, 1, 2.5, 4}, 4);
    assert_non_null(strstr(info.schema, "\"origin\":1700000000.0"));
    assert_true(strstr(info.schema, "origin") == strrchr(info.schema, 'o')); /* only one column has an origin */

    /* A table read with the schema of another one has the same origin. */
    mercer_dataset_options options = table("new.csv", "t,a\n1700000003,2.5\n1700000900,7\n");
    options.schema = info.schema;
    mercer_dataset *other = open_with(&options);
    mercer_matrix x = mercer_dataset_samples(data), y = mercer_dataset_samples(other);
    assert_true(mrc_load(&y, 0, 1) == mrc_load(&x, 2, 1));
    assert_true(mrc_load(&y, 1, 1) - mrc_load(&y, 0, 1) == 897);
    mercer_dataset_free(other);
    mercer_dataset_free(data);
}

/* Small differences between decimals, and times of day. */
static void test_other_columns(void **state)
{
    (void)state;
    static const double decimals[] = {1000000.001, 1000000.002, 1000000.004, 999999.999};
    static const double negative[] = {-1e7 - 0.25, -1e7 - 0.5, -1e7, -1e7 - 0.3125};
    mercer_dataset *data = open_table("x,d,n,t\n"
                                      "1,1000000.001,-10000000.25,2024-02-29T12:00:01\n"
                                      "2,1000000.002,-10000000.5,2024-02-29T12:00:02\n"
                                      "3,1000000.004,-10000000,2024-02-29T12:00:03\n"
                                      "4,999999.999,-10000000.3125,2024-02-29T12:00:04\n");
    assert_apart(data, 1, decimals, 4);
    assert_apart(data, 2, negative, 4);
    mercer_matrix x = mercer_dataset_samples(data);
    for (int64_t i = 1; i < 4; i++) {
        double step = (mrc_load(&x, i, 3) - mrc_load(&x, i - 1, 3)) * 86400;
        assert_that(fabs(step - 1) < 1e-3, "a second is %.6g", step); /* 8826 days in double: resolution 2^-40 days */
    }
    /* The season corresponds to the date: day 59 of 366. */
    double turn = 2 * acos(-1.0) * 59.5 / 366;
    assert_true(fabs(mrc_load(&x, 0, 4) - sin(turn)) < 0.01 && fabs(mrc_load(&x, 0, 5) - cos(turn)) < 0.01);
    mercer_dataset_free(data);
}

/* Missing values are replaced by the mean of the column, and marked in an additional feature. */
static void test_missing_values(void **state)
{
    (void)state;
    mercer_dataset *data = open_table("a,t\n1,1700000001\n2,\n3,1700000003\n4,1700000005\n");
    mercer_matrix x = mercer_dataset_samples(data);
    assert_int_equal(x.cols, 3);
    assert_true(mrc_load(&x, 1, 2) == 1 && mrc_load(&x, 0, 2) == 0);
    assert_true(mrc_load(&x, 1, 1) == mrc_load(&x, 2, 1)); /* 1700000003 */
    mercer_dataset_free(data);
}

/* Tables that floats represent well enough are unchanged: no schema, every value rounded once. */
static void test_unchanged_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a,b\n0.1,2015\n0.1,2016\n0.1,2017\n0.1,2018\n",                       /* one value; years */
        "a,b\n0.1,16777215\n0.2,16777214\n0.3,16777213\n0.4,16777212\n",       /* integers, exact in float */
        "a,b\n12345.678,1e-50\n0.3,1e-50\n7.1,1e-50\n-3,1e-50\n",              /* wide range; tiny values */
        "a,b\n100.1,1e9\n100.2,2.5\n100.3,3.5\n101.5,-1e9\n",                  /* a wide column */
        "a,b\n1700000001,1\n1700000001,2\n1700000001,3\n1700000001,4\n",       /* one value, not exact in float */
        "a,b\n3.3,-1700000001\n3.4,1700000001\n3.5,1700000001\n3.7,3400000\n", /* too wide for an origin: only a warning */
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        mercer_dataset *data = open_table(texts[k]);
        mercer_matrix x = mercer_dataset_samples(data);
        assert_null(about(data).schema);
        char *copy = strdup(texts[k]), *at = strchr(copy, '\n') + 1;
        for (int64_t i = 0; i < x.rows * 2; i++) {
            double value = strtod(at, &at);
            at++;
            assert_that(mrc_load(&x, i / 2, i % 2) == (double)(float)value, "table %zu, cell %lld: %.9g", k,
                        (long long)i, mrc_load(&x, i / 2, i % 2));
        }
        free(copy);
        mercer_dataset_free(data);
    }
    /* With kinds = "numbers", values are not changed. */
    mercer_dataset_options options = table("t.csv", seconds_text);
    options.kinds = "numbers";
    mercer_dataset *data = open_with(&options);
    mercer_matrix x = mercer_dataset_samples(data);
    assert_null(about(data).schema);
    assert_true(mrc_load(&x, 3, 1) == 1.7e9);
    mercer_dataset_free(data);
}

/* Tables read through a temporary file, where column statistics are collected, and columns in memory give the same
   schema and bits. */
static void test_other_ways(void **state)
{
    (void)state;
    static const double a[] = {0.5, 1, 2.5, 4}, constant[] = {0.1, 0.1, 0.1, 0.1};
    const char *text = "a,c,t\n0.5,0.1,1700000001\n1,0.1,1700000002\n2.5,0.1,1700000003\n4,0.1,1700000050\n";
    mercer_table_column columns[] = {{.name = "a", .kind = "number", .values = a},
                                     {.name = "c", .kind = "number", .values = constant},
                                     {.name = "t", .kind = "number", .values = seconds}};
    mercer_dataset_options options = table("t.csv", text);
    mercer_dataset *held = open_with(&options), *spilled, *made, *again;
    options.spill = 1;
    spilled = open_with(&options);
    assert_succeeds(context, mercer_dataset_from_columns(&made, context, columns, 3, 4, NULL));
    assert_succeeds(context, mercer_dataset_from_columns(&again, context, columns, 3, 4, about(held).schema));
    mercer_dataset *all[] = {spilled, made, again};
    mercer_matrix x = mercer_dataset_samples(held);
    assert_int_equal(x.cols, 2); /* a constant column is omitted, as in every table with a schema */
    for (size_t k = 0; k < 3; k++) {
        mercer_matrix y = mercer_dataset_samples(all[k]);
        assert_string_equal(about(all[k]).schema, about(held).schema);
        assert_int_equal(y.cols, 2);
        for (int64_t i = 0; i < 8; i++)
            assert_that(mrc_load(&y, i / 2, i % 2) == mrc_load(&x, i / 2, i % 2), "way %zu", k);
        mercer_dataset_free(all[k]);
    }
    mercer_dataset_free(held);
}

static void test_bad_schemas(void **state)
{
    (void)state;
    static const char *const origins[] = {"\"1\"", "null", "true", "[1]"};
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        char schema[256];
        snprintf(schema, sizeof schema,
                 "{\"missing\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"number\",\"mean\":1.5,\"origin\":%s,"
                 "\"missing\":0}]}",
                 origins[i]);
        mercer_dataset_options options = table("t.csv", "a\n1\n2\n");
        options.schema = schema;
        assert_refused(&options, MERCER_ERROR_FORMAT, "column 0 *origin");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seconds),        cmocka_unit_test(test_other_columns),
                                       cmocka_unit_test(test_missing_values), cmocka_unit_test(test_unchanged_numbers),
                                       cmocka_unit_test(test_other_ways),     cmocka_unit_test(test_bad_schemas)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

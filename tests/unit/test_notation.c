/* SPDX-License-Identifier: BSD-3-Clause */
/* Common notations of numbers and dates: the grammar, the features of such columns, and what is refused. */
#include "support/datasets.h"

#include "support/info.h"

#include "data/dataset.h"
#include "data/schema/date.h"
#include "data/schema/schema.h"
#include "data/table/cells/amount.h"
#include "data/table/notation.h"

#include <math.h>

#define EURO  "\xe2\x82\xac"
#define POUND "\xc2\xa3"
#define YEN   "\xc2\xa5"
#define THIN  "\xe2\x80\xaf"
#define FIXED "\xc2\xa0"

/* ---- Grammar ----------------------------------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char decimal;
        int unit; /* -1: not a number */
        double value;
    } cases[] = {{"1,234", '.', 0, 1234},
                 {"1,234.5", '.', 0, 1234.5},
                 {"-1,234,567.25", '.', 0, -1234567.25},
                 {"12.5", '.', 0, 12.5},
                 {".5", '.', 0, 0.5},
                 {"0.5", '.', 0, 0.5},
                 {"0", ',', 0, 0},
                 {"$1,308", '.', 1, 1308},
                 {"-$5", '.', 1, -5},
                 {"$-5", '.', 1, -5},
                 {"$ 5.50", '.', 1, 5.5},
                 {" 5 $ ", '.', 1, 5},
                 {"1.234,56 " EURO, ',', 2, 1234.56},
                 {EURO "1.234,56", ',', 2, 1234.56},
                 {POUND "7", '.', 3, 7},
                 {YEN "1,000", '.', 4, 1000},
                 {"12%", '.', 5, 12},
                 {"12 %", '.', 5, 12},
                 {"-0,5" FIXED "%", ',', 5, -0.5},
                 {"1 200", '.', 0, 1200},
                 {"1" FIXED "200,5", ',', 0, 1200.5},
                 {"1" THIN "200" THIN "300", '.', 0, 1200300},
                 {"1234567", '.', 0, 1234567},
                 {"12 200 " EURO, '.', 2, 12200},
                 {"1,23", '.', -1, 0},
                 {"1,2345", '.', -1, 0},
                 {"1234,567", '.', -1, 0},
                 {"1,234 567", '.', -1, 0},
                 {"1,234", ',', 0, 1.234},
                 {"1.234,5", '.', -1, 0},
                 {"0,123", '.', -1, 0},
                 {"00501", '.', -1, 0},
                 {"007.5", '.', -1, 0},
                 {"%5", '.', -1, 0},
                 {"$5%", '.', -1, 0},
                 {"$$5", '.', -1, 0},
                 {"-$-5", '.', -1, 0},
                 {"5.", '.', -1, 0},
                 {"$", '.', -1, 0},
                 {"", '.', -1, 0},
                 {"-", '.', -1, 0},
                 {"(5)", '.', -1, 0},
                 {"5 USD", '.', -1, 0},
                 {"1e3", '.', -1, 0},
                 {"0x1f", '.', -1, 0},
                 {"12 34", '.', -1, 0},
                 {"123456789012345678901234567890123456789012345678901234567890.12345", '.', -1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char plain[MRC_AMOUNT_CHARS];
        double value = -1;
        const char *text = cases[i].text, *end = text + strlen(text);
        int unit = mrc_amount_text(text, end, cases[i].decimal, plain);
        assert_that(unit == cases[i].unit, "'%s' has unit %d", text, unit);
        if (unit < 0) continue;
        const mrc_notation notation = {.decimal = cases[i].decimal, .unit = unit};
        assert_true(mrc_read_amount(&notation, text, end, &value));
        assert_that(value == cases[i].value, "'%s' is %.17g", text, value);
    }
}

static void test_units_of_a_column(void **state)
{
    (void)state;
    const mrc_notation dollar = {.decimal = '.', .unit = 1}, percent = {.decimal = '.', .unit = MRC_PERCENT};
    double value;
    const char *euros = EURO "5", *plain = "5";
    assert_true(mrc_read_amount(&dollar, plain, plain + 1, &value)); /* a currency sign may be absent */
    assert_false(mrc_read_amount(&dollar, euros, euros + strlen(euros), &value));
    assert_false(mrc_read_amount(&percent, plain, plain + 1, &value)); /* 5 could mean 500 % */
}

static void test_dates(void **state)
{
    (void)state;
    static const struct {
        const char *form, *text;
        double days; /* NaN: not a date */
    } cases[] = {
        {"d/m/Y", "31/12/1999", -1},          {"d/m/Y", "1/2/2000", 31},          {"m/d/Y", "1/2/2000", 1},
        {"m/d/Y", "12/31/1999", -1},          {"d.m.Y", " 01.02.2000 ", 31},      {"Y/m/d", "2000/02/01", 31},
        {"d-m-Y", "02-01-2000 12:00", 1.5},   {"d/m/Y", "29/2/2000", 59},         {"d/m/Y", "29/2/2001", (double)NAN},
        {"m/d/Y", "31/12/1999", (double)NAN}, {"d/m/Y", "31/12/99", (double)NAN}, {"d/m/Y", "31/12/19999", (double)NAN},
        {"d/m/Y", "31-12-1999", (double)NAN}, {"d/m/Y", "31/12", (double)NAN},    {"d/m/Y", "/12/1999", (double)NAN},
        {"d/m/Y", "", (double)NAN},           {"d/m/Y", "1/2/2000x", (double)NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        double days = (double)NAN;
        bool found = mrc_read_date_in(cases[i].form, text, text + strlen(text), &days);
        assert_that(found == !isnan(cases[i].days) && (!found || days == cases[i].days), "'%s' is %g", text, days);
    }
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {"1,234.5", "1.234,5", "$1,234.5", EURO "1.234,5", "1,234.5%", "1.234,5%",
                                        "d/m/Y",   "m/d/Y",   "d-m-Y",    "m-d-Y",        "d.m.Y",    "Y/m/d"};
    mrc_notation notation;
    char again[MRC_NOTATION_CHARS];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_true(mrc_notation_find(texts[i], &notation) && mrc_notation_is_set(&notation));
        assert_string_equal(mrc_notation_text(&notation, again), texts[i]);
    }
    assert_false(mrc_notation_find("1234", &notation));
    assert_false(mrc_notation_is_set(&notation));
}

/* ---- Columns ----------------------------------------------------------------------------------------------------- */

static mercer_dataset_options table_options(const char *text)
{
    mercer_dataset_options options = data_options(text_file("n.csv", text), NULL);
    options.target = "y";
    options.task = MERCER_TASK_REGRESSION;
    return options;
}

static void assert_column(const char *text, const char *notation, const double *values, int64_t rows)
{
    mercer_dataset_options options = table_options(text);
    mercer_dataset *data = open_with(&options);
    char part[64];
    snprintf(part, sizeof part, "\"notation\":\"%s\"", notation);
    assert_that(strstr(about(data).schema, part) != NULL, "%s", about(data).schema);
    mercer_matrix x = mercer_dataset_samples(data);
    assert_int_equal(x.rows, rows);
    for (int64_t i = 0; i < rows; i++) assert_true(mrc_load(&x, i, 0) == (double)(float)values[i]);
    mercer_dataset_free(data);
}

static void test_columns(void **state)
{
    (void)state;
    assert_column("a,y\n\"1,234\",1\n12,2\n\"-1,000.5\",3\n", "1,234.5", (double[]){1234, 12, -1000.5}, 3);
    assert_column("a,y\n\"$1,308\",1\n$12,2\n0,3\n", "$1,234.5", (double[]){1308, 12, 0}, 3);
    assert_column("a\ty\n1,234\t1\n12\t2\n", "1,234.5", (double[]){1234, 12}, 2);
    assert_column("a\ty\n1,5\t1\n12\t2\n", "1.234,5", (double[]){1.5, 12}, 2);
    assert_column("a;y\n1.234,56;1\n12,5;2\n1.000;3\n", "1.234,5", (double[]){1234.56, 12.5, 1000}, 3);
    assert_column("a;y\n1,234;1\n$1,5;2\n", "$1.234,5", (double[]){1.234, 1.5}, 2);
    assert_column("a,y\n12%,1\n7 %,2\n", "1,234.5%", (double[]){12, 7}, 2);
    assert_column("a,y\n31/12/1999,1\n1/2/2000,2\n", "d/m/Y", (double[]){-1, 31}, 2);
    assert_column("a,y\n12/31/1999,1\n1/2/2000,2\n", "m/d/Y", (double[]){-1, 1}, 2);
    assert_column("a,y\n01.02.2000,1\n02.02.2000,2\n", "d.m.Y", (double[]){31, 32}, 2);
    /* Plain numbers, also with leading zeros, need no notation. */
    mercer_dataset_options options = table_options("a;y\n1,5;1\n00501;2\n1.234;3\n");
    mercer_dataset *data = open_with(&options);
    assert_null(about(data).schema);
    assert_samples(data, 3, 1, (double[]){1.5, 501, (double)1.234f});
    mercer_dataset_free(data);
    /* Columns with mixed notations are still categories: two currencies, with and without percent, decimal commas in
       a csv. */
    static const char *const mixed[] = {"a,y\n$5,1\n" EURO "6,2\n", "a,y\n5%,1\n0.6,2\n", "a,y\n\"1,5\",1\n2,2\n",
                                        "a,y\n1/2/2000,1\n2000-01-01,2\n"};
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        options = table_options(mixed[i]);
        data = open_with(&options);
        assert_non_null(strstr(about(data).schema, "\"category\""));
        mercer_dataset_free(data);
    }
    /* An ambiguous comma is a decimal comma in a table separated by semicolons; a warning says so. */
    options = table_options("a;y\n1,234 $;1\n2,500 $;2\n");
    assert_warning(&options, "column 'a': '1,234 $'*1.234*comma");
}

/* Notations are saved in the schema, which is used to read new tables. */
static void test_new_tables(void **state)
{
    (void)state;
    mercer_dataset_options options =
        table_options("a;when;y\n1.234,56;31/12/1999;1\n12,5;1/2/2000;2\n;?;3\n7,0;2/2/2000;4\n");
    mercer_dataset *data = open_with(&options), *again;
    char *schema = strdup(about(data).schema);
    options = data_options(text_file("new.csv", "a;when\n1.234;1/2/2000\n"), NULL);
    options.task = MERCER_TASK_UNLABELED;
    options.schema = schema;
    again = open_with(&options);
    mercer_matrix x = mercer_dataset_samples(again);
    assert_true(mrc_load(&x, 0, 0) == 1234 && mrc_load(&x, 0, 2) == 31);
    mercer_dataset_free(again);
    options.x = text_file("new.csv", "a;when\n1.23;1/2/2000\n");
    assert_refused(&options, MERCER_ERROR_DATA, "line 2, column 'a': '1.23'*number*1.234,5");
    options.x = text_file("new.csv", "a;when\n1,5;1/13/2000\n");
    assert_refused(&options, MERCER_ERROR_DATA, "line 2, column 'when': '1/13/2000'*date*d/m/Y");
    free(schema);
    mercer_dataset_free(data);
}

/* Model files save notations, in a version that readers without notations refuse. */
static void test_model_file(void **state)
{
    (void)state;
    mercer_dataset_options options = table_options("a,y\n$5,1\n$7,2\n$9,4\n$6,3\n");
    mercer_dataset *data = open_with(&options);
    mercer_model *model = NULL, *again = NULL;
    char header[8192];
    const char *path = in_folder("m.safetensors");
    assert_succeeds(context, mercer_fit(&model, context, data, NULL, NULL));
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    assert_succeeds(context, mercer_model_file_header(context, header, sizeof header, NULL, path));
    assert_non_null(strstr(header, "\"format_version\":\"7\""));
    assert_succeeds(context, mercer_model_load(&again, context, NULL, path));
    assert_string_equal(model_info(again).schema, about(data).schema);
    mercer_model_free(again);
    mercer_model_free(model);
    mercer_dataset_free(data);
}

/* ---- A few invalid cells ----------------------------------------------------------------------------------------- */

/* Return a table of one column with `count` values; the last is `bad`. */
static char *nearly(const char *format, int count, const char *bad, char out[8192])
{
    char *at = out + sprintf(out, "a,y\n");
    for (int i = 0; i < count - 1; i++) {
        at += sprintf(at, format, i % 28 + 1);
        at += sprintf(at, ",%d.5\n", i);
    }
    sprintf(at, "%s,1\n", bad);
    return out;
}

static void test_few(void **state)
{
    (void)state;
    static const struct {
        const char *format, *bad, *says;
    } cases[] = {{"2020-01-%02d", "2020-02-30", "line 61, column 'a': '2020-02-30'*date*59 of 60"},
                 {"%02d/01/2020", "30/02/2020", "line 61, column 'a': '30/02/2020'*date*59 of 60"},
                 {"$%d.50", "n/k", "line 61, column 'a': 'n/k'*number*59 of 60*--missing='n/k'*--columns 'a:category'"},
                 {"%d %%", "0.25", "line 61, column 'a': '0.25'*number"}};
    char text[8192];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset_options options = table_options(nearly(cases[i].format, 60, cases[i].bad, text));
        assert_refused(&options, MERCER_ERROR_DATA, cases[i].says);
        options.kinds = "a:category"; /* both remedies from the message */
        mercer_dataset *data = open_with(&options);
        assert_true(about(data).features > 20);
        mercer_dataset_free(data);
        options.kinds = NULL;
        options.missing = cases[i].bad;
        data = open_with(&options);
        assert_that(strstr(about(data).schema, "\"missing\":1") != NULL, "%s", about(data).schema);
        assert_true(about(data).features <= 4);
        mercer_dataset_free(data);
    }
    mercer_dataset_options options = table_options(nearly("2020-01-%02d", 15, "soon", text));
    mercer_dataset *data = open_with(&options); /* one in fifteen is too many to be an error */
    assert_non_null(strstr(about(data).schema, "\"category\""));
    mercer_dataset_free(data);
}

static void test_order_of_dates(void **state)
{
    (void)state;
    mercer_dataset_options options = table_options("a,y\n1/2/2000,1\n3/4/2000,2\n");
    assert_refused(&options, MERCER_ERROR_DATA, "--columns 'a:date-dmy' or 'a:date-mdy'");
    static const struct {
        const char *kinds;
        double first;
    } orders[] = {{"a:date-dmy", 31}, {"a:date-mdy", 1}};
    for (int i = 0; i < 2; i++) {
        options.kinds = orders[i].kinds;
        mercer_dataset *data = open_with(&options);
        mercer_matrix x = mercer_dataset_samples(data);
        assert_true(mrc_load(&x, 0, 0) == orders[i].first);
        mercer_dataset_free(data);
    }
    options.kinds = "a:number";
    assert_refused(&options, MERCER_ERROR_DATA, "line 2, column 'a': '1/2/2000'*number");
    options = table_options("a,y\n$5,1\n$7.5,2\n");
    options.kinds = "a:number"; /* "number" accepts any notation */
    mercer_dataset *data = open_with(&options);
    assert_samples(data, 2, 1, (double[]){5, 7.5});
    mercer_dataset_free(data);
    options = table_options("a,y\n$5,1\n" EURO "7,2\n");
    options.kinds = "a:number";
    assert_refused(&options, MERCER_ERROR_DATA, "line 3, column 'a': '" EURO "7'");
}

/* ---- Large tables ------------------------------------------------------------------------------------------------ */

/* More distinct values than the limit for categories; and the same features from a temporary file. */
static void test_many_values(void **state)
{
    (void)state;
    enum { ROWS = 70000 };
    char *text = malloc(64 * ROWS), *at = text + sprintf(text, "a,b,y\n");
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "\"$%d,%03d\",w%d,%d\n", 1 + i / 1000, i % 1000, i % 3, i);
    mercer_dataset_options options = table_options(text);
    mercer_dataset *held = open_with(&options);
    mercer_matrix x = mercer_dataset_samples(held);
    for (int64_t i = 0; i < ROWS; i++) assert_true(mrc_load(&x, i, 0) == (double)(1000 + i));
    options.spill = 1 << 16;
    mercer_dataset *spilled = open_with(&options);
    mercer_matrix z = mercer_dataset_samples(spilled);
    assert_memory_equal(x.data, z.data, (size_t)(x.rows * x.cols) * sizeof(float));
    assert_string_equal(about(held).schema, about(spilled).schema);
    mercer_dataset_free(held);
    mercer_dataset_free(spilled);
    /* The invalid value comes after more distinct values than are counted. */
    sprintf(at, "oops,w1,1\n");
    options.x = text_file("n.csv", text);
    assert_refused(&options, MERCER_ERROR_DATA, "line 70002, column 'a': 'oops'*number*$1,234.5");
    free(text);
}

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

static mercer_dataset_options target_options(const char *text)
{
    mercer_dataset_options options = data_options(text_file("t.csv", text), NULL);
    options.target = "y";
    return options;
}

static void test_targets(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double values[3];
    } cases[] = {{"a,y\n1,\"$1,354.54\"\n2,$20\n3,7\n", {1354.54, 20, 7}},
                 {"a;y\n1;1.234,5\n2;2.345\n3;7,25\n", {1234.5, 2345, 7.25}}, /* by itself, 2.345 is a plain number */
                 {"a,y\n1,5.5%\n2,7 %\n3,8%\n", {5.5, 7, 8}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset_options options = target_options(cases[i].text);
        mercer_dataset *data = open_with(&options);
        assert_int_equal(about(data).task, MERCER_TASK_REGRESSION);
        assert_values(data, 1, cases[i].values);
        mercer_dataset_free(data);
        options.task = MERCER_TASK_CLASSIFICATION; /* class names on request */
        data = open_with(&options);
        assert_int_equal(about(data).outputs, 3);
        mercer_dataset_free(data);
    }
    /* Few distinct whole numbers that occur often are classes, as in plain notation. */
    mercer_dataset_options options = target_options("a,y\n1,10%\n2,20%\n3,10%\n4,20%\n5,10%\n6,20%\n");
    mercer_dataset *data = open_with(&options);
    assert_int_equal(about(data).outputs, 2);
    assert_string_equal(about(data).labels[0], "10%");
    mercer_dataset_free(data);
    options.y = text_file("y.csv", "y\n$1.5\n$2\n$3\n$4\n$5\n$6\n"); /* targets in a separate file */
    options.target = NULL;
    data = open_with(&options);
    assert_values(data, 1, (double[]){1.5, 2, 3, 4, 5, 6});
    mercer_dataset_free(data);
}

static void test_targets_that_are_not_classes(void **state)
{
    (void)state;
    char text[8192], *at = text + sprintf(text, "a,y\n");
    for (int i = 0; i < 100; i++) at += sprintf(at, "%d,w%d\n", i, i % 60);
    mercer_dataset_options options = target_options(text);
    assert_refused(&options, MERCER_ERROR_DATA, "t.csv: *target*60*100 rows*'w0'*1234.5*--task classification");
    options.task = MERCER_TASK_CLASSIFICATION;
    mercer_dataset *data = open_with(&options);
    assert_int_equal(about(data).outputs, 60);
    mercer_dataset_free(data);
    at = text + sprintf(text, "a,y\n");
    for (int i = 0; i < 100; i++) at += sprintf(at, "%d,w%d\n", i, i % 50);
    options = target_options(text); /* two rows of each class */
    data = open_with(&options);
    assert_int_equal(about(data).outputs, 50);
    mercer_dataset_free(data);
    at = text + sprintf(text, "a,y\n");
    for (int i = 0; i < 100; i++) at += sprintf(at, i == 40 ? "%d,oops\n" : "%d,%d.5\n", i, i % 30);
    options = target_options(text);
    assert_refused(&options, MERCER_ERROR_DATA, "t.csv: line 42: target 'oops'*number*99 of 100*--missing='oops'");
    options.missing = "oops";
    data = open_with(&options);
    assert_int_equal(about(data).task, MERCER_TASK_REGRESSION);
    assert_int_equal(about(data).rows, 99);
    mercer_dataset_free(data);
}

/* More distinct targets than the limit for classes, in memory or read with a schema into a temporary file. */
static void test_many_targets(void **state)
{
    (void)state;
    enum { ROWS = 11000 };
    char *text = malloc(64 * ROWS), *at = text + sprintf(text, "a,y\n");
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "w%d,\"$%d,%03d.5\"\n", i % 3, 1 + i / 1000, i % 1000);
    mercer_dataset_options options = target_options(text);
    mercer_dataset *data = open_with(&options);
    char *schema = strdup(about(data).schema);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(about(data).task, MERCER_TASK_REGRESSION);
        for (int64_t i = 0; i < ROWS; i++) assert_true(mrc_load(&data->y, i, 0) == (double)(1000 + i) + 0.5);
        mercer_matrix x = mercer_dataset_samples(data);
        assert_int_equal(x.rows, ROWS);
        for (int64_t i = 0; i < ROWS; i++) assert_true(mrc_load(&x, i, i % 3) == 1);
        mercer_dataset_free(data);
        options.schema = schema;
        options.spill = 1 << 12;
        data = open_with(&options);
    }
    mercer_dataset_free(data);
    strcpy(at, "w1,oops\n");
    options = target_options(text);
    assert_refused(&options, MERCER_ERROR_DATA, "line 11002: target 'oops'*number*$1,234.5");
    free(schema);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_units_of_a_column),
        cmocka_unit_test(test_dates),          cmocka_unit_test(test_texts),
        cmocka_unit_test(test_columns),        cmocka_unit_test(test_new_tables),
        cmocka_unit_test(test_model_file),     cmocka_unit_test(test_few),
        cmocka_unit_test(test_order_of_dates), cmocka_unit_test(test_many_values),
        cmocka_unit_test(test_targets),        cmocka_unit_test(test_targets_that_are_not_classes),
        cmocka_unit_test(test_many_targets),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

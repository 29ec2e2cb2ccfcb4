/* SPDX-License-Identifier: BSD-3-Clause */
/* Column texts as stored in CSV files: quotes, several files, slices, rejected input. */
#include "support/datasets.h"

#include "mercer/advanced.h"
#include "mercer/evaluation.h"

static mercer_dataset_options options_of(const char *path)
{
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    options.x = path;
    return options;
}

/* Write all records to `out` as one string: fields separated by '/', each record followed by ';'. */
static void read_all(const mercer_dataset_options *options, const char *columns, char *out)
{
    mercer_column_texts *texts = NULL;
    const char *const *fields;
    int64_t count = 0;
    out[0] = 0;
    assert_succeeds(context, mercer_column_texts_open(&texts, context, options, columns));
    mercer_column_texts_names(texts, &count);
    for (;;) {
        assert_succeeds(context, mercer_column_texts_next(texts, &fields));
        if (!fields) break;
        for (int64_t k = 0; k < count; k++) strcat(strcat(out, k ? "/" : ""), fields[k]);
        strcat(out, ";");
    }
    mercer_column_texts_free(texts);
}

static void test_texts(void **state)
{
    (void)state;
    char found[512];
    const char *path =
        text_file("a.csv", "id,x,name,y\r\n007,1.50,\"say \"\"a, b\"\"\",2\r\n8,2,,3\n \t9,3,\"two\nlines\",4\n");
    mercer_dataset_options options = options_of(path);
    read_all(&options, "name,id", found);
    assert_string_equal(found, "say \"a, b\"/007;/8;two\nlines/ \t9;");
    read_all(&options, " x , x", found);
    assert_string_equal(found, "1.50/1.50;2/2;3/3;");
    options.first = 1, options.rows = 1;
    read_all(&options, "id", found);
    assert_string_equal(found, "8;");
}

static void test_several_files(void **state)
{
    (void)state;
    char found[512], pattern[256];
    text_file("part-1.csv", "id,x\na,1\nb,2\n");
    text_file("part-2.csv", "c,3\n");
    text_file("part-10.csv", "\"id\", x\nd,4\ne,5\n"); /* this file repeats the column names */
    snprintf(pattern, sizeof pattern, "%s", in_folder("part-*.csv"));
    mercer_dataset_options options = options_of(pattern);
    read_all(&options, "id", found);
    assert_string_equal(found, "a;b;c;d;e;");
    options.first = 2, options.rows = 2;
    read_all(&options, "id", found);
    assert_string_equal(found, "c;d;");
}

static void test_refused(void **state)
{
    (void)state;
    const char *const *fields;
    mercer_column_texts *texts = NULL;
    mercer_dataset_options options = options_of(text_file("b.csv", "id,x\na,1\nb\n"));
    assert_fails(context, mercer_column_texts_open(&texts, context, &options, "ID"), MERCER_ERROR_MISMATCH,
                 "no column 'ID'");
    assert_fails(context, mercer_column_texts_open(&texts, context, &options, "id,,x"), MERCER_ERROR_ARGUMENT, "empty");
    assert_fails(context, mercer_column_texts_open(&texts, context, &options, NULL), MERCER_ERROR_ARGUMENT, "columns");
    assert_null(texts);
    assert_succeeds(context, mercer_column_texts_open(&texts, context, &options, "x"));
    assert_succeeds(context, mercer_column_texts_next(texts, &fields));
    assert_fails(context, mercer_column_texts_next(texts, &fields), MERCER_ERROR_FORMAT, "line 3 has fewer");
    assert_null(fields);
    mercer_column_texts_free(texts);
    options = options_of(text_file("c.csv", "1,2\n3,4\n"));
    assert_fails(context, mercer_column_texts_open(&texts, context, &options, "id"), MERCER_ERROR_FORMAT, "c.csv: ");
    options = options_of(text_file("d.csv", "id,id,x\na,b,1\n"));
    assert_fails(context, mercer_column_texts_open(&texts, context, &options, "id"), MERCER_ERROR_MISMATCH,
                 "more than");
    options = options_of(text_file("e.libsvm", "1 1:2\n"));
    assert_fails(context, mercer_column_texts_open(&texts, context, &options, "id"), MERCER_ERROR_FORMAT, "libsvm");
    mercer_column_texts_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_several_files),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

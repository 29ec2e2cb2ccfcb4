/* SPDX-License-Identifier: BSD-3-Clause */
/* Warnings about columns, from files and from memory: unused columns, row numbers, differences from training. */
#include "support/datasets.h"

#include "data/schema/schema.h"

#include <math.h>

enum { ROWS = 40 };

/* Check that a recorded warning contains `part` and that its field is `field`. */
static void assert_warned(const char *field, const char *part)
{
    const char *found, *text;
    for (int i = 0; (text = mercer_warning(context, i, &found)); i++)
        if (mentions(text, part)) {
            assert_string_equal(found, field);
            return;
        }
    for (int i = 0; (text = mercer_warning(context, i, &found)); i++) print_message("%s: %s\n", found, text);
    fail_msg("no warning says '%s'", part);
}

static int count_warnings(void)
{
    int count = 0;
    while (mercer_warning(context, count, NULL)) count++;
    return count;
}

static mercer_dataset_options table_options(const char *text)
{
    mercer_dataset_options options = data_options(text_file("t.csv", text), NULL);
    options.target = "y";
    options.task = MERCER_TASK_REGRESSION;
    mercer_clear_warnings(context);
    return options;
}

static void test_columns_that_are_not_used(void **state)
{
    (void)state;
    char text[8192], *at = text + sprintf(text, "amount,name,same,word,when,none,b,y\n");
    for (int i = 0; i < ROWS; i++)
        at += sprintf(at, "blue-%d,%c%c,7,one,2024-01-01,NA,%s,%d\n", i, 'a' + i % 20, 'a' + i / 20, i % 2 ? "u" : "v",
                      i);
    mercer_dataset_options options = table_options(text);
    mercer_dataset *data = open_with(&options);
    assert_feature_names(data, "b=u|b=v");
    mercer_dataset_free(data);
    assert_warned("amount",
                  "t.csv: column 'amount'*'blue-0'*1234.5*2024-02-29*--drop 'amount'*--columns 'amount:category'");
    assert_warned("name", "column 'name'*'aa'*--drop");
    assert_warned("same", "column 'same'*'7'");
    assert_warned("word", "column 'word'*'one'");
    assert_warned("when", "column 'when'*date");
    assert_warned("none", "column 'none'*empty");
    assert_int_equal(count_warnings(), 6);
    mercer_clear_warnings(context);
    options.kinds = "amount:drop,name:drop,same:drop,word:drop,when:drop,none:drop";
    data = open_with(&options); /* explicitly dropped columns cause no warning */
    assert_int_equal(count_warnings(), 0);
    mercer_dataset_free(data);
}

static void test_many_columns(void **state)
{
    (void)state;
    char text[8192], *at = text;
    for (int j = 0; j < 20; j++) at += sprintf(at, "c%d,", j);
    at += sprintf(at, "b,y\n");
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < 20; j++) at += sprintf(at, j < 15 ? "one," : ",");
        at += sprintf(at, "%s,%d\n", i % 2 ? "u" : "v", i);
    }
    mercer_dataset_options options = table_options(text);
    mercer_dataset_free(open_with(&options));
    assert_warned("c7", "column 'c7'");
    assert_warned("", "t.csv: 12*columns*5 empty*7*0*text");
    assert_int_equal(count_warnings(), MRC_COLUMN_WARNINGS + 1);
}

static void test_row_numbers(void **state)
{
    (void)state;
    char text[8192];
    for (int first = 0; first < 4; first++) { /* 3: from 1, some rows lack a target */
        char *at = text + sprintf(text, "id,a,y\n");
        for (int i = 0; i < ROWS; i++) {
            int id = first == 3 ? i + 1 : i + first;
            at += sprintf(at, "%d,%d.5,", id, i * 7 % 11);
            at += first == 3 && i % 9 == 4 ? sprintf(at, "\n") : sprintf(at, "%d\n", i);
        }
        mercer_dataset_options options = table_options(text);
        for (int spilled = 0; spilled < 2; spilled++) {
            options.spill = spilled ? 64 : 0;
            mercer_clear_warnings(context);
            mercer_dataset *data = open_with(&options);
            assert_feature_names(data, "id|a"); /* the column is still used */
            mercer_dataset_free(data);
            if (first == 2)
                assert_int_equal(count_warnings(), 0);
            else
                assert_warned("id", "add --drop 'id'");
        }
    }
    char *at = text + sprintf(text, "a,y\n"); /* no warning if it is the only feature */
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "%d,%d\n", i, i);
    mercer_dataset_options options = table_options(text);
    mercer_dataset_free(open_with(&options));
    assert_int_equal(count_warnings(), 0);
}

/* Columns without a name are identified by their index in the file; the target counts, too. */
static void test_columns_without_names(void **state)
{
    (void)state;
    static const char *const headers[] = {"", "y,,a,c,b\n", "y,,a,1,b\n"};
    static const char *const options_of[] = {"1", "1", "-4"}; /* -4, because "1" is a name */
    char text[8192];
    for (int h = 0; h < 3; h++) {
        char *at = text + sprintf(text, "%s", headers[h]);
        for (int i = 0; i < ROWS; i++) at += sprintf(at, "%d,%d,%d.5,,%d\n", i * 3, i, i * 7 % 11, i * 5 % 13);
        mercer_dataset_options options = table_options(text);
        options.target = "0";
        mercer_dataset_free(open_with(&options));
        char part[200];
        snprintf(part, sizeof part, "t.csv: column 1 (from 0): has %d ", ROWS);
        assert_warned(options_of[h], part);
        snprintf(part, sizeof part, "add --drop '%s'", options_of[h]);
        assert_warned(options_of[h], part);
        if (h == 0) assert_warned("3", "t.csv: column 3 *empty");
        assert_int_equal(count_warnings(), 2);
        options.kinds = h == 2 ? "-4:drop" : "1:drop"; /* the option that the warning suggests */
        mercer_clear_warnings(context);
        mercer_dataset_free(open_with(&options));
        assert_int_equal(count_warnings(), 1);
    }
    char *at = text + sprintf(text, "y,,a,\n");
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "%d,%d,%d.5,%c\n", i * 3, i % 7, i * 7 % 11, 'a' + i % 3);
    mercer_dataset_options options = table_options(text);
    assert_refused(&options, MERCER_ERROR_FORMAT, "t.csv: column 3");
    at = text;
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "%d,%d.5,%s\n", i * 3, i * 7 % 11, i == 17 ? "zz" : "2");
    options = table_options(text);
    options.target = "0";
    assert_refused(&options, MERCER_ERROR_DATA, "line 18, column 2*'zz'*number");
    assert_refused(&options, MERCER_ERROR_DATA, "add --columns '2:category'");
}

/* ---- Columns in memory ------------------------------------------------------------------------------------------- */

static const char *texts[ROWS + 1];
static char buffer[ROWS + 1][32];
static int32_t codes[ROWS];
static double values[ROWS];

static mercer_status create_dataset(mercer_dataset **out, const char *kind, const char *schema)
{
    const mercer_table_column columns[] = {{"c", kind, .codes = codes, .words = texts, .word_count = ROWS + 1},
                                           {"a", "number", .values = values}};
    mercer_clear_warnings(context);
    return mercer_dataset_from_columns(out, context, columns, 2, ROWS, schema);
}

/* Fill column c with strings printed by `format`; `codes` map the rows to them in reverse order. `bad`: string of row
   17, or NULL. */
static void set_texts(const char *format, const char *bad)
{
    for (int i = 0; i < ROWS; i++) {
        snprintf(buffer[i], sizeof buffer[i], format, i % 28 + 1);
        texts[i] = buffer[i];
        codes[i] = ROWS - 1 - i;
        values[i] = i * 7 % 11;
    }
    texts[ROWS] = bad ? bad : "unused";
    if (bad) codes[17] = ROWS;
}

static void refuse_text(const char *part)
{
    mercer_dataset *data = NULL;
    assert_fails(context, create_dataset(&data, "text", NULL), MERCER_ERROR_DATA, part);
    assert_true(strncmp(mercer_last_error(context), "column 'c'", 10) == 0);
}

static void test_text_in_memory(void **state)
{
    (void)state;
    mercer_dataset *data;
    set_texts("2020-01-%02d", "2020-02-30");
    refuse_text("column 'c', row 17: '2020-02-30'*date*39 of 40");
    assert_succeeds(context, create_dataset(&data, "category", NULL)); /* a category column accepts such strings */
    assert_true(about(data).features > 20);
    mercer_dataset_free(data);
    set_texts("%d", "-");
    refuse_text("column 'c', row 17: '-'*number*39 of 40");
    set_texts("01/%02d/2020", NULL);
    texts[ROWS] = "02/01/2020";
    assert_succeeds(context, create_dataset(&data, "text", NULL));
    assert_non_null(strstr(about(data).schema, "\"notation\":\"m/d/Y\""));
    mercer_dataset_free(data);
    set_texts("%02d/01/2020", NULL);
    for (int i = 0; i < ROWS; i++) texts[i] = buffer[i % 12];
    texts[ROWS] = buffer[0];
    refuse_text("column 'c'");
    set_texts("$%d.50", "NA"); /* NA counts as a missing value among numbers */
    assert_succeeds(context, create_dataset(&data, "text", NULL));
    assert_non_null(strstr(about(data).schema, "\"notation\":\"$1,234.5\""));
    assert_non_null(strstr(about(data).schema, "\"missing\":1"));
    mercer_dataset_free(data);
}

/* Data frames mark categories by storing whole numbers as text, so such columns remain categories. */
static void test_whole_numbers_as_text(void **state)
{
    (void)state;
    mercer_dataset *data;
    set_texts("%d", NULL);
    texts[ROWS] = "5";
    assert_succeeds(context, create_dataset(&data, "text", NULL));
    assert_non_null(strstr(about(data).schema, "\"category\""));
    mercer_dataset_free(data);
    assert_warned("c", "column 'c'*text");
    set_texts("00%d", NULL);
    texts[ROWS] = "5";
    assert_succeeds(context, create_dataset(&data, "text", NULL));
    assert_non_null(strstr(about(data).schema, "\"category\""));
    assert_int_equal(count_warnings(), 0);
    mercer_dataset_free(data);
    set_texts("%d.5", NULL);
    texts[ROWS] = "5";
    assert_succeeds(context, create_dataset(&data, "text", NULL));
    assert_null(about(data).schema); /* no schema: the strings are plain numbers */
    assert_int_equal(count_warnings(), 0);
    mercer_dataset_free(data);
}

static void test_new_tables_in_memory(void **state)
{
    (void)state;
    mercer_dataset *data, *again;
    set_texts("w%d", NULL);
    for (int i = 0; i < ROWS; i++) texts[i] = buffer[i % 3];
    assert_succeeds(context, create_dataset(&data, "text", NULL));
    assert_int_equal(count_warnings(), 0);
    codes[3] = ROWS;
    texts[ROWS] = "astronaut";
    assert_succeeds(context, create_dataset(&again, "text", about(data).schema));
    assert_warned("c", "column 'c': 1*category*('astronaut')");
    assert_int_equal(count_warnings(), 1);
    mercer_dataset_free(again);
    codes[5] = ROWS, codes[6] = -1, values[2] = (double)NAN;
    assert_succeeds(context, create_dataset(&again, "text", about(data).schema));
    assert_warned("c", "column 'c': 2*category*'astronaut'");
    assert_warned("c", "column 'c': 1*missing*unknown");
    assert_warned("a", "column 'a': 1*missing*filled");
    mercer_dataset_free(again);
    mercer_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_that_are_not_used),
        cmocka_unit_test(test_many_columns),
        cmocka_unit_test(test_row_numbers),
        cmocka_unit_test(test_columns_without_names),
        cmocka_unit_test(test_text_in_memory),
        cmocka_unit_test(test_whole_numbers_as_text),
        cmocka_unit_test(test_new_tables_in_memory),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Status codes: distinct values that never change, and a message for each. */
#include "support/check.h"

typedef struct status_row {
    mercer_status status;
    int value;
    const char *text;
} status_row;

#define AS_ROW(name, value, text) {name, value, text},
static const status_row rows[] = {MERCER_STATUS_LIST(AS_ROW)};
enum { ROWS = sizeof rows / sizeof *rows };

static void test_every_status_has_its_text(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        assert_string_equal(mercer_status_string(rows[i].status), rows[i].text);
        assert_true(strlen(rows[i].text) > 0);
    }
}

static void test_values_and_texts_are_distinct(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(rows[i].status, rows[j].status);
            assert_string_not_equal(rows[i].text, rows[j].text);
        }
    }
}

/* The numbers are part of the binary interface: a program compiled against an older header compares with them. */
static void test_values_never_change(void **state)
{
    (void)state;
    assert_int_equal(MERCER_OK, 0);
    assert_int_equal(MERCER_ERROR_ARGUMENT, 1);
    assert_int_equal(MERCER_ERROR_SHAPE, 2);
    assert_int_equal(MERCER_ERROR_DTYPE, 3);
    assert_int_equal(MERCER_ERROR_OVERLAP, 4);
    assert_int_equal(MERCER_ERROR_DATA, 5);
    assert_int_equal(MERCER_ERROR_KERNEL, 6);
    assert_int_equal(MERCER_ERROR_MEMORY, 7);
    assert_int_equal(MERCER_ERROR_UNSUPPORTED, 8);
    assert_int_equal(MERCER_ERROR_NUMERIC, 9);
    assert_int_equal(MERCER_ERROR_CALLBACK, 10);
    assert_int_equal(MERCER_ERROR_INTERNAL, 11);
}

static void test_unknown_number(void **state)
{
    (void)state;
    const int unknown[] = {-1, ROWS, 12345, 0x7fffffff};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_string_equal(mercer_status_string((mercer_status)unknown[i]), "unknown status");
}

static void test_version(void **state)
{
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", MERCER_VERSION_MAJOR, MERCER_VERSION_MINOR, MERCER_VERSION_PATCH);
    assert_string_equal(mercer_version(), text);
}

/* Other tests compare messages by patterns. */
static void test_patterns(void **state)
{
    (void)state;
    const char *text = "a.csv: line 12, column 'x': '1*2', no number";
    assert_true(mentions(text, "") && mentions(text, "*") && mentions(text, text));
    assert_true(mentions(text, "line 12*'x'*number") && mentions(text, "'1*2'*number") && mentions(text, "*number*"));
    assert_false(mentions(text, "'x'*line 12") || mentions(text, "line 13") || mentions(text, "number*number"));
    assert_false(mentions("", "x") || mentions(text, "number*."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_status_has_its_text),
        cmocka_unit_test(test_values_and_texts_are_distinct),
        cmocka_unit_test(test_values_never_change),
        cmocka_unit_test(test_unknown_number),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

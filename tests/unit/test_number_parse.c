/* SPDX-License-Identifier: BSD-3-Clause */
/* Decimals in text are converted to the nearest double: compared with the C library's strtod, bit for bit, in any
   locale. */
#include "support/check.h"

#include "core/numbers/random.h"
#include "data/table/number.h"

#include <locale.h>
#include <math.h>

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void check_text(const char *text)
{
    double expected = strtod(text, NULL), value = -1;
    mrc_number kind = mrc_read_number(text, text + strlen(text), &value);
    if (isinf(expected)) {
        assert_that(kind == MRC_NUMBER_INFINITE, "'%s': kind %d", text, (int)kind);
        return;
    }
    assert_that(kind == MRC_NUMBER && bits_of(value) == bits_of(expected), "'%.60s': kind %d, %.17g instead of %.17g",
                text, (int)kind, value, expected);
}

static void test_hard_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "+0",
        "0.0",
        "00",
        "0e999999999999999999999",
        "0.000e-400",
        "1",
        "-1",
        "+1.5",
        ".5",
        "5.",
        "-.5e1",
        "1e22",
        "1e23",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "9007199254740995",
        "9007199254740993.0000000000000000000000000000001",
        "9007199254740992.9999999999999999999999999",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "99999999999999999999",
        "1e19",
        "1e27",
        "1e28",
        "1e-27",
        "1e-28",
        "1234567890123456789e27",
        "1234567890123456789e-27",
        "9999999999999999999e-27",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "2.2250738585072014e-308",
        "4.9406564584124654e-324",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.47032822920623272e-324",
        "1e-323",
        "1.5e-323",
        "3e-324",
        "1e-400",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1.797693134862315807e308",
        "1.797693134862315808e308",
        "1e308",
        "1e309",
        "1e310",
        "1e400",
        "123456789e300",
        "0.000000000000000000000000000000000000000000000000000001e360",
        "1e-99999999999999999999",
        "1e99999999999999999999",
        "17976931348623158079372897140530341507993413271003782693617377898044496829276475094664901797758720709633028641"
        "6692"
        "88791094655554785194040263065748867150582068190890200070838367627385484581771153176447573027006985557136695962"
        "2842"
        "914819860834936475292719074168444365510704342711559699508093042880",
        "17976931348623158079372897140530341507993413271003782693617377898044496829276475094664901797758720709633028641"
        "6692"
        "88791094655554785194040263065748867150582068190890200070838367627385484581771153176447573027006985557136695962"
        "2842"
        "914819860834936475292719074168444365510704342711559699508093042879.999",
        "6929495644600919.5",
        "3.518437208883201171875e13",
        "7.2057594037927933e16",
        "5e-324",
        "8.5e-324",
        "0.1",
        "0.2",
        "0.3",
        "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899",
        "1e-5",
        "123456",
        "65504",
        "0.00000000000000000001234567890123456789"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_text(texts[i]);
}

/* Halfway points between neighboring doubles, written out in full, and variants that differ only after hundreds of
   zeros. */
static void test_half_way(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3000; i++) {
        uint64_t pattern[2];
        for (int k = 0; k < 2; k++) {
            double u = mrc_random_uniform((mrc_rng){5, 1}, 2 * i + (uint64_t)k);
            pattern[k] = (uint64_t)(u * 0x1p32);
        }
        uint64_t bits = (pattern[0] << 32 | pattern[1]) & 0x7fffffffffffffff;
        double low;
        if (i % 3 == 0) bits &= 0x001fffffffffffff; /* subnormals and the smallest normal numbers */
        memcpy(&low, &bits, sizeof low);
        if (!isfinite(low) || !isfinite(nextafter(low, INFINITY))) continue;
        /* A 64-bit significand of long double represents the halfway point between two doubles exactly, subnormals
           included. */
        char text[1400], more[1500];
        long double half = (long double)low + ((long double)nextafter(low, INFINITY) - (long double)low) / 2;
        snprintf(text, sizeof text, "%.1100Lf", half);
        check_text(text);
        snprintf(more, sizeof more, "%s1", text);
        check_text(more);
        snprintf(more, sizeof more, "%s0000000001e-3", text);
        check_text(more);
        snprintf(text, sizeof text, "%.770Le", half);
        check_text(text);
    }
}

static void test_random_numbers(void **state)
{
    (void)state;
    mrc_rng rng = {7, 1};
    for (uint64_t i = 0; i < 300000; i++) {
        char text[64];
        double a = mrc_random_uniform(rng, 4 * i), b = mrc_random_uniform(rng, 4 * i + 1);
        int digits = (int)(mrc_random_uniform(rng, 4 * i + 2) * 19);
        double wide = i % 2 ? 640 : 40;
        snprintf(text, sizeof text, "%s%.*fe%d", i % 3 ? "" : "-", digits, a * 10, (int)((b - 0.5) * wide));
        check_text(text);
        snprintf(text, sizeof text, "%.17g", (a - 0.5) * pow(10, (b - 0.5) * 20)); /* the format of printing programs */
        check_text(text);
        snprintf(text, sizeof text, "%.*f", digits, a * 1000);
        check_text(text);
    }
}

static mrc_number kind_of(const char *text)
{
    double value;
    return mrc_read_number(text, text + strlen(text), &value);
}

static void test_other_texts(void **state)
{
    (void)state;
    double value;
    const char *spaced = " \t 12.5\t ";
    assert_int_equal(mrc_read_number(spaced, spaced + strlen(spaced), &value), MRC_NUMBER);
    assert_true(value == 12.5);
    const char *part = "12345"; /* the end pointer ends the text, not a terminating zero */
    assert_int_equal(mrc_read_number(part, part + 2, &value), MRC_NUMBER);
    assert_true(value == 12);
    static const char *const missing[] = {"", " ", "\t", "nan", "NaN", "-nan", "NA", "n/a", "null", "None", "?"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_that(kind_of(missing[i]) == MRC_NUMBER_MISSING, "'%s'", missing[i]);
    static const char *const infinite[] = {"inf", "-inf", "+Infinity", "1e309", "-1e999"};
    for (size_t i = 0; i < sizeof infinite / sizeof *infinite; i++)
        assert_that(kind_of(infinite[i]) == MRC_NUMBER_INFINITE, "'%s'", infinite[i]);
    static const char *const texts[] = {"a",     "1a",   "1e",    "1e+",  "e5",   ".",       "-",
                                        "+",     "--1",  "1.2.3", "1,5",  "0x10", "1 2",     "1_0",
                                        "1e5.0", "infx", "naan",  "1e 5", "- 1",  "\xd9\xa1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_that(kind_of(texts[i]) == MRC_NUMBER_TEXT, "'%s'", texts[i]);
}

/* A locale with a decimal comma changes nothing. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8", "pt_BR.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) found = setlocale(LC_NUMERIC, names[i]);
    double value = 0;
    const char *text = "2.5";
    mrc_number kind = mrc_read_number(text, text + 3, &value), comma = kind_of("2,5");
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(kind, MRC_NUMBER);
    assert_true(value == 2.5);
    assert_int_equal(comma, MRC_NUMBER_TEXT);
    if (!found) skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hard_numbers), cmocka_unit_test(test_half_way),
                                       cmocka_unit_test(test_random_numbers), cmocka_unit_test(test_other_texts),
                                       cmocka_unit_test(test_locale)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel specifications: parsing, printing and error messages. */
#include "support/check.h"

#include "support/info.h"

#include "core/spec.h"

#include "kernels/formulas.h"
#include "kernels/table.h"

#include <locale.h>
#include <math.h>
#include <stddef.h>

static mercer_kernel parse(const char *spec)
{
    mercer_context context = {.threads = 1};
    mercer_kernel kernel;
    memset(&kernel, 0x55, sizeof kernel);
    assert_succeeds(&context, mrc_kernel_parse(&context, &kernel, spec));
    return kernel;
}

/* The public list of kernels. A kernel's index must not change: it is the number stored in mercer_kernel. */
static void test_list(void **state)
{
    (void)state;
    static const char *const first[] = {"laplace", "gaussian",           "matern32",    "matern52", "exppower",
                                        "cauchy",  "rational-quadratic", "polynomial",  "linear",   "ntk",
                                        "nngp",    "laplace-l1",         "exppower-l1", "lpq"};
    const int known = sizeof first / sizeof *first, count = mrc_kernel_table_size;
    assert_true(count >= known);
    for (int i = 0; i < known; i++) assert_string_equal(kernel_info(i).name, first[i]);
    for (int i = 0; i < count; i++) {
        const mercer_kernel_info info = kernel_info(i);
        mercer_kernel kernel = parse(info.example);
        assert_int_equal(kernel.id, i + 1);
        for (int k = 0; k < i; k++) assert_string_not_equal(kernel_info(k).name, info.name);
        for (int k = 0; k < MRC_SPEC_PARAMETERS && info.parameters[k]; k++)
            assert_that(strstr(info.example, info.parameters[k]), "the example of %s lacks %s", info.name,
                        info.parameters[k]);
    }
    assert_string_equal(kernel_info(4).parameters[0], "bandwidth");
    assert_string_equal(kernel_info(4).parameters[1], "gamma");
    assert_null(kernel_info(4).parameters[2]);
    assert_null(kernel_info(8).parameters[0]); /* the linear kernel */
    const int outside[] = {-1, count, INT32_MAX, INT32_MIN};
    mercer_kernel_info info = MERCER_INIT(mercer_kernel_info), unset;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mercer_kernel_list(&info, outside[i]), 0);
        assert_null(info.name); /* unchanged */
    }
    memset(&unset, 0, sizeof unset);
    assert_int_equal(mercer_kernel_list(&unset, 0), 0); /* without struct_size */
    assert_null(unset.name);
    assert_int_equal(mercer_kernel_list(NULL, 0), 0);
}

static void test_examples_round_trip(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    for (int i = 0; i < mrc_kernel_table_size; i++) {
        mercer_kernel kernel = parse(kernel_info(i).example), again;
        char text[256];
        size_t needed = 0;
        assert_succeeds(&context, mrc_kernel_check(&context, &kernel));
        assert_succeeds(&context, mrc_kernel_print(&context, &kernel, text, sizeof text, &needed));
        assert_int_equal(needed, strlen(text) + 1);
        assert_int_equal(strncmp(text, kernel_info(i).name, strlen(kernel_info(i).name)), 0);
        again = parse(text);
        assert_memory_equal(&again, &kernel, sizeof kernel);
    }
}

static void test_values_land_in_their_fields(void **state)
{
    (void)state;
    mercer_kernel k = parse("exppower:gamma=0.5,bandwidth=2.5"); /* parameters in any order */
    assert_int_equal(k.id, MRC_KERNEL_EXPPOWER);
    assert_true(k.bandwidth == 2.5 && k.gamma == 0.5);
    k = parse("polynomial:offset=0,degree=5,scale=1e-3");
    assert_int_equal(k.degree, 5);
    assert_true(k.scale == 1e-3 && k.offset == 0);
    k = parse("ntk:bias=.25,depth=4");
    assert_int_equal(k.depth, 4);
    assert_true(k.bias == 0.25);
    k = parse("lpq:q=0.5,bandwidth=3,p=1.5");
    assert_true(k.p == 1.5 && k.q == 0.5 && k.bandwidth == 3);
    assert_null(k.callback);
    assert_int_equal(k.reserved[0] | k.reserved[1], 0);
}

static void test_defaults(void **state)
{
    (void)state;
    mercer_kernel k = parse("polynomial");
    assert_int_equal(k.degree, 3);
    assert_true(k.scale == 1 && k.offset == 1);
    k = parse("rational-quadratic:bandwidth=2");
    assert_true(k.alpha == 1);
    k = parse("ntk");
    assert_int_equal(k.depth, 1);
    assert_true(k.bias == 0);
    assert_int_equal(parse("nngp").depth, 1);
    assert_int_equal(parse("linear").id, MRC_KERNEL_LINEAR);
}

/* Numbers that need all 17 digits, and the limits of the ranges, survive printing and parsing bit for bit. */
static void test_numbers_round_trip(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    const double values[] = {0.1, 1.0 / 3, 1e-300, 1e300, 1.7e-299, 123456789.123456789, 0x1.fffffffffffffp0,
                             3,   1e22,    1e23};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        mercer_kernel kernel = parse("laplace:bandwidth=1");
        kernel.bandwidth = values[i];
        char text[128];
        assert_succeeds(&context, mrc_kernel_print(&context, &kernel, text, sizeof text, NULL));
        assert_that(parse(text).bandwidth == values[i], "%a printed as %s", values[i], text);
    }
    char text[128];
    mercer_kernel tenth = parse("laplace:bandwidth=0.1");
    assert_succeeds(&context, mrc_kernel_print(&context, &tenth, text, sizeof text, NULL));
    assert_string_equal(text, "laplace:bandwidth=0.1"); /* the shortest form, not 17 digits */
}

/* An invalid text and the parts that its message must contain. */
typedef struct bad_spec {
    const char *spec;
    const char *parts[3];
} bad_spec;

static const bad_spec bad_specs[] = {
    {"", {"no name", "laplace", "nngp"}},
    {":bandwidth=1", {"no name", "gaussian", "laplace:bandwidth"}},
    {"laplacian:bandwidth=1", {"'laplacian'", "laplace, gaussian", "nngp"}},
    {"Laplace:bandwidth=1", {"'Laplace'", "laplace", "linear"}},
    {" laplace:bandwidth=1", {"' laplace'", "laplace", "linear"}},
    {"laplace", {"missing parameter 'bandwidth'", ">= 1e-300", "required"}},
    {"laplace:", {"missing parameter 'bandwidth'", ">= 1e-300", "laplace:bandwidth=10"}},
    {"exppower:bandwidth=1", {"missing parameter 'gamma'", "gamma (>= 0.001 and <= 2", "bandwidth"}},
    {"laplace:width=3", {"unknown parameter 'width'", "bandwidth (>= 1e-300", "required"}},
    {"laplace:bandwidth=1,gamma=1", {"unknown parameter 'gamma'", "bandwidth", ""}},
    {"linear:scale=2", {"unknown parameter 'scale'", "none", ""}},
    {"laplace:bandwidth", {"value*'bandwidth'", "bandwidth (>= 1e-300", ""}},
    {"laplace:bandwidth,", {"value*given", "", ""}},
    {"laplace:bandwidth=", {"number: ''", "", ""}},
    {"laplace:bandwidth=abc", {"number: 'abc'", "", ""}},
    {"laplace:bandwidth=nan", {"number: 'nan'", "", ""}},
    {"laplace:bandwidth=inf", {"number: 'inf'", "", ""}},
    {"laplace:bandwidth=0x10", {"number: '0x10'", "", ""}},
    {"laplace:bandwidth= 1", {"number: ' 1'", "", ""}},
    {"laplace:bandwidth=1 ", {"number: '1 '", "", ""}},
    {"laplace:bandwidth=1.2.3", {"number: '1.2.3'", "", ""}},
    {"laplace:bandwidth=1e", {"number: '1e'", "", ""}},
    {"laplace:bandwidth=--1", {"number: '--1'", "", ""}},
    {"laplace:bandwidth=1e400", {"1e400", "", ""}},
    {"laplace:bandwidth=0", {"bandwidth=0*range", ">= 1e-300", ""}},
    {"laplace:bandwidth=-2", {"bandwidth=-2*range", ">= 1e-300", ""}},
    {"laplace:bandwidth=1e-400", {"bandwidth=1e-400*range", ">= 1e-300", ""}},
    {"laplace:bandwidth=1e-320", {"bandwidth=1e-320*range", "", ""}}, /* its inverse is infinite */
    {"gaussian:bandwidth=1e301", {"bandwidth=1e301*range", "", ""}},
    {"exppower:bandwidth=1,gamma=1e-320", {"gamma=1e-320*range", "", ""}},
    {"lpq:p=1e-320,q=1e-320,bandwidth=1", {"p=1e-320*range", "", ""}},
    {"rational-quadratic:bandwidth=1,alpha=1e-320", {"alpha=1e-320*range", ">= 1e-06 and <= 1e+06", ""}},
    {"rational-quadratic:bandwidth=1,alpha=1e100", {"alpha=1e100*range", "", ""}},
    {"polynomial:scale=1e-320", {"scale=1e-320*range", ">= 1e-100 and <= 1e+100", ""}},
    {"exppower:bandwidth=1,gamma=2.1", {"gamma=2.1*range", "<= 2", ""}},
    {"exppower-l1:bandwidth=1,gamma=1.1", {"gamma=1.1*range", ">= 0.001 and <= 1", ""}},
    {"exppower-l1:bandwidth=1,gamma=0", {"gamma=0*range", ">= 0.001 and <= 1", ""}},
    {"laplace-l1:bandwidth=-3", {"bandwidth=-3*range", ">= 1e-300", ""}},
    {"lpq:p=2.5,q=1,bandwidth=1", {"p=2.5*range", ">= 0.001 and <= 2", ""}},
    {"lpq:p=0,q=1,bandwidth=1", {"p=0*range", ">= 0.001 and <= 2", ""}},
    {"lpq:p=1,q=-0.5,bandwidth=1", {"q=-0.5*range", ">= 0.001 and <= 2", ""}},
    {"lpq:q=1.5,p=1.25,bandwidth=1", {"kernel lpq: q is 1.5", "<= p = 1.25", "positive definite"}},
    {"lpq:p=1,q=1", {"missing parameter 'bandwidth'", "p (>= 0.001 and <= 2, required)", "lpq:p=1.5,q=0.8"}},
    {"polynomial:degree=2.5", {"degree=2.5*range", "whole", "<= 64"}},
    {"polynomial:degree=0", {"degree=0*range", ">= 1", ""}},
    {"polynomial:degree=65", {"degree=65*range", "<= 64", ""}},
    {"polynomial:degree=1e300", {"range", "<= 64", ""}},
    {"polynomial:offset=-1", {"offset=-1*range", ">= 0", ""}},
    {"ntk:depth=0", {"depth=0*range", ">= 1", ""}},
    {"ntk:bias=-0.5", {"bias=-0.5*range", ">= 0", ""}},
    {"laplace:bandwidth=1,bandwidth=2", {"given twice: 'bandwidth'", "", ""}},
    {"laplace:bandwidth=1,", {"','", "", ""}},
    {"laplace:bandwidth=1,,", {"unknown parameter ''", "", ""}},
    {"laplace:bandwidth=1:gamma=2", {"number: '1:gamma=2'", "", ""}},
    {"laplace:,bandwidth=1", {"unknown parameter ''", "", ""}},
};

static void test_bad_specs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_specs / sizeof *bad_specs; i++) {
        mercer_context context = {.threads = 1};
        mercer_kernel kernel, before;
        memset(&kernel, 0x55, sizeof kernel);
        memset(&before, 0x55, sizeof before);
        mercer_status status = mrc_kernel_parse(&context, &kernel, bad_specs[i].spec);
        assert_that(status == MERCER_ERROR_KERNEL, "'%s': %s", bad_specs[i].spec, mercer_status_string(status));
        for (int p = 0; p < 3; p++)
            if (bad_specs[i].parts[p])
                assert_that(mentions(context.error, bad_specs[i].parts[p]), "'%s': message '%s' lacks '%s'",
                            bad_specs[i].spec, context.error, bad_specs[i].parts[p]);
        assert_memory_equal(&kernel, &before, sizeof kernel);
    }
}

static void test_null_arguments(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    mercer_kernel kernel = parse("linear");
    assert_fails(&context, mrc_kernel_parse(&context, NULL, "linear"), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(&context, mrc_kernel_parse(&context, &kernel, NULL), MERCER_ERROR_ARGUMENT, "spec");
    assert_fails(NULL, mrc_kernel_parse(NULL, &kernel, "nonsense"), MERCER_ERROR_KERNEL, "nonsense");
    assert_fails(&context, mrc_kernel_print(&context, NULL, NULL, 0, NULL), MERCER_ERROR_ARGUMENT, "kernel");
    assert_fails(&context, mrc_kernel_print(&context, &kernel, NULL, 100, NULL), MERCER_ERROR_ARGUMENT, "text");
}

/* A word longer than the parser's buffers is parsed in full or refused, never truncated and parsed as another
   number. */
static void test_long_words(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    char spec[512] = "laplace:bandwidth=1";
    for (int i = 0; i < 80; i++) strcat(spec, "0"); /* 1e80 in full */
    mercer_kernel kernel = {0};
    mercer_status status = mrc_kernel_parse(&context, &kernel, spec);
    assert_that(status == MERCER_ERROR_KERNEL || kernel.bandwidth == 1e80, "1 and 80 zeros were read as %g",
                kernel.bandwidth);
    memset(spec, 'a', 300);
    spec[300] = 0;
    assert_int_equal(mrc_kernel_parse(&context, &kernel, spec), MERCER_ERROR_KERNEL);
    strcpy(spec + 200, ":bandwidth=1");
    assert_int_equal(mrc_kernel_parse(&context, &kernel, spec), MERCER_ERROR_KERNEL);
    strcpy(spec, "laplace:");
    memset(spec + 8, 'b', 300);
    strcpy(spec + 308, "=1");
    assert_int_equal(mrc_kernel_parse(&context, &kernel, spec), MERCER_ERROR_KERNEL);
}

static void test_print_sizes(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    mercer_kernel kernel = parse("laplace:bandwidth=10");
    const size_t wanted = sizeof "laplace:bandwidth=10";
    char text[64];
    for (size_t size = 0; size < wanted + 3; size++) {
        size_t needed = 0;
        memset(text, '#', sizeof text);
        mercer_status status = mrc_kernel_print(&context, &kernel, size ? text : NULL, size, &needed);
        assert_int_equal(needed, wanted);
        if (size < wanted) {
            assert_int_equal(status, MERCER_ERROR_ARGUMENT);
            for (size_t i = 0; i < sizeof text; i++) assert_int_equal(text[i], '#');
        } else {
            assert_int_equal(status, MERCER_OK);
            assert_string_equal(text, "laplace:bandwidth=10");
            assert_int_equal(text[wanted], '#');
        }
    }
}

static int no_op(void *user, const mercer_kernel_block *block)
{
    (void)user, (void)block;
    return 0;
}

/* Structs that were filled in by hand, or left uninitialized. */
static void test_check(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    char text[64] = "#";
    mercer_kernel kernel = {0};
    assert_fails(&context, mrc_kernel_check(&context, NULL), MERCER_ERROR_ARGUMENT, "kernel is NULL");
    assert_fails(&context, mrc_kernel_check(&context, &kernel), MERCER_ERROR_KERNEL, "mercer_kernel_parse");
    kernel.id = 12345;
    assert_fails(&context, mrc_kernel_check(&context, &kernel), MERCER_ERROR_KERNEL, "12345");
    kernel = parse("laplace:bandwidth=1");
    const double bad[] = {0, -1, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kernel.bandwidth = bad[i];
        assert_fails(&context, mrc_kernel_check(&context, &kernel), MERCER_ERROR_KERNEL, "bandwidth");
        assert_fails(&context, mrc_kernel_print(&context, &kernel, text, sizeof text, NULL), MERCER_ERROR_KERNEL,
                     "bandwidth");
    }
    kernel = parse("polynomial");
    kernel.degree = -3;
    assert_fails(&context, mrc_kernel_check(&context, &kernel), MERCER_ERROR_KERNEL, "degree is -3");

    kernel = (mercer_kernel){.id = MERCER_KERNEL_CALLBACK_DISTANCE};
    assert_fails(&context, mrc_kernel_check(&context, &kernel), MERCER_ERROR_ARGUMENT, "callback");
    kernel.callback = no_op;
    assert_succeeds(&context, mrc_kernel_check(&context, &kernel));
    assert_fails(&context, mrc_kernel_print(&context, &kernel, text, sizeof text, NULL), MERCER_ERROR_KERNEL,
                 "callback");
    assert_string_equal(text, "#");
}

/* A locale with a decimal comma changes neither parsing nor printing. */
static void test_locale_with_a_comma(void **state)
{
    (void)state;
    const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE", "ru_RU.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) found = setlocale(LC_NUMERIC, names[i]);
    if (!found || localeconv()->decimal_point[0] != ',') {
        setlocale(LC_NUMERIC, "C");
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    mercer_context context = {.threads = 1};
    mercer_kernel kernel = {0};
    char text[64] = "";
    mercer_status read = mrc_kernel_parse(&context, &kernel, "exppower:bandwidth=2.5,gamma=0.75");
    mercer_status printed = mrc_kernel_print(&context, &kernel, text, sizeof text, NULL);
    setlocale(LC_NUMERIC, "C"); /* restore the locale before an assertion can fail */
    assert_int_equal(read, MERCER_OK);
    assert_int_equal(printed, MERCER_OK);
    assert_true(kernel.bandwidth == 2.5 && kernel.gamma == 0.75);
    assert_string_equal(text, "exppower:bandwidth=2.5,gamma=0.75");
}

/* ---- Keywords, and forms with every possible parameter ----------------------------------------------------------- */

typedef struct made_object {
    char word[MRC_SPEC_WORD];
    double a, b, c, d;
    int32_t e;
} made_object;

static void test_words(void **state)
{
    (void)state;
    static const mrc_spec_form forms[] = {
        {"full",
         "full:word=x,a=1",
         {{.name = "word", .offset = offsetof(made_object, word), .kind = MRC_WORD},
          {.name = "a", .offset = offsetof(made_object, a), .low = 0, .high = 10, .required = true},
          {.name = "b", .offset = offsetof(made_object, b), .low = 0, .high = 1e300, .fallback = 2},
          {.name = "c", .offset = offsetof(made_object, c), .low = 0, .high = 10, .fallback = 3, .low_included = true},
          {.name = "d", .offset = offsetof(made_object, d), .low = 0, .high = 10, .fallback = 4},
          {.name = "e", .offset = offsetof(made_object, e), .kind = MRC_WHOLE, .low = 0, .high = 10, .fallback = 5}}},
        {.name = "bare", .example = "bare"}};
    const mrc_spec_grammar grammar = {"thing", MERCER_ERROR_ARGUMENT, forms, sizeof *forms, 2};
    mercer_context context = {.threads = 1};
    made_object object;
    int index;
    assert_succeeds(&context, mrc_spec_read(&context, &grammar, "full:a=1,word=some.word,e=7", &object, &index));
    assert_string_equal(object.word, "some.word");
    assert_true(index == 0 && object.a == 1 && object.b == 2 && object.e == 7);
    assert_succeeds(&context, mrc_spec_read(&context, &grammar, "full:a=1", &object, &index));
    assert_true(object.word[0] == 0 && object.e == 5);
    assert_fails(&context, mrc_spec_read(&context, &grammar, "full:a=1,word=", &object, &index), MERCER_ERROR_ARGUMENT,
                 "value*'word'");
    assert_fails(&context, mrc_spec_read(&context, &grammar, "full:a=0", &object, &index), MERCER_ERROR_ARGUMENT,
                 "> 0 and <= 10");
    assert_fails(&context, mrc_spec_read(&context, &grammar, "full:f=1", &object, &index), MERCER_ERROR_ARGUMENT,
                 "word (a name), a (> 0 and <= 10, required), b (> 0), c (>= 0 and <= 10), d (> 0 and <= 10), e (> 0 "
                 "and <= 10, whole)");
    assert_fails(&context, mrc_spec_read(&context, &grammar, "bare:f=1", &object, &index), MERCER_ERROR_ARGUMENT,
                 "parameters of bare: none");
    assert_null(mrc_spec_parameter(&forms[0], "f"));
    char text[32];
    mrc_print_number((double)NAN, text, sizeof text); /* a NaN has no number of digits that parses back */
    assert_true(mentions(text, "nan"));
    mrc_print_single((float)NAN, text, sizeof text);
    assert_true(mentions(text, "nan"));
    double value;
    assert_false(mrc_scan_number("", &value));
    assert_false(mrc_scan_number("1e", &value));
    const char *best = NULL;
    int fewest = 1000;
    mrc_consider_name("a", "a-name-that-is-longer-than-any-word-may-be-in-a-text-of-this-form-is", &best, &fewest);
    assert_null(best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_examples_round_trip),
        cmocka_unit_test(test_values_land_in_their_fields),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_numbers_round_trip),
        cmocka_unit_test(test_bad_specs),
        cmocka_unit_test(test_null_arguments),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_print_sizes),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_locale_with_a_comma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

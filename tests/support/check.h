/* SPDX-License-Identifier: BSD-3-Clause */
/* The first include of every test program: cmocka, its prerequisites, status and message checks. */
#ifndef MRC_TESTS_CHECK_H
#define MRC_TESTS_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for setenv and mmap: the build selects strict C11 */
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/context.h"
#include "support/sanitized.h"

/* MERCER_TEST=PATTERN runs only the tests whose name matches the pattern; * and ? are wildcards. */
__attribute__((constructor)) static void check_choose_tests(void)
{
    const char *pattern = getenv("MERCER_TEST");
    if (pattern && *pattern) cmocka_set_test_filter(pattern);
}

/* Return whether to leave out random problem `number`: MERCER_PROBLEM=N runs only number N. */
static inline bool check_leaves_out(int number)
{
    const char *only = getenv("MERCER_PROBLEM");
    return only && atoi(only) != number;
}

/* Check that the call succeeds; a failure shows the library's message. */
#define assert_succeeds(context, call) check_succeeds((context), (call), #call, __FILE__, __LINE__)

static inline void check_succeeds(const mercer_context *context, mercer_status status, const char *what,
                                  const char *file, int line)
{
    if (status == MERCER_OK) return;
    print_error("%s: %s: %s\n", what, mercer_status_string(status), mercer_last_error(context));
    _fail(file, line);
}

/* Return whether the text contains the parts of a pattern, which '*' separates, in this order. Tests compare the data in
   a message (names, values, lines) and not its words, so that its wording can change. */
static inline bool mentions(const char *text, const char *pattern)
{
    while (*pattern) {
        size_t size = strcspn(pattern, "*");
        while (*text && strncmp(text, pattern, size) != 0) text++;
        if (strncmp(text, pattern, size) != 0) return false;
        text += size, pattern += size + (pattern[size] == '*');
    }
    return true;
}

/* Return the first recorded warning about an option or column, or NULL. */
static inline const char *warning_about(const mercer_context *context, const char *option)
{
    const char *text, *field;
    for (int i = 0; (text = mercer_warning(context, i, &field)); i++)
        if (strcmp(field, option) == 0) return text;
    return NULL;
}

/* Check that the call fails with that status and a message that mentions `part`. */
#define assert_fails(context, call, status, part) \
    check_fails((context), (call), (status), (part), #call, __FILE__, __LINE__)

static inline void check_fails(const mercer_context *context, mercer_status got, mercer_status wanted, const char *part,
                               const char *what, const char *file, int line)
{
    const char *message = mercer_last_error(context);
    if (got == wanted && mentions(message, part)) return;
    print_error("%s: status '%s' (wanted '%s'), message '%s' (wanted to mention '%s')\n", what,
                mercer_status_string(got), mercer_status_string(wanted), message, part);
    _fail(file, line);
}

/* Check a condition; a failure prints the printf-style message. */
#define assert_that(condition, ...)          \
    do {                                     \
        if (!(condition)) {                  \
            print_error("%s: ", #condition); \
            print_error(__VA_ARGS__);        \
            print_error("\n");               \
            _fail(__FILE__, __LINE__);       \
        }                                    \
    } while (0)

#endif

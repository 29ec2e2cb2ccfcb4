/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: option structs of every size, selections and their messages, the allocator, the log, queries. */
#include "support/check.h"

#include "backends/backend.h"
#include "core/context.h"
#include "core/cpuinfo.h"
#include "support/allocator.h"

#include <pthread.h>
#include <stdbool.h>

#define OPTIONS(name) mercer_context_options name = MERCER_INIT(mercer_context_options)

static mercer_context *create_context(const mercer_context_options *options)
{
    mercer_context *context = NULL;
    assert_succeeds(NULL, mercer_context_create(&context, options));
    assert_non_null(context);
    return context;
}

/* Check that creation fails, *out becomes NULL, and the calling thread's message contains `part` and `other`. */
static void refuse(const mercer_context_options *options, mercer_status status, const char *part, const char *other)
{
    mercer_context *context = (mercer_context *)&status; /* creation must replace this with NULL */
    assert_fails(NULL, mercer_context_create(&context, options), status, part);
    assert_null(context);
    assert_that(mentions(mercer_last_error(NULL), other), "message '%s' lacks '%s'", mercer_last_error(NULL), other);
}

static mercer_context_info query(mercer_context *context)
{
    mercer_context_info info = {.struct_size = sizeof info};
    assert_succeeds(context, mercer_context_query(context, &info));
    return info;
}

/* ---- Options ------------------------------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
    (void)state;
    mercer_context *context = create_context(NULL);
    mercer_context_info info = query(context);
    assert_string_equal(info.backend, "cpu");
    assert_string_equal(info.isa, mrc_isa_name(mrc_isa_best()));
    assert_int_equal(info.threads, mrc_processors());
    assert_string_equal(mercer_last_error(context), "");
    assert_that(mercer_free_memory() >= 1 << 20, "%lld bytes are free", (long long)mercer_free_memory());
    mercer_context_free(context);
    mercer_context_free(NULL);
    assert_fails(NULL, mercer_context_create(NULL, NULL), MERCER_ERROR_ARGUMENT, "out");
}

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"1", 1},
                {"64000", 64000},
                {"8G", INT64_C(8) << 30},
                {"16GiB", INT64_C(16) << 30},
                {"500MB", 500000000},
                {"1.5 kib", 1536},
                {"2.5mb", 2500000},
                {"1e3B", 1000},
                {"1t", INT64_C(1) << 40}};
    static const char *const bad[] = {"", "G", "lots", "-5", "0", "0.5", "1x", "1iB", "1GiB!", "1e30", "nan", "8 8"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t bytes = 0;
        assert_succeeds(NULL, mercer_parse_bytes(&bytes, NULL, good[i].text));
        assert_that(bytes == good[i].bytes, "%s is read as %lld", good[i].text, (long long)bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t bytes = 7;
        assert_fails(NULL, mercer_parse_bytes(&bytes, NULL, bad[i]), MERCER_ERROR_ARGUMENT, "16GiB");
        assert_int_equal(bytes, 7);
    }
    assert_fails(NULL, mercer_parse_bytes(NULL, NULL, "1"), MERCER_ERROR_ARGUMENT, "bytes");
    int64_t bytes = 0;
    assert_fails(NULL, mercer_parse_bytes(&bytes, NULL, NULL), MERCER_ERROR_ARGUMENT, "text");
}

static void test_options_init(void **state)
{
    (void)state;
    mercer_context_options options;
    memset(&options, 0x77, sizeof options);
    options = (mercer_context_options)MERCER_INIT(mercer_context_options);
    assert_int_equal(options.struct_size, sizeof options);
    assert_true(options.threads == 0 && !options.backend && !options.isa && !options.allocator && !options.log);
    assert_true(!options.log_user && options.log_level == 0 && !options.arithmetic);
}

static void test_struct_sizes(void **state)
{
    (void)state;
    OPTIONS(options);
    options.struct_size = 0;
    refuse(&options, MERCER_ERROR_ARGUMENT, "struct_size", "sizeof(mercer_context_options)");
    options.struct_size = sizeof(size_t) - 1;
    refuse(&options, MERCER_ERROR_ARGUMENT, "struct_size", "sizeof(mercer_context_options)");

    /* A caller built with an older header: fields beyond its struct count as 0, whatever the memory contains. */
    options.struct_size = offsetof(mercer_context_options, backend);
    options.threads = 3;
    options.backend = (const char *)(uintptr_t)1; /* not a valid pointer: reading it would crash */
    options.isa = (const char *)(uintptr_t)1;
    mercer_context *context = create_context(&options);
    assert_int_equal(query(context).threads, 3);
    assert_string_equal(query(context).backend, "cpu");
    mercer_context_free(context);
    options.struct_size = sizeof(size_t);
    context = create_context(&options);
    assert_int_equal(query(context).threads, mrc_processors());
    mercer_context_free(context);

    /* A caller built with a newer header: fields that this library does not know must be 0. */
    struct {
        mercer_context_options known;
        char unknown[40];
    } newer = {.known = MERCER_INIT(mercer_context_options)};
    newer.known.struct_size = sizeof newer;
    newer.known.threads = 2;
    context = create_context(&newer.known);
    assert_int_equal(query(context).threads, 2);
    mercer_context_free(context);
    newer.unknown[39] = 1;
    refuse(&newer.known, MERCER_ERROR_ARGUMENT, "options", mercer_version());
}

static void test_bad_choices(void **state)
{
    (void)state;
    OPTIONS(options);
    options.threads = -1;
    refuse(&options, MERCER_ERROR_ARGUMENT, "threads", "-1");
    options.threads = 0, options.backend = "quantum";
    refuse(&options, MERCER_ERROR_UNSUPPORTED, "quantum", "cpu, reference");
    options.backend = "";
    refuse(&options, MERCER_ERROR_UNSUPPORTED, "backend", "cpu, reference");
    options.backend = NULL, options.isa = "mmx";
    refuse(&options, MERCER_ERROR_ARGUMENT, "'mmx'", mrc_isa_names());
    options.isa = "AVX2";
    refuse(&options, MERCER_ERROR_ARGUMENT, "isa", mrc_isa_names());
    mercer_allocator half = MERCER_INIT(mercer_allocator);
    options.isa = NULL, options.allocator = &half, half.allocate = test_allocate;
    refuse(&options, MERCER_ERROR_ARGUMENT, "allocator", "release");
    half.allocate = NULL, half.release = test_release;
    refuse(&options, MERCER_ERROR_ARGUMENT, "allocator", "allocate");
    half.struct_size = 0;
    refuse(&options, MERCER_ERROR_ARGUMENT, "allocator", "sizeof(mercer_allocator)");
}

static void test_isa_levels(void **state)
{
    (void)state;
    mrc_isa best = mrc_isa_best();
    for (int isa = 0; isa < MRC_ISA_COUNT; isa++) {
        OPTIONS(options);
        options.isa = mrc_isa_name((mrc_isa)isa);
        mrc_isa found;
        assert_true(mrc_isa_from_name(options.isa, &found) && found == (mrc_isa)isa);
        if (isa > (int)best) {
            refuse(&options, MERCER_ERROR_UNSUPPORTED, options.isa, mrc_isa_name(best));
            continue;
        }
        mercer_context *context = create_context(&options);
        assert_string_equal(query(context).isa, options.isa);
        mercer_context_free(context);
    }
}

static void test_isa_from_environment(void **state)
{
    (void)state;
    OPTIONS(options);
    setenv("MERCER_ISA", "scalar", 1);
    mercer_context *context = create_context(&options);
    assert_string_equal(query(context).isa, "scalar");
    mercer_context_free(context);
    setenv("MERCER_ISA", "fastest", 1);
    refuse(&options, MERCER_ERROR_ARGUMENT, "MERCER_ISA", mrc_isa_names());
    refuse(NULL, MERCER_ERROR_ARGUMENT, "'fastest'", mrc_isa_names());
    options.isa = mrc_isa_name(mrc_isa_best()); /* an option overrides the environment variable */
    context = create_context(&options);
    assert_string_equal(query(context).isa, options.isa);
    mercer_context_free(context);
    options.isa = NULL;
    setenv("MERCER_ISA", "", 1); /* empty counts as not set */
    context = create_context(&options);
    assert_string_equal(query(context).isa, mrc_isa_name(mrc_isa_best()));
    mercer_context_free(context);
    unsetenv("MERCER_ISA");
}

static int remove_environment(void **state)
{
    (void)state;
    return unsetenv("MERCER_ISA");
}

static void test_backends(void **state)
{
    (void)state;
    const char *const names[] = {"cpu", "reference"};
    for (int i = 0; i < 2; i++) {
        OPTIONS(options);
        options.backend = names[i];
        options.threads = 1;
        mercer_context *context = create_context(&options);
        assert_string_equal(query(context).backend, names[i]);
        assert_int_equal(query(context).threads, 1);
        mercer_context_free(context);
    }
}

/* ---- Allocator, log, query, errors --------------------------------------------------------------------------- */

static mercer_status small_product(mercer_context *context)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, w[2] = {1, -1}, y[2];
    mercer_kernel kernel;
    mercer_status status = mercer_kernel_parse(&kernel, context, "laplace:bandwidth=2");
    if (status != MERCER_OK) return status;
    mercer_matrix X = mercer_matrix_view(x, 2, 3, MERCER_F32), W = mercer_matrix_view(w, 2, 1, MERCER_F32);
    mercer_matrix Y = mercer_matrix_view(y, 2, 1, MERCER_F32);
    return mercer_kernel_matmul(context, &Y, &kernel, &X, &X, &W);
}

static void test_custom_allocator(void **state)
{
    (void)state;
    test_allocator counter = {0};
    OPTIONS(options);
    options.allocator = test_allocator_table(&counter);
    mercer_context *context = create_context(&options);
    assert_true(counter.live > 0);
    int64_t made = counter.requests;
    assert_succeeds(context, small_product(context));
    assert_true(counter.requests > made);
    mercer_context_info info = query(context);
    assert_true(info.bytes_now > 0 && info.bytes_peak >= info.bytes_now);
    mercer_context_free(context);
    assert_int_equal(counter.live, 0);
    assert_int_equal(counter.misused, 0);

    counter.fail_at = 1, counter.fail_after = true, counter.requests = 0;
    refuse(&options, MERCER_ERROR_MEMORY, "memory", "context");
}

typedef struct log_lines {
    int count[5];
    char last[256];
} log_lines;

static void take_line(void *user, mercer_log_level level, const char *message)
{
    log_lines *lines = user;
    lines->count[level]++;
    snprintf(lines->last, sizeof lines->last, "%s", message);
    assert_null(strchr(message, '\n'));
}

static void test_log(void **state)
{
    (void)state;
    log_lines lines = {0};
    OPTIONS(options);
    options.log = take_line, options.log_user = &lines, options.log_level = MERCER_LOG_DEBUG;
    mercer_context *context = create_context(&options);
    assert_true(lines.count[MERCER_LOG_INFO] > 0); /* the context logs its selections */
    assert_true(mentions(lines.last, "cpu"));
    mercer_kernel kernel;
    assert_int_equal(mercer_kernel_parse(&kernel, context, "nonsense"), MERCER_ERROR_KERNEL);
    assert_true(lines.count[MERCER_LOG_DEBUG] > 0);
    assert_true(mentions(lines.last, "nonsense"));
    mercer_context_free(context);

    lines = (log_lines){0};
    options.log_level = (mercer_log_level)0; /* warnings and errors only */
    context = create_context(&options);
    assert_int_equal(mercer_kernel_parse(&kernel, context, "nonsense"), MERCER_ERROR_KERNEL);
    assert_int_equal(lines.count[MERCER_LOG_INFO] + lines.count[MERCER_LOG_DEBUG], 0);
    mercer_context_free(context);
}

static void test_query(void **state)
{
    (void)state;
    mercer_context *context = create_context(NULL);
    mercer_context_info info = {.struct_size = sizeof info};
    assert_fails(NULL, mercer_context_query(NULL, &info), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(context, mercer_context_query(context, NULL), MERCER_ERROR_ARGUMENT, "info");
    info.struct_size = 0;
    assert_fails(context, mercer_context_query(context, &info), MERCER_ERROR_ARGUMENT, "struct_size");

    memset(&info, 0x77, sizeof info); /* older header: nothing may be written beyond the caller's struct */
    info.struct_size = offsetof(mercer_context_info, threads);
    assert_succeeds(context, mercer_context_query(context, &info));
    assert_string_equal(info.backend, "cpu");
    assert_int_equal(info.threads, 0x77777777);

    struct {
        mercer_context_info known;
        char unknown[16];
    } newer;
    memset(&newer, 0x77, sizeof newer);
    newer.known.struct_size = sizeof newer;
    assert_succeeds(context, mercer_context_query(context, &newer.known));
    assert_int_equal(newer.known.threads, mrc_processors());
    assert_int_equal(newer.known.struct_size, sizeof newer);
    mercer_context_free(context);
}

/* Deferred backends are created by a thread; the first call that needs one waits for it. */
static void test_deferred(void **state)
{
    (void)state;
    OPTIONS(options);
    options.deferred = 1;
    mercer_context *context = create_context(&options); /* the cpu backend needs no thread */
    assert_string_equal(query(context).backend, "cpu");
    mercer_context_free(context);

    char name[] = "reference";
    options.backend = name;
    context = create_context(&options);
    name[0] = '?';               /* the caller may change the text after creation */
    mercer_dataset *data = NULL; /* opening a dataset does not wait */
    assert_succeeds(context, mercer_dataset_synthesize(&data, context, "spirals", 0, 10, 1));
    mercer_dataset_free(data);
    assert_string_equal(context->backend->ops->name, "cpu");
    double values[2] = {1, 4}, distance = 0;
    mercer_matrix x = mercer_matrix_view(values, 2, 1, MERCER_F64);
    assert_succeeds(context, mercer_median_distance(context, &distance, NULL, &x, 0));
    assert_true(distance == 3);
    assert_string_equal(query(context).backend, "reference");
    mercer_context_free(context);

    options.backend = "reference";
    mercer_context_free(create_context(&options)); /* freed before a call needs the backend */
    options.backend = "reference:second";          /* every call that needs the backend fails */
    context = create_context(&options);
    mercer_context_info info = MERCER_INIT(mercer_context_info);
    for (int time = 0; time < 2; time++)
        assert_fails(context, mercer_context_query(context, &info), MERCER_ERROR_ARGUMENT, "device");
    distance = 7;
    assert_fails(context, mercer_median_distance(context, &distance, NULL, &x, 0), MERCER_ERROR_ARGUMENT, "number");
    assert_true(distance == 7);
    mercer_context_free(context);

    options.backend = "nonsense"; /* an unknown name is an error at creation */
    refuse(&options, MERCER_ERROR_UNSUPPORTED, "nonsense", "reference");
}

static void *fail_elsewhere(void *argument)
{
    mercer_kernel kernel;
    bool *separate = argument;
    *separate = mercer_last_error(NULL)[0] == 0; /* a new thread starts without a message */
    mercer_kernel_parse(&kernel, NULL, "from-another-thread");
    *separate = *separate && mentions(mercer_last_error(NULL), "from-another-thread");
    return NULL;
}

static void test_errors_of_threads_and_contexts(void **state)
{
    (void)state;
    mercer_context *one = create_context(NULL), *two = create_context(NULL);
    mercer_kernel kernel;
    mercer_kernel_parse(&kernel, one, "first");
    mercer_kernel_parse(&kernel, two, "second");
    mercer_kernel_parse(&kernel, NULL, "third");
    bool separate = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &separate), 0);
    pthread_join(thread, NULL);
    assert_true(separate);
    assert_true(mentions(mercer_last_error(one), "'first'"));
    assert_true(mentions(mercer_last_error(two), "'second'"));
    assert_true(mentions(mercer_last_error(NULL), "'third'"));
    mercer_context_free(one);
    mercer_context_free(two);
}

/* ---- Warnings ------------------------------------------------------------------------------------------------ */

static void count_lines(void *user, mercer_log_level level, const char *message)
{
    (void)message;
    if (level == MERCER_LOG_WARNING) ++*(int *)user;
}

/* Warnings are recorded in order, equal ones once, up to MRC_WARNINGS; the log sink receives all of them. */
static void test_warnings(void **state)
{
    (void)state;
    int lines = 0;
    const char *field = NULL;
    OPTIONS(options);
    options.log = count_lines, options.log_user = &lines;
    mercer_context *context = create_context(&options);
    assert_null(mercer_warning(context, 0, NULL));
    mrc_warn(context, "age", "%s dropped", "age");
    mrc_warn(context, "", "something else");
    mrc_warn(context, "age", "%s dropped", "age");
    assert_int_equal(lines, 3);
    assert_string_equal(mercer_warning(context, 0, &field), "age dropped");
    assert_string_equal(field, "age");
    assert_string_equal(mercer_warning(context, 1, &field), "something else");
    assert_string_equal(field, "");
    assert_null(mercer_warning(context, 2, &field));
    assert_null(mercer_warning(context, -1, &field));
    mercer_clear_warnings(context);
    assert_null(mercer_warning(context, 0, NULL));
    for (int i = 0; i < 2 * MRC_WARNINGS; i++) mrc_warn(context, "n", "warning %d", i);
    assert_string_equal(mercer_warning(context, MRC_WARNINGS - 1, NULL), "warning 63");
    assert_null(mercer_warning(context, MRC_WARNINGS, NULL));
    assert_int_equal(lines, 3 + 2 * MRC_WARNINGS);
    mercer_context_free(context);
    mrc_warn(NULL, "", "nothing happens");
    mercer_clear_warnings(NULL);
    assert_null(mercer_warning(NULL, 0, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),     cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_options_init),
        cmocka_unit_test(test_struct_sizes), cmocka_unit_test(test_bad_choices),
        cmocka_unit_test(test_isa_levels),   cmocka_unit_test_teardown(test_isa_from_environment, remove_environment),
        cmocka_unit_test(test_backends),     cmocka_unit_test(test_custom_allocator),
        cmocka_unit_test(test_log),          cmocka_unit_test(test_query),
        cmocka_unit_test(test_deferred),     cmocka_unit_test(test_errors_of_threads_and_contexts),
    };
    unsetenv("MERCER_ISA"); /* MERCER_ISA must not override the instruction sets that the tests select */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

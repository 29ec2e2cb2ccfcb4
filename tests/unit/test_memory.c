/* SPDX-License-Identifier: BSD-3-Clause */
/* Counted allocation: alignment, counters, overflow, failure; scopes; and the arena. */
#include "support/check.h"

#include "core/memory.h"
#include "support/allocator.h"

static void test_alignment_and_content(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    const int64_t counts[] = {0, 1, 63, 64, 65, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        void *memory = NULL;
        assert_succeeds(&context, mrc_alloc_zero(&context, &memory, counts[i], 1, "a block"));
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % MRC_ALIGNMENT, 0);
        for (int64_t k = 0; k < counts[i]; k++) assert_int_equal(((char *)memory)[k], 0);
        memset(memory, 0x5a, (size_t)counts[i]);
        mrc_free(&context, memory);
        assert_int_equal(context.bytes_now, 0);
    }
    mrc_free(&context, NULL);
    assert_int_equal(context.bytes_now, 0);
}

static void test_counters(void **state)
{
    (void)state;
    test_allocator counter = {0};
    mercer_context context = {.threads = 1, .allocator = *test_allocator_table(&counter)};
    void *a, *b;
    assert_succeeds(&context, mrc_alloc(&context, &a, 10, 100, "a"));
    int64_t with_a = context.bytes_now;
    assert_true(with_a >= 1000);
    assert_succeeds(&context, mrc_alloc(&context, &b, 3, 1000, "b"));
    int64_t with_both = context.bytes_now;
    assert_true(with_both >= with_a + 3000);
    assert_int_equal(counter.live, 2);
    mrc_free(&context, a);
    assert_int_equal(context.bytes_now, with_both - with_a);
    assert_int_equal(context.bytes_peak, with_both);
    mrc_free(&context, b);
    assert_int_equal(context.bytes_now, 0);
    assert_int_equal(context.bytes_peak, with_both);
    assert_int_equal(counter.live, 0);
    assert_int_equal(counter.requests, 2);
    assert_int_equal(counter.misused, 0);
}

static void test_failure(void **state)
{
    (void)state;
    test_allocator counter = {.fail_at = 1, .fail_after = true};
    mercer_context context = {.threads = 1, .allocator = *test_allocator_table(&counter)};
    void *memory = &counter;
    assert_fails(&context, mrc_alloc(&context, &memory, 100, 8, "the thing"), MERCER_ERROR_MEMORY, "the thing");
    assert_null(memory);
    memory = &counter;
    assert_fails(&context, mrc_alloc_zero(&context, &memory, 100, 8, "the thing"), MERCER_ERROR_MEMORY, "800");
    assert_null(memory);
    assert_int_equal(context.bytes_now, 0);
    assert_int_equal(context.bytes_peak, 0);
}

/* A size that overflows must never reach the allocator as a smaller one. */
static void test_overflow(void **state)
{
    (void)state;
    test_allocator counter = {0};
    mercer_context context = {.threads = 1, .allocator = *test_allocator_table(&counter)};
    const int64_t bad[][2] = {
        {INT64_MAX, 1}, {INT64_MAX, 2}, {INT64_C(1) << 32, INT64_C(1) << 32}, {INT64_MAX / 8 + 1, 8},
        {-1, 8},        {-5, 1},        {INT64_MAX - MRC_ALIGNMENT + 1, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *memory = &counter;
        assert_fails(&context, mrc_alloc(&context, &memory, bad[i][0], bad[i][1], "too much"), MERCER_ERROR_MEMORY,
                     "too much");
        assert_null(memory);
    }
    assert_int_equal(counter.requests, 0);

    int64_t result;
    assert_true(mrc_multiply(INT64_C(3037000499), INT64_C(3037000499), &result));
    assert_false(mrc_multiply(INT64_C(3037000500), INT64_C(3037000500), &result));
    assert_true(mrc_add(INT64_MAX - 1, 1, &result) && result == INT64_MAX);
    assert_false(mrc_add(INT64_MAX, 1, &result));
}

static mercer_status take_some(mercer_context *context, int64_t count, int64_t *seen)
{
    double *numbers, *zeros;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &numbers, 10, sizeof *numbers, "numbers"));
    for (int64_t i = 0; i < count; i++) MRC_TRY(mrc_scope_alloc_zero(&scope, &zeros, 5, sizeof *zeros, "zeros"));
    for (int i = 0; i < 5; i++) assert_true(zeros[i] == 0);
    *seen = context->bytes_now;
    return MERCER_OK;
}

/* The memory of a call is freed when it returns: after success, after a failure, and when it exceeds the limit. */
static void test_scope(void **state)
{
    (void)state;
    for (int fail_at = 0; fail_at <= 3; fail_at++) {
        test_allocator counter = {.fail_at = fail_at, .fail_after = fail_at > 0};
        mercer_context context = {.threads = 1, .allocator = *test_allocator_table(&counter)};
        int64_t seen = 0;
        mercer_status status = take_some(&context, 2, &seen);
        assert_int_equal(status, fail_at ? MERCER_ERROR_MEMORY : MERCER_OK);
        assert_true(fail_at || seen >= 160);
        assert_int_equal(context.bytes_now, 0);
        assert_int_equal(counter.live, 0);
    }
    test_allocator counter = {0};
    mercer_context context = {.threads = 1, .allocator = *test_allocator_table(&counter)};
    int64_t seen;
    assert_succeeds(&context, take_some(&context, MRC_SCOPE_MOST - 1, &seen));
    assert_fails(&context, take_some(&context, MRC_SCOPE_MOST, &seen), MERCER_ERROR_INTERNAL, "more than");
    assert_int_equal(counter.live, 0);
    assert_int_equal(context.bytes_now, 0);
}

static void test_small_helpers(void **state)
{
    (void)state;
    assert_int_equal(mrc_round_up(0, 64), 0);
    assert_int_equal(mrc_round_up(1, 64), 64);
    assert_int_equal(mrc_round_up(64, 64), 64);
    assert_int_equal(mrc_round_up(65, 64), 128);
    assert_int_equal(mrc_round_up(7, 6), 12);
    assert_int_equal(mrc_min(-1, 3), -1);
    assert_int_equal(mrc_max(-1, 3), 3);
}

/* Blocks that request large pages, and the text for numbers of bytes. */
static void test_large(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } texts[] = {{0, "0 bytes"},       {999, "999 bytes"}, {1000, "1.0 kB"},   {99940, "99.9 kB"},
                 {99960, "100 kB"},    {999499, "999 kB"}, {999500, "1.0 MB"}, {INT64_C(5) << 30, "5.4 GB"},
                 {INT64_MAX, "9.2 EB"}};
    char text[MRC_BYTES_TEXT], *block = NULL;
    mercer_context context = {.threads = 1};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(mrc_bytes_text(text, texts[i].bytes), texts[i].text);
    assert_succeeds(&context, mrc_alloc(&context, &block, 8 << 20, 1, "a large block"));
    assert_int_equal((uintptr_t)block % MRC_ALIGNMENT, 0);
    block[0] = block[(8 << 20) - 1] = 1;
    mrc_free(&context, block);
    mrc_raw_free(&context.allocator, NULL);
    assert_fails(&context, mrc_alloc(&context, &block, INT64_MAX / 4, 1, "everything"), MERCER_ERROR_MEMORY,
                 "bytes for everything");
    assert_null(block);
    assert_int_equal(context.bytes_now, 0);
}

static void test_arena_pieces(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    mrc_arena arena;
    mrc_arena_init(&arena, &context);
    assert_null(mrc_arena_push(&arena, 1)); /* nothing is reserved yet */
    assert_succeeds(&context, mrc_arena_reserve(&arena, 256));
    char *a = mrc_arena_push(&arena, 1), *b = mrc_arena_push(&arena, 100), *c = mrc_arena_push(&arena, 64);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_int_equal((uintptr_t)a % MRC_ALIGNMENT, 0);
    assert_true(b >= a + 64 && c >= b + 128); /* aligned pieces do not overlap */
    assert_int_equal((uintptr_t)c % MRC_ALIGNMENT, 0);
    assert_null(mrc_arena_push(&arena, 1)); /* 64 + 128 + 64 bytes are in use */
    assert_non_null(mrc_arena_push(&arena, 0));
    mrc_arena_reset(&arena);
    assert_ptr_equal(mrc_arena_push(&arena, 256), a);
    mrc_arena_destroy(&arena);
    mrc_arena_destroy(&arena); /* a second destroy has no effect */
    assert_int_equal(context.bytes_now, 0);
}

static void test_arena_grows_and_stays(void **state)
{
    (void)state;
    test_allocator counter = {0};
    mercer_context context = {.threads = 1, .allocator = *test_allocator_table(&counter)};
    mrc_arena arena;
    mrc_arena_init(&arena, &context);
    assert_succeeds(&context, mrc_arena_reserve(&arena, 1000));
    int64_t first_peak = context.bytes_peak;
    assert_succeeds(&context, mrc_arena_reserve(&arena, 500));
    assert_succeeds(&context, mrc_arena_reserve(&arena, 1000));
    assert_int_equal(counter.requests, 1); /* reused, not reallocated */
    assert_succeeds(&context, mrc_arena_reserve(&arena, 3000));
    assert_int_equal(counter.live, 1);
    assert_int_equal(context.bytes_peak, first_peak + 2000); /* the old block was freed first */

    counter.fail_at = counter.requests + 1;
    assert_fails(&context, mrc_arena_reserve(&arena, 5000), MERCER_ERROR_MEMORY, "scratch");
    assert_null(mrc_arena_push(&arena, 1));
    assert_succeeds(&context, mrc_arena_reserve(&arena, 5000)); /* the arena can be used again */
    mrc_arena_destroy(&arena);
    assert_int_equal(counter.live, 0);
    assert_int_equal(context.bytes_now, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment_and_content),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_scope),
        cmocka_unit_test(test_small_helpers),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_arena_pieces),
        cmocka_unit_test(test_arena_grows_and_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

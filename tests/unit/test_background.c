/* SPDX-License-Identifier: BSD-3-Clause */
/* The background thread that works ahead: order, bounds, reset and stop at any time. Also runs under the thread
   sanitizer. */
#include "support/check.h"

#include "core/threads/background.h"
#include "support/allocator.h"

#include <sched.h>

enum { RING = 4 };

typedef struct ring {
    int64_t buffer[RING]; /* without a lock: the handshake must prevent races */
    int64_t base;
    int64_t count; /* number of pieces done since the last reset */
    int slow;
} ring;

static void fill(void *argument, int64_t piece)
{
    ring *self = argument;
    for (int i = 0; i < self->slow; i++) sched_yield();
    self->buffer[piece % RING] = self->base + piece * piece;
    self->count++;
}

static void test_pieces_arrive_in_order(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    ring shared = {.base = 7};
    mrc_background *background;
    assert_succeeds(&context, mrc_background_start(&background, &context, fill, &shared));
    mrc_background_reset(background, 0);
    for (int64_t i = 0; i < 5000; i++) {
        mrc_background_permit(background, i + RING);
        mrc_background_wait(background, i);
        assert_int_equal(shared.buffer[i % RING], 7 + i * i);
    }
    mrc_background_reset(background, 0);
    assert_that(shared.count >= 5000 && shared.count < 5000 + RING, "%lld pieces", (long long)shared.count);
    mrc_background_stop(background);
    assert_int_equal(context.bytes_now, 0);
}

/* The thread processes only permitted pieces; after a reset the owner may access the argument again. */
static void test_nothing_runs_unasked(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    ring shared = {0};
    mrc_background *background;
    assert_succeeds(&context, mrc_background_start(&background, &context, fill, &shared));
    for (int i = 0; i < 100; i++) sched_yield();
    mrc_background_reset(background, 0);
    assert_int_equal(shared.count, 0);
    mrc_background_permit(background, 2);
    mrc_background_wait(background, 1);
    mrc_background_permit(background, 1); /* fewer pieces than already permitted: no effect */
    mrc_background_reset(background, 10);
    assert_int_equal(shared.count, 2);
    mrc_background_permit(background, 11);
    mrc_background_wait(background, 10);
    assert_int_equal(shared.buffer[10 % RING], 100);
    mrc_background_reset(background, 0);
    assert_int_equal(shared.count, 3);
    mrc_background_stop(background);
}

/* Repeated resets while the thread works: pieces from before a reset never mix with pieces from after it. */
static void test_reset_at_any_moment(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    ring shared = {.slow = 1};
    mrc_background *background;
    assert_succeeds(&context, mrc_background_start(&background, &context, fill, &shared));
    for (int64_t round = 0; round < 500; round++) {
        int64_t first = round % 5;
        mrc_background_reset(background, first);
        shared.base = 1000 * round;
        for (int64_t i = first; i < first + round % 7; i++) {
            mrc_background_permit(background, i + RING);
            mrc_background_wait(background, i);
            assert_int_equal(shared.buffer[i % RING], 1000 * round + i * i);
        }
    }
    mrc_background_stop(background);
    assert_int_equal(context.bytes_now, 0);
}

static void test_stop_at_any_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        mercer_context context = {.threads = 1};
        ring shared = {.slow = i % 3};
        mrc_background *background;
        assert_succeeds(&context, mrc_background_start(&background, &context, fill, &shared));
        if (i % 2) mrc_background_permit(background, i % 9);
        if (i % 4 == 3 && i % 9) mrc_background_wait(background, 0);
        mrc_background_stop(background);
        assert_true(shared.count <= i % 9);
        assert_int_equal(context.bytes_now, 0);
    }
    mrc_background_stop(NULL);
}

/* If the allocation fails, no thread is started. */
static void test_no_memory(void **state)
{
    (void)state;
    mrc_background *thread = (mrc_background *)state;
    test_allocator counter = {0};
    mercer_context context = {.threads = 1, .allocator = *test_allocator_table(&counter)};
    counter.fail_at = 1;
    assert_fails(&context, mrc_background_start(&thread, &context, fill, NULL), MERCER_ERROR_MEMORY, "background");
    assert_null(thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_arrive_in_order),
        cmocka_unit_test(test_nothing_runs_unasked),
        cmocka_unit_test(test_reset_at_any_moment),
        cmocka_unit_test(test_stop_at_any_moment),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

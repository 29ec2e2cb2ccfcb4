/* SPDX-License-Identifier: BSD-3-Clause */
/* parallel_for: every index runs exactly once, worker numbers are within bounds, and no two pieces run at once with
   the same worker number; nested loops, loops of several concurrent callers, and loops in a forked child. */
#define _DEFAULT_SOURCE
#include "support/check.h"

#include "core/clock.h"
#include "core/threads/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_COUNT = 100000, MAX_WORKERS = 512 };

typedef struct tally {
    int threads;
    atomic_int seen[MAX_COUNT];
    atomic_int busy[MAX_WORKERS];
    atomic_int wrong_index, wrong_worker, shared_worker;
    int64_t count;
} tally;

static void count_one(void *argument, int64_t index, int worker)
{
    tally *all = argument;
    if (worker < 0 || worker >= all->threads || worker >= MAX_WORKERS) {
        atomic_fetch_add(&all->wrong_worker, 1);
        return;
    }
    /* Scratch memory is selected by worker number: two concurrent pieces on one worker would corrupt it. */
    if (atomic_fetch_add(&all->busy[worker], 1) != 0) atomic_fetch_add(&all->shared_worker, 1);
    if (index < 0 || index >= all->count)
        atomic_fetch_add(&all->wrong_index, 1);
    else
        atomic_fetch_add(&all->seen[index], 1);
    atomic_fetch_sub(&all->busy[worker], 1);
}

static void check_run(tally *all, int threads, int64_t count)
{
    memset(all, 0, sizeof *all);
    all->threads = threads;
    all->count = count;
    mrc_parallel_for(threads, count, count_one, all);
    assert_that(atomic_load(&all->wrong_index) == 0, "%d threads, count %d", threads, (int)count);
    assert_that(atomic_load(&all->wrong_worker) == 0, "%d threads, count %d", threads, (int)count);
    assert_that(atomic_load(&all->shared_worker) == 0, "%d threads, count %d", threads, (int)count);
    for (int64_t i = 0; i < count; i++)
        assert_that(atomic_load(&all->seen[i]) == 1, "%d threads, count %d, index %d came %d times", threads,
                    (int)count, (int)i, atomic_load(&all->seen[i]));
}

static void test_each_index_once(void **state)
{
    tally *all = *state;
    const int threads[] = {1, 2, 3, 8, 33};
    const int64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, MAX_COUNT};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) check_run(all, threads[t], counts[c]);
}

static void test_more_threads_than_work(void **state)
{
    check_run(*state, 64, 3);
    check_run(*state, 300, 299);
    check_run(*state, 500, 1);
    check_run(*state, 500, 0);
}

/* The caller continues only when all work is done: the counts of a loop are complete right after it returns. */
static void test_many_small_loops(void **state)
{
    tally *all = *state;
    for (int repeat = 0; repeat < 500; repeat++) check_run(all, 2 + repeat % 3, repeat % 5);
}

/* ---- Concurrency --------------------------------------------------------------------------------------------- */

typedef struct barrier {
    atomic_int present;
    int wanted;
    atomic_int met; /* number of pieces that found all pieces running at the same time */
} barrier;

/* Waits until `wanted` pieces run at the same time, which only separate threads can do. */
static void meet(void *argument, int64_t index, int worker)
{
    (void)index, (void)worker;
    barrier *self = argument;
    atomic_fetch_add(&self->present, 1);
    double end = mrc_seconds() + 30;
    while (atomic_load(&self->present) < self->wanted && mrc_seconds() < end) continue;
    if (atomic_load(&self->present) == self->wanted) atomic_fetch_add(&self->met, 1);
}

static bool all_meet(int threads)
{
    barrier self = {.wanted = threads};
    mrc_parallel_for(threads, threads, meet, &self);
    return atomic_load(&self.met) == threads;
}

static void test_pieces_run_at_once(void **state)
{
    (void)state;
    for (int repeat = 0; repeat < 20; repeat++) assert_true(all_meet(2));
    assert_true(all_meet(5));
}

/* Threads that have gone to sleep wake up for the next loop. */
static void test_after_sleep(void **state)
{
    (void)state;
    for (int repeat = 0; repeat < 3; repeat++) {
        struct timespec time = {0, 20000000};
        nanosleep(&time, NULL);
        assert_true(all_meet(3));
    }
}

typedef struct nest {
    atomic_int done, other_thread;
} nest;

typedef struct inner {
    nest *all;
    pthread_t owner;
} inner;

static void inner_piece(void *argument, int64_t index, int worker)
{
    (void)index;
    inner *self = argument;
    if (worker != 0 || !pthread_equal(self->owner, pthread_self())) atomic_fetch_add(&self->all->other_thread, 1);
    atomic_fetch_add(&self->all->done, 1);
}

static void outer_piece(void *argument, int64_t index, int worker)
{
    (void)index, (void)worker;
    inner self = {argument, pthread_self()};
    mrc_parallel_for(4, 10, inner_piece, &self);
}

static void test_nested_loops_run_in_their_thread(void **state)
{
    (void)state;
    nest all = {0};
    mrc_parallel_for(3, 50, outer_piece, &all);
    assert_int_equal(atomic_load(&all.done), 500);
    assert_int_equal(atomic_load(&all.other_thread), 0);
    assert_true(all_meet(3)); /* the caller can use helper threads again */
}

static void add_index(void *argument, int64_t index, int worker)
{
    (void)worker;
    atomic_fetch_add((atomic_llong *)argument, index);
}

static void *call_loops(void *argument)
{
    (void)argument;
    for (int repeat = 0; repeat < 300; repeat++) {
        atomic_llong sum = 0;
        mrc_parallel_for(1 + repeat % 4, 100, add_index, &sum);
        if (atomic_load(&sum) != 4950) return "wrong";
    }
    return NULL;
}

static void test_several_callers(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&callers[i], NULL, call_loops, NULL), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(callers[i], &wrong), 0);
        assert_null(wrong);
    }
}

/* A forked child does not have the threads of its parent: it starts its own, and exits normally. */
static void test_child_of_fork(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* the thread sanitizer cannot follow threads of a forked child */
#endif
    assert_true(all_meet(3));
    for (int repeat = 0; repeat < 3; repeat++) {
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) exit(all_meet(3) && call_loops(NULL) == NULL ? 0 : 1);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_true(all_meet(3));
    }
}

/* ---- The section ------------------------------------------------------------------------------------------------ */

static atomic_int opened, opened_again, closed, thread_inside, thread_may_leave;

static void open_section(bool again)
{
    opened++;
    opened_again += again;
}

static void close_section(void)
{
    closed++;
}

static void *stay_inside(void *unused)
{
    mrc_section_enter(open_section);
    thread_inside = 1;
    while (!thread_may_leave) usleep(1000);
    mrc_section_leave(close_section);
    return unused;
}

/* Runs in a forked child; returns 0 if all checks pass. */
static int in_child(bool inside)
{
    int before = opened, again = opened_again;
    if (inside) { /* The child has its own count: the section is open there, and leaving it closes it. */
        int ended = closed;
        mrc_section_leave(close_section);
        if (closed != ended + 1) return 1;
    }
    mrc_section_enter(open_section);
    if (opened != before + 1 || opened_again != again + !inside) return 2;
    mrc_section_leave(close_section);
    mrc_section_enter(open_section);
    if (opened_again != again + !inside) return 3; /* reported only once */
    mrc_section_leave(close_section);
    return 0;
}

/* The first enter opens the section, the last leave closes it. A forked child is informed that threads vanished
   inside. */
static void test_section(void **state)
{
    (void)state;
    pthread_t thread;
    mrc_section_enter(open_section);
    mrc_section_enter(open_section);
    mrc_section_leave(close_section);
    assert_true(opened == 1 && closed == 0);
    mrc_section_leave(close_section);
    assert_true(opened == 1 && closed == 1 && opened_again == 0);
    for (int inside = 0; inside < 2; inside++) {
        if (inside)
            mrc_section_enter(open_section);
        else
            assert_int_equal(pthread_create(&thread, NULL, stay_inside, NULL), 0);
        while (!inside && !thread_inside) usleep(1000);
        pid_t child = fork();
        if (child == 0) _exit(in_child(inside));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_that(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d: %d", inside, status);
        thread_may_leave = 1;
        if (inside)
            mrc_section_leave(close_section);
        else
            pthread_join(thread, NULL);
    }
    assert_true(opened == closed && opened_again == 0);
}

static int make_tally(void **state)
{
    *state = malloc(sizeof(tally));
    return *state ? 0 : -1;
}

static int free_tally(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_index_once),  cmocka_unit_test(test_more_threads_than_work),
        cmocka_unit_test(test_many_small_loops), cmocka_unit_test(test_pieces_run_at_once),
        cmocka_unit_test(test_after_sleep),      cmocka_unit_test(test_nested_loops_run_in_their_thread),
        cmocka_unit_test(test_several_callers),  cmocka_unit_test(test_child_of_fork),
        cmocka_unit_test(test_section),
    };
    return cmocka_run_group_tests(tests, make_tally, free_tally);
}

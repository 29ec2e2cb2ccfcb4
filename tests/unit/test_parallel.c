/* SPDX-License-Identifier: BSD-3-Clause */
/* parallel_for: every index exactly once, workers within bounds and never two at once with the same number. */
#include "support/check.h"

#include "core/parallel.h"

#include <stdatomic.h>

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
    /* Scratch is chosen by worker: two pieces at once on one worker would corrupt it. */
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

/* The caller continues only when all work is done: the counts of a loop are complete right after it. */
static void test_many_small_loops(void **state)
{
    tally *all = *state;
    for (int repeat = 0; repeat < 500; repeat++) check_run(all, 2 + repeat % 3, repeat % 5);
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
        cmocka_unit_test(test_each_index_once),
        cmocka_unit_test(test_more_threads_than_work),
        cmocka_unit_test(test_many_small_loops),
    };
    return cmocka_run_group_tests(tests, make_tally, free_tally);
}

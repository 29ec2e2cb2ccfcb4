/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parallel_for on OpenMP, or on plain threads where the build has none (also used by the thread sanitizer, which does
 * not see into OpenMP's own synchronisation). Pieces are handed out one at a time: they are tiles, large and uneven.
 */
#include "core/parallel.h"

#if defined(MERCER_OPENMP)

#include <omp.h>

void mrc_parallel_for(int threads, int64_t count, mrc_work work, void *argument)
{
    int used = count < threads ? (int)count : threads;
    if (used <= 1) {
        for (int64_t i = 0; i < count; i++) work(argument, i, 0);
        return;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(used)
    for (int64_t i = 0; i < count; i++) work(argument, i, omp_get_thread_num());
}

#else

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_THREADS = 256 };

typedef struct team {
    mrc_work work;
    void *argument;
    int64_t count;
    atomic_llong next;
} team;

typedef struct member {
    team *team;
    int worker;
} member;

static void *serve(void *argument)
{
    member *self = argument;
    for (;;) {
        int64_t i = atomic_fetch_add(&self->team->next, 1);
        if (i >= self->team->count) return NULL;
        self->team->work(self->team->argument, i, self->worker);
    }
}

void mrc_parallel_for(int threads, int64_t count, mrc_work work, void *argument)
{
    team all = {.work = work, .argument = argument, .count = count};
    atomic_init(&all.next, 0);
    int used = count < threads ? (int)count : threads;
    if (used > MAX_THREADS) used = MAX_THREADS;
    pthread_t handles[MAX_THREADS];
    member members[MAX_THREADS];
    int started = 1;
    /* A thread that cannot be started is no failure: the others, and this one, take its pieces. */
    for (; started < used; started++) {
        members[started] = (member){&all, started};
        if (pthread_create(&handles[started], NULL, serve, &members[started])) break;
    }
    members[0] = (member){&all, 0};
    serve(&members[0]);
    for (int i = 1; i < started; i++) pthread_join(handles[i], NULL);
}

#endif

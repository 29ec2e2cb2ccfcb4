/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that are threads of a test program. */
#ifndef MRC_TESTS_LOCAL_RANKS_H
#define MRC_TESTS_LOCAL_RANKS_H

#include "support/check.h"

#include "comm/comm.h"
#include "mercer/ranks.h"

#include <pthread.h>

enum { MOST = 8 };

/* Work of a rank. Returns the number of failures, because only the main thread may call cmocka. */
typedef int (*duty)(mrc_comm *comm, mercer_context *context, void *user);

typedef struct rank_thread {
    pthread_t thread;
    mrc_comm *comm;
    mercer_context *context;
    duty work;
    void *user;
    int failures;
} rank_thread;

static inline void *serve(void *argument)
{
    rank_thread *self = argument;
    self->failures = self->work(self->comm, self->context, self->user);
    return NULL;
}

static inline void make_ranks(rank_thread *all, int ranks, int shards, double deadline)
{
    mercer_context *contexts[MOST] = {0};
    mercer_comm *comms[MOST];
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = 1;
    for (int r = 0; r < ranks; r++) assert_succeeds(NULL, mercer_context_create(&contexts[r], &options));
    mercer_comm_options how = {.struct_size = sizeof how, .shards = shards, .deadline = deadline};
    assert_succeeds(contexts[0], mercer_comm_create_local(comms, contexts, ranks, &how));
    for (int r = 0; r < ranks; r++) all[r] = (rank_thread){.comm = comms[r], .context = contexts[r]};
}

/* Run `work` on all ranks; rank 0 runs on the calling thread. */
static inline void run_ranks(rank_thread *all, int ranks, duty work, void *user)
{
    for (int r = 0; r < ranks; r++) all[r].work = work, all[r].user = user;
    for (int r = 1; r < ranks; r++) assert_int_equal(pthread_create(&all[r].thread, NULL, serve, &all[r]), 0);
    serve(&all[0]);
    for (int r = 1; r < ranks; r++) pthread_join(all[r].thread, NULL);
    for (int r = 0; r < ranks; r++)
        assert_that(all[r].failures == 0, "rank %d of %d: failure %d: %s", r, ranks, all[r].failures,
                    mercer_last_error(all[r].context));
}

static inline void free_ranks(rank_thread *all, int ranks, int first)
{
    for (int i = 0; i < ranks; i++) {
        int r = (first + i) % ranks; /* communicators may be freed in any order after the rank threads are joined */
        mercer_comm_free(all[r].comm);
        mercer_context_free(all[r].context);
    }
}

static inline void with_ranks(int ranks, int shards, duty work, void *user)
{
    rank_thread all[MOST];
    make_ranks(all, ranks, shards, 20);
    run_ranks(all, ranks, work, user);
    free_ranks(all, ranks, ranks / 2);
}

#endif

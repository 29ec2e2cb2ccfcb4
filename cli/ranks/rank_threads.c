/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are threads of this process, one per device of a list. Rank 0 is the main thread; every other rank runs
 * the same command with its own copy of the options and calls cli_ranks_close. The main thread closes last and joins
 * the other threads.
 */
#include "data.h"
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct worker {
    cli_rank_state rank_state;
    cli_values *v;
    pthread_t thread;
    int started;
} worker;

static struct {
    worker *workers; /* (ranks) workers[0] is the main thread */
    int ranks;
} local; /* used only by the main thread */

/* ---- Creating ---------------------------------------------------------------------------------------------------- */

/* Returns the number of threads per rank: --threads, or an equal share of the processors. */
static int threads_per_rank(const cli_values *v, int ranks)
{
    mercer_context_info info = {.struct_size = sizeof info};
    mercer_context *context = NULL;
    if (cli_integer(v, "threads") > 0) return (int)cli_integer(v, "threads");
    if (mercer_context_create(&context, NULL) == MERCER_OK) mercer_context_query(context, &info);
    mercer_context_free(context);
    return info.threads > ranks ? info.threads / ranks : 1;
}

static int make_contexts(const cli_values *v, const cli_devices *devices, mercer_context **contexts)
{
    int threads = threads_per_rank(v, devices->count), code = CLI_OK;
    for (int r = 0; r < devices->count && code == CLI_OK; r++)
        code = cli_make_context(v, devices->names[r], threads, 0, &contexts[r]);
    return code;
}

int cli_local_open(const cli_values *v, const cli_devices *devices, const mercer_comm_options *options)
{
    int ranks = devices->count;
    CLI_OWNED(cli_drop) mercer_context **contexts = cli_allocate(ranks, sizeof *contexts);
    CLI_OWNED(cli_drop) mercer_comm **comms = cli_allocate(ranks, sizeof *comms);
    int code = make_contexts(v, devices, contexts);
    mercer_status status = code == CLI_OK ? mercer_comm_create_local(comms, contexts, ranks, options) : MERCER_OK;
    if (status != MERCER_OK) code = cli_fail(contexts[0], status);
    if (code == CLI_OK) {
        local.workers = cli_allocate(ranks, sizeof *local.workers);
        local.ranks = ranks;
    }
    for (int r = 0; r < ranks; r++) {
        if (code == CLI_OK)
            local.workers[r].rank_state = (cli_rank_state){.comm = comms[r],
                                                           .context = contexts[r],
                                                           .rank = r,
                                                           .ranks = ranks,
                                                           .local = 1,
                                                           .memory = cli_has(v, "memory") ? cli_memory(v) : 0,
                                                           .deadline = options->deadline > 0 ? options->deadline : 60};
        else
            mercer_context_free(contexts[r]);
    }
    if (code == CLI_OK) *cli_rank_state_here() = local.workers[0].rank_state;
    return code;
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static void *run_rank_thread(void *argument)
{
    worker *self = argument;
    *cli_rank_state_here() = self->rank_state;
    int code = cli_values_command(self->v)->run(self->v);
    cli_ranks_close(
        code); /* the return value is not needed: the main thread gets the exit code when this rank leaves */
    return NULL;
}

/* Starts a rank thread with all signals blocked. The main thread receives signals and shares them with the other ranks
   by cli_interrupted. */
static int start_rank_thread(worker *self)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return EAGAIN;
    int error = pthread_create(&self->thread, NULL, run_rank_thread, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    self->started = error == 0;
    return error;
}

int cli_local_start(const cli_values *v)
{
    int error = 0;
    if (local.ranks > 1)
        json_object_seed(0); /* jansson must seed its hash tables before several threads create objects */
    for (int r = 1; r < local.ranks && error == 0; r++) {
        worker *self = &local.workers[r];
        self->v = cli_values_copy(v);
        CLI_TRY(cli_values_set(self->v, cli_find_option(cli_values_command(v), "quiet"), "true", CLI_FROM_COMMAND,
                               "--quiet"));
        error = start_rank_thread(self);
        if (error != 0) return cli_error(CLI_FAILURE, "cannot start a thread for rank %d: %s", r, strerror(error));
    }
    return CLI_OK;
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

/* Joins a rank thread; returns 0 if it has not ended by `limit`. */
static int join_rank_thread(worker *self, const struct timespec *limit)
{
    if (self->started && pthread_timedjoin_np(self->thread, NULL, limit) != 0) return 0;
    if (!self->started && self->rank_state.comm != NULL) {
        mercer_comm_free(self->rank_state.comm);
        mercer_context_free(self->rank_state.context);
    }
    cli_values_free(self->v);
    return 1;
}

void cli_local_join(int code)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 1 + (local.ranks > 0 ? (time_t)local.workers[0].rank_state.deadline : 0);
    for (int r = 1; r < local.ranks; r++) {
        if (join_rank_thread(&local.workers[r], &limit)) continue;
        fflush(NULL); /* a thread that has not ended by the deadline may never end */
        _Exit(code != CLI_OK ? code : CLI_RANKS);
    }
    free(local.workers);
    local.workers = NULL;
    local.ranks = 0;
}

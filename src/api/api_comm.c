/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: ranks.
 *
 * The checks of a collective function are local. If a check fails on a rank, this rank does not take part in the
 * exchange. The other ranks notice its absence, at the latest after the deadline.
 */
#include "comm/comm.h"

#include "api/api_options.h"

#include <stdlib.h>
#include <string.h>

/* Default of mercer_comm_options.deadline: long enough for the slowest step between two exchanges. */
#define DEADLINE 60.0

enum { MOST_SHARDS = 65536, MOST_THREADS = 1024 };

/* ---- Opening -------------------------------------------------------------------------------------------------- */

int mercer_comm_launched(int *rank)
{
    /* The variables that launchers set: Open MPI; PMI, used by MPICH, Intel MPI and others; Slurm. */
    static const char *const pairs[][2] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                           {"PMI_SIZE", "PMI_RANK"},
                                           {"MPI_LOCALNRANKS", "PMI_RANK"},
                                           {"SLURM_NTASKS", "SLURM_PROCID"}};
    if (rank) *rank = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *size = getenv(pairs[i][0]), *number = getenv(pairs[i][1]);
        if (!size || !number) continue;
        /* Slurm sets its variables in every batch job; they are valid only for tasks that srun started with a
           process manager. */
        if (strncmp(pairs[i][0], "SLURM", 5) == 0 &&
            (atoi(size) < 2 || !getenv("SLURM_STEP_ID") || !getenv("PMIX_RANK")))
            continue;
        if (rank) *rank = atoi(number);
        return atoi(size);
    }
    return 0;
}

/* Parses the option `exchange`. */
static mercer_status read_wish(mercer_context *context, const char *text, mrc_link_wish *wish)
{
    static const char *const names[] = {
        [MRC_LINK_AUTO] = "auto", [MRC_LINK_NEVER] = "host", [MRC_LINK_ALWAYS] = "nccl"};
    *wish = MRC_LINK_AUTO;
    for (int i = 0; i < 3 && text; i++)
        if (strcmp(text, names[i]) == 0) {
            *wish = (mrc_link_wish)i;
            return MERCER_OK;
        }
    if (!text) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: exchange '%s' is unknown; valid: auto, host, nccl", text);
}

/* Reads and checks the caller's options, and sets defaults. */
static mercer_status read_options(mercer_context *context, const mercer_comm_options *options,
                                  mercer_comm_options *ours, mrc_link_wish *wish)
{
    MRC_TRY(mrc_read_struct(context, ours, MRC_STRUCT(mercer_comm_options), options, "options"));
    MRC_TRY(read_wish(context, ours->exchange, wish));
    if (ours->shards < -1 || ours->shards > MOST_SHARDS)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: shards is %d; it must be between -1 and %d",
                        ours->shards, (int)MOST_SHARDS);
    if (!(ours->deadline >= 0) || ours->deadline > 1e6)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: deadline is %g; it must be between 0 and 1e6 "
                        "seconds",
                        ours->deadline);
    if (!ours->kind) ours->kind = "auto";
    if (ours->deadline == 0) ours->deadline = DEADLINE;
    return MERCER_OK;
}

/* Sets the options that do not depend on the kind of communicator. */
static void apply_options(mrc_comm *comm, const mercer_comm_options *options, mrc_link_wish wish)
{
    comm->wish = wish;
    comm->leaving = options->leaving;
    comm->leaving_user = options->leaving_user;
}

/* shards: -1 (MERCER_SHARDS_AUTO) is 0 in mrc_comm, which means "by the number of centers". 0 means 1 for "self" and
   automatic otherwise. Deadline, exchange and `leaving` concern other ranks, so "self" checks but does not store
   them. */
mercer_status mercer_comm_create(mercer_comm **out, mercer_context *context, const mercer_comm_options *options)
{
    mercer_comm_options ours;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    MRC_TRY(mrc_context_ready(context));
    mrc_link_wish wish;
    MRC_TRY(read_options(context, options, &ours, &wish));
    const char *kind = ours.kind;
    if (strcmp(kind, "auto") == 0) kind = mercer_comm_launched(NULL) > 0 ? "mpi" : "self";
    if (strcmp(kind, "mpi") == 0) {
        MRC_TRY(mrc_comm_create_module(out, context, kind, ours.shards > 0 ? ours.shards : 0, ours.deadline));
        apply_options(*out, &ours, wish);
        return MERCER_OK;
    }
    if (strcmp(kind, "self") == 0)
        return mrc_comm_create_virtual(out, context, ours.shards < 0 ? 0 : ours.shards > 0 ? ours.shards : 1);
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: kind '%s' is unknown; valid: auto, self, mpi", kind);
}

/* Checks that every rank has its own context: threads must not share a context. */
static mercer_status check_contexts(mercer_context *const *contexts, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        if (!contexts[r])
            return mrc_fail(r > 0 ? contexts[0] : NULL, MERCER_ERROR_ARGUMENT,
                            "contexts: the context of rank %d is "
                            "NULL",
                            r);
        for (int i = 0; i < r; i++)
            if (contexts[i] == contexts[r])
                return mrc_fail(contexts[0], MERCER_ERROR_ARGUMENT,
                                "contexts: ranks %d and %d have the same context; give each rank its own", i, r);
    }
    return MERCER_OK;
}

/* All outputs are cleared before the contexts are checked, so that a caller can release every out[r] after a later
   failure. Options are read once, with the first context, and apply to all ranks. */
mercer_status mercer_comm_create_local(mercer_comm **out, mercer_context *const *contexts, int ranks,
                                       const mercer_comm_options *options)
{
    mercer_comm_options ours;
    if (!out || !contexts) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "out or contexts is NULL");
    if (ranks < 1 || ranks > MOST_THREADS)
        return mrc_fail(contexts[0], MERCER_ERROR_ARGUMENT, "ranks is %d; it must be between 1 and %d", ranks,
                        (int)MOST_THREADS);
    for (int r = 0; r < ranks; r++) out[r] = NULL;
    MRC_TRY(check_contexts(contexts, ranks));
    for (int r = 0; r < ranks; r++) MRC_TRY(mrc_context_ready(contexts[r]));
    mrc_link_wish wish;
    MRC_TRY(read_options(contexts[0], options, &ours, &wish));
    if (strcmp(ours.kind, "auto") != 0 && strcmp(ours.kind, "local") != 0)
        return mrc_fail(contexts[0], MERCER_ERROR_ARGUMENT, "options: kind is '%s'; use auto or local", ours.kind);
    if (ours.shards > 0 && ours.shards < ranks)
        return mrc_fail(contexts[0], MERCER_ERROR_ARGUMENT,
                        "%d ranks are more than the %d shards of the centers; use at least one shard per rank", ranks,
                        ours.shards);
    MRC_TRY(mrc_comm_create_local(out, contexts, ranks, ours.shards > 0 ? ours.shards : 0, ours.deadline));
    for (int r = 0; r < ranks; r++) apply_options(out[r], &ours, wish);
    return MERCER_OK;
}

mercer_status mercer_comm_query(const mercer_comm *comm, mercer_comm_info *info)
{
    if (!comm) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "comm is NULL");
    mercer_comm_info ours = {.struct_size = sizeof ours,
                             .rank = comm->rank,
                             .ranks = comm->ranks,
                             .shards = comm->shards,
                             .broken = comm->broken,
                             .left_code = comm->left_code,
                             .exchanges = comm->exchanges,
                             .bytes_sent = comm->bytes_sent,
                             .bytes_received = comm->bytes_received,
                             .direct = comm->link != NULL};
    return mrc_write_struct(comm->context, info, &ours, MRC_STRUCT(mercer_comm_info), "info");
}

/* ---- Collective operations --------------------------------------------------------------------------------------- */

/* Not an exchange: the share depends only on the number of centers, of shards and of ranks. */
mercer_status mercer_comm_share(const mercer_comm *comm, int64_t *first, int64_t *count, int64_t centers)
{
    if (!comm) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "comm is NULL");
    if (!first || !count) return mrc_fail(comm->context, MERCER_ERROR_ARGUMENT, "first or count is NULL");
    if (centers < 0)
        return mrc_fail(comm->context, MERCER_ERROR_SHAPE, "centers is %lld; it must be at least 0",
                        (long long)centers);
    mrc_comm_rows(comm, centers, comm->rank, first, count);
    return MERCER_OK;
}

mercer_status mercer_comm_broadcast(mercer_comm *comm, void *data, int64_t bytes)
{
    if (!comm) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "comm is NULL");
    if (bytes < 0 || (bytes > 0 && !data))
        return mrc_fail(comm->context, MERCER_ERROR_ARGUMENT, "data is NULL or bytes is negative");
    return mrc_comm_broadcast(comm, data, bytes);
}

mercer_status mercer_comm_any(mercer_comm *comm, int *any, int mine)
{
    bool found = mine != 0;
    if (!comm) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "comm is NULL");
    if (!any) return mrc_fail(comm->context, MERCER_ERROR_ARGUMENT, "any is NULL");
    MRC_TRY(mrc_comm_any(comm, found, &found));
    *any = found;
    return MERCER_OK;
}

mercer_status mercer_comm_agree(mercer_comm *comm, const char *what, const void *data, int64_t bytes)
{
    if (!comm) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "comm is NULL");
    if (!what) return mrc_fail(comm->context, MERCER_ERROR_ARGUMENT, "what is NULL");
    if (bytes < 0 || (bytes > 0 && !data))
        return mrc_fail(comm->context, MERCER_ERROR_ARGUMENT, "data is NULL or bytes is negative");
    return mrc_comm_agree(comm, what, data, bytes);
}

int mercer_comm_leave(mercer_comm *comm, int code, const char *text)
{
    return comm && mrc_comm_leave(comm, code, text ? text : "");
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

void mercer_comm_free(mrc_comm *comm)
{
    mrc_comm_free(comm);
}

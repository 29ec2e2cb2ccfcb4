/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation of communicators; division of centers into shards, and division of shards among ranks. */
#include "comm/comm.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

/* LEAST_SHARDS, MOST_SHARDS: bounds of the number of shards; powers of two. CENTERS_A_SHARD: fewest centers per shard
   if there are more than LEAST_SHARDS shards. */
enum { CENTERS_A_SHARD = 4096, LEAST_SHARDS = 8, MOST_SHARDS = 1024 };

#define LEAVE_SECONDS 2.0 /* seconds that a leaving rank waits for delivery of its message */

/* ---- Creation and release ------------------------------------------------------------------------------------- */

mercer_status mrc_comm_create_virtual(mrc_comm **out, mercer_context *context, int shards)
{
    MRC_TRY(mrc_alloc_zero(context, out, 1, sizeof **out, "the communicator"));
    **out = (mrc_comm){.context = context, .ranks = 1, .shards = shards};
    return MERCER_OK;
}

/* The caller sets module and state afterwards. Without a state, mrc_comm_free does not call the module. */
mercer_status mrc_comm_allocate(mrc_comm **out, mercer_context *context, int rank, int ranks, int shards,
                                double deadline)
{
    MRC_OWNED(mrc_release_comm) mrc_comm *self = NULL;
    *out = NULL;
    MRC_TRY(mrc_comm_create_virtual(&self, context, shards));
    self->rank = rank, self->ranks = ranks, self->deadline = deadline;
    MRC_TRY(mrc_alloc_zero(context, &self->pieces, 2 * (int64_t)ranks, sizeof *self->pieces, "the ranks' pieces"));
    MRC_TRY(mrc_alloc_zero(context, &self->missing, ranks, 1, "the list of missing ranks"));
    *out = self, self = NULL;
    return MERCER_OK;
}

/* Closes the link, then the module. After a failed exchange neither waits for the other ranks. */
void mrc_comm_free(mrc_comm *comm)
{
    if (!comm) return;
    mrc_comm_unlink(comm);
    if (comm->state) comm->module->close(comm->state, !comm->broken);
    MRC_FREE_ALL(comm->context, comm->pieces, comm->missing, comm->places, comm);
}

/* ---- Calls of the module -------------------------------------------------------------------------------------- */

/* Every rank must make the same sequence of calls. The pieces of this rank itself are not transferred. */
mercer_status mrc_comm_exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive)
{
    mrc_comm_error failure = {.missing = comm->missing};
    memset(comm->missing, 0, (size_t)comm->ranks);
    comm->module->exchange(comm->state, send, receive, comm->deadline, &failure);
    return mrc_comm_check(comm, &failure);
}

mercer_status mrc_comm_listen(mrc_comm *comm, bool alive)
{
    mrc_comm_error failure = {.missing = comm->missing};
    if (comm->ranks == 1) return MERCER_OK;
    comm->module->listen(comm->state, alive, &failure);
    return mrc_comm_check(comm, &failure);
}

bool mrc_comm_leave(mrc_comm *comm, int code, const char *text)
{
    if (comm->ranks == 1 || comm->left) return comm->first_left;
    comm->left = comm->broken = true;
    /* Called first, because the other ranks may end the job as soon as they receive the message. */
    if (comm->leaving) comm->leaving(comm->leaving_user, code, text);
    mrc_comm_error failure = {.missing = comm->missing};
    comm->module->leave(comm->state, code, text, LEAVE_SECONDS, &failure);
    comm->first_left = failure.kind == MRC_COMM_ERROR_LEFT;
    return comm->first_left;
}

/* ---- Shares --------------------------------------------------------------------------------------------------- */

void mrc_share(int64_t count, int64_t parts, int64_t index, int64_t *first, int64_t *size)
{
    int64_t each = count / parts, more = count % parts; /* the first `more` parts get one extra item */
    *first = index * each + mrc_min(index, more);
    *size = each + (index < more ? 1 : 0);
}

/* Depends only on p and comm->shards, never on the number of ranks. */
int mrc_comm_shards(const mrc_comm *comm, int64_t p)
{
    int shards = LEAST_SHARDS;
    if (comm->shards > 0) return comm->shards;
    while (shards < MOST_SHARDS && 2 * (int64_t)shards * CENTERS_A_SHARD <= p) shards *= 2;
    return shards;
}

/* Rows are divided among large shards in units of 64 rows, so the last shard may be shorter than the others. */
void mrc_shard_rows(int64_t p, int64_t shards, int64_t index, int64_t *first, int64_t *rows)
{
    int64_t unit = p >= MRC_LARGE_SHARD * shards ? MRC_ALIGNED_ROWS : 1, units;
    mrc_share((p + unit - 1) / unit, shards, index, first, &units);
    *first *= unit;
    *rows = mrc_min(units * unit, p - *first);
}

/* The shards of a rank are consecutive, so its rows reach from the start of its first shard to the end of its last
   shard. */
void mrc_comm_rows(const mrc_comm *comm, int64_t p, int rank, int64_t *first, int64_t *count)
{
    int64_t shards = mrc_comm_shards(comm, p), begin, own, end, rows;
    mrc_share(shards, comm->ranks, rank, &begin, &own);
    mrc_shard_rows(p, shards, begin, first, &rows);
    *count = 0;
    if (own == 0) return;
    mrc_shard_rows(p, shards, begin + own - 1, &end, &rows);
    *count = end + rows - *first;
}

/* ---- Failed exchanges ----------------------------------------------------------------------------------------- */

enum { LIST_CHARS = 200 };

/* Lists up to three missing ranks: "rank 2 (node7, process 1234), rank 3 ...". */
static void list_missing(int ranks, const mrc_rank_process *places, const unsigned char *missing, char *text)
{
    int used = 0, listed = 0, all = 0;
    for (int r = 0; r < ranks; r++) all += missing[r];
    for (int r = 0; r < ranks && used < LIST_CHARS / 2 && listed < 3; r++) {
        if (!missing[r]) continue;
        used += snprintf(text + used, (size_t)(LIST_CHARS - used), "%srank %d", listed++ ? ", " : "", r);
        if (places)
            used += snprintf(text + used, (size_t)(LIST_CHARS - used), " (%.40s, process %lld)", places[r].host,
                             (long long)places[r].process);
    }
    if (all > listed) snprintf(text + used, (size_t)(LIST_CHARS - used), " and %d others", all - listed);
}

/* Also stores the exit code of a rank that has left; this rank leaves with the same code. */
mercer_status mrc_comm_check(mrc_comm *comm, const mrc_comm_error *failure)
{
    char who[LIST_CHARS] = "another rank";
    switch (failure->kind) {
        case MRC_COMM_ERROR_DONE: return MERCER_OK;
        case MRC_COMM_ERROR_LEFT:
            comm->left_code = failure->code;
            return mrc_fail(comm->context, MERCER_ERROR_COMM, "rank %d ended: %s", failure->rank, failure->text);
        case MRC_COMM_ERROR_SILENT:
            list_missing(comm->ranks, comm->places, failure->missing, who);
            return mrc_fail(comm->context, MERCER_ERROR_COMM,
                            "%s ended or stopped: no message within the deadline of %.3g s; the job ends", who,
                            comm->deadline);
        case MRC_COMM_ERROR_FAILED: break;
    }
    return mrc_fail(comm->context, MERCER_ERROR_COMM, "%s: %s", comm->module->name, failure->text);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are threads of one process.
 *
 * An exchange: every rank publishes what it sends and waits at a barrier; copies what it receives out of the senders'
 * memory; and waits again, so that no rank changes or frees memory that another still reads. Only the first wait has a
 * deadline: if it passes, the barrier is closed for all, and no rank reads from the one that timed out.
 */
#include "comm/comm.h"

#include "core/memory.h"
#include "core/threads/barrier.h"

#include <stdio.h>
#include <string.h>

typedef struct local_comm {
    mrc_comm base;
    mrc_barrier *barrier;
    struct local_comm **all; /* (ranks) all communicators of the group */
    const mrc_piece *sent;   /* (ranks) what this rank sends in the exchange under way */
    unsigned char *missing;  /* (ranks) scratch */
} local_comm;

static void fill_failure(mrc_barrier_result result, const mrc_exit_message *message, double deadline,
                         mrc_comm_error *failure)
{
    switch (result) {
        case MRC_BARRIER_PASSED: failure->kind = MRC_COMM_ERROR_DONE; break;
        case MRC_BARRIER_TIMEOUT: failure->kind = MRC_COMM_ERROR_SILENT; break;
        case MRC_BARRIER_LEFT:
            failure->kind = MRC_COMM_ERROR_LEFT;
            failure->rank = message->party;
            failure->code = message->code;
            snprintf(failure->text, sizeof failure->text, "%.*s", (int)sizeof failure->text - 1, message->text);
            break;
        case MRC_BARRIER_CLOSED:
            failure->kind = MRC_COMM_ERROR_FAILED;
            snprintf(failure->text, sizeof failure->text,
                     "the other ranks gave this one up after %.3g s without a word, the deadline", deadline);
            break;
    }
}

/* Copies what the others have for this rank. The sizes of both sides agree unless the ranks' calls differ. */
static void take(const local_comm *self, const mrc_piece *receive, mrc_comm_error *failure)
{
    for (int r = 0; r < self->base.ranks; r++) {
        if (r == self->base.rank) continue;
        const mrc_piece *from = &self->all[r]->sent[self->base.rank];
        if (from->bytes == receive[r].bytes) {
            if (from->bytes > 0) memcpy(receive[r].data, from->data, (size_t)from->bytes);
            continue;
        }
        failure->kind = MRC_COMM_ERROR_FAILED;
        snprintf(failure->text, sizeof failure->text,
                 "rank %d sends %lld bytes, rank %d expects %lld: their calls differ", r, (long long)from->bytes,
                 self->base.rank, (long long)receive[r].bytes);
    }
}

static mercer_status exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive)
{
    local_comm *self = (local_comm *)comm;
    mrc_comm_error failure = {.missing = self->missing};
    mrc_exit_message message;
    self->sent = send;
    mrc_barrier_result result = mrc_barrier_wait(self->barrier, comm->rank, comm->deadline, self->missing, &message);
    fill_failure(result, &message, comm->deadline, &failure);
    if (result == MRC_BARRIER_PASSED) {
        take(self, receive, &failure);
        mrc_barrier_wait(self->barrier, comm->rank, 0, self->missing, &message); /* all have arrived, and only copy */
    }
    return mrc_comm_check(comm, "threads", NULL, &failure);
}

static mercer_status listen_to(mrc_comm *comm, bool alive)
{
    (void)alive; /* threads need no sign of life: only exchanges have a deadline */
    local_comm *self = (local_comm *)comm;
    mrc_comm_error failure = {.missing = self->missing};
    mrc_exit_message message;
    if (mrc_barrier_has_left(self->barrier, &message))
        fill_failure(MRC_BARRIER_LEFT, &message, comm->deadline, &failure);
    return mrc_comm_check(comm, "threads", NULL, &failure);
}

/* The message stays in the barrier, so there is nothing to wait for. */
static void leave(mrc_comm *comm, int code, const char *text, bool *first_left)
{
    mrc_exit_message message = {.party = comm->rank, .code = code};
    snprintf(message.text, sizeof message.text, "%.*s", (int)sizeof message.text - 1, text);
    mrc_barrier_leave(((local_comm *)comm)->barrier, &message);
    *first_left = false;
}

static void destroy(mrc_comm *comm)
{
    local_comm *self = (local_comm *)comm;
    bool first_left;
    if (self->barrier && !comm->left) leave(comm, 0, "it has closed its communicator", &first_left);
    if (self->barrier) mrc_barrier_release(self->barrier);
    mrc_free(comm->context, comm->pieces);
    mrc_free(comm->context, self->missing);
    mrc_free(comm->context, self->all);
}

/* ---- Making --------------------------------------------------------------------------------------------------- */

static mercer_status create_one(mrc_comm **out, mercer_context *context, int rank, int ranks)
{
    static const mrc_comm_ops ops = {
        .name = "local", .exchange = exchange, .listen = listen_to, .leave = leave, .destroy = destroy};
    void *memory;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &memory, 1, sizeof(local_comm), "the communicator"));
    local_comm *self = memory;
    self->base = (mrc_comm){.ops = &ops, .context = context, .rank = rank, .ranks = ranks};
    mercer_status status = mrc_alloc_zero(context, &memory, 2 * (int64_t)ranks, sizeof(mrc_piece), "the ranks' pieces");
    self->base.pieces = memory;
    if (status == MERCER_OK) status = mrc_alloc_zero(context, &memory, ranks, 1, "the list of missing ranks");
    if (status == MERCER_OK) self->missing = memory;
    if (status == MERCER_OK) status = mrc_alloc_zero(context, &memory, ranks, sizeof self, "the list of ranks");
    if (status == MERCER_OK) self->all = memory;
    if (status == MERCER_OK)
        *out = &self->base;
    else
        mrc_comm_free(&self->base);
    return status;
}

/* Connects the communicators by the barrier; without one, frees them all. */
static void join(mrc_comm **all, int ranks, mrc_barrier *barrier)
{
    for (int r = 0; r < ranks; r++) {
        local_comm *self = (local_comm *)all[r];
        if (barrier) {
            self->barrier = barrier;
            memcpy(self->all, all, (size_t)ranks * sizeof *all); /* base is the first member */
        } else {
            mrc_comm_free(all[r]);
            all[r] = NULL;
        }
    }
}

mercer_status mrc_comm_create_local(mrc_comm **out, mercer_context *const *contexts, int ranks, int shards,
                                    double deadline)
{
    mercer_status status = MERCER_OK;
    for (int r = 0; r < ranks; r++) out[r] = NULL;
    for (int r = 0; r < ranks && status == MERCER_OK; r++) {
        status = create_one(&out[r], contexts[r], r, ranks);
        if (status != MERCER_OK && r > 0) mrc_fail(contexts[0], status, "rank %d: %s", r, mrc_error_text(contexts[r]));
        if (status != MERCER_OK) break;
        out[r]->shards = shards;
        out[r]->deadline = deadline;
    }
    mrc_barrier *barrier = status == MERCER_OK ? mrc_barrier_create(ranks) : NULL;
    if (status == MERCER_OK && !barrier)
        status = mrc_fail(contexts[0], MERCER_ERROR_MEMORY, "out of memory for the barrier of the ranks");
    join(out, ranks, barrier);
    return status;
}

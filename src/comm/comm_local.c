/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks as threads of one process.
 *
 * In an exchange every rank publishes the pieces that it sends and waits at a barrier. Then it copies its pieces from
 * the memory of the senders and waits again. So no rank changes or frees memory that another rank still reads. Only the
 * first wait has a deadline. If it expires, the barrier is closed for all, so that no rank reads from a rank that did
 * not arrive.
 */
#include "comm/comm.h"

#include "core/memory.h"
#include "core/threads/barrier.h"

#include <stdio.h>
#include <string.h>

/* State of one rank. */
typedef struct local_rank {
    int rank, ranks;
    mercer_context *context; /* context of the rank, which owns this memory */
    mrc_barrier *barrier;
    struct local_rank **all; /* (ranks) states of all ranks */
    const mrc_piece *sent;   /* (ranks) pieces that this rank sends in the current exchange */
    double deadline;         /* deadline of the last exchange in seconds, for messages */
    bool left;
} local_rank;

/* Converts the result of a barrier to the result of an exchange. */
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
                     "the other ranks received no message from this rank within the deadline of %.3g s", deadline);
            break;
    }
}

/* Copies the pieces for this rank from the memory of the other ranks. Sent and expected sizes agree unless the ranks
   make different calls. */
static void take_message(const local_rank *self, const mrc_piece *receive, mrc_comm_error *failure)
{
    for (int r = 0; r < self->ranks; r++) {
        if (r == self->rank) continue;
        const mrc_piece *from = &self->all[r]->sent[self->rank];
        if (from->bytes == receive[r].bytes) {
            if (from->bytes > 0) memcpy(receive[r].data, from->data, (size_t)from->bytes);
            continue;
        }
        failure->kind = MRC_COMM_ERROR_FAILED;
        snprintf(failure->text, sizeof failure->text,
                 "rank %d sends %lld bytes, but rank %d expects %lld; all ranks must make the same calls", r,
                 (long long)from->bytes, self->rank, (long long)receive[r].bytes);
    }
}

/* The pieces of the other ranks may be read between the two waits. The first wait makes their writes visible; the
   second wait returns only when all ranks have copied. A rank also reaches the second wait if take_message fails;
   otherwise the other ranks would wait forever. */
static void exchange_local(void *state, const mrc_piece *send, const mrc_piece *receive, double deadline,
                           mrc_comm_error *failure)
{
    local_rank *self = state;
    mrc_exit_message message;
    self->sent = send, self->deadline = deadline;
    mrc_barrier_result result = mrc_barrier_wait(self->barrier, self->rank, deadline, failure->missing, &message);
    fill_failure(result, &message, deadline, failure);
    if (result != MRC_BARRIER_PASSED) return;
    take_message(self, receive, failure);
    /* no deadline, because all ranks have arrived and are only copying */
    mrc_barrier_wait(self->barrier, self->rank, 0, failure->missing, &message);
}

/* Reports a rank that has left. Threads need no sign of life, because only exchanges have a deadline. */
static void listen_to(void *state, int alive, mrc_comm_error *failure)
{
    local_rank *self = state;
    mrc_exit_message message;
    (void)alive;
    if (mrc_barrier_has_left(self->barrier, &message))
        fill_failure(MRC_BARRIER_LEFT, &message, self->deadline, failure);
}

/* Leaves the barrier. The barrier stores the message, so there is no delivery to wait for. */
static void leave_local(void *state, int code, const char *text, double patience, mrc_comm_error *failure)
{
    local_rank *self = state;
    mrc_exit_message message = {.party = self->rank, .code = code};
    (void)patience;
    snprintf(message.text, sizeof message.text, "%.*s", (int)sizeof message.text - 1, text);
    mrc_barrier_leave(self->barrier, &message);
    self->left = true;
    failure->kind = MRC_COMM_ERROR_DONE;
}

/* Leaves the barrier unless the rank has left already, and frees the rank's state. The last rank frees the barrier. */
static void close_rank(void *state, int orderly)
{
    local_rank *self = state;
    mrc_comm_error failure;
    (void)orderly;
    if (self->barrier && !self->left) leave_local(self, 0, "it has closed its communicator", 0, &failure);
    if (self->barrier) mrc_barrier_release(self->barrier);
    mrc_free(self->context, self->all);
    mrc_free(self->context, self);
}

/* ---- Creation ------------------------------------------------------------------------------------------------- */

/* Creates one rank without connecting it to the others. */
static mercer_status create_one(mrc_comm **out, mercer_context *context, int rank, int ranks, int shards,
                                double deadline)
{
    static const mrc_module module = {
        .name = "threads", .exchange = exchange_local, .listen = listen_to, .leave = leave_local, .close = close_rank};
    MRC_OWNED(mrc_release_comm) mrc_comm *comm = NULL;
    local_rank *self;
    MRC_TRY(mrc_comm_allocate(&comm, context, rank, ranks, shards, deadline));
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "the rank"));
    *self = (local_rank){.rank = rank, .ranks = ranks, .context = context, .deadline = deadline};
    comm->module = &module, comm->state = self;
    MRC_TRY(mrc_alloc_zero(context, &self->all, ranks, sizeof self, "the list of ranks"));
    *out = comm, comm = NULL;
    return MERCER_OK;
}

/* Connects the ranks by the barrier; if barrier is NULL, frees all ranks. */
static void join_local(mrc_comm **all, int ranks, mrc_barrier *barrier)
{
    for (int r = 0; r < ranks; r++) {
        if (barrier) {
            local_rank *self = all[r]->state;
            self->barrier = barrier;
            for (int i = 0; i < ranks; i++) self->all[i] = all[i]->state;
        } else {
            mrc_comm_free(all[r]);
            all[r] = NULL;
        }
    }
}

/* The first context reports an error of any rank. After an error all ranks created so far are freed. */
mercer_status mrc_comm_create_local(mrc_comm **out, mercer_context *const *contexts, int ranks, int shards,
                                    double deadline)
{
    mercer_status status = MERCER_OK;
    for (int r = 0; r < ranks; r++) out[r] = NULL;
    for (int r = 0; r < ranks && status == MERCER_OK; r++) {
        status = create_one(&out[r], contexts[r], r, ranks, shards, deadline);
        if (status != MERCER_OK && r > 0) mrc_fail(contexts[0], status, "rank %d: %s", r, mrc_last_error(contexts[r]));
    }
    mrc_barrier *barrier = status == MERCER_OK ? mrc_barrier_create(ranks) : NULL;
    if (status == MERCER_OK && !barrier)
        status = mrc_fail(contexts[0], MERCER_ERROR_MEMORY, "out of memory for the barrier of the ranks");
    join_local(out, ranks, barrier);
    return status;
}

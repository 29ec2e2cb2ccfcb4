/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of device memory from GPU to GPU, by a link module (comm/module.h), mercer_nccl.so.
 *
 * The ranks are already connected by a communicator. Through the communicator they check that each rank has its own GPU
 * and the module, exchange the data for joining the link, and detect failed ranks while they wait. A link neither waits
 * nor knows which rank is missing: if nothing arrives before the deadline, the communicator checks which ranks still
 * answer.
 */
#define _GNU_SOURCE /* gethostname */

#include "comm/comm.h"

#include "core/clock.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* SPINS: polls before the first sleep. LOOK_EVERY: polls between checks whether a rank has left. SLEEP_NANO: pause
   between polls. */
enum { SPINS = 500, LOOK_EVERY = 64, HOST_CHARS = 64, WHY_CHARS = 200, SLEEP_NANO = 20000 };

#define ANSWER_SECONDS 2.0 /* deadline in seconds of the exchange that finds ranks that do not answer */
#define ALIVE_SECONDS  0.5 /* seconds between signs of life, after this rank has waited for half the deadline */

struct mrc_link {
    const mrc_link_module *module;
    void *state;
    char *answers; /* (ranks) scratch space of find_missing */
};

/* ---- Waiting -------------------------------------------------------------------------------------------------- */

static mercer_status failed(mrc_comm *comm, const char *why)
{
    return mrc_fail(comm->context, MERCER_ERROR_COMM, "%s: %s", comm->link->module->name, why);
}

/* Polls until the link's pending operation is done. Sets *lost if the operation failed or missed the deadline; the
   reason is then written to why (WHY_CHARS), and no error is recorded. Fails if a rank has left. */
static mercer_status wait_for_link(mrc_comm *comm, bool *lost, char *why)
{
    mrc_link *link = comm->link;
    double begin = mrc_seconds(), said = begin + comm->deadline / 2;
    *lost = false;
    for (int64_t turn = 0;; turn++) {
        mrc_comm_error failure = {.kind = MRC_COMM_ERROR_DONE};
        int done = link->module->poll(link->state, &failure);
        if (done) return MERCER_OK;
        double time = mrc_seconds();
        *lost = failure.kind != MRC_COMM_ERROR_DONE || time - begin > comm->deadline;
        if (*lost) snprintf(why, WHY_CHARS, "%.*s", WHY_CHARS - 1, failure.text[0] ? failure.text : "no data arrived");
        if (*lost) return MERCER_OK;
        struct timespec pause = {0, SLEEP_NANO};
        if (turn >= SPINS) nanosleep(&pause, NULL);
        if (turn % LOOK_EVERY != LOOK_EVERY - 1) continue;
        MRC_TRY(mrc_comm_listen(comm, time > said));
        if (time > said) said = time + ALIVE_SECONDS;
    }
}

/* Names the ranks that do not answer after the link failed, by exchanging one byte through the communicator. */
static mercer_status find_missing(mrc_comm *comm, const char *why)
{
    double deadline = comm->deadline;
    char flag = 1;
    mrc_piece *send = comm->pieces, *receive = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++)
        send[r] = (mrc_piece){&flag, 1}, receive[r] = (mrc_piece){&comm->link->answers[r], 1};
    comm->deadline = ANSWER_SECONDS;
    mercer_status status = mrc_comm_exchange(comm, send, receive);
    comm->deadline = deadline;
    if (status != MERCER_OK) return status;
    return mrc_fail(comm->context, MERCER_ERROR_COMM, "%s: %s, although every rank responds", comm->link->module->name,
                    why);
}

/* If this rank cannot start the exchange, the other ranks are notified by its exit message. In all other failures the
   link is aborted before the function returns. */
mercer_status mrc_link_exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive)
{
    mrc_comm_error failure = {.kind = MRC_COMM_ERROR_DONE};
    char why[WHY_CHARS];
    bool lost;
    comm->link->module->start(comm->link->state, send, receive, &failure);
    if (failure.kind != MRC_COMM_ERROR_DONE) return failed(comm, failure.text); /* only this rank failed */
    mercer_status status = wait_for_link(comm, &lost, why);
    if (status == MERCER_OK && !lost) return MERCER_OK;
    /* Abort the pending exchange: it must not outlive the memory of its pieces. */
    comm->link->module->close(comm->link->state, 0);
    comm->link->state = NULL;
    return lost ? find_missing(comm, why) : status;
}

/* ---- Joining -------------------------------------------------------------------------------------------------- */

/* Data that each rank sends to all others before the link is created. */
typedef struct candidate {
    char host[HOST_CHARS], place[MRC_LINK_PLACE]; /* name of the host, and identity of the GPU on this host */
    /* reason why this rank cannot use a link; "": the rank can use a link */
    char why_not[WHY_CHARS];
    int wish;
} candidate;

/* Fills in the data of this rank: its GPU, or the reason why the rank cannot use a link. */
static void introduce_link(mrc_comm *comm, int device, candidate *self)
{
    mrc_comm_error failure = {.kind = MRC_COMM_ERROR_DONE};
    const void *table;
    *self = (candidate){.wish = (int)comm->wish};
    if (gethostname(self->host, sizeof self->host - 1) != 0) snprintf(self->host, sizeof self->host, "?");
    if (comm->wish == MRC_LINK_NEVER) {
        snprintf(self->why_not, sizeof self->why_not, "exchange host is set");
    } else if (device < 0) {
        snprintf(self->why_not, sizeof self->why_not, "it does not use a GPU");
    } else if (mrc_module_load(comm->context, "nccl", MRC_LINK_SYMBOL, &table) != MERCER_OK) {
        snprintf(self->why_not, sizeof self->why_not, "%.*s", WHY_CHARS - 1, mrc_last_error(comm->context));
    } else {
        comm->link->module = table;
        comm->link->module->place(device, self->place, &failure);
        if (failure.kind != MRC_COMM_ERROR_DONE)
            snprintf(self->why_not, sizeof self->why_not, "%.*s", WHY_CHARS - 1, failure.text);
    }
}

/* Writes to text (2 WHY_CHARS) the reason why a link is impossible; "" if it is possible. Sets *insists to whether some
   rank requires a link. */
static void compare_candidates(const mrc_comm *comm, const candidate *all, char *text, int *insists)
{
    text[0] = 0;
    *insists = 0;
    for (int r = 0; r < comm->ranks; r++) {
        *insists = *insists || all[r].wish == MRC_LINK_ALWAYS;
        if (text[0]) continue;
        if (all[r].why_not[0]) snprintf(text, 2 * WHY_CHARS, "rank %d: %s", r, all[r].why_not);
        for (int other = 0; other < r && !text[0]; other++)
            if (strcmp(all[other].host, all[r].host) == 0 && strcmp(all[other].place, all[r].place) == 0)
                snprintf(text, 2 * WHY_CHARS, "ranks %d and %d share the GPU %s of %s", other, r, all[r].place,
                         all[r].host);
    }
}

/* Message of rank 0 to all ranks: the identity of the link, or a failure. */
typedef struct invitation {
    unsigned char id[MRC_LINK_ID];
    mrc_comm_error failure;
} invitation;

/* Joins the link: succeeds on all ranks or on none. */
static mercer_status join_link(mrc_comm *comm, int device)
{
    invitation all = {.failure = {.kind = MRC_COMM_ERROR_DONE}};
    mrc_link *link = comm->link;
    char why[WHY_CHARS];
    bool lost;
    if (comm->rank == 0) link->module->identify(all.id, &all.failure);
    MRC_TRY(mrc_comm_broadcast(comm, &all, sizeof all));
    if (all.failure.kind == MRC_COMM_ERROR_DONE)
        link->module->open(&link->state, all.id, comm->rank, comm->ranks, device, &all.failure);
    mercer_status status = all.failure.kind == MRC_COMM_ERROR_DONE ? MERCER_OK : failed(comm, all.failure.text);
    /* Exchange statuses first: otherwise ranks would wait for a rank that could not begin to join. */
    MRC_TRY(mrc_comm_together(comm, status, "joining the GPUs"));
    MRC_TRY(wait_for_link(comm, &lost, why));
    return mrc_comm_together(comm, lost ? failed(comm, why) : MERCER_OK, "joining the GPUs");
}

/* Creates the link if all ranks can use one. A failure is returned only if the communicator itself is affected;
   otherwise why_not has the reason. */
static mercer_status try_link(mrc_comm *comm, int device, char *why_not, int *insists)
{
    candidate own, *all;
    introduce_link(comm, device, &own);
    MRC_SCOPE(scope, comm->context);
    MRC_TRY(mrc_comm_records(comm, &scope, &own, sizeof own, &all));
    compare_candidates(comm, all, why_not, insists);
    if (why_not[0]) return MERCER_OK;
    mercer_status status = join_link(comm, device);
    if (status == MERCER_OK || comm->broken || mrc_comm_listen(comm, false) != MERCER_OK) return status;
    snprintf(why_not, 2 * WHY_CHARS, "%.*s", 2 * WHY_CHARS - 1, mrc_last_error(comm->context));
    return MERCER_OK;
}

/* The decision is made once, for all ranks together. Without a link, device memory is exchanged through the host; this
   is an error only if a rank requires a link. After an error the communicator counts as broken. */
mercer_status mrc_comm_link(mrc_comm *comm, int device)
{
    char why_not[2 * WHY_CHARS];
    int insists = 0;
    if (comm->ranks == 1 || comm->link_settled) return MERCER_OK;
    MRC_TRY(mrc_alloc_zero(comm->context, &comm->link, 1, sizeof *comm->link, "the link between GPUs"));
    comm->link_settled = true;
    mercer_status status = mrc_alloc_zero(comm->context, &comm->link->answers, comm->ranks, 1, "the link between GPUs");
    if (status == MERCER_OK) status = try_link(comm, device, why_not, &insists);
    if (status == MERCER_OK && why_not[0]) {
        mrc_comm_unlink(comm);
        mrc_log(comm->context, MERCER_LOG_INFO, "GPU memory is exchanged through the host: %s", why_not);
        if (insists)
            status = mrc_fail(comm->context, MERCER_ERROR_UNSUPPORTED,
                              "no direct exchange between GPUs: %s; use "
                              "exchange host",
                              why_not);
    }
    if (status == MERCER_OK) return MERCER_OK;
    comm->broken = true;
    mrc_comm_unlink(comm);
    return status;
}

/* Closes the link in order unless an exchange has failed; does nothing without a link. */
void mrc_comm_unlink(mrc_comm *comm)
{
    if (!comm->link) return;
    if (comm->link->state) comm->link->module->close(comm->link->state, !comm->broken);
    mrc_free(comm->context, comm->link->answers);
    mrc_free(comm->context, comm->link);
    comm->link = NULL;
}

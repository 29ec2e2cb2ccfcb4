/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module mercer_mpi.so: exchanges by non-blocking sends and receives of MPI, polled against a deadline.
 *
 * Waiting polls without pause at first and then sleeps between polls, because ranks may share processors. There are
 * three kinds of messages: DATA; ALIVE, which a rank that has waited for half the deadline sends to all others, so that
 * they do not count it as dead; and LEFT, the exit message of a rank. Only functions of MPI-2 are used.
 */
#define _GNU_SOURCE

#include "comm/module.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* CHUNK: largest message in bytes, because MPI counts them in an int */
enum { TAG_DATA = 17, TAG_ALIVE = 18, TAG_LEFT = 19, CHUNK = 1 << 30 };
/* polls before the first sleep; polls between checks of the time and of messages ALIVE and LEFT */
enum { SPINS = 200, LOOK_EVERY = 64 };

#define GRACE_SECONDS    0.05  /* seconds to wait for data that a rank has sent before it left */
#define SHORT_SLEEP_NANO 5000  /* pause between polls SPINS .. 2 SPINS - 1 */
#define SLEEP_NANO       50000 /* pause between later polls */

typedef struct notice {
    int32_t code;
    char text[MRC_MODULE_TEXT];
} notice;

/* The arrays requests, statuses, done and peers have the same capacity and are reused by all exchanges. */
typedef struct mpi_state {
    MPI_Comm comm;
    int rank, ranks;
    int owns_mpi; /* 1: this module initialized MPI and finalizes it */
    MPI_Request *requests;
    MPI_Status *statuses;
    int *done;
    int *peers; /* per request: rank of the sender, or -1 - rank of the receiver for a send */
    int capacity;
    double *alive;        /* (ranks) time of the last ALIVE from each rank, in seconds */
    MPI_Request *telling; /* (ranks) pending request of the last ALIVE to each rank */
    /* rank that left: rank 0 if rank 0 has left, else the first rank that left; -1: none. The next two fields are the
       exit message of that rank, and the time in seconds when the first exit message arrived */
    int left;
    notice received;
    double notice_at;
    notice exit_message;
} mpi_state;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reports an error code of MPI. */
static void fail_mpi(mrc_comm_error *failure, int code)
{
    int length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_string(code, text, &length);
    failure->kind = MRC_COMM_ERROR_FAILED;
    snprintf(failure->text, sizeof failure->text, "%.*s", (int)sizeof failure->text - 1, text);
}

/* ---- Joining and closing -------------------------------------------------------------------------------------- */

/* If not all ranks close together (orderly is 0), MPI is not finalized: MPI_Finalize would wait for ranks that may have
   ended. */
static void close_module(void *state, int orderly)
{
    mpi_state *self = state;
    if (self->owns_mpi && orderly) MPI_Finalize();
    free(self->requests);
    free(self->statuses);
    free(self->done);
    free(self->peers);
    free(self->alive);
    free(self->telling);
    free(self);
}

/* Initializes MPI unless the program has done so, and creates a separate communicator for the module's messages. */
static int start_mpi(mpi_state *self)
{
    int initialized = 0, provided = 0, code;
    MPI_Initialized(&initialized);
    if (!initialized) {
        /* If ranks share processors, Open MPI yields the processor at every poll, and on a busy machine gets it back
           late. Turn yielding off, because this module sleeps between polls itself. */
        setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
        code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
        if (code != MPI_SUCCESS) return code;
        self->owns_mpi = 1;
    }
    self->left = -1;
    self->comm = MPI_COMM_WORLD;
    if (!self->owns_mpi && (code = MPI_Comm_dup(MPI_COMM_WORLD, &self->comm)) != MPI_SUCCESS) return code;
    MPI_Comm_set_errhandler(self->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(self->comm, &self->rank);
    MPI_Comm_size(self->comm, &self->ranks);
    return MPI_SUCCESS;
}

/* On failure everything is released and *state stays NULL. */
static void open_module(void **state, int *rank, int *ranks, mrc_comm_error *failure)
{
    *state = NULL;
    mpi_state *self = calloc(1, sizeof *self);
    int code = self ? start_mpi(self) : MPI_ERR_NO_MEM;
    if (self && code == MPI_SUCCESS) {
        self->alive = calloc((size_t)self->ranks, sizeof *self->alive);
        self->telling = malloc((size_t)self->ranks * sizeof *self->telling);
    }
    if (!self || code != MPI_SUCCESS || !self->alive || !self->telling) {
        fail_mpi(failure, code != MPI_SUCCESS ? code : MPI_ERR_NO_MEM);
        if (self) close_module(self, 0);
        return;
    }
    for (int r = 0; r < self->ranks; r++) self->telling[r] = MPI_REQUEST_NULL;
    *rank = self->rank;
    *ranks = self->ranks;
    *state = self;
}

/* ---- Notices -------------------------------------------------------------------------------------------------- */

/* Receives pending ALIVE and LEFT messages, without waiting. */
static void hear(mpi_state *self)
{
    int arrived = 0;
    MPI_Status status;
    while (MPI_Iprobe(MPI_ANY_SOURCE, TAG_ALIVE, self->comm, &arrived, &status) == MPI_SUCCESS && arrived) {
        MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, TAG_ALIVE, self->comm, MPI_STATUS_IGNORE);
        self->alive[status.MPI_SOURCE] = now();
    }
    while (MPI_Iprobe(MPI_ANY_SOURCE, TAG_LEFT, self->comm, &arrived, &status) == MPI_SUCCESS && arrived) {
        notice message = {0};
        MPI_Recv(&message, (int)sizeof message, MPI_BYTE, status.MPI_SOURCE, TAG_LEFT, self->comm, MPI_STATUS_IGNORE);
        if (self->left >= 0 && status.MPI_SOURCE != 0) continue; /* rank 0's message takes precedence */
        if (self->left < 0) self->notice_at = now();
        self->left = status.MPI_SOURCE;
        self->received = message;
        self->received.text[sizeof message.text - 1] = 0;
    }
}

/* Reports the stored exit message. */
static void tell_left(const mpi_state *self, mrc_comm_error *failure)
{
    failure->kind = MRC_COMM_ERROR_LEFT;
    failure->rank = self->left;
    failure->code = self->received.code;
    memcpy(failure->text, self->received.text, sizeof failure->text);
}

/* Sends ALIVE to all other ranks. */
static void tell_alive(mpi_state *self)
{
    for (int r = 0; r < self->ranks; r++) {
        int sent = 1;
        if (r == self->rank) continue;
        MPI_Test(&self->telling[r], &sent, MPI_STATUS_IGNORE);
        /* Do not send ALIVE again to a rank that has not received the previous ALIVE. */
        if (sent) MPI_Isend(NULL, 0, MPI_BYTE, r, TAG_ALIVE, self->comm, &self->telling[r]);
    }
}

/* ---- Exchange ------------------------------------------------------------------------------------------------- */

static int chunks_of(const mrc_piece *piece)
{
    return (int)((piece->bytes + CHUNK - 1) / CHUNK);
}

/* Grows the arrays of requests. Returns 0 on success. */
static int reserve_requests(mpi_state *self, int needed)
{
    if (needed <= self->capacity) return 0;
    free(self->requests), free(self->statuses), free(self->done), free(self->peers);
    size_t count = needed > 0 ? (size_t)needed : 1;
    self->requests = malloc(count * sizeof *self->requests);
    self->statuses = malloc(count * sizeof *self->statuses);
    self->done = malloc(count * sizeof *self->done);
    self->peers = malloc(count * sizeof *self->peers);
    self->capacity = self->requests && self->statuses && self->done && self->peers ? needed : 0;
    return self->capacity ? 0 : -1;
}

/* Starts to send or receive a piece, in messages of up to CHUNK bytes. */
static int post(mpi_state *self, const mrc_piece *piece, int rank, int sending, int *count)
{
    for (int64_t at = 0; at < piece->bytes; at += CHUNK) {
        int some = (int)(piece->bytes - at < CHUNK ? piece->bytes - at : CHUNK);
        char *data = (char *)piece->data + at;
        MPI_Request *request = &self->requests[*count];
        int code = sending ? MPI_Isend(data, some, MPI_BYTE, rank, TAG_DATA, self->comm, request)
                           : MPI_Irecv(data, some, MPI_BYTE, rank, TAG_DATA, self->comm, request);
        if (code != MPI_SUCCESS) return code;
        self->peers[(*count)++] = sending ? -1 - rank : rank;
    }
    return MPI_SUCCESS;
}

/* Marks ranks with pending requests as missing: the ranks that have not sent ALIVE since time `since`, or all if each
   of them has. */
static void name_missing(mpi_state *self, int count, double since, mrc_comm_error *failure)
{
    int named = 0;
    failure->kind = MRC_COMM_ERROR_SILENT;
    for (int pass = 0; pass < 2 && !named; pass++)
        for (int i = 0; i < count; i++) {
            int peer = self->peers[i] < 0 ? -1 - self->peers[i] : self->peers[i];
            if (self->requests[i] == MPI_REQUEST_NULL || (pass == 0 && self->alive[peer] > since)) continue;
            failure->missing[peer] = 1;
            named = 1;
        }
}

/* Sleeps before poll number `turn`, except before the first SPINS polls. */
static void rest(int64_t turn)
{
    struct timespec pause = {0, turn < 2 * SPINS ? SHORT_SLEEP_NANO : SLEEP_NANO};
    if (turn >= SPINS) nanosleep(&pause, NULL);
}

/* Polls `count` requests until all are done or nothing has arrived for `deadline` seconds. */
static void wait_all(mpi_state *self, int count, double deadline, mrc_comm_error *failure)
{
    double begin = now(), news = begin, time = begin;
    int left = count, warned = 0;
    for (int64_t turn = 0; left > 0; turn++) {
        int some = 0;
        int code = MPI_Testsome(count, self->requests, &some, self->done, self->statuses);
        if (code != MPI_SUCCESS) {
            hear(self);
            if (self->left >= 0)
                tell_left(self, failure);
            else
                fail_mpi(failure, code);
            return;
        }
        if (some == MPI_UNDEFINED) return;
        left -= some;
        if (some > 0) news = time;
        if (some > 0 || turn % LOOK_EVERY != 0) {
            rest(turn);
            if (turn < SPINS) continue;
        }
        time = now();
        hear(self);
        /* Wait for GRACE_SECONDS, because data that the rank has sent before it left may still arrive. */
        if (left > 0 && self->left >= 0 && time - self->notice_at > GRACE_SECONDS) {
            tell_left(self, failure);
            return;
        }
        if (!warned && time - news > deadline / 2) {
            tell_alive(self);
            warned = 1;
        }
        if (left > 0 && time - news > deadline) {
            name_missing(self, count, begin, failure);
            return;
        }
    }
}

/* Receives are posted before sends, so that data from other ranks has a destination when it arrives. After a failure,
   requests may still use the memory of the pieces; only leave may follow. */
static void exchange_mpi(void *state, const mrc_piece *send, const mrc_piece *receive, double deadline,
                         mrc_comm_error *failure)
{
    mpi_state *self = state;
    int needed = 0, count = 0, code = MPI_SUCCESS;
    failure->kind = MRC_COMM_ERROR_DONE;
    for (int r = 0; r < self->ranks; r++)
        if (r != self->rank) needed += chunks_of(&send[r]) + chunks_of(&receive[r]);
    if (reserve_requests(self, needed) != 0) {
        fail_mpi(failure, MPI_ERR_NO_MEM);
        return;
    }
    /* Each rank begins with its neighbor, so that no rank gets all messages at once. */
    for (int step = 1; step < self->ranks && code == MPI_SUCCESS; step++)
        code = post(self, &receive[(self->rank + self->ranks - step) % self->ranks],
                    (self->rank + self->ranks - step) % self->ranks, 0, &count);
    for (int step = 1; step < self->ranks && code == MPI_SUCCESS; step++)
        code = post(self, &send[(self->rank + step) % self->ranks], (self->rank + step) % self->ranks, 1, &count);
    if (code != MPI_SUCCESS)
        fail_mpi(failure, code);
    else
        wait_all(self, count, deadline, failure);
}

static void listen_to(void *state, int alive, mrc_comm_error *failure)
{
    mpi_state *self = state;
    failure->kind = MRC_COMM_ERROR_DONE;
    hear(self);
    if (self->left >= 0) tell_left(self, failure);
    if (alive) tell_alive(self);
}

/* ---- Leaving -------------------------------------------------------------------------------------------------- */

/* The message is a field of the state, because sends may be pending when this function returns. Rank 0 waits only for
   delivery. Other ranks wait for rank 0's exit message, or until `patience` seconds have passed. */
static void leave_mpi(void *state, int code, const char *text, double patience, mrc_comm_error *failure)
{
    mpi_state *self = state;
    int count = 0;
    double end = now() + patience;
    failure->kind = MRC_COMM_ERROR_DONE;
    self->exit_message.code = (int32_t)code;
    snprintf(self->exit_message.text, sizeof self->exit_message.text, "%s", text);
    if (reserve_requests(self, self->ranks) != 0) return;
    for (int r = 0; r < self->ranks; r++)
        if (r != self->rank && MPI_Isend(&self->exit_message, (int)sizeof self->exit_message, MPI_BYTE, r, TAG_LEFT,
                                         self->comm, &self->requests[count]) == MPI_SUCCESS)
            count++;
    for (int all = 0; now() < end;) {
        struct timespec pause = {0, 20 * SLEEP_NANO};
        if (!all && MPI_Testall(count, self->requests, &all, self->statuses) != MPI_SUCCESS) return;
        hear(self);
        if (self->left == 0) {
            tell_left(self, failure);
            return;
        }
        if (all && self->rank == 0) return; /* rank 0 is done; other ranks also wait for an exit message of rank 0 */
        nanosleep(&pause, NULL);
    }
}

/* ---- The table ------------------------------------------------------------------------------------------------ */

__attribute__((visibility("default"))) const void *mercer_comm_module(void);

const void *mercer_comm_module(void)
{
    static const mrc_module module = {.version = MRC_MODULE_VERSION,
                                      .name = "MPI",
                                      .open = open_module,
                                      .exchange = exchange_mpi,
                                      .listen = listen_to,
                                      .leave = leave_mpi,
                                      .close = close_module};
    return &module;
}

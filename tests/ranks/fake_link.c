/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link (comm/module.h) for machines without GPUs: "device" memory is host memory, sent by MPI. It serves to test the
 * logic around links on any number of ranks. MERCER_FAKE_LINK injects faults: "same" (all ranks report the same GPU),
 * "open N" (rank N cannot begin to join), "join N" (rank N fails later while joining), "start N" (the sixth exchange of
 * rank N fails), "stop N" (rank N stops at that exchange).
 */
#define _GNU_SOURCE

#include "comm/module.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 99, MOST_RANKS = 64, EXCHANGE_THAT_FAILS = 6 };

typedef struct fake {
    int rank, ranks, exchanges, joined, count;
    MPI_Request requests[2 * MOST_RANKS];
} fake;

static int told(const char *what, int rank)
{
    char wanted[32];
    const char *text = getenv("MERCER_FAKE_LINK");
    snprintf(wanted, sizeof wanted, "%s %d", what, rank);
    return text && strcmp(text, wanted) == 0;
}

static void fail(mrc_comm_error *failure, const char *text)
{
    failure->kind = MRC_COMM_ERROR_FAILED;
    snprintf(failure->text, sizeof failure->text, "%s", text);
}

static void place(int device, char text[MRC_LINK_PLACE], mrc_comm_error *failure)
{
    int rank = 0;
    (void)failure;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *wish = getenv("MERCER_FAKE_LINK");
    snprintf(text, MRC_LINK_PLACE, "gpu %d", wish && strcmp(wish, "same") == 0 ? device : 10 + rank);
}

static void identify(unsigned char id[MRC_LINK_ID], mrc_comm_error *failure)
{
    (void)failure;
    memset(id, 42, MRC_LINK_ID);
}

static void open_link(void **state, const unsigned char id[MRC_LINK_ID], int rank, int ranks, int device,
                      mrc_comm_error *failure)
{
    (void)device;
    *state = NULL;
    if (id[0] != 42 || id[MRC_LINK_ID - 1] != 42 || ranks > MOST_RANKS) fail(failure, "another identity");
    if (told("open", rank)) fail(failure, "no GPU wants to");
    if (failure->kind != MRC_COMM_ERROR_DONE) return;
    fake *self = calloc(1, sizeof *self);
    *self = (fake){.rank = rank, .ranks = ranks};
    *state = self;
}

static void start(void *state, const mrc_piece *send, const mrc_piece *receive, mrc_comm_error *failure)
{
    fake *self = state;
    self->count = 0;
    self->exchanges++;
    if (self->exchanges == EXCHANGE_THAT_FAILS && told("start", self->rank)) fail(failure, "the GPU fell off the bus");
    if (self->exchanges == EXCHANGE_THAT_FAILS && told("stop", self->rank)) sleep(1000);
    if (failure->kind != MRC_COMM_ERROR_DONE) return;
    for (int r = 0; r < self->ranks; r++) {
        if (r == self->rank) continue;
        if (receive[r].bytes)
            MPI_Irecv(receive[r].data, (int)receive[r].bytes, MPI_BYTE, r, TAG, MPI_COMM_WORLD,
                      &self->requests[self->count++]);
        if (send[r].bytes)
            MPI_Isend(send[r].data, (int)send[r].bytes, MPI_BYTE, r, TAG, MPI_COMM_WORLD,
                      &self->requests[self->count++]);
    }
}

static int poll_link(void *state, mrc_comm_error *failure)
{
    fake *self = state;
    int done = 0;
    if (!self->joined && told("join", self->rank)) fail(failure, "fake: no route");
    if (failure->kind != MRC_COMM_ERROR_DONE) return 0;
    self->joined = 1;
    MPI_Testall(self->count, self->requests, &done, MPI_STATUSES_IGNORE);
    return done;
}

static void close_link(void *state, int orderly)
{
    (void)orderly;
    free(state);
}

__attribute__((visibility("default"))) const void *mercer_link_module(void);

const void *mercer_link_module(void)
{
    static const mrc_link_module module = {.version = MRC_MODULE_VERSION,
                                           .name = "fake",
                                           .place = place,
                                           .identify = identify,
                                           .open = open_link,
                                           .start = start,
                                           .poll = poll_link,
                                           .close = close_link};
    return &module;
}

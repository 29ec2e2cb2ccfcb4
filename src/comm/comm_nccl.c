/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module mercer_nccl.so: a link between GPUs by NCCL, one rank per GPU.
 *
 * All calls are non-blocking: NCCL, and the CUDA stream of its sends and receives, are polled until they are done. The
 * caller enforces the deadline. A failed link is aborted, which ends kernels that wait for a dead rank.
 */
#define _GNU_SOURCE

#include "comm/module.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLOSE_TURNS = 20000, CLOSE_NANO = 100000 }; /* 20,000 polls, 0.1 ms apart: waits up to 2 s */

typedef struct nccl_state {
    ncclComm_t comm;
    cudaStream_t stream;
    int rank, ranks, device;
} nccl_state;

/* ---- Failures ------------------------------------------------------------------------------------------------- */

/* Reports a failure of CUDA. Returns 1 after a failure, else 0. Also clears CUDA's last error, which later calls would
   return otherwise. */
static int bad_cuda(cudaError_t error, const char *what, mrc_comm_error *failure)
{
    if (error == cudaSuccess) return 0;
    cudaGetLastError();
    failure->kind = MRC_COMM_ERROR_FAILED;
    snprintf(failure->text, sizeof failure->text, "%s: %s", what, cudaGetErrorString(error));
    return 1;
}

/* Reports a failure of NCCL. Returns 1 after a failure, else 0. "In progress" is not a failure. */
static int bad_nccl(ncclResult_t result, const char *what, ncclComm_t comm, mrc_comm_error *failure)
{
    if (result == ncclSuccess || result == ncclInProgress) return 0;
    const char *more = comm ? ncclGetLastError(comm) : "";
    failure->kind = MRC_COMM_ERROR_FAILED;
    snprintf(failure->text, sizeof failure->text, "%s: %s%s%s", what, ncclGetErrorString(result),
             more && more[0] ? ": " : "", more ? more : "");
    return 1;
}

/* ---- Joining and closing -------------------------------------------------------------------------------------- */

/* Identifies a GPU by its PCI bus id. */
static void place(int device, char text[MRC_LINK_PLACE], mrc_comm_error *failure)
{
    /* NCCL distinguishes machines by NCCL_HOSTID if that is set, so its value is part of the identity. */
    const char *machine = getenv("NCCL_HOSTID");
    if (bad_cuda(cudaDeviceGetPCIBusId(text, MRC_LINK_PLACE, device), "finding the GPU", failure)) return;
    size_t used = strlen(text);
    if (machine) snprintf(text + used, MRC_LINK_PLACE - used, " of %s", machine);
}

/* Creates the id of a link. Rank 0 sends the id to all others, which need it to join. */
static void identify(unsigned char id[MRC_LINK_ID], mrc_comm_error *failure)
{
    ncclUniqueId unique;
    _Static_assert(sizeof unique <= MRC_LINK_ID, "an NCCL id fits");
    if (bad_nccl(ncclGetUniqueId(&unique), "creating an id", NULL, failure)) return;
    memcpy(id, &unique, sizeof unique);
}

/* Finalizes the communicator if all ranks close it, and aborts it otherwise. */
static void close_link(void *state, int orderly)
{
    nccl_state *self = state;
    cudaSetDevice(self->device);
    ncclResult_t how = ncclSuccess;
    if (self->comm && orderly && ncclCommFinalize(self->comm) != ncclInvalidUsage) {
        struct timespec pause = {0, CLOSE_NANO};
        for (int turn = 0; turn < CLOSE_TURNS; turn++) {
            if (ncclCommGetAsyncError(self->comm, &how) != ncclSuccess || how != ncclInProgress) break;
            nanosleep(&pause, NULL);
        }
    }
    if (self->comm && (!orderly || how != ncclSuccess))
        ncclCommAbort(self->comm);
    else if (self->comm)
        ncclCommDestroy(self->comm);
    if (self->stream) cudaStreamDestroy(self->stream);
    free(self);
}

/* Begins to join by non-blocking calls, so a rank that never arrives cannot block this rank. poll_link reports when
   joining is done. */
static void open_link(void **state, const unsigned char id[MRC_LINK_ID], int rank, int ranks, int device,
                      mrc_comm_error *failure)
{
    ncclUniqueId unique;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    nccl_state *self = calloc(1, sizeof *self);
    *state = NULL;
    if (!self) {
        bad_cuda(cudaErrorMemoryAllocation, "joining", failure);
        return;
    }
    *self = (nccl_state){.rank = rank, .ranks = ranks, .device = device};
    memcpy(&unique, id, sizeof unique);
    config.blocking = 0;
    if (bad_cuda(cudaSetDevice(device), "choosing the GPU", failure) ||
        bad_cuda(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking), "creating a stream", failure) ||
        bad_nccl(ncclCommInitRankConfig(&self->comm, ranks, unique, rank, &config), "joining", NULL, failure)) {
        close_link(self, 0);
        return;
    }
    *state = self;
}

/* ---- Exchange ------------------------------------------------------------------------------------------------- */

/* Queues all sends and receives as one group; otherwise pairs of ranks could wait for each other. */
static void start_nccl(void *state, const mrc_piece *send, const mrc_piece *receive, mrc_comm_error *failure)
{
    nccl_state *self = state;
    int bad = bad_cuda(cudaSetDevice(self->device), "choosing the GPU", failure) ||
              bad_nccl(ncclGroupStart(), "sending", self->comm, failure);
    if (bad) return;
    for (int step = 0; step < self->ranks && !bad; step++) {
        /* Each rank begins with itself, then its neighbors, so that no rank gets all messages at once. */
        int to = (self->rank + step) % self->ranks, from = (self->rank + self->ranks - step) % self->ranks;
        int own = to == self->rank && send[to].data == receive[to].data;
        if (send[to].bytes > 0 && !own)
            bad = bad_nccl(ncclSend(send[to].data, (size_t)send[to].bytes, ncclUint8, to, self->comm, self->stream),
                           "sending", self->comm, failure);
        if (receive[from].bytes > 0 && !own && !bad)
            bad = bad_nccl(
                ncclRecv(receive[from].data, (size_t)receive[from].bytes, ncclUint8, from, self->comm, self->stream),
                "receiving", self->comm, failure);
    }
    ncclResult_t end = ncclGroupEnd();
    if (!bad) bad_nccl(end, "sending", self->comm, failure);
}

/* Returns 1 when NCCL has finished its calls and the stream has done the transfers; 0 while calls or transfers are
   pending, and after a failure. */
static int poll_link(void *state, mrc_comm_error *failure)
{
    nccl_state *self = state;
    ncclResult_t how = ncclSuccess;
    ncclResult_t asked = ncclCommGetAsyncError(self->comm, &how);
    if (bad_nccl(asked, "polling", self->comm, failure) ||
        bad_nccl(how, "connecting to the other GPUs", self->comm, failure))
        return 0;
    if (how == ncclInProgress) return 0;
    cudaError_t stream = cudaStreamQuery(self->stream);
    if (stream == cudaErrorNotReady) return 0;
    return !bad_cuda(stream, "exchanging data", failure);
}

/* ---- The table ------------------------------------------------------------------------------------------------ */

__attribute__((visibility("default"))) const void *mercer_link_module(void);

const void *mercer_link_module(void)
{
    static const mrc_link_module module = {.version = MRC_MODULE_VERSION,
                                           .name = "NCCL",
                                           .place = place,
                                           .identify = identify,
                                           .open = open_link,
                                           .start = start_nccl,
                                           .poll = poll_link,
                                           .close = close_link};
    return &module;
}

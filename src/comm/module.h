/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of a communicator module. A module is a shared object that is loaded only when ranks are requested, so the
 * library itself does not depend on a message-passing library. A module includes no other header of Mercer, makes its
 * own small allocations, prints nothing and never exits the process.
 *
 * The only data transfer is an exchange: every rank sends a piece to every other rank and receives a piece from it.
 * comm/collective.c builds sums, broadcasts and other collectives from exchanges, in an order that does not depend on
 * the module.
 */
#ifndef MRC_COMM_MODULE_H
#define MRC_COMM_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define MRC_MODULE_VERSION 2
#define MRC_MODULE_SYMBOL  "mercer_comm_module" /* a mrc_module_function that returns the table */
#define MRC_LINK_SYMBOL    "mercer_link_module" /* a mrc_module_function that returns the table of a link (below) */

enum { MRC_MODULE_TEXT = 400, MRC_LINK_ID = 128, MRC_LINK_PLACE = 64 };

typedef struct mrc_piece {
    void *data;
    int64_t bytes; /* 0: nothing to transfer */
} mrc_piece;

typedef enum mrc_comm_error_kind {
    MRC_COMM_ERROR_DONE = 0,
    MRC_COMM_ERROR_SILENT, /* the deadline passed: `missing` marks the ranks that did not answer */
    MRC_COMM_ERROR_LEFT,   /* rank `rank` has left with `code` and the message `text` */
    MRC_COMM_ERROR_FAILED  /* the message-passing library failed: `text` */
} mrc_comm_error_kind;

typedef struct mrc_comm_error {
    mrc_comm_error_kind kind;
    int rank, code;
    unsigned char *missing; /* (ranks) owned by the caller; 1: nothing came from this rank */
    char text[MRC_MODULE_TEXT];
} mrc_comm_error;

typedef struct mrc_module {
    int version; /* MRC_MODULE_VERSION */
    const char *name;
    /* Joins the job. On failure *state is NULL and failure->text is the reason. */
    void (*open)(void **state, int *rank, int *ranks, mrc_comm_error *failure);
    /* Sends send[r] to rank r and receives receive[r] from rank r, for all r except this rank. The sizes of both sides
       agree. Returns when all transfers are done, or when nothing has arrived for `deadline` seconds. */
    void (*exchange)(void *state, const mrc_piece *send, const mrc_piece *receive, double deadline,
                     mrc_comm_error *failure);
    /* Called while waiting for something other than an exchange: reports a rank that has left (MRC_COMM_ERROR_LEFT).
       alive: also notifies the other ranks that this rank is waiting. */
    void (*listen)(void *state, int alive, mrc_comm_error *failure);
    /* Sends an exit message to all ranks and waits up to `patience` seconds for its delivery. failure->kind is
       MRC_COMM_ERROR_LEFT if rank 0 has left as well. Only close may follow. */
    void (*leave)(void *state, int code, const char *text, double patience, mrc_comm_error *failure);
    /* Frees the state. orderly: all ranks close after their last exchange; otherwise close does not wait for other
       ranks. */
    void (*close)(void *state, int orderly);
} mrc_module;

/*
 * A link exchanges device memory from one GPU to another, for ranks that are already connected by a communicator. The
 * communicator waits, enforces the deadline and detects missing ranks; a link does none of that. Each rank has one GPU.
 */
typedef struct mrc_link_module {
    int version; /* MRC_MODULE_VERSION */
    const char *name;
    /* Writes a string that identifies a GPU of this machine. This and the other functions report errors in
       `failure`. */
    void (*place)(int device, char place[MRC_LINK_PLACE], mrc_comm_error *failure);
    /* Creates the identity of a link. One rank calls this function and sends the identity to all ranks. */
    void (*identify)(unsigned char id[MRC_LINK_ID], mrc_comm_error *failure);
    /* Begins to join the link; poll reports when that is done. */
    void (*open)(void **state, const unsigned char id[MRC_LINK_ID], int rank, int ranks, int device,
                 mrc_comm_error *failure);
    /* Begins an exchange (see mrc_module) of device memory that no kernel is using. */
    void (*start)(void *state, const mrc_piece *send, const mrc_piece *receive, mrc_comm_error *failure);
    int (*poll)(void *state, mrc_comm_error *failure); /* 1: the pending operation is done */
    /* Frees the state. orderly: all ranks close; otherwise a pending exchange is aborted. */
    void (*close)(void *state, int orderly);
} mrc_link_module;

/* Type of the function that a module exports. It returns the module's table, which begins with the version. */
typedef const void *(*mrc_module_function)(void);

#endif

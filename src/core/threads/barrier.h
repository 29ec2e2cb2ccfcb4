/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A barrier for threads of one process: no party continues before all have arrived. A party that will not arrive again
 * leaves with a message, and a party that waits too long times out. Either event closes the barrier for all parties.
 *
 * Memory that a party wrote before it arrived is visible to all others when they continue.
 */
#ifndef MRC_CORE_THREADS_BARRIER_H
#define MRC_CORE_THREADS_BARRIER_H

#include <stdbool.h>

enum { MRC_BARRIER_TEXT = 400 };

/* A barrier belongs to no context: the last party to release the barrier frees it, on any thread. */
typedef struct mrc_barrier mrc_barrier;

typedef enum mrc_barrier_result {
    MRC_BARRIER_PASSED = 0, /* all parties arrived */
    MRC_BARRIER_TIMEOUT,    /* no party arrived within `patience` seconds: `missing` marks the absent parties */
    MRC_BARRIER_LEFT,       /* a party has left; `message` has the reason */
    MRC_BARRIER_CLOSED      /* the barrier had timed out before this party arrived */
} mrc_barrier_result;

typedef struct mrc_exit_message {
    int party, code;
    char text[MRC_BARRIER_TEXT];
} mrc_exit_message;

/* Creates a barrier for a number of parties; NULL if memory is short. */
mrc_barrier *mrc_barrier_create(int parties);
/* Arrives and waits for all other parties, or until `patience` seconds have passed since the last arrival (0: no
   limit). MRC_BARRIER_TIMEOUT sets missing (parties) to 0 or 1; MRC_BARRIER_LEFT sets message. */
mrc_barrier_result mrc_barrier_wait(mrc_barrier *barrier, int party, double patience, unsigned char *missing,
                                    mrc_exit_message *message);
/* Declares that this party will not arrive again. Parties that wait now or later get the message of the first party to
   leave. */
void mrc_barrier_leave(mrc_barrier *barrier, const mrc_exit_message *message);
/* Returns whether a party has left; if so, sets *message to its message. Does not wait. */
bool mrc_barrier_has_left(mrc_barrier *barrier, mrc_exit_message *message);
/* Ends a party's use of the barrier. Must be called once per party; the last call frees the barrier. */
void mrc_barrier_release(mrc_barrier *barrier);

#endif

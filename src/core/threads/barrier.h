/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where threads of one process wait for each other: nobody goes on before all have come. One that will not come any
 * more says so; one that waits too long gives up. Either ends the barrier for all of them.
 *
 * What a party wrote before it came is seen by all others when they go on.
 */
#ifndef MRC_CORE_THREADS_BARRIER_H
#define MRC_CORE_THREADS_BARRIER_H

#include <stdbool.h>

enum { MRC_MEETING_TEXT = 400 };

/* It belongs to no context: the last party to leave it releases it, on whatever thread that is. */
typedef struct mrc_barrier mrc_barrier;

typedef enum mrc_met {
    MRC_MET = 0,    /* all are here */
    MRC_MET_SILENT, /* nobody came for too long: `missing` says who did not */
    MRC_MET_LEFT,   /* a party has left, with these last words */
    MRC_MET_LATE    /* the others have given this party up */
} mrc_met;

typedef struct mrc_farewell {
    int party, code;
    char text[MRC_MEETING_TEXT];
} mrc_farewell;

/* NULL: no memory. */
mrc_barrier *mrc_barrier_create(int parties);
/* Comes and waits until all have, or for `patience` seconds after somebody last came (0: for ever). missing (parties)
   and words are filled in where the answer says so. */
mrc_met mrc_barrier_wait(mrc_barrier *barrier, int party, double patience, unsigned char *missing, mrc_farewell *words);
/* This party comes no more: those who wait, and those who come later, are told. The first one's words count. */
void mrc_barrier_leave(mrc_barrier *barrier, const mrc_farewell *words);
/* Whether somebody has, with which words; does not wait. */
bool mrc_barrier_has_left(mrc_barrier *barrier, mrc_farewell *words);
/* Once for each party; the last one frees it. */
void mrc_barrier_release(mrc_barrier *barrier);

#endif

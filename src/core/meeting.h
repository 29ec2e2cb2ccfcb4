/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where threads of one process wait for each other: nobody goes on before all have come. One that will not come any
 * more says so; one that waits too long gives up. Either ends the meeting for all of them.
 *
 * What a party wrote before it came is seen by all others when they go on.
 */
#ifndef MRC_CORE_MEETING_H
#define MRC_CORE_MEETING_H

#include <stdbool.h>

enum { MRC_MEETING_TEXT = 400 };

/* It belongs to no context: the last party to leave it releases it, on whatever thread that is. */
typedef struct mrc_meeting mrc_meeting;

typedef enum mrc_met {
    MRC_MET = 0,    /* all are here */
    MRC_MET_SILENT, /* nobody came for too long: `missing` says who did not */
    MRC_MET_LEFT,   /* a party has left, with these last words */
    MRC_MET_LATE    /* the others have given this party up */
} mrc_met;

typedef struct mrc_last_words {
    int party, code;
    char text[MRC_MEETING_TEXT];
} mrc_last_words;

/* NULL: no memory. */
mrc_meeting *mrc_meeting_create(int parties);
/* Comes and waits until all have, or for `patience` seconds after somebody last came (0: for ever). missing (parties)
   and words are filled in where the answer says so. */
mrc_met mrc_meeting_wait(mrc_meeting *meeting, int party, double patience, unsigned char *missing,
                         mrc_last_words *words);
/* This party comes no more: those who wait, and those who come later, are told. The first one's words count. */
void mrc_meeting_leave(mrc_meeting *meeting, const mrc_last_words *words);
/* Whether somebody has, with which words; does not wait. */
bool mrc_meeting_has_left(mrc_meeting *meeting, mrc_last_words *words);
/* Once for each party; the last one frees it. */
void mrc_meeting_release(mrc_meeting *meeting);

#endif

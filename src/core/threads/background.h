/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that does numbered pieces of work before they are needed.
 *
 * The owner permits pieces 0, 1, ..., n - 1 and waits for those it needs, in order; the thread does the permitted ones
 * one after the other. With a ring of R buffers, where piece i fills buffer i mod R, the owner permits piece i + R when
 * it is done with buffer i mod R: then the two never use a buffer at the same time.
 */
#ifndef MRC_CORE_THREADS_BACKGROUND_H
#define MRC_CORE_THREADS_BACKGROUND_H

#include "core/context.h"

typedef struct mrc_background mrc_background;

/* Runs on the thread: no allocation, no use of a context. What it writes is seen by the owner after
   mrc_background_wait. */
typedef void (*mrc_background_work)(void *argument, int64_t piece);

/* MERCER_ERROR_UNSUPPORTED if no thread can be started. Nothing runs until something is permitted. */
mercer_status mrc_background_start(mrc_background **out, mercer_context *context, mrc_background_work work,
                                   void *argument);
/* Pieces below `pieces` may be done from now on; never fewer than before. */
void mrc_background_permit(mrc_background *background, int64_t pieces);
/* Returns when the piece, which is permitted, is done. */
void mrc_background_wait(mrc_background *background, int64_t piece);
/* Returns when nothing runs; no piece is permitted any more, and the next to be done is number `piece`. Until it is
   permitted the argument belongs to the owner alone. */
void mrc_background_reset(mrc_background *background, int64_t piece);
/* Waits for the piece that runs, ends the thread and releases it; NULL is fine. */
void mrc_background_stop(mrc_background *background);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that does numbered pieces of work before they are needed.
 *
 * The owner permits pieces 0, 1, ..., n - 1 and waits for the pieces that it needs, in order. The thread does permitted
 * pieces one at a time. With a ring of R buffers, piece i fills buffer i mod R. The owner permits piece i + R when it
 * no longer needs buffer i mod R. So owner and thread never use a buffer at the same time.
 */
#ifndef MRC_CORE_THREADS_BACKGROUND_H
#define MRC_CORE_THREADS_BACKGROUND_H

#include "core/context.h"

typedef struct mrc_background mrc_background;

/* Does one piece of work on the thread. The function must not allocate or use a context. Its writes are visible to the
   owner after mrc_background_wait. */
typedef void (*mrc_background_work)(void *argument, int64_t piece);

/* Starts the thread; no work runs before a piece is permitted. MERCER_ERROR_UNSUPPORTED if no thread can be started. */
mercer_status mrc_background_start(mrc_background **out, mercer_context *context, mrc_background_work work,
                                   void *argument);
/* Permits pieces 0 .. pieces - 1; has no effect if more pieces are permitted already. */
void mrc_background_permit(mrc_background *background, int64_t pieces);
/* Waits until a piece is done. The piece must have been permitted. */
void mrc_background_wait(mrc_background *background, int64_t piece);
/* Withdraws all permissions, waits for a running piece, and makes `piece` the next piece of the thread. Until that
   piece is permitted, only the owner uses the argument. */
void mrc_background_reset(mrc_background *background, int64_t piece);
/* Waits for a running piece, ends the thread and frees it; NULL is ignored. */
void mrc_background_stop(mrc_background *background);

#endif

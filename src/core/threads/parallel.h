/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/threads: parallel loops on a pool of threads (parallel.h), a thread that works ahead (background.h), a barrier
 * with deadlines and exit messages (barrier.h), and a count of the threads inside BLAS (section.c). No other folder
 * starts threads.
 */
#ifndef MRC_CORE_THREADS_PARALLEL_H
#define MRC_CORE_THREADS_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Does one piece of work. `index` is the number of the piece, `worker` (0 .. threads - 1) the number of the scratch
 * space to use. Results must depend on index only, never on worker, so that they are bitwise identical for any number
 * of threads. The function must not allocate.
 */
typedef void (*mrc_work)(void *argument, int64_t index, int worker);

/* Runs work(argument, i, worker) for i = 0 .. count - 1 on at most `threads` threads; returns when all calls have
   returned. */
void mrc_parallel_for(int threads, int64_t count, mrc_work work, void *argument);

/* Enters the section in which BLAS may be used. Any number of threads may be inside at the same time; a thread that
   enters while none is inside calls `open`. `unclosed` is true after a fork by a thread outside the section, if the
   child lost threads inside without a call of `close`. */
void mrc_section_enter(void (*open)(bool unclosed));

/* Leaves the section; the last thread to leave calls `close`. Each mrc_section_enter needs one call by the same
   thread. */
void mrc_section_leave(void (*close)(void));

#endif

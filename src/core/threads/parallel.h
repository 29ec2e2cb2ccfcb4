/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/threads: a parallel loop on one pool (parallel.h), a thread that works ahead (background.h), a barrier with
 * deadlines and exit messages (barrier.h), and a count of the threads inside BLAS (section.c). No other folder starts
 * threads.
 */
#ifndef MRC_CORE_THREADS_PARALLEL_H
#define MRC_CORE_THREADS_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * One piece of work. `index` says which piece, `worker` (0 .. threads - 1) which scratch may be used. Results must
 * depend on index alone, never on worker: that is why they have the same bits for any number of threads. No allocation
 * in here.
 */
typedef void (*mrc_work)(void *argument, int64_t index, int worker);

/* Runs work(argument, i, worker) for i = 0 .. count - 1 on at most `threads` threads; returns when all are done. */
void mrc_parallel_for(int threads, int64_t count, mrc_work work, void *argument);

/* The section of the process in which BLAS may be used, by any number of threads at once.
   `open` is called if no thread was inside. again: a fork removed the last ones, and `close` was not called for
   them. */
void mrc_section_enter(void (*open)(bool again));

/* `close` is called if no thread is inside any more. Called as often as mrc_section_enter, by the same thread. */
void mrc_section_leave(void (*close)(void));

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The section of the process in which BLAS may be used: any number of threads at once, counted. */
#ifndef MRC_CORE_THREADS_SECTION_H
#define MRC_CORE_THREADS_SECTION_H

#include <stdbool.h>

/* `open` is called if no thread was inside. again: a fork removed the last ones, and `close` was not called for
   them. */
void mrc_section_enter(void (*open)(bool again));

/* `close` is called if no thread is inside any more. Called as often as mrc_section_enter, by the same thread. */
void mrc_section_leave(void (*close)(void));

#endif

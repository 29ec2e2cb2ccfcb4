/* SPDX-License-Identifier: BSD-3-Clause */
/* The section of the process in which BLAS may be used: any number of threads at once, counted. */
#ifndef MRC_CORE_THREADS_SECTION_H
#define MRC_CORE_THREADS_SECTION_H

#include <stdbool.h>

/* `open` is called if nobody was inside. again: the last who were left by a fork, and nobody called `close` for
   them. */
void mrc_section_enter(void (*open)(bool again));

/* `close` is called if nobody is inside any more. As often as mrc_section_enter, by the same thread. */
void mrc_section_leave(void (*close)(void));

#endif

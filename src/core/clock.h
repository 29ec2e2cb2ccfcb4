/* SPDX-License-Identifier: BSD-3-Clause */
/* Monotonic time, and the free memory of the machine. */
#ifndef MRC_CORE_CLOCK_H
#define MRC_CORE_CLOCK_H

#include "mercer/advanced.h"

/* Returns seconds on a monotonic clock with an arbitrary start; only differences are meaningful. */
double mrc_seconds(void);
/* Adds the seconds since *since to *total and sets *since to the current time. */
void mrc_lap(double *since, double *total);

/* Implements mercer_free_memory: bytes of host memory available to the process. */
int64_t mrc_free_memory(void);

#endif

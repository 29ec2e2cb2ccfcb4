/* SPDX-License-Identifier: BSD-3-Clause */
/* Seconds that only go forward. (clock.c has mrc_free_memory too.) */
#ifndef MRC_CORE_CLOCK_H
#define MRC_CORE_CLOCK_H

#include "mercer/advanced.h"

double mrc_seconds(void);
/* *total += the seconds since *since, which becomes now. */
void mrc_lap(double *since, double *total);

/* The public functions of the same names, without mercer_. */
int64_t mrc_free_memory(void);

#endif

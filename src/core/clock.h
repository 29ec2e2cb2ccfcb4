/* SPDX-License-Identifier: BSD-3-Clause */
/* Seconds that only go forward, and how much memory the machine could still give. */
#ifndef MRC_CORE_CLOCK_H
#define MRC_CORE_CLOCK_H

#include <stdint.h>

double mrc_seconds(void);
/* *total += the seconds since *since, which becomes now. */
void mrc_lap(double *since, double *total);
/* Bytes free or easily freed; a guess of 1 GiB where the system does not say. */
int64_t mrc_free_memory(void);

#endif

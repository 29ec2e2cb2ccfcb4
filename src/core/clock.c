/* SPDX-License-Identifier: BSD-3-Clause */
/* Monotonic time and free memory of the machine. */
#define _GNU_SOURCE
#include "core/clock.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double mrc_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void mrc_lap(double *since, double *total)
{
    double now = mrc_seconds();
    *total += now - *since;
    *since = now;
}

/* Returns MemAvailable in bytes, or -1 if it is unknown. MemAvailable includes the page cache that the system would
   release. On a machine that has run for a while, free pages are only a small part of MemAvailable. */
static int64_t linux_available(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    long long kib = -1;
    char line[128];
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lld", &kib) == 1) break;
    if (file) fclose(file);
    return kib > 0 ? (int64_t)kib * 1024 : -1;
}

int64_t mrc_free_memory(void)
{
    int64_t available = linux_available();
    if (available > 0) return available;
    long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (int64_t)pages * size : INT64_C(1) << 30;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Peak resident size of this process since bench_rss_restart, or since the start of the process if Linux cannot reset
   the peak. */
#ifndef MERCER_BENCH_RSS_H
#define MERCER_BENCH_RSS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

/* Return the bytes in a line "NAME: 123 kB" of /proc/self/status; 0 if the file has no such line. */
static inline int64_t bench_rss_line(const char *format)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long long kilobytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, format, &kilobytes) == 1) break;
    if (file) fclose(file);
    return (int64_t)kilobytes * 1024;
}

/* Reset the peak to the current resident size, and return this size in bytes. */
static inline int64_t bench_rss_restart(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
    return bench_rss_line("VmRSS: %lld kB");
}

static inline int64_t bench_rss_peak(void)
{
    int64_t bytes = bench_rss_line("VmHWM: %lld kB");
    struct rusage usage;
    if (bytes == 0 && getrusage(RUSAGE_SELF, &usage) == 0) bytes = (int64_t)usage.ru_maxrss * 1024;
    return bytes;
}

#endif

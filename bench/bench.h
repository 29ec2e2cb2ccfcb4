/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the benchmarks: a clock, best and median of repeated runs, options, and output in lines of text or JSON. */
#ifndef MERCER_BENCH_H
#define MERCER_BENCH_H

#define _POSIX_C_SOURCE 200809L
#include <mercer/ranks.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BENCH_MOST_REPEATS = 101 };

#ifndef BENCH_COMMIT
#define BENCH_COMMIT "unknown" /* the build defines BENCH_COMMIT as the revision of the sources */
#endif

typedef struct bench_options {
    bool json;
    bool quick;         /* true: smoke test with small sizes and few repeats */
    const char *filter; /* run only cases whose name contains this text; NULL: all */
    int repeats;
    int threads;
} bench_options;

typedef struct bench_times {
    double best, median; /* seconds */
} bench_times;

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Call `work` once as a warm-up, then `repeats` times; return the best and median time of these calls. */
static inline bench_times bench_time(void (*work)(void *), void *argument, int repeats)
{
    double seconds[BENCH_MOST_REPEATS];
    work(argument);
    for (int i = 0; i < repeats; i++) {
        double start = bench_now();
        work(argument);
        seconds[i] = bench_now() - start;
    }
    qsort(seconds, (size_t)repeats, sizeof *seconds, bench_compare);
    return (bench_times){seconds[0], seconds[repeats / 2]};
}

static inline int bench_usage(const char *program, FILE *to)
{
    fprintf(to,
            "usage: %s [--json] [--quick] [--filter TEXT] [--repeats N] [--threads N]\n"
            "  --json       print one JSON object per line instead of a table\n"
            "  --quick      use small sizes, to check that the program runs\n"
            "  --filter     run only cases whose name contains TEXT\n"
            "  --repeats    number of timed runs per case (default 5, at most %d)\n"
            "  --threads    number of worker threads (default: all processors)\n",
            program, (int)BENCH_MOST_REPEATS);
    return to == stdout ? 0 : 2;
}

/* Read the options; return -1 to continue, or the exit status to end with. */
static inline int bench_read_options(int argc, char **argv, bench_options *options)
{
    *options = (bench_options){.repeats = 5};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0)
            options->json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            options->quick = true;
        else if (strcmp(argv[i], "--help") == 0)
            return bench_usage(argv[0], stdout);
        else if (strcmp(argv[i], "--filter") == 0 && value)
            options->filter = value, i++;
        else if (strcmp(argv[i], "--repeats") == 0 && value)
            options->repeats = atoi(value), i++;
        else if (strcmp(argv[i], "--threads") == 0 && value)
            options->threads = atoi(value), i++;
        else {
            fprintf(stderr, "%s: '%s' is not an option, or its value is missing\n", argv[0], argv[i]);
            return bench_usage(argv[0], stderr);
        }
    }
    if (options->repeats < 1 || options->repeats > BENCH_MOST_REPEATS || options->threads < 0)
        return bench_usage(argv[0], stderr);
    return -1;
}

/* Read the options and create a context with them; return -1 to continue, or the exit status to end with. */
static inline int bench_open(int argc, char **argv, bench_options *options, mercer_context **context)
{
    int leave = bench_read_options(argc, argv, options);
    if (leave >= 0) return leave;
    mercer_context_options with = MERCER_INIT(mercer_context_options);
    with.threads = options->threads;
    if (mercer_context_create(context, &with) == MERCER_OK) return -1;
    fprintf(stderr, "%s: %s\n", argv[0], mercer_last_error(NULL));
    return 1;
}

/* Return the name of the processor; "unknown" if the system does not report it. */
static inline const char *bench_machine(void)
{
    static char name[128];
    FILE *file = name[0] ? NULL : fopen("/proc/cpuinfo", "r");
    char line[256];
    while (file && !name[0] && fgets(line, sizeof line, file))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':'))
            sscanf(strchr(line, ':') + 1, " %127[^\n]", name);
    if (file) fclose(file);
    if (!name[0]) strcpy(name, "unknown");
    return name;
}

/* Begin a JSON object with the conditions of a measurement: the machine and the revision of the sources. */
static inline void bench_begin_json(void)
{
    printf("{\"machine\": \"%s\", \"commit\": \"%s\", ", bench_machine(), BENCH_COMMIT);
}

/* Return a deterministic value in [0, 1). A linear congruential generator is sufficient to fill buffers. */
static inline double bench_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

#endif

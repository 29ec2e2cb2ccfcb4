/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Overhead of a parallel loop: the time from call to return of a loop with one small piece per thread. Loops are timed
 * in quick succession, and with pauses in which the threads fall asleep. Also measures the speed-up of a loop with
 * enough work per piece. First checks that each piece runs once and gives the result of a plain loop.
 */
#include "bench.h"

#include "core/cpuinfo.h"
#include "core/threads/parallel.h"

#include <math.h>

enum { PIECE_STEPS = 200000, SLEEP_MS = 5, MANY_LOOPS = 2000, FEW_LOOPS = 50 };

/* Results of some_work by piece, and the number of runs of each piece. */
typedef struct outcome {
    double *values;
    int *runs;
} outcome;

static void nothing(void *argument, int64_t index, int worker)
{
    (void)argument, (void)index, (void)worker;
}

static void some_work(void *argument, int64_t index, int worker)
{
    (void)worker;
    outcome *to = argument;
    double x = (double)index;
    for (int i = 0; i < PIECE_STEPS; i++) x = fma(x, 0.999, 1);
    to->values[index] = x, to->runs[index]++;
}

/* Return whether a parallel loop gives the same results as a plain loop, and runs each piece once. */
static bool is_right(int threads, int64_t pieces, const outcome *to)
{
    double *expected = malloc((size_t)pieces * sizeof *expected);
    int *once = malloc((size_t)pieces * sizeof *once);
    bool right = expected && once;
    outcome plain = {expected, once};
    memset(to->runs, 0, (size_t)pieces * sizeof *to->runs);
    mrc_parallel_for(threads, pieces, some_work, (void *)to);
    for (int64_t i = 0; i < pieces && right; i++) {
        once[i] = 0;
        some_work(&plain, i, 0);
        right = to->runs[i] == 1 && to->values[i] == expected[i];
    }
    free(expected), free(once);
    return right;
}

static void pause_ms(long ms)
{
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

/* Return the best and median seconds of one loop. */
static bench_times time_loops(int threads, int loops, mrc_work work, outcome *to, int64_t pieces, long sleep_ms)
{
    double *seconds = malloc((size_t)loops * sizeof *seconds);
    if (!seconds) return (bench_times){0, 0};
    mrc_parallel_for(threads, pieces, work, to);
    for (int i = 0; i < loops; i++) {
        if (sleep_ms) pause_ms(sleep_ms);
        double start = bench_now();
        mrc_parallel_for(threads, pieces, work, to);
        seconds[i] = bench_now() - start;
    }
    qsort(seconds, (size_t)loops, sizeof *seconds, bench_compare);
    bench_times result = {seconds[0], seconds[loops / 2]};
    free(seconds);
    return result;
}

static void report(const bench_options *options, const char *name, int threads, bench_times times, double speed_up)
{
    if (options->filter && !strstr(name, options->filter)) return;
    if (options->json) bench_begin_json();
    if (options->json)
        printf("\"bench\": \"parallel\", \"case\": \"%s\", \"version\": \"%s\", \"threads\": %d, \"best_s\": %.6g, "
               "\"median_s\": %.6g, \"speed_up\": %.4g}\n",
               name, mercer_version(), threads, times.best, times.median, speed_up);
    else
        printf("%-32s %8d %12.2f %12.2f %9.2f\n", name, threads, times.best * 1e6, times.median * 1e6, speed_up);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bench_options options;
    int leave = bench_read_options(argc, argv, &options);
    if (leave >= 0) return leave;
    int threads = options.threads ? options.threads : mrc_processors();
    int many = options.quick ? 20 : MANY_LOOPS, few = options.quick ? 5 : FEW_LOOPS;
    int64_t pieces = 8 * (int64_t)threads;
    outcome to = {malloc((size_t)pieces * sizeof(double)), malloc((size_t)pieces * sizeof(int))};
    bool good = to.values && to.runs && is_right(threads, pieces, &to);
    if (!good) fprintf(stderr, "bench_parallel: INVALID, a parallel loop differs from a plain one\n");
    if (good && !options.json)
        printf("%-32s %8s %12s %12s %9s\n", "parallel_for", "threads", "best us", "median us", "speed-up");
    if (good) {
        report(&options, "empty, one after the other", threads, time_loops(threads, many, nothing, NULL, threads, 0),
               0);
        report(&options, "empty, after a pause", threads, time_loops(threads, few, nothing, NULL, threads, SLEEP_MS),
               0);
        bench_times one = time_loops(1, few, some_work, &to, pieces, 0);
        bench_times all = time_loops(threads, few, some_work, &to, pieces, 0);
        report(&options, "8 pieces for each thread", threads, all, one.median / all.median);
    }
    free(to.values), free(to.runs);
    return good ? 0 : 1;
}

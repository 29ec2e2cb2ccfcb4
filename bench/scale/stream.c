/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams a file that is larger than the memory that a process should use. Writes n synthetic digits (n x 784 bytes) as
 * NPY files, then reads one pass as training does, in shuffled blocks with a read-ahead thread, and discards the
 * batches.
 *
 *     scale_stream [--rows N] [--folder DIR] [--keep]        default: 5,000,000 rows (3.9 GB) in the working folder
 *
 * Prints samples per second of writing and of reading, and the peak resident memory of the process, which includes
 * mapped pages of the file. --keep does not delete scale-x.npy and scale-y.npy, and reuses them if they exist.
 */
#define _DEFAULT_SOURCE /* getrusage */

#include <mercer/advanced.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 4096, PATH_CHARS = 1024 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(mercer_context *context, mercer_status status)
{
    if (status == MERCER_OK) return;
    fprintf(stderr, "scale_stream: %s\n", mercer_last_error(context));
    exit(1);
}

static double peak_megabytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void write_digits(mercer_context *context, int64_t rows, const char *x, const char *y)
{
    mercer_dataset *digits;
    double start = now();
    must(context, mercer_dataset_synthesize(&digits, context, "digits", 0, rows, 1));
    must(context, mercer_dataset_write(digits, x, y));
    double seconds = now() - start;
    printf("write  %lld x 784 bytes  %8.1f s  %10.0f samples/s  peak %6.0f MiB\n", (long long)rows, seconds,
           (double)rows / seconds, peak_megabytes());
    mercer_dataset_free(digits);
}

/* Read one pass. The sum of the row numbers shows whether the stream returned all rows. */
static void read_pass(mercer_context *context, const char *x, const char *y)
{
    mercer_dataset_options options = {.struct_size = sizeof options, .x = x, .y = y};
    mercer_dataset *data;
    mercer_source source;
    must(context, mercer_dataset_open(&data, context, &options));
    must(context, mercer_source_from_dataset(&source, data, NULL));
    double start = now(), sum = 0;
    int64_t rows = 0;
    mercer_batch batch = {.rows = NULL};
    int failed = source.restart(source.user, 0);
    while (!failed) {
        failed = source.next(source.user, BATCH, &batch);
        if (failed || batch.X.rows == 0) break;
        rows += batch.X.rows;
        for (int64_t i = 0; i < batch.X.rows; i++) sum += (double)batch.rows[i];
    }
    double seconds = now() - start, wanted = 0.5 * (double)rows * (double)(rows - 1);
    if (failed || rows != source.rows || sum < wanted * (1 - 1e-12) || sum > wanted * (1 + 1e-12)) {
        fprintf(stderr, "scale_stream: the pass is not complete: %lld samples %s\n", (long long)rows,
                mercer_last_error(context));
        exit(1);
    }
    mercer_context_info info = {.struct_size = sizeof info};
    must(context, mercer_context_query(context, &info));
    printf("read   one pass, shuffled  %8.1f s  %10.0f samples/s  peak %6.0f MiB, %.0f MiB of it held by the library\n",
           seconds, (double)rows / seconds, peak_megabytes(), (double)info.bytes_peak / (1 << 20));
    mercer_source_free(&source);
    mercer_dataset_free(data);
}

int main(int argc, char **argv)
{
    int64_t rows = 5000000;
    const char *folder = ".";
    bool keep = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rows") == 0 && i + 1 < argc)
            rows = atoll(argv[++i]);
        else if (strcmp(argv[i], "--folder") == 0 && i + 1 < argc)
            folder = argv[++i];
        else if (strcmp(argv[i], "--keep") == 0)
            keep = true;
        else
            return fprintf(stderr, "usage: %s [--rows N] [--folder DIR] [--keep]\n", argv[0]), 2;
    }
    char x[PATH_CHARS], y[PATH_CHARS];
    snprintf(x, sizeof x, "%s/scale-x.npy", folder);
    snprintf(y, sizeof y, "%s/scale-y.npy", folder);
    mercer_context *context;
    must(NULL, mercer_context_create(&context, NULL));
    if (!keep || access(x, R_OK) != 0) write_digits(context, rows, x, y);
    read_pass(context, x, y);
    if (!keep) remove(x), remove(y);
    mercer_context_free(context);
    return 0;
}

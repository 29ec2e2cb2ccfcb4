/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples per second of each kind of stream. The program reads a pass, or a part of a pass, in batches and discards
 * them, so it times only the production of samples. In training, a thread produces the samples in parallel with the
 * computation. Before timing, the samples produced with and without the thread are compared byte by byte.
 */
#include "bench.h"

#include <unistd.h>

typedef struct bench_case {
    const char *name;
    const char *data;       /* name of a synthetic dataset, or "stored": digits in a mapped NPY file */
    const char *preprocess; /* specification, or NULL */
    const char *augment;    /* specification, or NULL */
    int64_t block;
    mercer_switch prefetch;
} bench_case;

static const bench_case cases[] = {
    {"rows", "stored", NULL, NULL, 1, MERCER_OFF},
    {"rows, thread", "stored", NULL, NULL, 1, MERCER_ON},
    {"blocks", "stored", NULL, NULL, 334, MERCER_OFF},
    {"blocks, thread", "stored", NULL, NULL, 334, MERCER_ON},
    {"scale", "stored", "scale", NULL, 1, MERCER_OFF},
    {"standardize", "stored", "standardize", NULL, 1, MERCER_OFF},
    {"unit", "stored", "unit", NULL, 1, MERCER_OFF},
    {"noise u8", "stored", NULL, "noise:sigma=20", 1, MERCER_OFF},
    {"shift", "stored", NULL, "shift:pixels=2", 1, MERCER_OFF},
    {"crop, flip", "stored", NULL, "crop:pad=2+flip", 1, MERCER_OFF},
    {"mixup", "stored", NULL, "mixup:alpha=0.4", 1, MERCER_OFF},
    {"digits", "digits", NULL, NULL, 1, MERCER_OFF},
    {"digits, thread", "digits", NULL, NULL, 1, MERCER_ON},
    {"spirals", "spirals:classes=3", NULL, NULL, 1, MERCER_OFF},
    {"teacher d=20", "teacher:d=20,centers=100", NULL, NULL, 1, MERCER_OFF},
    {"teacher d=784", "teacher:d=784,centers=1", NULL, NULL, 1, MERCER_OFF},
    {"teacher d=784, noise", "teacher:d=784,centers=1", NULL, "noise:sigma=0.1", 1, MERCER_OFF},
};

enum { BATCH = 2048, KEPT = 60000 };

/* Exit with the error message if a call failed. */
static void must(mercer_context *context, mercer_status status)
{
    if (status == MERCER_OK) return;
    fprintf(stderr, "bench_stream: %s\n", mercer_last_error(context));
    exit(1);
}

/* Paths of files that several cases read. */
typedef struct files {
    char x[64], y[64];
} files;

static mercer_dataset *open_data(mercer_context *context, const bench_case *one, const files *kept, int64_t rows)
{
    mercer_dataset_options options = {.struct_size = sizeof options, .x = kept->x, .y = kept->y};
    mercer_dataset *out;
    if (strcmp(one->data, "stored") == 0)
        must(context, mercer_dataset_open(&out, context, &options));
    else
        must(context, mercer_dataset_synthesize(&out, context, one->data, 0, rows, 1));
    return out;
}

static mercer_source open_source(mercer_context *context, mercer_dataset *data, const bench_case *one,
                                 const mercer_preprocess *preprocess, mercer_switch prefetch)
{
    mercer_stream_options options = {.struct_size = sizeof options,
                                     .seed = 1,
                                     .preprocess = preprocess,
                                     .augment = one->augment,
                                     .block = one->block,
                                     .prefetch = prefetch};
    mercer_source out;
    must(context, mercer_source_from_dataset(&out, data, &options));
    return out;
}

static size_t element_size(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? 8 : dtype == MERCER_F32 ? 4 : dtype == MERCER_F16 ? 2 : 1;
}

/* Check that the first batches of two streams, with and without a thread, are the same. */
static void validate(mercer_context *context, mercer_source *a, mercer_source *b)
{
    mercer_batch x, y;
    a->restart(a->user, 0), b->restart(b->user, 0);
    for (int i = 0; i < 4; i++) {
        int failed = a->next(a->user, BATCH, &x) | b->next(b->user, BATCH, &y);
        if (failed || x.X.rows != y.X.rows ||
            memcmp(x.X.data, y.X.data, (size_t)(x.X.rows * x.X.cols) * element_size(x.X.dtype)) != 0) {
            fprintf(stderr, "bench_stream: batches differ with and without a thread %s\n", mercer_last_error(context));
            exit(1);
        }
    }
}

typedef struct job {
    mercer_source *source;
    int64_t rows; /* number of rows to read; after the call, number of rows read */
    int failed;
} job;

static void read_rows(void *argument)
{
    job *self = argument;
    mercer_batch batch;
    int64_t done = 0;
    self->failed |= self->source->restart(self->source->user, 0);
    while (done < self->rows && !self->failed) {
        self->failed |= self->source->next(self->source->user, BATCH, &batch);
        if (self->failed || batch.X.rows == 0) break;
        done += batch.X.rows;
    }
    self->rows = done;
}

static void run_case(mercer_context *context, const bench_case *one, const files *kept, const bench_options *options)
{
    mercer_dataset *data = open_data(context, one, kept, options->quick ? 8192 : 1 << 20);
    mercer_preprocess *preprocess = NULL;
    if (one->preprocess) must(context, mercer_preprocess_fit(&preprocess, context, one->preprocess, data));
    mercer_source source = open_source(context, data, one, preprocess, one->prefetch);
    mercer_source other =
        open_source(context, data, one, preprocess, one->prefetch == MERCER_ON ? MERCER_OFF : MERCER_ON);
    validate(context, &source, &other);
    mercer_source_free(&other);
    job work = {.source = &source, .rows = 4096};
    double start = bench_now();
    read_rows(&work);
    double rate = (double)work.rows / (bench_now() - start);
    work.rows = options->quick ? 4096 : (int64_t)(0.3 * rate);
    bench_times times = bench_time(read_rows, &work, options->quick ? 1 : options->repeats);
    if (work.failed) must(context, MERCER_ERROR_CALLBACK);
    double best = (double)work.rows / times.best, median = (double)work.rows / times.median;
    double bytes = (double)source.features * (double)element_size(source.dtype);
    if (options->json) bench_begin_json();
    if (options->json)
        printf("\"bench\": \"stream\", \"case\": \"%s\", \"rows\": %lld, \"rows_per_second_best\": %.0f, "
               "\"rows_per_second_median\": %.0f, \"bytes_per_second_best\": %.0f}\n",
               one->name, (long long)work.rows, best, median, best * bytes);
    else
        printf("%-28s %12.0f %12.0f %10.2f\n", one->name, best, median, best * bytes * 1e-9);
    fflush(stdout);
    mercer_source_free(&source);
    mercer_preprocess_free(preprocess);
    mercer_dataset_free(data);
}

/* Write digits to files in the working folder, for the cases that read stored rows. */
static void keep_digits(mercer_context *context, files *kept, int64_t rows)
{
    mercer_dataset *digits;
    snprintf(kept->x, sizeof kept->x, "bench_stream.%ld.x.npy", (long)getpid());
    snprintf(kept->y, sizeof kept->y, "bench_stream.%ld.y.npy", (long)getpid());
    must(context, mercer_dataset_synthesize(&digits, context, "digits", 0, rows, 1));
    must(context, mercer_dataset_write(digits, kept->x, kept->y));
    mercer_dataset_free(digits);
}

int main(int argc, char **argv)
{
    bench_options options;
    int status = bench_read_options(argc, argv, &options);
    if (status >= 0) return status;
    mercer_context_options wanted = MERCER_INIT(mercer_context_options);
    wanted.threads = options.threads;
    mercer_context *context;
    must(NULL, mercer_context_create(&context, &wanted));
    files kept = {{0}, {0}};
    keep_digits(context, &kept, options.quick ? 8192 : KEPT);
    if (!options.json) printf("%-28s %12s %12s %10s\n", "stream", "best rows/s", "median", "GB/s");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!options.filter || strstr(cases[i].name, options.filter)) run_case(context, &cases[i], &kept, &options);
    remove(kept.x), remove(kept.y);
    mercer_context_free(context);
    return 0;
}

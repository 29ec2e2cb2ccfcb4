/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains one model on clustered data, end to end through the public API, on any backend; prints one line of JSON.
 *
 *   epoch [--backend NAME] [--arithmetic NAME] [--n N] [--p P] [--d D] [--c C] [--type f32|f16|u8] [--solver NAME]
 *         [--projector NAME] [--epochs E] [--passes N] [--eigenpairs Q] [--projector-eigenpairs Q] [--batch M] [--plan]
 *         [--phases]
 *
 * --phases: print to standard error the start of each setup phase and, once per second, the number of steps, with times
 * in seconds since the beginning of mercer_trainer_fit. This gives the speed of a training run that is too long to
 * finish.
 *
 * Samples: 40 clusters per class, cluster centers N(0, 1) in every coordinate plus noise N(0, 1.5^2), scaled to a mean
 * squared length of d / 4. Sample i depends only on i. The p model centers are additional samples.
 */
#include "bench.h"

#include "core/numbers/half.h"
#include "core/threads/parallel.h"

#include <inttypes.h>
#include <math.h>

enum { CLUSTERS_PER_CLASS = 40, PIECE = 4096, TEST_ROWS = 10000 };

typedef struct setup {
    const char *backend, *arithmetic, *solver, *projector, *type;
    int64_t n, p, d, c, epochs, passes, eigenpairs, projector_eigenpairs, batch;
    bool plan, phases;
} setup;

typedef struct data {
    mercer_matrix x;
    int32_t *labels;
    int64_t first, classes; /* first: index of the first sample */
    const float *clusters;  /* (classes * CLUSTERS_PER_CLASS, d) */
} data;

static uint64_t mix(uint64_t h)
{
    h ^= h >> 31, h *= 0xbf58476d1ce4e5b9u, h ^= h >> 29, h *= 0x94d049bb133111ebu;
    return h ^ h >> 32;
}

/* Return a nearly normal number of variance 1: the sum of four 16-bit uniforms. */
static float noise(uint64_t row, uint64_t column)
{
    uint64_t h = mix((row + 1) * 0x9e3779b97f4a7c15u + (column + 1) * 0xd1342543de82ef95u);
    float sum = (float)(h & 0xffff) + (float)(h >> 16 & 0xffff) + (float)(h >> 32 & 0xffff) + (float)(h >> 48);
    return (sum * 0x1p-16f - 2) * 1.7320508f;
}

static void fill_piece(void *argument, int64_t piece, int worker)
{
    (void)worker;
    data *self = argument;
    int64_t end = (piece + 1) * PIECE < self->x.rows ? (piece + 1) * PIECE : self->x.rows, d = self->x.cols;
    for (int64_t i = piece * PIECE; i < end; i++) {
        uint64_t number = (uint64_t)(self->first + i);
        int64_t cluster = (int64_t)(mix(number * 77 + 5) % (uint64_t)(self->classes * CLUSTERS_PER_CLASS));
        self->labels[i] = (int32_t)(cluster % self->classes);
        for (int64_t k = 0; k < d; k++) {
            float value = 0.2773501f * (self->clusters[cluster * d + k] + 1.5f * noise(number + 1000000, (uint64_t)k));
            if (self->x.dtype == MERCER_F16)
                ((uint16_t *)self->x.data)[i * d + k] = mrc_half_from_float(value);
            else if (self->x.dtype == MERCER_F32)
                ((float *)self->x.data)[i * d + k] = value;
            else
                ((uint8_t *)self->x.data)[i * d + k] = (uint8_t)fminf(255, fmaxf(0, 128 + 64 * value));
        }
    }
}

static data make_data(const setup *s, int64_t first, int64_t rows, const float *clusters, mercer_dtype dtype)
{
    int64_t size = dtype == MERCER_F16 ? 2 : dtype == MERCER_U8 ? 1 : 4;
    data made = {.first = first, .classes = s->c, .clusters = clusters};
    void *memory = malloc((size_t)(rows * s->d * size));
    made.labels = malloc((size_t)rows * sizeof *made.labels);
    if (!memory || !made.labels) {
        fprintf(stderr, "out of memory for %lld samples\n", (long long)rows);
        exit(1);
    }
    made.x = mercer_matrix_view(memory, rows, s->d, dtype);
    mrc_parallel_for(16, (rows + PIECE - 1) / PIECE, fill_piece, &made);
    return made;
}

/* ---- The source: samples in stored order, which is random ----------------------------------------------------- */

typedef struct reader {
    const data *all;
    int64_t next, classes;
    float *targets;
    int64_t capacity;
    int64_t first, count; /* samples of the previous batch, whose one-hot targets are still set */
} reader;

static int restart(void *user, int64_t epoch)
{
    (void)epoch;
    ((reader *)user)->next = 0;
    return 0;
}

static int next(void *user, int64_t most, mercer_batch *batch)
{
    reader *self = user;
    int64_t left = self->all->x.rows - self->next, m = most < left ? most : left, size = 4;
    if (self->all->x.dtype == MERCER_F16) size = 2;
    if (self->all->x.dtype == MERCER_U8) size = 1;
    if (m > self->capacity) {
        free(self->targets);
        self->targets = calloc((size_t)(m * self->classes), sizeof *self->targets);
        self->capacity = m, self->count = 0;
        if (!self->targets) return 1;
    }
    /* Set only the entries that are 1 in the previous batch to 0: with many classes, clearing all targets takes longer
       than the training. */
    for (int64_t i = 0; i < self->count; i++) self->targets[i * self->classes + self->all->labels[self->first + i]] = 0;
    for (int64_t i = 0; i < m; i++) self->targets[i * self->classes + self->all->labels[self->next + i]] = 1;
    self->first = self->next, self->count = m;
    *batch = (mercer_batch){.X = mercer_matrix_view((char *)self->all->x.data + self->next * self->all->x.cols * size,
                                                    m, self->all->x.cols, self->all->x.dtype),
                            .Y = mercer_matrix_view(self->targets, m, self->classes, MERCER_F32)};
    self->next += m;
    return 0;
}

/* ---- One training run ---------------------------------------------------------------------------------------- */

static void must(mercer_context *context, mercer_status status, const char *what)
{
    if (status == MERCER_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, mercer_status_string(status), mercer_last_error(context));
    exit(1);
}

static void log_line(void *user, mercer_log_level level, const char *message)
{
    (void)user, (void)level;
    fprintf(stderr, "%12.3f  %s\n", bench_now(), message);
}

typedef struct shown {
    const char *phase;
    double seconds; /* time when the last line was printed */
} shown;

/* Print phases and, once per second, steps. Consecutive reports of the same phase (such as one per block) are printed
   once. */
static int show_phase(void *user, const mercer_progress *progress)
{
    shown *last = user;
    bool step = !progress->phase, same = step || (last->phase && strcmp(last->phase, progress->phase) == 0);
    if (same && !(step && progress->seconds - last->seconds >= 1)) return 0;
    fprintf(stderr, "%12.3f  %8.3f s  %s", bench_now(), progress->seconds, step ? "" : progress->phase);
    if (step)
        fprintf(stderr, "%" PRId64 " steps, %" PRId64 " samples, %" PRId64 " projections, loss %.5f", progress->steps,
                progress->samples, progress->projections, progress->train_loss);
    fprintf(stderr, "\n");
    last->phase = progress->phase, last->seconds = progress->seconds;
    return 0;
}

static double accuracy(mercer_context *context, mercer_model *model, const data *test)
{
    int32_t *labels = malloc((size_t)test->x.rows * sizeof *labels);
    int64_t right = 0;
    if (!labels) exit(1);
    must(context, mercer_model_classify(model, labels, &test->x), "classify");
    for (int64_t i = 0; i < test->x.rows; i++) right += labels[i] == test->labels[i];
    free(labels);
    return (double)right / (double)test->x.rows;
}

static void measure_epochs(const setup *s)
{
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_context *context;
    mercer_kernel kernel;
    mercer_model *model;
    mercer_trainer *trainer;
    options.backend = s->backend, options.arithmetic = s->arithmetic, options.log = log_line;
    if (s->phases) options.log_level = MERCER_LOG_DEBUG;
    must(NULL, mercer_context_create(&context, &options), "context");
    mercer_dtype dtype = strcmp(s->type, "f16") == 0 ? MERCER_F16 : strcmp(s->type, "u8") == 0 ? MERCER_U8 : MERCER_F32;
    int64_t clusters = s->c * CLUSTERS_PER_CLASS;
    float *means = malloc((size_t)(clusters * s->d) * sizeof *means);
    if (!means) exit(1);
    for (int64_t i = 0; i < clusters * s->d; i++) means[i] = noise((uint64_t)i, 12345);
    data train = make_data(s, 0, s->n, means, dtype), test = make_data(s, s->n, TEST_ROWS, means, dtype),
         centers = make_data(s, s->n + TEST_ROWS, s->p, means, dtype);
    reader user = {.all = &train, .classes = s->c};
    mercer_source source = {.struct_size = sizeof source,
                            .rows = s->n,
                            .features = s->d,
                            .outputs = s->c,
                            .dtype = dtype,
                            .restart = restart,
                            .next = next,
                            .user = &user};
    char text[64];
    snprintf(text, sizeof text, "laplace:bandwidth=%g", (dtype == MERCER_U8 ? 64 : 1) * sqrt((double)s->d) * 0.4);
    must(context, mercer_kernel_parse(&kernel, context, text), "kernel");
    must(context, mercer_model_create(&model, context, NULL, &kernel, &centers.x, s->c, MERCER_F32), "model");
    mercer_train_options train_options;
    train_options = (mercer_train_options)MERCER_INIT(mercer_train_options);
    train_options.solver = s->solver, train_options.projector = s->projector, train_options.epochs = s->epochs;
    train_options.projector_passes = s->passes, train_options.batch = s->batch;
    train_options.eigenpairs = s->eigenpairs, train_options.projector_eigenpairs = s->projector_eigenpairs;
    train_options.classification = MERCER_ON;
    shown last = {0};
    if (s->phases)
        train_options.progress = show_phase, train_options.progress_user = &last, train_options.progress_seconds = 1e-9;
    must(context, mercer_trainer_create(&trainer, model, NULL, &train_options), "trainer");
    mercer_report *report = calloc(1, sizeof *report);
    if (!report) exit(1);
    report->struct_size = sizeof *report;
    must(context, mercer_trainer_fit(trainer, &source, report), "fit");
    double start = bench_now(), right = accuracy(context, model, &test), seconds = bench_now() - start;
    if (s->plan) fprintf(stderr, "%s", report->plan->text);
    double loop = report->seconds - report->setup_seconds;
    printf(
        "{\"bench\": \"epoch\", \"backend\": \"%s\", \"arithmetic\": \"%s\", \"type\": \"%s\", \"n\": %" PRId64
        ", \"p\": %" PRId64 ", \"d\": %" PRId64 ", \"c\": %" PRId64 ", \"solver\": \"%s\", \"projector\": \"%s\", "
        "\"epochs\": %" PRId64 ", \"batch\": %" PRId64 ", \"period\": %" PRId64 ", \"s\": %" PRId64 ", \"q\": %" PRId64
        ", \"setup_s\": %.3f, \"epochs_s\": %.3f, \"forward_s\": %.3f, \"gradient_s\": %.3f, \"projection_s\": %.3f, "
        "\"projections\": %" PRId64 ", \"residual\": %.3g, \"tflop\": %.1f, \"tflops\": %.1f, \"halvings\": %" PRId64
        ", \"train_loss\": %.5f, \"train_accuracy\": %.4f, \"test_accuracy\": %.4f, \"predict_s\": %.3f, "
        "\"peak_gib\": %.2f, \"planned_gib\": %.2f}\n",
        s->backend, s->arithmetic, s->type, s->n, s->p, s->d, s->c, report->plan->solver, report->plan->projector,
        report->epochs, report->plan->batch, report->plan->period, report->plan->nystrom, report->plan->eigenpairs,
        report->setup_seconds, loop, report->forward_seconds, report->gradient_seconds, report->projection_seconds,
        report->projections, report->projection_residual_mean, 1e-12 * report->flops,
        1e-12 * report->flops / report->seconds, report->halvings, report->train_loss, report->train_accuracy, right,
        seconds, (double)report->peak_bytes * 0x1p-30, (double)report->plan->bytes * 0x1p-30);
    mercer_trainer_free(trainer);
    mercer_model_free(model);
    mercer_context_free(context);
    free(report), free(user.targets), free(means);
    free(train.x.data), free(train.labels), free(test.x.data), free(test.labels);
    free(centers.x.data), free(centers.labels);
}

int main(int argc, char **argv)
{
    setup s = {"cuda", "accurate", "ep4", NULL, "f32", 20000, 4000, 128, 10, 1, 0, 0, 0, 0, false, false};
    struct {
        const char *name, **text;
        int64_t *number;
    } const known[] = {{"--backend", &s.backend, NULL},
                       {"--arithmetic", &s.arithmetic, NULL},
                       {"--solver", &s.solver, NULL},
                       {"--projector", &s.projector, NULL},
                       {"--type", &s.type, NULL},
                       {"--n", NULL, &s.n},
                       {"--p", NULL, &s.p},
                       {"--d", NULL, &s.d},
                       {"--c", NULL, &s.c},
                       {"--epochs", NULL, &s.epochs},
                       {"--passes", NULL, &s.passes},
                       {"--eigenpairs", NULL, &s.eigenpairs},
                       {"--projector-eigenpairs", NULL, &s.projector_eigenpairs},
                       {"--batch", NULL, &s.batch}};
    for (int i = 1; i < argc; i++) {
        bool plan = strcmp(argv[i], "--plan") == 0, phases = strcmp(argv[i], "--phases") == 0, found = plan || phases;
        s.plan |= plan, s.phases |= phases;
        for (size_t k = 0; k < sizeof known / sizeof *known && i + 1 < argc && !found; k++) {
            if (strcmp(argv[i], known[k].name) != 0) continue;
            found = true;
            i++;
            if (known[k].text)
                *known[k].text = argv[i];
            else
                *known[k].number = strtoll(argv[i], NULL, 10);
        }
        if (found) continue;
        fprintf(stderr, "epoch: '%s' is not understood; see the top of bench/gpu/epoch.c\n", argv[i]);
        return 2;
    }
    measure_epochs(&s);
    return 0;
}

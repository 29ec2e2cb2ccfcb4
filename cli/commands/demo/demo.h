/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/commands/demo: the demonstration. Models of several sizes are trained on more and more samples each.
 *
 * command_demo.c trains them, demo_words.c writes what the numbers show in sentences, demo_log.c writes the run log
 * from which the report page is made.
 */
#ifndef MERCER_CLI_DEMO_H
#define MERCER_CLI_DEMO_H

#include "cli.h"

enum { DEMO_MOST_SIZES = 4, DEMO_MOST_CELLS = 5, DEMO_SENTENCE = 256, DEMO_SENTENCES = 3, DEMO_CLASSES = 10 };

/* What is trained: every number of centers with every number of samples that is not smaller. */
typedef struct demo_sizes {
    int64_t centers[DEMO_MOST_SIZES];     /* (center_sizes) ascending */
    int64_t samples[DEMO_MOST_CELLS - 1]; /* (sample_sizes) ascending */
    int center_sizes, sample_sizes;
    int64_t tests;
} demo_sizes;

/* One model. Column 0 has n = p: only the centers' own labels; column k + 1 has n = samples[k]. */
typedef struct demo_cell {
    int64_t centers, samples; /* samples is 0 if there is no such model: n < p */
    double accuracy, seconds;
} demo_cell;

typedef struct demo {
    const cli_values *v;
    mercer_context *context;
    demo_sizes sizes;
    mercer_kernel kernel;
    int64_t rows, features;
    unsigned char *pixels; /* (rows, features): tests first, then what is trained on */
    int32_t *labels;       /* (rows) */
    demo_cell cells[DEMO_MOST_SIZES][DEMO_MOST_CELLS];
    char conclusion[DEMO_SENTENCES][DEMO_SENTENCE];
    double seconds; /* of everything */
    cli_log *log;
} demo;

/* Sentences about the numbers, into demo->conclusion (demo_words.c). */
void demo_conclude(demo *self);

/* Events of the log (demo_log.c). */
void demo_log_start(demo *self);
int demo_log_progress(void *self, const mercer_progress *progress); /* a mercer_progress_callback */
/* The model that was watched: plan, spectrum, confusion and summary; given (tests) are the classes it gives. */
void demo_log_best(demo *self, const mercer_trainer *trainer, const mercer_report *report, const int32_t *given);
void demo_log_results(demo *self);
json_t *demo_json(const demo *self); /* everything, for --json */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/commands/demo: the demonstration. Trains models of several sizes, each on increasing numbers of samples.
 *
 * command_demo.c trains the models, demo_words.c describes the results in sentences, demo_log.c writes the run log from
 * which the report page is made.
 */
#ifndef MERCER_CLI_DEMO_H
#define MERCER_CLI_DEMO_H

#include "cli.h"

enum { DEMO_MOST_SIZES = 4, DEMO_MOST_CELLS = 5, DEMO_SENTENCE = 256, DEMO_SENTENCES = 3, DEMO_CLASSES = 10 };

/* Sizes of the trained models: each number of centers p is combined with n = p samples and with each number of samples
   n >= p. */
typedef struct demo_sizes {
    int64_t centers[DEMO_MOST_SIZES];     /* (center_sizes) numbers of centers, ascending */
    int64_t samples[DEMO_MOST_CELLS - 1]; /* (sample_sizes) numbers of samples, ascending */
    int center_sizes, sample_sizes;
    int64_t tests;
} demo_sizes;

/* One trained model, a cell of the table. Column 0 has n = p: training uses only the labels of the centers. Column k +
   1 has n = demo_sizes.samples[k]. */
typedef struct demo_cell {
    int64_t centers, samples; /* samples is 0 where no model is trained because n < p */
    double accuracy, seconds;
} demo_cell;

typedef struct demo {
    const cli_values *v;
    mercer_context *context;
    demo_sizes sizes;
    mercer_kernel kernel;
    int64_t rows, features;
    unsigned char *pixels; /* (rows, features) test samples first, then training samples */
    int32_t *labels;       /* (rows) class of each sample */
    demo_cell cells[DEMO_MOST_SIZES][DEMO_MOST_CELLS];
    char conclusion[DEMO_SENTENCES][DEMO_SENTENCE];
    double seconds; /* of the whole demonstration */
    cli_log *log;
} demo;

/* Writes sentences about the results into demo->conclusion (demo_words.c). */
void demo_conclude(demo *self);

/* Write events to the run log (demo_log.c). */
void demo_log_start(demo *self);
int demo_log_progress(void *self, const mercer_progress *progress); /* a mercer_progress_callback; `self` is a demo */
/* Logs the largest model: plan, spectrum, confusion and summary. given: (tests) predicted classes. */
void demo_log_best(demo *self, const mercer_trainer *trainer, const mercer_report *report, const int32_t *given);
void demo_log_results(demo *self);
json_t *demo_json(const demo *self); /* all results, for --json */

#endif

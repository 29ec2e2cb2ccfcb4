/* SPDX-License-Identifier: BSD-3-Clause */
/* What a training is made of, from its options: data, preprocessing, kernel function, centers, model, stream. */
#ifndef MERCER_CLI_JOB_H
#define MERCER_CLI_JOB_H

#include "data.h"

enum { CLI_KERNEL_TEXT = 256 };

typedef struct cli_job {
    const cli_values *v;
    mercer_context *context;
    int64_t memory;      /* bytes for everything */
    int64_t device_each; /* for training on each of several ranks' devices; 0: they are not, or it is one */
    mercer_dataset *train, *validation;
    mercer_dataset_info info; /* of train */

    mercer_preprocess *preprocess;     /* owned; NULL if the model's own serves */
    const mercer_preprocess *applied;  /* to samples: the one above, or the model's */
    mercer_kernel kernel;              /* as the model has it */
    char kernel_text[CLI_KERNEL_TEXT]; /* as the user sees it, before folding */
    char bandwidth_note[96];           /* how the bandwidth was found, or "" */
    int folded;
    mercer_dtype dtype; /* of preprocessed samples */

    mercer_matrix centers; /* memory owned; released when the model has its copy. Of several ranks: the own share */
    int64_t center_count;  /* of all ranks */
    char center_method[32];
    mercer_center_report center_report;

    mercer_model *model;
    mercer_source source;
    mercer_matrix validation_x, validation_y; /* preprocessed, for the trainer; memory owned */
} cli_job;

/* Options that can be checked without data: kernel and number of centers; how they are chosen. Exit code. */
int cli_check_job(const cli_values *v);
int cli_check_centers(const cli_values *v);

/* Steps in their order; each prints its error and returns an exit code. */
int cli_job_open(cli_job *job, const cli_values *v);    /* context and data */
int cli_job_prepare(cli_job *job);                      /* preprocessing and kernel */
int cli_job_centers(cli_job *job, cli_bar *bar);        /* centers */
int cli_job_model(cli_job *job);                        /* the model, of its centers; labels and preprocessing */
int cli_job_load(cli_job *job, const char *checkpoint); /* instead of the three above */
/* Samples of the training data, preprocessed and augmented: a stream of that seed. */
int cli_job_open_stream(cli_job *job, uint64_t seed, int64_t samples, mercer_source *source);
int cli_job_stream(cli_job *job);     /* the source */
int cli_job_validation(cli_job *job); /* validation matrices, of a job that has a model */
void cli_job_free(cli_job *job);

/* The options of training that the command line has. */
void cli_train_options(const cli_values *v, mercer_train_options *options);
/* Whether training is done in the memory of a device. */
int cli_job_on_device(const cli_job *job);
/* The memory that training may use when the data, p centers with their weights, and the rest of the job have theirs.
   It is computed from sizes, so that a training that is resumed gets the same. */
int64_t cli_job_memory_left(const cli_job *job, int64_t p);
const char *cli_job_preprocess(const cli_job *job); /* what --preprocess means for these data */
int64_t cli_job_center_count(const cli_job *job);   /* p as --centers says for these rows */
/* A plan with p centers in the memory that is left for training. */
mercer_status cli_job_plan(const cli_job *job, int64_t p, mercer_plan *plan);
/* The sizes of its training with p centers. */
mercer_shape cli_job_shape(const cli_job *job, int64_t p);
/* The largest number of centers below p that fits, up to 1 %; 0 if none does. */
int64_t cli_job_largest(const cli_job *job, int64_t p);
/* Refuses a training that does not fit the memory, with the largest number of centers that does. Exit code. */
int cli_job_fits(const cli_job *job, int64_t p);

/* A signal that asked the program to end (0: none). The second one ends it at once. */
void cli_catch_signals(void);
/* Who reads the talk may go away: writing it then fails, and the work goes on. */
void cli_outlive_readers(void);
int cli_signal(void);
int cli_signal_code(void); /* 128 + its number; that of SIGTERM if only another rank got one */

#endif

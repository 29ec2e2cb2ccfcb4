/* SPDX-License-Identifier: BSD-3-Clause */
/* A fit from the options of a command: its data, its options, and what the library tells of it. */
#ifndef MERCER_CLI_JOB_H
#define MERCER_CLI_JOB_H

#include "data.h"
#include "terminal/timeline.h"

typedef struct cli_job {
    const cli_values *v;
    mercer_context *context;
    mercer_dataset *data, *validation, *centers; /* as opened; owned */
    mercer_fit_options options;                  /* of the fit, and of its training, until it begins */
    mercer_train_options train;
    mercer_matrix metric; /* of --metric; its data are owned */
    mercer_fitting *fitting;
    mercer_fit_report fit;    /* what is known of it by now */
    mercer_dataset_info info; /* of the samples that are trained on */
    cli_timeline timeline;    /* of the command */
} cli_job;

/* Options that can be checked without data: kernel and number of centers; how they are chosen. Exit code. */
int cli_check_job(const cli_values *v);
int cli_check_centers(const cli_values *v);

/* A job with the options of the command line. */
void cli_job_init(cli_job *job, const cli_values *v);
/* Context and data. Exit code, as of all that follow; errors are printed. */
int cli_job_open(cli_job *job);
/* The fit of these data: samples are held back, all ranks have the same. */
int cli_job_begin(cli_job *job);
/* The report as it is now. */
void cli_job_look(cli_job *job);
/* Prints why a step of the fit failed; of one that does not fit the memory, the options that would. */
int cli_job_fail(cli_job *job, mercer_status status);
void cli_job_free(cli_job *job);

/* Whether training is done in the memory of a device. */
int cli_job_on_device(const cli_job *job);
const char *cli_job_center_method(const cli_job *job);

/* Handles signals from now on: they set cli_signal, a second SIGINT ends the program. */
void cli_catch_signals(void);
/* SIGUSR1 asks for a checkpoint, not for the end. Taken once: by one of the ranks that are threads. */
void cli_keep_on_request(void);
int cli_take_request(void);
/* From now on a signal ends the program: it removes unfinished output, prints the text and exits with the code, 128 +
   the number of the signal if it is 0. grace: milliseconds that the program has to end by itself before. text NULL: a
   line that fits every command. A signal that was caught before ends it now. */
void cli_end_on_signals(int grace, int code, const char *text);
/* From now on signals are only caught: there is work to save, or the end has begun. */
void cli_end_by_itself(void);
/* Removes the files that this process is writing under temporary names; their number. For signal handlers too. */
int cli_remove_unfinished(void);
/* Who reads the talk may go away: writing it then fails, and the work goes on. */
void cli_outlive_readers(void);
/* The signal that asked the program to end; 0: none. */
int cli_signal(void);
int cli_signal_code(void); /* 128 + its number; that of SIGTERM if only another rank got one */

#endif

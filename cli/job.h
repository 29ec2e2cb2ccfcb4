/* SPDX-License-Identifier: BSD-3-Clause */
/* A fit made from the options of a command: its data, its options, and the library's report on it. */
#ifndef MERCER_CLI_JOB_H
#define MERCER_CLI_JOB_H

#include "data.h"
#include "terminal/timeline.h"

typedef struct cli_job {
    const cli_values *v;
    mercer_context *context;
    mercer_dataset *data, *validation, *centers; /* datasets as opened; owned */
    mercer_fit_options options; /* options of the fit and of its training; may be changed until the fit begins */
    mercer_train_options train;
    mercer_matrix metric; /* matrix given by --metric; owned */
    mercer_fitting *fitting;
    mercer_fit_report fit; /* latest report of the fit; includes `search` and `choice` */
    mercer_search_report search;
    mercer_center_report choice;
    mercer_fit_parts parts;
    mercer_dataset_info info; /* description of the training rows */
    cli_timeline timeline;    /* timeline of the whole command */
} cli_job;

/* Check options before the data are opened. cli_check_job checks the options of kernel, metric and search,
   cli_check_centers those of the center method. Return an exit code. */
int cli_check_job(const cli_values *v);
int cli_check_centers(const cli_values *v);

/* Initializes a job from the options of the command line. */
void cli_job_init(cli_job *job, const cli_values *v);
/* Creates the context and opens the data. This and the following functions return an exit code and print errors. */
int cli_job_open(cli_job *job);
/* Creates job->fitting for the data, which splits off validation rows. All ranks use the same split. */
int cli_job_begin(cli_job *job);
/* Updates job->fit and job->parts with the current report. */
void cli_job_look(cli_job *job);
/* Returns the value of a decision of the fit, valid until the next call on the fitting; NULL if the fit did not make
   this decision. */
const char *cli_job_decision(const cli_job *job, const char *stage, const char *name);
/* Prints why a step of the fit failed; if memory is insufficient, suggests options that would fit. */
int cli_job_fail(cli_job *job, mercer_status status);
void cli_job_free(cli_job *job);

/* Returns whether training uses the memory of a device. */
int cli_job_on_device(const cli_job *job);
const char *cli_job_center_method(const cli_job *job);

/* Installs signal handlers that set cli_signal; a second SIGINT ends the program. */
void cli_catch_signals(void);
/* cli_keep_on_request makes SIGUSR1 request a checkpoint instead of ending the program. cli_take_request returns and
   clears the request, so if ranks are threads, only one of them gets it. */
void cli_keep_on_request(void);
int cli_take_request(void);
/* From now on, a signal ends the program: the handler deletes unfinished output, prints `text` and exits with
   `code`, or with 128 + the signal number if `code` is 0. grace: milliseconds that the program gets to end by itself
   first. text NULL: a generic line. A signal that was caught earlier takes effect immediately. */
void cli_end_on_signals(int grace, int code, const char *text);
/* From now on, signals are only recorded (cli_signal), because the program has work to save or is already ending. */
void cli_end_by_itself(void);
/* Deletes the temporary files that this process is writing and returns their number. Async-signal-safe. */
int cli_remove_unfinished(void);
/* Ignores SIGPIPE: if the reader of the messages goes away, writing them fails, but the computation continues. */
void cli_outlive_readers(void);
/* Returns the signal that requested the end of the program; 0: none. */
int cli_signal(void);
int cli_signal_code(void); /* 128 + signal number; 143 (SIGTERM) if only another rank received a signal */

#endif

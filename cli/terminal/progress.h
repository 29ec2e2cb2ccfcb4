/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/terminal: all output of the program, and the handling of terminal and signals.
 *
 * error.c and text.c print lines, terminal.c the progress bar and tables, output.c writes output files, log.c writes
 * the run log, signals.c handles signals. This header declares the output of training runs: progress while training,
 * and results as text, in the log and as JSON.
 */
#ifndef MERCER_CLI_PROGRESS_H
#define MERCER_CLI_PROGRESS_H

#include "commands/evaluate.h"
#include "job.h"

typedef struct cli_watch {
    cli_job *job;
    cli_log *log;
    cli_bar bar;
    const char *unit; /* "epoch", or "step" for cg; NULL for direct, which has neither */
    int64_t epoch;    /* last completed epoch that was reported */
    int begun;        /* true after the first call; rates count from there, not from the start of a resumed run */
    int64_t first_samples;
    double first_seconds, first_passes;
    double last_logged;
    int saves_checkpoint; /* true from the first step on: a signal writes a checkpoint before the program ends */
    double search_error;  /* held-out error of the search's last step; 0: no search */
    double validation_accuracy, validation_loss; /* last known values */
    mercer_trainer *trainer;                     /* NULL until it is created */
    int64_t changes_shown;                       /* value of mercer_plan.changes at the last output */
} cli_watch;

/* Starts watching a training run whose plan has been printed. */
void cli_watch_start(cli_watch *watch, mercer_trainer *trainer, const mercer_plan *plan);
/* Prints the changes that training has made to the plan since the plan was printed: values refined in set-up, a
   replaced solver. */
void cli_watch_plan(cli_watch *watch, const mercer_plan *plan);

/* Progress callbacks; they return non-zero if a signal requested a stop. cli_watch_progress is for all stages of a fit;
   its user is a cli_watch. cli_watch_stages is for the stages other than training; its user is a cli_bar. */
int cli_watch_progress(void *user, const mercer_progress *progress);
int cli_watch_stages(void *user, const mercer_progress *progress);
/* Initializes a job from the command line and opens its data. The bar shows the progress, and signals stop the job.
   Returns an exit code. */
int cli_watch_job(cli_job *job, cli_bar *bar, const cli_values *v);

/* Logs one event: "epoch" at the end of an epoch, otherwise "progress". */
void cli_log_progress(cli_log *log, const mercer_progress *progress, int ended);

void cli_show_plan(const cli_job *job, const mercer_plan *plan, FILE *file);
json_t *cli_plan_json(const mercer_plan *plan);
void cli_log_start(cli_log *log, const cli_job *job, int resumed);
void cli_log_spectrum(cli_log *log, const mercer_trainer *trainer, const mercer_report *report);
/* Logs tables and charts of the metric that the search learned; nothing without a learned metric (learned.c). */
void cli_log_learned(cli_log *log, const cli_job *job);
/* The hyperparameter search (search_text.c): as log events (none if there was no search), and as JSON. */
void cli_log_search(cli_log *log, const cli_job *job);
json_t *cli_search_json(const cli_job *job);
json_t *cli_decisions_json(const mercer_fitting *fitting);
/* metrics may be NULL if there is no validation set. */
json_t *cli_summary_json(const mercer_report *report, const cli_metrics *metrics, double seconds);
void cli_show_summary(const cli_job *job, const mercer_report *report, const cli_metrics *metrics, double seconds);

#endif

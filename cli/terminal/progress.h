/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/terminal: what the program prints, and what the terminal and the system send to it.
 *
 * error.c and text.c print lines, terminal.c the progress bar and tables, output.c writes files that appear when they
 * are complete, log.c the run log, signals.c handles signals. This header is about a training: its progress while it
 * runs and its result, as text, in the log and as JSON.
 */
#ifndef MERCER_CLI_PROGRESS_H
#define MERCER_CLI_PROGRESS_H

#include "commands/evaluate.h"
#include "job.h"

typedef struct cli_watch {
    cli_job *job;
    cli_log *log;
    cli_bar bar;
    const char *unit; /* "epoch", or "step" of cg; NULL: direct, which has neither */
    int64_t epoch;    /* the last one that was reported as ended */
    int begun;        /* a first call was made: rates count from there, for a resumed training has a past */
    int64_t first_samples;
    double first_seconds, first_passes;
    double last_logged;
    int keeps; /* there is a checkpoint to write when a signal comes, from the first step on */
    double validation_accuracy, validation_loss; /* the last known */
    mercer_trainer *trainer;                     /* NULL until there is one */
    size_t told;                                 /* changes of the plan that were known when it was shown */
} cli_watch;

/* The training begins that was shown with this plan. */
void cli_watch_start(cli_watch *watch, mercer_trainer *trainer, const mercer_plan *plan);
/* Says what training has added to the plan since: what set-up refined, a solver that was replaced. */
void cli_watch_plan(cli_watch *watch, const mercer_plan *plan);

/* The trainer's progress callback; user is a cli_watch. Non-zero when a signal asked to stop. */
int cli_watch_progress(void *user, const mercer_progress *progress);

/* The fit's progress callback; user is a cli_bar. */
int cli_watch_centers(void *user, const char *phase, int64_t done, int64_t total, double error);
/* A job with the options of the command line, its data open, that shows on the bar what it does and ends at signals.
   Exit code. */
int cli_watch_job(cli_job *job, cli_bar *bar, const cli_values *v);

/* One event of the log: "epoch" at the end of one, else "progress". */
void cli_log_progress(cli_log *log, const mercer_progress *progress, int ended);

void cli_show_plan(const cli_job *job, const mercer_plan *plan, FILE *file);
json_t *cli_plan_json(const mercer_plan *plan);
void cli_log_start(cli_log *log, const cli_job *job, int resumed);
void cli_log_spectrum(cli_log *log, const mercer_trainer *trainer, const mercer_report *report);
/* Tables and charts of the metric that the search found; nothing if there is none (learned.c). */
void cli_log_learned(cli_log *log, const cli_job *job);
/* The hyperparameter search (search_text.c): in the log (nothing if there was none), and as JSON. */
void cli_log_search(cli_log *log, const cli_job *job);
json_t *cli_search_json(const cli_job *job);
json_t *cli_decisions_json(const mercer_fitting *fitting);
/* metrics may be NULL: there is no validation set. */
json_t *cli_summary_json(const mercer_report *report, const cli_metrics *metrics, double seconds);
void cli_show_summary(const cli_job *job, const mercer_report *report, const cli_metrics *metrics, double seconds);

#endif

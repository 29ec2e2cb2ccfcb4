/* SPDX-License-Identifier: BSD-3-Clause */
/* Time spent by a command: consecutive spans by name. Spans of the same name are merged. */
#ifndef MERCER_CLI_TIMELINE_H
#define MERCER_CLI_TIMELINE_H

#include "cli.h"

#include <jansson.h>

enum { CLI_MOST_SPANS = 40, CLI_SPAN_NAME = 48 };

typedef struct cli_span {
    char name[CLI_SPAN_NAME];
    double start, seconds; /* seconds: start of the first span of this name; duration of all its spans */
} cli_span;

typedef struct cli_timeline {
    cli_span spans[CLI_MOST_SPANS];
    size_t count, now; /* now: index of the running span */
    double start, since;
} cli_timeline;

/* Ends the running span and starts `name`. The first call starts the timeline. */
void cli_timeline_next(cli_timeline *line, const char *name);
/* Moves `seconds` of the running span to a span `name`. */
void cli_timeline_split(cli_timeline *line, const char *name, double seconds);
/* Ends the running span. */
void cli_timeline_end(cli_timeline *line);
/* Splits the span that just ended into the parts of context creation: device and libraries. */
void cli_timeline_context(cli_timeline *line, mercer_context *context);
/* Switches to the span of the current training phase; called from the progress callback of the trainer. progress->phase
   NULL: steps. */
void cli_timeline_progress(cli_timeline *line, const mercer_progress *progress);
/* Splits the span of the steps, if the solver has steps, by the times in the report. */
void cli_timeline_report(cli_timeline *line, const mercer_report *report);
/* Returns [{"name", "start", "seconds"}, ...]. */
json_t *cli_timeline_json(const cli_timeline *line);
/* Adds a row per span: name, seconds, share of the total. */
void cli_timeline_table(const cli_timeline *line, cli_table *table);

#endif

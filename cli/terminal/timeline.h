/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the seconds of a command went: spans that follow one another, by name. Those of the same name are one. */
#ifndef MERCER_CLI_TIMELINE_H
#define MERCER_CLI_TIMELINE_H

#include "cli.h"

#include <jansson.h>

enum { CLI_MOST_SPANS = 40, CLI_SPAN_NAME = 48 };

typedef struct cli_span {
    char name[CLI_SPAN_NAME];
    double start, seconds; /* of the first of that name, since the beginning; of all of them */
} cli_span;

typedef struct cli_timeline {
    cli_span spans[CLI_MOST_SPANS];
    size_t count, now; /* now: which one runs, if any does */
    double start, since;
} cli_timeline;

/* From here on it is `name`; what ran before ends. The first call is the beginning. */
void cli_timeline_next(cli_timeline *line, const char *name);
/* Of the seconds of what runs, this many were `name`. */
void cli_timeline_split(cli_timeline *line, const char *name, double seconds);
/* What runs ends. */
void cli_timeline_end(cli_timeline *line);
/* What making the context took of the span that ended: device and libraries. */
void cli_timeline_context(cli_timeline *line, mercer_context *context);
/* A training's phase, as its progress callback is told; progress->phase NULL: steps. */
void cli_timeline_progress(cli_timeline *line, const mercer_progress *progress);
/* Of the steps, if the solver makes any: what the report says they were. */
void cli_timeline_report(cli_timeline *line, const mercer_report *report);
/* [{"name", "start", "seconds"}, ...] */
json_t *cli_timeline_json(const cli_timeline *line);
/* A row for each span: name, seconds, share of all. */
void cli_timeline_table(const cli_timeline *line, cli_table *table);

#endif

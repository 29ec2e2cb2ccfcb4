/* SPDX-License-Identifier: BSD-3-Clause */
/* Timeline of a command: time spans by name. */
#include "terminal/timeline.h"

#include <math.h>
#include <string.h>

#define STEPS "steps: other" /* time of the steps outside their phases: loading batches, progress callbacks */

/* Returns the span with this name, or a new span. If the table is full, returns the last span. */
static cli_span *span_of(cli_timeline *line, const char *name)
{
    for (size_t i = 0; i < line->count; i++)
        if (strcmp(line->spans[i].name, name) == 0) return &line->spans[i];
    if (line->count == CLI_MOST_SPANS) return &line->spans[CLI_MOST_SPANS - 1];
    cli_span *span = &line->spans[line->count++];
    snprintf(span->name, sizeof span->name, "%s", name);
    span->start = cli_now() - line->start;
    span->seconds = 0;
    return span;
}

void cli_timeline_end(cli_timeline *line)
{
    double now = cli_now();
    if (line->count > 0) line->spans[line->now].seconds += now - line->since;
    line->since = now;
}

void cli_timeline_next(cli_timeline *line, const char *name)
{
    if (line->count == 0) line->start = line->since = cli_now();
    cli_timeline_end(line);
    line->now = (size_t)(span_of(line, name) - line->spans);
}

void cli_timeline_split(cli_timeline *line, const char *name, double seconds)
{
    if (!(seconds > 0) || line->count == 0) return;
    span_of(line, name)->seconds += seconds;
    line->spans[line->now].seconds -= seconds;
}

void cli_timeline_context(cli_timeline *line, mercer_context *context)
{
    mercer_context_info info = {.struct_size = sizeof info};
    if (mercer_context_query(context, &info) != MERCER_OK) return;
    /* The span that just ended is time spent waiting for the device, which starts while data are read and loads its
       libraries last. */
    const cli_span *waited = &line->spans[line->now];
    cli_timeline_split(line, "device: cuBLAS, cuSOLVER", fmin(info.library_seconds, waited->seconds));
    cli_timeline_split(line, "device: connecting", fmin(info.device_seconds, waited->seconds));
}

void cli_timeline_progress(cli_timeline *line, const mercer_progress *progress)
{
    char name[CLI_SPAN_NAME];
    const char *what = progress->phase;
    if (what == NULL || strcmp(what, "ready") == 0) {
        if (line->count > 0 && strcmp(line->spans[line->now].name, STEPS) != 0) cli_timeline_next(line, STEPS);
        return;
    }
    snprintf(name, sizeof name, "set-up: %s", what);
    cli_timeline_next(line, name);
}

void cli_timeline_report(cli_timeline *line, const mercer_report *r)
{
    cli_timeline_end(line);
    if (mercer_solver_kind_of(r->plan->solver) == MERCER_SOLVER_DIRECT)
        return; /* the progress callback has already split the time into phases */
    cli_timeline_split(line, "steps: predictions", r->forward_seconds);
    cli_timeline_split(line, "steps: gradients", r->gradient_seconds);
    cli_timeline_split(
        line, mercer_solver_kind_of(r->plan->solver) < MERCER_SOLVER_BATCHES ? "steps: solves" : "steps: projections",
        r->projection_seconds);
    cli_timeline_split(line, "steps: validation", r->validation_seconds);
}

json_t *cli_timeline_json(const cli_timeline *line)
{
    json_t *spans = json_array();
    for (size_t i = 0; i < line->count; i++)
        json_array_append_new(spans, json_pack("{ss so so}", "name", line->spans[i].name, "start",
                                               cli_json_real(line->spans[i].start), "seconds",
                                               cli_json_real(line->spans[i].seconds)));
    return spans;
}

void cli_timeline_table(const cli_timeline *line, cli_table *table)
{
    double total = 0;
    for (size_t i = 0; i < line->count; i++) total += line->spans[i].seconds;
    for (size_t i = 0; i < line->count; i++) {
        cli_table_cell(table, "%s", line->spans[i].name);
        cli_table_cell(table, "%.3f s", line->spans[i].seconds);
        cli_table_cell(table, "%.0f %%", total > 0 ? 100 * line->spans[i].seconds / total : 0);
    }
    cli_table_cell(table, "all");
    cli_table_cell(table, "%.3f s", total);
    cli_table_cell(table, "100 %%");
}

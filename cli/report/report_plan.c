/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections made of tables: the plan and its reasons, the time of each phase, the options. */
#include "report/report.h"

#include "report/svg.h"

#include <mercer/advanced.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The plan ------------------------------------------------------------------------------------------------ */

typedef enum plan_kind { TEXT, COUNT, NUMBER, YES, BYTES, FLOPS, SECONDS } plan_kind;

typedef struct plan_row {
    const char *field, *name;
    plan_kind kind;
} plan_row;

static const plan_row plan_rows[] = {{"solver", "Solver", TEXT},
                                     {"projector", "Projector", TEXT},
                                     {"epochs", "Epochs", COUNT},
                                     {"batch", "Batch size m", COUNT},
                                     {"nystrom", "Preconditioner samples s", COUNT},
                                     {"eigenpairs", "Eigenpairs q", COUNT},
                                     {"period", "Batches between projections T", COUNT},
                                     {"projector_nystrom", "Projector: sample", COUNT},
                                     {"projector_eigenpairs", "Projector: eigenpairs", COUNT},
                                     {"projector_passes", "Projector: maximum passes", COUNT},
                                     {"projector_block", "Projector: centers per block", COUNT},
                                     {"step_factor", "Step factor γ", NUMBER},
                                     {"lambda", "Ridge λ", NUMBER},
                                     {"average", "Later iterates averaged", YES},
                                     {"decay", "Step decays", YES},
                                     {"carry", "Projection residual carried", YES},
                                     {"cache_data", "K(X, Z) cached", YES},
                                     {"cache_centers", "K(Z, Z) or its factor cached", YES},
                                     {"precision", "Precision", TEXT},
                                     {"bytes", "Planned memory", BYTES},
                                     {"flops", "Estimated work", FLOPS},
                                     {"seconds", "Estimated time", SECONDS}};

/* Returns whether a field applies only to solvers that iterate over batches. */
static bool is_iteration_field(const char *field)
{
    static const char *const names[] = {"projector", "epochs", "batch", "average", "decay", "carry"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(field, names[i]) == 0) return true;
    return false;
}

/* Returns whether to show a row. A size of 0 belongs to a part that this plan does not have. An exact projector has no
   sizes. */
static bool is_shown(const plan_row *row, const json_t *plan)
{
    mercer_solver_kind kind = mercer_solver_kind_of(report_text(plan, "solver"));
    bool once = kind == MERCER_SOLVER_DIRECT || kind == MERCER_SOLVER_STEPS;
    if (once && is_iteration_field(row->field)) return false;
    const json_t *value = json_object_get(plan, row->field);
    const char *projector = report_text(plan, "projector");
    bool sized = projector && strcmp(projector, "exact") != 0 && strcmp(projector, "none") != 0;
    if (strncmp(row->field, "projector_", 10) == 0 && !sized) return false;
    if (!value || json_is_null(value)) return false;
    if (row->kind == COUNT || row->kind == NUMBER) return json_number_value(value) != 0;
    return row->kind == TEXT || row->kind == YES || json_is_number(value);
}

static void write_plan_value(page *out, const plan_row *row, const json_t *value)
{
    double number = report_value(value);
    switch (row->kind) {
        case TEXT: page_escape(out, json_string_value(value)); break;
        case COUNT: page_count(out, number); break;
        case NUMBER: page_number(out, number, 3); break;
        case YES: page_add(out, json_is_true(value) || number > 0 ? "yes" : "no"); break;
        case BYTES: page_bytes(out, number); break;
        case FLOPS: page_flops(out, number); break;
        case SECONDS: page_seconds(out, number); break;
    }
}

static void write_plan_table(page *out, const json_t *plan)
{
    page_add(out, "<div><table class=\"full\"><thead><tr><th scope=\"col\">Choice</th><th scope=\"col\" class=\"n\">"
                  "Value</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < sizeof plan_rows / sizeof *plan_rows; i++) {
        if (!is_shown(&plan_rows[i], plan)) continue;
        page_print(out, "<tr><th scope=\"row\">%s</th><td class=\"n\">", plan_rows[i].name);
        write_plan_value(out, &plan_rows[i], json_object_get(plan, plan_rows[i].field));
        page_add(out, "</td></tr>\n");
    }
    page_add(out, "</tbody></table></div>\n");
}

/* Adds the planner's explanation as a list, one item per line. */
static void write_plan_reasons(page *out, const char *text)
{
    page_add(out, "<div><h3>Reasons</h3>\n<ul class=\"words\">\n");
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length > 0) {
            page_add(out, "<li>");
            page_escape_part(out, text, length);
            page_add(out, "</li>\n");
        }
        text += length + (text[length] == '\n');
    }
    page_add(out, "</ul></div>\n");
}

void report_plan(report_page *self, const report_run *run)
{
    const char *text = report_text(run->plan, "text");
    if (!run->plan) return;
    report_open(self, "plan", "Plan", "The choices of the planner before training, with reasons.", "grid2 plan");
    write_plan_table(&self->body, run->plan);
    if (text && *text) write_plan_reasons(&self->body, text);
    report_close(self);
}

/* ---- Phases -------------------------------------------------------------------------------------------------- */

enum { MOST_PHASES = 16, MOST_SPANS = 64 };

static const char *phase_words(const char *name)
{
    static const char *const words[][2] = {{"setup", "Set-up: sample, eigensystem, factors"},
                                           {"forward", "Predictions on batches"},
                                           {"gradient", "Gradients and steps"},
                                           {"projection", "Projections"},
                                           {"solve", "Solving the normal equations"},
                                           {"validation", "Validation"},
                                           {"centers", "Choice of centers"},
                                           {"reading", "Reading data"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i][0]) == 0) return words[i][1];
    return name;
}

static void write_phase_table(page *out, const char *const *names, const double *values, size_t count, double total)
{
    page_add(out, "<table class=\"full\"><thead><tr><th scope=\"col\">Phase</th><th scope=\"col\" class=\"n\">Time</th>"
                  "<th scope=\"col\" class=\"n\">Share</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < count; i++) {
        page_print(out, "<tr><th scope=\"row\"><span class=\"swatch c%d\"></span>%s</th><td class=\"n\">",
                   (int)(i % SVG_COLORS), names[i]);
        page_seconds(out, values[i]);
        page_print(out, "</td><td class=\"n\">%.1A</td></tr>\n", values[i] / total);
    }
    page_add(out, "</tbody></table>\n");
}

void report_phases(report_page *self, const report_run *run)
{
    const char *names[MOST_PHASES], *name;
    double values[MOST_PHASES], total = 0, seconds = report_number(run->summary, "seconds");
    size_t count = 0;
    json_t *value, *phases = json_object_get(run->summary, "phases");
    json_object_foreach(phases, name, value)
    {
        double time = report_value(value);
        if (!isfinite(time) || !(time > 0) || count == MOST_PHASES - 1) continue;
        names[count] = phase_words(name);
        values[count++] = time;
        total += time;
    }
    if (count == 0) return;
    if (seconds > 1.002 * total) { /* training time outside all phases */
        names[count] = "Other: data, centers, files";
        values[count++] = seconds - total;
        total = seconds;
    }
    report_open(self, "phases", "Time", "Training time per phase.", NULL);
    page_add(&self->body, "<figure>\n");
    svg_stacked_bar(&self->body, "Time per phase", names, values, count);
    write_phase_table(&self->body, names, values, count, total);
    page_add(&self->body, "</figure>\n");
    report_close(self);
}

/* Adds the timeline of the command: the spans as a bar and as a table. */
void report_timeline(report_page *self, const report_run *run)
{
    const char *names[MOST_SPANS];
    double values[MOST_SPANS], total = 0;
    size_t count = 0, i;
    json_t *span, *spans = json_object_get(run->summary, "timeline");
    json_array_foreach(spans, i, span)
    {
        double time = report_number(span, "seconds");
        const char *name = report_text(span, "name");
        if (!name || !isfinite(time) || !(time > 0) || count == MOST_SPANS) continue;
        names[count] = name;
        values[count++] = time;
        total += time;
    }
    if (count == 0) return;
    report_open(self, "timeline", "Timeline", "Phases of the command in order.", NULL);
    page_add(&self->body, "<figure>\n");
    svg_stacked_bar(&self->body, "Seconds of the command", names, values, count);
    write_phase_table(&self->body, names, values, count, total);
    page_add(&self->body, "</figure>\n");
    report_close(self);
}

/* ---- Options ------------------------------------------------------------------------------------------------- */

static bool is_automatic(const json_t *value)
{
    return json_is_string(value) && strcmp(json_string_value(value), "auto") == 0;
}

static void option_value(page *out, const json_t *value)
{
    if (json_is_string(value)) {
        page_escape(out, json_string_value(value));
    } else if (json_is_number(value)) {
        page_print(out, "%.15g", json_number_value(value));
    } else if (json_is_boolean(value)) {
        page_add(out, json_is_true(value) ? "yes" : "no");
    } else {
        CLI_OWNED(cli_drop) char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        page_escape(out, text);
    }
}

/* Adds a sentence with the names of the options that were left at "auto". */
static void write_automatic_options(page *out, json_t *config)
{
    const char *name;
    json_t *value;
    int count = 0;
    json_object_foreach(config, name, value)
    {
        if (!is_automatic(value)) continue;
        page_add(out, count++ == 0 ? "<p class=\"soft\">Chosen automatically (<code>auto</code>): " : ", ");
        page_escape(out, name);
    }
    if (count > 0) page_add(out, ".</p>\n");
}

static void write_option_table(page *out, json_t *config)
{
    const char *name;
    json_t *value;
    page_add(out, "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Option</th><th scope=\"col\">Value</th>"
                  "</tr></thead><tbody>\n");
    json_object_foreach(config, name, value)
    {
        if (json_is_null(value) || is_automatic(value)) continue;
        page_print(out, "<tr><th scope=\"row\">%s</th><td><code>", name);
        option_value(out, value);
        page_add(out, "</code></td></tr>\n");
    }
    page_add(out, "</tbody></table></div>\n");
}

void report_options(report_page *self, const report_run *run)
{
    const char *command = report_text(run->start, "command");
    json_t *config = json_object_get(run->start, "config");
    page *out = &self->body;
    if (json_object_size(config) == 0 && !command) return;
    report_open(self, "options", "Options", "Options of the command.", NULL);
    if (command) {
        page_add(out, strncmp(command, "mercer", 6) == 0 ? "<p><code>" : "<p><code>mercer ");
        page_escape(out, command);
        page_add(out, "</code></p>\n");
    }
    if (json_object_size(config) > 0) {
        write_option_table(out, config);
        write_automatic_options(out, config);
    }
    report_close(self);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the log of a run: one JSON object per line, {"event": name, ...}.
 *
 * A log may contain several runs; the last one is used. A resumed run continues the run before it, and replaces the
 * events after the checkpoint from which it was resumed. Unknown events and fields are ignored, for forward
 * compatibility. A line that is not JSON is skipped if it is the last line of the log, or the last line before a run
 * starts or resumes: the earlier run was killed while writing the line. Anywhere else such a line is an error, because
 * its content is unknown.
 */
#include "report/report.h"

#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double report_value(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

double *report_values(const json_t *array, size_t count)
{
    double *values = cli_allocate((int64_t)count, sizeof *values);
    for (size_t i = 0; i < count; i++) values[i] = report_value(json_array_get(array, i));
    return values;
}

double report_number(const json_t *object, const char *name)
{
    return report_value(json_object_get(object, name));
}

const char *report_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* ---- Events -------------------------------------------------------------------------------------------------- */

static void drop_run(report_run *run)
{
    json_t **events[] = {&run->start,  &run->plan,        &run->spectrum, &run->confusion,
                         &run->curves, &run->predictions, &run->summary,  &run->extras};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        json_decref(*events[i]);
        *events[i] = NULL;
    }
    run->count = 0;
}

void report_free(report_run *run)
{
    drop_run(run);
    free(run->points);
    *run = (report_run){0};
}

static void add_point(report_run *run, const json_t *event, bool inside)
{
    run->points = cli_grow(run->points, (int64_t)run->count, &run->capacity, sizeof *run->points);
    double epoch = report_number(event, "epoch");
    while (run->resumed && run->count > 0 && run->points[run->count - 1].epoch > epoch) run->count--;
    run->resumed = false;
    run->points[run->count++] = (report_point){.epoch = epoch,
                                               .seconds = report_number(event, "seconds"),
                                               .train_loss = report_number(event, "train_loss"),
                                               .train_accuracy = report_number(event, "train_accuracy"),
                                               .validation_loss = report_number(event, "validation_loss"),
                                               .validation_accuracy = report_number(event, "validation_accuracy"),
                                               .projection_residual = report_number(event, "projection_residual"),
                                               .inside = inside};
}

typedef enum beginning { NEITHER, STARTS, RESUMES } beginning;

static beginning run_beginning(const char *name, const json_t *event)
{
    if (strcmp(name, "resume") == 0) return RESUMES;
    if (strcmp(name, "start") != 0) return NEITHER;
    return json_is_true(json_object_get(event, "resumed")) ? RESUMES : STARTS;
}

/* Stores an event. An event that should occur once per run replaces an earlier event of the same name. */
static void store_event(report_run *run, const char *name, json_t *event, size_t line)
{
    struct {
        const char *name;
        json_t **place;
    } const single[] = {{"start", &run->start},         {"plan", &run->plan},     {"spectrum", &run->spectrum},
                        {"confusion", &run->confusion}, {"curves", &run->curves}, {"predictions", &run->predictions},
                        {"summary", &run->summary}};
    static const char *const extras[] = {"table", "chart", "images"};
    bool resumes = run_beginning(name, event) == RESUMES;
    if (run_beginning(name, event) == STARTS) {
        drop_run(run);
        run->runs++;
        run->first = line;
    }
    run->resumed = run->resumed || resumes;
    if (strcmp(name, "progress") == 0 || strcmp(name, "epoch") == 0) add_point(run, event, *name == 'p');
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        if (strcmp(name, single[i].name) != 0) continue;
        json_decref(*single[i].place);
        *single[i].place = json_incref(event);
    }
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        if (strcmp(name, extras[i]) != 0) continue;
        if (!run->extras) run->extras = json_array();
        json_array_append(run->extras, event);
    }
}

/* ---- Lines --------------------------------------------------------------------------------------------------- */

/* Reader state: the position, and a malformed line until the next line shows whether the malformed line is an error. */
typedef struct reader {
    const char *path;
    size_t line;      /* number of the current line */
    size_t torn_line; /* number of the malformed line; 0: none */
    char why[JSON_ERROR_TEXT_LENGTH];
} reader;

static int report_malformed_line(const reader *self)
{
    return cli_error(CLI_DATA, "%s: line %zu: not a JSON object (%s); remove the line or repeat the run", self->path,
                     self->torn_line, self->why);
}

/* Processes one line, without its line break. Returns an exit code. */
static int process_line(reader *self, report_run *run, const char *line, size_t length)
{
    json_error_t error;
    if (strspn(line, " \t\r") == length) return CLI_OK;
    json_auto_t *event = json_loadb(line, length, JSON_DECODE_INT_AS_REAL, &error);
    const char *name = report_text(event, "event");
    if (self->torn_line && !(name && run_beginning(name, event))) return report_malformed_line(self);
    self->torn_line = 0;
    if (!event) {
        self->torn_line = self->line;
        memcpy(self->why, error.text, sizeof self->why);
        return CLI_OK;
    }
    if (!name)
        return cli_error(CLI_DATA, "%s: line %zu: has no \"event\"; give a log of mercer train --log", self->path,
                         self->line);
    store_event(run, name, event, self->line);
    return CLI_OK;
}

static int read_lines(report_run *run, const char *path, char *text, size_t length)
{
    reader self = {.path = path};
    int code = CLI_OK;
    for (char *line = text, *end = text + length; code == CLI_OK && line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL) stop = end;
        *stop = '\0'; /* the text is followed by a writable byte */
        self.line++;
        code = process_line(&self, run, line, (size_t)(stop - line));
        line = stop + 1;
    }
    run->torn = self.torn_line > 0;
    return code;
}

static bool has_events(const report_run *run)
{
    return run->start || run->plan || run->spectrum || run->confusion || run->curves || run->predictions ||
           run->summary || run->extras || run->count > 0;
}

int report_read(report_run *out, const char *path)
{
    *out = (report_run){.first = 1};
    char *text;
    size_t length;
    int code = cli_read_file(path, &text, &length, NULL);
    if (code == CLI_OK) code = read_lines(out, path, text, length);
    free(text);
    if (code == CLI_OK && !has_events(out))
        code = cli_error(CLI_DATA, "%s: has no events of a run; give a log of mercer train --log", path);
    return code;
}

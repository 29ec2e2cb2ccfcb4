/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/report: `mercer report`, an HTML page about a training run, made from its run log.
 *
 * report_log.c reads the log; every other report_*.c writes one section of the page: headline, curves, plan, confusion
 * matrix and class probabilities, predictions. page.h writes HTML, svg.h draws charts. The page is one file without
 * scripts and without links to other files.
 */
#ifndef MERCER_CLI_REPORT_H
#define MERCER_CLI_REPORT_H

#include "cli.h"
#include "report/page.h"
#include "report/svg.h"

#include <stdbool.h>

/* State of training at one moment; NaN where the log has no value. */
typedef struct report_point {
    double epoch, seconds;
    double train_loss, train_accuracy, validation_loss, validation_accuracy, projection_residual;
    bool inside; /* true if logged during an epoch, not at its end */
} report_point;

/* The last run of a log. Events that are missing from the log are NULL. */
typedef struct report_run {
    json_t *start, *plan, *spectrum, *confusion, *curves, *predictions, *summary;
    json_t *extras;       /* events "table", "chart" and "images", in log order */
    report_point *points; /* (count) in log order */
    size_t count;
    int64_t capacity;
    size_t runs;  /* number of runs in the log */
    size_t first; /* line number where the run starts */
    bool torn;    /* true if the last line is incomplete and was left out */
    bool resumed; /* true if the run was resumed and its next point may be earlier than the last point in `points` */
} report_run;

/* Reads a log. Returns an exit code and prints errors; release with report_free in either case. */
int report_read(report_run *out, const char *path);
void report_free(report_run *run);

/* Writes the page of a log as one self-contained HTML file. Returns an exit code and prints errors. */
int report_write(const char *log_path, const char *html_path);

/* A page under construction: its sections and the links to them. */
typedef struct report_page {
    page header, body, links;
    int sections;
    bool boxed; /* true if the current section has a box */
} report_page;
/* Starts a section. Each line of `lead` is a paragraph; NULL: none. class: CSS class of a box around the contents,
   such as "grid2" (side by side); NULL: no box. */
void report_open(report_page *self, const char *id, const char *title, const char *lead, const char *class);
void report_close(report_page *self);
/* Adds a chart with legend and table of values, and with its title if `caption`. Adds only the table if the chart is
   not worth drawing, and nothing if the chart has no points (report_curves.c). */
void report_chart(page *out, const svg_chart *chart, bool caption);

double report_value(const json_t *value);                 /* NaN if it is not a number */
double *report_values(const json_t *array, size_t count); /* first `count` values; release with free (report_log.c) */
/* Return a field of an event as a number or text; NaN or NULL if the object is NULL or has no such field of this
   type. */
double report_number(const json_t *object, const char *name);
const char *report_text(const json_t *object, const char *name);

/* Sections. Each adds nothing if the log has no data for it. */
void report_headline(report_page *self, const report_run *run);    /* report_headline.c */
void report_plan(report_page *self, const report_run *run);        /* report_plan.c */
void report_phases(report_page *self, const report_run *run);      /* report_plan.c */
void report_timeline(report_page *self, const report_run *run);    /* report_plan.c */
void report_options(report_page *self, const report_run *run);     /* report_plan.c */
void report_curves(report_page *self, const report_run *run);      /* report_curves.c */
void report_spectrum(report_page *self, const report_run *run);    /* report_curves.c */
void report_residuals(report_page *self, const report_run *run);   /* report_curves.c */
void report_confusion(report_page *self, const report_run *run);   /* report_confusion.c */
void report_quality(report_page *self, const report_run *run);     /* report_quality.c */
void report_predictions(report_page *self, const report_run *run); /* report_predictions.c */
void report_extras(report_page *self, const report_run *run);      /* report_extras.c */

/* The style sheet, in pieces, NULL-terminated (report_style.c). */
extern const char *const report_style[];

#endif

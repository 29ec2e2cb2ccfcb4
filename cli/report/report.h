/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/report: `mercer report`, an HTML page about a training, made from its run log.
 *
 * report_log.c reads the log; every other report_*.c writes one section of the page: headline, curves, plan, confusion
 * and probabilities of classes, predictions. page.h writes HTML, svg.h draws charts. The page is one file
 * without scripts and without links to other files.
 */
#ifndef MERCER_CLI_REPORT_H
#define MERCER_CLI_REPORT_H

#include "cli.h"
#include "report/page.h"
#include "report/svg.h"

#include <stdbool.h>

/* How training stood at one moment; NaN where the log does not say. */
typedef struct report_point {
    double epoch, seconds;
    double train_loss, train_accuracy, validation_loss, validation_accuracy, projection_residual;
    bool inside; /* an epoch, not at its end */
} report_point;

/* The last run of a log. Events that the log does not have are NULL. */
typedef struct report_run {
    json_t *start, *plan, *spectrum, *confusion, *curves, *predictions, *summary;
    json_t *extras;       /* array: the events table, chart and images, in their order */
    report_point *points; /* (count), in the order of the log */
    size_t count;
    int64_t room;
    size_t runs;  /* runs in the log */
    size_t first; /* line the run begins at */
    bool torn;    /* the last line is incomplete and was left out */
    bool resumed; /* the next point may go back behind the last */
} report_run;

/* Reads a log. Exit code, with the error printed; release with report_free either way. */
int report_read(report_run *out, const char *path);
void report_free(report_run *run);

/* Makes the page of a log, one self-contained HTML file. Exit code, with the error printed. */
int report_write(const char *log_path, const char *html_path);

/* A page under way: its sections, and the links to them. */
typedef struct report_page {
    page header, body, links;
    int sections;
    bool boxed; /* the section under way has a box */
} report_page;
/* Each line of the lead is a paragraph; NULL: none. class: that of a box around what follows, such as "grid2", side by
   side; NULL: no box. */
void report_open(report_page *self, const char *id, const char *title, const char *lead, const char *class);
void report_close(report_page *self);
/* A chart with its key and numbers, and its title as a caption; the numbers alone if there is nothing to compare,
   nothing if it has no points (report_curves.c). */
void report_chart(page *out, const svg_chart *chart, bool caption);

double report_value(const json_t *value);                 /* NaN if it is no number */
double *report_values(const json_t *array, size_t count); /* the first ones; released with free (report_log.c) */
/* Fields of an event: NaN or NULL if the object is NULL, or has no such field of this type. */
double report_number(const json_t *object, const char *name);
const char *report_text(const json_t *object, const char *name);

/* Sections. Each leaves nothing behind when the log has nothing for it. */
void report_headline(report_page *self, const report_run *run);    /* report_headline.c */
void report_plan(report_page *self, const report_run *run);        /* report_plan.c */
void report_phases(report_page *self, const report_run *run);      /* report_plan.c */
void report_timeline(report_page *self, const report_run *run);    /* the same */
void report_options(report_page *self, const report_run *run);     /* report_plan.c */
void report_curves(report_page *self, const report_run *run);      /* report_curves.c */
void report_spectrum(report_page *self, const report_run *run);    /* report_curves.c */
void report_residuals(report_page *self, const report_run *run);   /* report_curves.c */
void report_confusion(report_page *self, const report_run *run);   /* report_confusion.c */
void report_quality(report_page *self, const report_run *run);     /* report_quality.c */
void report_predictions(report_page *self, const report_run *run); /* report_predictions.c */
void report_extras(report_page *self, const report_run *run);      /* report_extras.c */

/* The style sheet, in pieces, NULL behind the last (report_style.c). */
extern const char *const report_style[];

#endif

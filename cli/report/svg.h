/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Charts as inline SVG. Colors, fonts and line widths come from the page's style sheet (classes c0 .. c5 for series,
 * grid, axis, tick), so that one drawing works in light mode, dark mode and print. Series also differ in dashes and
 * markers, not only in color.
 */
#ifndef MERCER_CLI_SVG_H
#define MERCER_CLI_SVG_H

#include "report/page.h"

#include <stdbool.h>
#include <stddef.h>

enum { SVG_COLORS = 6, SVG_MOST_POINTS = 500, SVG_MOST_DOTS = 2000 };

typedef struct svg_series {
    const char *name;
    const double *x, *y; /* (count) pairs that are not finite, or not positive on a log axis, are left out */
    size_t count;
    bool dotted; /* dotted line in the color of the series before: the same quantity on other data */
} svg_series;

typedef struct svg_chart {
    const char *title;             /* for screen readers; the caption is added by the page */
    const char *x_label, *y_label; /* with units */
    bool log_x, log_y;             /* logarithmic axis; without positive values the chart is empty */
    bool percent;                  /* y values are fractions, ticks show percent */
    bool x_from_zero, y_from_zero; /* a linear axis of positive values starts at 0 */
    bool x_whole;                  /* x values are integers, and so are the ticks of a linear axis */
    bool dots;                     /* scatter plot instead of lines */
    bool diagonal;                 /* both axes share one range, and the line y = x is drawn */
    bool zero;                     /* the line y = 0 is drawn and included in the range */
    bool tall;                     /* about square instead of wide */
    const svg_series *series;
    size_t count;
} svg_chart;

/* Returns a line chart with linear axes; the caller sets other fields. */
svg_chart svg_chart_of(const char *title, const char *x_label, const char *y_label, const svg_series *series,
                       size_t count);
/* Returns the number of points of the chart that can be drawn. */
size_t svg_points(const svg_chart *chart);
/* Returns whether the chart is worth drawing. A chart with one point per series is not: the table shows the same. */
bool svg_worth_drawing(const svg_chart *chart);
/* Draws lines or dots with axes, ticks and grid. Draws at most SVG_MOST_POINTS points per line, or SVG_MOST_DOTS
   dots, evenly spaced over the series. */
void svg_line_chart(page *out, const svg_chart *chart);
/* Adds the legend of a chart as an HTML list that wraps; nothing for a single series. */
void svg_legend(page *out, const svg_chart *chart);

/* Draws one horizontal bar divided into `count` parts in proportion to their positive values. */
void svg_stacked_bar(page *out, const char *title, const char *const *names, const double *values, size_t count);

/* Select at most `most` of `count` points, including the first and the last: svg_kept returns their number,
   svg_kept_index the index of the k-th one, k = 0 ... */
size_t svg_kept(size_t count, size_t most);
size_t svg_kept_index(size_t k, size_t count, size_t most);

#endif

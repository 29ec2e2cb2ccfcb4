/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Charts as inline SVG. Colours, fonts and line widths come from the page's style sheet (classes c0 .. c5 for series,
 * grid, axis, tick), so that the same drawing serves light, dark and paper. Series differ in dashes and markers too,
 * not in colour alone.
 */
#ifndef MERCER_CLI_SVG_H
#define MERCER_CLI_SVG_H

#include "report/page.h"

#include <stdbool.h>
#include <stddef.h>

enum { SVG_COLOURS = 6, SVG_MOST_POINTS = 500, SVG_MOST_DOTS = 2000 };

typedef struct svg_series {
    const char *name;
    const double *x, *y; /* (count), pairs that are not finite, or not positive on a log axis, are left out */
    size_t count;
    bool dotted; /* in the colour of the last one before it that is not: what the same thing was elsewhere */
} svg_series;

typedef struct svg_chart {
    const char *title;             /* for those who do not see it; the caption is the page's */
    const char *x_label, *y_label; /* with their units */
    bool log_x, log_y;             /* a log axis without a positive value shows an empty chart */
    bool percent;                  /* y are shares: ticks in percent */
    bool x_from_zero, y_from_zero; /* a linear axis of positive values begins at 0 */
    bool x_whole;                  /* x are whole numbers: ticks of a linear axis too */
    bool dots;                     /* points, not lines */
    bool diagonal;                 /* both axes have one range, and the line y = x is drawn */
    bool zero;                     /* the line y = 0 is drawn, and in the range */
    bool tall;                     /* about square */
    const svg_series *series;
    size_t count;
} svg_chart;

/* One with lines and linear axes; the rest is set. */
svg_chart svg_chart_of(const char *title, const char *x_label, const char *y_label, const svg_series *series,
                       size_t count);
/* The number of points of the chart that can be drawn. */
size_t svg_points(const svg_chart *chart);
/* Whether it is worth drawing: a series of one point says no more than its number. */
bool svg_worth_drawing(const svg_chart *chart);
/* Lines, or dots, with axes, ticks and grid. At most SVG_MOST_POINTS points of a line, or SVG_MOST_DOTS dots, are
   drawn, spread over all of the series. */
void svg_line_chart(page *out, const svg_chart *chart);
/* The key to a chart's lines, as an HTML list that breaks where it must; nothing for a single series. */
void svg_legend(page *out, const svg_chart *chart);

/* One horizontal bar, parts (count) beside each other in proportion to their values > 0. */
void svg_stacked_bar(page *out, const char *title, const char *const *names, const double *values, size_t count);

/* Which of `count` points to keep so that at most `most` remain, first and last among them: the k-th kept, 0 .. */
size_t svg_kept(size_t count, size_t most);
size_t svg_kept_index(size_t k, size_t count, size_t most);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Line charts, scatter charts and a stacked bar as SVG.
 *
 * An axis maps its range [low, high], or [log10 low, log10 high], linearly to pixels. Ticks of a linear axis are
 * multiples of 1, 2 or 5 times a power of ten, chosen to give about five ticks. Ticks of a log axis are powers of ten,
 * and if the range is small also 2 and 5 times a power of ten. Coordinates are rounded to a tenth; points that are not
 * finite are left out.
 */
#include "report/svg.h"

#include <math.h>

enum { WIDTH = 520, HEIGHT = 290, TALL = 430, LEFT = 64, RIGHT = 14, TOP = 12, BOTTOM = 46, MOST_TICKS = 24 };

typedef struct axis {
    bool log;
    double low, high;     /* range of the values, or of their log10 if log */
    double begin, extent; /* pixel position of `low`; length of the axis in pixels, < 0 if it points up */
    double ticks[MOST_TICKS];
    int count;
    double step; /* distance between ticks of a linear axis */
} axis;

svg_chart svg_chart_of(const char *title, const char *x_label, const char *y_label, const svg_series *series,
                       size_t count)
{
    return (svg_chart){.title = title, .x_label = x_label, .y_label = y_label, .series = series, .count = count};
}

/* ---- Points -------------------------------------------------------------------------------------------------- */

size_t svg_kept(size_t count, size_t most)
{
    return count < most ? count : most;
}

size_t svg_kept_index(size_t k, size_t count, size_t most)
{
    if (count <= most || most < 2) return k;
    return (size_t)((double)k * (double)(count - 1) / (double)(most - 1) + 0.5);
}

static bool is_drawable(const svg_chart *chart, double x, double y)
{
    return isfinite(x) && isfinite(y) && (x > 0 || !chart->log_x) && (y > 0 || !chart->log_y);
}

static size_t series_points(const svg_chart *chart, const svg_series *series)
{
    size_t count = 0;
    for (size_t i = 0; i < series->count; i++) count += is_drawable(chart, series->x[i], series->y[i]);
    return count;
}

size_t svg_points(const svg_chart *chart)
{
    size_t count = 0;
    for (size_t k = 0; k < chart->count; k++) count += series_points(chart, &chart->series[k]);
    return count;
}

bool svg_worth_drawing(const svg_chart *chart)
{
    for (size_t k = 0; k < chart->count; k++)
        if (series_points(chart, &chart->series[k]) > 1) return true;
    return false;
}

/* ---- Axes ---------------------------------------------------------------------------------------------------- */

static double scaled_value(const axis *self, double value)
{
    return self->log ? log10(value) : value;
}

static double place_value(const axis *self, double value)
{
    double pixels = self->begin + self->extent * ((scaled_value(self, value) - self->low) / (self->high - self->low));
    return isfinite(pixels) ? fmax(-WIDTH, fmin(2 * WIDTH, pixels)) : self->begin;
}

/* Sets the range of an axis to the range of all drawable points; returns false if the chart has no drawable points. */
static bool find_range(const svg_chart *chart, bool of_y, axis *out)
{
    out->low = INFINITY, out->high = -INFINITY;
    for (size_t k = 0; k < chart->count; k++) {
        const svg_series *series = &chart->series[k];
        for (size_t i = 0; i < series->count; i++) {
            if (!is_drawable(chart, series->x[i], series->y[i])) continue;
            double value = scaled_value(out, of_y ? series->y[i] : series->x[i]);
            out->low = fmin(out->low, value), out->high = fmax(out->high, value);
        }
    }
    return out->low <= out->high;
}

static void linear_ticks(axis *self, int wanted, bool whole)
{
    double rough = (self->high - self->low) / wanted;
    double power = pow(10, floor(log10(rough)));
    double step = rough <= power ? power : rough <= 2 * power ? 2 * power : rough <= 5 * power ? 5 * power : 10 * power;
    if (whole && step < 1) step = 1;
    self->step = step;
    self->count = 0;
    double first = ceil(self->low / step - 1e-9);
    for (int i = 0; i < MOST_TICKS && (first + i) * step <= self->high + 1e-9 * step; i++)
        self->ticks[self->count++] = (first + i) * step;
}

static void log_ticks(axis *self)
{
    static const double parts[] = {1, 2, 5};
    double decades = self->high - self->low;
    int used = decades <= 2.5 ? 3 : 1;
    int stride = (int)fmax(1, ceil(decades / 7)), first = (int)floor(self->low / stride);
    self->count = 0;
    for (int k = first; k * stride <= self->high; k++)
        for (int i = 0; i < used && self->count < MOST_TICKS; i++) {
            double at = k * stride + log10(parts[i]);
            if (at >= self->low - 1e-9 && at <= self->high + 1e-9) self->ticks[self->count++] = pow(10, at);
        }
}

/* Widens the range, so that lines do not touch the frame and the axis has at least a few ticks, then places the
   ticks. */
static void finish_axis(axis *self, bool of_y, bool from_zero, bool shares, bool whole)
{
    if (self->log) {
        double wanting = of_y ? 0.5 - (self->high - self->low) : 0.3 - (self->high - self->low);
        if (wanting > 0) self->low -= wanting / 2, self->high += wanting / 2;
        double margin = of_y ? 0.04 * (self->high - self->low) : 0.02 * (self->high - self->low);
        self->low -= margin, self->high += margin;
        log_ticks(self);
        return;
    }
    if (from_zero && self->low > 0) self->low = 0;
    double least = fmax(1e-6 * fmax(fabs(self->low), fabs(self->high)), 1e-12);
    double wanting = self->high - self->low < least ? fmax(fabs(self->low) * 0.1, least) : 0;
    bool at_zero = self->low == 0;
    self->low -= wanting, self->high += wanting;
    if (of_y) {
        double margin = 0.06 * (self->high - self->low), top = self->high;
        if (!at_zero) self->low -= margin;
        self->high += margin;
        if (shares && top <= 1) self->high = fmin(self->high, 1); /* fractions do not exceed 100 % */
    }
    linear_ticks(self, of_y ? 5 : 6, whole);
}

/* ---- Labels -------------------------------------------------------------------------------------------------- */

/* Writes a value far from 1 on a log axis as a power of ten, or 2 or 5 times one. Returns false for other values. */
static bool power_label(page *out, const axis *self, double value)
{
    if (!self->log || (value > 0.0009 && value < 1.1e9)) return false;
    double power = floor(log10(value) + 1e-9), times = round(value / pow(10, power));
    if (times > 1) page_print(out, "%.0f·", times);
    page_print(out, "10<tspan dy=\"-4\" font-size=\"8\">%s%.0f</tspan>", power < 0 ? "−" : "", fabs(power));
    return true;
}

static void tick_label(page *out, const axis *self, double value, bool percent)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    if (value > 0 && power_label(out, self, value)) return;
    double size = percent ? 100 * fabs(value) : fabs(value), step = percent ? 100 * self->step : self->step;
    int unit = 0;
    if (!percent && size < 1e15)
        while (unit < 4 && size >= 1000) size /= 1000, step /= 1000, unit++;
    if (value < 0 && size > 0) page_add(out, "−");
    if (size == 0) {
        page_add(out, "0");
    } else if (size < 1e-4 || size >= 1e5) {
        page_print(out, "%.3g", size);
    } else if (self->log || unit > 0) {
        page_print(out, "%g%s", round(size * 1e6) / 1e6, units[unit]);
    } else {
        int decimals = (int)-floor(log10(step) + 1e-9);
        page_print(out, "%.*f", decimals > 0 ? decimals : 0, size);
    }
    if (percent) page_add(out, "%");
}

static void draw_axes(page *out, const svg_chart *chart, const axis *x, const axis *y)
{
    double bottom = y->begin, right = WIDTH - RIGHT;
    for (int i = 0; i < y->count; i++) {
        double at = place_value(y, y->ticks[i]);
        page_print(out, "<path class=\"grid\" d=\"M%d %.1fH%.1f\"/>", LEFT, at, right);
        page_print(out, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, at + 4);
        tick_label(out, y, y->ticks[i], chart->percent);
        page_add(out, "</text>");
    }
    for (int i = 0; i < x->count; i++) {
        double at = place_value(x, x->ticks[i]);
        page_print(out, "<path class=\"axis\" d=\"M%.1f %.1fv5\"/>", at, bottom);
        page_print(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", at, bottom + 19);
        tick_label(out, x, x->ticks[i], false);
        page_add(out, "</text>");
    }
    page_print(out, "<path class=\"axis\" d=\"M%d %.1fH%.1f\"/>\n", LEFT, bottom, right);
    page_print(out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>", (LEFT + right) / 2,
               bottom + BOTTOM - 8, chart->x_label);
    page_print(out,
               "<text class=\"label\" transform=\"translate(13 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
               (TOP + bottom) / 2, chart->y_label);
    if (chart->zero) page_print(out, "<path class=\"axis d1\" d=\"M%d %.1fH%.1f\"/>\n", LEFT, place_value(y, 0), right);
    if (chart->diagonal)
        page_print(out, "<path class=\"axis d1\" d=\"M%d %.1fL%.1f %d\"/>\n", LEFT, bottom, right, TOP);
}

/* ---- Lines --------------------------------------------------------------------------------------------------- */

/* Returns the index of the color and marker of series k, and sets *dashes to its dash style. A dotted series has the
   color and marker of the series before it. */
static size_t series_style(const svg_chart *chart, size_t k, int *dashes)
{
    enum { DOTTED = 4 };
    size_t number = 0;
    for (size_t i = 1; i <= k; i++) number += !chart->series[i].dotted;
    *dashes = chart->series[k].dotted ? DOTTED : (int)(number % 4);
    return number;
}

/* Draws a marker whose shape identifies the series independently of its color: disc, square, diamond, triangle. */
static void draw_mark(page *out, size_t series, double x, double y)
{
    int color = (int)(series % SVG_COLORS);
    switch (series % 4) {
        case 0: page_print(out, "<circle class=\"m c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\"/>", color, x, y); break;
        case 1:
            page_print(out, "<path class=\"m c%d\" d=\"M%.1f %.1fh6.6v6.6h-6.6z\"/>", color, x - 3.3, y - 3.3);
            break;
        case 2:
            page_print(out, "<path class=\"m c%d\" d=\"M%.1f %.1fl4.6 4.6-4.6 4.6-4.6-4.6z\"/>", color, x, y - 4.6);
            break;
        default: page_print(out, "<path class=\"m c%d\" d=\"M%.1f %.1fl4.6 8h-9.2z\"/>", color, x, y - 5);
    }
}

enum { MARKED_POINTS = 30 }; /* a line with more points gets no markers, which would hide the line */

/* Draws the line of a series (marks = false) or the markers on it. */
static void draw_line_or_marks(page *out, const svg_chart *chart, size_t k, const axis *x, const axis *y, bool marks)
{
    const svg_series *series = &chart->series[k];
    size_t points = series_points(chart, series), kept = svg_kept(points, SVG_MOST_POINTS), seen = 0, done = 0;
    int dashes;
    for (size_t i = 0; i < series->count && done < kept; i++) {
        if (!is_drawable(chart, series->x[i], series->y[i])) continue;
        if (seen++ != svg_kept_index(done, points, SVG_MOST_POINTS)) continue;
        double at_x = place_value(x, series->x[i]), at_y = place_value(y, series->y[i]);
        if (marks)
            draw_mark(out, series_style(chart, k, &dashes), at_x, at_y);
        else
            page_print(out, "%s%.1f %.1f", done == 0 ? "M" : "L", at_x, at_y);
        done++;
    }
}

/* Draws dots in several paths (layers). Dots that overlap look darker only if they belong to different paths, so layers
   make dense regions darker. */
static void draw_dots(page *out, const svg_chart *chart, size_t k, const axis *x, const axis *y)
{
    enum { LAYERS = 12 };
    const svg_series *series = &chart->series[k];
    size_t kept = svg_kept(series->count, SVG_MOST_DOTS);
    for (size_t layer = 0; layer < LAYERS && layer < kept; layer++) {
        page_print(out, "<path class=\"dots c%d\" d=\"", (int)(k % SVG_COLORS));
        for (size_t i = layer; i < kept; i += LAYERS) {
            size_t at = svg_kept_index(i, series->count, SVG_MOST_DOTS);
            if (is_drawable(chart, series->x[at], series->y[at]))
                page_print(out, "M%.1f %.1fh0", place_value(x, series->x[at]), place_value(y, series->y[at]));
        }
        page_add(out, "\"/>\n");
    }
}

static void draw_series(page *out, const svg_chart *chart, size_t k, const axis *x, const axis *y)
{
    size_t points = series_points(chart, &chart->series[k]);
    if (points == 0) return;
    if (chart->dots) {
        draw_dots(out, chart, k, x, y);
        return;
    }
    if (points > 1) {
        int dashes;
        size_t look = series_style(chart, k, &dashes);
        page_print(out, "<path class=\"line c%d d%d\" d=\"", (int)(look % SVG_COLORS), dashes);
        draw_line_or_marks(out, chart, k, x, y, false);
        page_add(out, "\"/>\n");
    }
    if (points <= MARKED_POINTS) draw_line_or_marks(out, chart, k, x, y, true);
}

/* ---- Descriptions ------------------------------------------------------------------------------------------------ */

/* Writes the description for screen readers: the number of dots, or the first and last point of each series. */
static void describe_series(page *out, const svg_chart *chart)
{
    if (chart->dots) {
        page_print(out, "%G points.", (double)svg_points(chart));
        return;
    }
    for (size_t k = 0; k < chart->count; k++) {
        const svg_series *series = &chart->series[k];
        size_t first = series->count, last = 0;
        for (size_t i = 0; i < series->count; i++) {
            if (!is_drawable(chart, series->x[i], series->y[i])) continue;
            if (first == series->count) first = i;
            last = i;
        }
        if (first == series->count) continue;
        const char *value = chart->percent ? "%.2A at %.4F" : "%.4F at %.4F";
        page_print(out, "%s: ", series->name);
        page_print(out, value, series->y[first], series->x[first]);
        if (last != first) page_add(out, " to ");
        if (last != first) page_print(out, value, series->y[last], series->x[last]);
        page_add(out, ". ");
    }
}

static void open_svg(page *out, const char *title, int width, int height)
{
    page_print(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title>", width, height, title);
}

void svg_legend(page *out, const svg_chart *chart)
{
    if (chart->count < 2) return;
    page_add(out, "<ul class=\"legend\">");
    for (size_t k = 0; k < chart->count; k++) {
        int dashes;
        size_t look = series_style(chart, k, &dashes);
        if (series_points(chart, &chart->series[k]) == 0) continue;
        page_print(out,
                   "<li><svg viewBox=\"0 0 30 12\" aria-hidden=\"true\"><path class=\"line c%d d%d\" d=\"M1 6H29\"/>",
                   (int)(look % SVG_COLORS), dashes);
        draw_mark(out, look, 15, 6);
        page_print(out, "</svg>%s</li>", chart->series[k].name);
    }
    page_add(out, "</ul>\n");
}

void svg_line_chart(page *out, const svg_chart *chart)
{
    int height = chart->tall ? TALL : HEIGHT;
    axis x = {.log = chart->log_x, .begin = LEFT, .extent = WIDTH - RIGHT - LEFT};
    axis y = {.log = chart->log_y, .begin = height - BOTTOM, .extent = -(height - BOTTOM - TOP)};
    if (!find_range(chart, false, &x) || !find_range(chart, true, &y)) return;
    if (chart->zero) y.low = fmin(y.low, 0), y.high = fmax(y.high, 0);
    if (chart->diagonal) x.low = y.low = fmin(x.low, y.low), x.high = y.high = fmax(x.high, y.high);
    finish_axis(&x, chart->dots, chart->x_from_zero, false, chart->x_whole);
    finish_axis(&y, true, chart->y_from_zero, chart->percent, false);
    open_svg(out, chart->title, WIDTH, height);
    page_add(out, "<desc>");
    describe_series(out, chart);
    page_add(out, "</desc>\n");
    draw_axes(out, chart, &x, &y);
    for (size_t k = 0; k < chart->count; k++) draw_series(out, chart, k, &x, &y);
    page_add(out, "</svg>\n");
}

/* ---- Bar ----------------------------------------------------------------------------------------------------- */

void svg_stacked_bar(page *out, const char *title, const char *const *names, const double *values, size_t count)
{
    enum { BAR_WIDTH = 1080, BAR_HEIGHT = 34 };
    double total = 0, at = 0;
    for (size_t i = 0; i < count; i++) total += isfinite(values[i]) && values[i] > 0 ? values[i] : 0;
    if (!(total > 0) || !isfinite(total)) return;
    open_svg(out, title, BAR_WIDTH, BAR_HEIGHT);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]) || !(values[i] > 0)) continue;
        double width = BAR_WIDTH * (values[i] / total);
        page_print(
            out,
            "<rect class=\"bar c%d\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\"><title>%s: %.1A</title></rect>",
            (int)(i % SVG_COLORS), at, fmax(width - 2, 0.5), BAR_HEIGHT, names[i], values[i] / total);
        at += width;
    }
    page_add(out, "</svg>\n");
}

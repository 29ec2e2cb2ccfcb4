/* SPDX-License-Identifier: BSD-3-Clause */
/* What the demonstration's numbers say, in words; if they say something else one day, so do the words. */
#include "demo.h"

#include <math.h>
#include <stdarg.h>

static void say(demo *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(demo *self, const char *format, ...)
{
    if (self->lines == DEMO_MOST_LINES) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->conclusion[self->lines++], DEMO_LINE, format, arguments);
    va_end(arguments);
}

/* How an accuracy changed; a change within two standard errors of a share measured on the tests is none. */
static const char *change(const demo *self, const demo_cell *from, const demo_cell *to)
{
    double share = (from->accuracy + to->accuracy) / 2;
    double error = sqrt(2 * share * (1 - share) / (double)self->sizes.tests);
    if (fabs(to->accuracy - from->accuracy) <= 2 * error) return "changed little";
    return to->accuracy > from->accuracy ? "grew" : "fell";
}

/* The same centers with more samples, for the size in the middle. */
static void say_samples(demo *self)
{
    char p[CLI_SHORT], n[CLI_SHORT];
    const demo_cell *row = self->cells[self->sizes.center_sizes / 2], *most = &row[self->sizes.sample_sizes];
    say(self, "More data, same model: with p = %s centers accuracy %s from %.2f %% (the centers' own labels only)",
        cli_count_text(p, row->centers), change(self, &row[0], most), 100 * row[0].accuracy);
    say(self, "  to %.2f %% with n = %s, at the same size and cost of a prediction; of the errors %.0f %% are gone.",
        100 * most->accuracy, cli_count_text(n, most->samples),
        fmax(0, 100 * (most->accuracy - row[0].accuracy) / fmax(1 - row[0].accuracy, 1e-9)));
}

/* The same samples with more centers. */
static void say_centers(demo *self)
{
    char n[CLI_SHORT], p[CLI_SHORT], q[CLI_SHORT];
    int last = self->sizes.sample_sizes;
    const demo_cell *few = &self->cells[0][last], *many = &self->cells[self->sizes.center_sizes - 1][last];
    say(self, "More centers, same data: with n = %s accuracy %s from %.2f %% (p = %s) to %.2f %% (p = %s).",
        cli_count_text(n, few->samples), change(self, few, many), 100 * few->accuracy, cli_count_text(p, few->centers),
        100 * many->accuracy, cli_count_text(q, many->centers));
}

/* A small model with all data beside the next larger one that only knows its own centers. */
static void say_exchange(demo *self)
{
    char p[CLI_SHORT], q[CLI_SHORT];
    const demo_cell *small = &self->cells[0][self->sizes.sample_sizes], *large = &self->cells[1][0];
    const char *kind = change(self, large, small);
    const char *words = *kind == 'g' ? "beats" : *kind == 'f' ? "stays behind" : "is as good as";
    say(self, "Data instead of centers: p = %s with all data (%.2f %%) %s p = %s with its own labels (%.2f %%).",
        cli_count_text(p, small->centers), 100 * small->accuracy, words, cli_count_text(q, large->centers),
        100 * large->accuracy);
}

void demo_conclude(demo *self)
{
    say_samples(self);
    say_centers(self);
    say_exchange(self);
}

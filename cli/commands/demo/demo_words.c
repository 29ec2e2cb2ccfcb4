/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences that describe the results of the demonstration. */
#include "commands/demo/demo.h"

#include <math.h>

/* Returns "grew", "fell" or "changed little" for a change of accuracy. A difference within two of its standard errors
   is little. */
static const char *describe_change(const demo *self, const demo_cell *from, const demo_cell *to)
{
    double share = (from->accuracy + to->accuracy) / 2;
    double error = sqrt(2 * share * (1 - share) / (double)self->sizes.tests);
    if (fabs(to->accuracy - from->accuracy) <= 2 * error) return "changed little";
    return to->accuracy > from->accuracy ? "grew" : "fell";
}

/* Writes the sentence that compares n = p with the largest number of samples, for the middle number of centers. */
static void describe_more_samples(const demo *self, char out[DEMO_SENTENCE])
{
    char p[CLI_SHORT], n[CLI_SHORT];
    const demo_cell *row = self->cells[self->sizes.center_sizes / 2], *most = &row[self->sizes.sample_sizes];
    double gone = (most->accuracy - row[0].accuracy) / fmax(1 - row[0].accuracy, 1e-9);
    snprintf(
        out, DEMO_SENTENCE,
        "More data, same model: with p = %s centers accuracy %s from %.2f %% (the centers' own labels only) to %.2f "
        "%% (n = %s), with the same model size and prediction cost; %.0f %% fewer errors.",
        cli_count_text(p, row->centers), describe_change(self, &row[0], most), 100 * row[0].accuracy,
        100 * most->accuracy, cli_count_text(n, most->samples), fmax(0, 100 * gone));
}

/* Writes the sentence that compares the smallest with the largest number of centers, for the largest number of
   samples. */
static void describe_more_centers(const demo *self, char out[DEMO_SENTENCE])
{
    char n[CLI_SHORT], p[CLI_SHORT], q[CLI_SHORT];
    int last = self->sizes.sample_sizes;
    const demo_cell *few = &self->cells[0][last], *many = &self->cells[self->sizes.center_sizes - 1][last];
    snprintf(out, DEMO_SENTENCE,
             "More centers, same data: with n = %s samples accuracy %s from %.2f %% (p = %s) to %.2f %% (p = %s).",
             cli_count_text(n, few->samples), describe_change(self, few, many), 100 * few->accuracy,
             cli_count_text(p, few->centers), 100 * many->accuracy, cli_count_text(q, many->centers));
}

/* Writes the sentence that compares the smallest model, trained on all samples, with the second smallest, trained only
   on its centers. */
static void describe_exchange(const demo *self, char out[DEMO_SENTENCE])
{
    char p[CLI_SHORT], q[CLI_SHORT];
    const demo_cell *small = &self->cells[0][self->sizes.sample_sizes], *large = &self->cells[1][0];
    const char *kind = describe_change(self, large, small);
    const char *words = *kind == 'g' ? "beats" : *kind == 'f' ? "is less accurate than" : "is as accurate as";
    snprintf(out, DEMO_SENTENCE,
             "Data instead of centers: p = %s with all data (%.2f %%) %s p = %s with its own labels (%.2f %%).",
             cli_count_text(p, small->centers), 100 * small->accuracy, words, cli_count_text(q, large->centers),
             100 * large->accuracy);
}

void demo_conclude(demo *self)
{
    describe_more_samples(self, self->conclusion[0]);
    describe_more_centers(self, self->conclusion[1]);
    describe_exchange(self, self->conclusion[2]);
}

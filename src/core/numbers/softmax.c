/* SPDX-License-Identifier: BSD-3-Clause */
/* Probabilities of classes. The largest score is subtracted before exp, so that one term is 1 and none overflows. */
#include "core/numbers/softmax.h"

#include <math.h>
#include <stdbool.h>

#define MOST_SCORE 1e300 /* limit of scores, so that their product with a curvature is finite */

void mrc_softmax_curve(double *f, int64_t c, double curvature)
{
    if (curvature == 0) return;
    double scale = asinh(curvature);
    for (int64_t j = 0; j < c; j++) {
        double bounded = f[j] > MOST_SCORE ? MOST_SCORE : f[j] < -MOST_SCORE ? -MOST_SCORE : f[j];
        f[j] = asinh(curvature * bounded) / scale;
    }
}

double mrc_softmax(double *p, const double *f, int64_t c, double temperature)
{
    double top = f[0];
    for (int64_t j = 1; j < c; j++) top = f[j] > top ? f[j] : top;
    double sum = p[0] = exp((f[0] - top) / temperature);
    for (int64_t j = 1; j < c; j++) {
        p[j] = exp((f[j] - top) / temperature);
        sum += p[j];
    }
    for (int64_t j = 0; j < c; j++) p[j] /= sum;
    return log(sum);
}

/* Returns whether class k ranks before class j. */
static bool is_ahead(const double *p, int64_t k, int64_t j)
{
    return p[k] > p[j] || (k < j && p[k] == p[j]);
}

double mrc_softmax_ahead(const double *p, int64_t c, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < c; k++)
        if (is_ahead(p, k, j)) sum += p[k];
    return sum;
}

/* Each step searches all classes for the class that ranks next after `last`. Sorting would need memory, and sets are
   small. */
int64_t mrc_softmax_set(const double *p, int64_t c, double threshold, int32_t *members)
{
    int64_t count = 0, last = -1;
    for (double ahead = 0; count < c && ahead <= threshold; count++) {
        int64_t next = -1;
        for (int64_t k = 0; k < c; k++)
            if ((last < 0 || is_ahead(p, last, k)) && k != last && (next < 0 || is_ahead(p, k, next))) next = k;
        if (next < 0) break; /* only NaNs are left, which cannot be ranked */
        members[count] = (int32_t)next;
        ahead += p[next];
        last = next;
    }
    return count;
}

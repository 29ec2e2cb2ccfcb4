/* SPDX-License-Identifier: BSD-3-Clause */
/* The rank transform of one value (preprocess_rank.c). Exported C files contain this header. */
#ifndef MRC_DATA_PREPARE_RANK_VALUE_H
#define MRC_DATA_PREPARE_RANK_VALUE_H

#include <stdbool.h>

enum { MRC_RANK_KNOTS = 256 };

/* Returns the number of knots below x; with `equal`, the number of knots not above x. The binary search has no
   branches, because a processor could not predict them. The number of steps is fixed, because MRC_RANK_KNOTS is a power
   of 2. */
static inline int mrc_rank_below(const double *knots, double x, bool equal)
{
    int count = 0;
    for (int step = MRC_RANK_KNOTS / 2; step > 0; step /= 2) {
        double knot = knots[count + step - 1];
        count += step * ((knot < x) | (equal & (knot == x)));
    }
    return count + ((knots[count] < x) | (equal & (knots[count] == x)));
}

/* Returns the rank transform of x, given the knots of its feature and their normal quantiles, both (MRC_RANK_KNOTS). */
static inline double mrc_rank_value(const double *knots, const double *normal, double x)
{
    int below = mrc_rank_below(knots, x, false);
    if (below == MRC_RANK_KNOTS) return normal[MRC_RANK_KNOTS - 1];
    if (knots[below] == x) return 0.5 * (normal[below] + normal[mrc_rank_below(knots, x, true) - 1]);
    if (below == 0) return normal[0];
    double share = (x - knots[below - 1]) / (knots[below] - knots[below - 1]);
    return normal[below - 1] + share * (normal[below] - normal[below - 1]);
}

#endif

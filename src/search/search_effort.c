/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sizes of each effort level. A step of a descent with n training rows, m = 2 n rows in all, p centers and w
 * columns costs
 *
 *   n p^2 + p^3 / 3     normal equations          4 m p c  weights of pairs
 *   m p (6 w + 700)     distances, their sums over pairs, and evaluations of the kernel function: passes over memory
 *
 * in units of the time of one flop of a double-precision matrix product. The final fits at three sizes together cost
 * about 1.4 n p^2 + 7 p^3 / 3. The constants were fitted to the search times of the eight tables of docs/tables.md on
 * two cores (2.5 to 5 s at effort 3).
 */
#include "search/search.h"

static const mrc_effort efforts[MRC_MOST_EFFORT] = {{16, 32, 512, 128, 8192, 4096, 512, 3000},
                                                    {24, 48, 768, 192, 16384, 8192, 1024, 4500},
                                                    {30, 80, 1024, 256, 32768, 8192, 1024, 6000},
                                                    {50, 120, 1536, 384, 65536, 16384, 1536, 10000},
                                                    {60, 150, 2048, 512, 131072, 16384, 2048, 16000}};

enum { MANY_FITTED = 2048, MANY_CENTERS = 512, MANY_ROWS = 65536, FEW_ROWS = 4096 };

/*
 * Tables with many features need larger draws; time is left for larger draws because the descent in norm 2 is skipped.
 * Change of the held-out error at effort 3, three seeds: adult -2.3 %, hr -.2 %, bank +.1 %. With many rows, training
 * takes longer, so the search may also take longer and uses the sizes of the next effort level. Test scores with at
 * least 10^5 rows: rain, AUC, .8753 to .8801; accel, accuracy, .339 to .359; sgemm, R2, .9929 to .9947.
 */
mrc_effort mrc_effort_of(int effort, int64_t rows, int64_t features)
{
    int at = (int)mrc_max(1, mrc_min(effort, MRC_MOST_EFFORT)) - 1;
    mrc_effort sizes = efforts[rows > MANY_ROWS && at + 1 < MRC_MOST_EFFORT ? at + 1 : at];
    sizes.final_centers = efforts[at].final_centers;
    if (features <= MRC_MAP_FEATURES || rows <= FEW_ROWS) return sizes;
    sizes.fitted = mrc_max(sizes.fitted, mrc_min(2 * sizes.fitted, MANY_FITTED));
    sizes.centers = mrc_max(sizes.centers, mrc_min(2 * sizes.centers, MANY_CENTERS));
    return sizes;
}

/* Returns the cost of a step (see the top of the file), with m = 2 n. */
static double step_flops(double n, double p, double w, double c)
{
    return n * p * p + p * p * p / 3 + 2 * n * p * (6 * w + 700 + 4 * c);
}

double mrc_search_flops(int effort, int64_t n, int64_t d, int64_t c)
{
    mrc_effort e = mrc_effort_of(effort, n, d);
    double rows = (double)n, w = 2 * (double)d, outputs = (double)c;
    double fitted = (double)mrc_min(e.fitted, n / 2), centers = (double)mrc_min(e.centers, n / 2);
    /* both norms are searched; the factor 1.25 below is one of the fitted constants */
    bool both = d <= MRC_MAP_FEATURES;
    double first = (both ? 2 : 1) * (double)e.first * step_flops(fitted, centers, w, outputs);
    double second = (both ? 1.25 : 1) * (double)e.second * step_flops(2 * fitted, 1.5 * centers, w, outputs);
    double scored = (double)mrc_min(e.score_rows, n), p = (double)mrc_min(e.score_size, n);
    double score = 1.4 * scored * p * p + 7 * p * p * p / 3 + 3 * scored * p * (w + 20);
    return first + second + score + 100 * rows * (double)d;
}

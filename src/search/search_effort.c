/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sizes of each effort. A step of a descent with n training rows, m = 2 n rows in all, p centers and w columns
 * costs
 *
 *   n p^2 + p^3 / 3     normal equations          4 m p c     weights of pairs
 *   m p (6 w + 700)     distances, their sums over pairs, and evaluations of the kernel function: passes over memory
 *
 * in flops of a product in double, and the final fits n p^2 + 7 p^3 / 3 at three sizes. The constants are fitted to the
 * search times of the eight tables of docs/tables.md on two cores (2.5 to 5 s at effort 3).
 */
#include "search/search.h"

static const mrc_effort efforts[MRC_MOST_EFFORT] = {{16, 32, 512, 128, 8192, 4096, 512, 1500},
                                                    {24, 48, 768, 192, 16384, 8192, 1024, 3000},
                                                    {30, 80, 1024, 256, 32768, 8192, 1024, 6000},
                                                    {50, 120, 1536, 384, 65536, 16384, 1536, 10000},
                                                    {60, 150, 2048, 512, 131072, 16384, 2048, 16000}};

mrc_effort mrc_effort_of(int effort)
{
    return efforts[mrc_max(1, mrc_min(effort, MRC_MOST_EFFORT)) - 1];
}

static double step_flops(double n, double p, double w, double c)
{
    return n * p * p + p * p * p / 3 + 2 * n * p * (6 * w + 700 + 4 * c);
}

double mrc_search_flops(int effort, int64_t n, int64_t d, int64_t c)
{
    mrc_effort e = mrc_effort_of(effort);
    double rows = (double)n, w = 2 * (double)d, outputs = (double)c;
    double fitted = (double)mrc_min(e.fitted, n / 2), centers = (double)mrc_min(e.centers, n / 2);
    double first = 2 * (double)e.first * step_flops(fitted, centers, w, outputs);
    /* One norm is continued, or both. */
    double second = 1.5 * (double)e.second * step_flops(2 * fitted, 1.5 * centers, w, outputs);
    double scored = (double)mrc_min(e.score_rows, n), p = (double)mrc_min(e.score_size, n);
    double score = 1.4 * scored * p * p + 7 * p * p * p / 3 + 3 * scored * p * (w + 20);
    return first + second + score + 100 * rows * (double)d;
}

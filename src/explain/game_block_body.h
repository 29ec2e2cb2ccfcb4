/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of game_block.h in plain C, which the compiler vectorizes for the instruction set of the including
 * file. Before including this header, that file defines GAME_OPS (the name of the table) and GAME_SCOPE (static or
 * empty). Products and sums are rounded one by one; lanes are added in a fixed order.
 */
#include "explain/game_block.h"

#include "backends/cpu/micro/uk_math_body.h"
#include "kernels/formulas.h"

#include <string.h>

enum { LANES = MRC_GAME_LANES, EIGHTH = LANES / 8 };

/* Eight lanes as one vector. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));

/* Row `row` of an array (n, lanes), as EIGHTH vectors; lanes_in is for arrays that are only read. */
static eight *lanes_of(double *array, int64_t row)
{
    return (eight *)(array + row * LANES);
}

static const eight *lanes_in(const double *array, int64_t row)
{
    return (const eight *)(array + row * LANES);
}

static void find_differences(int64_t players, int64_t width, const int64_t *owner, double power, const double *x,
                             const double *z, double *sums)
{
    memset(sums, 0, (size_t)(players * LANES) * sizeof *sums);
    for (int64_t l = 0; l < width; l++) {
        double *restrict to = sums + owner[l] * LANES;
        const double *restrict from = z + l * LANES;
        double at = x[l];
        if (power == 2)
            for (int j = 0; j < LANES; j++) to[j] += (at - from[j]) * (at - from[j]);
        else if (power == 1)
            for (int j = 0; j < LANES; j++) to[j] += fabs(at - from[j]);
        else
            for (int j = 0; j < LANES; j++) to[j] += mrc_power(fabs(at - from[j]), power);
    }
}

static double find_least_sum(int64_t players, const double *a, const double *b)
{
    double sums[LANES] = {0}, least = INFINITY;
    for (int64_t k = 0; k < players; k++)
        for (int j = 0; j < LANES; j++) {
            double left = a[k * LANES + j], right = b[k * LANES + j];
            sums[j] += left < right ? left : right;
        }
    for (int j = 0; j < LANES; j++) least = sums[j] < least ? sums[j] : least;
    return least;
}

static void find_decay(int64_t players, double rate, const double *restrict sums, double *restrict out)
{
    for (int64_t i = 0; i < players * LANES; i++) out[i] = exp_f64(-rate * sums[i]);
}

/* Computes M of game.c for each radius: the largest lane of a product over the players. */
static void find_bounds(int64_t players, const double *a, const double *b, double bounds[MRC_GAME_RADII])
{
    static const double radius[MRC_GAME_RADII] = MRC_GAME_RADIUS;
    double products[MRC_GAME_RADII][LANES], stretch[MRC_GAME_RADII];
    for (int r = 0; r < MRC_GAME_RADII; r++) {
        stretch[r] = (radius[r] + 1 / radius[r]) / 4;
        for (int j = 0; j < LANES; j++) products[r][j] = 1;
    }
    for (int64_t k = 0; k < players; k++)
        for (int j = 0; j < LANES; j++) {
            double left = a[k * LANES + j], right = b[k * LANES + j];
            double middle = 0.5 * (left + right), apart = fabs(left - right);
            for (int r = 0; r < MRC_GAME_RADII; r++) products[r][j] *= middle + stretch[r] * apart;
        }
    for (int r = 0; r < MRC_GAME_RADII; r++) {
        bounds[r] = 0;
        for (int j = 0; j < LANES; j++) bounds[r] = products[r][j] > bounds[r] ? products[r][j] : bounds[r];
    }
}

/* Adds the term of one node to the integrals. The first loop computes prefix products over the players; the second loop
   goes backward with the suffix product. */
static void add_node(int64_t players, double node, double weight, const double *a, const double *b, double *before,
                     double *factor, double *integral)
{
    eight product[EIGHTH];
    for (int v = 0; v < EIGHTH; v++) product[v] = (eight){0} + 1.0;
    for (int64_t k = 0; k < players; k++)
        for (int v = 0; v < EIGHTH; v++) {
            eight right = lanes_in(b, k)[v], here = right + node * (lanes_in(a, k)[v] - right);
            lanes_of(before, k)[v] = product[v];
            lanes_of(factor, k)[v] = here;
            product[v] *= here;
        }
    for (int v = 0; v < EIGHTH; v++) product[v] = (eight){0} + weight;
    for (int64_t k = players - 1; k >= 0; k--)
        for (int v = 0; v < EIGHTH; v++) {
            lanes_of(integral, k)[v] += lanes_of(before, k)[v] * product[v];
            product[v] *= lanes_of(factor, k)[v];
        }
}

static void find_integrals(int64_t players, int64_t count, const double *nodes, const double *weights, const double *a,
                           const double *b, double *before, double *factor, double *integral)
{
    memset(integral, 0, (size_t)(players * LANES) * sizeof *integral);
    for (int64_t i = 0; i < count; i++) add_node(players, nodes[i], weights[i], a, b, before, factor, integral);
}

/* Adds the term of one node to the integrals of column k with later columns: the product before k, the products after
   each column, and the product between the two. */
static void add_pair_node(int64_t players, int64_t k, double node, double weight, const double *a, const double *b,
                          double *after, double *factor, double *integral)
{
    eight product[EIGHTH], last[EIGHTH];
    for (int v = 0; v < EIGHTH; v++) product[v] = (eight){0} + weight, last[v] = (eight){0} + 1.0;
    for (int64_t l = 0; l < k; l++)
        for (int v = 0; v < EIGHTH; v++) {
            eight right = lanes_in(b, l)[v];
            product[v] *= right + node * (lanes_in(a, l)[v] - right);
        }
    for (int64_t l = players - 1; l > k; l--)
        for (int v = 0; v < EIGHTH; v++) {
            eight right = lanes_in(b, l)[v], here = right + node * (lanes_in(a, l)[v] - right);
            lanes_of(after, l)[v] = last[v];
            lanes_of(factor, l)[v] = here;
            last[v] *= here;
        }
    for (int64_t l = k + 1; l < players; l++)
        for (int v = 0; v < EIGHTH; v++) {
            lanes_of(integral, l)[v] += product[v] * lanes_of(after, l)[v];
            product[v] *= lanes_of(factor, l)[v];
        }
}

static void find_pair_integrals(int64_t players, int64_t k, int64_t count, const double *nodes, const double *weights,
                                const double *a, const double *b, double *after, double *factor, double *integral)
{
    memset(integral + (k + 1) * LANES, 0, (size_t)((players - k - 1) * LANES) * sizeof *integral);
    for (int64_t i = 0; i < count; i++) add_pair_node(players, k, nodes[i], weights[i], a, b, after, factor, integral);
}

/* The eight lanes are added in a fixed tree, so the sum does not depend on the length of the machine's vectors. */
static void collect_values(int64_t players, double weight, const double *alpha, const double *a, const double *b,
                           const double *integral, double *values)
{
    for (int64_t k = 0; k < players; k++) {
        eight sum = {0};
        for (int v = 0; v < EIGHTH; v++)
            sum += lanes_in(alpha, 0)[v] * ((lanes_in(a, k)[v] - lanes_in(b, k)[v]) * lanes_in(integral, k)[v]);
        values[k] += weight * (((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7])));
    }
}

GAME_SCOPE const mrc_game_ops GAME_OPS = {find_differences, find_least_sum,      find_decay,    find_bounds,
                                          find_integrals,   find_pair_integrals, collect_values};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inner loops of Shapley values over a block of MRC_GAME_LANES centers, compiled for several instruction sets
 * (game_block_body.h). Arrays (n, lanes) have the centers of the block next to each other. Results are bitwise
 * identical on all instruction sets.
 */
#ifndef MRC_EXPLAIN_GAME_BLOCK_H
#define MRC_EXPLAIN_GAME_BLOCK_H

#include "core/context.h"

enum { MRC_GAME_LANES = 32, MRC_GAME_RADII = 3 };

/* Radii of the ellipses in which the integrand is bounded (game.c). */
#define MRC_GAME_RADIUS \
    {                   \
        2.5, 8, 30      \
    }

/* Largest error of a term for one center: 1e-15 for a kernel that is a product, 1e-13 for each term of a mixture. A
   mixture itself differs from its kernel by about 1e-10. */
#define MRC_GAME_NEGLIGIBLE(terms) ((terms) > 1 ? 1e-13 : 1e-15)

typedef struct mrc_game_ops {
    /* Computes sums (players, lanes): for each player, the sum of |x_l - z_lj|^power over its features l. owner
       (width): the player of each feature; z (width, lanes). */
    void (*differences)(int64_t players, int64_t width, const int64_t *owner, double power, const double *x,
                        const double *z, double *sums);
    /* Returns the minimum over the lanes of sum_k min(a_kj, b_kj); a, b (players, lanes). */
    double (*least_sum)(int64_t players, const double *a, const double *b);
    /* Computes exp(-rate sums); both (players, lanes). */
    void (*decay)(int64_t players, double rate, const double *sums, double *out);
    /* Computes, for each radius, the maximum over the lanes of the bound of the product of all players. */
    void (*bound)(int64_t players, const double *a, const double *b, double bounds[MRC_GAME_RADII]);
    /* Computes integral_kj = sum_i weights_i prod_{l != k} (b_lj + nodes_i (a_lj - b_lj)). before and factor are
       scratch space; all arrays (players, lanes). */
    void (*integrate)(int64_t players, int64_t count, const double *nodes, const double *weights, const double *a,
                      const double *b, double *before, double *factor, double *integral);
    /* Computes integral_lj = sum_i weights_i prod_{m != k, l} (b_mj + nodes_i (a_mj - b_mj)) for l > k; the rows up to
       k are not written. after and factor are scratch space. */
    void (*integrate_pairs)(int64_t players, int64_t k, int64_t count, const double *nodes, const double *weights,
                            const double *a, const double *b, double *after, double *factor, double *integral);
    /* Adds to values (players) weight sum_j alpha_j (a_kj - b_kj) integral_kj; alpha (lanes). */
    void (*collect)(int64_t players, double weight, const double *alpha, const double *a, const double *b,
                    const double *integral, double *values);
} mrc_game_ops;

/* Returns the functions for an instruction set. */
const mrc_game_ops *mrc_game_ops_for(const mercer_context *context);

extern const mrc_game_ops mrc_game_ops_avx2, mrc_game_ops_avx512; /* x86 builds only */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Normal numbers in bulk (hundreds of millions).
 *
 *   z = (4 T[a] + 3 T[b]) / 5,   a, b uniform in 0 .. N - 1, N = 4096, from 24 bits of a word
 *
 * T[i] is the mean of a normal number between its quantiles i/N and (i+1)/N,
 *     T[i] = N (phi(q_i) - phi(q_{i+1})),   Phi(q_i) = i/N,
 * scaled to variance 1 and rounded to a multiple of 2^-12. A single T[a] has a distribution function with 4,096 steps;
 * the weighted sum z of two has 16 million. The distribution function of z differs from the normal one by at most 2e-5,
 * and the variance of z from 1 by at most 1e-4. The largest number is about 5.2. A draw takes two loads and no branch.
 * Arithmetic is in integers up to the last multiplication, so numbers are identical on every machine.
 *
 * Cost: a Philox block for every four numbers. Blocks are computed LANES at a time in loops of constant length, which
 * compilers turn into vector code.
 */
#include "core/numbers/random_normal.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, ROUNDS = 10 };

/* ---- The table ------------------------------------------------------------------------------------------------- */

/* Returns the x > 0 with Q(x) = erfc(x / sqrt 2) / 2 = tail, by Newton's method from start <= x. Q is convex for x > 0,
   so the iteration cannot overshoot. */
static double upper_quantile(double tail, double start)
{
    const double root_half = 0.7071067811865476, density_0 = 0.3989422804014327;
    double x = start;
    for (int step = 0; step < 100; step++) {
        double change = (0.5 * erfc(x * root_half) - tail) / (density_0 * exp(-0.5 * x * x));
        x += change;
        if (fabs(change) < 1e-12) break;
    }
    return x;
}

void mrc_normal_table_init(mrc_normal_table *table)
{
    const double density_0 = 0.3989422804014327;
    double means[MRC_NORMAL_ATOMS / 2], near = 0, near_density = density_0, squares = 0;
    for (int i = 0; i < MRC_NORMAL_ATOMS / 2; i++) { /* positive half only, from 0 outwards */
        double far = 0, far_density = 0;             /* the last interval extends to infinity */
        if (i + 1 < MRC_NORMAL_ATOMS / 2) {
            far = upper_quantile(0.5 - (i + 1) / (double)MRC_NORMAL_ATOMS, near);
            far_density = density_0 * exp(-0.5 * far * far);
        }
        means[i] = MRC_NORMAL_ATOMS * (near_density - far_density);
        squares += 2 * means[i] * means[i] / MRC_NORMAL_ATOMS;
        near = far;
        near_density = far_density;
    }
    for (int i = 0; i < MRC_NORMAL_ATOMS / 2; i++) {
        int16_t atom = (int16_t)lrint(means[i] / sqrt(squares) * 4096);
        table->atoms[MRC_NORMAL_ATOMS / 2 + i] = atom;
        table->atoms[MRC_NORMAL_ATOMS / 2 - 1 - i] = (int16_t)-atom;
    }
}

/* ---- Words ----------------------------------------------------------------------------------------------------- */

/* Computes LANES consecutive Philox blocks: the same words as mrc_philox4x32 with the counter layout of random.c. */
static void draw_blocks(mrc_rng rng, uint64_t block, uint32_t out[4 * LANES])
{
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    uint32_t k0 = (uint32_t)rng.seed, k1 = (uint32_t)(rng.seed >> 32);
    for (int i = 0; i < LANES; i++) {
        c0[i] = (uint32_t)(block + (uint64_t)i);
        c1[i] = (uint32_t)((block + (uint64_t)i) >> 32);
        c2[i] = (uint32_t)rng.sequence;
        c3[i] = (uint32_t)(rng.sequence >> 32);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t a = UINT64_C(0xD2511F53) * c0[i], b = UINT64_C(0xCD9E8D57) * c2[i];
            c0[i] = (uint32_t)(b >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)b;
            c2[i] = (uint32_t)(a >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)a;
        }
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    for (int i = 0; i < LANES; i++) {
        out[4 * i] = c0[i];
        out[4 * i + 1] = c1[i];
        out[4 * i + 2] = c2[i];
        out[4 * i + 3] = c3[i];
    }
}

void mrc_random_words(mrc_rng rng, uint64_t first, int64_t count, uint32_t *out)
{
    for (int64_t done = 0; done < count; done += 4 * LANES) {
        uint32_t words[4 * LANES];
        int64_t wanted = count - done < 4 * LANES ? count - done : 4 * LANES;
        draw_blocks(rng, (first + (uint64_t)done) / 4, words);
        memcpy(out + done, words, (size_t)wanted * sizeof *out);
    }
}

void mrc_random_normals(const mrc_normal_table *table, mrc_rng rng, uint64_t first, int64_t count, float *out)
{
    const float unit = 1.0f / (5 * 4096);
    for (int64_t done = 0; done < count; done += 4 * LANES) {
        uint32_t words[4 * LANES];
        float normals[4 * LANES];
        int64_t wanted = count - done < 4 * LANES ? count - done : 4 * LANES;
        draw_blocks(rng, (first + (uint64_t)done) / 4, words);
        for (int i = 0; i < 4 * LANES; i++) {
            int a = table->atoms[words[i] % MRC_NORMAL_ATOMS], b = table->atoms[words[i] >> 20];
            normals[i] = (float)(4 * a + 3 * b) * unit;
        }
        memcpy(out + done, normals, (size_t)wanted * sizeof *out);
    }
}

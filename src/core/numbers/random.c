/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Philox and the distributions and permutations built on it.
 *
 * Counter layout: words 0-1 hold the draw's block number, words 2-3 the sequence; the key is the seed. A block gives
 * four 32-bit words = two 64-bit draws, so draw k is half (k mod 2) of block k / 2.
 *
 * Normal: Box-Muller with the two uniform numbers of a block; draw k is the cosine (k even) or sine (k odd) of pair k /
 * 2.
 *
 * Permutation: a balanced Feistel network on 2h bits is a bijection of 0 .. 4^h - 1 for any round function; Philox
 * keyed by seed, sequence and round is that function. Values >= n are sent through the network again ("cycle walking")
 * until the result is below n, which restricts the bijection to 0 .. n - 1. 4^h < 4 n for large n, so about two walks
 * are expected. For small n the network still has 2^8 values; with 8 rounds, tests find no departure from uniformity.
 */
#include "core/numbers/random.h"

#include "core/numbers/host_device.h"
#include "core/threads/parallel.h"

#include <math.h>

enum { FEISTEL_ROUNDS = 8, FEISTEL_MIN_HALF_BITS = 4 };

__extension__ typedef unsigned __int128 uint128;

/* Separates the counters of permutations from the counters of plain draws, whose block numbers are below 2^63. */
#define PERMUTATION_MARK (UINT64_C(1) << 63)

void mrc_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    mrc_philox(counter[0] | (uint64_t)counter[1] << 32, counter[2] | (uint64_t)counter[3] << 32,
               key[0] | (uint64_t)key[1] << 32, out);
}

static void draw_block(mrc_rng rng, uint64_t block, uint64_t out[2])
{
    uint32_t words[4];
    mrc_philox(block, rng.sequence, rng.seed, words);
    out[0] = words[0] | (uint64_t)words[1] << 32;
    out[1] = words[2] | (uint64_t)words[3] << 32;
}

/* Returns a number in [0, 1) with 53 random bits. */
static double to_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

uint64_t mrc_random_u64(mrc_rng rng, uint64_t k)
{
    uint64_t pair[2];
    draw_block(rng, k / 2, pair);
    return pair[k % 2];
}

double mrc_random_uniform(mrc_rng rng, uint64_t k)
{
    return to_unit(mrc_random_u64(rng, k));
}

double mrc_random_normal(mrc_rng rng, uint64_t k)
{
    const double two_pi = 6.283185307179586;
    uint64_t pair[2];
    draw_block(rng, k / 2, pair);
    double radius = sqrt(-2 * log(1 - to_unit(pair[0]))); /* 1 - u is in (0, 1]: the logarithm is finite */
    double angle = two_pi * to_unit(pair[1]);
    return radius * (k % 2 ? sin(angle) : cos(angle));
}

int64_t mrc_random_below(mrc_rng rng, uint64_t k, int64_t bound)
{
    /* The high half of a 64 x 64 bit product; its bias is below bound / 2^64. */
    return (int64_t)((uint128)mrc_random_u64(rng, k) * (uint64_t)bound >> 64);
}

/* Applies the network to a value of 2 half_bits bits. */
static uint64_t feistel(mrc_rng rng, int half_bits, uint64_t value)
{
    uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t left = value >> half_bits, right = value & mask;
    for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
        uint64_t pair[2];
        draw_block(rng, PERMUTATION_MARK | round << 40 | right, pair);
        uint64_t next = left ^ (pair[0] & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

int64_t mrc_random_permutation(mrc_rng rng, int64_t n, int64_t k)
{
    int half_bits = FEISTEL_MIN_HALF_BITS;
    while (half_bits < 31 && (UINT64_C(1) << 2 * half_bits) < (uint64_t)n) half_bits++;
    uint64_t value = (uint64_t)k;
    do value = feistel(rng, half_bits, value);
    while (value >= (uint64_t)n);
    return (int64_t)value;
}

enum { PERMUTED = 512 }; /* elements per piece of work */

typedef struct permuting {
    mrc_rng rng;
    int64_t n, first, count, *out;
} permuting;

/* A task of mrc_parallel_for: computes PERMUTED elements. */
static void permute_some(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const permuting *job = argument;
    int64_t begin = piece * PERMUTED, end = begin + PERMUTED < job->count ? begin + PERMUTED : job->count;
    for (int64_t i = begin; i < end; i++) job->out[i] = mrc_random_permutation(job->rng, job->n, job->first + i);
}

void mrc_random_permutations(int threads, mrc_rng rng, int64_t n, int64_t first, int64_t count, int64_t *out)
{
    permuting job = {rng, n, first, count, out};
    mrc_parallel_for(threads, (count + PERMUTED - 1) / PERMUTED, permute_some, &job);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/numbers: random draws (this header; in bulk: random_normal.h); half precision (half.h); units and monotone
 * transforms of targets (units.h, target_curve.h); class probabilities (softmax.h); augmentation of samples
 * (changes.h); sorting with weights (weighted.h); valid ranges of stored numbers (bounds.h); functions shared by host
 * and GPU (host_device.h).
 *
 * Random numbers are counter-based: draw k is a function of (seed, sequence, k) and is computed directly. So neither
 * the order of draws nor the thread that draws has an effect.
 */
#ifndef MRC_CORE_NUMBERS_RANDOM_H
#define MRC_CORE_NUMBERS_RANDOM_H

#include <stdint.h>

/* A sequence of random numbers. Each use of a seed has its own sequence, for example the choice of rows, the choice of
   centers, and the order of batches. */
typedef struct mrc_rng {
    uint64_t seed;
    uint64_t sequence;
} mrc_rng;

/* Computes mrc_philox of host_device.h with counter and key as 32-bit words. */
void mrc_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

uint64_t mrc_random_u64(mrc_rng rng, uint64_t k);                 /* uniform 64 bits */
double mrc_random_uniform(mrc_rng rng, uint64_t k);               /* [0, 1), 53 bits */
double mrc_random_normal(mrc_rng rng, uint64_t k);                /* mean 0, variance 1 */
int64_t mrc_random_below(mrc_rng rng, uint64_t k, int64_t bound); /* 0 .. bound - 1 */

/* Returns the k-th element of a random permutation of 0 .. n - 1, in constant memory and constant expected time. */
int64_t mrc_random_permutation(mrc_rng rng, int64_t n, int64_t k);
/* Writes elements first .. first + count - 1 of that permutation to out (count), on up to `threads` threads. */
void mrc_random_permutations(int threads, mrc_rng rng, int64_t n, int64_t first, int64_t count, int64_t *out);

#endif

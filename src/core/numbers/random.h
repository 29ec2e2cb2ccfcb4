/* SPDX-License-Identifier: BSD-3-Clause */
/* Counter-based random numbers: the k-th draw of a stream is a function of (seed, stream, k), computable directly. */
#ifndef MRC_CORE_NUMBERS_RANDOM_H
#define MRC_CORE_NUMBERS_RANDOM_H

#include <stdint.h>

/* Streams keep the uses of one seed apart (which rows, which centers, which batch order). */
typedef struct mrc_stream {
    uint64_t seed;
    uint64_t stream;
} mrc_stream;

/* Philox 4x32-10 of Salmon, Moraes, Dror and Shaw (2011): ten rounds of a keyed bijection of a 128-bit counter. */
void mrc_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

uint64_t mrc_random_u64(mrc_stream stream, uint64_t k);                 /* uniform 64 bits */
double mrc_random_uniform(mrc_stream stream, uint64_t k);               /* [0, 1), 53 bits */
double mrc_random_normal(mrc_stream stream, uint64_t k);                /* mean 0, variance 1 */
int64_t mrc_random_below(mrc_stream stream, uint64_t k, int64_t bound); /* 0 .. bound - 1 */

/* The k-th element of a random permutation of 0 .. n - 1, in constant memory and constant expected time. */
int64_t mrc_random_permutation(mrc_stream stream, int64_t n, int64_t k);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Many random bits and normal numbers at once: what noise on images needs. Draws are functions of (seed, sequence, k).
   */
#ifndef MRC_CORE_NUMBERS_RANDOM_NORMAL_H
#define MRC_CORE_NUMBERS_RANDOM_NORMAL_H

#include "core/numbers/random.h"

enum { MRC_NORMAL_ATOMS = 4096 };

/* Quantiles of the normal law, in units of 2^-12. */
typedef struct mrc_normal_table {
    int16_t atoms[MRC_NORMAL_ATOMS];
} mrc_normal_table;

void mrc_normal_table_init(mrc_normal_table *table);

/* 32-bit words first .. first + count - 1 of a sequence; first is a multiple of 4. Word k is word k mod 4 of block k /
   4. */
void mrc_random_words(mrc_rng rng, uint64_t first, int64_t count, uint32_t *out);

/* mean 0, variance 1; draw k is made of word k. first is a multiple of 4. The law is in random_normal.c. */
void mrc_random_normals(const mrc_normal_table *table, mrc_rng rng, uint64_t first, int64_t count, float *out);

#endif

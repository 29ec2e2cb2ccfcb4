/* SPDX-License-Identifier: BSD-3-Clause */
/* Random bits and normal numbers in bulk, for example for noise on images. Draws are functions of (seed, sequence,
   k). */
#ifndef MRC_CORE_NUMBERS_RANDOM_NORMAL_H
#define MRC_CORE_NUMBERS_RANDOM_NORMAL_H

#include "core/numbers/random.h"

enum { MRC_NORMAL_ATOMS = 4096 };

/* Means of the normal distribution between its quantiles i/4096 and (i+1)/4096, scaled to variance 1, in units of
   2^-12. */
typedef struct mrc_normal_table {
    int16_t atoms[MRC_NORMAL_ATOMS];
} mrc_normal_table;

void mrc_normal_table_init(mrc_normal_table *table);

/* Writes 32-bit words first .. first + count - 1 of a sequence to out; first must be a multiple of 4. Word k is word k
   mod 4 of block k / 4. */
void mrc_random_words(mrc_rng rng, uint64_t first, int64_t count, uint32_t *out);

/* Writes normal numbers (mean 0, variance 1) first .. first + count - 1 to out; number k is made from word k, first
   must be a multiple of 4. random_normal.c describes the distribution. */
void mrc_random_normals(const mrc_normal_table *table, mrc_rng rng, uint64_t first, int64_t count, float *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Synthetic samples: sample i of an endless sequence is a function of (spec, seed, i). */
#ifndef MRC_DATA_SYNTH_H
#define MRC_DATA_SYNTH_H

#include "data/dataset.h"

/* A dataset of samples first .. first + rows - 1. */
mercer_status mrc_synth_dataset(mercer_dataset **out, mercer_context *context, const char *spec, int64_t first,
                                int64_t rows, uint64_t seed);
void mrc_synth_free(mercer_context *context, mrc_synth *synth);

/* Sample number `index` of the sequence: features into row `row` of x, targets into row `row` of y unless NULL, the class
   into *label unless NULL. Any thread; never fails, never allocates. */
void mrc_synth_sample(const mrc_synth *synth, int64_t index, const mercer_matrix *x, const mercer_matrix *y,
                      int64_t row, int32_t *label);

#endif

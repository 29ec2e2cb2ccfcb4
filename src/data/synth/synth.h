/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/synth: synthetic samples for tests, benchmarks and demonstrations: images of digits, samples of a teacher model,
 * overlapping clusters, spirals.
 *
 * Sample i of an infinite sequence is a function of (spec, seed, i), so any range of samples can be computed
 * separately. Each kind is a row of the table in synth.c; synth_kinds.h declares what a kind must provide.
 */
#ifndef MRC_DATA_SYNTH_SYNTH_H
#define MRC_DATA_SYNTH_SYNTH_H

#include "core/numbers/random_normal.h"
#include "data/dataset.h"

/* Makes a dataset of samples first .. first + rows - 1. */
mercer_status mrc_synth_dataset(mercer_dataset **out, mercer_context *context, const char *spec, int64_t first,
                                int64_t rows, uint64_t seed);
void mrc_synth_free(mercer_context *context, mrc_synth *synth);
/* Computes the smallest error that any model can have on the distribution of the samples, averaged over the first
   `rows` samples: share of wrong classes (clusters) or mean squared error (teacher). Fails with
   MERCER_ERROR_UNSUPPORTED for other kinds. */
mercer_status mrc_synth_least_error(const mercer_dataset *dataset, double *out, int64_t rows);

/* Parameters of a teacher, borrowed from the synth. Sample i has x = the normal numbers 0 .. d - 1 of sequence i, and y
   = K(x, z) alpha plus noise times the normal numbers from the next multiple of 4 on. */
typedef struct mrc_teacher {
    mercer_kernel kernel;
    const float *z, *alpha; /* (centers, d), (centers, c) */
    int64_t centers;
    double noise;
    uint64_t seed;
    const mrc_normal_table *normals;
} mrc_teacher;
/* Sets *out to the teacher. Returns false if the samples are of another kind. */
bool mrc_synth_teacher(const mrc_synth *synth, mrc_teacher *out);

/* Computes sample number `index` of the sequence. Writes features to row `row` of x, targets to row `row` of y, and the
   class to *label. y and label may be NULL. Thread-safe; never fails or allocates. */
void mrc_synth_sample(const mrc_synth *synth, int64_t index, const mercer_matrix *x, const mercer_matrix *y,
                      int64_t row, int32_t *label);

#endif

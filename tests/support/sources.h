/* SPDX-License-Identifier: BSD-3-Clause */
/* Sources of samples in matrices, with numbers or classes as targets. */
#ifndef MRC_TESTS_SOURCES_H
#define MRC_TESTS_SOURCES_H

#include "mercer/samples.h"

static inline mercer_status source_from_matrices(mercer_source *out, mercer_context *owner, const mercer_matrix *x,
                                                 const mercer_matrix *y, const double *weights, uint64_t seed)
{
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = x, arrays.Y = y, arrays.weights = weights;
    return mercer_source_from_arrays(out, owner, &arrays, seed);
}

static inline mercer_status source_from_labels(mercer_source *out, mercer_context *owner, const mercer_matrix *x,
                                               const int32_t *labels, int64_t classes, const double *weights,
                                               uint64_t seed)
{
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = x, arrays.labels = labels, arrays.classes = classes, arrays.weights = weights;
    return mercer_source_from_arrays(out, owner, &arrays, seed);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds that step sizes follow from, where the eigensystem of a sample does not give them. */
#ifndef MRC_SOLVERS_ITERATION_STEP_BOUNDS_H
#define MRC_SOLVERS_ITERATION_STEP_BOUNDS_H

#include "solvers/operators/center_shards.h"
#include "solvers/sample_stream.h"

/* For gradient descent on the weights: plain_top and plain_beta of mrc_iteration_options. sampled: batches are draws of
   the data. */
mercer_status mrc_plain_bounds(mrc_centers *centers, const mercer_matrix *sample, double ridge, bool sampled,
                               double *top, double *beta);
/* Raises beta, estimated on the rows `fresh`, to what all samples of the stream need. */
mercer_status mrc_raise_beta(mrc_centers *centers, mrc_sample_stream *stream, const mercer_matrix *fresh, double *beta);

#endif

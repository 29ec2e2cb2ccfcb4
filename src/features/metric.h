/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * features: metrics given by the caller, as linear maps of the points.
 *
 * A metric changes the L2 distance of a kernel: r^2 = (x - z) M (x - z)'. It is stored as the linear map A with M = A
 * A', so that |x A - z A| is the distance (data/prepare/linear_map.h). M is full, or given by weights w: M = diag(w), A
 * = diag(sqrt(w)). Weights for other norms are converted first (fit/fit_kernel.c).
 */
#ifndef MRC_FEATURES_METRIC_H
#define MRC_FEATURES_METRIC_H

#include "backends/backend.h"

typedef struct mrc_metric {
    int64_t width; /* d': number of columns after the map */
    bool diagonal;
    double *map; /* (d, d'), or the diagonal (d) */
} mrc_metric;

/*
 * Creates the metric from the caller's matrix for samples with d features: weights (1, d) or (d, 1), or M (d, d), f32
 * or f64. Refuses, with the offending number in the message: other sizes, NaN, negative weights, an M that is not
 * symmetric (by more than 1e-6 of its largest entry) or has a negative eigenvalue (beyond 1e-6 of the largest). The
 * metric is not rescaled. Directions whose eigenvalue is within rounding error of zero (below 1e-10 of the largest) are
 * dropped. Errors: SHAPE, DTYPE, DATA. The scope owns the map.
 */
mercer_status mrc_metric_given(mrc_metric *out, mrc_scope *scope, mrc_backend *backend, int64_t d,
                               const mercer_matrix *given);

/* Checks the shape of the caller's matrix before the samples are known. d: number of features, or 0 if unknown. */
mercer_status mrc_metric_check(mercer_context *context, const mercer_matrix *given, int64_t d);

#endif

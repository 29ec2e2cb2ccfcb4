/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * features: metrics that a caller gives, as maps of the points.
 *
 * A metric of a kernel of the L2 distance: r^2 = (x - z) M (x - z)'. A metric is stored as the linear map A with
 * M = A A', so that |x A - z A| is the distance (data/prepare/linear_map.h). M is full, or given by weights w:
 * M = diag(w), A = diag(sqrt(w)). The weights of other norms are converted before (fit/fit_kernel.c).
 */
#ifndef MRC_FEATURES_METRIC_H
#define MRC_FEATURES_METRIC_H

#include "backends/backend.h"

typedef struct mrc_metric {
    mercer_context *context;
    int64_t features, width; /* d, d' */
    bool diagonal;
    double *map;      /* (d, d'), or the diagonal (d); owned */
    double *spectrum; /* (d') eigenvalues of M, descending; of a diagonal, the weights of the features; owned */
} mrc_metric;

/* Of one that was made, or could not be. */
void mrc_metric_free(mrc_metric *metric);

/*
 * The metric that a caller gives for samples with d features: weights (1, d) or (d, 1), or M (d, d), f32 or f64.
 * Refused with the number that was found: another size, NaN, a weight below 0, M not symmetric (beyond 1e-6 of its
 * largest entry) or with an eigenvalue below 0 (beyond 1e-6 of the largest). It is used as it is given: only directions
 * whose eigenvalue is below 1e-10 of the largest, which is rounding, are left out. Errors: SHAPE, DTYPE, DATA.
 */
mercer_status mrc_metric_given(mrc_metric *out, mrc_backend *backend, int64_t d, const mercer_matrix *given);

/* The shape of such a matrix, before the samples are known. d: their features, or 0. */
mercer_status mrc_metric_check(mercer_context *context, const mercer_matrix *given, int64_t d);

#endif

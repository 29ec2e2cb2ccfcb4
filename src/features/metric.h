/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics of a kernel: r^2 = (x - z) M (x - z)' in norm 2, r = sum_k w_k |x_k - z_k| in norm 1. A metric is kept as the
 * map of points A with M = A A', or its diagonal, so that |x A - z A| is the distance (data/prepare/linear_map.h).
 *
 *   norm 2   M full, or diagonal: weights w with M = diag(w), A = diag(sqrt(w))
 *   norm 1   diagonal: A = diag(w)
 */
#ifndef MRC_FEATURES_METRIC_H
#define MRC_FEATURES_METRIC_H

#include "features/gradient.h"

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
mercer_status mrc_metric_given(mrc_metric *out, mrc_backend *backend, mrc_norm norm, int64_t d,
                               const mercer_matrix *given);

/* The shape of such a matrix, before the samples are known. d: their features, or 0. */
mercer_status mrc_metric_check(mercer_context *context, const mercer_matrix *given, int64_t d);

/*
 * The next metric from the gradients G (d', d'), or their squares' means (1, d'), at points mapped by `now`:
 *
 *   norm 2   M = (A G A')^(1/2), scaled to trace d; directions below 1e-4 of the largest eigenvalue are dropped
 *   norm 1   w_k = w_k sqrt(G_kk), scaled to a largest weight of 1, at least 1e-4
 *
 * *zero: all gradients are 0, and it is `now` once more. now->map may be NULL: the identity on d features. G is
 * changed.
 */
mercer_status mrc_metric_next(mrc_metric *out, mrc_backend *backend, mrc_norm norm, const mrc_metric *now,
                              const mercer_matrix *G, bool *zero);

/* `now` with its coordinates (d') times e^logs, scaled and rid of what is small as the next one is. */
mercer_status mrc_metric_scaled(mrc_metric *out, mrc_backend *backend, mrc_norm norm, const mrc_metric *now,
                                const double *logs);

/* What feature k counts for: M_kk, or w_k. */
double mrc_metric_weight(const mrc_metric *metric, mrc_norm norm, int64_t k);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Overlapping clusters, whose smallest possible error is known:
 *
 *   x = mu_j + overlap N(0, I),   j uniform in 0 .. P - 1,   mu_j ~ N(0, I) in R^d
 *   class j mod K, but with probability `noise` a class drawn uniformly from all K
 *
 * The best classifier is a kernel model with P centers. Let q_k(x) be the sum of exp(-|x - mu_j|^2 / (2 overlap^2))
 * over the clusters j of class k, divided by the sum over all clusters. Class k then has the probability (1 - noise)
 * q_k(x) + noise / K, and the smallest error rate of any classifier is
 *
 *   (1 - noise) E[1 - max_k q_k(x)] + noise (1 - 1/K)
 *
 * Two clusters are mistaken for each other with probability Phi(-|mu_i - mu_j| / (2 overlap)); |mu_i - mu_j| is about
 * sqrt(2 d). A model with fewer than P centers, or with too few samples to see every cluster, has a larger error.
 *
 * Cost: O(d) per sample, independent of P; O(P d) per sample for its smallest possible error.
 */
#include "core/memory.h"
#include "data/synth/synth_kinds.h"

#include <math.h>

enum { NORMALS_FROM = 8 }; /* index of the first normal number; earlier draws choose cluster and class */

/* Random sequence of the centers; samples have sequences >= 0. */
#define RANDOM_CLUSTERS UINT64_MAX

int32_t mrc_synth_cluster(const mrc_synth *self, int64_t index, void *features, const mercer_matrix *y, int64_t row)
{
    (void)y, (void)row;
    const mrc_synth_parameters *given = &self->parameters;
    mrc_rng rng = {self->seed, (uint64_t)index};
    int64_t cluster = (int64_t)mrc_random_below(rng, 0, given->centers);
    const float *center = self->z + cluster * given->d;
    float *x = features;
    mrc_random_normals(&self->normals, rng, NORMALS_FROM, given->d, x);
    for (int64_t k = 0; k < given->d; k++) x[k] = center[k] + (float)given->bandwidth * x[k];
    if (mrc_random_uniform(rng, 1) < given->noise) return (int32_t)mrc_random_below(rng, 2, given->classes);
    return (int32_t)(cluster % given->classes);
}

mercer_status mrc_synth_prepare_clusters(mercer_dataset *dataset, mrc_synth *self)
{
    const mrc_synth_parameters *given = &self->parameters;
    /* At most 10^7 centers of 10^6 features (synth.c), so the product fits. */
    int64_t points = (int64_t)given->centers * given->d;
    if (given->centers < given->classes)
        return mrc_fail(dataset->context, MERCER_ERROR_ARGUMENT,
                        "synthetic data clusters: %d centers are fewer than %d classes; use at least one center per "
                        "class",
                        given->centers, given->classes);
    MRC_TRY(mrc_alloc(dataset->context, &self->z, points, sizeof *self->z, "centers of clusters"));
    mrc_random_normals(&self->normals, (mrc_rng){self->seed, RANDOM_CLUSTERS}, 0, points, self->z);
    dataset->features = given->d;
    dataset->outputs = given->classes;
    return MERCER_OK;
}

/* Returns |x - z|^2. */
static double square_distance(const float *x, const float *z, int64_t d)
{
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += ((double)x[k] - (double)z[k]) * ((double)x[k] - (double)z[k]);
    return sum;
}

/* Exponents are relative to the nearest cluster, so that no term exceeds 1 and the sum does not underflow. */
double mrc_synth_cluster_error(const mrc_synth *self, const float *x, double *shares)
{
    const mrc_synth_parameters *given = &self->parameters;
    double nearest = INFINITY, sum = 0, largest = 0, two = 2 * given->bandwidth * given->bandwidth;
    for (int64_t j = 0; j < given->centers; j++)
        nearest = fmin(nearest, square_distance(x, self->z + j * given->d, given->d));
    for (int32_t k = 0; k < given->classes; k++) shares[k] = 0;
    for (int64_t j = 0; j < given->centers; j++) {
        double share = exp((nearest - square_distance(x, self->z + j * given->d, given->d)) / two);
        shares[j % given->classes] += share;
        sum += share;
    }
    for (int32_t k = 0; k < given->classes; k++) largest = fmax(largest, shares[k] / sum);
    return (1 - given->noise) * (1 - largest) + given->noise * (1 - 1 / (double)given->classes);
}

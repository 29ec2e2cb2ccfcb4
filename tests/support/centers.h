/* SPDX-License-Identifier: BSD-3-Clause */
/* Data with a known structure for tests of centers, and calls that choose centers. */
#ifndef MRC_TESTS_CENTERS_H
#define MRC_TESTS_CENTERS_H

#include "support/check.h"

#include "support/data.h"

static inline mercer_context *open_threads(int threads)
{
    mercer_context *context = NULL;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = threads;
    assert_succeeds(NULL, mercer_context_create(&context, &options));
    return context;
}

static inline mercer_center_options center_options(const char *method, uint64_t seed)
{
    mercer_center_options options;
    options = (mercer_center_options)MERCER_INIT(mercer_center_options);
    options.method = method;
    options.seed = seed;
    return options;
}

/* Create n rows around k points far from each other; row i belongs to point i % k. All values also fit in bytes. */
static inline mercer_matrix cluster_rows(int64_t n, int64_t d, int64_t k, mercer_dtype dtype, double deviation)
{
    mercer_matrix X = data_matrix(n, d, d + 1, dtype);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) {
            double middle = 20 + 200 * mrc_random_uniform((mrc_rng){77, (uint64_t)(i % k)}, (uint64_t)j);
            data_store(&X, i, j, middle + deviation * mrc_random_normal((mrc_rng){78, (uint64_t)i}, (uint64_t)j));
        }
    return X;
}

static inline double sqdist_rows(const mercer_matrix *a, int64_t i, const mercer_matrix *b, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < a->cols; k++) {
        double difference = mrc_load(a, i, k) - mrc_load(b, j, k);
        sum += difference * difference;
    }
    return sum;
}

/* Return the mean squared distance to the nearest row of Z, by plain loops. */
static inline double plain_error(const mercer_matrix *X, const mercer_matrix *Z)
{
    double sum = 0;
    for (int64_t i = 0; i < X->rows; i++) {
        double best = INFINITY;
        for (int64_t j = 0; j < Z->rows; j++) best = fmin(best, sqdist_rows(X, i, Z, j));
        sum += best;
    }
    return sum / (double)X->rows;
}

/* Return the index of the row of X that equals row j of Z, or -1. */
static inline int64_t find_row(const mercer_matrix *X, const mercer_matrix *Z, int64_t j)
{
    for (int64_t i = 0; i < X->rows; i++)
        if (sqdist_rows(X, i, Z, j) == 0) return i;
    return -1;
}

/* Check that every row of Z is a row of X and that no two rows of Z are equal. */
static inline void assert_different_rows(const mercer_matrix *X, const mercer_matrix *Z)
{
    for (int64_t j = 0; j < Z->rows; j++) {
        assert_that(find_row(X, Z, j) >= 0, "center %lld is not a row of X", (long long)j);
        for (int64_t k = 0; k < j; k++)
            assert_that(sqdist_rows(Z, j, Z, k) > 0, "centers %lld and %lld coincide", (long long)k, (long long)j);
    }
}

static inline mercer_center_report choose(mercer_context *context, const mercer_matrix *Z, const mercer_matrix *X,
                                          const mercer_center_options *options)
{
    mercer_center_report report = {.struct_size = sizeof report};
    assert_succeeds(context, mercer_choose_centers(context, Z, X, options, &report));
    return report;
}

#endif

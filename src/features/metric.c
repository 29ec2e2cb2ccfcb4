/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of given metrics, and their conversion to linear maps.
 *
 *   M = V diag(e) V',  e descending:  A = V_q diag(sqrt(e_q)) with the q eigenvalues that are large enough
 *
 * Any A with A A' = M gives the same distances; this one has the fewest columns. Cost: an eigensystem, O(d^3).
 */
#include "features/metric.h"

#include "core/matrix.h"

#include <math.h>

#define LEAST_EIGENVALUE 1e-10 /* relative to the largest; smaller eigenvalues are rounding errors */
#define TOLERANCE        1e-6  /* relative tolerance for symmetry and for negative eigenvalues */

/* Returns the number of weights; 0 if the matrix is M itself. */
static int64_t weights_in(const mercer_matrix *given)
{
    return given->rows == 1 ? given->cols : given->cols == 1 ? given->rows : 0;
}

static double weight_at(const mercer_matrix *given, int64_t k)
{
    return given->rows == 1 ? mrc_load(given, 0, k) : mrc_load(given, k, 0);
}

static mercer_status check_weights(mercer_context *context, const mercer_matrix *given)
{
    double sum = 0;
    for (int64_t k = 0; k < weights_in(given); k++) {
        double w = weight_at(given, k);
        if (w < 0)
            return mrc_fail(context, MERCER_ERROR_DATA, "metric: weight %lld (from 0) is %g; it must be at least 0",
                            (long long)k, w);
        sum += w;
    }
    return sum > 0 ? MERCER_OK
                   : mrc_fail(context, MERCER_ERROR_DATA, "metric: all weights are 0; at least one must be positive");
}

static mercer_status check_symmetric(mercer_context *context, const mercer_matrix *given, double largest)
{
    for (int64_t i = 0; i < given->rows; i++)
        for (int64_t j = 0; j < i; j++) {
            double low = mrc_load(given, i, j), high = mrc_load(given, j, i);
            if (fabs(low - high) > TOLERANCE * largest)
                return mrc_fail(
                    context, MERCER_ERROR_DATA,
                    "metric: entry (%lld, %lld) (from 0) is %g, but (%lld, %lld) is %g; the matrix must be symmetric",
                    (long long)i, (long long)j, low, (long long)j, (long long)i, high);
        }
    return MERCER_OK;
}

mercer_status mrc_metric_check(mercer_context *context, const mercer_matrix *given, int64_t d)
{
    double largest;
    MRC_TRY(mrc_check_matrix(context, "metric", given, MRC_ACCEPT_REAL));
    int64_t count = weights_in(given) > 0 ? weights_in(given) : given->rows;
    bool shaped = given->rows > 0 && (weights_in(given) > 0 || given->rows == given->cols);
    if (!shaped || (d > 0 && count != d)) {
        int64_t wanted = d > 0 ? d : count;
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "metric is %lld x %lld; for %lld features it must be %lld weights, or %lld x %lld",
                        (long long)given->rows, (long long)given->cols, (long long)wanted, (long long)wanted,
                        (long long)wanted, (long long)wanted);
    }
    MRC_TRY(mrc_check_finite(context, "metric", given, &largest));
    return weights_in(given) > 0 ? check_weights(context, given) : check_symmetric(context, given, largest);
}

/* Factorizes M (d, d) f64, which is overwritten, into the map V_q diag(sqrt(e_q)). */
static mercer_status decompose(mrc_metric *out, mrc_scope *scope, mrc_backend *backend, const mercer_matrix *m)
{
    int64_t d = m->rows;
    mercer_matrix vectors;
    double *e;
    MRC_TRY(mrc_scope_alloc(scope, &e, d, sizeof *e, "eigenvalues"));
    MRC_TRY(mrc_scope_view(scope, &vectors, d, d, MERCER_F64, "eigenvectors"));
    MRC_TRY(backend->ops->eigen_top(backend, m, d, e, &vectors));
    if (!(e[0] > 0) || !isfinite(e[0]))
        return mrc_fail(backend->context, MERCER_ERROR_DATA,
                        "metric: no eigenvalue is above 0; at least one must be positive");
    if (e[d - 1] < -TOLERANCE * e[0])
        return mrc_fail(
            backend->context, MERCER_ERROR_DATA,
            "metric: the smallest eigenvalue is %g, the largest %g; the matrix must be positive semidefinite", e[d - 1],
            e[0]);
    for (out->width = 0; out->width < d && e[out->width] >= LEAST_EIGENVALUE * e[0];) out->width++;
    MRC_TRY(mrc_scope_alloc(scope, &out->map, d, out->width * (int64_t)sizeof *out->map, "the metric"));
    for (int64_t k = 0; k < d; k++)
        for (int64_t j = 0; j < out->width; j++) out->map[k * out->width + j] = mrc_load(&vectors, k, j) * sqrt(e[j]);
    return MERCER_OK;
}

mercer_status mrc_metric_given(mrc_metric *out, mrc_scope *scope, mrc_backend *backend, int64_t d,
                               const mercer_matrix *given)
{
    mercer_matrix m;
    MRC_TRY(mrc_metric_check(backend->context, given, d));
    *out = (mrc_metric){.width = d, .diagonal = weights_in(given) > 0};
    if (out->diagonal) {
        MRC_TRY(mrc_scope_alloc(scope, &out->map, d, sizeof *out->map, "the metric"));
        for (int64_t k = 0; k < d; k++) out->map[k] = sqrt(weight_at(given, k));
        return MERCER_OK;
    }
    MRC_TRY(mrc_scope_view(scope, &m, d, d, MERCER_F64, "the metric"));
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) mrc_store(&m, i, j, (mrc_load(given, i, j) + mrc_load(given, j, i)) / 2);
    return decompose(out, scope, backend, &m);
}

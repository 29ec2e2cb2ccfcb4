/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks given metrics and converts them to linear maps.
 *
 *   M = V diag(e) V',  e descending:  A = V_q diag(sqrt(e_q)) with the q eigenvalues that are large enough
 *
 * Any A with A A' = M gives the same distances; this one has the fewest columns. Cost: an eigensystem, O(d^3).
 */
#include "features/metric.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

#define LEAST_EIGENVALUE 1e-10 /* relative to the largest; smaller eigenvalues are rounding errors */
#define TOLERANCE        1e-6  /* relative tolerance for symmetry and for negative eigenvalues */

void mrc_metric_free(mrc_metric *metric)
{
    if (!metric->context) return;
    mrc_free(metric->context, metric->map);
    mrc_free(metric->context, metric->spectrum);
    *metric = (mrc_metric){0};
}

static mercer_status make_room(mrc_metric *out, mercer_context *context, int64_t features, int64_t width, bool diagonal)
{
    *out = (mrc_metric){.context = context, .features = features, .width = width, .diagonal = diagonal};
    MRC_TRY(mrc_alloc(context, &out->map, features, (diagonal ? 1 : width) * (int64_t)sizeof(double), "the metric"));
    return mrc_alloc(context, &out->spectrum, width, sizeof *out->spectrum, "the metric");
}

/* ---- From a matrix ----------------------------------------------------------------------------------------------- */

/* Factorizes M (d, d) f64, which is overwritten, into a map. *lowest: smallest eigenvalue over the largest. *zero:
   no eigenvalue is above 0. */
static mercer_status decompose(mrc_metric *out, mrc_backend *backend, const mercer_matrix *m, double *lowest,
                               bool *zero)
{
    int64_t d = m->rows, kept = 0;
    mercer_matrix vectors;
    double *e, trace = 0;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &e, d, sizeof *e, "eigenvalues"));
    MRC_TRY(mrc_scope_view(&scope, &vectors, d, d, MERCER_F64, "eigenvectors"));
    MRC_TRY(backend->ops->eigen_top(backend, m, d, e, &vectors));
    *lowest = e[d - 1] / fmax(e[0], 1e-300);
    for (int64_t k = 0; k < d; k++) trace += e[k] = fmax(e[k], 0);
    while (kept < d && e[kept] > 0 && e[kept] >= LEAST_EIGENVALUE * e[0]) kept++;
    *zero = kept == 0 || !isfinite(trace);
    if (*zero) return MERCER_OK;
    MRC_TRY(make_room(out, backend->context, d, kept, false));
    for (int64_t j = 0; j < kept; j++) {
        out->spectrum[j] = e[j];
        for (int64_t k = 0; k < d; k++) out->map[k * kept + j] = mrc_load(&vectors, k, j) * sqrt(out->spectrum[j]);
    }
    return MERCER_OK;
}

/* ---- Given metrics ----------------------------------------------------------------------------------------------- */

static int64_t weights_in(const mercer_matrix *given)
{
    return given->rows == 1 ? given->cols : given->cols == 1 ? given->rows : 0;
}

static mercer_status check_weights(mercer_context *context, const mercer_matrix *given)
{
    double sum = 0;
    for (int64_t k = 0; k < weights_in(given); k++) {
        double w = mrc_load(given, given->rows == 1 ? 0 : k, given->rows == 1 ? k : 0);
        if (w < 0)
            return mrc_fail(context, MERCER_ERROR_DATA, "metric: weight %lld (from 0) is %g; it must be at least 0",
                            (long long)k, w);
        sum += w;
    }
    return sum > 0 ? MERCER_OK
                   : mrc_fail(context, MERCER_ERROR_DATA,
                              "metric: all weights are 0; at least one must "
                              "be positive");
}

static mercer_status check_symmetric(mercer_context *context, const mercer_matrix *given, double largest)
{
    for (int64_t i = 0; i < given->rows; i++)
        for (int64_t j = 0; j < i; j++) {
            double low = mrc_load(given, i, j), high = mrc_load(given, j, i);
            if (fabs(low - high) > TOLERANCE * largest)
                return mrc_fail(context, MERCER_ERROR_DATA,
                                "metric: entry (%lld, %lld) (from 0) is %g, but (%lld, %lld) is %g; the matrix must "
                                "be symmetric",
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

static mercer_status given_full(mrc_metric *out, mrc_backend *backend, const mercer_matrix *given)
{
    mercer_context *context = backend->context;
    mercer_matrix m;
    double lowest = 0;
    bool zero = false;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_view(&scope, &m, given->rows, given->rows, MERCER_F64, "the metric"));
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < m.rows; j++) mrc_store(&m, i, j, (mrc_load(given, i, j) + mrc_load(given, j, i)) / 2);
    MRC_TRY(decompose(out, backend, &m, &lowest, &zero));
    if (zero)
        return mrc_fail(context, MERCER_ERROR_DATA,
                        "metric: no eigenvalue is above 0; at least one must be "
                        "positive");
    if (lowest >= -TOLERANCE) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_DATA,
                    "metric: the smallest eigenvalue is %g, the largest %g; the matrix must be positive semidefinite",
                    lowest * out->spectrum[0], out->spectrum[0]);
}

mercer_status mrc_metric_given(mrc_metric *out, mrc_backend *backend, int64_t d, const mercer_matrix *given)
{
    *out = (mrc_metric){0};
    MRC_TRY(mrc_metric_check(backend->context, given, d));
    if (weights_in(given) == 0) return given_full(out, backend, given);
    MRC_TRY(make_room(out, backend->context, d, d, true));
    for (int64_t k = 0; k < d; k++) {
        double w = mrc_load(given, given->rows == 1 ? 0 : k, given->rows == 1 ? k : 0);
        out->map[k] = sqrt(w);
        out->spectrum[k] = w;
    }
    return MERCER_OK;
}

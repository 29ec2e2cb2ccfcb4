/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics from matrices and from gradients.
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

#define LEAST_LEARNED 1e-4  /* of the largest eigenvalue of M */
#define LEAST_GIVEN   1e-10 /* the same: below is rounding */
#define TOLERANCE     1e-6  /* of what is to be symmetric and not negative */

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

/* M (d, d) f64, which is destroyed, to a map. power: 1, or 1/2 if the root of M is the metric; scaled: to trace d.
   *zero: no eigenvalue is above 0. */
static mercer_status decompose(mrc_metric *out, mrc_backend *backend, const mercer_matrix *m, double power, bool scaled,
                               double least, double *lowest, bool *zero)
{
    int64_t d = m->rows, kept = 0;
    mercer_matrix vectors;
    double *e, trace = 0;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &e, d, sizeof *e, "eigenvalues"));
    MRC_TRY(mrc_scope_view(&scope, &vectors, d, d, MERCER_F64, "eigenvectors"));
    MRC_TRY(backend->ops->eigen_top(backend, m, d, e, &vectors));
    *lowest = e[d - 1] / fmax(e[0], 1e-300);
    for (int64_t k = 0; k < d; k++) trace += e[k] = pow(fmax(e[k], 0), power);
    while (kept < d && e[kept] > 0 && e[kept] >= least * e[0]) kept++;
    *zero = kept == 0 || !isfinite(trace);
    if (*zero) return MERCER_OK;
    MRC_TRY(make_room(out, backend->context, d, kept, false));
    for (int64_t j = 0; j < kept; j++) {
        out->spectrum[j] = scaled ? e[j] / trace * (double)d : e[j];
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
            return mrc_fail(context, MERCER_ERROR_DATA, "metric: weight %lld (from 0) is %g, it must be at least 0",
                            (long long)k, w);
        sum += w;
    }
    return sum > 0 ? MERCER_OK : mrc_fail(context, MERCER_ERROR_DATA, "metric: all weights are 0: no feature counts");
}

static mercer_status check_symmetric(mercer_context *context, const mercer_matrix *given, double largest)
{
    for (int64_t i = 0; i < given->rows; i++)
        for (int64_t j = 0; j < i; j++) {
            double low = mrc_load(given, i, j), high = mrc_load(given, j, i);
            if (fabs(low - high) > TOLERANCE * largest)
                return mrc_fail(context, MERCER_ERROR_DATA,
                                "metric: entry (%lld, %lld) (from 0) is %g, but (%lld, %lld) is %g: it must be "
                                "symmetric",
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
                        "metric is %lld x %lld: for %lld features it must be %lld weights, or %lld x %lld",
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
    MRC_TRY(decompose(out, backend, &m, 1, false, LEAST_GIVEN, &lowest, &zero));
    if (zero) return mrc_fail(context, MERCER_ERROR_DATA, "metric: it has no eigenvalue above 0: no direction counts");
    if (lowest >= -TOLERANCE) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_DATA,
                    "metric: its eigenvalues go down to %g, the largest is %g: none may be below 0",
                    lowest * out->spectrum[0], out->spectrum[0]);
}

mercer_status mrc_metric_given(mrc_metric *out, mrc_backend *backend, mrc_norm norm, int64_t d,
                               const mercer_matrix *given)
{
    *out = (mrc_metric){0};
    MRC_TRY(mrc_metric_check(backend->context, given, d));
    if (weights_in(given) == 0 && norm == MRC_NORM_1)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                        "metric is %lld x %lld: a kernel of the L1 distance takes %lld weights", (long long)d,
                        (long long)d, (long long)d);
    if (weights_in(given) == 0) return given_full(out, backend, given);
    MRC_TRY(make_room(out, backend->context, d, d, true));
    for (int64_t k = 0; k < d; k++) {
        double w = mrc_load(given, given->rows == 1 ? 0 : k, given->rows == 1 ? k : 0);
        out->map[k] = norm == MRC_NORM_1 ? w : sqrt(w);
        out->spectrum[k] = w;
    }
    return MERCER_OK;
}

/* ---- Learned metrics --------------------------------------------------------------------------------------------- */

static mercer_status copy_metric(mrc_metric *out, mercer_context *context, const mrc_metric *now)
{
    bool identity = now->map == NULL;
    int64_t d = now->features;
    MRC_TRY(make_room(out, context, d, now->width, identity || now->diagonal));
    for (int64_t k = 0; identity && k < d; k++) out->map[k] = out->spectrum[k] = 1;
    if (identity) return MERCER_OK;
    memcpy(out->map, now->map, (size_t)(d * (now->diagonal ? 1 : now->width)) * sizeof *out->map);
    memcpy(out->spectrum, now->spectrum, (size_t)now->width * sizeof *out->spectrum);
    return MERCER_OK;
}

/* Each feature for itself, by the weights (d) that its spectrum has. */
static mercer_status scale_diagonal(mrc_metric *out, mrc_norm norm, bool *zero)
{
    int64_t d = out->features;
    double trace = 0, largest = 0;
    for (int64_t k = 0; k < d; k++) trace += out->spectrum[k], largest = fmax(largest, out->spectrum[k]);
    *zero = !(largest > 0) || !isfinite(trace);
    for (int64_t k = 0; k < d && !*zero; k++) {
        double share = out->spectrum[k] / largest;
        if (norm == MRC_NORM_1)
            out->map[k] = out->spectrum[k] = fmax(share, LEAST_LEARNED);
        else
            out->spectrum[k] = share >= LEAST_LEARNED ? out->spectrum[k] / trace * (double)d : 0,
            out->map[k] = sqrt(out->spectrum[k]);
    }
    if (*zero) mrc_metric_free(out);
    return MERCER_OK;
}

static double diagonal_of(const mrc_metric *now, int64_t k)
{
    return now->map ? now->map[k] : 1;
}

/* G (1, d). */
static mercer_status next_diagonal(mrc_metric *out, mrc_backend *backend, mrc_norm norm, const mrc_metric *now,
                                   const mercer_matrix *G, bool *zero)
{
    int64_t d = now->features;
    MRC_TRY(make_room(out, backend->context, d, d, true));
    for (int64_t k = 0; k < d; k++) out->spectrum[k] = diagonal_of(now, k) * sqrt(fmax(mrc_load(G, 0, k), 0));
    return scale_diagonal(out, norm, zero);
}

/* N (d, d) = A G A'. product: room (d, d'). */
static mercer_status carry_back(mrc_backend *backend, const mrc_metric *now, const mercer_matrix *G,
                                const mercer_matrix *product, const mercer_matrix *N)
{
    mercer_matrix a = mrc_view(now->map, now->features, now->width, MERCER_F64);
    mrc_gemm first = {.alpha = 1, .a = &a, .b = G, .c = product};
    mrc_gemm second = {.transpose_b = true, .alpha = 1, .a = product, .b = &a, .c = N};
    MRC_TRY(backend->ops->gemm(backend, &first));
    MRC_TRY(backend->ops->gemm(backend, &second));
    return backend->ops->symmetrise(backend, N);
}

/* A diagonal A: N_kj = a_k G_kj a_j. */
static void scale_both(const mrc_metric *now, const mercer_matrix *G)
{
    for (int64_t k = 0; k < G->rows; k++)
        for (int64_t j = 0; j < G->cols; j++) mrc_store(G, k, j, mrc_load(G, k, j) * now->map[k] * now->map[j]);
}

static mercer_status next_full(mrc_metric *out, mrc_backend *backend, const mrc_metric *now, const mercer_matrix *G,
                               bool *zero)
{
    int64_t d = now->features;
    mercer_matrix between, N;
    double lowest;
    if (!now->map || now->diagonal) {
        if (now->map) scale_both(now, G);
        return decompose(out, backend, G, 0.5, true, LEAST_LEARNED, &lowest, zero);
    }
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_view(&scope, &between, d, now->width, MERCER_F64, "the metric"));
    MRC_TRY(mrc_scope_view(&scope, &N, d, d, MERCER_F64, "the metric"));
    MRC_TRY(carry_back(backend, now, G, &between, &N));
    return decompose(out, backend, &N, 0.5, true, LEAST_LEARNED, &lowest, zero);
}

mercer_status mrc_metric_next(mrc_metric *out, mrc_backend *backend, mrc_norm norm, const mrc_metric *now,
                              const mercer_matrix *G, bool *zero)
{
    *out = (mrc_metric){0};
    *zero = false;
    bool diagonal = G->rows == 1 && (now->features > 1 || norm == MRC_NORM_1);
    MRC_TRY(diagonal ? next_diagonal(out, backend, norm, now, G, zero) : next_full(out, backend, now, G, zero));
    return *zero ? copy_metric(out, backend->context, now) : MERCER_OK;
}

/* A diag(e^logs): M = A diag(e^(2 logs)) A', whose directions stay what they are. */
static mercer_status scaled_full(mrc_metric *out, mrc_backend *backend, const mrc_metric *now, const double *logs,
                                 bool *zero)
{
    int64_t d = now->features, q = now->width;
    mercer_matrix between, N, G;
    double lowest;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_view(&scope, &between, d, q, MERCER_F64, "the metric"));
    MRC_TRY(mrc_scope_view(&scope, &N, d, d, MERCER_F64, "the metric"));
    MRC_TRY(mrc_scope_view(&scope, &G, q, q, MERCER_F64, "the metric"));
    for (int64_t k = 0; k < q; k++)
        for (int64_t j = 0; j < q; j++) mrc_store(&G, k, j, k == j ? exp(2 * logs[k]) : 0);
    MRC_TRY(carry_back(backend, now, &G, &between, &N));
    return decompose(out, backend, &N, 1, true, LEAST_LEARNED, &lowest, zero);
}

mercer_status mrc_metric_scaled(mrc_metric *out, mrc_backend *backend, mrc_norm norm, const mrc_metric *now,
                                const double *logs)
{
    int64_t d = now->features;
    bool zero = false;
    *out = (mrc_metric){0};
    if (now->map && !now->diagonal) {
        MRC_TRY(scaled_full(out, backend, now, logs, &zero));
    } else {
        MRC_TRY(make_room(out, backend->context, d, d, true));
        for (int64_t k = 0; k < d; k++) {
            double a = diagonal_of(now, k) * exp(logs[k]);
            out->spectrum[k] = norm == MRC_NORM_1 ? a : a * a;
        }
        MRC_TRY(scale_diagonal(out, norm, &zero));
    }
    return zero ? copy_metric(out, backend->context, now) : MERCER_OK;
}

double mrc_metric_weight(const mrc_metric *metric, mrc_norm norm, int64_t k)
{
    if (metric->diagonal) return norm == MRC_NORM_1 ? metric->map[k] : metric->map[k] * metric->map[k];
    double sum = 0;
    for (int64_t j = 0; j < metric->width; j++)
        sum += metric->map[k * metric->width + j] * metric->map[k * metric->width + j];
    return sum;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds for step sizes that the eigensystem of a sample does not provide.
 *
 *   plain   gradient descent in R^p: the largest eigenvalue of K_ZX K_XZ / n + ridge K_ZZ by power iteration on the
 *           sample, and max over its rows x of |K(Z,x)|^2;   POWER_STEPS 4 s p (d + 1) flops
 *   beta    if K(x,x) is not constant: its largest value over all samples; one pass, n d flops
 */
#include "solvers/iteration/iteration_solver.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <float.h>
#include <math.h>

/* POWER_STEPS: number of power iterations. The estimate approaches the largest eigenvalue from below. After POWER_STEPS
   iterations its error is a few percent, which PLAIN_MARGIN covers. BETA_ROWS: number of rows per block of K(X_s,
   Z). */
enum { POWER_STEPS = 30, BETA_ROWS = 64 };

#define PLAIN_MARGIN 1.1 /* safety factor of both bounds, because they are estimated from a sample */

/* Estimate the largest eigenvalue of K_ZX K_XZ / n + ridge K_ZZ, for gradient descent on the weights, by power
   iteration on the sample. */
static mercer_status find_plain_top(mrc_centers *centers, const mercer_matrix *sample, double ridge, double *top)
{
    mrc_backend *backend = centers->backend;
    mercer_matrix v, values, smooth, ones;
    double norm, mean = 1 / (double)sample->rows;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_field(&scope, centers, &v, 1, centers->real, "a vector"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &values, sample->rows, 1, centers->real, "a vector"));
    MRC_TRY(mrc_scope_field(&scope, centers, &smooth, 1, centers->real, "a vector"));
    MRC_TRY(mrc_host_open(backend, &v, &ones));
    for (int64_t i = 0; i < v.rows; i++) mrc_store(&ones, i, 0, 1);
    MRC_TRY(mrc_host_close(backend, &v, &ones, true, MERCER_OK));
    for (int step = 0; step < POWER_STEPS; step++) {
        MRC_TRY(mrc_centers_norm(centers, &v, &norm));
        MRC_TRY(backend->ops->axpby(backend, 1 / fmax(norm, 1e-300), &v, 0, &v));
        MRC_TRY(mrc_centers_predict(centers, sample, &v, &values, NULL));
        if (ridge > 0) MRC_TRY(mrc_centers_times(centers, NULL, &v, &smooth));
        MRC_TRY(mrc_centers_transpose(centers, sample, &values, &v, NULL, false));
        MRC_TRY(backend->ops->axpby(backend, ridge, &smooth, mean, &v));
        MRC_TRY(mrc_centers_norm(centers, &v, top));
    }
    *top *= PLAIN_MARGIN;
    return MERCER_OK;
}

typedef struct norms_job {
    const mercer_matrix *rows;    /* (b, d) */
    const mercer_matrix *scratch; /* scratch space (b, number of centers of the largest shard) */
} norms_job;

/* Compute |K(Z_s,x)|^2 for a block of rows x. part: (1, b) f64. */
static mercer_status add_norms(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    const norms_job *job = argument;
    mercer_matrix z = mrc_centers_part(centers, &centers->z, shard), k = *job->scratch;
    k.rows = job->rows->rows, k.cols = k.ld = z.rows;
    MRC_TRY(mrc_points_eval(centers, job->rows, &z, &k));
    return centers->backend->ops->row_sqnorms(centers->backend, &k, part->data);
}

/* Find the largest |K(Z,x)|^2 over the sample, with a margin, one block of rows at a time. */
static mercer_status find_plain_beta(mrc_centers *centers, const mercer_matrix *sample, double *beta)
{
    int64_t block = mrc_min(BETA_ROWS, sample->rows), largest = 0;
    for (int i = 0; i < centers->shards; i++) largest = mrc_max(largest, centers->shard[i].rows);
    mercer_matrix k;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, centers->backend, &k, block, largest, centers->real, "a block of K(X_s, Z)"));
    *beta = 0;
    for (int64_t first = 0; first < sample->rows; first += block) {
        double norms[BETA_ROWS];
        mercer_matrix rows = mrc_rows(sample, first, mrc_min(block, sample->rows - first)),
                      sums = mrc_view(norms, 1, rows.rows, MERCER_F64);
        norms_job job = {&rows, &k};
        MRC_TRY(mrc_centers_sum(centers, &sums, add_norms, &job));
        for (int64_t i = 0; i < rows.rows; i++) *beta = fmax(*beta, PLAIN_MARGIN * norms[i]);
    }
    return MERCER_OK;
}

/* Raise *top to the largest of the first `rows` values of a diagonal. */
static mercer_status raise_to(mrc_backend *backend, const mercer_matrix *diagonal, int64_t rows, double *top)
{
    mercer_matrix first = mrc_rows(diagonal, 0, rows), host;
    MRC_TRY(mrc_host_open(backend, &first, &host));
    for (int64_t i = 0; i < rows; i++) *top = fmax(*top, mrc_load(&host, i, 0));
    return mrc_host_close(backend, &first, &host, false, MERCER_OK);
}

mercer_status mrc_plain_bounds(mrc_centers *centers, const mercer_matrix *sample, double ridge, bool sampled,
                               double *top, double *beta)
{
    MRC_TRY(find_plain_top(centers, sample, ridge, top));
    *beta = *top; /* full batches have no sampling noise, so the largest eigenvalue is sufficient */
    return sampled ? find_plain_beta(centers, sample, beta) : MERCER_OK;
}

/*
 * If K(x,x) is not constant, the rows read so far do not determine its largest value. One pass over the data finds it,
 * and beta is increased in proportion.
 */
mercer_status mrc_raise_beta(mrc_centers *centers, mrc_sample_stream *stream, const mercer_matrix *fresh, double *beta)
{
    mrc_backend *backend = centers->backend;
    const mercer_kernel *kernel = centers->kernel;
    if (mrc_kernel_is_stationary(kernel)) return MERCER_OK;
    mercer_matrix diagonal;
    double seen = 0, all = 0;
    int64_t most = mrc_max(fresh->rows, MRC_READ_ROWS);
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &diagonal, most, 1, MERCER_F64, "kernel diagonal"));
    MRC_TRY(backend->ops->kernel_diagonal(backend, kernel, fresh, &diagonal));
    MRC_TRY(raise_to(backend, &diagonal, fresh->rows, &seen));
    MRC_TRY(mrc_sample_stream_restart(stream, -1));
    for (mercer_batch batch = {.X.rows = 1}; batch.X.rows > 0;) {
        mrc_centers_notify(centers, "step size", (double)stream->in_pass / (double)mrc_max(stream->source->rows, 1));
        MRC_TRY(mrc_sample_stream_next(stream, MRC_READ_ROWS, &batch));
        MRC_TRY(backend->ops->kernel_diagonal(backend, kernel, &batch.X, &diagonal));
        MRC_TRY(raise_to(backend, &diagonal, batch.X.rows, &all));
    }
    /* The values of samples on a device may not have been checked before (mrc_sample_stream_next). */
    if (!(all <= (stream->real == MERCER_F64 ? DBL_MAX : (double)FLT_MAX)))
        return mrc_fail(centers->context, MERCER_ERROR_DATA,
                        "source: X: kernel values overflow; scale the features with a preprocessing");
    if (all > seen && seen > 0) *beta *= all / seen;
    return MERCER_OK;
}

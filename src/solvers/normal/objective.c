/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objective at given weights.
 *
 *   fit   = sum_i w_i |K(x_i, Z) alpha - y_i|^2               one pass over the data: n p (2 d + 2 c) flops
 *   ridge = alpha' K(Z,Z) alpha, over all columns             one pass over the centers: p^2 (2 d + 2 c) flops
 *
 * Products are in the type of alpha, sums in double. Bytes: a batch of labels and predictions, a block of centers.
 *
 * Caveat: in float, f has an error of about 2^-24 |alpha|_1 and the ridge term has an error of about 2^-24 |alpha|_1^2.
 * For large weights of alternating signs the computed ridge term may be negative; it is then reported as 0.
 */
#include "solvers/normal/exact_solvers.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

enum { CENTERS_AT_A_TIME = 1024 }; /* number of centers per block of the ridge term */

/* A (m, c) and B (m, c) of type real, and a buffer (c) for column sums. */
typedef struct pair_of_blocks {
    mercer_matrix a, b;
    double *sums;
} pair_of_blocks;

static mercer_status create_pair(mrc_centers *centers, mrc_scope *scope, pair_of_blocks *blocks, int64_t rows,
                                 int64_t c)
{
    MRC_TRY(mrc_scope_matrix(scope, centers->backend, &blocks->a, rows, c, centers->real, "predictions"));
    MRC_TRY(mrc_scope_matrix(scope, centers->backend, &blocks->b, rows, c, centers->real, "labels"));
    return mrc_scope_alloc(scope, &blocks->sums, c, sizeof *blocks->sums, "column sums");
}

/* Add the sum of A_ij B_ij to *total; values in units are converted to the original units of the targets. */
static mercer_status add_dots(mrc_centers *centers, pair_of_blocks *blocks, const mercer_matrix *a,
                              const mercer_matrix *b, const mrc_units *units, double *total)
{
    bool given = mrc_units_given(units);
    MRC_TRY(centers->backend->ops->column_dots(centers->backend, a, b, blocks->sums));
    for (int64_t j = 0; j < a->cols; j++) *total += (given ? units->scale[j] * units->scale[j] : 1) * blocks->sums[j];
    return MERCER_OK;
}

/* Compute the fit by one pass over the samples. */
static mercer_status sum_samples(mrc_exact_solver *exact, const mercer_matrix *alpha, pair_of_blocks *blocks,
                                 double *fit)
{
    mrc_backend *backend = exact->centers->backend;
    MRC_TRY(mrc_sample_stream_restart(exact->stream, 0));
    for (;;) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_next(exact->stream, exact->kernel_blocks->most_rows, &batch));
        if (batch.X.rows == 0) return MERCER_OK;
        mercer_matrix f = mrc_rows(&blocks->a, 0, batch.X.rows), y = mrc_rows(&blocks->b, 0, batch.X.rows);
        MRC_TRY(mrc_kernel_blocks_forward(exact->kernel_blocks, &batch, alpha, NULL, &f));
        MRC_TRY(backend->ops->copy(backend, &y, &batch.Y));
        MRC_TRY(backend->ops->axpby(backend, -1, &y, 1, &f));
        MRC_TRY(backend->ops->copy(backend, &y, &f));
        if (batch.weights) MRC_TRY(backend->ops->scale_rows(backend, &y, batch.weights));
        MRC_TRY(add_dots(exact->centers, blocks, &f, &y, exact->units, fit));
    }
}

/* Add the ridge term of one block of centers: K(Z_b, Z) alpha times the block's own weights. points (rows, d):
   scratch. */
static mercer_status add_centers(mrc_centers *centers, const mercer_matrix *alpha, pair_of_blocks *blocks,
                                 const mercer_matrix *points, int64_t first, int64_t count, double *ridge)
{
    mercer_matrix z = mrc_rows(points, 0, count), f = mrc_rows(&blocks->a, 0, count),
                  own = mrc_rows(&blocks->b, 0, count);
    MRC_TRY(mrc_centers_range(centers, NULL, first, count, &z));
    MRC_TRY(mrc_centers_range(centers, alpha, first, count, &own));
    MRC_TRY(mrc_centers_predict(centers, &z, alpha, &f, NULL));
    return add_dots(centers, blocks, &f, &own, NULL, ridge);
}

/* Compute the ridge term, block by block of the centers. Blocks need not match shards, as only the total matters. */
static mercer_status sum_centers(mrc_centers *centers, const mercer_matrix *alpha, pair_of_blocks *blocks,
                                 double *ridge)
{
    int64_t most = mrc_min(centers->p, CENTERS_AT_A_TIME);
    mercer_matrix points;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_points(&scope, centers, &points, most, "a block of centers"));
    for (int64_t first = 0; first < centers->p; first += most)
        MRC_TRY(add_centers(centers, alpha, blocks, &points, first, mrc_min(most, centers->p - first), ridge));
    return MERCER_OK;
}

mercer_status mrc_objective(mrc_exact_solver *exact, const mercer_matrix *alpha, double *fit, double *ridge)
{
    mrc_centers *centers = exact->centers;
    pair_of_blocks blocks;
    int64_t rows = mrc_max(exact->kernel_blocks->most_rows, mrc_min(centers->p, CENTERS_AT_A_TIME));
    double squares = 0, form = 0;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(create_pair(centers, &scope, &blocks, rows, exact->c));
    if (fit) MRC_TRY(sum_samples(exact, alpha, &blocks, &squares));
    if (ridge) MRC_TRY(sum_centers(centers, alpha, &blocks, &form));
    if (fit) *fit = squares;
    if (ridge) *ridge = fmax(form, 0);
    return MERCER_OK;
}

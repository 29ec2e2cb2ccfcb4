/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much the preconditioner must be shifted: t in M = (w/p) K_d (K_d + (tau + t) I), see normal.c.
 *
 * For an eigenvector v of K_d (p, p) with eigenvalue l, let a = E_x (v' K_Zx)^2 be what samples see of it. M is right
 * where p a = l (l + t). The mean of both sides over all v, divided by l^2, is
 *
 *   E_x |K_d^-1 K_Zx|^2 = 1 + t tr(K_d^-1) / p     so     t = (E_x |K_d^-1 K_Zx|^2 - 1) p / tr(K_d^-1)
 *
 * The left side is measured on SAMPLES rows of the data, the trace with PROBES vectors g of random signs:
 * tr(K_d^-1) = E |L^-1 g|^2. 1/l^2 puts the weight on small l, which decide the number of steps.
 *
 * Cost: p^2 (2 SAMPLES + PROBES) flops and 8 p (SAMPLES + 1) bytes; if t > 0, another factorisation in the same memory.
 *
 * What it gives: for Laplace kernels t < 0 (a center is its own neighbour, a sample is not), and shifts below 0 gain
 * nothing because -t often exceeds min l, so t = 0. For smooth kernels, whose K(Z,Z) has eigenvalues down to rounding,
 * t > 0 and matters: Gaussian, d = 3, bandwidth 1, p = 600, n = 20,000: J after 40 steps is 1.05 with t = 0 and 0.098
 * with t = 5e-4 as estimated (the least is about 0.089). Steps to 1e-6, Laplace, random centers, p = 1000,
 * d = 3 / 20 / 100: t = 0 34 / 28 / 19; t = 0.3 96 / 35 / 22; t = -min l / 2 34 / 25 / 21.
 *
 * Caveat: the rows are the first of pass 0. Where those happen to be the centers themselves, t comes out as 0.
 */
#include "solvers/normal/normal.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "solvers/operators/spd.h"

#include <math.h>

enum { PROBES = 32 }; /* fewer than MRC_SHIFT_SAMPLES */

/* The mean over rows x of |K_d^-1 K_Zx|^2; 0 rows if the stream has too few. block: room for (p, SAMPLES). */
static mercer_status measure_samples(mrc_normal *self, const mercer_matrix *z, const mercer_matrix *block, double *sums,
                                     double *mean)
{
    mrc_backend *backend = self->backend;
    mercer_batch batch;
    MRC_TRY(mrc_sample_stream_restart(self->exact->stream, 0));
    MRC_TRY(mrc_sample_stream_next(self->exact->stream, MRC_SHIFT_SAMPLES, &batch));
    int64_t rows = batch.X.rows;
    mercer_matrix k = mrc_shaped(block, self->p, rows);
    MRC_TRY(mrc_points_eval(self->centers, z, &batch.X, &k));
    MRC_TRY(mrc_spd_solve(self->centers, &self->l, &k));
    MRC_TRY(backend->ops->column_dots(backend, &k, &k, sums));
    *mean = 0;
    for (int64_t i = 0; i < rows; i++) *mean += sums[i] / (double)rows;
    return MERCER_OK;
}

/* tr(K_d^-1) / p. signs: room for p. */
static mercer_status measure_trace(mrc_normal *self, const mercer_matrix *block, double *sums, double *signs,
                                   double *mean)
{
    mrc_backend *backend = self->backend;
    mercer_matrix probes = mrc_shaped(block, self->p, PROBES);
    mercer_matrix host = mrc_view(signs, self->p, 1, MERCER_F64);
    mrc_rng rng = {0, 0x73686966u};
    for (int64_t j = 0; j < PROBES; j++) {
        mercer_matrix column = mrc_column(&probes, j);
        for (int64_t i = 0; i < self->p; i++) signs[i] = mrc_random_u64(rng, (uint64_t)(j * self->p + i)) & 1 ? 1 : -1;
        MRC_TRY(backend->ops->copy(backend, &column, &host));
    }
    self->centers->flops += (double)self->p * (double)self->p * PROBES;
    MRC_TRY(backend->ops->triangular_solve(backend, &self->l, false, &probes));
    MRC_TRY(backend->ops->column_dots(backend, &probes, &probes, sums));
    *mean = 0;
    for (int64_t j = 0; j < PROBES; j++) *mean += sums[j] / PROBES / (double)self->p;
    return MERCER_OK;
}

mercer_status mrc_normal_shift(mrc_normal *self, const mercer_matrix *z, double *shift)
{
    mrc_centers *centers = self->centers;
    double sums[MRC_SHIFT_SAMPLES], seen = 0, trace = 1;
    mercer_matrix block;
    void *signs = NULL;
    mercer_status status =
        mrc_matrix_create(self->backend, &block, self->p, MRC_SHIFT_SAMPLES, MERCER_F64, "a sample's block");
    if (status == MERCER_OK) status = mrc_alloc(centers->context, &signs, self->p, sizeof(double), "random signs");
    if (status == MERCER_OK) status = measure_samples(self, z, &block, sums, &seen);
    if (status == MERCER_OK) status = measure_trace(self, &block, sums, signs, &trace);
    mrc_free(centers->context, signs);
    mrc_matrix_destroy(self->backend, &block);
    double t = (seen - 1) / trace;
    *shift = status == MERCER_OK && isfinite(t) && t > 0 ? t : 0;
    return status;
}

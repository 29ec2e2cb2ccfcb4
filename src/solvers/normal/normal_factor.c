/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The preconditioner of the normal equations, M in normal.c: by Cholesky factors of K_d and K_d + (tau + t) I, or
 * without one of size p (polynomial_preconditioner.c), as its options say. And products with K(Z,Z), from what the
 * preconditioner has of it. The factors are the same on every rank, for p that fit one; of the other everybody has a
 * share.
 *
 *   exact      M^-1 r = (p/w) (K_d + (tau + t) I)^-1 K_d^-1 r             p^3/3 once, 4 p^2 c, 8 p^2 bytes; in double
 *   deflated   M^-1 r = (p/w) P P r, P about (K (K + tau I))^-1/2         p^2 (d + q) once, 2 k p^2 c, 2 or 4 p^2 bytes
 *
 * The second wants a spectrum that falls slowly behind its first q values, as those of Laplace kernels do: MNIST, p =
 * 10,000, random centers, test accuracy (%) after 1 .. 5 steps: exact 96.1 97.2 97.6 97.7 97.8; deflated with s =
 * 666,
 * q = 199 and the degree that polynomial_preconditioner.c chooses, 4: 96.3 97.3 97.7 97.8 97.8; s = 1000, q = 300 and
 * degree 1: 96.4
 * 97.0 97.3 97.6 97.6. A Gaussian of bandwidth 10, roughness 0.09, after 4 and 30 steps: exact 98.0 98.2, deflated
 * 97.3 97.7. Others that were tried with the Laplace kernel: block-Jacobi of 4 blocks with 100 top eigenvectors, P = U
 * w^-1 U' + (I - UU') B^-1 (I - UU'), has 96.7 after 5 steps; an incomplete factor, 1000 centers exact and the rest in
 * 4 blocks, 95.2; a coarse space of 2000 centers as they are with degree 3 97.7 after 3, for p s^2 flops in double.
 */
#include "solvers/normal/normal.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/operators/spd.h"

#include <float.h>
#include <math.h>

enum { TYPICAL_ROWS = 128 };

/* ---- Set-up -------------------------------------------------------------------------------------------------- */

/* The preconditioner's second factor, or the first one again: see above. z: all centers; mean: of K(z, z). */
static mercer_status factor_again(mrc_normal *self, const mercer_matrix *z, double relative, double mean)
{
    double lambda = self->exact->lambda, t;
    mrc_spd job = {.points = z, .what = "K(Z, Z)"};
    MRC_TRY(mrc_normal_shift(self, z, &t));
    mrc_log(self->centers->context, MERCER_LOG_DEBUG, "conjugate gradients: shift %.3e of the preconditioner",
            t / mean);
    if (lambda > 0) {
        job.shift = lambda * (double)self->p / self->mass + t;
        MRC_TRY(mrc_matrix_create(self->backend, &self->ridged, self->p, self->p, MERCER_F64, "the preconditioner"));
        return mrc_spd_factor(self->centers, &job, &self->ridged, &relative, NULL);
    }
    if (t <= self->shift) return MERCER_OK;
    job.shift = t / 2;
    return mrc_spd_factor(self->centers, &job, &self->l, &relative, NULL);
}

/* The root of the mean of K(z, z')^2 over some centers, evenly spread. */
static mercer_status typical_value(mrc_normal *self, double *out)
{
    mrc_backend *backend = self->backend;
    const mercer_matrix *z = &self->centers->z;
    int64_t count = mrc_min(TYPICAL_ROWS, self->p), ids[TYPICAL_ROWS];
    double sums[TYPICAL_ROWS], sum = 0;
    mercer_matrix points = {0}, k = {0};
    for (int64_t i = 0; i < count; i++) ids[i] = i * self->p / count;
    mercer_status status = mrc_matrix_create(backend, &points, count, z->cols, z->dtype, "some centers");
    if (status == MERCER_OK) status = mrc_matrix_create(backend, &k, count, count, MERCER_F64, "some kernel values");
    if (status == MERCER_OK) status = mrc_centers_collect(self->centers, NULL, ids, count, &points);
    if (status == MERCER_OK) status = mrc_points_eval(self->centers, &points, &points, &k);
    if (status == MERCER_OK) status = backend->ops->column_dots(backend, &k, &k, sums);
    for (int64_t i = 0; i < count && status == MERCER_OK; i++) sum += sums[i];
    mrc_matrix_destroy(backend, &k);
    mrc_matrix_destroy(backend, &points);
    *out = sqrt(sum) / (double)count;
    return status;
}

/* rho: see spd.h. The passes have kernel values in the type of the cache, if there is one. mean: of K(z, z). */
static mercer_status find_rounding(mrc_normal *self, double mean)
{
    const mrc_kernel_blocks *kernel_blocks = self->exact->kernel_blocks;
    mercer_dtype type = kernel_blocks->cached ? kernel_blocks->cache[0].dtype : self->centers->real;
    double typical = mean;
    if (type == MERCER_F16) MRC_TRY(typical_value(self, &typical));
    self->rounding = mrc_rounding_penalty(type, typical, self->mass);
    return MERCER_OK;
}

/* Without a factor of K(Z,Z): see polynomial_preconditioner.c. */
static mercer_status make_preconditioner(mrc_normal *self)
{
    double tau = self->exact->lambda * (double)self->p / self->mass;
    MRC_TRY(mrc_preconditioner_create(&self->preconditioner, self->centers, self->c, &self->exact->preconditioner_sizes,
                                      tau));
    return find_rounding(self, self->preconditioner.mean);
}

static mercer_status factor(mrc_normal *self, const mercer_matrix *z)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = self->backend;
    double eps = centers->real == MERCER_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    double least = fmin(fmax(sqrt(eps), 8 * (double)self->p * eps), 0.01), relative = least, mean = 0;
    mrc_spd job = {.points = z, .what = "K(Z, Z)"};
    MRC_TRY(mrc_matrix_create(backend, &self->l, self->p, self->p, MERCER_F64, "the factor of K(Z, Z)"));
    MRC_TRY(mrc_spd_factor(centers, &job, &self->l, &relative, &mean));
    if (relative > least) self->exact->jitter = relative;
    self->shift = relative * mean;
    MRC_TRY(find_rounding(self, mean));
    return factor_again(self, z, relative, mean);
}

static mercer_status factor_all(mrc_normal *self)
{
    mercer_matrix memory, z;
    mercer_status status = mrc_centers_gather_all(self->centers, &memory, &z);
    if (status == MERCER_OK) status = factor(self, &z);
    mrc_matrix_destroy(self->backend, &memory);
    return status;
}

mercer_status mrc_normal_factor(mrc_normal *self)
{
    double since = mrc_seconds();
    self->weight = (double)self->p / self->mass;
    mercer_status status = self->exact->preconditioner_sizes.basis > 0 ? make_preconditioner(self) : factor_all(self);
    mrc_lap(&since, &self->exact->times.setup);
    return status;
}

/* ---- Use ----------------------------------------------------------------------------------------------------- */

/* x rounded, its columns scaled to about unit length by powers of 2: float has its range too. */
static mercer_status round_field(mrc_normal *self, const mercer_matrix *x, const mercer_matrix *work,
                                 const mercer_matrix *rounded)
{
    mrc_backend *backend = self->backend;
    MRC_TRY(mrc_centers_column_dots(self->centers, x, x, self->scale));
    for (int64_t j = 0; j < self->c; j++) {
        bool usable = self->scale[j] > 0 && isfinite(self->scale[j]);
        self->scale[j] = usable ? ldexp(1, -ilogb(sqrt(self->scale[j]))) : 1;
    }
    MRC_TRY(backend->ops->copy(backend, work, x));
    MRC_TRY(backend->ops->scale_columns(backend, work, self->scale));
    return backend->ops->copy(backend, rounded, work);
}

static mercer_status widen_field(mrc_normal *self, const mercer_matrix *rounded, const mercer_matrix *out)
{
    MRC_TRY(self->backend->ops->copy(self->backend, out, rounded));
    for (int64_t j = 0; j < self->c; j++) self->scale[j] = 1 / self->scale[j];
    return self->backend->ops->scale_columns(self->backend, out, self->scale);
}

/* Half 0 or 1 of the room for what all ranks have of a vector. */
static mercer_matrix whole_vector(const mrc_normal *self, int half)
{
    return mrc_rows(&self->all, half * self->p, self->p);
}

static mercer_matrix own_rows(const mrc_normal *self, const mercer_matrix *all)
{
    return mrc_rows(all, self->centers->first, self->centers->z.rows);
}

static mercer_status precondition(mrc_normal *self, const mercer_matrix *r, const mercer_matrix *z)
{
    if (self->exact->preconditioner_sizes.basis > 0) {
        mercer_matrix v = mrc_shaped(&self->v, self->v.rows, self->c);
        MRC_TRY(round_field(self, r, z, &v));
        MRC_TRY(mrc_preconditioner_apply(&self->preconditioner, &v));
        MRC_TRY(mrc_preconditioner_apply(&self->preconditioner, &v));
        return widen_field(self, &v, z);
    }
    bool ranks = self->centers->comm->ranks > 1;
    mercer_matrix all = ranks ? whole_vector(self, 0) : *z;
    MRC_TRY(mrc_centers_range(self->centers, r, 0, self->p, &all));
    MRC_TRY(mrc_spd_solve(self->centers, &self->l, &all));
    MRC_TRY(mrc_spd_solve(self->centers, self->exact->lambda > 0 ? &self->ridged : &self->l, &all));
    if (!ranks) return MERCER_OK;
    mercer_matrix own = own_rows(self, &all);
    return self->backend->ops->copy(self->backend, z, &own);
}

mercer_status mrc_normal_precondition(mrc_normal *self, const mercer_matrix *r, const mercer_matrix *z)
{
    double since = mrc_seconds();
    mercer_status status = precondition(self, r, z);
    mrc_lap(&since, &self->exact->times.solve);
    return status;
}

mercer_status mrc_normal_times_kernel(mrc_normal *self, const mercer_matrix *x, const mercer_matrix *out)
{
    if (self->exact->preconditioner_sizes.basis > 0) {
        mercer_matrix v = mrc_shaped(&self->v, self->v.rows, self->c), h = mrc_shaped(&self->h, self->h.rows, self->c);
        MRC_TRY(round_field(self, x, out, &v));
        MRC_TRY(mrc_preconditioner_times(&self->preconditioner, &v, &h));
        return widen_field(self, &h, out);
    }
    mercer_matrix all = *x, half = mrc_shaped(&self->both, self->both.rows, self->c), product = *out;
    if (self->centers->comm->ranks > 1) {
        all = product = whole_vector(self, 0), half = whole_vector(self, 1);
        MRC_TRY(mrc_centers_range(self->centers, x, 0, self->p, &all));
    }
    MRC_TRY(mrc_counted_gemm(self->centers, true, false, 1, &self->l, &all, 0, &half));
    MRC_TRY(mrc_counted_gemm(self->centers, false, false, 1, &self->l, &half, 0, &product));
    if (self->centers->comm->ranks > 1) {
        mercer_matrix own = own_rows(self, &product);
        MRC_TRY(self->backend->ops->copy(self->backend, out, &own));
    }
    return self->backend->ops->axpby(self->backend, -self->shift, x, 1, out);
}

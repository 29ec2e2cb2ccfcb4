/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The preconditioner of the normal equations, M in normal.c: by Cholesky factors of K_d and K_d + (tau + t) I, or
 * without a factor of size p (polynomial_preconditioner.c), as the planner has chosen. This file also computes products
 * with K(Z,Z), from the matrices that the preconditioner stores. Every rank has the same complete factors, so p must
 * fit one rank; the polynomial preconditioner is divided among the ranks.
 *
 *   exact      M^-1 r = (p/w) (K_d + (tau + t) I)^-1 K_d^-1 r             p^3/3 once, 4 p^2 c, 4 or 8 p^2 bytes
 *   polynomial M^-1 r = (p/w) P P r, P about (K (K + tau I))^-1/2         p^2 (d + q) once, 2 k p^2 c, 2 or 4 p^2 bytes
 *
 * The polynomial needs a spectrum that decreases slowly after its first q values, as for Laplace kernels. Test accuracy
 * (%) on MNIST with p = 10,000 random centers and a Laplace kernel:
 *
 *   steps                                                         1     2     3     4     5
 *   exact                                                         96.1  97.2  97.6  97.7  97.8
 *   polynomial, s = 666, q = 199, degree 4 (chosen by the code)   96.3  97.3  97.7  97.8  97.8
 *   polynomial, s = 1000, q = 300, degree 1                       96.4  97.0  97.3  97.6  97.6
 *
 * With a Gaussian kernel of bandwidth 10, whose roughness is 0.09, the exact preconditioner reaches 98.0 after 4 steps
 * and 98.2 after 30; the polynomial reaches 97.3 and 97.7.
 *
 * Alternatives that were measured with the Laplace kernel: block-Jacobi with 4 blocks and 100 top eigenvectors, P = U
 * w^-1 U' + (I - UU') B^-1 (I - UU'), reaches 96.7 after 5 steps. An incomplete factor, which is exact for 1000 centers
 * and has 4 blocks for all other centers, reaches 95.2. A coarse space of 2000 unmodified centers with degree 3 reaches
 * 97.7 after 3 steps, but costs p s^2 flops in double.
 */
#include "solvers/normal/normal.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "solvers/operators/spd.h"

#include <float.h>
#include <math.h>

/* PROBES must not exceed SHIFT_SAMPLES, because the probes use the buffer of the samples */
enum { TYPICAL_ROWS = 128, SHIFT_SAMPLES = 128, PROBES = 32 };

/* Typical number of products with K(Z,Z) in each of the polynomial's two applications, for the cost. */
enum { TYPICAL_DEGREE = 3 };

/* ---- The shift ----------------------------------------------------------------------------------------------- */

/*
 * The shift of the preconditioner: t in M = (w/p) K_d (K_d + (tau + t) I), see normal.c.
 *
 * For an eigenvector v of K_d (p, p) with eigenvalue l, let a = E_x (v' K_Zx)^2 be its part in the samples. M is right
 * where p a = l (l + t). The mean of both sides over all v, divided by l^2, is
 *
 *   E_x |K_d^-1 K_Zx|^2 = 1 + t tr(K_d^-1) / p     so     t = (E_x |K_d^-1 K_Zx|^2 - 1) p / tr(K_d^-1)
 *
 * The left side is measured on SHIFT_SAMPLES rows of the data, the trace with PROBES vectors g of random signs:
 * tr(K_d^-1) = E |L^-1 g|^2. Division by l^2 emphasizes small eigenvalues l, which determine the number of steps.
 *
 * Cost: p^2 (2 SHIFT_SAMPLES + PROBES) flops and 8 p (SHIFT_SAMPLES + 1) bytes; if t > 0, another factorization in the
 * same memory.
 *
 * Results: for Laplace kernels the estimate is negative (a center is its own neighbor, a sample is not). Negative
 * shifts gain nothing because -t often exceeds min l, so t = 0. Smooth kernels, whose K(Z,Z) has eigenvalues down to
 * rounding errors, need t > 0. Example: Gaussian, d = 3, bandwidth 1, p = 600, n = 20,000. After 40 steps J is 1.05
 * with t = 0, and 0.098 with the estimate t = 5e-4; the minimum is about 0.089. Steps to a tolerance of 1e-6 for
 * Laplace kernels, random centers, p = 1000 and d = 3 / 20 / 100: 34 / 28 / 19 with t = 0, 96 / 35 / 22 with t = 0.3,
 * and 34 / 25 / 21 with t = -min l / 2.
 *
 * Caveat: the rows are the first of pass 0. If these are the centers themselves, the estimate of t is 0.
 */

/* Compute the mean of |K_d^-1 K_Zx|^2 over rows x of the stream, at most SHIFT_SAMPLES; 0 without rows. block: scratch
   (p, SHIFT_SAMPLES). */
static mercer_status measure_samples(mrc_normal *self, const mercer_matrix *z, const mercer_matrix *block, double *sums,
                                     double *mean)
{
    mrc_backend *backend = self->backend;
    mercer_batch batch;
    MRC_TRY(mrc_sample_stream_restart(self->exact->stream, 0));
    MRC_TRY(mrc_sample_stream_next(self->exact->stream, SHIFT_SAMPLES, &batch));
    int64_t rows = batch.X.rows;
    mercer_matrix k = mrc_shaped(block, self->p, rows);
    MRC_TRY(mrc_points_eval(self->centers, z, &batch.X, &k));
    MRC_TRY(mrc_spd_solve(self->centers, &self->l, &k));
    MRC_TRY(backend->ops->column_dots(backend, &k, &k, sums));
    *mean = 0;
    for (int64_t i = 0; i < rows; i++) *mean += sums[i] / (double)rows;
    return MERCER_OK;
}

/* Estimate tr(K_d^-1) / p. block: scratch (p, PROBES); signs: scratch (p). */
static mercer_status measure_trace(mrc_normal *self, const mercer_matrix *block, double *sums, double *signs,
                                   double *mean)
{
    mrc_backend *backend = self->backend;
    mercer_matrix probes = mrc_shaped(block, self->p, PROBES); /* a view of `block`, which has the type of the factor */
    mercer_matrix host = mrc_view(signs, self->p, 1, MERCER_F64);
    mrc_rng rng = {0, 0x73686966u};
    for (int64_t j = 0; j < PROBES; j++) {
        mercer_matrix column = mrc_columns(&probes, j, 1);
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

/* Estimate t from samples and probes; 0 if the estimate is negative or not finite. */
static mercer_status find_shift(mrc_normal *self, const mercer_matrix *z, double *shift)
{
    double sums[SHIFT_SAMPLES], *signs, seen, trace;
    mercer_matrix block;
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, self->backend, &block, self->p, SHIFT_SAMPLES, self->l.dtype, "a sample's block"));
    MRC_TRY(mrc_scope_alloc(&scope, &signs, self->p, sizeof *signs, "random signs"));
    MRC_TRY(measure_samples(self, z, &block, sums, &seen));
    MRC_TRY(measure_trace(self, &block, sums, signs, &trace));
    double t = (seen - 1) / trace;
    *shift = isfinite(t) && t > 0 ? t : 0;
    return MERCER_OK;
}

/* ---- Set-up -------------------------------------------------------------------------------------------------- */

/* Compute the preconditioner's second factor or, if lambda = 0, the first factor again with a larger shift (see
   normal.c). z: all centers; mean: mean of K(z, z). */
static mercer_status factor_again(mrc_normal *self, const mercer_matrix *z, double relative, double mean)
{
    double lambda = self->exact->lambda, t;
    mrc_spd job = {.points = z, .what = "K(Z, Z)"};
    if (self->kernel.data) job.points = NULL, job.matrix = &self->kernel;
    MRC_TRY(find_shift(self, z, &t));
    mrc_log(self->centers->context, MERCER_LOG_DEBUG, "conjugate gradients: shift %.3e of the preconditioner",
            t / mean);
    if (lambda > 0) {
        job.shift = lambda * (double)self->p / self->mass + t;
        MRC_TRY(mrc_matrix_create(self->backend, &self->ridged, self->p, self->p, self->l.dtype, "the preconditioner"));
        return mrc_spd_factor(self->centers, &job, &self->ridged, &relative, NULL);
    }
    if (t <= self->shift) return MERCER_OK;
    job.shift = t / 2;
    return mrc_spd_factor(self->centers, &job, &self->l, &relative, NULL);
}

/* Compute the root of the mean of K(z, z')^2 over some evenly spaced centers. */
static mercer_status typical_value(mrc_normal *self, double *out)
{
    mrc_backend *backend = self->backend;
    const mercer_matrix *z = &self->centers->z;
    int64_t count = mrc_min(TYPICAL_ROWS, self->p), ids[TYPICAL_ROWS];
    double sums[TYPICAL_ROWS], sum = 0;
    mercer_matrix points, k;
    MRC_SCOPE(scope, self->centers->context);
    for (int64_t i = 0; i < count; i++) ids[i] = i * self->p / count;
    MRC_TRY(mrc_scope_matrix(&scope, backend, &points, count, z->cols, z->dtype, "some centers"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &k, count, count, MERCER_F64, "some kernel values"));
    MRC_TRY(mrc_centers_collect(self->centers, NULL, ids, count, &points));
    MRC_TRY(mrc_points_eval(self->centers, &points, &points, &k));
    MRC_TRY(backend->ops->column_dots(backend, &k, &k, sums));
    for (int64_t i = 0; i < count; i++) sum += sums[i];
    *out = sqrt(sum) / (double)count;
    return MERCER_OK;
}

/* Compute rho (spd.h) for the type of the kernel values in a pass: the type of the cache if kernel values are cached.
   mean: mean of K(z, z). */
static mercer_status find_rounding(mrc_normal *self, double mean)
{
    const mrc_kernel_blocks *kernel_blocks = self->exact->kernel_blocks;
    mercer_dtype type = kernel_blocks->cached ? kernel_blocks->cache[0].dtype : self->centers->real;
    double typical = mean;
    if (type == MERCER_F16) MRC_TRY(typical_value(self, &typical));
    self->rounding = mrc_rounding_penalty(type, typical, self->mass);
    return MERCER_OK;
}

/* Create the preconditioner without a factor of K(Z,Z): see polynomial_preconditioner.c. */
static mercer_status make_preconditioner(mrc_normal *self)
{
    double tau = self->exact->lambda * (double)self->p / self->mass;
    MRC_TRY(mrc_preconditioner_create(&self->preconditioner, self->centers, self->c, &self->exact->preconditioner_sizes,
                                      tau));
    return find_rounding(self, self->preconditioner.mean);
}

mercer_dtype mrc_normal_factor_type(const mrc_normal *self)
{
    bool floats = self->backend->ops->capabilities(self->backend, false).float_factors;
    return self->centers->real == MERCER_F32 && floats ? MERCER_F32 : MERCER_F64;
}

/* Factor K_d, then compute what depends on its jitter: rho, t and the second factor. */
static mercer_status factor_kernel(mrc_normal *self)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = self->backend;
    double eps = centers->real == MERCER_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    double least = fmin(fmax(sqrt(eps), (double)self->p * eps), 0.01), relative = least, mean = 0;
    mercer_matrix z;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_centers_gather_all(centers, &scope, &z));
    mrc_spd job = {.points = &z, .what = "K(Z, Z)"};
    mercer_dtype type = mrc_normal_factor_type(self);
    MRC_TRY(mrc_matrix_create(backend, &self->l, self->p, self->p, type, "the factor of K(Z, Z)"));
    if (type == MERCER_F32 && self->exact->lambda > 0) {
        MRC_TRY(mrc_matrix_create(backend, &self->kernel, self->p, self->p, type, "K(Z, Z)"));
        mrc_centers_notify(centers, "kernel matrix of centers", -1);
        MRC_TRY(mrc_points_eval(centers, &z, &z, &self->kernel));
        job.points = NULL, job.matrix = &self->kernel;
    }
    MRC_TRY(mrc_spd_factor(centers, &job, &self->l, &relative, &mean));
    if (relative > least) self->exact->jitter = relative;
    self->shift = relative * mean;
    MRC_TRY(find_rounding(self, mean));
    return factor_again(self, &z, relative, mean);
}

mercer_status mrc_normal_factor(mrc_normal *self)
{
    double since = mrc_seconds();
    self->weight = (double)self->p / self->mass;
    mercer_status status =
        self->exact->preconditioner_sizes.basis > 0 ? make_preconditioner(self) : factor_kernel(self);
    mrc_lap(&since, &self->exact->times.setup);
    return status;
}

/* ---- Use ----------------------------------------------------------------------------------------------------- */

/* Round x, with columns scaled to about unit length because the range of float is limited. */
static mercer_status round_field(mrc_normal *self, const mercer_matrix *x, const mercer_matrix *work,
                                 const mercer_matrix *rounded)
{
    MRC_TRY(mrc_normal_unit_columns(self, x, work));
    return self->backend->ops->copy(self->backend, rounded, work);
}

/* Undo round_field: copy to double and restore the lengths of the columns. */
static mercer_status widen_field(mrc_normal *self, const mercer_matrix *rounded, const mercer_matrix *out)
{
    MRC_TRY(self->backend->ops->copy(self->backend, out, rounded));
    return self->backend->ops->scale_columns(self->backend, out, self->scale);
}

/* Return half 0 or 1 of the buffer for vectors of all ranks. */
static mercer_matrix whole_vector(const mrc_normal *self, int half)
{
    return mrc_rows(&self->all, half * self->p, self->p);
}

/* Return this rank's rows of a vector of all ranks. */
static mercer_matrix own_rows(const mrc_normal *self, const mercer_matrix *all)
{
    return mrc_rows(all, self->centers->first, self->centers->z.rows);
}

/* Apply a function of vectors (p, c) of all ranks to a field v. The function works on `all` and sets it to the
   result. */
typedef mercer_status (*whole_function)(mrc_normal *self, mercer_matrix *all);
/* Gather the complete vector on every rank, apply the function to it on every rank, and copy this rank's rows back.
   With one rank no vector is gathered. */
static mercer_status apply_whole(mrc_normal *self, const mercer_matrix *v, whole_function apply)
{
    if (self->centers->comm->ranks == 1) {
        mercer_matrix all = *v;
        MRC_TRY(apply(self, &all));
        return all.data == v->data ? MERCER_OK : self->backend->ops->copy(self->backend, v, &all);
    }
    mercer_matrix all = whole_vector(self, 0);
    MRC_TRY(mrc_centers_range(self->centers, v, 0, self->p, &all));
    MRC_TRY(apply(self, &all));
    mercer_matrix own = own_rows(self, &all);
    return self->backend->ops->copy(self->backend, v, &own);
}

/* Return the factor of K_d + (tau + t) I; if lambda = 0, this is the first factor. */
static const mercer_matrix *second_factor(const mrc_normal *self)
{
    return self->exact->lambda > 0 ? &self->ridged : &self->l;
}

/* Apply both factors to a vector of all ranks. */
static mercer_status solve_whole(mrc_normal *self, mercer_matrix *all)
{
    MRC_TRY(mrc_spd_solve(self->centers, &self->l, all));
    return mrc_spd_solve(self->centers, second_factor(self), all);
}

/* Multiply by K. K is symmetric, and a product with K' reads it in storage order. */
static mercer_status multiply_whole(mrc_normal *self, mercer_matrix *all)
{
    bool ranks = self->centers->comm->ranks > 1;
    mercer_matrix product = ranks ? whole_vector(self, 1) : mrc_shaped(&self->h, self->h.rows, self->c);
    MRC_TRY(mrc_counted_gemm(self->centers, true, false, 1, &self->kernel, all, 0, &product));
    *all = product;
    return MERCER_OK;
}

/* Apply M^-1 to r with unit columns: the polynomial P twice, or the two factors. */
static mercer_status precondition_unit(mrc_normal *self, const mercer_matrix *r, const mercer_matrix *z)
{
    if (self->exact->preconditioner_sizes.basis > 0) {
        mercer_matrix v = mrc_shaped(&self->v, self->v.rows, self->c);
        MRC_TRY(round_field(self, r, z, &v));
        MRC_TRY(mrc_preconditioner_apply(&self->preconditioner, &v));
        MRC_TRY(mrc_preconditioner_apply(&self->preconditioner, &v));
        return widen_field(self, &v, z);
    }
    if (self->l.dtype == MERCER_F64) {
        MRC_TRY(self->backend->ops->copy(self->backend, z, r));
        return apply_whole(self, z, solve_whole);
    }
    mercer_matrix v = mrc_shaped(&self->v, self->v.rows, self->c);
    MRC_TRY(round_field(self, r, z, &v));
    MRC_TRY(apply_whole(self, &v, solve_whole));
    return widen_field(self, &v, z);
}

mercer_status mrc_normal_precondition(mrc_normal *self, const mercer_matrix *r, const mercer_matrix *z)
{
    double since = mrc_seconds();
    mercer_status status = precondition_unit(self, r, z);
    mrc_lap(&since, &self->exact->times.solve);
    return status;
}

mercer_status mrc_normal_times_kernel(mrc_normal *self, const mercer_matrix *x, const mercer_matrix *out)
{
    mercer_matrix v = mrc_shaped(&self->v, self->v.rows, self->c), h = mrc_shaped(&self->h, self->h.rows, self->c);
    if (self->kernel.data) {
        MRC_TRY(round_field(self, x, out, &v));
        MRC_TRY(apply_whole(self, &v, multiply_whole));
        return widen_field(self, &v, out);
    }
    if (self->exact->preconditioner_sizes.basis > 0) {
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

/* ---- Cost ---------------------------------------------------------------------------------------------------- */

/* Cost of the exact preconditioner: factors on every rank, solved in every step. */
static void factor_cost(const mrc_problem *problem, double lambda, mrc_cost *once, mrc_cost *each)
{
    double p = (double)problem->p, d = (double)problem->d, c = (double)problem->c, products = lambda > 0 ? 2 : 0;
    double second = p * ((lambda > 0 ? p : 0.0) + 2.0), sample = p * (SHIFT_SAMPLES + 1.0);
    bool single = problem->float_factors && problem->real_size == 4;
    double size = single ? 4 : 8, kernel = single && lambda > 0 ? p * p : 0;
    once->held.replicated = size * (kernel + p * p + fmax(second, sample));
    if (problem->ranks > 1) once->held.replicated += 2 * size * p * c + p * d * (double)problem->point_size;
    double pairs = 2 * p * p * mrc_problem_features(problem), factors = (lambda > 0 ? 2 : 1) * p * p * p / 3;
    if (single)
        once->flops = pairs + factors;
    else
        once->doubles = (lambda > 0 ? 2 : 1) * pairs + factors;
    once->alike = once->flops + once->doubles;
    each->waiting = each->alike = 4 * p * p * c;
    each->read = 4 * size * p * p;
    mrc_cost_rows(each, problem, (1 + products) * p * c * size, 1 + products);
    mrc_cost_sums(each, problem, 8 * c, lambda > 0 ? 7 : 6);
}

static void polynomial_cost(const mrc_problem *problem, double lambda, const mrc_preconditioner_sizes *sizes,
                            mrc_cost *once, mrc_cost *each)
{
    double p = (double)problem->p, c = (double)problem->c, e = (double)problem->real_size;
    double s = (double)sizes->sample, q = (double)sizes->basis, k = TYPICAL_DEGREE, products = lambda > 0 ? 2 : 0;
    once->held = mrc_preconditioner_bytes(sizes, problem);
    once->flops = 2 * p * (s + p) * (mrc_problem_features(problem) + q) + 12 * p * q * q;
    once->serial = once->alike = 4 * s * s * s;
    each->flops = 2 * k * 2 * p * p * c;
    each->read = 2 * k * p * p * mrc_problem_reads(problem, (double)mrc_dtype_size(sizes->stored), 1);
    mrc_cost_sums(each, problem, q * c * e, 2 * (k + 2));
    mrc_cost_rows(each, problem, (2 * k + products) * p * c * e, 2 * k + products);
    mrc_cost_sums(each, problem, 8 * c, lambda > 0 ? 10 : 7);
}

void mrc_normal_cost(const mrc_problem *problem, int64_t batch, double lambda, const mrc_preconditioner_sizes *sizes,
                     mrc_cost *once, mrc_cost *each)
{
    double p = (double)problem->p, c = (double)problem->c;
    *once = *each = (mrc_cost){0};
    if (sizes->basis > 0)
        polynomial_cost(problem, lambda, sizes, once, each);
    else
        factor_cost(problem, lambda, once, each);
    once->held.shared += 8 * p * 8 * c; /* all vectors are counted as doubles */
    once->held.replicated += 8 * (4.0 * (double)batch * c + 2.0 * c) + 64 * 12;
}

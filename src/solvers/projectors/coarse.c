/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The coarse space: approximate top eigenvectors of K(Z,Z) by Nystrom extension from a sample Z_s of the centers.
 *
 *   K(Z_s,Z_s)/s = E Lambda E'                    eigensystem of the sample                 (s, q), s^2 d + about s^2 q
 *   Y = K(Z,Z_s) E (s Lambda)^-1/2                so that Y Y' is the Nystrom K(Z,Z)        (p, q), p s d
 *   Y'Y = V W V'                                  eigenvalues W of Y Y'                     (q, q), p q^2
 *   U = Y V W^-1/2                                its eigenvectors                          (p, q)
 *   U <- U C^-T with U'U = C C'                   once more, because of rounding errors                 (p, q), 2 p q^2
 *
 * After the fourth line, columns of U with a small w_i are not orthonormal: an error eps in Y'Y becomes eps w_1/w_i in
 * U'U. Directions with lambda_i or w_i below the noise level (1e-6 of the largest in float, 1e-12 in double) are left
 * out; the last line, the second half of a "Cholesky QR 2", makes the remaining directions orthonormal, with the
 * smallest changes to the leading directions.
 *
 * (s Lambda)^-1/2 is applied only to the small matrices: the stored Y is K(Z,Z_s) E, unscaled. U overwrites it, 4096
 * rows at a time. Memory: p q, and during creation also s^2 and a few matrices of q^2.
 */
#include "solvers/projectors/projector.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"

#include <math.h>
#include <string.h>

/* ---- Samples of the centers ---------------------------------------------------------------------------------- */

mercer_status mrc_sample_system(mrc_eigensystem *out, mrc_centers *centers, int64_t s, int64_t q, mrc_rng rng,
                                int64_t *ids)
{
    mercer_matrix sample;
    MRC_SCOPE(scope, centers->context);
    *out = (mrc_eigensystem){0};
    mrc_random_permutations(centers->context->threads, rng, centers->p, 0, s, ids);
    MRC_TRY(mrc_scope_points(&scope, centers, &sample, s, "a sample of the centers"));
    MRC_TRY(mrc_centers_collect(centers, NULL, ids, s, &sample));
    return mrc_eigensystem_create(out, centers, &sample, q, rng.seed);
}

void mrc_sample_system_bytes(const mrc_problem *problem, int64_t s, int64_t q, int64_t *held, int64_t *total)
{
    int64_t points = s * problem->d * problem->point_size;
    q = mrc_max(0, mrc_min(q, s - 1));
    *held = points + s * q * problem->real_size + 16 * q;
    *total = *held + points + mrc_eigensystem_scratch_bytes(s, q);
}

/* ---- The basis ----------------------------------------------------------------------------------------------- */

/* Small matrices that exist while the basis is computed. */
typedef struct basis {
    mrc_centers *centers;
    mrc_backend *backend;
    mrc_coarse *out;
    mercer_matrix gram, t; /* (q, q) real: Y'Y, and the factor that Y is multiplied by */
    mercer_matrix a, v;    /* (q, q) f64 */
    mercer_matrix strip;   /* (4096, q) real: rows of the product */
    double *scale;         /* (q) (s lambda)^-1/2 */
} basis;

/* Allocate the small matrices. The strip has fewer rows if this rank has few centers. */
static mercer_status basis_create(basis *self, mrc_scope *scope)
{
    mrc_backend *backend = self->backend;
    int64_t q = self->out->q, strip = mrc_min(MRC_COLLECT_BLOCK, self->centers->z.rows);
    mercer_dtype real = self->centers->real;
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->gram, q, q, real, "the Gram matrix of the coarse space"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->t, q, q, real, "the basis of the coarse space"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->a, q, q, MERCER_F64, "the Gram matrix of the coarse space"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->v, q, q, MERCER_F64, "the basis of the coarse space"));
    return mrc_scope_matrix(scope, backend, &self->strip, strip, q, real, "a strip of the coarse space");
}

/* Compute A (k, k) f64 = U'U, exactly symmetric, with row and column i multiplied by scale[i] unless scale is NULL. */
static mercer_status gram_of(basis *self, const double *scale)
{
    int64_t k = self->out->u.cols;
    mercer_matrix gram = mrc_block(&self->gram, 0, 0, k, k), from, to;
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_centers_gram(self->centers, &self->out->u, &gram));
    MRC_TRY(mrc_scope_open(&scope, self->backend, &gram, &from));
    MRC_TRY(mrc_scope_open(&scope, self->backend, &self->a, &to));
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            double value = (mrc_load(&from, i, j) + mrc_load(&from, j, i)) / 2 * (scale ? scale[i] * scale[j] : 1);
            mrc_store(&to, i, j, value);
            mrc_store(&to, j, i, value);
        }
    return mrc_host_close(self->backend, &self->a, &to, true, MERCER_OK);
}

/* Compute to <- from t, where `to` overwrites `from`, a strip of rows at a time. */
static mercer_status transform_rows(basis *self, const mercer_matrix *from, const mercer_matrix *t,
                                    const mercer_matrix *to)
{
    for (int64_t first = 0; first < from->rows; first += MRC_COLLECT_BLOCK) {
        int64_t rows = mrc_min(MRC_COLLECT_BLOCK, from->rows - first);
        mercer_matrix some = mrc_rows(from, first, rows), strip = mrc_block(&self->strip, 0, 0, rows, t->cols),
                      back = mrc_rows(to, first, rows);
        MRC_TRY(mrc_counted_gemm(self->centers, false, false, 1, &some, t, 0, &strip));
        MRC_TRY(self->backend->ops->copy(self->backend, &back, &strip));
    }
    return MERCER_OK;
}

/* Compute U <- U V for the leading (columns of U, k) part of V, in place. */
static mercer_status transform(basis *self, int64_t k)
{
    mercer_matrix *u = &self->out->u;
    mercer_matrix t = mrc_block(&self->t, 0, 0, u->cols, k), v = mrc_block(&self->v, 0, 0, u->cols, k),
                  to = mrc_block(u, 0, 0, u->rows, k);
    MRC_TRY(self->backend->ops->copy(self->backend, &t, &v));
    for (int i = 0; i < self->centers->shards; i++) {
        mercer_matrix from = mrc_centers_part(self->centers, u, i), back = mrc_centers_part(self->centers, &to, i);
        MRC_TRY(transform_rows(self, &from, &t, &back));
    }
    *u = to;
    self->out->q = k;
    return MERCER_OK;
}

/* Compute Y'Y = V W V' and U = Y V W^-1/2. */
static mercer_status diagonalize(basis *self)
{
    mrc_coarse *out = self->out;
    int64_t q = out->q, k = 0;
    MRC_TRY(gram_of(self, self->scale));
    MRC_TRY(self->backend->ops->eigen_top(self->backend, &self->a, q, out->w, &self->v));
    self->centers->flops += 4.0 / 3 * (double)q * (double)q * (double)q;
    while (k < q && out->w[k] > 0 && out->w[k] >= mrc_noise_level(self->centers->real) * out->w[0]) k++;
    mercer_matrix v;
    MRC_TRY(mrc_host_open(self->backend, &self->v, &v));
    for (int64_t i = 0; i < q; i++)
        for (int64_t j = 0; j < k; j++) mrc_store(&v, i, j, mrc_load(&v, i, j) * self->scale[i] / sqrt(out->w[j]));
    MRC_TRY(mrc_host_close(self->backend, &self->v, &v, true, MERCER_OK));
    return transform(self, k);
}

/* Compute U <- U C^-T, U'U = C C'. While U'U is not positive definite, the last columns are dropped. */
static mercer_status straighten(basis *self)
{
    int64_t k = self->out->q, bad;
    mercer_matrix c, inverse;
    for (;; k -= mrc_max(1, k / 8)) {
        if (k <= 0) return transform(self, 0);
        MRC_TRY(gram_of(self, NULL));
        c = mrc_block(&self->a, 0, 0, k, k);
        MRC_TRY(self->backend->ops->cholesky(self->backend, &c, &bad));
        if (bad < 0) break;
    }
    inverse = mrc_block(&self->v, 0, 0, k, k);
    mercer_matrix v;
    MRC_TRY(mrc_host_open(self->backend, &self->v, &v));
    for (int64_t i = 0; i < self->out->q; i++)
        for (int64_t j = 0; j < k; j++)
            mrc_store(&v, i, j, i == j ? 1 : 0); /* rows below k stay 0 for the dropped columns */
    MRC_TRY(mrc_host_close(self->backend, &self->v, &v, true, MERCER_OK));
    MRC_TRY(self->backend->ops->triangular_solve(self->backend, &c, true, &inverse));
    return transform(self, k);
}

/* Make the columns of U orthonormal; their number may decrease. */
static mercer_status orthonormalize_coarse(mrc_coarse *out, mrc_centers *centers, double *scale)
{
    basis self = {.centers = centers, .backend = centers->backend, .out = out, .scale = scale};
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(basis_create(&self, &scope));
    MRC_TRY(diagonalize(&self));
    return straighten(&self);
}

/* Compute U = K(Z,Z_s) E, unscaled; scale (q) receives (s lambda)^-1/2. The eigensystem is freed at the end. */
static mercer_status extend(mrc_coarse *out, mrc_centers *centers, int64_t s, int64_t q, uint64_t seed, double *scale)
{
    int64_t *ids;
    mrc_eigensystem system;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_alloc(&scope, &ids, s, sizeof *ids, "the sample of the centers"));
    MRC_TRY(mrc_sample_system(&system, centers, s, q, (mrc_rng){seed, MRC_RANDOM_SAMPLE}, ids));
    mrc_scope_close(&scope);
    mrc_centers_notify(centers, "coarse space", -1);
    mercer_status status = mrc_field_create(centers, &out->u, system.q, centers->real, "the coarse space");
    if (status == MERCER_OK) status = mrc_centers_apply(centers, &system.points, &system.vectors, &out->u, false);
    out->q = system.q;
    for (int64_t i = 0; i < system.q && status == MERCER_OK; i++) scale[i] = 1 / sqrt((double)s * system.lambda[i]);
    mrc_eigensystem_destroy(&system, centers->backend);
    return status;
}

mercer_status mrc_coarse_create(mrc_coarse *out, mrc_centers *centers, int64_t s, int64_t q, uint64_t seed)
{
    double *scale;
    *out = (mrc_coarse){0};
    s = mrc_min(s, centers->p);
    q = mrc_min(q, s - 1);
    if (q <= 0) return mrc_field_create(centers, &out->u, 0, centers->real, "the coarse space");
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_alloc(&scope, &scale, q, sizeof *scale, "eigenvalues of the sample"));
    mercer_status status = mrc_alloc_zero(centers->context, &out->w, q, sizeof *out->w, "eigenvalues of K(Z,Z)");
    if (status == MERCER_OK) status = extend(out, centers, s, q, seed, scale);
    if (status == MERCER_OK && out->q > 0) status = orthonormalize_coarse(out, centers, scale);
    if (status != MERCER_OK) mrc_coarse_destroy(out, centers->backend);
    return status;
}

void mrc_coarse_destroy(mrc_coarse *coarse, mrc_backend *backend)
{
    mrc_matrix_destroy(backend, &coarse->u);
    mrc_free(backend->context, coarse->w);
    memset(coarse, 0, sizeof *coarse);
}

void mrc_coarse_cost(const mrc_problem *problem, int64_t s, int64_t q, mrc_cost *out)
{
    int64_t sample, total, real_size = problem->real_size;
    s = mrc_min(s, problem->p);
    q = mrc_max(0, mrc_min(q, s - 1));
    double p = (double)problem->p, rows = (double)s, directions = (double)q;
    *out = (mrc_cost){.held = {p * (double)(q * real_size), (double)(8 * q)}};
    if (q == 0) return;
    out->alike = 40 * rows * rows * directions;
    out->flops = out->alike + 2 * p * rows * (mrc_problem_features(problem) + directions);
    mrc_sample_system_bytes(problem, s, q, &sample, &total);
    /* Three phases: first the sample's eigensystem is computed, without U; then the eigensystem and U exist; then U,
       small matrices (one more for the eigenvectors of A) and a strip of rows. */
    int64_t small =
        q * q * (2 * real_size + 3 * 8) + 64 * 8 * q + mrc_min(MRC_COLLECT_BLOCK, problem->p) * q * real_size;
    double before = (double)(total + 8 * s + 16 * q) - mrc_bytes_sum(out->held);
    out->peak.replicated = fmax(before, (double)(mrc_max(sample, small) + 8 * q));
}

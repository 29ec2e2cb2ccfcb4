/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * P = an approximation of h(K), h(l) = (l (l + tau))^-1/2, K = K(Z,Z) (p, p): so P P approximates (K (K + tau I))^-1.
 *
 *   U (p, q)  approximate top eigenvectors of K (coarse.c),  U' K U = V Theta V'            Rayleigh-Ritz
 *   G = U V Theta^-1/2,  F = K G                             (p, q), G'KG = I
 *   R = K - F F'                                             what the coarse space leaves of K: R G = 0, R >= 0
 *   P = G diag(theta h(theta)) G' + (I - G F') h_k(R) (I - F G')
 *
 * h_k: a polynomial of degree k that meets h in k + 1 points of the spectrum of R (preconditioner_polynomial.c), in
 * Newton's
 * form.
 *
 * P is symmetric, so P P is positive semi-definite whatever a, b and rounding are; a poor guess costs steps, nothing
 * else. With U exact P is h(K) but for the polynomial's error; the projections I - F G' make it insensitive to how
 * exact U is, which a Nystrom extension from s << p centers is not. A singular K (equal centers) needs no care:
 * nothing is divided by its eigenvalues below theta_q.
 *
 * Cost: p s (d + q) + p^2 (d + q) multiply-adds once (and those of coarse.c), p^2 c for each of the k products of an
 * application: K is stored, p^2 values, in half precision where the caller says so. Memory: p^2 values and 2 p q.
 *
 * With several shards K(Z_s, Z) and F_s = K(Z_s, Z) U are made strip by strip, STRIP centers and their rows of U at a
 * time, which every rank has for that moment; the strips, and so the bits, do not depend on the ranks. A product K V
 * needs all of V, (p, c): 4 c bytes of it stand against 2 p / R of a row of K. All else is a share of every rank.
 */
#include "solvers/normal/polynomial_preconditioner.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/operators/spd.h"
#include "solvers/projectors/projector.h"
#include "solvers/projectors/projector_parts.h"

#include <math.h>
#include <string.h>

enum { ROOM = 512, SMALL_ROOM = 64, STRIP = 1024, SEED = 5 };

void mrc_preconditioner_destroy(mrc_preconditioner *self)
{
    if (!self->centers) return;
    mrc_backend *backend = self->centers->backend;
    mercer_matrix *const all[] = {&self->k, &self->room, &self->g,   &self->f, &self->t,
                                  &self->n, &self->o,    &self->all, &self->y, &self->y2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mrc_matrix_destroy(backend, all[i]);
    mrc_free(self->centers->context, self->scale);
    memset(self, 0, sizeof *self);
}

/* Rows of the scratch of backends that cannot multiply what is stored. Those in host memory can, as a rule, and it is
   p long on every rank. */
static int64_t room_rows(int64_t p, bool host, bool shared)
{
    return mrc_min(host && shared ? SMALL_ROOM : ROOM, p);
}

int64_t mrc_preconditioner_bytes(const mrc_preconditioner_sizes *options, int64_t p, int64_t d, int64_t c,
                                 int64_t real_size, int64_t point_size, bool shared)
{
    int64_t held, peak, s = mrc_min(options->sample, p), q = mrc_max(0, mrc_min(options->basis, s - 1));
    mrc_coarse_bytes(p, d, options->sample, options->basis, real_size, point_size, &held, &peak);
    double stored = (double)p * (double)p * (double)mrc_dtype_size(options->stored);
    double room = (double)room_rows(p, true, shared) * (double)p * (double)real_size;
    double working = (3.0 * (double)p + 2.0 * (double)q) * (double)c * (double)real_size + 8.0 * (double)(2 * q) +
                     8.0 * (2.0 * MRC_LANCZOS + 1) * (double)c;
    /* U, then F beside it, then strips of Z and U, or a product of one of them; eigenvectors of U'F. */
    double strips = shared ? (double)mrc_min(STRIP, p) * (double)(d * point_size + q * real_size) : 0;
    double basis = 2.0 * (double)p * (double)q * (double)real_size +
                   fmax((double)(p * q * real_size) + (double)(q * q) * (8.0 * 3 + (double)real_size), strips);
    double bytes = fmax((double)(held + peak), stored + room + working + basis) + 64 * 16;
    return bytes < 9e18 ? (int64_t)bytes : INT64_MAX;
}

/* ---- Products ------------------------------------------------------------------------------------------------ */

mercer_status mrc_preconditioner_times(mrc_preconditioner *self, const mercer_matrix *v, const mercer_matrix *out)
{
    mrc_centers *centers = self->centers;
    const mercer_matrix *all = v;
    if (centers->comm->ranks > 1) {
        MRC_TRY(mrc_centers_range(centers, v, 0, centers->p, &self->all));
        all = &self->all;
    }
    centers->flops += 2.0 * (double)self->k.rows * (double)self->k.cols * (double)v->cols;
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix k = mrc_centers_part(centers, &self->k, i), part = mrc_centers_part(centers, out, i);
        mrc_stored stored = {.k = &k, .count = k.rows, .room = &self->room};
        if (k.rows > 0) MRC_TRY(centers->backend->ops->rows_product(centers->backend, &stored, false, all, &part));
    }
    return MERCER_OK;
}

/* x -= left (right' x); y: room for (q, c), which right' x is left in. */
static mercer_status take_out(mrc_preconditioner *self, const mercer_matrix *left, const mercer_matrix *right,
                              const mercer_matrix *x, const mercer_matrix *y)
{
    MRC_TRY(mrc_centers_inner(self->centers, right, x, y));
    return mrc_centers_multiply(self->centers, -1, left, y, 1, x);
}

mercer_status mrc_preconditioner_times_rest(mrc_preconditioner *self)
{
    MRC_TRY(mrc_preconditioner_times(self, &self->t, &self->n));
    MRC_TRY(mrc_centers_inner(self->centers, &self->f, &self->t, &self->y2));
    return mrc_centers_multiply(self->centers, -1, &self->f, &self->y2, 1, &self->n);
}

mercer_status mrc_preconditioner_apply(mrc_preconditioner *self, const mercer_matrix *x)
{
    mrc_backend *backend = self->centers->backend;
    MRC_TRY(backend->ops->copy(backend, &self->t, x));
    MRC_TRY(take_out(self, &self->f, &self->g, &self->t, &self->y));
    MRC_TRY(backend->ops->axpby(backend, self->coefficients[0], &self->t, 0, &self->o));
    for (int64_t j = 0; j < self->degree; j++) {
        MRC_TRY(mrc_preconditioner_times_rest(self));
        MRC_TRY(backend->ops->axpby(backend, 1, &self->n, -self->nodes[j], &self->t));
        MRC_TRY(backend->ops->axpby(backend, self->coefficients[j + 1], &self->t, 1, &self->o));
    }
    MRC_TRY(mrc_centers_inner(self->centers, &self->f, &self->o, &self->y2));
    MRC_TRY(backend->ops->scale_rows(backend, &self->y, self->scale));
    MRC_TRY(backend->ops->axpby(backend, -1, &self->y2, 1, &self->y));
    MRC_TRY(backend->ops->copy(backend, x, &self->o));
    return mrc_centers_multiply(self->centers, 1, &self->g, &self->y, 1, x);
}

/* ---- The basis ----------------------------------------------------------------------------------------------- */

/* Columns first .. of K to where they are stored, those of the centers z; and F = K U, or F += their part of it, from
   their rows of U. */
static mercer_status evaluate(mrc_preconditioner *self, int64_t first, const mercer_matrix *z, const mercer_matrix *u)
{
    mrc_centers *centers = self->centers;
    mercer_matrix columns = mrc_columns(&self->k, first, z->rows),
                  room = mrc_shaped(&self->room, self->room.rows, z->rows);
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix own = mrc_centers_part(centers, &centers->z, i), k = mrc_centers_part(centers, &columns, i),
                      f = mrc_centers_part(centers, &self->f, i);
        mrc_stored to = {.k = &k, .count = k.rows, .room = &room, .add = first > 0};
        if (k.rows > 0) MRC_TRY(mrc_points_store(centers, &own, z, u, &f, &to));
    }
    return MERCER_OK;
}

/* Strip by strip. points, rows: room for STRIP of Z and of U. */
static mercer_status evaluate_strips(mrc_preconditioner *self, const mercer_matrix *points, const mercer_matrix *rows)
{
    mrc_centers *centers = self->centers;
    for (int64_t first = 0; first < centers->p; first += STRIP) {
        int64_t count = mrc_min(STRIP, centers->p - first);
        mrc_centers_tell(centers, "kernel matrix of centers", (double)first / (double)centers->p);
        mercer_matrix z = mrc_rows(points, 0, count), u = mrc_rows(rows, 0, count);
        MRC_TRY(mrc_centers_range(centers, NULL, first, count, &z));
        MRC_TRY(mrc_centers_range(centers, &self->g, first, count, &u));
        MRC_TRY(evaluate(self, first, &z, &u));
    }
    return MERCER_OK;
}

static mercer_status evaluate_all(mrc_preconditioner *self)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    int64_t strip = mrc_min(STRIP, centers->p);
    mercer_matrix z = {0}, u = {0};
    if (centers->all_shards == 1) return evaluate(self, 0, &centers->z, &self->g);
    mercer_status status =
        mrc_matrix_create(backend, &z, strip, centers->z.cols, centers->z.dtype, "a strip of the centers");
    if (status == MERCER_OK)
        status = mrc_matrix_create(backend, &u, strip, self->q, centers->real, "a strip of the coarse space");
    if (status == MERCER_OK) status = evaluate_strips(self, &z, &u);
    mrc_matrix_destroy(backend, &u);
    mrc_matrix_destroy(backend, &z);
    return status;
}

/* The columns of a field times v (q, k) f64. */
static mercer_status turn(mrc_preconditioner *self, mercer_matrix *field, const mercer_matrix *v)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    mercer_matrix turned = {0}, factor = {0};
    mercer_status status = mrc_matrix_create(backend, &factor, v->rows, v->cols, centers->real, "a rotation");
    if (status == MERCER_OK) status = backend->ops->copy(backend, &factor, v);
    if (status == MERCER_OK) status = mrc_field_create(centers, &turned, v->cols, centers->real, "the coarse space");
    if (status == MERCER_OK) status = mrc_centers_multiply(centers, 1, field, &factor, 0, &turned);
    mrc_matrix_destroy(backend, &factor);
    if (status != MERCER_OK) {
        mrc_matrix_destroy(backend, &turned);
        return status;
    }
    mrc_matrix_destroy(backend, field);
    *field = turned;
    return MERCER_OK;
}

/* Theta and V Theta^-1/2 of U'F, in place of a (q, q) f64; *count: how many are above the noise. */
static mercer_status rayleigh_ritz(mrc_preconditioner *self, const mercer_matrix *t, const mercer_matrix *a,
                                   const mercer_matrix *v, double *theta, int64_t *count)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    int64_t q = a->rows;
    MRC_TRY(mrc_centers_inner(centers, &self->g, &self->f, t));
    MRC_TRY(backend->ops->copy(backend, a, t));
    MRC_TRY(backend->ops->symmetrise(backend, a));
    MRC_TRY(backend->ops->eigen_top(backend, a, q, theta, v));
    centers->flops += 4.0 / 3 * (double)q * (double)q * (double)q;
    *count = 0;
    while (*count < q && theta[*count] > mrc_noise_level(centers->real) * theta[0]) ++*count;
    for (int64_t i = 0; i < q; i++) self->scale[i] = i < *count ? 1 / sqrt(theta[i]) : 0;
    return backend->ops->scale_columns(backend, v, self->scale);
}

static mercer_status make_basis(mrc_preconditioner *self, double *theta)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    int64_t q = self->q, count = 0;
    mercer_matrix t = {0}, a = {0}, v = {0};
    mercer_status status = mrc_matrix_create(backend, &t, q, q, centers->real, "the coarse matrix");
    if (status == MERCER_OK) status = mrc_matrix_create(backend, &a, q, q, MERCER_F64, "the coarse matrix");
    if (status == MERCER_OK) status = mrc_matrix_create(backend, &v, q, q, MERCER_F64, "the coarse matrix");
    if (status == MERCER_OK) status = rayleigh_ritz(self, &t, &a, &v, theta, &count);
    v.cols = count;
    if (status == MERCER_OK) status = turn(self, &self->g, &v);
    if (status == MERCER_OK) status = turn(self, &self->f, &v);
    self->q = count;
    mrc_matrix_destroy(backend, &v);
    mrc_matrix_destroy(backend, &a);
    mrc_matrix_destroy(backend, &t);
    return status;
}

/* ---- Life ---------------------------------------------------------------------------------------------------- */

static mercer_status allocate(mrc_preconditioner *self, int64_t c, mercer_dtype stored)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    mercer_dtype real = centers->real;
    int64_t p = centers->p, q = self->q;
    bool host = backend->ops->capabilities(backend).memory == MERCER_HOST;
    void *scale;
    MRC_TRY(mrc_alloc_zero(centers->context, &scale, 2 * q + (2 * MRC_LANCZOS + 1) * c, sizeof(double),
                           "eigenvalues of K(Z,Z)"));
    self->scale = scale;
    MRC_TRY(mrc_matrix_reserve(backend, &self->k, centers->z.rows, p, stored, "K(Z,Z)"));
    MRC_TRY(mrc_matrix_reserve(backend, &self->room, room_rows(p, host, centers->all_shards > 1), p, real,
                               "rows of K(Z,Z)"));
    MRC_TRY(mrc_field_create(centers, &self->f, q, real, "K(Z,Z) times the coarse space"));
    MRC_TRY(mrc_field_create(centers, &self->t, c, real, "vectors of the preconditioner"));
    MRC_TRY(mrc_field_create(centers, &self->n, c, real, "vectors of the preconditioner"));
    MRC_TRY(mrc_field_create(centers, &self->o, c, real, "vectors of the preconditioner"));
    if (centers->comm->ranks == 1) return MERCER_OK;
    return mrc_matrix_create(backend, &self->all, p, c, real, "vectors of the preconditioner");
}

static mercer_status build(mrc_preconditioner *self, int64_t c, const mrc_preconditioner_sizes *options, double tau)
{
    mrc_centers *centers = self->centers;
    mrc_coarse coarse;
    MRC_TRY(mrc_coarse_create(&coarse, centers, options->sample, options->basis, SEED));
    self->q = coarse.q;
    self->g = coarse.u;
    coarse.u = (mercer_matrix){0};
    mrc_coarse_destroy(&coarse, centers->backend);
    MRC_TRY(allocate(self, c, options->stored));
    mrc_centers_tell(centers, "kernel matrix of centers", -1);
    MRC_TRY(evaluate_all(self));
    mrc_centers_tell(centers, "preconditioner", -1);
    double *theta = self->scale + self->q, *room = theta + self->q;
    MRC_TRY(make_basis(self, theta));
    MRC_TRY(mrc_matrix_create(centers->backend, &self->y, self->q, c, centers->real, "the coarse part"));
    MRC_TRY(mrc_matrix_create(centers->backend, &self->y2, self->q, c, centers->real, "the coarse part"));
    for (int64_t i = 0; i < self->q; i++) self->scale[i] = 1 / sqrt(1 + tau / theta[i]); /* theta h(theta) */
    return mrc_preconditioner_choose_polynomial(self, theta, room, tau);
}

mercer_status mrc_preconditioner_create(mrc_preconditioner *out, mrc_centers *centers, int64_t c,
                                        const mrc_preconditioner_sizes *options, double tau)
{
    *out = (mrc_preconditioner){.centers = centers};
    mercer_status status = build(out, c, options, tau);
    if (status != MERCER_OK) mrc_preconditioner_destroy(out);
    return status;
}

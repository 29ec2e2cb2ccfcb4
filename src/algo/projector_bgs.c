/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Block Gauss-Seidel with a coarse space: the projector for large p.
 *
 *   U (p, q) approximate top eigenvectors of K(Z,Z) (coarse.c),  KU = K(Z,Z) U (p, q),  C C' = U' KU (q, q)
 *   once: p s d + p^2 d
 *   theta = 0, r = h; for each block b of a random partition of the centers:
 *       y = (C C')^-1 U' r;           theta += U y;       r -= KU y             coarse step       4 p q c
 *       delta = K(Z_b,Z_b)^-1 r_b;    theta_b += delta;   r -= K(Z,Z_b) delta   exact block step  p b (d + c), b^3/3
 *   and one coarse step at the end of a pass.
 *
 * The block step solves for the short waves, the coarse step for the long ones that no block sees. Every entry of
 * K(Z,Z) is evaluated once a pass, inside the fused product, and never stored; r is the residual at every moment, up to
 * rounding. Memory: 2 p q, and 8 b^2 for the factor of a block; with options.store the partition is fixed and all
 * factors are kept, 8 p b.
 *
 * delta is found in double and rounded to type real before it is used, so that r belongs to the theta that is stored.
 * Where K(Z_b,Z_b) is so ill-conditioned that rounding would spoil delta, a shift is added to its diagonal
 * (projector_parts.c): the step is then shorter, r still exact.
 *
 * U' KU is rounded too: its entry (i, j), i < j, is taken as u_i' (K u_j), whose error is u w_j and not u w_i. If it is
 * not positive definite even so, the last columns of U go.
 *
 * Stops after a pass at the tolerance, or if the residual grew.
 */
#include "algo/projector.h"

#include "algo/projector_parts.h"
#include "algo/spd.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

typedef struct bgs {
    mrc_coarse coarse;
    mercer_matrix ku;     /* field (rows, q) */
    mercer_matrix factor; /* C (q, q) f64 */
    int64_t size, blocks; /* centers in a block, number of blocks */
    mrc_factor *kept;     /* (blocks) with options.store */
    double shift;         /* least relative shift of blocks: rises when one turns out to need it */
} bgs;

typedef struct work {
    int64_t *ids;         /* (b) */
    double *minus;        /* (b) all -1 */
    mercer_matrix points; /* (b, d) */
    mercer_matrix part;   /* (b, c) real: r_b, then -delta */
    mercer_matrix x;      /* (b, c) f64 */
    mercer_matrix y, y64; /* (q, c) real, f64 */
    mrc_factor factor;    /* of the block, if factors are not kept */
} work;

static int64_t block_count(int64_t p, int64_t block)
{
    int64_t size = mrc_min(block, p);
    return (p + size - 1) / size;
}

/* ---- Life ---------------------------------------------------------------------------------------------------- */

static void destroy(mrc_projector *projector)
{
    mrc_centers *centers = projector->centers;
    bgs *self = projector->state;
    for (int64_t b = 0; b < self->blocks && self->kept; b++) mrc_matrix_destroy(centers->backend, &self->kept[b].l);
    mrc_free(centers->context, self->kept);
    mrc_matrix_destroy(centers->backend, &self->factor);
    mrc_matrix_destroy(centers->backend, &self->ku);
    mrc_coarse_destroy(&self->coarse, centers->backend);
    mrc_free(centers->context, self);
}

/* The upper triangle of a, mirrored: see above. */
static mercer_status mirror(mrc_backend *backend, const mercer_matrix *a, const mercer_matrix *to)
{
    mercer_matrix from = {0}, host = {0};
    mercer_status status = mrc_host_open(backend, a, &from);
    if (status == MERCER_OK) status = mrc_host_open(backend, to, &host);
    for (int64_t i = 0; i < to->rows && status == MERCER_OK; i++)
        for (int64_t j = 0; j < to->cols; j++)
            mrc_store(&host, i, j, i <= j ? mrc_load(&from, i, j) : mrc_load(&from, j, i));
    status = mrc_host_close(backend, to, &host, true, status);
    return mrc_host_close(backend, a, &from, false, status);
}

/* a (q, q) f64 and its factor in self->factor, whose leading part is used; fewer columns if it must be. */
static mercer_status factor_coarse(bgs *self, mrc_centers *centers, const mercer_matrix *a)
{
    mrc_backend *backend = centers->backend;
    int64_t q = self->coarse.q;
    mercer_status status = MERCER_OK;
    for (; q > 0; q -= mrc_max(1, q / 8)) {
        self->factor.rows = self->factor.cols = q;
        MRC_TRY(mirror(backend, a, &self->factor));
        status = backend->ops->cholesky(backend, &self->factor);
        if (status != MERCER_ERROR_NUMERIC) break;
    }
    if (status != MERCER_OK && status != MERCER_ERROR_NUMERIC) return status;
    if (q < self->coarse.q)
        mrc_log(centers->context, MERCER_LOG_WARNING,
                "projection: %lld of %lld directions of the coarse space are left out", (long long)(self->coarse.q - q),
                (long long)self->coarse.q);
    self->coarse.q = self->coarse.u.cols = self->ku.cols = self->factor.rows = self->factor.cols = mrc_max(q, 0);
    return MERCER_OK;
}

static mercer_status make_coarse(bgs *self, mrc_centers *centers, const mrc_projector_options *options)
{
    mercer_matrix a;
    MRC_TRY(mrc_coarse_create(&self->coarse, centers, options->nystrom, options->eigenpairs, options->seed));
    int64_t q = self->coarse.q;
    if (q == 0) return MERCER_OK;
    MRC_TRY(mrc_field_create(centers, &self->ku, q, centers->real, "K(Z,Z) times the coarse space"));
    MRC_TRY(mrc_centers_times(centers, NULL, &self->coarse.u, &self->ku));
    MRC_TRY(mrc_matrix_create(centers->backend, &self->factor, q, q, MERCER_F64, "the coarse matrix"));
    MRC_TRY(mrc_matrix_create(centers->backend, &a, q, q, centers->real, "the coarse matrix"));
    mercer_status status = mrc_centers_inner(centers, &self->coarse.u, &self->ku, &a);
    if (status == MERCER_OK) status = factor_coarse(self, centers, &a);
    mrc_matrix_destroy(centers->backend, &a);
    return status;
}

static mercer_status create(mrc_projector *projector)
{
    mrc_centers *centers = projector->centers;
    const mrc_projector_options *options = &projector->options;
    void *memory;
    MRC_TRY(mrc_alloc_zero(centers->context, &memory, 1, sizeof(bgs), "the block Gauss-Seidel projector"));
    projector->state = memory;
    bgs *self = memory;
    self->blocks = block_count(centers->p, options->block);
    self->size = (centers->p + self->blocks - 1) / self->blocks; /* as even as possible */
    self->blocks = block_count(centers->p, self->size);
    self->shift = options->jitter;
    if (options->store) {
        MRC_TRY(mrc_alloc_zero(centers->context, &memory, self->blocks, sizeof(mrc_factor), "the list of blocks"));
        self->kept = memory;
    }
    return make_coarse(self, centers, options);
}

static void work_destroy(work *w, mrc_centers *centers)
{
    mercer_matrix *const all[] = {&w->points, &w->part, &w->x, &w->y, &w->y64, &w->factor.l};
    for (int i = 0; i < 6; i++) mrc_matrix_destroy(centers->backend, all[i]);
    mrc_free(centers->context, w->minus);
    mrc_free(centers->context, w->ids);
}

static mercer_status work_fill(work *w, const bgs *self, mrc_centers *centers, int64_t c)
{
    mrc_backend *backend = centers->backend;
    int64_t b = self->size, q = self->coarse.q;
    void *memory;
    MRC_TRY(mrc_alloc(centers->context, &memory, b, sizeof(int64_t), "the numbers of a block"));
    w->ids = memory;
    MRC_TRY(mrc_alloc(centers->context, &memory, b, sizeof(double), "the signs of a block"));
    w->minus = memory;
    for (int64_t i = 0; i < b; i++) w->minus[i] = -1;
    MRC_TRY(mrc_matrix_create(backend, &w->points, b, centers->z.cols, centers->z.dtype, "a block of centers"));
    MRC_TRY(mrc_matrix_create(backend, &w->part, b, c, centers->real, "the residual of a block"));
    MRC_TRY(mrc_matrix_create(backend, &w->x, b, c, MERCER_F64, "the solution of a block"));
    MRC_TRY(mrc_matrix_create(backend, &w->y, q, c, centers->real, "the coarse step"));
    MRC_TRY(mrc_matrix_create(backend, &w->y64, q, c, MERCER_F64, "the coarse step"));
    return self->kept ? MERCER_OK : mrc_matrix_create(backend, &w->factor.l, b, b, MERCER_F64, "the factor of a block");
}

/* ---- The two steps ------------------------------------------------------------------------------------------- */

static mercer_status coarse_step(bgs *self, mrc_centers *centers, work *w, const mercer_matrix *r,
                                 const mercer_matrix *theta)
{
    mrc_backend *backend = centers->backend;
    if (self->coarse.q == 0) return MERCER_OK;
    MRC_TRY(mrc_centers_inner(centers, &self->coarse.u, r, &w->y));
    MRC_TRY(backend->ops->copy(backend, &w->y64, &w->y));
    MRC_TRY(mrc_spd_solve(centers, &self->factor, &w->y64));
    MRC_TRY(backend->ops->copy(backend, &w->y, &w->y64));
    MRC_TRY(mrc_centers_multiply(centers, 1, &self->coarse.u, &w->y, 1, theta));
    return mrc_centers_multiply(centers, -1, &self->ku, &w->y, 1, r);
}

/* The factor of a block with at least that relative shift: kept from before, or made now. */
static mercer_status find_factor(bgs *self, mrc_centers *centers, work *w, int64_t block, const mercer_matrix *points,
                                 double least, mrc_factor *out)
{
    mrc_factor *kept = self->kept ? &self->kept[block] : NULL;
    if (kept && kept->l.data && kept->relative >= least) {
        *out = *kept;
        return MERCER_OK;
    }
    if (kept && !kept->l.data)
        MRC_TRY(mrc_matrix_create(centers->backend, &kept->l, points->rows, points->rows, MERCER_F64,
                                  "the factor of a block"));
    self->shift = fmax(self->shift, least);
    *out = (mrc_factor){.l = kept ? kept->l : w->factor.l, .relative = self->shift};
    out->l.rows = out->l.cols = points->rows;
    if (kept) kept->relative = -1; /* until it is whole again */
    MRC_TRY(mrc_factor_kernel(centers, points, out));
    self->shift = out->relative; /* what one block needed the next will need */
    if (kept) *kept = *out;
    return MERCER_OK;
}

/* X = K(Z_b,Z_b)^-1 r_b in double, fit to be rounded. */
static mercer_status solve_block(bgs *self, mrc_centers *centers, work *w, int64_t block, const mercer_matrix *points,
                                 const mercer_matrix *part, const mercer_matrix *x)
{
    mrc_backend *backend = centers->backend;
    double safe = mrc_factor_safe_shift(centers->real, points->rows), least = 0, part_norm, x_norm;
    mrc_factor factor;
    MRC_TRY(mrc_matrix_norm(backend, part, &part_norm));
    for (;; least = safe) {
        MRC_TRY(find_factor(self, centers, w, block, points, least, &factor));
        MRC_TRY(backend->ops->copy(backend, x, part));
        MRC_TRY(mrc_spd_solve(centers, &factor.l, x));
        MRC_TRY(mrc_matrix_norm(backend, x, &x_norm));
        if (!mrc_factor_too_rough(&factor, centers->real, x_norm, part_norm) || factor.relative >= safe)
            return MERCER_OK;
        mrc_log(centers->context, self->shift < safe ? MERCER_LOG_WARNING : MERCER_LOG_DEBUG,
                "projection: blocks of K(Z,Z) are too ill-conditioned for %s; %.1e of their mean diagonal is added",
                mrc_dtype_name(centers->real), safe);
    }
}

static mercer_status block_step(bgs *self, mrc_centers *centers, work *w, int64_t block, const mercer_matrix *r,
                                const mercer_matrix *theta)
{
    mrc_backend *backend = centers->backend;
    int64_t count = mrc_min(self->size, centers->p - block * self->size);
    mercer_matrix points = mrc_rows(&w->points, 0, count), part = mrc_rows(&w->part, 0, count),
                  x = mrc_rows(&w->x, 0, count);
    MRC_TRY(mrc_centers_collect(centers, NULL, w->ids, count, &points));
    MRC_TRY(mrc_centers_collect(centers, r, w->ids, count, &part));
    MRC_TRY(solve_block(self, centers, w, block, &points, &part, &x));
    MRC_TRY(backend->ops->copy(backend, &part, &x));
    MRC_TRY(backend->ops->scale_rows(backend, &part, w->minus));
    MRC_TRY(mrc_centers_scatter_add(centers, theta, w->ids, count, &part, -1));
    return mrc_centers_apply(centers, &points, &part, r, true);
}

/* ---- One projection ------------------------------------------------------------------------------------------ */

static mercer_status run_pass(mrc_projector *projector, work *w, int64_t pass, const mercer_matrix *r,
                              const mercer_matrix *theta)
{
    mrc_centers *centers = projector->centers;
    bgs *self = projector->state;
    uint64_t stream = self->kept ? MRC_STREAM_PARTITION : MRC_STREAM_PASS(projector->calls, pass);
    for (int64_t block = 0; block < self->blocks; block++) {
        int64_t first = block * self->size, count = mrc_min(self->size, centers->p - first);
        mrc_draw_centers(projector->options.seed, stream, centers->p, first, count, w->ids);
        MRC_TRY(coarse_step(self, centers, w, r, theta));
        MRC_TRY(block_step(self, centers, w, block, r, theta));
    }
    return coarse_step(self, centers, w, r, theta);
}

static mercer_status run(mrc_projector *projector, work *w, const mercer_matrix *r, const mercer_matrix *theta,
                         double *passes)
{
    mrc_centers *centers = projector->centers;
    const mrc_projector_options *options = &projector->options;
    double before = projector->h_norm, left;
    for (int64_t pass = 0; pass < options->passes; pass++) {
        MRC_TRY(run_pass(projector, w, pass, r, theta));
        MRC_TRY(mrc_centers_norm(centers, r, &left));
        *passes += 1;
        mrc_log(centers->context, MERCER_LOG_DEBUG, "projection (bgs): pass %lld, residual %.3e", (long long)pass + 1,
                left / projector->h_norm);
        if (left <= options->tolerance * projector->h_norm || !(left < before)) break;
        before = left;
    }
    return MERCER_OK;
}

static mercer_status project(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                             mrc_projection *report)
{
    work w = {0};
    mercer_status status = work_fill(&w, projector->state, projector->centers, h->cols);
    if (status == MERCER_OK) status = run(projector, &w, h, theta, &report->passes);
    work_destroy(&w, projector->centers);
    return status;
}

static void bytes(const mrc_projector_options *options, int64_t p, int64_t d, int64_t c, int64_t real_size,
                  int64_t point_size, int64_t *held, int64_t *peak)
{
    int64_t coarse, coarse_peak, q = mrc_max(0, mrc_min(options->eigenpairs, mrc_min(options->nystrom, p) - 1));
    int64_t blocks = block_count(p, options->block), size = (p + blocks - 1) / blocks;
    mrc_coarse_bytes(p, d, options->nystrom, options->eigenpairs, real_size, point_size, &coarse, &coarse_peak);
    int64_t ku = p * q * real_size + 8 * q * q, factors = options->store ? 8 * p * size : 0;
    *held = coarse + ku + factors;
    int64_t working = size * (d * point_size + c * (real_size + 8) + 32) + q * c * (real_size + 8);
    if (!options->store) working += 8 * size * size;
    /* KU and the kept factors come after the coarse space. */
    *peak = mrc_max(working, mrc_max(coarse_peak - ku, q * q * real_size) - factors);
}

const mrc_projector_ops mrc_projector_bgs = {"bgs", create, destroy, project, bytes};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Block Gauss-Seidel with a coarse space; every pair of centers is evaluated once per pass.
 *
 *   U (p, q) approximate top eigenvectors of K(Z,Z) (coarse.c),  KU = K(Z,Z) U (p, q),  C C' = U' KU (q, q)
 *   once: p s d + p^2 d
 *   or, sampled: U = [E; 0], E (s, q) top eigenvectors of K(Z_s,Z_s) of the first s centers in the order of the blocks,
 *   which is random: only KU = K(Z,Z_s) E is computed, once: p s d
 *   theta = t + U y, r = h - K t - KU y; the centers in a random order, cut into blocks (blocks.c); for each block b:
 *       y    = (C C')^-1 (U' h - (KU)' t)                      coarse step: the best y for this t      b q c, q^2 c
 *       r_b  = h_b - K(Z_b, Z_<b) t_<b - KU_b y                forward product, caches its block of K   p b d / 2
 *       t_b  = K(Z_b,Z_b)^-1 r_b                               exact block step
 *       h_b  = r_b + KU_b y,   h -= K(Z_<=b, Z_b) t_b          the transposed product of the cached block
 *   and one coarse step at the end of a pass.
 *
 * A block step reduces the part of the residual that varies between close centers. The coarse step reduces the smooth
 * part, which a single block cannot resolve. Row i meets block b in the forward product of i's block if b comes before
 * it, otherwise in the transposed product of b: no entry of K(Z,Z) is evaluated twice, and after the last block h - KU
 * y is the residual, up to rounding. Kernel values that do not fit the cache of the block are evaluated again for the
 * transposed product; without a cache a pass costs p^2 d. (KU)' t is updated by KU_b' t_b. Memory: 2 p q, 3 p c, and
 * the memory of the blocks.
 *
 * t_b is rounded to type real before it is used, so that r is the residual of the stored theta.
 *
 * U' KU is rounded too: its entry (i, j), i < j, is taken as u_i' (K u_j), whose error is u w_j and not u w_i. If U' KU
 * is still not positive definite, the last columns of U are dropped.
 *
 * Why sampled: the functions K(.,Z) U are smoother than K(.,Z_s) E by one more application of K, but this gains little,
 * because the coarse step of the next block replaces y. Residuals after one pass, for p = 4,000, s = 1,000, q = 100,
 * blocks of 500 and a Laplace kernel, with U extended to all centers or sampled: smooth right-hand sides 6.1e-3
 * extended and 8.0e-3 sampled with 128 features, 8.4e-3 and 9.5e-3 with 16 features; 1.4e-2 without a coarse space.
 * Random right-hand sides: 0.354 extended, 0.361 sampled, 0.435 without a coarse space. For a million centers the
 * product K(Z,Z) U takes as long as a whole epoch.
 *
 * Stops after a pass if the residual has reached the tolerance or has not decreased.
 */
#include "solvers/projectors/projector.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/operators/spd.h"
#include "solvers/planner.h"
#include "solvers/projectors/blocks.h"

#include <math.h>

typedef struct bgs {
    mrc_blocks blocks;
    int64_t q;
    mercer_matrix u;      /* sorted field (rows, q); sampled: (this rank's rows of Z_s, q), ordered by shard */
    mercer_matrix ku;     /* sorted field (rows, q) */
    mrc_shard *part;      /* (shards) rows of U that belong to each shard: its first rows */
    mercer_matrix factor; /* C (q, q) f64 */
} bgs;

typedef struct work {
    bgs *self;
    mrc_cached_block *buffers;          /* (shards) buffers of the projector's caller, or NULL */
    int64_t *ids;                       /* (b) */
    mercer_matrix points;               /* (b, d) buffer for the points of a block; empty with one shard */
    mercer_matrix part;                 /* (b, c) real: r_b, then t_b */
    mercer_matrix own;                  /* (b, c) real: the rows of `part` that a shard has */
    mercer_matrix step;                 /* (b, c) real: t_b */
    mercer_matrix wide;                 /* (b, c) f64 */
    mercer_matrix h, t, change;         /* sorted fields (rows, c) real */
    mercer_matrix first, seen, more, y; /* (q, c) real: U'h, (KU)'t, KU_b't_b, y */
    mercer_matrix y64;                  /* (q, c) */
    int64_t block;                      /* index of the current block */
    mercer_matrix block_points;         /* points of the current block */
} work;

/* ---- Life ---------------------------------------------------------------------------------------------------- */

static void destroy_bgs(mrc_projector *projector)
{
    mrc_backend *backend = projector->centers->backend;
    bgs *self = projector->state;
    mrc_matrix_destroy(backend, &self->factor);
    mrc_matrix_destroy(backend, &self->ku);
    mrc_matrix_destroy(backend, &self->u);
    mrc_free(projector->centers->context, self->part);
    mrc_blocks_destroy(&self->blocks);
    mrc_free(projector->centers->context, self);
}

/* Write the upper triangle of a and its mirror image to `to`: only the upper triangle is accurate, see above. */
static mercer_status mirror_upper(mrc_backend *backend, const mercer_matrix *a, const mercer_matrix *to)
{
    mercer_matrix from, host;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_open(&scope, backend, a, &from));
    MRC_TRY(mrc_scope_open(&scope, backend, to, &host));
    for (int64_t i = 0; i < to->rows; i++)
        for (int64_t j = 0; j < to->cols; j++)
            mrc_store(&host, i, j, i <= j ? mrc_load(&from, i, j) : mrc_load(&from, j, i));
    return mrc_host_close(backend, to, &host, true, MERCER_OK);
}

/* Factor a (q, q) into the leading part of self->factor (f64). While a is not positive definite, q is reduced. */
static mercer_status factor_coarse(bgs *self, mrc_centers *centers, const mercer_matrix *a)
{
    mrc_backend *backend = centers->backend;
    int64_t q = self->q, bad;
    for (; q > 0; q -= mrc_max(1, q / 8)) {
        self->factor.rows = self->factor.cols = q;
        MRC_TRY(mirror_upper(backend, a, &self->factor));
        MRC_TRY(backend->ops->cholesky(backend, &self->factor, &bad));
        if (bad < 0) break;
    }
    if (q < self->q)
        mrc_log(centers->context, MERCER_LOG_WARNING,
                "projection: ignoring %lld of %lld directions of the coarse space", (long long)(self->q - q),
                (long long)self->q);
    self->q = self->u.cols = self->ku.cols = self->factor.rows = self->factor.cols = mrc_max(q, 0);
    return MERCER_OK;
}

/* Reorder the rows of U from the order of the fields to the order of the blocks. */
static mercer_status sort_coarse(bgs *self, mrc_centers *centers, const mrc_coarse *coarse)
{
    self->q = coarse->q;
    MRC_TRY(mrc_field_create(centers, &self->u, coarse->q, centers->real, "the coarse space"));
    if (coarse->q == 0) return MERCER_OK;
    return centers->backend->ops->gather_rows(centers->backend, &self->u, &coarse->u, self->blocks.order);
}

/* Create the coarse space by Nystrom extension to all rows of each shard. */
static mercer_status make_extended(bgs *self, mrc_centers *centers, const mrc_projector_options *options)
{
    mrc_coarse coarse;
    for (int i = 0; i < centers->shards; i++) self->part[i] = centers->shard[i];
    MRC_TRY(mrc_coarse_create(&coarse, centers, options->nystrom, options->eigenpairs, options->seed));
    mercer_status status = sort_coarse(self, centers, &coarse);
    mrc_coarse_destroy(&coarse, centers->backend);
    if (status != MERCER_OK || self->q == 0) return status;
    MRC_TRY(mrc_field_create(centers, &self->ku, self->q, centers->real, "K(Z,Z) times the coarse space"));
    mrc_centers_notify(centers, "coarse space", -1);
    return mrc_centers_times(&self->blocks.sorted, NULL, &self->u, &self->ku);
}

/* Find the rows of E that belong to this rank, shard by shard. Row i of E belongs to center i of the random order. from
   (s) receives the indices of these rows. Returns their number. */
static int64_t find_sampled(bgs *self, mrc_centers *centers, int64_t s, int64_t *from)
{
    const mrc_blocks *blocks = &self->blocks;
    int64_t count = 0;
    for (int shard = 0; shard < centers->shards; shard++) {
        const int64_t *before = blocks->before + shard * (blocks->count + 1);
        self->part[shard] = (mrc_shard){.offset = count};
        for (int64_t block = 0; block < blocks->count; block++)
            for (int64_t at = before[block]; at < before[block + 1]; at++) {
                int64_t i = block * blocks->size + blocks->place[centers->shard[shard].offset + at];
                if (i < s) from[count++] = i; /* places are ascending within a block */
            }
        self->part[shard].rows = count - self->part[shard].offset;
    }
    return count;
}

static mercer_status use_sample(bgs *self, mrc_centers *centers, const mrc_eigensystem *system)
{
    mrc_backend *backend = centers->backend;
    int64_t *from;
    MRC_SCOPE(scope, centers->context);
    self->q = system->q;
    if (self->q == 0) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc(&scope, &from, system->s, sizeof *from, "the sample of the centers"));
    int64_t rows = find_sampled(self, centers, system->s, from);
    MRC_TRY(mrc_matrix_create(backend, &self->u, rows, self->q, centers->real, "the coarse space"));
    MRC_TRY(backend->ops->gather_rows(backend, &self->u, &system->vectors, from));
    mrc_centers_notify(centers, "coarse space", -1);
    MRC_TRY(mrc_field_create(centers, &self->ku, self->q, centers->real, "K(Z,Z) times the coarse space"));
    return mrc_centers_apply(&self->blocks.sorted, &system->points, &system->vectors, &self->ku, false);
}

static mercer_status make_sampled(bgs *self, mrc_centers *centers, const mrc_projector_options *options)
{
    int64_t *ids, s = mrc_min(options->nystrom, centers->p);
    mrc_eigensystem system;
    if (s < 2 || options->eigenpairs <= 0) return MERCER_OK;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_alloc(&scope, &ids, s, sizeof *ids, "the sample of the centers"));
    MRC_TRY(mrc_sample_system(&system, centers, s, mrc_min(options->eigenpairs, s - 1),
                              (mrc_rng){self->blocks.seed, MRC_RANDOM_PARTITION}, ids));
    mercer_status status = use_sample(self, centers, &system);
    mrc_eigensystem_destroy(&system, centers->backend);
    return status;
}

/* ---- Products with U --------------------------------------------------------------------------------------------- */

typedef struct inner_job {
    const bgs *self;
    const mercer_matrix *field;
    bool exact;
} inner_job;

/* Compute a shard's share of U' V for a sorted field V. */
static mercer_status inner_part(mrc_centers *sorted, int shard, const mercer_matrix *part, void *argument)
{
    const inner_job *job = argument;
    mrc_shard own = job->self->part[shard];
    mercer_matrix u = mrc_rows(&job->self->u, own.offset, own.rows);
    mercer_matrix v = mrc_rows(job->field, sorted->shard[shard].offset, own.rows);
    return job->exact ? mrc_counted_gemm(sorted, true, false, 1, &u, &v, 0, part)
                      : mrc_split_gemm(sorted, true, 1, &u, &v, 0, part);
}

static mercer_status inner_products(bgs *self, const mercer_matrix *field, bool exact, const mercer_matrix *out)
{
    inner_job job = {self, field, exact};
    return mrc_centers_sum(&self->blocks.sorted, out, inner_part, &job);
}

/* Compute T += U y for a sorted field T. */
static mercer_status add_coarse(bgs *self, const mercer_matrix *y, const mercer_matrix *t)
{
    mrc_centers *sorted = &self->blocks.sorted;
    for (int shard = 0; shard < sorted->shards; shard++) {
        mrc_shard own = self->part[shard];
        mercer_matrix u = mrc_rows(&self->u, own.offset, own.rows);
        mercer_matrix to = mrc_rows(t, sorted->shard[shard].offset, own.rows);
        MRC_TRY(mrc_split_gemm(sorted, false, 1, &u, y, 1, &to));
    }
    return MERCER_OK;
}

static mercer_status make_coarse(bgs *self, mrc_centers *centers, const mrc_projector_options *options)
{
    mercer_matrix a;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_alloc_zero(centers->context, &self->part, centers->shards, sizeof *self->part, "the coarse space"));
    MRC_TRY((options->sampled ? make_sampled : make_extended)(self, centers, options));
    if (self->q == 0) return MERCER_OK;
    MRC_TRY(mrc_matrix_create(centers->backend, &self->factor, self->q, self->q, MERCER_F64, "the coarse matrix"));
    MRC_TRY(mrc_scope_matrix(&scope, centers->backend, &a, self->q, self->q, centers->real, "the coarse matrix"));
    MRC_TRY(inner_products(self, &self->ku, true, &a));
    return factor_coarse(self, centers, &a);
}

/* Add the flops counted by the sorted centers to the count of the original centers. */
static mercer_status count_flops(bgs *self, mercer_status status)
{
    self->blocks.centers->flops += self->blocks.sorted.flops;
    self->blocks.sorted.flops = 0;
    return status;
}

static mercer_status create_bgs(mrc_projector *projector)
{
    mrc_centers *centers = projector->centers;
    const mrc_projector_options *options = &projector->options;
    MRC_TRY(mrc_alloc_zero(centers->context, &projector->state, 1, sizeof(bgs), "the block Gauss-Seidel projector"));
    bgs *self = projector->state;
    MRC_TRY(mrc_blocks_create(&self->blocks, centers, options->block, options->store, options->sampled, options->jitter,
                              options->seed));
    return count_flops(self, make_coarse(self, centers, options));
}

static mercer_status work_fill(work *w, mrc_centers *centers, mrc_scope *scope, int64_t c)
{
    mrc_backend *backend = centers->backend;
    mercer_dtype real = centers->real;
    int64_t b = w->self->blocks.size, q = w->self->q;
    mercer_matrix *const parts[] = {&w->part, &w->own, &w->step}, *const fields[] = {&w->h, &w->t, &w->change},
                         *const small[] = {&w->first, &w->seen, &w->more, &w->y};
    MRC_TRY(mrc_scope_alloc(scope, &w->ids, b, sizeof *w->ids, "the numbers of a block"));
    MRC_TRY(mrc_scope_points(scope, centers, &w->points, centers->all_shards == 1 ? 0 : b, "a block of centers"));
    for (int i = 0; i < 3; i++)
        MRC_TRY(mrc_scope_matrix(scope, backend, parts[i], b, c, real, "the residual of a block"));
    for (int i = 0; i < 3; i++) MRC_TRY(mrc_scope_field(scope, centers, fields[i], c, real, "fields of a projection"));
    for (int i = 0; i < 4; i++) MRC_TRY(mrc_scope_matrix(scope, backend, small[i], q, c, real, "the coarse step"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &w->y64, q, c, MERCER_F64, "the coarse step"));
    return mrc_scope_matrix(scope, backend, &w->wide, b, c, MERCER_F64, "the solution of a block");
}

/* ---- The two steps ------------------------------------------------------------------------------------------- */

/* Compute y = (C C')^-1 (U'h - (KU)'t). */
static mercer_status coarse_step(work *w)
{
    bgs *self = w->self;
    mrc_backend *backend = self->blocks.sorted.backend;
    if (self->q == 0) return MERCER_OK;
    MRC_TRY(backend->ops->copy(backend, &w->y, &w->first));
    MRC_TRY(backend->ops->axpby(backend, -1, &w->seen, 1, &w->y));
    MRC_TRY(backend->ops->copy(backend, &w->y64, &w->y));
    MRC_TRY(mrc_spd_solve(&self->blocks.sorted, &self->factor, &w->y64));
    return backend->ops->copy(backend, &w->y, &w->y64);
}

/* Ranges of sorted rows of a shard: rows in the blocks so far, and rows in the current block. */
typedef struct range {
    int64_t offset; /* first sorted row of the shard */
    int64_t upto;   /* number of the shard's rows up to and including this block */
    int64_t first, rows;
} range;

static range range_of(const work *w, int shard)
{
    const mrc_blocks *blocks = &w->self->blocks;
    const int64_t *before = blocks->before + shard * (blocks->count + 1) + w->block;
    int64_t offset = blocks->sorted.shard[shard].offset;
    return (range){offset, before[1], offset + before[0], before[1] - before[0]};
}

/* Compute a shard's share of r_b: its rows of h - KU y, minus the contribution of its centers to K(Z_b, Z_<b) t_<b.
   Caches K(Z_b, Z_<=b), which gives the same result because t_b is still 0. */
static mercer_status residual_part(mrc_centers *sorted, int shard, const mercer_matrix *part, void *argument)
{
    work *w = argument;
    mrc_backend *backend = sorted->backend;
    range r = range_of(w, shard);
    mercer_matrix z = mrc_rows(&sorted->z, r.offset, r.upto), t = mrc_rows(&w->t, r.offset, r.upto);
    mercer_matrix own = mrc_rows(&w->own, 0, r.rows), h = mrc_rows(&w->h, r.first, r.rows);
    mrc_cached_block none = {0}, *cached = w->buffers ? &w->buffers[shard] : &none;
    mrc_pair pair = mrc_points_pair(sorted, &w->block_points, &z);
    mrc_count_product(sorted, part->rows, z.rows, z.cols + t.cols);
    cached->columns = 0;
    MRC_TRY(backend->ops->kernel_forward(backend, &pair, &t, part, cached));
    MRC_TRY(backend->ops->axpby(backend, -1, part, 0, part));
    MRC_TRY(backend->ops->copy(backend, &own, &h));
    if (w->self->q > 0) {
        mercer_matrix ku = mrc_rows(&w->self->ku, r.first, r.rows);
        MRC_TRY(mrc_split_gemm(sorted, false, -1, &ku, &w->y, 1, &own));
    }
    return backend->ops->scatter_add_rows(backend, part, &own, w->self->blocks.place + r.first, 1);
}

/* Compute a shard's share of KU_b' t_b. */
static mercer_status coarse_part(mrc_centers *sorted, int shard, const mercer_matrix *part, void *argument)
{
    work *w = argument;
    range r = range_of(w, shard);
    mercer_matrix ku = mrc_rows(&w->self->ku, r.first, r.rows), t = mrc_rows(&w->t, r.first, r.rows);
    return mrc_split_gemm(sorted, true, 1, &ku, &t, 0, part);
}

/* Once t_b is known, compute h -= K(Z_<=b, Z_b) t_b for the rows of a shard, from the cached block. */
static mercer_status take_from_residual(work *w, mrc_centers *sorted, int shard, const mercer_matrix *step)
{
    mrc_backend *backend = sorted->backend;
    range r = range_of(w, shard);
    mercer_matrix z = mrc_rows(&sorted->z, r.offset, r.upto), h = mrc_rows(&w->h, r.offset, r.upto),
                  change = mrc_rows(&w->change, r.offset, r.upto);
    mrc_cached_block none = {0}, *cached = w->buffers ? &w->buffers[shard] : &none;
    mrc_pair pair = mrc_points_pair(sorted, &w->block_points, &z);
    mrc_count_product(sorted, step->rows, z.rows, step->cols);
    mrc_count_product(sorted, step->rows, z.rows - cached->columns, z.cols);
    MRC_TRY(backend->ops->kernel_transpose(backend, &pair, step, &change, cached));
    return backend->ops->axpby(backend, -1, &change, 1, &h);
}

/* Set a shard's rows of h_b to h_b - K(Z_b, Z_<b) t_<b, which is r_b + KU_b y. */
static mercer_status store_residual(work *w, mrc_centers *sorted, const range *r, const mercer_matrix *part)
{
    mercer_matrix h = mrc_rows(&w->h, r->first, r->rows);
    MRC_TRY(sorted->backend->ops->gather_rows(sorted->backend, &h, part, w->self->blocks.place + r->first));
    if (w->self->q == 0) return MERCER_OK;
    mercer_matrix ku = mrc_rows(&w->self->ku, r->first, r->rows);
    return mrc_split_gemm(sorted, false, 1, &ku, &w->y, 1, &h);
}

static mercer_status block_step(work *w)
{
    mrc_blocks *blocks = &w->self->blocks;
    mrc_centers *sorted = &blocks->sorted;
    mrc_backend *backend = sorted->backend;
    int64_t rows = mrc_blocks_rows(blocks, w->block);
    mercer_matrix part = mrc_rows(&w->part, 0, rows), step = mrc_rows(&w->step, 0, rows);
    MRC_TRY(mrc_blocks_points(blocks, w->block, w->ids, &w->points, &w->block_points));
    MRC_TRY(mrc_centers_sum(sorted, &part, residual_part, w));
    MRC_TRY(mrc_blocks_solve(blocks, w->block, &w->block_points, &part, &w->wide, &step));
    for (int shard = 0; shard < sorted->shards; shard++) {
        range r = range_of(w, shard);
        mercer_matrix t = mrc_rows(&w->t, r.first, r.rows);
        MRC_TRY(backend->ops->gather_rows(backend, &t, &step, blocks->place + r.first));
        MRC_TRY(store_residual(w, sorted, &r, &part));
        MRC_TRY(take_from_residual(w, sorted, shard, &step));
    }
    if (w->self->q == 0) return MERCER_OK;
    MRC_TRY(mrc_centers_sum(sorted, &w->more, coarse_part, w));
    return backend->ops->axpby(backend, 1, &w->more, 1, &w->seen);
}

/* ---- One projection ------------------------------------------------------------------------------------------ */

/* Run one pass. w->h becomes the residual; w->t the change of theta. */
static mercer_status run_pass(work *w)
{
    bgs *self = w->self;
    mrc_centers *sorted = &self->blocks.sorted;
    mrc_backend *backend = sorted->backend;
    MRC_TRY(backend->ops->clear(backend, &w->t));
    MRC_TRY(backend->ops->clear(backend, &w->seen));
    if (self->q > 0) MRC_TRY(inner_products(self, &w->h, false, &w->first));
    for (w->block = 0; w->block < self->blocks.count; w->block++) {
        MRC_TRY(coarse_step(w));
        MRC_TRY(block_step(w));
    }
    if (self->q == 0) return MERCER_OK;
    MRC_TRY(coarse_step(w));
    MRC_TRY(mrc_centers_multiply(sorted, -1, &self->ku, &w->y, 1, &w->h));
    return add_coarse(self, &w->y, &w->t);
}

static mercer_status run_bgs(mrc_projector *projector, work *w, const mercer_matrix *theta, double *passes)
{
    mrc_centers *centers = projector->centers;
    const mrc_projector_options *options = &projector->options;
    double before = projector->h_norm, left;
    for (int64_t pass = 0; pass < options->passes; pass++) {
        MRC_TRY(run_pass(w));
        MRC_TRY(centers->backend->ops->scatter_add_rows(centers->backend, theta, &w->t, w->self->blocks.order, 1));
        MRC_TRY(mrc_centers_norm(&w->self->blocks.sorted, &w->h, &left));
        *passes += 1;
        mrc_log(centers->context, MERCER_LOG_DEBUG, "projection (bgs): pass %lld, residual %.3e", (long long)pass + 1,
                left / projector->h_norm);
        if (left <= options->tolerance * projector->h_norm || !(left < before)) break;
        before = left;
    }
    return MERCER_OK;
}

static mercer_status project_bgs(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                                 mrc_projection *report)
{
    bgs *self = projector->state;
    mrc_backend *backend = projector->centers->backend;
    work w = {.self = self, .buffers = projector->buffers};
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(work_fill(&w, projector->centers, &scope, h->cols));
    MRC_TRY(backend->ops->gather_rows(backend, &w.h, h, self->blocks.order));
    MRC_TRY(count_flops(self, run_bgs(projector, &w, theta, &report->passes)));
    MRC_TRY(backend->ops->clear(backend, h));
    return backend->ops->scatter_add_rows(backend, h, &w.h, self->blocks.order, 1);
}

static const char *bgs_suits(const mrc_planner *planner)
{
    (void)planner;
    return "K(Z,Z) does not fit into memory";
}

static void bgs_cost(const mrc_problem *problem, const mrc_projector_options *options, mrc_cost *once, mrc_cost *each)
{
    double p = (double)problem->p, d = (double)problem->d, c = (double)problem->c, e = (double)problem->real_size;
    double q = (double)mrc_max(0, mrc_min(options->eigenpairs, mrc_min(options->nystrom, problem->p) - 1));
    double size = (double)mrc_min(options->block, problem->p), blocks = ceil(p / size), wide = p * q * e;
    double passes = (double)options->passes;
    mrc_coarse_cost(problem, options->nystrom, options->eigenpairs, once);
    double u = options->sampled ? fmin((double)options->nystrom, p) * q * e : wide;
    /* While inverses are computed, neither U nor KU exists. While U is computed, KU does not exist; afterwards U exists
       twice for a short time. */
    mrc_bytes working = {3 * p * c * e, 3 * size * c * e + size * (8 * c + 8) + q * c * (4 * e + 8)};
    double inverses = options->store ? mrc_blocks_making(problem, options->block, options->sampled) : 0;
    double coarse = mrc_bytes_sum(once->held) + mrc_bytes_sum(once->peak);
    mrc_bytes making = {0, fmax(fmax(inverses, coarse) - wide - u, q * q * e)};
    once->peak = mrc_bytes_larger(working, making);
    once->held = mrc_blocks_bytes(problem, options->block, options->store);
    once->held.shared += wide + u, once->held.replicated += 8 * q * q;
    each->flops = passes * p * p * (mrc_problem_features(problem) + 2 * c); /* every pair is evaluated once */
    each->doubles = each->alike = passes * p * (double)(options->block * options->block) / 3;
    mrc_cost_sums(each, problem, 8 * c, passes);
    mrc_cost_rows(each, problem, passes * p * d * (double)problem->point_size, passes * blocks);
    mrc_cost_sums(each, problem, p / blocks * c * e, passes * blocks);
    mrc_cost_sums(each, problem, q * c * e, passes * (blocks + 1));
}

const mrc_projector_ops mrc_projector_bgs = {.name = "bgs",
                                             .description = "block Gauss-Seidel with a coarse space",
                                             .uses =
                                                 MRC_PROJECTOR_SAMPLES | MRC_PROJECTOR_REPEATS | MRC_PROJECTOR_BLOCKS,
                                             .stores = MRC_STORES_INVERSES,
                                             .passes = 1,
                                             .carry = true,
                                             .suits = bgs_suits,
                                             .create = create_bgs,
                                             .destroy = destroy_bgs,
                                             .project = project_bgs,
                                             .cost = bgs_cost};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of centers and their inverses.
 *
 *   Z = [Z_1; Z_2; ...]       a random order of the p centers, cut into blocks of b; each shard's own rows in that
 *                             order
 *   X = K(Z_b,Z_b)^-1 B       by a Cholesky factor in double, b^3/3 for each solve; or by the inverse itself, stored
 *                             in type real: 7/3 b^3 once, then 2 b^2 c per solve, one product on a GPU
 *
 * If inverses are stored, several are computed by one call of the backend. Inverses that need a shift are computed
 * again one by one.
 *
 * Memory: a sorted copy of the centers, p d; 8 b^2, or 16 b^2 for each of the inverses that are computed together;
 * inverses p b. Each of R ranks has its part of the sorted copy and every R-th inverse. The rank that has the inverse
 * of a block sends X (b, c) to all other ranks. All ranks compute all inverses, because the shift that one block needs
 * is the minimum for the next.
 *
 * Rounding. x is stored in type real (unit roundoff u), so an x with u |x| |K| > |b|/10 is too inaccurate; a relative
 * shift of 10 u b on the diagonal prevents this (spd.c). A factor is checked with each x. A stored inverse, which is
 * itself rounded, is checked by its norm: u |K^-1| trace K <= 1/10, where the norm is estimated by power iteration. The
 * estimate is a few percent too low, which is less than the margin of the rule.
 */
#include "solvers/projectors/blocks.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/operators/spd.h"

#include <math.h>
#include <string.h>

/* POWER_STEPS: steps of power iteration, each of which costs b^2 multiply-adds, compared with b^3 for the inverse that
   it checks. DRAWN: elements of the permutation that are computed together, in an array on the stack (32 kB). */
enum { POWER_STEPS = 8, DRAWN = 4096 };

/* Return the number of blocks; the last may be smaller. */
static int64_t block_count(int64_t p, int64_t size)
{
    return (p + size - 1) / size;
}

int64_t mrc_blocks_rows(const mrc_blocks *self, int64_t block)
{
    return mrc_min(self->size, self->centers->p - block * self->size);
}

mrc_bytes mrc_blocks_bytes(const mrc_problem *problem, int64_t size, bool store_inverses)
{
    int64_t p = problem->p, blocks = block_count(p, mrc_min(size, p)), b = (p + blocks - 1) / blocks;
    double lists = (double)(8 * (blocks + 1) + (store_inverses ? blocks * (int64_t)sizeof(mercer_matrix) : 0));
    double sorted = (double)p * (double)(problem->d * problem->point_size + 16);
    if (store_inverses) return (mrc_bytes){sorted + (double)p * (double)(b * problem->real_size), lists};
    return (mrc_bytes){sorted, lists + (double)(8 * b * b)};
}

double mrc_blocks_making(const mrc_problem *problem, int64_t size, bool together)
{
    double b = (double)mrc_min(size, problem->p);
    return 16 * b * b * (together ? MRC_BLOCKS_TOGETHER : 1) + 2 * b * (double)problem->real_size;
}

/* ---- The order ----------------------------------------------------------------------------------------------- */

/* Return the local shard that a row of a field belongs to. */
static int shard_of(const mrc_centers *centers, int64_t row)
{
    int shard = 0;
    while (row >= centers->shard[shard].offset + centers->shard[shard].rows) shard++;
    return shard;
}

/* Draw the centers at positions first .. first + count - 1 of the random order. */
static void draw_order(const mrc_blocks *self, int64_t first, int64_t count, int64_t *ids)
{
    mrc_rng rng = {self->seed, MRC_RANDOM_PARTITION};
    mrc_random_permutations(self->centers->context->threads, rng, self->centers->p, first, count, ids);
}

/* Draw the order of the centers and list this rank's rows in it, with the bounds of the blocks in each shard. */
static mercer_status sort_rows(mrc_blocks *self)
{
    mrc_centers *centers = self->centers;
    int64_t rows = centers->z.rows, width = self->count + 1, ids[DRAWN];
    MRC_TRY(mrc_alloc(centers->context, &self->order, rows, sizeof(int64_t), "the order of the centers"));
    MRC_TRY(mrc_alloc(centers->context, &self->place, rows, sizeof(int64_t), "places in blocks"));
    MRC_TRY(
        mrc_alloc_zero(centers->context, &self->before, centers->shards * width, sizeof(int64_t), "bounds of blocks"));
    for (int64_t i = 0; i < centers->p; i++) {
        int64_t block = i / self->size;
        /* Entry self->count of a shard counts its rows placed so far. When a block begins, this count is its bound. */
        for (int k = 0; k < centers->shards && i % self->size == 0; k++)
            self->before[k * width + block] = self->before[k * width + self->count];
        if (i % DRAWN == 0) draw_order(self, i, mrc_min(DRAWN, centers->p - i), ids);
        int64_t row = ids[i % DRAWN] - centers->first;
        if (row < 0 || row >= rows) continue;
        int shard = shard_of(centers, row);
        int64_t at = centers->shard[shard].offset + self->before[shard * width + self->count]++;
        self->order[at] = row, self->place[at] = i % self->size;
    }
    return MERCER_OK;
}

mercer_status mrc_blocks_points(mrc_blocks *self, int64_t block, int64_t *ids, const mercer_matrix *scratch,
                                mercer_matrix *out)
{
    int64_t first = block * self->size, rows = mrc_blocks_rows(self, block);
    if (self->centers->all_shards == 1) {
        *out = mrc_rows(&self->z, first, rows);
        return MERCER_OK;
    }
    *out = mrc_rows(scratch, 0, rows);
    draw_order(self, first, rows, ids);
    return mrc_centers_collect(self->centers, NULL, ids, rows, out);
}

/* ---- Inverses ------------------------------------------------------------------------------------------------ */

/* Factor a block with at least the relative shift `least`, in self->factor; with scratch (b, b) f64, compute its
   inverse instead. */
static mercer_status factor_block(mrc_blocks *self, const mercer_matrix *points, const mercer_matrix *scratch,
                                  double least, mrc_factor *out)
{
    self->shift = fmax(self->shift, least);
    *out = (mrc_factor){
        .l = mrc_shaped(&self->factor, points->rows, points->rows), .scratch = scratch, .relative = self->shift};
    MRC_TRY(mrc_factor_kernel(&self->sorted, points, out));
    self->shift = out->relative; /* the next block will need about the same shift */
    return MERCER_OK;
}

/* Log that blocks need a shift: a warning the first time, then details for debugging. */
static void say_shifted(mrc_blocks *self, double safe)
{
    mrc_centers *centers = self->centers;
    mrc_log(centers->context, self->shift < safe ? MERCER_LOG_WARNING : MERCER_LOG_DEBUG,
            "projection: blocks of K(Z,Z) are too ill-conditioned for %s; %.1e of their mean diagonal is added",
            mrc_dtype_name(centers->real), safe);
}

/* Estimate the largest eigenvalue of a symmetric positive definite matrix, from below. */
static mercer_status estimate_norm(mrc_blocks *self, const mercer_matrix *a, double *out)
{
    mrc_centers *centers = &self->sorted;
    mrc_backend *backend = centers->backend;
    /* start vector: column 0 of a, which is hardly ever orthogonal to the top eigenvector */
    mercer_matrix pair, column = mrc_columns(a, 0, 1);
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &pair, a->rows, 2, centers->real, "a vector"));
    mercer_matrix x = mrc_columns(&pair, 0, 1), y = mrc_columns(&pair, 1, 1);
    MRC_TRY(backend->ops->copy(backend, &x, &column));
    for (int step = 0;; step++) {
        MRC_TRY(mrc_matrix_norm(backend, &x, out));
        if (step == POWER_STEPS || !(*out > 0) || !isfinite(*out)) return MERCER_OK;
        MRC_TRY(backend->ops->axpby(backend, 1 / *out, &x, 0, &x));
        MRC_TRY(mrc_counted_gemm(centers, false, false, 1, a, &x, 0, &y));
        MRC_TRY(backend->ops->copy(backend, &x, &y));
    }
}

/* Round an inverse to type real; set *fits to whether the rounded inverse is accurate enough or already has the safe
   shift. */
static mercer_status store_inverse(mrc_blocks *self, const mrc_factor *factor, const mercer_matrix *inverse, bool *fits)
{
    mrc_backend *backend = self->sorted.backend;
    mercer_dtype real = self->sorted.real;
    double norm;
    mrc_count_product(&self->sorted, inverse->rows, inverse->rows, inverse->rows);
    MRC_TRY(backend->ops->copy(backend, inverse, &factor->l));
    MRC_TRY(mrc_matrix_norm(backend, inverse, &norm)); /* Frobenius norm: an upper bound of the spectral norm */
    if (mrc_factor_too_rough(factor, real, norm, 1)) MRC_TRY(estimate_norm(self, inverse, &norm));
    *fits =
        !mrc_factor_too_rough(factor, real, norm, 1) || factor->relative >= mrc_factor_safe_shift(real, inverse->rows);
    return MERCER_OK;
}

/* Invert one block, and again with the safe shift if its rounded inverse is too inaccurate. */
static mercer_status invert_block(mrc_blocks *self, const mercer_matrix *points, const mercer_matrix *inverse)
{
    double safe = mrc_factor_safe_shift(self->sorted.real, points->rows), least = 0;
    mercer_matrix scratch = mrc_shaped(&self->scratch, points->rows, points->rows);
    mrc_factor factor;
    bool fits;
    for (;; least = safe) {
        MRC_TRY(factor_block(self, points, &scratch, least, &factor));
        MRC_TRY(store_inverse(self, &factor, inverse, &fits));
        if (fits) return MERCER_OK;
        say_shifted(self, safe);
    }
}

/* Compute the inverses of blocks of the same size. */
static mercer_status invert_blocks(mrc_blocks *self, int64_t count, const mercer_matrix *points,
                                   mercer_matrix *const *inverses)
{
    mrc_factor factors[MRC_BLOCKS_TOGETHER];
    bool sound[MRC_BLOCKS_TOGETHER];
    int64_t rows = points[0].rows;
    if (count == 1) return invert_block(self, &points[0], inverses[0]);
    mercer_matrix all = mrc_shaped(&self->factor, count * rows, rows),
                  scratch = mrc_shaped(&self->scratch, count * rows, rows);
    for (int64_t i = 0; i < count; i++)
        factors[i] = (mrc_factor){.l = mrc_rows(&all, i * rows, rows), .relative = self->shift};
    MRC_TRY(mrc_invert_kernels(&self->sorted, count, points, factors, &scratch, sound));
    for (int64_t i = 0; i < count; i++)
        if (sound[i]) MRC_TRY(store_inverse(self, &factors[i], inverses[i], &sound[i]));
    for (int64_t i = 0; i < count; i++) /* a second loop, because invert_block overwrites the shared buffers */
        if (!sound[i]) MRC_TRY(invert_block(self, &points[i], inverses[i]));
    return MERCER_OK;
}

/* Factor and solve, and again with the safe shift if the rounded solution is too inaccurate. */
static mercer_status solve_by_factor(mrc_blocks *self, const mercer_matrix *points, const mercer_matrix *b,
                                     const mercer_matrix *wide, const mercer_matrix *x)
{
    mrc_backend *backend = self->sorted.backend;
    double safe = mrc_factor_safe_shift(self->sorted.real, points->rows), least = 0, b_norm, x_norm;
    mrc_factor factor;
    MRC_TRY(mrc_matrix_norm(backend, b, &b_norm));
    for (;; least = safe) {
        MRC_TRY(factor_block(self, points, NULL, least, &factor));
        MRC_TRY(backend->ops->copy(backend, wide, b));
        MRC_TRY(mrc_spd_solve(&self->sorted, &factor.l, wide));
        MRC_TRY(mrc_matrix_norm(backend, wide, &x_norm));
        if (!mrc_factor_too_rough(&factor, self->sorted.real, x_norm, b_norm) || factor.relative >= safe)
            return backend->ops->copy(backend, x, wide);
        say_shifted(self, safe);
    }
}

/* Return the rank that stores the inverse of a block. */
static int keeper_of(const mrc_blocks *self, int64_t block)
{
    return (int)(block % self->centers->comm->ranks);
}

/* Compute X = K(Z_b,Z_b)^-1 B on the rank that has the inverse, then send X to all ranks. */
static mercer_status solve_by_inverse(mrc_blocks *self, int64_t block, const mercer_matrix *b, const mercer_matrix *x)
{
    mrc_comm *comm = self->centers->comm;
    mrc_backend *backend = self->sorted.backend;
    int keeper = keeper_of(self, block);
    int64_t bytes = x->rows * x->ld * mrc_dtype_size(x->dtype);
    mercer_matrix host;
    if (keeper == comm->rank) MRC_TRY(mrc_split_gemm(&self->sorted, false, 1, &self->inverses[block], b, 0, x));
    if (comm->ranks == 1) return MERCER_OK;
    if (mrc_comm_memory(comm, x->memory) == x->memory) { /* the transport can use this memory directly */
        MRC_TRY(backend->ops->sync(backend));
        return mrc_comm_spread(comm, x->memory, keeper, x->data, bytes);
    }
    MRC_TRY(mrc_host_open(backend, x, &host));
    mercer_status status = mrc_comm_spread(comm, MRC_HOST, keeper, host.data, bytes);
    return mrc_host_close(backend, x, &host, keeper != comm->rank, status);
}

mercer_status mrc_blocks_solve(mrc_blocks *self, int64_t block, const mercer_matrix *points, const mercer_matrix *b,
                               const mercer_matrix *wide, const mercer_matrix *x)
{
    mercer_matrix view = mrc_rows(wide, 0, b->rows);
    if (!self->inverses) return solve_by_factor(self, points, b, &view, x);
    return solve_by_inverse(self, block, b, x);
}

/* ---- Life ---------------------------------------------------------------------------------------------------- */

/* Compute the inverses of up to `most` blocks first, first + 1, ... of the same size, and store those of this rank. Set
   *done to the number of blocks. other: buffer for inverses that another rank stores. */
static mercer_status store_some(mrc_blocks *self, int64_t first, int64_t most, int64_t *ids,
                                const mercer_matrix *scratch, mercer_matrix *other, int64_t *done)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    int64_t rows = mrc_blocks_rows(self, first);
    mercer_matrix points[MRC_BLOCKS_TOGETHER] = {0}, *inverses[MRC_BLOCKS_TOGETHER] = {0};
    for (*done = 0; *done < most && first + *done < self->count; ++*done) {
        int64_t block = first + *done;
        if (mrc_blocks_rows(self, block) != rows) break; /* the last block may be smaller */
        mercer_matrix *to = keeper_of(self, block) == centers->comm->rank ? &self->inverses[block] : other;
        if (to->rows != rows) {
            mrc_matrix_destroy(backend, to);
            MRC_TRY(mrc_matrix_create(backend, to, rows, rows, centers->real, "the inverse of a block"));
        }
        inverses[*done] = to;
        MRC_TRY(mrc_blocks_points(self, block, ids, scratch, &points[*done]));
    }
    return invert_blocks(self, *done, points, inverses);
}

static mercer_status create_inverses(mrc_blocks *self, bool together)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    /* With several shards, blocks are collected one at a time. */
    int64_t *ids, most = together && centers->all_shards == 1 ? mrc_min(MRC_BLOCKS_TOGETHER, self->count) : 1, done;
    mercer_matrix scratch, other = {0};
    mercer_status status = MERCER_OK;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(
        mrc_alloc_zero(centers->context, &self->inverses, self->count, sizeof *self->inverses, "the list of inverses"));
    MRC_TRY(mrc_matrix_create(backend, &self->factor, most * self->size, self->size, MERCER_F64, "inverses of blocks"));
    MRC_TRY(
        mrc_matrix_create(backend, &self->scratch, most * self->size, self->size, MERCER_F64, "inverses of blocks"));
    MRC_TRY(mrc_scope_alloc(&scope, &ids, self->size, sizeof *ids, "the numbers of a block"));
    MRC_TRY(
        mrc_scope_points(&scope, centers, &scratch, centers->all_shards == 1 ? 0 : self->size, "a block of centers"));
    for (int64_t block = 0; block < self->count && status == MERCER_OK; block += done) {
        mrc_centers_notify(centers, "inverses of blocks", (double)block / (double)self->count);
        status = store_some(self, block, most, ids, &scratch, &other, &done);
    }
    mrc_matrix_destroy(backend, &other);
    mrc_matrix_destroy(backend, &self->scratch);
    mrc_matrix_destroy(backend, &self->factor);
    return status;
}

static mercer_status create_blocks(mrc_blocks *self, bool store, bool together)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    MRC_TRY(sort_rows(self));
    MRC_TRY(mrc_matrix_create(backend, &self->z, centers->z.rows, centers->z.cols, centers->z.dtype,
                              "the centers in the order of blocks"));
    MRC_TRY(backend->ops->gather_rows(backend, &self->z, &centers->z, self->order));
    self->sorted.z = self->z;
    MRC_TRY(mrc_points_pack(&self->sorted, &self->z, 0, self->z.rows));
    if (store) return create_inverses(self, together);
    return mrc_matrix_create(backend, &self->factor, self->size, self->size, MERCER_F64, "the factor of a block");
}

mercer_status mrc_blocks_create(mrc_blocks *out, mrc_centers *centers, int64_t size, bool store_inverses, bool together,
                                double jitter, uint64_t seed)
{
    *out = (mrc_blocks){.centers = centers, .sorted = *centers, .seed = seed, .shift = jitter};
    out->sorted.flops = 0;
    memset(out->sorted.packed, 0, sizeof out->sorted.packed);
    memset(&out->sorted.own, 0, sizeof out->sorted.own);
    out->count = block_count(centers->p, mrc_min(size, centers->p));
    out->size = (centers->p + out->count - 1) / out->count; /* blocks of nearly the same size */
    out->count = block_count(centers->p, out->size);
    return create_blocks(out, store_inverses, together);
}

void mrc_blocks_destroy(mrc_blocks *self)
{
    mrc_centers *centers = self->centers;
    if (!centers) return;
    for (int64_t block = 0; block < self->count && self->inverses; block++)
        mrc_matrix_destroy(centers->backend, &self->inverses[block]);
    mrc_free(centers->context, self->inverses);
    mrc_matrix_destroy(centers->backend, &self->scratch);
    mrc_matrix_destroy(centers->backend, &self->factor);
    mrc_points_forget(&self->sorted, &self->z);
    mrc_matrix_destroy(centers->backend, &self->z);
    MRC_FREE_ALL(centers->context, self->before, self->place, self->order);
    memset(self, 0, sizeof *self);
}

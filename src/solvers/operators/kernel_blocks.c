/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products of a batch with K(X_m, Z), and the cached parts of the kernel matrix.
 *
 *   forward    F = K W        evaluated (2 m p (d + c) flops) and stored as far as the buffer allows, or read from the
 *                             cache (2 m p c)
 *   transpose  H = K' G       from what was stored (2 m p c), the rest evaluated again
 *
 * Cache: K(X, Z_s) (n, rows_s) for each shard, filled batch by batch. A product then takes m p reads instead of m p d
 * multiplications. The cache may be in half precision, half as large: values between 0 and 1 then change by at most
 * 2^-12 (2^-11 relative).
 */
#include "solvers/operators/kernel_blocks.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

/* Return the bytes of a batch's block in a shard. */
static int64_t block_bytes(const mrc_kernel_blocks *self, int shard, int64_t rows)
{
    return rows * self->centers->shard[shard].rows * mrc_dtype_size(self->centers->real);
}

/* Return the largest useful buffer size: products may store whole tiles. */
static int64_t most_buffer_bytes(const mrc_kernel_blocks *self, int shard)
{
    return mrc_round_up(self->centers->shard[shard].rows, 256) * mrc_round_up(self->most_rows, 16) *
           mrc_dtype_size(self->centers->real);
}

/* Allocate the buffers for a batch's block, each shard in proportion to its centers. */
static mercer_status create_buffers(mrc_kernel_blocks *self, int64_t batch_block_bytes)
{
    mrc_centers *centers = self->centers;
    for (int i = 0; i < centers->shards; i++) {
        /* Share of all centers, not of this rank's centers: the size must not depend on the number of ranks. */
        double share = (double)centers->shard[i].rows / (double)mrc_max(centers->p, 1);
        int64_t bytes = mrc_min(most_buffer_bytes(self, i), (int64_t)((double)batch_block_bytes * share));
        if (bytes <= 0) continue;
        MRC_TRY(
            centers->backend->ops->alloc(centers->backend, &self->buffers[i].memory, bytes, "a batch's kernel block"));
        self->buffers[i].bytes = bytes;
    }
    return MERCER_OK;
}

/* Allocate the cache of all samples. Rows are marked in `have` when they are filled. */
static mercer_status create_cache(mrc_kernel_blocks *self, mercer_dtype stored)
{
    mrc_centers *centers = self->centers;
    MRC_TRY(mrc_alloc_zero(centers->context, &self->have, self->samples, 1, "the list of cached rows"));
    for (int i = 0; i < centers->shards; i++)
        MRC_TRY(mrc_matrix_reserve(centers->backend, &self->cache[i], self->samples, centers->shard[i].rows, stored,
                                   "the cache of K(X, Z)"));
    self->cached = true;
    return MERCER_OK;
}

mercer_status mrc_kernel_blocks_create(mrc_kernel_blocks *out, mrc_centers *centers, int64_t most_rows,
                                       int64_t batch_block_bytes, int64_t samples, mercer_dtype stored)
{
    *out = (mrc_kernel_blocks){.centers = centers, .most_rows = most_rows, .samples = samples};
    int64_t shards = centers->shards;
    MRC_TRY(mrc_alloc_zero(centers->context, &out->buffers, shards, sizeof *out->buffers, "kept blocks"));
    MRC_TRY(mrc_alloc_zero(centers->context, &out->cache, shards, sizeof *out->cache, "caches"));
    MRC_TRY(create_buffers(out, batch_block_bytes));
    return samples > 0 ? create_cache(out, stored) : MERCER_OK;
}

void mrc_kernel_blocks_destroy(mrc_kernel_blocks *self)
{
    mrc_centers *centers = self->centers;
    if (!centers) return;
    for (int i = 0; i < centers->shards; i++) {
        if (self->buffers) centers->backend->ops->free(centers->backend, self->buffers[i].memory);
        if (self->cache) mrc_matrix_destroy(centers->backend, &self->cache[i]);
    }
    MRC_FREE_ALL(centers->context, self->have, self->cache, self->buffers);
    memset(self, 0, sizeof *self);
}

void mrc_kernel_blocks_cost(const mrc_problem *problem, int64_t batch_block_bytes, int cache_data, mrc_cost *out)
{
    double values = (double)problem->n * (double)problem->p;
    *out = (mrc_cost){.held.shared = (double)batch_block_bytes};
    if (!cache_data) return;
    out->held.shared += values * (cache_data == MRC_CACHE_HALF ? 2 : (double)problem->real_size);
    out->held.replicated = (double)problem->n; /* flags of cached rows */
    out->flops = 2 * values * mrc_problem_features(problem);
}

/* ---- Cache --------------------------------------------------------------------------------------------------- */

/* Return whether all rows of the batch are in the cache. */
static bool all_cached(const mrc_kernel_blocks *self, const mercer_batch *batch)
{
    if (!self->cached || !batch->rows) return false;
    for (int64_t i = 0; i < batch->X.rows; i++)
        if (!self->have[batch->rows[i]]) return false;
    return true;
}

/* Return the buffer of a shard as the block of a batch. */
static mercer_matrix buffer_view(const mrc_kernel_blocks *self, int shard, int64_t rows)
{
    mrc_backend *backend = self->centers->backend;
    mercer_matrix block =
        mrc_view(self->buffers[shard].memory, rows, self->centers->shard[shard].rows, self->centers->real);
    block.memory = mrc_backend_memory(backend);
    return block;
}

/* Return whether the buffers can hold a batch's block in every shard. */
static bool buffers_fit(const mrc_kernel_blocks *self, int64_t rows)
{
    for (int i = 0; i < self->centers->shards; i++)
        if (self->buffers[i].bytes < block_bytes(self, i, rows)) return false;
    return true;
}

/* Return the rows of a batch in a shard's cache. scratch: set to a view of the shard's buffer; must live as long as the
   result. */
static mrc_stored stored_rows(const mrc_kernel_blocks *self, int shard, const mercer_batch *batch,
                              mercer_matrix *scratch)
{
    *scratch = buffer_view(self, shard, batch->X.rows);
    return (mrc_stored){.k = &self->cache[shard],
                        .rows = batch->rows,
                        .count = batch->X.rows,
                        .scratch = scratch,
                        .same_rows = self->multiplied};
}

/* Compute K(X_m, Z) of a batch into the cache. */
static mercer_status fill_cache(mrc_kernel_blocks *self, const mercer_batch *batch)
{
    mrc_centers *centers = self->centers;
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix scratch, z = mrc_centers_part(centers, &centers->z, i);
        mrc_stored stored = stored_rows(self, i, batch, &scratch);
        if (z.rows > 0) MRC_TRY(mrc_points_store(centers, &batch->X, &z, NULL, NULL, &stored));
    }
    for (int64_t row = 0; row < batch->X.rows; row++) self->have[batch->rows[row]] = 1;
    return MERCER_OK;
}

mercer_status mrc_kernel_blocks_load(mrc_kernel_blocks *self, const mercer_batch *batch)
{
    self->from_cache = self->cached && batch->rows && buffers_fit(self, batch->X.rows);
    self->multiplied = self->short_weights = false;
    for (int i = 0; i < self->centers->shards; i++)
        self->buffers[i] = (mrc_cached_block){.memory = self->buffers[i].memory, .bytes = self->buffers[i].bytes};
    if (!self->from_cache || all_cached(self, batch)) return MERCER_OK;
    return fill_cache(self, batch);
}

typedef struct predict_job {
    mrc_kernel_blocks *blocks;
    const mercer_batch *batch;
    const mercer_matrix *w;
    const mrc_temporary_centers *temporary; /* NULL: none */
} predict_job;

/* Compute K(X_m, Z_s) W_s from the cache. */
static mercer_status multiply_part(mrc_centers *centers, int shard, const mercer_matrix *part, const predict_job *job)
{
    mercer_matrix scratch, w = mrc_centers_part(centers, job->w, shard);
    mrc_stored stored = stored_rows(job->blocks, shard, job->batch, &scratch);
    mrc_count_product(centers, job->batch->X.rows, w.rows, w.cols);
    if (w.rows == 0) return MERCER_OK; /* the part is 0 */
    return centers->backend->ops->rows_product(centers->backend, &stored, false, &w, part);
}

/* Part of a sum over shards: the prediction from one shard and its temporary centers. */
static mercer_status forward_part(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    const predict_job *job = argument;
    const mercer_matrix *x = &job->batch->X;
    MRC_TRY(job->blocks->from_cache ? multiply_part(centers, shard, part, job)
                                    : mrc_centers_predict_part(centers, shard, x, job->w, part, job->blocks->buffers));
    return job->temporary ? mrc_temporary_centers_add(job->temporary, shard, x, part) : MERCER_OK;
}

mercer_status mrc_kernel_blocks_forward(mrc_kernel_blocks *self, const mercer_batch *batch, const mercer_matrix *w,
                                        const mrc_temporary_centers *temporary, const mercer_matrix *f)
{
    /* With a cache, predictions are always computed from cached values: a row's prediction must not depend on whether
       the row was seen before, because a training run resumed from a checkpoint begins with an empty cache. */
    MRC_TRY(mrc_kernel_blocks_load(self, batch));
    predict_job job = {self, batch, w, temporary};
    MRC_TRY(mrc_centers_sum(self->centers, f, forward_part, &job));
    self->multiplied = self->from_cache;
    bool opaque = self->buffers && self->buffers[0].opaque && self->buffers[0].columns > 0;
    self->short_weights = self->round_weights && opaque && mrc_centers_short_weights(self->centers, w->cols);
    return MERCER_OK;
}

mercer_status mrc_kernel_blocks_transpose(mrc_kernel_blocks *self, const mercer_batch *batch, const mercer_matrix *g,
                                          const mercer_matrix *h)
{
    mrc_centers *centers = self->centers;
    if (!self->from_cache) return mrc_centers_transpose(centers, &batch->X, g, h, self->buffers, self->short_weights);
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix scratch, out = mrc_centers_part(centers, h, i);
        mrc_stored stored = stored_rows(self, i, batch, &scratch);
        mrc_count_product(centers, batch->X.rows, out.rows, g->cols);
        if (out.rows > 0) MRC_TRY(centers->backend->ops->rows_product(centers->backend, &stored, true, g, &out));
    }
    return MERCER_OK;
}

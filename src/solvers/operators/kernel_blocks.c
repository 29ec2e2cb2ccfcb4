/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products of a batch with K(X_m, Z), and what is kept of the kernel matrix.
 *
 *   forward    F = K W        evaluated (2 m p (d + c) flops) and kept as far as there is room, or read from the cache
 *                             (2 m p c)
 *   transpose  H = K' G       from what was kept (2 m p c), the rest evaluated again
 *
 * Cache: K(X, Z_s) (n, rows_s) for each shard, filled as batches come by and multiplied as it lies: m p reads instead
 * of m p d multiplications. The cache may be in half precision, half as large: values between 0 and 1 then move by at
 * most 2^-12 (2^-11 of themselves).
 */
#include "solvers/operators/kernel_blocks.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

static int64_t block_bytes(const mrc_kernel_blocks *kernel_blocks, int shard, int64_t rows)
{
    return rows * kernel_blocks->centers->shard[shard].rows * mrc_dtype_size(kernel_blocks->centers->real);
}

/* The largest room that is of use: products may keep whole tiles. */
static int64_t most_room(const mrc_kernel_blocks *kernel_blocks, int shard)
{
    return mrc_round_up(kernel_blocks->centers->shard[shard].rows, 256) * mrc_round_up(kernel_blocks->most_rows, 16) *
           mrc_dtype_size(kernel_blocks->centers->real);
}

static mercer_status create_room(mrc_kernel_blocks *kernel_blocks, int64_t keep_bytes)
{
    mrc_centers *centers = kernel_blocks->centers;
    for (int i = 0; i < centers->shards; i++) {
        /* Of all centers: what is kept must not depend on the number of ranks. */
        double share = (double)centers->shard[i].rows / (double)mrc_max(centers->p, 1);
        int64_t bytes = mrc_min(most_room(kernel_blocks, i), (int64_t)((double)keep_bytes * share));
        if (bytes <= 0) continue;
        MRC_TRY(centers->backend->ops->alloc(centers->backend, &kernel_blocks->kept[i].memory, bytes,
                                             "a batch's kernel block"));
        kernel_blocks->kept[i].bytes = bytes;
    }
    return MERCER_OK;
}

static mercer_status create_cache(mrc_kernel_blocks *kernel_blocks, mercer_dtype stored)
{
    mrc_centers *centers = kernel_blocks->centers;
    MRC_TRY(
        mrc_alloc_zero(centers->context, &kernel_blocks->have, kernel_blocks->samples, 1, "the list of cached rows"));
    for (int i = 0; i < centers->shards; i++)
        MRC_TRY(mrc_matrix_reserve(centers->backend, &kernel_blocks->cache[i], kernel_blocks->samples,
                                   centers->shard[i].rows, stored, "the cache of K(X, Z)"));
    kernel_blocks->cached = true;
    return MERCER_OK;
}

mercer_status mrc_kernel_blocks_create(mrc_kernel_blocks *out, mrc_centers *centers, int64_t most_rows,
                                       int64_t keep_bytes, int64_t samples, mercer_dtype stored)
{
    *out = (mrc_kernel_blocks){.centers = centers, .most_rows = most_rows, .samples = samples};
    int64_t shards = centers->shards;
    mercer_status status = mrc_alloc_zero(centers->context, &out->kept, shards, sizeof *out->kept, "kept blocks");
    if (status == MERCER_OK)
        status = mrc_alloc_zero(centers->context, &out->cache, shards, sizeof *out->cache, "caches");
    if (status == MERCER_OK) status = create_room(out, keep_bytes);
    if (status == MERCER_OK && samples > 0) status = create_cache(out, stored);
    if (status != MERCER_OK) mrc_kernel_blocks_destroy(out);
    return status;
}

void mrc_kernel_blocks_destroy(mrc_kernel_blocks *kernel_blocks)
{
    mrc_centers *centers = kernel_blocks->centers;
    if (!centers) return;
    for (int i = 0; i < centers->shards; i++) {
        if (kernel_blocks->kept) centers->backend->ops->free(centers->backend, kernel_blocks->kept[i].memory);
        if (kernel_blocks->cache) mrc_matrix_destroy(centers->backend, &kernel_blocks->cache[i]);
    }
    mrc_free(centers->context, kernel_blocks->have);
    mrc_free(centers->context, kernel_blocks->cache);
    mrc_free(centers->context, kernel_blocks->kept);
    memset(kernel_blocks, 0, sizeof *kernel_blocks);
}

void mrc_kernel_blocks_cost(const mrc_problem *problem, int64_t keep_bytes, int cache_data, mrc_cost *out)
{
    double values = (double)problem->n * (double)problem->p;
    *out = (mrc_cost){.held.shared = (double)keep_bytes};
    if (!cache_data) return;
    out->held.shared += values * (cache_data == MRC_CACHE_HALF ? 2 : (double)problem->real_size);
    out->held.whole = (double)problem->n; /* which rows are there */
    out->flops = 2 * values * mrc_problem_features(problem);
}

/* ---- Cache --------------------------------------------------------------------------------------------------- */

static bool all_cached(const mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch)
{
    if (!kernel_blocks->cached || !batch->rows) return false;
    for (int64_t i = 0; i < batch->X.rows; i++)
        if (!kernel_blocks->have[batch->rows[i]]) return false;
    return true;
}

/* The block of a batch as it lies in the kept room of a shard. */
static mercer_matrix kept_block(const mrc_kernel_blocks *kernel_blocks, int shard, int64_t rows)
{
    mrc_backend *backend = kernel_blocks->centers->backend;
    mercer_matrix block = mrc_view(kernel_blocks->kept[shard].memory, rows, kernel_blocks->centers->shard[shard].rows,
                                   kernel_blocks->centers->real);
    block.memory = backend->ops->capabilities(backend).memory;
    return block;
}

static bool has_room(const mrc_kernel_blocks *kernel_blocks, int64_t rows)
{
    for (int i = 0; i < kernel_blocks->centers->shards; i++)
        if (kernel_blocks->kept[i].bytes < block_bytes(kernel_blocks, i, rows)) return false;
    return true;
}

/* The rows of a batch in a shard's cache. room: its view of the kept room, which must live as long. */
static mrc_stored stored_rows(const mrc_kernel_blocks *kernel_blocks, int shard, const mercer_batch *batch,
                              mercer_matrix *room)
{
    *room = kept_block(kernel_blocks, shard, batch->X.rows);
    return (mrc_stored){.k = &kernel_blocks->cache[shard],
                        .rows = batch->rows,
                        .count = batch->X.rows,
                        .room = room,
                        .again = kernel_blocks->again};
}

/* K(X_m, Z) of a batch into the cache. */
static mercer_status fill_cache(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch)
{
    mrc_centers *centers = kernel_blocks->centers;
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix room, z = mrc_rows(&centers->z, centers->shard[i].offset, centers->shard[i].rows);
        mrc_stored stored = stored_rows(kernel_blocks, i, batch, &room);
        if (z.rows > 0) MRC_TRY(mrc_points_store(centers, &batch->X, &z, NULL, NULL, &stored));
    }
    for (int64_t row = 0; row < batch->X.rows; row++) kernel_blocks->have[batch->rows[row]] = 1;
    return MERCER_OK;
}

mercer_status mrc_kernel_blocks_load(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch)
{
    kernel_blocks->from_cache = kernel_blocks->cached && batch->rows && has_room(kernel_blocks, batch->X.rows);
    kernel_blocks->again = false;
    for (int i = 0; i < kernel_blocks->centers->shards; i++)
        kernel_blocks->kept[i] =
            (mrc_kept){.memory = kernel_blocks->kept[i].memory, .bytes = kernel_blocks->kept[i].bytes};
    if (!kernel_blocks->from_cache || all_cached(kernel_blocks, batch)) return MERCER_OK;
    return fill_cache(kernel_blocks, batch);
}

typedef struct predict_job {
    mrc_kernel_blocks *kernel_blocks;
    const mercer_batch *batch;
    const mercer_matrix *w;
    const mrc_temporary_centers *temporary; /* NULL: none */
} predict_job;

/* K(X_m, Z_s) W_s from the cache. */
static mercer_status multiply_part(mrc_centers *centers, int shard, const mercer_matrix *part, const predict_job *job)
{
    mercer_matrix room, w = mrc_rows(job->w, centers->shard[shard].offset, centers->shard[shard].rows);
    mrc_stored stored = stored_rows(job->kernel_blocks, shard, job->batch, &room);
    centers->flops += 2.0 * (double)job->batch->X.rows * (double)w.rows * (double)w.cols;
    if (w.rows == 0) return MERCER_OK; /* the part is 0 */
    return centers->backend->ops->rows_product(centers->backend, &stored, false, &w, part);
}

static mercer_status forward_part(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    const predict_job *job = argument;
    mrc_kernel_blocks *kernel_blocks = job->kernel_blocks;
    MRC_TRY(kernel_blocks->from_cache
                ? multiply_part(centers, shard, part, job)
                : mrc_centers_predict_part(centers, shard, &job->batch->X, job->w, part, kernel_blocks->kept));
    return job->temporary ? mrc_temporary_centers_add(job->temporary, shard, &job->batch->X, part) : MERCER_OK;
}

mercer_status mrc_kernel_blocks_forward_with(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch,
                                             const mercer_matrix *w, const mrc_temporary_centers *temporary,
                                             const mercer_matrix *f)
{
    /* Where there is a cache, predictions always come from it: a row's prediction must not depend on whether it was
       seen before, since a training that goes on from a checkpoint begins with an empty one. */
    MRC_TRY(mrc_kernel_blocks_load(kernel_blocks, batch));
    predict_job job = {kernel_blocks, batch, w, temporary};
    MRC_TRY(mrc_centers_sum(kernel_blocks->centers, f, forward_part, &job));
    kernel_blocks->again = kernel_blocks->from_cache;
    return MERCER_OK;
}

mercer_status mrc_kernel_blocks_forward(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch,
                                        const mercer_matrix *w, const mercer_matrix *f)
{
    return mrc_kernel_blocks_forward_with(kernel_blocks, batch, w, NULL, f);
}

mercer_status mrc_kernel_blocks_transpose(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch,
                                          const mercer_matrix *g, const mercer_matrix *h)
{
    mrc_centers *centers = kernel_blocks->centers;
    if (!kernel_blocks->from_cache) return mrc_centers_transpose(centers, &batch->X, g, h, kernel_blocks->kept);
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix room, out = mrc_rows(h, centers->shard[i].offset, centers->shard[i].rows);
        mrc_stored stored = stored_rows(kernel_blocks, i, batch, &room);
        centers->flops += 2.0 * (double)batch->X.rows * (double)out.rows * (double)g->cols;
        if (out.rows > 0) MRC_TRY(centers->backend->ops->rows_product(centers->backend, &stored, true, g, &out));
    }
    return MERCER_OK;
}

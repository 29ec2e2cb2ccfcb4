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
#include "algo/passes.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

static int64_t block_bytes(const mrc_passes *passes, int shard, int64_t rows)
{
    return rows * passes->centers->shard[shard].rows * mrc_dtype_size(passes->centers->real);
}

/* The largest room that is of use: products may keep whole tiles. */
static int64_t most_room(const mrc_passes *passes, int shard)
{
    return mrc_round_up(passes->centers->shard[shard].rows, 256) * mrc_round_up(passes->most_rows, 16) *
           mrc_dtype_size(passes->centers->real);
}

static mercer_status create_room(mrc_passes *passes, int64_t keep_bytes)
{
    mrc_centers *centers = passes->centers;
    for (int i = 0; i < centers->shards; i++) {
        /* Of all centers: what is kept must not depend on the number of ranks. */
        double share = (double)centers->shard[i].rows / (double)mrc_max(centers->p, 1);
        int64_t bytes = mrc_min(most_room(passes, i), (int64_t)((double)keep_bytes * share));
        if (bytes <= 0) continue;
        MRC_TRY(
            centers->backend->ops->alloc(centers->backend, &passes->kept[i].memory, bytes, "a batch's kernel block"));
        passes->kept[i].bytes = bytes;
    }
    return MERCER_OK;
}

static mercer_status create_cache(mrc_passes *passes, mercer_dtype stored)
{
    mrc_centers *centers = passes->centers;
    void *have;
    MRC_TRY(mrc_alloc_zero(centers->context, &have, passes->samples, 1, "the list of cached rows"));
    passes->have = have;
    for (int i = 0; i < centers->shards; i++)
        MRC_TRY(mrc_matrix_reserve(centers->backend, &passes->cache[i], passes->samples, centers->shard[i].rows, stored,
                                   "the cache of K(X, Z)"));
    passes->cached = true;
    return MERCER_OK;
}

mercer_status mrc_passes_create(mrc_passes *out, mrc_centers *centers, int64_t most_rows, int64_t keep_bytes,
                                int64_t samples, mercer_dtype stored)
{
    *out = (mrc_passes){.centers = centers, .most_rows = most_rows, .samples = samples};
    void *kept = NULL, *cache = NULL;
    mercer_status status = mrc_alloc_zero(centers->context, &kept, centers->shards, sizeof(mrc_kept), "kept blocks");
    out->kept = kept;
    if (status == MERCER_OK)
        status = mrc_alloc_zero(centers->context, &cache, centers->shards, sizeof(mercer_matrix), "caches");
    out->cache = cache;
    if (status == MERCER_OK) status = create_room(out, keep_bytes);
    if (status == MERCER_OK && samples > 0) status = create_cache(out, stored);
    if (status != MERCER_OK) mrc_passes_destroy(out);
    return status;
}

void mrc_passes_destroy(mrc_passes *passes)
{
    mrc_centers *centers = passes->centers;
    if (!centers) return;
    for (int i = 0; i < centers->shards; i++) {
        if (passes->kept) centers->backend->ops->free(centers->backend, passes->kept[i].memory);
        if (passes->cache) mrc_matrix_destroy(centers->backend, &passes->cache[i]);
    }
    mrc_free(centers->context, passes->have);
    mrc_free(centers->context, passes->cache);
    mrc_free(centers->context, passes->kept);
    memset(passes, 0, sizeof *passes);
}

/* ---- Cache --------------------------------------------------------------------------------------------------- */

static bool all_cached(const mrc_passes *passes, const mercer_batch *batch)
{
    if (!passes->cached || !batch->rows) return false;
    for (int64_t i = 0; i < batch->X.rows; i++)
        if (!passes->have[batch->rows[i]]) return false;
    return true;
}

/* The block of a batch as it lies in the kept room of a shard. */
static mercer_matrix kept_block(const mrc_passes *passes, int shard, int64_t rows)
{
    mrc_backend *backend = passes->centers->backend;
    mercer_matrix block =
        mrc_view(passes->kept[shard].memory, rows, passes->centers->shard[shard].rows, passes->centers->real);
    block.memory = backend->ops->capabilities(backend).memory;
    return block;
}

static bool has_room(const mrc_passes *passes, int64_t rows)
{
    for (int i = 0; i < passes->centers->shards; i++)
        if (passes->kept[i].bytes < block_bytes(passes, i, rows)) return false;
    return true;
}

/* The rows of a batch in a shard's cache. room: its view of the kept room, which must live as long. */
static mrc_stored stored_rows(const mrc_passes *passes, int shard, const mercer_batch *batch, mercer_matrix *room)
{
    *room = kept_block(passes, shard, batch->X.rows);
    return (mrc_stored){
        .k = &passes->cache[shard], .rows = batch->rows, .count = batch->X.rows, .room = room, .again = passes->again};
}

/* K(X_m, Z) of a batch into the cache. */
static mercer_status fill_cache(mrc_passes *passes, const mercer_batch *batch)
{
    mrc_centers *centers = passes->centers;
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix room, z = mrc_rows(&centers->z, centers->shard[i].offset, centers->shard[i].rows);
        mrc_stored stored = stored_rows(passes, i, batch, &room);
        if (z.rows > 0) MRC_TRY(mrc_points_store(centers, &batch->X, &z, NULL, NULL, &stored));
    }
    for (int64_t row = 0; row < batch->X.rows; row++) passes->have[batch->rows[row]] = 1;
    return MERCER_OK;
}

mercer_status mrc_passes_load(mrc_passes *passes, const mercer_batch *batch)
{
    passes->from_cache = passes->cached && batch->rows && has_room(passes, batch->X.rows);
    passes->again = false;
    for (int i = 0; i < passes->centers->shards; i++)
        passes->kept[i] = (mrc_kept){.memory = passes->kept[i].memory, .bytes = passes->kept[i].bytes};
    if (!passes->from_cache || all_cached(passes, batch)) return MERCER_OK;
    return fill_cache(passes, batch);
}

typedef struct predict_job {
    mrc_passes *passes;
    const mercer_batch *batch;
    const mercer_matrix *w;
    const mrc_temporary *temporary; /* NULL: none */
} predict_job;

/* K(X_m, Z_s) W_s from the cache. */
static mercer_status multiply_part(mrc_centers *centers, int shard, const mercer_matrix *part, const predict_job *job)
{
    mercer_matrix room, w = mrc_rows(job->w, centers->shard[shard].offset, centers->shard[shard].rows);
    mrc_stored stored = stored_rows(job->passes, shard, job->batch, &room);
    centers->flops += 2.0 * (double)job->batch->X.rows * (double)w.rows * (double)w.cols;
    if (w.rows == 0) return MERCER_OK; /* the part is 0 */
    return centers->backend->ops->rows_product(centers->backend, &stored, false, &w, part);
}

static mercer_status forward_part(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    const predict_job *job = argument;
    mrc_passes *passes = job->passes;
    MRC_TRY(passes->from_cache ? multiply_part(centers, shard, part, job)
                               : mrc_centers_predict_part(centers, shard, &job->batch->X, job->w, part, passes->kept));
    return job->temporary ? mrc_temporary_add(job->temporary, shard, &job->batch->X, part) : MERCER_OK;
}

mercer_status mrc_passes_forward_with(mrc_passes *passes, const mercer_batch *batch, const mercer_matrix *w,
                                      const mrc_temporary *temporary, const mercer_matrix *f)
{
    /* Where there is a cache, predictions always come from it: a row's prediction must not depend on whether it was
       seen before, since a training that goes on from a checkpoint begins with an empty one. */
    MRC_TRY(mrc_passes_load(passes, batch));
    predict_job job = {passes, batch, w, temporary};
    MRC_TRY(mrc_centers_sum(passes->centers, f, forward_part, &job));
    passes->again = passes->from_cache;
    return MERCER_OK;
}

mercer_status mrc_passes_forward(mrc_passes *passes, const mercer_batch *batch, const mercer_matrix *w,
                                 const mercer_matrix *f)
{
    return mrc_passes_forward_with(passes, batch, w, NULL, f);
}

mercer_status mrc_passes_transpose(mrc_passes *passes, const mercer_batch *batch, const mercer_matrix *g,
                                   const mercer_matrix *h)
{
    mrc_centers *centers = passes->centers;
    if (!passes->from_cache) return mrc_centers_transpose(centers, &batch->X, g, h, passes->kept);
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix room, out = mrc_rows(h, centers->shard[i].offset, centers->shard[i].rows);
        mrc_stored stored = stored_rows(passes, i, batch, &room);
        centers->flops += 2.0 * (double)batch->X.rows * (double)out.rows * (double)g->cols;
        if (out.rows > 0) MRC_TRY(centers->backend->ops->rows_product(centers->backend, &stored, true, g, &out));
    }
    return MERCER_OK;
}

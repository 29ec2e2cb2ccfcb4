/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products of a batch with K(X_m, Z), and what is kept of the kernel matrix.
 *
 *   forward    F = K W        evaluated (2 m p (d + c) flops) and kept as far as there is room, or read from the cache (2 m p c)
 *   transpose  H = K' G       from what was kept (2 m p c), the rest evaluated again
 *
 * Cache: K(X, Z_r) (n, rows_r) for each rank, filled as batches come by. A batch whose rows are all there is gathered
 * from it: m p reads instead of m p d multiplications. A batch is cached only if its whole block was kept. The cache may
 * be in half precision, half as large: values between 0 and 1 then move by at most 2^-12 (2^-11 of themselves).
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
        double share = centers->z.rows ? (double)centers->shard[i].rows / (double)centers->z.rows : 0;
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
        MRC_TRY(mrc_matrix_create(centers->backend, &passes->cache[i], passes->samples, centers->shard[i].rows, stored,
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

/* The block of a batch as it lies in the kept room of a rank. */
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

static mercer_status read_cache(mrc_passes *passes, const mercer_batch *batch)
{
    mrc_backend *backend = passes->centers->backend;
    for (int i = 0; i < passes->centers->shards; i++) {
        mercer_matrix block = kept_block(passes, i, batch->X.rows);
        if (block.cols == 0) continue; /* a rank without centers has no room either */
        MRC_TRY(backend->ops->gather_rows(backend, &block, &passes->cache[i], batch->rows));
        passes->kept[i].columns = block.cols, passes->kept[i].opaque = false;
    }
    return MERCER_OK;
}

static mercer_status write_cache(mrc_passes *passes, const mercer_batch *batch)
{
    mrc_backend *backend = passes->centers->backend;
    for (int i = 0; i < passes->centers->shards; i++) {
        mercer_matrix block = kept_block(passes, i, batch->X.rows);
        for (int64_t row = 0; row < block.rows && block.cols > 0; row++) {
            mercer_matrix from = mrc_rows(&block, row, 1), to = mrc_rows(&passes->cache[i], batch->rows[row], 1);
            MRC_TRY(backend->ops->copy(backend, &to, &from));
        }
    }
    for (int64_t row = 0; row < batch->X.rows; row++) passes->have[batch->rows[row]] = 1;
    return MERCER_OK;
}

/* F = sum over ranks of block_r W_r, with the blocks in the kept room. */
static mercer_status multiply_blocks(mrc_passes *passes, int64_t rows, const mercer_matrix *w, const mercer_matrix *f)
{
    mrc_centers *centers = passes->centers;
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix block = kept_block(passes, i, rows);
        mercer_matrix part = mrc_rows(w, centers->shard[i].offset, centers->shard[i].rows);
        MRC_TRY(mrc_counted_gemm(centers, false, false, 1, &block, &part, i > 0 ? 1 : 0, f));
    }
    if (centers->comm->local == centers->comm->ranks) return MERCER_OK; /* all are here; else a process has one */
    return centers->comm->ops->allreduce(centers->comm, f);
}

mercer_status mrc_passes_forward(mrc_passes *passes, const mercer_batch *batch, const mercer_matrix *w,
                                 const mercer_matrix *f)
{
    mrc_centers *centers = passes->centers;
    if (all_cached(passes, batch) && has_room(passes, batch->X.rows)) {
        MRC_TRY(read_cache(passes, batch));
        return multiply_blocks(passes, batch->X.rows, w, f);
    }
    MRC_TRY(mrc_centers_predict(centers, &batch->X, w, f, passes->kept));
    if (!passes->cached || !batch->rows) return MERCER_OK;
    for (int i = 0; i < centers->shards; i++)
        if (passes->kept[i].columns < centers->shard[i].rows || passes->kept[i].opaque) return MERCER_OK;
    MRC_TRY(write_cache(passes, batch));
    if (passes->cache[0].dtype != centers->real) MRC_TRY(read_cache(passes, batch)); /* as rounded as it will be */
    /* The fused product sums in another order than the stored block does. A row's prediction must not depend on whether
       it was seen before: a training that goes on from a checkpoint begins with an empty cache. */
    return multiply_blocks(passes, batch->X.rows, w, f);
}

mercer_status mrc_passes_transpose(mrc_passes *passes, const mercer_batch *batch, const mercer_matrix *g,
                                   const mercer_matrix *h)
{
    return mrc_centers_transpose(passes->centers, &batch->X, g, h, passes->kept);
}

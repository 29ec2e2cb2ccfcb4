/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products of a batch with K(X_m, Z), forward and then transposed. As much of the kernel matrix is cached as the plan
 * allows: the tile block of the batch between the two products, and K(X, Z) of all samples between epochs (the cache).
 * Every solver reads the data through these functions.
 */
#ifndef MRC_SOLVERS_OPERATORS_KERNEL_BLOCKS_H
#define MRC_SOLVERS_OPERATORS_KERNEL_BLOCKS_H

#include "solvers/cost.h"
#include "solvers/iteration/temporary_centers.h"

/* Value of mercer_plan.cache_data and cache_centers: cached in half precision. */
enum { MRC_CACHE_HALF = 2 };

typedef struct mrc_kernel_blocks {
    mrc_centers *centers;
    int64_t most_rows;         /* maximum number of rows in a batch */
    int64_t samples;           /* n if samples are cached, else 0 */
    mrc_cached_block *buffers; /* (shards) buffers for a batch's block */
    /* (shards) K(X, Z_s) (n, rows of the shard), f16 or the type of the weights; data is NULL without a cache */
    mercer_matrix *cache;
    unsigned char *have; /* (n) nonzero for the rows of the cache that are filled */
    bool cached;
    bool from_cache;    /* products of the current batch use the cache */
    bool multiplied;    /* the rows of the current batch were already multiplied once */
    bool round_weights; /* set by the owner: G should be rounded by round_half where short_weights is true */
    bool short_weights; /* set by the last forward product: transpose is faster with a rounded G */
} mrc_kernel_blocks;

/* Create kernel blocks. batch_block_bytes: limit of the buffers for a batch's block; only the useful part is allocated.
   samples > 0: cache K(X, Z) for that number of samples, in the type `stored`. The caller must destroy the object even
   if the call fails. */
mercer_status mrc_kernel_blocks_create(mrc_kernel_blocks *out, mrc_centers *centers, int64_t most_rows,
                                       int64_t batch_block_bytes, int64_t samples, mercer_dtype stored);
void mrc_kernel_blocks_destroy(mrc_kernel_blocks *kernel_blocks);
/* Compute the bytes of the batch's block and of the cache, and the work of filling the cache; cache_data as in
   mercer_plan. */
void mrc_kernel_blocks_cost(const mrc_problem *problem, int64_t batch_block_bytes, int cache_data, mrc_cost *out);

/* Prepare for mrc_kernel_blocks_transpose without a forward product. If there is a cache, fill in the rows of the
   batch. */
mercer_status mrc_kernel_blocks_load(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch);
/* Compute F (m, c) = K(X_m, Z) W for a field W, + K(X_m, X_tmp) w_tmp unless temporary is NULL, in one sum over shards.
   Uses and fills the cache when the batch's rows are known. */
mercer_status mrc_kernel_blocks_forward(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch,
                                        const mercer_matrix *w, const mrc_temporary_centers *temporary,
                                        const mercer_matrix *f);
/* Compute the field H = K(Z, X_m) G for the same batch as the last forward or load. */
mercer_status mrc_kernel_blocks_transpose(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch,
                                          const mercer_matrix *g, const mercer_matrix *h);

#endif

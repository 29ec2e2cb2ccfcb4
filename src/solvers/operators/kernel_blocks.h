/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products of a batch with K(X_m, Z), forward and then transposed, with as much of the kernel matrix kept as the plan
 * allows: the tile block of the batch between the two, and (cache) K(X, Z) of all samples between epochs. Every solver
 * reads the data through here.
 */
#ifndef MRC_SOLVERS_OPERATORS_KERNEL_BLOCKS_H
#define MRC_SOLVERS_OPERATORS_KERNEL_BLOCKS_H

#include "solvers/cost.h"
#include "solvers/iteration/temporary_centers.h"

/* Of mercer_plan.cache_data and cache_centers: kept in half precision. */
enum { MRC_CACHE_HALF = 2 };

typedef struct mrc_kernel_blocks {
    mrc_centers *centers;
    int64_t most_rows;    /* in a batch */
    int64_t samples;      /* n, if rows are cached */
    mrc_kept *kept;       /* (shards) room for a batch's block */
    mercer_matrix *cache; /* (shards) K(X, Z_r) (n, rows of the shard), f16 or as the weights; no data: not cached */
    unsigned char *have;  /* (n) which rows of the cache are filled */
    bool cached;
    bool from_cache;    /* the batch under way has its rows there */
    bool again;         /* and they have been multiplied once */
    bool rounds;        /* for the owner to set: G comes rounded by round_half where short_weights says so */
    bool short_weights; /* of the last forward: such a G saves time */
} mrc_kernel_blocks;

/* keep_bytes: room for a batch's block (as much of it as is useful is taken). samples > 0: cache K(X, Z) for so
   many, in the type `stored`. To be destroyed even if it fails. */
mercer_status mrc_kernel_blocks_create(mrc_kernel_blocks *out, mrc_centers *centers, int64_t most_rows,
                                       int64_t keep_bytes, int64_t samples, mercer_dtype stored);
void mrc_kernel_blocks_destroy(mrc_kernel_blocks *kernel_blocks);
/* Bytes of both, and the work of filling the cache; cache_data as in mercer_plan. */
void mrc_kernel_blocks_cost(const mrc_problem *problem, int64_t keep_bytes, int cache_data, mrc_cost *out);

/* Nothing but what the products of a batch begin with: fills the cache where there is one. */
mercer_status mrc_kernel_blocks_load(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch);
/* F (m, c) = K(X_m, Z) W, W a field, + K(X_m, X_tmp) w_tmp unless temporary is NULL: one sum over shards. Uses and
   fills the cache when the batch's rows are known. */
mercer_status mrc_kernel_blocks_forward(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch,
                                        const mercer_matrix *w, const mrc_temporary_centers *temporary,
                                        const mercer_matrix *f);
/* H field = K(Z, X_m) G: the same batch as the last forward or load. */
mercer_status mrc_kernel_blocks_transpose(mrc_kernel_blocks *kernel_blocks, const mercer_batch *batch,
                                          const mercer_matrix *g, const mercer_matrix *h);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The centers in a random order, divided into blocks, and the inverse of K(Z_b, Z_b) of each block, for block
   methods. */
#ifndef MRC_SOLVERS_PROJECTORS_BLOCKS_H
#define MRC_SOLVERS_PROJECTORS_BLOCKS_H

#include "solvers/operators/spd.h"
#include "solvers/projectors/projector.h"

enum { MRC_BLOCKS_TOGETHER = 8 }; /* maximum number of inverses that a device computes together */

typedef struct mrc_blocks {
    mrc_centers *centers; /* the original centers, borrowed */
    /* the same centers; the rows of each shard are in the order of the blocks. Fields of these centers are called
       "sorted fields" */
    mrc_centers sorted;
    mercer_matrix z; /* (rows, d) sorted.z, owned */
    uint64_t seed;
    int64_t size, count; /* size: centers per block (the last block may have fewer); count: number of blocks */
    int64_t *order;      /* (rows) sorted row i is row order[i] of a field */
    int64_t *place;      /* (rows) sorted row i is row place[i] of its block */
    int64_t *before;     /* (shards, count + 1) number of rows of a shard in earlier blocks */
    double shift;        /* minimum relative shift of a block; raised when a block needs more */
    /* scratch (size, size) f64, times the number of inverses that are computed together */
    mercer_matrix factor, scratch;
    mercer_matrix *inverses; /* (count) type real, or NULL if not stored; each of R ranks has every R-th inverse */
} mrc_blocks;

/* Create blocks of at most `size` centers. store_inverses: store one matrix per block instead of factoring at each
   solve; together: compute several inverses at a time. The caller must destroy the object even if the call fails. */
mercer_status mrc_blocks_create(mrc_blocks *out, mrc_centers *centers, int64_t size, bool store_inverses, bool together,
                                double jitter, uint64_t seed);
void mrc_blocks_destroy(mrc_blocks *blocks);
/* Return the bytes held, without the original centers. */
mrc_bytes mrc_blocks_bytes(const mrc_problem *problem, int64_t size, bool store_inverses);
/* Return the additional bytes needed while inverses are computed; together: several inverses at a time. */
double mrc_blocks_making(const mrc_problem *problem, int64_t size, bool together);
int64_t mrc_blocks_rows(const mrc_blocks *blocks, int64_t block);

/* Get the points of a block: a view with one shard, else collected in scratch (size, d); ids (size) is scratch. */
mercer_status mrc_blocks_points(mrc_blocks *blocks, int64_t block, int64_t *ids, const mercer_matrix *scratch,
                                mercer_matrix *out);
/* Compute X (rows of the block, c) real = K(Z_b,Z_b)^-1 B, with a shift on the diagonal if X would be too inaccurate
   after rounding. wide (size, c) f64 is scratch. */
mercer_status mrc_blocks_solve(mrc_blocks *blocks, int64_t block, const mercer_matrix *points, const mercer_matrix *b,
                               const mercer_matrix *wide, const mercer_matrix *x);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The centers in a random order, cut into blocks, and the inverse of K(Z_b, Z_b) of each: what block methods work
   on. */
#ifndef MRC_SOLVERS_PROJECTORS_BLOCKS_H
#define MRC_SOLVERS_PROJECTORS_BLOCKS_H

#include "solvers/operators/spd.h"
#include "solvers/projectors/projector.h"

enum { MRC_BLOCKS_TOGETHER = 8 }; /* inverses that a device makes at a time, at most */

typedef struct mrc_blocks {
    mrc_centers *centers; /* as they were given */
    mrc_centers sorted;   /* the same, each shard's in the order of the blocks; fields of it are "sorted fields" */
    mercer_matrix z;      /* (rows, d) sorted.z */
    uint64_t seed;
    int64_t size, count; /* centers in a block (the last may have fewer), blocks */
    int64_t *order;      /* (rows) sorted row i is row order[i] of a field */
    int64_t *place;      /* (rows) and row place[i] of its block */
    int64_t *before;     /* (shards, count + 1) how many rows of a shard stand in earlier blocks */
    double shift;        /* least relative shift of a block: rises when one turns out to need it */
    /* (size, size) f64; while inverses are made, of all that are made together */
    mercer_matrix factor, room;
    mercer_matrix *inverses; /* (count) type real, if they are kept: on R ranks every R-th of them */
} mrc_blocks;

/* size: centers in a block, at most. keep_inverses: 1 matrix a block instead of a Cholesky factor at each solve;
   together: made several at a time. To be destroyed even if it fails. */
mercer_status mrc_blocks_create(mrc_blocks *out, mrc_centers *centers, int64_t size, bool keep_inverses, bool together,
                                double jitter, uint64_t seed);
void mrc_blocks_destroy(mrc_blocks *blocks);
/* Bytes held, without the centers' own. */
mrc_bytes mrc_blocks_bytes(const mrc_problem *problem, int64_t size, bool keep_inverses);
/* And while inverses are made, of that many at a time, on top. */
double mrc_blocks_making(const mrc_problem *problem, int64_t size, bool together);
int64_t mrc_blocks_rows(const mrc_blocks *blocks, int64_t block);

/* The points of a block: a view where there is one shard, else collected in room (size, d), ids (size). */
mercer_status mrc_blocks_points(mrc_blocks *blocks, int64_t block, int64_t *ids, const mercer_matrix *room,
                                mercer_matrix *out);
/* X (rows of the block, c) real = K(Z_b,Z_b)^-1 B, fit to be rounded: with a shift where that is needed. wide (size, c)
   f64. */
mercer_status mrc_blocks_solve(mrc_blocks *blocks, int64_t block, const mercer_matrix *points, const mercer_matrix *b,
                               const mercer_matrix *wide, const mercer_matrix *x);

#endif

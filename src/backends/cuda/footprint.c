/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An upper bound, in bytes, of the device memory that operations need in addition to their operands, for the planner.
 *
 *   accurate products   one block of products (8192, 8192) in double, both sides packed in double      cuda_product.c
 *   differences         both sides as tiles, sums of groups of centers                               cuda_differences.c
 *   half precision      both sides as halves or bytes, weights, partial sums                           half_precision.c
 *                       or, for wide W, tiles                                                          half_tiles.c
 *   split products      chunks of rows of both factors as halves, three per entry; sums                split_gemm.c
 *   eigenvectors        a copy of the matrix, and the workspace of cuSOLVER (about 2 n^2 doubles)      cuda_dense.c
 *   inverses of blocks  products, a quarter of the size of the batch of matrices                       cuda_inverse.c
 *   packed rows         centers, temporary centers, samples, a batch, as halves                        packed.c
 *   batches             four slots, each on the device and page-locked on the host; a batch, targets   stage.c
 *
 * When an operation needs more scratch than is allocated, the old blocks stay allocated until the operation ends. The
 * scratch may therefore take up to twice the bytes that an operation needs.
 */
#include "backends/cuda/cuda.h"

#include "backends/cuda/half_precision/fused.h"
#include "core/matrix.h"
#include "core/memory.h"

enum {
    BLOCK = 8192,         /* BLOCK of cuda_product.c */
    FAST_BLOCK = 65536,   /* BLOCK of half_precision.c */
    WIDE = 1024,          /* WIDE of half_precision.c: columns per transposed product */
    TILE_ROWS = 8192,     /* ROWS of half_tiles.c */
    TILE_CENTERS = 16384, /* CENTERS of half_tiles.c */
    LANES = 16,
    FEW = 64,             /* MOST_WEIGHED of cuda_product.c: most columns that are summed without a matrix product */
    PIECES = 32 * 256,    /* allowance for the rounding up of pieces: 32 pieces of 256 bytes */
    LIBRARIES = 64 << 20, /* internal workspaces of cuBLAS and cuSOLVER */
    FAST_COLUMNS = 32,    /* most packed columns of the fused product */
    UNITS = 32,           /* most units of few centers (mrc_fused_units) */
    SPLIT_ROWS = 32768    /* CHUNK of split_gemm.c */
};

/* Scratch of cuda_product.c for one block: products in double, values next to the products of bytes, both packed sides,
   a copy of host rows, and the sums of all columns. For up to FEW columns this includes the parts of the sums, for more
   columns the weights and products in the dtype of the values. */
static int64_t accurate_bytes(const mrc_extent *work)
{
    int64_t side = mrc_round_up(mrc_min(mrc_max(work->rows, work->centers), BLOCK), LANES);
    int64_t width = mrc_round_up(mrc_max(work->features, 1), LANES);
    int64_t dots = side * side * 8, values = work->points == MERCER_U8 && work->real == MERCER_F64 ? dots : 0;
    int64_t packed = 2 * side * (width * 8 + 16) + side * work->features * 8;
    int64_t sums = side * work->wide * 24 + mrc_multiply_weights_groups(side) * side * mrc_min(work->wide, FEW) * 8;
    return dots + values + packed + sums + work->features * 16;
}

/* Scratch of half_precision/: both sides, and the maximum over the fused product, the product by tiles, the transposed
   product of saved values and a product of split factors, because only one of these runs at a time. */
static int64_t half_bytes(const mrc_extent *work)
{
    int64_t all = mrc_max(work->rows, work->centers), ld = mrc_round_up(work->features, LANES);
    int64_t some = mrc_min(all, FAST_BLOCK);
    int64_t sides = (all + some) * (ld * 2 + 4) + some * work->features * mrc_dtype_size(work->points);
    int64_t weights = mrc_fused_padded(all) * FAST_COLUMNS * 2;
    int64_t forward = mrc_fused_units(work->centers) * mrc_min(work->rows, FAST_BLOCK),
            back = mrc_fused_units(work->rows) * mrc_min(work->centers, FAST_BLOCK);
    int64_t sums = mrc_max(forward, back) * FAST_COLUMNS * 4;
    int64_t rows = mrc_min(all, TILE_ROWS), centers = mrc_fused_padded(mrc_min(all, TILE_CENTERS));
    int64_t wide = work->wide + LANES, units = mrc_max(UNITS, mrc_fused_units(all));
    int64_t tiles = (rows + LANES) * centers * 6 + all * wide * 4 + rows * wide * 8 + (all + units * rows) * 32;
    int64_t back_wide = all * (mrc_min(work->outputs, WIDE) + LANES) * 12; /* saved values: weights as halves, sums */
    int64_t chunk = mrc_min(all, SPLIT_ROWS), split = chunk * wide * 16 + wide * wide * 10;
    return sides + mrc_max(mrc_max(weights + sums, tiles), mrc_max(back_wide, split)) + work->features * 16;
}

int64_t mrc_cuda_work_bytes(mrc_backend *backend, const mrc_extent *work)
{
    int64_t scratch = mrc_max(accurate_bytes(work), mrc_cuda_differences_bytes(backend, work)), n = work->eigen;
    int64_t block = mrc_min(work->rows, BLOCK); /* an upper bound of the block size of projectors */
    int64_t solver = mrc_max(28 * n * n + 512 * n, 16 * block * block + 8 * block);
    int64_t packed = 0;
    if (work->half) {
        scratch = mrc_max(scratch, half_bytes(work));
        /* centers and temporary centers; samples of two preconditioners, a batch, a block of centers */
        packed = (2 * work->centers + 4 * work->rows) * (mrc_round_up(work->features, LANES) * 2 + 4);
    }
    int64_t batch = work->rows * work->features * mrc_dtype_size(work->points),
            targets = 8 * work->rows * work->outputs;
    int64_t slots = 2 * MRC_CUDA_SLOTS * mrc_max(batch, targets) + batch + targets;
    return 2 * (mrc_max(scratch, solver) + PIECES) + packed + slots + LIBRARIES;
}

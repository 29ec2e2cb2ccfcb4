/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fused product; one thread block computes 128 rows of X with one unit of centers.
 *
 *   S (128, 256) = X_b Z_t'           wgmma on tiles of 128 bytes per row, copied by the copy engine in 4 stages
 *   K (128, 256) = profile(S)         in the registers of S, then as halves
 *   Y_b (128, N) += K (W_hi | W_lo)_t wgmma with K in registers; Y stays in registers for all tiles of the unit
 *
 * 384 threads: one warp group loads data, and two warp groups compute 64 rows each. The buffered stages allow these two
 * groups to get out of step, so that one uses the tensor cores while the other evaluates the profile. The two blocks of
 * a cluster work on neighboring rows of X and the same centers: each block loads half of a tile of Z, and both blocks
 * receive both halves.
 *
 * K is scaled by 2^15, because functions of the distance are at most 1 and halves go down to 2^-24.
 */
#ifndef MRC_BACKENDS_CUDA_HALF_PRECISION_FUSED_KERNEL_CUH
#define MRC_BACKENDS_CUDA_HALF_PRECISION_FUSED_KERNEL_CUH

#include "backends/cuda/half_precision/fused.h"
#include "backends/cuda/half_precision/hopper.cuh"
#include "kernels/formulas.h"

#include <cuda_fp16.h>

enum {
    STAGES = 4,
    ROW_BYTES = 128,
    X_BYTES = MRC_FUSED_ROWS * ROW_BYTES,
    Z_BYTES = MRC_FUSED_CENTERS * ROW_BYTES,
    STAGE_BYTES = X_BYTES + Z_BYTES,
    NORM_BYTES = MRC_FUSED_CENTERS * 4,
    CLUSTER = 2,
    THREADS = 384,
    GROUP = 32 /* most row blocks that go through the centers together; a multiple of CLUSTER */
};

/* The operations of the half forms of kernels/formulas.h; approximations accurate to the precision of a half. */
static __device__ __forceinline__ float fast_sqrt(float x)
{
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

static __device__ __forceinline__ float fast_power(float u)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(15.0f - u));
    return power;
}

static __device__ __forceinline__ float fast_reciprocal(float x)
{
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
    return reciprocal;
}

/* K * 2^15 as a function of t = scale r^2 >= 0. */
template <int KERNEL> static __device__ __forceinline__ float profile_of(float t)
{
    float u;
    switch (KERNEL) {
#define SQRT       fast_sqrt
#define POWER      fast_power
#define RECIPROCAL fast_reciprocal
#define FORM(ID, scale, value) \
    case MRC_KERNEL_##ID: return value;
        MRC_HALF_FORMS(FORM)
#undef FORM
#undef SQRT
#undef POWER
#undef RECIPROCAL
        default: return 0;
    }
}

static __device__ __forceinline__ uint32_t two_halves(float low, float high)
{
    uint32_t packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

/* Half and byte rows: types of their products and norms, and the kernel value of a product. */
struct half_rows {
    typedef float dot;
    typedef float norm;
    enum { ELEMENTS = ROW_BYTES / 2 };
    float minus_two_scale;
    __device__ __forceinline__ void set(float scale)
    {
        minus_two_scale = -2.0f * scale;
    }
    template <int KERNEL> __device__ __forceinline__ float value(float product, float x_norm, float z_norm) const
    {
        return profile_of<KERNEL>(fmaxf(fmaf(minus_two_scale, product, x_norm + z_norm), 0.0f));
    }
};

struct byte_rows {
    typedef int32_t dot;
    typedef int32_t norm;
    enum { ELEMENTS = ROW_BYTES };
    float scale;
    __device__ __forceinline__ void set(float factor)
    {
        scale = factor;
    }
    template <int KERNEL> __device__ __forceinline__ float value(int32_t product, int32_t x_norm, int32_t z_norm) const
    {
        return profile_of<KERNEL>(scale * (float)(x_norm + z_norm - 2 * product)); /* an exact r^2 */
    }
};

struct fused_arguments {
    int32_t m, steps, tiles, unit_tiles, row_blocks; /* steps: of 128 bytes, per row; unit_tiles: per unit */
    float scale;
    const void *x_norms, *z_norms;
    float *sums;
    uint4 *saved; /* (saved_rows, saved_pieces): saved values in pieces of 8 halves, or NULL */
    int32_t saved_tiles, saved_rows;
    int64_t saved_pieces;
};

struct alignas(8) barriers {
    uint64_t full[STAGES], empty[STAGES], weights_full, weights_empty;
};

/* ---- The loading warp group ---------------------------------------------------------------------------------- */

/* Loads the stages, weights and norms of all tiles; runs on one thread. A stage is refilled when all consumer warps of
   both blocks have released it, because half of its centers come from each block. Weights have one buffer: they are
   requested after the first steps of a tile, so that waiting for the buffer does not delay the points. */
template <int COLUMNS, typename Rows>
static __device__ void bring(const fused_arguments &job, const CUtensorMap *x_map, const CUtensorMap *z_map,
                             const CUtensorMap *w_map, uint32_t stages, uint32_t weights, uint32_t norms,
                             uint32_t marks, int row_block, int first_tile, int end_tile)
{
    const uint32_t full = marks + offsetof(barriers, full), empty = marks + offsetof(barriers, empty);
    const uint32_t weights_full = marks + offsetof(barriers, weights_full),
                   weights_empty = marks + offsetof(barriers, weights_empty);
    const uint32_t rank = cluster_rank();
    const int elements = Rows::ELEMENTS, weights_at = job.steps - 1 < STAGES ? job.steps - 1 : STAGES;
    uint32_t stage = 0, parity = 1, weights_parity = 1;
    for (int tile = first_tile; tile < end_tile; tile++) {
        for (int step = 0; step < job.steps; step++) {
            uint32_t at = stages + stage * STAGE_BYTES;
            barrier_wait(empty + stage * 8, parity);
            barrier_expect(full + stage * 8, STAGE_BYTES);
            copy_box(at, x_map, step * elements, row_block * MRC_FUSED_ROWS, full + stage * 8);
            copy_box_to_all(at + X_BYTES + rank * (Z_BYTES / CLUSTER), z_map, step * elements,
                            tile * MRC_FUSED_CENTERS + (int)rank * (MRC_FUSED_CENTERS / CLUSTER), full + stage * 8,
                            (1 << CLUSTER) - 1);
            if (++stage == STAGES) stage = 0, parity ^= 1;
            if (step != weights_at) continue;
            barrier_wait(weights_empty, weights_parity);
            barrier_expect(weights_full, COLUMNS * MRC_FUSED_CENTERS * 2 + NORM_BYTES);
            for (int part = 0; part < 4; part++)
                copy_box(weights + part * COLUMNS * ROW_BYTES, w_map, tile * MRC_FUSED_CENTERS + part * 64, 0,
                         weights_full);
            copy_bytes(norms, (const char *)job.z_norms + (size_t)tile * NORM_BYTES, NORM_BYTES, weights_full);
            weights_parity ^= 1;
        }
    }
}

/* ---- Consumer warp groups: the computation ------------------------------------------------------------------- */

/* Two lanes of a warp arrive, one at each block of the cluster. All threads of the warp have finished with the stage:
   wgmma_wait is a warp-wide instruction. */
static __device__ __forceinline__ void release_stage(uint32_t barrier)
{
    if (threadIdx.x % 32 < CLUSTER) barrier_arrive_at(barrier, threadIdx.x % 32);
}

/* Computes S of one tile for the 64 rows of this group. */
template <typename Dot>
static __device__ __forceinline__ void multiply_points(const fused_arguments &job, Dot (&dots)[128], uint32_t stages,
                                                       uint32_t full, uint32_t empty, int group, uint32_t &stage,
                                                       uint32_t &parity)
{
    uint32_t before = 0;
    for (int step = 0; step < job.steps; step++) {
        uint32_t at = stages + stage * STAGE_BYTES;
        barrier_wait(full + stage * 8, parity);
        uint64_t a = operand_at(at + group * (X_BYTES / 2)), b = operand_at(at + X_BYTES);
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < 4; k++) wgmma_dots(dots, a + 2 * k, b + 2 * k, step > 0 || k > 0);
        wgmma_commit();
        if (step > 0) {
            wgmma_wait<1>();
            release_stage(empty + before * 8);
        }
        before = stage;
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    wgmma_wait<0>();
    release_stage(empty + before * 8);
}

/* Transposes within a quad: each thread has a quarter of each of four pieces (v0 .. v3) and returns one whole piece of
   16 bytes. */
static __device__ __forceinline__ uint4 gather_piece(uint32_t v0, uint32_t v1, uint32_t v2, uint32_t v3)
{
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    uint32_t a = __shfl_xor_sync(0xffffffffu, odd ? v0 : v1, 1), b = __shfl_xor_sync(0xffffffffu, odd ? v2 : v3, 1);
    if (odd)
        v0 = a, v2 = b;
    else
        v1 = a, v3 = b;
    a = __shfl_xor_sync(0xffffffffu, high ? v0 : v2, 2), b = __shfl_xor_sync(0xffffffffu, high ? v1 : v3, 2);
    return high ? make_uint4(a, b, v2, v3) : make_uint4(v0, v1, a, b);
}

/* Y += profile(S) W for one tile. SAVE: the values are also stored at place0 and place1, the addresses of this thread's
   first pieces of its two rows (NULL after the last row). A piece is 8 values; the four pieces of a quad are 64
   contiguous bytes. */
template <int KERNEL, int COLUMNS, bool SAVE, typename Rows>
static __device__ __forceinline__ void multiply_weights(const Rows &rows, typename Rows::dot (&dots)[128],
                                                        float (&sums)[COLUMNS / 2], const char *norms, uint32_t weights,
                                                        typename Rows::norm x_norm0, typename Rows::norm x_norm1,
                                                        uint4 *place0, uint4 *place1)
{
    typedef typename Rows::norm norm;
    const norm *z_norms = (const norm *)norms + 2 * (threadIdx.x % 4);
#pragma unroll
    for (int part = 0; part < 4; part++) {
        uint32_t values[16];
#pragma unroll
        for (int pair = 0; pair < 8; pair++) {
            const int j = part * 8 + pair;
            norm z0 = z_norms[8 * j], z1 = z_norms[8 * j + 1];
            values[2 * pair] = two_halves(rows.template value<KERNEL>(dots[4 * j], x_norm0, z0),
                                          rows.template value<KERNEL>(dots[4 * j + 1], x_norm0, z1));
            values[2 * pair + 1] = two_halves(rows.template value<KERNEL>(dots[4 * j + 2], x_norm1, z0),
                                              rows.template value<KERNEL>(dots[4 * j + 3], x_norm1, z1));
        }
        if (SAVE) {
#pragma unroll
            for (int four = 0; four < 2; four++) {
                const uint32_t *v = values + 8 * four;
                uint4 piece0 = gather_piece(v[0], v[2], v[4], v[6]), piece1 = gather_piece(v[1], v[3], v[5], v[7]);
                if (place0) place0[part * 8 + four * 4] = piece0;
                if (place1) place1[part * 8 + four * 4] = piece1;
            }
        }
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < 4; k++)
            wgmma_multiply_weights(sums, values + 4 * k, operand_at(weights + part * COLUMNS * ROW_BYTES) + 2 * k);
        wgmma_commit();
        if (part > 0) wgmma_wait<1>(); /* now the registers of the previous part are free */
    }
    wgmma_wait<0>();
}

/* Computes the sums of 64 rows over the tiles of a unit. In the layout of wgmma a warp has 16 rows, and thread t of a
   quad (four neighboring lanes) has columns 8 j + 2 t and 8 j + 2 t + 1 of rows `row` and `row` + 8. */
template <int KERNEL, int COLUMNS, bool SAVE, typename Rows>
static __device__ __forceinline__ void compute(const fused_arguments &job, uint32_t stages, uint32_t weights,
                                               const char *norms, uint32_t marks, int row_block, int unit,
                                               int first_tile, int end_tile)
{
    typedef typename Rows::norm norm;
    const uint32_t full = marks + offsetof(barriers, full), empty = marks + offsetof(barriers, empty);
    const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
    const int row = row_block * MRC_FUSED_ROWS + group * 64 + (threadIdx.x % 128) / 32 * 16 + lane / 4;
    const norm *x_norms = (const norm *)job.x_norms;
    const norm x_norm0 = x_norms[row], x_norm1 = x_norms[row + 8];
    Rows rows;
    rows.set(job.scale);
    float sums[COLUMNS / 2];
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++) sums[i] = 0;
    typename Rows::dot dots[128];
    uint32_t stage = 0, parity = 0, weights_parity = 0;
    for (int tile = first_tile; tile < end_tile; tile++) {
        multiply_points(job, dots, stages, full, empty, group, stage, parity);
        barrier_wait(marks + offsetof(barriers, weights_full), weights_parity);
        uint4 *place0 = NULL, *place1 = NULL;
        if (SAVE && tile < job.saved_tiles) {
            uint4 *place = job.saved + (int64_t)row * job.saved_pieces + tile * (MRC_FUSED_CENTERS / 8) + lane % 4;
            if (row < job.saved_rows) place0 = place;
            if (row + 8 < job.saved_rows) place1 = place + 8 * job.saved_pieces;
        }
        multiply_weights<KERNEL, COLUMNS, SAVE>(rows, dots, sums, norms, weights, x_norm0, x_norm1, place0, place1);
        if (lane == 0) barrier_arrive(marks + offsetof(barriers, weights_empty));
        weights_parity ^= 1;
    }
    float *out = job.sums + ((size_t)unit * job.m + row) * COLUMNS + 2 * (lane % 4);
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; j++) {
        if (row < job.m) *(float2 *)(out + 8 * j) = make_float2(sums[4 * j], sums[4 * j + 1]);
        if (row + 8 < job.m) *(float2 *)(out + 8 * COLUMNS + 8 * j) = make_float2(sums[4 * j + 2], sums[4 * j + 3]);
    }
}

/* ---- The kernel ---------------------------------------------------------------------------------------------- */

/* The first 1024 bytes are for alignment: swizzled operands begin at a multiple of 1024 bytes. */
template <int COLUMNS> static constexpr int fused_shared_bytes(void)
{
    return 1024 + STAGES * STAGE_BYTES + COLUMNS * MRC_FUSED_CENTERS * 2 + NORM_BYTES + (int)sizeof(barriers);
}

template <int KERNEL, int COLUMNS, bool SAVE, typename Rows>
static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    fused(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap z_map,
          const __grid_constant__ CUtensorMap w_map, const fused_arguments job)
{
    extern __shared__ char memory[];
    char *base = memory + (1024 - shared_address(memory) % 1024) % 1024;
    const uint32_t stages = shared_address(base), weights = stages + STAGES * STAGE_BYTES,
                   norms = weights + COLUMNS * MRC_FUSED_CENTERS * 2, marks = norms + NORM_BYTES;
    /* Blocks are ordered so that those running concurrently share rows and centers in the cache: a group of row blocks
       goes through all units before the next group starts. */
    const int groups = (job.row_blocks + GROUP - 1) / GROUP,
              group = (job.row_blocks / CLUSTER + groups - 1) / groups * CLUSTER, units = gridDim.x / job.row_blocks;
    const int first_row = blockIdx.x / (group * units) * group,
              width = first_row + group < job.row_blocks ? group : job.row_blocks - first_row,
              inside = blockIdx.x - first_row * units, row_block = first_row + inside % width, unit = inside / width;
    const int first_tile = unit * job.unit_tiles,
              end_tile = first_tile + job.unit_tiles < job.tiles ? first_tile + job.unit_tiles : job.tiles;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(marks + offsetof(barriers, full) + 8 * i, 1);
            barrier_init(marks + offsetof(barriers, empty) + 8 * i, 8 * CLUSTER);
        }
        barrier_init(marks + offsetof(barriers, weights_full), 1);
        barrier_init(marks + offsetof(barriers, weights_empty), 8);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();
    /* Registers move from the loading group to the two others: 128 x 40 + 256 x 232 = 64,512 of 65,536 registers. */
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            bring<COLUMNS, Rows>(job, &x_map, &z_map, &w_map, stages, weights, norms, marks, row_block, first_tile,
                                 end_tile);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        compute<KERNEL, COLUMNS, SAVE, Rows>(job, stages, weights, base + (norms - stages), marks, row_block, unit,
                                             first_tile, end_tile);
    }
    cluster_sync(); /* no block may exit while another can still signal its barriers */
}

#endif

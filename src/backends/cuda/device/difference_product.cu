/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Y = K W for a kernel of absolute differences, computed by one CUDA kernel: K stays in registers.
 *
 *   s_ij = sum_k |a_ik - b_jk|       one chain over k in float, or exact sums of bytes
 *   y_ic = sum_j v_ij w_jc,  v_ij = exp(-s_ij / b) = 2^(scale s_ij),  scale = -log2(e) / b
 *
 * b is the bandwidth. scale is rounded once, so the relative error of v_ij is (2.42 + 2 s_ij / b) u with u = 2^-24.
 *
 * Rows are stored in tiles of 128, feature by feature (mrc_launch_pack_tiles), so that a chunk of features of a tile is
 * contiguous; it is copied to shared memory while the previous chunk is used. A block of 8 warps processes 128 rows
 * and up to 4096 centers, in tiles of 128 centers. A warp has 64 x 32 pairs of a tile, a thread 8 x 8 of these in
 * registers. Cost: 2 d float operations of the CUDA cores and one exp per pair.
 *
 * Products with one or two columns of weights run on the CUDA cores, too; products with more columns run on tensor
 * cores. The 8 x 8 values of a thread are its fragments of the left operands of m16n8k8 without any exchange: thread
 * (g, t) of 8 x 4 has rows 8 g to 8 g + 7 and columns 8 t to 8 t + 7. Rows 8 g + 2 i, 8 g + 2 i + 1 serve as rows g and
 * g + 8 of matrix i, columns 8 t + 2 h, 8 t + 2 h + 1 as columns t and t + 4 of step h. Tensor cores use the first 11
 * significant bits of a float (tf32) and drop the other bits. So v = high + low: high is the first 11 bits of v, which
 * the tensor core takes from v itself, and low = v - high is exact.
 *
 *   v w = high(v) high(w) + low(v) high(w) + high(v) low(w)    to 3 2^-20 |v w|
 *
 * This error is 48 u. A sum over 32 centers takes four steps of three tensor core products. If a product drops
 * everything below the last bit of the largest of its nine terms, its error is 9 u, which is 108 u for twelve products.
 * These sums are added in float over up to 32 tiles (32 u), and after that in double. The total error is 188 u of sum
 * |v w|, less than that of a chain of 240 terms (240 u). The sums of a row depend only on its own values and weights.
 *
 * If rows may be rounded to halves, tensor cores also sum the differences. With S_x = sum_k x_k
 *
 *   sum_k |x_k - z_k| = 2 sum_k max(x_k, z_k) - S_x - S_z
 *
 * and two features of a pair take one maximum instruction on packed halves, which is exact. Four of these maxima, from
 * rows i, i + 1 and columns j, j + 4 of a thread, are its fragment of the left operand of m16n8k16. Column n of the
 * right operand selects features 2 n and 2 n + 1 (pick_pairs). A thread then has sums of pairs of its own and its
 * neighbors' columns: column q of thread t is column 16 (t mod 2) + 4 (t / 2) + q mod 4 + 8 (q / 4) of the warp's 32. S
 * is computed by the same instructions in the same order, so equal rows have distance 0. Cost per thread for its 64
 * pairs: 32 d maxima and 8 d tensor core instructions instead of 128 d operations. Halves have a relative error of
 * 2^-12, sums of floats an error of d / 2 units of 2^-23.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/float_forms.cuh"
#include "backends/cuda/device/launch.h"

#include <cuda_pipeline_primitives.h>

enum {
    SIDE = 128, /* rows per tile */
    PART = 4,   /* rows are padded to a multiple of this number of words */
    THREADS = 256,
    OWN = 8,      /* rows and columns per thread */
    MATRICES = 4, /* number of 16-row matrices in the 64 rows of a warp, and of 8-column steps in its 32 columns */
    FEW = 2       /* most columns of W that are summed without tensor cores */
};

/* ---- Operands ---------------------------------------------------------------------------------------------------- */

int64_t mrc_difference_words(mrc_cuda_arithmetic arithmetic, int64_t features)
{
    int64_t words = arithmetic == MRC_CUDA_BYTES  ? (features + 3) / 4
                    : arithmetic == MRC_CUDA_HALF ? (features + 1) / 2
                                                  : features;
    return words > 0 ? (words + PART - 1) / PART * PART : PART;
}

int64_t mrc_difference_rows(int64_t rows)
{
    return (rows + SIDE - 1) / SIDE * SIDE;
}

/* How the values of a side are packed: arguments of mrc_launch_pack_tiles. */
struct packing {
    mrc_cuda_arithmetic arithmetic;
    const double *origin;
    double unit;
    int *overflow;
};

static __device__ uint32_t half_of(const mercer_matrix &x, int64_t i, int64_t k, const packing &how)
{
    if (k >= x.cols) return 0;
    double exact = how.unit * (mrc_at(x, i, k) - (how.origin ? how.origin[k] : 0));
    if (fabs(exact) > 65504) *how.overflow = 1;
    return __half_as_ushort(__double2half(exact));
}

static __device__ uint32_t word_of(const mercer_matrix &x, int64_t i, int64_t k, const packing &how)
{
    if (how.arithmetic == MRC_CUDA_HALF) return half_of(x, i, 2 * k, how) | half_of(x, i, 2 * k + 1, how) << 16;
    if (how.arithmetic != MRC_CUDA_BYTES) return k < x.cols ? __float_as_uint((float)mrc_at(x, i, k)) : 0;
    uint32_t word = 0;
    for (int at = 0; at < 4 && 4 * k + at < x.cols; at++) word |= (uint32_t)mrc_at(x, i, 4 * k + at) << 8 * at;
    return word;
}

/* A block transposes 32 rows of 32 words in shared memory. */
static __global__ void pack_tiles(mercer_matrix x, packing how, int64_t words, uint32_t *out)
{
    __shared__ uint32_t turn[32][33];
    int64_t i0 = (int64_t)blockIdx.x * 32, k0 = (int64_t)blockIdx.y * 32;
    for (int r = threadIdx.y; r < 32; r += blockDim.y) {
        int64_t i = i0 + r, k = k0 + threadIdx.x;
        turn[r][threadIdx.x] = i < x.rows && k < words ? word_of(x, i, k, how) : 0;
    }
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += blockDim.y) {
        int64_t i = i0 + threadIdx.x, k = k0 + r;
        if (k < words) out[(i / SIDE * words + k) * SIDE + i % SIDE] = turn[threadIdx.x][r];
    }
}

/* Sets this thread's fragment of the right operand for sums of halves: column n has ones at features 2 n, 2 n + 1. */
static __device__ __forceinline__ void pick_pairs(uint32_t (&ones)[2])
{
    const int column = threadIdx.x % 32 / 4, k = threadIdx.x % 4;
    ones[0] = column == k ? 0x3c003c00u : 0, ones[1] = column == k + 4 ? 0x3c003c00u : 0;
}

static __device__ __forceinline__ void sum_pairs(float &s0, float &s1, float &s2, float &s3, uint32_t a0, uint32_t a1,
                                                 uint32_t a2, uint32_t a3, const uint32_t (&ones)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(ones[0]), "r"(ones[1]));
}

/* Sums the rows of a tile, one warp per tile: row 8 r + n of the tile is pair n in row r of the left operand. */
static __global__ void sum_rows(const uint32_t *tiles, int64_t words, float *sums)
{
    const int row = threadIdx.x / 4 * 8, t = threadIdx.x % 4;
    const uint32_t *from = tiles + (int64_t)blockIdx.x * words * SIDE + row + t;
    float *to = sums + (int64_t)blockIdx.x * SIDE + row + 2 * t, s[4] = {0, 0, 0, 0};
    uint32_t ones[2];
    pick_pairs(ones);
    for (int64_t k = 0; k < words; k++, from += SIDE)
        sum_pairs(s[0], s[1], s[2], s[3], from[0], from[64], from[4], from[68], ones);
    to[0] = s[0], to[1] = s[1], to[64] = s[2], to[65] = s[3];
}

cudaError_t mrc_launch_pack_tiles(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, mercer_matrix x,
                                  const double *origin, double unit, int *overflow, void *tiles)
{
    int64_t words = mrc_difference_words(arithmetic, x.cols), rows = mrc_difference_rows(x.rows);
    dim3 grid((unsigned)(rows / 32), (unsigned)((words + 31) / 32));
    packing how = {arithmetic, origin, unit, overflow};
    pack_tiles<<<grid, dim3(32, 8), 0, stream>>>(x, how, words, (uint32_t *)tiles);
    if (arithmetic == MRC_CUDA_HALF)
        sum_rows<<<(unsigned)(rows / SIDE), 32, 0, stream>>>((uint32_t *)tiles, words, (float *)tiles + rows * words);
    return cudaGetLastError();
}

int mrc_difference_columns(int64_t columns)
{
    return columns <= FEW ? FEW : columns <= 8 ? 8 : columns <= 16 ? 16 : columns <= 32 ? 32 : 64;
}

/* Returns the column of the warp's 32 that value q of thread t belongs to, for sums of halves. */
static __device__ __forceinline__ int column_of_halves(int t, int q)
{
    return t % 2 * 16 + t / 2 * 4 + q % 4 + q / 4 * 8;
}

/* Stores weights as right operands of the steps of a tile, in the order tile, group of eight columns, warp's columns,
   step, thread, two words. Up to FEW columns are stored row by row. */
static __global__ void pack_weights(mercer_matrix w, bool halves, int columns, int64_t count, float *out)
{
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count;
         at += (int64_t)gridDim.x * blockDim.x) {
        int second = (int)(at % 2), lane = (int)(at / 2 % 32), step = (int)(at / 64 % 4), across = (int)(at / 256 % 4);
        int64_t eight = at / 1024 % (columns / 8 > 0 ? columns / 8 : 1), tile = at / (SIDE * columns);
        int own = halves ? column_of_halves(lane % 4, 2 * step + second) : lane % 4 * OWN + 2 * step + second;
        int64_t j = tile * SIDE + across * 32 + own, c = eight * 8 + lane / 4;
        if (columns == FEW) j = at / FEW, c = at % FEW;
        out[at] = j < w.rows && c < w.cols ? (float)mrc_at(w, j, c) : 0;
    }
}

cudaError_t mrc_launch_pack_tile_weights(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, mercer_matrix w,
                                         float *out)
{
    int columns = mrc_difference_columns(w.cols);
    int64_t count = mrc_difference_rows(w.rows) * columns;
    pack_weights<<<mrc_blocks(count, MRC_CUDA_GRID), 256, 0, stream>>>(w, arithmetic == MRC_CUDA_HALF, columns, count,
                                                                       out);
    return cudaGetLastError();
}

/* ---- Distances and values ---------------------------------------------------------------------------------------- */

/* Each struct defines how a word of both sides is added to a sum, and the value of the sum in float. HALVES: the terms
   of four pairs at a time are added on tensor cores. */
struct float_words {
    enum { HALVES = 0 };
    typedef float word;
    typedef float sum;
    static __device__ __forceinline__ float nothing()
    {
        return 0;
    }
    static __device__ __forceinline__ void add(float &sum, float a, float b)
    {
        sum += fabsf(a - b);
    }
    static __device__ __forceinline__ float value(float sum)
    {
        return sum;
    }
};

/* Integer sums below 2^23 are counted in the low bits of the float 2^23, so the conversion is one subtraction. */
struct byte_words {
    enum { HALVES = 0 };
    typedef uint32_t word;
    typedef uint32_t sum;
    static __device__ __forceinline__ uint32_t nothing()
    {
        return 0x4b000000u;
    }
    static __device__ __forceinline__ void add(uint32_t &sum, uint32_t a, uint32_t b)
    {
        asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
    }
    static __device__ __forceinline__ float value(uint32_t sum)
    {
        return __uint_as_float(sum) - 0x1p23f;
    }
};

struct half_words {
    enum { HALVES = 1 };
    typedef uint32_t word;
    typedef float sum;
    static __device__ __forceinline__ float nothing()
    {
        return 0;
    }
    static __device__ __forceinline__ uint32_t larger(uint32_t a, uint32_t b)
    {
        uint32_t out;
        asm("max.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
        return out;
    }
};

/* Returns 2^x for x <= 0, with a relative error of at most 2.42 u for every float down to -126 (all were tested on
   sm_90); results may be subnormal. */
static __device__ __forceinline__ float power_of_two(float x)
{
    float value;
    asm("ex2.approx.f32 %0, %1;" : "=f"(value) : "f"(x));
    return value;
}

/* Starts the copy of up to CHUNK words per row of one side to shared memory. */
template <int CHUNK>
static __device__ __forceinline__ void copy_chunk(uint32_t (*to)[SIDE], const uint32_t *from, int words)
{
#pragma unroll
    for (int i = 0; i < CHUNK * SIDE / 4 / THREADS; i++) {
        int at = threadIdx.x + i * THREADS;
        if (at < words * (SIDE / 4)) __pipeline_memcpy_async(&to[0][0] + 4 * at, from + 4 * at, 16);
    }
}

/* Adds the terms of one packed word of the rows and columns of this thread to sum. */
template <typename Words>
static __device__ __forceinline__ void add_word(typename Words::sum (&sum)[OWN][OWN],
                                                const typename Words::word (&left)[OWN],
                                                const typename Words::word (&right)[OWN], Words)
{
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < OWN; j++) Words::add(sum[i][j], left[i], right[j]);
}

static __device__ __forceinline__ void add_word(float (&sum)[OWN][OWN], const uint32_t (&left)[OWN],
                                                const uint32_t (&right)[OWN], half_words)
{
    uint32_t ones[2];
    pick_pairs(ones);
#pragma unroll
    for (int i = 0; i < OWN; i += 2)
#pragma unroll
        for (int j = 0; j < OWN / 2; j++)
            sum_pairs(sum[i][j], sum[i][j + 4], sum[i + 1][j], sum[i + 1][j + 4], half_words::larger(left[i], right[j]),
                      half_words::larger(left[i + 1], right[j]), half_words::larger(left[i], right[j + 4]),
                      half_words::larger(left[i + 1], right[j + 4]), ones);
}

/* Computes the kernel values of the thread's pairs, 2^(scale s). For halves: row_sums begins at the thread's first row,
   column_sums at the warp's first column. */
template <typename Words>
static __device__ __forceinline__ void find_values(float (&value)[OWN][OWN], const typename Words::sum (&sum)[OWN][OWN],
                                                   float scale, const float *, const float *, Words)
{
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < OWN; j++) value[i][j] = power_of_two(Words::value(sum[i][j]) * scale);
}

static __device__ __forceinline__ void find_values(float (&value)[OWN][OWN], const float (&sum)[OWN][OWN], float scale,
                                                   const float *row_sums, const float *column_sums, half_words)
{
    const int t = threadIdx.x % 4;
    float across[OWN];
    *(float4 *)&across[0] = *(const float4 *)(column_sums + column_of_halves(t, 0));
    *(float4 *)&across[4] = *(const float4 *)(column_sums + column_of_halves(t, 4));
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const float down = row_sums[i];
#pragma unroll
        for (int j = 0; j < OWN; j++)
            value[i][j] = power_of_two(fmaxf(fmaf(2, sum[i][j], -(down + across[j])), 0) * scale);
    }
}

/* Adds the terms of `words` packed words of the rows and columns of this thread to sum. */
template <typename Words>
static __device__ __forceinline__ void add_words(typename Words::sum (&sum)[OWN][OWN], const typename Words::word *a,
                                                 const typename Words::word *b, int words)
{
    typedef typename Words::word word;
#pragma unroll 2
    for (int k0 = 0; k0 < words; k0 += PART)
#pragma unroll
        for (int k = 0; k < PART; k++) {
            word left[OWN], right[OWN];
            const word *from_a = a + (k0 + k) * SIDE, *from_b = b + (k0 + k) * SIDE;
            *(uint4 *)&left[0] = *(const uint4 *)from_a, *(uint4 *)&left[4] = *(const uint4 *)(from_a + 4);
            *(uint4 *)&right[0] = *(const uint4 *)from_b, *(uint4 *)&right[4] = *(const uint4 *)(from_b + 4);
            add_word(sum, left, right, Words());
        }
}

/* Stores the thread's values in the columns to save. The thread's columns are two runs of four, beginning at j0 and at
   j0 + step. */
static __device__ void save_values(const mrc_difference_product &job, const float (&value)[OWN][OWN], int64_t i0,
                                   int64_t j0, int step)
{
    const int64_t ld = job.saved_ld;
    const bool whole = j0 + step + OWN / 2 <= job.saved_columns && ld % 4 == 0 && (uintptr_t)job.saved % 16 == 0;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        float *to = job.saved + (i0 + i) * ld + j0;
        if (i0 + i >= job.rows) return;
        if (whole) {
            *(float4 *)to = make_float4(value[i][0], value[i][1], value[i][2], value[i][3]);
            *(float4 *)(to + step) = make_float4(value[i][4], value[i][5], value[i][6], value[i][7]);
        } else {
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                int at = j % 4 + j / 4 * step;
                if (j0 + at < job.saved_columns) to[at] = value[i][j];
            }
        }
    }
}

/* ---- Products with weights: few columns on the CUDA cores -------------------------------------------------------- */

struct on_lanes {
    enum { COLUMNS = FEW, CHUNK = 32, BLOCKS = 2 };
    struct scratch {
        float2 weights[SIDE];
        float2 totals[OWN][THREADS]; /* sums over all tiles, by row of a thread */
    };

    static __device__ __forceinline__ void begin(scratch &shared)
    {
        for (int i = 0; i < OWN; i++) shared.totals[i][threadIdx.x] = make_float2(0, 0);
    }
    /* Adds 8 centers in one chain, and the chain to the sum of the previous tiles: errors of 8 u and 32 u. */
    static __device__ __forceinline__ void add(scratch &shared, const float (&value)[OWN][OWN], int first, int step)
    {
        float2 sum[OWN];
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            float2 w = shared.weights[first + j % 4 + j / 4 * step];
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                sum[i].x = j > 0 ? fmaf(value[i][j], w.x, sum[i].x) : value[i][j] * w.x;
                sum[i].y = j > 0 ? fmaf(value[i][j], w.y, sum[i].y) : value[i][j] * w.y;
            }
        }
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            float2 total = shared.totals[i][threadIdx.x];
            shared.totals[i][threadIdx.x] = make_float2(total.x + sum[i].x, total.y + sum[i].y);
        }
    }
    /* Adds the sums of the 16 threads of a row in double, in order. */
    static __device__ void store(scratch &shared, int64_t i0, const mrc_difference_product &job, double *parts)
    {
        __syncthreads();
        for (int at = threadIdx.x; at < SIDE * job.columns; at += THREADS) {
            int row = at / job.columns, c = at % job.columns;
            double all = 0;
            if (i0 + row >= job.rows) return;
            for (int i = 0; i < 16; i++) {
                int warp = row / 64 * 4 + i / 4, lane = row % 64 / OWN * 4 + i % 4;
                float2 total = shared.totals[row % OWN][warp * 32 + lane];
                all += (double)(c == 0 ? total.x : total.y);
            }
            parts[(i0 + row) * job.columns + c] = all;
        }
    }
};

/* ---- Products with weights: groups of eight columns on tensor cores ---------------------------------------------- */

static __device__ __forceinline__ void multiply_tf32(float (&sum)[4], const float (&a)[4], float b0, float b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

/* Returns the part of a value that tf32 drops. */
static __device__ __forceinline__ float low_part(float value)
{
    return value - __uint_as_float(__float_as_uint(value) & 0xffffe000u);
}

template <int EIGHTS> struct on_tensor_cores {
    enum { COLUMNS = 8 * EIGHTS, CHUNK = EIGHTS <= 2 ? 32 : 16, BLOCKS = EIGHTS <= 4 ? 2 : 1 };
    struct scratch {
        float2 weights[EIGHTS][4][MATRICES][32];           /* of one tile, packed by mrc_launch_pack_tile_weights */
        float4 totals[EIGHTS][MATRICES][THREADS / 32][32]; /* sums over all tiles, by warp and lane */
    };

    static __device__ __forceinline__ void begin(scratch &shared)
    {
        for (int at = threadIdx.x; at < EIGHTS * MATRICES * THREADS; at += THREADS)
            (&shared.totals[0][0][0][0])[at] = make_float4(0, 0, 0, 0);
    }
    static __device__ __forceinline__ void add(scratch &shared, const float (&value)[OWN][OWN], int, int)
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < MATRICES; i++) {
            float low[MATRICES][4];
#pragma unroll
            for (int h = 0; h < MATRICES; h++) {
                low[h][0] = low_part(value[2 * i][2 * h]), low[h][1] = low_part(value[2 * i + 1][2 * h]);
                low[h][2] = low_part(value[2 * i][2 * h + 1]), low[h][3] = low_part(value[2 * i + 1][2 * h + 1]);
            }
#pragma unroll(EIGHTS < 2 ? EIGHTS : 2)
            for (int n = 0; n < EIGHTS; n++) {
                float sum[4] = {0, 0, 0, 0};
#pragma unroll
                for (int h = 0; h < MATRICES; h++) {
                    const float high[4] = {value[2 * i][2 * h], value[2 * i + 1][2 * h], value[2 * i][2 * h + 1],
                                           value[2 * i + 1][2 * h + 1]};
                    float2 w = shared.weights[n][warp % 4][h][lane];
                    multiply_tf32(sum, low[h], w.x, w.y);
                    multiply_tf32(sum, high, low_part(w.x), low_part(w.y));
                    multiply_tf32(sum, high, w.x, w.y);
                }
                float4 total = shared.totals[n][i][warp][lane];
                total.x += sum[0], total.y += sum[1], total.z += sum[2], total.w += sum[3];
                shared.totals[n][i][warp][lane] = total;
            }
        }
    }
    /* Adds the sums of the four warps of a row in double, in order. */
    static __device__ void store(scratch &shared, int64_t i0, const mrc_difference_product &job, double *parts)
    {
        __syncthreads();
        for (int at = threadIdx.x; at < SIDE * job.columns; at += THREADS) {
            int row = at / job.columns, c = at % job.columns, r = row % 64;
            int lane = r / OWN * 4 + c % 8 / 2, element = c % 2 + r % 2 * 2;
            double all = 0;
            if (i0 + row >= job.rows) return;
            for (int across = 0; across < 4; across++) {
                const float4 *total = &shared.totals[c / 8][r % OWN / 2][row / 64 * 4 + across][lane];
                all += (double)((const float *)total)[element];
            }
            parts[(i0 + row) * job.columns + c] = all;
        }
    }
};

/* ---- The product ------------------------------------------------------------------------------------------------- */

template <typename Sums> struct shared_parts {
    uint32_t rows[2][2][Sums::CHUNK][SIDE]; /* two chunks of both sides, used in turn */
    typename Sums::scratch sums;
};

template <typename Words, typename Sums>
static __global__ void __launch_bounds__(THREADS, Sums::BLOCKS)
    product(mrc_difference_product job, int64_t tiles, int words, float scale)
{
    enum { CHUNK = Sums::CHUNK, COLUMNS = Sums::COLUMNS };
    typedef typename Words::word word;
    extern __shared__ __align__(16) char memory[];
    shared_parts<Sums> &shared = *(shared_parts<Sums> *)memory;
    typename Words::sum sum[OWN][OWN];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int own_rows = warp / 4 * 64 + lane / 4 * OWN, own_columns = warp % 4 * 32 + lane % 4 * OWN;
    const int64_t row = (int64_t)blockIdx.x * SIDE, first = (int64_t)blockIdx.y * MRC_DIFFERENCE_TILES;
    const int count = (int)min((int64_t)MRC_DIFFERENCE_TILES, tiles - first);
    const uint32_t *a = (const uint32_t *)job.a + row * words, *b = (const uint32_t *)job.b + first * words * SIDE;
    const float *weights = job.weights + first * SIDE * COLUMNS;
    /* A thread's values are two runs of four columns, `step` apart, from value_columns on: the columns of its words or,
       for halves, those of column_of_halves. */
    const int step = Words::HALVES ? 8 : 4;
    const int value_columns = Words::HALVES ? warp % 4 * 32 + column_of_halves(lane % 4, 0) : own_columns;
    const float *a_sums = (const float *)job.a + (int64_t)gridDim.x * SIDE * words + row + own_rows;
    const float *b_sums = (const float *)job.b + tiles * SIDE * words + first * SIDE + warp % 4 * 32;
    Sums::begin(shared.sums);
    copy_chunk<CHUNK>(shared.rows[0][0], a, min((int)CHUNK, words));
    copy_chunk<CHUNK>(shared.rows[0][1], b, min((int)CHUNK, words));
    __pipeline_commit();
    int turn = 0;
    for (int tile = 0; tile < count; tile++) {
#pragma unroll
        for (int i = 0; i < OWN; i++)
#pragma unroll
            for (int j = 0; j < OWN; j++) sum[i][j] = Words::nothing();
        for (int done = 0; done < words;) {
            const int now = min((int)CHUNK, words - done);
            __pipeline_wait_prior(0);
            __syncthreads(); /* this chunk has arrived, and all threads have used the previous one */
            if (done == 0) {
#pragma unroll
                for (int at = threadIdx.x; at < SIDE * COLUMNS / 4; at += THREADS)
                    __pipeline_memcpy_async((float4 *)shared.sums.weights + at, (const float4 *)weights + at, 16);
                weights += SIDE * COLUMNS;
            }
            b += now * SIDE; /* tiles are contiguous */
            done += now;
            const int next = done < words ? done : 0;
            if (next > 0 || tile + 1 < count) {
                copy_chunk<CHUNK>(shared.rows[turn ^ 1][0], a + next * SIDE, min((int)CHUNK, words - next));
                copy_chunk<CHUNK>(shared.rows[turn ^ 1][1], b, min((int)CHUNK, words - next));
            }
            __pipeline_commit();
            add_words<Words>(sum, (const word *)shared.rows[turn][0] + own_rows,
                             (const word *)shared.rows[turn][1] + own_columns, now);
            turn ^= 1;
        }
        float value[OWN][OWN];
        find_values(value, sum, scale, a_sums, b_sums + tile * SIDE, Words());
        if (words <= CHUNK) { /* the copy of the weights was started in this chunk */
            __pipeline_wait_prior(0);
            __syncthreads();
        }
        Sums::add(shared.sums, value, value_columns, step);
        if ((first + tile) * SIDE < job.saved_columns)
            save_values(job, value, row + own_rows, (first + tile) * SIDE + value_columns, step);
    }
    Sums::store(shared.sums, row, job, job.parts + (int64_t)blockIdx.y * job.rows * job.columns);
}

int mrc_difference_most_columns(size_t shared_bytes)
{
    return shared_bytes >= sizeof(shared_parts<on_tensor_cores<8>>)   ? 64
           : shared_bytes >= sizeof(shared_parts<on_tensor_cores<4>>) ? 32
                                                                      : 8;
}

bool mrc_difference_product_takes(const mercer_kernel *kernel)
{
    return kernel->id == MRC_KERNEL_LAPLACE_L1 && mrc_float_scale(kernel) > 0;
}

int64_t mrc_difference_groups(int64_t centers)
{
    return (centers + SIDE * MRC_DIFFERENCE_TILES - 1) / (SIDE * MRC_DIFFERENCE_TILES);
}

template <typename Words, typename Sums>
static cudaError_t launch(cudaStream_t stream, const mrc_difference_product *job, float scale)
{
    enum { BYTES = sizeof(shared_parts<Sums>) };
    int64_t tiles = mrc_difference_rows(job->cols) / SIDE;
    int words = (int)mrc_difference_words(job->arithmetic, job->features);
    dim3 grid((unsigned)(mrc_difference_rows(job->rows) / SIDE), (unsigned)mrc_difference_groups(job->cols));
    cudaError_t error = cudaFuncSetAttribute(product<Words, Sums>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    if (error != cudaSuccess) return error;
    product<Words, Sums><<<grid, THREADS, BYTES, stream>>>(*job, tiles, words, scale);
    return cudaGetLastError();
}

template <typename Words>
static cudaError_t launch_columns(cudaStream_t stream, const mrc_difference_product *job, float scale)
{
    switch (mrc_difference_columns(job->columns)) {
        case FEW: return launch<Words, on_lanes>(stream, job, scale);
        case 8: return launch<Words, on_tensor_cores<1>>(stream, job, scale);
        case 16: return launch<Words, on_tensor_cores<2>>(stream, job, scale);
        case 32: return launch<Words, on_tensor_cores<4>>(stream, job, scale);
        default: return launch<Words, on_tensor_cores<8>>(stream, job, scale);
    }
}

cudaError_t mrc_launch_difference_product(cudaStream_t stream, const mercer_kernel *kernel,
                                          const mrc_difference_product *job)
{
    double scale = -MRC_LOG2E / kernel->bandwidth;
    if (job->arithmetic == MRC_CUDA_HALF) return launch_columns<half_words>(stream, job, (float)(scale / job->unit));
    return job->arithmetic == MRC_CUDA_BYTES ? launch_columns<byte_words>(stream, job, (float)scale)
                                             : launch_columns<float_words>(stream, job, (float)scale);
}

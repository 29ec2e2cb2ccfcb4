/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums over pairs of rows, per feature:
 *
 *   parts_bk = sum over the 32 rows i of block b, all j, of a_ij b_ij |x_ik - z_jk|^norm
 *
 * A thread block has 32 rows and 32 features. A thread has one feature of all rows, in registers, and every eighth
 * center. The weights of 64 centers at a time are in shared memory, where all threads of a warp read the same weight. A
 * chain is 256 terms (32 rows, 8 centers) in the type of the points; chains and threads are added in double, in order.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

enum { ROWS = 32, LANES = 32, GROUPS = 8, CENTERS = 64 };

int64_t mrc_feature_blocks(int64_t rows)
{
    return (rows + ROWS - 1) / ROWS;
}

template <typename real, int norm> static __device__ __forceinline__ real term(real x, real z)
{
    real t = x - z;
    return norm == 2 ? t * t : t < 0 ? -t : t;
}

/* Loads v[j][r], the weights of 64 centers from `first` on; 0 outside the rows and centers. */
template <typename real>
static __device__ void load_weights(const mercer_matrix &a, const mercer_matrix &b, int64_t row, int64_t first,
                                    real (*v)[ROWS + 1])
{
    for (int e = threadIdx.y * LANES + threadIdx.x; e < ROWS * CENTERS; e += LANES * GROUPS) {
        int64_t i = row + e / CENTERS, j = first + e % CENTERS;
        v[e % CENTERS][e / CENTERS] = i < a.rows && j < a.cols ? (real)(mrc_at(a, i, j) * mrc_at(b, i, j)) : (real)0;
    }
}

/* Grid (blocks of rows, blocks of features); thread block (32 features, 8 groups of centers). */
template <typename real, int norm>
static __global__ void part_features(mercer_matrix x, mercer_matrix z, mercer_matrix a, mercer_matrix b, double *parts)
{
    __shared__ real v[CENTERS][ROWS + 1];
    __shared__ double sums[GROUPS][LANES];
    int64_t row = (int64_t)blockIdx.x * ROWS, k = (int64_t)blockIdx.y * LANES + threadIdx.x;
    real own[ROWS];
    double sum = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) own[r] = row + r < x.rows && k < x.cols ? (real)mrc_at(x, row + r, k) : (real)0;
    for (int64_t first = 0; first < z.rows; first += CENTERS) {
        real chain = 0;
        load_weights<real>(a, b, row, first, v);
        __syncthreads();
        for (int j = threadIdx.y; j < CENTERS; j += GROUPS) {
            real center = first + j < z.rows && k < z.cols ? (real)mrc_at(z, first + j, k) : (real)0;
#pragma unroll
            for (int r = 0; r < ROWS; r++) chain += v[j][r] * term<real, norm>(own[r], center);
        }
        sum += (double)chain;
        __syncthreads();
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || k >= x.cols) return;
    for (int g = 1; g < GROUPS; g++) sum += sums[g][threadIdx.x];
    parts[blockIdx.x * x.cols + k] = sum;
}

cudaError_t mrc_launch_feature_sums(cudaStream_t stream, int wide, int norm, mercer_matrix x, mercer_matrix z,
                                    mercer_matrix a, mercer_matrix b, double *parts)
{
    dim3 grid((unsigned)mrc_feature_blocks(x.rows), (unsigned)((x.cols + LANES - 1) / LANES)), block(LANES, GROUPS);
    if (wide && norm == 1)
        part_features<double, 1><<<grid, block, 0, stream>>>(x, z, a, b, parts);
    else if (wide)
        part_features<double, 2><<<grid, block, 0, stream>>>(x, z, a, b, parts);
    else if (norm == 1)
        part_features<float, 1><<<grid, block, 0, stream>>>(x, z, a, b, parts);
    else
        part_features<float, 2><<<grid, block, 0, stream>>>(x, z, a, b, parts);
    return cudaGetLastError();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Factors and inverts diagonal blocks of matrices whose inverses are computed by matrix products (cuda_inverse.c), and
 * mirrors the results.
 *
 *   L L' = A, w <= 64 rows, column by column; four threads share the inner product of a row of L and the pivot row.
 *   M = L^-1 by forward substitution, four threads per column.
 *
 * One thread block per matrix; each matrix takes w^3/3 fused multiply-adds. The 2 w dependent steps dominate the time.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

enum { SIDE = MRC_TRIANGULAR_BLOCK, SHARE = 4, THREADS = SIDE * SHARE, STRIDE = SIDE + 1, TILE = 32 };

/* Returns the sum over the four threads that share a row or a column, which are neighbors in a warp. */
static __device__ __forceinline__ double sum_of_four(double value)
{
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

static __global__ void __launch_bounds__(THREADS) factor_block(const double *a, int64_t a_ld, int64_t a_step, double *m,
                                                               int64_t m_ld, int64_t m_step, int w, double *least)
{
    extern __shared__ double shared[]; /* L, then M */
    double *l = shared, *x = shared + SIDE * STRIDE;
    a += blockIdx.x * a_step, m += blockIdx.x * m_step;
    const int row = threadIdx.x / SHARE, lane = threadIdx.x % SHARE;
    for (int at = threadIdx.x; at < SIDE * SIDE; at += THREADS) {
        int i = at / SIDE, j = at % SIDE;
        l[i * STRIDE + j] = i < w && j <= i ? a[i * a_ld + j] : i == j ? 1 : 0;
        x[i * STRIDE + j] = 0;
    }
    __syncthreads();
    double smallest = INFINITY;
    for (int j = 0; j < w; j++) {
        double sum = 0;
        for (int k = lane; k < j; k += SHARE) sum += l[row * STRIDE + k] * l[j * STRIDE + k];
        sum = l[row * STRIDE + j] - sum_of_four(sum);
        __syncthreads(); /* all threads have read row j */
        if (row == j && lane == 0) l[j * STRIDE + j] = sum;
        __syncthreads();
        double squared = l[j * STRIDE + j], pivot = sqrt(squared);
        smallest = squared < smallest || isnan(squared) ? squared : smallest;
        __syncthreads();
        if (lane == 0 && row >= j) l[row * STRIDE + j] = row == j ? pivot : sum / pivot;
        __syncthreads();
    }
    /* Compute column `row` of M. The threads of a column are in one warp, so __syncwarp is enough. */
    for (int i = 0; i < w; i++) {
        double sum = 0;
        for (int k = row + lane; k < i; k += SHARE) sum += l[i * STRIDE + k] * x[k * STRIDE + row];
        sum = (i == row ? 1 : 0) - sum_of_four(sum);
        if (lane == 0 && i >= row) x[i * STRIDE + row] = sum / l[i * STRIDE + i];
        __syncwarp();
    }
    __syncthreads();
    for (int at = threadIdx.x; at < w * w; at += THREADS) {
        int i = at / w, j = at % w;
        m[i * m_ld + j] = x[i * STRIDE + j];
    }
    if (threadIdx.x > 0) return;
    double before = least[blockIdx.x];
    least[blockIdx.x] = isnan(before) || !(smallest > 0) ? NAN : fmin(before, smallest);
}

/* Copies a tile from below the diagonal to above it; one tile per thread block of 32 x 8 threads. */
static __global__ void mirror(double *a, int64_t n, int64_t ld)
{
    __shared__ double tile[TILE][TILE + 1];
    if (blockIdx.y < blockIdx.x) return;
    a += blockIdx.z * n * ld;
    int64_t row = (int64_t)blockIdx.y * TILE, column = (int64_t)blockIdx.x * TILE;
    for (int i = threadIdx.y; i < TILE; i += blockDim.y)
        if (row + i < n && column + threadIdx.x < n) tile[i][threadIdx.x] = a[(row + i) * ld + column + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < TILE; i += blockDim.y) {
        int64_t to = column + i, from = row + threadIdx.x;
        if (to < n && from < n && to < from) a[to * ld + from] = tile[threadIdx.x][i];
    }
}

cudaError_t mrc_launch_factor_block(cudaStream_t stream, const double *a, int64_t a_ld, int64_t a_step, double *m,
                                    int64_t m_ld, int64_t m_step, int w, int64_t count, double *least)
{
    const int bytes = 2 * SIDE * STRIDE * (int)sizeof(double);
    cudaError_t error = cudaFuncSetAttribute(factor_block, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    factor_block<<<(unsigned)count, THREADS, bytes, stream>>>(a, a_ld, a_step, m, m_ld, m_step, w, least);
    return cudaGetLastError();
}

cudaError_t mrc_launch_mirror(cudaStream_t stream, mercer_matrix a)
{
    unsigned tiles = (unsigned)((a.cols + TILE - 1) / TILE);
    dim3 grid(tiles, tiles, (unsigned)(a.rows / a.cols));
    mirror<<<grid, dim3(TILE, 8), 0, stream>>>((double *)a.data, a.cols, a.ld);
    return cudaGetLastError();
}

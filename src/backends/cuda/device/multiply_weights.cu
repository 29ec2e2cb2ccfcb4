/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel values times weights, summed in double: sums (rows, c) += K (rows, n) W (n, c).
 *
 * Centers are split into groups of 2048. A thread block has 32 rows, 16 columns and one group. It goes through the
 * group 64 centers at a time in shared memory; every thread owns two sums. Groups are then added in order. The sum of a
 * row depends only on its own values and weights, not on other rows or on the distribution of the work.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

enum { GROUP = 2048, ROWS = 32, COLUMNS = 16, DEPTH = 64 };

int64_t mrc_multiply_weights_groups(int64_t cols)
{
    return (cols + GROUP - 1) / GROUP;
}

/* Grid (blocks of rows, groups, blocks of columns); 256 threads. A row has eight threads; thread number `lane` of a row
   has columns lane and lane + 8. Elements outside the matrices are loaded as 0. */
template <typename T> static __global__ void multiply_weights(mercer_matrix k, mercer_matrix w, double *parts)
{
    __shared__ T values[ROWS][DEPTH + 1];
    __shared__ double weights[DEPTH][COLUMNS];
    int64_t row0 = (int64_t)blockIdx.x * ROWS, column0 = (int64_t)blockIdx.z * COLUMNS;
    int64_t first = (int64_t)blockIdx.y * GROUP, end = first + GROUP < k.cols ? first + GROUP : k.cols;
    int row = threadIdx.x / 8, lane = threadIdx.x % 8;
    double sum0 = 0, sum1 = 0;
    for (int64_t j0 = first; j0 < end; j0 += DEPTH) {
        for (int at = threadIdx.x; at < ROWS * DEPTH; at += 256) {
            int64_t i = row0 + at / DEPTH, j = j0 + at % DEPTH;
            values[at / DEPTH][at % DEPTH] = i < k.rows && j < end ? ((const T *)k.data)[i * k.ld + j] : (T)0;
        }
        for (int at = threadIdx.x; at < DEPTH * COLUMNS; at += 256) {
            int64_t j = j0 + at / COLUMNS, c = column0 + at % COLUMNS;
            weights[at / COLUMNS][at % COLUMNS] = j < end && c < w.cols ? mrc_at(w, j, c) : 0;
        }
        __syncthreads();
        for (int j = 0; j < DEPTH; j++) {
            double value = (double)values[row][j];
            sum0 += value * weights[j][lane];
            sum1 += value * weights[j][lane + 8];
        }
        __syncthreads();
    }
    double *out = parts + ((int64_t)blockIdx.y * k.rows + row0 + row) * w.cols + column0;
    if (row0 + row >= k.rows) return;
    if (column0 + lane < w.cols) out[lane] = sum0;
    if (column0 + lane + 8 < w.cols) out[lane + 8] = sum1;
}

static __global__ void add_groups(const double *parts, int64_t groups, int64_t rows, int64_t cols, double *sums,
                                  int64_t ld)
{
    MRC_FOR_EACH(i, j, rows, cols)
    {
        double sum = sums[i * ld + j];
        for (int64_t group = 0; group < groups; group++) sum += parts[(group * rows + i) * cols + j];
        sums[i * ld + j] = sum;
    }
}

static __global__ void store_sums(const double *sums, mercer_matrix y, bool add)
{
    MRC_FOR_EACH(i, j, y.rows, y.cols)
    mrc_put(y, i, j, (add ? mrc_at(y, i, j) : 0) + sums[i * y.cols + j]);
}

cudaError_t mrc_launch_add_groups(cudaStream_t stream, const double *parts, int64_t groups, int64_t rows, int64_t cols,
                                  double *sums, int64_t ld)
{
    add_groups<<<mrc_blocks(rows * cols, MRC_CUDA_GRID), 256, 0, stream>>>(parts, groups, rows, cols, sums, ld);
    return cudaGetLastError();
}

cudaError_t mrc_launch_multiply_weights(cudaStream_t stream, mercer_matrix k, mercer_matrix w, double *parts,
                                        double *sums)
{
    dim3 grid((unsigned)((k.rows + ROWS - 1) / ROWS), (unsigned)mrc_multiply_weights_groups(k.cols),
              (unsigned)((w.cols + COLUMNS - 1) / COLUMNS));
    if (k.dtype == MERCER_F64)
        multiply_weights<double><<<grid, 256, 0, stream>>>(k, w, parts);
    else
        multiply_weights<float><<<grid, 256, 0, stream>>>(k, w, parts);
    return mrc_launch_add_groups(stream, parts, mrc_multiply_weights_groups(k.cols), k.rows, w.cols, sums, w.cols);
}

cudaError_t mrc_launch_store_sums(cudaStream_t stream, const double *sums, mercer_matrix y, int add)
{
    store_sums<<<mrc_blocks(y.rows * y.cols, MRC_CUDA_GRID), 256, 0, stream>>>(sums, y, add != 0);
    return cudaGetLastError();
}

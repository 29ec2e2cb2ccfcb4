/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums over rows and columns, in double. The split of the rows into parts depends only on the number of rows. Within a
 * part every thread adds its rows in order. The sums of the threads and of the parts are then added in a fixed order,
 * without atomics, so two runs are bitwise identical.
 *
 *   column_sums   out_j = factor sum_i x_ij y_ij        row_sqnorms   norms_i = sum_j x_ij^2
 *   row_losses    error, size and right of mrc_row_loss, per row
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

enum { MOST_PARTS = 1024, PART_ROWS = 64, LANES = 32, ROWS = 8 };

int64_t mrc_sum_parts(int64_t rows)
{
    int64_t parts = (rows + PART_ROWS - 1) / PART_ROWS;
    return parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
}

/* Grid (parts, groups of 32 columns); thread block (32 columns, 8 rows). */
static __global__ void part_sums(mercer_matrix x, mercer_matrix y, int64_t rows_each, double *parts)
{
    __shared__ double sums[ROWS][LANES];
    int64_t j = (int64_t)blockIdx.y * LANES + threadIdx.x, first = blockIdx.x * rows_each;
    int64_t end = first + rows_each < x.rows ? first + rows_each : x.rows;
    double sum = 0;
    const float *left = (const float *)x.data + j, *right = (const float *)y.data + j;
    if (j < x.cols && y.data && x.dtype == MERCER_F32 && y.dtype == MERCER_F32)
#pragma unroll 8
        for (int64_t i = first + threadIdx.y; i < end; i += ROWS)
            sum += (double)left[i * x.ld] * (double)right[i * y.ld];
    else if (j < x.cols)
        for (int64_t i = first + threadIdx.y; i < end; i += ROWS)
            sum += mrc_at(x, i, j) * (y.data ? mrc_at(y, i, j) : 1);
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || j >= x.cols) return;
    for (int r = 1; r < ROWS; r++) sum += sums[r][threadIdx.x];
    parts[blockIdx.x * x.cols + j] = sum;
}

/* One thread per column adds its parts in order. */
static __global__ void add_parts(const double *parts, int64_t count, int64_t cols, double factor, double *out)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= cols) return;
    double sum = 0;
    for (int64_t part = 0; part < count; part++) sum += parts[part * cols + j];
    out[j] = sum * factor;
}

/* One warp per row. */
static __global__ void row_sqnorms(mercer_matrix x, double *norms)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (i >= x.rows) return;
    double sum = 0;
    for (int64_t j = lane; j < x.cols; j += 32) sum += mrc_at(x, i, j) * mrc_at(x, i, j);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) norms[i] = sum;
}

cudaError_t mrc_launch_column_sums(cudaStream_t stream, mercer_matrix x, mercer_matrix y, double factor, double *parts,
                                   double *out)
{
    int64_t count = mrc_sum_parts(x.rows), rows_each = (x.rows + count - 1) / count;
    dim3 grid((unsigned)count, (unsigned)((x.cols + LANES - 1) / LANES)), block(LANES, ROWS);
    part_sums<<<grid, block, 0, stream>>>(x, y, rows_each, parts);
    add_parts<<<mrc_blocks(x.cols, INT32_MAX), 256, 0, stream>>>(parts, count, x.cols, factor, out);
    return cudaGetLastError();
}

cudaError_t mrc_launch_row_sqnorms(cudaStream_t stream, mercer_matrix x, double *norms)
{
    row_sqnorms<<<mrc_blocks(x.rows * 32, INT32_MAX), 256, 0, stream>>>(x, norms);
    return cudaGetLastError();
}

/* One thread per row processes the columns in order. Every product is rounded before it is added, as on the host. All
   threads of the block load 32 columns of its 32 rows at a time, so that reads are coalesced. */
static __global__ void row_losses(mercer_matrix f, mercer_matrix y, const double *scale, const double *offset,
                                  double *out)
{
    __shared__ double values[LANES][LANES + 1], targets[LANES][LANES + 1];
    int64_t first = (int64_t)blockIdx.x * LANES, i = first + threadIdx.x, guess = 0, truth = 0;
    double top = 0, top_target = 0, error = 0, size = 0;
    for (int64_t j0 = 0; j0 < y.cols; j0 += LANES) {
        int64_t column = j0 + threadIdx.x, width = j0 + LANES < y.cols ? LANES : y.cols - j0;
        for (int row = threadIdx.y; row < LANES; row += ROWS) {
            if (first + row >= y.rows || column >= y.cols) continue;
            values[row][threadIdx.x] = mrc_at(f, first + row, column);
            targets[row][threadIdx.x] = mrc_at(y, first + row, column);
        }
        __syncthreads();
        for (int64_t k = 0; k < width && threadIdx.y == 0 && i < y.rows; k++) {
            int64_t j = j0 + k;
            double value = values[threadIdx.x][k], target = targets[threadIdx.x][k];
            if (scale) value = __dmul_rn(value, scale[j]), target = __dmul_rn(target, scale[j]);
            double difference = value - target;
            error = __dadd_rn(error, __dmul_rn(difference, difference));
            size = __dadd_rn(size, __dmul_rn(target, target));
            if (offset) value += offset[j], target += offset[j];
            if (j == 0 || value > top) top = value, guess = j;
            if (j == 0 || target > top_target) top_target = target, truth = j;
        }
        __syncthreads();
    }
    if (threadIdx.y != 0 || i >= y.rows) return;
    out[3 * i] = error, out[3 * i + 1] = size, out[3 * i + 2] = guess == truth;
}

cudaError_t mrc_launch_row_losses(cudaStream_t stream, mercer_matrix f, mercer_matrix y, const double *scale,
                                  const double *offset, double *out)
{
    row_losses<<<(unsigned)((y.rows + LANES - 1) / LANES), dim3(LANES, ROWS), 0, stream>>>(f, y, scale, offset, out);
    return cudaGetLastError();
}

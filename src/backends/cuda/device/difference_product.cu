/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Y = K W of a kernel of absolute differences in one kernel: sums, values and their products with few weights, before
 * anything leaves the registers.
 *
 *   y_ic = sum_j K(s_ij) w_jc      s as in differences.cuh
 *
 * Centers are cut into groups of 2048 by their number alone. A block of threads takes 128 rows and one group, a tile of
 * 128 centers at a time. A thread adds up its 8 values of each tile in float, 128 of a group in one chain of fused
 * multiply-adds; the 16 threads of a row are then added in double, in a fixed tree, and groups in their order
 * (mrc_launch_add_groups). A row's sums depend on its own values and weights alone. Cost: 2 d operations, one exp and c
 * fused operations for each pair; nothing of K is written.
 */
#include "backends/cuda/device/differences.cuh"
#include "backends/cuda/device/float_forms.cuh"

enum { BY = 8, SIDE = SIDE_THREADS * BY, TILES = 16, MOST_COLUMNS = 8 };

bool mrc_difference_product_takes(const mercer_kernel *kernel, int64_t columns)
{
    return columns <= MOST_COLUMNS && mrc_float_scale(kernel) > 0;
}

/* Weights of the centers of a tile; 0 behind the last of them, and in columns that are not there. */
template <int C> static __device__ void load_weights(float (*to)[C], const mercer_matrix &w, int64_t first)
{
    for (int at = threadIdx.x; at < SIDE * C; at += SIDE_THREADS * SIDE_THREADS) {
        int64_t j = first + at / C;
        to[at / C][at % C] = j < w.rows && at % C < w.cols ? (float)mrc_at(w, j, at % C) : 0;
    }
}

template <typename Step, int C>
static __global__ void __launch_bounds__(SIDE_THREADS *SIDE_THREADS)
    product(mrc_differences job, int64_t length, int id, float scale, mercer_matrix w, double *parts)
{
    __shared__ staged<Step, BY> shared;
    __shared__ float weights[SIDE][C];
    typename Step::sum sum[BY][BY];
    float total[BY][C];
    const int down = threadIdx.x / SIDE_THREADS, across = threadIdx.x % SIDE_THREADS;
    const int64_t i0 = (int64_t)blockIdx.x * SIDE, first = (int64_t)blockIdx.y * SIDE * TILES;
#pragma unroll
    for (int i = 0; i < BY; i++)
#pragma unroll
        for (int c = 0; c < C; c++) total[i][c] = 0;
    for (int64_t j0 = first; j0 < job.cols && j0 < first + SIDE * TILES; j0 += SIDE) {
        __syncthreads(); /* the weights of the tile before have been used */
        load_weights<C>(weights, w, j0);
        /* It waits for all threads after it has begun, so the weights are there when it returns. */
        tile_sums<Step, BY>(shared, (const typename Step::row *)job.a, job.rows, (const typename Step::row *)job.b,
                            job.cols, length, i0, j0, 1, sum);
#pragma unroll
        for (int j = 0; j < BY; j++) {
            const float *weight = weights[place<BY>(across, j)];
#pragma unroll
            for (int i = 0; i < BY; i++) {
                float value = mrc_float_form(id, (float)sum[i][j], scale);
#pragma unroll
                for (int c = 0; c < C; c++) total[i][c] = fmaf(value, weight[c], total[i][c]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < BY; i++) {
        int64_t row = i0 + place<BY>(down, i);
#pragma unroll
        for (int c = 0; c < C; c++) {
            double all = total[i][c];
            for (int step = SIDE_THREADS / 2; step > 0; step /= 2) all += __shfl_xor_sync(0xffffffffu, all, step);
            if (across == 0 && row < job.rows && c < w.cols)
                parts[((int64_t)blockIdx.y * job.rows + row) * w.cols + c] = all;
        }
    }
}

template <typename Step>
static void launch_product(cudaStream_t stream, dim3 grid, const mrc_differences *job, int64_t length, int id,
                           float scale, mercer_matrix w, double *parts)
{
    if (w.cols == 1)
        product<Step, 1><<<grid, SIDE_THREADS * SIDE_THREADS, 0, stream>>>(*job, length, id, scale, w, parts);
    else if (w.cols <= 4)
        product<Step, 4><<<grid, SIDE_THREADS * SIDE_THREADS, 0, stream>>>(*job, length, id, scale, w, parts);
    else
        product<Step, MOST_COLUMNS>
            <<<grid, SIDE_THREADS * SIDE_THREADS, 0, stream>>>(*job, length, id, scale, w, parts);
}

cudaError_t mrc_launch_difference_product(cudaStream_t stream, const mrc_differences *job, const mercer_kernel *kernel,
                                          mercer_matrix w, double *parts, double *sums)
{
    int64_t groups = (job->cols + SIDE * TILES - 1) / (SIDE * TILES);
    dim3 grid((unsigned)((job->rows + SIDE - 1) / SIDE), (unsigned)groups);
    float scale = mrc_float_scale(kernel);
    if (job->arithmetic == MRC_CUDA_BYTES)
        launch_product<l1_bytes>(stream, grid, job, job->width / 4, kernel->id, scale, w, parts);
    else
        launch_product<l1_float>(stream, grid, job, job->width, kernel->id, scale, w, parts);
    return mrc_launch_add_groups(stream, parts, groups, job->rows * w.cols, sums);
}

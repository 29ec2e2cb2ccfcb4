/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of |differences|^p of packed rows, stored: one block of threads for each tile. Math: differences.cuh. */
#include "backends/cuda/device/differences.cuh"

template <typename Step, int BY>
static __global__ void __launch_bounds__(SIDE_THREADS *SIDE_THREADS)
    differences(const typename Step::row *a, int64_t rows, const typename Step::row *b, int64_t cols, int64_t length,
                double power, typename Step::out *out, int64_t ld)
{
    __shared__ staged<Step, BY> shared;
    typename Step::sum sum[BY][BY];
    const int down = threadIdx.x / SIDE_THREADS, across = threadIdx.x % SIDE_THREADS;
    int64_t i0 = (int64_t)blockIdx.x * SIDE_THREADS * BY, j0 = (int64_t)blockIdx.y * SIDE_THREADS * BY;
    tile_sums<Step, BY>(shared, a, rows, b, cols, length, i0, j0, power, sum);
#pragma unroll
    for (int i = 0; i < BY; i++)
#pragma unroll
        for (int j = 0; j < BY; j++) {
            int64_t at_i = i0 + place<BY>(down, i), at_j = j0 + place<BY>(across, j);
            if (at_i < rows && at_j < cols) out[at_i * ld + at_j] = (typename Step::out)sum[i][j];
        }
}

/* `length`: elements of a packed row as Step takes them. */
template <typename Step, int BY> static void launch(cudaStream_t stream, const mrc_differences *job, int64_t length)
{
    enum { SIDE = SIDE_THREADS * BY };
    dim3 grid((unsigned)((job->rows + SIDE - 1) / SIDE), (unsigned)((job->cols + SIDE - 1) / SIDE));
    differences<Step, BY><<<grid, SIDE_THREADS * SIDE_THREADS, 0, stream>>>(
        (const typename Step::row *)job->a, job->rows, (const typename Step::row *)job->b, job->cols, length,
        job->power, (typename Step::out *)job->sums, job->ld);
}

cudaError_t mrc_launch_differences(cudaStream_t stream, const mrc_differences *job)
{
    if (job->arithmetic == MRC_CUDA_BYTES)
        launch<l1_bytes, 8>(stream, job, job->width / 4);
    else if (job->arithmetic == MRC_CUDA_F64 && job->power == 1)
        launch<l1_double, 4>(stream, job, job->width);
    else if (job->arithmetic == MRC_CUDA_F64)
        launch<powers<double>, 4>(stream, job, job->width);
    else if (job->power == 1)
        launch<l1_float, 8>(stream, job, job->width);
    else
        launch<powers<float>, 4>(stream, job, job->width);
    return cudaGetLastError();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operands of the products: rows in one type, centred, padded with zeros, and their squared norms.
 *
 *   real    a = x - o, taken in double and rounded once; |a|^2 of the rounded coordinates, summed in double
 *   bytes   a = x - 128 as a signed byte, |a|^2 and sum a, exact
 *
 * A warp for each row; cost rows * width, memory-bound.
 */
#include "cuda/elements.cuh"
#include "cuda/launch.h"

template <typename T>
static __global__ void pack(mercer_matrix x, const double *origin, int64_t width, T *rows, double *norms, double *sums)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (i >= x.rows) return;
    double norm = 0, sum = 0;
    for (int64_t k = lane; k < width; k += 32) {
        double value = k < x.cols ? mrc_at(x, i, k) - (origin ? origin[k] : 0) : 0;
        if (sizeof(T) == 1) value = k < x.cols ? mrc_at(x, i, k) - 128 : 0;
        T rounded = (T)value;
        rows[i * width + k] = rounded;
        norm += (double)rounded * (double)rounded;
        sum += (double)rounded;
    }
    for (int step = 16; step > 0; step /= 2) {
        norm += __shfl_xor_sync(0xffffffffu, norm, step);
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    if (lane != 0) return;
    norms[i] = norm;
    if (sums) sums[i] = sum;
}

cudaError_t mrc_launch_pack(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, mercer_matrix x, const double *origin,
                            int64_t width, void *rows, double *norms, double *sums)
{
    unsigned blocks = mrc_blocks(x.rows * 32, INT32_MAX);
    if (arithmetic == MRC_CUDA_F32)
        pack<<<blocks, 256, 0, stream>>>(x, origin, width, (float *)rows, norms, sums);
    else if (arithmetic == MRC_CUDA_F64)
        pack<<<blocks, 256, 0, stream>>>(x, origin, width, (double *)rows, norms, sums);
    else
        pack<<<blocks, 256, 0, stream>>>(x, origin, width, (signed char *)rows, norms, sums);
    return cudaGetLastError();
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the first element of a matrix that is not finite, and the largest magnitude of the finite elements. Both are
 * compared as integers (magnitudes of doubles are ordered like their bits), so atomics give the same result in any
 * order.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

typedef unsigned long long word;

static __global__ void scan(mercer_matrix x, word *first, word *largest)
{
    const int64_t count = x.rows * x.cols, step = (int64_t)gridDim.x * blockDim.x;
    const bool dense = x.ld == x.cols;
    word bad = ~(word)0, top = 0;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        double value = dense ? mrc_at(x, 0, at) : mrc_at(x, at / x.cols, at % x.cols);
        word size = (word)__double_as_longlong(fabs(value));
        if (!isfinite(value))
            bad = (word)at < bad ? (word)at : bad;
        else
            top = size > top ? size : top;
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        word other = __shfl_xor_sync(0xffffffffu, bad, lanes), size = __shfl_xor_sync(0xffffffffu, top, lanes);
        bad = other < bad ? other : bad;
        top = size > top ? size : top;
    }
    if (threadIdx.x % 32 != 0) return;
    if (bad != ~(word)0) atomicMin(first, bad);
    atomicMax(largest, top);
}

cudaError_t mrc_launch_scan(cudaStream_t stream, mercer_matrix x, mrc_scanned *out)
{
    cudaError_t error = cudaMemsetAsync(&out->first, 0xff, sizeof out->first, stream);
    if (error == cudaSuccess) error = cudaMemsetAsync(&out->largest, 0, sizeof out->largest, stream);
    if (error != cudaSuccess) return error;
    scan<<<mrc_blocks(x.rows * x.cols, MRC_CUDA_GRID), 256, 0, stream>>>(x, (word *)&out->first, (word *)&out->largest);
    return cudaGetLastError();
}

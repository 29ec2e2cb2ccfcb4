/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stores the result of a cuBLAS product of split factors (half_precision/split_gemm.c). Splits float matrices into
 * halves for this product:
 *
 *   a f = high + low, f a power of two that scales the largest entry to 2^10 .. 2^11
 *
 * Three parts are stored side by side or one below the other: low, high, high of the left factor and high, low, high of
 * the right factor. Their product contains every term except low low, the small terms first.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

/* *top: the bits of the largest |entry|. Bits of nonnegative floats are ordered like the numbers. */
static __global__ void find_top(mercer_matrix a, unsigned *top)
{
    float largest = 0;
    MRC_FOR_EACH(i, j, a.rows, a.cols)
    largest = fmaxf(largest, fabsf(((const float *)a.data)[i * a.ld + j]));
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    if (threadIdx.x % 32 == 0) atomicMax(top, __float_as_uint(largest));
}

/* Replaces the largest entry, in place, by the power of two that scales it to 2^10 .. 2^11. */
static __global__ void find_factor(float *factor)
{
    int exponent = 0;
    if (*factor > 0) frexpf(*factor, &exponent);
    *factor = ldexpf(1.0f, 11 - (exponent < -100 ? -100 : exponent));
}

/* factors: one per column if columns, otherwise one for all. step: distance of the parts of an entry, in halves. */
static __global__ void split_parts(mercer_matrix a, const float *factors, bool columns, int low_part, int64_t rows,
                                   int64_t cols, int64_t step, int64_t ld, __half *parts)
{
    MRC_FOR_EACH(i, j, rows, cols)
    {
        bool inside = i < a.rows && j < a.cols;
        float value = inside ? ((const float *)a.data)[i * a.ld + j] * factors[columns ? j : 0] : 0;
        __half high = __float2half(value), low = __float2half(value - __half2float(high));
        __half *out = parts + i * ld + j;
        out[0] = low_part == 0 ? low : high;
        out[step] = low_part == 1 ? low : high;
        out[2 * step] = high;
    }
}

static __global__ void store_split(const float *sums, int64_t ld, double alpha, const float *left, const float *right,
                                   double beta, mercer_matrix c)
{
    MRC_FOR_EACH(i, j, c.rows, c.cols)
    {
        float *out = (float *)c.data + i * c.ld + j;
        double value = alpha * (double)(1 / *left) * (double)(1 / right[j]) * (double)sums[i * ld + j];
        *out = (float)(beta != 0 ? value + beta * (double)*out : value);
    }
}

cudaError_t mrc_launch_split_factor(cudaStream_t stream, mercer_matrix a, float *factor)
{
    cudaError_t error = cudaMemsetAsync(factor, 0, sizeof *factor, stream);
    if (error != cudaSuccess) return error;
    find_top<<<mrc_blocks(a.rows * a.cols, MRC_CUDA_GRID), 256, 0, stream>>>(a, (unsigned *)factor);
    find_factor<<<1, 1, 0, stream>>>(factor);
    return cudaGetLastError();
}

cudaError_t mrc_launch_split(cudaStream_t stream, mercer_matrix a, const float *factors, int columns, int low_part,
                             int64_t rows, int64_t cols, int64_t step, int64_t ld, void *parts)
{
    split_parts<<<mrc_blocks(rows * cols, MRC_CUDA_GRID), 256, 0, stream>>>(a, factors, columns != 0, low_part, rows,
                                                                            cols, step, ld, (__half *)parts);
    return cudaGetLastError();
}

cudaError_t mrc_launch_store_split(cudaStream_t stream, const float *sums, int64_t ld, double alpha, const float *left,
                                   const float *right, double beta, mercer_matrix c)
{
    store_split<<<mrc_blocks(c.rows * c.cols, MRC_CUDA_GRID), 256, 0, stream>>>(sums, ld, alpha, left, right, beta, c);
    return cudaGetLastError();
}

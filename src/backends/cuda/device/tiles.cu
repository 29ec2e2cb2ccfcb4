/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels of a half-precision product by tiles, around two matrix products of cuBLAS:
 *
 *   D = X_b Z_b'              halves to floats
 *   K = 2^15 profile(D)       floats to halves, in this file; memory-bound. On Hopper K comes from the fused kernel
 *   S += K (W_high | W_low)   halves to floats
 *   y = 2^-15 (S_high + S_low) / f, in this file
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/half_precision/fused.h"
#include "kernels/formulas.h"

/* Returns 2^15 K for t = scale r^2, with the half forms evaluated in float. */
static __device__ float value_of(int id, float t)
{
    float u;
    switch (id) {
#define SQRT(x)       sqrtf(x)
#define POWER(x)      exp2f(15.0f - (x))
#define RECIPROCAL(x) (1.0f / (x))
#define FORM(ID, scale, value) \
    case MRC_KERNEL_##ID: return value;
        MRC_HALF_FORMS(FORM)
#undef FORM
        default: return NAN; /* unreachable: mrc_fused_scale is 0 for other kernels */
    }
}

/* A thread computes two columns at a time; ld must be even. */
static __global__ void tile_profile(int id, float minus_two_scale, int64_t rows, int64_t cols, int64_t ld,
                                    const float *dots, const float *x_norms, const float *z_norms, __half *values)
{
    int64_t pairs = ld / 2;
    MRC_FOR_EACH(i, pair, rows, pairs)
    {
        int64_t j = 2 * pair;
        float2 dot = *(const float2 *)(dots + i * ld + j);
        float x = x_norms[i];
        float first = j < cols ? value_of(id, fmaxf(fmaf(minus_two_scale, dot.x, x + z_norms[j]), 0.0f)) : 0;
        float second = j + 1 < cols ? value_of(id, fmaxf(fmaf(minus_two_scale, dot.y, x + z_norms[j + 1]), 0.0f)) : 0;
        *(__half2 *)(values + i * ld + j) = __floats2half2_rn(first, second);
    }
}

/* The threads of a row share its padding: thread k clears every c-th column after the parts. */
static __global__ void tile_weights(mercer_matrix w, int count, const float *factors, int64_t width, __half *parts)
{
    MRC_FOR_EACH(i, k, w.rows, w.cols)
    {
        float value = (float)mrc_at(w, i, k) * factors[k];
        __half high = __float2half(value), *row = parts + i * width;
        row[k] = high;
        if (count == 2) row[w.cols + k] = __float2half(value - __half2float(high));
        for (int64_t at = count * w.cols + k; at < width; at += w.cols) row[at] = __half(0);
    }
}

static __global__ void tile_store(const float *sums, int count, const float *factors, int64_t width, mercer_matrix y,
                                  bool add)
{
    MRC_FOR_EACH(i, k, y.rows, y.cols)
    {
        double sum = sums[i * width + k];
        if (count == 2) sum += (double)sums[i * width + y.cols + k];
        mrc_put(y, i, k, (add ? mrc_at(y, i, k) : 0) + sum * (0x1p-15 * (double)(1 / factors[k])));
    }
}

cudaError_t mrc_tile_profile(cudaStream_t stream, const mercer_kernel *kernel, int64_t rows, int64_t cols, int64_t ld,
                             const float *dots, const float *x_norms, const float *z_norms, void *values)
{
    double unit = mrc_fused_unit(kernel);
    float minus_two_scale = (float)(-2 * mrc_fused_scale(kernel) / (unit * unit));
    tile_profile<<<mrc_blocks(rows * ld / 2, MRC_CUDA_GRID), 256, 0, stream>>>(
        kernel->id, minus_two_scale, rows, cols, ld, dots, x_norms, z_norms, (__half *)values);
    return cudaGetLastError();
}

int64_t mrc_tile_width(int64_t c, int count)
{
    return (count * c + 15) / 16 * 16;
}

cudaError_t mrc_tile_weights(cudaStream_t stream, mercer_matrix w, int count, float *factors, void *parts)
{
    int64_t width = mrc_tile_width(w.cols, count);
    cudaError_t error = mrc_fused_find_factors(stream, w, factors);
    if (error != cudaSuccess) return error;
    tile_weights<<<mrc_blocks(w.rows * w.cols, MRC_CUDA_GRID), 256, 0, stream>>>(w, count, factors, width,
                                                                                 (__half *)parts);
    return cudaGetLastError();
}

cudaError_t mrc_tile_store(cudaStream_t stream, const float *sums, int count, const float *factors, mercer_matrix y,
                           int add)
{
    tile_store<<<mrc_blocks(y.rows * y.cols, MRC_CUDA_GRID), 256, 0, stream>>>(
        sums, count, factors, mrc_tile_width(y.cols, count), y, add != 0);
    return cudaGetLastError();
}

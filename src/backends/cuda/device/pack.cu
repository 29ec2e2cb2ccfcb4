/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packs operands of the products: rows in one type, centered and padded with zeros, and their squared norms.
 *
 *   real    a = x - o, computed in double and rounded once; |a|^2 of the rounded coordinates, summed in double
 *   split   the same a times a power of two f, which scales the largest coordinate of the row to 2^11 .. 2^12, as two
 *           halves: a f = high + low, with a relative error of 2^-22 (or 2^-37 of the largest coordinate)
 *   bytes   a = x - 128 as a signed byte, |a|^2 and sum a, exact
 *
 * One warp per row; cost rows * width, memory-bound.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

/* Packs rows as T: float, double, or signed char for bytes, for which the origin is ignored. Sums are exact for bytes
   and unused for the other types. */
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

/* Two passes over the row: its largest coordinate, then the parts. The norm is that of the float coordinates, not of
   the parts. */
static __global__ void pack_split(mercer_matrix x, const double *origin, int64_t width, __half *rows, double *norms,
                                  double *inverse)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (i >= x.rows) return;
    float top = 0;
    for (int64_t k = lane; k < x.cols; k += 32)
        top = fmaxf(top, fabsf((float)(mrc_at(x, i, k) - (origin ? origin[k] : 0))));
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    int exponent = 0;
    if (top > 0) frexp((double)top, &exponent); /* top < 2^exponent */
    double factor = ldexp(1.0, 12 - exponent), norm = 0;
    __half *high = rows + i * 2 * width, *low = high + width;
    for (int64_t k = lane; k < width; k += 32) {
        float value = k < x.cols ? (float)(mrc_at(x, i, k) - (origin ? origin[k] : 0)) : 0;
        double scaled = (double)value * factor;
        __half part = __double2half(scaled);
        high[k] = part;
        low[k] = __double2half(scaled - (double)__half2float(part));
        norm += (double)value * (double)value;
    }
    for (int step = 16; step > 0; step /= 2) norm += __shfl_xor_sync(0xffffffffu, norm, step);
    if (lane != 0) return;
    norms[i] = norm;
    inverse[i] = 1 / factor;
}

cudaError_t mrc_launch_pack(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, int split, mercer_matrix x,
                            const double *origin, int64_t width, void *rows, double *norms, double *sums)
{
    unsigned blocks = mrc_blocks(x.rows * 32, INT32_MAX);
    if (split)
        pack_split<<<blocks, 256, 0, stream>>>(x, origin, width, (__half *)rows, norms, sums);
    else if (arithmetic == MRC_CUDA_F32)
        pack<<<blocks, 256, 0, stream>>>(x, origin, width, (float *)rows, norms, sums);
    else if (arithmetic == MRC_CUDA_F64)
        pack<<<blocks, 256, 0, stream>>>(x, origin, width, (double *)rows, norms, sums);
    else
        pack<<<blocks, 256, 0, stream>>>(x, origin, width, (signed char *)rows, norms, sums);
    return cudaGetLastError();
}

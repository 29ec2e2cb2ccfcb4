/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps before and after the fused product: packing of its operands, and the sum over its units.
 *
 *   rows     x - o rounded once to half; norms of the rounded rows, times scale (1 - 2^-20): products of 16-bit rows
 *            have an error of about 2^-22 |x||z|, so smaller distances count as 0, and equal rows get exactly r = 0
 *   weights  w f = high + low with f a power of two that scales the largest weight of a column to 2^10 .. 2^11
 *   sums     y = 2^-15 sum_units (high + low) / f, in double and in order
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/half_precision/fused.h"
#include "kernels/formulas.h"

#include <math.h>

static const float HUGE_NORM = 1e30f; /* norm of padding rows: their kernel values are 0 */

enum { TOP_ROWS = 8, TOP_COLUMNS = 32 }; /* block dimensions of find_tops */

double mrc_fused_scale(const mercer_kernel *k)
{
    if (!(k->bandwidth > 1e-6 && k->bandwidth < 1e6)) return 0; /* outside, floats of r^2 would over- or underflow */
    switch (k->id) {
#define FORM(ID, scale, value) \
    case MRC_KERNEL_##ID: return scale;
        MRC_HALF_FORMS(FORM)
#undef FORM
        default: return 0;
    }
}

/* With a bandwidth below 128 units, coordinates up to 65504 / 128 = 511 bandwidths fit a half. */
double mrc_fused_unit(const mercer_kernel *kernel)
{
    int exponent;
    frexp(kernel->bandwidth, &exponent);
    return ldexp(1.0, 7 - exponent);
}

/* The sizes for which the kernel is compiled: 8, 24 and 32 columns for up to 4, 12 and 16 outputs. */
int mrc_fused_columns(int64_t c)
{
    return c <= 0 ? 0 : c <= 4 ? 8 : c <= 12 ? 24 : c <= MRC_FUSED_OUTPUTS ? 32 : 0;
}

int64_t mrc_fused_padded(int64_t p)
{
    return (p + MRC_FUSED_CENTERS - 1) / MRC_FUSED_CENTERS * MRC_FUSED_CENTERS;
}

/* Up to 512 tiles are divided into at most 32 units. More tiles are divided into more units, of 16 tiles each, so a
   float sum has at most 4096 terms. */
int64_t mrc_fused_units(int64_t p)
{
    int64_t tiles = mrc_fused_padded(p) / MRC_FUSED_CENTERS, each = (tiles + 31) / 32;
    if (each > MRC_FUSED_UNIT) each = MRC_FUSED_UNIT;
    return (tiles + each - 1) / each;
}

int64_t mrc_fused_cached_rows(int64_t m)
{
    return (m + 15) / 16 * 16;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------- */

/* One warp per row. Norms are those of the rounded rows, so the distance of equal rows is 0. Rows after the last one
   get only a norm. */
static __global__ void pack_half(mercer_matrix x, const double *origin, double unit, double scale, int64_t ld,
                                 __half *rows, float *norms, int64_t padded, int *overflow)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (i >= padded) return;
    float norm = 0;
    for (int64_t k = lane; k < ld && i < x.rows; k += 32) {
        double exact = k < x.cols ? unit * (mrc_at(x, i, k) - (origin ? origin[k] : 0)) : 0;
        __half value = __double2half(exact);
        if (fabs(exact) > 65504) *overflow = 1;
        rows[i * ld + k] = value;
        norm = fmaf(__half2float(value), __half2float(value), norm);
    }
    for (int step = 16; step > 0; step /= 2) norm += __shfl_xor_sync(0xffffffffu, norm, step);
    if (lane == 0) norms[i] = i < x.rows ? (float)((double)norm * scale * (1 - 0x1p-20)) : HUGE_NORM;
}

/* One warp per row; integers, so the order of the sum does not matter. */
static __global__ void pack_bytes(mercer_matrix x, int64_t ld, uint8_t *rows, int32_t *norms, int64_t padded)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (i >= padded) return;
    int32_t norm = 0;
    for (int64_t k = lane; k < ld && i < x.rows; k += 32) {
        uint8_t value = k < x.cols ? ((const uint8_t *)x.data)[i * x.ld + k] : 0;
        rows[i * ld + k] = value;
        norm += (int32_t)value * value;
    }
    for (int step = 16; step > 0; step /= 2) norm += __shfl_xor_sync(0xffffffffu, norm, step);
    if (lane == 0) norms[i] = norm; /* centers after the last one have weight 0 */
}

/* ---- Weights ------------------------------------------------------------------------------------------------- */

/* tops (c): the bits of the largest |w| of each column. Bits of nonnegative floats are ordered like the numbers, and a
   maximum does not depend on the order of the atomics. */
static __global__ void find_tops(mercer_matrix w, unsigned *tops)
{
    __shared__ float all[TOP_ROWS][TOP_COLUMNS];
    int64_t column = (int64_t)blockIdx.y * TOP_COLUMNS + threadIdx.x, step = (int64_t)gridDim.x * TOP_ROWS;
    float top = 0;
    if (column < w.cols)
#pragma unroll 4
        for (int64_t i = (int64_t)blockIdx.x * TOP_ROWS + threadIdx.y; i < w.rows; i += step)
            top = fmaxf(top, fabsf((float)mrc_at(w, i, column)));
    all[threadIdx.y][threadIdx.x] = top;
    __syncthreads();
    if (threadIdx.y != 0 || column >= w.cols) return;
    for (int i = 1; i < TOP_ROWS; i++) top = fmaxf(top, all[i][threadIdx.x]);
    atomicMax(&tops[column], __float_as_uint(top));
}

/* The exponent is limited, because the power of two must fit a float. Columns whose largest weight is below 2^-101 are
   therefore scaled to less than 2^10. */
static __global__ void find_factors(float *factors, int64_t c)
{
    int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= c) return;
    float top = factors[k]; /* the output of find_tops, replaced in place */
    int exponent = 0;
    if (top > 0) frexpf(top, &exponent);
    exponent = exponent < -100 ? -100 : exponent;
    factors[k] = ldexpf(1.0f, 11 - exponent);
}

/* Row k of parts: the high parts of column k of w; row c + k: the remainders. */
static __global__ void pack_weights(mercer_matrix w, int columns, int64_t padded, __half *parts, const float *factors)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= padded) return;
    for (int64_t k = 0; k < w.cols; k++) {
        float value = j < w.rows ? (float)mrc_at(w, j, k) * factors[k] : 0;
        __half high = __float2half(value);
        parts[k * padded + j] = high;
        parts[(w.cols + k) * padded + j] = __float2half(value - __half2float(high));
    }
    for (int64_t k = 2 * w.cols; k < columns; k++) parts[k * padded + j] = __half(0);
}

/* ---- Sums ---------------------------------------------------------------------------------------------------- */

/* Adds the units in order. Columns k and c + k of the sums are the two parts of output k. */
static __global__ void add_units(const float *sums, int64_t units, int64_t m, int columns, const float *factors,
                                 mercer_matrix y, bool add)
{
    MRC_FOR_EACH(i, k, y.rows, y.cols)
    {
        double sum = 0;
        for (int64_t unit = 0; unit < units; unit++) {
            const float *row = sums + (unit * m + i) * columns;
            sum += (double)row[k] + (double)row[y.cols + k];
        }
        mrc_put(y, i, k, (add ? mrc_at(y, i, k) : 0) + sum * (0x1p-15 * (double)(1 / factors[k])));
    }
}

cudaError_t mrc_fused_pack_half(cudaStream_t stream, const mercer_kernel *kernel, mercer_matrix x, const double *origin,
                                int64_t ld, void *rows, float *norms, int64_t padded, int *overflow)
{
    double unit = mrc_fused_unit(kernel), scale = mrc_fused_scale(kernel) / (unit * unit);
    pack_half<<<mrc_blocks(padded * 32, INT32_MAX), 256, 0, stream>>>(x, origin, unit, scale, ld, (__half *)rows, norms,
                                                                      padded, overflow);
    return cudaGetLastError();
}

cudaError_t mrc_fused_pack_bytes(cudaStream_t stream, mercer_matrix x, int64_t ld, void *rows, int32_t *norms,
                                 int64_t padded)
{
    pack_bytes<<<mrc_blocks(padded * 32, INT32_MAX), 256, 0, stream>>>(x, ld, (uint8_t *)rows, norms, padded);
    return cudaGetLastError();
}

cudaError_t mrc_fused_find_factors(cudaStream_t stream, mercer_matrix w, float *factors)
{
    cudaError_t error = cudaMemsetAsync(factors, 0, (size_t)w.cols * sizeof *factors, stream);
    if (error != cudaSuccess) return error;
    int64_t groups = (w.cols + TOP_COLUMNS - 1) / TOP_COLUMNS, blocks = (w.rows + 4 * TOP_ROWS - 1) / (4 * TOP_ROWS);
    int64_t most = MRC_CUDA_GRID / groups > 1 ? MRC_CUDA_GRID / groups : 1;
    dim3 grid((unsigned)(blocks < most ? blocks : most), (unsigned)groups), block(TOP_COLUMNS, TOP_ROWS);
    find_tops<<<grid, block, 0, stream>>>(w, (unsigned *)factors);
    find_factors<<<mrc_blocks(w.cols, INT32_MAX), 256, 0, stream>>>(factors, w.cols);
    return cudaGetLastError();
}

cudaError_t mrc_fused_pack_weights(cudaStream_t stream, mercer_matrix w, int columns, int64_t padded, void *parts,
                                   float *factors)
{
    cudaError_t error = mrc_fused_find_factors(stream, w, factors);
    if (error != cudaSuccess) return error;
    pack_weights<<<mrc_blocks(padded, INT32_MAX), 256, 0, stream>>>(w, columns, padded, (__half *)parts, factors);
    return cudaGetLastError();
}

cudaError_t mrc_fused_add_units(cudaStream_t stream, const float *sums, int64_t units, int columns,
                                const float *factors, mercer_matrix y, int add)
{
    add_units<<<mrc_blocks(y.rows * y.cols, MRC_CUDA_GRID), 256, 0, stream>>>(sums, units, y.rows, columns, factors, y,
                                                                              add != 0);
    return cudaGetLastError();
}

extern "C" {
cudaError_t mrc_fused_half_sm90(cudaStream_t stream, const mrc_fused_job *job);
cudaError_t mrc_fused_bytes_sm90(cudaStream_t stream, const mrc_fused_job *job);
}

cudaError_t mrc_fused_evaluate(cudaStream_t stream, const mrc_fused_job *job)
{
    return job->bytes ? mrc_fused_bytes_sm90(stream, job) : mrc_fused_half_sm90(stream, job);
}

cudaError_t mrc_fused_product(cudaStream_t stream, const mrc_fused_job *job)
{
    cudaError_t error = mrc_fused_evaluate(stream, job);
    if (error != cudaSuccess) return error;
    return mrc_fused_add_units(stream, job->sums, mrc_fused_units(job->p), mrc_fused_columns(job->y.cols), job->factors,
                               job->y, job->add);
}

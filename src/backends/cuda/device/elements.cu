/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Row and element operations. Arithmetic is in double, rounded once to the type of the result, as in the default
 * operations on the host: one thread per element, no sums across threads. Products that are added to something are
 * written with __dmul_rn and __dadd_rn, because the compiler would otherwise fuse the two operations.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

static __global__ void convert(mercer_matrix to, mercer_matrix from)
{
    MRC_FOR_EACH(i, j, to.rows, to.cols)
    mrc_put(to, i, j, mrc_at(from, i, j));
}

/* Copies row from_rows[i] to row to_rows[i]; a NULL list means row i. */
static __global__ void move_rows(mercer_matrix to, const int64_t *to_rows, mercer_matrix from, const int64_t *from_rows,
                                 int64_t count)
{
    MRC_FOR_EACH(i, j, count, to.cols)
    {
        int64_t target = to_rows ? to_rows[i] : i, origin = from_rows ? from_rows[i] : i;
        int64_t at = target * to.ld + j, source = origin * from.ld + j;
        if (to.dtype != from.dtype) {
            mrc_put(to, target, j, mrc_at(from, origin, j));
            continue;
        }
        switch (to.dtype) {
            case MERCER_F64: ((double *)to.data)[at] = ((const double *)from.data)[source]; break;
            case MERCER_F32: ((float *)to.data)[at] = ((const float *)from.data)[source]; break;
            case MERCER_F16: ((uint16_t *)to.data)[at] = ((const uint16_t *)from.data)[source]; break;
            default: ((uint8_t *)to.data)[at] = ((const uint8_t *)from.data)[source]; break;
        }
    }
}

/* The rows are distinct, so no two threads add to the same element. */
static __global__ void scatter_add(mercer_matrix to, mercer_matrix from, const int64_t *rows, double factor)
{
    MRC_FOR_EACH(i, j, from.rows, from.cols)
    mrc_put(to, rows[i], j, __dadd_rn(mrc_at(to, rows[i], j), __dmul_rn(factor, mrc_at(from, i, j))));
}

static __global__ void axpby(double a, mercer_matrix x, double b, mercer_matrix y)
{
    MRC_FOR_EACH(i, j, y.rows, y.cols)
    {
        double value = __dmul_rn(a, mrc_at(x, i, j));
        if (b != 0) value = __dadd_rn(value, __dmul_rn(b, mrc_at(y, i, j)));
        mrc_put(y, i, j, value);
    }
}

static __global__ void scale(mercer_matrix x, const double *factors, bool columns)
{
    MRC_FOR_EACH(i, j, x.rows, x.cols)
    mrc_put(x, i, j, factors[columns ? j : i] * mrc_at(x, i, j));
}

static __global__ void add_columns(mercer_matrix x, const double *factors, mercer_matrix y)
{
    MRC_FOR_EACH(i, j, y.rows, y.cols)
    mrc_put(y, i, j, __dadd_rn(mrc_at(y, i, j), __dmul_rn(mrc_at(x, i, j), factors[j])));
}

/* Rounds 24 significant bits to 11, ties to even: the last bit that stays decides. A carry into the exponent gives the
   next power of two. Infinities and NaN do not change. */
static __global__ void round_half(mercer_matrix x)
{
    MRC_FOR_EACH(i, j, x.rows, x.cols)
    {
        uint32_t *value = (uint32_t *)x.data + i * x.ld + j, bits = *value;
        if ((bits & 0x7f800000u) != 0x7f800000u) *value = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
    }
}

static __global__ void affine(mercer_matrix to, mercer_matrix from, const double *shift, const double *factor,
                              const double *offset)
{
    MRC_FOR_EACH(i, j, to.rows, to.cols)
    {
        double value = mrc_at(from, i, j);
        if (shift) value = __dsub_rn(value, shift[j]);
        if (factor) value = __dmul_rn(value, factor[j]);
        mrc_put(to, i, j, offset ? __dadd_rn(offset[j], value) : value);
    }
}

/* The thread of an element below the diagonal reads and writes this element and its mirror image. */
static __global__ void symmetrize(mercer_matrix a)
{
    double *data = (double *)a.data;
    MRC_FOR_EACH(i, j, a.rows, a.cols)
    {
        if (j >= i) continue;
        double mean = (data[i * a.ld + j] + data[j * a.ld + i]) / 2;
        data[i * a.ld + j] = data[j * a.ld + i] = mean;
    }
}

static __global__ void clear_upper(mercer_matrix a)
{
    MRC_FOR_EACH(i, j, a.rows, a.cols)
    if (j > i) ((double *)a.data)[i * a.ld + j] = 0;
}

/* One block per eigenvector. The sign is chosen so that the first entry of largest magnitude is positive. */
static __global__ void order_vectors(mercer_matrix vectors, const double *columns)
{
    __shared__ double top[256];
    __shared__ int64_t where[256];
    int64_t n = vectors.rows, column = vectors.cols - 1 - blockIdx.x;
    const double *from = columns + column * n;
    double best = -1;
    int64_t at = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        if (fabs(from[i]) > best) best = fabs(from[i]), at = i;
    top[threadIdx.x] = best, where[threadIdx.x] = at;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            int other = threadIdx.x + half;
            if (top[other] > top[threadIdx.x] || (top[other] == top[threadIdx.x] && where[other] < where[threadIdx.x]))
                top[threadIdx.x] = top[other], where[threadIdx.x] = where[other];
        }
        __syncthreads();
    }
    double sign = from[where[0]] < 0 ? -1 : 1;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        ((double *)vectors.data)[i * vectors.ld + blockIdx.x] = sign * from[i];
}

cudaError_t mrc_launch_convert(cudaStream_t stream, mercer_matrix to, mercer_matrix from)
{
    convert<<<mrc_blocks(to.rows * to.cols, MRC_CUDA_GRID), 256, 0, stream>>>(to, from);
    return cudaGetLastError();
}

cudaError_t mrc_launch_gather(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows)
{
    move_rows<<<mrc_blocks(to.rows * to.cols, MRC_CUDA_GRID), 256, 0, stream>>>(to, NULL, from, rows, to.rows);
    return cudaGetLastError();
}

cudaError_t mrc_launch_scatter(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows)
{
    move_rows<<<mrc_blocks(from.rows * from.cols, MRC_CUDA_GRID), 256, 0, stream>>>(to, rows, from, NULL, from.rows);
    return cudaGetLastError();
}

cudaError_t mrc_launch_scatter_add(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows,
                                   double factor)
{
    scatter_add<<<mrc_blocks(from.rows * from.cols, MRC_CUDA_GRID), 256, 0, stream>>>(to, from, rows, factor);
    return cudaGetLastError();
}

cudaError_t mrc_launch_axpby(cudaStream_t stream, double a, mercer_matrix x, double b, mercer_matrix y)
{
    axpby<<<mrc_blocks(y.rows * y.cols, MRC_CUDA_GRID), 256, 0, stream>>>(a, x, b, y);
    return cudaGetLastError();
}

cudaError_t mrc_launch_scale(cudaStream_t stream, mercer_matrix x, const double *factors, bool columns)
{
    scale<<<mrc_blocks(x.rows * x.cols, MRC_CUDA_GRID), 256, 0, stream>>>(x, factors, columns);
    return cudaGetLastError();
}

cudaError_t mrc_launch_add_columns(cudaStream_t stream, mercer_matrix x, const double *factors, mercer_matrix y)
{
    add_columns<<<mrc_blocks(y.rows * y.cols, MRC_CUDA_GRID), 256, 0, stream>>>(x, factors, y);
    return cudaGetLastError();
}

cudaError_t mrc_launch_round_half(cudaStream_t stream, mercer_matrix x)
{
    round_half<<<mrc_blocks(x.rows * x.cols, MRC_CUDA_GRID), 256, 0, stream>>>(x);
    return cudaGetLastError();
}

cudaError_t mrc_launch_affine(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const double *shift,
                              const double *factor, const double *offset)
{
    affine<<<mrc_blocks(to.rows * to.cols, MRC_CUDA_GRID), 256, 0, stream>>>(to, from, shift, factor, offset);
    return cudaGetLastError();
}

cudaError_t mrc_launch_symmetrize(cudaStream_t stream, mercer_matrix a)
{
    symmetrize<<<mrc_blocks(a.rows * a.cols, MRC_CUDA_GRID), 256, 0, stream>>>(a);
    return cudaGetLastError();
}

cudaError_t mrc_launch_clear_upper(cudaStream_t stream, mercer_matrix a)
{
    clear_upper<<<mrc_blocks(a.rows * a.cols, MRC_CUDA_GRID), 256, 0, stream>>>(a);
    return cudaGetLastError();
}

cudaError_t mrc_launch_order_vectors(cudaStream_t stream, mercer_matrix vectors, const double *columns)
{
    order_vectors<<<(unsigned)vectors.cols, 256, 0, stream>>>(vectors, columns);
    return cudaGetLastError();
}

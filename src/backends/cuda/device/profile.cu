/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel values from inner products, one thread per pair.
 *
 *   distances   s = |a|^2 + |b|^2 - 2 a.b of the packed rows; pairs with s <= near (|a|^2 + |b|^2) are recomputed from
 *               their coordinates in double, near = 2^-10 (float) or 2^-20 (double). Bytes: exact integers.
 *   differences sums of |x_k - z_k|^p, used directly
 *   inner       t = x.z, |x|^2, |z|^2; for kernels of the angle, nearly parallel pairs are recomputed in double.
 *   values      kernels with a float form (MRC_FLOAT_FORMS) in float, if the values are float and the bandwidth is
 *               moderate; everything else by the double formulas of kernels/formulas.h, rounded once
 *
 * Memory-bound: reads one product and writes one value per pair.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/float_forms.cuh"
#include "backends/cuda/device/launch.h"
#include "kernels/formulas.h"

/* Argument of the CUDA kernels, passed by value: the job and constants derived from it. */
struct profile : mrc_profile_job {
    bool wide, bytes, in_float;
    float scale; /* mrc_float_scale of the kernel */
};

/* Return the kernel value or, for a user's function, its argument: the distance or the inner product. */
static __device__ double of_distance(const mercer_kernel &kernel, double norm, double s)
{
    if (kernel.id != MERCER_KERNEL_CALLBACK_DISTANCE) return mrc_formula_of_distance(&kernel, s);
    return norm == 2 ? sqrt(s) : norm == 1 ? s : pow(s, 1 / norm);
}

static __device__ double of_inner(const mercer_kernel &kernel, double t, double xx, double zz)
{
    return kernel.id == MERCER_KERNEL_CALLBACK_INNER ? t : mrc_formula_of_inner(&kernel, t, xx, zz);
}

/* Accepts the kernels that were in the table at build time: for all others the formulas return NaN. */
bool mrc_cuda_knows_kernel(int32_t id)
{
    return id > MRC_KERNEL_NONE && id < MRC_KERNEL_END;
}

static __device__ double exact_sqdist(const profile &p, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < p.x.cols; k++) {
        double difference = mrc_at(p.x, i, k) - mrc_at(p.z, j, k);
        sum += difference * difference;
    }
    return sum;
}

/* Returns the kernel value of a pair from inner products and norms recomputed from the points. */
static __device__ double exact_inner(const profile &p, int64_t i, int64_t j)
{
    double dot = 0, xx = 0, zz = 0;
    for (int64_t k = 0; k < p.x.cols; k++) {
        double x = mrc_at(p.x, i, k), z = mrc_at(p.z, j, k);
        dot += x * z, xx += x * x, zz += z * z;
    }
    return of_inner(p.kernel, dot, xx, zz);
}

/* Returns the product of packed rows in the units of the points. */
template <typename Dot> static __device__ double dot_of(const profile &p, int64_t i, int64_t j)
{
    double dot = (double)((const Dot *)p.dots)[i * p.dots_ld + j];
    return p.split ? dot * (p.x_sums[i] * p.z_sums[j]) : dot; /* exact: powers of two */
}

/* Returns the squared distance or, if p.direct, dot itself, which is the sum of |differences|^norm. */
static __device__ double sqdist(const profile &p, int64_t i, int64_t j, double dot)
{
    if (p.direct) return dot;
    double all = p.x_norms[i] + p.z_norms[j], s = all - 2 * dot;
    return !p.bytes && s <= (p.wide ? 0x1p-20 : 0x1p-10) * all ? exact_sqdist(p, i, j) : s;
}

static __device__ void distance_value(const profile &p, int64_t i, int64_t j, double dot)
{
    double s = sqdist(p, i, j, dot);
    if (p.in_float)
        ((float *)p.values.data)[i * p.values.ld + j] = mrc_float_form(p.kernel.id, (float)s, p.scale);
    else
        mrc_put(p.values, i, j, of_distance(p.kernel, p.norm, s));
}

static __device__ void inner_value(const profile &p, int64_t i, int64_t j, double dot)
{
    double xx = p.x_norms[i], zz = p.z_norms[j], value;
    if (p.bytes) { /* undo the subtraction of 128 from both rows; exact */
        double d = (double)p.x.cols;
        dot += 128 * (p.x_sums[i] + p.z_sums[j]) + 16384 * d;
        xx += 256 * p.x_sums[i] + 16384 * d;
        zz += 256 * p.z_sums[j] + 16384 * d;
    }
    double bound = (1 - (p.wide ? 0x1p-20 : 0x1p-10)) * xx * zz;
    if (p.angular && !p.bytes && dot * dot > bound)
        value = exact_inner(p, i, j);
    else
        value = of_inner(p.kernel, dot, xx, zz);
    mrc_put(p.values, i, j, value);
}

template <typename Dot> static __global__ void fill(profile p)
{
    MRC_FOR_EACH(i, j, p.values.rows, p.values.cols)
    {
        double dot = dot_of<Dot>(p, i, j);
        if (p.on_distance)
            distance_value(p, i, j, dot);
        else
            inner_value(p, i, j, dot);
    }
}

static profile profile_for(const mrc_profile_job *job)
{
    profile p;
    *(mrc_profile_job *)&p = *job;
    p.wide = job->arithmetic == MRC_CUDA_F64, p.bytes = job->arithmetic == MRC_CUDA_BYTES;
    p.scale = mrc_float_scale(&job->kernel);
    p.in_float = job->values.dtype == MERCER_F32 && !p.wide && p.scale > 0;
    return p;
}

cudaError_t mrc_launch_profile(cudaStream_t stream, const mrc_profile_job *job)
{
    profile p = profile_for(job);
    unsigned blocks = mrc_blocks(job->values.rows * job->values.cols, MRC_CUDA_GRID);
    if (p.wide)
        fill<double><<<blocks, 256, 0, stream>>>(p);
    else if (p.bytes)
        fill<int32_t><<<blocks, 256, 0, stream>>>(p);
    else
        fill<float><<<blocks, 256, 0, stream>>>(p);
    return cudaGetLastError();
}

/* One warp per row; ties go to the smaller center number. */
template <typename Dot>
static __global__ void find_nearest(profile p, int64_t rows, int64_t cols, int64_t first, bool start, int32_t *nearest,
                                    double *best)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (i >= rows) return;
    double top = INFINITY;
    int64_t at = INT64_MAX;
    for (int64_t j = lane; j < cols; j += 32) {
        double s = sqdist(p, i, j, dot_of<Dot>(p, i, j));
        if (s < top || at == INT64_MAX) top = s, at = first + j;
    }
    for (int step = 16; step > 0; step /= 2) {
        double other = __shfl_xor_sync(0xffffffffu, top, step);
        int64_t where = __shfl_xor_sync(0xffffffffu, at, step);
        if (other < top || (other == top && where < at)) top = other, at = where;
    }
    if (lane != 0 || (!start && !(top < best[i]))) return;
    best[i] = top;
    nearest[i] = (int32_t)at;
}

cudaError_t mrc_launch_nearest(cudaStream_t stream, const mrc_profile_job *job, int64_t first, int start,
                               int32_t *nearest, double *best)
{
    profile p = profile_for(job);
    int64_t rows = job->x.rows, cols = job->z.rows;
    unsigned blocks = mrc_blocks(rows * 32, INT32_MAX);
    if (p.wide)
        find_nearest<double><<<blocks, 256, 0, stream>>>(p, rows, cols, first, start != 0, nearest, best);
    else if (p.bytes)
        find_nearest<int32_t><<<blocks, 256, 0, stream>>>(p, rows, cols, first, start != 0, nearest, best);
    else
        find_nearest<float><<<blocks, 256, 0, stream>>>(p, rows, cols, first, start != 0, nearest, best);
    return cudaGetLastError();
}

/* K(x, x) in double: 1 for functions of the distance. */
static __global__ void diagonal(mercer_kernel kernel, bool on_distance, mercer_matrix x, mercer_matrix values)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= x.rows) return;
    double sum = 0;
    for (int64_t k = 0; k < x.cols && !on_distance; k++) sum += mrc_at(x, i, k) * mrc_at(x, i, k);
    mrc_put(values, i, 0, on_distance ? of_distance(kernel, 2, 0) : of_inner(kernel, sum, sum, sum));
}

cudaError_t mrc_launch_diagonal(cudaStream_t stream, const mercer_kernel *kernel, int on_distance, mercer_matrix x,
                                mercer_matrix values)
{
    diagonal<<<mrc_blocks(x.rows, INT32_MAX), 256, 0, stream>>>(*kernel, on_distance != 0, x, values);
    return cudaGetLastError();
}

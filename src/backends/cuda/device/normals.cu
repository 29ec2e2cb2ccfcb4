/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Normal numbers on the device, bitwise identical to random_normal.c: Philox blocks of four words, two atoms of the
 * table per word, z = (4 T[a] + 3 T[b]) / 5. Arithmetic is in integers up to the last multiplication, so rounding
 * cannot differ. Also augmentation of samples, bitwise identical to core/numbers/changes.c: the same operations, each
 * rounded.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

/* Draws four numbers of a sequence, first + 4 b .. first + 4 b + 3. */
static __device__ __forceinline__ void draw_four(const int16_t *atoms, uint64_t seed, int64_t sequence, uint64_t first,
                                                 int64_t b, float out[4])
{
    const float unit = 1.0f / (5 * 4096);
    uint32_t words[4];
    mrc_philox(first / 4 + (uint64_t)b, (uint64_t)sequence, seed, words);
    for (int k = 0; k < 4; k++)
        out[k] = (float)(4 * atoms[words[k] % MRC_NORMAL_ATOMS] + 3 * atoms[words[k] >> 20]) * unit;
}

/* One thread per block of four numbers. */
static __global__ void draw(mercer_matrix x, const int16_t *atoms, uint64_t seed, const int64_t *sequences,
                            uint64_t first)
{
    int64_t blocks = (x.cols + 3) / 4;
    MRC_FOR_EACH(i, b, x.rows, blocks)
    {
        float four[4];
        draw_four(atoms, seed, sequences[i], first, b, four);
        float *row = (float *)x.data + i * x.ld;
        for (int k = 0; k < 4 && 4 * b + k < x.cols; k++) row[4 * b + k] = four[k];
    }
}

cudaError_t mrc_launch_normals(cudaStream_t stream, mercer_matrix x, const int16_t *atoms, uint64_t seed,
                               const int64_t *sequences, uint64_t first)
{
    draw<<<mrc_blocks(x.rows * ((x.cols + 3) / 4), MRC_CUDA_GRID), 256, 0, stream>>>(x, atoms, seed, sequences, first);
    return cudaGetLastError();
}

/* ---- Augmentation of samples ----------------------------------------------------------------------------------- */

/* Convert an element to float and back, as core/numbers/changes.c does. */
static __device__ __forceinline__ float widened(uint8_t x)
{
    return (float)x;
}
static __device__ __forceinline__ float widened(__half x)
{
    return __half2float(x);
}
static __device__ __forceinline__ float widened(float x)
{
    return x;
}
static __device__ __forceinline__ void narrow(uint8_t *to, float value)
{
    *to = mrc_byte_from_float(value);
}
static __device__ __forceinline__ void narrow(__half *to, float value)
{
    *to = __float2half_rn(value);
}
static __device__ __forceinline__ void narrow(float *to, float value)
{
    *to = value;
}

template <typename T> static __device__ __forceinline__ void add_noise(T *to, T x, double sigma, float normal)
{
    narrow(to, mrc_plus_times_f32(widened(x), (float)sigma, normal));
}
static __device__ __forceinline__ void add_noise(double *to, double x, double sigma, float normal)
{
    *to = mrc_plus_times_f64(x, sigma, (double)normal);
}

template <typename T> static __device__ __forceinline__ void mix_two(T *to, T a, T b, double share)
{
    narrow(to, mrc_two_products_f32((float)share, widened(a), (float)(1 - share), widened(b)));
}
static __device__ __forceinline__ void mix_two(double *to, double a, double b, double share)
{
    *to = mrc_two_products_f64(share, a, 1 - share, b);
}

/* The table is copied to shared memory, because the threads of a warp look up distant entries. A thread computes four
   elements at a time. */
template <typename T>
static __global__ void add_noise_rows(mercer_matrix to, mercer_matrix from, const int16_t *atoms, uint64_t seed,
                                      const int64_t *sequences, uint64_t first, double sigma)
{
    __shared__ int16_t table[MRC_NORMAL_ATOMS];
    for (int k = (int)threadIdx.x; k < MRC_NORMAL_ATOMS; k += (int)blockDim.x) table[k] = atoms[k];
    __syncthreads();
    int64_t blocks = (to.cols + 3) / 4;
    MRC_FOR_EACH(i, b, to.rows, blocks)
    {
        float four[4];
        draw_four(table, seed, sequences[i], first, b, four);
        const T *source = (const T *)from.data + i * from.ld;
        T *row = (T *)to.data + i * to.ld;
        for (int k = 0; k < 4 && 4 * b + k < to.cols; k++)
            add_noise(row + 4 * b + k, source[4 * b + k], sigma, four[k]);
    }
}

template <typename T>
static __global__ void move_rows(mercer_matrix to, mercer_matrix from, mrc_image_shape image,
                                 const mrc_image_move *moves)
{
    MRC_FOR_EACH(i, j, to.rows, to.cols)
    {
        int64_t source = mrc_moved_from(image, moves[i], j);
        T value = {};
        if (source >= 0) value = ((const T *)from.data)[i * from.ld + source];
        ((T *)to.data)[i * to.ld + j] = value;
    }
}

template <typename T>
static __global__ void mix_rows(mercer_matrix to, mercer_matrix from, mercer_matrix other, const double *shares)
{
    MRC_FOR_EACH(i, j, to.rows, to.cols)
    mix_two((T *)to.data + i * to.ld + j, ((const T *)from.data)[i * from.ld + j],
            ((const T *)other.data)[i * other.ld + j], shares[i]);
}

template <typename T>
static cudaError_t change_rows(cudaStream_t stream, const mrc_change *change, const int16_t *atoms, mercer_matrix to,
                               mercer_matrix from, mercer_matrix other)
{
    unsigned every = mrc_blocks(to.rows * to.cols, MRC_CUDA_GRID),
             fourth = mrc_blocks(to.rows * ((to.cols + 3) / 4), MRC_CUDA_GRID / 2);
    switch (change->kind) {
        case MRC_CHANGE_NOISE:
            add_noise_rows<T><<<fourth, 256, 0, stream>>>(to, from, atoms, change->seed, change->sequences,
                                                          change->first, change->sigma);
            break;
        case MRC_CHANGE_MOVE: move_rows<T><<<every, 256, 0, stream>>>(to, from, change->image, change->moves); break;
        case MRC_CHANGE_MIX: mix_rows<T><<<every, 256, 0, stream>>>(to, from, other, change->shares); break;
    }
    return cudaGetLastError();
}

cudaError_t mrc_launch_changes(cudaStream_t stream, const mrc_change *change, const int16_t *atoms, mercer_matrix to,
                               mercer_matrix from, mercer_matrix other)
{
    switch (to.dtype) {
        case MERCER_F64: return change_rows<double>(stream, change, atoms, to, from, other);
        case MERCER_F32: return change_rows<float>(stream, change, atoms, to, from, other);
        case MERCER_F16: return change_rows<__half>(stream, change, atoms, to, from, other);
        default: return change_rows<uint8_t>(stream, change, atoms, to, from, other);
    }
}

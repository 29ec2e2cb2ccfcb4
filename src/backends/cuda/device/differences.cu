/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of |differences|^p of packed rows, stored in memory. Such sums cannot be computed from inner products. They are
 * computed on the CUDA cores in float or double, not as a matrix product.
 *
 *   s_ij = sum_k |a_ik - b_jk|^p      one chain over k = 0, 1, ...; float, double, or for bytes (p = 1) exact
 *
 * A thread block has SIDE = 16 BY rows of each side and goes through the features CHUNK at a time in shared memory,
 * features outermost. A thread has a square of BY x BY pairs in registers, in quarters SIDE / 2 apart, so that the
 * threads of a warp read neighboring words. Cost: 2 operations per feature of a pair (a difference, and a sum of its
 * absolute value, which is free), 2 BY loads from shared memory for BY^2 pairs. Bytes are processed four at a time by
 * __vsadu4. A power other than 1 is computed and summed in double (mrc_power) and rounded once.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"
#include "kernels/formulas.h"

enum { CHUNK = 16, SIDE_THREADS = 16, PAD = 4 };

/* Each struct defines how a feature is added. Types: row (a loaded element), sum (the accumulator), out (the stored
   result). */
template <typename Row> struct as_stored {
    typedef Row row;
    typedef Row out;
    static __device__ Row take(Row value)
    {
        return value;
    }
};

template <typename Row> struct l1 : as_stored<Row> {
    typedef Row sum;
    static __device__ Row add(Row sum, Row a, Row b, double)
    {
        return sum + fabs(a - b); /* the overload for Row */
    }
};

/* Packing subtracted 128 from bytes: take adds it again, which makes them unsigned. */
struct l1_bytes {
    typedef uint32_t row;
    typedef uint32_t sum;
    typedef int32_t out;
    static __device__ uint32_t take(uint32_t four)
    {
        return four ^ 0x80808080u;
    }
    static __device__ uint32_t add(uint32_t sum, uint32_t a, uint32_t b, double)
    {
        return sum + __vsadu4(a, b);
    }
};

template <typename Row> struct powers : as_stored<Row> {
    typedef double sum;
    static __device__ double add(double sum, Row a, Row b, double power)
    {
        return sum + mrc_power(fabs((double)a - (double)b), power);
    }
};

/* Shared memory of a thread block: CHUNK features of its rows of both sides. */
template <typename Step, int BY> struct staged {
    typename Step::row a[CHUNK][SIDE_THREADS * BY + PAD], b[CHUNK][SIDE_THREADS * BY + PAD];
};

/* Loads features k0 .. of rows first .. of one side. Elements outside the rows and features are 0. After the last
   feature both sides are 0, so that their differences are 0. */
template <typename Step, int BY>
static __device__ void load_side(typename Step::row (*to)[SIDE_THREADS * BY + PAD], const typename Step::row *rows,
                                 int64_t count, int64_t length, int64_t first, int64_t k0)
{
    for (int at = threadIdx.x; at < SIDE_THREADS * BY * CHUNK; at += SIDE_THREADS * SIDE_THREADS) {
        int r = at / CHUNK, k = at % CHUNK;
        bool in_range = first + r < count && k0 + k < length;
        to[k][r] = Step::take(in_range ? rows[(first + r) * length + k0 + k] : (typename Step::row)0);
    }
}

/* Returns the row of the side for index i of the BY rows of a thread: two runs of BY / 2 neighboring rows. */
template <int BY> static __device__ int place(int thread, int i)
{
    return i < BY / 2 ? thread * (BY / 2) + i : SIDE_THREADS * (BY / 2) + thread * (BY / 2) + i - BY / 2;
}

/* Computes the sums of one tile: rows i0 .. of a, rows j0 .. of b. All threads of the block must call it. */
template <typename Step, int BY>
static __device__ void tile_sums(staged<Step, BY> &shared, const typename Step::row *a, int64_t rows,
                                 const typename Step::row *b, int64_t cols, int64_t length, int64_t i0, int64_t j0,
                                 double power, typename Step::sum (*sum)[BY])
{
    const int down = threadIdx.x / SIDE_THREADS, across = threadIdx.x % SIDE_THREADS;
#pragma unroll
    for (int i = 0; i < BY; i++)
#pragma unroll
        for (int j = 0; j < BY; j++) sum[i][j] = 0;
    for (int64_t k0 = 0; k0 < length; k0 += CHUNK) {
        __syncthreads(); /* the previous chunk has been used */
        load_side<Step, BY>(shared.a, a, rows, length, i0, k0);
        load_side<Step, BY>(shared.b, b, cols, length, j0, k0);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < CHUNK; k++) {
            typename Step::row left[BY], right[BY];
#pragma unroll
            for (int i = 0; i < BY; i++) left[i] = shared.a[k][place<BY>(down, i)];
#pragma unroll
            for (int j = 0; j < BY; j++) right[j] = shared.b[k][place<BY>(across, j)];
#pragma unroll
            for (int i = 0; i < BY; i++)
#pragma unroll
                for (int j = 0; j < BY; j++) sum[i][j] = Step::add(sum[i][j], left[i], right[j], power);
        }
    }
}

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

/* length: elements of type Step::row per packed row. */
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
        launch<l1<double>, 4>(stream, job, job->width);
    else if (job->arithmetic == MRC_CUDA_F64)
        launch<powers<double>, 4>(stream, job, job->width);
    else if (job->power == 1)
        launch<l1<float>, 8>(stream, job, job->width);
    else
        launch<powers<float>, 4>(stream, job, job->width);
    return cudaGetLastError();
}

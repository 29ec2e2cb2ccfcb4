/* SPDX-License-Identifier: BSD-3-Clause */
/* Element access on the device: the counterparts of mrc_load and mrc_store on the host. */
#ifndef MRC_BACKENDS_CUDA_DEVICE_ELEMENTS_CUH
#define MRC_BACKENDS_CUDA_DEVICE_ELEMENTS_CUH

#include "mercer/mercer.h"

#include <cuda_fp16.h>

#include <stdint.h>

__device__ __forceinline__ double mrc_at(const mercer_matrix &a, int64_t i, int64_t j)
{
    int64_t at = i * a.ld + j;
    switch (a.dtype) {
        case MERCER_F64: return ((const double *)a.data)[at];
        case MERCER_F32: return (double)((const float *)a.data)[at];
        case MERCER_F16: return (double)__half2float(((const __half *)a.data)[at]);
        default: return (double)((const uint8_t *)a.data)[at];
    }
}

__device__ __forceinline__ void mrc_put(const mercer_matrix &a, int64_t i, int64_t j, double value)
{
    int64_t at = i * a.ld + j;
    switch (a.dtype) {
        case MERCER_F64: ((double *)a.data)[at] = value; break;
        case MERCER_F32: ((float *)a.data)[at] = (float)value; break;
        case MERCER_F16: ((__half *)a.data)[at] = __double2half(value); break;
        default: ((uint8_t *)a.data)[at] = (uint8_t)value; break;
    }
}

/* Returns the number of blocks of 256 threads for `work` elements, at most `most`: the threads of a kernel then loop
   over the remaining elements. */
static inline unsigned mrc_blocks(int64_t work, int64_t most)
{
    int64_t blocks = (work + 255) / 256;
    return (unsigned)(blocks < most ? blocks : most);
}

enum { MRC_CUDA_GRID = 132 * 16 }; /* blocks of element-wise kernels, at most: 16 per multiprocessor of an H200 */

/* Loops over the elements (i, j) of a (rows, cols) matrix with all threads of a 1-D grid. */
#define MRC_FOR_EACH(i, j, rows, cols)                                                                     \
    for (int64_t at_ = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i = at_ / (cols), j = at_ % (cols); \
         at_ < (rows) * (cols); at_ += (int64_t)gridDim.x * blockDim.x, i = at_ / (cols), j = at_ % (cols))

#endif

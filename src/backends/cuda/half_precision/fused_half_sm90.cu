/* SPDX-License-Identifier: BSD-3-Clause */
/* The fused product of half-precision rows, for Hopper. */
#include "backends/cuda/half_precision/fused_launch.cuh"

cudaError_t mrc_fused_half_sm90(cudaStream_t stream, const mrc_fused_job *job)
{
    return launch_fused<half_rows>(stream, job, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2);
}

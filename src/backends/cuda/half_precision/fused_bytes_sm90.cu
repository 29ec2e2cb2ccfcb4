/* SPDX-License-Identifier: BSD-3-Clause */
/* The fused product of byte rows, for Hopper: distances are exact integers. */
#include "backends/cuda/half_precision/fused_launch.cuh"

cudaError_t mrc_fused_bytes_sm90(cudaStream_t stream, const mrc_fused_job *job)
{
    return launch_fused<byte_rows>(stream, job, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Products in half precision by tiles: what is launched beside cuBLAS. Rows and norms are those of
   mrc_fused_pack_half. */
#ifndef MRC_BACKENDS_CUDA_DEVICE_TILES_H
#define MRC_BACKENDS_CUDA_DEVICE_TILES_H

#include "backends/cuda/half_precision/fused.h"

#ifdef __cplusplus
extern "C" {
#endif

/* values (rows, ld) f16 = 2^15 K from dots (rows, ld); columns behind cols become 0. ld is even. */
cudaError_t mrc_tile_profile(cudaStream_t stream, const mercer_kernel *kernel, int64_t rows, int64_t cols, int64_t ld,
                             const float *dots, const float *x_norms, const float *z_norms, void *values);
/* parts (p, 2 c) f16: the high parts of w * factors, then the low ones; factors (c). */
cudaError_t mrc_tile_weights(cudaStream_t stream, mercer_matrix w, float *factors, void *parts);
/* y (m, c) = or += the sums (m, 2 c) of both parts. */
cudaError_t mrc_tile_store(cudaStream_t stream, const float *sums, const float *factors, mercer_matrix y, int add);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inverses of the diagonal blocks of a lower triangular matrix: M_bb = L_bb^-1, 32 rows each, and 0 elsewhere.
 *
 * A warp has a block; thread j solves L x = e_j forward in registers. Cost: 32^3 / 6 fused operations for each column.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

enum { SIDE = MRC_TRIANGULAR_BLOCK };

static __global__ void __launch_bounds__(SIDE) invert_diagonal(mercer_matrix l, double *m, int64_t ld)
{
    __shared__ double block[SIDE][SIDE + 1];
    const int64_t first = (int64_t)blockIdx.x * SIDE;
    const int column = threadIdx.x;
    const double *from = (const double *)l.data;
    for (int i = 0; i < SIDE; i++) {
        bool there = first + i < l.rows && first + column < l.rows;
        block[i][column] = there ? from[(first + i) * l.ld + first + column] : i == column ? 1 : 0;
    }
    __syncwarp();
    double x[SIDE];
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
        double sum = i == column ? 1 : 0;
#pragma unroll
        for (int k = 0; k < i; k++) sum -= block[i][k] * x[k];
        x[i] = sum / block[i][i];
    }
#pragma unroll
    for (int i = 0; i < SIDE; i++)
        if (first + i < l.rows && first + column < l.rows) m[(first + i) * ld + first + column] = x[i];
}

cudaError_t mrc_launch_invert_diagonal(cudaStream_t stream, mercer_matrix l, double *m, int64_t ld)
{
    invert_diagonal<<<(unsigned)((l.rows + SIDE - 1) / SIDE), SIDE, 0, stream>>>(l, m, ld);
    return cudaGetLastError();
}

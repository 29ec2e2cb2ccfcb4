/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/signs: the gradient of L1 kernels. A pair has one value for all features, and one sign per
 * feature. This is the body, included for float and for double by each file after it has defined
 *
 *   UK_BITS, UK_F32      the vectors: uk_vectors.h    UK_MR, UK_NV    height of the panels of z, vectors per row
 *   UK_NAME              the function                 UK_FEATURES     features at a time
 *   UK_STEP(sum, x, z, v)   each lane's sum + v where x > z, sum - v where x < z
 *
 *   sums[k * NR + i] = sum_j values[j * NR + i] sign(x[k * NR + i] - z_jk),   one chain of sums over the centers j
 *
 * The features of a block and their sums stay in registers; a step is two comparisons and two additions.
 */
#include "backends/cpu/micro/uk_vectors.h"

#undef UK_NR
#define UK_NR (UK_NV * UK_LANES)

/* Compute the sums of `count` features; count is a constant in all callers. z and x point to the first of these
   features. A panel of z has UK_MR centers and all `depth` features. */
static inline UK_ALWAYS void UK_TYPED(block)(int count, int64_t depth, int64_t panels, const UK_REAL *z,
                                             const UK_REAL *x, const UK_REAL *values, UK_REAL *sums)
{
    UK_VECTOR sum[UK_FEATURES][UK_NV], row[UK_FEATURES][UK_NV];
#pragma GCC unroll 8
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) sum[k][v] = UK_ZERO(), row[k][v] = UK_LOAD(x + k * UK_NR + v * UK_LANES);
    for (int64_t panel = 0; panel < panels; panel++, z += depth * UK_MR)
        for (int r = 0; r < UK_MR; r++, values += UK_NR) {
            UK_VECTOR value[UK_NV];
#pragma GCC unroll 4
            for (int v = 0; v < UK_NV; v++) value[v] = UK_LOAD(values + v * UK_LANES);
#pragma GCC unroll 8
            for (int k = 0; k < count; k++) {
                UK_VECTOR center = UK_FILL(z[k * UK_MR + r]);
#pragma GCC unroll 4
                for (int v = 0; v < UK_NV; v++) sum[k][v] = UK_STEP(sum[k][v], row[k][v], center, value[v]);
            }
        }
#pragma GCC unroll 8
    for (int k = 0; k < count; k++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) UK_STORE(sums + k * UK_NR + v * UK_LANES, sum[k][v]);
}

void UK_NAME(int64_t depth, int64_t panels, const UK_REAL *z, const UK_REAL *x, const UK_REAL *values, UK_REAL *sums)
{
    int64_t k = 0;
    for (; k + UK_FEATURES <= depth; k += UK_FEATURES)
        UK_TYPED(block)(UK_FEATURES, depth, panels, z + k * UK_MR, x + k * UK_NR, values, sums + k * UK_NR);
    for (; k + 2 <= depth; k += 2)
        UK_TYPED(block)(2, depth, panels, z + k * UK_MR, x + k * UK_NR, values, sums + k * UK_NR);
    for (; k < depth; k++) UK_TYPED(block)(1, depth, panels, z + k * UK_MR, x + k * UK_NR, values, sums + k * UK_NR);
}

#undef UK_F32
#undef UK_NAME

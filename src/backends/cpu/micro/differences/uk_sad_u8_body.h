/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/differences: sums of absolute differences, the arguments of L1 kernels. The micro-kernels for
 * float and double are in the body of the products (uk_gemm_body.h), with the step sum + |x - z|: one chain of sums
 * over the features, so results are bitwise identical on every instruction set. This is the body for bytes, which is
 * exact. It is included after
 *
 *   UK_NAME, UK_MR       the function, its height               UK_LANES       64-bit lanes of UK_VECTOR
 *   UK_NV                vectors per row                        UK_ZERO(), UK_LOAD(address), UK_FILL(a 64-bit word)
 *   UK_STEP(sum, a, b)   each lane's sum plus its 8 absolute differences
 *   UK_STORE(address, v) the lanes as floats
 *
 *   C_ij = sum_g sum_{k < 8} |a[g][i][k] - b[g][j][k]|,   below 2^24 for d <= 32768, exact in float; layout: ukernels.h
 *
 * The gradient of an L1 kernel, sums of sign(x_k - z_k) times a value per pair, has its own micro-kernels, on the
 * panels of float and double (micro/signs).
 */
#include <string.h>

#define UK_NR (UK_NV * UK_LANES)

void UK_NAME(int64_t groups, const void *a, const void *b, float *c)
{
    const char *left = a, *right = b;
    UK_VECTOR sum[UK_MR][UK_NV];
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) sum[i][v] = UK_ZERO();
    for (int64_t g = 0; g < groups; g++, left += 8 * UK_MR, right += 8 * UK_NR) {
        UK_VECTOR row[UK_NV];
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) row[v] = UK_LOAD(right + 8 * v * UK_LANES);
#pragma GCC unroll 16
        for (int i = 0; i < UK_MR; i++) {
            int64_t word;
            memcpy(&word, left + 8 * i, sizeof word);
            UK_VECTOR center = UK_FILL(word);
#pragma GCC unroll 4
            for (int v = 0; v < UK_NV; v++) sum[i][v] = UK_STEP(sum[i][v], center, row[v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) UK_STORE(c + i * UK_NR + v * UK_LANES, sum[i][v]);
}

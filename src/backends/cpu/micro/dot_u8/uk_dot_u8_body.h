/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/dot_u8: body of the vector micro-kernels for exact byte products, included after UK_NAME,
 * UK_MR, UK_NV, UK_LANES (32-bit lanes), UK_VECTOR, UK_LOAD, UK_STORE, UK_FILL (a 32-bit word) and UK_STEP(sum, a,
 * b), which adds the products of each lane's group of features to its 32-bit sum. A group (2 int16 or 4 bytes) fills
 * one 32-bit lane; layouts are in ukernels.h.
 *
 *   C_ij = start_j + sum_g <a[g][i], b[g][j]>,   exact in int32 for d <= 32768
 */
#include <string.h>

#define UK_NR (UK_NV * UK_LANES)

void UK_NAME(int64_t groups, const void *a, const void *b, const int32_t *start, int32_t *c)
{
    const char *left = a, *right = b;
    UK_VECTOR sum[UK_MR][UK_NV];
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) sum[i][v] = UK_LOAD(start + v * UK_LANES);
    for (int64_t g = 0; g < groups; g++, left += 4 * UK_MR, right += 4 * UK_NR) {
        UK_VECTOR row[UK_NV];
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) row[v] = UK_LOAD(right + 4 * v * UK_LANES);
#pragma GCC unroll 16
        for (int i = 0; i < UK_MR; i++) {
            int32_t word;
            memcpy(&word, left + 4 * i, sizeof word);
            UK_VECTOR factor = UK_FILL(word);
#pragma GCC unroll 4
            for (int v = 0; v < UK_NV; v++) sum[i][v] = UK_STEP(sum[i][v], factor, row[v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) UK_STORE(c + i * UK_NR + v * UK_LANES, sum[i][v]);
}

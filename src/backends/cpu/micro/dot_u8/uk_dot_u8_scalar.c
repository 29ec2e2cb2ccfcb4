/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact byte products, portable C. Values are packed as int16 in pairs (group 2):
 *   C_ij = sum_g a[g][i][0] b[g][j][0] + a[g][i][1] b[g][j][1],   exact in int32 for d <= 32768 (255^2 d < 2^31)
 */
#include "backends/cpu/micro/ukernels.h"

enum { MR = 4, NR = 4 };

void mrc_uk_dot_u8_4x4_scalar(int64_t groups, const void *a, const void *b, const int32_t *start, int32_t *c)
{
    const int16_t *left = a, *right = b;
    for (int i = 0; i < MR; i++)
        for (int j = 0; j < NR; j++) c[i * NR + j] = start[j];
    for (int64_t g = 0; g < groups; g++, left += 2 * MR, right += 2 * NR)
        for (int i = 0; i < MR; i++)
            for (int j = 0; j < NR; j++)
                c[i * NR + j] += left[2 * i] * right[2 * j] + left[2 * i + 1] * right[2 * j + 1];
}

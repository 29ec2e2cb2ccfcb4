/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences of bytes, portable C. Math: uk_sad_u8_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <stdlib.h>

enum { MR = 4, NR = 4, GROUP = 8 };

void mrc_uk_sad_u8_4x4_scalar(int64_t groups, const void *a, const void *b, float *c)
{
    const uint8_t *left = a, *right = b;
    int32_t sum[MR * NR] = {0};
    for (int64_t g = 0; g < groups; g++, left += GROUP * MR, right += GROUP * NR)
        for (int i = 0; i < MR; i++)
            for (int j = 0; j < NR; j++)
                for (int k = 0; k < GROUP; k++) sum[i * NR + j] += abs(left[GROUP * i + k] - right[GROUP * j + k]);
    for (int i = 0; i < MR * NR; i++) c[i] = (float)sum[i];
}

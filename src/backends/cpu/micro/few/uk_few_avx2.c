/* SPDX-License-Identifier: BSD-3-Clause */
/* Products for few rows, AVX2: 8 or 4 centers, and the same number of features, at a time. Math: uk_few_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_BITS 256
#define UK_MOST 4

/* Transpose 8 x 8: interleave pairs of rows, then pairs of pairs, then halves. */
static inline __attribute__((always_inline)) void transpose_f32(__m256 v[8])
{
    __m256 a[8], b[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(b[i], b[4 + i], 0x20);
        v[4 + i] = _mm256_permute2f128_ps(b[i], b[4 + i], 0x31);
    }
}

#define UK_F32          1
#define UK_NAME         mrc_uk_few_f32_8_avx2
#define UK_NAME_L1      mrc_uk_few_l1_f32_8_avx2
#define UK_TRANSPOSE(v) transpose_f32(v)
#include "backends/cpu/micro/few/uk_few_body.h"

/* Transpose 4 x 4: interleave pairs of rows, then halves. */
static inline __attribute__((always_inline)) void transpose_f64(__m256d v[4])
{
    __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
    __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
    v[0] = _mm256_permute2f128_pd(a, c, 0x20);
    v[1] = _mm256_permute2f128_pd(b, d, 0x20);
    v[2] = _mm256_permute2f128_pd(a, c, 0x31);
    v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

#define UK_F32          0
#define UK_NAME         mrc_uk_few_f64_4_avx2
#define UK_NAME_L1      mrc_uk_few_l1_f64_4_avx2
#define UK_TRANSPOSE(v) transpose_f64(v)
#include "backends/cpu/micro/few/uk_few_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Products for few rows, float, AVX2: 8 centers, 8 features of them at a time. Math: uk_few_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

/* Pairs of rows, pairs of pairs, and then halves. */
static inline __attribute__((always_inline)) void transpose(__m256 v[8])
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

#define UK_NAME              mrc_uk_few_f32_8_avx2
#define UK_NAME_L1           mrc_uk_few_l1_f32_8_avx2
#define UK_REAL              float
#define UK_LANES             8
#define UK_MOST              4
#define UK_VECTOR            __m256
#define UK_ZERO()            _mm256_setzero_ps()
#define UK_LOAD(address)     _mm256_loadu_ps(address)
#define UK_STORE(address, v) _mm256_storeu_ps(address, v)
#define UK_FILL(scalar)      _mm256_set1_ps(scalar)
#define UK_SUB(a, b)         _mm256_sub_ps(a, b)
#define UK_ADD(a, b)         _mm256_add_ps(a, b)
#define UK_ABS(a)            _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define UK_FMA(a, b, c)      _mm256_fmadd_ps(a, b, c)
#define UK_TRANSPOSE(v)      transpose(v)
#include "backends/cpu/micro/few/uk_few_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Products for few rows, float, AVX-512: 16 centers, 16 features of them at a time. Math: uk_few_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

/* Pairs of rows, pairs of pairs, and then blocks of 4 x 4. */
static inline __attribute__((always_inline)) void transpose(__m512 v[16])
{
    __m512 a[16], b[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[i]), _mm512_castps_pd(a[i + 2])));
        b[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[i]), _mm512_castps_pd(a[i + 2])));
        b[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[i + 1]), _mm512_castps_pd(a[i + 3])));
        b[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[i + 1]), _mm512_castps_pd(a[i + 3])));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* b[4 r + i]: column 4 l + i of rows 4 r .. 4 r + 3 in its l-th quarter */
        a[i] = _mm512_shuffle_f32x4(b[i], b[4 + i], 0x88);
        a[4 + i] = _mm512_shuffle_f32x4(b[i], b[4 + i], 0xdd);
        a[8 + i] = _mm512_shuffle_f32x4(b[8 + i], b[12 + i], 0x88);
        a[12 + i] = _mm512_shuffle_f32x4(b[8 + i], b[12 + i], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_f32x4(a[i], a[8 + i], 0x88);
        v[8 + i] = _mm512_shuffle_f32x4(a[i], a[8 + i], 0xdd);
        v[4 + i] = _mm512_shuffle_f32x4(a[4 + i], a[12 + i], 0x88);
        v[12 + i] = _mm512_shuffle_f32x4(a[4 + i], a[12 + i], 0xdd);
    }
}

#define UK_NAME              mrc_uk_few_f32_16_avx512
#define UK_NAME_L1           mrc_uk_few_l1_f32_16_avx512
#define UK_REAL              float
#define UK_LANES             16
#define UK_MOST              8
#define UK_VECTOR            __m512
#define UK_ZERO()            _mm512_setzero_ps()
#define UK_LOAD(address)     _mm512_loadu_ps(address)
#define UK_STORE(address, v) _mm512_storeu_ps(address, v)
#define UK_FILL(scalar)      _mm512_set1_ps(scalar)
#define UK_SUB(a, b)         _mm512_sub_ps(a, b)
#define UK_ADD(a, b)         _mm512_add_ps(a, b)
#define UK_ABS(a)            _mm512_abs_ps(a)
#define UK_FMA(a, b, c)      _mm512_fmadd_ps(a, b, c)
#define UK_TRANSPOSE(v)      transpose(v)
#include "backends/cpu/micro/few/uk_few_body.h"

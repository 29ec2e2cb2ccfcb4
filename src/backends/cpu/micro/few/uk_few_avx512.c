/* SPDX-License-Identifier: BSD-3-Clause */
/* Products for few rows, AVX-512: 16 or 8 centers, and the same number of features, at a time. Math: uk_few_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_BITS 512
#define UK_MOST 8

/* Transpose 16 x 16: interleave pairs of rows, then pairs of pairs, then blocks of 4 x 4. */
static inline __attribute__((always_inline)) void transpose_f32(__m512 v[16])
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
    for (int i = 0; i < 4; i++) { /* the l-th quarter of b[4 r + i] is column 4 l + i of rows 4 r .. 4 r + 3 */
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

#define UK_F32          1
#define UK_NAME         mrc_uk_few_f32_16_avx512
#define UK_NAME_L1      mrc_uk_few_l1_f32_16_avx512
#define UK_TRANSPOSE(v) transpose_f32(v)
#include "backends/cpu/micro/few/uk_few_body.h"

/* Transpose 8 x 8: interleave pairs of rows, then blocks of 2 x 2. */
static inline __attribute__((always_inline)) void transpose_f64(__m512d v[8])
{
    __m512d a[8], b[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_pd(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_pd(v[i], v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) { /* the l-th quarter of a[2 r + i] is column 2 l + i of rows 2 r and 2 r + 1 */
        b[i] = _mm512_shuffle_f64x2(a[i], a[2 + i], 0x88);
        b[2 + i] = _mm512_shuffle_f64x2(a[i], a[2 + i], 0xdd);
        b[4 + i] = _mm512_shuffle_f64x2(a[4 + i], a[6 + i], 0x88);
        b[6 + i] = _mm512_shuffle_f64x2(a[4 + i], a[6 + i], 0xdd);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        v[i] = _mm512_shuffle_f64x2(b[i], b[4 + i], 0x88);
        v[4 + i] = _mm512_shuffle_f64x2(b[i], b[4 + i], 0xdd);
        v[2 + i] = _mm512_shuffle_f64x2(b[2 + i], b[6 + i], 0x88);
        v[6 + i] = _mm512_shuffle_f64x2(b[2 + i], b[6 + i], 0xdd);
    }
}

#define UK_F32          0
#define UK_NAME         mrc_uk_few_f64_8_avx512
#define UK_NAME_L1      mrc_uk_few_l1_f64_8_avx512
#define UK_TRANSPOSE(v) transpose_f64(v)
#include "backends/cpu/micro/few/uk_few_body.h"

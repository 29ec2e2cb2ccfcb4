/* SPDX-License-Identifier: BSD-3-Clause */
/* Products for few rows, double, AVX-512: 8 centers, 8 features of them at a time. Math: uk_few_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

/* Pairs of rows, and then blocks of 2 x 2. */
static inline __attribute__((always_inline)) void transpose(__m512d v[8])
{
    __m512d a[8], b[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_pd(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_pd(v[i], v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) { /* a[2 r + i]: column 2 l + i of rows 2 r, 2 r + 1 in its l-th quarter */
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

#define UK_NAME              mrc_uk_few_f64_8_avx512
#define UK_NAME_L1           mrc_uk_few_l1_f64_8_avx512
#define UK_REAL              double
#define UK_LANES             8
#define UK_MOST              8
#define UK_VECTOR            __m512d
#define UK_ZERO()            _mm512_setzero_pd()
#define UK_LOAD(address)     _mm512_loadu_pd(address)
#define UK_STORE(address, v) _mm512_storeu_pd(address, v)
#define UK_FILL(scalar)      _mm512_set1_pd(scalar)
#define UK_SUB(a, b)         _mm512_sub_pd(a, b)
#define UK_ADD(a, b)         _mm512_add_pd(a, b)
#define UK_ABS(a)            _mm512_abs_pd(a)
#define UK_FMA(a, b, c)      _mm512_fmadd_pd(a, b, c)
#define UK_TRANSPOSE(v)      transpose(v)
#include "backends/cpu/micro/few/uk_few_body.h"

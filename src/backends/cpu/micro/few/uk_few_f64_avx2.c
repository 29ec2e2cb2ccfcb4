/* SPDX-License-Identifier: BSD-3-Clause */
/* Products for few rows, double, AVX2: 4 centers, 4 features of them at a time. Math: uk_few_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

/* Pairs of rows, and then halves. */
static inline __attribute__((always_inline)) void transpose(__m256d v[4])
{
    __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
    __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
    v[0] = _mm256_permute2f128_pd(a, c, 0x20);
    v[1] = _mm256_permute2f128_pd(b, d, 0x20);
    v[2] = _mm256_permute2f128_pd(a, c, 0x31);
    v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

#define UK_NAME              mrc_uk_few_f64_4_avx2
#define UK_NAME_L1           mrc_uk_few_l1_f64_4_avx2
#define UK_REAL              double
#define UK_LANES             4
#define UK_MOST              4
#define UK_VECTOR            __m256d
#define UK_ZERO()            _mm256_setzero_pd()
#define UK_LOAD(address)     _mm256_loadu_pd(address)
#define UK_STORE(address, v) _mm256_storeu_pd(address, v)
#define UK_FILL(scalar)      _mm256_set1_pd(scalar)
#define UK_SUB(a, b)         _mm256_sub_pd(a, b)
#define UK_ADD(a, b)         _mm256_add_pd(a, b)
#define UK_ABS(a)            _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define UK_FMA(a, b, c)      _mm256_fmadd_pd(a, b, c)
#define UK_TRANSPOSE(v)      transpose(v)
#include "backends/cpu/micro/few/uk_few_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of values with the signs of differences, AVX2. Math: uk_signs_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

static inline __attribute__((always_inline)) __m256 step_ps(__m256 sum, __m256 x, __m256 z, __m256 value)
{
    sum = _mm256_add_ps(sum, _mm256_and_ps(value, _mm256_cmp_ps(x, z, _CMP_GT_OQ)));
    return _mm256_sub_ps(sum, _mm256_and_ps(value, _mm256_cmp_ps(x, z, _CMP_LT_OQ)));
}

static inline __attribute__((always_inline)) __m256d step_pd(__m256d sum, __m256d x, __m256d z, __m256d value)
{
    sum = _mm256_add_pd(sum, _mm256_and_pd(value, _mm256_cmp_pd(x, z, _CMP_GT_OQ)));
    return _mm256_sub_pd(sum, _mm256_and_pd(value, _mm256_cmp_pd(x, z, _CMP_LT_OQ)));
}

#define UK_NAME               mrc_uk_signs_f32_avx2
#define UK_BLOCK              block_f32
#define UK_REAL               float
#define UK_MR                 6
#define UK_NV                 2
#define UK_LANES              8
#define UK_FEATURES           2
#define UK_VECTOR             __m256
#define UK_ZERO()             _mm256_setzero_ps()
#define UK_LOAD(address)      _mm256_loadu_ps(address)
#define UK_STORE(address, v)  _mm256_storeu_ps(address, v)
#define UK_FILL(scalar)       _mm256_set1_ps(scalar)
#define UK_STEP(sum, x, z, v) step_ps(sum, x, z, v)
#include "backends/cpu/micro/signs/uk_signs_body.h"

#define UK_NAME               mrc_uk_signs_f64_avx2
#define UK_BLOCK              block_f64
#define UK_REAL               double
#define UK_MR                 6
#define UK_NV                 2
#define UK_LANES              4
#define UK_FEATURES           2
#define UK_VECTOR             __m256d
#define UK_ZERO()             _mm256_setzero_pd()
#define UK_LOAD(address)      _mm256_loadu_pd(address)
#define UK_STORE(address, v)  _mm256_storeu_pd(address, v)
#define UK_FILL(scalar)       _mm256_set1_pd(scalar)
#define UK_STEP(sum, x, z, v) step_pd(sum, x, z, v)
#include "backends/cpu/micro/signs/uk_signs_body.h"

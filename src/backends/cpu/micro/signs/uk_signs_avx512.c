/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of values with the signs of differences, AVX-512. Math: uk_signs_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

static inline __attribute__((always_inline)) __m512 step_ps(__m512 sum, __m512 x, __m512 z, __m512 value)
{
    sum = _mm512_mask_add_ps(sum, _mm512_cmp_ps_mask(x, z, _CMP_GT_OQ), sum, value);
    return _mm512_mask_sub_ps(sum, _mm512_cmp_ps_mask(x, z, _CMP_LT_OQ), sum, value);
}

static inline __attribute__((always_inline)) __m512d step_pd(__m512d sum, __m512d x, __m512d z, __m512d value)
{
    sum = _mm512_mask_add_pd(sum, _mm512_cmp_pd_mask(x, z, _CMP_GT_OQ), sum, value);
    return _mm512_mask_sub_pd(sum, _mm512_cmp_pd_mask(x, z, _CMP_LT_OQ), sum, value);
}

#define UK_NAME               mrc_uk_signs_f32_avx512
#define UK_BLOCK              block_f32
#define UK_REAL               float
#define UK_MR                 12
#define UK_NV                 2
#define UK_LANES              16
#define UK_FEATURES           6
#define UK_VECTOR             __m512
#define UK_ZERO()             _mm512_setzero_ps()
#define UK_LOAD(address)      _mm512_loadu_ps(address)
#define UK_STORE(address, v)  _mm512_storeu_ps(address, v)
#define UK_FILL(scalar)       _mm512_set1_ps(scalar)
#define UK_STEP(sum, x, z, v) step_ps(sum, x, z, v)
#include "backends/cpu/micro/signs/uk_signs_body.h"

#define UK_NAME               mrc_uk_signs_f64_avx512
#define UK_BLOCK              block_f64
#define UK_REAL               double
#define UK_MR                 12
#define UK_NV                 2
#define UK_LANES              8
#define UK_FEATURES           6
#define UK_VECTOR             __m512d
#define UK_ZERO()             _mm512_setzero_pd()
#define UK_LOAD(address)      _mm512_loadu_pd(address)
#define UK_STORE(address, v)  _mm512_storeu_pd(address, v)
#define UK_FILL(scalar)       _mm512_set1_pd(scalar)
#define UK_STEP(sum, x, z, v) step_pd(sum, x, z, v)
#include "backends/cpu/micro/signs/uk_signs_body.h"

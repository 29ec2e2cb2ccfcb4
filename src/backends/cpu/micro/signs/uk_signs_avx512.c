/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of values with the signs of differences, AVX-512. Math: uk_signs_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_BITS               512
#define UK_MR                 12
#define UK_NV                 2
#define UK_FEATURES           6
#define UK_STEP(sum, x, z, v) UK_TYPED(step)(sum, x, z, v)

static inline __attribute__((always_inline)) __m512 step_float(__m512 sum, __m512 x, __m512 z, __m512 value)
{
    sum = _mm512_mask_add_ps(sum, _mm512_cmp_ps_mask(x, z, _CMP_GT_OQ), sum, value);
    return _mm512_mask_sub_ps(sum, _mm512_cmp_ps_mask(x, z, _CMP_LT_OQ), sum, value);
}

static inline __attribute__((always_inline)) __m512d step_double(__m512d sum, __m512d x, __m512d z, __m512d value)
{
    sum = _mm512_mask_add_pd(sum, _mm512_cmp_pd_mask(x, z, _CMP_GT_OQ), sum, value);
    return _mm512_mask_sub_pd(sum, _mm512_cmp_pd_mask(x, z, _CMP_LT_OQ), sum, value);
}

#define UK_F32  1
#define UK_NAME mrc_uk_signs_f32_avx512
#include "backends/cpu/micro/signs/uk_signs_body.h"

#define UK_F32  0
#define UK_NAME mrc_uk_signs_f64_avx512
#include "backends/cpu/micro/signs/uk_signs_body.h"

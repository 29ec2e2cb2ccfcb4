/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences of bytes, AVX2: 8 accumulators, 4 row vectors. Math: uk_sad_u8_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

static inline __attribute__((always_inline)) void store_floats(float *address, __m256i v)
{
    __m256i low = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    _mm_storeu_ps(address, _mm_cvtepi32_ps(_mm256_castsi256_si128(low)));
}

#define UK_NAME              mrc_uk_sad_u8_2x16_avx2
#define UK_MR                2
#define UK_NV                4
#define UK_LANES             4
#define UK_VECTOR            __m256i
#define UK_ZERO()            _mm256_setzero_si256()
#define UK_LOAD(address)     _mm256_loadu_si256((const __m256i *)(address))
#define UK_STORE(address, v) store_floats(address, v)
#define UK_FILL(word)        _mm256_set1_epi64x(word)
#define UK_STEP(sum, a, b)   _mm256_add_epi64(sum, _mm256_sad_epu8(a, b))
#include "backends/cpu/micro/differences/uk_sad_u8_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences of bytes, AVX-512: 24 accumulators, 4 row vectors. Math: uk_sad_u8_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_NAME              mrc_uk_sad_u8_6x32_avx512
#define UK_MR                6
#define UK_NV                4
#define UK_LANES             8
#define UK_VECTOR            __m512i
#define UK_ZERO()            _mm512_setzero_si512()
#define UK_LOAD(address)     _mm512_loadu_si512(address)
#define UK_STORE(address, v) _mm256_storeu_ps(address, _mm512_cvtepi64_ps(v))
#define UK_FILL(word)        _mm512_set1_epi64(word)
#define UK_STEP(sum, a, b)   _mm512_add_epi64(sum, _mm512_sad_epu8(a, b))
#include "backends/cpu/micro/differences/uk_sad_u8_body.h"

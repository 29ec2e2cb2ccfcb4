/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact byte products, AVX2: pairs of int16 by vpmaddwd (vpmaddubsw would saturate). Math: uk_dot_u8_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_NAME              mrc_uk_dot_u8_6x16_avx2
#define UK_MR                6
#define UK_NV                2
#define UK_LANES             8
#define UK_VECTOR            __m256i
#define UK_LOAD(address)     _mm256_loadu_si256((const __m256i *)(address))
#define UK_STORE(address, v) _mm256_storeu_si256((__m256i *)(address), v)
#define UK_FILL(word)        _mm256_set1_epi32(word)
#define UK_STEP(sum, a, b)   _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#include "backends/cpu/micro/dot_u8/uk_dot_u8_body.h"

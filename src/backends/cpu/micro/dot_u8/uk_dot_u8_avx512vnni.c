/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact byte products, AVX-512 VNNI: groups of 4 bytes by vpdpbusd, unsigned b times signed a. Math:
   uk_dot_u8_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_NAME              mrc_uk_dot_u8_12x32_avx512vnni
#define UK_MR                12
#define UK_NV                2
#define UK_LANES             16
#define UK_VECTOR            __m512i
#define UK_LOAD(address)     _mm512_loadu_si512(address)
#define UK_STORE(address, v) _mm512_storeu_si512(address, v)
#define UK_FILL(word)        _mm512_set1_epi32(word)
#define UK_STEP(sum, a, b)   _mm512_dpbusd_epi32(sum, b, a)
#include "backends/cpu/micro/dot_u8/uk_dot_u8_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences, float, AVX-512: 24 accumulators, 2 rows, a mask. Math: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_NAME              mrc_uk_l1_f32_12x32_avx512
#define UK_REAL              float
#define UK_MR                12
#define UK_NV                2
#define UK_LANES             16
#define UK_VECTOR            __m512
#define UK_ZERO()            _mm512_setzero_ps()
#define UK_LOAD(address)     _mm512_loadu_ps(address)
#define UK_STORE(address, v) _mm512_storeu_ps(address, v)
#define UK_FILL(scalar)      _mm512_set1_ps(scalar)
#define UK_STEP(sum, a, b)   _mm512_add_ps(sum, _mm512_abs_ps(_mm512_sub_ps(b, a)))
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

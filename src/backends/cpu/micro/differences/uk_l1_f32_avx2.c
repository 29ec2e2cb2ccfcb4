/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences, float, AVX2: 12 accumulators, 2 rows, a difference. Math: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_NAME              mrc_uk_l1_f32_6x16_avx2
#define UK_REAL              float
#define UK_MR                6
#define UK_NV                2
#define UK_LANES             8
#define UK_VECTOR            __m256
#define UK_ZERO()            _mm256_setzero_ps()
#define UK_LOAD(address)     _mm256_loadu_ps(address)
#define UK_STORE(address, v) _mm256_storeu_ps(address, v)
#define UK_FILL(scalar)      _mm256_set1_ps(scalar)
#define UK_STEP(sum, a, b)   _mm256_add_ps(sum, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_sub_ps(b, a)))
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences, double, AVX2: 12 accumulators, 2 rows, a difference. Math: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_NAME              mrc_uk_l1_f64_6x8_avx2
#define UK_REAL              double
#define UK_MR                6
#define UK_NV                2
#define UK_LANES             4
#define UK_VECTOR            __m256d
#define UK_ZERO()            _mm256_setzero_pd()
#define UK_LOAD(address)     _mm256_loadu_pd(address)
#define UK_STORE(address, v) _mm256_storeu_pd(address, v)
#define UK_FILL(scalar)      _mm256_set1_pd(scalar)
#define UK_STEP(sum, a, b)   _mm256_add_pd(sum, _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_sub_pd(b, a)))
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

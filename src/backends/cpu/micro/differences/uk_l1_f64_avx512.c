/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences, double, AVX-512: 24 accumulators, 2 rows, a mask. Math: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_NAME              mrc_uk_l1_f64_12x16_avx512
#define UK_REAL              double
#define UK_MR                12
#define UK_NV                2
#define UK_LANES             8
#define UK_VECTOR            __m512d
#define UK_ZERO()            _mm512_setzero_pd()
#define UK_LOAD(address)     _mm512_loadu_pd(address)
#define UK_STORE(address, v) _mm512_storeu_pd(address, v)
#define UK_FILL(scalar)      _mm512_set1_pd(scalar)
#define UK_STEP(sum, a, b)   _mm512_add_pd(sum, _mm512_abs_pd(_mm512_sub_pd(b, a)))
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

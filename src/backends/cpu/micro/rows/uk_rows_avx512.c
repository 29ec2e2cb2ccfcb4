/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of stored rows with few columns, AVX-512. Math: uk_rows_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_DOTS               mrc_uk_rows_dots_avx512
#define UK_SUMS               mrc_uk_rows_sums_avx512
#define UK_VECTOR             __m512
#define UK_LANES              16
#define UK_GROUP              12
#define UK_TWO                1
#define UK_STRIP              32
#define UK_AHEAD              8
#define UK_AHEAD_COLUMNS      512
#define UK_ZERO()             _mm512_setzero_ps()
#define UK_LOAD(address)      _mm512_loadu_ps(address)
#define UK_LOAD_HALF(address) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(address)))
#define UK_STORE(address, v)  _mm512_storeu_ps(address, v)
#define UK_FILL(scalar)       _mm512_set1_ps(scalar)
#define UK_FMA(a, b, c)       _mm512_fmadd_ps(a, b, c)
#include "backends/cpu/micro/rows/uk_rows_body.h"

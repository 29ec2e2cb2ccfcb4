/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of stored rows with few columns, AVX2. Math: uk_rows_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <immintrin.h>

#define UK_DOTS               mrc_uk_rows_dots_avx2
#define UK_SUMS               mrc_uk_rows_sums_avx2
#define UK_VECTOR             __m256
#define UK_LANES              8
#define UK_GROUP              6
#define UK_TWO                0
#define UK_STRIP              16
#define UK_AHEAD              8
#define UK_AHEAD_COLUMNS      512
#define UK_ZERO()             _mm256_setzero_ps()
#define UK_LOAD(address)      _mm256_loadu_ps(address)
#define UK_LOAD_HALF(address) _mm256_cvtph_ps(_mm_loadu_si128((const void *)(address)))
#define UK_STORE(address, v)  _mm256_storeu_ps(address, v)
#define UK_FILL(scalar)       _mm256_set1_ps(scalar)
#define UK_FMA(a, b, c)       _mm256_fmadd_ps(a, b, c)
#include "backends/cpu/micro/rows/uk_rows_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of stored rows with few columns, AVX-512. Math: uk_rows_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS               512
#define UK_F32                1
#define UK_DOTS               mrc_uk_rows_dots_f32_avx512
#define UK_SUMS               mrc_uk_rows_sums_f32_avx512
#define UK_GROUP              12
#define UK_TWO                1
#define UK_STRIP              32
#define UK_AHEAD              8
#define UK_AHEAD_COLUMNS      512
#define UK_LOAD_HALF(address) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(address)))
#include "backends/cpu/micro/rows/uk_rows_body.h"

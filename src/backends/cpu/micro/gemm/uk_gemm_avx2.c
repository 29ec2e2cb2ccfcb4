/* SPDX-License-Identifier: BSD-3-Clause */
/* Products and sums of absolute differences, AVX2: the 16 registers hold 12 accumulators, 2 row vectors, and a factor
   or difference. Math and cost: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS 256
#define UK_MR   6
#define UK_NV   2

#define UK_F32         1
#define UK_NAME        mrc_uk_gemm_f32_6x16_avx2
#define UK_NAME_L1     mrc_uk_l1_f32_6x16_avx2
#define UK_NAME_GROUPS mrc_uk_groups_f32_6x16_avx2
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

#define UK_F32         0
#define UK_NAME        mrc_uk_gemm_f64_6x8_avx2
#define UK_NAME_L1     mrc_uk_l1_f64_6x8_avx2
#define UK_NAME_GROUPS mrc_uk_groups_f64_6x8_avx2
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

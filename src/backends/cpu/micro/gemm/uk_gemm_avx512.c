/* SPDX-License-Identifier: BSD-3-Clause */
/* Products and sums of absolute differences, AVX-512: the 32 registers hold 24 accumulators, 2 row vectors and a mask.
   Math and cost: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS 512
#define UK_MR   12
#define UK_NV   2

#define UK_F32         1
#define UK_NAME        mrc_uk_gemm_f32_12x32_avx512
#define UK_NAME_L1     mrc_uk_l1_f32_12x32_avx512
#define UK_NAME_GROUPS mrc_uk_groups_f32_12x32_avx512
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

#define UK_F32         0
#define UK_NAME        mrc_uk_gemm_f64_12x16_avx512
#define UK_NAME_L1     mrc_uk_l1_f64_12x16_avx512
#define UK_NAME_GROUPS mrc_uk_groups_f64_12x16_avx512
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

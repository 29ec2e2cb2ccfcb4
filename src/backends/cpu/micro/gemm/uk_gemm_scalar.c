/* SPDX-License-Identifier: BSD-3-Clause */
/* Products and sums of absolute differences, portable C. Math and cost: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS 0
#define UK_MR   4
#define UK_NV   4

#define UK_F32         1
#define UK_NAME        mrc_uk_gemm_f32_4x4_scalar
#define UK_NAME_L1     mrc_uk_l1_f32_4x4_scalar
#define UK_NAME_GROUPS mrc_uk_groups_f32_4x4_scalar
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

#define UK_F32         0
#define UK_NAME        mrc_uk_gemm_f64_4x4_scalar
#define UK_NAME_L1     mrc_uk_l1_f64_4x4_scalar
#define UK_NAME_GROUPS mrc_uk_groups_f64_4x4_scalar
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

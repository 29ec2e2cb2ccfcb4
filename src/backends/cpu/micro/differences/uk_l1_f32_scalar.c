/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences, float, portable C. Math and cost: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <math.h>

#define UK_NAME              mrc_uk_l1_f32_4x4_scalar
#define UK_REAL              float
#define UK_MR                4
#define UK_NV                4
#define UK_LANES             1
#define UK_VECTOR            float
#define UK_ZERO()            0
#define UK_LOAD(address)     (*(address))
#define UK_STORE(address, v) (*(address) = (v))
#define UK_FILL(scalar)      (scalar)
#define UK_STEP(sum, a, b)   ((sum) + fabsf((b) - (a)))
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

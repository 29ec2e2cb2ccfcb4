/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of absolute differences, double, portable C. Math and cost: uk_gemm_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <math.h>

#define UK_NAME              mrc_uk_l1_f64_4x4_scalar
#define UK_REAL              double
#define UK_MR                4
#define UK_NV                4
#define UK_LANES             1
#define UK_VECTOR            double
#define UK_ZERO()            0
#define UK_LOAD(address)     (*(address))
#define UK_STORE(address, v) (*(address) = (v))
#define UK_FILL(scalar)      (scalar)
#define UK_STEP(sum, a, b)   ((sum) + fabs((b) - (a)))
#include "backends/cpu/micro/gemm/uk_gemm_body.h"

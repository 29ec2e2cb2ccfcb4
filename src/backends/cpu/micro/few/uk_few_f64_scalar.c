/* SPDX-License-Identifier: BSD-3-Clause */
/* Products for few rows, double, portable C: one center at a time. Math: uk_few_body.h. */
#include "backends/cpu/micro/ukernels.h"

#include <math.h>

#define UK_NAME              mrc_uk_few_f64_1_scalar
#define UK_NAME_L1           mrc_uk_few_l1_f64_1_scalar
#define UK_REAL              double
#define UK_LANES             1
#define UK_MOST              4
#define UK_VECTOR            double
#define UK_ZERO()            0.0
#define UK_LOAD(address)     (*(address))
#define UK_STORE(address, v) (*(address) = (v))
#define UK_FILL(scalar)      (scalar)
#define UK_SUB(a, b)         ((a) - (b))
#define UK_ADD(a, b)         ((a) + (b))
#define UK_ABS(a)            fabs(a)
#define UK_FMA(a, b, c)      fma(a, b, c)
#define UK_TRANSPOSE(v)      (void)(v)
#include "backends/cpu/micro/few/uk_few_body.h"

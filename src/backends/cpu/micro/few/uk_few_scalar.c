/* SPDX-License-Identifier: BSD-3-Clause */
/* Products for few rows, portable C: one center at a time. Math: uk_few_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS 0
#define UK_MOST 4

#define UK_F32          1
#define UK_NAME         mrc_uk_few_f32_1_scalar
#define UK_NAME_L1      mrc_uk_few_l1_f32_1_scalar
#define UK_TRANSPOSE(v) (void)(v)
#include "backends/cpu/micro/few/uk_few_body.h"

#define UK_F32          0
#define UK_NAME         mrc_uk_few_f64_1_scalar
#define UK_NAME_L1      mrc_uk_few_l1_f64_1_scalar
#define UK_TRANSPOSE(v) (void)(v)
#include "backends/cpu/micro/few/uk_few_body.h"

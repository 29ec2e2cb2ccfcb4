/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of values with the signs of differences, portable C. Math: uk_signs_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS               0
#define UK_MR                 4
#define UK_NV                 4
#define UK_FEATURES           2
#define UK_STEP(sum, x, z, v) ((sum) + ((x) > (z) ? (v) : (x) < (z) ? -(v) : 0))

#define UK_F32  1
#define UK_NAME mrc_uk_signs_f32_scalar
#include "backends/cpu/micro/signs/uk_signs_body.h"

#define UK_F32  0
#define UK_NAME mrc_uk_signs_f64_scalar
#include "backends/cpu/micro/signs/uk_signs_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of values with the signs of differences, portable C. Math: uk_signs_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_NAME               mrc_uk_signs_f32_scalar
#define UK_BLOCK              block_f32
#define UK_REAL               float
#define UK_MR                 4
#define UK_NV                 4
#define UK_LANES              1
#define UK_FEATURES           2
#define UK_VECTOR             float
#define UK_ZERO()             0
#define UK_LOAD(address)      (*(address))
#define UK_STORE(address, v)  (*(address) = (v))
#define UK_FILL(scalar)       (scalar)
#define UK_STEP(sum, x, z, v) ((sum) + ((x) > (z) ? (v) : (x) < (z) ? -(v) : 0))
#include "backends/cpu/micro/signs/uk_signs_body.h"

#define UK_NAME               mrc_uk_signs_f64_scalar
#define UK_BLOCK              block_f64
#define UK_REAL               double
#define UK_MR                 4
#define UK_NV                 4
#define UK_LANES              1
#define UK_FEATURES           2
#define UK_VECTOR             double
#define UK_ZERO()             0
#define UK_LOAD(address)      (*(address))
#define UK_STORE(address, v)  (*(address) = (v))
#define UK_FILL(scalar)       (scalar)
#define UK_STEP(sum, x, z, v) ((sum) + ((x) > (z) ? (v) : (x) < (z) ? -(v) : 0))
#include "backends/cpu/micro/signs/uk_signs_body.h"

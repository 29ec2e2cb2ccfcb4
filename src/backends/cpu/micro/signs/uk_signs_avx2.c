/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of values with the signs of differences, AVX2. Math: uk_signs_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS                256
#define UK_MR                  6
#define UK_NV                  2
#define UK_FEATURES            2
#define UK_WHERE(v, x, z, how) UK_CALL (and)(v, UK_CALL(cmp)(x, z, how))
#define UK_STEP(sum, x, z, v)  UK_SUB(UK_ADD(sum, UK_WHERE(v, x, z, _CMP_GT_OQ)), UK_WHERE(v, x, z, _CMP_LT_OQ))

#define UK_F32  1
#define UK_NAME mrc_uk_signs_f32_avx2
#include "backends/cpu/micro/signs/uk_signs_body.h"

#define UK_F32  0
#define UK_NAME mrc_uk_signs_f64_avx2
#include "backends/cpu/micro/signs/uk_signs_body.h"

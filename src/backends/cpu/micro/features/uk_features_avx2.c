/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over pairs for one feature, AVX2. Math: uk_features_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS 256

#define UK_F32  1
#define UK_NAME mrc_uk_features_f32_avx2
#include "backends/cpu/micro/features/uk_features_body.h"

#define UK_F32  0
#define UK_NAME mrc_uk_features_f64_avx2
#include "backends/cpu/micro/features/uk_features_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over pairs for one feature, portable C. Math: uk_features_body.h. */
#include "backends/cpu/micro/ukernels.h"

#define UK_BITS 0

#define UK_F32  1
#define UK_NAME mrc_uk_features_f32_scalar
#include "backends/cpu/micro/features/uk_features_body.h"

#define UK_F32  0
#define UK_NAME mrc_uk_features_f64_scalar
#include "backends/cpu/micro/features/uk_features_body.h"

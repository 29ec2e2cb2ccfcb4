/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of stored rows with few columns, portable C. Math: uk_rows_body.h. */
#include "backends/cpu/micro/ukernels.h"
#include "core/numbers/half.h"

#define UK_BITS               0
#define UK_F32                1
#define UK_DOTS               mrc_uk_rows_dots_f32_scalar
#define UK_SUMS               mrc_uk_rows_sums_f32_scalar
#define UK_GROUP              6
#define UK_TWO                0
#define UK_STRIP              16
#define UK_AHEAD              8
#define UK_AHEAD_COLUMNS      512
#define UK_LOAD_HALF(address) mrc_half_to_float(*(address))
#include "backends/cpu/micro/rows/uk_rows_body.h"

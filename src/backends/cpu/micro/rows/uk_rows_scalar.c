/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of stored rows with few columns, portable C. Math: uk_rows_body.h. */
#include "backends/cpu/micro/ukernels.h"
#include "core/numbers/half.h"

#include <math.h>

#define UK_DOTS               mrc_uk_rows_dots_scalar
#define UK_SUMS               mrc_uk_rows_sums_scalar
#define UK_VECTOR             float
#define UK_LANES              1
#define UK_GROUP              6
#define UK_TWO                0
#define UK_STRIP              16
#define UK_AHEAD              8
#define UK_AHEAD_COLUMNS      512
#define UK_ZERO()             0.0f
#define UK_LOAD(address)      (*(address))
#define UK_LOAD_HALF(address) mrc_half_to_float(*(address))
#define UK_STORE(address, v)  (*(address) = (v))
#define UK_FILL(scalar)       (scalar)
#define UK_FMA(a, b, c)       fmaf(a, b, c)
#include "backends/cpu/micro/rows/uk_rows_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed work on tiles in double. Math: tile_body.h. */
#include "backends/cpu/tile.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/half.h"

#include <math.h>
#include <string.h>

#define REAL        double
#define TYPED(name) name##_f64
#define LOAD_ROW    mrc_load_row_f64
#define DTYPE       MERCER_F64
#define MAP_WIDE    map_f64
#define NEAR        MRC_NEAR_F64
#define IS_F32      0
#include "backends/cpu/tile_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed work on tiles in float. Math: tile_body.h. */
#include "backends/cpu/tile.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/half.h"

#include <math.h>
#include <string.h>

#define REAL        float
#define TYPED(name) name##_f32
#define LOAD_ROW    mrc_load_row_f32
#define DTYPE       MERCER_F32
#define MAP_WIDE    map_wide_f32
#define NEAR        MRC_NEAR_F32
#define IS_F32      1
#include "backends/cpu/tile_body.h"

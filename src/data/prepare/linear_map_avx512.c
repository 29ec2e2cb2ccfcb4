/* SPDX-License-Identifier: BSD-3-Clause */
/* A linear map with vectors of eight doubles. */
#include "data/prepare/linear_map.h"

#define MAP_SCOPE
#define ADD_GROUPS mrc_linear_map_add_avx512
#include "data/prepare/linear_map_body.h"

/* SPDX-License-Identifier: BSD-3-Clause */
/* The linear map compiled for AVX-512, where eight doubles are one vector. */
#include "data/prepare/linear_map.h"

#define MAP_SCOPE
#define ADD_GROUPS mrc_linear_map_add_avx512
#include "data/prepare/linear_map_body.h"

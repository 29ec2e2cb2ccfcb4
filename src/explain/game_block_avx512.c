/* SPDX-License-Identifier: BSD-3-Clause */
/* The inner loops of Shapley values compiled for AVX-512. */
#define GAME_SCOPE
#define GAME_OPS mrc_game_ops_avx512
#include "explain/game_block_body.h"

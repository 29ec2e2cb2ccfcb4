/* SPDX-License-Identifier: BSD-3-Clause */
/* The inner loops of Shapley values for the baseline, and the choice of an instruction set. game_block_body.h is
   compiled once per instruction set, each time by a different file, because compiler flags are set per file. */
#define GAME_SCOPE static
#define GAME_OPS   baseline
#include "explain/game_block_body.h"

const mrc_game_ops *mrc_game_ops_for(const mercer_context *context)
{
#if defined(MERCER_X86)
    if (context->isa >= MRC_ISA_AVX512) return &mrc_game_ops_avx512;
    if (context->isa >= MRC_ISA_AVX2) return &mrc_game_ops_avx2;
#else
    (void)context;
#endif
    return &baseline;
}

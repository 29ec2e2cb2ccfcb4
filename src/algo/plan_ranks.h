/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a plan on several ranks. */
#ifndef MRC_ALGO_PLAN_RANKS_H
#define MRC_ALGO_PLAN_RANKS_H

#include "algo/plan.h"

/* Everything has been checked; the shape's types are set. */
void mrc_plan_ranks(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape,
                    const mercer_network *network);

#endif

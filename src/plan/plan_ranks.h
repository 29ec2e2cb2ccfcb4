/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a plan on several ranks. */
#ifndef MRC_PLAN_PLAN_RANKS_H
#define MRC_PLAN_PLAN_RANKS_H

#include "plan/plan.h"

/* Everything has been checked; the shape's types are set. */
void mrc_plan_ranks(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape,
                    const mercer_network *network);

/* The bytes that each rank may use where it computes if the options do not say how many: the smallest share of what
   is free on a rank's device, where those that are on the same one have a part each. 0 where matrices live in host
   memory. Every rank calls it. */
mercer_status mrc_rank_room(mrc_backend *backend, mrc_comm *comm, int64_t *each);

#endif

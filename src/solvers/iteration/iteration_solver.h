/* SPDX-License-Identifier: BSD-3-Clause */
/* The iteration as a solver: its sizes and cost (iteration_plan.c), which the functions that train with it
   (iteration_solver.c) go by. */
#ifndef MRC_SOLVERS_ITERATION_ITERATION_SOLVER_H
#define MRC_SOLVERS_ITERATION_ITERATION_SOLVER_H

#include "solvers/solver.h"

mercer_status mrc_iteration_choose(mrc_planner *planner);
void mrc_iteration_settle(mrc_planner *planner);
void mrc_iteration_cost(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out);

#endif

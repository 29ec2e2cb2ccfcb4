/* SPDX-License-Identifier: BSD-3-Clause */
/* The iteration as a solver: functions that choose its sizes and compute its cost (iteration_plan.c), and bounds on its
   steps, for the training functions in iteration_solver.c. */
#ifndef MRC_SOLVERS_ITERATION_ITERATION_SOLVER_H
#define MRC_SOLVERS_ITERATION_ITERATION_SOLVER_H

#include "solvers/solver.h"

mercer_status mrc_iteration_choose(mrc_planner *planner);
void mrc_iteration_complete_plan(mrc_planner *planner);
void mrc_iteration_cost(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out);

/* step_bounds.c */
/* Compute plain_top and plain_beta of mrc_iteration_options, for gradient descent on the weights. sampled: batches are
   random draws of the data. */
mercer_status mrc_plain_bounds(mrc_centers *centers, const mercer_matrix *sample, double ridge, bool sampled,
                               double *top, double *beta);
/* Raise beta, estimated on the rows `fresh`, to the value that all samples of the stream need. */
mercer_status mrc_raise_beta(mrc_centers *centers, mrc_sample_stream *stream, const mercer_matrix *fresh, double *beta);

#endif

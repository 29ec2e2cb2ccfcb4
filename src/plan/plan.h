/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: turns options and sizes into a plan within a memory budget, and explains its choices. It iterates over the
 * table of solvers, lets each choose its sizes, adds up the costs that the parts report, and chooses a solver once.
 *
 *   plan.c          machine and budget, choice of a solver, refinement and replacement of a plan
 *   plan_options.c  the list of options: values, and the solvers that they apply to
 *   plan_precision.c  whether a training run may round products to half precision
 *   plan_ranks.c    the cost of a plan on several ranks
 */
#ifndef MRC_PLAN_PLAN_H
#define MRC_PLAN_PLAN_H

#include "solvers/solver.h"

/* Returns the default memory budget, given the free bytes of the host or of a device. For host memory the budget is
   half, because other programs use the memory, too. A device is usually used by one program, so only a sixteenth and a
   fixed margin are left free there. */
int64_t mrc_plan_share(bool device, int64_t available);

/* Makes a plan. The planner is pure: a plan is a function of the request, and nothing is logged. Failures are
   returned in *reason: MERCER_ERROR_ARGUMENT for invalid options; MERCER_ERROR_MEMORY, with the largest p that fits,
   if no plan fits the budget. */
mercer_status mrc_make_plan(mrc_plan *out, const mrc_plan_request *request, mrc_reason *reason);
/* Plans a training run from its shape only, without data or kernel matrix. With one shard the assumptions about the
   kernel are conservative; with several shards, which only ranks use, the assumptions are those for a Laplace
   kernel. */
mercer_status mrc_plan_shape(mrc_plan *out, const mrc_machine *machine, const mercer_shape *shape,
                             const mercer_train_options *options, mrc_reason *reason);
/* Returns the solver that the request demands; NULL: the planner chooses. */
const mrc_solver *mrc_plan_named_solver(const mrc_plan_request *request);
/* Returns the largest number of centers below p for which `fits` returns true, or 0. Uses bisection, which assumes that
   memory grows with the number of centers. */
int64_t mrc_plan_largest(int64_t p, bool (*fits)(void *user, int64_t p), void *user);
/* Updates the plan after set-up, when the critical batch and the type of the samples are known. Sizes may change; the
   text then gets a line about the changes (mercer_plan.changes). Solver, projector and epochs stay as planned. */
mercer_status mrc_refine_plan(mrc_plan *plan, const mrc_plan_request *request, mrc_reason *reason);
/* Replaces the plan of a training run that broke down by the plan of another attempt. `why` is the error message of the
   breakdown; the text gets a line with it. */
mercer_status mrc_replace_plan(mrc_plan *plan, const mrc_plan_request *request, const mrc_attempt *attempt,
                               const char *why, mrc_reason *reason);

/* Return whether a training run with solver `row` uses half precision by default; add the line to the plan that
   explains the decision. */
bool mrc_plan_rounds(const mrc_plan_request *request, const mrc_solver *row);
void mrc_plan_say_precision(const mrc_plan_request *request, mrc_plan *plan);
/* Return the root mean square error of a kernel value in half precision. coordinates: mean square of the coordinates,
   measured from the origin in units of the bandwidth. The second function returns the largest acceptable mean squared
   change of predictions for n samples, relative to the loss on held-out rows. plan_precision.c derives both. */
double mrc_rounding_error(double coordinates);
double mrc_rounding_limit(int64_t n);

/* Checks values, names, and that the named solver uses each given option; MERCER_ERROR_ARGUMENT otherwise. */
mercer_status mrc_plan_check_options(const mercer_train_options *options, mrc_reason *reason);
/* Returns the name of the first given option that the solver does not accept; NULL for none. */
const char *mrc_plan_unsuited(const mrc_solver *solver, const mercer_train_options *options);

/* Adds a line to the plan, and a warning where it matters, for every given option that has no effect with the chosen
   solver or projector. */
void mrc_plan_mention_useless(mrc_planner *planner);
/* Adds a warning to the plan, for the trainer to log; further warnings than the plan can hold are dropped. The planner
   itself logs nothing, because plans are also made to compare sizes. */
void mrc_plan_warn(mrc_plan *plan, const char *field, const char *format, ...) MRC_PRINTF(3, 4);

/* Returns the double-precision flops per second that plans assume for this machine. */
double mrc_plan_nominal_rate(const mrc_machine *machine);

/* Computes the cost of a plan on several ranks. The arguments have been checked, and the shape's types are set. */
void mrc_plan_ranks(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape,
                    const mercer_network *network, bool float_factors);

/* Sets *each to the default memory budget per rank in bytes, or to 0 if matrices are in host memory. Ranks on the same
   device divide its free memory equally; the result is the smallest of these shares over all ranks. Collective: all
   ranks must call it. */
mercer_status mrc_rank_memory(mrc_backend *backend, mrc_comm *comm, int64_t *each);

/* Implementation of the public function of the same name with the prefix mercer_. */
const mercer_option *mrc_train_option(int index);

#endif

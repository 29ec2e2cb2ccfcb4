/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: turns options and sizes into a plan, within a memory budget, and says why. It walks the table of solvers, lets
 * each choose its sizes, adds up what the parts say they cost, and picks once.
 *
 *   plan.c          machine and budget, the choice of a solver, what a refinement or a replacement changes
 *   plan_options.c  the list of options: values, and which solvers have a use for them
 *   plan_precision.c  which trainings may round products to half precision
 *   plan_ranks.c    the cost of a plan on several ranks
 *   plan_search.c   which fits begin with a hyperparameter search
 */
#ifndef MRC_PLAN_PLAN_H
#define MRC_PLAN_PLAN_H

#include "solvers/solver.h"

/* Return the share of free memory that a plan uses by default: half of a host's, which does other things too; all of a
   device's except a margin, because it comes in pages and other programs may need a little. */
int64_t mrc_plan_share(bool device, int64_t available);

/* The planner is pure: a plan is a function of the request. It logs nothing, and a failure is a reason for the caller:
   MERCER_ERROR_ARGUMENT for options that make no sense, MERCER_ERROR_MEMORY, naming the largest p that fits, if nothing
   fits the budget. */
mercer_status mrc_make_plan(mrc_plan *out, const mrc_plan_request *request, mrc_reason *reason);
/* The plan of a training of that shape, whose data and kernel matrix nothing is known of: guesses are on the safe side
   for one shard, and those of a Laplace kernel for several, which are for ranks. */
mercer_status mrc_plan_shape(mrc_plan *out, const mrc_machine *machine, const mercer_shape *shape,
                             const mercer_train_options *options, mrc_reason *reason);
/* Whether the solver that would be taken is estimated to be so cheap that others' estimates do not matter. */
bool mrc_plan_is_cheap(const mrc_plan_request *request);
/* Return the largest number of centers below p that fits, by bisection, as more centers need more memory; 0: none. */
int64_t mrc_plan_largest(int64_t p, bool (*fits)(void *user, int64_t p), void *user);
/* The plan with the critical batch, and with what is known of the source by now: sizes change, and its text gains a
   line that begins with "refined:" if they do; solver, projector and epochs stay. */
mercer_status mrc_refine_plan(mrc_plan *plan, const mrc_plan_request *request, mrc_reason *reason);
/* A plan for another solver in place of one that failed, or (NULL) for whichever is best by the request as it is now;
   the text gains a line that begins with "replaced:". */
mercer_status mrc_replace_plan(mrc_plan *plan, const mrc_plan_request *request, const mrc_solver *row, const char *why,
                               mrc_reason *reason);

/* Whether a training by that solver takes half precision of its own accord, and the line that says why or why not. */
bool mrc_plan_rounds(const mrc_plan_request *request, const mrc_solver *row);
void mrc_plan_say_precision(const mrc_plan_request *request, mrc_plan *plan);
/* The error of a kernel value in half precision, from how far coordinates lie from the origin (mean square, in
   bandwidths); and what the squared difference of predictions may be, over their loss on rows that were held back, for
   a model of n samples to stay. */
double mrc_rounding_error(double coordinates);
double mrc_rounding_limit(int64_t n);

/* Check values, names, and whether the named solver uses each given option: MERCER_ERROR_ARGUMENT otherwise. */
mercer_status mrc_plan_check_options(const mercer_train_options *options, mrc_reason *reason);
/* Return the name of the first given option that the solver refuses; NULL for none. */
const char *mrc_plan_unsuited(const mrc_solver *solver, const mercer_train_options *options);

/* A given option that is accepted and has no effect with the chosen solver or projector. */
typedef struct mrc_useless {
    const char *option, *who, *name; /* "projector_block", "projector", "exact" */
    bool warns;                      /* worth a warning, not only a line of the plan */
} mrc_useless;
/* Set *out to the next one, starting with *next = 0; false if there are no more. */
bool mrc_plan_useless(const mrc_plan *plan, const mercer_train_options *options, int *next, mrc_useless *out);

/* Returns why a fit does not begin with a hyperparameter search; NULL: it does, if there are enough rows. */
const char *mrc_plan_search_skipped(const mercer_fit_options *options, const mercer_dataset_info *info, int64_t memory);

/* The flops per second in double that plans assume. */
double mrc_plan_nominal_rate(const mrc_machine *machine);

/* Everything has been checked; the shape's types are set. */
void mrc_plan_ranks(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape,
                    const mercer_network *network, bool float_factors);

/* The bytes that each rank may use where it computes if the options do not say how many: the smallest share of what
   is free on a rank's device, where those that are on the same one have a part each. 0 where matrices live in host
   memory. Every rank calls it. */
mercer_status mrc_rank_room(mrc_backend *backend, mrc_comm *comm, int64_t *each);

/* The public functions of the same names, without mercer_. */
const mercer_option *mrc_train_option(int index);

#endif

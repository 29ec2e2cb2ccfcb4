/* SPDX-License-Identifier: BSD-3-Clause */
/* What direct, krr, cg and polishing share as solvers of a job: the weights they work on, and a run. */
#ifndef MRC_SOLVERS_NORMAL_EXACT_JOB_H
#define MRC_SOLVERS_NORMAL_EXACT_JOB_H

#include "solvers/solver.h"

typedef struct mrc_exact_job {
    mercer_matrix alpha; /* field (rows, c) real */
    mrc_exact_solver exact;
    int64_t steps;    /* cg: maximum number of steps, for progress reports */
    mercer_stop stop; /* cg: stop reason returned by end_epoch */
    mercer_status status;
} mrc_exact_job;

mercer_status mrc_exact_create(mrc_job *job, const mercer_matrix *first);
const mercer_matrix *mrc_exact_weights(const mrc_job *job);
void mrc_exact_destroy(mrc_job *job);

/* Return the job as an exact solver sees it; kernel_blocks are those it reads with. */
mrc_exact_solver mrc_exact_of(mrc_job *job, mrc_kernel_blocks *kernel_blocks);
/* Run an exact solver. Reports progress while samples are read, and adds the times to the job's. */
mercer_status mrc_exact_run(mrc_job *job, mrc_exact_solver *exact, const mercer_matrix *alpha,
                            mercer_status (*call)(mrc_exact_solver *exact, const mercer_matrix *alpha));

void mrc_exact_report(mrc_job *job);

/* For solvers that read the samples once and then solve equations (direct, krr): their plan, and their run, with one
   more pass that computes the loss of the returned weights unless it is known. */
mercer_status mrc_exact_choose_once(mrc_planner *planner);
void mrc_exact_settle_once(mrc_planner *planner);
mercer_status mrc_exact_run_once(mrc_job *job,
                                 mercer_status (*call)(mrc_exact_solver *exact, const mercer_matrix *alpha));

/* Take a few steps of cg from the result of the iteration. Polishing is exact work, so it uses neither caches in half
   precision nor slack. It creates its own kernel blocks; the caller must have released its projector and its blocks. */
mercer_status mrc_polish(mrc_job *job, const mercer_matrix *alpha);
/* Return the bytes that polishing takes. */
mrc_bytes mrc_polish_bytes(const mrc_problem *problem, double lambda);

#endif

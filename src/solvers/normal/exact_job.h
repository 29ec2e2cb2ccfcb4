/* SPDX-License-Identifier: BSD-3-Clause */
/* What direct, cg and polishing have in common as solvers of a job: the weights they work on, and a run. */
#ifndef MRC_SOLVERS_NORMAL_EXACT_JOB_H
#define MRC_SOLVERS_NORMAL_EXACT_JOB_H

#include "solvers/solver.h"

typedef struct mrc_exact_job {
    mercer_matrix alpha; /* field (rows, c) real */
    mrc_exact_solver exact;
    int64_t steps;    /* cg: most, for progress */
    mercer_stop stop; /* cg: what the end of a step answered, */
    mercer_status status;
} mrc_exact_job;

mercer_status mrc_exact_create(mrc_job *job, const mercer_matrix *first);
const mercer_matrix *mrc_exact_weights(const mrc_job *job);
void mrc_exact_destroy(mrc_job *job);

/* The job as an exact solver sees it, with blocks for its reading. */
mrc_exact_solver mrc_exact_of(mrc_job *job, mrc_kernel_blocks *kernel_blocks);
/* Progress is shown while samples are read, and the times are added to the job's. */
mercer_status mrc_exact_run(mrc_job *job, mrc_exact_solver *exact, const mercer_matrix *alpha,
                            mercer_status (*call)(mrc_exact_solver *exact, const mercer_matrix *alpha));

void mrc_exact_report(mrc_job *job);

/* For solvers that read the samples once and then solve equations (direct, krr): their plan, and their run with one
   more pass that shows the loss of the weights as they are returned. */
mercer_status mrc_exact_choose_once(mrc_planner *planner);
void mrc_exact_settle_once(mrc_planner *planner);
mercer_status mrc_exact_run_once(mrc_job *job,
                                 mercer_status (*call)(mrc_exact_solver *exact, const mercer_matrix *alpha));

/* A few steps of cg from where the iteration ended: exact work, so that neither caches in half precision nor slack
   serve it. Makes kernel blocks of its own; the caller has released its projector and its blocks. */
mercer_status mrc_polish(mrc_job *job, const mercer_matrix *alpha);
/* Bytes that takes. */
mrc_bytes mrc_polish_bytes(const mrc_problem *problem, double lambda);

#endif

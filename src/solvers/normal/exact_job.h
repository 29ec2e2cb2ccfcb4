/* SPDX-License-Identifier: BSD-3-Clause */
/* State and functions that direct, krr, cg and polishing share as solvers of a job. */
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

/* Return an exact solver set up for the job: its centers, samples, units and penalty. kernel_blocks: used to read the
   samples. */
mrc_exact_solver mrc_exact_of(mrc_job *job, mrc_kernel_blocks *kernel_blocks);
/* Run an exact solver by `call`, report progress while samples are read, and add its times to the times of the job. */
mercer_status mrc_exact_run(mrc_job *job, mrc_exact_solver *exact, const mercer_matrix *alpha,
                            mercer_status (*call)(mrc_exact_solver *exact, const mercer_matrix *alpha));

/* Copy the times of the job to the training report. */
void mrc_exact_report(mrc_job *job);

/* Plan and run of solvers that read the samples once and then solve equations (direct, krr). One more pass computes the
   loss of the returned weights unless the solver knows it. */
mercer_status mrc_exact_choose_once(mrc_planner *planner);
void mrc_exact_complete_plan_once(mrc_planner *planner);
mercer_status mrc_exact_run_once(mrc_job *job,
                                 mercer_status (*call)(mrc_exact_solver *exact, const mercer_matrix *alpha));

/* Take a few steps of cg that start from the result of the iteration. Polishing is for accuracy, so it uses neither
   caches in half precision nor slack. Polishing creates its own kernel blocks, so the caller must have released its
   projector and kernel blocks. */
mercer_status mrc_polish(mrc_job *job, const mercer_matrix *alpha);
/* Return the bytes that polishing takes. */
mrc_bytes mrc_polish_bytes(const mrc_problem *problem, double lambda);

#endif

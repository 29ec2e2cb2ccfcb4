/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solvers/normal: the solvers that reach the minimum of the problem, by its normal equations:
 *
 *   minimize  J(alpha) = sum_i w_i |f(x_i) - y_i|^2 + lambda alpha' K(Z,Z) alpha,    f = K(., Z) alpha
 *
 *   krr     (K + lambda I) alpha = y where the centers are the samples
 *   direct  the dense normal equations in the RKHS metric, in double
 *   cg      conjugate gradients on the normal equations, preconditioned by a Cholesky factor of K(Z,Z) (the Falkon
 *           idea), or by a coarse space and a polynomial (polynomial_preconditioner.c)
 */
#ifndef MRC_SOLVERS_NORMAL_EXACT_SOLVERS_H
#define MRC_SOLVERS_NORMAL_EXACT_SOLVERS_H

#include "solvers/normal/polynomial_preconditioner.h"
#include "solvers/operators/center_shards.h"
#include "solvers/operators/kernel_blocks.h"
#include "solvers/sample_stream.h"
#include "solvers/state.h"

/* Callback after each CG step, when alpha is up to date; a return value of true stops the run. loss: J(alpha) without
   penalties, divided by the sum of the sample weights; between refreshes it is estimated by a recurrence. */
typedef bool (*mrc_exact_monitor)(void *user, int64_t step, double relative_gradient, double loss);

/* Seconds by phase. setup: factors and preconditioners; forward: kernel values and predictions; gradient: sums over the
   samples; solve: solves with these sums or factors. */
typedef struct mrc_exact_times {
    double setup, forward, gradient, solve;
} mrc_exact_times;

typedef struct mrc_exact_solver {
    mrc_centers *centers;
    mrc_sample_stream *stream;
    mrc_kernel_blocks *kernel_blocks; /* also sets the number of rows per batch when reading */
    int64_t n, c;
    const mrc_units *units; /* units of the targets from the stream, for the reported loss; NULL: none */
    double lambda;
    int64_t steps; /* cg: maximum number of steps */
    double
        /* cg: stop when |gradient| / |right-hand side| (preconditioned norm) is below this value in every column */
        tolerance;
    double slack; /* cg: a column also converges when J can decrease by at most this share of itself; 0: never */
    mrc_preconditioner_sizes preconditioner_sizes; /* cg: preconditioner; basis 0: exact factor of K(Z,Z) */
    mrc_exact_monitor monitor;
    void *monitor_user;
    int64_t memory; /* memory limit in bytes; 0: no limit */
    /* cg: save the state if saving is due or `now` is set; restore it. NULL: not supported. */
    mercer_status (*save)(void *user, bool now);
    mercer_status (*restore)(void *user);
    void *save_user;
    void *running; /* cg: state of the current run, for mrc_exact_cg_list */
    /* results */
    int64_t steps_done;
    double relative_gradient;
    /* cg: J(alpha) without penalties, divided by the sum of the sample weights; from the recurrence or exact */
    double loss;
    double mass;   /* direct, krr: sum of the sample weights */
    double fit;    /* krr: sum_i w_i |f(x_i) - y_i|^2 of alpha, in the original units of the targets; NAN: unknown */
    double jitter; /* shift that had to be added to a diagonal, relative to its mean; 0: none */
    bool stalled;  /* cg: stopped because rounding errors prevent further progress */
    mrc_exact_times times;
} mrc_exact_solver;

/* Compute alpha, a field (rows, c) of type real. direct and krr ignore its content; cg starts from it. alpha is
   unchanged on failure, except that cg leaves the weights last passed to the monitor. */
mercer_status mrc_exact_direct(mrc_exact_solver *exact, const mercer_matrix *alpha);
mercer_status mrc_exact_cg(mrc_exact_solver *exact, const mercer_matrix *alpha);
mercer_status mrc_exact_krr(mrc_exact_solver *exact, const mercer_matrix *alpha); /* see mrc_exact_direct */

/* Add the state of the current cg run to a list of saved values. */
void mrc_exact_cg_list(const mrc_exact_solver *exact, mrc_state *state);

/* Compute the peak of the bytes held for batches of `batch` rows, without kernel blocks and the backend's scratch
   space. For cg, `once` also has the work and messages of set-up, and `each` those of a step, without the products with
   batches. All vectors are counted as doubles. */
mrc_bytes mrc_exact_direct_bytes(const mrc_problem *problem, int64_t batch);
mrc_bytes mrc_exact_krr_bytes(const mrc_problem *problem);
void mrc_exact_cg_cost(const mrc_problem *problem, int64_t batch, double lambda, const mrc_preconditioner_sizes *sizes,
                       mrc_cost *once, mrc_cost *each);
/* Return the problem sizes of an exact solver, for its cost functions. */
mrc_problem mrc_exact_problem(const mrc_exact_solver *exact);

/* Fail with MERCER_ERROR_MEMORY if `needed` is above the memory limit of the exact solver. The message contains both
   numbers. */
mercer_status mrc_exact_check_memory(const mrc_exact_solver *exact, const char *solver, mrc_bytes needed);

/* Compute the two terms of J(alpha), with one pass for each. *fit is sum_i w_i |f(x_i) - y_i|^2 in the original units
   of the targets; *ridge is alpha' K(Z,Z) alpha, without lambda. Either pointer may be NULL. */
mercer_status mrc_objective(mrc_exact_solver *exact, const mercer_matrix *alpha, double *fit, double *ridge);

/* Compute the roughness of K(Z,Z): the share of K(z, z) that a sample of 500 centers does not explain, averaged over
   other centers z. It is near 0 if eigenvalues of K(Z,Z) fall fast, near 1 if K(Z,Z) is close to a multiple of I. z:
   this rank's share of the p centers. */
mercer_status mrc_roughness(mrc_backend *backend, mrc_comm *comm, const mercer_kernel *kernel, const mercer_matrix *z,
                            int64_t p, const double *origin, double *out);

#endif

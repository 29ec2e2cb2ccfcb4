/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solvers/iteration: the iteration f <- proj_Z( f - eta P grad L_m(f) ). Every solver of the EigenPro family is this
 * iteration with its own preconditioner, projector and period.
 *
 *   iteration.c            a step                          eigensystem.c, eigen_block.c   the preconditioner
 *   iteration_solver.c     set-up, epochs, watchdog        temporary_centers.c            steps since the projection
 *   iteration_plan.c       sizes and cost                  step_bounds.c                  bounds for step sizes
 */
#ifndef MRC_SOLVERS_ITERATION_ITERATION_H
#define MRC_SOLVERS_ITERATION_ITERATION_H

#include "solvers/iteration/temporary_centers.h"
#include "solvers/loss.h"
#include "solvers/operators/kernel_blocks.h"
#include "solvers/projectors/projector.h"

/* How a step becomes new weights. */
typedef enum mrc_update {
    MRC_UPDATE_PROJECT,     /* any centers: solve K(Z,Z) theta = h */
    MRC_UPDATE_COORDINATES, /* the centers are the samples: the step is already in their span */
    MRC_UPDATE_PLAIN        /* gradient descent in R^p: h itself is the step */
} mrc_update;

typedef struct mrc_iteration_options {
    mrc_update update;
    int64_t batch;  /* m, maximum number of rows per step */
    int64_t period; /* T, number of batches per projection */
    bool carry;
    mrc_step_rule rule;
    double gamma;     /* safety factor of the step rule */
    double ridge;     /* lambda / n */
    double plain_top; /* MRC_UPDATE_PLAIN: largest eigenvalue of K_ZX K_XZ / n + ridge K_ZZ */
    /* MRC_UPDATE_PLAIN: max over x of |K(Z,x)|^2; plain_top and plain_beta replace t and beta in the step rule */
    double plain_beta;
} mrc_iteration_options;

typedef struct mrc_iteration {
    mrc_iteration_options options;
    mrc_centers *centers;
    mrc_kernel_blocks *kernel_blocks;
    const mrc_eigensystem *system; /* q may be 0 */
    const int64_t *sample_rows;    /* (s) row numbers of the samples in the system; only for COORDINATES */
    const mrc_units *units;        /* units that the batches' targets were converted to, for losses; NULL: none */
    mrc_projector *projector;      /* NULL unless the update is PROJECT */
    double beta;
    double heaviest; /* largest sample weight, by which weights may enlarge the gradient of a batch */
    double halving;  /* factor of the step size, reduced by the watchdog */
    double decay;    /* factor of the step size, reduced by the schedule */

    mercer_matrix alpha;    /* field (rows, c): the weights */
    mercer_matrix c;        /* field C (rows, q) = K(Z, X_s) E D */
    mercer_matrix sum;      /* field: minus the sum of the steps' values at the centers since the last projection */
    mercer_matrix left;     /* field: residual of the last projection, if carried */
    mercer_matrix h, theta; /* fields: scratch space */
    mercer_matrix average;  /* field: running mean of alpha since averaging began */
    int64_t averaged;       /* number of terms in the running mean */
    bool averaging;

    mrc_temporary_centers temporary; /* at most T m points since the last projection, and their weights */
    mercer_matrix sample_weights;    /* w_s (s, c) */
    mercer_matrix values; /* v (q, c) = E' times the values of the temporary part at X_s; only with a ridge */
    int64_t pending;      /* number of batches since the last projection */

    mrc_cached_block sample_cache; /* buffer for K(X_m, X_s) */
    mercer_matrix f, g, ks, u, du; /* (m, c), (m, c), (s, c), (q, c), (q, c) scratch space */
    mercer_matrix x; /* (m, d) device copy of the current batch's points; unused if the backend works in host memory */
    mercer_matrix y; /* (m, c) device copy of the current batch's targets */

    int64_t steps, projections;
    double last_step;          /* eta / m */
    mrc_projection projection; /* result of the last projection */
    double residual_sum;       /* sum of the relative residuals of all projections */
    double forward_seconds, gradient_seconds, projection_seconds;
} mrc_iteration;

/* Create an iteration with alpha = 0. All parts are borrowed and must outlive the iteration. Like all parts of solvers,
   it must be destroyed even if the call fails. */
mercer_status mrc_iteration_create(mrc_iteration *out, mrc_centers *centers, mrc_kernel_blocks *kernel_blocks,
                                   const mrc_eigensystem *system, mrc_projector *projector, double beta,
                                   int64_t outputs, const mrc_iteration_options *options);
void mrc_iteration_destroy(mrc_iteration *iteration);

/* Compute the residual of the batch with the current weights, and store it for mrc_iteration_step. */
mercer_status mrc_iteration_residual(mrc_iteration *iteration, const mercer_batch *batch, mrc_loss *result);
/* Take the step for the batch of the last mrc_iteration_residual; project at the end of a period. */
mercer_status mrc_iteration_step(mrc_iteration *iteration, const mercer_batch *batch);
/* Project the pending steps, if there are any. */
mercer_status mrc_iteration_project(mrc_iteration *iteration);
/* Discard pending steps and the carried residual, after alpha was changed by the caller. */
mercer_status mrc_iteration_forget(mrc_iteration *iteration);

/* Return the bytes held by an iteration with s samples and q eigenpairs. */
mrc_bytes mrc_iteration_bytes(const mrc_problem *problem, const mrc_iteration_options *options, int64_t s, int64_t q);

#endif

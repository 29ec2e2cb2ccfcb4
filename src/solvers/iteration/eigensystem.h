/* SPDX-License-Identifier: BSD-3-Clause */
/* Top eigenpairs of K(S, S)/s for a sample S, from which every preconditioner is built. */
#ifndef MRC_SOLVERS_ITERATION_EIGENSYSTEM_H
#define MRC_SOLVERS_ITERATION_EIGENSYSTEM_H

#include "solvers/operators/center_shards.h"

typedef struct mrc_eigensystem {
    int64_t s, q;
    mercer_matrix points;  /* (s, d) the sample, a copy in its own dtype */
    mercer_matrix vectors; /* E (s, q) of type real, orthonormal columns, with fixed signs except on a device */
    double *lambda;        /* (q) eigenvalues of K(S,S)/s, descending */
    double *d;             /* (q) D_i = (1 - t/lambda_i) / lambda_i / s */
    double tail;           /* t = lambda_{q+1}, floored (eigensystem.c); lambda_1 if q = 0 */
    double residual;       /* largest |K v - lambda v| / lambda_1 of the pairs; 0, not measured, with LAPACK */
} mrc_eigensystem;

/* Compute the top q eigenpairs of a sample (s, d), which is copied. The tail is one more eigenvalue, so q is limited to
   s - 1. seed: for the random start of the block method. */
mercer_status mrc_eigensystem_create(mrc_eigensystem *out, mrc_centers *centers, const mercer_matrix *sample, int64_t q,
                                     uint64_t seed);
void mrc_eigensystem_destroy(mrc_eigensystem *system, mrc_backend *backend);

/* Return the share of the largest eigenvalue below which eigenvalues are rounding errors in type real. */
double mrc_noise_level(mercer_dtype real);

/* Return the bytes of scratch space that mrc_eigensystem_create needs; for the planner. */
int64_t mrc_eigensystem_scratch_bytes(int64_t s, int64_t q);
/* Return the number of rows of the largest matrix that mrc_eigensystem_create passes to the backend's eigen_top. */
int64_t mrc_eigensystem_largest(int64_t s, int64_t q);

/* Definition of beta, and of the step that follows from it. */
typedef enum mrc_step_rule {
    MRC_STEP_SHARP, /* beta of the preconditioned kernel;   eta/m = gamma 2 / (beta + (m - 1) t + m ridge) */
    /* rule of the paper "Toward Large Kernel Models": beta = max K(x,x); with gamma = 1/2 and no ridge eta/m = 1 / (2
       beta) for m < m*, else 0.99 / (beta + (m - 1) t) */
    MRC_STEP_PRINTED
} mrc_step_rule;

/*
 * Compute beta. Sharp: beta = max over rows x of K(x,x) - sum_i D_i (E' K(S,x))_i^2, the diagonal of the preconditioned
 * kernel, times a margin. `fresh` should be an i.i.d. draw of the data: rows outside the sample, or the sample itself
 * if there are no others. Printed: the largest K(x,x) of these rows.
 */
mercer_status mrc_eigensystem_beta(const mrc_eigensystem *system, mrc_centers *centers, const mercer_matrix *fresh,
                                   mrc_step_rule rule, double *beta);

/* mrc_critical_batch returns the critical batch m* = beta / t, between 1 and `most`. mrc_step_over_batch returns eta/m
   of the step rule. */
int64_t mrc_critical_batch(double beta, double tail, int64_t most);
double mrc_step_over_batch(mrc_step_rule rule, double beta, double tail, int64_t m, double gamma, double ridge);

/* Compute the top r eigenpairs of K (s, s) f64, which is not changed: values (r), descending; vectors (s, r) f64,
   orthonormal, with fixed signs. The result is a function of K and the seed. rough: accurate to a few percent, which
   suffices for a preconditioner, and with arbitrary signs. Set *residual to the largest |K v - theta v| over
   theta_1. */
mercer_status mrc_eigen_block(mrc_centers *centers, const mercer_matrix *k, double *values,
                              const mercer_matrix *vectors, uint64_t seed, bool rough, double *residual);
int64_t mrc_eigen_block_bytes(int64_t s, int64_t r);
/* Return the number of rows of the small eigenproblems that mrc_eigen_block solves. */
int64_t mrc_eigen_block_basis(int64_t s, int64_t r);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Top eigenpairs of K(S, S)/s for a sample S: the raw material of every preconditioner. */
#ifndef MRC_SOLVERS_ITERATION_EIGENSYSTEM_H
#define MRC_SOLVERS_ITERATION_EIGENSYSTEM_H

#include "solvers/operators/center_shards.h"

typedef struct mrc_eigensystem {
    int64_t s, q;
    mercer_matrix points;  /* (s, d) the sample, a copy in its own dtype */
    mercer_matrix vectors; /* E (s, q) of type real, orthonormal columns; sign-fixed but on a device */
    double *lambda;        /* (q) eigenvalues of K(S,S)/s, descending */
    double *d;             /* (q) D_i = (1 - t/lambda_i) / lambda_i / s */
    double tail;           /* t = lambda_{q+1}, floored (eigensystem.c); lambda_1 if q = 0 */
    double residual;       /* largest |K v - lambda v| / lambda_1 found by the check */
} mrc_eigensystem;

/* sample (s, d) is copied. 0 <= q < s (q + 1 eigenvalues are needed); a q that is too large is cut down to s - 1. seed
   starts the block method. */
mercer_status mrc_eigensystem_create(mrc_eigensystem *out, mrc_centers *centers, const mercer_matrix *sample, int64_t q,
                                     uint64_t seed);
void mrc_eigensystem_destroy(mrc_eigensystem *system, mrc_backend *backend);

/* Eigenvalues below this share of the largest are noise in type real. */
double mrc_noise_level(mercer_dtype real);

/* Bytes that create needs at its peak, beyond what it leaves behind; for the planner. */
int64_t mrc_eigensystem_scratch_bytes(int64_t s, int64_t q);
/* Rows of the largest matrix that it gives to the backend's eigen_top. */
int64_t mrc_eigensystem_largest(int64_t s, int64_t q);

/* Where beta comes from, and how the step follows from it. */
typedef enum mrc_step_rule {
    MRC_STEP_SHARP,  /* beta of the preconditioned kernel;   eta/m = gamma 2 / (beta + (m - 1) t + m ridge) */
    MRC_STEP_PRINTED /* "Toward Large Kernel Models": beta = max K(x,x);   with gamma = 1/2 and no ridge
                        eta/m = 1 / (2 beta) for m < m*, 0.99 / (beta + (m - 1) t) from there on */
} mrc_step_rule;

/*
 * Sharp: beta = max over rows x of K(x,x) - sum_i D_i (E' K(S,x))_i^2, the diagonal of the preconditioned kernel, times
 * a margin. `fresh` (rows outside the sample, or the sample itself if there are none) should be an i.i.d. draw of the
 * data. Printed: the largest K(x,x) of these rows.
 */
mercer_status mrc_eigensystem_beta(const mrc_eigensystem *system, mrc_centers *centers, const mercer_matrix *fresh,
                                   mrc_step_rule rule, double *beta);

/* Critical batch m* = beta / t, at least 1; and eta/m of the step rule. */
int64_t mrc_critical_batch(double beta, double tail, int64_t most);
double mrc_step_over_batch(mrc_step_rule rule, double beta, double tail, int64_t m, double gamma, double ridge);

/* K (s, s) f64, kept; values (r) descending; vectors (s, r) f64, orthonormal, sign-fixed. Deterministic for a seed.
   rough: good enough for a preconditioner, to a few per cent, signs as they come. *residual: the largest
   |K v - theta v| over theta_1. */
mercer_status mrc_eigen_block(mrc_centers *centers, const mercer_matrix *k, double *values,
                              const mercer_matrix *vectors, uint64_t seed, bool rough, double *residual);
int64_t mrc_eigen_block_bytes(int64_t s, int64_t r);
/* Rows of the small eigenproblems that it solves. */
int64_t mrc_eigen_block_basis(int64_t s, int64_t r);

#endif

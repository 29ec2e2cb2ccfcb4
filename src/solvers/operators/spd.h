/* SPDX-License-Identifier: BSD-3-Clause */
/* Cholesky factors of p x p matrices that may be numerically singular: a jitter is added only if needed. */
#ifndef MRC_SOLVERS_OPERATORS_SPD_H
#define MRC_SOLVERS_OPERATORS_SPD_H

#include "solvers/operators/center_shards.h"

/* Matrix to factor: K(points, points) if points are given, else the matrix (p, p) of the type of L; plus shift on the
   diagonal. */
typedef struct mrc_spd {
    const mercer_matrix *points;
    const mercer_matrix *matrix;
    double shift;
    const char *what;             /* name for messages */
    const mercer_matrix *scratch; /* (p, p) f64 scratch to compute (L L')^-1 in place of L; or NULL */
} mrc_spd;

/*
 * Factor L L' = A + shift I + relative mean I, L (p, p) lower, f64 or, if the backend has float factors, f32. mean is
 * the mean diagonal of A, returned in *mean unless NULL. *relative is the jitter: on input the value to try first (0:
 * none), on output the value used. After a failure it is raised to 16 eps p and then by factors of 10; beyond 1e-4, or
 * 1 in f32, the call fails with MERCER_ERROR_NUMERIC.
 */
mercer_status mrc_spd_factor(mrc_centers *centers, const mrc_spd *job, const mercer_matrix *l, double *relative,
                             double *mean);

/* Return half a unit in the last place of 1. */
double mrc_unit_roundoff(mercer_dtype real);
/* Compute |A|_F of a matrix that is the same on every rank. */
mercer_status mrc_matrix_norm(mrc_backend *backend, const mercer_matrix *a, double *out);
/* Compute the trace of K(B,B) of points (b, d). */
mercer_status mrc_points_trace(mrc_centers *centers, const mercer_matrix *points, double *trace);

/* Factorization L L' = K(B,B) + shift I by mrc_factor_kernel, with the smallest shift that suffices. */
typedef struct mrc_factor {
    mercer_matrix l;              /* (b, b) f64, owned by the caller */
    const mercer_matrix *scratch; /* (b, b) f64 scratch of the caller to compute (L L')^-1 in place of l; or NULL */
    double relative;              /* shift relative to the mean of the diagonal; in: the minimum, out: the value used */
    double shift;                 /* absolute shift used */
    double trace;                 /* trace of K(B,B), an upper bound of the norm of K(B,B) */
} mrc_factor;
mercer_status mrc_factor_kernel(mrc_centers *centers, const mercer_matrix *points, mrc_factor *factor);
/* Invert K(B,B) of several blocks of b points each in one call, with exactly the given shifts. The factors' matrices
   are stored one below the other, and so are the blocks of the scratch space. sound[i]: whether block i could be
   inverted with its shift. */
mercer_status mrc_invert_kernels(mrc_centers *centers, int64_t count, const mercer_matrix *points, mrc_factor *factors,
                                 const mercer_matrix *scratch, bool *sound);
/* Return the smallest relative shift with which a solution of b equations can be rounded to `real`, see spd.c. */
double mrc_factor_safe_shift(mercer_dtype real, int64_t b);
/* Return true if rounding the solution x of (L L') x = b to `real` may change K x by more than a tenth of |b|. */
bool mrc_factor_too_rough(const mrc_factor *factor, mercer_dtype real, double x_norm, double b_norm);

/* Replace B (p, c) of the type of L by (L L')^-1 B. */
mercer_status mrc_spd_solve(mrc_centers *centers, const mercer_matrix *l, const mercer_matrix *b);

/*
 * Return the penalty rho that models the rounding of weights and kernel values to float:
 *
 *   rho |alpha|^2,   rho = w (4 u k)^2,   u = 2^-24, k = mean K(z,z), w = sum of the sample weights
 *                    rho = w (2^-12 k)^2  if kernel values are cached in half precision, with relative errors of
 *                                         about 2^-12; k is then the root of the mean of K(z,z')^2
 *
 * f(x) = sum_j alpha_j K(x, z_j) then carries an error of variance (about 4 u k)^2 |alpha|^2, so J + rho |alpha|^2 is
 * the expected value of J after rounding. Without the penalty, weights of smooth kernels grow until only rounding
 * errors are left. rho is 0 in double, where K(Z,Z) is singular to working precision before rounding matters.
 */
double mrc_rounding_penalty(mercer_dtype values, double k, double mass);

/* Return a view of the same memory as a contiguous (rows, columns) matrix. */
mercer_matrix mrc_shaped(const mercer_matrix *scratch, int64_t rows, int64_t columns);

#endif

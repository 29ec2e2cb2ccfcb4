/* SPDX-License-Identifier: BSD-3-Clause */
/* Cholesky factors of p x p matrices that may be numerically singular: a jitter is added only if needed. */
#ifndef MRC_SOLVERS_OPERATORS_SPD_H
#define MRC_SOLVERS_OPERATORS_SPD_H

#include "solvers/operators/center_shards.h"

/* What is factored: K(points, points) if points are given, else the matrix (p, p) of the type of L; plus shift on the
   diagonal. */
typedef struct mrc_spd {
    const mercer_matrix *points;
    const mercer_matrix *matrix;
    double shift;
    const char *what;          /* for messages */
    const mercer_matrix *room; /* (p, p) f64: L becomes (L L')^-1 instead; or NULL */
} mrc_spd;

/*
 * L L' = A + shift I + relative mean I, L (p, p) lower, f64 or, if the backend has float factors, f32; mean: the mean
 * diagonal of A, which *mean gets if not NULL. *relative, in: tried first (0: none), out: what it took. It is raised to
 * 16 eps p and then by 10; beyond 1e-4, or 1 in f32, the call fails with MERCER_ERROR_NUMERIC.
 */
mercer_status mrc_spd_factor(mrc_centers *centers, const mrc_spd *job, const mercer_matrix *l, double *relative,
                             double *mean);

/* Half a unit in the last place of 1. */
double mrc_unit_roundoff(mercer_dtype real);
/* |A|_F of a matrix that every rank has. */
mercer_status mrc_matrix_norm(mrc_backend *backend, const mercer_matrix *a, double *out);
/* The trace of K(B,B) of points (b, d). */
mercer_status mrc_points_trace(mrc_centers *centers, const mercer_matrix *points, double *trace);

/* L L' = K(B,B) + shift I, the shift no larger than it must be. */
typedef struct mrc_factor {
    mercer_matrix l;           /* (b, b) f64, of the caller */
    const mercer_matrix *room; /* (b, b) f64 of the caller: l becomes (L L')^-1 instead; or NULL */
    double relative;           /* in: least shift, relative to the mean of the diagonal; out: what was used */
    double shift;              /* the same, absolute */
    double trace;              /* of K(B,B): an upper bound of its norm */
} mrc_factor;
mercer_status mrc_factor_kernel(mrc_centers *centers, const mercer_matrix *points, mrc_factor *factor);
/* The inverses of several blocks of b points each in one go, with the shifts that are given and no others. The factors'
   matrices lie one below the other, as room does. sound[i]: whether that was enough. */
mercer_status mrc_invert_kernels(mrc_centers *centers, int64_t count, const mercer_matrix *points, mrc_factor *factors,
                                 const mercer_matrix *room, bool *sound);
/* The relative shift from which on a solution can be rounded to `real` without harm. */
double mrc_factor_safe_shift(mercer_dtype real, int64_t b);
/* True if rounding the solution x of (L L') x = b to `real` may change K x by more than a tenth of |b|. */
bool mrc_factor_too_rough(const mrc_factor *factor, mercer_dtype real, double x_norm, double b_norm);

/* B (p, c) of the type of L becomes (L L')^-1 B. */
mercer_status mrc_spd_solve(mrc_centers *centers, const mercer_matrix *l, const mercer_matrix *b);

/*
 * The penalty that stands for rounding the weights, and the kernel values they are multiplied with, to float:
 *
 *   rho |alpha|^2,   rho = w (4 u k)^2,   u = 2^-24, k = mean K(z,z), w = sum of the sample weights
 *                    rho = w (2^-12 k)^2  where kernel values are kept in half precision, off by about 2^-12 of
 *                                         themselves; k is then the root of the mean of K(z,z')^2
 *
 * f(x) = sum_j alpha_j K(x, z_j) then carries an error of variance (about 4 u k)^2 |alpha|^2, so J + rho |alpha|^2 is
 * what can be expected of J after rounding. Without it, weights of smooth kernels grow until rounding is all that is
 * left. 0 in double, where K(Z,Z) is singular to working precision before it counts.
 */
double mrc_rounding_penalty(mercer_dtype values, double k, double mass);

/* The same memory as a contiguous (rows, columns). */
mercer_matrix mrc_shaped(const mercer_matrix *room, int64_t rows, int64_t columns);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The normal equations A alpha = b as an operator, and their preconditioner, for conjugate gradients (cg.c). */
#ifndef MRC_SOLVERS_NORMAL_NORMAL_H
#define MRC_SOLVERS_NORMAL_NORMAL_H

#include "solvers/normal/exact_solvers.h"
#include "solvers/normal/polynomial_preconditioner.h"

/* Vectors are fields (rows, c) f64. The factors, if they are used, are the same on every rank. */
typedef struct mrc_normal {
    mrc_exact_solver *exact;
    mrc_centers *centers;
    mrc_backend *backend;
    int64_t p, c;
    mercer_matrix l;      /* (p, p) L L' = K(Z,Z) + shift I; f32 or f64 */
    mercer_matrix ridged; /* (p, p) factor of K(Z,Z) + (shift + tau + t) I (normal.c); empty if lambda = 0 */
    mercer_matrix kernel; /* (p, p) K(Z,Z), if the factors are f32 and lambda > 0; else empty */
    /* used instead of the factors if the planner has chosen it (preconditioner_sizes) */
    mrc_preconditioner preconditioner;
    double shift;          /* delta: small, only for the preconditioner */
    double rounding;       /* rho */
    double weight;         /* p / w: factor of M^-1, not included by mrc_normal_precondition */
    bool from_zero;        /* started with alpha = 0, so that r = b */
    double mass;           /* sum of the sample weights */
    mercer_matrix both;    /* field (rows, 2c) f64 scratch */
    mercer_matrix all;     /* (2p, c) of the type of the factors: vectors of all ranks; empty with one rank */
    mercer_matrix sum;     /* field (rows, 2c) f64: K_ZX g over the batches so far */
    mercer_matrix v, h;    /* fields (rows, 2c) real: input and output of the products */
    mercer_matrix f, y, g; /* (batch, c), (batch, c), (batch, 2c) real */
    double *scale, *sums;  /* (c) */
} mrc_normal;

mercer_status mrc_normal_create(mrc_normal *out, mrc_exact_solver *exact);
void mrc_normal_destroy(mrc_normal *self);
/* Compute the bytes of the equations and the preconditioner, and the work of their set-up (once); and the work of M^-1,
   penalties and column sums in a step (each). */
void mrc_normal_cost(const mrc_problem *problem, int64_t batch, double lambda, const mrc_preconditioner_sizes *sizes,
                     mrc_cost *once, mrc_cost *each);

/*
 * Make one pass: b = K_ZX W Y, r = b - A alpha, fit[j] = sum_i w_i (y_ij - f_j(x_i))^2; then compute the factors,
 * because the preconditioner needs the total weight. work (rows, c) is overwritten.
 */
mercer_status mrc_normal_begin(mrc_normal *self, const mercer_matrix *alpha, const mercer_matrix *b,
                               const mercer_matrix *r, double *fit, const mercer_matrix *work);
/* Compute only the factors, for a known total weight: the last part of begin. */
mercer_status mrc_normal_resume(mrc_normal *self, double mass);
/* Make one pass: q = A d. If alpha is not NULL, the same pass gives r = b - A alpha and fit. */
mercer_status mrc_normal_apply(mrc_normal *self, const mercer_matrix *d, const mercer_matrix *q,
                               const mercer_matrix *alpha, const mercer_matrix *r, double *fit,
                               const mercer_matrix *work);
/* Compute the preconditioner for the current total weight (normal_preconditioner.c). */
mercer_status mrc_normal_factor(mrc_normal *self);
/* Return the type of the factors: float if products are and the backend has such factors. */
mercer_dtype mrc_normal_factor_type(const mrc_normal *self);
/* Compute z = M^-1 r without the factor p / w. */
mercer_status mrc_normal_precondition(mrc_normal *self, const mercer_matrix *r, const mercer_matrix *z);
/* Compute out = x with columns of about unit length, fields (rows, c) f64; self->scale: the powers of 2 by which the
   columns of out must be multiplied to restore x. */
mercer_status mrc_normal_unit_columns(mrc_normal *self, const mercer_matrix *x, const mercer_matrix *out);
/* Compute out = K(Z,Z) x for fields (rows, c) f64. */
mercer_status mrc_normal_times_kernel(mrc_normal *self, const mercer_matrix *x, const mercer_matrix *out);
/* Compute out[j] = alpha_j' (lambda K(Z,Z) + rho I) alpha_j, the part of J without the fit. */
mercer_status mrc_normal_penalty(mrc_normal *self, const mercer_matrix *alpha, double *out, const mercer_matrix *work);

#endif

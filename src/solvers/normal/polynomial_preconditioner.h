/* SPDX-License-Identifier: BSD-3-Clause */
/* An approximate square root of (K (K + tau I))^-1, K = K(Z,Z), without a factor of K: a coarse space and a
   polynomial. */
#ifndef MRC_SOLVERS_NORMAL_POLYNOMIAL_PRECONDITIONER_H
#define MRC_SOLVERS_NORMAL_POLYNOMIAL_PRECONDITIONER_H

#include "solvers/cost.h"
#include "solvers/operators/center_shards.h"

enum {
    MRC_LARGEST_DEGREE = 8,
    MRC_LANCZOS = 8 /* Lanczos steps that estimate the spectrum */
};

/* Sizes chosen by the planner. basis 0: an exact factor is used instead. */
typedef struct mrc_preconditioner_sizes {
    int64_t sample, basis; /* s centers that define the coarse space, q directions in it */
    mercer_dtype stored;   /* type of K(Z,Z): f16, or the type of the weights */
} mrc_preconditioner_sizes;

typedef struct mrc_preconditioner {
    mrc_centers *centers;
    mercer_matrix k;                             /* field (rows, p): this rank's rows of K */
    mercer_matrix scratch;                       /* (at most SCRATCH, p) real: scratch for rows of K */
    mercer_matrix g, f;                          /* fields (rows, q) real: G, F = K G, G'F = I */
    mercer_matrix t, n, o;                       /* fields (rows, c) real */
    mercer_matrix all;                           /* (p, c) real: V of a product K V; empty with one rank */
    mercer_matrix y, y2;                         /* (q, c) real */
    double *scale;                               /* (q) theta h(theta) */
    int64_t q, degree;                           /* columns of G; products with K in a polynomial */
    double nodes[MRC_LARGEST_DEGREE + 1];        /* interpolation nodes: the polynomial equals h there */
    double coefficients[MRC_LARGEST_DEGREE + 1]; /* coefficients of Newton's form */
    double mean;                                 /* mean of the diagonal of K */
} mrc_preconditioner;

/* Create a preconditioner for fields of c columns. The caller must destroy it even if the call fails. */
mercer_status mrc_preconditioner_create(mrc_preconditioner *out, mrc_centers *centers, int64_t c,
                                        const mrc_preconditioner_sizes *options, double tau);
void mrc_preconditioner_destroy(mrc_preconditioner *self);
/* Replace X, a field (rows, c) real, by P X. */
mercer_status mrc_preconditioner_apply(mrc_preconditioner *self, const mercer_matrix *x);
/* Compute out = K(Z,Z) V for fields (rows, c). */
mercer_status mrc_preconditioner_times(mrc_preconditioner *self, const mercer_matrix *v, const mercer_matrix *out);
/* Return the bytes at the peak of create and apply. */
mrc_bytes mrc_preconditioner_bytes(const mrc_preconditioner_sizes *options, const mrc_problem *problem);

#endif

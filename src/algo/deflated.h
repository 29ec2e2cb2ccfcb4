/* SPDX-License-Identifier: BSD-3-Clause */
/* An approximate square root of (K (K + tau I))^-1, K = K(Z,Z), without a factor of K: a coarse space and a polynomial. */
#ifndef MRC_ALGO_DEFLATED_H
#define MRC_ALGO_DEFLATED_H

#include "algo/centers.h"

enum { MRC_DEFLATED_DEGREE = 8 }; /* the largest */

/* What the planner chooses. basis 0: no such thing, a factor serves. */
typedef struct mrc_deflation {
    int64_t sample, basis; /* s centers that the coarse space is made of, q directions in it */
    mercer_dtype stored;   /* of K(Z,Z): f16, or the type of the weights */
} mrc_deflation;

typedef struct mrc_deflated {
    mrc_centers *centers;
    mercer_matrix k;                              /* field (rows, p): K(Z here, Z) */
    mercer_matrix room;                           /* (ROOM, p) real: rows of K on their way */
    mercer_matrix g, f;                           /* fields (rows, q) real: G, F = K G, G'F = I */
    mercer_matrix t, n, o;                        /* fields (rows, c) real */
    mercer_matrix all;                            /* (p, c) real; empty with one rank */
    mercer_matrix y, y2;                          /* (q, c) real */
    int64_t *ids;                                 /* (p) 0, 1, ... */
    double *scale;                                /* (q) theta h(theta) */
    int64_t q, degree;                            /* columns of G; products with K in a polynomial */
    double nodes[MRC_DEFLATED_DEGREE + 1];        /* where the polynomial meets h */
    double coefficients[MRC_DEFLATED_DEGREE + 1]; /* Newton's */
    double mean;                                  /* of the diagonal of K */
} mrc_deflated;

/* z: all centers; c: columns that it will be applied to. */
mercer_status mrc_deflated_create(mrc_deflated *out, mrc_centers *centers, const mercer_matrix *z, int64_t c,
                                  const mrc_deflation *options, double tau);
void mrc_deflated_destroy(mrc_deflated *self);
/* X becomes P X; a field (rows, c) real. */
mercer_status mrc_deflated_apply(mrc_deflated *self, const mercer_matrix *x);
/* Out = K(Z,Z) V for fields (rows, c). */
mercer_status mrc_deflated_times(mrc_deflated *self, const mercer_matrix *v, const mercer_matrix *out);
/* Bytes at the peak of create and apply. With several ranks there is a copy of the centers and of the basis on top. */
int64_t mrc_deflated_bytes(const mrc_deflation *options, int64_t p, int64_t d, int64_t c, int64_t real_size,
                           int64_t point_size);

#endif

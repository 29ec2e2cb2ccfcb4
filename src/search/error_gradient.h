/* SPDX-License-Identifier: BSD-3-Clause */
/* The held-out error of one small fit and its gradient in all hyperparameters. */
#ifndef MRC_SEARCH_ERROR_GRADIENT_H
#define MRC_SEARCH_ERROR_GRADIENT_H

#include "backends/backend.h"
#include "core/memory.h"
#include "kernels/kernel.h"

/* Rows of one step, in the backend's memory: training rows first, the first of those are the centers; then held-out
   rows. */
typedef struct mrc_draw {
    mercer_matrix x;       /* (m, d) f32 or f64: points as the kernel sees them, scaled or mapped */
    mercer_matrix plain;   /* (m, k), type of x: points before the map; no data: the gradient is that of scales */
    mercer_matrix y;       /* (m, c) f64 */
    const double *weights; /* (m) host memory; NULL: all 1 */
} mrc_draw;

/* Scratch matrices of the backend, reused by all steps. */
typedef struct mrc_gradient_buffer {
    mrc_backend *backend;
    int64_t m, n, p, d, c;          /* rows, training rows, centers, features, outputs */
    mercer_matrix sums;             /* (m, p) type of the points: arguments of the kernel function, or kernel values */
    mercer_matrix slopes;           /* (m, p) type of the points: -dK/ds */
    mercer_matrix k, y;             /* (m, p), (m, c): scaled by the square roots of the weights */
    mercer_matrix w, other;         /* (m, p) type of the points: weights of pairs; kernel values at another exponent */
    mercer_matrix zz, factor, ones; /* (p, p), (p, p), (p, 1) */
    mercer_matrix residual;         /* (m, c) K alpha - Y */
    mercer_matrix left, right;      /* (m, 2 c), (p, 2 c): [q t], [alpha u] */
    mercer_matrix left_p, right_p;  /* the same in the type of the points */
    mercer_matrix pairs, products;  /* (m, p), (m, k) f64: weights of pairs, times the centers */
    mercer_matrix plain;            /* (m, k) f64: plain points */
    mercer_matrix moment;           /* (k, k) f64 */
    double *parts;                  /* (16, p) partial sums; host memory */
    double *roots, *numbers;        /* (m) roots of weights; (max(m, p, c)); host memory */
    double *host;                   /* (3 m p) host memory, if the backend computes elsewhere; NULL: not needed */
} mrc_gradient_buffer;

/* Allocate for draws of the shape of `like`; the memory lives as long as the scope. */
mercer_status mrc_gradient_open(mrc_gradient_buffer *self, mrc_scope *scope, mrc_backend *backend, const mrc_draw *like,
                                int64_t fitted, int64_t centers);

typedef struct mrc_error_gradient {
    bool solved;     /* false: the equations were not positive definite, nothing else is set */
    double error;    /* mean squared error on the held-out rows */
    double *scales;  /* (d) by the logarithm of the factor of each coordinate, without `plain` */
    double *moment;  /* (k, k) S = sum_ij V_ij (x_i - z_j)(x_i - z_j)' of plain points: dE/dA = S A; with `plain` */
    double exponent; /* by gamma, if wanted, for exppower kernels; else 0 */
    double ridge;    /* by the logarithm of the ridge */
} mrc_error_gradient;

/* Computes error and gradient. ridge: per unit of sample weight; by_exponent: whether out->exponent is wanted, which
   costs two more evaluations of the kernel function. */
mercer_status mrc_error_gradient_find(mrc_gradient_buffer *self, const mercer_kernel *kernel, double ridge,
                                      bool by_exponent, const mrc_draw *draw, mrc_error_gradient *out);

#endif

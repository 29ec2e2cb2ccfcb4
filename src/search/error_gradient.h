/* SPDX-License-Identifier: BSD-3-Clause */
/* The held-out error of one small fit and its gradient with respect to all hyperparameters. */
#ifndef MRC_SEARCH_ERROR_GRADIENT_H
#define MRC_SEARCH_ERROR_GRADIENT_H

#include "backends/backend.h"
#include "core/memory.h"
#include "kernels/kernel.h"

/* Rows of one step, in the backend's memory: training rows, then held-out rows. The first training rows are the
   centers. */
typedef struct mrc_draw {
    mercer_matrix x; /* (m, d) f32 or f64: scaled or mapped points, the kernel's arguments */
    /* (m, k), type of x: points before the map. If data is NULL, the gradient is with respect to scales instead of a
       map */
    mercer_matrix plain;
    mercer_matrix y;       /* (m, c) f64 */
    const double *weights; /* (m) row weights, host memory; NULL: all 1 */
} mrc_draw;

/* Scratch matrices of the backend, reused by all steps. */
typedef struct mrc_gradient_buffer {
    mrc_backend *backend;
    int64_t m, n, p, d, c; /* rows, training rows, centers, features, outputs */
    /* (m, p) type of the points: the argument of the kernel function, such as the squared distance; host backends
       only */
    mercer_matrix sums;
    mercer_matrix k, y;            /* (m, p), (m, c): K and Y, scaled by the square roots of the weights */
    mercer_matrix w, other;        /* (m, p) type of the points. w: W; other: kernel values, later slopes */
    mercer_matrix zz, factor;      /* (p, p) */
    mercer_matrix residual;        /* (m, c) K alpha - Y */
    mercer_matrix left, right;     /* (m, 2 c), (p, 2 c): [q t], [alpha u] */
    mercer_matrix left_p, right_p; /* left and right in the type of the points */
    mercer_matrix pairs, products; /* pairs (m, p) f64: V; products (m, k) f64: V times points */
    mercer_matrix plain;           /* (m, k) f64: plain points */
    mercer_matrix moment;          /* (k, k) f64 */
    double *parts;                 /* (16, p) partial sums; host memory */
    /* roots (m): square roots of the weights; numbers (max(m, 2 p, c)): scratch space; host memory */
    double *roots, *numbers;
    bool on_host; /* the backend computes in host memory, where distances are computed only once per step */
    double *host; /* (3 m p) host copies of W, slopes and V for devices; NULL: not needed */
} mrc_gradient_buffer;

/* Allocates buffers for draws of the shape of `like`, with `fitted` training rows and `centers` centers. The scope owns
   the memory. */
mercer_status mrc_gradient_open(mrc_gradient_buffer *self, mrc_scope *scope, mrc_backend *backend, const mrc_draw *like,
                                int64_t fitted, int64_t centers);

typedef struct mrc_error_gradient {
    bool solved;     /* false: the equations were not positive definite, and no other field is set */
    double error;    /* mean squared error on the held-out rows */
    double *scales;  /* (d) dE / dlog of each coordinate's factor; set for draws without `plain` */
    double *moment;  /* (k, k) S = sum_ij V_ij (x_i - z_j)(x_i - z_j)' of the plain points: dE/dA = S A; with `plain` */
    double exponent; /* dE / dgamma of exppower kernels if requested, else 0 */
    double ridge;    /* dE / dlog of the ridge */
} mrc_error_gradient;

/* Computes error and gradient. ridge: per unit of sample weight. by_exponent: compute out->exponent, too, which
   costs two more evaluations of the kernel function. */
mercer_status mrc_error_gradient_find(mrc_gradient_buffer *self, const mercer_kernel *kernel, double ridge,
                                      bool by_exponent, const mrc_draw *draw, mrc_error_gradient *out);

#endif

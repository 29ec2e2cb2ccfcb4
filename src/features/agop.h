/* SPDX-License-Identifier: BSD-3-Clause */
/* The average gradient outer product of a sum of kernel functions at some points. */
#ifndef MRC_FEATURES_AGOP_H
#define MRC_FEATURES_AGOP_H

#include "features/gradient.h"

/*
 * G (d, d) f64 = mean over the rows of x (m, d) of sum_l grad f_l grad f_l', or its diagonal (1, d). More than
 * MRC_AGOP_OUTPUTS outputs are not taken one by one: each part of 512 rows has one random sign for every output, and
 * the gradient of their signed sum, whose outer product has the same mean. x and alpha (p, c) in host memory. In float
 * where x, alpha and the centers are (gradient.h).
 */
enum { MRC_AGOP_OUTPUTS = 3 };
mercer_status mrc_agop(mrc_backend *backend, const mrc_expansion *sum, const mercer_matrix *x,
                       const mercer_matrix *alpha, uint64_t seed, const mercer_matrix *G);

/* G += sum over the rows of gradients (m, c d) f64 of the outer products, times factor: plain loops in double. G as
   above. */
void mrc_outer_add(const mercer_matrix *G, const mercer_matrix *gradients, int64_t c, double factor);

#endif

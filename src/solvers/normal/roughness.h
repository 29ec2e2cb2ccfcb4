/* SPDX-License-Identifier: BSD-3-Clause */
/* How slowly the spectrum of K(Z,Z) falls: what the planner needs to know of kernel and centers. */
#ifndef MRC_SOLVERS_NORMAL_ROUGHNESS_H
#define MRC_SOLVERS_NORMAL_ROUGHNESS_H

#include "solvers/operators/center_shards.h"

/* The share of K(z, z) that a sample of 500 centers does not explain, mean over other centers: near 0 if eigenvalues of
   K(Z,Z) fall fast, near 1 if K(Z,Z) is close to a multiple of I. z: this rank's share of the p centers. */
mercer_status mrc_roughness(mrc_backend *backend, mrc_comm *comm, const mercer_kernel *kernel, const mercer_matrix *z,
                            int64_t p, const double *origin, double *out);

#endif

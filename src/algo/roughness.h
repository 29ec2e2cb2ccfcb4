/* SPDX-License-Identifier: BSD-3-Clause */
/* How slowly the spectrum of K(Z,Z) falls: what the planner needs to know of kernel and centers. */
#ifndef MRC_ALGO_ROUGHNESS_H
#define MRC_ALGO_ROUGHNESS_H

#include "algo/centers.h"

/* Between 0 (the centers tell each other: eigenvalues fall to rounding) and 1 (K(Z,Z) is near a multiple of I). z: this
   rank's share of the p centers. */
mercer_status mrc_roughness(mrc_backend *backend, mrc_comm *comm, const mercer_kernel *kernel, const mercer_matrix *z,
                            int64_t p, const double *origin, double *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* How slowly the spectrum of K(Z,Z) falls: what the planner needs to know of kernel and centers. */
#ifndef MRC_ALGO_ROUGHNESS_H
#define MRC_ALGO_ROUGHNESS_H

#include "backend/backend.h"

/* Between 0 (the centers tell each other: eigenvalues fall to rounding) and 1 (K(Z,Z) is near a multiple of I). z: all
   centers. */
mercer_status mrc_roughness(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *z,
                            const double *origin, double *out);

#endif

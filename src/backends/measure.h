/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast a backend is at products of a shape: for benchmarks. */
#ifndef MRC_BACKENDS_MEASURE_H
#define MRC_BACKENDS_MEASURE_H

#include "backends/backend.h"

/* Fills *out, which is cleared. Kernel and shape were checked; its types are set. */
mercer_status mrc_measure_speed(mrc_backend *backend, mercer_speed *out, const mercer_kernel *kernel,
                                const mercer_shape *shape);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/reference: all operations as plain loops in double, slow but correct. Other backends are tested against it
 * and use its code for operations that they do not implement. This header declares the dense linear algebra of the
 * reference backend: textbook methods that are the defaults of every backend.
 */
#ifndef MRC_BACKENDS_REFERENCE_DENSE_H
#define MRC_BACKENDS_REFERENCE_DENSE_H

#include "backends/backend.h"

#define MRC_DENSE_OPERATIONS(X) X(default, gemm) X(default, eigen_top) X(default, cholesky) X(default, triangular_solve)
MRC_DENSE_OPERATIONS(MRC_DECLARE_OPERATION)

#endif

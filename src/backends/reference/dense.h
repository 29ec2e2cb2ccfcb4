/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/reference: the operations as plain loops in double, slow and right. Other backends are tested against it and
 * use it for what they do not do themselves. Here: its dense linear algebra, textbook methods, which is the default of
 * every backend.
 */
#ifndef MRC_BACKENDS_REFERENCE_DENSE_H
#define MRC_BACKENDS_REFERENCE_DENSE_H

#include "backends/backend.h"

#define MRC_DENSE_OPERATIONS(X) X(default, gemm) X(default, eigen_top) X(default, cholesky) X(default, triangular_solve)
MRC_DENSE_OPERATIONS(MRC_DECLARE_OPERATION)

#endif

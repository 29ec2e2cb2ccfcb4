/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/reference: the operations as plain loops in double, slow and right. Other backends are tested against it and
 * use it for what they do not do themselves. Here: its dense linear algebra, textbook methods, which is the default of
 * every backend.
 */
#ifndef MRC_BACKENDS_REFERENCE_DENSE_H
#define MRC_BACKENDS_REFERENCE_DENSE_H

#include "backends/backend.h"

mercer_status mrc_default_eigen_top(mrc_backend *backend, const mercer_matrix *a, int64_t q, double *values,
                                    const mercer_matrix *vectors);
mercer_status mrc_default_cholesky(mrc_backend *backend, const mercer_matrix *a);
mercer_status mrc_default_triangular_solve(mrc_backend *backend, const mercer_matrix *l, bool transpose,
                                           const mercer_matrix *b);
mercer_status mrc_default_gemm(mrc_backend *backend, const mrc_gemm *job);

#endif

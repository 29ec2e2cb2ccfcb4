/* SPDX-License-Identifier: BSD-3-Clause */
/* Top eigenpairs of a large symmetric positive semi-definite matrix by a filtered block method. */
#ifndef MRC_SOLVERS_ITERATION_EIGEN_BLOCK_H
#define MRC_SOLVERS_ITERATION_EIGEN_BLOCK_H

#include "solvers/operators/center_shards.h"

/* K (s, s) f64, kept; values (r) descending; vectors (s, r) f64, orthonormal, sign-fixed. Deterministic for a seed. */
mercer_status mrc_eigen_block(mrc_centers *centers, const mercer_matrix *k, double *values,
                              const mercer_matrix *vectors, uint64_t seed);
int64_t mrc_eigen_block_bytes(int64_t s, int64_t r);
/* Rows of the small eigenproblems that it solves. */
int64_t mrc_eigen_block_basis(int64_t s, int64_t r);

#endif

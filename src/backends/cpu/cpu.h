/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu: products and dense algebra on the processor. Micro-kernels are chosen by instruction set.
 *
 * product.c is the fused driver of everything with kernel values, on tiles (tile.h); gemm.c, factor.c and rows.c are
 * dense algebra on the same micro-kernels; BLAS is used for eigenvectors and small factors alone. Here: the backend's
 * state, and the operations that its files give to its table.
 */
#ifndef MRC_BACKENDS_CPU_CPU_H
#define MRC_BACKENDS_CPU_CPU_H

#include "backends/backend.h"
#include "backends/cpu/micro/ukernels.h"
#include "core/memory.h"

typedef struct mrc_cpu {
    mrc_ukernels uk;
    mrc_arena arena; /* scratch of the operation that is running */
} mrc_cpu;

/* The operations of its table that are not in cpu.c, by the files that have them. */
/* clang-format off */
#define MRC_CPU_OPERATIONS(X)                                                                             \
    X(cpu, gemm) X(cpu, gram) X(cpu, eigen_top) X(cpu, cholesky)              /* gemm.c, eigen.c, factor.c */ \
    X(cpu, triangular_solve) X(cpu, rows_product) X(cpu, nearest_rows)        /* rows.c, cpu_nearest.c */ \
    X(cpu, copy) X(cpu, gather_rows) X(cpu, scatter_rows) X(cpu, axpby)       /* cpu_vectors.c */         \
    X(cpu, scale_rows) X(cpu, scale_columns)                                                              \
    X(cpu, column_dots) X(cpu, column_mean) X(cpu, kernel_of_sums)                                        \
    X(cpu, feature_sums)                                                      /* features/ */
/* clang-format on */
MRC_CPU_OPERATIONS(MRC_DECLARE_OPERATION)

/* gemm, but what is above the diagonal of C may be written or not. */
mercer_status mrc_cpu_gemm_lower(mrc_backend *backend, const mrc_gemm *job);

/*
 * BLAS runs single-threaded inside our own parallel pieces: the bits of a result then do not depend on the number of
 * threads. Its thread count is a setting of the whole process, so it is lowered between begin and end, and what it was
 * comes back when the last of several contexts ends.
 */
/* MERCER_ERROR_MEMORY if there is no room for the buffer that BLAS makes at its first call: it would try for ever. Then
   nothing has begun. */
mercer_status mrc_blas_begin(mercer_context *context);
void mrc_blas_end(void);

#endif

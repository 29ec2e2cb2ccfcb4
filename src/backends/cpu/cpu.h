/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu: kernel products and dense linear algebra on the host processor. Micro-kernels are chosen by instruction
 * set.
 *
 * product.c is the fused driver of all operations on kernel values, on tiles (tile.h). gemm.c, factor.c and rows.c are
 * dense linear algebra on the same micro-kernels. LAPACK is used only for eigenvectors and for the diagonal blocks of
 * Cholesky factors. This header declares the backend's state and the operations in its table.
 */
#ifndef MRC_BACKENDS_CPU_CPU_H
#define MRC_BACKENDS_CPU_CPU_H

#include "backends/backend.h"
#include "backends/cpu/micro/ukernels.h"
#include "core/memory.h"

typedef struct mrc_cpu {
    mrc_ukernels uk;
    mrc_arena arena; /* scratch space of the current operation */
} mrc_cpu;

/* The operations of the table that are implemented outside cpu.c, with their files. */
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

/* gemm restricted to the lower triangle of C; entries above the diagonal are undefined afterwards. */
mercer_status mrc_cpu_gemm_lower(mrc_backend *backend, const mrc_gemm *job);

/*
 * Call BLAS or LAPACK only between begin and end. BLAS runs single-threaded, so that results do not depend on the
 * number of threads. Its thread count is a setting of the whole process: begin sets it to 1, and the last end of
 * several contexts restores the previous value.
 */
/* Return MERCER_ERROR_MEMORY if the buffer that OpenBLAS allocates in its first call does not fit in memory: OpenBLAS
   would retry forever. After an error, do not call mrc_blas_end. */
mercer_status mrc_blas_begin(mercer_context *context);
void mrc_blas_end(void);

#endif

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

/* Dense products (gemm.c); of the second, what is above the diagonal of C may be written or not. */
mercer_status mrc_cpu_gemm(mrc_backend *backend, const mrc_gemm *job);
mercer_status mrc_cpu_gemm_lower(mrc_backend *backend, const mrc_gemm *job);

/* Eigenvectors (eigen.c), Cholesky factor and triangular systems (factor.c). */
mercer_status mrc_cpu_eigen_top(mrc_backend *backend, const mercer_matrix *a, int64_t q, double *values,
                                const mercer_matrix *vectors);
mercer_status mrc_cpu_cholesky(mrc_backend *backend, const mercer_matrix *a);
mercer_status mrc_cpu_triangular_solve(mrc_backend *backend, const mercer_matrix *l, bool transpose,
                                       const mercer_matrix *b);

/* Products of stored rows with few columns (rows.c). */
mercer_status mrc_cpu_rows_product(mrc_backend *backend, const mrc_stored *stored, bool transpose,
                                   const mercer_matrix *w, const mercer_matrix *y);

/* Nearest rows on the fused driver (nearest.c). */
mercer_status mrc_cpu_nearest_rows(mrc_backend *backend, const mrc_search *search, int32_t *nearest,
                                   double *sqdistances);

/* Column means over fixed parts of rows (means.c). */
mercer_status mrc_cpu_column_mean(mrc_backend *backend, const mercer_matrix *x, double *mean);

/* Row and element operations (vectors.c). */
mercer_status mrc_cpu_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
mercer_status mrc_cpu_gather_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                  const int64_t *rows);
mercer_status mrc_cpu_scatter_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                   const int64_t *rows);
mercer_status mrc_cpu_axpby(mrc_backend *backend, double a, const mercer_matrix *x, double b, const mercer_matrix *y);
mercer_status mrc_cpu_column_dots(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *y, double *out);

/*
 * BLAS runs single-threaded inside our own parallel pieces: the bits of a result then do not depend on the number of
 * threads. Its thread count is a setting of the whole process, so it is lowered between begin and end, and what it was
 * comes back when the last of several contexts ends.
 */
void mrc_blas_begin(void);
void mrc_blas_end(void);

#endif

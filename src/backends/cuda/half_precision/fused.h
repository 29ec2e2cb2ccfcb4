/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fused product on tensor cores: Y = K(X, Z) W for functions of the distance, half-precision or byte rows, without
 * K ever leaving the registers. Operands are prepared once (mrc_fused_pack_*), then used in any number of products.
 */
#ifndef MRC_BACKENDS_CUDA_HALF_PRECISION_FUSED_H
#define MRC_BACKENDS_CUDA_HALF_PRECISION_FUSED_H

#include "mercer/advanced.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MRC_FUSED_ROWS = 128,    /* of X in a block */
    MRC_FUSED_CENTERS = 256, /* in a tile */
    MRC_FUSED_UNIT = 16,     /* tiles whose sums are kept in registers, at most */
    MRC_FUSED_OUTPUTS = 16   /* columns of W, at most */
};

/* What r^2 is multiplied with before the profile sees it, or 0 if the kernel has no fused form. */
double mrc_fused_scale(const mercer_kernel *kernel);
/* The power of two that half rows are multiplied with: the bandwidth becomes 64 to 128, whatever unit the data have. */
double mrc_fused_unit(const mercer_kernel *kernel);

/* Columns that c outputs take: two parts each, rounded up to what the instruction takes. */
int mrc_fused_columns(int64_t c);
/* Centers rounded up to whole tiles; units into which they are cut, which depends on their number alone. */
int64_t mrc_fused_padded(int64_t p);
int64_t mrc_fused_units(int64_t p);

/* Rows of X rounded up to what products of kept values like; what stands in those behind the last one is finite. */
int64_t mrc_fused_kept_rows(int64_t m);

/* rows (count, ld) f16 = unit (x - origin), rounded (origin NULL: 0); norms (padded): of the profile's argument, huge
   behind the last row. *overflow becomes 1 if a coordinate is too large for a half. */
cudaError_t mrc_fused_pack_half(cudaStream_t stream, const mercer_kernel *kernel, mercer_matrix x, const double *origin,
                                int64_t ld, void *rows, float *norms, int64_t padded, int *overflow);
/* rows (count, ld) u8 = x; norms (padded) = |row|^2, exact, as int32. */
cudaError_t mrc_fused_pack_bytes(cudaStream_t stream, mercer_matrix x, int64_t ld, void *rows, int32_t *norms,
                                 int64_t padded);
/* factors (c): for each column of w the power of two that brings its largest weight to 2^10 .. 2^11. */
cudaError_t mrc_fused_find_factors(cudaStream_t stream, mercer_matrix w, float *factors);
/* parts (columns, padded) f16: w in two parts, w * factors[k] = high + low; factors (c): powers of two. */
cudaError_t mrc_fused_pack_weights(cudaStream_t stream, mercer_matrix w, int columns, int64_t padded, void *parts,
                                   float *factors);

typedef struct mrc_fused_job {
    const mercer_kernel *kernel;
    int bytes;           /* rows are bytes, not halves */
    int64_t m, p, d, ld; /* ld: of x and z, in elements; a row of 16 bytes times something */
    const void *x, *z;   /* (m, ld), (p, ld) */
    const void *x_norms; /* (m rounded up to 256), (p rounded up to 256): float or int32 */
    const void *z_norms;
    const void *weights;  /* (columns, padded) f16 */
    const float *factors; /* (c) */
    float *sums;          /* (units, m, columns) scratch */
    mercer_matrix y;      /* (m, c) f32 or f64 */
    int add;
    void *kept;           /* NULL, or (kept rows, kept_columns) f16: K times 2^15 for the first centers is left here */
    int64_t kept_columns; /* whole tiles */
} mrc_fused_job;

/* y = or += the sums (units, rows of y, columns) of packed weights with kernel values times 2^15. */
cudaError_t mrc_fused_add_units(cudaStream_t stream, const float *sums, int64_t units, int columns,
                                const float *factors, mercer_matrix y, int add);

/* cudaErrorNotSupported where the device has no such instructions, or the kernel no fused form. */
cudaError_t mrc_fused_product(cudaStream_t stream, const mrc_fused_job *job);
/* The kept values alone: weights (8, padded) and sums (units, m, 8) are there and finite, and nobody reads the sums. */
cudaError_t mrc_fused_evaluate(cudaStream_t stream, const mrc_fused_job *job);

/* ---- device/tiles.cu: the same by tiles, beside cuBLAS; rows and norms are those of mrc_fused_pack_half ---------- */

/* values (rows, ld) f16 = 2^15 K from dots (rows, ld); columns behind cols become 0. ld is even. */
cudaError_t mrc_tile_profile(cudaStream_t stream, const mercer_kernel *kernel, int64_t rows, int64_t cols, int64_t ld,
                             const float *dots, const float *x_norms, const float *z_norms, void *values);
/* Columns that c outputs take in `count` parts, 1 or 2: rounded up to what matrix products like. */
int64_t mrc_tile_width(int64_t c, int count);
/* parts (p, width) f16: w * factors rounded, then, with two parts, what that leaves; zeros behind. factors (c). */
cudaError_t mrc_tile_weights(cudaStream_t stream, mercer_matrix w, int count, float *factors, void *parts);
/* y (m, c) = or += the sums (m, width) of all parts. */
cudaError_t mrc_tile_store(cudaStream_t stream, const float *sums, int count, const float *factors, mercer_matrix y,
                           int add);

#ifdef __cplusplus
}
#endif
#endif

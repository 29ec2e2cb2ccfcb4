/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fused product on tensor cores: Y = K(X, Z) W for functions of the distance and half-precision or byte rows. K
 * stays in registers. Operands are packed once (mrc_fused_pack_*) and used in any number of products.
 */
#ifndef MRC_BACKENDS_CUDA_HALF_PRECISION_FUSED_H
#define MRC_BACKENDS_CUDA_HALF_PRECISION_FUSED_H

#include "mercer/advanced.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MRC_FUSED_ROWS = 128,    /* rows of X per block */
    MRC_FUSED_CENTERS = 256, /* centers per tile */
    MRC_FUSED_UNIT = 16,     /* most tiles per unit, whose sums stay in registers */
    MRC_FUSED_OUTPUTS = 16   /* most columns of W */
};

/* Returns the factor from r^2 to the argument t of the half form (MRC_HALF_FORMS), or 0 if the kernel has no fused
   form. */
double mrc_fused_scale(const mercer_kernel *kernel);
/* Returns the power of two by which half rows are scaled: the scaled bandwidth is 64 to 128 for any unit of the
   data. */
double mrc_fused_unit(const mercer_kernel *kernel);

/* Returns the number of columns for c outputs of two parts each, rounded up to a size that the instruction supports; 0
   if c is too large. */
int mrc_fused_columns(int64_t c);
/* Return p centers rounded up to whole tiles, and the number of units they are split into, which depends only on p. */
int64_t mrc_fused_padded(int64_t p);
int64_t mrc_fused_units(int64_t p);

/* Returns m rows of X rounded up to a size that cuBLAS multiplies fast, for saved kernel values. The values in the rows
   after the last one are finite. */
int64_t mrc_fused_cached_rows(int64_t m);

/* rows (count, ld) f16 = unit (x - origin), rounded (origin NULL: 0); norms (padded): their squared norms in units of
   the profile's argument, huge after the last row. *overflow becomes 1 if a coordinate does not fit a half. */
cudaError_t mrc_fused_pack_half(cudaStream_t stream, const mercer_kernel *kernel, mercer_matrix x, const double *origin,
                                int64_t ld, void *rows, float *norms, int64_t padded, int *overflow);
/* rows (count, ld) u8 = x; norms (padded) = |row|^2, exact, as int32. */
cudaError_t mrc_fused_pack_bytes(cudaStream_t stream, mercer_matrix x, int64_t ld, void *rows, int32_t *norms,
                                 int64_t padded);
/* factors (c): for each column of w, the power of two that scales its largest |weight| to 2^10 .. 2^11. */
cudaError_t mrc_fused_find_factors(cudaStream_t stream, mercer_matrix w, float *factors);
/* parts (columns, padded) f16: each column of w in two parts, w * factors[k] = high + low. Also fills factors (c), as
   mrc_fused_find_factors does. */
cudaError_t mrc_fused_pack_weights(cudaStream_t stream, mercer_matrix w, int columns, int64_t padded, void *parts,
                                   float *factors);

typedef struct mrc_fused_job {
    const mercer_kernel *kernel;
    int bytes;           /* whether rows are bytes; otherwise halves */
    int64_t m, p, d, ld; /* ld: leading dimension of x and z in elements, a multiple of 16 bytes */
    const void *x, *z;   /* (m, ld), (p, ld) */
    const void *x_norms; /* x: (m rounded up to 256), z: (p rounded up to 256); float or int32 */
    const void *z_norms;
    const void *weights;  /* (columns, padded) f16 */
    const float *factors; /* (c) */
    float *sums;          /* (units, m, columns) scratch */
    mercer_matrix y;      /* (m, c) f32 or f64 */
    int add;
    void *saved; /* NULL, or (mrc_fused_cached_rows(m), saved_columns) f16: receives 2^15 K of the first centers */
    int64_t saved_columns; /* multiple of MRC_FUSED_CENTERS */
} mrc_fused_job;

/* y = or += (add) the result from sums (units, rows of y, columns): products of packed weights and 2^15 K. */
cudaError_t mrc_fused_add_units(cudaStream_t stream, const float *sums, int64_t units, int columns,
                                const float *factors, mercer_matrix y, int add);

/* Computes y. Returns cudaErrorNotSupported if the device lacks the instructions or the kernel has no fused form. */
cudaError_t mrc_fused_product(cudaStream_t stream, const mrc_fused_job *job);
/* Computes only the saved values. weights (8, padded) must be allocated and finite and sums (units, m, 8) allocated,
   but the sums are not meaningful. */
cudaError_t mrc_fused_evaluate(cudaStream_t stream, const mrc_fused_job *job);

/* ---- device/tiles.cu: the product by tiles, around cuBLAS; rows and norms come from mrc_fused_pack_half ---------- */

/* values (rows, ld) f16 = 2^15 K from dots (rows, ld); columns from cols on become 0. ld must be even. */
cudaError_t mrc_tile_profile(cudaStream_t stream, const mercer_kernel *kernel, int64_t rows, int64_t cols, int64_t ld,
                             const float *dots, const float *x_norms, const float *z_norms, void *values);
/* Returns the columns needed for c outputs in `count` parts (1 or 2), rounded up to a multiple of 16 for cuBLAS. */
int64_t mrc_tile_width(int64_t c, int count);
/* parts (p, width) f16: columns of w * factors rounded, then, if count is 2, the remainders; then zeros. Also fills
   factors (c). */
cudaError_t mrc_tile_weights(cudaStream_t stream, mercer_matrix w, int count, float *factors, void *parts);
/* y (m, c) = or += (add) the result from sums (m, width): the parts of each column are added and unscaled. */
cudaError_t mrc_tile_store(cudaStream_t stream, const float *sums, int count, const float *factors, mercer_matrix y,
                           int add);

#ifdef __cplusplus
}
#endif
#endif

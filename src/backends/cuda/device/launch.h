/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cuda/device: the CUDA kernels, and one launch function for each of them, callable from C by the host side
 * of the backend. All views are in device memory and all sizes are > 0 unless stated otherwise. Every function queues
 * its work on the stream and returns the launch error.
 */
#ifndef MRC_BACKENDS_CUDA_DEVICE_LAUNCH_H
#define MRC_BACKENDS_CUDA_DEVICE_LAUNCH_H

#include "mercer/advanced.h"

#include "core/numbers/changes.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- elements.cu: rows and elements -------------------------------------------------------------------------- */

/* Copies and converts to = from; to is f32, f64 or f16 (rounded to nearest), or has the dtype of from. */
cudaError_t mrc_launch_convert(cudaStream_t stream, mercer_matrix to, mercer_matrix from);
/* to_i = from_{rows[i]}; to_{rows[i]} = from_i; to_{rows[i]} += factor from_i. rows is on the device; rows that are
   written are distinct. */
cudaError_t mrc_launch_gather(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows);
cudaError_t mrc_launch_scatter(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows);
cudaError_t mrc_launch_scatter_add(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows,
                                   double factor);
/* y = a x + b y, every product and sum rounded; b == 0 does not read y. x may be y. */
cudaError_t mrc_launch_axpby(cudaStream_t stream, double a, mercer_matrix x, double b, mercer_matrix y);
/* Multiplies row i by factors[i] or, if columns is true, column j by factors[j]. */
cudaError_t mrc_launch_scale(cudaStream_t stream, mercer_matrix x, const double *factors, bool columns);
/* y_ij += x_ij factors[j]. */
cudaError_t mrc_launch_add_columns(cudaStream_t stream, mercer_matrix x, const double *factors, mercer_matrix y);
/* Rounds each element of x (f32), in place, to 11 significant bits. */
cudaError_t mrc_launch_round_half(cudaStream_t stream, mercer_matrix x);
/* to = offset + factor (from - shift), column by column; to may be from. NULL: shift 0, factor 1, offset 0. */
cudaError_t mrc_launch_affine(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const double *shift,
                              const double *factor, const double *offset);
/* A = (A + A') / 2, A (n, n) f64. */
cudaError_t mrc_launch_symmetrize(cudaStream_t stream, mercer_matrix a);
/* Sets the elements of A (n, n) f64 above the diagonal to 0. */
cudaError_t mrc_launch_clear_upper(cudaStream_t stream, mercer_matrix a);
/* Transposes columns (q, n), in ascending order of eigenvalues, to vectors (n, q) f64 in descending order, and applies
   the sign rule of eigen_top. */
cudaError_t mrc_launch_order_vectors(cudaStream_t stream, mercer_matrix vectors, const double *columns);

/* ---- normals.cu ---------------------------------------------------------------------------------------------- */

/* Fills row i of x (rows, cols) f32 with numbers first .. first + cols - 1 of sequence sequences[i]; first must be a
   multiple of 4. atoms: the table of random_normal.c. */
cudaError_t mrc_launch_normals(cudaStream_t stream, mercer_matrix x, const int16_t *atoms, uint64_t seed,
                               const int64_t *sequences, uint64_t first);
/* Augments samples: to = `from` with the change applied; all views have the same dtype. The arrays of the change are on
   the device. atoms: the table of normal numbers, for NOISE only. other: the samples to mix in, for MIX only. */
cudaError_t mrc_launch_changes(cudaStream_t stream, const mrc_change *change, const int16_t *atoms, mercer_matrix to,
                               mercer_matrix from, mercer_matrix other);

/* ---- sums.cu: sums in double, in an order that depends only on the sizes ------------------------------------- */

/* Returns the number of parts into which the rows are split; parts (mrc_sum_parts(rows), cols) below is scratch. */
int64_t mrc_sum_parts(int64_t rows);
/* out[j] = factor * sum_i x_ij y_ij; y.data == NULL: sum_i x_ij. */
cudaError_t mrc_launch_column_sums(cudaStream_t stream, mercer_matrix x, mercer_matrix y, double factor, double *parts,
                                   double *out);
/* norms (rows): the squared length of each row, summed by a warp in a fixed order. */
cudaError_t mrc_launch_row_sqnorms(cudaStream_t stream, mercer_matrix x, double *norms);
/* out (m, 3): the fields error, size and right of mrc_row_loss, per row; scale and offset (c) or NULL. */
cudaError_t mrc_launch_row_losses(cudaStream_t stream, mercer_matrix f, mercer_matrix y, const double *scale,
                                  const double *offset, double *out);

/* ---- feature_sums.cu ------------------------------------------------------------------------------------------- */

/* Returns the number of blocks into which the rows are split. */
int64_t mrc_feature_blocks(int64_t rows);
/* parts (mrc_feature_blocks(rows), d): sums of a_ij b_ij |x_ik - z_jk|^norm over the pairs of each block; norm is 1 or
   2. Terms are computed in double (wide) or float. */
cudaError_t mrc_launch_feature_sums(cudaStream_t stream, int wide, int norm, mercer_matrix x, mercer_matrix z,
                                    mercer_matrix a, mercer_matrix b, double *parts);

/* ---- triangular.cu --------------------------------------------------------------------------------------------- */

enum { MRC_TRIANGULAR_BLOCK = 64 };
/* For each of `count` matrices, a_step and m_step elements apart: the diagonal block (w, w) at m becomes the inverse of
   the Cholesky factor of the block (w, w) at a. Only the lower triangle of a is read; w <= MRC_TRIANGULAR_BLOCK.
   least (count) is reduced to the smallest squared pivot; it becomes NaN if a pivot is not positive. */
cudaError_t mrc_launch_factor_block(cudaStream_t stream, const double *a, int64_t a_ld, int64_t a_step, double *m,
                                    int64_t m_ld, int64_t m_step, int w, int64_t count, double *least);
/* Copies the lower triangle of each (n, n) matrix in a (k n, n) to its upper triangle. */
cudaError_t mrc_launch_mirror(cudaStream_t stream, mercer_matrix a);

/* ---- pack.cu: operands of the products ----------------------------------------------------------------------- */

/* Element type of the operands of a product. */
typedef enum mrc_cuda_arithmetic {
    MRC_CUDA_F32,
    MRC_CUDA_F64,
    MRC_CUDA_BYTES,
    MRC_CUDA_HALF /* difference_product.cu only */
} mrc_cuda_arithmetic;

/*
 * Returns whether products of float rows are computed from halves on tensor cores. This is the case for 49 or more
 * features (64 when padded): a f = high + low, f a power of two per row. A packed row then consists of `width` halves
 * with the high parts and `width` halves with the low parts, as many bytes as `width` floats. sums (rows) receives 1 /
 * f. `features`: number of features, padded or not.
 */
static inline int mrc_splits(mrc_cuda_arithmetic arithmetic, int64_t features)
{
    return arithmetic == MRC_CUDA_F32 && (features + 15) / 16 * 16 >= 64;
}

/*
 * Packs rows (rows, width) = x - origin (NULL: 0) in the element type of the arithmetic, with zeros after the last
 * column; norms (rows) = |row|^2. Bytes become signed by subtracting 128 instead of an origin; sums (rows) then
 * receives the sum of each row. split: the result of mrc_splits.
 */
cudaError_t mrc_launch_pack(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, int split, mercer_matrix x,
                            const double *origin, int64_t width, void *rows, double *norms, double *sums);

/* ---- split.cu: float matrices as halves ------------------------------------------------------------------------ */

/* Sets *factor to the power of two that scales the largest |entry| of a (f32) to 2^10 .. 2^11. */
cudaError_t mrc_launch_split_factor(cudaStream_t stream, mercer_matrix a, float *factor);
/* Writes three halves for each entry of a (f32), padded with zeros to (rows, cols), `step` halves apart, in rows of ld:
   the low part of a f at position low_part (0 or 1), the high part (a f rounded) at the two other positions. factors:
   one per column if columns != 0, otherwise one for all. */
cudaError_t mrc_launch_split(cudaStream_t stream, mercer_matrix a, const float *factors, int columns, int low_part,
                             int64_t rows, int64_t cols, int64_t step, int64_t ld, void *parts);
/* c = alpha sums / (left right_j) + beta c, c f32; beta == 0 does not read c. */
cudaError_t mrc_launch_store_split(cudaStream_t stream, const float *sums, int64_t ld, double alpha, const float *left,
                                   const float *right, double beta, mercer_matrix c);

/* ---- scan.cu: checks of callers' arrays ------------------------------------------------------------------------ */

/* Result of a scan. */
typedef struct mrc_scanned {
    uint64_t first; /* row-major index of the first element that is not finite; UINT64_MAX if all are finite */
    double largest; /* largest magnitude of the finite elements */
} mrc_scanned;
cudaError_t mrc_launch_scan(cudaStream_t stream, mercer_matrix x, mrc_scanned *out);

/* ---- differences.cu: sums of |differences|^p ------------------------------------------------------------------- */

/* sums (rows, ld) = sum_k |a_ik - b_jk|^power of packed rows that are not split: float, double, or int32 for bytes. */
typedef struct mrc_differences {
    mrc_cuda_arithmetic arithmetic;
    double power;              /* 1 for bytes */
    int64_t rows, cols, width; /* shapes: a (rows, width), b (cols, width) */
    const void *a, *b;
    void *sums;
    int64_t ld;
} mrc_differences;
cudaError_t mrc_launch_differences(cudaStream_t stream, const mrc_differences *job);

/* ---- difference_product.cu: sums of differences, kernel values and K W in one kernel --------------------------- */

enum { MRC_DIFFERENCE_TILES = 32 }; /* tiles of 128 centers per group */

/* Returns whether the kernel has a float form of sums of |differences|; the points may be halves, floats or bytes. */
bool mrc_difference_product_takes(const mercer_kernel *kernel);
/* Packed sizes: rows rounded up to whole tiles; words (4 bytes) per row; columns of W, padded; groups of centers. */
int64_t mrc_difference_rows(int64_t rows);
int64_t mrc_difference_words(mrc_cuda_arithmetic arithmetic, int64_t features);
int mrc_difference_columns(int64_t columns);
int64_t mrc_difference_groups(int64_t centers);
/* Returns the largest number of columns of W per pass with shared_bytes of shared memory per block: 64 on Hopper. */
int mrc_difference_most_columns(size_t shared_bytes);
/* Packs x into tiles (rows / 128, words, 128): words are floats, two halves or four bytes; zeros after the last row and
   feature. Halves are unit (x - origin), origin (d) on the device or NULL for 0; *overflow = 1 if a coordinate does not
   fit a half. Tiles of halves are followed by the sum of each row, a float, so `tiles` must have capacity for one more
   word per row. */
cudaError_t mrc_launch_pack_tiles(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, mercer_matrix x,
                                  const double *origin, double unit, int *overflow, void *tiles);
/* Packs W to out (mrc_difference_rows, mrc_difference_columns) in the order in which the product reads W; up to 64
   columns. */
cudaError_t mrc_launch_pack_tile_weights(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, mercer_matrix w,
                                         float *out);

typedef struct mrc_difference_product {
    mrc_cuda_arithmetic arithmetic; /* F32, BYTES or HALF */
    double unit;                    /* scale of halves, as in mrc_launch_pack_tiles */
    int64_t rows, cols, features;   /* rows of X, rows of Z, features of both */
    int columns;                    /* columns of W */
    const void *a, *b;              /* packed tiles of X, of Z */
    const float *weights;           /* packed W */
    double *parts;                  /* (groups, rows, columns): sums over each group's centers */
    float *saved; /* (rows, saved_columns), leading dimension saved_ld: receives the first columns of K */
    int64_t saved_columns, saved_ld;
} mrc_difference_product;
cudaError_t mrc_launch_difference_product(cudaStream_t stream, const mercer_kernel *kernel,
                                          const mrc_difference_product *job);

/* ---- profile.cu: kernel values from products ----------------------------------------------------------------- */

typedef struct mrc_profile_job {
    mercer_kernel kernel;
    int on_distance, angular;
    int direct, split; /* whether dots are sums of |differences|^norm; whether rows are split into halves */
    double norm;       /* norm p of the kernel's distance */
    mrc_cuda_arithmetic arithmetic;
    mercer_matrix x, z; /* (rows, d), (cols, d): original points, for nearly equal pairs */
    const double *x_norms, *z_norms, *x_sums, *z_sums; /* norms and sums of the packed rows */
    const void *dots;                                  /* (rows, dots_ld): inner products of the packed rows */
    int64_t dots_ld;
    mercer_matrix values; /* (rows, cols) f32 or f64; may be dots itself if the elements have the same size */
} mrc_profile_job;

/* Returns whether this build has a formula for the kernel function. The launches below accept only such kernels and
   callbacks. */
bool mrc_cuda_knows_kernel(int32_t id);
cudaError_t mrc_launch_profile(cudaStream_t stream, const mrc_profile_job *job);
/* For each row: finds the nearest of the job's centers, which are numbered from `first` on, and updates nearest and
   best if this center is nearer than best. start: best and nearest are not set yet. */
cudaError_t mrc_launch_nearest(cudaStream_t stream, const mrc_profile_job *job, int64_t first, int start,
                               int32_t *nearest, double *best);
/* Computes values (m, 1) = K(x_i, x_i); for a callback kernel, the argument of the callback. */
cudaError_t mrc_launch_diagonal(cudaStream_t stream, const mercer_kernel *kernel, int on_distance, mercer_matrix x,
                                mercer_matrix values);

/* ---- multiply_weights.cu: values times weights ----------------------------------------------------------------- */

/* Returns the number of groups of centers with separate sums; parts (groups, rows, c) f64 below is scratch. */
int64_t mrc_multiply_weights_groups(int64_t cols);
/* sums (rows, cols), leading dimension ld, += parts (groups, rows, cols), group by group. */
cudaError_t mrc_launch_add_groups(cudaStream_t stream, const double *parts, int64_t groups, int64_t rows, int64_t cols,
                                  double *sums, int64_t ld);
/* sums (rows, c) f64 += K (rows, cols) W (cols, c), summed in double in an order that depends only on cols. */
cudaError_t mrc_launch_multiply_weights(cudaStream_t stream, mercer_matrix k, mercer_matrix w, double *parts,
                                        double *sums);
/* y = sums or, if add != 0, y += sums. */
cudaError_t mrc_launch_store_sums(cudaStream_t stream, const double *sums, mercer_matrix y, int add);

#ifdef __cplusplus
}
#endif
#endif

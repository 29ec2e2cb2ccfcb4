/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cuda/device: what the host side of the CUDA backend may launch: one function for each kernel, callable
 * from C. Every view lies in device memory, every size is > 0 unless said otherwise, work is queued on the stream
 * and the launch error is returned.
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

/* to = from, converted; to is f32, f64 or f16 (rounded to nearest), or of the same dtype. */
cudaError_t mrc_launch_convert(cudaStream_t stream, mercer_matrix to, mercer_matrix from);
cudaError_t mrc_launch_gather(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows);
cudaError_t mrc_launch_scatter(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows);
cudaError_t mrc_launch_scatter_add(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const int64_t *rows,
                                   double factor);
cudaError_t mrc_launch_axpby(cudaStream_t stream, double a, mercer_matrix x, double b, mercer_matrix y);
/* Rows, or columns, times factors of their own. */
cudaError_t mrc_launch_scale(cudaStream_t stream, mercer_matrix x, const double *factors, bool columns);
/* y_ij += x_ij factors[j]; and x f32, each element rounded to 11 bits. */
cudaError_t mrc_launch_add_columns(cudaStream_t stream, mercer_matrix x, const double *factors, mercer_matrix y);
cudaError_t mrc_launch_round_half(cudaStream_t stream, mercer_matrix x);
/* to = offset + factor (from - shift), column by column; to may be from; NULL: 0, 1, 0. */
cudaError_t mrc_launch_affine(cudaStream_t stream, mercer_matrix to, mercer_matrix from, const double *shift,
                              const double *factor, const double *offset);
cudaError_t mrc_launch_symmetrise(cudaStream_t stream, mercer_matrix a);
/* A (n, n) f64: everything above the diagonal becomes 0. */
cudaError_t mrc_launch_clear_upper(cudaStream_t stream, mercer_matrix a);
/* vectors (n, q) f64 from columns (q, n), ascending to descending, with the sign rule of eigen_top. */
cudaError_t mrc_launch_order_vectors(cudaStream_t stream, mercer_matrix vectors, const double *columns);

/* ---- normals.cu ---------------------------------------------------------------------------------------------- */

/* x (rows, cols) f32: row i is numbers first .. first + cols - 1 of sequence sequences[i]; first is a multiple of 4. */
cudaError_t mrc_launch_normals(cudaStream_t stream, mercer_matrix x, const int16_t *atoms, uint64_t seed,
                               const int64_t *sequences, uint64_t first);
/* to = `from` changed, of one dtype; the arrays of the change lie on the device, the table in atoms. other: MIX. */
cudaError_t mrc_launch_changes(cudaStream_t stream, const mrc_change *change, const int16_t *atoms, mercer_matrix to,
                               mercer_matrix from, mercer_matrix other);

/* ---- sums.cu: sums in double, in an order that depends on the sizes alone ------------------------------------ */

/* Parts into which the rows are cut; parts (mrc_sum_parts(rows), cols) is scratch. */
int64_t mrc_sum_parts(int64_t rows);
/* out[j] = factor * sum_i x_ij y_ij; y.data == NULL: sum_i x_ij. */
cudaError_t mrc_launch_column_sums(cudaStream_t stream, mercer_matrix x, mercer_matrix y, double factor, double *parts,
                                   double *out);
cudaError_t mrc_launch_row_sqnorms(cudaStream_t stream, mercer_matrix x, double *norms);
/* out (m, 3): error, size and right of mrc_row_loss; scale and offset (c) or NULL. */
cudaError_t mrc_launch_row_losses(cudaStream_t stream, mercer_matrix f, mercer_matrix y, const double *scale,
                                  const double *offset, double *out);

/* ---- feature_sums.cu ------------------------------------------------------------------------------------------- */

/* Blocks into which the rows are cut; parts (mrc_feature_blocks(rows), d): their sums over pairs of a_ij b_ij |x_ik -
   z_jk|^norm, norm 1 or 2, in double (wide) or float. */
int64_t mrc_feature_blocks(int64_t rows);
cudaError_t mrc_launch_feature_sums(cudaStream_t stream, int wide, int norm, mercer_matrix x, mercer_matrix z,
                                    mercer_matrix a, mercer_matrix b, double *parts);

/* ---- triangular.cu --------------------------------------------------------------------------------------------- */

enum { MRC_TRIANGULAR_BLOCK = 64 };
/* Of `count` matrices with steps from one to the next: the diagonal block (w, w) at m becomes the inverse of the
   Cholesky factor of the one at a, of which the lower triangle is read; w <= MRC_TRIANGULAR_BLOCK. *least (count): the
   smaller of itself and the squared pivots; NaN from the first pivot on that is not positive. */
cudaError_t mrc_launch_factor_block(cudaStream_t stream, const double *a, int64_t a_ld, int64_t a_step, double *m,
                                    int64_t m_ld, int64_t m_step, int w, int64_t count, double *least);
/* The lower triangles of matrices (n, n) one below the other, mirrored. */
cudaError_t mrc_launch_mirror(cudaStream_t stream, mercer_matrix a);

/* ---- pack.cu: operands of the products ----------------------------------------------------------------------- */

/* How products are formed. */
typedef enum mrc_cuda_arithmetic {
    MRC_CUDA_F32,
    MRC_CUDA_F64,
    MRC_CUDA_BYTES,
    MRC_CUDA_HALF /* difference_product.cu only */
} mrc_cuda_arithmetic;

/*
 * Float rows that are long enough for it are products of halves on tensor cores: a f = high + low, f a power of two for
 * each row. high lies in the first half of a row of 2 width halves, low in the second: as many bytes as width floats.
 * sums (rows) then gets 1 / f. `features`: of the points, padded or not.
 */
static inline int mrc_splits(mrc_cuda_arithmetic arithmetic, int64_t features)
{
    return arithmetic == MRC_CUDA_F32 && (features + 15) / 16 * 16 >= 64;
}

/*
 * rows (rows, width) = x - origin (NULL: 0) in the arithmetic, zeros behind the last column; norms (rows) = |row|^2.
 * Bytes lose 128 instead and become signed; sums (rows) then gets the sum of each row. split: as mrc_splits says.
 */
cudaError_t mrc_launch_pack(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, int split, mercer_matrix x,
                            const double *origin, int64_t width, void *rows, double *norms, double *sums);

/* ---- split.cu: float matrices as halves ------------------------------------------------------------------------ */

/* *factor: the power of two that brings the largest |entry| of a, f32, to 2^10 .. 2^11. */
cudaError_t mrc_launch_split_factor(cudaStream_t stream, mercer_matrix a, float *factor);
/* parts: three of each entry of a, f32, padded with zeros to (rows, cols), `step` halves apart, in rows of ld: a f
   rounded, twice, and what that leaves at place low_part, 0 or 1. factors: one for each column, or one for all. */
cudaError_t mrc_launch_split(cudaStream_t stream, mercer_matrix a, const float *factors, int columns, int low_part,
                             int64_t rows, int64_t cols, int64_t step, int64_t ld, void *parts);
/* c = alpha sums / (left right_j) + beta c, c f32; beta == 0 does not read it. */
cudaError_t mrc_launch_store_split(cudaStream_t stream, const float *sums, int64_t ld, double alpha, const float *left,
                                   const float *right, double beta, mercer_matrix c);

/* ---- scan.cu: what callers' arrays are checked for ------------------------------------------------------------- */

/* The number of the first element that is not finite, UINT64_MAX if all are; the largest of the others. */
typedef struct mrc_scanned {
    uint64_t first;
    double largest;
} mrc_scanned;
cudaError_t mrc_launch_scan(cudaStream_t stream, mercer_matrix x, mrc_scanned *out);

/* ---- differences.cu: sums of |differences|^p ------------------------------------------------------------------- */

/* sums (rows, ld) = sum_k |a_ik - b_jk|^power of packed rows that are not split: float, double, or int32 for bytes. */
typedef struct mrc_differences {
    mrc_cuda_arithmetic arithmetic;
    double power;              /* 1 for bytes */
    int64_t rows, cols, width; /* of a: (rows, width); of b: (cols, width) */
    const void *a, *b;
    void *sums;
    int64_t ld;
} mrc_differences;
cudaError_t mrc_launch_differences(cudaStream_t stream, const mrc_differences *job);

/* ---- difference_product.cu: such sums, values and products in one ---------------------------------------------- */

enum { MRC_DIFFERENCE_TILES = 32 }; /* tiles of 128 centers in a group */

/* There is a float form of the kernel: in half, float or bytes, power 1. */
bool mrc_difference_product_takes(const mercer_kernel *kernel);
/* Rows rounded up to whole tiles, words (of 4 bytes) of a row, columns of W as they are packed, groups of centers. */
int64_t mrc_difference_rows(int64_t rows);
int64_t mrc_difference_words(mrc_cuda_arithmetic arithmetic, int64_t features);
int mrc_difference_columns(int64_t columns);
int64_t mrc_difference_groups(int64_t centers);
/* The most columns of W that a kernel takes with so much shared memory in a block: 64 on Hopper. */
int mrc_difference_most_columns(size_t shared_bytes);
/* tiles (rows / 128, words, 128): floats, or two halves or four bytes in a word; zeros behind the last row and feature.
   Halves are of unit (x - origin), origin (d) on the device, NULL for 0; *overflow = 1 if one does not fit; behind the
   tiles lie the sums of their rows, a float each, so that there must be room for a word more. */
cudaError_t mrc_launch_pack_tiles(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, mercer_matrix x,
                                  const double *origin, double unit, int *overflow, void *tiles);
/* out (rows of whole tiles, packed columns) in the order of the product; at most 64 columns. */
cudaError_t mrc_launch_pack_tile_weights(cudaStream_t stream, mrc_cuda_arithmetic arithmetic, mercer_matrix w,
                                         float *out);

typedef struct mrc_difference_product {
    mrc_cuda_arithmetic arithmetic; /* F32, BYTES or HALF */
    double unit;                    /* of halves */
    int64_t rows, cols, features;
    int columns;       /* of W */
    const void *a, *b; /* packed tiles of X, of Z */
    const float *weights;
    double *parts; /* (groups, rows, columns): sums over each group's centers */
    float *kept;   /* (rows, kept_columns), with kept_ld: K of the first centers is left here */
    int64_t kept_columns, kept_ld;
} mrc_difference_product;
cudaError_t mrc_launch_difference_product(cudaStream_t stream, const mercer_kernel *kernel,
                                          const mrc_difference_product *job);

/* ---- profile.cu: kernel values from products ----------------------------------------------------------------- */

typedef struct mrc_profile_job {
    mercer_kernel kernel;
    int on_distance, angular;
    int direct, split; /* dots are sums of |differences|^norm; rows were split */
    double norm;       /* of the kernel's distance */
    mrc_cuda_arithmetic arithmetic;
    mercer_matrix x, z; /* (rows, d), (cols, d): the points as they were given, for nearly equal pairs */
    const double *x_norms, *z_norms, *x_sums, *z_sums; /* of the packed rows */
    const void *dots;                                  /* (rows, dots_ld) products of the packed rows */
    int64_t dots_ld;
    mercer_matrix values; /* (rows, cols) f32 or f64; may be dots itself if the size of an element is the same */
} mrc_profile_job;

/* There is a formula for the kernel function; the launches below must not be asked for others (callbacks aside). */
bool mrc_cuda_knows_kernel(int32_t id);
cudaError_t mrc_launch_profile(cudaStream_t stream, const mrc_profile_job *job);
/* For each row the nearest of the job's centers, whose first has number `first`, if it is nearer than best says;
   start: there is none yet. */
cudaError_t mrc_launch_nearest(cudaStream_t stream, const mrc_profile_job *job, int64_t first, int start,
                               int32_t *nearest, double *best);
/* values (m, 1) = K(x_i, x_i), or the argument of a user's function and squared norms. */
cudaError_t mrc_launch_diagonal(cudaStream_t stream, const mercer_kernel *kernel, int on_distance, mercer_matrix x,
                                mercer_matrix values);

/* ---- multiply_weights.cu: values times weights ----------------------------------------------------------------- */

/* Groups of centers whose sums are kept apart; parts (groups, rows, c) f64 is scratch. */
int64_t mrc_multiply_weights_groups(int64_t cols);
/* sums (rows, cols), with ld, += parts (groups, rows, cols), in order. */
cudaError_t mrc_launch_add_groups(cudaStream_t stream, const double *parts, int64_t groups, int64_t rows, int64_t cols,
                                  double *sums, int64_t ld);
/* sums (rows, c) f64 += K (rows, cols) W (cols, c), summed in double in an order that depends on cols alone. */
cudaError_t mrc_launch_multiply_weights(cudaStream_t stream, mercer_matrix k, mercer_matrix w, double *parts,
                                        double *sums);
/* y = sums, or y += sums. */
cudaError_t mrc_launch_store_sums(cudaStream_t stream, const double *sums, mercer_matrix y, int add);

#ifdef __cplusplus
}
#endif
#endif

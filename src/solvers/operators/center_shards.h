/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solvers/operators: the centers Z (p, d), divided into shards, which are distributed over the ranks, and the products
 * with K(., Z) that algorithms use.
 *
 * A "field" is a matrix with one row for each center of this rank, (rows, k), in the order of the centers. The part of
 * a field that belongs to a shard is a range of rows. Elementwise operations (axpby, copy, ...) work on the whole field
 * at once. Products and sums go shard by shard; the shards do not depend on the number of ranks, so results are bitwise
 * identical:
 *
 *   predict    F = K(X, Z) W = sum_s K(X, Z_s) W_s           one sum of (m, c) over shards
 *   transpose  H_s = K(Z_s, X) G                             local
 *   apply      H_s = K(Z_s, B) W                             local
 *   multiply   H_s = U_s A                                   local
 *   inner      A = U' V = sum_s U_s' V_s                     one sum of (k, c)
 *   collect    rows of a field by global index               one message from each owner to all ranks
 */
#ifndef MRC_SOLVERS_OPERATORS_CENTER_SHARDS_H
#define MRC_SOLVERS_OPERATORS_CENTER_SHARDS_H

#include "backends/backend.h"
#include "comm/comm.h"

typedef struct mrc_shard {
    int64_t offset; /* first row of the shard in a field */
    int64_t rows;
} mrc_shard;

/* Points that many products use, and their packed form. */
typedef struct mrc_packed_points {
    mercer_matrix points; /* complete matrix that was packed; data is NULL in a free slot */
    mrc_packed *packed;
} mrc_packed_points;

/* One more than the number of point matrices that recur in training: the centers, the centers in the order of the
   blocks, the preconditioner's sample, a batch and temporary centers. If the list is full, further points are used
   unpacked. */
enum { MRC_MOST_PACKED = 6 };

/* Progress callback of set-up. share: fraction of the phase that is done; negative if unknown. */
typedef void (*mrc_notice)(void *user, const char *what, double share);
#define MRC_READY "ready" /* the last notice: set-up is complete and the samples are read next */

typedef struct mrc_centers {
    mercer_context *context;
    mrc_backend *backend;
    mrc_comm *comm;
    const mercer_kernel *kernel;
    const double *origin; /* (d) subtracted in distances; fixed for the whole training run, so that K is one function */
    mercer_dtype real;    /* f32 or f64: weights, fields, kernel values */
    mercer_matrix z;      /* (rows, d) centers of this rank; borrowed, or a view of `own` */
    mercer_matrix own;    /* (rows, d) owned copy, if the centers had to be copied to the device */
    int64_t p;            /* number of centers of all ranks */
    int64_t first;        /* global index of the first center of this rank */
    int all_shards;       /* S, number of shards of all ranks */
    int first_shard;      /* index of the first shard of this rank */
    int shards;           /* number of shards of this rank */
    mrc_shard *shard;     /* (shards) */
    double flops;         /* flops of the products below: 2 per multiply-add; kernel functions are not counted */
    mrc_packed_points packed[MRC_MOST_PACKED]; /* points that the backend has packed */
    bool half;                                 /* kernel products may be computed in half precision */
    mrc_notice notice;                         /* progress callback of set-up, or NULL */
    void *notice_user;
} mrc_centers;

/* Report a phase of set-up, because set-up may take seconds before the first step. */
static inline void mrc_centers_notify(const mrc_centers *centers, const char *what, double share)
{
    if (centers->notice) centers->notice(centers->notice_user, what, share);
}

/* Count the flops of a product: m p `width` multiply-adds. */
static inline void mrc_count_product(mrc_centers *centers, int64_t m, int64_t p, int64_t width)
{
    centers->flops += 2.0 * (double)m * (double)p * (double)width;
}

/* Create the centers of a rank. z: this rank's share (mrc_comm_rows) of the p centers; z and origin (d) are
   borrowed. */
mercer_status mrc_centers_create(mrc_centers *out, mrc_backend *backend, mrc_comm *comm, const mercer_kernel *kernel,
                                 const mercer_matrix *z, int64_t p, const double *origin, mercer_dtype real);
/* Allow half precision in products, and pack the centers for it; products are accurate otherwise. */
mercer_status mrc_centers_allow_half(mrc_centers *centers);
void mrc_centers_destroy(mrc_centers *centers);

/* Create a field (rows, columns) of type real or f64, cleared. */
mercer_status mrc_field_create(mrc_centers *centers, mercer_matrix *out, int64_t columns, mercer_dtype dtype,
                               const char *what);
/* Create a field, or a matrix for `count` centers, that is freed with the scope. */
mercer_status mrc_scope_field(mrc_scope *scope, mrc_centers *centers, mercer_matrix *out, int64_t columns,
                              mercer_dtype dtype, const char *what);
mercer_status mrc_scope_points(mrc_scope *scope, mrc_centers *centers, mercer_matrix *out, int64_t count,
                               const char *what);
/* Compute F (m, c) = K(X, Z) W. cached: one cached block per local shard, or NULL to cache nothing. */
mercer_status mrc_centers_predict(mrc_centers *centers, const mercer_matrix *x, const mercer_matrix *w,
                                  const mercer_matrix *f, mrc_cached_block *cached);
/* Compute K(X, Z_i) W_i, the part of local shard i, for the field W. */
mercer_status mrc_centers_predict_part(mrc_centers *centers, int i, const mercer_matrix *x, const mercer_matrix *w,
                                       const mercer_matrix *part, mrc_cached_block *cached);
/* Compute the field H (rows, c) = K(Z, X) G. cached: blocks that mrc_centers_predict cached for the same x; NULL:
   evaluate K again. short_weights: as in mrc_pair. */
mercer_status mrc_centers_transpose(mrc_centers *centers, const mercer_matrix *x, const mercer_matrix *g,
                                    const mercer_matrix *h, const mrc_cached_block *cached, bool short_weights);
/* Return whether c columns of weights should be rounded by the backend's round_half before products with cached
   values. */
bool mrc_centers_short_weights(const mrc_centers *centers, int64_t c);
/* Compute the field H = K(Z, B) W or, with add, H += K(Z, B) W. Points B and weights W are the same on every rank. */
mercer_status mrc_centers_apply(mrc_centers *centers, const mercer_matrix *b, const mercer_matrix *w,
                                const mercer_matrix *h, bool add);
/* Compute and store the field K (rows, b) = K(Z, B). */
mercer_status mrc_centers_eval(mrc_centers *centers, const mercer_matrix *b, const mercer_matrix *k);
/* Compute the field H = alpha U A + beta H for a field U and a matrix A that is the same on every rank. */
mercer_status mrc_centers_multiply(mrc_centers *centers, double alpha, const mercer_matrix *u, const mercer_matrix *a,
                                   double beta, const mercer_matrix *h);
/* Return the part of a field that belongs to local shard i. */
mercer_matrix mrc_centers_part(const mrc_centers *centers, const mercer_matrix *field, int i);
/* Compute out = the sum over all shards of their parts. `work` is called for each local shard and writes the shard's
   part to `part`, which is cleared before if there are several shards. */
typedef mercer_status (*mrc_part_work)(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument);
mercer_status mrc_centers_sum(mrc_centers *centers, const mercer_matrix *out, mrc_part_work work, void *argument);
/* mrc_centers_inner computes out (k, c) = U' V for fields U (rows, k), V (rows, c) of the same dtype. mrc_centers_gram
   computes U' U and never uses split_gemm. */
mercer_status mrc_centers_inner(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *v,
                                const mercer_matrix *out);
mercer_status mrc_centers_gram(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *out);
/* Compute out[j] = sum over all centers i of U_ij V_ij; out: (c) doubles. */
mercer_status mrc_centers_column_dots(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *v,
                                      double *out);
/* Compute |U|_F over all centers and columns. */
mercer_status mrc_centers_norm(mrc_centers *centers, const mercer_matrix *u, double *out);
/* Copy rows `ids` (global indices) of a field, or of the centers if field is NULL, to out (count, k) on every rank. out
   has the same dtype. */
mercer_status mrc_centers_collect(mrc_centers *centers, const mercer_matrix *field, const int64_t *ids, int64_t count,
                                  const mercer_matrix *out);
/* Copy rows first .. first + count - 1 (global) of a field, or of the centers (NULL), to out (count, k), whose rows are
   contiguous. Source and destination are one range for each rank, so nothing is packed (collect.c). */
mercer_status mrc_centers_range(mrc_centers *centers, const mercer_matrix *field, int64_t first, int64_t count,
                                const mercer_matrix *out);
/* Return the number of centers per block when all p centers are collected: about the size of a shard, so that memory
   decreases with the number of shards. */
enum { MRC_COLLECT_BLOCK = 4096 }; /* upper limit of mrc_collect_rows */
int64_t mrc_collect_rows(int64_t p, int shards);
/* Compute the field out = K(Z,Z) V for a field V. cached (rows, p) real: this rank's rows of K(Z,Z); NULL: evaluate K.
   */
mercer_status mrc_centers_times(mrc_centers *centers, const mercer_matrix *cached, const mercer_matrix *v,
                                const mercer_matrix *out);
/* Create and compute this rank's rows of K(Z,Z), for mrc_centers_times; the caller owns the matrix. */
mercer_status mrc_centers_store_kernel(mrc_centers *centers, mercer_matrix *out);
/* Return all p centers in one matrix: with one rank a view of z, else a copy owned by the scope. */
mercer_status mrc_centers_gather_all(mrc_centers *centers, mrc_scope *scope, mercer_matrix *all);
/* Add factor * from (count, k) to rows `ids` of a field. Each rank adds to its own rows and ignores all other rows. */
mercer_status mrc_centers_scatter_add(mrc_centers *centers, const mercer_matrix *field, const int64_t *ids,
                                      int64_t count, const mercer_matrix *from, double factor);

/*
 * Points that occur in many products can be packed once: the products below find the packed form by the address of the
 * points. mrc_points_pack packs the current values of rows first .. first + count - 1 of `whole`. A caller that changes
 * them must pack them again, and must call mrc_points_forget before they are released. These functions have no effect
 * if the backend has no packed form.
 */
mercer_status mrc_points_pack(mrc_centers *centers, const mercer_matrix *whole, int64_t first, int64_t count);
void mrc_points_forget(mrc_centers *centers, const mercer_matrix *whole);
/* Return the pair K(A, B) with the centers' kernel, origin and packed points. */
mrc_pair mrc_points_pair(const mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b);

/* Compute Y = K(A, B) W or Y += ..., for any points, with the centers' kernel, origin and flop count. The product is
   not distributed over ranks. */
mercer_status mrc_points_matmul(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                                const mercer_matrix *w, const mercer_matrix *y, bool add);
/* Compute and store K = K(A, B), K f32 or f64. */
mercer_status mrc_points_eval(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                              const mercer_matrix *k);
/* Compute K(A, B) into rows of a stored matrix, with scratch space for backends that need it; and Y = K(A, B) W unless
   w is NULL. */
mercer_status mrc_points_store(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                               const mercer_matrix *w, const mercer_matrix *y, const mrc_stored *to);
/* Compute C = alpha op(A) op(B) + beta C and add its flops to the count of the centers. */
mercer_status mrc_counted_gemm(mrc_centers *centers, bool transpose_a, bool transpose_b, double alpha,
                               const mercer_matrix *a, const mercer_matrix *b, double beta, const mercer_matrix *c);
/* Like mrc_counted_gemm without transposing B, but uses the backend's split_gemm if half precision is allowed. */
mercer_status mrc_split_gemm(mrc_centers *centers, bool transpose_a, double alpha, const mercer_matrix *a,
                             const mercer_matrix *b, double beta, const mercer_matrix *c);

#endif

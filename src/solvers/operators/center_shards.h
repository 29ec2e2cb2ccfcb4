/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solvers/operators: the centers Z (p, d), divided into shards and these among ranks, and the products with K(., Z)
 * that algorithms use.
 *
 * A "field" is a matrix with one row for each center that this rank holds, (rows, k), in the order of the centers. A
 * shard's part of it is a range of its rows. What treats elements alone (axpby, copy, ...) is done on the whole field
 * at once; products and sums go shard by shard, the same pieces whatever the number of ranks, so that results have the
 * same bits:
 *
 *   predict    F = K(X, Z) W = sum_s K(X, Z_s) W_s           one sum of (m, c) over shards
 *   transpose  H_s = K(Z_s, X) G                             local
 *   apply      H_s = K(Z_s, B) W                             local
 *   multiply   H_s = U_s A                                   local
 *   inner      A = U' V = sum_s U_s' V_s                     one sum of (k, c)
 *   collect    rows of a field by global index               their owners send them to all
 */
#ifndef MRC_SOLVERS_OPERATORS_CENTER_SHARDS_H
#define MRC_SOLVERS_OPERATORS_CENTER_SHARDS_H

#include "backends/backend.h"
#include "comm/comm.h"

typedef struct mrc_shard {
    int64_t offset; /* of its rows in a field */
    int64_t rows;
} mrc_shard;

/* Points that many products use, and their packed form. */
typedef struct mrc_packed_points {
    mercer_matrix points; /* the whole matrix; no data: this place is free */
    mrc_packed *packed;
} mrc_packed_points;

enum { MRC_MOST_PACKED = 6 };

/* Told what set-up does: share of it done, or negative where that is not known. */
typedef void (*mrc_notice)(void *user, const char *what, double share);
#define MRC_READY "ready" /* the last thing told: from here on samples are used */

typedef struct mrc_centers {
    mercer_context *context;
    mrc_backend *backend;
    mrc_comm *comm;
    const mercer_kernel *kernel;
    const double *origin; /* (d) subtracted in distances: fixed for the whole training, so that K is one function */
    mercer_dtype real;    /* f32 or f64: weights, fields, kernel values */
    mercer_matrix z;      /* (rows, d) those of this rank; borrowed, unless they had to be copied to the device */
    mercer_matrix own;    /* that copy */
    int64_t p;            /* of all ranks */
    int64_t first;        /* global index of the first row here */
    int all_shards;       /* S, of all ranks */
    int first_shard;      /* number of the first one here */
    int shards;           /* how many are here */
    mrc_shard *shard;     /* (shards) */
    double flops;         /* counted by the products below: 2 per multiply-add, kernel values not counted */
    mrc_packed_points packed[MRC_MOST_PACKED]; /* points of which the backend has a packed form */
    bool accurate;     /* products are not rounded to half precision, whatever the context allows */
    mrc_notice notice; /* or NULL */
    void *notice_user;
} mrc_centers;

/* Reports what takes seconds before the first step. */
static inline void mrc_centers_tell(const mrc_centers *centers, const char *what, double share)
{
    if (centers->notice) centers->notice(centers->notice_user, what, share);
}

/* The flops of a product: m p `width` multiply-adds. */
static inline void mrc_count_product(mrc_centers *centers, int64_t m, int64_t p, int64_t width)
{
    centers->flops += 2.0 * (double)m * (double)p * (double)width;
}

/* z: this rank's share (mrc_comm_rows) of the p centers. origin (d) is borrowed. */
mercer_status mrc_centers_create(mrc_centers *out, mrc_backend *backend, mrc_comm *comm, const mercer_kernel *kernel,
                                 const mercer_matrix *z, int64_t p, const double *origin, mercer_dtype real);
void mrc_centers_destroy(mrc_centers *centers);

/* A new field (rows, columns) of type real or f64, cleared. */
mercer_status mrc_field_create(mrc_centers *centers, mercer_matrix *out, int64_t columns, mercer_dtype dtype,
                               const char *what);
/* The same, and room for so many of the centers, for the time of a call. */
mercer_status mrc_scope_field(mrc_scope *scope, mrc_centers *centers, mercer_matrix *out, int64_t columns,
                              mercer_dtype dtype, const char *what);
mercer_status mrc_scope_points(mrc_scope *scope, mrc_centers *centers, mercer_matrix *out, int64_t count,
                               const char *what);
/* F (m, c) = K(X, Z) W. kept: one for each shard, or NULL to keep nothing. */
mercer_status mrc_centers_predict(mrc_centers *centers, const mercer_matrix *x, const mercer_matrix *w,
                                  const mercer_matrix *f, mrc_kept *kept);
/* The part of local shard i, K(X, Z_i) W_i, of the field W. */
mercer_status mrc_centers_predict_part(mrc_centers *centers, int i, const mercer_matrix *x, const mercer_matrix *w,
                                       const mercer_matrix *part, mrc_kept *kept);
/* H field (rows, c) = K(Z, X) G, from what predict kept (same x, same order) or anew with kept == NULL. short_weights:
   as in mrc_pair. */
mercer_status mrc_centers_transpose(mrc_centers *centers, const mercer_matrix *x, const mercer_matrix *g,
                                    const mercer_matrix *h, const mrc_kept *kept, bool short_weights);
/* Whether c columns of weights should be rounded by the backend's round_half before products of what it keeps. */
bool mrc_centers_short_weights(const mrc_centers *centers, int64_t c);
/* H field = K(Z, B) W, or += it, for any points B and weights W that every rank has. */
mercer_status mrc_centers_apply(mrc_centers *centers, const mercer_matrix *b, const mercer_matrix *w,
                                const mercer_matrix *h, bool add);
/* K field (rows, b) = K(Z, B) stored. */
mercer_status mrc_centers_eval(mrc_centers *centers, const mercer_matrix *b, const mercer_matrix *k);
/* H field = alpha U A + beta H for a field U and a matrix A that every rank has. */
mercer_status mrc_centers_multiply(mrc_centers *centers, double alpha, const mercer_matrix *u, const mercer_matrix *a,
                                   double beta, const mercer_matrix *h);
/* The part of a field that belongs to local shard i. */
mercer_matrix mrc_centers_part(const mrc_centers *centers, const mercer_matrix *field, int i);
/* out = the sum over all shards of what `work` puts into `part` (cleared) for each local one. */
typedef mercer_status (*mrc_part_work)(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument);
mercer_status mrc_centers_sum(mrc_centers *centers, const mercer_matrix *out, mrc_part_work work, void *argument);
/* out (k, c) = U' V for fields U (rows, k), V (rows, c) of the same dtype; and U' U, never of split factors. */
mercer_status mrc_centers_inner(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *v,
                                const mercer_matrix *out);
mercer_status mrc_centers_gram(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *out);
/* out[j] = sum over all centers i of U_ij V_ij: (c) doubles. */
mercer_status mrc_centers_column_dots(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *v,
                                      double *out);
/* |U|_F over all centers and columns. */
mercer_status mrc_centers_norm(mrc_centers *centers, const mercer_matrix *u, double *out);
/* out (count, k) = rows `ids` (global indices) of a field, or of the centers themselves (field == NULL), of the
   same dtype. */
mercer_status mrc_centers_collect(mrc_centers *centers, const mercer_matrix *field, const int64_t *ids, int64_t count,
                                  const mercer_matrix *out);
/* out (count, k), without gaps between its rows = rows first .. first + count - 1 (global) of a field or of the centers
   (NULL): where they come from and where they go to is one range for each rank, so that nothing is packed
   (collect.c). */
mercer_status mrc_centers_range(mrc_centers *centers, const mercer_matrix *field, int64_t first, int64_t count,
                                const mercer_matrix *out);
/* How many of p centers in so many shards are collected at a time: as many as a shard has, so that it falls with the
   shards. */
enum { MRC_COLLECT_BLOCK = 4096 }; /* at most */
int64_t mrc_collect_rows(int64_t p, int shards);
/* Out field = K(Z,Z) V for a field V, from K(Z here, Z) (rows, p) of type real if kept is not NULL, else evaluated. */
mercer_status mrc_centers_times(mrc_centers *centers, const mercer_matrix *kept, const mercer_matrix *v,
                                const mercer_matrix *out);
/* Makes that K(Z here, Z). */
mercer_status mrc_centers_keep(mrc_centers *centers, mercer_matrix *out);
/* All p centers in one matrix: a view of them with one rank, else a copy that lives as long as the scope. */
mercer_status mrc_centers_gather_all(mrc_centers *centers, mrc_scope *scope, mercer_matrix *all);
/* field rows `ids` += factor * from (count, k), for those rows that live here. */
mercer_status mrc_centers_scatter_add(mrc_centers *centers, const mercer_matrix *field, const int64_t *ids,
                                      int64_t count, const mercer_matrix *from, double factor);

/*
 * Points of which products are formed again and again can be packed once: every product here finds by their address
 * that they are. Rows first .. first + count - 1 of `whole` are packed as they now are; a caller that changes them
 * must pack them again, and forget them before they are released. Where the backend has no packed form nothing happens.
 */
mercer_status mrc_points_pack(mrc_centers *centers, const mercer_matrix *whole, int64_t first, int64_t count);
void mrc_points_forget(mrc_centers *centers, const mercer_matrix *whole);
/* K(A, B) with the centers' kernel, origin and packed points. */
mrc_pair mrc_points_pair(const mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b);

/* Y = K(A, B) W or Y += ..., for any points, with the centers' kernel, origin and flop count. Not distributed. */
mercer_status mrc_points_matmul(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                                const mercer_matrix *w, const mercer_matrix *y, bool add);
/* K(A, B) stored, K f32 or f64. */
mercer_status mrc_points_eval(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                              const mercer_matrix *k);
/* The same into rows of a stored matrix, whose room is for backends that need it; and Y = K(A, B) W unless w is
   NULL. */
mercer_status mrc_points_store(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                               const mercer_matrix *w, const mercer_matrix *y, const mrc_stored *to);
/* C = alpha op(A) op(B) + beta C, counted. */
mercer_status mrc_counted_gemm(mrc_centers *centers, bool transpose_a, bool transpose_b, double alpha,
                               const mercer_matrix *a, const mercer_matrix *b, double beta, const mercer_matrix *c);
/* C = alpha op(A) B + beta C, counted, by the backend's split_gemm. */
mercer_status mrc_split_gemm(mrc_centers *centers, bool transpose_a, double alpha, const mercer_matrix *a,
                             const mercer_matrix *b, double beta, const mercer_matrix *c);

#endif

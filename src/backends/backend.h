/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends: all that algorithms know of a machine, the ops table. A backend is one struct of functions. Its results
 * are compared with the scalar double reference by tests/conformance, which walks the list in registry.c.
 *
 * Contract of every operation:
 *   - Arguments have been checked by the caller (src/api, src/solvers): shapes fit, outputs do not overlap inputs, data
 *     finite. A backend fails only for lack of memory, for lack of support, on numerical breakdown or when a user
 *     callback fails; it then records a message and leaves outputs that it promises to keep as they were.
 *   - Any size may be 0. Any leading dimension is allowed.
 *   - Matrices lie where their views say: in host memory, or in memory that alloc gave. A backend whose memory is not
 *     the host's takes both, in any mixture. What it writes to the host is there when the operation returns.
 *   - Results do not depend on the number of threads. Reductions are local; src/comm makes them global.
 *
 * Letters: m rows of X, p rows of Z (centers), d features, c outputs. Matrices are row-major.
 */
#ifndef MRC_BACKENDS_BACKEND_H
#define MRC_BACKENDS_BACKEND_H

#include "core/memory.h"
#include "core/numbers/changes.h"
#include "kernels/kernel.h"

enum { MRC_BACKEND_API = 7 };

typedef struct mrc_backend mrc_backend;
typedef struct mrc_backend_ops mrc_backend_ops;

struct mrc_backend {
    const mrc_backend_ops *ops; /* complete: optional operations are filled with defaults */
    mercer_context *context;    /* for allocation, threads, messages */
    int device;                 /* which of several: the number behind the colon of "cuda:0" */
    void *state;                /* the backend's own */
};

/* Rows in the form that a backend computes with: made once (pack_create, pack_rows), used in many products. */
typedef struct mrc_packed mrc_packed;

/* A kernel matrix K(X, Z) that is not stored: what the fused operations work on. */
typedef struct mrc_pair {
    const mercer_kernel *kernel;
    const mercer_matrix *x; /* (m, d) any dtype */
    const mercer_matrix *z; /* (p, d) any dtype */
    /* (d) host memory, or NULL for one amid the rows of Z. Functions of the distance subtract it from both sides before
       products are formed: distances stay, cancellation shrinks. */
    const double *origin;
    const mrc_packed *packed_x, *packed_z; /* NULL, or where the same rows are in packed form, */
    int64_t first_x, first_z;              /* from this row on; packed with this kernel and origin */
    bool accurate;                         /* not in half precision, whatever the context allows */
    bool short_weights;                    /* those of kernel_transpose were rounded by round_half */
} mrc_pair;

/*
 * Room in which kernel_forward may leave K(X, Z) for kernel_transpose: the caller gives memory of the backend, the
 * backend says how many of the p columns it kept there. They lie there as (m, columns) in the dtype of W or, if it
 * says opaque, in a form of its own. bytes == 0 keeps nothing: all is recomputed.
 */
typedef struct mrc_kept {
    void *memory;
    int64_t bytes;
    int64_t columns;
    bool opaque;
} mrc_kept;

/* The sizes of a training, as far as they decide what operations hold beyond their operands. */
typedef struct mrc_extent {
    int64_t rows, centers;           /* of the two sides of products, the most */
    int64_t features, outputs, wide; /* columns of W as a rule, and the most */
    int64_t eigen;                   /* rows of the largest matrix that eigen_top gets */
    mercer_dtype points, real;
    bool half; /* products are rounded to half precision */
} mrc_extent;

/* A search for nearest rows. */
typedef struct mrc_search {
    const mercer_matrix *x; /* (m, d) any dtype */
    const mercer_matrix *z; /* (p, d) any dtype, p > 0 */
    const double *origin;   /* as in mrc_pair */
    bool wide;              /* compute in double: squared distances would leave the range of float */
    double norm;            /* p of the distance, as mrc_kernel_norm; 0: 2 */
} mrc_search;

/* C = alpha op(A) op(B) + beta C; all f32 or all f64. beta == 0 does not read C. */
typedef struct mrc_gemm {
    bool transpose_a, transpose_b;
    double alpha, beta;
    const mercer_matrix *a, *b, *c;
} mrc_gemm;

/*
 * Rows of a stored matrix: rows[i] of k for i < count, or its first count rows if rows is NULL. room is scratch
 * (1 row or more, p) in the type of the factor: rows are gathered there where they cannot be multiplied as they lie. If
 * the last product on that room was with the same rows (again), they may still lie there. add: kernel_rows adds to Y.
 */
typedef struct mrc_stored {
    const mercer_matrix *k; /* (n, p) f16, f32 or f64 */
    const int64_t *rows;
    int64_t count;
    const mercer_matrix *room;
    bool again, add;
} mrc_stored;

/* Weights of all pairs of rows, A_ij B_ij, and a norm, 1 or 2. */
typedef struct mrc_feature_sums {
    int norm;
    const mercer_matrix *x, *z; /* (m, d), (p, d) any dtype */
    const mercer_matrix *a, *b; /* (m, p) f32 or f64 */
} mrc_feature_sums;

/* What affine does to each column, (c) in host memory; NULL: 0, 1, 0. */
typedef struct mrc_affine {
    const double *shift, *factor, *offset;
} mrc_affine;

/* What a row of predictions is worth. */
typedef struct mrc_row_loss {
    double error, size, right;
} mrc_row_loss;

typedef struct mrc_capabilities {
    const char *isa;   /* the instruction set it was tuned to, for messages */
    int point_dtypes;  /* set of MRC_ACCEPT_...: X and Z */
    mrc_memory memory; /* where its matrices live */
    /* What it computes and moves in a second, roughly, for plans; 0: measured by the instruction set. */
    double rate, rate_double, bandwidth;
    double rate_differences; /* the same of sums of absolute differences, 2 for each; 0: a third of rate */
    int64_t kept_size;       /* bytes that a kernel value kept for f32 weights takes at least; 0: 4 */
    int64_t short_from;      /* columns from which on products of kept values gain by short weights; 0: never */
    bool float_factors;      /* cholesky and triangular_solve take f32, too */
    uint64_t place;          /* the same for those that share a device's memory, whatever its number; 0: the host's */
    void *stream;            /* that its work goes to, for callers who have streams of their own; NULL: none */
    double device_seconds, library_seconds; /* that create took to reach the device, and for its libraries */
} mrc_capabilities;

struct mrc_backend_ops {
    int api_version; /* MRC_BACKEND_API */
    const char *name;

    /* ---- Required -------------------------------------------------------------------------------------------- */
    mercer_status (*create)(mrc_backend *backend); /* sets state; on failure nothing is left behind */
    void (*destroy)(mrc_backend *backend);
    mrc_capabilities (*capabilities)(const mrc_backend *backend, bool half); /* half: products are rounded to it */

    mercer_status (*alloc)(mrc_backend *backend, void **out, int64_t bytes, const char *what);
    void (*free)(mrc_backend *backend, void *memory);
    mercer_status (*copy)(mrc_backend *backend, const mercer_matrix *to,
                          const mercer_matrix *from); /* converts to f32, f64, and f32 to f16 */
    mercer_status (*sync)(mrc_backend *backend);

    /* Y = K(X, Z) W, or Y += K(X, Z) W if add. W (p, c) and Y (m, c) f32 or f64. Y is untouched on failure, except by a
       callback that fails midway. */
    mercer_status (*kernel_matmul)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add);
    /* F = K(X, Z) W, and then H = K(Z, X) G with the tile block kept in between as far as kept has room. W, F, G and H
       have one dtype. */
    mercer_status (*kernel_forward)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *f, mrc_kept *kept);
    mercer_status (*kernel_transpose)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *g,
                                      const mercer_matrix *h, const mrc_kept *kept);
    mercer_status (*gemm)(mrc_backend *backend, const mrc_gemm *job);

    /* ---- Optional: NULL is replaced by a plain host loop in double (src/backends/defaults.c, dense.c) -------- */
    mercer_status (*clear)(mrc_backend *backend, const mercer_matrix *matrix); /* zeros */
    int (*devices)(void);             /* how many of it are here; NULL stays: it is the processor's */
    bool (*may_be_here)(void);        /* false: there is none, told at once; NULL stays: there is */
    bool (*knows_kernel)(int32_t id); /* has the function's formula; NULL stays: all of the table's */
    bool (*gains_by_half)(const mrc_backend *backend, const mercer_kernel *kernel); /* products are much faster rounded
       to half precision; NULL stays: none are */
    int64_t (*free_memory)(mrc_backend *backend); /* bytes that could be had where its matrices live */
    /* Room for packed rows, as many, as long and of such a type as `like`; *out stays NULL where packing is of no use,
       and then every product takes the rows as they are. pack_rows, of what pack_create made: rows first .. become
       those of points. */
    mercer_status (*pack_create)(mrc_backend *backend, mrc_packed **out, const mercer_kernel *kernel,
                                 const double *origin, const mercer_matrix *like);
    mercer_status (*pack_rows)(mrc_backend *backend, mrc_packed *packed, int64_t first, const mercer_matrix *points);
    void (*pack_free)(mrc_backend *backend, mrc_packed *packed);
    /* Bytes that operations on these sizes hold beyond their operands, at most. NULL stays: the planner counts
       tiles. */
    int64_t (*work_bytes)(mrc_backend *backend, const mrc_extent *work);
    /* MERCER_OK if the elements of a caller's view lie in the backend's memory, as the view says; else the message
       names the matrix and tells where they are. NULL stays: the backend has no memory of its own. */
    mercer_status (*check_memory)(mrc_backend *backend, const char *name, const mercer_matrix *matrix);
    /* What is queued on a stream of the caller's comes before what the backend is given from now on. NULL stays. */
    mercer_status (*wait)(mrc_backend *backend, void *stream);
    /* *first: which element, counted row by row, is the first that is not finite; -1: all are. *largest: the most that
       one of the others is, without its sign. */
    mercer_status (*scan)(mrc_backend *backend, const mercer_matrix *matrix, int64_t *first, double *largest);
    /* to (m, c) f32 or f64 = offset + factor (from - shift), column by column: each operation in double, then rounded
       to the type. from may be `to`. */
    mercer_status (*affine)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                            const mrc_affine *map);
    /* *out: the same elements in the backend's memory; the matrix itself if it already lies there. Otherwise a copy,
       made while the backend computes; the host's elements may change as soon as this returns. There are several
       buffers in turn: start what uses *out before the next call of stage, since one after that overwrites it. */
    mercer_status (*stage)(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *out);
    /* out = X Z' of matrices of one type that it holds, alone and as fast as its library does it: what its speed is
       compared with. Results are f64, f32, f16, or 32-bit whole numbers for u8. NULL stays: gemm is the measure. */
    mercer_status (*gemm_baseline)(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *z, void *out);
    mercer_status (*kernel_eval)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *k);
    /* What the kernel of the pair, a function of a distance, takes: sums (m, p) f32 or f64 of |x_k - z_k|^p in its
       norm, for L2 the squared distance, with the rounding of their type. And K (m, p) f32 or f64 of such sums,
       computed in their type, an infinite one too. One pass over the points serves all functions of a norm: K of the
       sums is what kernel_eval gives. Not for callbacks; all in host memory. */
    mercer_status (*kernel_sums)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *sums);
    mercer_status (*kernel_of_sums)(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *sums,
                                    const mercer_matrix *k);
    /* Y = sum_j K(x, z_j) w_jl sign(x_k - z_jk) in column l d + k, of a function of the L1 distance; sign(0) = 0. W
       (p, c) and Y (m, c d) f32 or f64, all in host memory. */
    mercer_status (*kernel_signs)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                  const mercer_matrix *y);
    /* out (d) = sum_ij A_ij B_ij |x_ik - z_jk|^norm: what sums over pairs change by with the scales of the features.
       A weight is a product in double, rounded to the type of the points, which is that of the terms and of short sums
       of them; the others are in double. */
    mercer_status (*feature_sums)(mrc_backend *backend, const mrc_feature_sums *job, double *out);
    mercer_status (*kernel_diagonal)(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *x,
                                     const mercer_matrix *diagonal);                           /* (m, 1) */
    mercer_status (*row_sqnorms)(mrc_backend *backend, const mercer_matrix *x, double *norms); /* (m) */
    mercer_status (*column_mean)(mrc_backend *backend, const mercer_matrix *x, double *mean);  /* (d); 0 if m = 0 */

    /* For each row of X the nearest row of Z, the first of equals, and the sum of |x_k - z_k|^p of the two, for L2 the
       squared distance; both (m). Sums are those a kernel function of the distance gets: exact integers for bytes
       (p 1 and 2), else with the rounding of float or double. */
    mercer_status (*nearest_rows)(mrc_backend *backend, const mrc_search *search, int32_t *nearest, double *sums);

    /* Top q eigenpairs of the symmetric A (n, n) f64, which is destroyed: values (q) descending, vectors (n, q) f64,
       each of length 1 with its largest entry (the first of equals) positive. */
    mercer_status (*eigen_top)(mrc_backend *backend, const mercer_matrix *a, int64_t q, double *values,
                               const mercer_matrix *vectors);
    /* A (n, n) f64 (f32 where capabilities say so, as for the solve) symmetric positive definite becomes its lower
       Cholesky factor; the upper triangle is set to 0, and is not read. MERCER_ERROR_NUMERIC, naming the row, if it is
       not positive definite. */
    mercer_status (*cholesky)(mrc_backend *backend, const mercer_matrix *a);
    /* A (k n, n) f64 holds k symmetric positive definite matrices one below the other, of which the upper triangles are
       not read: each becomes its inverse, both triangles. least (k): the smallest squared pivot of each one's Cholesky
       factor; where that is not positive (0, or NaN) there is none, and what the matrix becomes is not defined. room:
       as large as A, no gaps between rows. */
    mercer_status (*invert)(mrc_backend *backend, const mercer_matrix *a, const mercer_matrix *room, double *least);
    /* B (n, c) of the type of L becomes L^-1 B, or L^-T B. */
    mercer_status (*triangular_solve)(mrc_backend *backend, const mercer_matrix *l, bool transpose,
                                      const mercer_matrix *b);

    /* G (n, n) f64 = alpha A'A + beta G for A (m, n) f64, on and below the diagonal; what is above it may be written or
       not. beta == 0 does not read G. */
    mercer_status (*gram)(mrc_backend *backend, double alpha, const mercer_matrix *a, double beta,
                          const mercer_matrix *gram);

    /* to_i = from_{rows[i]}, to_{rows[i]} = from_i; both convert as copy does. And to_{rows[i]} += factor * from_i, f32
       or f64. Rows that are written are distinct. */
    mercer_status (*gather_rows)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                 const int64_t *rows);
    mercer_status (*scatter_rows)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                  const int64_t *rows);
    mercer_status (*scatter_add_rows)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                      const int64_t *rows, double factor);
    /* The rows that stored names become K(X, Z), one for each row of X, in its type (f16: of values in float); and Y =
       K(X, Z) W, or Y += it, in the same go unless w is NULL. */
    mercer_status (*kernel_rows)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                 const mercer_matrix *y, const mrc_stored *stored);
    /* Y = K W or, transposed, Y = K' W for the rows that stored names; W and Y f32 or f64, of one type. */
    mercer_status (*rows_product)(mrc_backend *backend, const mrc_stored *stored, bool transpose,
                                  const mercer_matrix *w, const mercer_matrix *y);
    /* Y = a X + b Y (b == 0 does not read Y; X may be Y), X_i *= factors[i], and out[j] = sum_i X_ij Y_ij. f32 or
       f64. */
    mercer_status (*axpby)(mrc_backend *backend, double a, const mercer_matrix *x, double b, const mercer_matrix *y);
    mercer_status (*scale_rows)(mrc_backend *backend, const mercer_matrix *x, const double *factors);
    mercer_status (*scale_columns)(mrc_backend *backend, const mercer_matrix *x, const double *factors);
    /* gemm, where f32 factors may be taken with 22 bits each, and entries below 2^-36 of the largest of A, or of their
       column of op(B), be lost. NULL: gemm itself. */
    mercer_status (*split_gemm)(mrc_backend *backend, const mrc_gemm *job);
    /* Y_ij += X_ij factors[j]. */
    mercer_status (*add_columns)(mrc_backend *backend, const mercer_matrix *x, const double *factors,
                                 const mercer_matrix *y);
    /* X f32, in place: each element rounded to 11 bits, to even, so that scaled by a power of two it is a half. */
    mercer_status (*round_half)(mrc_backend *backend, const mercer_matrix *x);
    mercer_status (*symmetrise)(mrc_backend *backend, const mercer_matrix *a); /* (n, n) f64 = (A + A') / 2 */
    mercer_status (*column_dots)(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *y, double *out);
    /* Of every row of F and Y (m, c), f32 or f64, columns in their order, in double: error = sum (f - y)^2 and size =
       sum y^2 of both times scale (c), and right: whether, with offset (c) added, the largest (the first of equals)
       stand in the same column. scale and offset NULL: 1 and 0. */
    mercer_status (*row_losses)(mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                                const double *scale, const double *offset, mrc_row_loss *out);
    /* X (m, d) f32: row i becomes numbers first, first + 1, ... of sequence sequences[i] of the seed, the bits that
       mrc_random_normals draws; first is a multiple of 4. */
    mercer_status (*draw_normals)(mrc_backend *backend, const mrc_normal_table *table, uint64_t seed,
                                  const int64_t *sequences, uint64_t first, const mercer_matrix *x);
    /* mrc_change_rows, to the same bits, wherever the three matrices lie. */
    mercer_status (*change_rows)(mrc_backend *backend, const mrc_change *change, const mercer_matrix *to,
                                 const mercer_matrix *from, const mercer_matrix *other);
};

/* Of a backend that lists its operations: declares its function for one, and enters it in the table. */
#define MRC_DECLARE_OPERATION(backend, operation) \
    extern __typeof__(*((mrc_backend_ops *)NULL)->operation) mrc_##backend##_##operation;
#define MRC_ENTER_OPERATION(backend, operation) .operation = mrc_##backend##_##operation,

/* The compiled-in backends, one pointer each, NULL at the end. The first is the default. */
extern const mrc_backend_ops *const mrc_backend_registry[];

/* Capabilities in the arithmetic of the context; where matrices live. */
static inline mrc_capabilities mrc_backend_capabilities(const mrc_backend *backend)
{
    return backend->ops->capabilities(backend, backend->context->half_precision);
}
static inline mrc_memory mrc_backend_memory(const mrc_backend *backend)
{
    return backend->ops->capabilities(backend, false).memory;
}

/* The machine that a plan is for, as plans see it. */
typedef struct mrc_machine {
    mrc_backend *backend; /* its capabilities and work_bytes, which are functions of their arguments */
    mrc_isa isa;
    int threads;
    int64_t free_memory;    /* bytes where the backend computes */
    bool half;              /* products are rounded to half precision, */
    bool precision_by_plan; /* or a plan decides whether they are */
} mrc_machine;
mrc_machine mrc_machine_of(const mercer_context *context);
/* measure.c: flops per second of products in double, measured in a few milliseconds. Predictions of time use it;
   decisions about a model do not, because they must not depend on a clock. */
mercer_status mrc_measure_rate(mercer_context *context, double *flops_per_second);

/* Makes the backend of that name (NULL: the default; "auto": the first that is there of those with memory of their own,
   else the default; "name:2": its device 2) for context. On failure *out is NULL. */
mercer_status mrc_backend_create(mrc_backend **out, mercer_context *context, const char *name);
void mrc_backend_free(mrc_backend *backend);
/* Whether making it may take its time: it is not the default, and may be there. */
bool mrc_backend_is_slow(const char *name);

/* MERCER_ERROR_UNSUPPORTED, by name, unless the kernel is a callback or a function that the backend has a formula for:
   what every operation on kernels begins with, so that none ever computes another function instead. */
mercer_status mrc_backend_check_kernel(mrc_backend *backend, const mercer_kernel *kernel);

/* f64 if any of the matrices is f64 (NULLs are skipped), else f32: the type kernel values are computed in. */
mercer_dtype mrc_value_dtype(const mercer_matrix *x, const mercer_matrix *z, const mercer_matrix *w,
                             const mercer_matrix *y);

/* Replaces the NULLs among the optional operations. */
void mrc_backend_fill_defaults(mrc_backend_ops *ops);

/* rows_product by gathering and multiplying, with the backend's own operations. */
mercer_status mrc_default_rows_product(mrc_backend *backend, const mrc_stored *stored, bool transpose,
                                       const mercer_matrix *w, const mercer_matrix *y);

/* Host memory and copying, for backends that compute there. */
mercer_status mrc_host_alloc(mrc_backend *backend, void **out, int64_t bytes, const char *what);
void mrc_host_free(mrc_backend *backend, void *memory);
mercer_status mrc_host_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
/* MERCER_ERROR_DTYPE if copy does not convert one type to the other. */
mercer_status mrc_check_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
mercer_status mrc_host_sync(mrc_backend *backend);

/* A matrix in the backend's memory: reserve leaves it as it is, create clears it. */
mercer_status mrc_matrix_reserve(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                 mercer_dtype dtype, const char *what);
mercer_status mrc_matrix_create(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                mercer_dtype dtype, const char *what);
/* Releases its data (NULL is fine) and clears the view. */
void mrc_matrix_destroy(mrc_backend *backend, mercer_matrix *matrix);

/* The same as reserve and create, for the time of a call. */
mercer_status mrc_scope_reserve(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                mercer_dtype dtype, const char *what);
mercer_status mrc_scope_matrix(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                               mercer_dtype dtype, const char *what);
/* And in that memory, the backend's or the host's. */
mercer_status mrc_scope_room(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, mrc_memory memory,
                             int64_t rows, int64_t cols, mercer_dtype dtype, const char *what);

/* A (n, n) f64 = I. */
mercer_status mrc_set_identity(mrc_backend *backend, const mercer_matrix *a);

/* As mrc_check_matrix, of a caller's view that may lie in the backend's memory. */
mercer_status mrc_backend_check_matrix(mrc_backend *backend, const char *name, const mercer_matrix *matrix, int accept);
/* As mrc_check_finite and mrc_kernel_check_range, wherever the matrix lives. */
mercer_status mrc_matrix_check_finite(mrc_backend *backend, const char *name, const mercer_matrix *matrix,
                                      double *largest);
mercer_status mrc_matrix_check_range(mrc_backend *backend, const mercer_kernel *kernel, const char *name,
                                     const mercer_matrix *x, mercer_dtype real);

/*
 * A matrix as the host sees it: itself where it lies in host memory, else a copy. close copies changes back if there
 * are any and status is MERCER_OK, releases the copy and passes status on; it may be called when open has failed.
 */
mercer_status mrc_host_open(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host);
mercer_status mrc_host_close(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host, bool changed,
                             mercer_status status);
/* open, closed without changes when the call returns, unless it was before; host must live as long as the scope. */
mercer_status mrc_scope_open(mrc_scope *scope, mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host);

/*
 * An origin amid rows, better than their mean where features are flags: 0 or one other value, as levels of categories
 * are. It is 0 there, so that zeros stay zeros, which products may leave out. add_flags, of rows in host memory: sums
 * (3, d) += sum x, sum x^2 and how many x are not 0; clear_flags: origin (d) = 0 where they tell of a flag.
 */
void mrc_add_flags(int threads, const mercer_matrix *rows, const mercer_matrix *sums);
void mrc_clear_flags(const mercer_matrix *sums, int64_t rows, double *origin);

/* The sign rule of eigen_top for vectors (n, q): used by every implementation, so that all agree. */
void mrc_fix_signs(const mercer_matrix *vectors);

/* Fills *out, which is cleared. Kernel and shape were checked; its types are set. */
mercer_status mrc_measure_speed(mrc_backend *backend, mercer_speed *out, const mercer_kernel *kernel,
                                const mercer_shape *shape);

/* The public functions of the same names, without mercer_. */
int mrc_device_count(const char *name);

#endif

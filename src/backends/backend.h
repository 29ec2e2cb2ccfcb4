/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends: the operations table, the only interface between algorithms and a machine. A backend is one struct of
 * functions. tests/conformance compares its results with the scalar double reference, for every backend in registry.c.
 *
 * Contract of every operation:
 *   - The caller (src/api, src/solvers) has checked the arguments: shapes match, outputs do not overlap inputs, data is
 *     finite. A backend fails only if memory is exhausted, the operation is unsupported, the computation breaks down
 *     numerically, or a user callback fails. It then records a message; outputs are undefined unless documented.
 *   - Any size may be 0. Any leading dimension is allowed. Only the thread that uses the context calls operations.
 *   - A matrix is in the memory named by its view: host memory, or memory returned by alloc. A backend with its own
 *     memory accepts both, in any combination. Results in host memory are complete when the operation returns. Results
 *     in the backend's own memory may still be pending; sync waits for them and reports errors of that work.
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
    const mrc_backend_ops *ops; /* operations, with defaults in place of missing optional ones */
    mercer_context *context;    /* for allocation, threads, messages */
    int device;                 /* device number, from 0: the number after the colon in "cuda:0" */
    void *state;                /* private to the backend; set by create */
};

/* Rows in the backend's internal layout, packed once (pack_create, pack_rows) and used in many products. */
typedef struct mrc_packed mrc_packed;

/* A kernel matrix K(X, Z) that is not stored: the operand of the fused operations. */
typedef struct mrc_pair {
    const mercer_kernel *kernel;
    const mercer_matrix *x; /* (m, d) any dtype */
    const mercer_matrix *z; /* (p, d) any dtype */
    /* (d) host memory; NULL: the backend chooses a point near the mean of the rows of Z. For kernels of the distance,
       the backend subtracts the origin from X and Z before it forms products. Distances do not change, and less
       precision is lost to cancellation. */
    const double *origin;
    /* packed copies that contain the rows of X and Z, with the same kernel and origin; or NULL */
    const mrc_packed *packed_x, *packed_z;
    int64_t first_x, first_z; /* row of packed_x that holds row 0 of X; the same for packed_z and Z */
    bool half;                /* products may be rounded to half precision where that is faster */
    bool short_weights;       /* the weights of kernel_transpose (G) were rounded by round_half */
} mrc_pair;

/*
 * A buffer in which kernel_forward may cache columns of K(X, Z) for kernel_transpose. The caller provides memory of the
 * backend; the backend sets columns to the number of cached columns of K, at most p. The layout is (m, columns) in the
 * dtype of W, or private to the backend if the backend sets opaque. With bytes == 0 nothing is cached: kernel_transpose
 * computes K again.
 */
typedef struct mrc_cached_block {
    void *memory;
    int64_t bytes;
    int64_t columns;
    bool opaque;
} mrc_cached_block;

/* Problem sizes that determine how much workspace operations need beyond their operands. */
typedef struct mrc_extent {
    int64_t rows, centers;           /* maximum number of rows of X and of Z in a product */
    int64_t features, outputs, wide; /* outputs: usual number of columns of W; wide: maximum number of columns of W */
    int64_t eigen;                   /* rows of the largest matrix passed to eigen_top */
    mercer_dtype points, real;
    bool half; /* true: products are computed in half precision */
} mrc_extent;

/* A search for nearest rows. */
typedef struct mrc_search {
    const mercer_matrix *x; /* (m, d) any dtype */
    const mercer_matrix *z; /* (p, d) any dtype, p > 0 */
    const double *origin;   /* as in mrc_pair */
    bool wide;              /* true: compute in double, because squared distances exceed the range of float */
    double norm;            /* p of the distance, as returned by mrc_kernel_norm; 0 means 2 */
} mrc_search;

/* C = alpha op(A) op(B) + beta C; all f32 or all f64. beta == 0 does not read C. */
typedef struct mrc_gemm {
    bool transpose_a, transpose_b;
    double alpha, beta;
    const mercer_matrix *a, *b, *c;
} mrc_gemm;

/*
 * Selected rows of a stored matrix: rows rows[i] of k for i < count, or the first count rows of k if rows is NULL.
 * `scratch` is scratch space (at least 1 row, p columns) in the type of the other factor; rows that cannot be
 * multiplied in place are gathered in `scratch`. same_rows: the previous product with this `scratch` had the same rows,
 * so `scratch` may still contain them. add: kernel_rows adds to Y instead of overwriting Y.
 */
typedef struct mrc_stored {
    const mercer_matrix *k; /* (n, p) f16, f32 or f64 */
    const int64_t *rows;
    int64_t count;
    const mercer_matrix *scratch;
    bool same_rows, add;
} mrc_stored;

/* Operands of feature_sums: rows X and Z, pair weights A_ij B_ij, and the norm (1 or 2). */
typedef struct mrc_feature_sums {
    int norm;
    const mercer_matrix *x, *z; /* (m, d), (p, d) any dtype */
    const mercer_matrix *a, *b; /* (m, p) f32 or f64 */
} mrc_feature_sums;

/* Column parameters of affine, each (c) in host memory. NULL means shift 0, factor 1 or offset 0. */
typedef struct mrc_affine {
    const double *shift, *factor, *offset;
} mrc_affine;

/* Loss of one row of predictions (row_losses): squared error, squared norm of the target, and 1 if the predicted class
   is right, else 0. */
typedef struct mrc_row_loss {
    double error, size, right;
} mrc_row_loss;

typedef struct mrc_capabilities {
    const char *isa;   /* name of the instruction set or architecture, for messages */
    int point_dtypes;  /* accepted types of X and Z: a set of MRC_ACCEPT_... */
    mrc_memory memory; /* memory in which alloc places matrices */
    /* Rough speeds for plans: flops per second in float and in double, bytes per second; 0: estimated from the
       instruction set and the number of threads. */
    double rate, rate_double, bandwidth;
    double rate_differences; /* flops per second of sums of |x - z|, 2 flops per term; 0: rate / 3 */
    int64_t cached_size;     /* minimum bytes per cached kernel value for f32 weights; 0: 4 */
    int64_t short_from;      /* minimum columns of W for which short_weights save time with cached values; 0: never */
    bool float_factors;      /* true: cholesky and triangular_solve also accept f32 */
    uint64_t place;          /* id of the physical device, equal for backends that share its memory; 0: host memory */
    void *stream;            /* stream of the backend, for callers that use streams themselves; NULL: none */
    double device_seconds, library_seconds; /* seconds that create took to open the device, and to open its libraries */
} mrc_capabilities;

struct mrc_backend_ops {
    int api_version; /* MRC_BACKEND_API */
    const char *name;

    /* ---- Required -------------------------------------------------------------------------------------------- */
    mercer_status (*create)(mrc_backend *backend); /* sets state; releases everything on failure */
    void (*destroy)(mrc_backend *backend);
    mrc_capabilities (*capabilities)(const mrc_backend *backend, bool half); /* half: for products in half precision */

    mercer_status (*alloc)(mrc_backend *backend, void **out, int64_t bytes, const char *what);
    void (*free)(mrc_backend *backend, void *memory);
    mercer_status (*copy)(mrc_backend *backend, const mercer_matrix *to,
                          const mercer_matrix *from); /* of the same type, from any type to f32 or f64, f32 to f16 */
    mercer_status (*sync)(mrc_backend *backend);

    /* Y = K(X, Z) W, or Y += K(X, Z) W if add. W (p, c) and Y (m, c) f32 or f64. Y is untouched on failure, unless a
       callback fails midway. */
    mercer_status (*kernel_matmul)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add);
    /* F = K(X, Z) W, then H = K(Z, X) G. kernel_forward caches as many columns of K in cached as fit; kernel_transpose
       uses them. W, F, G and H have the same dtype. */
    mercer_status (*kernel_forward)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *f, mrc_cached_block *cached);
    mercer_status (*kernel_transpose)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *g,
                                      const mercer_matrix *h, const mrc_cached_block *cached);
    mercer_status (*gemm)(mrc_backend *backend, const mrc_gemm *job);

    /* ---- Optional: NULL is replaced by a plain host loop in double (src/backends/defaults.c, dense.c) -------- */
    /* Operations that "may stay NULL" have no default. */
    mercer_status (*clear)(mrc_backend *backend, const mercer_matrix *matrix); /* sets all elements to 0 */
    int (*devices)(void);             /* number of devices present; may stay NULL: a host backend */
    bool (*may_be_here)(void);        /* quick check, false: no device is present; may stay NULL: always true */
    bool (*knows_kernel)(int32_t id); /* true: supported; may stay NULL: all kernels of the table are supported */
    /* Return true if half precision makes products with this kernel much faster. May stay NULL: always false. */
    bool (*gains_by_half)(const mrc_backend *backend, const mercer_kernel *kernel);
    int64_t (*free_memory)(mrc_backend *backend); /* bytes available in the backend's memory */
    /* pack_create allocates a packed copy with the shape and type of `like` for products in half precision; pack_free
       releases it. *out stays NULL if packing has no benefit; products then use the unpacked rows. pack_rows packs
       points into rows first, first + 1, ... of such a copy. */
    mercer_status (*pack_create)(mrc_backend *backend, mrc_packed **out, const mercer_kernel *kernel,
                                 const double *origin, const mercer_matrix *like);
    mercer_status (*pack_rows)(mrc_backend *backend, mrc_packed *packed, int64_t first, const mercer_matrix *points);
    void (*pack_free)(mrc_backend *backend, mrc_packed *packed);
    /* Return an upper bound of the workspace, in bytes, that operations of these sizes need beyond their operands. May
       stay NULL: the planner counts tiles instead. */
    int64_t (*work_bytes)(mrc_backend *backend, const mrc_extent *work);
    /* Check that the elements of a caller's view are in the backend's memory, as the view claims. The error message
       names the matrix and its actual memory. May stay NULL: the backend works in host memory. */
    mercer_status (*check_memory)(mrc_backend *backend, const char *name, const mercer_matrix *matrix);
    /* Make all later operations of the backend wait for the work queued on the caller's stream. May stay NULL. */
    mercer_status (*wait)(mrc_backend *backend, void *stream);
    /* Set *first to the index (in row-major order) of the first element that is not finite, -1 if there is none, and
       *largest to the largest absolute value of the finite elements. */
    mercer_status (*scan)(mrc_backend *backend, const mercer_matrix *matrix, int64_t *first, double *largest);
    /* to (m, c) f32 or f64 = offset + factor (from - shift), column by column: every operation in double, the result
       rounded to the type of `to`. from may be `to`. */
    mercer_status (*affine)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                            const mrc_affine *map);
    /* Set *out to the same elements in the backend's memory: the matrix itself if it is already in this memory,
       otherwise a copy that is made while the backend computes. The caller may overwrite the host elements of a copied
       matrix as soon as stage returns. The copies rotate through several buffers, which later calls overwrite: queue
       all work that uses *out before the next call of stage. */
    mercer_status (*stage)(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *out);
    /* out = X Z' by the vendor's library, the baseline that measured speeds are compared with. X and Z have the same
       type and are in the backend's memory; out is f64, f32, f16, or 32-bit integers for u8. May stay NULL: the
       baseline is gemm. */
    mercer_status (*gemm_baseline)(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *z, void *out);
    mercer_status (*kernel_eval)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *k);
    /* kernel_sums computes the arguments of a kernel of the distance: sums (m, p) f32 or f64, each the sum over k of
       |x_k - z_k|^norm (squared distances for L2), with the rounding of their type. kernel_of_sums computes K (m, p)
       f32 or f64 from such sums, in the type of the sums; infinite sums are allowed. One pass over the points thus
       serves all kernels of a norm, and the result equals that of kernel_eval. Not for callbacks; all matrices are in
       host memory. */
    mercer_status (*kernel_sums)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *sums);
    mercer_status (*kernel_of_sums)(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *sums,
                                    const mercer_matrix *k);
    /* Column l d + k of Y = sum_j K(x, z_j) w_jl sign(x_k - z_jk), for kernels of the L1 distance; sign(0) = 0.
       W (p, c) and Y (m, c d) f32 or f64, all in host memory. */
    mercer_status (*kernel_signs)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                  const mercer_matrix *y);
    /* out (d) = sum_ij A_ij B_ij |x_ik - z_jk|^norm: the derivatives of sums over pairs with respect to the feature
       scales. A weight is a product in double, rounded to the type of the points. Terms and short sums are computed in
       that type, longer sums in double. */
    mercer_status (*feature_sums)(mrc_backend *backend, const mrc_feature_sums *job, double *out);
    mercer_status (*kernel_diagonal)(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *x,
                                     const mercer_matrix *diagonal);                           /* (m, 1) */
    mercer_status (*row_sqnorms)(mrc_backend *backend, const mercer_matrix *x, double *norms); /* (m) */
    mercer_status (*column_mean)(mrc_backend *backend, const mercer_matrix *x, double *mean);  /* (d); 0 if m = 0 */

    /* nearest (m): the nearest row of Z for each row of X, the first one for ties. sums (m): sum_k |x_k - z_k|^norm of
       the two rows, the squared distance for L2. The sums are those that a kernel of the distance receives: exact
       integers for bytes (norm 1 and 2), otherwise with the rounding of float or double. */
    mercer_status (*nearest_rows)(mrc_backend *backend, const mrc_search *search, int32_t *nearest, double *sums);

    /* Compute the top q eigenpairs of the symmetric A (n, n) f64, which is overwritten: values (q) descending, vectors
       (n, q) f64, each of length 1 with its largest entry (the first one for ties) positive. */
    mercer_status (*eigen_top)(mrc_backend *backend, const mercer_matrix *a, int64_t q, double *values,
                               const mercer_matrix *vectors);
    /* Replace the symmetric positive definite A (n, n) f64 by its lower Cholesky factor, and set *bad to -1. A may be
       f32 if capabilities.float_factors is set; the same holds for triangular_solve. The upper triangle is not read; it
       is set to 0. A matrix that is not positive definite is not a failure of the call: *bad is then the first row
       whose pivot is not positive, and the contents of A are undefined. */
    mercer_status (*cholesky)(mrc_backend *backend, const mercer_matrix *a, int64_t *bad);
    /* Replace each of k symmetric positive definite matrices, stacked in A (k n, n) f64, by its inverse (full
       matrix). Upper triangles are not read. Set least (k) to the smallest squared pivot of each Cholesky factor; if
       it is not positive (0 or NaN), the matrix has no inverse and its contents are undefined. scratch: space with
       the shape of A and contiguous rows. */
    mercer_status (*invert)(mrc_backend *backend, const mercer_matrix *a, const mercer_matrix *scratch, double *least);
    /* Replace B (n, c), of the type of L, by L^-1 B, or by L^-T B if transpose. */
    mercer_status (*triangular_solve)(mrc_backend *backend, const mercer_matrix *l, bool transpose,
                                      const mercer_matrix *b);

    /* G (n, n) f64 = alpha A'A + beta G for A (m, n) f64, on and below the diagonal; entries above it are undefined
       afterwards. beta == 0 does not read G. */
    mercer_status (*gram)(mrc_backend *backend, double alpha, const mercer_matrix *a, double beta,
                          const mercer_matrix *gram);

    /* gather: to_i = from_{rows[i]}; scatter: to_{rows[i]} = from_i; both convert types as copy does. scatter_add:
       to_{rows[i]} += factor * from_i, f32 or f64. The rows written must be distinct. */
    mercer_status (*gather_rows)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                 const int64_t *rows);
    mercer_status (*scatter_rows)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                  const int64_t *rows);
    mercer_status (*scatter_add_rows)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                      const int64_t *rows, double factor);
    /* Write K(X, Z) to the rows listed in stored, one per row of X, in the type of stored->k (f16: rounded from float
       values). In the same pass Y = K(X, Z) W, or Y += K(X, Z) W if stored->add, unless w is NULL. */
    mercer_status (*kernel_rows)(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                 const mercer_matrix *y, const mrc_stored *stored);
    /* Y = K W, or Y = K' W if transpose, for the rows listed in stored; W and Y are both f32 or both f64. */
    mercer_status (*rows_product)(mrc_backend *backend, const mrc_stored *stored, bool transpose,
                                  const mercer_matrix *w, const mercer_matrix *y);
    /* axpby: Y = a X + b Y (b == 0 does not read Y; X may be Y). scale_rows: X_ij *= factors[i]. scale_columns:
       X_ij *= factors[j]. f32 or f64. */
    mercer_status (*axpby)(mrc_backend *backend, double a, const mercer_matrix *x, double b, const mercer_matrix *y);
    mercer_status (*scale_rows)(mrc_backend *backend, const mercer_matrix *x, const double *factors);
    mercer_status (*scale_columns)(mrc_backend *backend, const mercer_matrix *x, const double *factors);
    /* gemm for callers that allow half precision: f32 factors may be rounded to 22 bits. Entries below 2^-36 times the
       largest entry of A, or of their own column of op(B), may be treated as 0. Default: gemm itself. */
    mercer_status (*split_gemm)(mrc_backend *backend, const mrc_gemm *job);
    /* Y_ij += X_ij factors[j]. */
    mercer_status (*add_columns)(mrc_backend *backend, const mercer_matrix *x, const double *factors,
                                 const mercer_matrix *y);
    /* Round each element of X, f32 and in place, to 11 bits, ties to even. A suitable power of two times the element is
       then exactly representable in half precision. */
    mercer_status (*round_half)(mrc_backend *backend, const mercer_matrix *x);
    mercer_status (*symmetrize)(mrc_backend *backend, const mercer_matrix *a); /* A (n, n) f64 = (A + A') / 2 */
    mercer_status (*column_dots)(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *y, double *out);
    /* Compute the loss of every row of F and Y (m, c), f32 or f64, in double and in the order of the columns. With f
       and y multiplied by scale (c): error = sum (f - y)^2 and size = sum y^2. right: 1 if, after adding offset (c),
       the largest f and the largest y (the first one for ties) are in the same column, else 0. scale NULL: 1; offset
       NULL: 0. */
    mercer_status (*row_losses)(mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                                const double *scale, const double *offset, mrc_row_loss *out);
    /* Fill row i of X (m, d) f32 with normal numbers first, first + 1, ... of random sequence sequences[i] of the seed,
       bitwise identical to those of mrc_random_normals. first is a multiple of 4. */
    mercer_status (*draw_normals)(mrc_backend *backend, const mrc_normal_table *table, uint64_t seed,
                                  const int64_t *sequences, uint64_t first, const mercer_matrix *x);
    /* Do what mrc_change_rows does, with bitwise identical results, for matrices in host or backend memory. */
    mercer_status (*change_rows)(mrc_backend *backend, const mrc_change *change, const mercer_matrix *to,
                                 const mercer_matrix *from, const mercer_matrix *other);
};

/* For backends that list their operations: MRC_DECLARE_OPERATION declares the function of an operation,
   MRC_ENTER_OPERATION enters it in the table. */
#define MRC_DECLARE_OPERATION(backend, operation) \
    extern __typeof__(*((mrc_backend_ops *)NULL)->operation) mrc_##backend##_##operation;
#define MRC_ENTER_OPERATION(backend, operation) .operation = mrc_##backend##_##operation,

/* The compiled-in backends, terminated by NULL. The first is the default. */
extern const mrc_backend_ops *const mrc_backend_registry[];

/* Return the memory in which alloc places matrices. */
static inline mrc_memory mrc_backend_memory(const mrc_backend *backend)
{
    return backend->ops->capabilities(backend, false).memory;
}

/* The properties of a machine that a plan depends on. */
typedef struct mrc_machine {
    mrc_backend *backend; /* used for capabilities and work_bytes, which depend only on their arguments */
    mrc_isa isa;
    int threads;
    int64_t free_memory; /* bytes available in the memory of the backend */
    mrc_arithmetic arithmetic;
} mrc_machine;
mrc_machine mrc_machine_of(const mercer_context *context);
/* Measure (measure.c) the flops per second of products in double; takes a few milliseconds. Only time estimates use the
   result: decisions about a model must not depend on a clock. */
mercer_status mrc_measure_rate(mercer_context *context, double *flops_per_second);

/* Create the backend `name` for context; free it with mrc_backend_free. NULL: the default. "auto": the first device
   backend whose device can be opened, else the default. "name:2": device 2 of the backend. On failure *out is NULL. */
mercer_status mrc_backend_create(mrc_backend **out, mercer_context *context, const char *name);
void mrc_backend_free(mrc_backend *backend);
/* Return true if creating the backend may be slow: the backend is not the default, and a device may be present. */
bool mrc_backend_is_slow(const char *name);

/* Return MERCER_ERROR_UNSUPPORTED, with the name of the kernel in the message, unless the kernel is a callback or the
   backend supports the kernel. Every operation on kernels calls this first, so that an unsupported kernel is an error
   and never yields the values of another function. */
mercer_status mrc_backend_check_kernel(mrc_backend *backend, const mercer_kernel *kernel);

/* Return the type in which kernel values are computed: f64 if any of the matrices is f64, else f32. Matrices may be
   NULL. */
mercer_dtype mrc_value_dtype(const mercer_matrix *x, const mercer_matrix *z, const mercer_matrix *w,
                             const mercer_matrix *y);

/* Replace NULL entries among the optional operations by defaults. */
void mrc_backend_fill_defaults(mrc_backend_ops *ops);

/* Default of rows_product: gathers the rows, then multiplies, with the backend's own operations. */
mercer_status mrc_default_rows_product(mrc_backend *backend, const mrc_stored *stored, bool transpose,
                                       const mercer_matrix *w, const mercer_matrix *y);

/* Memory operations and copy, for backends that compute in host memory. */
mercer_status mrc_host_alloc(mrc_backend *backend, void **out, int64_t bytes, const char *what);
void mrc_host_free(mrc_backend *backend, void *memory);
mercer_status mrc_host_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
/* Return MERCER_ERROR_DTYPE if copy does not support the conversion. */
mercer_status mrc_check_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
mercer_status mrc_host_sync(mrc_backend *backend);

/* Allocate a matrix in the backend's memory: reserve leaves it uninitialized, create sets it to 0. Release it with
   mrc_matrix_destroy. */
mercer_status mrc_matrix_reserve(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                 mercer_dtype dtype, const char *what);
mercer_status mrc_matrix_create(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                mercer_dtype dtype, const char *what);
/* Release the data (may be NULL) and clear the view. */
void mrc_matrix_destroy(mrc_backend *backend, mercer_matrix *matrix);

/* The same as mrc_matrix_reserve and mrc_matrix_create, but the scope releases the matrix when it ends. */
mercer_status mrc_scope_reserve(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                mercer_dtype dtype, const char *what);
mercer_status mrc_scope_matrix(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                               mercer_dtype dtype, const char *what);
/* The same as mrc_scope_matrix, but in `memory`: the host's or the backend's. */
mercer_status mrc_scope_matrix_in(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, mrc_memory memory,
                                  int64_t rows, int64_t cols, mercer_dtype dtype, const char *what);

/* A (n, n) f64 = I. */
mercer_status mrc_set_identity(mrc_backend *backend, const mercer_matrix *a);

/* The same as mrc_check_matrix, for a caller's view that may be in the backend's memory. */
mercer_status mrc_backend_check_matrix(mrc_backend *backend, const char *name, const mercer_matrix *matrix, int accept);
/* The same as mrc_check_finite and mrc_kernel_check_range, for matrices in host or backend memory. */
mercer_status mrc_matrix_check_finite(mrc_backend *backend, const char *name, const mercer_matrix *matrix,
                                      double *largest);
mercer_status mrc_matrix_check_range(mrc_backend *backend, const mercer_kernel *kernel, const char *name,
                                     const mercer_matrix *x, mercer_dtype real);

/*
 * Access a matrix from the host: open sets *host to the matrix itself if it is in host memory, else to a copy. close
 * copies the contents back if changed is true and status is MERCER_OK, releases the copy, and returns status (or the
 * error of copying back). close may be called after open has failed.
 */
mercer_status mrc_host_open(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host);
mercer_status mrc_host_close(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host, bool changed,
                             mercer_status status);
/* mrc_host_open, with the copy released (and not copied back) when the scope ends, unless mrc_host_close did so before.
   *host must live as long as the scope. */
mercer_status mrc_scope_open(mrc_scope *scope, mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host);

/*
 * Correct an origin (a mean of rows) for features that are flags: 0 or one other value, such as category indicators.
 * The origin of such a feature is set to 0, so that zeros stay zeros and products may skip them. mrc_add_flags adds,
 * for rows in host memory, sum x, sum x^2 and the number of nonzero x to sums (3, d). mrc_clear_flags sets origin (d)
 * to 0 for each feature that the sums of all `rows` rows identify as a flag.
 */
void mrc_add_flags(int threads, const mercer_matrix *rows, const mercer_matrix *sums);
void mrc_clear_flags(const mercer_matrix *sums, int64_t rows, double *origin);

/* Apply the sign rule of eigen_top to vectors (n, q). Every implementation of eigen_top calls this function, so that
   all backends return the same signs. */
void mrc_fix_signs(const mercer_matrix *vectors);

/* Measure the speed of products of this shape. The caller must have set *out to zeros, checked kernel and shape, and
   set the types in shape. */
mercer_status mrc_measure_speed(mrc_backend *backend, mercer_speed *out, const mercer_kernel *kernel,
                                const mercer_shape *shape);

/* Implements the public function mercer_device_count. */
int mrc_device_count(const char *name);

#endif

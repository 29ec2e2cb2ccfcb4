/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mercer.h: the whole public C API of Mercer, written to be read from top to bottom.
 *
 * Mercer works with general kernel models  f(x) = sum_j alpha_j K(x, z_j)  whose p centers z_j are chosen
 * freely. This header is grouped from simple to advanced:
 *
 *   1. version            4. matrix views
 *   2. status             5. kernel functions
 *   3. context            6. kernel matrices and products
 *
 * Rules that hold for every function, unless its comment says otherwise:
 *
 *   - It returns a mercer_status. MERCER_OK is 0. Details of a failure: mercer_last_error(context).
 *   - It never prints, exits or aborts. On failure outputs are untouched and created handles are NULL.
 *   - A constructor takes `out` first; what it returns through `out` belongs to the caller, who releases it with
 *     the matching _free function (which accepts NULL). A returned pointer is borrowed, never freed.
 *   - A context and everything made from it is used by one thread at a time. Different contexts are independent.
 *   - Sizes are int64_t. Results have the same bits for any number of threads.
 */
#ifndef MERCER_MERCER_H
#define MERCER_MERCER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define MERCER_API
#elif defined(MERCER_BUILDING)
#define MERCER_API __attribute__((visibility("default")))
#else
#define MERCER_API
#endif

/* ---- 1. Version ---------------------------------------------------------------------------------------------- */

#define MERCER_VERSION_MAJOR 0
#define MERCER_VERSION_MINOR 1
#define MERCER_VERSION_PATCH 0

/* The version of the library that is loaded, as "major.minor.patch". Static storage; any thread. */
MERCER_API const char *mercer_version(void);

/* ---- 2. Status ----------------------------------------------------------------------------------------------- */

/* One list makes the enum and its texts. Values never change; new ones are added at the end. */
#define MERCER_STATUS_LIST(X)                                                        \
    X(MERCER_OK, 0, "success")                                                       \
    X(MERCER_ERROR_ARGUMENT, 1, "invalid argument")                                  \
    X(MERCER_ERROR_SHAPE, 2, "sizes are negative, too large or do not fit together") \
    X(MERCER_ERROR_DTYPE, 3, "element type not accepted here")                       \
    X(MERCER_ERROR_OVERLAP, 4, "output overlaps an input")                           \
    X(MERCER_ERROR_DATA, 5, "data contain NaN, infinity or values out of range")     \
    X(MERCER_ERROR_KERNEL, 6, "kernel specification not understood")                 \
    X(MERCER_ERROR_MEMORY, 7, "out of memory")                                       \
    X(MERCER_ERROR_UNSUPPORTED, 8, "not supported by this backend or machine")       \
    X(MERCER_ERROR_NUMERIC, 9, "numerical breakdown")                                \
    X(MERCER_ERROR_CALLBACK, 10, "a user callback reported failure")                 \
    X(MERCER_ERROR_INTERNAL, 11, "internal error")

#define MERCER_STATUS_AS_ENUM(name, value, text) name = (value),
typedef enum mercer_status { MERCER_STATUS_LIST(MERCER_STATUS_AS_ENUM) MERCER_STATUS_MAX_ = 0x7fffffff } mercer_status;
#undef MERCER_STATUS_AS_ENUM

/* A short text for a status; "unknown status" for a number that is none. Static storage; any thread. */
MERCER_API const char *mercer_status_string(mercer_status status);

/* ---- 3. Context ---------------------------------------------------------------------------------------------- */

/* Owns the backend, the number of threads, the allocator, the log sink and the text of the last error. */
typedef struct mercer_context mercer_context;

/*
 * Memory comes from these two functions. `allocate` returns memory aligned to `alignment` (a power of two), or
 * NULL; `release` gets what `allocate` returned, never NULL. Both are called only from the thread that is inside a
 * Mercer call, never from its worker threads.
 */
typedef struct mercer_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
} mercer_allocator;

typedef enum mercer_log_level {
    MERCER_LOG_ERROR = 1,
    MERCER_LOG_WARNING = 2,
    MERCER_LOG_INFO = 3,
    MERCER_LOG_DEBUG = 4
} mercer_log_level;

/* Receives one line at a time, without a newline. Must not call back into the same context. */
typedef void (*mercer_log_sink)(void *user, mercer_log_level level, const char *message);

/* Every field may be 0: it then means "choose for me". */
typedef struct mercer_context_options {
    size_t struct_size;         /* sizeof(mercer_context_options), set by INIT: lets the struct grow later */
    int threads;                /* worker threads; 0: one for each processor this process may run on */
    const char *backend;        /* "cpu" (default) or "reference" (scalar double, slow, for judging others) */
    const char *isa;            /* "scalar", "avx2", "avx512", "avx512vnni"; NULL: MERCER_ISA, or the best there is */
    mercer_allocator allocator; /* {0}: the C library's */
    mercer_log_sink log;        /* NULL: silent */
    void *log_user;
    mercer_log_level log_level; /* the most talkative level wanted; 0: MERCER_LOG_WARNING */
} mercer_context_options;

#define MERCER_CONTEXT_OPTIONS_INIT                                                   \
    {                                                                                 \
        sizeof(mercer_context_options), 0, 0, 0, {0, 0, 0}, 0, 0, (mercer_log_level)0 \
    }

/* The same as the INIT macro, for languages without it. struct_size is sizeof what the caller compiled. */
MERCER_API mercer_status mercer_context_options_init(mercer_context_options *options, size_t struct_size);

/*
 * Makes a context. options may be NULL. Without a context yet, the message of a failure is in
 * mercer_last_error(NULL), kept for the calling thread.
 */
MERCER_API mercer_status mercer_context_create(mercer_context **out, const mercer_context_options *options);

/* Releases a context. Everything made from it must have been released before. NULL is fine. */
MERCER_API void mercer_context_free(mercer_context *context);

/* What went wrong in the last failed call on this context ("" if nothing did). Valid until the next call. */
MERCER_API const char *mercer_last_error(const mercer_context *context);

typedef struct mercer_context_info {
    size_t struct_size;  /* set by the caller: sizeof(mercer_context_info) */
    const char *backend; /* borrowed, static */
    const char *isa;     /* borrowed, static */
    int threads;
    int64_t bytes_now;  /* held through the allocator at this moment */
    int64_t bytes_peak; /* the most that was ever held */
} mercer_context_info;

/* What the context decided and what it uses. */
MERCER_API mercer_status mercer_context_query(mercer_context *context, mercer_context_info *info);

/* ---- 4. Matrix views ----------------------------------------------------------------------------------------- */

typedef enum mercer_dtype {
    MERCER_F64 = 1, /* double */
    MERCER_F32 = 2, /* float */
    MERCER_F16 = 3, /* IEEE binary16; storage only, arithmetic is float */
    MERCER_U8 = 4   /* unsigned bytes; distances and inner products of two u8 matrices are exact integers */
} mercer_dtype;

typedef enum mercer_memory { MERCER_HOST = 0 } mercer_memory;

/*
 * A view of a row-major matrix that somebody else owns: element (i, j) is data[i * ld + j]. ld >= cols lets a view
 * be a part of a larger matrix. A row is a sample or a center. Frozen layout; keep reserved words 0.
 */
typedef struct mercer_matrix {
    void *data;
    int64_t rows;
    int64_t cols;
    int64_t ld;
    mercer_dtype dtype;
    mercer_memory memory;
    int64_t reserved[2];
} mercer_matrix;

/* A view of contiguous host memory. No checks: the functions that take the view check it. */
MERCER_API mercer_matrix mercer_matrix_view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype);

/* ---- 5. Kernel functions ------------------------------------------------------------------------------------- */

/*
 * Kernel functions are named by a text, name:parameter=value,...  With r the L2 distance |x - z| and b the bandwidth:
 *
 *   laplace:bandwidth=b                      exp(-r / b)                        (L2 distance, not L1)
 *   gaussian:bandwidth=b                     exp(-r^2 / (2 b^2))
 *   matern32:bandwidth=b                     (1 + sqrt(3) r/b) exp(-sqrt(3) r/b)
 *   matern52:bandwidth=b                     (1 + sqrt(5) r/b + 5/3 (r/b)^2) exp(-sqrt(5) r/b)
 *   exppower:bandwidth=b,gamma=g             exp(-(r / b)^g),                   0 < g <= 2
 *   cauchy:bandwidth=b                       1 / (1 + r^2 / b^2)
 *   rational-quadratic:bandwidth=b,alpha=a   (1 + r^2 / (2 a b^2))^-a           a = 1 if not given
 *   polynomial:degree=k,scale=s,offset=o     (s x.z + o)^k                      k = 3, s = 1, o = 1
 *   linear                                   x.z
 *   ntk:depth=L,bias=v                       neural tangent kernel of L hidden ReLU layers, L = 1, v = 0
 *   nngp:depth=L,bias=v                      the Gaussian-process kernel of the same network
 */
typedef enum mercer_kernel_id {
    MERCER_KERNEL_LAPLACE = 1,
    MERCER_KERNEL_GAUSSIAN = 2,
    MERCER_KERNEL_MATERN32 = 3,
    MERCER_KERNEL_MATERN52 = 4,
    MERCER_KERNEL_EXPPOWER = 5,
    MERCER_KERNEL_CAUCHY = 6,
    MERCER_KERNEL_RATIONAL_QUADRATIC = 7,
    MERCER_KERNEL_POLYNOMIAL = 8,
    MERCER_KERNEL_LINEAR = 9,
    MERCER_KERNEL_NTK = 10,
    MERCER_KERNEL_NNGP = 11,
    MERCER_KERNEL_CALLBACK_DISTANCE = 100, /* user function of |x - z| */
    MERCER_KERNEL_CALLBACK_INNER = 101     /* user function of x.z, |x|^2 and |z|^2 */
} mercer_kernel_id;

/* A block of a kernel matrix handed to a user function: rows belong to X, columns to Z. */
typedef struct mercer_kernel_block {
    int64_t rows;
    int64_t cols;
    int64_t ld;
    double *values;          /* (rows, ld): in, distances or inner products; out, kernel values */
    const double *x_sqnorms; /* (rows) |x|^2; NULL for a function of the distance */
    const double *z_sqnorms; /* (cols) |z|^2; NULL for a function of the distance */
} mercer_kernel_block;

/*
 * Replaces the block's values by kernel values; returns 0, or anything else to make the call fail with
 * MERCER_ERROR_CALLBACK. It may be called from several threads at once and must be symmetric in x and z.
 */
typedef int (*mercer_kernel_callback)(void *user, const mercer_kernel_block *block);

/* A kernel function: plain data, may be copied. Filled by the two functions below. Frozen layout. */
typedef struct mercer_kernel {
    int32_t id;     /* mercer_kernel_id */
    int32_t degree; /* polynomial */
    int32_t depth;  /* ntk, nngp */
    int32_t reserved0;
    double bandwidth; /* functions of the distance */
    double gamma;     /* exppower */
    double alpha;     /* rational-quadratic */
    double scale;     /* polynomial */
    double offset;    /* polynomial */
    double bias;      /* ntk, nngp */
    mercer_kernel_callback callback;
    void *callback_user;
    int64_t reserved[4];
} mercer_kernel;

/* Reads "laplace:bandwidth=10". Errors say what is valid. context may be NULL (then: mercer_last_error(NULL)). */
MERCER_API mercer_status mercer_kernel_parse(mercer_context *context, mercer_kernel *out, const char *spec);

/*
 * Writes the text that mercer_kernel_parse reads back to the same kernel, zero-terminated, into text (size bytes).
 * *needed, if not NULL, gets the bytes it takes with its zero; if that exceeds size the call fails with
 * MERCER_ERROR_ARGUMENT and leaves text alone. text may be NULL when size is 0.
 */
MERCER_API mercer_status mercer_kernel_print(mercer_context *context, const mercer_kernel *kernel, char *text,
                                             size_t size, size_t *needed);

/* A kernel given by a function of the caller's; on is MERCER_KERNEL_CALLBACK_DISTANCE or ..._INNER. */
MERCER_API mercer_status mercer_kernel_from_callback(mercer_context *context, mercer_kernel *out, mercer_kernel_id on,
                                                     mercer_kernel_callback callback, void *user);

/* K(x, z) of two rows of d doubles by the scalar double reference: the definition all fast code is judged by. */
MERCER_API mercer_status mercer_kernel_value(mercer_context *context, double *out, const mercer_kernel *kernel,
                                             int64_t d, const double *x, const double *z);

/* ---- 6. Kernel matrices and products ------------------------------------------------------------------------- */

/*
 * X is (m, d), Z is (p, d), of any dtypes. K, Y, W and the diagonal are f32 or f64. If any operand is f64, all
 * arithmetic is double; otherwise it is float, with exact integer distances where X and Z are both u8. Sums over
 * centers are carried in double between tiles. A row of the result does not depend on the other rows of X: a batch
 * may be split anywhere. Rows that coincide get the exact kernel value (K(x, x) = 1 for functions of the distance).
 *
 * All inputs must be finite, and products of inner-product kernels within the range of the arithmetic. Memory beyond the
 * arguments is a few tiles for each thread, never m x p. Only a user callback that fails midway leaves a part of the output
 * written.
 */

/* K = K(X, Z), K is (m, p). */
MERCER_API mercer_status mercer_kernel_eval(mercer_context *context, const mercer_matrix *K,
                                            const mercer_kernel *kernel, const mercer_matrix *X,
                                            const mercer_matrix *Z);

/* Y = K(X, Z) W without forming K(X, Z). W is (p, c), Y is (m, c). With p = 0, Y becomes 0. */
MERCER_API mercer_status mercer_kernel_matmul(mercer_context *context, const mercer_matrix *Y,
                                              const mercer_kernel *kernel, const mercer_matrix *X,
                                              const mercer_matrix *Z, const mercer_matrix *W);

/* D = the diagonal K(x_i, x_i), D is (m, 1). */
MERCER_API mercer_status mercer_kernel_diagonal(mercer_context *context, const mercer_matrix *D,
                                                const mercer_kernel *kernel, const mercer_matrix *X);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mercer.h: the whole public C API of Mercer, written to be read from top to bottom.
 *
 * Mercer works with general kernel models  f(x) = sum_j alpha_j K(x, z_j)  whose p centers z_j are chosen
 * freely. This header (with section 15 in a file of its own, which it includes) is grouped from simple to advanced:
 *
 *   1. version       4. matrix views                    7. models                 10. preprocessing   13. centers
 *   2. status        5. kernel functions                8. sources of samples     11. datasets        14. training
 *   3. context       6. kernel matrices and products    9. model files            12. streams         15. ranks
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
#define MERCER_STATUS_LIST(X)                                                                  \
    X(MERCER_OK, 0, "success")                                                                 \
    X(MERCER_ERROR_ARGUMENT, 1, "invalid argument")                                            \
    X(MERCER_ERROR_SHAPE, 2, "sizes are negative, too large or do not fit together")           \
    X(MERCER_ERROR_DTYPE, 3, "element type not accepted here")                                 \
    X(MERCER_ERROR_OVERLAP, 4, "output overlaps an input")                                     \
    X(MERCER_ERROR_DATA, 5, "data contain NaN, infinity or values out of range")               \
    X(MERCER_ERROR_KERNEL, 6, "kernel specification not understood")                           \
    X(MERCER_ERROR_MEMORY, 7, "out of memory")                                                 \
    X(MERCER_ERROR_UNSUPPORTED, 8, "not supported by this backend or machine")                 \
    X(MERCER_ERROR_NUMERIC, 9, "numerical breakdown")                                          \
    X(MERCER_ERROR_CALLBACK, 10, "a user callback reported failure")                           \
    X(MERCER_ERROR_INTERNAL, 11, "internal error")                                             \
    X(MERCER_ERROR_IO, 12, "reading or writing a file failed")                                 \
    X(MERCER_ERROR_FORMAT, 13, "file is damaged, truncated or of another format")              \
    X(MERCER_ERROR_MISSING, 14, "file does not exist")                                         \
    X(MERCER_ERROR_MISMATCH, 15, "file belongs to other data, another model or other options") \
    X(MERCER_ERROR_COMM, 16, "another rank died, stopped, failed or was started differently")

#define MERCER_STATUS_AS_ENUM(name, value, text) name = (value),
typedef enum mercer_status { MERCER_STATUS_LIST(MERCER_STATUS_AS_ENUM) MERCER_STATUS_MAX_ = 0x7fffffff } mercer_status;
#undef MERCER_STATUS_AS_ENUM

/* A short text for a status; "unknown status" for a number that is none. Static storage; any thread. */
MERCER_API const char *mercer_status_string(mercer_status status);

/* A choice that may be left to Mercer. */
typedef enum mercer_switch { MERCER_AUTO = 0, MERCER_ON = 1, MERCER_OFF = 2 } mercer_switch;

/* ---- 3. Context ---------------------------------------------------------------------------------------------- */

/* Owns the backend, the number of threads, the allocator, the log sink and the text of the last error. */
typedef struct mercer_context mercer_context;
/* Ranks among which the centers are shared out: section 15. */
typedef struct mercer_comm mercer_comm;

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
    const char *backend;        /* "cpu" (default), "cuda" or "cuda:1" (a GPU), "auto" (a GPU if there is one, else the
                                   CPU) or "reference" (scalar double, slow, for judging others) */
    const char *isa;            /* "scalar", "avx2", "avx512", "avx512vnni", "amx"; NULL: MERCER_ISA, or the best */
    mercer_allocator allocator; /* {0}: the C library's */
    mercer_log_sink log;        /* NULL: silent */
    void *log_user;
    mercer_log_level log_level; /* the most talkative level wanted; 0: MERCER_LOG_WARNING */
    const char *arithmetic;     /* of kernel products in float: "accurate" (default), or "fast": a GPU may round points
                                   and kernel values to half precision (relative error about 2e-4) */
} mercer_context_options;

#define MERCER_CONTEXT_OPTIONS_INIT                                                      \
    {                                                                                    \
        sizeof(mercer_context_options), 0, 0, 0, {0, 0, 0}, 0, 0, (mercer_log_level)0, 0 \
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

typedef enum mercer_memory { MERCER_HOST = 0, MERCER_CUDA = 1 } mercer_memory;

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
 * All inputs must be finite, and products of inner-product kernels within the range of the arithmetic. Memory beyond
 * the arguments is a few tiles for each thread, never m x p. Only a user callback that fails midway leaves a part of
 * the output written.
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

/* ---- 7. Models ----------------------------------------------------------------------------------------------- */

/* f(x) = sum_j alpha_j K(x, z_j): a kernel function, p centers and their weights (p, c). */
typedef struct mercer_model mercer_model;

/*
 * Makes a model with weights 0. The centers (p, d), of any dtype, are copied and keep their dtype. `weights` is the
 * type of the weights and of training: MERCER_F32, MERCER_F64, or 0 to choose (f64 if the centers are f64). The
 * context must outlive the model.
 */
MERCER_API mercer_status mercer_model_create(mercer_model **out, mercer_context *context, const mercer_kernel *kernel,
                                             const mercer_matrix *centers, int64_t outputs, mercer_dtype weights);
MERCER_API void mercer_model_free(mercer_model *model);

/* F = f(X): X is (m, d), F is (m, c) f32 or f64. A row's result does not depend on the other rows. If the model has a
   preprocessing (section 10), X is given as it was before it; if it has units of its targets (below), F is in the units
   of the targets as they were given. Fails where kernel values or predictions overflow: a prediction is finite. */
MERCER_API mercer_status mercer_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X);

/* labels[i] = the output with the largest value at row i of X (the first of equals). */
MERCER_API mercer_status mercer_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X);

/* Borrowed views, valid as long as the model; weights may be read, and written between calls. */
MERCER_API const mercer_kernel *mercer_model_kernel(const mercer_model *model);
MERCER_API mercer_matrix mercer_model_centers(const mercer_model *model);
MERCER_API mercer_matrix mercer_model_weights(const mercer_model *model);

/*
 * The units of the targets. A model with an offset and a scale (> 0) for each output is
 *     f_k(x) = offset_k + scale_k sum_j alpha_jk K(x, z_j)
 * and training fits the sum to (y - offset) / scale, computed in double: with mean and standard deviation as offset
 * and scale a target may lie anywhere, and be in any unit. Losses are reported in the units of y. A model begins
 * without: 0 and 1. Set them before training: they change what the weights mean, not the weights. NULL: 0, or 1.
 * Copied; model files keep them.
 */
MERCER_API mercer_status mercer_model_set_targets(mercer_model *model, const double *offset, const double *scale);
/* Borrowed (c), until the next call that sets them; both NULL if the model has none. */
MERCER_API const double *mercer_model_target_offset(const mercer_model *model);
MERCER_API const double *mercer_model_target_scale(const mercer_model *model);

/* Mean and standard deviation (c each) of targets Y (n, c) f32 or f64, n > 0, with sample weights (n) or NULL: an
   offset and a scale for them. The deviation of a constant target is given as 1. */
MERCER_API mercer_status mercer_target_moments(mercer_context *context, const mercer_matrix *Y, const double *weights,
                                               double *mean, double *deviation);

/* ---- 8. Sources of samples ----------------------------------------------------------------------------------- */

/* A few samples, borrowed until the next call on their source. */
typedef struct mercer_batch {
    mercer_matrix X;       /* (m, d) any dtype, the same in every batch */
    mercer_matrix Y;       /* (m, c) f32 or f64 */
    const double *weights; /* (m) >= 0, or NULL: all 1 */
    const int64_t
        *rows; /* (m) which samples these are, 0 .. source.rows - 1, or NULL: unknown. Known rows let Mercer keep
                              what it has computed for them, and are needed by solvers whose centers are the samples. */
} mercer_batch;

/*
 * Where samples come from. Training reads passes ("epochs") of batches. Batches must be independent draws: shuffle
 * well. The functions return 0, or anything else to stop with MERCER_ERROR_CALLBACK; last_error may be NULL.
 */
typedef struct mercer_source {
    size_t struct_size; /* sizeof(mercer_source) */
    int64_t rows;       /* samples in a pass */
    int64_t features;   /* d */
    int64_t outputs;    /* c */
    mercer_dtype dtype; /* of X */
    /* The next batch begins pass number `epoch`: 0, 1, ...; -1 is the pass that the preconditioner's sample is drawn
       from. */
    int (*restart)(void *user, int64_t epoch);
    int (*next)(void *user, int64_t most, mercer_batch *batch); /* at most `most` rows; 0 rows: the pass is over */
    const char *(*last_error)(void *user);
    void (*release)(void *user); /* may be NULL */
    void *user;
    /* Passes over the next `rows` samples of the pass without making them, after restart; NULL: they are read and
       dropped. Used to resume in the middle of a pass. */
    int (*skip)(void *user, int64_t rows);
} mercer_source;

/*
 * A source over matrices in memory, which are borrowed: X (n, d), Y (n, c) f32 or f64, weights (n) or NULL. Each pass
 * is a fresh random order drawn from seed. Release with mercer_source_release.
 */
MERCER_API mercer_status mercer_source_from_matrices(mercer_source *out, mercer_context *context,
                                                     const mercer_matrix *X, const mercer_matrix *Y,
                                                     const double *weights, uint64_t seed);
/* The same for classification: labels (n) in 0 .. classes - 1 become one-hot rows. */
MERCER_API mercer_status mercer_source_from_labels(mercer_source *out, mercer_context *context, const mercer_matrix *X,
                                                   const int32_t *labels, int64_t classes, const double *weights,
                                                   uint64_t seed);
MERCER_API void mercer_source_release(mercer_source *source);

/* ---- 9. Model files ------------------------------------------------------------------------------------------ */

/*
 * A model file has the safetensors layout: a JSON header, then the tensors "centers" (p, d) f64, f32, f16 or u8,
 * "weights" (p, c) f64 or f32, "origin" (d) f64 and those of the preprocessing. Strings in the header's metadata hold
 * the rest; each tensor has its XXH3 checksum there. Other programs can read it with any safetensors package.
 *
 * Writing goes to a temporary file beside `path`, which takes its name only when all bytes are on disk: there is the
 * old file or the new one, never a part. Reading checks every size, offset, type and checksum before use.
 */

/* Types in which a model file holds its tensors; 0: as they are in the model. */
typedef struct mercer_save_options {
    size_t struct_size;
    mercer_dtype centers; /* f64, f32, f16, or u8 if all values are whole numbers 0 .. 255 */
    mercer_dtype weights; /* f64 or f32 */
} mercer_save_options;

/* options may be NULL. */
MERCER_API mercer_status mercer_model_save(mercer_model *model, const char *path, const mercer_save_options *options);

/* The file is mapped, not read: loading takes the time of its checksums. It must not be changed in place while the
   model exists; replacing it (as mercer_model_save does) is fine. */
MERCER_API mercer_status mercer_model_load(mercer_model **out, mercer_context *context, const char *path);

/* The JSON header of a model file or checkpoint, checked, zero-terminated. Sizes as in mercer_kernel_print. */
MERCER_API mercer_status mercer_file_header(mercer_context *context, const char *path, char *text, size_t size,
                                            size_t *needed);

/* The names of the classes, in the order of the outputs; copied. count is 0, or the model's number of outputs (2 names
   are allowed for a single output). Model files keep them. */
MERCER_API mercer_status mercer_model_set_labels(mercer_model *model, const char *const *labels, int64_t count);
/* Borrowed; NULL and *count = 0 if the model has none. count may be NULL. */
MERCER_API const char *const *mercer_model_labels(const mercer_model *model, int64_t *count);

/*
 * The names of the columns that samples had, in the order of the features; copied, kept in model files and checkpoints.
 * count is 0 (columns go by position), or the model's number of features. Names may repeat.
 */
MERCER_API mercer_status mercer_model_set_feature_names(mercer_model *model, const char *const *names, int64_t count);
/* Borrowed; NULL and *count = 0 if the model has none. count may be NULL. */
MERCER_API const char *const *mercer_model_feature_names(const mercer_model *model, int64_t *count);
/* The names of the columns that targets had: one, or as many as outputs. */
MERCER_API mercer_status mercer_model_set_target_names(mercer_model *model, const char *const *names, int64_t count);
MERCER_API const char *const *mercer_model_target_names(const mercer_model *model, int64_t *count);
/*
 * Which columns of a table are the model's features: columns[j] (d), counted from 0, is that of feature j among the
 * `count` columns with these names. Columns that the model does not know are passed over; one that it needs and does
 * not find is MERCER_ERROR_MISMATCH, and the message names it and the nearest there is. Without names, of the model or
 * of the table (NULL), columns go by position and their number must be d.
 */
MERCER_API mercer_status mercer_model_match(const mercer_model *model, int64_t *columns, const char *const *names,
                                            int64_t count);

/* A text of the caller's that the model file carries, for instance a summary of the training as JSON. Copied. */
MERCER_API mercer_status mercer_model_set_note(mercer_model *model, const char *note);
MERCER_API const char *mercer_model_note(const mercer_model *model); /* borrowed; "" if there is none */

/* ---- 10. Preprocessing --------------------------------------------------------------------------------------- */

/*
 * What happens to the features of a sample before the kernel sees them:
 *
 *   none
 *   scale:factor=v      x v            v = 1/255 if not given: pixels become 0 .. 1
 *   standardise         (x - mean) / standard deviation, each feature; constant features become 0
 *   minmax              (x - min) / (max - min), each feature; constant features become 0
 *   unit                x / |x|; a row of zeros stays one
 *   auto                scale for bytes; minmax for libsvm files; none for f16 and computed data; else standardise
 *
 * Means and ranges are those of the data it was fitted to. The result is f64 for f64 data and f32 otherwise.
 */
typedef struct mercer_preprocess mercer_preprocess;
typedef struct mercer_dataset mercer_dataset;

MERCER_API mercer_status mercer_preprocess_fit(mercer_preprocess **out, mercer_context *context, const char *spec,
                                               mercer_dataset *dataset);
/* The same for a matrix. */
MERCER_API mercer_status mercer_preprocess_fit_matrix(mercer_preprocess **out, mercer_context *context,
                                                      const char *spec, const mercer_matrix *X);
/* What auto stands for. format is that of a dataset ("csv", "npy", ...), or NULL: a matrix. Static storage. */
MERCER_API const char *mercer_preprocess_auto(const char *format, mercer_dtype dtype);
MERCER_API void mercer_preprocess_free(mercer_preprocess *preprocess);

/*
 * For `scale` and a function of the distance: K(v x, v z) with bandwidth b is K(x, z) with bandwidth b / v. Changes the
 * kernel in that way; from then on the preprocessing leaves samples as they are, so that bytes stay bytes, and
 * mercer_preprocess_kernel tells the kernel as it was. Does nothing for other kinds and kernels. *folded (may be NULL)
 * tells which.
 */
MERCER_API mercer_status mercer_preprocess_fold(mercer_preprocess *preprocess, mercer_kernel *kernel, int *folded);
/* The kernel before folding; NULL if nothing was folded. Borrowed. */
MERCER_API const mercer_kernel *mercer_preprocess_kernel(const mercer_preprocess *preprocess);
/* The text it was made from, with its numbers ("scale:factor=0.00392..."). Borrowed. */
MERCER_API const char *mercer_preprocess_spec(const mercer_preprocess *preprocess);

/* The type that samples of type `dtype` have afterwards. preprocess may be NULL: none. */
MERCER_API mercer_dtype mercer_preprocess_dtype(const mercer_preprocess *preprocess, mercer_dtype dtype);
/* out = the preprocessed X; same shape, of the type mercer_preprocess_dtype tells, or f32 or f64. */
MERCER_API mercer_status mercer_preprocess_apply(const mercer_preprocess *preprocess, const mercer_matrix *out,
                                                 const mercer_matrix *X);

/* The model's own, copied: applied to X by mercer_model_predict and _classify, kept in model files. The model's centers
   are preprocessed already. NULL: none. */
MERCER_API mercer_status mercer_model_set_preprocess(mercer_model *model, const mercer_preprocess *preprocess);
MERCER_API const mercer_preprocess *mercer_model_preprocess(const mercer_model *model); /* borrowed; NULL: none */

/* ---- 11. Datasets -------------------------------------------------------------------------------------------- */

typedef enum mercer_task {
    MERCER_TASK_AUTO = 0, /* names, and whole numbers of which at most 20 differ (see below): classes; else values */
    MERCER_TASK_CLASSIFICATION = 1, /* targets are classes */
    MERCER_TASK_REGRESSION = 2,     /* targets are numbers */
    MERCER_TASK_UNLABELLED = 3      /* there are no targets, or they are not to be read */
} mercer_task;

/*
 * Samples and their targets from files:
 *
 *   npy            NumPy arrays: float64, float32, float16, uint8 mapped as they are; other integers, big-endian and
 *                  Fortran order converted in memory. X (n, d), or (n, ...) with the rest flattened; y (n) or (n, c)
 *   idx, idx.gz    MNIST's format: uint8 images (n, rows, cols), labels (n)
 *   csv, tsv       text, .gz too: numbers, and target columns, numbers or (one column) names
 *   libsvm         "label index:value ...", .gz too; made dense; indices from 1, or from 0 if a 0 occurs
 *   raw            binary without a header; its shape is given in `raw`
 *
 * npy, idx and raw files are mapped: they may be larger than memory, and must not be changed in place meanwhile; gz
 * files and text are read. Names and the labels of idx files are classes; whole numbers are if at most 20 differ, in
 * text only if they occur three times on average too, or only two differ; all other targets are values.
 * "part-*.npy" means all files that match (* ? [0-9], in the name, not the folder; a file of that very name is meant
 * alone) as one: their rows stand one after the other, numbers in names compared as numbers, and every result is that
 * of a single file. They must agree in format, columns and type; csv files name their columns in the first, or in each.
 */
typedef struct mercer_dataset_options {
    size_t struct_size;
    const char *x;        /* file of samples (with its targets, for csv and libsvm), or a pattern of several */
    const char *y;        /* file of targets, or a pattern of several, or NULL */
    const char *format;   /* of x: npy, idx, csv, tsv, libsvm, raw; NULL or "auto": by name and content */
    const char *y_format; /* of y: npy, idx, csv, tsv, text (one target a line) */
    const char *raw;      /* raw: "f32:1000x784" or "u8:784" (as many rows as there are), "@128" behind: skip bytes */
    const char
        *target; /* csv: the target column (of y, if given): a name of the header, or an index from 0, -1: the last; or
                             several with commas between them: values, that many outputs. NULL: the one that is named
                             target, label, class or y; of y, all */
    mercer_switch header; /* csv: the first line names the columns; AUTO: if a text stands over a number in it */
    mercer_task task;
    int64_t features;          /* libsvm: d; 0: the largest index found */
    const char *const *labels; /* classes that may occur, in order; NULL: those found, sorted */
    int64_t label_count;
    int64_t first, rows; /* only `rows` rows from `first` on; rows = 0: all of the rest */
    int64_t memory;      /* refuse to hold more bytes than this; 0: half of what is free */
    const char *const
        *columns; /* (column_count) names of the features wanted, such as mercer_model_feature_names gives: csv
                                   columns come in this order, whatever theirs is, others are not read, and a missing
                                   one is an error. Data without names go by position and must have as many. NULL:
                                   all */
    int64_t column_count;
} mercer_dataset_options;

MERCER_API mercer_status mercer_dataset_options_init(mercer_dataset_options *options, size_t struct_size);
MERCER_API mercer_status mercer_dataset_open(mercer_dataset **out, mercer_context *context,
                                             const mercer_dataset_options *options);

/*
 * Samples that are computed when they are read, never stored: sample i is a function of (spec, seed, i). Samples
 * first .. first + rows - 1 of an endless sequence:
 *
 *   digits:noise=v        the ten digits drawn with random strokes: 28 x 28 uint8, 10 classes
 *   spirals:classes=k,noise=v           k interleaved spirals in the plane, f32
 *   teacher:d=D,c=C,centers=P,noise=v,kernel=NAME,bandwidth=b    y = K(x, Z*) alpha* + noise, X normal, f32
 */
MERCER_API mercer_status mercer_dataset_synthesize(mercer_dataset **out, mercer_context *context, const char *spec,
                                                   int64_t first, int64_t rows, uint64_t seed);
/* A new dataset of rows[0 .. count - 1], count > 0, copied into memory, with the same classes and names. */
MERCER_API mercer_status mercer_dataset_take(mercer_dataset **out, const mercer_dataset *from, const int64_t *rows,
                                             int64_t count);
MERCER_API void mercer_dataset_free(mercer_dataset *dataset);

typedef struct mercer_dataset_info {
    size_t struct_size;
    int64_t rows, features, outputs;   /* outputs: classes, or columns of the targets; 0 if unlabelled */
    mercer_dtype dtype;                /* of the samples */
    mercer_task task;                  /* never AUTO */
    const char *format;                /* borrowed: npy, idx, ..., synthetic */
    const char *const *labels;         /* borrowed: (outputs) names of the classes; NULL unless classification */
    const char *const *features_named; /* borrowed: (features) names of the columns; NULL if unknown */
    int64_t height, width, channels;   /* of images; 0 if unknown */
    int mapped;                        /* samples are read from their files when needed */
    int64_t bytes;                     /* of all samples, as stored */
    const char *const *targets_named;  /* borrowed: names of the columns of targets: one for classes, else (outputs);
                                          NULL if unknown */
    int64_t unused;                    /* columns of the file that `columns` did not ask for */
    const char *const *unused_named;   /* borrowed: (unused) their names; NULL if there are none */
    int64_t distinct; /* different targets, if they are whole numbers in one column; 0: other targets, or too many */
} mercer_dataset_info;

MERCER_API mercer_status mercer_dataset_query(const mercer_dataset *dataset, mercer_dataset_info *info);
/* The samples (n, d), borrowed; data is NULL if they are synthetic or lie in several files: use mercer_dataset_read. */
MERCER_API mercer_matrix mercer_dataset_samples(const mercer_dataset *dataset);
/* Class numbers (n), borrowed; NULL unless classification with stored labels. */
MERCER_API const int32_t *mercer_dataset_labels(const mercer_dataset *dataset);
/* Copies samples rows[0 .. m - 1], or first .. first + m - 1 if rows is NULL, preprocessed (NULL: as they are), into
   X (m, d), and their targets into Y (m, outputs) f32 or f64, one-hot for classes, or NULL; labels (m) gets class
   numbers, or NULL. */
MERCER_API mercer_status mercer_dataset_read(const mercer_dataset *dataset, const mercer_preprocess *preprocess,
                                             const int64_t *rows, int64_t first, const mercer_matrix *X,
                                             const mercer_matrix *Y, int32_t *labels);
/* Mean and standard deviation (outputs each) of all targets, one-hot for classes (the mean is then the share of each
   class), as mercer_target_moments tells them; for synthetic samples, of the first 4096. */
MERCER_API mercer_status mercer_dataset_target_moments(const mercer_dataset *dataset, double *mean, double *deviation);
/* A number that changes when shape, type or (very probably) contents change: hashes up to 64 blocks spread over the
   samples, and all targets. */
MERCER_API mercer_status mercer_dataset_fingerprint(const mercer_dataset *dataset, uint64_t *out);
/* Writes samples (and targets to y_path, unless NULL) as NPY files, atomically; row by row, whatever the size. */
MERCER_API mercer_status mercer_dataset_write_npy(const mercer_dataset *dataset, const char *x_path,
                                                  const char *y_path);
/* The same in the format that each name ends in: .npy; .csv and .tsv are text, with a line of names where there are
   any, numbers in the fewest digits that read back as they were, and names of classes. Another ending is refused. */
MERCER_API mercer_status mercer_dataset_write(const mercer_dataset *dataset, const char *x_path, const char *y_path);
/* Writes a matrix as an NPY file, atomically. */
MERCER_API mercer_status mercer_matrix_write_npy(mercer_context *context, const mercer_matrix *matrix,
                                                 const char *path);

/* ---- 12. Streams --------------------------------------------------------------------------------------------- */

/*
 * Batches of a dataset, preprocessed, in a random order that is a function of (seed, pass). Rows in memory are shuffled
 * one by one. Files that are mapped and large are read in contiguous blocks in random order, some blocks at a time,
 * rows shuffled among them, by a thread that reads ahead while the caller computes.
 *
 * Augmentation makes new samples of those that are read: sample k of pass e is a function of (seed, e, k). It acts
 * before preprocessing, in the units of the data (0 .. 255 for bytes, which stay bytes, rounded). Parts, joined by "+":
 *
 *   noise:sigma=v       + v N(0, 1) for each feature
 *   shift:pixels=k      the image moved by up to k pixels in each direction, 0 outside
 *   crop:pad=k          k pixels of 0 around the image, then a random window of its size; the same law as shift
 *   flip                the image mirrored left to right, half of the time
 *   mixup:alpha=a       l x + (1 - l) x' with another sample of the same block, l ~ Beta(a, a); targets mixed alike
 */
typedef struct mercer_stream_options {
    size_t struct_size;
    uint64_t seed;
    const mercer_preprocess *preprocess; /* borrowed, outlives the source; NULL: none */
    const char *augment;                 /* NULL: none */
    int64_t height, width, channels;     /* of images, for shift, crop and flip; 0: as the dataset says */
    int64_t samples;                     /* in a pass; 0: as many as rows. More need augmentation or repeat rows. */
    int64_t block;                       /* rows read together; 0: chosen; 1: rows are shuffled one by one */
    mercer_switch prefetch;              /* a thread reads ahead; AUTO: if it pays */
} mercer_stream_options;

MERCER_API mercer_status mercer_stream_options_init(mercer_stream_options *options, size_t struct_size);
/* The dataset is borrowed. Release with mercer_source_release. Targets are one-hot for classification. */
MERCER_API mercer_status mercer_source_from_dataset(mercer_source *out, mercer_dataset *dataset,
                                                    const mercer_stream_options *options);

/* ---- 13. Centers --------------------------------------------------------------------------------------------- */

typedef struct mercer_center_options {
    size_t struct_size;
    const char *method; /* random, kmeans, rpcholesky, balanced; NULL: random */
    uint64_t seed;
    const mercer_kernel *kernel; /* rpcholesky: of the model */
    const int32_t *labels;       /* balanced: class numbers (n) of X */
    int64_t classes;
    int64_t iterations; /* kmeans: at most so many rounds; 0: chosen */
    int64_t batch;      /* kmeans: rows of a mini-batch; 0: chosen, -1: all (Lloyd) */
    int64_t memory;     /* bytes to hold at most; 0: half of what is free */
    /* Called now and then; done and total in the same unit. Non-zero stops with what there is (kmeans). */
    int (*progress)(void *user, int64_t done, int64_t total, double error);
    void *progress_user;
    mercer_comm *comm;     /* its ranks choose together, from the same data; NULL: this process alone */
    int64_t total_centers; /* > 0: `centers` is this rank's share of so many; 0: all of them */
} mercer_center_options;

typedef struct mercer_center_report {
    size_t struct_size;
    int64_t iterations; /* kmeans rounds */
    double error;       /* kmeans: mean squared distance to the nearest center; rpcholesky: share of the trace left */
    int64_t reseeded;   /* kmeans: empty clusters that got a new center */
    double seconds;
} mercer_center_report;

MERCER_API mercer_status mercer_center_options_init(mercer_center_options *options, size_t struct_size);
/* Fills centers (p, d), p <= n, from the rows of X (n, d). Values are rounded when the centers are u8. */
MERCER_API mercer_status mercer_choose_centers(mercer_context *context, const mercer_matrix *centers,
                                               const mercer_matrix *X, const mercer_center_options *options,
                                               mercer_center_report *report);
/* The same from a dataset, preprocessed; a random part of the rows serves where all would not fit the memory. Labels
   for `balanced` are the dataset's. */
MERCER_API mercer_status mercer_choose_centers_from(mercer_dataset *dataset, const mercer_preprocess *preprocess,
                                                    const mercer_matrix *centers, const mercer_center_options *options,
                                                    mercer_center_report *report);

/* For every row of X (n, d) the nearest row of Z (p, d), p > 0, the first of equals: numbers (n), and squared distances
   (n) unless NULL. */
MERCER_API mercer_status mercer_nearest(mercer_context *context, int32_t *nearest, double *sqdistances,
                                        const mercer_matrix *X, const mercer_matrix *Z);

/* The median distance between rows of X (of a random part of at most 2000): a bandwidth to start from. */
MERCER_API mercer_status mercer_median_distance(mercer_context *context, double *out, const mercer_matrix *X,
                                                uint64_t seed);

/* ---- 14. Training -------------------------------------------------------------------------------------------- */

/* How training goes: handed to the progress callback at the end of every epoch (or CG step), and on request. */
typedef struct mercer_progress {
    size_t struct_size;
    int64_t epoch;              /* passes done */
    int64_t epochs;             /* passes planned */
    int64_t samples;            /* samples seen */
    double seconds;             /* since the start of fit */
    double train_loss;          /* mean squared error over the pass, of the iterates as they were */
    double train_accuracy;      /* share of right labels among them; only if classification */
    double validation_loss;     /* NaN without a validation set */
    double validation_accuracy; /* NaN without, or if not classification */
    double projection_residual; /* relative residual the last projection left; 0 if none is needed */
    double step;                /* eta / m, the factor of the last step */
    int64_t pass_samples;       /* samples of the pass under way; 0 at the end of an epoch */
    int64_t pass_total;         /* samples in a pass */
    int64_t steps, projections; /* so far */
    const char *phase;          /* what set-up does now, "eigensystem" or such; NULL while samples are used. Only with
                                   progress_seconds > 0; losses are NaN then */
    double phase_share;         /* of that phase, done; negative: not known. The last one of set-up is "ready", 1 */
} mercer_progress;

/* Non-zero stops cleanly: the model keeps the best weights so far, a checkpoint is written if one is asked for, and fit
   returns MERCER_OK. */
typedef int (*mercer_progress_callback)(void *user, const mercer_progress *progress);

/* Every field may be 0: it then means "choose for me". What was chosen: mercer_plan. */
typedef struct mercer_train_options {
    size_t struct_size;
    const char *solver;    /* auto, direct, cg, ep4, ep3, ep3-exact, ep2, ep1, richardson, pegasos, nytro, gd */
    const char *projector; /* auto, exact, ep2, pcg, bgs */
    int64_t epochs;        /* passes over the samples; for cg, most steps (it stops at a relative gradient of 1e-4) */
    int64_t batch;         /* m */
    int64_t nystrom;       /* s, samples of the preconditioner */
    int64_t eigenpairs;    /* q; -1 for none */
    int64_t period;        /* T, batches between projections */
    int64_t projector_nystrom; /* the same two for the projector's own */
    int64_t projector_eigenpairs;
    int64_t projector_passes;   /* at most so many passes over K(Z, Z) in a projection */
    double projector_tolerance; /* stop a projection at this relative residual */
    int64_t projector_block;    /* centers in a block of bgs */
    mercer_switch carry;        /* add what a projection leaves over to the next */
    double step_factor;         /* gamma in (0, 1) of the step rule */
    double lambda;              /* ridge: + lambda alpha' K(Z,Z) alpha */
    mercer_switch average;      /* return the average of the later iterates */
    mercer_switch decay;        /* let the step fall in the later epochs */
    int64_t polish;             /* this many CG steps on the true objective at the end */
    uint64_t seed;
    int64_t memory;               /* bytes this training may hold, beyond the caller's data; 0: half of what is free */
    mercer_switch cache;          /* keep K(X,Z) if it fits */
    mercer_switch classification; /* outputs are one-hot classes: report accuracies */
    const mercer_matrix *validation_X; /* borrowed; both or neither */
    const mercer_matrix *validation_Y;
    int64_t patience; /* stop after so many epochs without a better validation result; 0: never */
    mercer_progress_callback progress;
    void *progress_user;
    double progress_seconds; /* > 0: called between steps too, when so many seconds have passed (validation is NaN), and
                                  while training is set up */
    const char *checkpoint;  /* file to write the state of training to, atomically; NULL: none */
    double checkpoint_seconds; /* within an epoch, after so long; 0: 600. Others: at the start, before an early end, and
                                  at the end of every epoch (step of cg), or of some, should they be shorter than a
                                  second */
    const char *checkpoint_note;      /* a text that the checkpoint carries; its model's note */
    const double *validation_weights; /* (rows of validation_X) >= 0, borrowed; NULL: all 1 */
} mercer_train_options;

/* All zero but struct_size. (A macro that lists all fields would be no help: initialise with {0} and set
   struct_size.) */
MERCER_API mercer_status mercer_train_options_init(mercer_train_options *options, size_t struct_size);

enum { MERCER_PLAN_TEXT = 4096 };

/* What training will do and why. */
typedef struct mercer_plan {
    size_t struct_size;
    char solver[16], projector[16];
    int64_t epochs, batch, nystrom, eigenpairs, period;
    int64_t projector_nystrom, projector_eigenpairs, projector_passes, projector_block;
    int carry, average, decay; /* 0 or 1 */
    int cache_data;            /* K(X, Z) is kept: 1 as the weights, 2 in half precision */
    int cache_centers;         /* K(Z, Z) or its factor is kept: 1, or 2 in half precision */
    mercer_dtype precision;    /* of weights and kernel values */
    double step_factor, lambda;
    int64_t bytes;               /* planned peak, beyond the caller's data and the model */
    double flops, seconds;       /* estimates for the whole training */
    char text[MERCER_PLAN_TEXT]; /* every choice in words, one line each */
} mercer_plan;

/* Plans without training, as a trainer of this model would for so many samples of the type of its centers (of a model
   that is shared among ranks, from its sizes alone). options may be NULL. Batch and period are estimates until the data
   have been seen. */
MERCER_API mercer_status mercer_train_plan(mercer_model *model, mercer_plan *out, int64_t samples,
                                           const mercer_train_options *options);

/* The same from sizes alone, without a model. */
typedef struct mercer_shape {
    size_t struct_size;
    int64_t samples, centers, features, outputs;
    mercer_dtype points;  /* of samples and centers; 0: f32 */
    mercer_dtype weights; /* f32 or f64; 0: f64 if points are, else f32 */
    int shards;           /* of the centers, for plans of ranks; -1: as many as suit; 0: one, for a process alone */
} mercer_shape;
MERCER_API mercer_status mercer_shape_plan(mercer_context *context, mercer_plan *out, const mercer_shape *shape,
                                           const mercer_train_options *options);

/* How fast a machine is at products of a shape: X (samples, features), Z (centers, features), W (centers, outputs), for
   benchmarks. Seconds are the best of a few runs. */
typedef struct mercer_speed {
    size_t struct_size;
    double product;                /* seconds for K(X, Z) W, operands where the machine computes */
    double plain;                  /* seconds for X Z' alone by its own library; 0: it has none for these sizes */
    double to_device, from_device; /* bytes a second of copies; 0: there is no device */
} mercer_speed;
MERCER_API mercer_status mercer_measure(mercer_context *context, mercer_speed *out, const mercer_kernel *kernel,
                                        const mercer_shape *shape);

/* Trains a model's weights. */
typedef struct mercer_trainer mercer_trainer;

/* The model, and comm (NULL: one rank), must outlive the trainer. Weights other than 0 in the model are a warm
   start. */
MERCER_API mercer_status mercer_trainer_create(mercer_trainer **out, mercer_model *model, mercer_comm *comm,
                                               const mercer_train_options *options);
MERCER_API void mercer_trainer_free(mercer_trainer *trainer);

typedef struct mercer_report {
    size_t struct_size;
    mercer_plan plan; /* with all numbers as they were used */
    int64_t epochs, samples, steps, projections;
    double train_loss, train_accuracy;           /* means that count the sample weights; below, validation_weights */
    double validation_loss, validation_accuracy; /* of the returned weights; NaN without a validation set */
    double projection_residual_mean, projection_residual_last;
    double tail, beta; /* t = lambda_{q+1} and beta of the step rule */
    int64_t halvings;  /* times the watchdog rolled back and halved the step */
    int stopped;       /* 0 finished, 1 early stopping, 2 progress callback */
    /* Setup: eigensystems, factors. Forward: kernel values, predictions. Gradient: sums over the samples. Projection:
       onto the centers; for direct and cg, solves with their factors. */
    double seconds, setup_seconds, forward_seconds, gradient_seconds, projection_seconds, validation_seconds;
    double flops;       /* done, counted */
    int64_t peak_bytes; /* most memory held through the context, beyond what was held before */
} mercer_report;

/*
 * The plan of the next fit, which follows it, for that source. Solver, projector and epochs are final. Set-up may
 * refine the sizes of batches, and a solver that auto chose and that breaks down is replaced: the report's plan then
 * has the new numbers, and its text a line more, which begins with "refined:" or "replaced:". All ranks call it
 * together.
 */
MERCER_API mercer_status mercer_trainer_plan(mercer_trainer *trainer, mercer_plan *out, const mercer_source *source);

/*
 * Trains on a source and writes the weights into the model. report may be NULL. On failure the model keeps the weights
 * it had; the weights never contain NaN.
 */
MERCER_API mercer_status mercer_trainer_fit(mercer_trainer *trainer, mercer_report *report,
                                            const mercer_source *source);

/*
 * One step on the caller's own batch (streaming, partial fit), with an iterative solver. The first call must bring at
 * least as many rows as it should draw the preconditioner from (some hundreds or more); they serve as the sample too.
 * The model's weights are current after each call that ended in a projection, and after mercer_trainer_finish.
 */
MERCER_API mercer_status mercer_trainer_step(mercer_trainer *trainer, const mercer_matrix *X, const mercer_matrix *Y,
                                             const double *weights);
/* Projects what is pending and brings the model up to date. */
MERCER_API mercer_status mercer_trainer_finish(mercer_trainer *trainer);
MERCER_API mercer_status mercer_trainer_report(mercer_trainer *trainer, mercer_report *report);

/*
 * The next fit goes on where the checkpoint was written, to the same weights, bit for bit, as a training that was never
 * interrupted (same machine and version, same source and options; the number of threads may differ). The model should
 * have been loaded from the checkpoint, which is a model file as well. Refused with MERCER_ERROR_MISMATCH if options,
 * sizes or centers differ.
 */
MERCER_API mercer_status mercer_trainer_resume(mercer_trainer *trainer, const char *path);

/* The eigenvalues of K(X_s, X_s) / s that the last fit's preconditioner was made from, descending: the top q + 1 of
   them. Writes at most `room` of them; *count tells how many there are, 0 for solvers without. */
MERCER_API mercer_status mercer_trainer_spectrum(const mercer_trainer *trainer, double *values, int64_t room,
                                                 int64_t *count);

/* 15. Ranks: several processes that hold one model together. */
#include "ranks.h"

#ifdef __cplusplus
}
#endif
#endif
